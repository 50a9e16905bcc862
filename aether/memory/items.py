"""Working memory: its items and their token threshold.

The document is `memory`, its part `working_memory`. Guaranteed: `current_tokens` is the sum of the
items' `token_count`; below the hard limit adding evicts nothing, and at the limit the least recently used
items that are not protected move to the archive in the same transaction. Compression is needed when
`current_tokens` reaches `max_capacity_tokens * eviction_threshold_percent // 100`.

`examine` checks the derived values of memory (the sum of the tokens, the number of sessions, the average ratio), and
what the schema cannot express: repeated ids, and more tokens than allowed.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aether import clock
from aether.errors import BudgetExceeded, InvalidInput, NotFound, shown
from aether.memory.colony import check_phase, phase_number
from aether.memory.sessions import average_ratio, compression_ratio, session_text, sessions_of, without_parts
from aether.store.patch import apply, get, join_changes
from aether.tokens.counters import session_tokens
from aether.types import KIND_OF_TYPE, Change, Finding

if TYPE_CHECKING:
    from aether.clock import NewId
    from aether.types import Counter, Evidence, Item, JsonObject, Patch

DOCUMENT = "memory"
PART = "/working_memory"
DEFAULT_RELEVANCE = 0.5
DEFAULT_SOURCE = "queen"
# An item's type, source and caste are words to filter by, not texts.
MAX_WORD_CHARS = 100
# The part of a passage that is the request at its head.
QUOTED = "request"
# Metadata that aether keeps itself: a caller sets these by arguments of their own, or not at all.
# `timestamp` may be given: an imported note has the time at which it was said, not that of the import.
RESERVED_FIELDS = frozenset({"relevance_score", "access_count", "last_accessed", "source", "caste"})
# The other metadata with a type in the schema: null counts as missing.
_FIELDS_OF_KIND: tuple[tuple[type, tuple[str, ...], str], ...] = (
    (bool, ("protected", "injected", "noted"), "Use true or false."),
    (dict, ("pointer", "fact", "proposal"), "Use an object."),
    (
        str,
        (
            "confirmed_by",
            "conversation",
            "corrected_at",
            "corrected_by",
            "ended_at",
            "ended_by",
            "evidence",
            "fate",
            "project",
            "reply",
            "role",
            "state",
            "title",
        ),
        "Use text.",
    ),
)
_TYPED_FIELDS = frozenset(
    {"timestamp", "phase", *(field for _, fields, _ in _FIELDS_OF_KIND for field in fields)}
)
ENTRY_FIELDS = frozenset({"content", "type", "relevance_score", "source", "caste", "phase", "metadata"})


# Earlier places of an item that was said again: of more only the keys are kept, by which an import knows what it has.
MOST_PLACES = 50
# Roles of whole states of their time, of which the newest holds: a plan, and the files under version control.
STATES = frozenset({"plan", "tree"})
# The type of the passages of a conversation, how their ids start, and who wrote those of a person: see `capture.passages`.
HISTORY, PASSAGE_PREFIX, PERSON = "history", "said_", "person"
# How the keys start of what was imported from a copy of a conversation in another transcript: see `api.dedupe`.
COPY_PREFIX = "copied "
# Why an item is archived that an undo, a restored snapshot or a hand edit took out.
REMOVED = "removed"
# The metadata by which an item names the entry whose place it took.
SUPERSEDES = "supersedes"
# What was found of an item before it was said again.
_ENDS = frozenset({"ended_at", "fate"})


class Added(NamedTuple):
    """The items that were added and evicted."""

    ids: list[str]
    evicted: list[str]
    """Ids of the items that the hard limit moved to the archive."""
    again: tuple[int, ...] = ()
    """Positions of the entries that their conversation had said before, of which `ids` has the items."""
    tokens: int = 0
    """Those of the other entries."""


def items_of(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items of working memory, in the order in which they were added."""
    items: list[Item] = memory["working_memory"]["items"]
    return items


