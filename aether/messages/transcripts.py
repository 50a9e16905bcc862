"""Transcripts: the messages of an agent's own log, as they were sent to the model.

Claude Code writes one response over several records and the answers of parallel calls one by one; here a response is
one message, with all its answers in one message after it. Codex writes the items themselves.

Conversations: files of messages, whatever wraps them, read and written back.

Request bodies (`messages`, `input`, `contents`), lists, JSON Lines of messages and one conversation of a file of
several are written back as they came: byte for byte where no message changed, otherwise in the layout of the source
with the new messages in place of the old, and unchanged lines as they were. Claude Code transcripts, Codex rollouts
and the logs of other agents are never written; their messages become a request body.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from aether.errors import InvalidInput, NotFound, shown
from aether.messages.content import as_json
from aether.messages.convert import convert, detect_format, read
from aether.messages.model import Layout, Message, ProviderFormat, as_object, as_text, dumps, layout_of
from aether.messages.read import detect_file_format
from aether.messages.records import BadLine, Format, Record, read_json_values
from aether.messages.sources import chat, openhands
from aether.messages.sources.claude_code import entries
from aether.types import Finding, JsonObject

Values = Iterable[tuple[int, Any]]


class _Spoken(NamedTuple):
    """One message, and what the tools it called answered."""

    role: str
    content: Any
    answers: list[JsonObject]


def claude_code_messages(values: Values, *, whole: bool) -> list[JsonObject]:
    """Return the Anthropic messages of a transcript: all of them, or those since the last compaction.

    Sub-agents, bookkeeping and what the program said to itself are left out; a file that is a sub-agent's own
    is read for what it is.
    """
    lines = list(_once(line for _, line in entries(values)))
    main = [line for line in lines if not line.get("isSidechain")]
    chosen = main if any(map(_is_spoken, main)) else lines
    return _messages(chosen if whole else _current(chosen))


def _once(lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
    seen: set[str] = set()
    for line in lines:
        uuid = as_text(line.get("uuid"))
        if not uuid or uuid not in seen:
            seen.add(uuid)
            yield line


def _is_spoken(line: JsonObject) -> bool:
    spoken = line.get("type") in {"user", "assistant"} and isinstance(line.get("message"), dict)
    return spoken and not line.get("isMeta") and not line.get("isApiErrorMessage")


def _current(lines: list[JsonObject]) -> list[JsonObject]:
    """Return the lines since the last compaction, with those before it that it preserved."""
    starts = [at for at, line in enumerate(lines) if line.get("subtype") == "compact_boundary"]
    starts = starts or [at for at, line in enumerate(lines) if line.get("isCompactSummary")]
    if not starts:
        return lines
    before, after = lines[: starts[-1]], lines[starts[-1] :]
    anchor, preserved = _preserved(as_object(after[0].get("compactMetadata")), before)
    at = next((at + 1 for at, line in enumerate(after) if anchor and line.get("uuid") == anchor), 0)
    return [*after[:at], *preserved, *after[at:]]


def _preserved(metadata: JsonObject, before: list[JsonObject]) -> tuple[str, list[JsonObject]]:
    listed, segment = (
        as_object(metadata.get("preservedMessages")),
        as_object(metadata.get("preservedSegment")),
    )
    uuids = listed.get("allUuids") or listed.get("uuids")
    if isinstance(uuids, list):
        return as_text(listed.get("anchorUuid")), [line for line in before if line.get("uuid") in uuids]
    ends = [at for at, line in enumerate(before) if as_text(line.get("uuid")) in set(_ends(segment))]
    return as_text(segment.get("anchorUuid")), before[ends[0] : ends[-1] + 1] if ends else []


def _ends(segment: JsonObject) -> Iterator[str]:
    for key in ("headUuid", "tailUuid"):
        if as_text(segment.get(key)):
            yield segment[key]


def _messages(lines: Iterable[JsonObject]) -> list[JsonObject]:
    spoken: list[_Spoken] = []
    responses: dict[str, _Spoken] = {}
    callers: dict[str, _Spoken] = {}
    for line in lines:
        if line.get("type") == "attachment":
            _hear_queued(as_object(line.get("attachment")), spoken)
        elif not _is_spoken(line):
            continue
        elif line["type"] == "assistant":
            _hear_assistant(line["message"], spoken, responses, callers)
        else:
            _hear_user(line["message"], spoken, callers)
    return [raw for one in spoken for raw in _raws(one)]


def _hear_queued(attachment: JsonObject, spoken: list[_Spoken]) -> None:
    # What a person typed while the assistant was busy exists only here.
    if attachment.get("type") == "queued_command" and attachment.get("prompt"):
        spoken.append(_Spoken("user", attachment["prompt"], []))


def _hear_assistant(
    message: JsonObject, spoken: list[_Spoken], responses: dict[str, _Spoken], callers: dict[str, _Spoken]
) -> None:
    content, response = message.get("content"), as_text(message.get("id"))
    held = responses.get(response)
    if held is None or not isinstance(held.content, list) or not isinstance(content, list):
        held = _Spoken("assistant", list(content) if isinstance(content, list) else content, [])
        spoken.append(held)
        if response:
            responses[response] = held
    else:
        held.content.extend(block for block in content if block not in held.content)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            callers[block["id"]] = held


def _hear_user(message: JsonObject, spoken: list[_Spoken], callers: dict[str, _Spoken]) -> None:
    content = message.get("content")
    if not isinstance(content, list):
        spoken.append(_Spoken("user", content, []))
        return
    rest = []
    for block in content:
        caller = callers.get(as_text(as_object(block).get("tool_use_id")))
        if caller:
            caller.answers.append(block)
        else:
            rest.append(block)
    if rest or not content:
        spoken.append(_Spoken("user", rest, []))


def _raws(spoken: _Spoken) -> Iterator[JsonObject]:
    yield {"role": spoken.role, "content": spoken.content}
    if spoken.answers:
        yield {"role": "user", "content": spoken.answers}


def codex_items(values: Values, *, whole: bool) -> list[JsonObject]:
    """Return the Responses items of a rollout: all of them, or those since the last compaction."""
    items: list[JsonObject] = []
    for _, line in values:
        payload = as_object(as_object(line).get("payload"))
        if as_object(line).get("type") == "response_item" and payload:
            items.append(payload)
        elif as_object(line).get("type") == "compacted" and not whole:
            items = _replacement(payload)
    return items


def _replacement(payload: JsonObject) -> list[JsonObject]:
    kept = payload.get("replacement_history")
    if isinstance(kept, list):
        return [item for item in kept if isinstance(item, dict)]
    summary = [{"type": "input_text", "text": as_text(payload.get("message"))}]
    return [{"type": "message", "role": "user", "content": summary}]


def codex_instructions(values: Sequence[tuple[int, Any]]) -> Any:
    """Return the instructions that a rollout opens with, None where it has none."""
    for _, line in values:
        payload = as_object(as_object(line).get("payload"))
        if as_object(line).get("type") == "session_meta":
            return payload.get("instructions") or as_object(payload.get("base_instructions")).get("text")
    return None


def messages_from_records(records: Iterable[Record]) -> list[JsonObject]:
    """Return OpenAI messages that say what records say, for logs that hold no messages."""
    raws: list[JsonObject] = []
    for record in records:
        if record.kind == "call":
            called = {"name": record.tool, "arguments": as_json(dict(record.arguments))}
            listed = [{"id": record.call_id, "type": "function", "function": called}]
            raws.append({"role": "assistant", "content": None, "tool_calls": listed})
        elif record.kind == "result":
            raws.append({"role": "tool", "tool_call_id": record.call_id, "content": record.text})
        else:
            role = record.kind if record.kind in {"assistant", "system"} else "user"
            raws.append({"role": role, "content": record.text})
    return raws


MESSAGE_KEYS: dict[ProviderFormat, str] = {
    "anthropic": "messages",
    "openai": "messages",
    "plain": "messages",
    "responses": "input",
    "gemini": "contents",
}
_SYSTEM_KEYS: dict[ProviderFormat, str] = {"responses": "instructions", "gemini": "systemInstruction"}
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_HEAD_VALUES = 32
_KNOWN = "Give a request body, a list or lines of messages, or the log of an agent."


class Origin(NamedTuple):
    """What a conversation was read from, so that it can be written back."""

    kind: Literal["body", "list", "lines", "derived"] = "derived"
    wire: ProviderFormat = "plain"
    source: bytes = b""
    """The bytes of this conversation, without others in the same file."""
    key: str = ""
    """Where in a body the messages stand."""
    raws: tuple[JsonObject, ...] = ()
    lines: tuple[int, ...] = ()
    """Of JSON Lines, the number of the line of each message."""


class Conversation(NamedTuple):
    """The messages of one conversation and what is sent beside them."""

    messages: list[Message]
    wire: ProviderFormat
    system: Any = None
    """The system prompt where it stands outside the messages: text, blocks or content."""
    tools: Any = None
    frame: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The rest of the request body, in its order."""
    name: str = ""
    others: int = 0
    """How many more conversations the file holds."""
    origin: Origin = Origin()
    unread: tuple[Finding, ...] = ()
    """Lines that do not parse, or hold no message: what stands in them is not among the messages."""


