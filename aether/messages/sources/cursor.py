"""Cursor: the transcript of an agent, one message per line with its role beside it, or as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from aether.messages.model import as_object, as_text
from aether.messages.records import BadLine, OnBad, Part, Record, asked, decode_line, ignore_bad_line
from aether.messages.sources.reader import said, time_of
from aether.messages.speakers import TYPED

_ROLES = frozenset({"user", "assistant", "tool", "system"})


def holds(value: Any) -> bool:
    """Return whether `value` is a line of a transcript."""
    line = as_object(value)
    message = as_object(line.get("message"))
    return (
        as_text(line.get("role")) in _ROLES
        and "content" in message
        and "role" not in message
        and "type" not in line
    )


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of a transcript; a person's words are in an element, and one without it is all the person's."""
    session = ""
    for number, line in values:
        if not holds(line):
            if not (isinstance(line, dict) and "type" in line):  # the end of a turn, and its usage
                on_bad(BadLine(number, "no message"))
            continue
        content = line["message"]["content"]
        session = session or as_text(line.get("sessionId"))
        head = Record("system", session=session, line=number, time=time_of(line.get("timestamp")))
        for part, record in enumerate(said(head, as_text(line["role"]), content, TYPED["chat"])):
            # Calls have no ids, and their results are not in the file.
            call_id = record.call_id or (f"{number}/{part}" if record.kind == "call" else "")
            yield record._replace(part=part, call_id=call_id)


def is_text(lines: Sequence[bytes]) -> bool:
    """Return whether the first `lines` of a file are a transcript as text: the role on a line, then an element."""
    texts = [text for index, line in enumerate(lines) if (text := decode_line(line, first=index == 0))]
    return texts[:1] == ["user:"] and texts[1:2] != [] and texts[1].startswith("<")


def text_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield the records of a transcript as text, without what the model thought; calls have their arguments below them."""
    head, speaker, stretch = Record("system", line=1), "", list[str]()
    texts = [raw.decode("utf-8", errors="replace").rstrip("\r\n") for raw in lines]
    for number, line in enumerate(texts, start=1):
        opening = next((mark for mark in _MARKS if line.startswith(mark)), "")
        # What anybody may write is no person's turn: that opens with an element.
        if opening == _USER and (line != _USER or not "".join(texts[number : number + 1]).startswith("<")):
            opening = ""
        if opening:
            yield from _stretch(head, speaker, stretch)
            head, speaker = head._replace(line=number), _MARKS[opening]
            stretch = [line.removeprefix(opening).strip()]
        else:
            stretch.append(line)
    yield from _stretch(head, speaker, stretch)


_USER = "user:"
_MARKS = {
    _USER: "user", "assistant:": "assistant", "A:": "assistant", "[Thinking]": "thought", "[Tool call]": "call",
    "[Tool result]": "result",
}  # fmt: skip


def _stretch(head: Record, speaker: str, lines: list[str]) -> Iterator[Record]:
    text = "\n".join(lines).strip()
    if speaker == "user" and text:
        yield from asked(head, [(0, Part("text", text))], TYPED["chat"])
    elif speaker == "assistant" and text:
        yield head._replace(kind="assistant", text=text)
    elif speaker == "call":
        pairs = (line.strip().partition(": ") for line in lines[1:])
        arguments = {name: value for name, colon, value in pairs if colon}
        yield head._replace(kind="call", tool=lines[0], arguments=arguments, call_id=lines[0])
    elif speaker == "result":
        yield head._replace(kind="result", tool=lines[0], call_id=lines[0], text="\n".join(lines[1:]).strip())
