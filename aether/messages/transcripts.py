"""Transcripts: files of messages and logs of agents, read as conversations and written back.

Request bodies (`messages`, `input`, `contents`), lists, JSON Lines of messages and one conversation of a file of
several are written back as they came: byte for byte if no message changed, otherwise in the layout of the source, with
unchanged lines as they were. Claude Code transcripts, Codex rollouts and the logs of other agents are never written;
their messages become a request body.

Claude Code writes one response over several records and the answers of parallel calls one by one; here a response is one
message, with all its answers in one message after it, as they were sent to the model. Codex writes the items themselves.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from aether import regular
from aether.errors import InvalidInput, NotFound, shown
from aether.messages.content import as_json
from aether.messages.convert import convert, detect_format, read
from aether.messages.model import Message, ProviderFormat, as_object, as_text
from aether.messages.read import detect_file_format
from aether.messages.records import BadLine, Record, read_json_values
from aether.messages.sources import antigravity, chat, codex, openhands
from aether.messages.sources.claude_code import Queue, entries, withdrawn_lines
from aether.types import Finding, JsonObject

Values = Iterable[tuple[int, Any]]
MESSAGE_KEYS: dict[ProviderFormat, str] = {
    "anthropic": "messages", "openai": "messages", "plain": "messages", "responses": "input", "gemini": "contents",
}  # fmt: skip
_SYSTEM_KEYS: dict[ProviderFormat, str] = {"responses": "instructions", "gemini": "systemInstruction"}
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
# Logs open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
_KNOWN = "Give a request body, a list or lines of messages, or the log of an agent."
_INDENTED = re.compile(rb"\s*[\[{]\r?\n(\t| +)")
_SPACED = re.compile(rb'"(?:[^"\\]|\\.)*":( ?)')


class Origin(NamedTuple):
    """The source of a conversation, so that it can be written back."""

    kind: Literal["body", "list", "lines", "derived"] = "derived"
    format: ProviderFormat = "plain"
    source: bytes = b""
    """The bytes of this conversation, without others in the same file."""
    key: str = ""
    """The key of the messages in a body."""
    raws: tuple[JsonObject, ...] = ()
    lines: tuple[int, ...] = ()
    """Of JSON Lines, the number of the line of each message."""


class Conversation(NamedTuple):
    """The messages of one conversation and the rest of its request."""

    messages: list[Message]
    format: ProviderFormat
    system: Any = None
    """The system prompt if it is outside the messages: text, blocks or content."""
    tools: Any = None
    frame: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The rest of the request body, in its order."""
    name: str = ""
    others: int = 0
    """The number of further conversations in the file."""
    origin: Origin = Origin()
    unread: tuple[Finding, ...] = ()
    """Lines that do not parse or are not messages: their content is not among the messages."""


class _Found(NamedTuple):
    """A conversation before its messages are read."""

    raws: Sequence[Any]
    format: ProviderFormat | None = None
    frame: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    system: Any = None
    others: int = 0
    origin: Origin = Origin()
    strays: tuple[BadLine, ...] = ()
    """Lines between its messages that are not messages."""


# Text has no NUL; binary data has one early.
_BINARY_BYTES = 4_096


