"""The archive on disk: one file per conversation, fuller forms in grace, the step in progress, and its part of the index.

`archive/YYYY/MM/<time>_<title>_<id>.json` is one conversation, sealed by a checksum over its bytes. `archive/grace/` keeps
the previous form, compressed. `archive/step.json` names the step in progress, so that the next writer ends what a killed
process left. What the search index has of it is derived. Writers hold the lock of the home. Levels are
chosen in `conversation`, `archive_steps` takes the steps.
"""

from __future__ import annotations

import heapq
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
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
    note_stored,
    shown,
)
from aether.paths import directory_name, inside, is_plain, own_file
from aether.store import files, search_index
from aether.store.log import seal_json, unsealed
from aether.store.search_index import CONVERSATIONS
from aether.text.words import terms
from aether.types import DETAILS, JsonObject

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

VERSION = 1
DIRECTORY = "archive"
GRACE = f"{DIRECTORY}/grace"
STEP = f"{DIRECTORY}/step.json"
PLAIN, PACKED = ".json", ".json.zst"
TITLE_CHARS = 50
FILE_NAME = re.compile(r"archive/[0-9]{4}/[0-9]{2}/[^/\\\0.][^/\\\0]*\.json(?:\.zst)?")
GRACE_NAME = re.compile(r"archive/grace/[^/\\\0.][^/\\\0]*\.zst")
_SEAL = re.compile(rb',\n  "checksum": "([0-9a-f]{64})"\n\}\n\Z')
_TEXT_KEYS = ("content", "text", "thinking", "input", "arguments", "output", "summary")


# --- Names


def name_of(value: JsonObject, *, packed: bool = False) -> str:
    """Return the path of the archive file `value`, relative to the home: its time, its title and its whole id."""
    at = re.sub(r"\D", "", value["created_at"] or value["archived_at"])
    title = re.sub(r"[^A-Za-z0-9_-]+", "-", value["title"]).strip("-")[:TITLE_CHARS] or "untitled"
    name = f"{at[:8]}_{at[8:14]}_{title}_{directory_name(value['id'], what='conversation')}"
    return f"{DIRECTORY}/{at[:4]}/{at[4:6]}/{name}{PACKED if packed else PLAIN}"


def grace_kind(name: str) -> str:
    """Return the kind of the fuller form `name`: `conversation` (a log), `file` or `dict`."""
    return name.rsplit(".", 4)[1]


def grace_of(id: str, kind: str, level: str, data: bytes, *, until: str) -> JsonObject:
    """Return the field `grace` of an archive file whose fuller form is `data`."""
    digest = regular.digest(data)
    name = f"{GRACE}/{directory_name(id, what='conversation')}.{kind}.{level}.{digest[:8]}.zst"
    return {"file": name, "level": level, "sha256": digest, "bytes": len(data), "until": until}


def is_grace_of(name: str, id: str) -> bool:
    """Return whether the fuller form `name` is that of conversation `id`."""
    return name.startswith(f"{GRACE}/{directory_name(id, what='conversation')}.{grace_kind(name)}.")


def placed(home: Path, name: str, directories: dict[str, Path] | None = None) -> Path:
    """Return the path of a file of the archive; its directory may be looked up once, in `directories`.

    Raises:
        UnsafePath: it leads out of the archive.
    """
    if directories is not None and is_plain(name):
        directory, _, last = name.rpartition("/")
        if directory not in directories:
            directories[directory] = placed(home, directory)
        return directories[directory] / last
    path = inside(home, name)
    if not path.is_relative_to(os.path.join(os.path.realpath(home), DIRECTORY)):
        raise UnsafePath(f"{shown(name)} is outside the archive.", fix="Use a path below it.", where=str(home))  # fmt: skip
    return path


def names(home: Path) -> list[str]:
    """Return the paths of all archive files, oldest month first."""
    return _names(home, "[0-9][0-9][0-9][0-9]/[0-9][0-9]/*", PLAIN, PACKED)


def grace_names(home: Path) -> list[str]:
    """Return the paths of all fuller forms in grace."""
    return _names(home, "grace/*", ".zst")


