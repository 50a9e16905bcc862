"""Chat: lists of role-tagged messages in the wrappers and dialects of agents; plain text; lists of items.

OpenAI and Anthropic message lists, and the files of SWE-agent, mini-SWE-agent, OpenHands' SDK, Inspect, pi, Letta,
Gemini CLI and tau-bench, are all conversations of messages with a role. A file has one conversation, one per line, or
one message per line.

Plain text and Markdown give one record per paragraph, list or fenced block; a heading is kept with the text below it.
An item is a note that somebody already made, `{content, type, relevance_score, …}`; an invalid one is a bad line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.branches import Node, Role, taken_back, withdrawn
from aether.messages.model import as_arguments, as_object, as_text, content_text, is_failure_text
from aether.messages.records import BadLine, OnBad, Part, Record, asked, ignore_bad_line, parts, with_part
from aether.messages.replies import reply
from aether.messages.speakers import TYPED, is_person
from aether.text.regex import lazy
from aether.types import RELEVANCE_OF_TYPE, JsonObject

WRAPPERS = ("messages", "traj", "history", "trajectory", "conversation", "conversations")
SENDERS = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant",
    "model": "assistant", "gemini": "assistant", "tool": "result", "function": "result", "toolResult": "result",
}  # fmt: skip
# Tools that only pass a text to the person, and the key of that text.
_SPEAKING = {"send_message": "message", "finish": "message"}
_FENCED = lazy(r"```(?:bash|sh|\w+_bash_command)\n(.*?)```", re.DOTALL)
_FUNCTION = lazy(r"<function=(\w+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = lazy(r"<parameter=(\w+)>(.*?)</parameter>", re.DOTALL)
_ANSWER = lazy(r"\s*(?:<returncode>|<output>|observation:|execution result|diff --git )", re.IGNORECASE)
_SHOWN_TURN = lazy(r"^(user|assistant|tool|system): ", re.MULTILINE)
_BELOW = ("samples", "agents")
_ITEM_FIELDS = frozenset({"relevance_score", "caste", "injected"})
# About a printed page.
PARAGRAPH_CHARS = 4_000
_FENCE = lazy(r"\s*(```|~~~)")
_HEADING = lazy(r"#{1,6}\s")


class ChatConversation(NamedTuple):
    """Messages under one id; `boundaries` are positions before which the context was compacted."""

    session: str
    messages: list[JsonObject]
    boundaries: frozenset[int] = frozenset()


# Where a message has its name and its time.
_MARKS = frozenset({"id", "timestamp", "created_at"})


# Of Gemini CLI: who speaks on a line, and the line that takes back what came since another.
_GEMINI, _REWIND = ("user", "gemini"), "$rewindTo"
_ROLES = {"user": Role.PROMPT, "assistant": Role.RESPONSE, "result": Role.RESULT}


class _Before(NamedTuple):
    """State from the message before."""

    command: str = ""
    answered: bool = False
    """There is a message of the assistant already."""


def records(values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line) -> Iterator[Record]:
    """Yield the records of every conversation; what is no message is passed to `on_bad` and skipped."""
    values = list(values) if isinstance(values, Iterator) else values
    inactive = withdrawn_lines(value for _, value in values)
    session, before = "", _Before()
    for index, (number, value) in enumerate(values):
        if index in inactive or _is_bookkeeping(value):
            session = session or as_text(as_object(value).get("sessionId"))
            continue
        if is_line(value):
            first = as_object(value.get("message")) or value
            session = session or as_text(value.get("id")) or _session([first])
            time = as_text(value.get("timestamp"))
            head = Record("system", line=number, session=session, time=time)
            line_records, before = _line(head, value, before)
            yield from line_records
            continue
        for reason in _strays(value):
            on_bad(BadLine(number, reason))
        for conversation in conversations(value):
            yield from _conversation(number, conversation)


def withdrawn_lines(values: Iterable[Any]) -> frozenset[int]:
    """Return the positions of the lines that the person took back: by a line of Gemini CLI, or in a tree of pi."""
    lines = [(_mark(value), _node(value)) for value in values]
    return taken_back(mark for mark, _ in lines) | withdrawn(node for _, node in lines)


def _mark(value: Any) -> tuple[str, Any]:
    line = as_object(value)
    if _REWIND in line:
        return "to", line[_REWIND]
    return ("says", as_text(line.get("id"))) if line.get("type") in _GEMINI and is_message(line) else ("", "")


def _node(value: Any) -> Node:
    line = as_object(value)
    if "parentId" not in line or line.get("type") == "session":
        return Node(Role.OUTSIDE)
    role = role_of(as_object(line.get("message")) or line)
    return Node(_ROLES.get(role, Role.BESIDE), as_text(line.get("id")), line["parentId"])


def _is_bookkeeping(value: Any) -> bool:
    """Return whether `value` is a line of Gemini CLI about its session: it starts, is changed or is taken back."""
    line = as_object(value)
    return _REWIND in line or "$set" in line or ("projectHash" in line and not _key_of_messages(line))


def _strays(value: Any) -> Iterator[str]:
    """Yield why `value`, or an entry among its messages, is skipped; one with a role or a type is bookkeeping."""
    if not isinstance(value, (dict, list)):
        yield f"{shown(value)} is not a message"
        return
    key = "messages" if isinstance(value, list) else _key_of_messages(value)
    listed = value if isinstance(value, list) else value[key] if key else []
    for index, entry in enumerate(listed):
        if not isinstance(entry, dict) or {"role", "type"}.isdisjoint(entry):
            yield f"{key}[{index}]: {shown(entry)} is not a message"


def is_message(value: Any) -> bool:
    """Return whether `value` is one role-tagged message."""
    contents = {"content", "tool_calls", "parts"}
    return isinstance(value, dict) and role_of(value) != "" and not contents.isdisjoint(value)


def role_of(message: JsonObject) -> str:
    """Return the kind of a message's sender, empty if it is unknown."""
    sender = message.get("role", message.get("type"))
    return SENDERS.get(sender, "") if isinstance(sender, str) else ""


