"""Documents: JSON files that a person may read and edit, each stamped with the revision it contains.

The stamp is the last member of the file: `"stamp": {"revision": …, "checksum": …}`, the checksum over
the bytes before it. A file whose bytes no longer match was edited by hand, and the edit is committed; a file that does
not parse is kept in `quarantine/` and rebuilt from a backup and the journal (`snapshot.rebuild`).

An optional document has no file until it has content; without one it is its default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aether import regular
from aether.errors import AetherError, CorruptDocument, NotFound, shown
from aether.paths import resource
from aether.store import files
from aether.store.files import make_directory, save, write_whole
from aether.types import JsonObject

ALWAYS = ("memory", "pheromones", "COLONY_STATE")
OPTIONAL = ("graph", "memories", "goals", "retention", "teamwork", "proposals")
NAMES = (*ALWAYS, *OPTIONAL)
# Previous versions kept beside each document; older states are reached through the journal.
BACKUPS_KEPT = 3
# Bytes; with the time, and a number, less than the 255 that a name can have.
_LONGEST_NAME = 200
_STAMP = re.compile(rb',\n  "stamp": \{"revision": (\d+), "checksum": "([0-9a-f]{16})"\}\n\}\n?$')

# At the end of a file: more than a stamp has.
_STAMP_BYTES = 200

State = Literal["good", "edited", "unstamped", "corrupt", "missing"]


class Document(NamedTuple):
    """The content of one file."""

    state: State
    value: Any
    """The content without its stamp; None if it is corrupt or missing."""
    revision: int
    """The revision of the stamp; 0 without one."""
    fault: str = ""
    """What a corrupt file is, in the place of a document."""


def path_of(home: Path, name: str) -> Path:
    """Return the file of document `name`.

    Raises:
        NotFound: there is no such document.
    """
    if name not in NAMES:
        raise NotFound(
            f"{shown(name)} is not a document.", fix=f"Use one of {', '.join(NAMES)}.", where=str(home)
        )
    return home / "data" / f"{name}.json"


@lru_cache(maxsize=8)
def default(name: str) -> Any:
    """Return document `name` as a new home has it; shared, so never changed."""
    return files.parse_json(resource(f"data/{name}.json").read_bytes(), where=name)


def read(path: Path) -> Document:
    """Return the document at `path`, which is packed if its name says so."""
    try:
        data = regular.read(path)
        data = files.unpacked(data, where=path.name) if path.suffix == files.PACKED else data
    except FileNotFoundError:
        return Document("missing", None, 0)
    except CorruptDocument as reason:
        return Document("corrupt", None, 0, reason.what)
    return parse(data, where=path.name)


def parse(data: bytes, *, where: str) -> Document:
    """Return the document in `data`."""
    try:
        value = files.parse_json(data, where=where)
    except CorruptDocument as reason:
        return Document("corrupt", None, 0, reason.what)
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        return Document("corrupt", None, 0, f"{kind}, and no JSON object.")
    stamp = value.pop("stamp", None)
    match = _STAMP.search(data, max(0, len(data) - _STAMP_BYTES))
    # A view: a copy of a long document would touch as much memory again.
    if match and files.checksum(memoryview(data)[: match.start()]) == match[2].decode():
        return Document("good", value, int(match[1]))
    revision = stamp.get("revision") if isinstance(stamp, dict) else None
    if type(revision) is int and revision >= 0:
        return Document("edited", value, revision)
    return Document("unstamped", value, 0)


def encode(value: dict[str, Any], revision: int, *, size: int) -> bytes:
    """Return the bytes of `value` stamped with `revision`, unless `read` would refuse them; `size` guesses their number."""
    body = files.json_document(value, size=size).removesuffix(b"\n}\n")
    regular.require_readable(len(body) + _STAMP_BYTES, regular.DOCUMENT_BYTES, where="document")
    return body + b',\n  "stamp": {"revision": %d, "checksum": "%s"}\n}\n' % (
        revision,
        files.checksum(body).encode(),
    )


def write(
    home: Path,
    name: str,
    value: dict[str, Any],
    revision: int,
    *,
    is_known: Callable[[Path], bool] | None = None,
    grown: int = 0,
) -> tuple[int, int, int]:
    """Replace document `name` durably and return the id of its file; the version it replaces becomes a backup.

    `grown` is the size of the journal that it takes in.

    Raises:
        EditedMeanwhile: the file is not the one of which `is_known` is true.
    """
    path = path_of(home, name)
    old = read_revision(path)
    size = path.stat().st_size if path.exists() else 0
    ending = files.PACKED if size >= files.WORTH_PACKING else ""
    backup = backups_of(home, name) / f"{name}.{old:012d}.json{ending}" if old is not None else None
    identity = write_whole(
        path, encode(value, revision, size=max(size, grown // 4)), backup=backup, is_known=is_known
    )
    for stale in backups(home, name)[:-BACKUPS_KEPT]:
        stale.unlink(missing_ok=True)
    return identity


def backup_default(home: Path, name: str, revision: int) -> None:
    """Keep the default of optional document `name` as its backup of `revision`."""
    path = backups_of(home, name) / f"{name}.{revision:012d}.json"
    save(path, encode(default(name), revision, size=0))


def read_revision(path: Path) -> int | None:
    """Return the revision in the stamp of the file at `path`, or None; only its end is read."""
    try:
        with regular.opened(path) as file:
            file.seek(max(0, path.stat().st_size - _STAMP_BYTES))
            match = _STAMP.search(file.read())
    except FileNotFoundError:
        return None
    return int(match[1]) if match else None


def backups_of(home: Path, name: str) -> Path:
    """Return the directory where earlier versions of document `name` are kept."""
    path_of(home, name)
    return home / "data" / "backups"


def backups(home: Path, name: str) -> list[Path]:
    """Return the kept earlier versions of document `name`, oldest first."""
    place = backups_of(home, name)
    try:
        file_names = os.listdir(place)
    except FileNotFoundError:
        return []
    # A glob compiles a pattern for each document, and a hook asks for all of them.
    return sorted(
        place / file_name for file_name in file_names
        if file_name.startswith(f"{name}.") and file_name.endswith((".json", f".json{files.PACKED}"))
        and file_name[len(name) + 1] in "0123456789"
    )  # fmt: skip


def existing_optional(home: Path) -> tuple[str, ...]:
    """Return the optional documents with a file or a backup in `home`."""
    return tuple(name for name in OPTIONAL if path_of(home, name).exists() or backups(home, name))


def quarantine(home: Path, name: str, data: bytes, *, at: str) -> Path:
    """Keep `data`, which does not parse, under `quarantine/`; nothing unreadable is ever deleted.

    A name that leaves no room for the time behind it is cut, and ends in its checksum.
    """
    directory, name_bytes = home / "quarantine", os.fsencode(name)
    if len(name_bytes) > _LONGEST_NAME:
        start = name_bytes[: _LONGEST_NAME - 20].decode("utf-8", "ignore")
        name = f"{start}~{files.checksum(name_bytes)}"
    make_directory(directory)
    first = target = directory / f"{name}.corrupt-{re.sub('[^0-9TZ]', '', at)}"
    numbers = count(2)
    while target.exists():
        target = first.with_name(f"{first.name}-{next(numbers)}")
    write_whole(target, data)
    return target


class KeptEdit(NamedTuple):
    """A hand edit in quarantine, until a person accepts it."""

    path: Path
    document: str
    revision: int
    """The revision that was edited."""
    reason: str
    """Why it is not in force."""


def keep_edit(home: Path, name: str, about: JsonObject, data: bytes) -> Path:
    """Keep `data`, an edit of document `name` that is not in force, in quarantine; the same edit once.

    `about` is written beside it: the revision it was made in, the reason, and the patch that it is.
    """
    directory = home / "quarantine"
    make_directory(directory)
    path = directory / f"{name}.edited-{files.checksum(data)}.json"
    if not path.exists():
        write_whole(path, data)
    write_whole(_about(path), files.json_document(about))
    return path


def _about(path: Path) -> Path:
    return path.with_suffix(".diff.json")


def kept_edits(home: Path) -> list[KeptEdit]:
    """Return the hand edits in quarantine, by name."""
    edits = []
    for path in sorted((home / "quarantine").glob("*.edited-*.json")):
        if path.name.endswith(".diff.json"):
            continue
        try:
            about = files.parse_json(regular.read(_about(path)), where=path.name)
            edit = KeptEdit(path, path.name.partition(".")[0], int(about["revision"]), str(about["reason"]))
        except (OSError, AetherError, KeyError, TypeError, ValueError):
            edit = KeptEdit(path, path.name.partition(".")[0], 0, "its description is missing.")
        if edit.document in NAMES:
            edits.append(edit)
    return edits


def remove_edit(edit: KeptEdit) -> None:
    """Remove an edit from quarantine, because it was accepted."""
    edit.path.unlink(missing_ok=True)
    _about(edit.path).unlink(missing_ok=True)


def newest_good_backup(home: Path, name: str, *, until: int) -> Document:
    """Return the newest backup of `name` that is whole and not newer than revision `until`."""
    for path in reversed(backups(home, name)):
        try:
            document = read(path)
        except (OSError, AetherError):
            continue
        if document.state == "good" and document.revision <= until:
            return document
    return Document("missing", None, 0)
