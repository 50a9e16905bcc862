"""Administration of a home: init, fold, show, log, undo, examine, repair, export, and snapshots of the whole colony.

A restored snapshot is a change like any other: in the journal, and reversed by `undo`. The checks and repairs themselves are
in `store.doctor` and `search.rank`.
"""

from __future__ import annotations

import heapq
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, paths, regular
from aether.api import memory_tool
from aether.api.home import REFUSALS, Home, change, copied, drained, find, look_again, now, present, read
from aether.api.memory_tool import directory_updated
from aether.api.timeline import all_compactions
from aether.clock import new_id
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    NotFound,
    Refused,
    StorageFailed,
    note_stored,
    public,
    shown,
)
from aether.memory import gate, items, sessions, snapshots
from aether.memory.handoff import require_intact
from aether.paths import HOME_NAME, file_name, inside
from aether.schemas import check, migrations
from aether.store import (
    archive_steps,
    config,
    copies,
    documents,
    exported_logs,
    files,
    ledger,
    origin,
    record_files,
    seals,
)
from aether.store import archive_store as store_aged
from aether.store import conversations as store_conversations
from aether.store import doctor as store_doctor
from aether.store import undo as undoing
from aether.store.authors import HAND, Author, is_agent
from aether.store.commit import commit, fold_home, write_lock
from aether.store.files import make_directory, storage_errors, write_whole
from aether.store.journal import Entry
from aether.store.merge import merge, rules_of
from aether.store.patch import diff, join_changes
from aether.store.snapshot import Snapshot, load, no_home
from aether.store.undo import BOOKKEEPING, entries_newest_first, last_undoable, parts_of, states_since
from aether.store.undo import undo as undo_change
from aether.text.words import argument, pluralize
from aether.types import Change, Finding, JsonObject


class Trust(NamedTuple):
    """How far the user trusts one configuration file of a home."""

    file: Path
    state: str
    """`trusted`, `changed` since it was trusted, `untrusted`, or `harmless`: it has no settings with authority."""
    settings: JsonObject
    """The settings with authority, by path: those that start programs, or name servers, exporters and places."""
    data: bytes
    """The content that was read, which is what can be trusted."""


def trust_of(file: str = "", *, home: Home = None) -> Trust:
    """Return how far the user trusts `file`, a configuration in a home: unless named, the `config.toml` of `home`.

    Raises:
        NotFound: there is no home.
        InvalidInput, InvalidDocument, UnsafePath: the file cannot be read as a configuration.
    """
    path = Path(os.path.abspath(file)) if file else find(home) / config.NAME
    try:
        data, settings = config.authority(path)
    except NotFound:
        if file:
            raise
        data, settings = b"", {}
    trusted = config.trusted_hash(path)
    state = "changed" if trusted else "untrusted"
    if config.is_trusted(path, data):
        state = "trusted"
    return Trust(path, state if settings else "harmless", settings, data)


def grant_trust(trust: Trust) -> Trust:
    """Trust the file of `shown` with exactly the content that was shown, and return it as trusted.

    Raises:
        StorageFailed: the user's state directory cannot be written.
    """
    config.grant_trust(trust.file, trust.data)
    return trust._replace(state="trusted")


@public
def create_snapshot(label: str = "", *, home: Home = None) -> JsonObject:
    """Save the whole colony with its conversations, and return the snapshot without its content.

    Raises:
        CorruptDocument: a conversation is damaged; nothing was saved.
    """
    return _take_snapshot(label, home, by_itself=False)


@public
def automatic_snapshot(label: str, *, home: Home = None) -> str:
    """Save the colony before or after a transition and return the snapshot's id; the oldest automatic ones are removed."""
    outline = _take_snapshot(label, home, by_itself=True)
    place = find(home)
    snapshot_id = str(outline["snapshot_id"])
    with write_lock(place), storage_errors(place, left="The snapshot was taken."):
        for old in snapshots.prunable(list_snapshots(home=place), taken=snapshot_id):
            _path(place, old).unlink(missing_ok=True)
            seals.seal_file(place, _path(place, old), None)
    return snapshot_id


