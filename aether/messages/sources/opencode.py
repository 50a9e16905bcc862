"""opencode: messages with their parts, as `opencode export` and its server give them, or one message per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Part, Record, asked
from aether.messages.sources.ai_sdk import messages_of
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, time_of
from aether.types import JsonObject

# Parts about the run, not of the conversation.
_SILENT = frozenset(
    {"step-start", "step-finish", "reasoning", "snapshot", "patch", "agent", "retry", "file", "subtask"}
)


def holds(value: Any) -> bool:
    """Return whether `value` is a message, a list of them, or an export."""
    first = as_object(next(iter(messages_of(value)), None))
    return isinstance(first.get("parts"), list) and "role" in as_object(first.get("info"))


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of the messages."""
    about = as_object(as_object(value).get("info"))
    for message in messages_of(value):
        info = as_object(message.get("info"))
        name = as_text(info.get("id"))
        head = Record(
            "system", uuid=name, message_id=name, session=first_text(info.get("sessionID"), about.get("id")),
            time=time_of(as_object(info.get("time")).get("created")),
            directory=as_text(as_object(info.get("path")).get("cwd")) or as_text(about.get("directory")),
        )  # fmt: skip
        yield from _parts(head, info, objects(message.get("parts")), skip)


def _parts(head: Record, info: JsonObject, parts: list[JsonObject], skip: Skip) -> Iterator[Record]:
    texts: list[tuple[int, Part]] = []
    for index, part in enumerate(parts):
        match part.get("type"):
            case "text":
                text = as_text(part.get("text"))
                if part.get("synthetic") or part.get("ignored") or info.get("summary") is True:
                    kind = "summary" if info.get("summary") is True else "system"
                    yield head._replace(kind=kind, text=text)  # type: ignore[arg-type]
                elif info.get("role") == "assistant" and text.strip():
                    yield head._replace(kind="assistant", text=text)
                elif text.strip():
                    texts.append((index, Part("text", text)))
            case "tool":
                yield from _tool(head, part)
            case "compaction":
                yield head._replace(kind="boundary")
            case kind if as_text(kind) not in _SILENT:
                skip(f"parts of type {kind}")
    yield from asked(head, texts, person=info.get("role") == "user")


def _tool(head: Record, part: JsonObject) -> Iterator[Record]:
    state, call_id = as_object(part.get("state")), part.get("callID")
    yield call(head, part.get("tool"), as_arguments(state.get("input")), call_id)
    if (status := state.get("status")) in ("completed", "error"):
        output = state.get("output") or state.get("error")
        code = as_object(state.get("metadata")).get("exit")
        yield result(
            head, call_id, output, is_error=status == "error" or code not in (0, None), tool=part.get("tool")
        )


records = of_values(read, holds)
