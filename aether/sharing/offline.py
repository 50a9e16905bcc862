"""The queue of a shared home: changes made while its server cannot be reached, one sealed file each, sent in their order later.

A change is planned on the newest state that the home knows, with what waits before it, and is acknowledged once its file
is written. When the server is back each is planned again on what others wrote meanwhile, or fitted to it (`send_queue`).
What no longer fits goes to quarantine as it is, and doctor reports it. A change has a key, which is in its line as well:
one that is in the history already is never sent twice. The commit path of a shared home (`commit`) is here too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, StorageFailed, UnsafePath
from aether.schemas import check, migrations
from aether.sharing.ledgers import TRACKED, is_tracked, of, unreachable
from aether.sharing.ledgers import ledger_of as ledger_of  # noqa: PLC0414 - the store asks this module
from aether.sharing.lines import UNREADABLE, as_taken, set_aside, words_of
from aether.store import config, files, seals, spool
from aether.store.authors import Author, only_looks
from aether.store.commit import Committed, catch_up, commit_to, does_something, settle
from aether.store.journal import (
    Entry,
    Harm,
    Journal,
    entry_fields,
    entry_of,
    folded_entries,
    journal_path,
    month_files,
    read_journal,
    scan_journal,
)
from aether.store.ledger import (
    FOREIGN,
    JOURNAL,
    MADE,
    PLACE,
    QUEUE,
    TRIED,
    Mark,
    Offline,
    is_shared,
    lines_after,
    seconds_left,
    stays_local,
)
from aether.store.log import checksum_of, lines_backwards, lines_of, seal_json, unsealed
from aether.store.merge import Ids, ids_of, refitted, rules_of
from aether.store.patch import apply
from aether.store.snapshot import REPLANNERS, Snapshot, after_change, load
from aether.text.words import pluralize
from aether.types import Change, Finding, JsonObject, Patch

DIRECTORY = QUEUE
# How the name of a change in quarantine starts.
UNFIT = "queued-"
# The starts of the names in quarantine that have findings here.
ASIDE = (UNFIT, UNREADABLE)
_NAME = re.compile(r"\d{8,}-[0-9a-f]{32}\.json")
# What the changes make of the documents (`MADE`) is written after each so many changes, so that nobody reads a long queue again.
KEPT_EACH = 32


class _Made(NamedTuple):
    """What the first changes that wait make of documents."""

    on: str
    """Which state of the home, and which changes: see `_key`."""
    number: int
    documents: dict[str, Any]
    """Those that they change, as they are then."""
    kept: int
    """The number of changes of which the home remembers the same."""


_MADE: dict[Path, _Made] = {}


class Queued(NamedTuple):
    """A change that waits for the server."""

    entry: Entry
    """With the revision that the home had."""
    on: dict[str, str]
    """The checksum of each document that it changes, as it was before."""
    ids: dict[str, Ids]
    """The list entries that it changes, for each document; a change of an earlier release has none."""


class _Unfit(Exception):
    """A change that waited no longer fits what others wrote."""


def commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    *,
    now: datetime,
    settings: config.Config,
    may_wait: bool = False,
) -> Committed:
    """Commit in a shared home after sending what waits; the caller holds the lock.

    With `may_wait` a change that the server cannot take now waits for it, if `share.offline` says so.

    Raises:
        Offline: the server cannot take it, and it does not wait.
    """
    key = os.urandom(16).hex() if may_wait and settings.share_offline == "queue" else ""
    last: list[tuple[Snapshot, Change]] = []

    def planned(seen: Snapshot) -> Change:
        last[:] = [(seen, plan(seen))]
        return last[0][1]

    try:
        snapshot = send_queue(settle(load(home), now=now), now)
        return commit_to(snapshot, planned, author, now, settings, key=key)
    except Offline as reason:
        if not key or stays_local():
            raise
        if not reason.sent or not last:
            planned(present(load(home)))
        # If it was sent, the ledger may have it: the very same change waits, known by its key.
        return _queued(*last[0], author, now, key)


def _queued(seen: Snapshot, change: Change, author: Author, now: datetime, key: str) -> Committed:
    """Let a change planned for `seen` wait for the server; its revision is 0 until then."""
    home = seen.home
    if not does_something(change):
        return Committed(seen.revision, change.result, changed=False)
    after, entry = after_change(seen, change, author, now, key=key)
    # Its line can be no further back than that, if the ledger has it all the same.
    reached = min(seen.revision, load(home).revision)
    with files.storage_errors(home):
        put(seen, entry._replace(revision=reached), after.documents)
    note_try(home, failed=True)
    return Committed(0, change.result, changed=True)


def send_queue(snapshot: Snapshot, now: datetime, *, insist: bool = False) -> Snapshot:
    """Send what waits for the server, in its order, and return the newest state; the caller holds the lock of the home.

    What no longer fits what others wrote goes to quarantine. In a home that has left its colony the changes are made there.
    A server that could not be reached some seconds ago is not asked, unless with `insist`.

    Raises:
        Offline: the ledger cannot take it; what is left waits on.
        Conflict, UnsafePath, CorruptDocument, StorageFailed: as `catch_up`.
    """
    home = snapshot.home
    if not is_waiting(home):
        return snapshot
    if not insist:
        require_answer(home)
    try:
        snapshot = settle(catch_up(snapshot, now=now), now=now)
        queue = [(path, read(path)) for path in waiting(home)]
        first = min((queued.entry.revision for _, queued in queue if queued), default=0)
        keys, reached = stored_keys(home, first), snapshot.revision
        for path, queued in queue:
            if queued:
                _send(snapshot, path, queued, keys, now)
            else:
                finish(path, fits=False)
            snapshot = settle(load(home), now=now)
            newer_keys, reached = stored_keys(home, reached), snapshot.revision
            keys = None if keys is None or newer_keys is None else keys | newer_keys
    except Offline:
        if not stays_local():  # a hook has not asked the server
            note_try(home, failed=True)
        raise
    note_try(home, failed=False)
    return snapshot


def _send(
    snapshot: Snapshot, path: Path, queued: Queued, history_keys: set[str] | None, now: datetime
) -> None:
    """Commit the change at `path`, unless its key is in the history; what does not fit goes to quarantine.

    `history_keys` are the keys of the history of `snapshot`, as `stored_keys` returns them.
    """
    home, entry = snapshot.home, queued.entry
    author = Author(entry.operation, entry.by, entry.reason, entry.part)

    def plan(seen: Snapshot) -> Change:
        keys = history_keys if seen.revision == snapshot.revision else stored_keys(home, entry.revision)
        change = Change({}) if keys and entry.key in keys else fitted(seen.documents, queued)
        if keys is None or change is None:
            raise _Unfit
        return change

    fits = True
    try:
        commit_to(snapshot, plan, author, now, config.or_default(home), key=entry.key)
    except _Unfit:
        fits = False
    with files.storage_errors(home):
        finish(path, fits=fits)


def require_answer(home: Path) -> None:
    """Check that the server of a shared home did not fail some seconds ago: nobody waits for it again so soon.

    Raises:
        Offline: it did.
    """
    if seconds := seconds_left(home):
        what = f"the server of this home could not be reached, and is tried again in {seconds} seconds. Nothing was stored."
        fix = 'Run "aether fold" to try it now; "aether share status" says what is wrong.'
        raise Offline(what, fix=fix, where=str(home))


def waiting(home: Path) -> list[Path]:
    """Return the files of the changes that wait, oldest first; not of those that git tracks, which others wrote."""
    return [home / DIRECTORY / name for name in names(home)]


def names(home: Path) -> list[str]:
    """Return the names of these files: a queue may be long, and a path costs more than its change."""
    try:
        queued = [name for name in os.listdir(f"{home}/{DIRECTORY}") if _NAME.fullmatch(name)]
    except OSError:
        return []
    foreign = tracked(home) if queued else frozenset[str]()
    return sorted(name for name in queued if name not in foreign)


def is_waiting(home: Path) -> bool:
    """Return whether any change waits."""
    try:
        with os.scandir(f"{home}/{DIRECTORY}") as entries:
            foreign = tracked(home)
            return any(_NAME.fullmatch(entry.name) and entry.name not in foreign for entry in entries)
    except OSError:
        return False


def tracked(home: Path) -> frozenset[str]:
    """Return the names of the changes that came with a repository: nobody here made them, and they are never sent."""
    return spool.tracked(str(home), f"{DIRECTORY}/")


def put(seen: Snapshot, entry: Entry, after: Mapping[str, Any]) -> None:
    """Keep `entry`, planned for `seen`, durably until it can be sent; the caller holds the lock of the home.

    It makes the documents `after`.

    Raises:
        OSError: it was not kept.
    """
    home, before = seen.home, seen.documents
    files.make_directory(home / DIRECTORY)
    waits = names(home)
    number = int(waits[-1].partition("-")[0]) + 1 if waits else 1
    on = {name: _state_of(before[name]) for name in entry.patches}
    ids = {name: ids_of(before[name], patch) for name, patch in entry.patches.items()}
    data = seal_json({**entry_fields(entry), "schema_version": migrations.VERSION, "on": on, "ids": ids})
    path = home / DIRECTORY / f"{number:08d}-{entry.key}.json"
    files.write_whole(path, data)
    remembered = _made(seen, waits)
    if remembered.number == len(waits):
        documents = {**remembered.documents, **{name: after[name] for name in entry.patches}}
        waits.append(path.name)
        _remember(home, remembered._replace(number=len(waits), on=_key(seen, waits), documents=documents))


def read(path: Path) -> Queued | None:
    """Return the change in the file at `path`; None if it is damaged.

    Raises:
        InvalidDocument: a newer aether wrote it; it stays where it is.
    """
    fields: JsonObject | None = None
    with suppress(AetherError, OSError):
        fields = unsealed(regular.read(path, regular.LOG_BYTES))
    if fields:
        migrations.is_current(f"{DIRECTORY}/{path.stem}", fields)
        with suppress(AetherError, KeyError, TypeError, ValueError, AttributeError):
            return Queued(entry_of(fields), dict(fields["on"]), dict(fields.get("ids", {})))
    return None


def require_known(home: Path) -> None:
    """Check that this aether can send what waits.

    Raises:
        InvalidDocument: a newer aether wrote some of it.
    """
    for path in waiting(home):
        read(path)


def fitted(documents: Mapping[str, Any], queued: Queued) -> Change | None:
    """Return what does to `documents` what the change did to those it was planned for; None if it does not fit.

    A change that can be planned again from what it holds is; else its steps are fitted.
    """
    entry = queued.entry
    changed = {
        name
        for name in entry.patches
        if name not in documents or _state_of(documents[name]) != queued.on.get(name)
    }
    plans = (plan(documents, entry) for plan in REPLANNERS) if changed else iter(())
    planned = next(filter(None, plans), Change({}))
    fitted_patches = dict(planned.patches)
    for name, patch in entry.patches.items():
        if name in fitted_patches:
            continue
        fit: Patch | None = patch
        if name in changed:
            ids, inverse = queued.ids.get(name, [[]] * len(patch)), entry.inverse.get(name, [])
            document, rules = documents.get(name), rules_of(check.schema(name))
            fit = None if document is None else refitted(document, patch, inverse, rules, ids)
        if fit is None:
            return None
        fitted_patches[name] = fit
    return Change(fitted_patches, {**entry.appends, **planned.appends})


def present(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` with the documents as they are after what waits, for reading and planning; never to be stored.

    Only the changes that nobody has read yet are read: the state after the others is remembered, here and in the home.
    """
    home, waits = snapshot.home, names(snapshot.home)
    if not waits:
        return snapshot
    remembered = _made(snapshot, waits)
    changed, good = dict(remembered.documents), True
    for name in waits[remembered.number :]:
        queued = read(home / DIRECTORY / name)
        documents = {**snapshot.documents, **changed}
        change = fitted(documents, queued) if queued else None
        patches = change.patches if change else {}
        changed |= {document: apply(documents[document], patch) for document, patch in patches.items()}
        good = good and queued is not None  # one that cannot be read now may have been sent this moment
    if good and remembered.number < len(waits):
        _remember(home, remembered._replace(number=len(waits), on=_key(snapshot, waits), documents=changed))
    return snapshot._replace(documents={**snapshot.documents, **changed})


