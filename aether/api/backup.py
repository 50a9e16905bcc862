"""Backups: copies of whole homes in a directory or a bucket, each as large as what changed since the one before it.

A place of backups has two kinds of files. `objects/aa/<sha256>` is a piece of a file, named by the hash of its content and
compressed; it is written once. `manifests/<time>_<id>.json` is a backup: one sealed line, written last, that names the pieces of
its index, which is the list of the files with the pieces of each. So a backup that was interrupted does not exist, changes no
other, and the next one uses the pieces that it wrote.

What is restored is written beside its place, compared with the backup, and renamed: the home is there whole, or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import __version__, clock, paths, regular
from aether.api.home import Home, find, now
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
    own_call,
    public,
    shown,
)
from aether.storage import named_files
from aether.storage.adapter import FileStorage, NamedFiles
from aether.store import conversation_list, files, ledger, seals
from aether.store.commit import write_lock
from aether.store.consistent import LEFT_OUT, PIECE_BYTES, Part, part_of, paths_in, read_home
from aether.store.files import locked, make_directory, storage_errors, sync_directory, write_all, write_whole
from aether.store.log import seal_json, unsealed
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

if TYPE_CHECKING:
    from concurrent.futures import Future

FORMAT = 1
OBJECTS, MANIFESTS = "objects", "manifests"
# The end of the name of the directory that a restore writes into; the part before it is random.
RESTORING = ".restoring"
IDENTITY = "data/identity.json"
# What zstandard adds to a piece that it cannot compress is less.
MOST_OBJECT_BYTES = PIECE_BYTES + 64 * 1024
MOST_MANIFEST_BYTES = 16 * 1024 * 1024
LEVEL = 3
# Syncs of a disk and answers of a bucket are waited for; compression runs beside both.
WORKERS = 8
# Pieces that wait to be written are in memory.
MOST_WAITING = 2 * WORKERS
_NAME = re.compile(rf"{MANIFESTS}/(\d{{8}}T\d{{6}}\.\d{{6}}Z)_(backup_[0-9a-f]{{8}})\.json", re.ASCII)
_TIME = "%Y%m%dT%H%M%S.%fZ"
_AGAIN = "Remove it, if it is there, and make a backup: what the home still has is written again."
_UNREADABLE = (CorruptDocument, InvalidDocument, NotFound, UnsafePath)
Progress = Callable[[int, str], None]
T = TypeVar("T")
U = TypeVar("U")


class Backup(NamedTuple):
    """One backup of a home."""

    id: str
    at: str
    home: str
    """The path of the home."""
    revision: int
    """The last change that is in it."""
    files: int
    bytes: int
    """The size of its files."""
    new_bytes: int
    """What it added to the place: the size of its new objects, compressed."""
    left_out: list[str]
    """Links, pipes and devices in the home: a backup has none."""


class RestoredHome(NamedTuple):
    """A home that was restored."""

    home: Path
    backup: Backup
    findings: list[Finding]
    """The files that had other content than the home's own seals say, when the backup was made."""


class _Manifest(NamedTuple):
    """A backup, and where the list of its files is."""

    name: str
    backup: Backup
    identity: str
    """The identity of the home."""
    listing: Part


class _Index(NamedTuple):
    """The files of a backup by path, and its directories without files."""

    files: dict[str, Part]
    empty: list[str]


