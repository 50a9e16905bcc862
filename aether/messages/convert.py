"""Conversations read from provider formats, and converted between them, losslessly.

Reading keeps the given dict as `raw` and never raises about odd content. The key `meta` of a message is aether's own in
every format (what is protected, labels, which message is a summary); `bare` removes it before a message is sent.

Conversion keeps role, text, calls, results and their order; findings name each content that the other format cannot
hold, such as reasoning. A result without its call becomes text of the user, since no provider accepts it otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages.content import replaced, rewritten_media, value_at, with_only_text
from aether.messages.faults import unused_name
from aether.messages.model import (
    IMAGE,
    Block,
    Message,
    ProviderFormat,
    Role,
    as_arguments,
    as_object,
    as_text,
    content_text,
    is_failure_text,
)
from aether.messages.providers import PROVIDERS, Provider, provider
from aether.messages.turns import Answer, Turn, with_call_ids
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

META = "meta"
# Fields that say what a message is; they cost what every message costs.
_ADDRESS = frozenset({"role", "type"})
# The shortest id that a provider accepts is OpenAI's; Anthropic accepts the same letters.
_ID_CHARS = 40
_ODD = lazy(r"[^a-zA-Z0-9_-]")
# A text under these keys alone is a sign of no format, and most messages are that.
_BARE = frozenset({"role", "content", META})


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
    for index, raw in enumerate(raws):
        if not isinstance(raw, dict):
            raise InvalidInput(
                f"{shown(raw)} is not a message.",
                fix="Give each message as an object.",
                where=f"messages[{index}]",
            )
    return with_call_ids(
        [module.message(raw) for raw in raws], after=after, optional=module.TRAITS.ids_optional
    )


def message(raw: JsonObject, format: ProviderFormat) -> Message:
    """Return one message as read.

    Raises:
        InvalidInput: it is not an object, or the format is unknown.
    """
    return read([raw], format)[0]


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
    signed: set[ProviderFormat] = {after} - {"plain"}
    for raw in map(as_object, raws):
        if raw.keys() <= _BARE and isinstance(raw.get("content"), str) and raw.get("role") != "function":
            continue
        signed.update(name for name, module in PROVIDERS.items() if module.signs(raw))
    deciding = [name for name, module in PROVIDERS.items() if name in signed and module.TRAITS.signs_decide]
    if deciding:
        return deciding[-1]
    return signed.pop() if len(signed) == 1 else "plain"


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


def sent(message: Message) -> JsonObject:
    """Return a message with its role and the fields that are counted, and nothing else: what a model gets of it.

    >>> raw = {"role": "user", "content": "Hi", "metadata": {"snapshot": "…"}}
    >>> sent(Message("user", (), raw, "openai"))
    {'role': 'user', 'content': 'Hi'}
    """
    fields = provider(message.format).TRAITS.sent
    raw = bare(message.raw)
    return {key: raw[key] for key in raw if key in _ADDRESS or key in fields} if fields else raw


def new_message(role: Role, text: str, format: ProviderFormat) -> Message:
    """Return a new message that is only `text`.

    Raises:
        InvalidInput: the format has no such message: a tool message needs a call, and Gemini has no system message.
    """
    module = provider(format)
    if role == "tool" or (role == "system" and module.TRAITS.system_messages == "never"):
        what = "a tool message needs a call." if role == "tool" else f"{format} has no system message."
        raise InvalidInput(what, fix="Make it a message of user or assistant.", where="role")
    return module.message(module.new_raw(role, text))


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
    text_message = new_message("assistant" if message.role == "assistant" else "user", text, message.format)
    return (
        text_message._replace(raw={**text_message.raw, META: message.raw[META]})
        if META in message.raw
        else text_message
    )


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
    state = _State(format, module, [], [], {})
    for index, message in enumerate(messages):
        _add(message, f"messages[{index}]", state)
    turns = [turn for turn in state.turns if turn.pieces]
    prompt: Any = _prompt_text(system) or None
    if module.TRAITS.system_messages != "anywhere":
        turns, prompt = _with_prompt_beside(turns, system, state)
    elif not module.TRAITS.system and prompt:
        turns, prompt = [Turn("system", [Block("text", prompt)], [], {}), *turns], None
    used: set[str] = set()
    renamed = [_with_valid_names(turn, used, state) for turn in turns]
    converted = [module.message(raw) for turn in renamed for raw in module.write(turn)]
    return Converted(with_call_ids(converted, optional=module.TRAITS.ids_optional), state.findings, prompt)


class _State(NamedTuple):
    """The turns so far."""

    format: ProviderFormat
    module: Provider
    findings: list[Finding]
    turns: list[Turn]
    callers: dict[str, Turn]
    """The turn of each call that waits for its answer, by the id of the call."""

    def warn(self, code: str, where: str, message: str, fix: str = "Describe it in text.") -> None:
        """Note content that the format cannot hold."""
        self.findings.append(Finding("warning", code, where, message, fix))

    def note(self, code: str, where: str, message: str) -> None:
        """Note a change that loses nothing of the conversation."""
        self.findings.append(Finding("info", code, where, message, "Nothing has to be done."))


def _add(message: Message, where: str, state: _State) -> None:
    meta = as_object(message.raw.get(META))
    turn: Turn | None = None
    for index, block in enumerate(message.blocks):
        if block.kind == "result":
            _add_result(message, index, where, state)
            turn = None
            continue
        piece = _piece(message, index, where, state)
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


def _piece(message: Message, index: int, where: str, state: _State) -> Block | JsonObject | None:
    block = message.blocks[index]
    if block.kind in ("reasoning", "other"):
        if block.kind == "reasoning":
            state.note("reasoning-dropped", where, "Reasoning is for its own provider only.")
        else:
            what = f"{state.format} has no equivalent of {block.text[:80]}."
            state.warn("block-dropped", where, what, "Write it as text.")
        return None
    if block.kind != "media":
        return block if block.kind == "call" or block.text.strip() else None
    if index and message.blocks[index - 1].kind in {"result", "media"} and _is_in_result(message, index):
        return None
    if block.text:
        return block._replace(kind="text")
    media = _written_media(message, block, state.module)
    if media is None or (message.role == "assistant" and not state.module.TRAITS.media_of_assistant):
        state.warn("media-dropped", where, f"{state.format} has no such media there.")
        return None
    return media


def _written_media(message: Message, block: Block, module: Provider) -> JsonObject | None:
    return rewritten_media(value_at(message.raw, block.at), module.write_media, module.media_fault)


def _is_in_result(message: Message, index: int) -> bool:
    """Return whether media came with a result: their place is deeper than content of the message itself."""
    before = [block for block in message.blocks[:index] if block.kind != "media"]
    deeper = len(message.blocks[index].at) > 2 or message.role == "tool"
    return bool(before) and before[-1].kind == "result" and deeper


def _add_result(message: Message, index: int, where: str, state: _State) -> None:
    """Add a result to the turn that called for it, or make it a text of the user."""
    block, meta, module = message.blocks[index], as_object(message.raw.get(META)), state.module
    caller = state.callers.pop(block.call_id, None)
    if caller is None:
        state.warn("orphan-result", where, "The result answers no call.", "It became a user message.")
        if block.text.strip():
            state.turns.append(Turn("user", [block._replace(kind="text")], [], dict(meta)))
        return
    if block.is_error and not module.TRAITS.failure_flag and not is_failure_text(block.text):
        state.note("flag-dropped", where, f"{state.format} has no flag for a tool that failed.")
    answer = Answer(block, [])
    caller.answers.append(answer)
    caller.meta.update(meta)
    for follower, media in enumerate(message.blocks[index + 1 :], start=index + 1):
        if media.kind != "media" or not _is_in_result(message, follower):
            return
        written = _written_media(message, media, module) if module.TRAITS.media_in_results else None
        if written:
            answer.shown.append(written)
        else:
            state.warn("media-dropped", where, f"Results of {state.format} are text.")


def _prompt_text(system: Any) -> str:
    return content_text(system.get("parts", system) if isinstance(system, dict) else system)


def _with_prompt_beside(turns: list[Turn], system: Any, state: _State) -> tuple[list[Turn], Any]:
    """Return the turns without the system messages at their start, and these as the system prompt."""
    opening = next((index for index, turn in enumerate(turns) if turn.role != "system"), len(turns))
    texts = [_prompt_text(system)]
    for turn in turns[:opening]:
        pieces = (piece for piece in turn.pieces if isinstance(piece, Block))
        texts.append("\n".join(piece.text for piece in pieces if piece.kind == "text"))
    prompt = "\n\n".join(filter(None, texts))
    turns = turns[opening:]
    if turns and turns[0].role == "assistant":
        what = "The first message is the assistant's."
        fix = "Start with a user message."
        state.findings.append(Finding("error", "first-role", "messages[0]", what, fix))
    if state.module.TRAITS.system_messages == "never" and any(turn.role == "system" for turn in turns):
        what = f"{state.format} has no system message."
        state.warn("system-role", state.module.TRAITS.list, what, "It became a user message.")
        turns = [turn._replace(role="user") if turn.role == "system" else turn for turn in turns]
    return turns, state.module.system_prompt(prompt) if prompt else None


def _with_valid_names(turn: Turn, used: set[str], state: _State) -> Turn:
    """Return the turn with call ids and tool names that every provider accepts; each id is used once."""
    names: dict[str, tuple[str, str]] = {}
    pieces: list[Block | JsonObject] = []
    for piece in turn.pieces:
        if not isinstance(piece, Block) or piece.kind != "call":
            pieces.append(piece)
            continue
        key = unused_name(_ODD.sub("_", piece.call_id)[:_ID_CHARS] or "call", used, most=_ID_CHARS)
        name = state.module.valid_tool_name(_ODD.sub("_", piece.tool) or "tool")
        used.add(key)
        names[piece.call_id] = key, name
        renamed = piece._replace(call_id=key, tool=name)
        if renamed != piece:
            state.note("renamed-call", piece.call_id, f"It became {key} of {name}.")
        pieces.append(renamed)
    answers = []
    for answer in turn.answers:
        key, name = names[answer.block.call_id]
        answers.append(answer._replace(block=answer.block._replace(call_id=key, tool=name)))
    return turn._replace(pieces=pieces, answers=answers)


def source_places(messages: Sequence[Message], converted: Sequence[Message]) -> list[int | None]:
    """Return for each message of a converted conversation the position of the first of `messages` that it holds a part of.

    None for a message without a part of them, such as one that a repair added.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for index, message in enumerate(messages):
        for block in message.blocks:
            places.setdefault((block.kind, block.call_id or block.text), []).append(index)
    sources: list[int | None] = []
    last = 0
    for message in converted:
        keys = ((block.kind, block.call_id or block.text) for block in message.blocks)
        candidates = [index for key in keys for index in places.get(key, ())]
        # Of equal messages, the one that comes next.
        later = [index for index in candidates if index >= last]
        source = min(later or candidates, default=None)
        sources.append(source)
        last = last if source is None else source
    return sources
