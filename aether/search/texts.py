"""Entries of the three layers as search reads them: their texts with weights, their places, and the fields of a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from aether.memory.layers import instant_text, plain_text
from aether.memory.sessions import STATEMENT_FIELDS, last_heard
from aether.search.index import Row, cut, cut_row, unit_fraction
from aether.types import JsonObject, Layer

# A decision weighs more than a line of the summary around it, the context of a pattern less than the pattern.
DECISION_WEIGHT = 1.2
HIGH_VALUE_WEIGHT = 1.2
CONTEXT_WEIGHT = 0.5
# The item type of the statements in a field of a session; in other fields each has a type of its own, or none.
TYPE_OF_FIELD = {
    "key_decisions": "decision", "outcomes": "outcome", "next": "next", "rules": "constraint", "open": "blocker",
}  # fmt: skip
# Only items of working memory are neighbours of each other, in their order.
_GAP = 1_000
_FIRST_ITEM_PLACE = 1 << 62


class SearchEntry(NamedTuple):
    """One item, session or pattern as search reads it."""

    layer: Layer
    place: int
    """Entries of one stretch whose places differ by little are neighbours."""
    row: Row
    fields: tuple[tuple[float, str], ...]
    """Weight and marked terms of each of its texts."""
    value: JsonObject
    """The stored object."""


def search_entries(
    memory: Mapping[str, Any], cached: Mapping[int, SearchEntry] = MappingProxyType({})
) -> Iterator[SearchEntry]:
    """Yield the entries of the three layers; `cached` are those of an earlier call, by the `id()` of objects that nobody changes."""
    for layer, place, value in placed_objects(memory):
        entry = cached.get(id(value)) or _search_entry(layer, place, value)
        yield entry if entry.place == place else entry._replace(place=place)


def placed_objects(memory: Mapping[str, Any]) -> Iterator[tuple[Layer, int, JsonObject]]:
    """Yield the objects of the three layers, each with its place; parts that are missing or null count as empty."""
    for place, item in enumerate(_objects_at(memory, "working_memory", "items"), start=_FIRST_ITEM_PLACE):
        yield "working_memory", place, item
    sessions = _objects_at(memory, "short_term_memory", "sessions")
    for number, session in enumerate(sessions, start=1):
        yield "short_term_memory", -_GAP * number, session
    patterns = _objects_at(memory, "long_term_memory", "patterns")
    for number, pattern in enumerate(patterns, start=len(sessions) + 1):
        yield "long_term_memory", -_GAP * number, pattern


def _weighted_texts(layer: Layer, value: JsonObject) -> list[tuple[float, str]]:
    """Return the texts by which an entry is found, with their weights."""
    if layer == "working_memory":
        return [(1.0, str(value.get("content") or ""))]
    fields: list[tuple[float, Any]]
    if layer == "short_term_memory":
        decisions, outcomes = _objects_at(value, "key_decisions"), _objects_at(value, "outcomes")
        fields = [
            (1.0, value.get("summary")), *((DECISION_WEIGHT, decision.get("decision")) for decision in decisions),
            *((1.0, decision.get("rationale")) for decision in decisions),
            *((1.0, outcome.get("result")) for outcome in outcomes), *((1.0, outcome.get("impact")) for outcome in outcomes),
            *((HIGH_VALUE_WEIGHT, item.get("content")) for item in _objects_at(value, "high_value_items")),
            *((DECISION_WEIGHT, statement.get("text")) for part, names in STATEMENT_FIELDS.items() if "text" in names
              for statement in _objects_at(value, part)),
        ]  # fmt: skip
    else:
        metadata = value.get("metadata")
        context = metadata.get("context") if isinstance(metadata, dict) else None
        fields = [(1.0, value.get("pattern")), (CONTEXT_WEIGHT, context)]
    return [(weight, text) for weight, text in fields if isinstance(text, str)]


def _search_entry(layer: Layer, place: int, value: JsonObject) -> SearchEntry:
    texts = _weighted_texts(layer, value)
    terms = cut([text for _, text in texts])
    get = value.get
    if layer == "working_memory":
        row = cut_row({"item": value}, terms)
    else:
        id_, type_, phase, time, relevance = (
            (get("session_id") or get("id"), "session", get("phase"), last_heard(value), None)
            if layer == "short_term_memory"
            else (get("id"), get("type"), None, get("last_seen"), get("confidence"))
        )
        row = Row(
            id=plain_text(id_), marked="", length=terms.length, type=plain_text(type_), phase=plain_text(phase), caste="",
            at=instant_text(time), relevance=unit_fraction(relevance), labels="", stretch="",
        )  # fmt: skip
    fields = tuple((weight, marked) for (weight, _), marked in zip(texts, terms.marked, strict=True))
    return SearchEntry(layer, place, row, fields, value)


def _objects_at(holder: Mapping[str, Any], *path: str) -> list[JsonObject]:
    """Return the objects of the list at `path`; without a list there, none."""
    value: Any = holder
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def entry_text(entry: SearchEntry) -> str:
    """Return the main text of the entry."""
    key = {"short_term_memory": "summary", "long_term_memory": "pattern"}.get(entry.layer, "content")
    return str(entry.value.get(key) or "")


def entry_texts(entry: SearchEntry) -> list[str]:
    """Return all searched texts of the entry."""
    value = entry.value
    if entry.layer != "short_term_memory":
        return [entry_text(entry)]
    texts = [value.get("summary")]
    for part, names in STATEMENT_FIELDS.items():
        for statement in _objects_at(value, part):
            texts += [statement.get(name) for name in names if name != "quote"]
    return [text for text in texts if isinstance(text, str)]


def texts_of_types(entry: SearchEntry, types: Collection[str]) -> list[str]:
    """Return the texts of an entry that are of one of the item `types` and are in force: of a session, its statements of these types."""
    value = entry.value
    if entry.layer == "short_term_memory":
        statements = [
            (names[0], statement)
            for part, names in STATEMENT_FIELDS.items()
            for statement in _objects_at(value, part)
            if (TYPE_OF_FIELD.get(part) or statement.get("type")) in types
        ]
        return [
            str(statement.get(name) or "") for name, statement in statements if not statement.get("ended")
        ]
    metadata = value.get("metadata")
    is_over = isinstance(metadata, dict) and metadata.get("ended_at")
    return [entry_text(entry)] if entry.row.type in types and not is_over else []


def entry_phases(entry: SearchEntry) -> set[str]:
    """Return the phases that the entry belongs to, as text."""
    return {entry.row.phase} | {plain_text(phase) for phase in _related_values(entry, "related_phases")}


def entry_castes(entry: SearchEntry) -> set[str]:
    """Return the castes that the entry belongs to."""
    return {entry.row.caste} | {plain_text(caste) for caste in _related_values(entry, "related_castes")}


def _related_values(entry: SearchEntry, key: str) -> list[Any]:
    metadata = entry.value.get("metadata")
    values = metadata.get(key) if entry.layer == "long_term_memory" and isinstance(metadata, dict) else None
    return values if isinstance(values, list) else []