class _Found(NamedTuple):
    """A conversation before its messages are read."""

    raws: Sequence[Any]
    wire: ProviderFormat | None = None
    frame: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    system: Any = None
    others: int = 0
    origin: Origin = Origin()
    strays: tuple[BadLine, ...] = ()
    """Lines among its messages that hold none."""


def load_conversation(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    wire: ProviderFormat | None = None,
    whole: bool = True,
    nth: int = 0,
) -> Conversation:
    """Return the conversation in a file or byte stream, whichever of the known formats it has.

    Of an agent's own log `whole` is everything that was said, otherwise what was in its context at the end. Of a
    file of several conversations the `nth` is read and `others` says how many more there are.

    Raises:
        NotFound: there is no such file, or no such conversation in it.
        InvalidInput: the file holds no conversation, or something among its messages that is none.
    """
    data, name = _bytes(source)
    bad: list[BadLine] = []
    found = list(read_json_values(io.BytesIO(data), on_bad=bad.append))
    chosen = _found(found, data, name=name, whole=whole, nth=nth)
    spelt = wire or chosen.wire or detect_format(chosen.raws)
    messages = read(chosen.raws, spelt)
    if not messages:
        raise InvalidInput("it holds no message.", fix=_KNOWN, where=name)
    return Conversation(
        messages,
        spelt,
        system=chosen.system,
        tools=chosen.frame.get("tools"),
        frame=chosen.frame,
        name=name,
        others=chosen.others,
        origin=chosen.origin._replace(wire=spelt, raws=tuple(message.raw for message in messages)),
        unread=tuple(map(_unread, sorted([*bad, *chosen.strays]))),
    )


