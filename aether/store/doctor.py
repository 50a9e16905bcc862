"""Doctor: what is wrong with a home, and how much of it can be mended without losing anything.

`examine` only reads. `repair` removes what killed processes left, keeps aside what cannot be read, and
rebuilds what backups and the journal allow; nothing is deleted because it failed to parse.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from aether import clock
from aether.errors import AetherError, CorruptDocument, InvalidDocument
from aether.schemas import check
from aether.store import archive, config, conversations, documents, files, rewrite, snapshot
from aether.store import snapshot as store_snapshot
from aether.store.commit import fold, settle, write_lock
from aether.store.conversations import FILE
from aether.store.files import leftover_temps, storage_errors, write_whole
from aether.store.snapshot import folded_entries
from aether.types import Finding, Level

REPAIR = 'Run "aether doctor --repair".'


def examine(home: Path) -> list[Finding]:
    """Return what is wrong with the files of `home`, errors first."""
    found = [
        *_temps(home),
        *_begun(home),
        *_torn(home),
        *_unreadable_files(home),
        *_kept_aside(home),
        *_history(home),
        *_no_files(home),
        *conversations.examine(home),
        *_settings(home),
    ]
    try:
        snapshot = store_snapshot.load(home)
    except AetherError as reason:
        found.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
    else:
        for name, file in snapshot.irregular.items():
            level: Level = "warning" if file.state in ("edited", "unstamped") else "error"
            found.append(Finding(level, file.state, f"{name}.json", f"the file is {file.state}.", REPAIR))
        for name in documents.NAMES:
            found += check.findings(name, snapshot.documents[name])
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _temps(home: Path) -> list[Finding]:
    return [
        Finding("warning", "temp-file", str(path.relative_to(home)), "a killed process left it.", REPAIR)
        for path in leftover_temps(home)
    ]


def _begun(home: Path) -> list[Finding]:
    if not (home / rewrite.DIRECTORY).exists():
        return []
    what = "an erasing was interrupted; the next change of the home goes on with it."
    return [Finding("warning", "erasing", f"{rewrite.DIRECTORY}/", what, REPAIR)]


def _torn(home: Path) -> list[Finding]:
    found = []
    for kind in (*archive.MONTHLY, *archive.SINGLE):
        for path in archive.files_of(home, kind):
            place = str(path.relative_to(home))
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
                if not line.endswith(b"\n"):
                    found.append(
                        Finding(
                            "warning",
                            "torn-line",
                            place,
                            "the last line was cut off; the journal has it.",
                            REPAIR,
                        )
                    )
                elif _unreadable(line):
                    found.append(
                        Finding(
                            "error",
                            "damaged-line",
                            f"{place}:{number}",
                            "not JSON.",
                            "Restore the line from a copy; the file was left as it is.",
                        )
                    )
    try:
        scan = store_snapshot.read_journal(home)
        if scan.torn:
            found.append(
                Finding(
                    "warning",
                    "torn-line",
                    "data/journal.jsonl",
                    "the last line was cut off before it was acknowledged.",
                    REPAIR,
                )
            )
        if scan.ignored:
            found.append(
                Finding(
                    "info",
                    "repeated-revision",
                    "data/journal.jsonl",
                    f"{scan.ignored} line(s) of writers that met although the lock was held; each was done again.",
                    "Keep the home on a local disk.",
                )
            )
    except (AetherError, OSError):
        pass  # `load` says it better
    return found


def _unreadable(line: bytes) -> bool:
    try:
        files.parse_json(line, where="line")
    except CorruptDocument:
        return True
    return False


def _unreadable_files(home: Path) -> list[Finding]:
    """Return findings for snapshots and hand-offs that do not parse; a hand-off is made again when asked for."""
    return [
        Finding(
            "warning",
            "unreadable",
            str(path.relative_to(home)),
            "not JSON.",
            "Remove it, or restore it from a copy.",
        )
        for directory in ("snapshots", "compressions")
        for path in sorted((home / directory).glob("*.json"))
        if _unreadable(path.read_bytes())
    ]


def _kept_aside(home: Path) -> list[Finding]:
    return [
        Finding(
            "info",
            "quarantine",
            str(path.relative_to(home)),
            "was unreadable and is kept here.",
            "Look at it, then remove it.",
        )
        for path in sorted((home / "quarantine").glob("*"))
    ]


def _history(home: Path) -> list[Finding]:
    expected = None
    for entry in folded_entries(home):
        if expected is not None and entry.revision != expected:
            where = f"revision {expected}"
            return [
                Finding(
                    "warning",
                    "history-gap",
                    where,
                    f"missing from the history; the next is {entry.revision}.",
                    "Undo and time travel stop here; the present state is whole.",
                )
            ]
        expected = entry.revision + 1
    return []


def _no_files(home: Path) -> list[Finding]:
    """Return findings for what stands where the log of a conversation belongs; `conversations` passes it over."""
    what, fix = "it is a directory, and no log of a conversation.", "Move it away."
    return [
        Finding("error", "no-file", path.relative_to(home).as_posix(), what, fix)
        for path in sorted((home / "conversations").glob(f"*/{FILE}"))
        if path.is_dir()
    ]


def _settings(home: Path) -> list[Finding]:
    try:
        config.load(home)
    except AetherError as reason:
        return [Finding("error", reason.code, "config.toml", reason.what, reason.fix)]
    return []


def repair(home: Path, *, now: datetime) -> list[str]:
    """Mend what can be mended, under the lock, and return what was done, in words."""
    done = []
    with write_lock(home):
        with storage_errors(home):
            for path in leftover_temps(home):
                os.unlink(path)
                done.append(f"removed {path.relative_to(home)}, left by a killed process")
            done += _repair_journal(home, now)
        for name in documents.NAMES:
            done += _repair_document(home, name, now)
        snapshot = store_snapshot.load(home)
        amiss = sorted(snapshot.irregular)
        fold(settle(snapshot, now=now), now=now)
        done += [f"wrote {name}.json anew from what is known" for name in amiss]
    return done + conversations.repair(home, now=now)


def _repair_journal(home: Path, now: datetime) -> list[str]:
    path = store_snapshot.journal_path(home)
    try:
        data = path.read_bytes()
        found = snapshot.scan_journal(data, where=path.name)
        if found.base + len(found.entries) >= _newest_stamp(home):
            return []
    except FileNotFoundError:
        return []
    except CorruptDocument:
        pass
    kept = documents.quarantine(home, "journal", data, at=clock.stamp(now))
    good = _good_part(home, data)
    write_whole(path, good)
    lost = max(data.count(b"\n") - good.count(b"\n"), 0)
    return [
        f"kept the damaged journal as {kept.relative_to(home)}; {lost} line(s) after the damage are only there"
    ]


def _newest_stamp(home: Path) -> int:
    files = [documents.read(documents.path_of(home, name)) for name in documents.NAMES]
    return max((file.revision for file in files if file.state == "good"), default=0)


def _good_part(home: Path, data: bytes) -> bytes:
    """Return the journal up to the first revision that neither it nor the history has; else a new one."""
    newest, made = _newest_stamp(home), documents.existing_optional(home)
    last = next(folded_entries(home, newest_first=True), None)
    reached = max(last.revision if last else 0, newest)
    lines = data.splitlines(keepends=True)
    start = files.unsealed(lines[0]) if lines else None
    ours: dict[int, bytes] = {}
    for line in lines:
        fields = files.unsealed(line) if line.endswith(b"\n") else None
        if fields and "revision" in fields:
            ours.setdefault(fields["revision"], line)
    # The header alone may be damaged: the commits after it count where they go on from what is known.
    base = min(min(ours, default=reached + 1) - 1, reached)
    if start and "base" in start:
        base = start["base"]
    # A fold that was cut short has its lines in the history already.
    known = ours | {entry.revision: snapshot.entry_line(entry) for entry in folded_entries(home, after=base)}
    revision, good = base + 1, [snapshot.journal_header(base, made=made)]
    while revision in known:
        good.append(known[revision])
        revision += 1
    return b"".join(good) if revision > newest else snapshot.journal_header(reached, made=made)


def _repair_document(home: Path, name: str, now: datetime) -> list[str]:
    """Put a document aside that keeps the home from opening, so that the last good state takes its place."""
    path = documents.path_of(home, name)
    try:
        store_snapshot.load(home)
    except AetherError as reason:
        if not reason.where.startswith((f"{name}.json", f"{name}#")):
            return []
        if isinstance(reason, InvalidDocument) and documents.read(path).state == "good":
            raise  # not an edit: a newer aether wrote it
        done = []
        if path.exists():
            kept = documents.quarantine(home, name, path.read_bytes(), at=clock.stamp(now))
            path.unlink()
            done.append(f"kept {name}.json as {kept.relative_to(home)}: {reason.what}")
        try:
            store_snapshot.load(home)
        except CorruptDocument:
            done.append(_begin_anew(home, name))
        except AetherError:
            pass  # another document stands in the way; its turn comes
        return done
    return []


def _begin_anew(home: Path, name: str) -> str:
    """Put the newest good backup in the place of document `name`, or the shipped one, beside what was kept."""
    backup = documents.newest_good_backup(home, name, until=1 << 62)
    if backup.value is None:
        write_whole(documents.path_of(home, name), files.json_document(documents.default(name)))
        return f"began {name}.json anew: neither a backup nor the journal could rebuild it"
    write_whole(documents.path_of(home, name), files.json_document(backup.value))
    return f"took {name}.json from its backup of revision {backup.revision}: the journal after it is damaged"
