"""Entries: everything live that search can find, each with its texts and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aether.shapes import JsonObject, Layer
from aether.store.rows import Row, fraction, instant, marked, plain, row
from aether.text.words import terms

# A decision says more than a line of the summary around it; the context of a pattern says less than it.
DECISION_WEIGHT = 1.2
HIGH_VALUE_WEIGHT = 1.2
CONTEXT_WEIGHT = 0.5

# Sessions and patterns have no neighbours; items of working memory are each other's, in their order.
_APART = 1_000
_ITEMS_FROM = 1 << 62


class Entry(NamedTuple):
    """One thing that can be found."""

    layer: Layer
    place: int
    """Entries whose places differ by little, in one stretch, are neighbours."""
    row: Row
    fields: tuple[tuple[float, str], ...]
    """Weight and marked terms of each of its texts."""
    value: JsonObject
    """The stored object; empty for what is still in the archive."""


def live(memory: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield all entries of the three layers; parts that are missing or null count as empty."""
    for at, item in enumerate(_list(memory, "working_memory", "items")):
        one = row({"item": item})
        yield Entry("working_memory", _ITEMS_FROM + at, one, ((1.0, one.marked),), item)
    place = 0
    for session in _list(memory, "short_term_memory", "sessions"):
        place -= _APART
        yield _session(session, place)
    for pattern in _list(memory, "long_term_memory", "patterns"):
        place -= _APART
        yield _pattern(pattern, place)


def _list(holder: Mapping[str, Any], *path: str) -> list[JsonObject]:
    value: Any = holder
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _session(session: JsonObject, place: int) -> Entry:
    fields = [
        (1.0, session.get("summary")),
        *((DECISION_WEIGHT, each.get("decision")) for each in _list(session, "key_decisions")),
        *((1.0, each.get("rationale")) for each in _list(session, "key_decisions")),
        *((1.0, each.get("result")) for each in _list(session, "outcomes")),
        *((1.0, each.get("impact")) for each in _list(session, "outcomes")),
        *((HIGH_VALUE_WEIGHT, each.get("content")) for each in _list(session, "high_value_items")),
    ]
    return _entry(
        "short_term_memory", place, fields, session,
        id=session.get("session_id") or session.get("id"), type="session", phase=session.get("phase"), at=session.get("compressed_at"),
    )  # fmt: skip


def _pattern(pattern: JsonObject, place: int) -> Entry:
    metadata = pattern.get("metadata")
    context = metadata.get("context") if isinstance(metadata, dict) else None
    return _entry(
        "long_term_memory", place, [(1.0, pattern.get("pattern")), (CONTEXT_WEIGHT, context)], pattern,
        id=pattern.get("id"), type=pattern.get("type"), at=pattern.get("last_seen"),
        relevance=pattern.get("confidence"),
    )  # fmt: skip


def _entry(
    layer: Layer, place: int, texts: list[tuple[float, Any]], value: JsonObject, *,
    id: Any, type: Any, at: Any, phase: Any = None, relevance: Any = None,
) -> Entry:  # fmt: skip
    said = [(weight, terms(text)) for weight, text in texts if isinstance(text, str)]
    fields = tuple((weight, marked(each)) for weight, each in said)
    one = Row(
        id=plain(id), marked="", length=sum(each.length for _, each in said), type=plain(type),
        phase=plain(phase), caste="", at=instant(at), relevance=fraction(relevance), labels="", stretch="",
    )  # fmt: skip
    return Entry(layer, place, one, fields, value)


def content(entry: Entry) -> str:
    """Return the text by which a person knows the entry."""
    key = {"short_term_memory": "summary", "long_term_memory": "pattern"}.get(entry.layer, "content")
    return str(entry.value.get(key) or "")


def texts(entry: Entry) -> list[str]:
    """Return every text of the entry that is searched."""
    value = entry.value
    if entry.layer == "short_term_memory":
        found = [value.get("summary")]
        for part in ("key_decisions", "outcomes", "high_value_items"):
            found += [text for each in _list(value, part) for text in each.values()]
    else:
        found = [content(entry)]
    return [text for text in found if isinstance(text, str)]


def phases(entry: Entry) -> set[str]:
    """Return the phases the entry belongs to, as text."""
    return {entry.row.phase} | {plain(each) for each in _related(entry, "related_phases")}


def castes(entry: Entry) -> set[str]:
    """Return the castes the entry belongs to."""
    return {entry.row.caste} | {plain(each) for each in _related(entry, "related_castes")}


def _related(entry: Entry, key: str) -> list[Any]:
    metadata = entry.value.get("metadata")
    found = metadata.get(key) if entry.layer == "long_term_memory" and isinstance(metadata, dict) else None
    return found if isinstance(found, list) else []
