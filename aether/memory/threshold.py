"""The token threshold: when working memory should be compressed.

threshold = max_capacity_tokens * eviction_threshold_percent // 100      needed: current >= threshold
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from aether.memory import items
from aether.memory.changes import chained
from aether.shapes import Change, Counter, JsonObject


class Usage(NamedTuple):
    """How full working memory is, in tokens."""

    current: int
    maximum: int
    threshold: int

    @property
    def needed(self) -> bool:
        """Whether compression is needed."""
        return self.current >= self.threshold

    @property
    def percent(self) -> float:
        """Share of the capacity in use, in percent, one decimal."""
        return round(100 * self.current / self.maximum, 1) if self.maximum else 0.0


def usage(memory: Mapping[str, Any]) -> Usage:
    """Return how full working memory is."""
    part = memory["working_memory"]
    maximum = part["max_capacity_tokens"]
    return Usage(part["current_tokens"], maximum, maximum * part["eviction_threshold_percent"] // 100)


def add_items(
    documents: Mapping[str, Any], entries: Sequence[JsonObject], *, now: datetime, new_id: items.NewId, count: Counter
) -> Change:  # fmt: skip
    """Return the change that adds checked drafts and signals a full memory.

    Its result is the `Added` and whether compression is needed.

    Raises:
        BudgetExceeded: one of them is larger than working memory, or only protected items could make room.
    """
    return chained(
        documents,
        lambda state: items.add(state["memory"], entries, now=now, new_id=new_id, count=count),
        lambda state: signal_threshold(state, now=now, new_id=new_id),
    )


def signal_threshold(documents: Mapping[str, Any], *, now: datetime, new_id: items.NewId) -> Change:
    """Return the change that records, once, that compression is needed; the result says whether it is."""
    fill = usage(documents["memory"])
    if not fill.needed:
        return Change({}, result=False)
    from aether.memory import signals  # only near the threshold: most additions are far from it

    held = documents["pheromones"]["active_pheromones"]
    if any(signal["type"] == "TOKEN_THRESHOLD" for signal in held):
        return Change({}, result=True)
    context = f"{fill.current} of {fill.maximum} tokens: compression is needed"
    emitted = signals.emit(
        documents["pheromones"], "TOKEN_THRESHOLD", context, now=now, id=new_id("token_threshold", now, 0),
        source="colony",
    )  # fmt: skip
    return emitted._replace(result=True)
