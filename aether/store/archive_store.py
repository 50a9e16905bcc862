"""The archive on disk: one file per conversation, the fuller forms that rest in grace, and an index of both.

`archive/YYYY/MM/<time>_<title>_<id>.json` is one conversation, sealed by a checksum over its bytes; `archive/grace/` has what
it was before, compressed. `archive/index.sqlite` is derived: it can be deleted at any moment, and is made again from the
files. `archive/step.json` names a step that is being taken, so that the next one first ends what a killed process left.
Writers hold the lock of the home. What a level is, and when a conversation ages, is decided by others.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import regular
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidDocument,
    NotFound,
    UnsafePath,
    shown,
)
from aether.paths import directory_name, inside, is_plain, own_file
from aether.store import files, index_file, spool
from aether.store.log import BLOCK_BYTES, lines_of, seal_json, unsealed
from aether.text.regex import lazy
from aether.text.words import run_terms, runs
from aether.types import DETAILS, JsonObject

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

VERSION = 1
DIRECTORY = "archive"
GRACE = f"{DIRECTORY}/grace"
INDEX = f"{DIRECTORY}/index.sqlite"
STEP = f"{DIRECTORY}/step.json"
PLAIN, PACKED = ".json", ".json.zst"
# Names of files of version 1.0, of an earlier program.
OLDER = ".json.gz"
TITLE_CHARS = 50
# Words of one conversation that the index holds: those of a long book.
MOST_WORDS = 200_000
# A longer text is cut piece by piece, because most of it may lie behind these words.
_PIECE_CHARS = 1 << 20
_SPACE = lazy(r"[ \t\r\n]")
_NO_NAME = lazy(r"[^A-Za-z0-9_-]+")
# What a step, an archive file or a shared folder may name: archive files, and fuller forms in grace.
FILE_NAME = lazy(r"archive/[0-9]{4}/[0-9]{2}/[^/\\\0.][^/\\\0]*\.json(?:\.zst)?")
GRACE_NAME = lazy(r"archive/grace/[^/\\\0.][^/\\\0]*\.zst")
_SEAL = lazy(rb',\n  "checksum": "([0-9a-f]{64})"\n\}\n\Z')
_TEXT_KEYS = ("content", "text", "thinking", "input", "arguments", "output", "summary")


# --- Files


def name_of(value: JsonObject, *, packed: bool = False) -> str:
    """Return the place of the archive file `value`, relative to the home: by its time, its title and its whole id."""
    at = re.sub(r"\D", "", value["created_at"] or value["archived_at"])
    title = _NO_NAME.sub("-", value["title"]).strip("-")[:TITLE_CHARS] or "untitled"
    name = f"{at[:8]}_{at[8:14]}_{title}_{directory_name(value['id'], what='conversation')}"
    return f"{DIRECTORY}/{at[:4]}/{at[4:6]}/{name}{PACKED if packed else PLAIN}"


def grace_kind(name: str) -> str:
    """Return what rests in the file `name`: `conversation` (a log), `file` or `dict`."""
    return name.rsplit(".", 4)[1]


def grace_of(id: str, kind: str, level: str, data: bytes, *, until: str) -> JsonObject:
    """Return what an archive file says of `data`, the fuller form of its conversation, which rests in grace."""
    digest = sha256(data).hexdigest()
    name = f"{GRACE}/{directory_name(id, what='conversation')}.{kind}.{level}.{digest[:8]}.zst"
    return {"file": name, "level": level, "sha256": digest, "bytes": len(data), "until": until}


def encoded(value: JsonObject) -> bytes:
    """Return the content of the archive file of `value`, sealed."""
    fields = {key: one for key, one in value.items() if key != "checksum"}
    body = files.json_document(fields, size=files.SMALL_CHARS).removesuffix(b"\n}\n")
    return body + b',\n  "checksum": "%s"\n}\n' % sha256(body).hexdigest().encode()


def parsed(data: bytes, *, where: str) -> JsonObject:
    """Return the archive file in `data`.

    Raises:
        CorruptDocument: it is no archive file, or was changed since it was written.
        InvalidDocument: another version wrote it.
    """
    value = files.parse_json(data, where=where)
    if not isinstance(value, dict) or "version" not in value:
        raise CorruptDocument("no file of the archive.", fix='Run "aether archive verify".', where=where)
    if value["version"] != VERSION:
        raise of_other_version(value["version"], where)
    if not _is_sealed(data):
        what = "it was changed since it was written: its checksum does not fit."
        raise CorruptDocument(what, fix=files.REPAIR, where=where)
    grace = value.get("grace")
    if grace and not (isinstance(grace, dict) and _is_named(GRACE_NAME, grace.get("file"))):
        what = "it names a file outside of archive/grace/ as its fuller form."
        raise CorruptDocument(what, fix=files.REPAIR, where=where)
    return value


def _is_sealed(data: bytes) -> bool:
    found = _SEAL.search(data)
    return bool(found and sha256(data[: found.start()]).hexdigest() == found[1].decode())


def of_other_version(version: Any, where: str) -> InvalidDocument:
    """Return the error for an archive file of another version, with what to do."""
    what = f"version {shown(version)} of an archive file; this aether reads {VERSION}. It was left as it is."
    fix = 'Run "aether archive migrate".' if is_older(version) else "Upgrade aether."
    return InvalidDocument(what, fix=fix, where=where)


def is_older(version: Any) -> bool:
    """Return whether a version of archive files came before this one; "1.0" is that of an earlier program."""
    return version == "1.0" or (type(version) is int and version < VERSION)


def placed(home: Path, name: str) -> Path:
    """Return the path of a file of the archive.

    Raises:
        UnsafePath: it leads out of the archive.
    """
    path = inside(home, name)
    if not path.is_relative_to(os.path.join(os.path.realpath(home), DIRECTORY)):
        raise UnsafePath(
            f"{shown(name)} is outside the archive.", fix="Use a path below it.", where=str(home)
        )
    return path


def read_bytes(home: Path, name: str) -> bytes:
    """Return the content of a file of the archive, uncompressed.

    Raises:
        NotFound: it is missing.
        CorruptDocument: it is damaged.
    """
    path = placed(home, name)
    try:
        data = regular.read(path, regular.LOG_BYTES)
    except FileNotFoundError as reason:
        raise NotFound("it is missing.", fix='Run "aether doctor".', where=name) from reason
    if name.endswith(".gz"):
        return gunzipped(data, where=name)
    return unpacked(data, where=name) if name.endswith(".zst") else data


def other_version(home: Path, name: str) -> Any:
    """Return the version of an archive file that another version wrote, None if this one did.

    Raises:
        NotFound, CorruptDocument: as `read`.
    """
    data = read_bytes(home, name)
    try:
        parsed(data, where=name)
    except InvalidDocument:
        return files.parse_json(data, where=name)["version"]
    return None


def read(home: Path, name: str) -> JsonObject:
    """Return one archive file.

    Raises:
        NotFound, CorruptDocument, InvalidDocument: as `read_bytes` and `parsed`.
    """
    return parsed(read_bytes(home, name), where=name)


def require_free(home: Path, name: str, id: str) -> None:
    """Raise unless the place `name` is empty, or has an archive file of conversation `id` that can be read.

    Raises:
        Conflict: the file there belongs to another conversation.
        CorruptDocument: it is damaged; a repair moves it away.
        InvalidDocument: another version wrote it.
    """
    if not placed(home, name).exists():
        return
    other = read(home, name).get("id")
    if other != id:
        what = f"it holds conversation {shown(other)}, whose id differs in capitals only."
        raise Conflict(what, fix="Use another id.", where=name)


def write(home: Path, name: str, value: JsonObject, *, over: bool = False) -> None:
    """Write one archive file, whole or not at all; `over` whatever is there, of which the caller has a copy.

    Raises:
        Conflict, CorruptDocument, InvalidDocument: the file there must not be lost, as `require_free`; nothing was written.
        StorageFailed: nothing was written.
    """
    path = placed(home, name)
    with files.storage_errors(path):
        if not over:
            require_free(home, name, value["id"])
        files.make_directory(path.parent)
        data = encoded(value)
        files.write_whole(path, packed(data) if name.endswith(".zst") else data)


def write_grace(home: Path, name: str, data: bytes) -> None:
    """Write the fuller form of a conversation, compressed, durably.

    Raises:
        StorageFailed: nothing was written.
    """
    path = placed(home, name)
    with files.storage_errors(path):
        files.make_directory(path.parent)
        files.write_whole(path, packed(data))


def read_grace(home: Path, grace: JsonObject) -> bytes:
    """Return the fuller form that `grace` describes, byte for byte.

    Raises:
        NotFound: it is missing.
        CorruptDocument: it is not what was written.
    """
    data = read_bytes(home, grace["file"])
    if sha256(data).hexdigest() != grace["sha256"]:
        raise CorruptDocument("it is not what was written.", fix='Run "aether doctor".', where=grace["file"])
    return data


def remove(home: Path, name: str) -> None:
    """Remove one file of the archive, and the directories that it leaves empty."""
    path = placed(home, name)
    with files.storage_errors(path, left="It is still there."):
        path.unlink(missing_ok=True)
        directory = path.parent
        with suppress(OSError):
            files.sync_directory(directory)
            while directory.name != DIRECTORY:
                directory.rmdir()
                directory = directory.parent


def packed(data: bytes) -> bytes:
    """Return `data` compressed, with a checksum."""
    import zstandard

    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(data)


def unpacked(data: bytes, *, where: str) -> bytes:
    """Return compressed `data` as it was.

    Raises:
        CorruptDocument: it is damaged, cut off, followed by other bytes, or larger than any file of a home.
    """
    import zstandard

    parts, size = [], 0
    try:
        reader = zstandard.ZstdDecompressor().decompressobj()
        for at in range(0, len(data), BLOCK_BYTES):
            if reader.eof:
                raise CorruptDocument("other bytes follow.", fix='Run "aether doctor".', where=where)
            parts.append(reader.decompress(data[at : at + BLOCK_BYTES]))
            size += len(parts[-1])
            if size > regular.LOG_BYTES:
                break
    except zstandard.ZstdError as reason:
        raise CorruptDocument(f"damaged ({reason}).", fix='Run "aether doctor".', where=where) from reason
    if reader.unused_data:
        raise CorruptDocument("other bytes follow.", fix='Run "aether doctor".', where=where)
    if not reader.eof:
        raise CorruptDocument("cut off, or too large.", fix='Run "aether doctor".', where=where)
    return b"".join(parts)


def gunzipped(data: bytes, *, where: str) -> bytes:
    """Return what was compressed by gzip, as older versions and other programs do.

    Raises:
        CorruptDocument: it is damaged, cut off, or larger than any file of a home.
    """
    import gzip
    import io

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(regular.LOG_BYTES + 1)
    except (OSError, EOFError, zlib.error) as reason:
        raise CorruptDocument(f"damaged ({reason}).", fix='Run "aether doctor".', where=where) from reason
    if len(found) > regular.LOG_BYTES:
        raise CorruptDocument("too large.", fix="Look at it, then remove it.", where=where)
    return found


def names(home: Path) -> list[str]:
    """Return the places of all archive files, oldest month first; directories that are no year and month have none."""
    return _names(home, PLAIN, PACKED)


def _names(home: Path, *endings: str) -> list[str]:
    try:
        root = inside(home, DIRECTORY)
    except UnsafePath:
        return []
    found = [
        path.relative_to(root.parent).as_posix()
        for path in root.glob("[0-9][0-9][0-9][0-9]/[0-9][0-9]/*")
        if path.name.endswith(endings) and not path.name.startswith(".")
        and path.is_file() and not path.is_symlink()
    ]  # fmt: skip
    return sorted(found)


def name_on_disk(home: Path, id: str) -> str:
    """Return the place of the file that is named after conversation `id`, whatever it holds; "" without one."""
    end = f"_{directory_name(id, what='conversation')}"
    for name in names(home):
        if name.endswith((end + PLAIN, end + PACKED)):
            try:
                is_its_own = read(home, name)["id"] == id  # ids may have a `_` too
            except (AetherError, KeyError):
                is_its_own = True
            if is_its_own:
                return name
    return ""


def older_names(home: Path) -> list[str]:
    """Return the places of archive files of older versions."""
    found = []
    for name in [*names(home), *_names(home, OLDER)]:
        with suppress(AetherError):
            if is_older(other_version(home, name)):
                found.append(name)
    return found


def grace_names(home: Path) -> list[str]:
    """Return the places of all fuller forms in grace."""
    try:
        root = inside(home, GRACE)
    except UnsafePath:
        return []
    found = (path for path in root.glob("*.zst") if not path.name.startswith("."))
    return sorted(f"{GRACE}/{path.name}" for path in found if path.is_file() and not path.is_symlink())


def size(home: Path, name: str) -> int:
    """Return the bytes on disk of a file of the home, 0 without one."""
    try:
        return (home / name).stat().st_size
    except OSError:
        return 0


def texts(content: Any) -> Iterator[str]:
    """Yield what is said in the content of an archive file, message by message, at any level."""
    for message in content.get("messages") or ():
        said = list(_said(message if isinstance(message, dict) else {"text": message}))
        if said:
            yield "\n".join(said)
    yield from (text for text in (content.get("summary"), *content.get("kept", ())) if isinstance(text, str))


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _said(one)
    elif isinstance(value, dict):
        for key in _TEXT_KEYS:
            if key in value:
                yield from _said_below(value[key])


def _said_below(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and not any(key in value for key in _TEXT_KEYS):
        value = [one for one in value.values() if isinstance(one, str)]
    yield from _said(value)


# --- The step that is being taken


# The fields of each kind of step, and what they hold.
_STEPS: dict[str, dict[str, tuple[Any, ...]]] = {
    "add": {"new": ([FILE_NAME],), "grace": ([GRACE_NAME],)},
    "age": {
        "id": (str,), "receipt": (str,), "new": (FILE_NAME,), "old": (FILE_NAME, ""), "grace": (GRACE_NAME, ""), "old_grace": (GRACE_NAME, ""),
        "live": (bool,),
    },
    "restore": {"id": (str,), "old": (FILE_NAME,), "grace": (GRACE_NAME,), "receipt": (dict,)},
    "remove": {"id": (str,), "names": ([FILE_NAME, GRACE_NAME],)},
}  # fmt: skip
UNKNOWN: JsonObject = {"kind": "unknown"}


def open_step(home: Path) -> JsonObject | None:
    """Return the step that a killed process left; None without one, `UNKNOWN` if what is there is no step of this home.

    It may be damaged, or come with a repository: it names files of the archive only, and git does not track it.
    """
    path = own_file(home, STEP)
    try:
        data = regular.read(path)
    except FileNotFoundError:
        return None
    except (IsADirectoryError, UnsafePath, InvalidDocument):
        return UNKNOWN
    lines = [*lines_of(data)] if data.endswith(b"\n") else []
    found: Any = None
    with suppress(AetherError):
        # Those of earlier releases have no seal.
        sealed = len(lines) == 1 and lines[0][1]
        found = unsealed(lines[0][0]) if sealed else files.parse_json(data, where=STEP)
    is_ours = (
        _is_step(found)
        and not _names_directory(home, found)
        and path.name not in spool.in_index(str(home), DIRECTORY)
    )
    return found if is_ours else UNKNOWN


def _is_step(found: Any) -> bool:
    kind = found.get("kind") if isinstance(found, dict) and "checksum" not in found else None
    fields = _STEPS.get(kind) if isinstance(kind, str) else None
    if fields is None or not all(_fits(found.get(name), forms) for name, forms in fields.items()):
        return False
    return kind != "restore" or all(_fits(found["receipt"].get(name), (str,)) for name in ("id", "rule"))


def _names_directory(home: Path, step: JsonObject) -> bool:
    """Return whether a directory has the place of a file that the step names."""
    named = [step.get(key) for key in ("new", "grace", "old", "old_grace", "names")]
    texts = (one for each in named for one in (each if isinstance(each, list) else [each]))
    return any((home / one).is_dir() for one in texts if isinstance(one, str) and one)


def _fits(value: Any, forms: Sequence[Any]) -> bool:
    """Return whether `value` has one of these forms: a type but no empty text, a text, a pattern of names, or those of a list."""
    return any(
        isinstance(value, list) and all(_fits(one, form) for one in value) if isinstance(form, list)
        else type(value) is form and value != "" if isinstance(form, type)
        else value == form if isinstance(form, str)
        else _is_named(form, value)
        for form in forms
    )  # fmt: skip


def _is_named(pattern: re.Pattern[str], name: Any) -> bool:
    return isinstance(name, str) and is_plain(name) and bool(pattern.fullmatch(name))


def set_step_aside(home: Path) -> str:
    """Move what has the place of a step, and is no step of this home, to quarantine, and return where it is now."""
    with files.storage_errors(home):
        kept = files.move_to_quarantine(home, own_file(home, STEP))
    return f"quarantine/{kept.name}"


def set_step(home: Path, step: JsonObject | None) -> None:
    """Name the step that is taken now; None when it is done."""
    path = placed(home, STEP)
    with files.storage_errors(path):
        if step is None:
            path.unlink(missing_ok=True)
        else:
            files.make_directory(path.parent)
            files.write_whole(path, seal_json(step))


# --- The index


class Entry(NamedTuple):
    """What is entered of one archived conversation: the columns of its row, and how often it says each term."""

    row: tuple[Any, ...]
    said: Mapping[str, int]


class Row(NamedTuple):
    """What the index knows of one archived conversation."""

    id: str
    name: str
    title: str
    created_at: str
    level: str
    bytes: int
    since: str
    """The time from which its age is taken, "" if none is known."""
    floor: str
    """The least level that retention lets it have."""
    policy: str
    """The policy by which that was decided."""
    grace: str
    """Where its fuller form rests, "" without one."""
    until: str
    """When that goes; "" if it stays."""
    source: str
    """The name of the file that it was added from, "" without one."""


_INDEX_VERSION = 4
_BUSY_SECONDS = 10.0
_COLUMNS = "id, name, title, created, level, bytes, since, floor, policy, grace, until, source"
_TABLES = (
    *(
        f"DROP TABLE IF EXISTS {table}"
        for table in ("conversation", "words", "held", "said", "term", "posting", "total")
    ),
    """CREATE TABLE conversation (
        n INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, title TEXT, created TEXT, level INTEGER, bytes INTEGER,
        since TEXT, floor INTEGER, policy TEXT, grace TEXT, until TEXT, source TEXT
    )""",
    "CREATE INDEX of_month ON conversation (created)",
    "CREATE INDEX of_age ON conversation (level, since) WHERE floor > level AND since != ''",
    "CREATE INDEX of_policy ON conversation (policy)",
    "CREATE INDEX of_grace ON conversation (until) WHERE until != ''",
    "CREATE INDEX of_level ON conversation (level, created)",
    # Of each conversation the number of its words, and how often it says each term: numbers of terms, then counts.
    "CREATE TABLE said (n INTEGER PRIMARY KEY, length INTEGER, terms BLOB, times BLOB)",
    "CREATE TABLE term (number INTEGER PRIMARY KEY, term TEXT UNIQUE, held INTEGER)",
    "CREATE TABLE total (conversations INTEGER, length INTEGER)",
    "INSERT INTO total VALUES (0, 0)",
    index_file.TABLE,
)
_NUMBERS, _TIMES = "I", "H"
_MOST_TIMES = (1 << 16) - 1
# What a conversation says of a term: how often, for the share of its length in that of others that counts; half of the most
# that it can be is had at `_HALF`. A long conversation holds every word: what matters is how dense it is in it.
_HALF, _BY_LENGTH = 1.2, 0.9
# Points are by levels of that density, each twice the one before, in conversations as long as `_USUAL_LENGTH` on the average.
_LEVELS, _LOWEST, _USUAL_LENGTH = 8, 0.5, 200
_LEVEL_VALUES = tuple(
    density / (density + _HALF) for density in (0.7 * _LOWEST * 2**level for level in range(_LEVELS))
)
_POINTS = 1_000
# Conversations with the most points of all, which are compared in full.
_MOST_COMPARED = 256
# Conversations that are entered at once: their postings are written once.
_BATCH = 1_000


def indexed(home: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return the result of `work` on the index, which is made from the files if it is missing, damaged or of another version.

    Where it cannot be kept (a full disk, a read-only home) it is made in memory.
    """

    def current(db: sqlite3.Connection) -> T:
        if db.execute("PRAGMA user_version").fetchone() != (_INDEX_VERSION,):
            _rebuild(home, db)
        return work(db)

    found = index_file.on_index(placed(home, INDEX), current, busy_seconds=_BUSY_SECONDS)
    if found:
        return found[0]
    import sqlite3

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        return current(db)