def _take_snapshot(label: str, home: Home, *, by_itself: bool) -> JsonObject:
    place = drained(find(home))
    # Read under the lock: what is erased while a snapshot is written would come back with it.
    with write_lock(place), storage_errors(place):
        state, instant = present(place), now()
        snapshot = snapshots.take_snapshot(
            state.documents, snapshot_id=new_id("snapshot", instant), label=label, now=instant,
            revision=state.revision, automatic=by_itself,
        )  # fmt: skip
        if not by_itself:
            talks = store_conversations.stored_conversations(place)
            snapshot["conversations"] = {
                talk.id: store_conversations.records_of(place, talk.id) for talk in talks
            }
        path = _path(place, snapshot["snapshot_id"])
        make_directory(path.parent)
        data = files.json_document(snapshot)
        write_whole(path, data)
        note_stored()
        seals.seal_file(place, path, data)
    return {field: value for field, value in snapshot.items() if field not in snapshots.CONTENT}


@public
def list_snapshots(*, home: Home = None) -> list[JsonObject]:
    """Return every readable snapshot, newest first, without the documents.

    Raises:
        NotFound: this is not a home.
    """
    place = find(home)
    if not (place / "data").is_dir():
        raise NotFound("is not a home: it has no data/.", fix='Run "aether init" there.', where=str(place))
    # Restoring a file of another program reports it; the others are still useful.
    return sorted(filter(None, dict(_all(place)).values()), key=snapshots.sort_key, reverse=True)


def examine_snapshots(home: Path) -> list[Finding]:
    """Return findings about files that are JSON and not a snapshot."""
    return [
        Finding(
            "warning", "unreadable", f"snapshots/{path.name}", "not a snapshot of aether.",
            "Remove it, or restore it from a copy.",
        )
        for path, outline in sorted(_all(home)) if outline is None
    ]  # fmt: skip


def _all(home: Path) -> Iterator[tuple[Path, JsonObject | None]]:
    """Yield every file of JSON with its snapshot; None if it holds none, or one of another id."""
    for path in (home / "snapshots").glob("*.json"):
        try:
            outline = snapshots.without_documents(files.parse_json(regular.read(path), where=path.name))
        except AetherError:
            continue
        yield path, outline if outline and outline["snapshot_id"] == path.stem else None


def _path(home: Path, snapshot_id: str) -> Path:
    return inside(home, f"snapshots/{file_name(snapshot_id, what='snapshot id')}.json")


def snapshot_file(snapshot_id: str, *, home: Home = None) -> Path:
    """Return the file of a snapshot; `latest` is the newest.

    Raises:
        NotFound: there is no such snapshot.
    """
    place = find(home)
    outlines = list_snapshots(home=place)
    if snapshot_id == "latest" and outlines:
        snapshot_id = outlines[0]["snapshot_id"]
    path = _path(place, snapshot_id)
    if not path.exists():
        raise NotFound(
            f"there is no snapshot {shown(snapshot_id)}.",
            fix='See "aether snapshot --list".',
            where=str(place),
        )
    return path


@public
def restore_snapshot(snapshot_id: str = "latest", *, home: Home = None) -> list[str]:
    """Restore the colony from a snapshot and return the names of the documents and conversations that changed.

    A missing conversation is restored; an existing one stays as it is, with everything added since.

    Raises:
        NotFound: there is no such snapshot.
        CorruptDocument: it was changed since it was saved.
        InvalidDocument: it does not fit this aether.
    """
    place = find(home)
    path = snapshot_file(snapshot_id, home=place)
    read_back = files.parse_json(regular.read(path), where=path.name)
    saved = read_back if isinstance(read_back, dict) else {}

    instant = now()

    def valid(name: str, value: Any) -> Any:
        present = migrations.current(name, value)
        check.require(name, present, fix="Restore another snapshot.")
        return present

    def plan(documents: Mapping[str, Any]) -> Change:
        restored = snapshots.restore(documents, saved, current=valid)
        return snapshots.archive_removed(documents, restored, now=instant)

    with directory_updated(place):
        changed: list[str] = change(place, plan, Author("restore", reason=snapshot_id)).result
    talks = saved.get("conversations", {})
    back = [
        name
        for name, records in talks.items()
        if store_conversations.bring_back(place, name, records, now=instant)
    ]
    return [*changed, *(f"conversation {name}" for name in back)]


