"""Undo: reverse one transaction and keep those after it; the history of transactions, newest first.

The state before the transaction is merged into the present one, so later changes stay. If a later change depends on
it, nothing is undone and the error names that change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from aether.errors import Conflict, NotFound
from aether.schemas import check
from aether.store.authors import AETHER, ARCHIVE, HOOK, INIT
from aether.store.files import storage_errors
from aether.store.journal import Entry, folded_entries, journal_path, read_journal
from aether.store.merge import Place, merge, rules_of, value_at
from aether.store.patch import apply, diff, entry_id, join_changes, json_equal, keys_of
from aether.store.snapshot import Snapshot
from aether.types import Change, JsonObject, Patch

# Changes that only count reads: never what a person means by the last change.
BOOKKEEPING = frozenset({"access"})
# Nor are automatic changes: the spool of the hooks is drained just before the undo, too, and agents claim all the time.
# Older journals name them by the operation only, not by the author.
AUTOMATIC_OPERATIONS = BOOKKEEPING | {"capture", "claim", "release", "take packets"}
AUTOMATIC_AUTHORS = frozenset({HOOK, AETHER})
# The lists of memory whose entries have a history that is shown.
ENTRY_LISTS = ("/working_memory/items", "/short_term_memory/sessions", "/long_term_memory/patterns")
# Changes of one entry that are shown, and transactions that are looked into for them.
MOST_CHANGES, MOST_READ = 50, 5_000


def last_undoable(snapshot: Snapshot) -> int:
    """Return the revision that `undo` without a number means: the last change that was not automatic.

    No further back is read than that change.

    Raises:
        NotFound: there is no such change.
        Conflict: a text was erased from it; the one before it is named.
    """
    newest: Entry | None = None
    erased = 0
    for entry, undoing in _with_undoing(entries_newest_first(snapshot)):
        if undoing or entry.operation in {"undo", *BOOKKEEPING} or not (entry.inverse or entry.erased):
            continue
        if not is_automatic(entry):
            if entry.erased:
                erased = erased or entry.revision
                continue
            if erased:
                before = f'The change before it is undone by "aether undo {entry.revision}".'
                raise _is_erased(snapshot, erased, before)
            return entry.revision
        if newest is None and entry.operation != INIT:
            newest = entry
    if erased:
        raise _is_erased(snapshot, erased)
    fix = 'See "aether log".'
    if newest:
        fix = "What hooks did is undone by its revision; the newest is "
        fix += f'{newest.revision} ({newest.operation}): "aether undo {newest.revision}".'
    raise NotFound("nothing that you did is left to undo.", fix=fix, where=str(snapshot.home))


def _is_erased(snapshot: Snapshot, revision: int, before: str = "") -> Conflict:
    what = f"revision {revision} was erased and cannot be undone: a text in it is in no file any more."
    fix = "Add again by hand whatever of it you need."
    return Conflict(what, fix=f"{before} {fix}".lstrip(), where=str(snapshot.home))


def is_erased(snapshot: Snapshot, revision: int) -> bool:
    """Return whether a text was erased from `revision`, so that it cannot be undone."""
    entries = entries_newest_first(snapshot, after=revision - 1)
    return any(entry.revision == revision and entry.erased for entry in entries)


def is_automatic(entry: Entry) -> bool:
    """Return whether a transaction was automatic: nobody asked for it."""
    return entry.operation in AUTOMATIC_OPERATIONS or entry.by in AUTOMATIC_AUTHORS


def undone_revisions(snapshot: Snapshot, *, after: int = 0) -> set[int]:
    """Return the revisions > `after` that are undone at present."""
    return {
        entry.revision
        for entry, undoing in _with_undoing(entries_newest_first(snapshot, after=after))
        if undoing
    }


def _with_undoing(history: Iterable[Entry]) -> Iterator[tuple[Entry, int]]:
    """Yield each transaction of `history`, newest first, with the revision that undid it; 0 if none did.

    One pass is enough, because an undo is newer than what it undoes, and names the newest part of a whole.
    """
    undone_by: dict[int | str, int] = {}
    for entry in history:
        undoing = undone_by.pop(entry.revision, 0) or undone_by.get(_whole(entry), 0)
        if undoing and entry.part:
            undone_by[_whole(entry)] = undoing
        if entry.operation == "undo" and not undoing:
            undone_by[int(entry.reason.rpartition(" ")[2])] = entry.revision
        yield entry, undoing


def _whole(entry: Entry) -> str:
    """Return the name of what the transaction is a part of; empty if it is whole by itself.

    It is the own one of each member of a shared colony: nobody adds a part to the import of another.
    """
    name = entry.part.rpartition("/")[0]
    return f"{entry.member}/{name}" if name else ""


def parts_of(snapshot: Snapshot, revision: int) -> list[int]:
    """Return the revisions that are undone with `revision`, newest first: the parts of one import, else itself alone.

    No further back is read than the first of them.
    """
    newer: dict[str, list[int]] = {}
    import_name = ""
    for entry in entries_newest_first(snapshot):
        if entry.part and entry.revision >= revision:
            newer.setdefault(_whole(entry), []).append(entry.revision)
        if entry.revision == revision:
            import_name = _whole(entry)
        elif import_name and _whole(entry) == import_name:
            newer[import_name].append(entry.revision)
        is_first = _whole(entry) == import_name and entry.part.endswith("/1")
        if entry.revision <= revision and (not import_name or is_first):
            break
    return newer[import_name] if import_name else [revision]


def entries_newest_first(snapshot: Snapshot, *, after: int = 0) -> Iterator[Entry]:
    """Yield every transaction with revision > `after`, newest first, reading no further than needed."""
    with storage_errors(journal_path(snapshot.home)):
        entries = read_journal(snapshot.home).entries
    fresh = [entry for entry in reversed(entries) if entry.revision > after]
    yield from fresh
    seen = fresh[-1].revision if fresh else snapshot.revision + 1
    if seen == after + 1:
        return  # the journal has them all: a line of the history may be as long as an import
    for entry in folded_entries(snapshot.home, after=after, newest_first=True):
        if entry.revision < seen:
            yield entry


class EntryChange(NamedTuple):
    """One entry of memory before and after one transaction; None where it was not in its list."""

    revision: int
    at: str
    by: str
    operation: str
    reason: str
    before: JsonObject | None
    after: JsonObject | None
    extent: dict[str, int]
    """How many entries of each kind the whole transaction changed, which an undo takes back together."""
    part: str
    """See `journal.Entry`: the other parts are undone with it."""


# The lists whose entries a person knows by a name, by document and path.
_COUNTED = (
    ("memory", "/working_memory/items", "items"), ("memory", "/short_term_memory/sessions", "sessions"),
    ("memory", "/long_term_memory/patterns", "patterns"), ("goals", "/goals", "goals"),
    ("pheromones", "/active_pheromones", "signals"), ("COLONY_STATE", "/phases/roadmap", "phases"),
    ("teamwork", "/claims", "claims"), ("teamwork", "/packets", "packets"),
)  # fmt: skip


def extent_of(entry: Entry) -> dict[str, int]:
    """Return how many entries of each kind a transaction changed, added or removed; links are of their entries."""
    extent: dict[str, int] = {}
    for document, path, noun in _COUNTED:
        places = [
            step["path"][len(path) + 1 :].partition("/")
            for step in entry.inverse.get(document, []) if step["path"].startswith(f"{path}/")
        ]  # fmt: skip
        entries = [first for first, _, below in places if not below]
        if places:
            extent[noun] = len(entries) + len({first for first, _, below in places if below} - {*entries})
    return extent


def entry_changes(snapshot: Snapshot, id: str, *, most: int = MOST_CHANGES) -> tuple[list[EntryChange], bool]:
    """Return the changes of the item, session or pattern `id`, newest first, and whether these are all.

    At most `most` changes are returned, and the last `MOST_READ` transactions are taken back for them. Reads and changes
    of counters of access are no changes.
    """
    changes: list[EntryChange] = []
    memory, revision, steps = snapshot.documents["memory"], snapshot.revision, 0
    for entry in entries_newest_first(snapshot):
        if len(changes) >= most or steps >= MOST_READ or entry.revision != revision:
            return changes, False
        steps, revision = steps + 1, revision - 1
        inverse = entry.inverse.get("memory", [])
        earlier = apply(memory, inverse)
        if inverse and entry.operation not in BOOKKEEPING:
            for path in ENTRY_LISTS:
                after, before = (_entry_in(state, path, id) for state in (memory, earlier))
                if before is not after and before != after:
                    changes.append(EntryChange(*entry[:5], before, after, extent_of(entry), entry.part))
        memory = earlier
    return changes, revision == 0


def _entry_in(memory: Any, path: str, id: str) -> JsonObject | None:
    entries = value_at(memory, tuple(keys_of(path))) or ()
    return next((entry for entry in entries if id in (entry.get("id"), entry.get("session_id"))), None)


def states_since(
    snapshot: Snapshot, revision: int
) -> tuple[list[tuple[Entry, dict[str, Any]]], dict[str, Any]]:
    """Return the entries after `revision`, newest first, each with the state after it, and the state at it.

    Raises:
        NotFound: there is no such revision, or its history is damaged.
    """
    steps: list[tuple[Entry, dict[str, Any]]] = []
    state, expected = dict(snapshot.documents), snapshot.revision
    for entry in entries_newest_first(snapshot, after=revision):
        if entry.revision != expected:
            break
        steps.append((entry, state))
        state = {**state, **{name: apply(state[name], inverse) for name, inverse in entry.inverse.items()}}
        expected -= 1
    if not 0 <= revision <= snapshot.revision or expected != revision:
        raise _unknown(snapshot, revision)
    return steps, state


def _unknown(snapshot: Snapshot, revision: int) -> NotFound:
    what = f"revision {revision} is not in the history (newest: {snapshot.revision})."
    return NotFound(what, fix='See "aether log --all".', where=str(snapshot.home))


def undo(snapshot: Snapshot, revision: int) -> Change:
    """Return the change that undoes `revision`, and with it the other parts of the same import.

    Raises:
        NotFound: there is no such revision.
        Conflict: it was erased or is undone already, a later change depends on it, it made the document in the
            first place, or it changed no document.
    """
    if not 1 <= revision <= snapshot.revision:
        raise _unknown(snapshot, revision)
    parts = parts_of(snapshot, revision)
    steps, start = states_since(snapshot, parts[-1] - 1)
    undone_by = {entry.revision: undoing for entry, undoing in _with_undoing(entry for entry, _ in steps)}[
        parts[0]
    ]
    if undone_by:
        what, fix = (
            f"is undone already, by revision {undone_by}.",
            f'To have it again, "aether undo {undone_by}".',
        )
        raise Conflict(f"revision {revision} {what}", fix=fix, where=str(snapshot.home))
    state = dict(snapshot.documents)
    befores = [older for _, older in steps[1:]] + [start]
    undone = [entry for entry, _ in steps if entry.revision in parts]
    for (entry, _), before in zip(steps, befores, strict=True):
        if entry.revision in parts:
            _require_undoable(snapshot, entry, before)
    if not any(entry.inverse for entry in undone):
        raise _without_inverse(snapshot, undone[0])
    if len(undone) == len(steps):  # nothing came later, so their inverses fit as they are
        inverses = [Change(entry.inverse) for entry in undone]
        return join_changes(*inverses, result=undone[0])
    for index, (entry, after) in enumerate(steps):
        if entry.revision in parts:
            _undo_one(state, steps[: index + 1], after, befores[index])
    _require_forgotten(snapshot, state["memory"], steps, start["memory"], parts[0])
    touched = {name for entry in undone for name in entry.patches}
    patches = {name: diff(snapshot.documents[name], state[name]) for name in state if name in touched}
    return Change(patches, result=undone[0])


def _require_undoable(snapshot: Snapshot, entry: Entry, before: dict[str, Any]) -> None:
    """Check that no text was erased from `entry`, and that it made none of its documents.

    Raises:
        Conflict: one of both.
    """
    if entry.erased:
        raise _is_erased(snapshot, entry.revision)
    for name in entry.patches:
        if before[name] is None:
            what = f"revision {entry.revision} made {name}.json."
            raise Conflict(what, fix="Remove the home instead.", where=name)


def _require_forgotten(
    snapshot: Snapshot, memory: Any, steps: list[tuple[Entry, dict[str, Any]]], before: Any, revision: int
) -> None:
    """Check that `memory`, with `revision` undone, has no entry again that was forgotten after it left memory.

    Raises:
        Conflict: it has; the change that forgot it is named.
    """
    back = _live_ids(memory) - _live_ids(snapshot.documents["memory"])
    hidden = [
        record for record in _forgotten(memory) if record not in _forgotten(before) and record["id"] in back
    ]
    if not hidden:
        return
    forgetting = next(
        newer
        for (newer, later), (_, older) in pairwise(steps)
        if hidden[0] in _forgotten(later["memory"]) and hidden[0] not in _forgotten(older["memory"])
    )
    what = f"it would bring back {hidden[0]['id']}, forgotten by revision {forgetting.revision} ({forgetting.operation})"
    raise Conflict(
        f"revision {revision} cannot be undone: {what}.",
        fix="Undo the later change first.",
        where="memory.json",
    )


def _forgotten(memory: Any) -> list[JsonObject]:
    records: list[JsonObject] = memory.get("forgotten", [])
    return records


def _live_ids(memory: Any) -> set[str]:
    lists = (value_at(memory, tuple(keys_of(path))) for path in ENTRY_LISTS)
    return {str(entry.get("id") or entry.get("session_id")) for entries in lists for entry in entries or ()}


def _without_inverse(snapshot: Snapshot, entry: Entry) -> Conflict:
    what = f"revision {entry.revision} ({entry.operation}) cannot be undone: it changed no document."
    fix = 'See "aether log".'
    if entry.by == ARCHIVE:
        fix = '"aether archive restore ID" brings back a conversation while its fuller form is kept.'
    return Conflict(what, fix=fix, where=str(snapshot.home))


def _undo_one(
    state: dict[str, Any], steps: list[tuple[Entry, dict[str, Any]]], after: dict[str, Any], before: dict[str, Any]
) -> None:  # fmt: skip
    """Take the last of `steps` back out of `state`, which lay between `before` and `after`."""
    undone = steps[-1][0]
    for name in undone.patches:
        rules = rules_of(check.schema(name))
        merged, conflicts = merge(after[name], state[name], before[name], rules)
        if all(tuple(keys_of(step["path"])) in rules for step in diff(state[name], merged)):
            conflicts += _missing_entries(undone.patches[name], after[name], state[name])
        if conflicts:
            place = conflicts[0]
            later = [
                f"{newer.revision} ({newer.operation})" for (newer, later), (_, older) in pairwise(steps)
                if not json_equal(value_at(later.get(name), place), value_at(older.get(name), place))
            ]  # fmt: skip
            what = f"{'/'.join(place)} was changed again by revision {', '.join(reversed(later))}"
            raise Conflict(
                f"revision {undone.revision} cannot be undone: {what}.",
                fix="Undo the later change first.",
                where=f"{name}.json",
            )
        state[name] = merged


def _missing_entries(patch: Patch, after: Any, now: Any) -> list[Place]:
    """Return the places of entries that `patch` added and a later change removed (compressed, evicted …).

    If only counters are left to reverse, that change must be undone first.
    """
    added: list[Place] = []
    for step in patch:
        entry = entry_id(step.get("value")) if step["op"] == "add" else None
        if entry is not None:
            place = (*keys_of(step["path"])[:-1], entry)
            if value_at(after, place) is not None and value_at(now, place) is None:
                added.append(place)
    return added
