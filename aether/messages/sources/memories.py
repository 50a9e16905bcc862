"""Memories of other programs, as notes that name their source: what another memory says is nobody's rule here.

Read are the database of claude-mem, an export of mem0 and the file of the official memory server of MCP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Record
from aether.messages.sources import knowledge_graph
from aether.messages.sources.reader import Skip, first_text, objects, of_values, time_of
from aether.types import JsonObject

CLAUDE_MEM, MEM0, MCP = "claude-mem", "mem0", "MCP memory"
# Of claude-mem: the columns of its tables that say something, in their order.
_COLUMNS = {
    "observations": ("title", "subtitle", "narrative", "text"),
    "session_summaries": ("request", "investigated", "learned", "completed", "next_steps", "notes"),
}  # fmt: skip
_LISTS = ("results", "memories", "data")


def holds(value: Any) -> bool:
    """Return whether `value` is a row, a memory, a list of memories, or a line of a graph."""
    return bool(_memories(value)) or _is_row(value) or knowledge_graph.is_line(value)


def _is_row(value: Any) -> bool:
    row = as_object(as_object(value).get("row"))
    return as_text(as_object(value).get("table")) in _COLUMNS and bool(
        {"project", "memory_session_id", "sdk_session_id"} & row.keys()
    )


def _memories(value: Any) -> list[JsonObject]:
    listed = value if isinstance(value, list) else next(
        (value[key] for key in _LISTS if isinstance(value.get(key), list)), [value]
    ) if isinstance(value, dict) else []  # fmt: skip
    entries = objects(listed)
    return entries if entries and isinstance(entries[0].get("memory"), str) and "id" in entries[0] else []


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield one note for each memory."""
    if _is_row(value):
        yield from _row(value["table"], value["row"])
        return
    if knowledge_graph.is_line(value):
        yield from _graph_line(value)
        return
    for entry in _memories(value):
        if text := as_text(entry.get("memory")):
            time = time_of(entry.get("updated_at") or entry.get("created_at"))
            yield _note(MEM0, text, uuid=str(entry.get("id", "")), time=time)
        else:
            skip("entries without a memory")


def _note(
    source: str, text: str, *, time: str = "", uuid: str = "", session: str = "", directory: str = ""
) -> Record:
    return Record(
        "text", f"From {source}: {text}", time=time, uuid=uuid, session=session or source, directory=directory
    )


def _row(table: str, row: JsonObject) -> Iterator[Record]:
    texts = [as_text(row.get(column)).strip() for column in _COLUMNS[table]]
    facts = as_arguments(f'{{"facts": {as_text(row.get("facts")) or "[]"}}}').get("facts")
    texts += [f"- {fact}" for fact in (facts if isinstance(facts, list) else []) if isinstance(fact, str)]
    if text := "\n".join(filter(None, texts)):
        session = first_text(row.get("memory_session_id"), row.get("sdk_session_id"))
        time = time_of(row.get("created_at_epoch") or row.get("created_at"))
        yield _note(CLAUDE_MEM, text, time=time, uuid=f"{table}/{row.get('id')}", session=session)


def _graph_line(line: JsonObject) -> Iterator[Record]:
    if line["type"] == "relation":
        yield _note(MCP, f"{line.get('from')} {line.get('relationType')} {line.get('to')}")
        return
    name = f"{line.get('name')} ({line.get('entityType')})"
    listed = line.get("observations")
    for text in listed if isinstance(listed, list) else []:
        if as_text(text).strip():
            yield _note(MCP, f"{name}: {text}")


records = of_values(read, holds)