@public
def init(home: Home = None) -> Path:
    """Make the home ready for use and return its path; one that exists keeps everything, and git ignores a new one.

    `home` is the home itself; by default `AETHER_HOME`, else `.aether/` in the current directory. Files of
    the original v2.0 format are converted.

    Raises:
        StorageFailed: the directory cannot be written.
        NotFound: a file is in its place.
    """
    directory = home or os.environ.get("AETHER_HOME") or Path.cwd() / HOME_NAME
    place = paths.find_home(directory)
    if place.is_file():
        raise no_home(place)
    is_new = not (place / "data").is_dir()
    try:
        with storage_errors(place):
            make_directory(place / "data")
            if is_new:
                regular.create(place / ".gitignore", b"*\n")
                origin.observe(place)
    except NotFound as reason:
        raise StorageFailed(
            "no directory can be made there.", fix="Name one on a disk that can be written.", where=str(place)
        ) from reason
    fold_home(place, now=now())
    return place


class Folded(NamedTuple):
    """The result of folding."""

    revision: int
    """The revision that the documents now contain."""
    troubles: list[Finding]
    """What a shared home could not exchange with its colony, and why."""


@public
def fold(*, home: Home = None) -> int:
    """Fold the journal into the documents and return the revision that they now contain.

    A shared home first fetches what others wrote, also conversations and files, and sends its waiting changes and spooled
    events; if it cannot, it is folded as it is.
    """
    return fold_all(home=home).revision


@public
def fold_all(*, home: Home = None) -> Folded:
    """Do the same as `fold`, and say what a shared home could not exchange; a server that failed a moment ago is asked again."""
    place, findings = find(home), list[Finding]()
    if ledger.is_shared(place):
        from aether.api.share import failure, troubles

        look_again(place)
        drained(place)
        refused = REFUSALS.pop(place, None)
        reason = refused if isinstance(refused, ledger.Offline) else _exchange(place)
        findings = [failure(finding) for finding in (refused, reason) if finding]
        if not isinstance(reason, ledger.Offline):
            findings += troubles(place)
    each_once = {finding.message: finding for finding in findings}
    return Folded(fold_home(place, now=now()).revision, [*each_once.values()])


def _exchange(place: Path) -> AetherError | None:
    """Exchange files and conversations with the colony of a shared home; return why that failed, if it did."""
    if not ledger.is_shared(place):
        return None
    from aether.api.share import exchange

    try:
        ledger.sharing(place).require_answer(place)
        exchange(place)
    except AetherError as reason:
        return reason
    return None


@public
def show(document: str, *, home: Home = None, revision: int | None = None) -> Any:
    """Return a document as it is now, to the last committed change, or as it was at `revision`.

    Raises:
        NotFound: there is no such document or revision.
        Refused: an agent asks for what waits for a person.
    """
    place = find(home)
    documents.path_of(place, document)
    if document == gate.DOCUMENT and is_agent():
        raise Refused(
            "only a person sees what waits.", fix="Type it at a terminal of your own.", where=document
        )
    state = present(place).documents if revision is None else states_since(load(place), revision)[1]
    return _visible(state)[document]


def _visible(state: Mapping[str, Any]) -> JsonObject:
    """Return a copy of the documents; without what waits, if an agent asks."""
    hides = is_agent()
    return {
        name: gate.without_waiting(value) if hides else copied(value)
        for name, value in state.items()
        if not (hides and name == gate.DOCUMENT)
    }


def is_erased(revision: int, *, home: Home = None) -> bool:
    """Return whether a text was erased from `revision`: a past state has a mark in its place, and no undo brings it back."""
    return undoing.is_erased(load(find(home)), revision)


class LogLine(NamedTuple):
    """One transaction, as `aether log` lists it."""

    revision: int
    """0 of a compaction, which belongs to a conversation: `undo --conversation` reverses it."""
    at: str
    by: str
    operation: str
    reason: str
    touched: list[str]
    """Documents and append-only files that it changed."""
    member: str = ""
    """In a shared home, the role of the server that sent it."""
    undone_by: int = 0
    """Of a result of `undo`: the revision that undid it. To undo that one restores the change."""


@public
def log(*, limit: int = 20, everything: bool = False, home: Home = None) -> list[LogLine]:
    """Return the newest `limit` changes, newest first (0: all); bookkeeping only if `everything`.

    They are the transactions of the colony, and the compactions of conversations that can be undone.
    """
    snapshot, hides = read(home), is_agent()
    entries = (
        entry for entry in entries_newest_first(snapshot) if everything or entry.operation not in BOOKKEEPING
    )
    lines = [
        LogLine(
            entry.revision, entry.at, entry.by, entry.operation,
            # A reason quotes what was added.
            "" if hides and gate.DOCUMENT in entry.patches else f"{entry.reason} (erased)".lstrip() if entry.erased else entry.reason,
            [*entry.patches, *entry.appends], entry.member,
        )
        for entry in islice(entries, min(limit, sys.maxsize) or None)
    ]  # fmt: skip
    since = lines[-1].at if lines and len(lines) == limit else ""
    compactions = sorted(_compactions(snapshot.home, since), key=_at, reverse=True)
    # Transactions stay in their order, also where a clock was set back.
    return list(
        islice(heapq.merge(lines, compactions, key=_at, reverse=True), min(limit, sys.maxsize) or None)
    )


