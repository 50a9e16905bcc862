"""Provider formats: conversations read, written and converted between them, losslessly.

Reading keeps the given dict as `raw` and never raises about odd content. The key `meta` of a message is aether's own in
every format (what is protected, labels, which message is a summary); `bare` removes it before a message is sent.

Conversion keeps role, text, calls, results and their order; findings name each content that the other format cannot
hold, such as reasoning. Rules of the providers are checked in `aether.messages.validate`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from aether.errors import InvalidInput, shown
from aether.messages.content import block_type, replaced, value_at, with_only_text
from aether.messages.findings import RepairedRaws, changed, error, unused_name, warning
from aether.messages.model import (
    IMAGE,
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

META = "meta"
# The shortest id that a provider accepts is OpenAI's; Anthropic accepts the same letters.
ID_CHARS = 40
_ODD = lazy(r"[^a-zA-Z0-9_-]")
# Formats with the system prompt beside the messages and nowhere else at the start.
_SYSTEM_BESIDE = ("anthropic", "gemini")
# Types of blocks that only one format has.
_ANTHROPIC = frozenset("tool_use tool_result thinking redacted_thinking document server_tool_use".split())
_OPENAI = frozenset({"image_url", "input_audio", "file", "refusal"})
_RESPONSES = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ITEMS = frozenset({"reasoning", "item_reference", "compaction"})


class Provider(Protocol):
    """The functions that the module of each provider has."""

    def message(self, raw: JsonObject) -> Message: ...
    def write(self, turn: Turn) -> list[JsonObject]: ...
    def without_reasoning(self, raw: JsonObject) -> JsonObject: ...
    def findings(self, raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
        """Yield the faults of `raws`, but not of what is in the first `known` of them, which had none."""
        ...

    def repaired(self, raws: Sequence[JsonObject]) -> RepairedRaws: ...


_PROVIDERS: dict[str, Provider] = {
    "anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini, "plain": plain,
}  # fmt: skip


class Converted(NamedTuple):
    """A conversation in another format."""

    messages: list[Message]
    findings: list[Finding]
    system: Any = None
    """The system prompt, if the format has it beside the messages."""


def read(
    raws: Sequence[JsonObject], format: ProviderFormat | None = None, *, after: Sequence[Message] = ()
) -> list[Message]:
    """Return `raws` as messages of `format`, by default the one that they look like.

    `after` are the messages before them, if only the newest are read: the numbering of calls without ids goes on.

    Raises:
        InvalidInput: one of `raws` is not an object, or the format is unknown.
    """
    module = provider(format or detect_format(raws))
    for position, raw in enumerate(raws):
        if not isinstance(raw, dict):
            raise InvalidInput(
                f"{shown(raw)} is not a message.",
                fix="Give each message as an object.",
                where=f"messages[{position}]",
            )
    return with_call_ids([module.message(raw) for raw in raws], after=after)


def message(raw: JsonObject, format: ProviderFormat) -> Message:
    """Return one message as read.

    Raises:
        InvalidInput: it is not an object, or the format is unknown.
    """
    return read([raw], format)[0]


def provider(format: str) -> Provider:
    """Return the module of a provider's format.

    Raises:
        InvalidInput: the format is unknown.
    """
    if format not in _PROVIDERS:
        fix = f"Use one of {', '.join(PROVIDER_FORMATS)}."
        raise InvalidInput(f"{shown(format)} is not a provider format.", fix=fix, where="format")
    return _PROVIDERS[format]


def detect_format(raws: Sequence[Any], *, after: ProviderFormat = "plain") -> ProviderFormat:
    """Return the format of `raws`: `plain` without any sign, or with signs of both OpenAI and Anthropic.

    `after` is the format of the messages before them, if `raws` are only the newest.

    >>> detect_format([{"role": "user", "content": "Hi"}])
    'plain'
    >>> detect_format([{"role": "tool", "tool_call_id": "c1", "content": "ok"}])
    'openai'
    >>> detect_format([{"role": "user", "content": "Hi"}], after="gemini")
    'gemini'
    """
    found: set[ProviderFormat] = {after} - {"plain"}
    for raw in raws:
        found.update(_signs(as_object(raw)))
    for certain in ("gemini", "responses"):
        if certain in found:
            return certain
    return found.pop() if len(found) == 1 else "plain"


# A text under these keys alone is a sign of no format, and most messages are that.
_BARE = frozenset({"role", "content", "meta"})


def _signs(raw: JsonObject) -> Iterator[ProviderFormat]:
    """Yield the formats that a message shows a sign of."""
    if raw.keys() <= _BARE and isinstance(raw.get("content"), str) and raw.get("role") != "function":
        return
    if isinstance(raw.get("parts"), list):
        yield "gemini"
    kind = block_type(raw)
    if (kind in _ITEMS or "call_id" in raw or kind.endswith("_call")) and "role" not in raw:
        yield "responses"
    listed = (raw.get(key) for key in ("tool_calls", "content"))
    calls, content = ([*map(as_object, value)] if isinstance(value, list) else [] for value in listed)
    kinds = {block_type(block) for block in content}
    # The dialects of some agents, which only the plain reader knows.
    flat = any(isinstance(call.get("function"), str) for call in calls)
    if flat or {"tool_call_ids", "toolCalls", "toolCallId"} & raw.keys() or "toolCall" in kinds:
        yield "plain"
    called = any(isinstance(call.get(key), dict) for call in calls for key in ("function", "custom"))
    answers = raw.get("role") == "tool" and "tool_call_id" in raw
    legacy = raw.get("role") == "function" or isinstance(raw.get("function_call"), dict)
    if called or answers or legacy or isinstance(raw.get("refusal"), str) or kinds & _OPENAI:
        yield "openai"
    if kinds & _ANTHROPIC or any(isinstance(block.get("source"), dict) for block in content):
        yield "anthropic"
    if kinds & _RESPONSES:
        yield "responses"


def bare(raw: JsonObject) -> JsonObject:
    """Return the message as it may be sent, without aether's own key.

    Raises:
        InvalidInput: it is not an object.

    >>> bare({"role": "user", "content": "Hi", "meta": {"protected": True}})
    {'role': 'user', 'content': 'Hi'}
    """
    # Called for each message of a request: the guard of other public functions would cost more than this.
    try:
        return {key: value for key, value in raw.items() if key != META} if META in raw else raw
    except (TypeError, AttributeError) as reason:
        raise InvalidInput(f"{shown(raw)} is not a message.", fix="Give an object.", where="raw") from reason


def new_message(role: Role, text: str, format: ProviderFormat) -> Message:
    """Return a new message that is only `text`.

    Raises:
        InvalidInput: the format has no such message: a tool message needs a call, and Gemini has no system message.
    """
    module = provider(format)
    if role == "tool" or (role == "system" and format == "gemini"):
        what = "a tool message needs a call." if role == "tool" else "Gemini has no system message."
        raise InvalidInput(what, fix="Make it a message of user or assistant.", where="role")
    if format == "gemini":
        name = "model" if role == "assistant" else role
        return module.message({"role": name, "parts": [{"text": text}]})
    return module.message({"role": role, "content": text})


def worded(block: Block) -> str:
    """Return what a text, a call or a result says, as a person would write it; of other blocks nothing."""
    heads = {"result": "Result of {}:\n", "call": "Call of {}: ", "text": "", "media": IMAGE}
    return heads[block.kind].format(block.tool or "a tool") + block.text if block.kind in heads else ""


def without_tools(message: Message) -> Message | None:
    """Return `message` with calls and results as text; None if it is nothing but reasoning, or empty.

    Without a call or a result it is the message itself.
    """
    kinds = {block.kind for block in message.blocks}
    if not kinds & {"call", "result"}:
        return None if kinds == {"reasoning"} else message
    text = "\n".join(filter(str.strip, map(worded, message.blocks)))
    made = new_message("assistant" if message.role == "assistant" else "user", text, message.format)
    return made._replace(raw={**made.raw, META: message.raw[META]}) if META in message.raw else made


def with_text(message: Message, block: int, text: str) -> Message:
    """Return the message with another text in one of its blocks; of a call `text` is its arguments as JSON.

    Raises:
        InvalidInput: that block cannot be rewritten, or the arguments are not a JSON object and have to be.
    """
    old, where = message.blocks[block], f"blocks[{block}]"
    if not old.at or old.kind == "media":
        what = f"a block of kind {old.kind!r} cannot be rewritten."
        raise InvalidInput(what, fix="Rewrite blocks with a place (`at`) only.", where=where)
    try:
        new = _rewritten(value_at(message.raw, old.at), text, old)
    except (TypeError, ValueError, RecursionError) as reason:
        what = f"{shown(text)} is not a JSON object."
        raise InvalidInput(what, fix="Give the arguments of a call as one.", where=where) from reason
    return reread(message, replaced(message.raw, old.at, new))


def _rewritten(old: Any, text: str, block: Block) -> Any:
    if block.kind == "call":
        if isinstance(old, str):
            free = block.at[-1] != "arguments"  # such a text is not JSON
            return as_text(as_arguments(text).get("input")) or text if free else text
        arguments = json.loads(text)
        if not isinstance(arguments, dict):
            raise TypeError(text)
        return arguments
    if isinstance(old, list):
        return with_only_text(old, text)
    # In an answer that is an object, as in Gemini, text needs a key.
    return text if isinstance(old, str) else {"output": text}


def reread(message: Message, raw: JsonObject) -> Message:
    """Return `raw`, a changed `message`, as read, with the ids that were made for the conversation."""
    if raw is message.raw:
        return message
    fresh = provider(message.format).message(raw)
    old = [block for block in message.blocks if block.kind != "reasoning"]
    new = [block for block in fresh.blocks if block.kind != "reasoning"]
    # A rule of redaction that fits everything may leave fewer blocks.
    ids = {id(after): before.call_id for before, after in zip(old, new, strict=False)}
    blocks = (block._replace(call_id=ids.get(id(block), block.call_id)) for block in fresh.blocks)
    return fresh._replace(blocks=tuple(blocks))


def without_reasoning(message: Message) -> Message:
    """Return the message without the reasoning before it; the message itself if nothing else would be left.

    Reasoning items of the Responses API are messages of their own, to be dropped as a whole.
    """
    return reread(message, provider(message.format).without_reasoning(message.raw))


def convert(messages: Sequence[Message], format: ProviderFormat, *, system: Any = None) -> Converted:
    """Return the conversation in another format; `system` is its system prompt, if that is beside the messages.

    Findings name reasoning, kinds of media and unknown blocks that the format cannot hold. The `meta` of each message
    is kept. The answers of one response come together. A conversation of that format already is returned as it is.

    Raises:
        InvalidInput: the format is unknown.
    """
    module = provider(format)
    if all(message.format == format for message in messages):
        return Converted(list(messages), [], system)
    findings: list[Finding] = []
    turns = turns_for(messages, format, findings.append)
    prompt: Any = _prompt_text(system) or None
    if format in _SYSTEM_BESIDE:
        turns, prompt = _with_prompt_beside(turns, format, system, findings.append)
    elif format != "responses" and prompt:
        turns, prompt = [Turn("system", [Block("text", prompt)], [], {}), *turns], None
    used: set[str] = set()
    valid = gemini.valid_name if format == "gemini" else openai.valid_name
    named = [_with_valid_names(turn, used, findings.append, valid) for turn in turns]
    converted = [module.message(raw) for turn in named for raw in module.write(turn)]
    return Converted(with_call_ids(converted), findings, prompt)


def source_places(messages: Sequence[Message], converted: Sequence[Message]) -> list[int | None]:
    """Return for each message of a converted conversation the position of the first of `messages` that it holds a part of.

    None for a message without a part of them, such as one that a repair added.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for at, message in enumerate(messages):
        for block in message.blocks:
            places.setdefault((block.kind, block.call_id or block.text), []).append(at)
    found: list[int | None] = []
    last = 0
    for message in converted:
        held = [
            at for block in message.blocks for at in places.get((block.kind, block.call_id or block.text), ())
        ]
        # Of equal messages, the one that comes next.
        later = [at for at in held if at >= last]
        place = min(later or held, default=None)
        found.append(place)
        last = last if place is None else place
    return found


