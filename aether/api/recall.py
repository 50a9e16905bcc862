"""Search and recall: entries that match a query in full, or an index of them, their neighbours in time, and single entries.

Each step of recall says its cost in tokens, so that a model reads no more than it needs. Ranking is in `search.rank`; what a prompt recalls by itself is in `api.prompt_recall`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aether import clock
from aether.api import hook_sessions
from aether.api.home import Home, copied, counter_of, find, instant, note_reading, now, read
from aether.errors import AetherError, InvalidInput, NotFound, public, shown
from aether.memory import items
from aether.memory import layers as lines
from aether.memory.layers import RecallLine, Record, item_record, plain_text, records
from aether.memory.sessions import find_session, session_sections, session_text
from aether.memory.statements import end_of
from aether.search.archive import searchable_archive, shown_ids
from aether.search.index import Candidate, Found, Query, Source
from aether.search.rank import LIMIT, asks_for_state, best_passage, search
from aether.search.texts import SearchEntry, search_entries
from aether.store import places, record_files
from aether.store.snapshot import Snapshot
from aether.text.words import query_terms, terms, with_synonyms
from aether.types import KIND_OF_TYPE, Change, Counter, JsonObject

if TYPE_CHECKING:
    from aether.store import archive_store
    from aether.types import Hit

__all__ = ["RecallLine", "find_by_id", "full", "recall", "search_memory", "timeline"]

# The live entries of the last search in a home, by the `id()` of their objects.
_ENTRIES: dict[Path, dict[int, SearchEntry]] = {}
# The type of a hit that is an archived conversation.
CONVERSATION = "conversation"
# The sections of a start about the work in progress.
_OF_WORK = frozenset({"state", "next", "open", "request"})
# Hours after which a turn counts as ended, though no event said so.
ASKING_HOURS = 1
# The places of archived conversations are behind those of all items; so many of them may answer a query.
_CONVERSATIONS, _MOST_CONVERSATIONS = 1 << 60, 20
# Characters of the part of an archived conversation that is compared and shown.
_PART_CHARS = 2_000


@public
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
    project: str | None = None,
    conversation: str | None = None,
    by_layer: bool = False,
    context: int = 0,
    evidence: bool = False,
    access: bool = True,
    home: Home = None,
) -> list[Hit]:
    """Return the entries that match `query`, best first, and count an access of each unless `access` is off.

    Each hit has id, layer, type, content, the `passage` of it that answers, relevance (0 to 1), score, the whole entry, and
    as far as they are known the speaker, project, conversation and title.

    `limit` is the number of hits to return, by layer if `by_layer`; None returns all. The default is 20, and of each layer
    the `search.max_results_per_layer` of the home. `layers`, `types`, `phase`, `caste`, `since`, `until` (excluded; times,
    or texts such as `7d`), `project` (a part of its directory) and `conversation` (a part of its id, title or file) filter
    the entries. `by_layer` orders by layer, relevance and
    time instead of by score. `context` adds that many neighbours in time to each hit
    on either side, `evidence` the reasons of each score. A home of fewer than 200 live entries of which none has a word of the query answers with up to three guesses,
    marked `weak`.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    place = find(home)
    snapshot = read(place)
    time = now()
    hits = search(
        snapshot.documents["memory"], query, now=time, archived=_with_conversations(searchable_archive(snapshot), place, query), limit=limit, layers=layers,
        types=types, phase=phase, caste=caste, since=instant(since, at=time, where="since"), until=instant(until, at=time, where="until"),
        project=project, conversation=conversation, by_layer=by_layer, context=context, evidence=evidence,
        asking=_asking(snapshot, time), entries=_live_entries(snapshot),
        first=_state_of_work(snapshot, time) if isinstance(query, str) and asks_for_state(query) else (),
    )  # fmt: skip
    accessed = [hit["id"] for hit in hits if hit["layer"] == "working_memory" and not hit.get("weak")]

    def record(documents: Mapping[str, object]) -> Change:
        memory = documents["memory"]
        return items.record_access(memory, accessed, now=time) if isinstance(memory, dict) else Change({})

    if access:
        places.note_recall(place, places.SEARCH, sum(not hit.get("weak") for hit in hits))
    if accessed and access:
        # A home that cannot be written can still be searched.
        with suppress(AetherError):
            note_reading(place, record)
    count = counter_of(snapshot.documents["memory"])
    return [_with_cost(copied(hit), count) for hit in hits]