def _unread(line: BadLine) -> Finding:
    what = f"It is left out, for it is {line.reason}."
    return Finding("warning", "unread-line", f"line {line.line}", what, "Complete it, or take it out.")


def _bytes(source: str | os.PathLike[str] | IO[bytes]) -> tuple[bytes, str]:
    if not isinstance(source, (str, os.PathLike)):
        return source.read(), "input"
    path = Path(source)
    try:
        return path.read_bytes(), path.name
    except OSError as reason:
        raise NotFound(
            f"cannot be read ({reason.strerror}).", fix="Name an existing, readable file.", where=str(path)
        ) from reason


def _found(found: list[tuple[int, Any]], data: bytes, *, name: str, whole: bool, nth: int) -> _Found:
    alone = _alone(found[0][1], data) if len(found) == 1 else None
    alone = alone or _lines(found, data)
    if alone and nth == 0:
        return alone
    match _format([value for _, value in found[:_HEAD_VALUES]], name):
        case "claude_code":
            return _Found(claude_code_messages(found, whole=whole), "anthropic")
        case "codex":
            system = codex_instructions(found)
            return _Found(codex_items(found, whole=whole), "responses", system=system)
        case "openhands":
            listed = [_events(value) for value in found if openhands.events_of(value[1])]
            return _nth(listed, nth, name=name)
        case "items":
            raise InvalidInput("it holds items, and no messages.", fix=_KNOWN, where=name)
        case _:
            return _one_of(found, data, nth=nth, name=name)