def is_line(value: Any) -> bool:
    """Return whether `value` is one message, or one entry of a session kept line by line."""
    if not isinstance(value, dict) or any(isinstance(value.get(key), list) for key in WRAPPERS):
        return False
    wrapped = value.get("type") == "message" and isinstance(value.get("message"), dict)
    gemini = value.get("type") in _GEMINI and is_message(value)
    return wrapped or gemini or "role" in value or as_text(value.get("type")) in {"session", "compaction"}


def conversations(value: Any) -> Iterator[ChatConversation]:
    """Yield the conversations inside a JSON value, in any known wrapper."""
    if isinstance(value, list):
        messages = [message for message in value if is_message(message)]
        if messages:
            yield ChatConversation(_session(messages), messages)
        return
    if not isinstance(value, dict):
        return
    for sample in chain.from_iterable(
        value[key] for key in _BELOW if isinstance(value.get(key), list)
    ):  # of Inspect, and the agents of a file of Letta
        yield from conversations(sample)
    if isinstance(value.get("messages_display"), str):
        pieces = _SHOWN_TURN.split(value["messages_display"])[1:]
        texts = ((role, text.strip()) for role, text in zip(pieces[::2], pieces[1::2], strict=True))
        messages = [{"role": role, "content": text} for role, text in texts if text != "None"]
        yield ChatConversation(_session(messages), messages)
    if key := _key_of_messages(value):
        yield _wrapped(value, value[key])


def _key_of_messages(value: JsonObject) -> str:
    """Return the key of the list of messages in `value`, empty if it has none."""
    lists = (key for key in WRAPPERS if isinstance(value.get(key), list))
    return next((key for key in lists if any(map(is_message, value[key]))), "")


def _wrapped(value: JsonObject, listed: list[Any]) -> ChatConversation:
    messages = [message if is_message(message) else {} for message in listed]
    choices = as_object(value.get("response")).get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        messages.append(as_object(choices[0].get("message")))
    cuts = value.get("compactions")
    before = [as_object(cut).get("before_message") for cut in cuts] if isinstance(cuts, list) else []
    session = ":".join(
        str(value[key]) for key in ("sessionId", "session_id", "task_id", "trial", "uuid") if key in value
    )
    return ChatConversation(
        session or _session(messages),
        messages,
        frozenset(index for index in before if isinstance(index, int)),
    )


def _session(messages: list[JsonObject]) -> str:
    """Return an id that stays when the conversation grows: the digest of its first messages."""
    digest = sha256()
    for message in messages:
        digest.update(content_text(message.get("content")).encode("utf-8", "surrogatepass"))
        if role_of(message) == "user":
            break
    return digest.hexdigest()[:16]


def _conversation(number: int, conversation: ChatConversation) -> Iterator[Record]:
    head = Record("system", line=number, session=conversation.session)
    before, part = _Before(), 0
    for index, message in enumerate(conversation.messages):
        if index in conversation.boundaries:
            yield head._replace(kind="boundary", part=part)
            part += 1
        message_records, before = _message(head, message, before)
        for record in message_records:
            summary = index in conversation.boundaries and record.kind == "user"
            yield record._replace(part=part, kind="summary" if summary else record.kind)
            part += 1


