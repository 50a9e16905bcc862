"""Working memory, as a caller asks for it: add, get, update, list, clear, and the token threshold.

Correcting, as a caller asks for it: what left working memory is said anew, and what said it before is forgotten.

Items of working memory are changed in place (`working.update_working_memory_item`). What was archived or became a
pattern cannot be: the correction is a new item that names what it supersedes, in one transaction with the forgetting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from aether.api.forget import forget_targets, remembered_archive
from aether.api.home import Home, change, copied, counter_of, drained, find, now, read
from aether.clock import new_id
from aether.errors import SHOWN_CHARS, AetherError, InvalidDocument, InvalidInput, NotFound, shown
from aether.memory import items
from aether.memory.forgetting import find as forgetting_find
from aether.memory.forgetting.find import Target
from aether.memory.items import TokenUsage, add_items, signal_threshold, token_usage
from aether.store import files
from aether.store.commit import AETHER, Author, commit
from aether.store.patch import chain_changes
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import Change, Item, JsonObject

if TYPE_CHECKING:
    from aether.api.compress import Prepared


class ItemId(str):
    """The id of an added item: text, and what adding it brought about."""

    __slots__ = ("compression_needed", "evicted", "handoff")
    compression_needed: bool
    """Whether working memory is at its threshold: its hand-off is prepared."""
    evicted: list[str]
    """Ids of items that the hard limit pushed into the archive."""
    handoff: str
    """Path of the prepared hand-off; empty where compression is not needed, or preparing it failed."""


def add_working_memory_item(
    content: str,
    type: str,
    relevance_score: float = items.DEFAULT_RELEVANCE,
    *,
    home: Home = None,
    source: str = items.DEFAULT_SOURCE,
    caste: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> ItemId:
    """Store one item durably and return its id.

    At 80 % of the capacity the id says `compression_needed`, the colony is signalled, and the hand-off
    is prepared; adding drops nothing. Only at the hard limit do the least recently used items move to
    the archive (`evicted`).

    Raises:
        InvalidInput: content or type is missing, or a field is impossible.
        BudgetExceeded: it is larger than working memory.
    """
    entry = items.checked_entry(content, type, relevance_score, source=source, caste=caste, metadata=metadata)
    return _add([entry], home)[0]


def add_working_memory_items(entries: Iterable[Mapping[str, Any]], *, home: Home = None) -> list[ItemId]:
    """Store many items in one commit, all or none, and return their ids.

    Each entry holds the arguments of `add_working_memory_item`.

    Raises:
        InvalidInput: an entry is impossible; its place is named.
        BudgetExceeded: together they are larger than working memory.
    """
    return _add(items.checked_entries(entries), home)


class StoredDrafts(NamedTuple):
    """What adding drafts did."""

    drafts: list[JsonObject]
    """Those that were stored, in the order of their ids."""
    ids: list[ItemId]
    revision: int


def _add(entries: list[JsonObject], home: Home) -> list[ItemId]:
    return store_drafts(entries, _author(entries), home=home).ids


def store_drafts(
    entries: list[JsonObject],
    author: Author,
    *,
    home: Home,
    wanted: Callable[[Snapshot, list[JsonObject]], list[JsonObject]] = lambda snapshot, entries: entries,
) -> StoredDrafts:
    """Store checked drafts in one commit and return what that did; `wanted` chooses among them under its lock."""
    at = now()
    entries = copied(files.checked_json(entries, where="item"))

    def plan(snapshot: Snapshot) -> Change:
        memory = snapshot.documents["memory"]
        chosen = wanted(snapshot, entries)
        added = add_items(snapshot.documents, chosen, now=at, new_id=new_id, count=counter_of(memory))
        return added._replace(result=(chosen, *added.result))

    done = commit(drained(find(home)), plan, author, now=at)
    chosen, added, needed = done.result
    path = _prepare_handoff(home) if needed else ""
    made = []
    for new in added.ids:
        item_id = ItemId(new)
        item_id.compression_needed, item_id.evicted, item_id.handoff = needed, added.evicted, path
        made.append(item_id)
    return StoredDrafts(chosen, made, done.revision)


def _author(entries: list[JsonObject]) -> Author:
    if len(entries) == 1:
        return Author(
            "add",
            by=entries[0]["source"],
            reason=f"{entries[0]['type']} {entries[0]['content'][:SHOWN_CHARS]!r}",
        )
    return Author(
        "add", by=entries[0]["source"] if entries else "queen", reason=pluralize(len(entries), "items")
    )


def _prepare_handoff(home: Home) -> str:
    try:
        return str(prepare_current_phase(home, by=AETHER).path or "")
    except AetherError:
        return ""  # the items are stored: an error would say that they are not; `prepare` says what is wrong


def prepare_current_phase(home: Home, *, by: str = "") -> Prepared:
    """Return the hand-off of the current phase, prepared now if none is open yet.

    Where only later phases have items, it is that of the first of them. `by` is the author in the log.
    """
    # Half of the start-up of an addition, and seldom needed.
    from aether.api.compress import Prepared, prepare
    from aether.api.handoffs import handoff_path
    from aether.memory import handoff

    snapshot = read(home)
    documents = snapshot.documents
    for record in documents["memory"]["compression"]["open"]:
        path = handoff_path(snapshot.home, record)
        # Every addition past the threshold comes here: that it is there is enough, `prepare` checks it.
        if path.exists() and handoff.has_unchanged_items(documents["memory"], record):
            return Prepared(path, "", record)
    return prepare(handoff.phase_to_compress(documents), manual=True, home=home, by=by)


def get_working_memory_item(id: str, *, home: Home = None) -> Item:
    """Return one item, having counted the access.

    Raises:
        NotFound: it is not in working memory.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        items.place_of(documents["memory"], id)
        return items.record_access(documents["memory"], [id], now=now())

    found: Item = change(home, plan, Author("access")).result[0]
    return found