def _names(home: Path, pattern: str, *endings: str) -> list[str]:
    from glob import iglob

    try:
        inside(home, DIRECTORY)
    except UnsafePath:
        return []
    return sorted(
        path
        for path in iglob(f"{DIRECTORY}/{pattern}", root_dir=home)
        if path.endswith(endings)
        and os.path.isfile(f"{home}/{path}")
        and not os.path.islink(f"{home}/{path}")
    )


def ids_on_disk(home: Path, ids: Collection[str]) -> set[str]:
    """Return those conversations of `ids` after which a file is named, readable or not."""
    ids_by_name = {directory_name(name, what="conversation"): name for name in ids}
    on_disk: set[str] = set()
    for name in names(home) if ids else ():
        stem = name.removesuffix(".zst").removesuffix(PLAIN)
        ends = (stem[place + 1 :] for place, character in enumerate(stem) if character == "_")
        for conversation in filter(None, map(ids_by_name.get, ends)):
            try:
                on_disk |= {conversation} & {read(home, name)["id"]}  # another id may end in the same name
            except (AetherError, KeyError):
                on_disk.add(conversation)
    return on_disk


def is_empty(home: Path) -> bool:
    """Return whether the home has no archive.

    A link in its place is never followed, and a directory of copies without documents, such as `.compact/`, is not a home.
    """
    path = home / DIRECTORY
    return not path.is_dir() or path.is_symlink() or not (home / "data").is_dir()


# --- Files


def encoded(value: JsonObject) -> bytes:
    """Return the sealed content of the archive file of `value`."""
    fields = {key: field for key, field in value.items() if key != "checksum"}
    body = files.json_document(fields, size=files.SMALL_CHARS).removesuffix(b"\n}\n")
    return body + b',\n  "checksum": "%s"\n}\n' % regular.digest(body).encode()


def parsed(data: bytes, *, where: str) -> JsonObject:
    """Return the archive file in `data`.

    Raises:
        CorruptDocument: it is not an archive file, or was changed since it was written.
        InvalidDocument: another version wrote it.
    """
    value = files.parse_json(data, where=where)
    if not isinstance(value, dict) or "version" not in value:
        raise CorruptDocument("not an archive file.", fix='Run "aether archive list --verify".', where=where)
    if value["version"] != VERSION:
        raise of_other_version(value["version"], where)
    seal = _SEAL.search(data)
    if not seal or regular.digest(data[: seal.start()]) != seal[1].decode():
        what = "it was changed since it was written: its checksum does not match."
        raise CorruptDocument(what, fix=files.REPAIR, where=where)
    grace = value.get("grace")
    if grace and not (isinstance(grace, dict) and _matches(GRACE_NAME, grace.get("file"))):
        what = "it names a file outside archive/grace/ as its fuller form."
        raise CorruptDocument(what, fix=files.REPAIR, where=where)
    return value


def _matches(pattern: re.Pattern[str], name: Any) -> bool:
    return isinstance(name, str) and is_plain(name) and bool(pattern.fullmatch(name))


def of_other_version(version: Any, where: str) -> InvalidDocument:
    """Return the error for an archive file of another version, with the advice for it."""
    what = f"version {shown(version)} of an archive file; this aether reads {VERSION}. It was left as it is."
    fix = 'Upgrade aether; a file of another program is added with "aether archive add".'
    return InvalidDocument(what, fix=fix, where=where)


def read_bytes(home: Path, name: str, directories: dict[str, Path] | None = None) -> bytes:
    """Return the content of a file of the archive, uncompressed.

    Who reads many passes the same `directories`, so that each directory is resolved once; no link is followed then.

    Raises:
        NotFound: it is missing.
        CorruptDocument: it is damaged.
    """
    try:
        data = regular.read(placed(home, name, directories), regular.LOG_BYTES)
    except FileNotFoundError as reason:
        raise NotFound("it is missing.", fix='Run "aether doctor".', where=name) from reason
    return files.unpacked(data, where=name) if name.endswith(".zst") else data