def _line(head: Record, value: JsonObject, before: _Before) -> tuple[list[Record], _Before]:
    if value.get("type") == "compaction":
        summary = head._replace(kind="summary", text=as_text(value.get("summary")), part=1)
        return [head._replace(kind="boundary"), summary], before
    message = value.get("message", value) if value.get("type") == "message" else value
    message_records, before = _message(head, as_object(message), before)
    return [record._replace(part=part) for part, record in enumerate(message_records)], before


def _message(head: Record, message: JsonObject, before: _Before) -> tuple[list[Record], _Before]:
    role = role_of(message)
    if not _MARKS.isdisjoint(message):
        head = head._replace(
            uuid=as_text(message.get("id")),
            message_id=as_text(message.get("id")),
            time=as_text(message.get("timestamp")) or as_text(message.get("created_at")) or head.time,
        )
    if message.get("role") == "bashExecution":
        command = as_text(message.get("command"))
        call = head._replace(kind="call", tool="shell", arguments={"command": command}, call_id=command)
        output, broken = as_text(message.get("output")), message.get("exitCode") not in (0, None)
        return [call, head._replace(kind="result", text=output, call_id=command, is_error=broken)], before
    # Agents without tool calls write the output of a command as a user message.
    if message.get("message_type") == "observation":
        answers = before.answered
    else:
        shown_output = "agent" in message or _ANSWER.match(content_text(message.get("content")))
        answers = bool(before.command and shown_output)
    if role == "result" or (role == "user" and answers):
        return [_result(head, message, before)], before._replace(command="")
    if role == "assistant":
        return _assistant(head, message)
    if role == "user":
        return _user(head, message), before
    system = parts(message.get("content")) if role else ()
    return [with_part(head, part, "system") for _, part in system], before


def _result(head: Record, message: JsonObject, before: _Before) -> Record:
    text = content_text(message.get("content"))
    listed = message.get("tool_call_ids")
    first = listed[0] if isinstance(listed, list) and listed else None
    returns = message.get("tool_returns")
    states = [as_object(answer).get("status") for answer in (returns if isinstance(returns, list) else [])]
    broken = message.get("isError", message.get("is_error"))
    failed = is_failure_text(text) if broken is None else bool(broken)
    ids = (message.get("tool_call_id"), message.get("toolCallId"), first, before.command)
    names = (message.get("name"), message.get("toolName"), message.get("function"))
    return head._replace(
        kind="result", text=text, tool=next(filter(None, map(as_text, names)), ""),
        call_id=next(filter(None, map(as_text, ids)), ""),
        is_error=bool(message.get("error")) or "error" in states or failed,
    )  # fmt: skip


def _user(head: Record, message: JsonObject) -> list[Record]:
    records_: list[Record] = []
    texts: list[tuple[int, Part]] = []
    for index, part in parts(message.get("content")):
        inner = as_arguments(part.text) if part.text.startswith("{") else {}
        if part.kind != "text":
            records_.append(reply(with_part(head, part, "user")))
        elif "type" in inner and "time" in inner:  # an event of Letta, wrapped in a user message
            text = as_text(inner.get("message")) if inner["type"] == "user_message" else ""
            event = part._replace(text=text or part.text)
            records_ += asked(head, [(index, event)], person=bool(text))
        else:
            texts.append((index, part))
    return records_ + asked(head, texts, TYPED["chat"], person=is_person(message))


def _assistant(head: Record, message: JsonObject) -> tuple[list[Record], _Before]:
    spoken = [_spoken(with_part(head, part, "assistant")) for _, part in parts(message.get("content"))]
    spoken += [_spoken(with_part(head, part, "assistant")) for part in _calls(message)]
    if any(record.kind == "call" for record in spoken):
        return spoken, _Before(answered=True)
    # Agents without tool calls write the call into their text.
    text = content_text(message.get("content"))
    function, fence = _FUNCTION.search(text), _FENCED.search(text)
    if function:
        tool, call_id = function[1], function[0][:200]
        arguments = {name: value.strip("\n") for name, value in _PARAMETER.findall(function[2])}
    else:
        tool, call_id = "shell", as_text(message.get("action")).strip() or (fence[1].strip() if fence else "")
        arguments = {"command": call_id}
    if call_id:
        spoken.append(head._replace(kind="call", tool=tool, arguments=arguments, call_id=call_id))
    return spoken, _Before(call_id, answered=True)


def _spoken(record: Record) -> Record:
    text = as_text(record.arguments.get(_SPEAKING.get(record.tool, "")))
    return record._replace(kind="assistant", text=text) if record.kind == "call" and text else record


