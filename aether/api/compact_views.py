"""Views of compactions: the difference of one, the list of conversations, and dry runs.

Nothing here is recorded and no model is asked. A dry run follows the policy as configured: it does not lower the numbers of
kept messages, as a compaction under pressure does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

from aether.api.compact import Options, compaction_plan
from aether.api.conversations import record_directory
from aether.api.home import Home
from aether.conversation.draft import held_groups
from aether.conversation.partition import Parts, partition
from aether.conversation.plan import apply
from aether.conversation.policy import CompactConfig
from aether.conversation.shapes import Policy
from aether.errors import AetherError, public
from aether.messages.convert import bare, read
from aether.messages.model import Message, ProviderFormat
from aether.store import conversations, history
from aether.store.conversations import load
from aether.text.words import pluralize
from aether.types import Finding, JsonObject


class DiffRow(NamedTuple):
    """One message before or after a compaction, and its change."""

    change: Literal["kept", "shortened", "removed", "added"]
    before: int | None
    """Position before the compaction; None for an added message."""
    after: int | None
    role: str
    text: str
    """Its text: before the compaction if it was removed, else after it."""
    protected: bool


class Difference(NamedTuple):
    """The changes of one compaction to a conversation."""

    rows: list[DiffRow]
    """Removed messages come before those that were added for them."""
    receipt: JsonObject
    before: list[JsonObject]
    after: list[JsonObject]


class ConversationEntry(NamedTuple):
    """One stored conversation."""

    conversation: str
    messages: int
    """In the full history."""
    context: int
    """Live now."""
    compactions: int
    undone: int
    bytes: int
    problem: str = ""
    """Why it cannot be opened; all numbers are 0 then."""


@public
def compaction_diff(conversation_id: str, *, step: int | None = None, home: Home = None) -> Difference:
    """Return the changes of compaction `step`, message by message; by default of the newest that is not undone.

    Raises:
        NotFound: there is no such conversation, or no such compaction.
    """
    log = load(record_directory(home), conversation_id)
    before, after, receipt = history.compaction(log, last_step(log) if step is None else step)
    return Difference(list(_rows(before, after, receipt)), receipt, before, after)


def last_step(log: history.Log) -> int:
    """Return the newest compaction that is not undone; if all are, the newest."""
    return log.open[-1] if log.open else len(log.compactions)


@public
def conversation_list(*, home: Home = None) -> list[ConversationEntry]:
    """Return the stored conversations, by name, with the problems of those that cannot be opened.

    Raises:
        NotFound: the named home does not exist.
    """
    place = record_directory(home)
    entries = []
    for stored in conversations.stored_conversations(place):
        try:
            log = load(place, stored.id)
        except AetherError as reason:
            entries.append(ConversationEntry(stored.id, 0, 0, 0, 0, stored.bytes, reason.what))
            continue
        messages, steps = len(history.said(log)), len(log.compactions)
        problem = f"it is damaged in {pluralize(log.damaged, 'places')}" if log.damaged else ""
        entries.append(
            ConversationEntry(
                log.id, messages, len(log.context), steps, steps - len(log.open), stored.bytes, problem
            )
        )
    return entries


def _rows(before: list[JsonObject], after: list[JsonObject], receipt: JsonObject) -> Iterator[DiffRow]:
    """Yield the kept, shortened and added messages in order, with the removed ones where they were."""
    places: list[int | None] = receipt["places"]
    protected = set(receipt["protected"])
    old, new = read(before), read(after)
    removed = [index for index in range(len(before)) if index not in places]
    for index, place in enumerate(places):
        # What was removed for an added message is shown before it.
        until = next((later for later in places[index:] if later is not None), len(before))
        while removed and removed[0] < until:
            position = removed.pop(0)
            yield _row("removed", position, None, old[position], protected)
        if place is None:
            yield _row("added", None, index, new[index], protected)
        else:
            is_same = old[place].raw == new[index].raw
            yield _row("kept" if is_same else "shortened", place, index, new[index], protected)
    for position in removed:
        yield _row("removed", position, None, old[position], protected)


def _row(
    change: Literal["kept", "shortened", "removed", "added"],
    before: int | None,
    after: int | None,
    message: Message,
    protected: Collection[int] = (),
) -> DiffRow:
    text = " ".join(f"{block.tool} {block.text}".strip() for block in message.blocks)
    return DiffRow(change, before, after, message.role, text, before in protected)


def diff_messages(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[DiffRow]:
    """Return the difference between two lists of messages, by their content.

    >>> messages = [{"role": "user", "content": text} for text in "abc"]
    >>> [(row.change, row.text) for row in diff_messages(messages, messages[1:])]
    [('removed', 'a'), ('kept', 'b'), ('kept', 'c')]
    """
    old, new = read(before), read(after)
    first, last = (
        [json.dumps(bare(raw), sort_keys=True, default=str) for raw in raws] for raws in (before, after)
    )
    rows: list[DiffRow] = []
    for kind, start, end, index, until in SequenceMatcher(None, first, last, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += (_row("kept", start + nth, index + nth, new[index + nth]) for nth in range(end - start))
        else:
            rows += (_row("removed", nth, None, old[nth]) for nth in range(start, end))
            rows += (_row("added", None, nth, new[nth]) for nth in range(index, until))
    return rows


class DryRun(NamedTuple):
    """Result of a dry run; the counts are of messages."""

    total: int
    pinned: int
    recent: int
    tool_io: int
    eligible: int
    """Messages that may be removed: neither pinned nor recent nor among the newest calls."""
    trigger: bool
    reason: str
    """Why a trigger fires; empty if none does."""
    tokens: int
    max_tokens: int
    after: list[JsonObject]
    """The messages to be sent; the same if no trigger fires."""
    tokens_after: int
    findings: list[Finding]


def dry_run(
    messages: Sequence[JsonObject],
    config: CompactConfig,
    *,
    system: Any = None,
    tools: Any = None,
    wire: ProviderFormat | None = None,
    force: bool = False,
    home: Home = None,
) -> DryRun:
    """Return the result that `preflight` would have, or with `force` a compaction by hand.

    Raises:
        InvalidInput: a message is invalid.
        BudgetExceeded: the protected messages do not fit.
    """
    policy = config.policy.policy()
    plan = compaction_plan(
        "trial", messages, model=config.model, window=config.max_context_tokens, policy=policy, system=system, tools=tools,
        wire=wire, force=force, options=Options(), home=home,
    )  # fmt: skip
    parts = Counter(_parts(partition(plan.messages, policy), policy))
    result = apply(plan, None)
    return DryRun(
        len(messages), parts["pinned"], parts["recent"], parts["tool_io"], parts["eligible"], plan.triggered, plan.reason,
        result.tokens_before, config.max_context_tokens,
        [message.raw for message in result.messages], result.tokens_after, list(result.findings),
    )  # fmt: skip


def _parts(parts: Parts, policy: Policy) -> Iterator[str]:
    """Yield the part that each message belongs to."""
    is_held = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    for index, group in enumerate(parts.groups):
        kind = "recent" if parts.pair[index] < 0 else "tool_io"
        part = "pinned" if index in parts.pinned else kind if is_held[index] else "eligible"
        yield from [part] * len(group.members)
