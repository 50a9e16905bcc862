"""Turns: a conversation in no wire, between reading it in one and writing it in another.

A response is one turn with all the answers to its calls, wherever these stood; a result that answers no call is
said by the user, since no provider takes it otherwise.

Pairing: ids for calls and results of formats that have none, made of the name and of the order.

A result without an id answers the oldest open call of its name, as these formats define it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aether.messages.content import read_media, value_at, write_media
from aether.messages.model import Block, Message, ProviderFormat, Role, as_object, is_failure_text
from aether.types import Finding, JsonObject


class Answer(NamedTuple):
    """What a call brought."""

    block: Block
    shown: list[JsonObject]
    """Media that came with it, spelt for the wire that is written."""


class Turn(NamedTuple):
    """What one side says at once."""

    role: Role
    pieces: list[Block | JsonObject]
    """Texts and calls, and media spelt for the wire that is written."""
    answers: list[Answer]
    meta: JsonObject
    developer: bool = False


Report = Callable[[Finding], None]
# Where results may hold pictures.
_SHOWING_RESULTS = ("anthropic", "responses")
# Where results can be flagged as failures.
_FLAGGING = ("anthropic", "gemini")


class _Heard(NamedTuple):
    """What has been taken in so far."""

    wire: ProviderFormat
    report: Report
    turns: list[Turn]
    callers: dict[str, Turn]
    """The turn whose call of that id waits for its answer."""


def turns_for(messages: Sequence[Message], wire: ProviderFormat, report: Report) -> list[Turn]:
    """Return `messages` as turns to be written in `wire`; what cannot be said there is reported."""
    heard = _Heard(wire, report, [], {})
    for at, message in enumerate(messages):
        _hear(message, f"messages[{at}]", heard)
    return [turn for turn in heard.turns if turn.pieces]


def _hear(message: Message, where: str, heard: _Heard) -> None:
    meta = as_object(message.raw.get("meta"))
    blocks = iter(enumerate(message.blocks))
    turn: Turn | None = None
    for at, block in blocks:
        if block.kind == "result":
            if not _answered(block, message, at, where, heard):
                _orphan(block, where, meta, heard)
            turn = None
            continue
        piece = _piece(message, at, where, heard)
        if piece is None:
            continue
        if turn is None:
            turn = _turn(message, meta, heard)
        turn.pieces.append(piece)
        if isinstance(piece, Block) and piece.kind == "call":
            heard.callers[piece.call_id] = turn


def _turn(message: Message, meta: JsonObject, heard: _Heard) -> Turn:
    role: Role = "user" if message.role == "tool" else message.role
    last = heard.turns[-1] if heard.turns else None
    # A response in several items, or several messages of the assistant in a row, are one.
    if last and role == last.role == "assistant" and not last.answers:
        last.meta.update(meta)
        return last
    made = Turn(role, [], [], dict(meta), message.raw.get("role") == "developer")
    heard.turns.append(made)
    return made


def _piece(message: Message, at: int, where: str, heard: _Heard) -> Block | JsonObject | None:
    block = message.blocks[at]
    if block.kind == "media":
        if at and message.blocks[at - 1].kind in {"result", "media"} and _in_result(message, at):
            return None
        return _media(message, block, where, heard)
    if block.kind == "reasoning":
        heard.report(
            Finding(
                "info", "reasoning-dropped", where, "Reasoning belongs to its provider.", "Nothing to do."
            )
        )
        return None
    if block.kind == "other":
        heard.report(
            Finding("warning", "block-dropped", where, f"{block.text[:80]} has no like.", "Say it as text.")
        )
        return None
    return block if block.kind == "call" or block.text.strip() else None


def _in_result(message: Message, at: int) -> bool:
    """Tell whether media came with a result: it stands deeper than content of the message itself."""
    before = [block for block in message.blocks[:at] if block.kind != "media"]
    return (
        bool(before)
        and before[-1].kind == "result"
        and (len(message.blocks[at].at) > 2 or message.role == "tool")
    )


def _media(message: Message, block: Block, where: str, heard: _Heard) -> Block | JsonObject | None:
    if block.text:
        return block._replace(kind="text")
    shown = read_media(value_at(message.raw, block.at))
    made = write_media(shown, heard.wire) if shown else None
    if made is None or (message.role == "assistant" and heard.wire != "gemini"):
        heard.report(
            Finding(
                "warning",
                "media-dropped",
                where,
                f"{heard.wire} cannot show it there.",
                "Describe it in text.",
            )
        )
        return None
    return made


def _answered(block: Block, message: Message, at: int, where: str, heard: _Heard) -> bool:
    """Give a result to the turn that called for it; tell whether there is one."""
    caller = heard.callers.pop(block.call_id, None)
    if caller is None:
        return False
    if block.is_error and heard.wire not in _FLAGGING and not is_failure_text(block.text):
        heard.report(
            Finding("info", "flag-dropped", where, "It cannot be said that a tool failed.", "Say it in text.")
        )
    caller.answers.append(Answer(block, list(_shown(message, at, where, heard))))
    caller.meta.update(as_object(message.raw.get("meta")))
    return True


def _shown(message: Message, at: int, where: str, heard: _Heard) -> Iterator[JsonObject]:
    for follower in range(at + 1, len(message.blocks)):
        block = message.blocks[follower]
        if block.kind != "media" or not _in_result(message, follower):
            return
        shown = read_media(value_at(message.raw, block.at))
        made = write_media(shown, heard.wire) if shown and heard.wire in _SHOWING_RESULTS else None
        if made:
            yield made
        else:
            heard.report(
                Finding(
                    "warning",
                    "media-dropped",
                    where,
                    f"Results of {heard.wire} are text.",
                    "Describe it in text.",
                )
            )


def _orphan(block: Block, where: str, meta: JsonObject, heard: _Heard) -> None:
    heard.report(
        Finding("warning", "orphan-result", where, "The result answers no call.", "It is said by the user.")
    )
    if block.text.strip():
        heard.turns.append(Turn("user", [block._replace(kind="text")], [], dict(meta)))


class _Ids(NamedTuple):
    """What has been called so far."""

    counts: dict[str, int]
    """Calls and lonely results without an id, by name."""
    open: dict[str, list[str]]
    """Ids of calls that nothing answered yet, by name, oldest first."""


def with_call_ids(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> list[Message]:
    """Return `messages` with an id on each call and result that lacks one; `after` are those before them."""
    if not any(map(_lacks, messages)):
        return list(messages)
    ids = _Ids({}, {})
    for message in after:
        for block in message.blocks:
            _note(block, ids)
    return [_identified(message, ids) for message in messages]


def _lacks(message: Message) -> bool:
    """Tell whether a message needs an id; where a format asks for one, its lack is a fault and stays."""
    legacy = "function_call" in message.raw or message.raw.get("role") == "function"
    return (message.wire == "gemini" or legacy) and any(
        block.kind in {"call", "result"} and not block.call_id for block in message.blocks
    )


def _identified(message: Message, ids: _Ids) -> Message:
    lacks = _lacks(message)
    return message._replace(blocks=tuple(_blocks(message, ids, lacks=lacks)))


def _blocks(message: Message, ids: _Ids, *, lacks: bool) -> Iterator[Block]:
    for block in message.blocks:
        found = block
        if lacks and not block.call_id and block.kind in {"call", "result"}:
            waiting = ids.open.get(block.tool, []) if block.kind == "result" else []
            made = waiting[0] if waiting else f"{block.tool}#{ids.counts.get(block.tool, 0) + 1}"
            found = block._replace(call_id=made)
        _note(found, ids)
        yield found


def _note(block: Block, ids: _Ids) -> None:
    if block.kind == "call":
        ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1
        ids.open.setdefault(block.tool, []).append(block.call_id)
    elif block.kind == "result":
        waiting = ids.open.get(block.tool, [])
        if block.call_id in waiting:
            waiting.remove(block.call_id)
        else:
            ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1
