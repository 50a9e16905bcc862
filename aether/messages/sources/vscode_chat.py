"""VS Code: chats with Copilot, as "Chat: Export" writes them and as the editor keeps them, a state with its changes by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import OnBad, Part, Record, asked, ignore_bad_line
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, time_of
from aether.types import JsonObject

_SET, _PUSH = 1, 2
# Parts of a reply that show how the work goes on, and what was attached.
_SILENT = frozenset(
    """progressTaskSerialized progressMessage undoStop codeblockUri inlineReference thinking prepareToolInvocation
    mcpServersStarting confirmation command treeData warning notebookEditGroup textEditGroup elicitationSerialized""".split()
)


def holds(value: Any) -> bool:
    """Return whether `value` is an export, or the first line of a session that the editor keeps."""
    session = _session(value)
    return isinstance(session.get("requests"), list) and bool(
        {"responderUsername", "requesterUsername", "sessionId"} & session.keys()
    )


def _session(value: Any) -> JsonObject:
    line = as_object(value)
    return as_object(line.get("v")) if line.get("kind") == 0 else line


def _is_change(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") in (_SET, _PUSH) and isinstance(value.get("k"), list)


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of the sessions, each as its last change left it."""
    sessions: list[tuple[int, Any]] = []
    for number, value in values:
        if sessions and _is_change(value):
            _change(sessions[-1][1], value)
        else:
            sessions.append((number, _session(value)))
    yield from _of_sessions(sessions, on_bad=on_bad)


def _change(session: Any, change: JsonObject) -> None:
    """Apply a change: set the value at a path, or put values into the list there, from a position on."""
    *path, last = change["k"] or [None]
    try:
        for key in path:
            session = session[key]
        if change["kind"] == _SET:
            session[last] = change.get("v")
        else:
            listed = session.setdefault(last, []) if isinstance(session, dict) else session[last]
            listed[change.get("i", len(listed)) :] = change.get("v") or []
    except (LookupError, TypeError, AttributeError):
        return  # of a place that an earlier version of the editor had


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of one session."""
    session = first_text(value.get("sessionId"), str(value.get("creationDate", "")))
    for request in objects(value["requests"]):
        name = as_text(request.get("requestId"))
        at = time_of(request.get("timestamp", value.get("creationDate")))
        head = Record("system", session=session, uuid=name, message_id=name, time=at)
        message = request.get("message")
        text = as_text(as_object(message).get("text")) or as_text(message)
        yield from asked(head, [(0, Part("text", text))] if text.strip() else [])
        yield from _reply(head, request, skip)


def _reply(head: Record, request: JsonObject, skip: Skip) -> Iterator[Record]:
    metadata = as_object(as_object(request.get("result")).get("metadata"))
    rounds = objects(metadata.get("toolCallRounds"))
    outputs = as_object(metadata.get("toolCallResults"))
    for turn in rounds:
        if text := as_text(turn.get("response")).strip():
            yield head._replace(kind="assistant", text=text)
        for item in objects(turn.get("toolCalls")):
            yield call(head, item.get("name"), as_arguments(item.get("arguments")), item.get("id"))
            content = as_object(outputs.get(as_text(item.get("id")))).get("content")
            if texts := [
                entry.get("value") for entry in objects(content) if isinstance(entry.get("value"), str)
            ]:
                yield result(head, item.get("id"), texts, tool=item.get("name"))
    spoken: list[str] = []
    for part in objects(request.get("response")):
        kind = part.get("kind")
        if kind in (None, "markdownContent"):
            spoken.append(first_text(part.get("value"), as_object(part.get("content")).get("value")))
        elif kind == "toolInvocationSerialized" and not rounds:
            yield from _invocation(head, part)
        elif as_text(kind) not in _SILENT | {"toolInvocationSerialized"}:
            skip(f"parts of kind {kind}")
    if (text := "".join(spoken).strip()) and not any(turn.get("response") for turn in rounds):
        yield head._replace(kind="assistant", text=text)


def _invocation(head: Record, part: JsonObject) -> Iterator[Record]:
    about = as_object(part.get("toolSpecificData"))
    line = about.get("commandLine")
    command = as_text(as_object(line).get("original")) or as_text(line) or as_text(about.get("command"))
    arguments = {"command": command} if command else as_object(about.get("rawInput"))
    yield call(head, part.get("toolId"), arguments, part.get("toolCallId"))
    output = as_object(about.get("terminalCommandOutput")).get("text")
    code = as_object(about.get("terminalCommandState")).get("exitCode")
    if output is not None or code is not None:
        yield result(head, part.get("toolCallId"), output or "", is_error=code not in (0, None))


_of_sessions = of_values(read, holds)
