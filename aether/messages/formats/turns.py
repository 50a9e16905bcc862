"""Turns: a conversation in no wire, between reading it in one and writing it in another.

A response is one turn with all the answers to its calls, wherever these stood; a result that answers no call is
said by the user, since no provider takes it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aether.messages.blocks import failed, table
from aether.messages.formats.media import seen, spelt
from aether.messages.formats.places import value_at
from aether.messages.message import Block, Message, Role, Wire
from aether.shapes import Finding, JsonObject


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

    wire: Wire
    report: Report
    turns: list[Turn]
    callers: dict[str, Turn]
    """The turn whose call of that id waits for its answer."""


def turns(messages: Sequence[Message], wire: Wire, report: Report) -> list[Turn]:
    """Return `messages` as turns to be written in `wire`; what cannot be said there is reported."""
    heard = _Heard(wire, report, [], {})
    for at, message in enumerate(messages):
        _hear(message, f"messages[{at}]", heard)
    return [turn for turn in heard.turns if turn.pieces]


def _hear(message: Message, where: str, heard: _Heard) -> None:
    meta = table(message.raw.get("meta"))
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
    shown = seen(value_at(message.raw, block.at))
    made = spelt(shown, heard.wire) if shown else None
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
    if block.is_error and heard.wire not in _FLAGGING and not failed(block.text):
        heard.report(
            Finding("info", "flag-dropped", where, "It cannot be said that a tool failed.", "Say it in text.")
        )
    caller.answers.append(Answer(block, list(_shown(message, at, where, heard))))
    caller.meta.update(table(message.raw.get("meta")))
    return True


def _shown(message: Message, at: int, where: str, heard: _Heard) -> Iterator[JsonObject]:
    for follower in range(at + 1, len(message.blocks)):
        block = message.blocks[follower]
        if block.kind != "media" or not _in_result(message, follower):
            return
        shown = seen(value_at(message.raw, block.at))
        made = spelt(shown, heard.wire) if shown and heard.wire in _SHOWING_RESULTS else None
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
