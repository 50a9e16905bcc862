"""Doctor: a check of the files of a home, and the repair of what can be repaired without losing anything.

`examine` only reads. `repair` removes the leftovers of killed processes, keeps unreadable files aside, and rebuilds
from backups and the journal; nothing is deleted because it failed to parse.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from aether import clock, regular
from aether.errors import AetherError, CorruptDocument, InvalidDocument
from aether.schemas import check
from aether.store import archive, config, conversations, documents, rewrite, spool
from aether.store.commit import fold, settle, write_lock
from aether.store.files import (
    json_document,
    leftover_temps,
    make_directory,
    parse_json,
    require_exclusive,
    storage_errors,
    unsealed,
    write_whole,
)
from aether.store.snapshot import (
    entry_line,
    folded_entries,
    journal_header,
    journal_path,
    load,
    read_journal,
    scan_journal,
)
from aether.text.words import pluralize
from aether.types import Finding

REPAIR = 'Run "aether doctor --repair".'
_ORDER = {"error": 0, "warning": 1, "info": 2}


def examine(home: Path) -> list[Finding]:
    """Return the problems of the files of `home`, errors first."""
    found = [
        Finding("warning", "temp-file", _place(home, path), "a killed process left it.", REPAIR)
        for path in leftover_temps(home)
    ]
    if (home / rewrite.DIRECTORY).exists():
        what = "an erasing was interrupted; the next change of the home goes on with it."
        found.append(Finding("warning", "erasing", f"{rewrite.DIRECTORY}/", what, REPAIR))
    found += [*_torn_lines(home), *_unreadable_files(home)]
    try:
        for one, following in pairwise(entry.revision for entry in folded_entries(home)):
            if following != one + 1:
                what = f"missing from the history; the next is {following}."
                fix = "Undo and time travel stop here; the present state is whole."
                found.append(Finding("warning", "history-gap", f"revision {one + 1}", what, fix))
                break
    except AetherError as reason:  # a month that is no regular file
        found.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
    found += conversations.examine(home)
    try:
        config.load(home)
    except AetherError as reason:
        found.append(Finding("error", reason.code, "config.toml", reason.what, reason.fix))
    found += config.untrusted(home)
    found += _tracked_spool(home)
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
                f"the file is {file.state}.",
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
    return sorted(found, key=lambda finding: _ORDER[finding.level])


def _tracked_spool(home: Path) -> list[Finding]:
    names = spool.tracked(str(home))
    if not names:
        return []
    what = f"git tracks {len(names)} event(s) there, which came with the repository; they are not drained."
    fix = "Remove them: git rm --cached -r .aether/hooks, and keep .aether/ in .gitignore."
    return [Finding("warning", "tracked-spool", "hooks/spool/", what, fix)]


def _place(home: Path, path: Path) -> str:
    return str(path.relative_to(home))


def _torn_lines(home: Path) -> Iterator[Finding]:
    for kind in (*archive.MONTHLY, *archive.SINGLE):
        for path in archive.files_of(home, kind):
            place = _place(home, path)
            for number, line in enumerate(_content(path).splitlines(keepends=True), 1):
                if not line.endswith(b"\n"):
                    what = "the last line was cut off; the journal has it."
                    yield Finding("warning", "torn-line", place, what, REPAIR)
                elif _is_unreadable(line):
                    fix = "Restore the line from a copy; the file was left as it is."
                    yield Finding("error", "damaged-line", f"{place}:{number}", "not JSON.", fix)
    try:
        journal = read_journal(home)
    except (AetherError, OSError):
        return  # `load` reports it
    if journal.torn:
        what = "the last line was cut off before it was acknowledged."
        yield Finding("warning", "torn-line", "data/journal.jsonl", what, REPAIR)
    if journal.ignored:
        what = (
            f"{journal.ignored} lines of concurrent writers although the lock was held; each was done again."
        )
        fix = "Keep the home on a local disk."
        yield Finding("info", "repeated-revision", "data/journal.jsonl", what, fix)


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


def _unreadable_files(home: Path) -> Iterator[Finding]:
    """Yield findings for snapshots and hand-offs that do not parse, and for files in quarantine."""
    for directory in ("snapshots", "compressions"):
        for path in sorted((home / directory).glob("*.json")):
            if _is_unreadable(_content(path)):
                fix = "Remove it, or restore it from a copy."
                yield Finding("warning", "unreadable", _place(home, path), "not JSON.", fix)
    edits = documents.kept_edits(home)
    for kept in edits:
        yield Finding(
            "warning",
            "kept-edit",
            _place(home, kept.path),
            f"a hand edit waits: {kept.reason}",
            how_to_accept(kept),
        )
    paths = {kept.path.stem for kept in edits}
    for path in sorted((home / "quarantine").glob("*")):
        if path.stem.removesuffix(".diff") in paths:
            continue
        what = "was unreadable and is kept here."
        yield Finding("info", "quarantine", _place(home, path), what, "Look at it, then remove it.")
    # `conversations` lists files only.
    for path in sorted((home / "conversations").glob(f"*/{conversations.FILE}")):
        if path.is_dir():
            what = "it is a directory, and no log of a conversation."
            yield Finding("error", "no-file", path.relative_to(home).as_posix(), what, "Move it away.")


def how_to_accept(kept: documents.KeptEdit) -> str:
    """Return what a person can do with a kept edit."""
    look = f"{kept.path.stem}.diff.json has its changes"
    return f'Accept it with "aether doctor --accept {kept.path.name}" ({look}), or remove it.'


def _removed_temp(home: Path, path: Path, now: datetime) -> str:
    """Remove a temporary file, unless it is a document that a person had edited: a kill can leave it there."""
    name = path.name[1:].partition(".")[0]
    if name in documents.NAMES and documents.read(path).state in ("edited", "unstamped"):
        kept = documents.quarantine(home, name, path.read_bytes(), at=clock.stamp(now))
        os.unlink(path)
        return f"kept the edit of {name}.json that a killed process had taken away as {_place(home, kept)}"
    os.unlink(path)
    return f"removed {_place(home, path)}, left by a killed process"


def repair(home: Path, *, now: datetime) -> list[str]:
    """Repair the files of `home` under the lock, and return a line for each thing done."""
    done = []
    with write_lock(home):
        with storage_errors(home):
            require_exclusive(home)
            done += [_removed_temp(home, path, now) for path in leftover_temps(home)]
            done += [*_move_away(home), *_repair_journal(home, now)]
        for name in documents.NAMES:
            done += _repair_document(home, name, now)
        snapshot = load(home)
        irregular = sorted(snapshot.irregular)
        fold(settle(snapshot, now=now), now=now)
        done += [f"wrote {name}.json again from what is known" for name in irregular]
    return done + conversations.repair(home, now=now)


def _repair_journal(home: Path, now: datetime) -> list[str]:
    path = journal_path(home)
    try:
        data = regular.read(path, regular.LOG_BYTES)
        found = scan_journal(data, where=path.name)
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
    what = f"kept the damaged journal as {_place(home, kept)}"
    return [f"{what}; {pluralize(lost, 'lines')} after the damage only there"]


def _newest_stamp(home: Path) -> int:
    files = [documents.read(documents.path_of(home, name)) for name in documents.NAMES]
    return max((file.revision for file in files if file.state == "good"), default=0)


def _good_part(home: Path, data: bytes) -> bytes:
    """Return the journal up to the first revision that neither it nor the history has; else a new one."""
    newest, made = _newest_stamp(home), documents.existing_optional(home)
    last = next(folded_entries(home, newest_first=True), None)
    reached = max(last.revision if last else 0, newest)
    lines = data.splitlines(keepends=True)
    start = unsealed(lines[0]) if lines else None
    ours: dict[int, bytes] = {}
    for line in lines:
        fields = unsealed(line) if line.endswith(b"\n") else None
        if fields and "revision" in fields:
            ours.setdefault(fields["revision"], line)
    # The header alone may be damaged: the commits after it count if they follow the last known revision.
    base = min(min(ours, default=reached + 1) - 1, reached)
    if start and "base" in start:
        base = start["base"]
    # A fold that was cut short has its lines in the history already.
    known = ours | {entry.revision: entry_line(entry) for entry in folded_entries(home, after=base)}
    revision, good = base + 1, [journal_header(base, made=made)]
    while revision in known:
        good.append(known[revision])
        revision += 1
    return b"".join(good) if revision > newest else journal_header(reached, made=made)


def _move_away(home: Path) -> Iterator[str]:
    """Move documents and journal that are no regular files into quarantine, so that the last good state takes their place."""
    for path in (journal_path(home), *(documents.path_of(home, name) for name in documents.NAMES)):
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            make_directory(home / "quarantine")
            kept = home / "quarantine" / f"{path.name}.{os.urandom(4).hex()}"
            os.replace(path, kept)
            yield f"kept {path.name} as {_place(home, kept)}: it was no regular file"


def _repair_document(home: Path, name: str, now: datetime) -> list[str]:
    """Put a document aside that keeps the home from opening, so that the last good state takes its place."""
    path = documents.path_of(home, name)
    try:
        load(home)
    except AetherError as reason:
        if not reason.where.startswith((f"{name}.json", f"{name}#")):
            return []
        if isinstance(reason, InvalidDocument) and documents.read(path).state == "good":
            raise  # not an edit: a newer aether wrote it
        done = []
        if path.exists():
            kept = documents.quarantine(
                home, name, regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
            )
            path.unlink()
            done.append(f"kept {name}.json as {_place(home, kept)}: {reason.what}")
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
