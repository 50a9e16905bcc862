"""Turns: a conversation between reading it in one provider format and writing it in another.

A response is one turn with all the answers to its calls, at any place; a result without its call becomes text of
the user, since no provider accepts it otherwise. Calls and results of formats without ids get ids made of the name and
the order: a result without an id answers the oldest open call of its name, as these formats define it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aether.messages.content import rewritten_media, value_at
from aether.messages.findings import changed, warning
from aether.messages.model import Block, Message, ProviderFormat, Role, as_object, is_failure_text
from aether.types import Finding, JsonObject

Report = Callable[[Finding], None]
# Formats whose results can hold pictures.
_MEDIA_IN_RESULTS = ("anthropic", "responses")
# Formats whose results can be flagged as failures.
_FAILURE_FLAG = ("anthropic", "gemini")


class Answer(NamedTuple):
    """The result of a call."""

    block: Block
    shown: list[JsonObject]
    """Media that came with it, in the format to be written."""


class Turn(NamedTuple):
    """The texts, media and calls of one side, up to the other side's."""

    role: Role
    pieces: list[Block | JsonObject]
    """Texts and calls, and media in the format to be written."""
    answers: list[Answer]
    meta: JsonObject
    developer: bool = False


class _State(NamedTuple):
    """The turns so far."""

    format: ProviderFormat
    report: Report
    turns: list[Turn]
    callers: dict[str, Turn]
    """The turn of each call that waits for its answer, by the id of the call."""


def turns_for(messages: Sequence[Message], format: ProviderFormat, report: Report) -> list[Turn]:
    """Return `messages` as turns to be written in `format`; content that it cannot hold is reported."""
    state = _State(format, report, [], {})
    for at, message in enumerate(messages):
        _add(message, f"messages[{at}]", state)
    return [turn for turn in state.turns if turn.pieces]


def _add(message: Message, where: str, state: _State) -> None:
    meta = as_object(message.raw.get("meta"))
    turn: Turn | None = None
    for at, block in enumerate(message.blocks):
        if block.kind == "result":
            _add_result(message, at, where, state)
            turn = None
            continue
        piece = _piece(message, at, where, state)
        if piece is None:
            continue
        if turn is None:
            # A response in several items or messages is one turn.
            role: Role = "user" if message.role == "tool" else message.role
            turn = state.turns[-1] if state.turns else None
            if turn and role == turn.role == "assistant" and not turn.answers:
                turn.meta.update(meta)
            else:
                turn = Turn(role, [], [], dict(meta), message.raw.get("role") == "developer")
                state.turns.append(turn)
        turn.pieces.append(piece)
        if isinstance(piece, Block) and piece.kind == "call":
            state.callers[piece.call_id] = turn


def _piece(message: Message, at: int, where: str, state: _State) -> Block | JsonObject | None:
    block = message.blocks[at]
    if block.kind in ("reasoning", "other"):
        what = f"{state.format} has no equivalent of {block.text[:80]}."
        state.report(
            changed("reasoning-dropped", where, "Reasoning is for its own provider only.")
            if block.kind == "reasoning"
            else warning("block-dropped", where, what, "Write it as text.")
        )
        return None
    if block.kind != "media":
        return block if block.kind == "call" or block.text.strip() else None
    if at and message.blocks[at - 1].kind in {"result", "media"} and _is_in_result(message, at):
        return None
    if block.text:
        return block._replace(kind="text")
    made = _written_media(message, block, state.format)
    if made is None or (message.role == "assistant" and state.format != "gemini"):
        what = f"{state.format} has no such media there."
        state.report(warning("media-dropped", where, what, "Describe it in text."))
        return None
    return made


def _written_media(message: Message, block: Block, format: ProviderFormat) -> JsonObject | None:
    return rewritten_media(value_at(message.raw, block.at), format)


def _is_in_result(message: Message, at: int) -> bool:
    """Return whether media came with a result: their place is deeper than content of the message itself."""
    before = [block for block in message.blocks[:at] if block.kind != "media"]
    deeper = len(message.blocks[at].at) > 2 or message.role == "tool"
    return bool(before) and before[-1].kind == "result" and deeper


def _add_result(message: Message, at: int, where: str, state: _State) -> None:
    """Add a result to the turn that called for it, or make it a text of the user."""
    block, meta = message.blocks[at], as_object(message.raw.get("meta"))
    caller = state.callers.pop(block.call_id, None)
    if caller is None:
        what = "The result answers no call."
        state.report(warning("orphan-result", where, what, "It became a user message."))
        if block.text.strip():
            state.turns.append(Turn("user", [block._replace(kind="text")], [], dict(meta)))
        return
    if block.is_error and state.format not in _FAILURE_FLAG and not is_failure_text(block.text):
        state.report(changed("flag-dropped", where, f"{state.format} has no flag for a tool that failed."))
    answer = Answer(block, [])
    caller.answers.append(answer)
    caller.meta.update(meta)
    for follower, media in enumerate(message.blocks[at + 1 :], start=at + 1):
        if media.kind != "media" or not _is_in_result(message, follower):
            return
        made = _written_media(message, media, state.format) if state.format in _MEDIA_IN_RESULTS else None
        if made:
            answer.shown.append(made)
        else:
            what = f"Results of {state.format} are text."
            state.report(warning("media-dropped", where, what, "Describe it in text."))


class _Ids(NamedTuple):
    """The calls so far."""

    counts: dict[str, int]
    """Calls, and results without a call, by name."""
    open: dict[str, list[str]]
    """Ids of calls without an answer, by name, oldest first."""


def with_call_ids(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> list[Message]:
    """Return `messages` with an id on each call and result that lacks one; `after` are those before them."""
    if not any(map(_lacks_ids, messages)):
        return list(messages)
    ids = _Ids({}, {})
    for message in after:
        for block in message.blocks:
            _count(block, ids)
    identified = []
    for message in messages:
        lacks, blocks = _lacks_ids(message), []
        for block in message.blocks:
            found = block
            if lacks and not block.call_id and block.kind in {"call", "result"}:
                waiting = ids.open.get(block.tool, []) if block.kind == "result" else []
                made = waiting[0] if waiting else f"{block.tool}#{ids.counts.get(block.tool, 0) + 1}"
                found = block._replace(call_id=made)
            _count(found, ids)
            blocks.append(found)
        identified.append(message._replace(blocks=tuple(blocks)))
    return identified


def _lacks_ids(message: Message) -> bool:
    """Return whether a message needs ids; in formats that require them a missing id is a fault and stays."""
    legacy = "function_call" in message.raw or message.raw.get("role") == "function"
    return (message.format == "gemini" or legacy) and any(
        block.kind in {"call", "result"} and not block.call_id for block in message.blocks
    )


def _count(block: Block, ids: _Ids) -> None:
    waiting = ids.open.setdefault(block.tool, [])
    if block.kind == "result" and block.call_id in waiting:
        waiting.remove(block.call_id)
    elif block.kind in {"call", "result"}:
        ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1
        if block.kind == "call":
            waiting.append(block.call_id)