def _at(line: LogLine) -> str:
    return line.at


def _compactions(home: Path, since: str) -> Iterator[LogLine]:
    """Yield the compactions that can be undone and are not older than `since`."""
    for log, compaction in all_compactions(home, since=since):
        if (step := compaction.step) in log.open:
            undo = f"aether undo {argument(log.id, '--conversation')}"
            reason = f'step {step}, undone by "{undo}"' if step == log.open[-1] else f"step {step}"
            place = f"conversations/{log.path.parent.name}"
            yield LogLine(0, compaction.at, "caller", "compact", reason, [place])


@public
def undo(revision: int | None = None, *, home: Home = None) -> LogLine:
    """Reverse one transaction (default: the last by request that is not undone) and return it.

    Later ones stay. Transactions of hooks are undone only by their revision. An import is one, whatever its size.

    Raises:
        NotFound: there is no such revision.
        Conflict: it was erased, or a later change depends on it; that change is named.
    """
    place = drained(find(home))
    shared = ledger.sharing(place)
    if revision is None and shared and shared.is_waiting(place):
        what = "changes wait for the server of the colony, and the last one is among them."
        raise Conflict(what, fix='Name a revision of "aether log", or wait for the server.', where=str(place))
    while True:
        snapshot = load(place)
        parts = parts_of(snapshot, revision if revision is not None else last_undoable(snapshot))
        try:
            return _undo(place, parts)
        except Conflict:
            # Another process may have undone the last one meanwhile: then the one before it is meant.
            if revision is not None or last_undoable(load(place)) == parts[0]:
                raise


def _undo(place: Path, parts: list[int]) -> LogLine:
    instant = now()

    def plan(snapshot: Snapshot) -> Change:
        undone = undo_change(snapshot, parts[0])
        undone = snapshots.archive_removed(snapshot.documents, undone, now=instant, undone=True)
        derived = items.derived_change(snapshot.documents, undone)
        return join_changes(undone, derived, result=undone.result)

    with memory_tool.directory_updated(place):
        outcome = commit(place, plan, Author("undo", reason=f"of revision {parts[0]}"), now=instant)
    entry: Entry = outcome.result
    reason = f"{entry.reason}, with its revisions from {parts[-1]} on" if len(parts) > 1 else entry.reason
    return LogLine(
        entry.revision, entry.at, entry.by, entry.operation, reason, [*entry.patches], entry.member,
        undone_by=outcome.revision,
    )  # fmt: skip


@public
def examine(*, home: Home = None) -> list[Finding]:
    """Check the home and return the findings, errors first; nothing is changed."""
    from aether.api.backup import examine_leftovers

    place = find(home)
    if not place.is_dir():
        raise no_home(place)
    findings = [
        *store_doctor.examine(place), *examine_snapshots(place), *memory_tool.examine_directory(place),
        *_examine_share(place), *examine_leftovers(place),
        *(
            Finding("warning", "damaged-copy", f"compressions/{path.name}", "the hand-off was changed.", files.REPAIR)
            for path in _changed_handoffs(place)
        ),
    ]  # fmt: skip
    if not any(finding.level == "error" for finding in findings):
        findings += items.examine(load(place).documents)
    return findings


def _examine_share(place: Path) -> list[Finding]:
    if not ledger.is_shared(place) and not (place / "share").is_dir():
        return []
    from aether.api.share import examine_share

    return examine_share(place)


def _changed_handoffs(home: Path) -> Iterator[Path]:
    """Yield the hand-offs that can be read and are not as they were written; what they hold is in the home."""
    for path in sorted((home / "compressions").glob("*.json")):
        with suppress(AetherError):
            value = files.parse_json(regular.read(path), where=path.name)
            try:
                require_intact(value, where=path.name)
            except CorruptDocument:
                yield path


