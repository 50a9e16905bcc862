"""Message formats: each module reads and writes one provider's spelling, losslessly.

Reading keeps the very dict that was given as `raw` and never raises about odd content. A key `meta` of a message
is aether's own in every wire (what is protected, labels, which message is a summary) and is never sent.

Conversion: a conversation of one wire said in another, with findings for what could not be said.

Role, text, calls, results and their order stay; reasoning stays with its provider. The answers of one response
come together, as every provider takes them.

Detection: which wire a list of messages is spelt in, told from what only that wire has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from aether.errors import InvalidInput, shown
from aether.messages.content import block_type, replaced, value_at, with_only_text
from aether.messages.model import (
    PROVIDER_FORMATS,
    Block,
    Message,
    ProviderFormat,
    Role,
    as_arguments,
    as_object,
    as_text,
    content_text,
)
from aether.messages.providers import anthropic, gemini, openai, plain, responses
from aether.messages.turns import Report, Turn, turns_for, with_call_ids
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

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


def converted(messages: Sequence[Message], wire: ProviderFormat, writer: Writer, system: Any) -> Converted:
    """Return `messages` in `wire`, as `writer` spells it."""
    findings: list[Finding] = []
    said = turns_for(messages, wire, findings.append)
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
    return content_text(held)


def _beside(said: list[Turn], wire: ProviderFormat, system: Any, report: Report) -> tuple[list[Turn], Any]:
    """Return the turns without the system messages they open with, and the system prompt that these become."""
    opening = next((at for at, turn in enumerate(said) if turn.role != "system"), len(said))
    texts = [_prompt(system), *(joined_text(turn.pieces) for turn in said[:opening])]
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


def joined_text(pieces: Sequence[Block | JsonObject]) -> str:
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


_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"}
)
_OPENAI = frozenset({"image_url", "input_audio", "file", "refusal"})
_RESPONSES = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ITEMS = frozenset({"reasoning", "item_reference", "compaction"})


def detect_format(raws: Sequence[Any], *, after: ProviderFormat = "plain") -> ProviderFormat:
    """Return the wire of `raws`: `plain` where nothing tells, or where OpenAI and Anthropic are mixed.

    `after` is the wire of the messages before them, where only the newest are looked at.

    >>> detect_wire([{"role": "user", "content": "Hi"}])
    'plain'
    >>> detect_wire([{"role": "tool", "tool_call_id": "c1", "content": "ok"}])
    'openai'
    >>> detect_wire([{"role": "user", "content": "Hi"}], after="gemini")
    'gemini'
    """
    found: set[ProviderFormat] = {after} - {"plain"}
    for raw in raws:
        found.update(_signs(as_object(raw)))
    for wire in ("gemini", "responses"):
        if wire in found:
            return wire
    return found.pop() if len(found) == 1 else "plain"


def _signs(raw: JsonObject) -> Iterator[ProviderFormat]:
    if isinstance(raw.get("parts"), list):
        yield "gemini"
    kind = block_type(raw)
    if (kind in _ITEMS or "call_id" in raw or kind.endswith("_call")) and "role" not in raw:
        yield "responses"
    called = any(
        isinstance(as_object(one).get(key), dict) for one in _listed(raw, "tool_calls") for key in _CALLED
    )
    if _is_mixed(raw):
        yield "plain"
    answers = raw.get("role") == "tool" and "tool_call_id" in raw
    legacy = raw.get("role") == "function" or isinstance(raw.get("function_call"), dict)
    if called or answers or legacy or isinstance(raw.get("refusal"), str):
        yield "openai"
    kinds = {as_text(as_object(block).get("type")) for block in _listed(raw, "content")}
    if kinds & _ANTHROPIC or any(
        isinstance(as_object(block).get("source"), dict) for block in _listed(raw, "content")
    ):
        yield "anthropic"
    if kinds & _OPENAI:
        yield "openai"
    if kinds & _RESPONSES:
        yield "responses"


def _is_mixed(raw: JsonObject) -> bool:
    """Tell whether a message is in the dialect of an agent, which only the plain reader knows."""
    flat = any(isinstance(as_object(one).get("function"), str) for one in _listed(raw, "tool_calls"))
    kinds = {as_text(as_object(block).get("type")) for block in _listed(raw, "content")}
    return flat or bool({"tool_call_ids", "toolCalls", "toolCallId"} & raw.keys()) or "toolCall" in kinds


_CALLED = ("function", "custom")


def _listed(raw: JsonObject, key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []


META = "meta"


class _Spelling(Protocol):
    """What each wire's module has."""

    def message(self, raw: JsonObject) -> Message: ...
    def said(self, role: Role, text: str) -> JsonObject: ...
    def without_reasoning(self, raw: JsonObject) -> JsonObject: ...
    def written(self, turn: Turn) -> list[JsonObject]: ...


_SPELLINGS: dict[ProviderFormat, _Spelling] = {
    "anthropic": anthropic,
    "openai": openai,
    "responses": responses,
    "gemini": gemini,
    "plain": plain,
}


