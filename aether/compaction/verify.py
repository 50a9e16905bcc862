"""Verification: what a compaction promises, proved of each result before it leaves the function.

The proof looks at the messages themselves, not at the groups that the compaction worked with. What fails here
is a fault of aether, never of the conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from aether.compaction.partition import carries
from aether.compaction.shapes import Compacted
from aether.errors import AetherError
from aether.messages.message import Message
from aether.shapes import Counter
from aether.tokens.messages import message_tokens


def verified(
    compacted: Compacted, before: Sequence[Message], *, tokens: Sequence[int], overhead: int, count: Counter,
    required: Collection[int],
) -> Compacted:  # fmt: skip
    """Return `compacted` with its tokens counted, having proved it.

    It fits; what is protected is the very same, in order; nothing is in it twice; every result has the call it
    had, and the reverse; there is at most one summary; the `required` positions are there; it is not empty.

    Raises:
        AetherError: it is not so; the error says what is wrong.
    """
    after, places = compacted.messages, compacted.places
    kept = [place for place in places if place is not None]
    _require(bool(after) and len(after) == len(places), "it is empty")
    _require(all(one < other for one, other in pairwise(kept)), "the order changed")
    total = overhead + sum(
        tokens[place] if place is not None and message is before[place] else message_tokens(message, count)
        for message, place in zip(after, places, strict=True)
    )
    _require(total <= compacted.limit, f"{total} tokens are over the limit of {compacted.limit}")
    by_place = dict(zip(places, after, strict=True))
    for position in compacted.protected:
        found = by_place.get(position)
        _require(
            found is not None and found.raw is before[position].raw, f"protected message {position} changed"
        )
    for position in required:
        _require(position in by_place, f"message {position}, which must stay, is gone")
    _check_summaries(compacted)
    lost = _lonely(after, places) - _lonely(before, range(len(before)))
    _require(not lost, f"messages {sorted(map(str, lost))} lost their call or their result")
    return compacted._replace(tokens_after=total)


def _check_summaries(compacted: Compacted) -> None:
    found = sum(map(carries, compacted.messages))
    _require(
        found <= 1 and (compacted.summary is None or found == 1), f"it has {found} summaries instead of one"
    )


def _lonely(messages: Sequence[Message], places: Sequence[int | None]) -> set[int | None]:
    """Return the places of calls without a result, and of results without a call before them."""
    waiting: dict[str, list[int | None]] = {}
    lonely: set[int | None] = set()
    for place, message in zip(places, messages, strict=True):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(place)
            elif block.kind == "result" and waiting.get(block.call_id):
                waiting[block.call_id].pop()
            elif block.kind == "result":
                lonely.add(place)
    return lonely.union(*waiting.values())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AetherError(
            f"the compaction is wrong: {what}.",
            fix="Nothing was changed. Report this with the conversation's shape; compact with another policy.",
            where="compaction",
        )