@public
def repair(*, home: Home = None) -> list[str]:
    """Repair the home as far as possible and return the repairs in words; a shared home first fetches what its colony has."""
    from aether.api.backup import clear_leftovers

    place = find(home)
    alone = _exchange(place) is None  # then nobody has more, as far as is known

    def lines_of_colony(revisions: list[int]) -> dict[int, bytes]:
        from aether.api.share import colony_lines

        return colony_lines(place, revisions)

    def read_again(id: str, data: bytes) -> JsonObject:
        from aether.api import archive

        return archive.read_again(place, id, data)

    lines = store_doctor.repair(
        place, now=now(), colony_lines=lines_of_colony, alone=alone, read_again=read_again
    )
    lines += [store_doctor.set_aside(place, path, now()) for path in _changed_handoffs(place)]
    lines += clear_leftovers(place)

    def plan(snapshot: Snapshot) -> Change:
        return items.repaired(snapshot.documents)

    settings = config.or_default(place)  # a broken config.toml must not stop the repair of the rest
    with memory_tool.directory_updated(place):
        repaired = commit(place, plan, Author("repair", by="doctor"), now=now(), settings=settings)
    fold_home(place, now=now())
    return [*lines, *repaired.result]


@public
def accept_edit(name: str, *, home: Home = None) -> list[str]:
    """Accept a hand edit that waits in quarantine, and return the documents that changed; `undo` reverses it.

    Where the edit and later changes differ, the edit wins; everything else that changed since stays. `name` is that of
    the file in `quarantine/`, which may be corrected first. It may also be the place of a copy from another machine, or of a
    file with both sides of a merge: entries and changes that memory lacks are added, nothing else changes, and the copy moves
    to quarantine.

    Raises:
        NotFound: there is no such file, or the history does not reach back to the revision that was edited.
        InvalidDocument, CorruptDocument: it breaks the schema, or is not JSON; it stays in quarantine.
    """
    place = find(home)
    for copy in copies.copies(place):
        if name in (copies.place(place, copy), copy.path.name):
            return _accept_copy(place, copy)
    path = inside(place, f"quarantine/{file_name(name, what='name of an edit')}")
    edit = next((edit for edit in documents.kept_edits(place) if edit.path == path), None)
    if edit is None:
        fix = 'See "aether doctor" for the edits that wait.'
        raise NotFound(f"{shown(name)} is not an edit in quarantine.", fix=fix, where=str(place))
    fix = f"Correct quarantine/{path.name}, then accept it again."
    value = files.parse_json(regular.read(path), where=path.name)
    if not isinstance(value, dict):
        raise CorruptDocument("not a document.", fix=fix, where=path.name)
    value.pop("stamp", None)
    document, instant = edit.document, now()
    edited = migrations.current(document, value)
    check.require(document, edited, fix=fix)

    def plan(snapshot: Snapshot) -> Change:
        present = snapshot.documents[document]
        base = states_since(snapshot, edit.revision)[1][document]
        # The edit is the side that is kept where both changed.
        merged, _ = merge(base, edited, present, rules_of(check.schema(document)))
        change = Change({document: diff(present, merged)} if merged != present else {}, result=None)
        change = snapshots.archive_removed(snapshot.documents, change, now=instant)
        return join_changes(change, items.derived_change(snapshot.documents, change), result=[document])

    with directory_updated(place):
        committed = commit(place, plan, Author("edited by hand", by=HAND, reason=name), now=instant)
    documents.remove_edit(edit)
    return committed.result if committed.changed else []


def _accept_copy(place: Path, copy: copies.Copy) -> list[str]:
    """Add what a copy from another machine has and memory lacks, and move the copy to quarantine."""
    where, instant = copies.place(place, copy), now()
    if not copy.is_mergeable:
        what = "it has neither entries nor changes that could be taken over by their ids."
        raise NotFound(what, fix='See "aether doctor".', where=where)
    data = regular.read(copy.path, regular.LOG_BYTES)
    versions = [_version(copy, side, where) for side in copies.sides(data)]
    if copy.is_live:  # the next change writes it again
        documents.quarantine(place, copy.path.name, data, at=clock.stamp(instant))

    def plan(snapshot: Snapshot) -> Change:
        history = [*undoing.entries_newest_first(snapshot)]
        state, appends = copies.merged(snapshot.documents, history, copy.original, versions)
        patches = {
            name: diff(value, state[name])
            for name, value in snapshot.documents.items()
            if value != state[name]
        }
        change = Change(patches, appends, result=[*patches])
        return join_changes(change, items.derived_change(snapshot.documents, change), result=[*patches])

    with directory_updated(place):
        committed = commit(place, plan, Author("copy taken over", by=HAND, reason=where), now=instant)
    if not copy.is_live:
        files.move_to_quarantine(place, copy.path)
    return committed.result if committed.changed else []