def drop_index(home: Path) -> None:
    """Remove the index; the next use makes it again."""
    index_file.remove(placed(home, INDEX))


def rebuild_index(home: Path) -> None:
    """Make the index again from the files."""
    drop_index(home)
    indexed(home, lambda _: None)


def _rebuild(home: Path, db: sqlite3.Connection) -> None:
    with index_file.writing(db):
        for statement in _TABLES:
            db.execute(statement)
        every = iter(names(home))
        while batch := list(islice(every, _BATCH)):
            found = []
            for name in batch:
                with suppress(AetherError, KeyError, TypeError):  # `verify` names it
                    found.append(_entry(home, name, read(home, name)))
            enter(db, found)
        db.execute(f"PRAGMA user_version = {_INDEX_VERSION}")


def put(home: Path, written: Iterable[tuple[str, JsonObject]]) -> None:
    """Enter archive files that were written, each with its place, in the place of what the index had of them."""
    entries = [_entry(home, name, value) for name, value in written]
    _changed(home, lambda db: enter(db, entries))


def _changed(home: Path, work: Callable[[sqlite3.Connection], None]) -> None:
    """Change the index; one that cannot be changed is removed, because it would no longer be right."""
    import sqlite3

    try:
        with closing(index_file.connected(placed(home, INDEX), _BUSY_SECONDS)) as db:
            if db.execute("PRAGMA user_version").fetchone() == (_INDEX_VERSION,):
                with index_file.writing(db):
                    work(db)
            else:
                _rebuild(home, db)
    except (sqlite3.DatabaseError, OSError):
        drop_index(home)