def read(home: Path, name: str, directories: dict[str, Path] | None = None) -> JsonObject:
    """Return one archive file.

    Raises:
        NotFound, CorruptDocument, InvalidDocument: as `read_bytes` and `parsed`.
    """
    return parsed(read_bytes(home, name, directories), where=name)


def require_free(home: Path, name: str, id: str) -> None:
    """Raise unless the path `name` is free, or has a readable archive file of conversation `id`.

    Raises:
        Conflict: the file there belongs to another conversation.
        CorruptDocument, InvalidDocument: it is damaged, or of another version.
    """
    if placed(home, name).exists() and (other := read(home, name).get("id")) != id:
        what = f"it holds conversation {shown(other)}, whose id differs in capitals only."
        raise Conflict(what, fix="Use another id.", where=name)


def write(home: Path, name: str, value: JsonObject, *, over: bool = False) -> None:
    """Write one archive file, whole or not at all; with `over` in place of any file, of which the caller has a copy.

    Raises:
        Conflict, CorruptDocument, InvalidDocument: as `require_free`; nothing was written.
        StorageFailed: nothing was written.
    """
    if not over:
        require_free(home, name, value["id"])
    data = encoded(value)
    _write(home, name, files.packed(data) if name.endswith(".zst") else data)
    note_stored()


def write_grace(home: Path, name: str, data: bytes) -> None:
    """Write the fuller form of a conversation, compressed and durable.

    Raises:
        StorageFailed: nothing was written.
    """
    _write(home, name, files.packed(data))


def _write(home: Path, name: str, data: bytes) -> None:
    path = placed(home, name)
    files.save(path, data)


def read_grace(home: Path, grace: JsonObject, directories: dict[str, Path] | None = None) -> bytes:
    """Return the fuller form that `grace` describes, byte for byte.

    Raises:
        NotFound: it is missing.
        CorruptDocument: it differs from what was written.
    """
    data = read_bytes(home, grace["file"], directories)
    if regular.digest(data) != grace["sha256"]:
        raise CorruptDocument("it is not what was written.", fix='Run "aether doctor".', where=grace["file"])
    return data


def remove(home: Path, name: str) -> None:
    """Remove one file of the archive, and the directories that this leaves empty."""
    path = placed(home, name)
    with files.storage_errors(path, left="It is still there."):
        path.unlink(missing_ok=True)
        directory = path.parent
        with suppress(OSError):
            files.sync_directory(directory)
            while directory.name != DIRECTORY:
                directory.rmdir()
                directory = directory.parent


def size(home: Path, name: str) -> int:
    """Return the bytes on disk of a file of the home, 0 without one."""
    try:
        return os.stat(f"{home}/{name}").st_size
    except OSError:
        return 0


def texts(content: Any) -> Iterator[str]:
    """Yield the texts in the content of an archive file, message by message, at any level."""
    for message in content.get("messages") or ():
        strings = list(_strings(message if isinstance(message, dict) else {"text": message}))
        if strings:
            yield "\n".join(strings)
    yield from (text for text in (content.get("summary"), *content.get("kept", ())) if isinstance(text, str))