def _version(copy: copies.Copy, data: bytes, where: str) -> Any:
    """Return a copy as it can be compared: a document of this aether, or the lines of a journal."""
    if copy.original == copies.JOURNAL:
        return data
    fix = "Correct it, then accept it again."
    value = files.parse_json(data, where=where)
    if not isinstance(value, dict):
        raise CorruptDocument("not a document.", fix=fix, where=where)
    value.pop("stamp", None)
    document = migrations.current(copy.original, value)
    check.require(copy.original, document, fix=fix)
    return document


def check_schema(name: str, value: Any) -> list[Finding]:
    """Return where `value` breaks the schema of document `name`.

    Raises:
        NotFound: there is no such schema.
    """
    if not name.replace("_", "").isalnum():
        raise InvalidInput(
            f"{name!r} is not the name of a schema.", fix=f"Use one of {', '.join(documents.NAMES)}."
        )
    return check.findings(name, value)


@public
def export(*, home: Home = None) -> JsonObject:
    """Return the whole colony as one JSON object: documents, archive, receipts, events, live and archived conversations.

    The messages of conversations, and what rests of them in grace, are redacted; only the files within the home hold them as
    they were. A shared home first fetches the changes of others, if its server can be reached.
    """
    place = find(home)
    _exchange(place)
    snapshot = read(place)
    return {
        "revision": snapshot.revision,
        "documents": _visible(snapshot.documents),
        **{
            kind: [copied(record) for _, record in record_files.records(snapshot, kind)]
            for kind in (*record_files.MONTHLY, *record_files.SINGLE)
        },
        "conversations": [
            exported_logs.exported(snapshot.home, stored.id)
            for stored in store_conversations.stored_conversations(snapshot.home)
        ],
        "archived": [*archive_steps.exported(snapshot.home)],
    }


class Restored(NamedTuple):
    """Result of the import of an export."""

    entries: dict[str, int]
    """How many entries each layer, document and append-only file got; those without any are left out."""
    conversations: list[str]
    """The conversations that were stored."""
    kept: list[str]
    """Those that the home had already: they go on as they are."""
    revision: int
    """The revision that `undo` reverses; 0 in a dry run."""
    unread: list[str]
    """Conversations that are not in the export, because they could not be read when it was made."""


def is_export(value: Any) -> bool:
    """Return whether `value` is what `export` returns."""
    fields = {"revision": int, "documents": dict, "conversations": list}
    return isinstance(value, dict) and all(type(value.get(name)) is kind for name, kind in fields.items())


@public
def import_export(value: Any, *, dry_run: bool = False, home: Home = None) -> Restored:
    """Restore what `export` returned into an empty home; with `dry_run` nothing is stored.

    The conversations are first, each whole or not at all, and then the documents as one change: an import that was
    interrupted is repeated, and does the rest. Conversations have logs of their own: an undo leaves them. Their messages
    are redacted, as they were exported.

    Raises:
        InvalidDocument: it is no export, or a document in it does not fit this aether; nothing was stored.
        Conflict: the home is not empty; nothing was stored.
    """
    place, instant = find(home) if dry_run else drained(find(home)), now()
    if not dry_run:
        archive_steps.end_open(place, now=instant)
    states, records = _parts_of(value)
    talks = {talk["conversation"]: talk for talk in value["conversations"] if "history" in talk}
    unread = [talk["conversation"] for talk in value["conversations"] if "history" not in talk]
    aged = {record["file"]["id"]: record for record in archive_steps.importable(value.get("archived", []))}

    def plan(snapshot: Snapshot) -> Change:
        _require_empty(snapshot)
        patches = {name: diff(snapshot.documents[name], state) for name, state in states.items()}
        return Change({name: patch for name, patch in patches.items() if patch}, records, result=None)

    plan(load(place))  # which refuses a home that is not empty before anything is stored
    names = dict.fromkeys((*talks, *aged))
    stored = {talk.id for talk in store_conversations.stored_conversations(place)}
    stored |= {name for name in names if store_aged.find(place, name)}
    fresh, existing = (
        [name for name in names if name not in stored],
        [name for name in names if name in stored],
    )
    logs = {name: exported_logs.records(place, talks[name], now=instant) for name in fresh if name in talks}
    entries = {name: number for name, number in _counts(states, records).items() if number}
    if dry_run:
        return Restored(entries, fresh, existing, 0, unread)
    # The documents are last: until they are there, the import can be repeated, and goes on with what is missing.
    for name, lines in logs.items():
        if len(lines) > 1:
            store_conversations.bring_back(place, name, lines, now=instant)
    archive_steps.bring_in(place, [aged[name] for name in fresh if name in aged], now=instant)
    author = Author("import", reason=f"an export of revision {value['revision']}")
    with directory_updated(place):
        committed = commit(place, plan, author, now=instant)
    return Restored(entries, fresh, existing, committed.revision if committed.changed else 0, unread)


