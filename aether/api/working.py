"""Working memory: add, get, update, list and clear items, and check the token threshold.

Adding never drops an item below the hard limit, and never fails because of the hand-off that a full memory needs. An item
that left working memory is corrected by `api.forget.supersede`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aether import clock, seams
from aether.api.home import (
    Home,
    change,
    copied,
    counter_of,
    drained,
    find,
    instant,
    looked,
    note_reading,
    now,
    read,
)
from aether.clock import new_id
from aether.errors import SHOWN_CHARS, AetherError, InvalidDocument, Refused, public, resembling, shown, warn
from aether.memory import gate, items
from aether.memory.items import SUPERSEDES, TokenUsage, add_items, signal_threshold, token_usage
from aether.memory.statements import end
from aether.store import config, files, handed
from aether.store.authors import AETHER, QUEEN, Author, acting_name, is_agent
from aether.store.commit import commit
from aether.store.patch import chain_changes, join_changes
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import RELEVANCE_OF_TYPE, Caste, Change, EndState, ItemType, JsonObject

if TYPE_CHECKING:
    from aether.types import Evidence, Item


class ItemId(str):
    """Id of an added item: a string with the consequences of the addition."""

    __slots__ = ("compression_needed", "evicted", "handoff", "waits")
    compression_needed: bool
    """Whether working memory is at its threshold: its hand-off is prepared."""
    evicted: list[str]
    """Ids of items that the hard limit pushed into the archive."""
    handoff: str
    """Path of the prepared hand-off; empty where compression is not needed, or preparing it failed."""
    waits: bool
    """Whether it waits for a person, as `memory.agents` says: it is in no brief and no search."""


@public
def add_working_memory_item(
    content: str,
    type: ItemType,
    relevance_score: float = items.DEFAULT_RELEVANCE,
    *,
    home: Home = None,
    source: str = items.DEFAULT_SOURCE,
    caste: Caste | None = None,
    phase: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> ItemId:
    """Store one item durably and return its id; `phase` is the phase of the colony's work that it belongs to.

    At 80 % of the capacity the id says `compression_needed`, the colony is signalled, and the hand-off
    is prepared; adding drops nothing. Only at the hard limit do the least recently used items move to
    the archive (`evicted`). A type of the caller's own is stored as it is, `rule` as `constraint`; if it looks like a misspelt one, there is a warning.

    Raises:
        InvalidInput: content or type is missing, or a field is impossible.
        BudgetExceeded: it is larger than working memory.
        Refused: an agent adds it, and `memory.agents` is off, or a person rejected these words before.
    """
    entry = items.checked_entry(
        content, type, relevance_score, source=source, caste=caste, phase=phase, metadata=metadata
    )
    if meant := resembling(type, (*RELEVANCE_OF_TYPE, "rule")):
        warn(f"{shown(type)} is a new type of item. Did you mean {meant!r}?")
    added = _add([entry], home)[0]
    if not added:
        raise Refused(
            f"a person rejected this statement: {shown(content)}. It was not stored again.",
            fix="Ask the person to add it if something has changed.",
            where="memory.agents",
        )
    return added


def add_note(
    content: str,
    type: str,
    relevance_score: float = items.DEFAULT_RELEVANCE,
    *,
    resolves: Iterable[str] = (),
    supersedes: Iterable[str] = (),
    home: Home = None,
    **fields: Any,
) -> ItemId:
    """Do the same as `add_working_memory_item`, whose other arguments are `fields`, and end entries in the same change.

    `resolves` and `supersedes` are the ids of items, patterns and statements of sessions.

    Raises:
        InvalidInput, BudgetExceeded: as there.
        NotFound: live memory has no entry with one of the ids.
    """
    end_states: dict[str, EndState] = {
        **dict.fromkeys(map(str, resolves), "resolved"),
        **dict.fromkeys(map(str, supersedes), "superseded"),
    }
    older = next((entry for entry, how in end_states.items() if how == "superseded"), "")
    metadata = {**(fields.pop("metadata", None) or {}), **({SUPERSEDES: older} if older else {})}
    entry = items.checked_entry(content, type, relevance_score, metadata=metadata, **fields)
    return _add([entry], home, end_states)[0]


@public
def add_working_memory_items(entries: Iterable[Mapping[str, Any]], *, home: Home = None) -> list[ItemId]:
    """Store many items in one commit, all or none, and return their ids.

    Each entry holds the arguments of `add_working_memory_item`.

    Raises:
        InvalidInput: an entry is impossible; its place is named.
        BudgetExceeded: together they are larger than working memory.
    """
    return _add(items.checked_entries(entries), home)


def _add(
    entries: list[JsonObject], home: Home, end_states: Mapping[str, EndState] | None = None
) -> list[ItemId]:
    if len(entries) == 1:
        content = entries[0]["content"]
        cut = content if len(content) <= SHOWN_CHARS else f"{content[: SHOWN_CHARS - 1]}…"
        reason = f"{entries[0]['type']} {cut!r}"
    else:
        reason = pluralize(len(entries), "items")
    entries = copied(files.checked_json(entries, where="item"))
    if is_agent():
        entries = [_by_agent(entry) for entry in entries]
    author = Author("add", by=entries[0]["source"] if entries else QUEEN, reason=reason)
    place = find(home)
    mode = config.or_default(place).memory_agents
    if mode == gate.OFF and any(map(gate.is_of_agent, entries)):
        raise gate.refusal("agents state nothing here")
    ends = end_states or {}

    def waits(entry: JsonObject, memory: Mapping[str, Any]) -> bool:
        if gate.is_of_agent(entry) and gate.ends_rule_of_person(memory, ends):
            return True
        # The words that a person handed over are read only for what would wait: most entries do not.
        return gate.waits(entry, mode, memory) and (
            bool(ends) or not handed.was_handed(place, entry["content"])
        )

    return store_entries(entries, author, home=home, ends=ends, waits=waits).in_order


def _by_agent(entry: JsonObject) -> JsonObject:
    """Return an entry as the agent's that states it here, so that it is a source that can be undone."""
    source = acting_name() if entry["source"] == QUEEN else entry["source"]
    return {**entry, "source": source, "metadata": {**entry["metadata"], "evidence": "agent"}}