def _state_of_work(snapshot: Snapshot, moment: datetime) -> list[str]:
    """Return the ids of the entries from which a start of a session has the state of the work and what comes next."""
    from aether.memory.briefing import briefing

    count = counter_of(snapshot.documents["memory"])
    shown_lines = briefing.brief_lines(
        snapshot.documents, occasion="startup", now=moment, count=count, budget=briefing.MOST_TOKENS
    )
    return [entry_id for line in shown_lines if line.kind in _OF_WORK for entry_id in line.ids]


def _live_entries(snapshot: Snapshot) -> list[SearchEntry]:
    """Return the entries of the layers as search reads them; those of unchanged objects are kept from the last search."""
    cached = _ENTRIES.get(snapshot.home, {})
    entries = [*search_entries(snapshot.documents["memory"], cached)]
    _ENTRIES[snapshot.home] = {id(entry.value): entry for entry in entries}
    return entries


def _asking(snapshot: Snapshot, time: datetime) -> set[str]:
    """Return the ids of the requests that sessions of Claude Code are answering: a search is part of that, not its result.

    A turn that was interrupted never ends, so its request counts for `ASKING_HOURS` only.
    """
    first = clock.stamp(time - timedelta(hours=ASKING_HOURS))
    newest: dict[str, tuple[str, str]] = {}
    for item in items.items_of(snapshot.documents["memory"]):
        metadata = item["metadata"]
        if item["type"] == "user_input" and metadata.get("conversation") and metadata["timestamp"] >= first:
            stamped = (metadata["timestamp"], item["id"])
            newest[metadata["conversation"]] = max(stamped, newest.get(metadata["conversation"], stamped))
    return {
        item_id for name, (_, item_id) in newest.items() if hook_sessions.is_answering(snapshot.home, name)
    }


def _with_cost(hit: Hit, count: Counter) -> Hit:
    """Return `hit` with the cost of its full text, and its gist."""
    text = session_text(hit["entry"]) if hit["layer"] == "short_term_memory" else hit["content"]
    tokens = hit["entry"].get("token_count") if hit["layer"] in ("working_memory", "archive") else None
    complete: Hit = {**hit, "tokens": tokens or count(text), "gist": lines.excerpt(text)}
    level = (hit["entry"].get("metadata") or {}).get("level") if hit["type"] == CONVERSATION else None
    if level:
        complete |= {"level": level, "gist": f"[{level}] {complete['gist']}"}
    return complete


def _with_conversations(source: Source, home: Path, query: str) -> Source:
    """Return `source` with the archived conversations that hold words of `query` or are named by it, each by the part that matches."""
    from aether.store import archive_store

    if archive_store.is_empty(home):
        return source
    weights = with_synonyms(query_terms(query))[0].weights
    by_name = [archive_store.find(home, word) for word in dict.fromkeys((query.strip(), *query.split()))]
    rows = [row for row, _ in archive_store.search(home, weights, limit=_MOST_CONVERSATIONS)]
    conversations = {
        _CONVERSATIONS + nth: {"item": item}
        for nth, row in enumerate(dict.fromkeys([*filter(None, by_name), *rows]))
        if (item := _conversation_item(home, row, weights))
    }

    def find(ask: Query) -> Found:
        answer = source.find(ask)
        added = [Candidate(place, record) for place, record in conversations.items()]
        length = answer.length + sum(candidate.row.length for candidate in added)
        return answer._replace(
            items=answer.items + len(added), length=length, candidates=[*answer.candidates, *added]
        )

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        below = source.read([place for place in places if place < _CONVERSATIONS - len(conversations)])
        return below | {place: conversations[place] for place in places if place in conversations}

    return Source(find, read)


