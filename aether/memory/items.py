"""Working memory: the items the colony is working with now.

The document is `memory`, its part `working_memory`. Guaranteed: `current_tokens` is the sum of the
items' `token_count`; adding drops nothing below the hard limit, and what the limit pushes out goes to
the archive in the same transaction, least recently used first, protected items never. When to compress
is decided in `threshold`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from aether import clock
from aether.errors import BudgetExceeded, InvalidInput, NotFound, shown
from aether.memory.phase_numbers import check_phase
from aether.shapes import Change, Counter, Item, JsonObject, Patch

DOCUMENT = "memory"
PART = "/working_memory"
DEFAULT_RELEVANCE = 0.5
DEFAULT_SOURCE = "queen"
# An item's type, source and caste are words to filter by, not texts.
MAX_WORD_CHARS = 100
# Metadata that aether keeps itself: a caller sets these by arguments of their own, or not at all.
# `timestamp` may be given: an imported note was made when it was said, not when it was imported.
KEPT_FIELDS = frozenset({"relevance_score", "access_count", "last_accessed", "source", "caste"})
# The other metadata that the schema gives a type: null means that there is none.
_TYPED_FIELDS = frozenset({"timestamp", "phase", "protected", "injected", "pointer"})
DRAFT_FIELDS = frozenset({"content", "type", "relevance_score", "source", "caste", "metadata"})

NewId = Callable[[str, datetime, int], str]


class Added(NamedTuple):
    """What adding did."""

    ids: list[str]
    evicted: list[str]
    """Ids that the hard limit pushed into the archive."""


def items_of(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items of working memory, in the order in which they were added."""
    found: list[Item] = memory["working_memory"]["items"]
    return found


