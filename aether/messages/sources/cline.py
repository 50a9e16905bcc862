"""Cline and Roo: messages of the Anthropic API in which elements are calls, and bracketed lines their results.

All that a person typed is in an element (`<task>`, `<feedback>`, `<answer>`); what the program adds does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from aether.clock import stamp
from aether.messages.model import as_text, content_text, is_failure_text
from aether.messages.records import Part, Record, asked, parts
from aether.messages.replies import answers, reply
from aether.messages.speakers import TYPED, own_words
from aether.text.elements import pieces_of
from aether.text.regex import lazy
from aether.types import JsonObject

# Calls that only say something to the person, with the argument that says it.
_SPEAKING = {"attempt_completion": "result", "plan_mode_respond": "response"}
_ASKING = "ask_followup_question"
_THINKING = "thinking"
_ANNOUNCES = "The user "
_MARKS = ("<environment_details>", "<task>")
_RESULT = lazy(r"^\[(\w+)(?: for '[^\n]*')?\] Result:[ \t]*\n?", re.MULTILINE)
_OPTION = lazy(r'"((?:[^"\\]|\\.)*+)"')


def is_history(value: Any) -> bool:
    """Return whether `value` is the history of a task: a list of messages that starts with one of the program's."""
    first = (
        next((message for message in value if isinstance(message, dict)), {})
        if isinstance(value, list)
        else {}
    )
    return first.get("role") == "user" and content_text(first.get("content")).lstrip().startswith(_MARKS)


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of every history."""
    for number, history in values:
        if not is_history(history):
            continue
        opening = content_text(history[0].get("content")).encode("utf-8", "surrogatepass")
        head = Record("system", line=number, session=sha256(opening).hexdigest()[:16])
        calls: list[Record] = []
        part = 0
        for message in history:
            for record in _message(head, message, calls) if isinstance(message, dict) else ():
                yield record._replace(part=part)
                part += 1


def _message(head: Record, message: JsonObject, calls: list[Record]) -> Iterator[Record]:
    """Yield the records of a message; `calls` are those that wait for a result."""
    head = head._replace(time=_time(message.get("ts")))
    content = [part for _, part in parts(message.get("content"))]
    if message.get("role") == "assistant":
        for part in content:
            reader = _called if part.kind == "call" else _spoken
            for record in reader(head, part, len(calls)):
                calls += [record] if record.kind == "call" else []
                yield record
        return
    for part in content:
        if part.kind == "result":
            yield from _answered(head, part.text, part.call_id, calls)
    text = "\n".join(part.text for part in content if part.kind == "text")
    heads = [*_RESULT.finditer(text)]
    before = text[: heads[0].start()] if heads else text
    yield from _typed(head, before)
    for index, match in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        call = next((call for call in calls if call.tool == match[1]), Record("call"))
        yield from _answered(head, text[match.end() : end], call.call_id, calls)


def _typed(head: Record, text: str) -> list[Record]:
    """Return the words of a person in `text`, or the program's: a line in brackets is its own."""
    if text.lstrip().startswith("["):
        inner = [
            own_words(piece.inner, TYPED["cline"])
            for piece in pieces_of(text)
            if piece.name in TYPED["cline"]
        ]
        words = "\n".join(filter(None, inner))
        return [head._replace(kind="user" if words else "system", text=words or text)]
    return asked(head, [(0, Part("text", text))], TYPED["cline"]) if text.strip() else []


def _answered(head: Record, text: str, call_id: str, calls: list[Record]) -> Iterator[Record]:
    """Yield the result of a call, without what the program adds to it, and what the person said with it."""
    call = next((call for call in calls if call.call_id == call_id), Record("call"))
    calls[:] = [other for other in calls if other is not call]
    pieces = [
        piece for piece in pieces_of(text) if piece.name != "environment_details" and piece.text.strip()
    ]
    # What a tool has printed may hold such an element, too: the person's is the last, below a line about it.
    above = "".join(piece.text for piece in pieces[:-1]).strip()
    announced = not above or above.rpartition("\n")[2].startswith(_ANNOUNCES)
    is_typed = bool(pieces) and pieces[-1].name in TYPED["cline"] and announced
    words = own_words(pieces[-1].inner) if is_typed else ""
    output = above if is_typed else "".join(piece.text for piece in pieces).strip()
    denied = output.startswith("The user denied")
    result = head._replace(
        kind="result", text=output, call_id=call_id, tool=call.tool,
        is_error=denied or is_failure_text(output),
    )  # fmt: skip
    if call.tool == _ASKING and words:
        yield from answers(result, [call.arguments], {as_text(call.arguments.get("question")): words})
        return
    result = reply(result, words)
    if output or call.call_id:
        yield result
    if words and result.kind != "refusal":
        yield head._replace(kind="user", text=words)


def _spoken(head: Record, part: Part, order: int) -> Iterator[Record]:
    """Yield what the text of a response says, and the calls in it."""
    for piece in pieces_of(part.text):
        if not piece.name:
            if piece.text.strip():
                yield head._replace(kind="assistant", text=piece.text.strip())
        elif piece.name != _THINKING:
            inner = {inside.name: inside.inner.strip() for inside in pieces_of(piece.inner) if inside.name}
            yield from _called(head, Part("call", piece.text, piece.name, inner), order)


def _called(head: Record, part: Part, order: int) -> Iterator[Record]:
    arguments: JsonObject = dict(part.arguments)
    if text := as_text(arguments.get(_SPEAKING.get(part.tool, ""))):
        yield head._replace(kind="assistant", text=text)
        return
    if part.tool == _ASKING and isinstance(options := arguments.get("options"), str):
        arguments["options"] = _OPTION.findall(options)
    call_id = part.call_id or f"{part.tool}/{head.time}/{order}"
    yield head._replace(kind="call", tool=part.tool, arguments=arguments, call_id=call_id)


def _time(milliseconds: Any) -> str:
    try:
        return stamp(datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