def is_noted(item: Mapping[str, Any]) -> bool:
    """Return whether `item` was noted on purpose, by a command, a tool or a confirmation, rather than captured.

    >>> is_noted({"metadata": {}}), is_noted({"metadata": {"pointer": {"line": 7}}})
    (True, False)
    """
    metadata = item["metadata"]
    return bool(metadata.get("noted", not metadata.get("pointer")))


def forgotten_ids(memory: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of archived entries that were forgotten whole: nothing may find them any more."""
    return frozenset(entry["id"] for entry in memory.get("forgotten", []) if not entry.get("part"))


def forgotten_parts(memory: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the forgotten statements, such as `outcomes/2`, of archived sessions, and `QUOTED` of passages, by their ids."""
    parts: dict[str, set[str]] = {}
    for entry in memory.get("forgotten", []):
        if part := entry.get("part"):
            parts.setdefault(entry["id"], set()).add(part)
    return parts


class Place(NamedTuple):
    """A place in a transcript, up to which its words are kept."""

    line: int
    part: int
    """Number of the text on this line, from 1; 0 is that of an earlier release, which kept lines only."""


def known_places(memory: Mapping[str, Any]) -> dict[str, Place]:
    """Return the last kept place of each conversation whose words are kept."""
    return {entry["id"]: Place(entry["line"], entry.get("part", 0)) for entry in memory.get("history", [])}


def is_kept(id: str, known: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether the archived item `id` may be found: no passage, or one of an import that was not undone.

    >>> is_kept("wm_1", {}), is_kept("said_a.7-2.5", {"said_a": (7, 2)}), is_kept("said_a.7-3.7", {"said_a": (7, 2)})
    (True, True, False)
    """
    if not id.startswith(PASSAGE_PREFIX):
        return True
    key = id.partition(".")[0]
    place = passage_place(id)
    return place is not None and place <= known.get(key, (-1, 0))


def passage_place(id: str) -> Place | None:
    """Return the place in the id of a passage: `7-2` is the second text of line 7, `7` is of an earlier release."""
    line, _, part = id.partition(".")[2].partition(".")[0].partition("-")
    return Place(int(line), int(part or 0)) if line.isdecimal() and (part or "0").isdecimal() else None


def left_of(record: JsonObject, parts: Mapping[str, Collection[str]]) -> JsonObject:
    """Return the record of an archived session or passage without those of its parts that are forgotten."""
    item, session = record["item"], record.get("session")
    if item["id"] not in parts:
        return record
    if not session:
        answer = item["content"].partition("\n")[2] if QUOTED in parts[item["id"]] else item["content"]
        return {**record, "item": {**item, "content": answer}}
    shortened = without_parts(session, parts[item["id"]])
    return {**record, "item": {**item, "content": session_text(shortened)}, "session": shortened}


def checked_entry(
    content: str, type: str, relevance_score: float = DEFAULT_RELEVANCE, *,
    source: str = DEFAULT_SOURCE, caste: str | None = None, phase: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> JsonObject:  # fmt: skip
    """Return an entry: the fields of an item that do not depend on the moment of adding, checked.

    Raises:
        InvalidInput: content or type is missing, or a field is invalid.
    """
    if not isinstance(content, str) or not isinstance(type, str) or not content.strip() or not type.strip():
        raise InvalidInput(
            "content and type are required.", fix="Pass both as text that is not blank.", where="item"
        )
    for field, word in (("type", type), ("source", source), ("caste", caste)):
        if word is not None and (not isinstance(word, str) or not word or len(word) > MAX_WORD_CHARS):
            raise InvalidInput(
                f"{field} is {shown(word)}.",
                fix=f"Use a word of at most {MAX_WORD_CHARS} characters.",
                where="item",
            )
    if phase is not None:
        if isinstance(metadata, Mapping) and metadata.get("phase") not in (None, phase):
            raise InvalidInput(
                f"the phase is {shown(phase)}, and in metadata {shown(metadata['phase'])}.",
                fix="Give it once.",
                where="item",
            )
        metadata = {**(metadata or {}), "phase": phase}
    return {
        "content": content, "type": "constraint" if type == "rule" else type,
        "relevance_score": _relevance(relevance_score), "source": source, "caste": caste,
        "metadata": _checked_metadata(metadata),
    }  # fmt: skip


def _relevance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(
            f"relevance_score is {shown(value)}.", fix="Use a number from 0 to 1.", where="item"
        )
    return float(value)


def _checked_metadata(metadata: Any) -> JsonObject:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {shown(metadata)}.", fix="Use an object.", where="item")
    extra = {key: value for key, value in metadata.items() if value is not None or key not in _TYPED_FIELDS}
    for field in sorted(RESERVED_FIELDS & extra.keys()):
        raise InvalidInput(
            f"metadata.{field} is set by aether.",
            fix="Use the argument of that name, or leave it out.",
            where="item",
        )
    if "timestamp" in extra:
        extra["timestamp"] = clock.stamp(clock.parse(extra["timestamp"], where="metadata.timestamp"))
    if "phase" in extra:
        extra["phase"] = check_phase(extra["phase"])
    for kind, fields, fix in _FIELDS_OF_KIND:
        for field in fields:
            if not isinstance(extra.get(field, kind()), kind):
                raise InvalidInput(f"metadata.{field} is {shown(extra[field])}.", fix=fix, where="item")
    return extra


def checked_entries(entries: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Return `entries`, whose keys are the arguments of `checked_entry`, checked.

    Raises:
        InvalidInput: one of them is invalid; its position is named.
    """
    checked = []
    for place, entry in enumerate(entries):
        unknown = set(entry) - ENTRY_FIELDS if isinstance(entry, Mapping) else {"(not an object)"}
        if unknown:
            raise InvalidInput(
                f"{shown(min(unknown))} is not a field of an item.",
                fix=f"Use {', '.join(sorted(ENTRY_FIELDS))}.",
                where=f"items[{place}]",
            )
        try:
            checked.append(checked_entry(**{"content": "", "type": "", **entry}))
        except InvalidInput as reason:
            raise InvalidInput(reason.what, fix=reason.fix, where=f"items[{place}]") from reason
    return checked


def add(
    memory: Mapping[str, Any], entries: Sequence[JsonObject], *, now: datetime, new_id: NewId, count: Counter
) -> Change:
    """Return the change that adds checked entries; its result is an `Added`.

    What a conversation said before in the same words, and working memory still has, is that item again, at its newest
    time; `metadata.count` and `metadata.places` say how often and where it was said before.

    Raises:
        BudgetExceeded: they are larger than working memory, or only protected items could make room.
    """
    items = [
        new_item(
            entry,
            id=new_id("wm", now, nth),
            created_at=clock.stamp(now + timedelta(microseconds=nth)),
            count=count,
        )
        for nth, entry in enumerate(entries)
    ]
    coming = {words for item in items if (words := _words_of(item))}
    texts = {words[-1] for words in coming}
    live_items = enumerate(items_of(memory) if coming else ())
    places = {
        words: place
        for place, item in live_items
        if item["content"] in texts and (words := _words_of(item)) in coming
    }
    same_items = {words: items_of(memory)[place] for words, place in places.items()}
    ids, again = list[str](), list[int]()
    resulting: dict[str, Item] = {}
    for nth, new in enumerate(items):
        words = _words_of(new)
        item = _said_again(same_items[words], new) if words in same_items else new
        if words in same_items:
            again.append(nth)
            resulting.pop(item["id"], None)
        if words:
            same_items[words] = item
        resulting[item["id"]] = item
        ids.append(item["id"])
    replaced = sorted(places.values())
    change = add_made(_without(memory, replaced), [*resulting.values()], now=now)
    patch = [*removal(replaced), *change.patches[DOCUMENT]]
    repeats = {*again}
    tokens = sum(item["token_count"] for nth, item in enumerate(items) if nth not in repeats)
    added = Added(ids, change.result.evicted, tuple(again), tokens)
    return change._replace(patches={DOCUMENT: patch}, result=added)


def _words_of(item: Item) -> tuple[str, ...]:
    """Return what is the same in two captured items of one conversation with the same words; nothing of a state, and of others."""
    metadata = item["metadata"]
    pointer = metadata.get("pointer")
    if not isinstance(pointer, dict) or "key" not in pointer or metadata.get("role") in STATES:
        return ()
    place = (pointer.get("file"), metadata.get("conversation"), metadata.get("phase"), metadata["caste"])
    return (*map(str, place), item["type"], item["content"])


def _said_again(before: Item, now: Item) -> Item:
    """Return `before`, which was said again as `now`: one item, at the later of the two."""
    last, first = (
        (now, before) if now["metadata"]["timestamp"] >= before["metadata"]["timestamp"] else (before, now)
    )
    older, newer = first["metadata"], last["metadata"]
    pointer: Any = older["pointer"]
    place = {name: value for name, value in pointer.items() if name in ("line", "part", "uuid", "key")}
    count, places = before["metadata"].get("count", 1), before["metadata"].get("places", [])
    # A caller may have given fields of these names another meaning.
    places = [*places] if isinstance(places, list) else []
    place = {**place, "at": older["timestamp"]} if len(places) < MOST_PLACES else {"key": pointer["key"]}
    metadata = {name: value for name, value in older.items() if name not in _ENDS} | newer
    metadata |= {name: before["metadata"][name] for name in ("access_count", "last_accessed")}
    metadata["relevance_score"] = max(older["relevance_score"], newer["relevance_score"])
    metadata |= {"count": count + 1 if isinstance(count, int) else 2, "places": [*places, place]}
    return cast("Item", {**before, "metadata": metadata})


def _without(memory: Mapping[str, Any], places: Sequence[int]) -> Mapping[str, Any]:
    if not places:
        return memory
    part = memory["working_memory"]
    freed = sum(part["items"][place]["token_count"] for place in places)
    out = frozenset(places)
    items = [item for place, item in enumerate(part["items"]) if place not in out]
    return {
        **memory,
        "working_memory": {**part, "items": items, "current_tokens": part["current_tokens"] - freed},
    }


def added_again(memory: Mapping[str, Any], patch: Patch, archived: Sequence[JsonObject], *, now: datetime) -> Change | None:  # fmt: skip
    """Return the change that adds the items of `patch`, which `add` made of another state, to this one; `now` as then.

    `archived` are the records of that change. None if it did more than add items, or they are there, or do not fit.
    """
    derived = {f"{PART}/current_tokens", "/metrics/working_memory_evictions"}
    steps = [step for step in patch if step["path"] not in derived]
    evicted = [step for step in steps if step["op"] == "remove" and step["path"].count("/") == 3]
    coming = [step["value"] for step in steps if step["op"] == "add" and step["path"] == f"{PART}/items/-"]
    adds_only = len(evicted) + len(coming) == len(steps) and [entry["why"] for entry in archived] == [
        "evicted" for _ in evicted
    ]
    ids = {item["id"] for item in items_of(memory)}
    if not adds_only or not coming or ids.intersection(item["id"] for item in coming):
        return None
    try:
        return add_made(memory, coming, now=now)
    except BudgetExceeded:
        return None


def add_made(memory: Mapping[str, Any], items: Sequence[Item], *, now: datetime) -> Change:
    """Return the change that adds items that were made before; its result is an `Added`.

    Raises:
        BudgetExceeded: they are larger than working memory, or only protected items could make room.
    """
    part = memory["working_memory"]
    coming = sum(item["token_count"] for item in items)
    room = part["max_capacity_tokens"] - part["current_tokens"]
    places = _make_room(memory, items, coming - room) if coming > room else []
    evicted = [part["items"][place] for place in places]
    patch = removal(places)
    patch += [{"op": "add", "path": f"{PART}/items/-", "value": item} for item in items]
    if items:
        freed = sum(item["token_count"] for item in evicted)
        patch.append(_total_step(part["current_tokens"] + coming - freed))
    if evicted:
        evictions = memory["metrics"]["working_memory_evictions"] + len(evicted)
        patch.append({"op": "replace", "path": "/metrics/working_memory_evictions", "value": evictions})
    appends = {"items": archive_records(evicted, why="evicted", now=now)} if evicted else {}
    return Change(
        {DOCUMENT: patch}, appends, Added([item["id"] for item in items], [item["id"] for item in evicted])
    )


def new_item(entry: JsonObject, *, id: str, created_at: str, count: Counter) -> Item:
    """Return the item of a checked entry."""
    metadata = {
        "timestamp": created_at, "relevance_score": entry["relevance_score"], "access_count": 0, "last_accessed": created_at,
        "source": entry["source"], "caste": entry["caste"], **entry["metadata"],
    }  # fmt: skip
    item = {
        "id": id, "type": entry["type"], "content": entry["content"], "token_count": count(entry["content"]),
        "metadata": metadata, "associative_links": [],
    }  # fmt: skip
    return cast("Item", item)


def _make_room(memory: Mapping[str, Any], items: Sequence[Item], needed: int) -> list[int]:
    """Return the places of the least recently used items that free `needed` tokens."""
    capacity = memory["working_memory"]["max_capacity_tokens"]
    total = sum(item["token_count"] for item in items)
    if total > capacity:
        raise BudgetExceeded(
            f"{total} tokens do not fit into a working memory of {capacity}.",
            fix="Split it, shorten it, or raise working_memory.max_capacity_tokens.",
            where="item",
        )
    items_now = items_of(memory)
    by_use = sorted(
        range(len(items_now)), key=lambda place: (items_now[place]["metadata"]["last_accessed"], place)
    )
    chosen: list[int] = []
    for place in by_use:
        if needed <= 0:
            break
        if not items_now[place]["metadata"].get("protected"):
            chosen.append(place)
            needed -= items_now[place]["token_count"]
    if needed > 0:
        raise BudgetExceeded(
            "working memory is full of protected items.",
            fix="Compress it (aether compress), or unprotect some.",
            where="working_memory",
        )
    return sorted(chosen)


def removal(places: Iterable[int]) -> Patch:
    """Return the patch that removes the items at `places`, last first so that no position shifts."""
    return [{"op": "remove", "path": f"{PART}/items/{place}"} for place in sorted(places, reverse=True)]


def archive_records(
    items: Iterable[Item], *, why: str, now: datetime,
    session_id: str | None = None, compression_id: str | None = None,
) -> list[JsonObject]:  # fmt: skip
    """Return the archive records of `items` that leave working memory."""
    left_at = clock.stamp(now)
    return [
        {"item": item, "left_at": left_at, "why": why, "session_id": session_id, "compression_id": compression_id}
        for item in items
    ]  # fmt: skip


def place_of(memory: Mapping[str, Any], id: str) -> int:
    """Return the place of item `id`.

    Raises:
        NotFound: it is not in working memory.
    """
    for place, item in enumerate(items_of(memory)):
        if item["id"] == id:
            return place
    raise NotFound(
        f"{shown(id)} is not in working memory.",
        fix='See "aether memory show"; "aether memory search" also finds archived items.',
        where="working_memory",
    )


def record_access(memory: Mapping[str, Any], ids: Iterable[str], *, now: datetime) -> Change:
    """Return the change that counts one access of each of `ids`; its result is those items after it."""
    accessed = set(ids)
    patch: Patch = []
    items: list[Item] = []
    for place, item in enumerate(items_of(memory)):
        if item["id"] in accessed:
            metadata = item["metadata"]
            uses, used_at = metadata["access_count"] + 1, max(clock.stamp(now), metadata["last_accessed"])
            base = f"{PART}/items/{place}/metadata"
            patch.append({"op": "replace", "path": f"{base}/access_count", "value": uses})
            patch.append({"op": "replace", "path": f"{base}/last_accessed", "value": used_at})
            items.append({**item, "metadata": {**metadata, "access_count": uses, "last_accessed": used_at}})
    return Change({DOCUMENT: patch}, result=items)


def update(
    memory: Mapping[str, Any], id: str, updates: Mapping[str, Any], *, now: datetime, count: Counter, by: Evidence = "person",
) -> Change:  # fmt: skip
    """Return the change that merges `updates` (content, type, relevance_score, source, caste, metadata) into item `id`.

    Metadata is merged key by key, and a key set to null is removed. A new content is corrected words: those of `by`, unless the
    updates name another as its `evidence` or `corrected_by`. A session that keeps the item gets it, too. The result is the new item.

    Raises:
        NotFound: it is not in working memory.
        InvalidInput: a field is unknown or invalid.
        BudgetExceeded: the new content does not fit.
    """
    place = place_of(memory, id)
    old = items_of(memory)[place]
    changes = updates.get("metadata") if isinstance(updates, Mapping) else None
    if not isinstance(updates, Mapping) or not isinstance(changes, Mapping | None):
        raise InvalidInput(
            f"the updates are {shown(updates)}.",
            fix="Pass an object; its metadata is an object too.",
            where=f"item {id}",
        )
    old_metadata = {key: value for key, value in old["metadata"].items() if key not in RESERVED_FIELDS}
    entry = {
        "content": old["content"], "type": old["type"],
        **{field: old["metadata"][field] for field in ("relevance_score", "source", "caste")},
        **updates,
    }  # fmt: skip
    phase = {"phase": entry.pop("phase")} if "phase" in entry else {}
    entry["metadata"] = {
        key: value for key, value in {**old_metadata, **(changes or {}), **phase}.items() if value is not None
    }
    checked = checked_entries([entry])[0]
    item = new_item(checked, id=old["id"], created_at=old["metadata"]["timestamp"], count=count)
    item["metadata"]["access_count"] = old["metadata"]["access_count"]
    item["metadata"]["last_accessed"] = max(clock.stamp(now), old["metadata"]["last_accessed"])
    item["associative_links"] = old["associative_links"]
    if item["content"] != old["content"]:
        fields = changes or {}
        item["metadata"]["corrected_at"] = clock.stamp(now)
        item["metadata"]["corrected_by"] = fields.get("corrected_by") or fields.get("evidence") or by
    part = memory["working_memory"]
    total = part["current_tokens"] - old["token_count"] + item["token_count"]
    if total > max(part["max_capacity_tokens"], part["current_tokens"]):
        raise BudgetExceeded(
            f"the new content has {item['token_count']} tokens and would make {total} of {part['max_capacity_tokens']}.",
            fix="Shorten it, or compress working memory first.",
            where=f"item {id}",
        )
    paths = [f"{PART}/items/{place}"]
    paths += [
        f"/short_term_memory/sessions/{number}/metadata/items/{position}"
        for number, session in enumerate(sessions_of(memory))
        for position, kept in enumerate(session["metadata"].get("items", []))
        if kept["id"] == id
    ]
    patch = [{"op": "replace", "path": path, "value": item} for path in paths]
    return Change({DOCUMENT: [*patch, _total_step(total)]}, result=item)


def clear(memory: Mapping[str, Any], *, now: datetime) -> Change:
    """Return the change that moves every item to the archive; its result is their number."""
    items = items_of(memory)
    if not items:
        return Change({}, result=0)
    patch = [{"op": "replace", "path": f"{PART}/items", "value": []}, _total_step(0)]
    return Change({DOCUMENT: patch}, {"items": archive_records(items, why="cleared", now=now)}, len(items))


def _total_step(tokens: int) -> JsonObject:
    return {"op": "replace", "path": f"{PART}/current_tokens", "value": tokens}


def recent_items(
    memory: Mapping[str, Any], limit: int = 0, *, is_wanted: Callable[[Item], bool] = lambda _: True
) -> list[Item]:
    """Return the items that are wanted, most recently used first; all of them if `limit` is 0.

    Raises:
        InvalidInput: the limit is negative.
    """
    if limit < 0:
        raise InvalidInput(f"limit is {limit}.", fix="Use 0 for all, or the number wanted.", where="list")
    order = sorted(
        ((nth, item) for nth, item in enumerate(items_of(memory)) if is_wanted(item)),
        key=lambda pair: (pair[1]["metadata"]["last_accessed"], pair[0]),
        reverse=True,
    )
    return [item for _, item in order][: limit or None]


def item_filter(
    *, types: Iterable[str] = (), phase: int | str | None = None, caste: str | None = None,
    since: datetime | None = None, until: datetime | None = None, project: str | None = None,
    conversation: str | None = None,
) -> Callable[[Item], bool]:  # fmt: skip
    """Return a function that says whether an item matches all of the given options.

    `until` is the first instant that is too late; `project` and `conversation` may be parts of the names.

    Raises:
        InvalidInput: the phase is not a number of one.
    """
    number = phase_number(phase)
    if phase is not None and number is None:
        raise InvalidInput(f"{shown(phase)} is not a phase.", fix="Use its number.", where="phase")
    names = set(types)
    # A word of the timeline, such as "rule", means several types.
    names |= {name for name, kind in KIND_OF_TYPE.items() if kind in names and kind not in KIND_OF_TYPE}

    def matches(item: Item) -> bool:
        metadata: Mapping[str, Any] = item["metadata"]
        pointer = metadata.get("pointer") or {}
        places = "\n".join(
            str(name)
            for name in (metadata.get("conversation"), metadata.get("title"), pointer.get("file"))
            if name
        )
        return (
            (not names or item["type"] in names)
            and (number is None or phase_number(metadata.get("phase")) == number)
            and (not caste or caste.casefold() == str(metadata.get("caste") or "").casefold())
            and (not project or project.casefold() in str(metadata.get("project") or "").casefold())
            and (not conversation or conversation.casefold() in places.casefold())
            and (not since or clock.parse(metadata["timestamp"]) >= since)
            and (not until or clock.parse(metadata["timestamp"]) < until)
        )

    return matches


class TokenUsage(NamedTuple):
    """How full working memory is, in tokens."""

    current: int
    maximum: int
    threshold: int

    @property
    def needed(self) -> bool:
        """Whether compression is needed."""
        return self.current >= self.threshold

    @property
    def percent(self) -> float:
        """Share of the capacity in use, in percent, one decimal."""
        return round(100 * self.current / self.maximum, 1) if self.maximum else 0.0


def token_usage(memory: Mapping[str, Any]) -> TokenUsage:
    """Return how full working memory is."""
    part = memory["working_memory"]
    maximum = part["max_capacity_tokens"]
    return TokenUsage(part["current_tokens"], maximum, maximum * part["eviction_threshold_percent"] // 100)


def add_items(
    documents: Mapping[str, Any], entries: Sequence[JsonObject], *, now: datetime, new_id: NewId, count: Counter
) -> Change:  # fmt: skip
    """Return the change that adds checked entries and signals a full memory.

    Its result is the `Added` and whether compression is needed.

    Raises:
        BudgetExceeded: they are larger than working memory, or only protected items could make room.
    """
    added = add(documents["memory"], entries, now=now, new_id=new_id, count=count)
    # The signal depends on the new total alone, and a commit applies all of the patch.
    totals = [step for step in added.patches[DOCUMENT] if step["path"] == f"{PART}/current_tokens"]
    state = {**documents, "memory": apply(documents["memory"], totals)}
    signalled = signal_threshold(state, now=now, new_id=new_id)
    return join_changes(added, signalled, result=[added.result, signalled.result])


def signal_threshold(documents: Mapping[str, Any], *, now: datetime, new_id: NewId) -> Change:
    """Return the change that emits TOKEN_THRESHOLD once if compression is needed; its result says if it is."""
    fill = token_usage(documents["memory"])
    if not fill.needed:
        return Change({}, result=False)
    from aether.memory import signals  # only near the threshold: most additions are far from it

    active_pheromones = documents["pheromones"]["active_pheromones"]
    if any(signal["type"] == "TOKEN_THRESHOLD" for signal in active_pheromones):
        return Change({}, result=True)
    context = f"{fill.current} of {fill.maximum} tokens: compression is needed"
    emitted = signals.emit(
        documents["pheromones"], "TOKEN_THRESHOLD", context, now=now, id=new_id("token_threshold", now, 0),
        source="colony",
    )  # fmt: skip
    return emitted._replace(result=True)


def withdraw_threshold(documents: Mapping[str, Any], *, now: datetime) -> Change:
    """Return the change that withdraws TOKEN_THRESHOLD once compression is not needed any more."""
    active = documents["pheromones"]["active_pheromones"]
    ids = [signal["id"] for signal in active if signal["type"] == "TOKEN_THRESHOLD"]
    if not ids or token_usage(documents["memory"]).needed:
        return Change({})
    from aether.memory import signals

    return signals.withdraw(documents["pheromones"], ids, now=now)


def recount(memory: Mapping[str, Any], settings: JsonObject, count: Counter) -> Change:
    """Return the change that records `settings` as the counter and counts every item and session by `count`.

    `original_tokens` of a session is scaled as its `compressed_tokens`, since its items are not there any more.
    """
    patch: Patch = [{"op": "replace", "path": "/token_counter", "value": settings}]
    total = 0
    for place, item in enumerate(items_of(memory)):
        tokens = count(item["content"])
        total += tokens
        if tokens != item["token_count"]:
            patch.append(
                {"op": "replace", "path": f"/working_memory/items/{place}/token_count", "value": tokens}
            )
    patch.append({"op": "replace", "path": "/working_memory/current_tokens", "value": total})
    for place, session in enumerate(sessions_of(memory)):
        after = session_tokens(session, count)
        before = session["compressed_tokens"]
        original = (
            round(session["original_tokens"] * after / before) if before else session["original_tokens"]
        )
        ratio = compression_ratio(original, after)
        values = {"original_tokens": original, "compressed_tokens": after, "compression_ratio": ratio}
        patch += [
            {"op": "replace", "path": f"/short_term_memory/sessions/{place}/{field}", "value": value}
            for field, value in values.items()
        ]
    return Change({"memory": patch})


def derived(memory: Mapping[str, Any]) -> Patch:
    """Return the patch that corrects every derived value; empty if all are right."""
    metrics = memory["metrics"]
    totals: dict[str, float] = {
        "/working_memory/current_tokens": sum(item["token_count"] for item in items_of(memory)),
        "/short_term_memory/current_sessions": len(sessions_of(memory)),
    }
    if "compression_ratio_total" in metrics:
        ratio = average_ratio(metrics["compression_ratio_total"], metrics["total_compressions"])
        totals["/metrics/average_compression_ratio"] = ratio
    return [
        {"op": "replace", "path": path, "value": value}
        for path, value in totals.items()
        if get(memory, path) != value
    ]


def derived_change(documents: Mapping[str, Any], change: Change) -> Change:
    """Return the change that must follow `change` to keep the derived values right."""
    return Change({"memory": derived(apply(documents["memory"], change.patches.get("memory", [])))})


def examine(documents: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each contradiction between the parts of memory."""
    memory = documents["memory"]
    findings = [
        Finding("error", "derived", f"memory#{step['path']}", f"{get(memory, step['path'])}, should be {step['value']}.", 'Run "aether doctor --repair".')
        for step in derived(memory)
    ]  # fmt: skip
    items, sessions = items_of(memory), sessions_of(memory)
    patterns = memory["long_term_memory"]["patterns"]
    ids = Tally(entry["id"] for entry in (*items, *sessions, *patterns))
    findings += [
        Finding("error", "repeated-id", f"memory#{name}", f"occurs {times} times.", "Give one of them another id.")
        for name, times in ids.items() if times > 1
    ]  # fmt: skip
    usage = memory["working_memory"]
    if usage["current_tokens"] > usage["max_capacity_tokens"]:
        message = f"{usage['current_tokens']} tokens of {usage['max_capacity_tokens']}."
        fix = "Compress it: aether compress."
        findings.append(Finding("error", "over-capacity", "memory#/working_memory", message, fix))
    return findings


def repaired(documents: Mapping[str, Any]) -> Change:
    """Return the change that corrects every derived value; its result is the corrections in words."""
    patch = derived(documents["memory"])
    return Change({"memory": patch}, result=[f"set {step['path']} to {step['value']}" for step in patch])