def _format(head: list[Any], name: str) -> Format:
    try:
        return detect_file_format(head, where=name)
    except InvalidInput as reason:
        raise InvalidInput(reason.what, fix=_KNOWN, where=name) from reason


def _alone(value: Any, source: bytes) -> _Found | None:
    return _list(value, source) or _body(value, source)


def _body(value: Any, source: bytes) -> _Found | None:
    """Return the conversation of a request body, or of a file that is built like one."""
    if not isinstance(value, dict):
        return None
    for key in ("contents", "input", *chat.WRAPPERS):
        listed = value.get(key)
        if key == "input" and isinstance(listed, str) and "role" not in value:
            listed = [{"role": "user", "content": listed}]
        if isinstance(listed, list) and _are_messages(listed, key):
            system = next((value[name] for name in _SYSTEM if value.get(name)), None)
            wire = _wire_of_body(value, key, listed)
            origin = Origin("body", source=source, key=key)
            return _Found(listed, wire, {**value, key: None}, system, origin=origin)
    return None


def _are_messages(listed: list[Any], where: str) -> bool:
    """Tell whether these are messages, be there such among them as no provider takes.

    Raises:
        InvalidInput: some are, and something among them is no object.
    """
    if not any(map(_is_raw, listed)):
        return False
    for at, value in enumerate(listed):
        if not isinstance(value, dict):
            raise InvalidInput(
                f"it is {shown(value)}, and no message.", fix="Take it out.", where=f"{where}[{at}]"
            )
    return True


def _is_raw(value: Any) -> bool:
    return isinstance(value, dict) and (
        chat.is_message(value)
        or "parts" in value
        or "call_id" in value
        or detect_format([value]) == "responses"
    )


def _wire_of_body(body: JsonObject, key: str, raws: list[JsonObject]) -> ProviderFormat | None:
    if key in {"contents", "input"}:
        return "gemini" if key == "contents" else "responses"
    seen = detect_format(raws)
    model = as_text(body.get("model"))
    if seen != "plain" or not model:
        return "anthropic" if seen == "plain" and "system" in body else seen
    tools = body.get("tools")
    schemas = any("input_schema" in as_object(tool) for tool in (tools if isinstance(tools, list) else []))
    return "anthropic" if schemas or "system" in body or "claude" in model else "openai"


def _list(value: Any, source: bytes) -> _Found | None:
    if isinstance(value, list) and _are_messages(value, "messages"):
        return _Found(value, origin=Origin("list", source=source))
    return None


def _lines(found: list[tuple[int, Any]], source: bytes) -> _Found | None:
    """Return the conversation that is one message per line, be there lines between that hold nothing of one."""
    held = [(number, value) for number, value in found if not _is_stray(value)]
    if not any(_is_raw(value) for _, value in held) or not all(_may_be_raw(value) for _, value in held):
        return None
    strays = (
        BadLine(number, f"{shown(value)}, and no message") for number, value in found if _is_stray(value)
    )
    origin = Origin("lines", source=source, lines=tuple(number for number, _ in held))
    return _Found([value for _, value in held], origin=origin, strays=tuple(strays))


def _is_stray(value: Any) -> bool:
    return not value or not isinstance(value, (dict, list))


def _may_be_raw(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or "content" in value or _is_raw(value))


def _events(value: tuple[int, Any]) -> _Found:
    return _Found(messages_from_records(openhands.records([value])), "openai")


