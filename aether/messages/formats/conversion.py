"""Conversion: a conversation of one wire said in another, with findings for what could not be said.

Role, text, calls, results and their order stay; reasoning stays with its provider. The answers of one response
come together, as every provider takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from aether.messages.blocks import flat
from aether.messages.formats.turns import Report, Turn, turns
from aether.messages.message import Block, Message, Wire
from aether.shapes import Finding, JsonObject
from aether.text.patterns import lazy

# What OpenAI takes as an id, the shortest of all, and as a name; Anthropic takes the same letters.
ID_CHARS = 40
NAME_CHARS = 64
_ODD = lazy(r"[^a-zA-Z0-9_-]")
# Where instructions stand beside the messages.
_BESIDE = ("anthropic", "gemini")


class Writer(Protocol):
    """The part of a wire's module that writes."""

    def message(self, raw: JsonObject) -> Message: ...
    def written(self, turn: Turn) -> list[JsonObject]: ...


class Converted(NamedTuple):
    """A conversation said in another wire."""

    messages: list[Message]
    findings: list[Finding]
    system: Any = None
    """The system prompt, where the wire has it beside the messages."""


def converted(messages: Sequence[Message], wire: Wire, writer: Writer, system: Any) -> Converted:
    """Return `messages` in `wire`, as `writer` spells it."""
    findings: list[Finding] = []
    said = turns(messages, wire, findings.append)
    prompt: Any = None
    if wire in _BESIDE:
        said, prompt = _beside(said, wire, system, findings.append)
    elif wire == "responses":
        prompt = _prompt(system) or None
    elif _prompt(system):
        said = [Turn("system", [Block("text", _prompt(system))], [], {}), *said]
    raws = [raw for turn in _named(said, findings.append) for raw in writer.written(turn)]
    return Converted([writer.message(raw) for raw in raws], findings, prompt)


def _prompt(system: Any) -> str:
    """Return a system prompt as text: of text, blocks or a content."""
    held = system.get("parts", system) if isinstance(system, dict) else system
    return flat(held)


def _beside(said: list[Turn], wire: Wire, system: Any, report: Report) -> tuple[list[Turn], Any]:
    """Return the turns without the system messages they open with, and the system prompt that these become."""
    opening = next((at for at, turn in enumerate(said) if turn.role != "system"), len(said))
    texts = [_prompt(system), *(text(turn.pieces) for turn in said[:opening])]
    prompt: Any = "\n\n".join(filter(None, texts)) or None
    rest = said[opening:]
    if rest and rest[0].role == "assistant":
        report(
            Finding(
                "error",
                "first-role",
                "messages[0]",
                "The assistant speaks first.",
                "Begin with a user message.",
            )
        )
    if wire == "gemini":
        prompt = {"parts": [{"text": prompt}]} if prompt else None
        if any(turn.role == "system" for turn in rest):
            report(
                Finding(
                    "warning", "system-role", "contents", "Gemini has no system message.", "The user says it."
                )
            )
        rest = [turn._replace(role="user") if turn.role == "system" else turn for turn in rest]
    return rest, prompt


def text(pieces: Sequence[Block | JsonObject]) -> str:
    """Return the texts among `pieces`, joined by newlines."""
    return "\n".join(piece.text for piece in pieces if isinstance(piece, Block) and piece.kind == "text")


def _named(said: list[Turn], report: Report) -> list[Turn]:
    """Return the turns with ids and names that every provider takes, each id once."""
    used: set[str] = set()
    return [_renamed(turn, used, report) for turn in said]


def _renamed(turn: Turn, used: set[str], report: Report) -> Turn:
    ids: dict[str, tuple[str, str]] = {}
    pieces: list[Block | JsonObject] = []
    for piece in turn.pieces:
        made = piece
        if isinstance(piece, Block) and piece.kind == "call":
            name = _ODD.sub("_", piece.tool)[:NAME_CHARS] or "tool"
            ids[piece.call_id] = _unused(piece.call_id, used), name
            made = piece._replace(call_id=ids[piece.call_id][0], tool=name)
            if made != piece:
                report(
                    Finding(
                        "info",
                        "renamed-call",
                        piece.call_id,
                        f"It is {made.call_id} of {name} now.",
                        "Nothing to do.",
                    )
                )
        pieces.append(made)
    answers = [
        answer._replace(
            block=answer.block._replace(
                call_id=ids[answer.block.call_id][0], tool=ids[answer.block.call_id][1]
            )
        )
        for answer in turn.answers
    ]
    return turn._replace(pieces=pieces, answers=answers)


def _unused(call_id: str, used: set[str]) -> str:
    plain = _ODD.sub("_", call_id)[:ID_CHARS] or "call"
    found, number = plain, 1
    while found in used:
        number += 1
        found = f"{plain[: ID_CHARS - len(str(number)) - 1]}_{number}"
    used.add(found)
    return found
