"""The token threshold: when working memory should be compressed.

threshold = max_capacity_tokens * eviction_threshold_percent // 100      needed: current >= threshold
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


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
