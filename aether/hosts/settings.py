"""Settings files that people keep: planned, backed up, changed and restored, for any host.

A host says how a text is changed and changed back (`Edit`); here the file is read, backed up in the user's own directory
before it is changed, written atomically through symlinks, and left alone if somebody else changes it meanwhile.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, InvalidDocument, StorageFailed
from aether.store.files import write_whole

# The directory of the backups, in the directory of the host's own settings.
BACKUPS = "aether-backups"
# For files of a project; settings of one person may be read by their owner only, as hosts make them.
SHARED_MODE = 0o644
# Of the digest of a path: enough to distinguish some thousand projects.
PATH_DIGEST_CHARS = 12
BYTE_ORDER_MARK = "\ufeff"


class FileChange(NamedTuple):
    """The change of one file; in a dry run, the planned one."""

    path: str
    change: str
    """`created`, `changed`, `removed` or `unchanged`."""
    backup: str
    """The path of the backup; empty if there is none."""
    diff: str


class Edit(NamedTuple):
    """How a file is changed: text to text."""

    path: Path
    merge: Callable[[str], str]
    """Return the text with what aether adds; doing it twice is doing it once."""
    unmerge: Callable[[str, str], str]
    """Return the text without that; the second text is the file as it was before. Empty if nothing remains."""
    root: Path
    """The directory of the project, or of the user's settings: directories below it that become empty are removed."""


class _Plan(NamedTuple):
    """A file's bytes before and after; `None` means no file."""

    path: Path
    root: Path
    before: bytes | None
    after: bytes | None
    obsolete: tuple[Path, ...] = ()
    """Backups with the same bytes that the file itself will have."""


def install(
    edits: Sequence[Edit], directory: Path, *, shared: bool, dry_run: bool = False
) -> list[FileChange]:
    """Make `edits`, and return the changes; nothing is written if one of the files cannot be changed.

    `directory` is that of the user's own settings of the host, where backups are kept. A `shared` file is one of a project.

    Raises:
        InvalidDocument: a file does not have the form of the host; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = []
    for edit in edits:
        before = read_bytes(edit.path)
        text = text_of(edit.path, before)
        plans.append(_Plan(edit.path, edit.root, before, _bytes(edit.merge(text), like=before)))
    return [_applied(plan, directory, shared=shared, dry_run=dry_run) for plan in plans]


def uninstall(edits: Sequence[Edit], directory: Path, *, dry_run: bool = False) -> list[FileChange]:
    """Take `edits` back, and return the changes: a file that nobody else changed is again what it was, to the byte.

    Raises:
        InvalidDocument: a file does not have the form of the host; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = []
    for path, merge, unmerge, root in edits:
        present = read_bytes(path)
        text = text_of(path, present)
        if not text.strip() or unmerge(text, "") == text:
            plans.append(_Plan(path, root, present, present))
            continue
        earlier, copies = _clean_backup(path, directory, unmerge)
        before = text_of(path, earlier)
        after = earlier
        if merge(before) != text:
            without = unmerge(text, before)
            # A file that aether made and nobody else uses is removed.
            unused = earlier is None and not without.strip()
            after = None if unused else _bytes(without, like=present)
        copies_of_after = tuple(copy for copy, data in copies if data == after)
        plans.append(_Plan(path, root, present, after, copies_of_after))
    return [_applied(plan, directory, dry_run=dry_run) for plan in plans]


def _clean_backup(
    path: Path, directory: Path, unmerge: Callable[[str, str], str]
) -> tuple[bytes | None, list[tuple[Path, bytes]]]:
    """Return the newest backup without our entries, if there is one, and all backups."""
    names = sorted((directory / BACKUPS).glob(f"{_backup_prefix(path)}*"), reverse=True)
    copies = [(name, name.read_bytes()) for name in names]
    for name, data in copies:
        with contextlib.suppress(InvalidDocument):
            text = text_of(name, data)
            if not text.strip() or unmerge(text, "") == text:
                return data, copies
    return None, copies


def _applied(plan: _Plan, directory: Path, *, shared: bool = False, dry_run: bool) -> FileChange:
    path, before, after = plan.path, plan.before, plan.after
    if before == after:
        return FileChange(str(path), "unchanged", "", "")
    change = "created" if before is None else "removed" if after is None else "changed"
    old, new = (text_of(path, data).splitlines(keepends=True) for data in (before, after))
    lines = difflib.unified_diff(old, new, f"{path} (now)", f"{path} (then)")
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    result = FileChange(str(path), change, "", "".join(ended))
    if dry_run:
        return result
    with storage_of(path):
        if read_bytes(path) != before:
            raise Conflict(
                "was changed by somebody else meanwhile. Nothing was written.",
                fix="Try again.",
                where=str(path),
            )
        if before is not None and after is not None and not plan.obsolete:
            # Outside of any project, or it would be committed.
            backup = (directory / BACKUPS) / f"{_backup_prefix(path)}{clock.now():%Y%m%dT%H%M%S%fZ}"
            backup.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(backup, before)
            result = result._replace(backup=str(backup))
        _write(plan, shared=shared)
        for copy in plan.obsolete:
            copy.unlink()
        with contextlib.suppress(OSError):  # it holds others, or does not exist
            (directory / BACKUPS).rmdir()
    return result


def _backup_prefix(path: Path) -> str:
    """Return the prefix of the names of a file's backups."""
    place = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:PATH_DIGEST_CHARS]
    return f"{path.name}-{place}-"


def _write(plan: _Plan, *, shared: bool) -> None:
    target = Path(os.path.realpath(plan.path))  # a link to settings elsewhere stays a link
    if plan.after is None:
        target.unlink()
        parent = plan.path.parent
        with contextlib.suppress(OSError):  # it holds other files
            while plan.root in parent.parents:
                parent.rmdir()
                parent = parent.parent
        return
    mode = target.stat().st_mode & 0o7777 if target.exists() else SHARED_MODE if shared else None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, plan.after)
    if mode is not None:
        target.chmod(mode)


def read_bytes(path: Path) -> bytes | None:
    """Return the bytes of a file; None without one."""
    with storage_of(path):
        try:
            return regular.read(os.path.realpath(path))
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def storage_of(path: Path) -> Iterator[None]:
    """Raise errors of the disk as ours, with the file."""
    try:
        yield
    except AetherError:
        raise
    except OSError as reason:
        raise StorageFailed(
            f"{reason.strerror or reason}. Nothing was changed.",
            fix="Make it a readable and writable file, then try again.",
            where=str(path),
        ) from reason


def text_of(path: Path, data: bytes | None) -> str:
    """Return the text of the file `path` with these bytes."""
    try:
        return (data or b"").decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as reason:
        raise InvalidDocument(
            "is not UTF-8 text. Nothing was changed.", fix="Convert it to UTF-8.", where=str(path)
        ) from reason


def _bytes(text: str, *, like: bytes | None) -> bytes:
    mark = BYTE_ORDER_MARK if (like or b"").startswith(BYTE_ORDER_MARK.encode()) else ""
    return f"{mark}{text}".encode()