def take_out(home: Path, id: str) -> None:
    """Take a conversation that is not archived any more out of the index."""

    def work(db: sqlite3.Connection) -> None:
        found = db.execute("SELECT n FROM conversation WHERE id = ?", (id,)).fetchone()
        if found:
            db.execute("DELETE FROM conversation WHERE n = ?", found)
            _say(db, {found[0]: {}})

    _changed(home, work)


def set_floor(home: Path, floors: Iterable[tuple[str, str, str]]) -> None:
    """Enter the least level of conversations by another policy: id, level, policy."""
    given = [(DETAILS.index(floor), policy, one) for one, floor, policy in floors]

    def work(db: sqlite3.Connection) -> None:
        db.executemany("UPDATE conversation SET floor = ?, policy = ? WHERE id = ?", given)

    _changed(home, work)


def _entry(home: Path, name: str, value: JsonObject) -> Entry:
    grace, metrics = value["grace"] or {}, value["metrics"]
    row = (
        value["id"], name, value["title"], value["created_at"] or value["archived_at"], DETAILS.index(value["level"]),
        size(home, name) + (size(home, grace["file"]) if grace else 0), metrics.get("since", ""),
        DETAILS.index(metrics.get("floor", "full")), metrics.get("policy", ""), grace.get("file", ""),
        grace.get("until") or "", value["source"]["name"],
    )  # fmt: skip
    return Entry(row, Counter(words_of("\n".join([value["title"], *texts(value["content"])]))))