def update_working_memory_item(id: str, updates: Mapping[str, Any], *, home: Home = None) -> Item:
    """Return one item after merging `updates` (content, type, relevance_score, source, caste, metadata).

    Raises:
        NotFound: it is not in working memory.
        InvalidInput: a field is unknown or impossible.
        BudgetExceeded: the new content does not fit.
    """
    given = dict(updates) if isinstance(updates, Mapping) else updates
    wanted = copied(files.checked_json(given, where=f"item {id}"))
    at = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        memory = documents["memory"]
        updated = items.update(memory, id, wanted, now=at, count=counter_of(memory))
        return chain_changes(
            documents, lambda _: updated, lambda state: signal_threshold(state, now=at, new_id=new_id)
        )

    updated, needed = change(home, plan, Author("update", reason=id)).result
    if needed:
        _prepare_handoff(home)
    item: Item = updated
    return item


def list_working_memory_items(limit: int = 0, *, home: Home = None) -> list[Item]:
    """Return the items, most recently used first; all where `limit` is 0. Listing counts no access."""
    found: list[Item] = copied(items.recent_items(read(home).documents["memory"], limit))
    return found


def clear_working_memory(*, home: Home = None) -> int:
    """Move every item to the archive and return how many there were; `undo` brings them back."""
    from aether.memory.ingest import withdraw_threshold

    at = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return chain_changes(
            documents, lambda state: items.clear(state["memory"], now=at), withdraw_threshold(at)
        )

    return int(change(home, plan, Author("clear")).result[0])


def check_token_threshold(*, home: Home = None) -> bool:
    """Return whether working memory is at or over its threshold, so that compression is needed."""
    return token_usage(read(home).documents["memory"]).needed


def auto_compress_if_needed(*, home: Home = None) -> bool:
    """Return whether compression is needed; if so, its hand-off is prepared for an architect."""
    needed = check_token_threshold(home=home)
    if needed:
        prepare_current_phase(home)
    return needed


def verify_token_limit(*, home: Home = None) -> TokenUsage:
    """Return how full working memory is, in tokens, having compared the total with the items.

    Raises:
        InvalidDocument: the recorded total is not the sum of the items.
    """
    memory = read(home).documents["memory"]
    total = sum(item["token_count"] for item in items.items_of(memory))
    if total != memory["working_memory"]["current_tokens"]:
        raise InvalidDocument(
            f"current_tokens is {memory['working_memory']['current_tokens']}, the items have {total}.",
            fix='Run "aether doctor --repair".',
            where="memory.json",
        )
    return token_usage(memory)


# Somebody took the trouble to put it right: as high as a constraint.
SUPERSEDING_RELEVANCE = 0.9

# What else has an id, and what to do instead.
_INSTEAD = {
    "session": 'It says several things: "aether memory forget --match TEXT" what is wrong in it, and "aether memory add" what is right.',
    "signals": 'Let it go with "aether memory forget {id}", and say it anew with "aether signal emit".',
    "graph": 'Let it go with "aether memory forget {id}"; a model writes it anew through "aether mcp --tools graph".',
}


class Superseded(NamedTuple):
    """What correcting did."""

    item: Item
    """The correction, in working memory."""
    forgotten: list[Target]
    """Everything that said it before."""
    revision: int


def supersede(id: str, updates: Mapping[str, Any], *, home: Home = None) -> Superseded:
    """Store `updates` (content and other fields of an item) in place of an archived item or a pattern, and return that.

    All that says the same as `id` is forgotten in the same transaction, so one undo brings it back.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: no content is given, a field is impossible, or `id` is neither an item nor a pattern.
        BudgetExceeded: the new content does not fit.
    """
    place, at = find(home), now()
    archived = remembered_archive(read(place))
    given = copied(files.checked_json(dict(updates), where=f"item {id}"))

    def plan(documents: Mapping[str, Any]) -> Change:
        targets, unknown = forgetting_find.find_by_ids(documents, archived, [id])
        if unknown:
            raise NotFound(
                f"{shown(id)} is in no layer and not in the archive.",
                fix='See "aether recall QUERY".',
                where="correct",
            )
        draft = _draft(targets[0], given)
        done = chain_changes(
            documents,
            lambda state: forget_targets(state, targets, at),
            lambda state: items.add(
                state["memory"], [draft], now=at, new_id=new_id, count=counter_of(state["memory"])
            ),
        )
        return done._replace(result=(targets, done.result[1].ids[0]))

    done = change(place, plan, Author("correct", reason=id))
    targets, made = done.result
    (item,) = (one for one in items.items_of(read(place).documents["memory"]) if one["id"] == made)
    return Superseded(copied(item), [Target(*each) for each in targets], done.revision)


def _draft(old: Target, given: Mapping[str, Any]) -> JsonObject:
    """Return the draft of the item that takes the place of `old`."""
    kind = "session" if old.type == "session" else old.layer
    if kind in _INSTEAD:
        raise InvalidInput(
            f"{shown(old.id)} is no single statement that could be corrected.",
            fix=_INSTEAD[kind].format(id=old.id),
            where="correct",
        )
    if "content" not in given:
        raise InvalidInput(
            f"{shown(old.id)} is not in working memory any more: only its text can be corrected.",
            fix=f'Say what is right: aether memory update {old.id} --content "TEXT".',
            where="correct",
        )
    metadata = {**(given.get("metadata") or {}), "supersedes": old.id}
    (made,) = items.checked_entries(
        [{"type": old.type, "relevance_score": SUPERSEDING_RELEVANCE, **given, "metadata": metadata}]
    )
    return made