def _calls(message: JsonObject) -> Iterator[Part]:
    listed = message.get("tool_calls", message.get("toolCalls"))
    legacy = message.get("function_call")
    for call in [*(listed if isinstance(listed, list) else []), *([legacy] if legacy else [])]:
        if not isinstance(call, dict):
            continue
        inner = call if not isinstance(call.get("function"), dict) else call["function"]
        name = as_text(inner.get("name")) or as_text(inner.get("function"))
        arguments = as_arguments(inner.get("arguments", inner.get("args")))
        call_id = as_text(call.get("id"))
        yield Part("call", "", name, arguments, call_id)
        if "result" in call:
            broken = as_text(call.get("status")) in {"error", "cancelled"}
            yield Part("result", _answer(call["result"]), name, {}, call_id, broken)


def _answer(result: Any) -> str:
    listed = result if isinstance(result, list) else [result]
    answers = (
        as_object(as_object(as_object(entry).get("functionResponse")).get("response")) for entry in listed
    )
    return "\n".join(content_text(answer.get("output", answer.get("error", ""))) for answer in answers)


def paragraph_records(lines: Iterable[bytes]) -> Iterator[Record]:
    r"""Yield one record per paragraph.

    >>> [record.text for record in paragraph_records([b"# Plan\n", b"\n", b"Use SQLite.\n", b"\n", b"Ship.\n"])]
    ['# Plan\n\nUse SQLite.', 'Ship.']
    """
    session = ""
    for start, text in _paragraphs(lines):
        session = session or sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        yield Record("text", text=text, line=start, session=session)


def _paragraphs(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    paragraph: list[str] = []
    start = size = 0
    fenced = False
    for number, raw in enumerate(lines, start=1):
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if number == 1:
            text = text.removeprefix("\ufeff")
        fenced ^= bool(_FENCE.match(text))
        blank = not text.strip() and not fenced
        only_heading = all(not line.strip() or _HEADING.match(line) for line in paragraph)
        if (blank and not only_heading) or size + len(text) > PARAGRAPH_CHARS:
            yield from _finished(start, paragraph)
            paragraph, size = [], 0
        if not paragraph:
            start = number
        if text.strip() or paragraph:
            paragraph.append(text)
            size += len(text) + 1
    yield from _finished(start, paragraph)


def _finished(start: int, paragraph: list[str]) -> Iterator[tuple[int, str]]:
    text = "\n".join(paragraph).strip("\n")
    if text.strip():
        yield start, text


def item_records(values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line) -> Iterator[Record]:
    """Yield one record per item; its `arguments` are the item as it was written."""
    session = ""
    for number, value in values:
        listed = value if isinstance(value, list) else [value]
        for index, item in enumerate(listed):
            fault = item_fault(item)
            if fault:
                on_bad(BadLine(number, fault))
                continue
            session = session or sha256(item["content"].encode("utf-8", "surrogatepass")).hexdigest()[:16]
            time = as_text(as_object(item.get("metadata")).get("timestamp"))
            head = Record("item", line=number, part=index, session=session, time=time)
            yield head._replace(text=item["content"], arguments=item, uuid=as_text(item.get("id")))


def is_item(value: Any) -> bool:
    """Return whether `value` is meant as an item: it has a type that items have, or a field that only they have.

    >>> is_item({"content": "Use SQLite.", "type": "decision"}), is_item({"content": "ls", "type": "VIEW_FILE"})
    (True, False)
    """
    return is_typed_log(value) and (value["type"] in RELEVANCE_OF_TYPE or not _ITEM_FIELDS.isdisjoint(value))


def is_typed_log(value: Any) -> bool:
    """Return whether `value` has a content and a type, as items have and the lines of many logs."""
    keys = set(value) if isinstance(value, dict) else set()
    return {"content", "type"} <= keys and not {"role", "uuid"} & keys and isinstance(value["type"], str)


def holds(value: Any) -> bool:
    """Return whether `value` has a conversation, or is a line of one."""
    return is_line(value) or _is_bookkeeping(value) or next(conversations(value), None) is not None


def holds_items(value: Any) -> bool:
    """Return whether `value` is an item or a list with one."""
    return is_item(value) or (isinstance(value, list) and any(map(is_item, value)))


def item_fault(item: Any) -> str:
    """Return why `item` is not an item, empty if it is one."""
    if not isinstance(item, dict):
        return f"{shown(item)} is not an item"
    for key in ("content", "type"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            return f"item without {key!r} as text: {shown(item)}"
    score = item.get("relevance_score", 0.5)
    number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return "" if number and 0 <= score <= 1 else f"relevance_score {shown(score)} is not within 0 and 1"
