"""The archive of a home as a source for searches: indexed if possible, without what is forgotten or undone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from aether.memory import items
from aether.memory.layers import plain_text
from aether.search.index import (
    EMPTY,
    Archive,
    Candidate,
    Found,
    Query,
    Source,
    indexed_source,
    of_conversations,
)
from aether.store import record_files, search_index
from aether.store.snapshot import Snapshot, load
from aether.types import JsonObject


def searchable_archive(snapshot: Snapshot, late: Callable[[], None] | None = None) -> Source:
    """Return the archive of `snapshot` as a source for searches: indexed if possible, without forgotten entries.

    A caller that cannot wait gives `late`, see `indexed_source`.
    """
    archive = archive_of(snapshot)
    if archive.head < 0:
        return EMPTY
    source = indexed_source(snapshot.home / search_index.FILE, archive, late)
    memory = snapshot.documents["memory"]
    is_shown = shown_ids(memory)
    forgotten = items.forgotten_parts(memory)

    def find(query: Query) -> Found:
        answer = source.find(query)
        visible = [candidate for candidate in answer.candidates if is_shown(candidate.id)]
        if forgotten:
            visible = [
                visible_part
                for conversation in visible
                if (visible_part := _without_forgotten(conversation, forgotten, query))
            ]
        placed = _with_places([candidate.record for candidate in visible], memory)
        visible = [
            conversation._replace(record=record) for conversation, record in zip(visible, placed, strict=True)
        ]
        return answer._replace(candidates=visible)

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        visible = {
            place: items.left_of(record, forgotten)
            for place, record in source.read(places).items()
            if is_shown(plain_text(record["item"].get("id")))
        }
        return dict(zip(visible, _with_places([*visible.values()], memory), strict=True))

    return Source(find, read)


def archive_of(snapshot: Snapshot) -> Archive:
    """Return the archived items of `snapshot`, as the index reads them."""
    return Archive(
        record_files.head(snapshot),
        lambda after: record_files.located(snapshot, "items", after=after),
        lambda offsets: record_files.fetch(snapshot, "items", offsets),
    )


def records_of_conversations(
    snapshot: Snapshot, names: Collection[str]
) -> tuple[int, Collection[JsonObject]] | None:
    """Return the archive's records of the conversations with these names up to a position, and that position.

    A name is an id, a title or a file. None if that would take reading the whole archive.
    """
    archive = archive_of(snapshot)
    indexed = of_conversations(snapshot.home / search_index.FILE, archive, names)
    return indexed and (indexed[0], archive.fetch(indexed[1]).values())


def main(words: Sequence[str]) -> None:
    """Bring the search index of the home named in `words` up to date, for a hook that does not wait for it."""
    searchable_archive(load(Path(*words))).find(Query((), ()))


def shown_ids(memory: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return the test whether an archived item may be found, by its id as rows of the index spell it.

    It is not forgotten, and no passage of an import that was undone.
    """
    hidden = frozenset(map(plain_text, items.forgotten_ids(memory)))
    places = items.known_places(memory)
    return lambda name: name not in hidden and items.is_kept(name, places)


def _without_forgotten(
    candidate: Candidate, forgotten: Mapping[str, set[str]], query: Query
) -> Candidate | None:
    """Return a candidate without its forgotten parts; None if no term of the query is left."""
    if candidate.id not in forgotten:
        return candidate
    rest = candidate._replace(record=items.left_of(candidate.record, forgotten))
    is_found = rest.terms_in(query.terms) or not candidate.terms_in(query.terms)
    return rest if is_found else None


def _with_places(records: list[JsonObject], memory: Mapping[str, Any]) -> list[JsonObject]:
    """Return archived records; a passage of an earlier release gets project and title of others of its conversation."""
    bare = [number for number, record in enumerate(records) if _is_bare_passage(record.get("item") or {})]
    if not bare:
        return records
    places: dict[str, dict[str, str]] = {}
    for item in (*items.items_of(memory), *(record.get("item") or {} for record in records)):
        metadata = item.get("metadata") or {}
        place = {name: metadata[name] for name in ("project", "title") if metadata.get(name)}
        places.setdefault(str(metadata.get("conversation", "")), {}).update(place)
    placed = [*records]
    for number in bare:
        item = records[number]["item"]
        metadata = places[item["metadata"]["conversation"]] | item["metadata"]
        placed[number] = {**records[number], "item": {**item, "metadata": metadata}}
    return placed


def _is_bare_passage(item: JsonObject) -> bool:
    metadata = item.get("metadata") or {}
    is_of_conversation = isinstance(metadata.get("conversation"), str)
    return item.get("type") == items.HISTORY and is_of_conversation and "title" not in metadata


if __name__ == "__main__":
    main(sys.argv[1:])