def enter(db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Enter conversations, each in the place of what the index had of it; within a transaction."""
    places = {}
    for row, said in entries:
        found = db.execute("SELECT n FROM conversation WHERE id = ?", row[:1]).fetchone()
        made = db.execute(
            f"INSERT OR REPLACE INTO conversation (n, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            (found[0] if found else None, *row),
        )
        places[made.lastrowid or 0] = said
    _say(db, places)


def _say(db: sqlite3.Connection, places: Mapping[int, Mapping[str, int]]) -> None:
    """Enter what the conversations at `places` say, in the place of what they said; nothing takes one out."""
    numbers = _numbers(db, {term for said in places.values() for term in said}, new=True)
    changed: dict[tuple[int, int], list[tuple[int, int]]] = {}
    out: dict[int, set[int]] = {}
    more: Counter[int] = Counter()
    for n, said in places.items():
        at, length = n % index_file.CHUNK, sum(said.values())
        was = db.execute("SELECT length, terms FROM said WHERE n = ?", (n,)).fetchone() or (0, b"")
        for number in array(_NUMBERS, was[1]):
            more[number] -= 1
            changed.setdefault((number, n >> index_file.CHUNK_BITS), [])
        if was[1]:
            out.setdefault(n >> index_file.CHUNK_BITS, set()).add(at)
        held = sorted((numbers[term], min(times, _MOST_TIMES)) for term, times in said.items())
        for number, times in held:
            more[number] += 1
            level = _level(times, length)
            changed.setdefault((number, n >> index_file.CHUNK_BITS), []).append((at, level))
        db.execute("DELETE FROM said WHERE n = ?", (n,))
        if said:
            blobs = array(_NUMBERS, [one for one, _ in held]), array(_TIMES, [times for _, times in held])
            db.execute("INSERT INTO said VALUES (?, ?, ?, ?)", (n, length, *(one.tobytes() for one in blobs)))
        db.execute(
            "UPDATE total SET conversations = conversations + ?, length = length + ?",
            (bool(said) - bool(was[1]), length - was[0]),
        )
    for (number, chunk), held in changed.items():
        index_file.change(db, number, chunk, held, levels=_LEVELS, out=out.get(chunk, ()))
    db.executemany(
        "UPDATE term SET held = held + ? WHERE number = ?", [(by, one) for one, by in more.items() if by]
    )


def _numbers(db: sqlite3.Connection, wanted: Iterable[str], *, new: bool = False) -> dict[str, int]:
    """Return the numbers of terms; `new` ones get one."""
    texts_ = list(wanted)
    if new:
        db.executemany("INSERT OR IGNORE INTO term (term, held) VALUES (?, 0)", ((one,) for one in texts_))
    query = "SELECT term, number FROM term WHERE term IN (SELECT value FROM json_each(?))"
    return dict(db.execute(query, (json.dumps(texts_),)).fetchall())


def _level(times: int, length: int) -> int:
    density = times / (1 - _BY_LENGTH + _BY_LENGTH * length / _USUAL_LENGTH)
    return min(_LEVELS - 1, max(0, math.floor(math.log2(density / _LOWEST)) + 1))


def words_of(text: str) -> list[str]:
    """Return the first `MOST_WORDS` terms of a text in the form in which the index holds them."""
    found: list[str] = []
    parts: list[str] = []
    for run in _runs(text):
        cut = run_terms(run)
        found += cut.words
        if len(found) >= MOST_WORDS:
            break
        parts += cut.parts
    return [_plain(one) for one in (*found, *parts)[:MOST_WORDS]]


def _runs(text: str) -> Iterator[str]:
    """Yield the runs of a text, which is cut no further than they are taken."""
    at = 0
    while at < len(text):
        space = _SPACE.search(text, at + _PIECE_CHARS)
        end = space.start() if space else len(text)
        yield from runs(text[at:end])
        at = end


def _plain(term: str) -> str:
    """Return a term as one word for SQLite, which would cut others up."""
    return term if term.isalnum() else "x" + term.encode("utf-8", "surrogatepass").hex()


def _row(found: Sequence[Any]) -> Row:
    level, floor = found[4], found[7]
    return Row(*found)._replace(level=DETAILS[level], floor=DETAILS[floor])


def _rows(home: Path, where: str, given: Sequence[Any]) -> list[Row]:
    query = f"SELECT {_COLUMNS} FROM conversation {where}"  # noqa: S608 - both are constants
    return [_row(one) for one in indexed(home, lambda db: db.execute(query, given).fetchall())]


def is_empty(home: Path) -> bool:
    """Return whether the home has no archive; nothing is opened for it.

    A link in its place is never followed, and a directory of copies without documents, as `.compact/`, is no home.
    """
    path = home / DIRECTORY
    return not path.is_dir() or path.is_symlink() or not (home / "data").is_dir()


def find(home: Path, id: str) -> Row | None:
    """Return what the index knows of conversation `id`, None if it is not archived."""
    found = [] if is_empty(home) else _rows(home, "WHERE id = ?", (id,))
    return found[0] if found else None


def rows(home: Path, *, month: str = "", level: str = "", limit: int | None = None) -> list[Row]:
    """Return archived conversations, the newest first; of one `month` (YYYY-MM), at one `level`."""
    if is_empty(home):
        return []
    wanted, given = [], list[Any]()
    if month:
        wanted.append("created >= ? AND created < ?")
        given += [month, f"{month}~"]
    if level:
        wanted.append("level = ?")
        given.append(DETAILS.index(level))
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    return _rows(home, f"{where} ORDER BY created DESC, id LIMIT ?", [*given, -1 if limit is None else limit])


def ready(home: Path, latest: Sequence[str]) -> list[Row]:
    """Return the conversations whose age asks for a lesser level than they have, and retention grants it; oldest first.

    `latest` are the times since which one of each level but the last may have been unused, to keep it.
    """
    if is_empty(home):
        return []
    found = [
        row
        for level, time in enumerate(latest)
        for row in _rows(
            home,
            "WHERE level = ? AND since <= ? AND floor > level AND since != '' ORDER BY since",
            (level, time),
        )
    ]
    return sorted(found, key=lambda row: (row.since, row.id))


def of_other_policy(home: Path, policy: str) -> list[Row]:
    """Return the conversations whose least level another policy decided."""
    return [] if is_empty(home) else _rows(home, "WHERE policy < ? OR policy > ?", (policy, policy))


def expired(home: Path, now: str) -> list[Row]:
    """Return the conversations whose grace is over."""
    return [] if is_empty(home) else _rows(home, "WHERE until != '' AND until <= ? ORDER BY until", (now,))


def stats(home: Path) -> JsonObject:
    """Return the number of archived conversations, their bytes on disk, and how many have each level."""
    levels = dict.fromkeys(DETAILS, 0)
    total = 0
    if not is_empty(home):
        sums = indexed(
            home,
            lambda db: db.execute(
                "SELECT level, COUNT(*), SUM(bytes) FROM conversation GROUP BY level"
            ).fetchall(),
        )
        for level, number, size_ in sums:
            levels[DETAILS[level]] = number
            total += size_
    return {"conversations": sum(levels.values()), "bytes": total, "levels": levels}


def search(home: Path, wanted: dict[str, float], *, limit: int) -> list[tuple[Row, float]]:
    """Return the conversations that hold terms of `wanted`, each with its weight, best first, with their scores."""
    if is_empty(home) or not wanted:
        return []
    weights = {_plain(term): weight for term, weight in wanted.items()}
    found = indexed(home, lambda db: _searched(db, weights, limit))
    return [(_row(one), score) for one, score in found]


def _searched(db: sqlite3.Connection, weights: dict[str, float], limit: int) -> list[tuple[Any, float]]:
    """Give every conversation its points, and compare in full those that have the most."""
    with _reading(db):
        query = (
            "SELECT term, number, held FROM term WHERE held > 0 AND term IN (SELECT value FROM json_each(?))"
        )
        known = db.execute(query, (json.dumps([*weights]),)).fetchall()
        total, length = db.execute("SELECT conversations, length FROM total").fetchone()
        rare = {term: math.log(1 + (total - held + 0.5) / (held + 0.5)) for term, _, held in known}
        worth = {term: weights[term] * gain for term, gain in rare.items()}
        best = _best(db, [(term, number) for term, number, _ in known], worth, max(limit, _MOST_COMPARED))
        scored = _scores(db, best, {number: worth[term] for term, number, _ in known}, length / max(total, 1))
        chosen = sorted(scored, key=lambda n: (-scored[n], -n))[:limit]
        query = f"SELECT {_COLUMNS} FROM conversation WHERE n = ?"  # noqa: S608 - a constant
        return [(db.execute(query, (n,)).fetchone(), scored[n]) for n in chosen]


@contextmanager
def _reading(db: sqlite3.Connection) -> Iterator[None]:
    """Read one state in the whole block, whatever is written meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _best(
    db: sqlite3.Connection, terms_: Sequence[tuple[str, int]], worth: Mapping[str, float], most: int
) -> list[int]:
    """Return the conversations with the most points."""
    unit = _POINTS / max(sum(worth.values()), 1e-9)
    values = {term: [round(unit * gain * value) for value in _LEVEL_VALUES] for term, gain in worth.items()}
    chunks = index_file.of_terms(db, terms_)
    heap: list[tuple[int, int]] = []
    for chunk in sorted(chunks, reverse=True):
        digits, some = index_file.no_points(), 0
        for term, posting in chunks[chunk]:
            some |= index_file.add_points(digits, posting, values[term])
        index_file.take_best(heap, digits, some, chunk << index_file.CHUNK_BITS, most)
    return [n for _, n in heap]


def _scores(
    db: sqlite3.Connection, places: Sequence[int], worth: Mapping[int, float], usual: float
) -> dict[int, float]:
    """Return how much conversations say about the terms: each by how seldom it is, and saturating with its density."""
    query = "SELECT n, length, terms, times FROM said WHERE n IN (SELECT value FROM json_each(?))"
    scores = {}
    for n, length, numbers_, times_ in db.execute(query, (json.dumps(places),)):
        numbers, times = array(_NUMBERS, numbers_), array(_TIMES, times_)
        half = _HALF * (1 - _BY_LENGTH + _BY_LENGTH * length / usual)
        scores[n] = 0.0
        for number, gain in worth.items():
            at = bisect_left(numbers, number)
            if at < len(numbers) and numbers[at] == number:
                scores[n] += gain * times[at] / (times[at] + half)
    return scores