def _strings(value: Any, *, nested: bool = False) -> Iterator[str]:
    """Yield the texts in a message; of a nested object without text keys, such as tool arguments, every string."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, dict):
        keys = [key for key in _TEXT_KEYS if key in value]
        if nested and not keys:
            keys = [key for key, field in value.items() if isinstance(field, str)]
        for key in keys:
            yield from _strings(value[key], nested=True)


# --- The step in progress

UNKNOWN: JsonObject = {"kind": "unknown"}
_STEP_FIELDS: dict[str, dict[str, type]] = {
    "add": {"new": list, "grace": list},
    "age": {**dict.fromkeys(("id", "receipt", "new", "grace", "old", "old_grace"), str), "live": bool},
    "restore": {"id": str, "old": str, "grace": str, "receipt": dict},
    "remove": {"id": str, "names": list},
}
_STEP_PATHS = {
    "new": [FILE_NAME], "old": [FILE_NAME], "grace": [GRACE_NAME], "old_grace": [GRACE_NAME],
    "names": [FILE_NAME, GRACE_NAME],
}  # fmt: skip


def open_step(home: Path) -> JsonObject | None:
    """Return the step that a killed process left; None without one, `UNKNOWN` if the file is not a step.

    It may be damaged, or come with a repository: every path in it must be that of an archive file or a fuller form.
    """
    try:
        data = regular.read(own_file(home, STEP))
    except FileNotFoundError:
        return None
    except (IsADirectoryError, UnsafePath, InvalidDocument):
        return UNKNOWN
    step = unsealed(data)
    if step is None:
        with suppress(AetherError):  # early releases wrote it without a seal
            step = files.parse_json(data, where=STEP)
    return step if _is_step(home, step) else UNKNOWN


def _is_step(home: Path, step: Any) -> bool:
    kind = step.get("kind") if isinstance(step, dict) and "checksum" not in step else None
    fields = _STEP_FIELDS.get(kind) if isinstance(kind, str) else None
    if not fields or not all(isinstance(step.get(name), form) for name, form in fields.items()):
        return False
    if not step.get("id", "x"):
        return False
    for name, patterns in _STEP_PATHS.items():
        listed = step.get(name, [])
        for path in listed if isinstance(listed, list) else [listed]:
            is_ours = any(_matches(pattern, path) for pattern in patterns) and not (home / path).is_dir()
            if not is_ours and (path or kind != "age" or name == "new"):
                return False
    return True


def set_step_aside(home: Path) -> str:
    """Move the file in the place of a step to quarantine, and return its new path."""
    with files.storage_errors(home):
        kept = files.move_to_quarantine(home, own_file(home, STEP))
    return f"quarantine/{kept.name}"


def set_step(home: Path, step: JsonObject | None) -> None:
    """Name the step in progress; None when it is done."""
    path = placed(home, STEP)
    with files.storage_errors(path):
        if step is None:
            path.unlink(missing_ok=True)
        else:
            files.save(path, seal_json(step))


# --- The index


class Row(NamedTuple):
    """One archived conversation in the index."""

    id: str
    name: str
    title: str
    created_at: str
    level: str
    bytes: int
    since: str
    """The time its age counts from, "" if none is known."""
    floor: str
    """The least level that retention allows."""
    policy: str
    """The policy that decided `floor`."""
    grace: str
    """The path of its fuller form, "" without one."""
    until: str
    """When the fuller form is removed; "" if it is kept."""
    source: str
    """The name of the file that it was added from, "" without one."""


_BUSY_SECONDS = 10.0
_COLUMNS = "id, name, title, created, level, bytes, since, floor, policy, grace, until, source"
# Conversations with the most points whose lengths are compared.
_CANDIDATES = 256
# Points of a conversation for a term that it has once, twice, and more often, and what the best term is worth.
_SHARES, _BEST = (1.0, 1.4, 1.7), 1_000
# How much its length counts: b of BM25.
_LENGTH_SHARE = 0.75


def indexed(home: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return the result of `work` on the index, in which all archive files are entered.

    Where it cannot be stored (a full disk, a read-only home) it is made in memory.
    """

    def current(db: sqlite3.Connection) -> T:
        if not search_index.archive_is_entered(db):
            _enter_all(home, db)
        elif not search_index.is_compared(db):
            _compare(home, db)
            search_index.note_compared(db)
        return work(db)

    result = search_index.on_index(_index(home), current, busy_seconds=_BUSY_SECONDS)
    if result:
        return result[0]
    with closing(search_index.in_memory()) as db:
        return current(db)


def _index(home: Path) -> Path:
    return inside(home, search_index.FILE)


def rebuild_index(home: Path) -> None:
    """Enter all archive files in the index again."""
    _changed(home, lambda db: _enter_all(home, db))


def _compare(home: Path, db: sqlite3.Connection) -> None:
    """Enter the archive files that the index lacks, or has with another size, and remove what has no file."""
    rows = {row[0]: row[1:] for row in db.execute("SELECT name, id, grace, bytes FROM conversation")}
    present = {*names(home)}
    changed = [
        name
        for name in present
        if name not in rows
        or size(home, name) + (size(home, rows[name][1]) if rows[name][1] else 0) != rows[name][2]
    ]
    missing = [row[0] for name, row in rows.items() if name not in present]
    if not changed and not missing:
        return
    with search_index.writing(db):
        _remove_entries(db, missing)
        for name in changed:
            with suppress(AetherError, KeyError, TypeError):  # `verify` reports it
                value = read(home, name)
                _remove_entries(db, [value["id"]])
                _enter(db, home, name, value)