class StoredEntries(NamedTuple):
    """Result of storing entries."""

    entries: list[JsonObject]
    """Those that were stored, in the order of their ids."""
    ids: list[ItemId]
    revision: int
    needed: bool
    """Whether working memory is so full that it should be compressed."""
    again: tuple[int, ...]
    """Positions of the entries that were in working memory already, said in the same conversation."""
    waiting: list[JsonObject]
    """Those that wait for a person."""
    in_order: list[ItemId]
    """The ids of all, in the order in which they were chosen."""
    tokens: int
    """Those of the entries that are items of their own."""


@public
def store_entries(
    entries: list[JsonObject],
    author: Author,
    *,
    home: Home,
    wanted: Callable[[Snapshot, list[JsonObject]], list[JsonObject]] = lambda snapshot, entries: entries,
    beside: Callable[[Snapshot], Change] = lambda snapshot: Change({}),
    is_last: bool = True,
    ends: Mapping[str, EndState] = {},
    waits: Callable[[JsonObject, Mapping[str, Any]], bool] = lambda entry, memory: False,
) -> StoredEntries:
    """Store checked entries, which the caller hands over, in one commit and return the result.

    `wanted` chooses among them under the lock; the change `beside` is committed with them. If more entries follow and
    these are not the last, the hand-off that a full working memory asks for is left to `prepare_handoff`. The first
    entry `ends` others, by id. An entry that `waits`, by itself and memory, waits for a person, and so do its ends.
    """
    moment = now()

    def plan(snapshot: Snapshot) -> Change:
        memory = snapshot.documents["memory"]
        count = counter_of(memory)
        wanted_entries = wanted(snapshot, entries)
        waiting = [waits(entry, memory) for entry in wanted_entries]
        chosen = [*compress(wanted_entries, map(operator.not_, waiting))]
        late = [*compress(wanted_entries, waiting)]
        added = add_items(snapshot.documents, chosen, now=moment, new_id=new_id, count=count)
        if ends and not late:
            added = _ending(snapshot, added, ends, clock.stamp(moment))
        proposed = Change({}, result=[])
        if late:
            stated = [*gate.with_ends(memory, late[0], ends), *late[1:]]
            proposed = gate.propose(
                snapshot.documents, stated, by=author.by, now=moment, new_id=new_id, count=count
            )
            proposed = proposed._replace(
                result=[proposed.result[0], *proposed.result[len(stated) - len(late) + 1 :]]
            )
        result = (chosen, *added.result, late, proposed.result, waiting)
        return join_changes(added, proposed, beside(snapshot), result=result)

    place = drained(find(home))
    outcome = commit(place, plan, author, now=moment, may_wait=not author.part)
    looked(place, outcome)
    chosen, added, needed, late, late_ids, waiting = outcome.result
    path = prepare_handoff(home) if needed and is_last else ""
    stored, proposed = iter(added.ids), iter(late_ids)
    in_order = []
    for is_late in waiting:
        item_id = ItemId(next(proposed if is_late else stored))
        item_id.compression_needed, item_id.evicted, item_id.handoff = needed, added.evicted, path
        item_id.waits = is_late
        in_order.append(item_id)
    ids = [item_id for item_id in in_order if not item_id.waits]
    return StoredEntries(chosen, ids, outcome.revision, needed, added.again, late, in_order, added.tokens)