@public
def create_backup(
    destination: str, *, adopt: bool = False, progress: Progress | None = None, home: Home = None
) -> Backup:
    """Back the home up to a directory or `s3://bucket/prefix`, and return the backup; only new content is written.

    Others may write meanwhile: the backup is the home at one moment. The backups of a place are of one home, unless a
    person lets a home `adopt` those of another. `progress` gets percents, and the step.

    Raises:
        InvalidInput: the destination is in a home, or is not a place for files.
        Conflict: the place has backups of another home.
        LockTimeout, StorageFailed: there is no new backup; older ones are as they were.
        BackendUnavailable: S3 needs boto3, and it is not installed.
    """
    place, target, report = find(home), _target(destination, outside=True), progress or _silent
    clear_leftovers(place)
    earlier, identity = _manifest_names(target), _identity_of(place)
    if not adopt:
        _require_own(target, earlier, place, identity)
    if isinstance(target, FileStorage) and not (target.root.exists() and any(target.root.iterdir())):
        target.put(".gitignore", b"*\n")  # it may lie in a repository, and does not belong to it
    stored = {name.rpartition("/")[2] for name, size in target.names(OBJECTS).items() if size}
    sizes: list[int] = []
    before = {*stored}
    with _writing(target, stored, sizes) as keep:
        moment = read_home(
            place, keep, lambda bytes_read, total: report(99 * bytes_read // max(total, 1), "reading")
        )
        listing = {
            "files": {path: [part.size, [*part.pieces]] for path, part in moment.files.items()},
            "empty": moment.empty,
        }
        data = files.json_line(listing)
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        for piece in pieces:
            keep(regular.digest(piece), piece)
    created_at = now()
    ids = {match[2] for match in map(_NAME.fullmatch, earlier) if match}
    backup_id = next(new for new in iter(lambda: clock.short_id("backup"), "") if new not in ids)
    backup = Backup(
        backup_id, clock.stamp(created_at), str(place), moment.revision, len(moment.files),
        sum(part.size for part in moment.files.values()), sum(sizes), moment.left_out,
    )  # fmt: skip
    index = [len(data), [regular.digest(piece) for piece in pieces]]
    value = {"format": FORMAT, "aether": __version__, **backup._asdict(), "of": identity, "index": index}
    last = _NAME.fullmatch(earlier[0]) if earlier else None
    if last:  # the newest name sorts last, also where a clock was set back
        after = datetime.strptime(last[1], _TIME).replace(tzinfo=UTC) + timedelta(microseconds=1)
        created_at = max(created_at, after)
    name = f"{MANIFESTS}/{created_at.astimezone(UTC).strftime(_TIME)}_{backup_id}.json"
    try:
        with write_lock(place, for_reading=True):
            files.require_not_overtaken(place / IDENTITY)
            target.put(name, seal_json(value))
    except Conflict as reason:
        if not reason.overtaken_by:
            raise
        reason.overtaken_by()
        with own_call():
            backup = create_backup(destination, adopt=adopt, progress=progress, home=home)
        with suppress(*_UNREADABLE):
            _remove_unused(target, stored - before)
    report(100, "")
    return backup


def _remove_unused(target: NamedFiles, pieces: set[str]) -> None:
    """Remove those of `pieces` that no backup has: what was erased while it was read."""
    for name in _manifest_names(target):
        manifest = _manifest(target, name)
        pieces -= {*manifest.listing.pieces}
        pieces -= {piece for part in _index(target, manifest).files.values() for piece in part.pieces}
    for piece in pieces:
        target.remove(_object(piece))


@public
def backups(destination: str) -> list[Backup]:
    """Return the backups in a place, newest first; unreadable ones are left out, and `verify_backup` names them.

    Raises:
        InvalidInput: the destination is not a place for files.
        StorageFailed: it cannot be read.
    """
    target, result = _target(destination), []
    for name in _manifest_names(target):
        with suppress(*_UNREADABLE):
            result.append(_manifest(target, name).backup)
    return result


@public
def verify_backup(
    destination: str, id: str | None = None, *, progress: Progress | None = None
) -> list[Finding]:
    """Read every object of the backups in a place, or of one of them, and return the missing and the changed ones.

    Raises:
        InvalidInput: the destination is not a place for files.
        NotFound: there is no such backup, or none at all.
        StorageFailed: the place cannot be read.
    """
    target, report = _target(destination), progress or _silent
    names = [_name_of(target, id)] if id else _manifest_names(target)
    if not names:
        raise _no_backup(target)
    findings: list[Finding] = []
    states: dict[str, int | str] = {}
    for number, name in enumerate(names):
        try:
            manifest = _manifest(target, name)
            index = _index(target, manifest)
        except _UNREADABLE as reason:
            findings.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
            continue
        pieces = {piece for part in index.files.values() for piece in part.pieces}
        fresh = sorted(pieces - states.keys())

        def step(bytes_checked: int, total: int = len(fresh), number: int = number) -> None:
            report(int(100 * (number + bytes_checked / max(total, 1)) / len(names)), "checking")

        states |= zip(fresh, _each(lambda piece: _state_of(target, piece), fresh, step), strict=True)
        findings += _faults(target, manifest, index, states)
    report(100, "")
    return list(dict.fromkeys(findings))


@public
def restore_backup(
    destination: str, id: str | None = None, *, progress: Progress | None = None, home: Home = None
) -> RestoredHome:
    """Restore a backup, the newest unless one is named, into a new or empty directory, byte for byte, and return it.

    `home` is the new home; by default `AETHER_HOME`, else `.aether/` in the current directory. It appears only when
    everything is written and compared; a failure leaves nothing.

    Raises:
        Conflict: the directory is not empty.
        NotFound: there is no such backup, or an object of it is missing.
        CorruptDocument, InvalidDocument: it was damaged, or a newer aether made it.
        UnsafePath: it has a path that leads out of a home.
        LockTimeout: another process restores into the same directory.
        StorageFailed: the disk refused.
    """
    place = paths.find_home(home or os.environ.get("AETHER_HOME") or Path.cwd() / paths.HOME_NAME)
    target, report = _target(destination), progress or _silent
    manifest = _manifest(target, _name_of(target, id))
    with storage_errors(place, left="Nothing was restored."):
        if os.path.lexists(place) and not (place.is_dir() and not os.listdir(place)):
            fix = "Name a new directory with --home."
            raise Conflict("it is not empty, and nothing is restored over files.", fix=fix, where=str(place))
    index = _index(target, manifest)
    with storage_errors(place, left="Nothing was restored."):
        make_directory(place.parent)
        for leftover in _leftovers(place):
            _clear(leftover)
        beside = place.with_name(f"{place.name}.{os.urandom(6).hex()}{RESTORING}")
        beside.mkdir(mode=0o700)
        with locked(beside, timeout=0):
            try:
                _write_files(target, index, beside / "home", report)
                _compare(beside / "home", index)
                with suppress(FileNotFoundError):
                    os.rmdir(place)
                os.rename(beside / "home", place)
                sync_directory(place.parent)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    report(100, "")
    return RestoredHome(place, manifest.backup, _broken_seals(place))


def _silent(percent: int, step: str) -> None:
    """Report nothing."""


def _target(destination: str, *, outside: bool = False) -> NamedFiles:
    """Return the place of backups; with `outside`, one in a home is refused: it would be lost with the home.

    Raises:
        InvalidInput: it is not a place for files, or a part of the path is a file.
    """
    target = named_files(destination)
    if not isinstance(target, FileStorage):
        return target
    directories = (target.root, *target.root.parents)
    existing = next(directory for directory in directories if os.path.lexists(directory))
    if not existing.is_dir():
        fix = "Name a directory; one that is missing is made."
        raise InvalidInput("is not a directory.", fix=fix, where=str(existing))
    for directory in directories if outside else ():
        if all((directory / "data" / name).exists() for name in ("journal.jsonl", "memory.json")):
            what = f"it is in the home {directory}."
            raise InvalidInput(what, fix="Name a directory outside of every home.", where=str(target.root))
    return target


def _manifest_names(target: NamedFiles) -> list[str]:
    """Return the names of the manifests, newest first."""
    return sorted(filter(_NAME.fullmatch, target.names(MANIFESTS)), reverse=True)


def _identity_of(home: Path) -> str:
    """Return the identity of a home, by which its backups know it in any place; the first backup makes one.

    A home that may not be written and has none is known by its path.
    """
    path = home / IDENTITY
    with write_lock(home, for_reading=True), storage_errors(home):
        with suppress(FileNotFoundError, CorruptDocument, InvalidDocument):
            identity = (unsealed(regular.read(path)) or {}).get("home")
            if isinstance(identity, str) and identity:
                return identity
        identity = clock.new_id("home", now())
        try:
            write_whole(path, seal_json({"home": identity}))
        except OSError as reason:
            if reason.errno not in files.UNWRITABLE:
                raise
            return ""
    return identity


def _require_own(target: NamedFiles, names: list[str], place: Path, identity: str) -> None:
    """Raise if the newest readable backup is of another home: its newest one would be taken for ours."""
    for name in names:
        with suppress(CorruptDocument, NotFound, UnsafePath):
            manifest = _manifest(target, name)
            if manifest.identity and identity:
                is_own = manifest.identity == identity
            else:
                is_own = manifest.backup.home == str(place)
            if not is_own:
                what = f"it has backups of another home, {manifest.backup.home}."
                fix = "Name another place; or, if this home goes on from that one, pass --adopt."
                raise Conflict(what, fix=fix, where=target.where())
            return


def _object(piece: str) -> str:
    return f"{OBJECTS}/{piece[:2]}/{piece}"


@contextmanager
def _writing(
    target: NamedFiles, stored: set[str], sizes: list[int]
) -> Iterator[Callable[[str, bytes], None]]:
    """Yield a function that writes a piece unless it is stored; at the end of the block all are written.

    The sizes of the new objects are added to `sizes`.
    """
    from concurrent.futures import ThreadPoolExecutor

    import zstandard

    def write(piece: str, data: bytes) -> int:
        packed = zstandard.compress(data, LEVEL)
        target.put(_object(piece), packed)
        return len(packed)

    waiting: deque[Future[int]] = deque()

    def keep(piece: str, data: bytes) -> None:
        if piece not in stored:
            stored.add(piece)
            waiting.append(pool.submit(write, piece, data))
        while len(waiting) > MOST_WAITING:
            sizes.append(waiting.popleft().result())

    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            yield keep
            sizes += [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _each(work: Callable[[T], U], values: Sequence[T], step: Callable[[int], None]) -> Iterator[U]:
    """Yield the results of `work`, in order; several are made at a time, and `step` gets the number of the last."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for number, result in enumerate(pool.map(work, values)):
                step(number)
                yield result
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _piece(target: NamedFiles, piece: str) -> bytes:
    """Return the content of a piece.

    Raises:
        NotFound: its object is missing.
        CorruptDocument: its object was changed.
    """
    import zstandard

    name, data = _object(piece), None
    with suppress(zstandard.ZstdError, InvalidDocument):  # InvalidDocument: it is larger than a piece can be
        packed = target.get(name, MOST_OBJECT_BYTES)
        if zstandard.frame_content_size(packed) <= PIECE_BYTES:
            data = zstandard.ZstdDecompressor().decompress(
                packed, max_output_size=PIECE_BYTES, allow_extra_data=False
            )
    if data is None or regular.digest(data) != piece:
        raise CorruptDocument("the object was changed.", fix=_AGAIN, where=target.where(name))
    return data


def _state_of(target: NamedFiles, piece: str) -> int | str:
    """Return the size of a piece, or `missing` or `changed`."""
    try:
        return len(_piece(target, piece))
    except NotFound:
        return "missing"
    except (CorruptDocument, UnsafePath):
        return "changed"


def _faults(
    target: NamedFiles, manifest: _Manifest, index: _Index, states: dict[str, int | str]
) -> Iterator[Finding]:
    """Yield a finding for each unusable object, and for each file whose pieces have another size."""
    spoiled: dict[str, list[str]] = {}
    for path, part in index.files.items():
        bad = [piece for piece in part.pieces if isinstance(states[piece], str)]
        for piece in bad:
            spoiled.setdefault(piece, []).append(path)
        if not bad and sum(int(states[piece]) for piece in part.pieces) != part.size:
            what = f"the pieces of {shown(path)} have another size than the file."
            yield Finding("error", "changed-backup", target.where(manifest.name), what, _AGAIN)
    for piece, files_of_piece in spoiled.items():
        state, number = states[piece], pluralize(len(files_of_piece), "files")
        what = f"the object is {state}: {number} of {manifest.backup.id} cannot be restored, such as {shown(files_of_piece[0])}."
        yield Finding("error", f"{state}-object", target.where(_object(piece)), what, _AGAIN)


def _no_backup(target: NamedFiles, id: str = "") -> NotFound:
    what = f"there is no backup {shown(id)}." if id else "there are no backups."
    fix = 'See "aether backup list", or make one with "aether backup create".'
    return NotFound(what, fix=fix, where=target.where())


def _name_of(target: NamedFiles, id: str | None) -> str:
    """Return the name of the manifest of a backup, of the newest without an id.

    Raises:
        NotFound: there is no such backup.
    """
    names = [name for name in _manifest_names(target) if id is None or name.endswith(f"_{id}.json")]
    if not names:
        raise _no_backup(target, id or "")
    return names[0]


def _manifest(target: NamedFiles, name: str) -> _Manifest:
    """Return the content of the manifest `name`.

    Raises:
        CorruptDocument: it was changed.
        InvalidDocument: a newer aether wrote it.
    """
    where, fix = target.where(name), 'Name another backup; "aether backup list" has those that can be read.'
    value = unsealed(target.get(name, MOST_MANIFEST_BYTES)) or {}
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        what = f"its format is {version}, and this aether reads up to {FORMAT}."
        raise InvalidDocument(what, fix="Update aether.", where=where)
    with suppress(KeyError, TypeError, ValueError):
        backup = Backup(*(value[field] for field in Backup._fields))
        if [*map(type, backup)] == [str, str, str, int, int, int, int, list]:
            return _Manifest(name, backup, str(value["of"]), _part(value["index"]))
    raise CorruptDocument("the manifest was changed.", fix=fix, where=where)


def _part(value: Any) -> Part:
    """Return a part from its JSON.

    Raises:
        TypeError, ValueError: it is not one.
    """
    size, pieces = value
    if type(size) is not int or not all(regular.is_sha256(piece) for piece in pieces):
        raise ValueError(value)
    return Part(size, tuple(pieces))


def _index(target: NamedFiles, manifest: _Manifest) -> _Index:
    """Return the list of the files of a backup.

    Raises:
        NotFound, CorruptDocument: it cannot be read.
        UnsafePath: it has a path that no home has; a place of backups may be written by others.
    """
    data = b"".join(_piece(target, piece) for piece in manifest.listing.pieces)
    where = target.where(manifest.name)
    value: JsonObject = files.parse_json(data, where=where)
    # Earlier releases took along when the server of a shared home failed last, and the directory of a lock.
    dropped = {ledger.TRIED, f"conversations/{conversation_list.LIST_LOCK}"}
    try:
        parts = {path: _part(part) for path, part in value["files"].items() if path not in dropped}
        empty = [path for path in map(str, value["empty"]) if path not in dropped]
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise CorruptDocument("its list of files was changed.", fix=_AGAIN, where=where) from reason
    for path in (*parts, *empty):
        if not paths.is_plain(path) or LEFT_OUT.fullmatch(path):
            what = f"it has a file {shown(path)}, which no backup of a home has."
            raise UnsafePath(what, fix="Do not use this backup: somebody changed it.", where=where)
    return _Index(parts, empty)


def _leftovers(place: Path) -> list[Path]:
    """Return what restores into `place`, killed ones and perhaps one that runs, have beside it."""
    name = re.compile(re.escape(place.name) + r"\.[0-9a-f]{12}" + re.escape(RESTORING))
    return [path for path in place.parent.iterdir() if name.fullmatch(path.name)]


def examine_leftovers(place: Path) -> list[Finding]:
    """Return a finding for each directory that a killed restore left beside the home."""
    what = "a killed restore left it; the home is complete without it."
    return [
        Finding("warning", "left-restore", path.name, what, files.REPAIR)
        for path in _leftovers(place)
        if _is_of_restore(path) and not _is_locked(path)
    ]


def clear_leftovers(place: Path) -> list[str]:
    """Remove what killed restores left beside the home, and return it in words."""
    cleared = []
    for path in _leftovers(place):
        with suppress(OSError, AetherError):  # a restore that runs, or a directory that is not this user's
            _clear(path)
        if not path.exists():
            cleared.append(f"removed {path.name}/, left beside the home by a killed restore")
    return cleared


def _is_of_restore(leftover: Path) -> bool:
    """Return whether a directory holds only what a restore makes there."""
    is_directory = leftover.is_dir() and not leftover.is_symlink()
    return is_directory and {"lock", "home"}.issuperset(os.listdir(leftover))


def _is_locked(leftover: Path) -> bool:
    """Return whether a restore runs there."""
    if not (leftover / "lock").exists():
        return False
    try:
        with locked(leftover, timeout=0):
            return False
    except (OSError, AetherError):
        return True


def _clear(leftover: Path) -> None:
    """Remove what a killed restore left; a directory with anything else in it stays.

    Raises:
        LockTimeout: the restore is running.
    """
    if _is_of_restore(leftover):
        with locked(leftover, timeout=0):
            shutil.rmtree(leftover)


def _write_files(target: NamedFiles, index: _Index, place: Path, report: Progress) -> None:
    """Write the files of a backup below `place`, durably."""
    parents = {parent for path in index.files for parent in Path(path).parents}
    parents |= {parent for path in index.empty for parent in (Path(path), *Path(path).parents)}
    directories = sorted(place / parent for parent in parents)
    for directory in directories or [place]:
        directory.mkdir(mode=0o700)

    def write(path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(place / path, flags, 0o600)
        try:
            for piece in index.files[path].pieces:
                write_all(handle, _piece(target, piece))
            os.fsync(handle)
        finally:
            os.close(handle)

    total = max(len(index.files), 1)
    for _ in _each(write, [*index.files], lambda number: report(95 * number // total, "writing")):
        pass
    for directory in directories:
        sync_directory(directory)


def _broken_seals(home: Path) -> list[Finding]:
    """Return a finding for each file that differs from the record of seals of its home, or for a damaged record."""
    record, fix = seals.read(home), 'See "aether doctor"; an earlier backup may have it whole.'
    if record.state == "damaged":
        what = "the record of what the files hold is damaged."
        return [Finding("error", record.state, seals.PATH, what, fix)]
    faults = ((name, seals.fault(home, record, name)) for name in (*record.grown, *record.whole))
    return [Finding("error", "damaged-file", name, what, fix) for name, what in faults if what]


def _compare(place: Path, index: _Index) -> None:
    """Raise unless the files below `place` are those of the backup, byte for byte."""
    parts = {path: part_of(place / path) for path, kind in paths_in(place) if kind == "file"}
    if parts != index.files:
        other = next(path for path in sorted(parts | index.files) if parts.get(path) != index.files.get(path))
        what = f"{shown(other)} was read back otherwise than it was written. Nothing was restored."
        raise StorageFailed(what, fix="Check the disk, then try again.", where=str(place))
