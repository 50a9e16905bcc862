"""Entries of memory as a person looks at them: one with its state, its links both ways and its history, and the newest.

Looking counts no access. Settling, correcting and forgetting an entry are in `review`, `working` and `forget`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from aether import clock
from aether.api.home import Home, copied, counter_of, read
from aether.api.recall import full
from aether.errors import NotFound, require_one_of
from aether.memory import layers
from aether.memory import layers as lines
from aether.memory.briefing import kept
from aether.memory.items import SUPERSEDES, forgotten_ids, items_of
from aether.memory.layers import RecallLine, instant_text
from aether.memory.sessions import ended_in, sessions_of
from aether.search.archive import searchable_archive
from aether.search.index import Query
from aether.search.rank import LAYERS
from aether.store.snapshot import Snapshot
from aether.store.undo import EntryChange, entry_changes
from aether.text.similarity import nearest
from aether.types import Counter, EndState, JsonObject

# Archived entries that are read at a time where most of them may be of another type or time.
READ_AT_ONCE = 500


class End(NamedTuple):
    """One end of a link, as the entry at the other end sees it."""

    id: str
    type: str
    """The type of the link, or what else joins the two: evidence, compressed into, supersedes."""
    out: bool
    """Whether the link leads from the entry that was asked about to this one."""
    text: str
    """The text of this end on one line; empty if it is in no layer."""


class About(NamedTuple):
    """What memory knows about one entry."""

    id: str
    layer: str
    """Empty if it is in memory no more: then its last text is of the history."""
    type: str
    at: str
    tokens: int
    text: str
    state: str
    """`in force`, `superseded`, `resolved`, `revoked`, `archived` or `forgotten`."""
    by: str
    """The id of the entry that supersedes it."""
    entry: JsonObject
    links: list[End]
    again: str = ""
    """Of an ended entry: the id of one in force that says the same, so that a brief may have its words all the same."""


def about(id: str, *, home: Home = None) -> About:
    """Return the item, session, pattern or archived entry with this id: its text, its state and its links both ways.

    Raises:
        NotFound: neither memory nor its history has this id.
    """
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    try:
        (hit,) = full([id], home=snapshot.home)
    except NotFound:
        history, _ = entry_changes(snapshot, id, most=1)
        if not history or history[0].before is None:
            raise
        hit = _past(id, history[0].before, counter_of(memory))
    links = [*_links(memory, id, hit["entry"])]
    successor = next((end.id for end in links if end.type == SUPERSEDES and not end.out), "")
    ended = kept.ends_in(memory).get(id)
    successor = successor or (ended["by"] if ended and ended["how"] == "superseded" else "")
    fields = {name: hit[name] for name in ("id", "layer", "type", "at", "tokens", "text", "entry")}
    state = _state(memory, hit, successor)
    again = _said_again(memory, hit) if state in get_args(EndState) else ""
    result: About = copied(About(**fields, state=state, by=successor, links=links, again=again))
    return result


def changes(id: str, *, home: Home = None) -> tuple[list[EntryChange], bool]:
    """Return the newest changes of an entry of the journal, newest first, and whether these are all of them."""
    matches, complete = entry_changes(read(home), id)
    return copied(matches), complete


def _past(id: str, last: JsonObject, count: Counter) -> JsonObject:
    """Return an entry of the history as `full` returns one that is still there."""
    text = str(last.get("content") or last.get("pattern") or last.get("summary") or "")
    compressed_at = (
        last.get("compressed_at")
        or last.get("last_seen")
        or (last.get("metadata") or {}).get("timestamp", "")
    )
    kind = last.get("type") or "session"
    return {
        "id": id, "layer": "", "type": kind, "at": compressed_at, "tokens": count(text), "text": text, "entry": last,
    }  # fmt: skip


def _state(memory: Mapping[str, Any], hit: Mapping[str, Any], ended_by: str) -> str:
    if ended_by:
        return "superseded"
    if not hit["layer"] or hit["id"] in forgotten_ids(memory):
        return "forgotten"
    if end := kept.ends_in(memory).get(hit["id"]):
        return end["how"]
    return "archived" if hit["layer"] == "archive" else "in force"


def _said_again(memory: Mapping[str, Any], hit: JsonObject) -> str:
    """Return the id of an item, a pattern or a session that still says what a revoked entry says; empty without one."""
    ended = kept.revoked_in(memory)
    statements = [
        (item["content"], item["id"])
        for item in items_of(memory)
        if item["id"] not in ended and item["type"] == hit["type"]
    ]
    statements += [
        (pattern["pattern"], pattern["id"])
        for pattern in memory["long_term_memory"]["patterns"]
        if pattern["id"] not in ended
    ]
    for session in sessions_of(memory):
        texts = [high_value_item["content"] for high_value_item in session["high_value_items"]]
        statements += [(text, session["session_id"]) for text in texts if not ended_in(session, text)]
    near = nearest(hit["text"], [text for text, _ in statements])
    return statements[near[0].at][1] if near else ""


def _links(memory: Mapping[str, Any], id: str, entry: Mapping[str, Any]) -> Iterator[End]:
    """Yield what the entry leads to, and what leads to it."""
    texts = {record.id: record.text for record in layers.records(memory)}

    def end(other: str, kind: str, *, out: bool) -> End:
        return End(other, kind, out, lines.excerpt(texts.get(other, "")))

    for other, kind in _leads_to(entry):
        yield end(other, kind, out=True)
    for record in layers.records(memory):
        if record.id != id:
            for other, kind in _leads_to(record.value):
                if other == id:
                    yield end(record.id, kind, out=False)


def _leads_to(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the id and the kind of each link that an entry holds."""
    metadata = entry.get("metadata") or {}
    for link in entry.get("associative_links") or ():
        yield str(link["target_id"]), str(link["link_type"])
    if isinstance(metadata.get(SUPERSEDES), str):
        yield metadata[SUPERSEDES], SUPERSEDES
    linked = {str(link["target_id"]) for link in entry.get("associative_links") or ()}
    shows = metadata.get("evidence")
    for support in shows if isinstance(shows, list) else ():
        if support["session_id"] not in linked:
            yield str(support["session_id"]), "evidence"