def load_conversation(source: str | os.PathLike[str] | IO[bytes], *, nth: int = 0) -> Conversation:
    """Return the conversation in a file or byte stream of any known format, of an agent's own log all of it.

    Of a file of several conversations the `nth` is read and `others` is the number of the rest.

    Raises:
        NotFound: there is no such file, or no such conversation in it.
        InvalidInput: the file has no conversation, or a value among its messages is not a message.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        name = path.name
        with regular.named(path) as file:
            data = file.read()
    else:
        data, name = source.read(), "input"
    bad: list[BadLine] = []
    values = list(read_json_values(io.BytesIO(data), on_bad=bad.append))
    if b"\0" in data[:_BINARY_BYTES] and not any(isinstance(value, (dict, list)) for _, value in values):
        raise InvalidInput("it is binary data, and no text.", fix=_KNOWN, where=name)
    if bad and not values and data.lstrip()[:1] in (b"{", b"["):
        raise InvalidInput(
            f"it is broken JSON, at line {bad[0].line}: {bad[0].reason}.",
            fix="Complete or correct the file.",
            where=name,
        )
    if not data.strip() or [value for _, value in values] in ([[]], [{"messages": []}]):
        raise InvalidInput(
            "it is empty: no message was said.", fix="Give a conversation with messages.", where=name
        )
    found = _find(values, data, name=name, nth=nth)
    known = found.format or detect_format(found.raws)
    messages = read(found.raws, known)
    if not messages:
        raise InvalidInput("it has no message.", fix=_KNOWN, where=name)
    return Conversation(
        messages,
        known,
        system=found.system,
        tools=found.frame.get("tools"),
        frame=found.frame,
        name=name,
        others=found.others,
        origin=found.origin._replace(format=known, raws=tuple(message.raw for message in messages)),
        unread=tuple(
            Finding(
                "warning",
                "unread-line",
                f"line {number}",
                f"Left out: it is {reason}.",
                "Complete or remove it.",
            )
            for number, reason in sorted([*bad, *found.strays])
        ),
    )


def _find(values: list[tuple[int, Any]], data: bytes, *, name: str, nth: int) -> _Found:
    """Return the conversation among the JSON values of a file."""
    alone = _of_value(values[0][1], data, name) if len(values) == 1 else None
    alone = alone or _of_lines(values, data)
    if alone and nth == 0:
        return alone
    try:
        format = detect_file_format([value for _, value in values[:_HEAD_VALUES]], where=name)  # noqa: A001
    except InvalidInput as reason:
        raise InvalidInput(reason.what, fix=_KNOWN, where=name) from reason
    match format:
        case "claude_code":
            return _Found(claude_code_messages(values), "anthropic")
        case "codex":
            return _Found(codex_items(values), "responses", system=codex_instructions(values))
        case "openhands":
            listed = [
                _Found(messages_from_records(openhands.records([value])), "openai")
                for value in values
                if openhands.events_of(value[1])
            ]
            return _nth(listed, nth, name=name)
        case "antigravity":
            return _Found(messages_from_records(antigravity.records(values)), "openai")
        case "items":
            raise InvalidInput("it has items, and no messages.", fix=_KNOWN, where=name)
        case _:
            return _of_wrappers(values, data, nth=nth, name=name)


def _of_value(value: Any, source: bytes, name: str) -> _Found | None:
    """Return the conversation of a list, a request body, or a file that is built like one."""
    if isinstance(value, list) and _are_messages(value, f"{name}: messages"):
        return _Found(value, origin=Origin("list", source=source))
    if not isinstance(value, dict):
        return None
    for key in ("contents", "input", *chat.WRAPPERS):
        listed = value.get(key)
        if key == "input" and isinstance(listed, str) and "role" not in value:
            listed = [{"role": "user", "content": listed}]
        if isinstance(listed, list) and _are_messages(listed, f"{name}: {key}"):
            system = next((value[name] for name in _SYSTEM if value.get(name)), None)
            known = _format_of_body(value, key, listed)
            origin = Origin("body", source=source, key=key)
            return _Found(listed, known, {**value, key: None}, system, origin=origin)
    return None


def _are_messages(listed: list[Any], where: str) -> bool:
    """Return whether these are messages, even if no provider accepts some of them.

    Raises:
        InvalidInput: some are, and another value among them is not an object.
    """
    if not any(map(_is_raw, listed)):
        return False
    for at, value in enumerate(listed):
        if not isinstance(value, dict):
            what = f"it is {shown(value)}, and no message."
            raise InvalidInput(what, fix="Remove it.", where=f"{where}[{at}]")
    return True


def _is_raw(value: Any) -> bool:
    return isinstance(value, dict) and (
        chat.is_message(value)
        or "parts" in value
        or "call_id" in value
        or detect_format([value]) == "responses"
    )


def _format_of_body(body: JsonObject, key: str, raws: list[JsonObject]) -> ProviderFormat | None:
    if key in {"contents", "input"}:
        return "gemini" if key == "contents" else "responses"
    seen = detect_format(raws)
    model = as_text(body.get("model"))
    if seen != "plain" or not model:
        return "anthropic" if seen == "plain" and "system" in body else seen
    tools = body.get("tools")
    schemas = any("input_schema" in as_object(tool) for tool in (tools if isinstance(tools, list) else []))
    return "anthropic" if schemas or "system" in body or "claude" in model else "openai"


def _of_lines(values: list[tuple[int, Any]], source: bytes) -> _Found | None:
    """Return the conversation of one message per line, even with other lines between them."""
    strays = [(number, value) for number, value in values if not value or not isinstance(value, (dict, list))]
    held = [entry for entry in values if entry not in strays]
    if not any(_is_raw(value) for _, value in held) or not all(
        isinstance(value, dict) and ("role" in value or "content" in value or _is_raw(value))
        for _, value in held
    ):
        return None
    origin = Origin("lines", source=source, lines=tuple(number for number, _ in held))
    bad = (BadLine(number, f"{shown(value)}, and no message") for number, value in strays)
    return _Found([value for _, value in held], origin=origin, strays=tuple(bad))


def _of_wrappers(values: list[tuple[int, Any]], data: bytes, *, nth: int, name: str) -> _Found:
    """Return one of the conversations in the values of a file, each of which may have several."""
    inactive = chat.withdrawn_lines(value for _, value in values)
    session = [
        as_object(value.get("message")) or value
        for at, (_, value) in enumerate(values)
        if at not in inactive and chat.is_line(value)
    ]
    if session:
        return _nth([_Found([raw for raw in session if chat.is_message(raw)], "plain")], nth, name=name)
    lines = data.splitlines(keepends=True) if len(values) > 1 else []
    listed: list[_Found] = []
    for number, value in values:
        if alone := _of_value(value, lines[number - 1] if lines else data, name):
            listed.append(alone)
        else:
            kept = ([raw for raw in one.messages if raw] for one in chat.conversations(value))
            listed += (_Found(raws, "plain") for raws in kept)
    return _nth(listed, nth, name=name)


def _nth(listed: list[_Found], nth: int, *, name: str) -> _Found:
    if not 0 <= nth < len(listed):
        fix = f"Choose one of 0 to {len(listed) - 1}."
        raise NotFound(f"there is no conversation {nth}.", fix=fix, where=name)
    return listed[nth]._replace(others=len(listed) - 1)


class _Turn(NamedTuple):
    """One message of a transcript, and the results of its calls."""

    role: str
    content: Any
    results: list[JsonObject]


def claude_code_messages(values: Values) -> list[JsonObject]:
    """Return the Anthropic messages of a transcript.

    Sub-agents, withdrawn branches, bookkeeping and the program's own messages are left out; the lines of a sub-agent's own
    file are read.
    """
    seen: set[str] = set()
    lines = []
    for _, line in entries(values):
        uuid = as_text(line.get("uuid"))
        if not uuid or uuid not in seen:
            seen.add(uuid)
            lines.append(line)
    inactive = withdrawn_lines(lines)
    lines = [line for at, line in enumerate(lines) if at not in inactive]
    main = [line for line in lines if not line.get("isSidechain")]
    return _messages(main if any(map(_is_spoken, main)) else lines)


def _is_spoken(line: JsonObject) -> bool:
    spoken = as_text(line.get("type")) in {"user", "assistant"} and isinstance(line.get("message"), dict)
    return spoken and not line.get("isMeta") and not line.get("isApiErrorMessage")


def _messages(lines: Iterable[JsonObject]) -> list[JsonObject]:
    turns: list[_Turn] = []
    responses: dict[str, _Turn] = {}
    callers: dict[str, _Turn] = {}
    queue = Queue()
    for line in lines:
        queued_text, _ = queue.taken(line)
        if queued_text:
            turns.append(_Turn("user", queued_text, []))
        if line.get("type") == "attachment":
            queued = as_object(line.get("attachment"))
            # A prompt that was typed while the assistant was busy is here, or only in the lines about the queue.
            prompt = queued.get("prompt") if queued.get("type") == "queued_command" else None
            if prompt and not queue.repeats(str(prompt)):
                turns.append(_Turn("user", queued["prompt"], []))
        elif not _is_spoken(line):
            continue
        elif line["type"] == "assistant":
            _add_assistant(line["message"], turns, responses, callers)
        else:
            _add_user(line["message"], turns, callers)
    raws = []
    for turn in turns:
        raws.append({"role": turn.role, "content": turn.content})
        if turn.results:
            raws.append({"role": "user", "content": turn.results})
    return raws


def _add_assistant(
    message: JsonObject, turns: list[_Turn], responses: dict[str, _Turn], callers: dict[str, _Turn]
) -> None:
    """Add a message of the assistant to its response, or as a new turn."""
    content, response = message.get("content"), as_text(message.get("id"))
    turn = responses.get(response)
    if turn is None or not isinstance(turn.content, list) or not isinstance(content, list):
        turn = _Turn("assistant", list(content) if isinstance(content, list) else content, [])
        turns.append(turn)
        if response:
            responses[response] = turn
    else:
        turn.content.extend(block for block in content if block not in turn.content)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            callers[block["id"]] = turn


def _add_user(message: JsonObject, turns: list[_Turn], callers: dict[str, _Turn]) -> None:
    """Add the results in a user message to the turns that called for them, and the rest as a new turn."""
    content = message.get("content")
    if not isinstance(content, list):
        turns.append(_Turn("user", content, []))
        return
    rest: list[Any] = []
    for block in content:
        caller = callers.get(as_text(as_object(block).get("tool_use_id")))
        (caller.results if caller else rest).append(block)
    if rest or not content:
        turns.append(_Turn("user", rest, []))


def codex_items(values: Values) -> list[JsonObject]:
    """Return the items of a rollout, without the turns that were rolled back."""
    lines = [line for _, line in values]
    inactive = codex.withdrawn_lines(lines)
    payloads = [
        as_object(line.get("payload"))
        for at, line in enumerate(lines)
        if at not in inactive and as_object(line).get("type") == "response_item"
    ]
    return [payload for payload in payloads if payload]


def codex_instructions(values: Sequence[tuple[int, Any]]) -> Any:
    """Return the instructions that a rollout opens with, None if it has none."""
    for _, line in values:
        payload = as_object(as_object(line).get("payload"))
        if as_object(line).get("type") == "session_meta":
            return payload.get("instructions") or as_object(payload.get("base_instructions")).get("text")
    return None


def messages_from_records(records: Iterable[Record]) -> list[JsonObject]:
    """Return records as OpenAI messages, for logs without messages."""
    raws: list[JsonObject] = []
    for record in records:
        if record.kind == "call":
            called = {"name": record.tool, "arguments": as_json(dict(record.arguments))}
            listed = [{"id": record.call_id, "type": "function", "function": called}]
            raws.append({"role": "assistant", "content": None, "tool_calls": listed})
        elif record.kind in {"result", "answer", "refusal"}:
            raws.append({"role": "tool", "tool_call_id": record.call_id, "content": record.text})
        else:
            role = record.kind if record.kind in {"assistant", "system"} else "user"
            raws.append({"role": role, "content": record.text})
    return raws


def convert_conversation(
    conversation: Conversation, format: ProviderFormat
) -> tuple[Conversation, list[Finding]]:
    """Return the conversation in another format, and findings that name each content it cannot hold.

    Definitions of tools and the rest of the body are made for the old provider and are left behind.
    """
    if format == conversation.format:
        return conversation, []
    found = convert(conversation.messages, format, system=conversation.system)
    findings = found.findings
    if conversation.tools:
        what = f"Definitions of tools for {conversation.format} are left behind."
        findings = [*findings, Finding("warning", "tools-dropped", "tools", what, "Define them.")]
    new = conversation._replace(messages=found.messages, format=format, system=found.system)
    return new._replace(tools=None, frame={}), findings


def conversation_bytes(conversation: Conversation) -> bytes:
    """Return the conversation as its source file would have it.

    Unchanged it is the very bytes. Changed or converted it is printed in the layout of the source; a conversation from an
    agent's log becomes a request body.
    """
    origin, raws = conversation.origin, [message.raw for message in conversation.messages]
    if origin.kind == "derived" or origin.format != conversation.format:
        beside = _beside(conversation._replace(frame={}))
        return dumps({**beside, MESSAGE_KEYS[conversation.format]: raws}, Layout(end="\n"))
    beside = _beside(conversation)
    if not beside and len(raws) == len(origin.raws) and all(map(lambda a, b: a is b, raws, origin.raws)):
        return origin.source
    if origin.kind == "lines":
        source = list(io.BytesIO(origin.source))
        layout = layout_of(source[0])._replace(indent=None, end="\n")
        numbers = {id(raw): number for raw, number in zip(origin.raws, origin.lines, strict=True)}
        return b"".join(_line(raw, source, numbers.get(id(raw), 0)) or dumps(raw, layout) for raw in raws)
    layout = layout_of(origin.source)
    if origin.kind == "list":
        return dumps(raws, layout)
    body = {key: raws if key == origin.key else value for key, value in conversation.frame.items()}
    return dumps({**body, **beside}, layout)


def _beside(conversation: Conversation) -> JsonObject:
    """Return the system prompt and tools, under their keys, if they are not as they were read."""
    frame = conversation.frame
    key = next((key for key in _SYSTEM if key in frame), _SYSTEM_KEYS.get(conversation.format, "system"))
    held = ((key, conversation.system), ("tools", conversation.tools))
    return {key: value for key, value in held if value is not None and frame.get(key) is not value}


def _line(raw: JsonObject, source: list[bytes], number: int) -> bytes:
    """Return the line that holds only `raw`, empty without one."""
    try:
        line = source[number - 1] if number else b""
        return line.rstrip(b"\r\n") + b"\n" if line and json.loads(line) == raw else b""
    except ValueError:
        return b""


class Layout(NamedTuple):
    """The options of `json.dumps` that print like the source."""

    indent: int | str | None = None
    spaced: bool = True
    """A space after each colon and comma."""
    ascii: bool = False
    end: str = ""


def layout_of(source: bytes) -> Layout:
    r"""Return the layout of a JSON text, as its start shows it.

    >>> layout_of(b'{\n  "a": 1\n}\n')
    Layout(indent=2, spaced=True, ascii=False, end='\n')
    >>> layout_of(b'[{"a":1,"b":2}]').spaced
    False
    """
    opening = _INDENTED.match(source)
    blank = opening[1] if opening else b""
    indent = "\t" if blank == b"\t" else len(blank)
    key = _SPACED.search(source)
    return Layout(
        indent or None,
        spaced=not key or bool(key[1]),
        ascii=source.isascii() and b"\\u" in source,
        end="\n" if source.endswith(b"\n") else "",
    )


def dumps(value: Any, layout: Layout) -> bytes:
    r"""Return `value` printed in a layout; a lone surrogate, which is not Unicode, is escaped.

    >>> dumps({"a": ["é", 1]}, Layout())
    b'{"a": ["\xc3\xa9", 1]}'
    """
    comma = ", " if layout.spaced and layout.indent is None else ","
    separators = (comma, ": " if layout.spaced else ":")
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.indent, separators=separators)
    try:
        return (text + layout.end).encode()
    except UnicodeEncodeError:
        return dumps(value, layout._replace(ascii=True))