def _enter_all(home: Path, db: sqlite3.Connection) -> None:
    with search_index.writing(db):
        search_index.clear_archive(db)
        for name in names(home):
            with suppress(AetherError, KeyError, TypeError, UnicodeError):  # `verify` reports it
                _enter(db, home, name, read(home, name))
        search_index.note_entered(db)
        search_index.note_compared(db)


def put(home: Path, written: Iterable[tuple[str, JsonObject]]) -> None:
    """Enter archive files that were written, each with its path, replacing earlier entries of their conversations."""
    entries = list(written)

    def work(db: sqlite3.Connection) -> None:
        _remove_entries(db, [value["id"] for _, value in entries])
        for name, value in entries:
            _enter(db, home, name, value)

    _changed_entries(home, work)


def _enter(db: sqlite3.Connection, home: Path, name: str, value: JsonObject) -> None:
    from aether.redact.redact import redact

    grace, metrics = value["grace"] or {}, value["metrics"]
    text = terms(redact("\n".join([value["title"], *texts(value["content"])])))
    row = (
        value["id"], name, value["title"], value["created_at"] or value["archived_at"], DETAILS.index(value["level"]),
        size(home, name) + (size(home, grace["file"]) if grace else 0), metrics.get("since", ""),
        DETAILS.index(metrics.get("floor", "full")), metrics.get("policy", ""), grace.get("file", ""),
        grace.get("until") or "", value["source"]["name"], text.length,
    )  # fmt: skip
    query = f"INSERT INTO conversation ({_COLUMNS}, length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
    place = db.execute(query, row).lastrowid or 0
    search_index.enter(db, CONVERSATIONS, [(place, search_index.tokens(Counter((*text.words, *text.parts))))])


def _remove_entries(db: sqlite3.Connection, ids: Iterable[str]) -> None:
    for id in ids:  # noqa: A001
        search_index.take_out(db, id)


def take_out(home: Path, id: str) -> None:
    """Remove a conversation that is no longer archived from the index."""
    _changed_entries(home, lambda db: _remove_entries(db, [id]))


def set_floor(home: Path, floors: Iterable[tuple[str, str, str]]) -> None:
    """Enter the least level of conversations by another policy: id, level, policy."""
    entries = [(DETAILS.index(floor), policy, id) for id, floor, policy in floors]  # noqa: A001
    query = "UPDATE conversation SET floor = ?, policy = ? WHERE id = ?"
    _changed_entries(home, lambda db: db.executemany(query, entries))


def _changed_entries(home: Path, work: Callable[[sqlite3.Connection], object]) -> None:
    """Change the entries; where the archive is not entered it is, as it is now."""

    def change(db: sqlite3.Connection) -> None:
        if search_index.archive_is_entered(db):
            with search_index.writing(db):
                work(db)
        else:
            _enter_all(home, db)

    _changed(home, change)


def _changed(home: Path, work: Callable[[sqlite3.Connection], object]) -> None:
    """Change the index; one that cannot be changed is removed, because it would be wrong."""
    if not search_index.on_index(_index(home), work, busy_seconds=_BUSY_SECONDS):
        search_index.remove(_index(home))


def _rows(home: Path, condition: str, values: Sequence[Any] = ()) -> list[Row]:
    if is_empty(home):
        return []
    query = f"SELECT {_COLUMNS} FROM conversation {condition}"  # noqa: S608 - both are constants
    return [_row(columns) for columns in indexed(home, lambda db: db.execute(query, values).fetchall())]


def _row(columns: Sequence[Any]) -> Row:
    return Row(*columns)._replace(level=DETAILS[columns[4]], floor=DETAILS[columns[7]])


def find(home: Path, id: str) -> Row | None:
    """Return the entry of conversation `id`, None if it is not archived."""
    return next(iter(_rows(home, "WHERE id = ?", (id,))), None)


