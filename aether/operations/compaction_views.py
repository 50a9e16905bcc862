"""Views of what compactions did: the difference of one, message by message, and the conversations there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from aether.errors import AetherError
from aether.messages.formats import read
from aether.messages.message import Message
from aether.operations.compaction_case import place_of
from aether.operations.edge import Home
from aether.shapes import JsonObject
from aether.store import conversations
from aether.store.conversation_log import load
from aether.store.conversations import Stored


class Row(NamedTuple):
    """One message before or after a compaction, and what became of it."""

    change: Literal["kept", "shortened", "removed", "added"]
    before: int | None
    """Position before the compaction; None for what it added."""
    after: int | None
    role: str
    text: str
    """What it says: before where it was removed, after where it stayed."""
    protected: bool


class Difference(NamedTuple):
    """What one compaction did to a conversation."""

    rows: list[Row]
    """What was removed stands before what was added for it."""
    receipt: JsonObject
    before: list[JsonObject]
    after: list[JsonObject]


class Listed(NamedTuple):
    """One conversation that is kept."""

    conversation: str
    messages: int
    """Ever said."""
    context: int
    """Live now."""
    compactions: int
    undone: int
    bytes: int
    problem: str = ""
    """Why it cannot be opened; the numbers before are 0 then."""


def compaction_diff(conversation_id: str, *, step: int | None = None, home: Home = None) -> Difference:
    """Return what compaction `step` did, message by message; the newest one that is not undone if none is named.

    Raises:
        NotFound: there is no such conversation, or no such compaction.
    """
    log = load(place_of(home), conversation_id)
    if step is None:
        step = log.open[-1] if log.open else len(log.compactions)
    before, after, receipt = conversations.compacted(log, step)
    return Difference(list(_rows(before, after, receipt)), receipt, before, after)


def conversation_list(*, home: Home = None) -> list[Listed]:
    """Return the conversations that are kept, by name, with what is wrong with those that cannot be opened.

    Raises:
        NotFound: the named one is no home.
    """
    place = place_of(home)
    return [_listed(place, found) for found in conversations.conversations(place)]


def _listed(place: Path, found: Stored) -> Listed:
    try:
        log = load(place, found.id)
    except AetherError as reason:
        return Listed(found.id, 0, 0, 0, 0, found.bytes, reason.what)
    said = sum(1 for step in log.derived if not step)
    done = len(log.compactions)
    return Listed(log.id, said, len(log.context), done, done - len(log.open), found.bytes)


def _rows(before: list[JsonObject], after: list[JsonObject], receipt: JsonObject) -> Iterator[Row]:
    places: list[int | None] = receipt["places"]
    protected = set(receipt["protected"])
    old, new = read(before), read(after)
    reached = 0
    for at, place in enumerate(places):
        following = next((later for later in places[at:] if later is not None), len(before))
        for gone in range(reached, following):
            yield _row("removed", gone, None, old[gone], protected)
        reached = max(reached, following)
        if place is None:
            yield _row("added", None, at, new[at], protected)
        else:
            changed = old[place].raw != new[at].raw
            yield _row("shortened" if changed else "kept", place, at, new[at], protected)
            reached = place + 1
    for gone in range(reached, len(before)):
        yield _row("removed", gone, None, old[gone], protected)


def _row(
    change: Literal["kept", "shortened", "removed", "added"],
    before: int | None,
    after: int | None,
    message: Message,
    protected: Sequence[int] | set[int],
) -> Row:
    text = " ".join(f"{block.tool} {block.text}".strip() for block in message.blocks)
    return Row(change, before, after, message.role, text, before in protected)
