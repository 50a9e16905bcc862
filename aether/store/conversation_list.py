"""The list of the conversations of a home, `data/conversations.jsonl`, so that a deleted one is missed.

A name is in it before the first message is in the log. Its last line says whether a conversation rests in the archive, was
removed on request, came back, or is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from aether import regular
from aether.errors import AetherError, Conflict, StorageFailed, UnsafePath
from aether.paths import directory_name, inside
from aether.store import config, seals
from aether.store.files import locked, make_directory, storage_errors
from aether.store.log import ConcurrentWrite, append, cut_torn_end, lines_of, seal_json, unsealed
from aether.types import JsonObject

LIST = seals.CONVERSATIONS
# The directory of the lock of the list, beside those of conversations: none of them starts with a dot.
LIST_LOCK = ".list"
# The same as for the home: with a lock that holds, once is enough.
CONFLICT_TRIES = 5


class Listed(NamedTuple):
    """One line of the list of conversations; the last one of a conversation counts."""

    id: str
    at: str
    lost: bool = False
    """Whether its directory was missing when the home was repaired."""
    source: str = ""
    """The snapshot from which a lost one was brought back; empty if none had it."""
    removed: bool = False
    """Whether it was moved to quarantine on request: nobody misses it."""
    archived: bool = False
    """Whether it is in the archive now."""
    restored: bool = False
    """Whether it came back from there on request, at that time."""
    lines: int = 0
    """How many lines its log had when it was archived or removed, as its stream counts them; 0 if that is not known."""


def listed(home: Path) -> tuple[dict[str, Listed], bool]:
    """Return the listed conversations of `home` by the names of their directories, and whether the list is damaged."""
    try:
        data = regular.read(home / LIST, regular.LOG_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return {}, False
    except (AetherError, OSError):
        return {}, True
    return listed_in(home, data)


def listed_in(home: Path, data: bytes) -> tuple[dict[str, Listed], bool]:
    """Return the same of `data`, the content of the list at some time."""
    entries: dict[str, Listed] = {}
    lines = [*lines_of(data)]
    for entry in _entries(lines):
        with suppress(AetherError):
            name = directory_name(entry.id, what="conversation")
            # To follow links is slow, and most conversations rest in the archive.
            if os.path.lexists(f"{home}/conversations/{name}"):
                inside(home, f"conversations/{name}")
            entries.pop(name, None)
            if not entry.removed:
                entries[name] = entry
    return entries, not all(good for _, good in lines)


def last_listed(home: Path) -> dict[str, Listed]:
    """Return the last line of each conversation in the list of `home`, by its id; those that were removed as well."""
    try:
        data = regular.read(home / LIST, regular.LOG_BYTES)
    except (AetherError, OSError):  # doctor reports it
        return {}
    return {entry.id: entry for entry in _entries(lines_of(data))}


def removed_ids(home: Path) -> set[str]:
    """Return the conversations that were moved to quarantine on request, and not started again since."""
    return {id for id, entry in last_listed(home).items() if entry.removed}  # noqa: A001


def restored_at(home: Path) -> dict[str, str]:
    """Return when each live conversation was restored that was, by its id."""
    return {entry.id: entry.at for entry in listed(home)[0].values() if entry.restored}


def _entries(lines: Iterable[tuple[bytes, bool]]) -> Iterator[Listed]:
    for line, good in lines:
        fields = (unsealed(line) if good else None) or {}
        texts = [fields.get("conversation"), fields.get("at"), fields.get("source", "")]
        if all(isinstance(text, str) for text in texts):
            flags = {name: bool(fields.get(name)) for name in ("lost", "removed", "archived", "restored")}
            size = fields.get("lines", 0)
            yield Listed(
                fields["conversation"], fields["at"], source=fields.get("source", ""), **flags
            )._replace(lines=size if isinstance(size, int) else 0)


def enter(home: Path, *lines: Listed) -> None:
    """Add `lines` to the list of the conversations of `home`.

    Raises:
        LockTimeout, StorageFailed, Conflict: as `entered`.
    """
    with entered(home, *lines):
        pass


@contextmanager
def entered(home: Path, *lines: Listed) -> Iterator[None]:
    """Add `lines` to the list of the conversations of `home`, and hold its lock meanwhile.

    A directory without documents, as `.compact/`, has no list.

    Raises:
        LockTimeout, StorageFailed: it was not added.
        Conflict: other processes wrote at the same time again and again.
    """
    path = home / LIST
    added = b"".join(seal_json(_listed_fields(line)) for line in lines)
    with list_lock(home):
        for _ in range(CONFLICT_TRIES if path.parent.is_dir() else 0):
            try:
                with storage_errors(path):
                    append(path, added, at=cut_torn_end(path))
            except ConcurrentWrite:
                continue
            except UnsafePath:
                pass  # doctor reports what is there; the conversation goes on
            break
        else:
            if path.parent.is_dir():
                raise crowded(path)
        yield


def _listed_fields(line: Listed) -> JsonObject:
    fields: JsonObject = {"conversation": line.id, "at": line.at}
    fields |= {"lost": True, "source": line.source} if line.lost else {}
    fields |= {name: True for name in ("removed", "archived", "restored") if getattr(line, name)}
    return fields | ({"lines": line.lines} if line.lines else {})


def list_lock(home: Path, *, for_reading: bool = False) -> AbstractContextManager[None]:
    """Hold the lock of the list: nobody starts a conversation meanwhile. `for_reading` as for `files.locked`.

    Who holds it finds each conversation both in the list and on the disk, or in neither.
    """
    directory = home / "conversations" / LIST_LOCK
    try:
        with storage_errors(home):
            make_directory(directory)
    except StorageFailed:
        if not for_reading:
            raise
        if not directory.is_dir():  # nobody has started one, and nobody can
            return nullcontext()
    return locked(directory, timeout=config.or_default(home).lock_timeout_seconds, for_reading=for_reading)


def crowded(path: Path) -> Conflict:
    what = f"another process wrote at the same time, {CONFLICT_TRIES} times, although the lock was held."
    fix = "Keep the home on a local disk: this file system does not honour locks."
    return Conflict(what, fix=fix, where=str(path))
