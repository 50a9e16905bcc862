"""Search: find entries in the three layers and the archive, and count the accesses.

Ranking is in `memory.search`, the index of the archive in `store.search_index`; it can be rebuilt at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from aether import clock
from aether.api.home import Home, change, copied, find, now, read
from aether.errors import LockTimeout, NotFound, StorageFailed, shown
from aether.memory import items
from aether.memory.search import LIMIT, search
from aether.store import archive as store_archive
from aether.store.commit import Author
from aether.store.search_index import EMPTY, Archive, Found, Query, Source, indexed_source, plain_text
from aether.store.snapshot import Snapshot
from aether.types import Change, JsonObject


def search_memory(
    query: str,
    limit: int | None = LIMIT,
    *,
    layers: Iterable[str] = (),
    types: Iterable[str] = (),
    phase: int | str | None = None,
    caste: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    by_layer: bool = False,
    context: int = 0,
    home: Home = None,
) -> list[JsonObject]:
    """Return the entries that match `query`, best first, and count an access of each.

    Each hit has id, layer, type, content, relevance (0 to 1), score, and the whole entry.

    `limit` is the number of hits to return, by layer if `by_layer`; None returns all. `layers`, `types`,
    `phase`, `caste`, `since` and `until` (excluded) filter the entries. `by_layer` orders by layer, relevance and
    time instead of by score. `context` adds that many neighbours in time to each hit
    on either side.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    place = find(home)
    snapshot = read(place)
    at = now()
    hits = search(
        snapshot.documents["memory"], query, now=at, archived=searchable_archive(snapshot), limit=limit, layers=layers,
        types=types, phase=phase, caste=caste, since=_time(since, "since"), until=_time(until, "until"),
        by_layer=by_layer, context=context,
    )  # fmt: skip
    found = [hit["id"] for hit in hits if hit["layer"] == "working_memory"]
    if found:
        # A home that cannot be written can still be searched.
        with contextlib.suppress(StorageFailed, LockTimeout):
            count_access(place, found, at)
    return [copied(hit) for hit in hits]


def find_by_id(id: str, *, home: Home = None) -> JsonObject:
    """Return the hit for the item, session or pattern with this id, in whichever layer or archive it is.

    Raises:
        NotFound: nothing has this id.
    """
    snapshot = read(home)
    source = searchable_archive(snapshot)
    for hit in search(snapshot.documents["memory"], id, now=now(), archived=source, limit=1):
        if hit["id"] == id:
            found: JsonObject = copied(hit)
            return found
    raise NotFound(
        f"{shown(id)} is in no layer and not in the archive.",
        fix='See "aether memory search".',
        where="memory",
    )


def _time(given: str | datetime | None, where: str) -> datetime | None:
    return clock.parse(given, where=where) if isinstance(given, str) else given


def searchable_archive(snapshot: Snapshot) -> Source:
    """Return the archive of `snapshot` as a source for searches: indexed if possible, without forgotten entries."""
    head = store_archive.head(snapshot, "items")
    if head < 0:
        return EMPTY
    archive = Archive(head, lambda after: store_archive.records(snapshot, "items", after=after))
    return _without_forgotten(
        indexed_source(snapshot.home / "index.sqlite", archive),
        items.forgotten_ids(snapshot.documents["memory"]),
    )


def _without_forgotten(whole: Source, forgotten: frozenset[str]) -> Source:
    """Return `whole` without the entries whose ids are `forgotten`."""
    if not forgotten:
        return whole
    hidden = frozenset(map(plain_text, forgotten))  # as rows of the index spell them

    def find(ask: Query) -> Found:
        found = whole.find(ask)
        return found._replace(candidates=[each for each in found.candidates if each.row.id not in hidden])

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        stored = whole.read(places)
        return {
            place: each for place, each in stored.items() if plain_text(each["item"].get("id")) not in hidden
        }

    return Source(find, read)


def count_access(home: Home, ids: list[str], at: datetime) -> None:
    """Count one access of each of the items `ids` that are still in working memory."""

    def plan(documents: Mapping[str, object]) -> Change:
        memory = documents["memory"]
        return items.record_access(memory, ids, now=at) if isinstance(memory, dict) else Change({})

    change(home, plan, Author("access"))