def rows(home: Path, *, month: str = "", level: str = "", limit: int | None = None) -> list[Row]:
    """Return archived conversations, the newest first; only those of one `month` (YYYY-MM), at one `level`."""
    condition, values = _of_month_and_level(month, level)
    most = -1 if limit is None else limit
    return _rows(home, f"{condition} ORDER BY created DESC, id LIMIT ?", [*values, most])


def number(home: Path, *, month: str = "", level: str = "") -> int:
    """Return the number of archived conversations; only those of one `month` (YYYY-MM), at one `level`."""
    if is_empty(home):
        return 0
    condition, values = _of_month_and_level(month, level)
    query = f"SELECT count(*) FROM conversation {condition}"  # noqa: S608 - both are constants
    return int(indexed(home, lambda db: db.execute(query, values).fetchone())[0])


def _of_month_and_level(month: str, level: str) -> tuple[str, list[Any]]:
    levels = [DETAILS.index(level)] * 2 if level else [0, len(DETAILS)]
    return "WHERE created >= ? AND created < ? AND level BETWEEN ? AND ?", [month, f"{month}~", *levels]


def ready(home: Path, latest: Sequence[str]) -> list[Row]:
    """Return the conversations whose age asks for a lesser level that retention allows; oldest first.

    `latest` has, for each level but the last, the latest time of use at which a conversation loses it.
    """
    condition = "WHERE level = ? AND since <= ? AND floor > level AND since != ''"
    aged = [row for level, time in enumerate(latest) for row in _rows(home, condition, (level, time))]
    return sorted(aged, key=lambda row: (row.since, row.id))


def of_other_policy(home: Path, policy: str) -> list[Row]:
    """Return the conversations whose least level another policy decided."""
    return _rows(home, "WHERE policy != ?", (policy,))


def expired(home: Path, now: str) -> list[Row]:
    """Return the conversations whose grace is over."""
    return _rows(home, "WHERE until != '' AND until <= ? ORDER BY until", (now,))


def stats(home: Path) -> JsonObject:
    """Return the number of archived conversations, their bytes on disk, and the number at each level."""
    query = "SELECT level, COUNT(*), SUM(bytes) FROM conversation GROUP BY level"
    sums = [] if is_empty(home) else indexed(home, lambda db: db.execute(query).fetchall())
    levels = {**dict.fromkeys(DETAILS, 0), **{DETAILS[level]: number for level, number, _ in sums}}
    return {
        "conversations": sum(levels.values()),
        "bytes": sum(total for *_, total in sums),
        "levels": levels,
    }


def search(home: Path, wanted: Mapping[str, float], *, limit: int) -> list[tuple[Row, float]]:
    """Return the conversations that contain terms of `wanted`, each with its weight, best first, with their scores."""
    if is_empty(home):
        return []

    def work(db: sqlite3.Connection) -> list[tuple[Any, float]]:
        count, average = db.execute("SELECT count(*), avg(length) FROM conversation").fetchone()
        numbers = search_index.number_of_rows(db, CONVERSATIONS, wanted)
        worth = {
            term: wanted[term] * math.log(1 + (count - number + 0.5) / (number + 0.5))
            for term, number in numbers.items() if number
        }  # fmt: skip
        unit = _BEST / max(worth.values(), default=1)
        values = {term: [round(unit * share * value) for share in _SHARES] for term, value in worth.items()}
        points = search_index.points(db, CONVERSATIONS, values, numbers, wanted=[*worth], last=sys.maxsize)
        query = f"SELECT {_COLUMNS}, length FROM conversation WHERE n = ?"  # noqa: S608 - a constant
        scored = []
        for place in heapq.nlargest(_CANDIDATES, points, key=lambda place: (points[place], place)):
            *columns, length = db.execute(query, (place,)).fetchone()
            share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * length / max(average, 1)
            scored.append((points[place] / unit / share, place, columns))
        scored.sort(key=lambda entry: entry[:2], reverse=True)
        return [(columns, score) for score, _, columns in scored[:limit]]

    return [(_row(columns), score) for columns, score in indexed(home, work)]