def _conversation_item(
    home: Path, row: archive_store.Row, weights: Mapping[str, float] | None
) -> JsonObject | None:
    """Return an archived conversation as an item: the message that holds most of the query, or without one all of it."""
    from aether.redact.redact import redact
    from aether.store import archive_store

    try:
        texts = [*archive_store.texts(archive_store.read(home, row.name)["content"])] or [row.title]
    except (AetherError, KeyError):
        return None  # `doctor` names it
    if weights is None:
        content = "\n\n".join(texts)
    else:
        best = max(
            texts,
            key=lambda text: sum(weights.get(word, 0.0) for word in {*terms(text).words, *terms(text).parts}),
        )
        content = best if len(best) <= _PART_CHARS else best_passage([best], weights)
    return {
        "id": row.id, "type": CONVERSATION, "content": redact(content), "token_count": 0, "associative_links": [],
        "metadata": {
            "timestamp": row.since or row.created_at, "relevance_score": 0.5, "conversation": row.id, "title": row.title,
            "level": row.level,
        },
    }  # fmt: skip


def find_by_id(id: str, *, home: Home = None) -> Hit:
    """Return the hit for the item, session or pattern with this id, in whichever layer or archive it is.

    Raises:
        NotFound: nothing has this id.
    """
    snapshot = read(home)
    source = _with_conversations(searchable_archive(snapshot), snapshot.home, id)
    for hit in search(snapshot.documents["memory"], id, now=now(), archived=source, limit=1):
        if hit["id"] == id:
            return _with_cost(copied(hit), counter_of(snapshot.documents["memory"]))
    raise NotFound(
        f"{shown(id)} is in no layer and not in the archive.",
        fix='See "aether memory search".',
        where="memory",
    )


def sections_of(session_id: str, *, home: Home = None) -> dict[str, list[str]]:
    """Return what a session, live or archived, says under headings, in order; nothing without such a session."""
    snapshot = read(home)
    session = find_session(snapshot.documents["memory"], session_id)
    if session is None:
        source = searchable_archive(snapshot)
        places = [
            candidate.place for candidate in source.find(Query((), (plain_text(session_id),))).candidates
        ]
        stored = source.read(places)
        sessions = [stored[place].get("session") for place in sorted(stored)]
        session = sessions[-1] if sessions else None
    return session_sections(session) if session else {}