def _made(snapshot: Snapshot, waits: list[str]) -> _Made:
    """Return what is remembered of the documents after the first of the changes `waits`; nothing if it is of others."""
    for remembered in (_MADE.get, _read_made):
        state = remembered(snapshot.home)
        if state and 0 < state.number <= len(waits) and state.on == _key(snapshot, waits[: state.number]):
            return state
    return _Made("", 0, {}, 0)


def _key(snapshot: Snapshot, waits: list[str]) -> str:
    """Return a checksum by which a state of the home, with the changes `waits` after it, is known."""
    # What an earlier release made of older documents is made again.
    versions = {name: document.get("schema_version") for name, document in sorted(snapshot.documents.items())}
    return files.checksum(files.json_line([snapshot.revision, snapshot.files, waits, versions]))


def _read_made(home: Path) -> _Made | None:
    with suppress(AetherError, OSError, KeyError, TypeError, ValueError):
        fields = unsealed(regular.read(home / MADE, regular.LOG_BYTES)) or {}
        return _Made(fields["on"], fields["number"], fields["documents"], fields["number"])
    return None


def _remember(home: Path, state: _Made) -> None:
    if state.number - state.kept >= KEPT_EACH and not only_looks():
        with suppress(AetherError, OSError):  # it is derived: the changes are read again
            fields = {"on": state.on, "number": state.number, "documents": state.documents}
            files.write_whole(home / MADE, seal_json(fields))
            state = state._replace(kept=state.number)
    _MADE[home] = state


