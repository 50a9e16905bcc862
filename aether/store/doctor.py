"""Doctor: a check of the files of a home, and the repair of what can be repaired without losing anything.

`examine` only reads. `repair` removes the leftovers of killed processes, keeps unreadable files aside, and rebuilds
from backups and the journal; nothing is deleted because it failed to parse.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from aether import clock, regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, UnsafePath
from aether.paths import inside
from aether.schemas import check, migrations
from aether.store import (
    archive_steps,
    config,
    conversation_checks,
    conversations,
    documents,
    ledger,
    offline,
    record_files,
    rewrite,
    seals,
    spool,
)
from aether.store.commit import fold, settle, write_lock, write_recovered
from aether.store.files import (
    REPAIR,
    json_document,
    leftover_temps,
    make_directory,
    move_to_quarantine,
    no_files,
    parse_json,
    require_exclusive,
    storage_errors,
    write_whole,
)
from aether.store.log import HEAD, head_path, lines_of, read_head, seal_json, set_head, unsealed
from aether.store.patch import json_equal
from aether.store.seals import Grown
from aether.store.snapshot import (
    Pending,
    folded_entries,
    journal_header,
    journal_path,
    load,
    month_files,
    newest_stamp,
    read_journal,
    recovered,
)
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

_ORDER = {"error": 0, "warning": 1, "info": 2}


def examine(home: Path) -> list[Finding]:
    """Return the problems of the files of `home`, errors first."""
    found = [
        Finding("warning", "temp-file", seals.place(home, path), "a killed process left it.", REPAIR)
        for path in leftover_temps(home)
    ]
    for check_of in (_erasing, _lines, _journal, _seals, _unreadable_files):
        try:
            found += check_of(home)
        except AetherError as reason:  # a file that is no regular file
            found.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
    found += [*conversation_checks.examine(home), *archive_steps.examine(home)]
    for fault in config.faults(home):
        found.append(Finding("error", fault.code, "config.toml", fault.what, fault.fix))
    found += [*config.untrusted(home), *config.notes(home)]
    found += _spool(home)
    try:
        snapshot = load(home)
    except AetherError as reason:
        found.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
    else:
        found += [
            Finding(
                "warning" if file.state in ("edited", "unstamped") else "error",
                file.state,
                f"{name}.json",
                f"the file is {file.fault or f'{file.state}.'}",
                REPAIR,
            )
            for name, file in snapshot.irregular.items()
            if name not in snapshot.refused
        ]
        for name, about in snapshot.refused.items():
            what = f"a hand edit is not in force: {about['reason']}"
            fix = "Correct the file; the next change keeps the edit in quarantine."
            found.append(Finding("warning", "edited", f"{name}.json", what, fix))  # fmt: skip
        for name in documents.NAMES:
            found += check.findings(name, snapshot.documents[name])
    found += _no_files(home, {finding.where.partition(":")[0] for finding in found})
    return sorted(dict.fromkeys(found), key=lambda finding: _ORDER[finding.level])


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


def _no_files(home: Path, known: set[str]) -> Iterator[Finding]:
    """Yield a finding for each link, pipe or device in the place of a file that no finding in `known` places names."""
    for directory, _, _ in os.walk(home):
        for path in no_files(Path(directory)):
            place = seals.place(home, path)
            if not {place, str(path)} & known:
                what = "a link, a pipe or a device, which nothing opens; who needs the file fails or goes on without it."
                yield Finding("error", "no-file", place, what, "Remove it, or put a regular file there.")


def _spool(home: Path) -> Iterator[Finding]:
    """Yield findings for a spool that may not be used, for waiting events that are damaged, and for those that git tracks."""
    if (home / "hooks").is_dir() and not os.access(home / "hooks", os.R_OK | os.W_OK | os.X_OK):
        what = "this user may not read and write there: hooks keep no event, and none is drained."
        yield Finding("warning", "no-rights", "hooks/", what, "Give the directory to this user.")
    for path in _damaged_events(home):
        what = "a waiting event is damaged; the next drain moves it to quarantine."
        yield Finding("error", "damaged-event", seals.place(home, path), what, REPAIR)
    names = spool.tracked(str(home))
    if not names:
        return
    what = f"git tracks {pluralize(len(names), 'events')} there, which came with the repository and are not drained."
    fix = "Remove them: git rm --cached -r .aether/hooks, and keep .aether/ in .gitignore."
    yield Finding("warning", "tracked-spool", "hooks/spool/", what, fix)


def _damaged_events(home: Path) -> list[Path]:
    place = str(home)
    paths = [home / "hooks" / "spool" / name for name in spool.waiting(place)]
    # A drain may remove one while it is looked at.
    return [path for path in paths if spool.entry_of(_content(path)) is None and os.path.lexists(path)]


def _repair_events(home: Path) -> Iterator[str]:
    """Keep damaged events aside."""
    for path in _damaged_events(home):
        if kept := spool.set_aside(str(home), path.name):
            yield f"kept the damaged {seals.place(home, path)} as {kept}: its event is not drained"


def _lines(home: Path) -> Iterator[Finding]:
    """Yield findings for the lines of the append-only files and of the history."""
    checks = [(path, unsealed) for path in month_files(home)]
    checks += [
        (path, record_files.record_of)
        for kind in record_files.KINDS
        for path in record_files.files_of(home, kind)
    ]
    for path, value_of in checks:
        place = seals.place(home, path)
        for number, line in enumerate(_content(path).splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                yield Finding("warning", "torn-line", place, "the last line was cut off.", REPAIR)
            elif value_of(line) is None:
                what = "the line is damaged."
                yield Finding("error", "damaged-line", f"{place}:{number}", what, REPAIR)
    for kind in record_files.KINDS:
        if missing := _missing_records(home, kind):
            where = record_files.MONTHLY.get(kind) or record_files.SINGLE[kind]
            what = f"missing, although the history has them: {pluralize(len(missing), 'records')}."
            yield Finding("error", "missing-records", where, what, REPAIR)


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
            at = record_files.position(record)
            if at in missing and json_equal(missing[at][1], record):
                del missing[at]
    return missing


def _journal(home: Path) -> Iterator[Finding]:
    """Yield findings for the journal, its head, and the history before it."""
    place = seals.JOURNAL
    try:
        journal = read_journal(home)
    except (AetherError, OSError):
        return  # `load` reports it
    if journal.torn:
        what = "the last line was cut off before it was acknowledged."
        yield Finding("warning", "torn-line", place, what, REPAIR)
    if journal.ignored:
        what = (
            f"{journal.ignored} lines of concurrent writers although the lock was held; each was done again."
        )
        fix = "Keep the home on a local disk."
        yield Finding("info", "repeated-revision", place, what, fix)
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
    known = sorted(loss["revisions"] for loss in seals.read(home).losses if "revisions" in loss)
    for one, following in pairwise(entry.revision for entry in folded_entries(home)):
        reached = one
        for first, last in known:
            reached = max(reached, last) if first <= reached + 1 else reached
        if following > reached + 1:
            what = f"missing from the history; the next is {following}."
            fix = "Undo and time travel stop here; the present state is whole."
            yield Finding("warning", "history-gap", f"revision {one + 1}", what, fix)
            break


def _seals(home: Path) -> Iterator[Finding]:
    """Yield findings for the record of seals, for the files that differ from it, and for the losses that it names."""
    found = seals.read(home)
    if found.state != "good" and (found.state == "damaged" or _is_sealed(home)):
        what = f"the record of what the files hold is {found.state}."
        yield Finding("error", found.state, seals.PATH, what, REPAIR)
    elif found.state == "missing" and journal_path(home).exists():
        what = "an earlier release wrote the files: they have no seals yet."
        yield Finding(
            "info", "unsealed", seals.PATH, what, "The next command that changes the home seals them."
        )
    for name in (*found.grown, *found.whole):
        if what := seals.fault(home, found, name):
            yield Finding("error", "damaged-file", name, what, REPAIR)
    for loss in found.losses:
        what = f"{loss['what']} (found {loss['at'][:19]}Z)."
        yield Finding(
            "info", "known-loss", loss["where"], what, "Nothing to do; what was damaged is in quarantine/."
        )
    for name in documents.NAMES:
        for path in documents.backups(home, name):
            if documents.read(path).state == "corrupt":
                what = "an earlier version of the document is damaged."
                yield Finding("warning", "damaged-copy", seals.place(home, path), what, REPAIR)


def _is_sealed(home: Path) -> bool:
    """Return whether the home had a record of seals, as far as its journal, or else its head, shows."""
    try:
        return read_journal(home).sealed or (
            not journal_path(home).exists() and read_head(head_path(home)) is not None
        )
    except (AetherError, OSError):
        return True


def _content(path: Path) -> bytes:
    """Return the content of the file at `path`; of one that is no regular file or too large, one that is unreadable."""
    try:
        return regular.read(path, regular.LOG_BYTES)
    except (AetherError, OSError):
        return b"\n"


def _is_unreadable(text: bytes) -> bool:
    try:
        parse_json(text, where="line")
    except CorruptDocument:
        return True
    return False


def _queue(home: Path) -> Iterator[Finding]:
    """Yield findings for the changes of a shared home that wait for its server, and for those that no longer fitted."""
    others = offline.tracked(home)
    if others:
        what = f"git tracks {pluralize(len(others), 'waiting changes')}, which came with the repository and are not sent."
        fix = "Remove them: git rm --cached -r .aether/share, and keep .aether/ in .gitignore."
        yield Finding("warning", "tracked-queue", f"{offline.DIRECTORY}/", what, fix)
    if ledger.is_shared(home) and ledger.is_tracked(home):
        yield Finding("warning", "tracked-share", ledger.PLACE, *ledger.TRACKED)
    waiting = offline.waiting(home)
    if waiting:
        what = f"{pluralize(len(waiting), 'changes')} waiting for the server of the colony."
        fix = 'They are sent when it can be reached; see "aether share status".'
        yield Finding("info", "waiting", f"{offline.DIRECTORY}/", what, fix)
    for path in waiting:
        try:
            queued = offline.read(path)
        except InvalidDocument as newer:
            yield Finding("error", newer.code, newer.where, newer.what, newer.fix)
            continue
        if queued is None:
            what = "a waiting change is damaged; it goes to quarantine instead of the server."
            yield Finding("error", "damaged-change", seals.place(home, path), what, "Make it again.")
    for path in offline.unfit(home):
        queued = None
        with suppress(InvalidDocument):
            queued = offline.read(path)
        who = f"{queued.entry.operation} by {queued.entry.by} at {queued.entry.at}" if queued else "a change"
        what = f"{who} waited for the server, and no longer fitted what others wrote."
        fix = "Make the change again where it is still wanted, then remove the file."
        yield Finding("warning", "unfit-change", seals.place(home, path), what, fix)


def _unreadable_files(home: Path) -> Iterator[Finding]:
    """Yield findings for snapshots and hand-offs that do not parse, and for files in quarantine."""
    for directory in ("snapshots", "compressions"):
        for path in sorted((home / directory).glob("*.json")):
            if _is_unreadable(_content(path)):
                yield Finding("warning", "unreadable", seals.place(home, path), "not JSON.", REPAIR)
    edits = documents.kept_edits(home)
    for kept in edits:
        yield Finding(
            "warning",
            "kept-edit",
            seals.place(home, kept.path),
            f"a hand edit waits: {kept.reason}",
            how_to_accept(kept),
        )
    yield from _queue(home)
    paths = {kept.path.stem for kept in edits}
    for path in sorted((home / "quarantine").glob("*")):
        own = path.name.startswith((offline.UNFIT, f"{rewrite.DIRECTORY}."))  # these have findings
        if own or path.stem.removesuffix(".diff") in paths:
            continue
        what = "was unreadable and is kept here."
        yield Finding("info", "quarantine", seals.place(home, path), what, "Look at it, then remove it.")
    for path in conversation_checks.irregular(home):
        what = "it is no regular file, and no log of a conversation; it is never read."
        yield Finding("error", "no-file", seals.place(home, path), what, "Move it away.")


def how_to_accept(kept: documents.KeptEdit) -> str:
    """Return what a person can do with a kept edit."""
    look = f"{kept.path.stem}.diff.json has its changes"
    return f'Accept it with "aether doctor --accept {kept.path.name}" ({look}), or remove it.'


def _removed_temp(home: Path, path: Path, now: datetime) -> str:
    """Remove a temporary file, unless it is a document that a person had edited: a kill can leave it there."""
    name = path.name[1:].partition(".")[0]
    if name in documents.NAMES and documents.read(path).state in ("edited", "unstamped"):
        kept = documents.quarantine(home, name, regular.read(path), at=clock.stamp(now))
        os.unlink(path)
        return (
            f"kept the edit of {name}.json that a killed process had taken away as {seals.place(home, kept)}"
        )
    os.unlink(path)
    return f"removed {seals.place(home, path)}, left by a killed process"


def repair(
    home: Path, *, now: datetime, colony_lines: LinesOf = lambda revisions: {}, alone: bool = True
) -> list[str]:
    """Repair the files of `home` under the lock, and return a line for each repair and each loss.

    `colony_lines` returns those lines of the history of a shared home that its colony has, by their revisions. Not `alone`, the
    colony may have files that are damaged here whole, and cannot be asked: snapshots and archive files are left as they are.
    """
    done = conversation_checks.restore(home, now=now)
    with write_lock(home):
        with storage_errors(home):
            require_exclusive(home)
            done += [_removed_temp(home, path, now) for path in leftover_temps(home)]
            done += [*_move_away(home), *_repair_journal(home, now)]
        for name in documents.NAMES:
            done += _repair_document(home, name, now)
        snapshot = load(home)
        irregular = sorted(snapshot.irregular)
        with storage_errors(home):
            done += _repair_sealed(home, now, colony_lines, alone=alone)
        fold(settle(load(home), now=now), now=now)
        done += [f"wrote {name}.json again from what is known" for name in irregular]
        with storage_errors(home):
            done += _repair_copies(home, now)
            done += _repair_events(home)
            done += archive_steps.repair(home, now=now) if alone else [_LEFT]
    return done + conversation_checks.repair(home, now=now)


def _repair_copies(home: Path, now: datetime) -> list[str]:
    """Put damaged backups and hand-offs aside, and make a missing head again."""
    backups = [path for name in documents.NAMES for path in documents.backups(home, name)]
    damaged = [path for path in backups if documents.read(path).state == "corrupt"]
    handoffs = sorted((home / "compressions").glob("*.json"))
    damaged += [path for path in handoffs if _is_unreadable(_content(path))]
    done = [set_aside(home, path, now) for path in damaged]
    place = head_path(home)
    if read_head(place) in (None, -1):
        found = read_journal(home)
        set_head(place, found.base + len(found.entries))
        done.append(f"made data/{HEAD} again")
    return done


def set_aside(home: Path, path: Path, now: datetime) -> str:
    """Move the damaged file at `path` to quarantine, and return that in words."""
    kept = documents.quarantine(home, path.stem, regular.read(path, regular.LOG_BYTES), at=clock.stamp(now))
    path.unlink()
    return f"kept the damaged {seals.place(home, path)} as {seals.place(home, kept)}"


def _repair_sealed(home: Path, now: datetime, colony_lines: LinesOf, *, alone: bool) -> list[str]:
    """Restore what the history still holds of the files that grow, name what is lost, and renew the record of seals."""
    record = seals.read(home)
    done, losses = [], list[tuple[str, str, tuple[int, int] | None]]()
    faults = {
        name: what for name in (*record.grown, *record.whole) if (what := seals.fault(home, record, name))
    }
    is_lost = record.state != "good" and (record.state == "damaged" or _is_sealed(home))
    for lines, lost in (_repair_months(home, record, faults, now, colony_lines), *(_repair_records(home, kind, record, faults, now) for kind in record_files.KINDS)):  # fmt: skip
        done += lines
        losses += lost
    spared = {} if alone else {name: record.whole[name] for name in faults.keys() & record.whole.keys()}
    for name in sorted(faults.keys() & record.whole.keys() - spared.keys()):
        kept = ""
        with suppress(UnsafePath):  # what a link leads to is no file of the home
            path = inside(home, name)
            if path.is_file():
                data = regular.read(path, regular.LOG_BYTES)
                aside = documents.quarantine(home, path.stem, data, at=clock.stamp(now))
                path.unlink()
                kept = f"; what is left of it is {seals.place(home, aside)}"
        losses.append((name, f"lost: {faults[name][:-1]}{kept}", None))
    for head in [] if ledger.is_shared(home) else conversation_checks.emptied(home):
        what = f"the whole conversation is lost: {pluralize(read_head(head) or 0, 'lines')}"
        losses.append((seals.place(home, head.with_name(conversations.FILE)), what, None))
        head.unlink()
    if is_lost:
        if (home / seals.PATH).exists():
            documents.quarantine(home, "seals", regular.read(home / seals.PATH), at=clock.stamp(now))
        losses.append(
            (
                seals.PATH,
                "the record was lost, with the names of earlier losses: what the files hold now counts",
                None,
            )
        )
    for where, what, revisions in losses:
        record = seals.with_loss(record, where, what, now=now, revisions=revisions)
        done.append(f"{where}: {what}")
    if done or faults or record.state != "good":
        revision = read_journal(home).base
        fresh = seals.renewed(home, record)
        seals.write(home, fresh._replace(revision=revision, whole=fresh.whole | spared))
        done = done or ["sealed the files of an earlier release"]
    return done


LinesOf = Callable[[list[int]], dict[int, bytes]]
_LEFT = "left snapshots and the archive as they are: the colony may have them whole, and its server cannot be reached"
Repaired = tuple[list[str], list[tuple[str, str, tuple[int, int] | None]]]
"""What was done, in words, and the losses: where, what, and the revisions if some are lost."""


def _repair_months(
    home: Path, record: seals.Seals, faults: dict[str, str], now: datetime, colony_lines: LinesOf
) -> Repaired:
    """Keep the whole lines of the history, and name the lost revisions."""
    done, losses = [], list[tuple[str, str, tuple[int, int] | None]]()
    names = {seals.place(home, path) for path in month_files(home)}
    names |= {name for name in record.grown if name.startswith(f"{seals.MONTHS}/")}
    for name in sorted(names):
        path = home / name
        data = regular.read(path, regular.LOG_BYTES) if path.is_file() else b""
        good = b"".join(line for line, whole in lines_of(data) if whole)
        if name in faults and (found := _in_ledger(home, name, good, record.grown[name].lines, colony_lines)):
            good = found
        if good != data:
            kept = documents.quarantine(home, f"journal-{path.stem}", data, at=clock.stamp(now))
            write_whole(path, good) if good else path.unlink()
            done.append(f"wrote the whole lines of {name} again; it is kept as {seals.place(home, kept)}")
        if name in faults and (lost := record.grown[name].lines - good.count(b"\n")) > 0:
            numbers = _lost_revisions(home, name, record.grown[name].lines)
            for first, last in seals.ranges(numbers):
                what = f"{seals.revisions(range(first, last + 1))} of the history: lost; the documents have what changed"
                losses.append((name, what, (first, last)))
            if not numbers:
                losses.append((name, f"lost: {pluralize(lost, 'lines')}", None))
    return done, losses


def _in_ledger(home: Path, name: str, good: bytes, lines: int, colony_lines: LinesOf) -> bytes | None:
    """Return the month `name`, of whose `lines` these are `good`, with what the ledger of a shared home has; None if not shared.

    Raises:
        Conflict: the ledger does not have what is missing.
        StorageFailed, UnsafePath: it cannot be asked.
    """
    if not ledger.is_shared(home) or good.count(b"\n") >= lines:
        return None
    held = {(unsealed(line) or {})["revision"]: line for line in good.splitlines(keepends=True)}
    held |= colony_lines(_lost_revisions(home, name, lines))
    if len(held) < lines:
        what = f"the ledger does not have all that is missing: {pluralize(lines - len(held), 'lines')}."
        fix = "Its server was restored from an older backup: see docs/shared.md. The file is as it was."
        raise Conflict(what, fix=fix, where=name)
    return b"".join(line for _, line in sorted(held.items()))


def _lost_revisions(home: Path, name: str, lines: int) -> list[int]:
    """Return the revisions that the month `name`, which had so many lines, does not have any more."""
    present: dict[str, list[int]] = {
        seals.place(home, path): [held["revision"] for held in map(unsealed, _content(path).splitlines(keepends=True)) if held]
        for path in month_files(home)
    }  # fmt: skip
    before = [max(found) for month, found in present.items() if month < name and found]
    after = [min(found) for month, found in present.items() if month > name and found]
    end = min(after, default=read_journal(home).base + 1)
    start = max(before) + 1 if before else max(1, end - lines)
    return sorted(set(range(start, end)) - set(present.get(name, [])))


def _repair_records(
    home: Path, kind: str, record: seals.Seals, faults: dict[str, str], now: datetime
) -> Repaired:
    """Restore the records of `kind` from the history, seal those without one, and name how many are lost."""
    root = record_files.MONTHLY.get(kind) or record_files.SINGLE[kind]
    known = {
        name: grown for name, grown in record.grown.items() if name == root or name.startswith(f"{root}/")
    }
    missing = _missing_records(home, kind)
    held, before, whole = _held_records(home, kind, list(known))
    for at, (time, value) in sorted(missing.items()):
        earlier = [path for path, lines in held.items() if any(one < at for one in lines)]
        later = [path for path, lines in held.items() if any(one > at for one in lines)]
        path = max([record_files.file_of(home, kind, time), *earlier])
        held.setdefault(min([path, *later]), {})[at] = seal_json(value)
    done, losses = [], list[tuple[str, str, tuple[int, int] | None]]()
    for path, lines in sorted(held.items()):
        place = seals.place(home, path)
        data, made = before.get(path), b"".join(line for _, line in sorted(lines.items()))
        if data != made and (data or made):
            if data and (place in faults or not whole or missing):
                kept = documents.quarantine(home, f"{kind}-{path.stem}", data, at=clock.stamp(now))
                done.append(f"wrote {place} again; it is kept as {seals.place(home, kept)}")
            make_directory(path.parent)
            write_whole(path, made)
            (home / "index.sqlite").unlink(missing_ok=True)  # it goes on behind its last record
        lost = known[place].lines - len(lines) if place in known else 0
        if place in faults and lost > 0:
            losses.append((place, f"lost: {lost} of {pluralize(known[place].lines, 'records')}", None))
        elif (
            place in faults and Grown().after(made.splitlines(keepends=True)) != known[place] and data == made
        ):
            losses.append((place, "a record was changed, and nothing says which", None))
    if missing:
        done.append(f"restored {pluralize(len(missing), 'records')} of {root} from the history")
    return done, losses


def _repair_journal(home: Path, now: datetime) -> list[str]:
    """Write a damaged journal again with everything that is known of it."""
    path = journal_path(home)
    found = read_journal(home)
    if found.harm is None and path.exists() and found.base + len(found.entries) < newest_stamp(home):
        found = recovered(home, regular.read(path, regular.LOG_BYTES), 0)
    done = write_recovered(home, now=now, found=found)
    if not path.exists():
        write_whole(path, journal_header(found.base, made=found.made, sealed=True))
        done.append(f"made {seals.JOURNAL} again")
    return done


def _held_records(
    home: Path, kind: str, names: list[str]
) -> tuple[dict[Path, dict[int, bytes]], dict[Path, bytes], bool]:
    """Return the whole lines of `kind` by file and position, sealed; the files as they are; and whether no line is damaged."""
    held: dict[Path, dict[int, bytes]] = {home / name: {} for name in names}
    before: dict[Path, bytes] = {}
    whole = True
    for path in record_files.files_of(home, kind):
        before[path] = regular.read(path, regular.LOG_BYTES)
        for line, good in lines_of(before[path], lambda line: record_files.record_of(line) is not None):
            found = record_files.record_of(line) if good else None
            whole &= found is not None
            if found is not None:
                held.setdefault(path, {})[record_files.position(found)] = seal_json(found)
    return held, before, whole


def _move_away(home: Path) -> Iterator[str]:
    """Move what is no regular file but should be one into quarantine, so that the last good state takes its place."""
    names = [journal_path(home), home / seals.PATH, head_path(home)]
    names += [documents.path_of(home, name) for name in documents.NAMES]
    for path in (*names, *seals.growing(home), *seals.whole_files(home)):
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            kept = move_to_quarantine(home, path)
            yield f"kept {path.name} as {seals.place(home, kept)}: it was no regular file"


def _repair_document(home: Path, name: str, now: datetime) -> list[str]:
    """Put a document aside that keeps the home from opening, so that the last good state takes its place."""
    path = documents.path_of(home, name)
    try:
        load(home)
    except AetherError as reason:
        if not reason.where.startswith((f"{name}.json", f"{name}#")):
            return []
        found = documents.read(path)
        migrations.is_current(name, found.value)  # raises: an edit does not make it a document of this aether
        if isinstance(reason, InvalidDocument) and found.state == "good":
            raise  # a newer aether changed it in the journal
        done = []
        if path.exists():
            kept = documents.quarantine(
                home, name, regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
            )
            path.unlink()
            done.append(f"kept {name}.json as {seals.place(home, kept)}: {reason.what}")
        try:
            load(home)
        except CorruptDocument:
            backup = documents.newest_good_backup(home, name, until=1 << 62)
            value, what = backup.value, f"took {name}.json from its backup of revision {backup.revision}"
            why = "the journal after it is damaged"
            if value is None:
                value, what = documents.default(name), f"replaced {name}.json by an empty one"
                why = "neither a backup nor the journal could rebuild it"
            done.append(f"{what}: {why}")
            write_whole(path, json_document(value))
        except AetherError:
            pass  # another document keeps the home from opening; its turn comes
        return done
    return []