def _parts_of(export: Any) -> tuple[JsonObject, dict[str, list[JsonObject]]]:
    """Return the documents of an export, and its records by append-only file, without their places in the old home.

    Raises:
        InvalidDocument: it is no export, or has a part that this aether does not know or cannot read.
    """
    if not is_export(export):
        raise InvalidDocument("it is not an export.", fix='Make one with "aether export".', where="export")
    parts = {"revision", "documents", "conversations", "archived", *record_files.KINDS}
    strange = [*(export.keys() - parts), *(export["documents"].keys() - {*documents.NAMES})]
    if strange:
        what = f"it has {shown(min(strange))}, which this aether does not know. Nothing was stored."
        fix = "Import it with the aether that exported it, or update."
        raise InvalidDocument(what, fix=fix, where="export")
    states = {name: migrations.current(name, state) for name, state in export["documents"].items()}
    for name, state in states.items():
        check.require(name, state, fix="Export the home again with this aether.")
    try:
        records = {
            kind: [
                {name: field for name, field in record.items() if name not in ("revision", "nth")}
                for record in export[kind]
            ]
            for kind in record_files.KINDS
            if export.get(kind)
        }
        is_whole = all(record["item"]["id"] for record in records.get("items", []))
        is_whole &= all(
            isinstance(talk["conversation"], str)
            and isinstance(talk.get("history", talk.get("problem") and []), list)
            for talk in export["conversations"]
        )
    except (TypeError, KeyError, AttributeError):
        is_whole = False
    if not is_whole:
        what = "its records or its conversations are damaged. Nothing was stored."
        raise InvalidDocument(what, fix="Export the home again.", where="export")
    return states, records


def _counts(state: Mapping[str, Any], appends: Mapping[str, list[JsonObject]]) -> dict[str, int]:
    """Return how many entries a home with these documents and records has, by what they are."""
    memory, graph = state.get("memory") or {}, state.get("graph") or {}
    return {
        "items": len(memory["working_memory"]["items"]) if memory else 0,
        "sessions": len(sessions.sessions_of(memory)) if memory else 0,
        "patterns": len(memory["long_term_memory"]["patterns"]) if memory else 0,
        "signals": len((state.get("pheromones") or {}).get("active_pheromones", [])),
        "entities": len(graph.get("entities", [])),
        "memory files": len((state.get("memories") or {}).get("files", {})),
        "goals": len((state.get("goals") or {}).get("goals", [])),
        "claims": len((state.get("teamwork") or {}).get("claims", [])),
        "packets": len((state.get("teamwork") or {}).get("packets", [])),
        "marked conversations": len((state.get("retention") or {}).get("marked", {})),
        "rules of retention": len((state.get("retention") or {}).get("policy", {})),
        "waiting entries": len((state.get("proposals") or {}).get("waiting", [])),
        "archived items": len(appends.get("items", [])),
        **{f"records of {kind}": len(appends.get(kind, [])) for kind in record_files.SINGLE},
    }


def _require_empty(snapshot: Snapshot) -> None:
    counts = {name: number for name, number in _counts(snapshot.documents, {}).items() if number}
    if record_files.head(snapshot) >= 0:
        counts["archived items"] = sum(1 for _ in record_files.records(snapshot, "items"))
    if counts:
        what = f"the home is not empty: it has {', '.join(pluralize(number, name) for name, number in counts.items())}."
        fix = 'Make a new home ("aether init --home DIR") and import it there, with --home DIR.'
        raise Conflict(what, fix=fix, where=str(snapshot.home))