def _one_of(found: list[tuple[int, Any]], data: bytes, *, nth: int, name: str) -> _Found:
    """Return one of the conversations that the values of a file hold, each perhaps several."""
    session = [as_object(value.get("message")) or value for _, value in found if chat.is_line(value)]
    if session:
        return _nth([_Found([raw for raw in session if chat.is_message(raw)], "plain")], nth, name=name)
    lines = data.splitlines(keepends=True) if len(found) > 1 else []
    listed: list[_Found] = []
    for number, value in found:
        alone = _alone(value, lines[number - 1] if lines else data)
        if alone:
            listed.append(alone)
        else:
            listed += (
                _Found([raw for raw in one.messages if raw], "plain") for one in chat.conversations(value)
            )
    return _nth(listed, nth, name=name)


def _nth(listed: list[_Found], nth: int, *, name: str) -> _Found:
    if not 0 <= nth < len(listed):
        raise NotFound(
            f"there is no conversation {nth}.", fix=f"Choose one of 0 to {len(listed) - 1}.", where=name
        )
    return listed[nth]._replace(others=len(listed) - 1)


def convert_conversation(
    conversation: Conversation, wire: ProviderFormat
) -> tuple[Conversation, list[Finding]]:
    """Return the conversation in another wire, and what could not be said there.

    Definitions of tools and the rest of the body are spelt for the old provider and are left behind.
    """
    if wire == conversation.wire:
        return conversation, []
    found = convert(conversation.messages, wire, system=conversation.system)
    left = ["tools-dropped"] if conversation.tools else []
    lost = [
        Finding("warning", code, "tools", "Tools are defined otherwise there.", "Define them.")
        for code in left
    ]
    new = conversation._replace(messages=found.messages, wire=wire, system=found.system, tools=None, frame={})
    return new, [*found.findings, *lost]


def conversation_bytes(conversation: Conversation) -> bytes:
    """Return the conversation as the file it came from would hold it.

    Unchanged it is the very bytes. Changed, or said for another provider, it is printed in the layout of the source;
    what came from an agent's log becomes a request body.
    """
    origin, raws = conversation.origin, [message.raw for message in conversation.messages]
    if origin.kind == "derived" or origin.wire != conversation.wire:
        return dumps(_new_body(conversation, raws), Layout(end="\n"))
    if _unchanged(conversation, raws):
        return origin.source
    if origin.kind == "lines":
        return _dumped_lines(origin, raws)
    layout = layout_of(origin.source)
    if origin.kind == "list":
        return dumps(raws, layout)
    body = {key: raws if key == origin.key else value for key, value in conversation.frame.items()}
    return dumps({**body, **_beside(conversation)}, layout)


def _unchanged(conversation: Conversation, raws: list[JsonObject]) -> bool:
    before = conversation.origin.raws
    same = len(raws) == len(before) and all(new is old for new, old in zip(raws, before, strict=True))
    return same and not _beside(conversation)


def _beside(conversation: Conversation) -> JsonObject:
    """Return what is sent beside the messages and is not as it was read."""
    frame = conversation.frame
    spelt = next((key for key in _SYSTEM if key in frame), _SYSTEM_KEYS.get(conversation.wire, "system"))
    held = ((spelt, conversation.system), ("tools", conversation.tools))
    return {key: value for key, value in held if value is not None and frame.get(key) is not value}


def _new_body(conversation: Conversation, raws: list[JsonObject]) -> JsonObject:
    return {**_beside(conversation._replace(frame={})), MESSAGE_KEYS[conversation.wire]: raws}


def _dumped_lines(origin: Origin, raws: list[JsonObject]) -> bytes:
    source = list(io.BytesIO(origin.source))
    layout = layout_of(source[0])._replace(indent=None, end="\n")
    numbers = {id(raw): number for raw, number in zip(origin.raws, origin.lines, strict=True)}
    return b"".join(_line(raw, source, numbers.get(id(raw), 0)) or dumps(raw, layout) for raw in raws)


def _line(raw: JsonObject, source: list[bytes], number: int) -> bytes:
    """Return the line that holds `raw` and nothing else, empty where there is none."""
    try:
        line = source[number - 1] if number else b""
        return line.rstrip(b"\r\n") + b"\n" if line and json.loads(line) == raw else b""
    except ValueError:
        return b""