def read(
    raws: Sequence[JsonObject], wire: ProviderFormat | None = None, *, after: Sequence[Message] = ()
) -> list[Message]:
    """Return `raws` as messages; without a wire the one they look like.

    `after` are the messages before them, where only the newest are read: calls without ids are numbered on.

    Raises:
        InvalidInput: one of `raws` is no object, or there is no such wire.
    """
    spelling = _spelling(wire or detect_format(raws))
    for position, raw in enumerate(raws):
        if not isinstance(raw, dict):
            raise InvalidInput(
                f"{shown(raw)} is no message.",
                fix="Give each message as an object.",
                where=f"messages[{position}]",
            )
    return with_call_ids([spelling.message(raw) for raw in raws], after=after)


def message(raw: JsonObject, wire: ProviderFormat) -> Message:
    """Return one message as read.

    Raises:
        InvalidInput: it is no object, or there is no such wire.
    """
    return read([raw], wire)[0]


def _spelling(wire: str) -> _Spelling:
    for known, spelling in _SPELLINGS.items():
        if known == wire:
            return spelling
    raise InvalidInput(
        f"{shown(wire)} is no wire.", fix=f"Use one of {', '.join(PROVIDER_FORMATS)}.", where="wire"
    )


def with_text(message: Message, block: int, text: str) -> Message:
    """Return the message with another text in one of its blocks; of a call `text` is its arguments as JSON.

    Raises:
        InvalidInput: that block cannot be rewritten, or the arguments are no JSON object where one is needed.
    """
    held = message.blocks[block]
    if not held.at or held.kind == "media":
        raise InvalidInput(
            f"a block of kind {held.kind!r} cannot be rewritten.",
            fix="Rewrite blocks with a place (`at`) only.",
            where=f"blocks[{block}]",
        )
    try:
        new = _rewritten(value_at(message.raw, held.at), text, held)
    except (TypeError, ValueError, RecursionError) as reason:
        raise InvalidInput(
            f"{shown(text)} is no JSON object.",
            fix="Give the arguments of a call as one.",
            where=f"blocks[{block}]",
        ) from reason
    return _again(message, replaced(message.raw, held.at, new))


def _rewritten(old: Any, text: str, block: Block) -> Any:
    if block.kind == "call":
        if isinstance(old, str):
            free = block.at[-1] != "arguments"  # what stands there is text of its own, not JSON
            return as_text(as_arguments(text).get("input")) or text if free else text
        return _object(text)
    if isinstance(old, list):
        return with_only_text(old, text)
    # Where an object answered, as with Gemini, text has one key to stand under.
    return text if isinstance(old, str) else {"output": text}


def _object(text: str) -> JsonObject:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise TypeError(text)
    return read


def _again(message: Message, raw: JsonObject) -> Message:
    """Return `raw`, a changed `message`, as read: ids that were made for the list it stands in stay."""
    if raw is message.raw:
        return message
    fresh = _spelling(message.wire).message(raw)
    old = [block for block in message.blocks if block.kind != "reasoning"]
    new = [block for block in fresh.blocks if block.kind != "reasoning"]
    ids = {id(after): before.call_id for before, after in zip(old, new, strict=True)}
    blocks = (block._replace(call_id=ids.get(id(block), block.call_id)) for block in fresh.blocks)
    return fresh._replace(blocks=tuple(blocks))


def new_message(role: Role, text: str, wire: ProviderFormat) -> Message:
    """Return a new message that says `text`.

    Raises:
        InvalidInput: the wire has no such message: none says anything as a tool, Gemini nothing as system.
    """
    spelling = _spelling(wire)
    return spelling.message(spelling.said(role, text))


def without_reasoning(message: Message) -> Message:
    """Return the message without what was thought before it; itself where nothing else would be left.

    Reasoning items of the Responses API are messages of their own: whoever drops reasoning drops them whole.
    """
    return _again(message, _spelling(message.wire).without_reasoning(message.raw))


def bare(raw: JsonObject) -> JsonObject:
    """Return the message as it may be sent, without aether's own key.

    >>> bare({"role": "user", "content": "Hi", "meta": {"protected": True}})
    {'role': 'user', 'content': 'Hi'}
    """
    return {key: value for key, value in raw.items() if key != META} if META in raw else raw


def convert(messages: Sequence[Message], wire: ProviderFormat, *, system: Any = None) -> Converted:
    """Return the conversation said in another wire; `system` is its system prompt, where that stands beside it.

    Findings say what could not be said there: reasoning and its signatures, kinds of media, unknown blocks. A
    message's `meta` stays. A conversation of that wire already is returned as it is.

    Raises:
        InvalidInput: there is no such wire.
    """
    spelling = _spelling(wire)
    if all(message.wire == wire for message in messages):
        return Converted(list(messages), [], system)
    found = converted(messages, wire, spelling, system)
    return found._replace(messages=with_call_ids(found.messages))