def _ending(snapshot: Snapshot, added: Change, end_states: Mapping[str, EndState], timestamp: str) -> Change:
    """Return the change `added`, and after it the ends of others by its first item."""
    newer = added.result[0].ids[0]
    steps = [
        lambda state, older=older, how=how: end(state["memory"], older, how, at=timestamp, by=newer)
        for older, how in end_states.items()
    ]
    return chain_changes(snapshot.documents, lambda _: added, *steps)._replace(result=added.result)


def prepare_handoff(home: Home) -> str:
    """Return the path of the hand-off of the current phase, prepared now if none is open; "" if that fails."""
    try:
        return str(seams.call("prepare handoff", home, by=AETHER).path or "")
    except AetherError:
        return ""  # the items are stored: an error would deny that; `prepare` reports the cause


@public
def get_working_memory_item(id: str, *, home: Home = None) -> Item:
    """Return one item, having counted the access, unless the home cannot be written.

    Raises:
        NotFound: it is not in working memory.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        items.place_of(documents["memory"], id)
        return items.record_access(documents["memory"], [id], now=now())

    try:
        item: Item = note_reading(drained(find(home)), plan).result[0]
    except AetherError:  # a home that cannot be written can still be read
        memory = read(home).documents["memory"]
        item = copied(items.items_of(memory)[items.place_of(memory, id)])
    return item


@public
def update_working_memory_item(id: str, updates: Mapping[str, Any], *, home: Home = None) -> Item:
    """Return one item after merging `updates` (content, type, relevance_score, source, caste, metadata).

    Raises:
        NotFound: it is not in working memory.
        InvalidInput: a field is unknown or impossible.
        BudgetExceeded: the new content does not fit.
        Refused: an agent sets who vouches for it.
    """
    fields = dict(updates) if isinstance(updates, Mapping) else updates
    changes = copied(files.checked_json(fields, where=f"item {id}"))
    moment = now()
    by: Evidence = "agent" if is_agent() else "person"
    given = changes.get("metadata") if isinstance(changes, dict) else None
    if by == "agent" and isinstance(given, dict) and {"evidence", "corrected_by"} & given.keys():
        raise Refused(
            "an agent does not say who vouches for an entry.",
            fix="Leave out evidence and corrected_by.",
            where=f"item {id}",
        )

    def plan(documents: Mapping[str, Any]) -> Change:
        memory = documents["memory"]
        updated = items.update(memory, id, changes, now=moment, count=counter_of(memory), by=by)
        return chain_changes(
            documents, lambda _: updated, lambda state: signal_threshold(state, now=moment, new_id=new_id)
        )

    updated, needed = change(home, plan, Author("update", reason=id)).result
    if needed:
        prepare_handoff(home)
    item: Item = updated
    return item


@public
def list_working_memory_items(
    limit: int = 0,
    *,
    types: Iterable[str] = (),
    phase: int | str | None = None,
    caste: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    project: str | None = None,
    conversation: str | None = None,
    home: Home = None,
) -> list[Item]:
    """Return the items, most recently used first; all where `limit` is 0. Listing counts no access.

    The other options filter them as those of `search_memory` do.

    Raises:
        InvalidInput: an option has an impossible value.
    """
    memory = read(home).documents["memory"]
    if not any((types, caste, since, until, project, conversation)) and phase is None:
        return cast("list[Item]", copied(items.recent_items(memory, limit)))
    moment = now()
    keep = items.item_filter(
        types=types, phase=phase, caste=caste, since=instant(since, at=moment, where="since"), until=instant(until, at=moment, where="until"),
        project=project, conversation=conversation,
    )  # fmt: skip
    return cast("list[Item]", copied(items.recent_items(memory, limit, is_wanted=keep)))


@public
def clear_working_memory(*, home: Home = None) -> int:
    """Move every item to the archive and return how many there were; `undo` brings them back."""
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return chain_changes(
            documents,
            lambda state: items.clear(state["memory"], now=moment),
            lambda state: items.withdraw_threshold(state, now=moment),
        )

    return int(change(home, plan, Author("clear")).result[0])


@public
def check_token_threshold(*, home: Home = None) -> bool:
    """Return whether working memory is at or over its threshold, so that compression is needed."""
    return token_usage(read(home).documents["memory"]).needed


@public
def auto_compress_if_needed(*, home: Home = None) -> bool:
    """Return whether compression is needed; if so, its hand-off is prepared for an architect."""
    needed = check_token_threshold(home=home)
    if needed:
        seams.call("prepare handoff", home)
    return needed


@public
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
            fix=files.REPAIR,
            where="memory.json",
        )
    return token_usage(memory)
