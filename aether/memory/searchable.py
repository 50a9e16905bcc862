"""Searchable entries: the items, sessions and patterns of memory in the form in which `search` reads them.

Each entry has its weighted texts, its place among its neighbours, and the row by which it is filtered and ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from aether.hints import Any
from aether.memory.sessions import STATEMENT_FIELDS, last_heard
from aether.store import search_index
from aether.store.search_index import Cut, Row, cut_row, instant_text, plain_text, unit_fraction
from aether.tuples import NamedTuple
from aether.types import JsonObject, Layer

# A decision weighs more than a line of the summary around it, the context of a pattern less than the pattern.
DECISION_WEIGHT = 1.2
HIGH_VALUE_WEIGHT = 1.2
CONTEXT_WEIGHT = 0.5

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
    counts: dict[str, float] | None = None
    """The weighted count of each of its terms, where they are known."""


def search_entries(
    memory: Mapping[str, Any],
    cut: Callable[[list[list[str]]], Iterable[Cut]] | None = None,
    known: Mapping[int, SearchEntry] = MappingProxyType({}),
) -> Iterator[SearchEntry]:
    """Yield the entries of the three layers, whose texts are `cut` all at once; those `known` by the `id()` of objects that nobody changes are not."""
    parts = [*placed_objects(memory)]
    new = {id(value): _weighted_texts(layer, value) for layer, _, value in parts if id(value) not in known}
    texts = [[text for _, text in each] for each in new.values()]
    cuts = dict(zip(new, cut(texts) if cut else map(search_index.cut, texts), strict=True))
    for layer, place, value in parts:
        key = id(value)
        entry = known.get(key) or _search_entry(layer, place, value, new[key], cuts[key])
        yield entry if entry.place == place else entry._replace(place=place)


def placed_objects(memory: Mapping[str, Any]) -> Iterator[tuple[Layer, int, JsonObject]]:
    """Yield the objects of the three layers, each with its place; parts that are missing or null count as empty."""
    for place, item in enumerate(_objects_at(memory, "working_memory", "items"), start=_FIRST_ITEM_PLACE):
        yield "working_memory", place, item
    sessions = _objects_at(memory, "short_term_memory", "sessions")
    for nth, session in enumerate(sessions, start=1):
        yield "short_term_memory", -_GAP * nth, session
    patterns = _objects_at(memory, "long_term_memory", "patterns")
    for nth, pattern in enumerate(patterns, start=len(sessions) + 1):
        yield "long_term_memory", -_GAP * nth, pattern


def _weighted_texts(layer: Layer, value: JsonObject) -> list[tuple[float, str]]:
    """Return the texts by which an entry is found, with their weights."""
    if layer == "working_memory":
        return [(1.0, str(value.get("content") or ""))]
    fields: list[tuple[float, Any]]
    if layer == "short_term_memory":
        decisions, outcomes = _objects_at(value, "key_decisions"), _objects_at(value, "outcomes")
        fields = [
            (1.0, value.get("summary")),
            *((DECISION_WEIGHT, each.get("decision")) for each in decisions),
            *((1.0, each.get("rationale")) for each in decisions),
            *((1.0, each.get("result")) for each in outcomes),
            *((1.0, each.get("impact")) for each in outcomes),
            *((HIGH_VALUE_WEIGHT, each.get("content")) for each in _objects_at(value, "high_value_items")),
            *(
                (DECISION_WEIGHT, each.get("text"))
                for part, fields in STATEMENT_FIELDS.items()
                if "text" in fields
                for each in _objects_at(value, part)
            ),
        ]
    else:
        metadata = value.get("metadata")
        context = metadata.get("context") if isinstance(metadata, dict) else None
        fields = [(1.0, value.get("pattern")), (CONTEXT_WEIGHT, context)]
    return [(weight, text) for weight, text in fields if isinstance(text, str)]


def _search_entry(
    layer: Layer, place: int, value: JsonObject, texts: list[tuple[float, str]], done: Cut
) -> SearchEntry:
    get = value.get
    if layer == "working_memory":
        row = cut_row({"item": value}, done)
    else:
        id_, type_, phase, at, relevance = (
            (get("session_id") or get("id"), "session", get("phase"), last_heard(value), None)
            if layer == "short_term_memory"
            else (get("id"), get("type"), None, get("last_seen"), get("confidence"))
        )
        row = Row(
            id=plain_text(id_), marked="", length=done.length, type=plain_text(type_), phase=plain_text(phase), caste="",
            at=instant_text(at), relevance=unit_fraction(relevance), labels="", stretch="",
        )  # fmt: skip
    fields = tuple((weight, marked) for (weight, _), marked in zip(texts, done.marked, strict=True))
    return SearchEntry(layer, place, row, fields, value)


def _objects_at(holder: Mapping[str, Any], *path: str) -> list[JsonObject]:
    """Return the objects of the list at `path`; without a list there, none."""
    value: Any = holder
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def entry_text(entry: SearchEntry) -> str:
    """Return the main text of the entry."""
    key = {"short_term_memory": "summary", "long_term_memory": "pattern"}.get(entry.layer, "content")
    return str(entry.value.get(key) or "")


def entry_texts(entry: SearchEntry) -> list[str]:
    """Return all searched texts of the entry."""
    value = entry.value
    if entry.layer == "short_term_memory":
        found = [value.get("summary")]
        for part, fields in STATEMENT_FIELDS.items():
            found += [
                each.get(field) for each in _objects_at(value, part) for field in fields if field != "quote"
            ]
    else:
        found = [entry_text(entry)]
    return [text for text in found if isinstance(text, str)]


def entry_phases(entry: SearchEntry) -> set[str]:
    """Return the phases that the entry belongs to, as text."""
    return {entry.row.phase} | {plain_text(each) for each in _related_values(entry, "related_phases")}


def entry_castes(entry: SearchEntry) -> set[str]:
    """Return the castes that the entry belongs to."""
    return {entry.row.caste} | {plain_text(each) for each in _related_values(entry, "related_castes")}


def _related_values(entry: SearchEntry, key: str) -> list[Any]:
    metadata = entry.value.get("metadata")
    found = metadata.get(key) if entry.layer == "long_term_memory" and isinstance(metadata, dict) else None
    return found if isinstance(found, list) else []