def stored_keys(home: Path, after: int) -> set[str] | None:
    """Return the keys of the changes after revision `after`; None if the history does not reach so far back."""
    entries = [
        entry
        for entry in (*folded_entries(home, after=after, newest_first=True), *read_journal(home).entries)
        if entry.revision > after
    ]
    revisions = {entry.revision for entry in entries}
    is_whole = len(revisions) == max(revisions, default=after) - after
    return {entry.key for entry in entries} - {""} if is_whole else None


def finish(path: Path, *, fits: bool) -> None:
    """Remove the change at `path`, which is in the history; one that is damaged or no longer fits goes to quarantine."""
    home = path.parents[2]
    (home / MADE).unlink(missing_ok=True)
    if fits:
        path.unlink()
    else:
        aside = home / "quarantine" / f"{UNFIT}{path.name}"
        files.make_directory(aside.parent)
        os.replace(path, aside)
        files.sync_directory(aside.parent)
        what = f"a change that waited for the server no longer fits: it is in quarantine/{aside.name}."
        spool.log_failure(str(home), "share", "", what)
    files.sync_directory(path.parent)


def unfit(home: Path) -> list[Path]:
    """Return the changes in quarantine, which no longer fitted what others wrote."""
    return sorted((home / "quarantine").glob(f"{UNFIT}*"))


