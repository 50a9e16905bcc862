"""The archive on disk: one file per conversation, the fuller forms that rest in grace, and an index of both.

`archive/YYYY/MM/<time>_<title>_<id>.json` is one conversation, sealed by a checksum over its bytes; `archive/grace/` has what
it was before, compressed. `archive/index.sqlite` is derived: it can be deleted at any moment, and is made again from the
files. `archive/step.json` names a step that is being taken, so that the next one first ends what a killed process left.
Writers hold the lock of the home. What a level is, and when a conversation ages, is decided by others.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
from aether.store import files, index_file, recovery, spool
from aether.text.words import terms
from aether.tuples import NamedTuple
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
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_MONTH = re.compile(r"\d{4}/\d{2}", re.ASCII)
# What a step or an archive file may name: archive files, and fuller forms in grace.
_FILE, _REST = (
    re.compile(r"archive/\d{4}/\d{2}/[^/\0]+\.json(?:\.zst)?", re.ASCII),
    re.compile(r"archive/grace/[^/\0]+\.zst"),
)
_SEAL = re.compile(rb',\n  "checksum": "([0-9a-f]{64})"\n\}\n\Z')
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
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{GRACE}/{directory_name(id, what='conversation')}.{kind}.{level}.{sha256[:8]}.zst"
    return {"file": name, "level": level, "sha256": sha256, "bytes": len(data), "until": until}


def encoded(value: JsonObject) -> bytes:
    """Return the content of the archive file of `value`, sealed."""
    fields = {key: one for key, one in value.items() if key != "checksum"}
    body = files.json_document(fields, size=files.SMALL_CHARS).removesuffix(b"\n}\n")
    return body + b',\n  "checksum": "%s"\n}\n' % hashlib.sha256(body).hexdigest().encode()


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
    found = _SEAL.search(data)
    if not found or hashlib.sha256(data[: found.start()]).hexdigest() != found[1].decode():
        what = "it was changed since it was written: its checksum does not fit."
        raise CorruptDocument(what, fix='Run "aether doctor --repair".', where=where)
    grace = value.get("grace")
    if grace and not (isinstance(grace, dict) and _is_named(_REST, grace.get("file"))):
        what = "it names a file outside of archive/grace/ as its fuller form."
        raise CorruptDocument(what, fix='Run "aether doctor --repair".', where=where)
    return value


def without_flip(data: bytes) -> bytes | None:
    """Return the archive file from which `data` differs by one flipped bit, None if there is no such file."""
    found = _SEAL.search(data)
    if not found or len(data) > recovery.MOST_BYTES:
        return None
    body, seal = bytearray(data[: found.start()]), found[1].decode()
    wanted = hashlib.sha256(body).hexdigest()
    if sum(one != two for one, two in zip(wanted, seal, strict=True)) == 1:
        return data[: found.start(1)] + wanted.encode() + data[found.end(1) :]
    for at in range(len(body)):
        for bit in range(8):
            body[at] ^= 1 << bit
            if hashlib.sha256(body).hexdigest() == seal:
                return bytes(body) + data[found.start() :]
            body[at] ^= 1 << bit
    return None


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
        import gzip  # only to migrate

        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as reason:
            raise CorruptDocument(f"damaged ({reason}).", fix='Run "aether doctor".', where=name) from reason
    return unpacked(data, where=name) if name.endswith(".zst") else data


def read(home: Path, name: str) -> JsonObject:
    """Return one archive file.

    Raises:
        NotFound, CorruptDocument, InvalidDocument: as `read_bytes` and `parsed`.
    """
    return parsed(read_bytes(home, name), where=name)


def write(home: Path, name: str, value: JsonObject) -> None:
    """Write one archive file, whole or not at all.

    Raises:
        Conflict: the file there belongs to another conversation.
        StorageFailed: nothing was written.
    """
    path = placed(home, name)
    with files.storage_errors(path):
        if path.exists():
            with suppress(AetherError):
                other = read(home, name)["id"]
                if other != value["id"]:
                    what = f"it holds conversation {shown(other)}, whose id differs in capitals only."
                    raise Conflict(what, fix="Use another id.", where=name)
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
    if hashlib.sha256(data).hexdigest() != grace["sha256"]:
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
        for at in range(0, len(data), files.BLOCK_BYTES):
            if reader.eof:
                raise CorruptDocument("other bytes follow.", fix='Run "aether doctor".', where=where)
            parts.append(reader.decompress(data[at : at + files.BLOCK_BYTES]))
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
        for path in root.glob("[0-9]*/[0-9]*/*")
        if path.name.endswith(endings) and not path.name.startswith(".")
        and _MONTH.fullmatch(path.parent.relative_to(root).as_posix())
        and path.is_file() and not path.is_symlink()
    ]  # fmt: skip
    return sorted(found)


def older_names(home: Path) -> list[str]:
    """Return the places of archive files of older versions."""
    found = []
    for name in [*names(home), *_names(home, OLDER)]:
        with suppress(AetherError):
            value = files.parse_json(read_bytes(home, name), where=name)
            if isinstance(value, dict) and "version" in value and is_older(value["version"]):
                found.append(name)
    return found


def grace_names(home: Path) -> list[str]:
    """Return the places of all fuller forms in grace."""
    try:
        root = inside(home, GRACE)
    except UnsafePath:
        return []
    return sorted(f"{GRACE}/{path.name}" for path in root.glob("*.zst") if not path.name.startswith("."))


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
    "add": {"new": ([_FILE],), "grace": ([_REST],)},
    "age": {
        "id": (str,), "receipt": (str,), "new": (_FILE,), "old": (_FILE, ""), "grace": (_REST, ""), "old_grace": (_REST, ""),
        "live": (bool,),
    },
    "restore": {"id": (str,), "old": (_FILE,), "grace": (_REST,), "receipt": (dict,)},
    "remove": {"id": (str,), "names": ([_FILE, _REST],)},
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
    lines = [*recovery.lines_of(data)] if data.endswith(b"\n") else []
    found: Any = None
    with suppress(AetherError):
        # Those of earlier releases have no seal.
        sealed = len(lines) == 1 and lines[0][1]
        found = files.unsealed(lines[0][0]) if sealed else files.parse_json(data, where=STEP)
    is_ours = _is_step(found) and path.name not in spool.in_index(str(home), DIRECTORY)
    return found if is_ours else UNKNOWN


def _is_step(found: Any) -> bool:
    kind = found.get("kind") if isinstance(found, dict) and "checksum" not in found else None
    fields = _STEPS.get(kind) if isinstance(kind, str) else None
    if fields is None or not all(_fits(found.get(name), forms) for name, forms in fields.items()):
        return False
    return kind != "restore" or {"id", "rule"} <= found["receipt"].keys()


def _fits(value: Any, forms: Sequence[Any]) -> bool:
    """Return whether `value` has one of these forms: a type, a text, a pattern of names, or those of a list."""
    return any(
        isinstance(value, list) and all(_fits(one, form) for one in value) if isinstance(form, list)
        else type(value) is form if isinstance(form, type)
        else value == form if isinstance(form, str)
        else _is_named(form, value)
        for form in forms
    )  # fmt: skip


def _is_named(pattern: re.Pattern[str], name: Any) -> bool:
    return isinstance(name, str) and is_plain(name) and bool(pattern.fullmatch(name))


def set_step_aside(home: Path) -> str:
    """Move what has the place of a step, and is no step of this home, to quarantine, and return where it is now."""
    kept = f"quarantine/step.{os.urandom(4).hex()}"
    with files.storage_errors(home):
        files.make_directory(home / "quarantine")
        os.replace(own_file(home, STEP), home / kept)
    return kept


def set_step(home: Path, step: JsonObject | None) -> None:
    """Name the step that is taken now; None when it is done."""
    path = placed(home, STEP)
    with files.storage_errors(path):
        if step is None:
            path.unlink(missing_ok=True)
        else:
            files.make_directory(path.parent)
            files.write_whole(path, files.seal_json(step))


# --- The index


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


_INDEX_VERSION = 2
_BUSY_SECONDS = 10.0
_COLUMNS = "id, name, title, created, level, bytes, since, floor, policy, grace, until"
_TABLES = (
    *(f"DROP TABLE IF EXISTS {table}" for table in ("conversation", "words", "held")),
    """CREATE TABLE conversation (
        n INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, title TEXT, created TEXT, level INTEGER, bytes INTEGER,
        since TEXT, floor INTEGER, policy TEXT, grace TEXT, until TEXT
    )""",
    "CREATE INDEX of_month ON conversation (created)",
    "CREATE INDEX of_age ON conversation (level, since) WHERE floor > level AND since != ''",
    "CREATE INDEX of_policy ON conversation (policy)",
    "CREATE INDEX of_grace ON conversation (until) WHERE until != ''",
    "CREATE INDEX of_level ON conversation (level, created)",
)
# The terms of each conversation, as search compares words. SQLite without FTS5 has no such table: the files are read.
_WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5 (said, tokenize = 'unicode61 remove_diacritics 0', detail = 'none')",
)
# A conversation that holds a term 2, 4 or 8 times holds it with a mark and that number, too, so that those that say most
# about a common word are found among all that hold it. No term has such a mark; it follows the terms themselves.
_MARK, _OFTEN = "\ue000", (8, 4, 2, 1)
# Conversations that are looked at for one mark of a term, and of all those the best that are compared in full.
_MOST_HELD, _MOST_COMPARED = 500, 60
# The newest ones by which is judged how common a word is that more hold.
_SAMPLED = 5_000


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
    import sqlite3

    with index_file.writing(db):
        for statement in _TABLES:
            db.execute(statement)
        with suppress(sqlite3.OperationalError):
            for statement in _WORDS:
                db.execute(statement)
        for name in names(home):
            with suppress(AetherError, KeyError, TypeError):  # `verify` names it
                _put(db, home, name, read(home, name))
        db.execute(f"PRAGMA user_version = {_INDEX_VERSION}")


def put(home: Path, written: Iterable[tuple[str, JsonObject]]) -> None:
    """Enter archive files that were written, each with its place, in the place of what the index had of them."""

    def work(db: sqlite3.Connection) -> None:
        for name, value in written:
            _put(db, home, name, value)

    _changed(home, work)


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
    _changed(home, lambda db: _take_out(db, id))


def set_floor(home: Path, floors: Iterable[tuple[str, str, str]]) -> None:
    """Enter the least level of conversations by another policy: id, level, policy."""
    given = [(DETAILS.index(floor), policy, one) for one, floor, policy in floors]

    def work(db: sqlite3.Connection) -> None:
        db.executemany("UPDATE conversation SET floor = ?, policy = ? WHERE id = ?", given)

    _changed(home, work)


def _has_words(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone())


def _take_out(db: sqlite3.Connection, id: str) -> None:
    found = db.execute("SELECT n FROM conversation WHERE id = ?", (id,)).fetchone()
    if found:
        db.execute("DELETE FROM conversation WHERE n = ?", found)
        if _has_words(db):
            db.execute("DELETE FROM words WHERE rowid = ?", found)


def _put(db: sqlite3.Connection, home: Path, name: str, value: JsonObject) -> None:
    _take_out(db, value["id"])
    grace, metrics = value["grace"] or {}, value["metrics"]
    made = db.execute(
        f"INSERT INTO conversation ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
        (
            value["id"], name, value["title"], value["created_at"] or value["archived_at"], DETAILS.index(value["level"]),
            size(home, name) + (size(home, grace["file"]) if grace else 0), metrics.get("since", ""),
            DETAILS.index(metrics.get("floor", "full")), metrics.get("policy", ""), grace.get("file", ""),
            grace.get("until") or "",
        ),
    )  # fmt: skip
    if _has_words(db):
        said = words_of("\n".join([value["title"], *texts(value["content"])]))
        marks = [
            f"{word}{_MARK}{times}"
            for word, number in Counter(said).items()
            for times in _OFTEN[:-1]
            if number >= times
        ]
        db.execute(
            "INSERT INTO words (rowid, said) VALUES (?, ?)",
            (made.lastrowid, " ".join(said) + "\n" + " ".join(marks)),
        )


def words_of(text: str) -> list[str]:
    """Return the terms of a text in the form in which the index holds them."""
    found = terms(text)
    return [_plain(one) for one in (*found.words, *found.parts)[:MOST_WORDS]]


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
    found = indexed(
        home,
        lambda db: _searched(db, weights, limit) if _has_words(db) else _scanned(db, home, weights, limit),
    )
    return [(_row(one), score) for one, score in found]


def _searched(db: sqlite3.Connection, weights: dict[str, float], limit: int) -> list[tuple[Any, float]]:
    """Compare in full those conversations that have the most points, old ones too; see `_OFTEN`."""
    total = db.execute("SELECT COUNT(*) FROM conversation").fetchone()[0]
    lists = {term: _lists(db, term) for term in weights}
    sampled = db.execute(
        "SELECT n FROM conversation ORDER BY n DESC LIMIT 1 OFFSET ?", (_SAMPLED,)
    ).fetchone()
    known = {
        term: _holding(db, term, lists[term], total, after=sampled[0] if sampled else None)
        for term in weights
    }
    worth = {term: weights[term] * _worth(total, known[term]) for term in weights if known[term]}
    points: dict[int, float] = {}
    for term, gain in worth.items():
        found: dict[int, int] = {}
        for times, held in lists[term]:
            for n in held:
                found.setdefault(n, times)
        for n, times in found.items():
            points[n] = points.get(n, 0.0) + gain * times / (times + 1)
    common = sum(gain for term, gain in worth.items() if known[term] > _MOST_HELD)
    if common:  # of those that hold every word, the ones that do so most often
        for times in _OFTEN:
            together = _with(db, " ".join(_marked(term, times) for term in worth), _MOST_HELD)
            for n in together:
                points[n] = points.get(n, 0.0) + common * times / (times + 1)
            if len(together) == _MOST_HELD:
                break
    best = sorted(points, key=lambda n: (-points[n], -n))[: max(limit, _MOST_COMPARED)]
    marks = ", ".join("?" * len(best))
    texts_of = db.execute(f"SELECT rowid, said FROM words WHERE rowid IN ({marks})", best)  # noqa: S608 - marks only
    scored = {n: _score(said.partition("\n")[0].split(), weights, total, known) for n, said in texts_of}
    chosen = sorted(scored, key=lambda n: (-scored[n], -n))[:limit]
    return [
        (db.execute(f"SELECT {_COLUMNS} FROM conversation WHERE n = ?", (n,)).fetchone(), scored[n])  # noqa: S608 - a constant
        for n in chosen
    ]


def _marked(term: str, times: int) -> str:
    """Return the term of the index for conversations that hold `term` so many times at least, quoted."""
    return f'"{term}{_MARK}{times}"' if times > 1 else f'"{term}"'


def _with(db: sqlite3.Connection, match: str, most: int) -> list[int]:
    """Return the newest conversations that match."""
    found = db.execute(
        "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (match, most)
    )
    return [n for (n,) in found]


def _lists(db: sqlite3.Connection, term: str) -> list[tuple[int, list[int]]]:
    """Return the conversations that hold a term 8, 4, 2 times, once; as far as there are not too many of them."""
    lists = []
    for times in _OFTEN:
        held = _with(db, _marked(term, times), _MOST_HELD + 1)
        if len(held) > _MOST_HELD:
            break
        lists.append((times, held))
    return lists


def _holding(
    db: sqlite3.Connection,
    term: str,
    lists: Sequence[tuple[int, list[int]]],
    total: int,
    *,
    after: int | None,
) -> int:
    """Return how many conversations hold a term: of a common one by the share of the newest ones, those `after` a number."""
    if len(lists) == len(_OFTEN):
        return len(lists[-1][1])
    query = "SELECT COUNT(*) FROM words WHERE words MATCH ? AND rowid > ?"
    held: int = db.execute(query, (_marked(term, 1), -1 if after is None else after)).fetchone()[0]
    return held if after is None else max(_MOST_HELD + 1, held * total // _SAMPLED)


def _scanned(
    db: sqlite3.Connection, home: Path, weights: dict[str, float], limit: int
) -> list[tuple[Any, float]]:
    """Do the same as `_searched` by reading every file."""
    every = db.execute(f"SELECT {_COLUMNS} FROM conversation ORDER BY n").fetchall()  # noqa: S608 - a constant
    said = []
    for one in every:
        words: list[str] = []
        with suppress(AetherError, KeyError):
            value = read(home, one[1])
            words = words_of("\n".join([value["title"], *texts(value["content"])]))
        said.append(words)
    known = {term: sum(term in words for words in map(set, said)) for term in weights}
    scored = [
        (one, _score(words, weights, len(every), known)) for one, words in zip(every, said, strict=True)
    ]
    return sorted(((one, score) for one, score in scored if score), key=lambda each: -each[1])[:limit]


def _worth(total: int, held: int) -> float:
    return math.log(1 + (total - held + 0.5) / (held + 0.5))


def _score(words: list[str], weights: dict[str, float], total: int, known: dict[str, int]) -> float:
    """Return how much a conversation says about the terms: each by how seldom it is, and saturating with its number."""
    times = Counter(word for word in words if word in weights)
    length = 1 + math.log1p(len(words)) / 10  # a little: a long conversation holds every word
    return sum(weights[term] * _worth(total, known[term]) * n / (n + length) for term, n in times.items())
