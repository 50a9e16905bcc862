"""A trial of compaction: what it would keep and change, with nothing recorded and nobody asked.

What a dry run prints is by the policy as configured; keep counts that the ladder would lower are not lowered here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from aether.compaction.partition import Parts, partition
from aether.compaction.plan import apply, plan
from aether.compaction.settings import CompactConfig
from aether.compaction.shapes import Policy
from aether.messages.formats import bare, read
from aether.messages.message import Message, Wire
from aether.operations.compaction_case import Options, case
from aether.operations.compaction_views import Row
from aether.operations.edge import Home
from aether.shapes import Finding, JsonObject


class Trial(NamedTuple):
    """What a compaction would do; the counts are of messages."""

    total: int
    pinned: int
    recent: int
    tool_io: int
    eligible: int
    """What may go: neither pinned nor recent nor among the newest calls."""
    trigger: bool
    reason: str
    """Why it fires; empty where it does not."""
    tokens: int
    max_tokens: int
    after: list[JsonObject]
    """The messages as they would be sent; the same where nothing fires."""
    tokens_after: int
    findings: list[Finding]


def trial(
    messages: Sequence[JsonObject],
    config: CompactConfig,
    *,
    system: Any = None,
    tools: Any = None,
    wire: Wire | None = None,
    force: bool = False,
    home: Home = None,
) -> Trial:
    """Return what `preflight` would do to `messages`, or with `force` a compaction by hand.

    Raises:
        InvalidInput: a message is none.
        BudgetExceeded: what is protected does not fit.
    """
    chosen = config.policy.policy()
    found = case(
        "trial", messages, model=config.model, window=config.max_context_tokens, policy=chosen, system=system,
        tools=tools, wire=wire, note="", options=Options(), home=home,
    )  # fmt: skip
    parts = Counter(_parts(partition(found.sums.messages, chosen), chosen))
    made = plan(
        found.sums.messages, chosen, found.sums.count, window=config.max_context_tokens,
        overhead=found.budget.used - found.budget.messages, tokens=found.sums.tokens, force=force,
    )  # fmt: skip
    result = apply(made, None)
    return Trial(
        len(messages), parts["pinned"], parts["recent"], parts["tool_io"], parts["eligible"], made.triggered, made.reason,
        result.tokens_before, config.max_context_tokens,
        [message.raw for message in result.messages], result.tokens_after, [*found.findings, *result.findings],
    )  # fmt: skip


def _parts(found: Parts, policy: Policy) -> Iterator[str]:
    """Yield for each message what holds it."""
    for at, group in enumerate(found.groups):
        if at in found.pinned:
            part = "pinned"
        elif at in found.orphans or at in found.summaries:
            part = "eligible"
        elif found.pair[at] >= 0:
            part = "tool_io" if found.pair[at] < policy.keep_tool_pairs else "eligible"
        else:
            part = "recent" if found.turn[at] < policy.keep_recent_turns else "eligible"
        yield from (part for _ in group.members)


def difference(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[Row]:
    """Return what became of each message between two lists, by what they hold.

    >>> said = [{"role": "user", "content": text} for text in "abc"]
    >>> [(row.change, row.text) for row in difference(said, said[1:])]
    [('removed', 'a'), ('kept', 'b'), ('kept', 'c')]
    """
    old, new = (
        [json.dumps(bare(raw), sort_keys=True, default=str) for raw in raws] for raws in (before, after)
    )
    rows: list[Row] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, at, until in matcher.get_opcodes():
        if kind == "equal":
            rows += (_row("kept", start + nth, at + nth, after[at + nth]) for nth in range(end - start))
        else:
            rows += (_row("removed", nth, None, before[nth]) for nth in range(start, end))
            rows += (_row("added", None, nth, after[nth]) for nth in range(at, until))
    return rows


def _row(change: Any, before: int | None, after: int | None, raw: JsonObject) -> Row:
    (message,) = read([raw])
    return Row(change, before, after, message.role, _text(message), protected=False)


def _text(message: Message) -> str:
    return " ".join(f"{block.tool} {block.text}".strip() for block in message.blocks)