def note_try(home: Path, *, failed: bool) -> None:
    """Note that the server could not be reached now, or that it could."""
    with suppress(OSError, UnsafePath):
        if failed:
            files.make_directory((home / TRIED).parent)
            regular.touch(home / TRIED)
        else:
            (home / TRIED).unlink(missing_ok=True)


def _state_of(document: Any) -> str:
    return files.checksum(files.json_line(document))


def with_colony_lines(home: Path, journal: Journal) -> Journal:
    """Return the damaged journal of a shared home with the lines that the ledger has; as it was read if the home is not shared.

    Raises:
        Conflict: the ledger ends before what this home has acknowledged, or has other lines.
    """
    reached = journal.base + len(journal.entries)
    try:
        server = of(home)
        if server is None:
            return journal
        before = next((line for path in reversed(month_files(home)) for line in lines_backwards(path)), b"")
        is_continuous = (unsealed(before) or {}).get("revision") == journal.base
        mark = Mark(journal.base, checksum_of(before) if is_continuous else "")
        # Not more than the home has had: what is newer is checked when the home catches up.
        lines = lines_after(server, JOURNAL, mark, reached)
        lines = [*as_taken(home, dict(enumerate(lines, journal.base + 1))).values()]
    except StorageFailed as reason:
        raise unreachable(reason) from reason
    recovered = scan_journal(b"".join(lines), base=journal.base, where=PLACE)
    if recovered.lines != lines:
        what = f"the ledger has a line after revision {journal.base} that is damaged, or has another number."
        raise CorruptDocument(what, fix=FOREIGN, where=str(home))
    if recovered.base + len(lines) < reached:
        what = f"the ledger ends at revision {recovered.base + len(lines)}, and this home has acknowledged {reached}."
        fix = "Its server was restored from an older backup: see docs/shared.md. The damaged journal is as it was."
        raise Conflict(what, fix=fix, where=str(home))
    ours = {
        fields["revision"]: line
        for line, good in lines_of(regular.read(journal_path(home), regular.LOG_BYTES))
        if good and (fields := unsealed(line) or {}).get("revision", 0) > journal.base
    } if journal_path(home).exists() else {}  # fmt: skip
    for revision, line in ours.items():
        if line != lines[revision - journal.base - 1]:
            what = f"the ledger has another line than this home at revision {revision}."
            fix = (
                "Join the colony in a new home, or run aether share leave. The damaged journal is as it was."
            )
            raise Conflict(what, fix=fix, where=str(home))
    return journal._replace(entries=recovered.entries, lines=recovered.lines, harm=Harm([], [], []))