def _prompt_text(system: Any) -> str:
    return content_text(system.get("parts", system) if isinstance(system, dict) else system)


def _with_prompt_beside(
    turns: list[Turn], format: ProviderFormat, system: Any, report: Report
) -> tuple[list[Turn], Any]:
    """Return the turns without the system messages at their start, and these as the system prompt."""
    opening = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
    texts = [_prompt_text(system)]
    for turn in turns[:opening]:
        pieces = (piece for piece in turn.pieces if isinstance(piece, Block))
        texts.append("\n".join(piece.text for piece in pieces if piece.kind == "text"))
    prompt: Any = "\n\n".join(filter(None, texts)) or None
    rest = turns[opening:]
    if rest and rest[0].role == "assistant":
        what = "The first message is the assistant's."
        report(error("first-role", "messages[0]", what, "Start with a user message."))
    if format == "gemini":
        prompt = {"parts": [{"text": prompt}]} if prompt else None
        if any(turn.role == "system" for turn in rest):
            what = "Gemini has no system message."
            report(warning("system-role", "contents", what, "It became a user message."))
        rest = [turn._replace(role="user") if turn.role == "system" else turn for turn in rest]
    return rest, prompt


def _with_valid_names(turn: Turn, used: set[str], report: Report, valid: Callable[[str], str]) -> Turn:
    """Return the turn with call ids and tool names that every provider accepts; each id is used once."""
    names: dict[str, tuple[str, str]] = {}
    pieces: list[Block | JsonObject] = []
    for piece in turn.pieces:
        if not isinstance(piece, Block) or piece.kind != "call":
            pieces.append(piece)
            continue
        key = unused_name(_ODD.sub("_", piece.call_id)[:ID_CHARS] or "call", used, most=ID_CHARS)
        name = valid(_ODD.sub("_", piece.tool) or "tool")
        used.add(key)
        names[piece.call_id] = key, name
        made = piece._replace(call_id=key, tool=name)
        if made != piece:
            report(changed("renamed-call", piece.call_id, f"It became {key} of {name}."))
        pieces.append(made)
    answers = []
    for answer in turn.answers:
        key, name = names[answer.block.call_id]
        answers.append(answer._replace(block=answer.block._replace(call_id=key, tool=name)))
    return turn._replace(pieces=pieces, answers=answers)