class RecallHit(dict[str, Any]):
    """A `Hit` whose fields are attributes too, as they are of a `RecallLine`."""

    def __getattr__(self, name: str) -> Any:
        """Return the field `name`.

        Raises:
            AttributeError: it has no such field.
        """
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@public
def recall(
    query: str,
    *,
    limit: int = 10,
    budget: int | None = None,
    types: Iterable[str] = (),
    phase: int | str | None = None,
    caste: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    project: str | None = None,
    conversation: str | None = None,
    evidence: bool = False,
    home: Home = None,
) -> list[Hit]:
    """Return the entries about `query`, best first; with `budget`, those whose lines in an index cost at most that.

    The hits are those of `search_memory`, fewer by default, filtered by the same options; their fields are attributes, too.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    if budget is not None and budget < 1:
        raise InvalidInput(
            f"budget is {budget}.", fix="Use a number of tokens, or none for no bound.", where="recall"
        )
    hits = search_memory(
        query, limit, types=types, phase=phase, caste=caste, since=since, until=until, project=project,
        conversation=conversation, evidence=evidence, home=home,
    )  # fmt: skip
    if budget is not None:
        count = counter_of(read(home).documents["memory"])
        hits = hits[: len(lines.fit_lines([*map(lines.hit_line, hits)], budget, count))]
    return [cast("Hit", RecallHit(hit)) for hit in hits]


def types_in(layers: Iterable[str] = (), *, home: Home = None) -> set[str]:
    """Return the types of the entries in `layers` (empty: all), and the words of a timeline for several of them."""
    from aether.store import archive_store

    snapshot, layers_wanted = read(home), {*layers}
    memory = snapshot.documents["memory"]
    is_shown = shown_ids(memory)
    archived = (
        record["item"]
        for _, record in record_files.records(snapshot, "items")
        if record.get("why") != items.REMOVED and is_shown(plain_text(record["item"].get("id")))
    )
    types = {
        record_.type for record_ in records(memory) if not layers_wanted or record_.layer in layers_wanted
    }
    if not layers_wanted or "archive" in layers_wanted:
        types |= {str(item["type"]) for item in archived}
        types |= {CONVERSATION} if next(iter(archive_store.rows(snapshot.home)), None) else set()
    return types | {str(KIND_OF_TYPE[name]) for name in types & KIND_OF_TYPE.keys()}


def timeline(id: str, *, before: int = 3, after: int = 3, home: Home = None) -> list[RecallLine]:
    """Return the entry `id`, or the archived conversation of that name, among its neighbours in time, oldest first.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: a number of neighbours is negative.
    """
    for name, value in (("before", before), ("after", after)):
        if value < 0:
            raise InvalidInput(f"{name} is {value}.", fix="Use a whole number from 0.", where="timeline")
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    source = searchable_archive(snapshot)
    stored = source.read(list(range(source.find(Query((), ())).items)))
    entries = [
        *records(memory, (stored[place] for place in sorted(stored))),
        *_conversation(snapshot.home, id),
    ]
    near = lines.neighbours(entries, id, before=before, after=after)
    if not near:
        raise _unknown(id)
    count = counter_of(memory)
    return [lines.recall_line(record, count=count) for record in near]


def full(ids: Sequence[str], *, access: bool = True, home: Home = None) -> list[JsonObject]:
    """Return the entries `ids` in full, in that order: id, layer, type, at, tokens, text, and the stored entry.

    That they were opened is noted unless `access` is off.

    Raises:
        NotFound: nothing has one of these ids.
    """
    snapshot = read(home)
    count = counter_of(snapshot.documents["memory"])
    records_by_id = {record.id: record for record in _by_id(snapshot, ids)}
    for missing in (entry_id for entry_id in ids if entry_id not in records_by_id):
        raise _unknown(missing)
    if access:
        places.note_recall(snapshot.home, places.OPEN, len(records_by_id))
    return [
        {
            "id": record.id, "layer": record.layer, "type": record.type, "at": record.at, "text": record.text,
            "tokens": record.tokens or count(record.text), "entry": copied(record.value),
            **({"ended": ended} if (ended := end_of(record.value)) else {}),
        }
        for record in (records_by_id[entry_id] for entry_id in ids)
    ]  # fmt: skip


def _unknown(id: str) -> NotFound:
    return NotFound(
        f"{shown(id)} is in no layer and not in the archive.",
        fix='See "aether recall QUERY".',
        where="recall",
    )


def _by_id(snapshot: Snapshot, ids: Sequence[str]) -> Iterator[Record]:
    """Yield the entries with these ids, in no order; the archive is read only for those that are not live."""
    missing = set(ids)
    for record in records(snapshot.documents["memory"]):
        if record.id in missing:
            missing.discard(record.id)
            yield record
    if not missing:
        return
    source = searchable_archive(snapshot)
    candidates = source.find(Query((), tuple(sorted(map(plain_text, missing))))).candidates
    stored = source.read([candidate.place for candidate in candidates])
    yield from records(
        {"working_memory": {"items": []}, "short_term_memory": {"sessions": []}, "long_term_memory": {"patterns": []}},
        (stored[place] for place in sorted(stored)),
    )  # fmt: skip
    for name in missing:
        yield from _conversation(snapshot.home, name)


def _conversation(home: Path, id: str) -> Iterator[Record]:
    """Yield the archived conversation `id` as a record, nothing without one."""
    from aether.store import archive_store

    row = archive_store.find(home, id)
    item = _conversation_item(home, row, None) if row else None
    if item:
        yield item_record(item, "archive")
