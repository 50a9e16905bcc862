"""Transcripts: files of messages and logs of agents, read as conversations and written back.

Request bodies (`messages`, `input`, `contents`), lists, JSON Lines of messages and one conversation of a file of
several are written back as they came: byte for byte if no message changed, otherwise indented as the source, with
unchanged lines as they were. Claude Code transcripts, Codex rollouts and the logs of other agents are never written;
their messages become a request body.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from aether import regular
from aether.errors import InvalidInput, NotFound, shown
from aether.messages.convert import convert, detect_format, read
from aether.messages.model import Message, ProviderFormat, as_object, as_text
from aether.messages.providers import provider
from aether.messages.read import SOURCES, detect_file_format
from aether.messages.records import BadLine, read_json_values
from aether.messages.sources import chat
from aether.messages.unpack import unpacked
from aether.types import Finding, JsonObject

_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
# Logs open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
# Formats whose messages are in the file as a provider has them.
_OF_PROVIDERS = frozenset({"chat", "gemini", "responses", "cline", "items"})
_KNOWN = "Give a request body, a list or lines of messages, or the log of an agent."
_INDENTED = re.compile(rb"\s*[\[{]\r?\n(\t| +)")


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
        with regular.named(path) as file, unpacked(file, name) as text:
            data = text.read()
    else:
        name = "input"
        with unpacked(source, name) as text:
            data = text.read()
    bad: list[BadLine] = []
    values = list(read_json_values(io.BytesIO(data), on_bad=bad.append))
    if b"\0" in data[:_BINARY_BYTES] and not any(isinstance(value, (dict, list)) for _, value in values):
        raise InvalidInput("it is binary data, not text.", fix=_KNOWN, where=name)
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
    conversation, strays = _find(values, data, name=name, nth=nth)
    if not conversation.messages:
        raise InvalidInput("it has no message.", fix=_KNOWN, where=name)
    unread = tuple(
        Finding(
            "warning", "unread-line", f"line {number}", f"Left out: it is {reason}.", "Complete or remove it."
        )
        for number, reason in sorted([*bad, *strays])
    )
    return conversation._replace(name=name, unread=unread)


def _conversation(
    raws: Sequence[Any],
    format: ProviderFormat | None = None,
    *,
    system: Any = None,
    frame: JsonObject | None = None,
    origin: Origin | None = None,
) -> Conversation:
    """Return the conversation of raw messages and the rest of its request."""
    detected = format or detect_format(raws)
    messages, frame = read(raws, detected), frame or {}
    origin = (origin or Origin())._replace(format=detected, raws=tuple(message.raw for message in messages))
    return Conversation(messages, detected, system, frame.get("tools"), frame, origin=origin)


def _find(
    values: list[tuple[int, Any]], data: bytes, *, name: str, nth: int
) -> tuple[Conversation, list[BadLine]]:
    """Return the conversation among the JSON values of a file, and the lines between that are no messages."""
    try:
        detected: str | None = detect_file_format([value for _, value in values[:_HEAD_VALUES]], where=name)
    except InvalidInput as reason:
        detected, unknown = None, reason
    if nth == 0 and (detected is None or detected in _OF_PROVIDERS):
        alone = _of_value(values[0][1], data, name) if len(values) == 1 else None
        single = (alone, []) if alone else _of_lines(values, data)
        if single:
            return single
    if detected is None:
        raise InvalidInput(unknown.what, fix=_KNOWN, where=name) from unknown
    source = SOURCES[detected]
    if source.conversations:
        listed = [
            _conversation(raw.raws, raw.format, system=raw.system) for raw in source.conversations(values)
        ]
        if not listed:
            raise InvalidInput("it has items, and no messages.", fix=_KNOWN, where=name)
    else:
        listed = _of_wrappers(values, data, name=name)
    if not 0 <= nth < len(listed):
        fix = f"Choose one of 0 to {len(listed) - 1}."
        raise NotFound(f"there is no conversation {nth}.", fix=fix, where=name)
    return listed[nth]._replace(others=len(listed) - 1), []


def _of_value(value: Any, source: bytes, name: str) -> Conversation | None:
    """Return the conversation of a list, a request body, or a file that is built like one."""
    if isinstance(value, list) and _are_messages(value, f"{name}: messages"):
        return _conversation(value, origin=Origin("list", source=source))
    if not isinstance(value, dict):
        return None
    for key in ("contents", "input", *chat.WRAPPERS):
        listed = value.get(key)
        if key == "input" and isinstance(listed, str) and "role" not in value:
            listed = [{"role": "user", "content": listed}]
        if isinstance(listed, list) and _are_messages(listed, f"{name}: {key}"):
            system = next((value[name] for name in _SYSTEM if value.get(name)), None)
            detected = _format_of_body(value, key, listed)
            origin = Origin("body", source=source, key=key)
            return _conversation(listed, detected, system=system, frame={**value, key: None}, origin=origin)
    return None


def _are_messages(listed: list[Any], where: str) -> bool:
    """Return whether these are messages, even if no provider accepts some of them.

    Raises:
        InvalidInput: some are, and another value among them is not an object.
    """
    if not any(map(_is_raw, listed)):
        return False
    for index, value in enumerate(listed):
        if not isinstance(value, dict):
            what = f"it is {shown(value)}, and no message."
            raise InvalidInput(what, fix="Remove it.", where=f"{where}[{index}]")
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


def _of_lines(values: list[tuple[int, Any]], source: bytes) -> tuple[Conversation, list[BadLine]] | None:
    """Return the conversation of one message per line, and the other lines between them."""
    strays = [(number, value) for number, value in values if not value or not isinstance(value, (dict, list))]
    lines = [entry for entry in values if entry not in strays]
    if not any(_is_raw(value) for _, value in lines) or not all(
        isinstance(value, dict) and ("role" in value or "content" in value or _is_raw(value))
        for _, value in lines
    ):
        return None
    origin = Origin("lines", source=source, lines=tuple(number for number, _ in lines))
    bad = [BadLine(number, f"{shown(value)}, and no message") for number, value in strays]
    return _conversation([value for _, value in lines], origin=origin), bad


def _of_wrappers(values: list[tuple[int, Any]], data: bytes, *, name: str) -> list[Conversation]:
    """Return the conversations in the values of a file, each of which may have several."""
    inactive = chat.withdrawn_lines(value for _, value in values)
    session = [
        as_object(value.get("message")) or value
        for index, (_, value) in enumerate(values)
        if index not in inactive and chat.is_line(value)
    ]
    if session:
        return [_conversation([raw for raw in session if chat.is_message(raw)], "plain")]
    lines = data.splitlines(keepends=True) if len(values) > 1 else []
    listed: list[Conversation] = []
    for number, value in values:
        if alone := _of_value(value, lines[number - 1] if lines else data, name):
            listed.append(alone)
        else:
            messages = ([raw for raw in wrapped.messages if raw] for wrapped in chat.conversations(value))
            listed += (_conversation(raws, "plain") for raws in messages)
    return listed


def convert_conversation(
    conversation: Conversation, format: ProviderFormat
) -> tuple[Conversation, list[Finding]]:
    """Return the conversation in another format, and findings that name each content it cannot hold.

    Definitions of tools and the rest of the body are made for the old provider and are left behind.
    """
    if format == conversation.format:
        return conversation, []
    converted = convert(conversation.messages, format, system=conversation.system)
    findings = converted.findings
    if conversation.tools:
        what = f"Definitions of tools for {conversation.format} are left behind."
        findings = [*findings, Finding("warning", "tools-dropped", "tools", what, "Define them.")]
    new = conversation._replace(messages=converted.messages, format=format, system=converted.system)
    return new._replace(tools=None, frame={}), findings


def conversation_bytes(conversation: Conversation) -> bytes:
    """Return the conversation as its source file would have it.

    Unchanged it is the very bytes. Changed or converted it is printed with the indentation of the source; a conversation from an
    agent's log becomes a request body.
    """
    origin, raws = conversation.origin, [message.raw for message in conversation.messages]
    if origin.kind == "derived" or origin.format != conversation.format:
        beside = _beside(conversation._replace(frame={}))
        return _printed({**beside, provider(conversation.format).TRAITS.list: raws}, b'": \n')
    beside = _beside(conversation)
    if not beside and len(raws) == len(origin.raws) and all(map(lambda a, b: a is b, raws, origin.raws)):
        return origin.source
    if origin.kind == "lines":
        source = list(io.BytesIO(origin.source))
        style = origin.source[origin.source.find(b'":') :][:3] + b"\n"
        numbers = {id(raw): number for raw, number in zip(origin.raws, origin.lines, strict=True)}
        return b"".join(_line(raw, source, numbers.get(id(raw), 0)) or _printed(raw, style) for raw in raws)
    if origin.kind == "list":
        return _printed(raws, origin.source)
    body = {key: raws if key == origin.key else value for key, value in conversation.frame.items()}
    return _printed({**body, **beside}, origin.source)


def _beside(conversation: Conversation) -> JsonObject:
    """Return the system prompt and tools, under their keys, if they are not as they were read."""
    frame = conversation.frame
    key = next(
        (key for key in _SYSTEM if key in frame), provider(conversation.format).TRAITS.system or "system"
    )
    fields = ((key, conversation.system), ("tools", conversation.tools))
    return {key: value for key, value in fields if value is not None and frame.get(key) is not value}


def _line(raw: JsonObject, source: list[bytes], number: int) -> bytes:
    """Return the line that holds only `raw`, empty without one."""
    try:
        line = source[number - 1] if number else b""
        return line.rstrip(b"\r\n") + b"\n" if line and json.loads(line) == raw else b""
    except ValueError:
        return b""


def _printed(value: Any, source: bytes) -> bytes:
    """Return `value` as JSON, spaced and indented as `source` is and with its last line end."""
    opening = _INDENTED.match(source)
    key = source.find(b'":')
    separators = None if opening or source[key : key + 3] == b'": ' else (",", ":")
    indent = opening[1].decode() if opening else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    # Half a surrogate pair is no Unicode, and is escaped.
    return (text + ("\n" if source.endswith(b"\n") else "")).encode(errors="backslashreplace")