def forgotten(memory: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of archived items that were forgotten: they are there, and nothing may find them."""
    return frozenset(entry["id"] for entry in memory.get("forgotten", []))


def draft(
    content: str, type: str, relevance_score: float = DEFAULT_RELEVANCE, *,
    source: str = DEFAULT_SOURCE, caste: str | None = None, metadata: Mapping[str, Any] | None = None,
) -> JsonObject:  # fmt: skip
    """Return a checked draft of an item: all but what depends on the moment of adding.

    Raises:
        InvalidInput: content or type is missing, or a field has an impossible value.
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
    return {
        "content": content, "type": type, "relevance_score": _relevance(relevance_score), "source": source,
        "caste": caste, "metadata": _extra(metadata),
    }  # fmt: skip


def _relevance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(
            f"relevance_score is {shown(value)}.", fix="Use a number from 0 to 1.", where="item"
        )
    return float(value)


def _extra(metadata: Any) -> JsonObject:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {shown(metadata)}.", fix="Use an object.", where="item")
    extra = {key: value for key, value in metadata.items() if value is not None or key not in _TYPED_FIELDS}
    for field in sorted(KEPT_FIELDS & extra.keys()):
        raise InvalidInput(
            f"metadata.{field} is kept by aether.",
            fix="Use the argument of that name, or leave it out.",
            where="item",
        )
    if "timestamp" in extra:
        extra["timestamp"] = clock.stamp(clock.parse(extra["timestamp"], where="metadata.timestamp"))
    if "phase" in extra:
        extra["phase"] = check_phase(extra["phase"])
    for flag in ("protected", "injected"):
        if not isinstance(extra.get(flag, False), bool):
            raise InvalidInput(
                f"metadata.{flag} is {shown(extra[flag])}.", fix="Use true or false.", where="item"
            )
    if not isinstance(extra.get("pointer", {}), dict):
        raise InvalidInput(
            f"metadata.pointer is {shown(extra['pointer'])}.", fix="Use an object.", where="item"
        )
    return extra


def drafts(entries: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Return checked drafts of `entries`, whose keys are the arguments of `draft`.

    Raises:
        InvalidInput: one of them is impossible; its place is named, and none is taken.
    """
    made = []
    for place, entry in enumerate(entries):
        unknown = set(entry) - DRAFT_FIELDS if isinstance(entry, Mapping) else {"(not an object)"}
        if unknown:
            raise InvalidInput(
                f"{shown(min(unknown))} is not a field of an item.",
                fix=f"Use {', '.join(sorted(DRAFT_FIELDS))}.",
                where=f"items[{place}]",
            )
        try:
            made.append(draft(**{"content": "", "type": "", **entry}))
        except InvalidInput as reason:
            raise InvalidInput(reason.what, fix=reason.fix, where=f"items[{place}]") from reason
    return made


def add(
    memory: Mapping[str, Any], entries: Sequence[JsonObject], *, now: datetime, new_id: NewId, count: Counter
) -> Change:
    """Return the change that adds checked drafts; its result is an `Added`.

    Raises:
        BudgetExceeded: one of them is larger than working memory, or only protected items could make room.
    """
    items = [
        _item(
            entry, id=new_id("wm", now, nth), at=clock.stamp(now + timedelta(microseconds=nth)), count=count
        )
        for nth, entry in enumerate(entries)
    ]
    part = memory["working_memory"]
    coming = sum(item["token_count"] for item in items)
    room = part["max_capacity_tokens"] - part["current_tokens"]
    evicted = _make_room(memory, items, coming - room) if coming > room else []
    freed = sum(part["items"][place]["token_count"] for place in evicted)
    patch = removal(evicted)
    patch += [{"op": "add", "path": f"{PART}/items/-", "value": item} for item in items]
    if items:
        patch.append(_total(part["current_tokens"] + coming - freed))
    gone = [part["items"][place] for place in evicted]
    if gone:
        evictions = memory["metrics"]["working_memory_evictions"] + len(gone)
        patch.append({"op": "replace", "path": "/metrics/working_memory_evictions", "value": evictions})
    appends = {"items": archived(gone, why="evicted", now=now)} if gone else {}
    return Change(
        {DOCUMENT: patch}, appends, Added([item["id"] for item in items], [item["id"] for item in gone])
    )


def _item(entry: JsonObject, *, id: str, at: str, count: Counter) -> Item:
    metadata = {
        "timestamp": at, "relevance_score": entry["relevance_score"], "access_count": 0, "last_accessed": at,
        "source": entry["source"], "caste": entry["caste"], **entry["metadata"],
    }  # fmt: skip
    item = {
        "id": id, "type": entry["type"], "content": entry["content"], "token_count": count(entry["content"]),
        "metadata": metadata, "associative_links": [],
    }  # fmt: skip
    return cast(Item, item)


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
    held = items_of(memory)
    by_use = sorted(range(len(held)), key=lambda place: (held[place]["metadata"]["last_accessed"], place))
    chosen: list[int] = []
    for place in by_use:
        if needed <= 0:
            break
        if not held[place]["metadata"].get("protected"):
            chosen.append(place)
            needed -= held[place]["token_count"]
    if needed > 0:
        raise BudgetExceeded(
            "working memory is full of protected items.",
            fix="Compress it (aether memory compress), or unprotect some.",
            where="working_memory",
        )
    return sorted(chosen)


def removal(places: Iterable[int]) -> Patch:
    """Return the patch that removes the items at `places`, last first so that no place moves."""
    return [{"op": "remove", "path": f"{PART}/items/{place}"} for place in sorted(places, reverse=True)]


def archived(
    items: Iterable[Item], *, why: str, now: datetime,
    session_id: str | None = None, compression_id: str | None = None,
) -> list[JsonObject]:  # fmt: skip
    """Return the archive records of `items` that leave working memory."""
    return [
        {"item": item, "left_at": clock.stamp(now), "why": why, "session_id": session_id, "compression_id": compression_id}
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
        fix='See "aether memory list"; "aether memory search" also finds what was archived.',
        where="working_memory",
    )


def access(memory: Mapping[str, Any], ids: Iterable[str], *, now: datetime) -> Change:
    """Return the change that counts one access of each of `ids`; the result is those items as they become."""
    wanted = set(ids)
    patch: Patch = []
    found: list[Item] = []
    for place, item in enumerate(items_of(memory)):
        if item["id"] in wanted:
            metadata = item["metadata"]
            uses, at = metadata["access_count"] + 1, max(clock.stamp(now), metadata["last_accessed"])
            base = f"{PART}/items/{place}/metadata"
            patch.append({"op": "replace", "path": f"{base}/access_count", "value": uses})
            patch.append({"op": "replace", "path": f"{base}/last_accessed", "value": at})
            found.append({**item, "metadata": {**metadata, "access_count": uses, "last_accessed": at}})
    return Change({DOCUMENT: patch}, result=found)


def update(
    memory: Mapping[str, Any], id: str, updates: Mapping[str, Any], *, now: datetime, count: Counter
) -> Change:
    """Return the change that merges `updates` (content, type, relevance_score, source, caste, metadata) into item `id`.

    Metadata is merged key by key; a key set to null goes. Tokens are counted anew.

    Raises:
        NotFound: it is not in working memory.
        InvalidInput: a field is unknown or impossible.
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
    kept = {key: value for key, value in old["metadata"].items() if key not in KEPT_FIELDS}
    entry = {
        "content": old["content"], "type": old["type"],
        **{field: old["metadata"][field] for field in ("relevance_score", "source", "caste")},
        **updates,
    }  # fmt: skip
    entry["metadata"] = {
        key: value for key, value in {**kept, **(changes or {})}.items() if value is not None
    }
    checked = drafts([entry])[0]
    made = _item(checked, id=old["id"], at=old["metadata"]["timestamp"], count=count)
    made["metadata"]["access_count"] = old["metadata"]["access_count"]
    made["metadata"]["last_accessed"] = max(clock.stamp(now), old["metadata"]["last_accessed"])
    made["associative_links"] = old["associative_links"]
    part = memory["working_memory"]
    total = part["current_tokens"] - old["token_count"] + made["token_count"]
    if total > max(part["max_capacity_tokens"], part["current_tokens"]):
        raise BudgetExceeded(
            f"the new content has {made['token_count']} tokens and would make {total} of {part['max_capacity_tokens']}.",
            fix="Shorten it, or compress working memory first.",
            where=f"item {id}",
        )
    path = f"{PART}/items/{place}"
    return Change({DOCUMENT: [{"op": "replace", "path": path, "value": made}, _total(total)]}, result=made)


def clear(memory: Mapping[str, Any], *, now: datetime) -> Change:
    """Return the change that moves every item to the archive; the result is their number."""
    held = items_of(memory)
    if not held:
        return Change({}, result=0)
    patch = [{"op": "replace", "path": f"{PART}/items", "value": []}, _total(0)]
    return Change({DOCUMENT: patch}, {"items": archived(held, why="cleared", now=now)}, len(held))


def _total(tokens: int) -> JsonObject:
    return {"op": "replace", "path": f"{PART}/current_tokens", "value": tokens}


def listed(memory: Mapping[str, Any], limit: int = 0) -> list[Item]:
    """Return the items, most recently used first; all where `limit` is 0.

    Raises:
        InvalidInput: the limit is negative.
    """
    if limit < 0:
        raise InvalidInput(f"limit is {limit}.", fix="Use 0 for all, or the number wanted.", where="list")
    order = sorted(
        enumerate(items_of(memory)),
        key=lambda pair: (pair[1]["metadata"]["last_accessed"], pair[0]),
        reverse=True,
    )
    return [item for _, item in order][: limit or None]
