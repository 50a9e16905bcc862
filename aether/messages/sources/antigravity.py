"""Antigravity: one step per line, with the source that it came from and a type of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from aether.messages.model import as_text, content_text
from aether.messages.records import Part, RawConversation, Record, as_messages, asked

_TYPED = frozenset({"USER_REQUEST"})
_ANSWER = "PLANNER_RESPONSE"


def is_step(value: Any) -> bool:
    """Return whether `value` is a step of such a log."""
    return isinstance(value, dict) and "step_index" in value and isinstance(value.get("source"), str)


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of a log."""
    session = ""
    for number, step in values:
        if not is_step(step):
            continue
        text = content_text(step.get("content"))
        session = session or sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        head = Record("system", text, line=number, session=session, time=as_text(step.get("created_at")))
        kind = as_text(step.get("type"))
        if step["source"] == "USER_EXPLICIT":
            yield from asked(head, [(0, Part("text", text))], _TYPED)
        elif step["source"] == "MODEL":
            is_answer = kind == _ANSWER
            call_id = "" if is_answer else str(step["step_index"])
            tool = "" if is_answer else kind.lower()
            yield head._replace(kind="assistant" if is_answer else "result", tool=tool, call_id=call_id)
        elif text:
            yield head


def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
    """Return the messages of a log."""
    return [RawConversation(as_messages(records(values)), "openai")]