class Newest(NamedTuple):
    """Some of the newest entries of a layer."""

    lines: list[RecallLine]
    total: int
    """How many there are; of the archive with types or times only how many were found, for the others are not read."""
    more: bool
    """Whether there are older ones."""
    complete: bool = True
    """Whether `total` is all of them."""


def newest(
    *,
    layer: str = "",
    types: Sequence[str] = (),
    since: str = "",
    until: str = "",
    start: int = 0,
    limit: int = 50,
    home: Home = None,
) -> Newest:
    """Return `limit` entries from number `start` on, the newest first: of one layer, without one of the three live ones.

    `since` and `until` (excluded) are times. Of the archive no more is read than is returned, unless `types` or times
    are asked for.

    Raises:
        InvalidInput: there is no such layer, or a time cannot be read.
    """
    if layer:
        require_one_of(layer, LAYERS, "a layer", where="layer")
    first, end = (
        clock.stamp(clock.parse(text, where=name)) if text else ""
        for name, text in (("since", since), ("until", until))
    )

    def is_wanted(record: layers.Record) -> bool:
        text = instant_text(record.at)
        return (not types or record.type in types) and text >= first and (not end or text < end)

    snapshot = read(home)
    memory = snapshot.documents["memory"]
    count = counter_of(memory)
    if layer == "archive":
        selected = is_wanted if types or first or end else None
        page, total, complete = _archived(snapshot, selected, start, limit)
    else:
        records = [
            record for record in layers.records(memory) if layer in ("", record.layer) and is_wanted(record)
        ]
        records.sort(key=lambda record: record.at, reverse=True)
        page, total, complete = records[start : start + limit], len(records), True
    page_lines = [lines.recall_line(record, count=count) for record in page[:limit]]
    return Newest(page_lines, total, total > start + len(page_lines), complete)


def _archived(
    snapshot: Snapshot, is_wanted: Callable[[layers.Record], bool] | None, start: int, limit: int
) -> tuple[list[layers.Record], int, bool]:
    """Return archived entries, the newest first, how many there are or were found, and whether these are all."""
    source = searchable_archive(snapshot)
    total = source.find(Query((), ())).items
    places = range(total - 1, -1, -1)
    if is_wanted is None:
        page_places = places[start : start + limit]
        stored = source.read(list(page_places))
        return (
            [
                layers.item_record(stored[position]["item"], "archive")
                for position in page_places
                if position in stored
            ],
            total,
            True,
        )
    chosen: list[layers.Record] = []
    for first in range(0, total, READ_AT_ONCE):
        part = places[first : first + READ_AT_ONCE]
        stored = source.read(list(part))
        candidates = (
            layers.item_record(stored[position]["item"], "archive") for position in part if position in stored
        )
        chosen += [record for record in candidates if is_wanted(record)]
        if len(chosen) > start + limit:
            break
    else:
        return chosen[start : start + limit + 1], len(chosen), True
    return chosen[start : start + limit + 1], len(chosen), False


def known_types(*, home: Home = None) -> list[str]:
    """Return the types of the entries of the three live layers, in order."""
    memory = read(home).documents["memory"]
    patterns = memory["long_term_memory"]["patterns"]
    sessions = ["session"] if sessions_of(memory) else []
    return sorted(
        {*(item["type"] for item in items_of(memory)), *(pattern["type"] for pattern in patterns), *sessions}
    )
