"""Doctor: a check of the files of a home, and the repair of what can be repaired without losing anything.

`examine` only reads. `repair` removes the leftovers of killed processes, keeps unreadable files aside, and rebuilds
from backups and the journal; nothing is deleted because it failed to parse.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, UnsafePath
from aether.paths import inside
from aether.regular import sealed_body
from aether.schemas import check, migrations
from aether.store import (
    archive_steps,
    config,
    conversation_checks,
    conversations,
    copies,
    documents,
    ledger,
    origin,
    record_files,
    rewrite,
    seals,
    search_index,
    spool,
)
from aether.store.commit import fold, removed_temp, settle, write_lock, write_recovered
from aether.store.files import (
    REPAIR,
    json_document,
    leftover_temps,
    move_to_quarantine,
    no_files,
    parse_json,
    quick_json,
    quick_lines,
    require_exclusive,
    save,
    storage_errors,
    write_whole,
)
from aether.store.journal import (
    entry_of,
    folded_entries,
    journal_header,
    journal_path,
    month_files,
    newest_stamp,
    read_journal,
    recovered,
)
from aether.store.log import HEAD, head_path, lines_of, read_head, seal_json, set_head, unsealed
from aether.store.patch import json_equal
from aether.store.seals import Grown
from aether.store.snapshot import Pending, load
from aether.text.words import pluralize
from aether.types import Finding, JsonObject, Level

_ORDER = {"error": 0, "warning": 1, "info": 2}
_LEFT = "left snapshots and the archive as they are: the colony may have them whole, and its server cannot be reached"
LinesOf = Callable[[list[int]], dict[int, bytes]]


class _Loss(NamedTuple):
    """Something that no file of the home holds any more."""

    where: str
    what: str
    revisions: tuple[int, int] | None = None
    """The first and the last of the lost revisions."""


class _Repair(NamedTuple):
    """One repair under the lock: its input, what it did in words, and what is lost."""

    home: Path
    now: datetime
    record: seals.Seals
    faults: dict[str, str]
    """The files that differ from the record of seals, with how they do."""
    done: list[str]
    losses: list[_Loss]

    def place(self, path: Path) -> str:
        """Return the place of a file in the home."""
        return seals.place(self.home, path)

    def keep(self, name: str, data: bytes) -> str:
        """Keep `data` in quarantine, and return its place there."""
        return self.place(documents.quarantine(self.home, name, data, at=clock.stamp(self.now)))


def examine(home: Path) -> list[Finding]:
    """Return the problems of the files of `home`, errors first."""
    findings: list[Finding] = []
    for check_of in (
        _temp_files, _conflicted_copies, _erasing, _lines, _journal, _seals, _unreadable_files, _quarantine, _sharing, conversation_checks.examine,
        archive_steps.examine, _config, _spool, _tracked, _documents,
    ):  # fmt: skip
        try:
            findings += check_of(home)
        except AetherError as reason:  # such as a file that is no regular file
            findings.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
    findings += _no_files(home, {finding.where.partition(":")[0] for finding in findings})
    return sorted(dict.fromkeys(findings), key=lambda finding: _ORDER[finding.level])


def _temp_files(home: Path) -> Iterator[Finding]:
    for path in leftover_temps(home):
        yield Finding("warning", "temp-file", seals.place(home, path), "a killed process left it.", REPAIR)


def _conflicted_copies(home: Path) -> Iterator[Finding]:
    """Yield a finding for each file from another machine, and for each file with both sides of a merge."""
    for copy in copies.copies(home):
        place = copies.place(home, copy)
        what = f"it is a copy of {copy.original} from another machine, and may hold what memory lacks."
        fix = "Compare the two, add what is missing (aether add), and move the copy away."
        if copy.is_live:
            what = "git left both sides of a merge in it, and one of them may hold what memory lacks."
            fix = "Take the sides apart in an editor."
        if copy.is_derived and not copy.is_live:
            what, fix = (
                "it is a copy from another machine, and holds nothing that is remembered.",
                "Remove it.",
            )
        if copy.is_mergeable:
            fix = f'Take over the entries that memory lacks: aether doctor --accept "{place}".'
        yield Finding("warning", "merge-conflict" if copy.is_live else "conflicted-copy", place, what, fix)


def _config(home: Path) -> Iterator[Finding]:
    for fault in config.faults(home):
        yield Finding("error", fault.code, "config.toml", fault.what, fault.fix)
    yield from config.untrusted(home)
    yield from config.notes(home)


def _documents(home: Path) -> Iterator[Finding]:
    """Yield findings for the files of the documents, and for the state that breaks its schema."""
    snapshot = load(home)
    for name, file in snapshot.irregular.items():
        if name in snapshot.refused:
            what = f"a hand edit is not in force: {snapshot.refused[name]['reason']}"
            fix = "Correct the file; the next change keeps the edit in quarantine."
            yield Finding("warning", "edited", f"{name}.json", what, fix)
        else:
            level: Level = "warning" if file.state in ("edited", "unstamped") else "error"
            what = f"the file is {file.fault or f'{file.state}.'}"
            yield Finding(level, file.state, f"{name}.json", what, REPAIR)
    for name in documents.NAMES:
        yield from check.findings(name, snapshot.documents[name])


def _erasing(home: Path) -> Iterator[Finding]:
    """Yield findings for a rewrite that was interrupted, and for those that were put into quarantine."""
    if os.path.lexists(home / rewrite.DIRECTORY):
        what = "an erasing was interrupted; the next change of the home goes on with it."
        try:
            rewrite.staged(home)
        except (AetherError, OSError) as reason:
            what = f"no erasing of this home: {getattr(reason, 'what', reason)} The next change of the home puts it into quarantine."
        yield Finding("warning", "erasing", f"{rewrite.DIRECTORY}/", what, REPAIR)
    for path in sorted((home / "quarantine").glob(f"{rewrite.DIRECTORY}.*")):
        what = "an erasing that was not carried out: it was damaged, or came from elsewhere."
        fix = "Erase the text again, if a file still holds it; then remove this."
        yield Finding("warning", "quarantine", seals.place(home, path), what, fix)


def _no_files(home: Path, places: set[str]) -> Iterator[Finding]:
    """Yield a finding for each link, pipe or device in the place of a file that no finding in `places` names."""
    for directory, _, _ in os.walk(home):
        for path in no_files(Path(directory)):
            place = seals.place(home, path)
            if not {place, str(path)} & places:
                what = "a link, a pipe, a device or a file of holes, which nothing opens; who needs the file fails or goes on without it."
                yield Finding("error", "no-file", place, what, "Remove it, or put a regular file there.")
    for path in conversation_checks.irregular(home):
        what = "it is not a regular file, so it is never read as a log."
        yield Finding("error", "no-file", seals.place(home, path), what, "Move it away.")


def _spool(home: Path) -> Iterator[Finding]:
    """Yield findings for a spool that may not be used, for damaged events, and for those that git tracks."""
    if (home / "hooks").is_dir() and not os.access(home / "hooks", os.R_OK | os.W_OK | os.X_OK):
        what = "this user may not read and write there: hooks keep no event, and none is drained."
        yield Finding("warning", "no-rights", "hooks/", what, "Give the directory to this user.")
    for path in _damaged_events(home):
        what = "a waiting event is damaged; the next drain moves it to quarantine."
        yield Finding("error", "damaged-event", seals.place(home, path), what, REPAIR)
    if names := spool.tracked(str(home)):
        what = f"git tracks {pluralize(len(names), 'events')} there, which came with the repository and are not drained."
        fix = "Remove them: git rm --cached -r .aether/hooks, and keep .aether/ in .gitignore."
        yield Finding("warning", "tracked-spool", "hooks/spool/", what, fix)


def _tracked(home: Path) -> Iterator[Finding]:
    """Yield the findings of a home that git tracks: a commit publishes it, and it may have come with a clone."""
    if not origin.is_tracked(home):
        return
    what = 'git tracks memory here: what hooks note of you is in tracked files, and "git commit -a" publishes it.'
    fix = "To keep it to yourself: git rm -r --cached .aether, and put .aether/ into .gitignore."
    yield Finding("warning", "tracked-home", "", what, fix)
    if not origin.is_confirmed(home):
        what = "it came with the repository: agents get it as not confirmed."
        yield Finding(
            "info",
            "unconfirmed",
            "",
            what,
            'See it with "aether trust --show", and confirm it with "aether trust".',
        )


def _damaged_events(home: Path) -> list[Path]:
    place = str(home)
    paths = [home / "hooks" / "spool" / name for name in spool.waiting(place)]
    # A drain may remove one while it is looked at.
    return [path for path in paths if spool.entry_of(_content(path)) is None and os.path.lexists(path)]


def _lines(home: Path) -> Iterator[Finding]:
    """Yield findings for the lines of the append-only files and of the history."""
    # Of the history, as lines: those that the files have are taken out.
    records: dict[str, set[bytes]] = {kind: set() for kind in record_files.KINDS}
    revisions: list[int] = []
    for path in month_files(home):
        yield from _line_faults(home, path, partial(_add_entry, records, revisions))
    yield from _history_gap(home, revisions)
    for kind, expected in records.items():
        for path in record_files.files_of(home, kind):
            yield from _line_faults(home, path, partial(_is_record, expected))
    for kind, expected in records.items():
        if expected and (missing := _missing_records(home, kind)):
            what = f"missing, although the history has them: {pluralize(len(missing), 'records')}."
            yield Finding("error", "missing-records", _root_of(kind), what, REPAIR)


def _line_faults(home: Path, path: Path, is_good: Callable[[bytes], bool]) -> Iterator[Finding]:
    place = seals.place(home, path)
    for number, line in enumerate(_content(path).splitlines(keepends=True), 1):
        is_whole = is_good(line)
        if not line.endswith(b"\n"):
            yield Finding("warning", "torn-line", place, "the last line was cut off.", REPAIR)
        elif not is_whole:
            yield Finding("error", "damaged-line", f"{place}:{number}", "the line is damaged.", REPAIR)


def _add_entry(records: dict[str, set[bytes]], revisions: list[int], line: bytes) -> bool:
    """Add the revision of a line of the history and the records that it carries, and return whether it is good."""
    body = sealed_body(line)
    if body is not None:
        entry = entry_of(quick_json(body, where="journal"))
        revisions.append(entry.revision)
        pending = Pending(entry.revision, entry.at, entry.appends)
        for kind, lines in records.items():
            lines.update(quick_lines(record_files.numbered(pending, kind)))
    return body is not None


def _is_record(expected: set[bytes], line: bytes) -> bool:
    """Return whether a line is a record; one that is `expected`, which needs no look at its fields, is taken out."""
    body = sealed_body(line) if line.endswith(b"\n") else None
    if body in expected:
        expected.remove(body)
        return True
    return record_files.record_of(line) is not None


def _root_of(kind: str) -> str:
    return record_files.MONTHLY.get(kind) or record_files.SINGLE[kind]


def _missing_records(home: Path, kind: str) -> dict[int, tuple[str, JsonObject]]:
    """Return the records of `kind` in the folded history that its files lack or hold otherwise: time and record by position."""
    missing = {
        record_files.position(record): (entry.at, record)
        for entry in folded_entries(home)
        if entry.appends.get(kind)
        for record in record_files.numbered(Pending(entry.revision, entry.at, entry.appends), kind)
    }
    for path in record_files.files_of(home, kind):
        for record in filter(None, map(record_files.record_of, _content(path).splitlines(keepends=True))):
            position = record_files.position(record)
            if position in missing and json_equal(missing[position][1], record):
                del missing[position]
    return missing


def _journal(home: Path) -> Iterator[Finding]:
    """Yield findings for the journal and its head."""
    place = seals.JOURNAL
    try:
        journal = read_journal(home)
    except (AetherError, OSError):
        return  # `_documents` reports it
    if journal.torn:
        what = "the last line was cut off before it was acknowledged."
        yield Finding("warning", "torn-line", place, what, REPAIR)
    if journal.ignored:
        what = (
            f"{journal.ignored} lines of concurrent writers although the lock was held; each was done again."
        )
        yield Finding("info", "repeated-revision", place, what, "Keep the home on a local disk.")
    if journal.harm:
        parts = (
            ("damaged or missing", journal.harm.lost),
            ("without a state that they fit", journal.harm.unfit),
        )
        words = [f"{seals.revisions(numbers)}: {state}" for state, numbers in parts if numbers]
        what = f"{'; '.join(words) or 'a line is damaged and can be restored'}; everything else is read."
        yield Finding("error", "damaged-journal", place, what, REPAIR)
    elif not journal_path(home).exists() and seals.read(home).state != "missing":
        what = "the file is missing; everything was folded."
        yield Finding("warning", "missing", place, what, REPAIR)
    head = read_head(head_path(home))
    if head == -1 or (head is None and journal.sealed):
        what = "the file is damaged." if head else "the file is missing."
        fix = f"{REPAIR[:-1]}, or go on: the next change writes it."
        yield Finding("warning", "damaged", f"data/{HEAD}", what, fix)


def _history_gap(home: Path, revisions: Sequence[int]) -> Iterator[Finding]:
    """Yield a finding for the first gap in the `revisions` of the history that no recorded loss explains."""
    losses = sorted(loss["revisions"] for loss in seals.read(home).losses if "revisions" in loss)
    for revision, following in pairwise(revisions):
        reached = revision
        for first, last in losses:
            reached = max(reached, last) if first <= reached + 1 else reached
        if following > reached + 1:
            what = f"missing from the history; the next is {following}."
            fix = "Undo and time travel stop here; the present state is whole."
            yield Finding("warning", "history-gap", f"revision {revision + 1}", what, fix)
            return


def _seals(home: Path) -> Iterator[Finding]:
    """Yield findings for the record of seals, for the files that differ from it, and for the losses that it names."""
    record = seals.read(home)
    if record.state != "good" and (record.state == "damaged" or _is_sealed(home)):
        what = f"the record of what the files hold is {record.state}."
        yield Finding("error", record.state, seals.PATH, what, REPAIR)
    elif record.state == "missing" and journal_path(home).exists():
        what = "an earlier release wrote the files: they have no seals yet."
        fix = "The next command that changes the home seals them."
        yield Finding("info", "unsealed", seals.PATH, what, fix)
    for name, what in _seal_faults(home, record).items():
        yield Finding("error", "damaged-file", name, what, REPAIR)
    for loss in record.losses:
        what = f"{loss['what']} (found {loss['at'][:19]}Z)."
        fix = "Nothing to do; what was damaged is in quarantine/."
        yield Finding("info", "known-loss", loss["where"], what, fix)
    for path in _damaged_backups(home):
        what = "an earlier version of the document is damaged."
        yield Finding("warning", "damaged-copy", seals.place(home, path), what, REPAIR)


def _seal_faults(home: Path, record: seals.Seals) -> dict[str, str]:
    names = (*record.grown, *record.whole)
    return {name: what for name in names if (what := seals.fault(home, record, name))}


def _damaged_backups(home: Path) -> list[Path]:
    backups = [path for name in documents.NAMES for path in documents.backups(home, name)]
    return [path for path in backups if documents.read(path).state == "corrupt"]


def _is_sealed(home: Path) -> bool:
    """Return whether the home had a record of seals, as far as its journal, or else its head, shows."""
    try:
        is_journal_sealed = read_journal(home).sealed
    except (AetherError, OSError):
        return True
    return is_journal_sealed or (not journal_path(home).exists() and read_head(head_path(home)) is not None)


def _content(path: Path) -> bytes:
    """Return the content of the file at `path`; of one that is no regular file or too large, an unreadable line."""
    try:
        return regular.read(path, regular.LOG_BYTES)
    except (AetherError, OSError):
        return b"\n"


def _sharing(home: Path) -> Iterator[Finding]:
    """Yield findings for the changes of a shared home that wait for its server, and for those that no longer fit."""
    if shared := ledger.sharing(home):
        yield from shared.findings(home)


def _unreadable_files(home: Path) -> Iterator[Finding]:
    """Yield findings for snapshots and hand-offs that do not parse."""
    for directory in ("snapshots", "compressions"):
        for path in _unreadable(home / directory):
            yield Finding("warning", "unreadable", seals.place(home, path), "not JSON.", REPAIR)


def _unreadable(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.glob("*.json")):
        try:
            parse_json(_content(path), where="line")
        except CorruptDocument:
            yield path


def _quarantine(home: Path) -> Iterator[Finding]:
    """Yield findings for the files in quarantine: hand edits that wait, and what was unreadable."""
    edits = documents.kept_edits(home)
    for edit in edits:
        what = f"a hand edit waits: {edit.reason}"
        yield Finding("warning", "kept-edit", seals.place(home, edit.path), what, how_to_accept(edit))
    shared = ledger.sharing(home)
    edit_names = {edit.path.stem for edit in edits}
    for path in sorted((home / "quarantine").glob("*")):
        # Those of other subjects have findings of their own.
        is_other = path.name.startswith((*(shared.ASIDE if shared else ()), f"{rewrite.DIRECTORY}."))
        if not is_other and path.stem.removesuffix(".diff") not in edit_names:
            what = "was unreadable, deleted, or a copy that was taken over; it is kept here."
            yield Finding("info", "quarantine", seals.place(home, path), what, "Look at it, then remove it.")


def how_to_accept(edit: documents.KeptEdit) -> str:
    """Return what a person can do with a kept edit."""
    look = f"{edit.path.stem}.diff.json has its changes"
    return f'Accept it with "aether doctor --accept {edit.path.name}" ({look}), or remove it.'


def repair(
    home: Path, *, now: datetime, colony_lines: LinesOf = lambda revisions: {}, alone: bool = True,
    read_again: archive_steps.ReadAgain | None = None,
) -> list[str]:  # fmt: skip
    """Repair the files of `home` under the lock, and return a line for each repair and each loss.

    `colony_lines` returns those lines of the history of a shared home that its colony has, by their revisions. Not
    `alone`, the colony may have files that are damaged here whole, and cannot be asked: snapshots and archive files are
    left as they are. `read_again` makes an archive file of the file that was added.
    """
    lines = conversation_checks.restore(home, now=now)
    with write_lock(home):
        with storage_errors(home):
            require_exclusive(home)
            lines += [removed_temp(home, path, now) for path in leftover_temps(home)]
            lines += [*_move_away(home), *_repair_journal(home, now)]
        for name in documents.NAMES:
            lines += _repair_document(home, name, now)
        irregular = sorted(load(home).irregular)
        with storage_errors(home):
            lines += _repair_sealed(home, now, colony_lines, alone=alone)
        fold(settle(load(home), now=now), now=now)
        lines += [f"wrote {name}.json again from what is known" for name in irregular]
        with storage_errors(home):
            damaged = [*_damaged_backups(home), *_unreadable(home / "compressions")]
            lines += [set_aside(home, path, now) for path in damaged]
            lines += [*_repair_head(home), *_repair_events(home)]
            lines += archive_steps.repair(home, now=now, read_again=read_again) if alone else [_LEFT]
    return lines + conversation_checks.repair(home, now=now)


def _repair_head(home: Path) -> Iterator[str]:
    if read_head(head_path(home)) in (None, -1):
        journal = read_journal(home)
        set_head(head_path(home), journal.base + len(journal.entries))
        yield f"made data/{HEAD} again"


def _repair_events(home: Path) -> Iterator[str]:
    """Keep damaged events aside."""
    for path in _damaged_events(home):
        if target := spool.set_aside(str(home), path.name):
            yield f"kept the damaged {seals.place(home, path)} as {target}: its event is not drained"


def set_aside(home: Path, path: Path, now: datetime) -> str:
    """Move the damaged file at `path` to quarantine, and return that in words."""
    target = documents.quarantine(home, path.stem, regular.read(path, regular.LOG_BYTES), at=clock.stamp(now))
    path.unlink()
    return f"kept the damaged {seals.place(home, path)} as {seals.place(home, target)}"


def _repair_sealed(home: Path, now: datetime, colony_lines: LinesOf, *, alone: bool) -> list[str]:
    """Restore what the history still holds of the files that grow, name what is lost, and renew the record of seals."""
    record = seals.read(home)
    is_record_lost = record.state != "good" and (record.state == "damaged" or _is_sealed(home))
    work = _Repair(home, now, record, _seal_faults(home, record), [], [])
    _repair_months(work, colony_lines)
    for kind in record_files.KINDS:
        _repair_records(work, kind)
    damaged = work.faults.keys() & record.whole.keys()
    spared = {} if alone else {name: record.whole[name] for name in damaged}
    for name in sorted(damaged - spared.keys()):
        remains = ""
        with suppress(UnsafePath):  # the target of a link is no file of the home
            path = inside(home, name)
            if path.is_file():
                remains = (
                    f"; what is left of it is {work.keep(path.stem, regular.read(path, regular.LOG_BYTES))}"
                )
                path.unlink()
        work.losses.append(_Loss(name, f"lost: {work.faults[name][:-1]}{remains}"))
    for head in [] if ledger.is_shared(home) else conversation_checks.emptied(home):
        what = f"the whole conversation is lost: {pluralize(read_head(head) or 0, 'lines')}"
        work.losses.append(_Loss(work.place(head.with_name(conversations.FILE)), what))
        head.unlink()
    if is_record_lost:
        if (home / seals.PATH).exists():
            work.keep("seals", regular.read(home / seals.PATH))
        what = "the record was lost, with the names of earlier losses: what the files hold now counts"
        work.losses.append(_Loss(seals.PATH, what))
    for loss in work.losses:
        record = seals.with_loss(record, loss.where, loss.what, now=now, revisions=loss.revisions)
        work.done.append(f"{loss.where}: {loss.what}")
    if work.done or work.faults or record.state != "good":
        fresh = seals.renewed(home, record)
        seals.write(home, fresh._replace(revision=read_journal(home).base, whole=fresh.whole | spared))
        return work.done or ["sealed the files of an earlier release"]
    return []


def _repair_months(work: _Repair, colony_lines: LinesOf) -> None:
    """Keep the whole lines of the history, and name the lost revisions."""
    grown = work.record.grown
    names = {work.place(path) for path in month_files(work.home)}
    names |= {name for name in grown if name.startswith(f"{seals.MONTHS}/")}
    for name in sorted(names):
        path = work.home / name
        data = regular.read(path, regular.LOG_BYTES) if path.is_file() else b""
        good = b"".join(line for line, is_whole in lines_of(data) if is_whole)
        if name in work.faults:
            good = _with_colony_lines(work, name, good, colony_lines)
        if good != data:
            target = work.keep(f"journal-{path.stem}", data)
            write_whole(path, good) if good else path.unlink()
            work.done.append(f"wrote the whole lines of {name} again; it is kept as {target}")
        lost = grown[name].lines - good.count(b"\n") if name in work.faults else 0
        if lost > 0:
            numbers = _lost_revisions(work.home, name, grown[name].lines)
            for first, last in seals.ranges(numbers):
                what = f"{seals.revisions(range(first, last + 1))} of the history: lost; the documents have what changed"
                work.losses.append(_Loss(name, what, (first, last)))
            if not numbers:
                work.losses.append(_Loss(name, f"lost: {pluralize(lost, 'lines')}"))


def _with_colony_lines(work: _Repair, name: str, good: bytes, colony_lines: LinesOf) -> bytes:
    """Return the whole lines of the month `name`, of which the home has the `good` ones, with those that its colony has.

    Raises:
        Conflict: the ledger of a shared home does not have what is missing.
        StorageFailed, UnsafePath: it cannot be asked.
    """
    lines = work.record.grown[name].lines
    if not ledger.is_shared(work.home) or good.count(b"\n") >= lines:
        return good
    by_revision = {(unsealed(line) or {})["revision"]: line for line in good.splitlines(keepends=True)}
    by_revision |= colony_lines(_lost_revisions(work.home, name, lines))
    if len(by_revision) < lines:
        what = (
            f"the ledger does not have all that is missing: {pluralize(lines - len(by_revision), 'lines')}."
        )
        fix = "Its server was restored from an older backup: see docs/shared.md. The file is as it was."
        raise Conflict(what, fix=fix, where=name)
    return b"".join(line for _, line in sorted(by_revision.items()))


def _lost_revisions(home: Path, name: str, lines: int) -> list[int]:
    """Return the revisions that the month `name`, which had so many lines, does not have any more."""
    present: dict[str, list[int]] = {}
    for path in month_files(home):
        values = map(unsealed, _content(path).splitlines(keepends=True))
        present[seals.place(home, path)] = [value["revision"] for value in values if value]
    before = [max(numbers) for month, numbers in present.items() if month < name and numbers]
    after = [min(numbers) for month, numbers in present.items() if month > name and numbers]
    end = min(after, default=read_journal(home).base + 1)
    start = max(before) + 1 if before else max(1, end - lines)
    return sorted(set(range(start, end)) - set(present.get(name, [])))


def _repair_records(work: _Repair, kind: str) -> None:
    """Restore the records of `kind` from the history, seal those without a seal, and count the lost ones."""
    root, grown = _root_of(kind), work.record.grown
    names = [name for name in grown if name == root or name.startswith(f"{root}/")]
    missing = _missing_records(work.home, kind)
    records: dict[Path, dict[int, bytes]] = {work.home / name: {} for name in names}
    contents: dict[Path, bytes] = {}
    is_whole = True
    for path in record_files.files_of(work.home, kind):
        contents[path] = regular.read(path, regular.LOG_BYTES)
        for line in contents[path].splitlines(keepends=True):
            record = record_files.record_of(line) if line.endswith(b"\n") else None
            is_whole &= record is not None
            if record is not None:
                records.setdefault(path, {})[record_files.position(record)] = seal_json(record)
    for position, (time, value) in sorted(missing.items()):
        earlier = [path for path, lines in records.items() if any(other < position for other in lines)]
        later = [path for path, lines in records.items() if any(other > position for other in lines)]
        path = max([record_files.file_of(work.home, kind, time), *earlier])
        records.setdefault(min([path, *later]), {})[position] = seal_json(value)
    for path, lines in sorted(records.items()):
        content = b"".join(line for _, line in sorted(lines.items()))
        if contents.get(path, b"") != content:
            if path in contents and (work.place(path) in work.faults or not is_whole or missing):
                target = work.keep(f"{kind}-{path.stem}", contents[path])
                work.done.append(f"wrote {work.place(path)} again; it is kept as {target}")
            save(path, content)
            search_index.remove(work.home / search_index.FILE)  # it goes on behind its last record
        _count_lost_records(work, path, content, is_changed=contents.get(path, b"") != content)
    if missing:
        work.done.append(f"restored {pluralize(len(missing), 'records')} of {root} from the history")


def _count_lost_records(work: _Repair, path: Path, data: bytes, *, is_changed: bool) -> None:
    place = work.place(path)
    sealed = work.record.grown.get(place)
    if place in work.faults and sealed:
        lines = data.splitlines(keepends=True)
        if sealed.lines > len(lines):
            what = f"lost: {sealed.lines - len(lines)} of {pluralize(sealed.lines, 'records')}"
            work.losses.append(_Loss(place, what))
        elif Grown().after(lines) != sealed and not is_changed:
            work.losses.append(_Loss(place, "a record was changed, and nothing says which"))


def _repair_journal(home: Path, now: datetime) -> list[str]:
    """Write a damaged journal again with everything that is known of it."""
    path = journal_path(home)
    journal = read_journal(home)
    if journal.harm is None and path.exists() and journal.base + len(journal.entries) < newest_stamp(home):
        journal = recovered(home, regular.read(path, regular.LOG_BYTES), 0)
    lines = write_recovered(home, now=now, found=journal)
    if not path.exists():
        write_whole(path, journal_header(journal.base, made=journal.made, sealed=True))
        lines.append(f"made {seals.JOURNAL} again")
    return lines


def _move_away(home: Path) -> Iterator[str]:
    """Move what is no regular file but should be one into quarantine, so that the last good state takes its place."""
    names = [journal_path(home), home / seals.PATH, head_path(home)]
    names += [documents.path_of(home, name) for name in documents.NAMES]
    for path in (*names, *seals.growing(home), *seals.whole_files(home)):
        if os.path.lexists(path) and not regular.is_readable(path):
            target = move_to_quarantine(home, path)
            yield f"kept {path.name} as {seals.place(home, target)}: it was not a regular file"


def _repair_document(home: Path, name: str, now: datetime) -> Iterator[str]:
    """Put a document aside that keeps the home from opening, so that the last good state takes its place."""
    try:
        load(home)
    except AetherError as reason:
        if not reason.where.startswith((f"{name}.json", f"{name}#")):
            return  # another document keeps the home from opening; its turn comes
        fault = reason
    else:
        return
    path = documents.path_of(home, name)
    file = documents.read(path)
    migrations.is_current(name, file.value)  # raises: an edit does not make it a document of this aether
    if isinstance(fault, InvalidDocument) and file.state == "good":
        raise fault  # a newer aether changed it in the journal
    if path.exists():
        data = regular.read(path, regular.LOG_BYTES)
        target = documents.quarantine(home, name, data, at=clock.stamp(now))
        path.unlink()
        yield f"kept {name}.json as {seals.place(home, target)}: {fault.what}"
    try:
        load(home)
    except CorruptDocument:
        backup = documents.newest_good_backup(home, name, until=1 << 62)
        value, what = backup.value, f"took {name}.json from its backup of revision {backup.revision}"
        why = "the journal after it is damaged"
        if value is None:
            value, what = documents.default(name), f"replaced {name}.json by an empty one"
            why = "neither a backup nor the journal could rebuild it"
        write_whole(path, json_document(value))
        yield f"{what}: {why}"
    except AetherError:
        pass