def findings(home: Path) -> Iterator[Finding]:
    """Yield findings for changes of a shared home that wait for its server or no longer fitted, and for lines set aside."""
    foreign = tracked(home)
    if foreign:
        what = f"git tracks {pluralize(len(foreign), 'waiting changes')}, which came with the repository and are not sent."
        fix = "Remove them: git rm --cached -r .aether/share, and keep .aether/ in .gitignore."
        yield Finding("warning", "tracked-queue", f"{DIRECTORY}/", what, fix)
    if is_shared(home) and is_tracked(home):
        yield Finding("warning", "tracked-share", PLACE, *TRACKED)
    waits = waiting(home)
    if waits:
        what = f"{pluralize(len(waits), 'changes')} waiting for the server of the colony."
        fix = 'They are sent when it can be reached; see "aether share status".'
        yield Finding("info", "waiting", f"{DIRECTORY}/", what, fix)
    for path in waits:
        try:
            queued = read(path)
        except InvalidDocument as newer:
            yield Finding("error", newer.code, newer.where, newer.what, newer.fix)
            continue
        if queued is None:
            what = "a waiting change is damaged; it goes to quarantine instead of the server."
            yield Finding("error", "damaged-change", seals.place(home, path), what, "Make it again.")
    for path in unfit(home):
        queued = None
        with suppress(InvalidDocument):
            queued = read(path)
        who = f"{queued.entry.operation} by {queued.entry.by} at {queued.entry.at}" if queued else "a change"
        what = f"{who} waited for the server, and no longer fitted what others wrote."
        fix = "Make the change again where it is still wanted, then remove the file."
        yield Finding("warning", "unfit-change", seals.place(home, path), what, fix)
    for path, about in set_aside(home):
        fix = f"An admin removes it: aether share remove {about['revision']}, and may revoke the role. Then remove the file."
        yield Finding("warning", "unreadable-line", seals.place(home, path), words_of(about), fix)
