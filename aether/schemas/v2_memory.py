"""Version 2 to 3 of `memory`: the original triple-layer memory becomes ours.

Fields that are missing are filled from the initial document, counts are taken anew from what is there,
times get a zone, and every id is unique afterwards. See `salvage` for what happens to odd values.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from aether.schemas.salvage import (
    Notes,
    Reader,
    entries,
    field,
    filled,
    fraction,
    instant,
    instant_in,
    listing,
    mapping,
    note,
    phase_number,
    set_aside,
    text,
    texts,
    unique,
    whole,
)
from aether.shapes import Counter, JsonObject

TARGET_TYPES = ("working_memory_item", "short_term_session", "long_term_pattern", "archived_item")
PATTERN_TYPES = ("success_pattern", "failure_pattern", "preference", "constraint")
# What the original gives a new pattern and a new item.
NEW_CONFIDENCE = 0.7
NEW_RELEVANCE = 0.5
_PHASE_IN_ID = re.compile(r"phase_(\d{1,9})(?:_|$)")


def v2_to_v3(document: JsonObject, *, initial: JsonObject, count: Counter, notes: Notes) -> JsonObject:
    """Return the memory document of version 3; what is odd is in `notes`."""
    # The original describes its triggers in a form of its own, which nothing reads.
    free = {**initial, "compression": {**initial["compression"], "triggers": None}}
    found: JsonObject = filled(document, free, "", notes)
    if found["compression"]["triggers"] is None:
        found["compression"]["triggers"] = initial["compression"]["triggers"]
    metrics = found["metrics"]
    if not metrics["compression_ratio_total"]:
        total = metrics["average_compression_ratio"] * metrics["total_compressions"]
        metrics["compression_ratio_total"] = round(total, 2)
    working, short, long = (
        dict(found[layer]) for layer in ("working_memory", "short_term_memory", "long_term_memory")
    )
    items = entries(working, "items", partial(_item, count=count), place="/working_memory", notes=notes)
    working["items"] = unique(items, "/working_memory/items", notes)
    tokens = sum(item["token_count"] for item in working["items"])
    _recount(working, "current_tokens", tokens, "/working_memory", notes)
    sessions = entries(short, "sessions", _session, place="/short_term_memory", notes=notes)
    short["sessions"] = unique(sessions, "/short_term_memory/sessions", notes)
    _recount(short, "current_sessions", len(short["sessions"]), "/short_term_memory", notes)
    patterns = entries(long, "patterns", _pattern, place="/long_term_memory", notes=notes)
    long["patterns"] = unique(patterns, "/long_term_memory/patterns", notes)
    return {
        **found,
        "working_memory": working,
        "short_term_memory": short,
        "long_term_memory": long,
    }


def _recount(layer: JsonObject, key: str, true: int, place: str, notes: Notes) -> None:
    """Put the true count into `layer`, which is ours to change."""
    if layer[key] != true:
        message = f"it said {layer[key]}; there are {true}."
        note(notes, "recounted", f"{place}/{key}", message, "Nothing to do.")
        layer[key] = true


def _item(raw: JsonObject, place: str, notes: Notes, *, count: Counter) -> JsonObject | None:
    content = text(raw.get("content"))
    if content is None:
        return None
    item_id = field(raw, "id", text, _id_from_place("wm", place), place=place, notes=notes)
    metadata = field(raw, "metadata", mapping, {}, place=place, notes=notes)
    here = f"{place}/metadata"
    made = field(metadata, "timestamp", instant, instant_in(item_id), place=here, notes=notes)
    tokens = field(raw, "token_count", whole, None, place=place, notes=notes)
    known: JsonObject = {
        "timestamp": made,
        "relevance_score": field(
            metadata, "relevance_score", fraction, NEW_RELEVANCE, place=here, notes=notes
        ),
        "access_count": field(metadata, "access_count", whole, 0, place=here, notes=notes),
        "last_accessed": field(metadata, "last_accessed", instant, made, place=here, notes=notes),
        "source": field(metadata, "source", text, "queen", place=here, notes=notes),
        "caste": field(metadata, "caste", text, None, place=here, notes=notes),
    }
    return {
        **raw,
        "id": item_id,
        "type": field(raw, "type", text, "observation", place=place, notes=notes),
        "content": content,
        "token_count": count(content) if tokens is None else tokens,
        "metadata": {**_with_options(metadata, here, notes, **_ITEM_OPTIONS), **known},
        "associative_links": _links(raw, item_id, made, place, notes),
    }


def _with_options(entry: JsonObject, place: str, notes: Notes, **options: Reader) -> JsonObject:
    """Return `entry`, where each of `options` that is there can be read; the others are set aside."""
    kept = dict(entry)
    for key, read in options.items():
        if key in kept and (found := field(kept, key, read, None, place=place, notes=notes)) is not None:
            kept[key] = found
        else:
            kept.pop(key, None)
    return kept


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_ITEM_OPTIONS: dict[str, Reader] = {
    "phase": phase_number,
    "protected": _flag,
    "injected": _flag,
    "pointer": mapping,
}


def _objects(value: Any) -> list[Any] | None:
    fits = isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
    return value if fits else None


def _words(value: Any) -> list[Any] | None:
    fits = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return value if fits else None


def _id_from_place(kind: str, place: str) -> str:
    return f"{kind}_v2_{place.rpartition('/')[2]}"


def _links(holder: JsonObject, owner: str, made: str, place: str, notes: Notes) -> list[JsonObject]:
    def link(raw: JsonObject, here: str, notes: Notes) -> JsonObject | None:
        target = text(raw.get("target_id"))
        if target is None:
            return None
        link_id = field(
            raw, "link_id", text, f"link_v2_{owner}_{here.rpartition('/')[2]}", place=here, notes=notes
        )
        return {
            **raw,
            "link_id": link_id,
            "target_id": target,
            "target_type": field(raw, "target_type", _target_type, _type_of(target), place=here, notes=notes),
            "link_type": field(raw, "link_type", text, "related_to", place=here, notes=notes),
            "created_at": field(raw, "created_at", instant, made, place=here, notes=notes),
        }

    return entries(holder, "associative_links", link, place=place, notes=notes)


def _target_type(value: Any) -> str | None:
    return value if value in TARGET_TYPES else None


def _type_of(target: str) -> str:
    """Return what an id leads to, as its beginning says; sessions have names of any kind."""
    kinds = {"wm_": "working_memory_item", "pattern_": "long_term_pattern"}
    return next((kind for start, kind in kinds.items() if target.startswith(start)), "short_term_session")


def _session(raw: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    both = (field(raw, key, text, None, place=place, notes=notes) for key in ("id", "session_id"))
    ids = [found for found in both if found is not None]
    session_id = ids[0] if ids else _id_from_place("session", place)
    original = field(raw, "original_tokens", whole, 0, place=place, notes=notes)
    compressed = field(raw, "compressed_tokens", whole, 0, place=place, notes=notes)
    in_id = _PHASE_IN_ID.search(session_id)
    return {
        **raw,
        "id": session_id,
        "session_id": ids[-1] if ids else session_id,
        "phase": field(raw, "phase", phase_number, int(in_id[1]) if in_id else 0, place=place, notes=notes),
        "compressed_at": field(
            raw, "compressed_at", instant, instant_in(session_id), place=place, notes=notes
        ),
        "original_tokens": original,
        "compressed_tokens": compressed,
        "compression_ratio": round(original / compressed, 2) if compressed else 0,
        "summary": field(raw, "summary", text, "", place=place, notes=notes),
        "key_decisions": _statements(raw, "key_decisions", ("decision", "rationale"), place, notes),
        "outcomes": _statements(raw, "outcomes", ("result", "impact"), place, notes),
        "high_value_items": entries(raw, "high_value_items", _high_value, place=place, notes=notes),
        "metadata": _with_options(
            field(raw, "metadata", mapping, {}, place=place, notes=notes),
            f"{place}/metadata",
            notes,
            context=text,
            related_patterns=_words,
        ),
    }


def _statements(
    session: JsonObject, key: str, names: tuple[str, str], place: str, notes: Notes
) -> list[JsonObject]:
    """Return statements with their reason or effect; a bare text is a statement without one."""
    what, why = names
    listed = field(session, key, listing, [], place=place, notes=notes)
    objects = [{what: entry} if isinstance(entry, str) else entry for entry in listed]

    def statement(raw: JsonObject, here: str, notes: Notes) -> JsonObject | None:
        said = text(raw.get(what))
        return (
            None
            if said is None
            else {**raw, what: said, why: field(raw, why, text, "", place=here, notes=notes)}
        )

    return entries({key: objects}, key, statement, place=place, notes=notes)


def _high_value(raw: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    content = text(raw.get("content"))
    if content is None:
        return None
    return {
        **_with_options(raw, place, notes, carried=_flag, injected=_flag),
        "content": content,
        "relevance_score": field(raw, "relevance_score", fraction, NEW_RELEVANCE, place=place, notes=notes),
        "type": field(raw, "type", text, "observation", place=place, notes=notes),
    }


def _pattern(raw: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    said = text(raw.get("pattern"))
    if said is None:
        return None
    pattern_id = field(raw, "id", text, _id_from_place("pattern", place), place=place, notes=notes)
    made = field(raw, "created_at", instant, instant_in(pattern_id), place=place, notes=notes)
    return {
        **raw,
        "id": pattern_id,
        "type": field(raw, "type", _pattern_type, "preference", place=place, notes=notes),
        "pattern": said,
        "confidence": field(raw, "confidence", fraction, NEW_CONFIDENCE, place=place, notes=notes),
        "occurrences": max(1, field(raw, "occurrences", whole, 1, place=place, notes=notes)),
        "created_at": made,
        "last_seen": field(raw, "last_seen", instant, made, place=place, notes=notes),
        "associative_links": _links(raw, pattern_id, made, place, notes),
        "metadata": _pattern_metadata(raw, place, notes),
    }


def _pattern_type(value: Any) -> str | None:
    return value if value in PATTERN_TYPES else None


def _pattern_metadata(raw: JsonObject, place: str, notes: Notes) -> JsonObject:
    metadata = field(raw, "metadata", mapping, {}, place=place, notes=notes)
    here = f"{place}/metadata"
    phases = []
    for at, related in enumerate(field(metadata, "related_phases", listing, [], place=here, notes=notes)):
        phase = phase_number(related)
        if phase is None:
            set_aside(notes, f"{here}/related_phases/{at}", related, "a phase")
        else:
            phases.append(phase)
    return {
        **_with_options(metadata, here, notes, evidence=_objects),
        "context": field(metadata, "context", text, "", place=here, notes=notes),
        "related_castes": texts(metadata, "related_castes", place=here, notes=notes),
        "related_phases": phases,
    }
