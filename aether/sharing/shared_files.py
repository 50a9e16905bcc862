"""Files of a shared home that are too large for a line: hand-offs, snapshots, archived conversations and what rests in grace.

Their bytes are blobs of the colony, named by their SHA-256; the stream `files` of its ledger says which files there are. A
*unit* is what changes as one: a hand-off, a snapshot, or a conversation that is archived (one file, and perhaps one in
grace) or removed. `share/files.json` is what this home and the ledger agreed on last, so that the files themselves are the
queue: what differs from it was changed here, and is sent when the server can be reached.

Of two changes of one unit the first in the ledger counts, and a removal before both. A conversation whose stream has lines
that an archive file does not cover is live everywhere. A file that is damaged here is fetched again, never sent.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidInput, StorageFailed, UnsafePath
from aether.paths import directory_name, file_name, inside
from aether.schemas import check
from aether.sharing import ledgers
from aether.sharing.ledgers import Colony
from aether.store import (
    archive_steps,
    archive_store,
    conversation_list,
    conversation_stream,
    conversations,
    documents,
    files,
    seals,
)
from aether.store.ledger import Mark
from aether.store.log import checksum_of, seal_json, unsealed
from aether.types import JsonObject

STREAM = "files"
STATE = "share/files.json"
# A longer file is several blobs, so that no call takes long, and a file that grew shares its first ones with the older.
PART_BYTES = 1 << 22
# Lines that are sent in one call, so that what is lost with a connection is little; a longer line is sent alone.
SEND_BYTES, SEND_LINES = 1 << 20, 500
# What is moved while the lock of the home is held once; a larger file is moved alone.
ROUND_BYTES = 1 << 25
TRIES = 8
# The files of one member may have so many bytes, and so many times those of the blobs that make them, which one blob may do
# in many files: else a few lines would let every replica write gigabytes.
MEMBER_BYTES, MEMBER_TIMES = 1 << 26, 8
_HANDOFFS, _SNAPSHOTS = "compressions", "snapshots"
# The field of such a file that has its name.
_NAMES = {_HANDOFFS: "compression_id", _SNAPSHOTS: "snapshot_id"}


class Blobs(NamedTuple):
    """Where the blobs of a colony are."""

    put: Callable[[bytes], str]
    """Keeps bytes and returns their SHA-256."""
    get: Callable[[str], bytes]
    drop: Callable[[str], None]


class File(NamedTuple):
    """A file of a colony."""

    path: str
    sha256: str
    size: int
    parts: tuple[str, ...] = ()
    """The blobs that make it; empty if it is one, of its own name."""

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of its blobs."""
        return self.parts or (self.sha256,)


class Unit(NamedTuple):
    """Files that change as one."""

    files: tuple[File, ...]
    """None if a conversation was removed."""
    lines: int = 0
    """Of a conversation: how many lines of its stream it was archived or removed with."""
    member: str = ""
    """Who sent it."""

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.size for file in self.files)

    @property
    def content(self) -> tuple[object, ...]:
        """What two equal units have in common."""
        return (self.lines, *sorted((file.path, file.sha256) for file in self.files))


class _State(NamedTuple):
    """What the home and the ledger agreed on."""

    identity: str
    mark: Mark
    units: dict[str, Unit]
    """The units of the ledger at the mark."""
    lacking: frozenset[str]
    """Units of the ledger that this home does not have as they are there."""
    seen: dict[str, list[Any]]
    """Of each file: inode, time of change, size and SHA-256."""
    unneeded: frozenset[str] = frozenset()
    """Blobs that may be at the server although no line names them any more."""


class _Sides(NamedTuple):
    """What exchanges, and when."""

    home: Path
    server: Colony
    blobs: Blobs
    now: datetime


class _Local(NamedTuple):
    """The units of the home."""

    units: dict[str, Unit]
    damaged: set[str]
    """Units that are not as they were written: they are fetched again."""
    seen: dict[str, list[Any]]


def exchange(home: Path, server: Colony, blobs: Blobs, *, now: datetime) -> bool:
    """Send the files that changed in `home` and take those that changed elsewhere; return whether there is more to do.

    The caller holds the lock of the home. After a crash at any instruction it is done again.

    Raises:
        StorageFailed, UnsafePath: the server or the blobs cannot be used; what was done stays.
        Conflict, CorruptDocument: the ledger has another history.
    """
    archive_steps.settle(home, now=now)
    sides = _Sides(home, server, blobs, now)
    state = _read_state(home, server.identity)
    _send_conversations(home, server)
    blob_names = set(state.unneeded | _names_of(state.units.values()))
    for _ in range(TRIES):
        remote, mark = _with_news(server, state)
        heads = _heads(server)
        local = _local(home, state, heads)
        agreed = {
            key for key in local.damaged | local.units.keys()
            if key in local.damaged or _content(local.units[key]) == _content(state.units.get(key))
        }  # fmt: skip
        base = _agreed(state, local)
        target = {
            key: _live_or(heads, key, _wanted(base.get(key), remote.get(key), local.units.get(key)))
            for key in sorted({*base, *remote, *local.units})
        }
        blob_names |= _names_of(remote.values())
        sent = _sent(sides, mark, target, remote, put=blob_names)
        if sent:
            break
    else:
        what = f"others sent files at the same time, {TRIES} times."
        raise Conflict(what, fix="Try again.", where=str(home))
    units, mark, is_all = sent
    takes = {
        key: unit
        for key, unit in target.items()
        if _content(units.get(key)) == _content(unit)
        and (_content(local.units.get(key)) != _content(unit) or (key in local.damaged and unit))
    }
    remaining, has_more = set(takes), False
    for key in _beyond_quota(units):
        takes.pop(key, None)
    try:
        has_more = _take_all(sides, takes, heads, remaining, agreed)
    finally:
        unneeded = blob_names - _names_of(units.values())
        new_state = _State(state.identity, mark, units, frozenset(remaining), local.seen, frozenset(unneeded))
        if new_state != state:
            _write_state(home, new_state)
    if new_state.unneeded and _drop(server, blobs, new_state):
        _write_state(home, new_state._replace(unneeded=frozenset()))
    return has_more or not is_all


def _take_all(
    sides: _Sides,
    takes: Mapping[str, Unit | None],
    heads: Mapping[str, int],
    remaining: set[str],
    agreed: set[str],
) -> bool:
    """Make units of the home as the ledger has them, take them out of `remaining`, and return whether the rest is for another round.

    What the home has of those that are not `agreed` is nowhere else.

    Raises:
        StorageFailed: the server, the blobs or the disk cannot be used.
    """
    room = ROUND_BYTES
    for key, unit in takes.items():
        size = unit.size if unit else 0
        if size > room and room < ROUND_BYTES:
            return True
        try:
            _take(sides, key, unit, heads.get(key, 0), agreed=key in agreed)
        except StorageFailed:
            raise
        except (AetherError, KeyError, TypeError, ValueError):
            continue  # the line of another may be wrong: the rest goes on, and doctor names what is left
        remaining.discard(key)
        room -= size
    return False


def mark_of(home: Path, server: Colony) -> Mark:
    """Return how far `home` has read the stream of files."""
    return _read_state(home, server.identity).mark


def unsent(home: Path, server: Colony) -> list[str]:
    """Return the units of `home` that its colony does not have as they are here, as far as the home knows."""
    state = _read_state(home, server.identity)
    local = _local(home, state, _heads(server))
    excluded = local.damaged | state.lacking
    return sorted(
        key
        for key, unit in local.units.items()
        if key not in excluded and _content(unit) != _content(state.units.get(key))
    )


def lacking(home: Path) -> dict[str, str]:
    """Return the units that the ledger has and `home` could not take, each with the member who sent it."""
    share = ledgers.shared(home)
    if not share:
        return {}
    state = _read_state(home, share.identity)
    return {key: state.units.get(key, Unit(())).member for key in sorted(state.lacking)}


def send_stream(server: Colony, stream: str, lines: list[bytes]) -> None:
    """Append to a stream what it lacks of `lines`.

    Raises:
        Conflict: it has other lines.
    """
    end, mark = server.head(stream), Mark(0, "")
    fix = "Use another name, or join that colony in a new home."
    while mark.revision < end:
        stored = server.read_after(stream, mark, limit=SEND_LINES).lines
        if not stored or stored != lines[mark.revision : mark.revision + len(stored)]:
            raise Conflict("the colony has other lines already.", fix=fix, where=server.colony)
        mark = Mark(mark.revision + len(stored), checksum_of(stored[-1]))
    while some := _first(lines[mark.revision : mark.revision + SEND_LINES]):
        if not server.append_if(stream, mark, some).done:
            raise Conflict("others write to this colony already.", fix=fix, where=server.colony)
        mark = Mark(mark.revision + len(some), checksum_of(some[-1]))


def _first(lines: list[bytes]) -> list[bytes]:
    """Return as many of the lines as are sent in one call."""
    sizes = accumulate(map(len, lines))
    return lines[: max(1, sum(size <= SEND_BYTES for size in sizes))]


def _heads(server: Colony) -> dict[str, int]:
    """Return the number of lines of each conversation of a colony, by its stream."""
    return {stream: end.revision for stream, end in server.ends(conversation_stream.STREAMS).items()}


def _send_conversations(home: Path, server: Colony) -> None:
    """Send the conversations that the colony has never had: those that were archived before the home was shared."""
    heads = _heads(server)
    for stored in conversations.stored_conversations(home):
        stream = conversation_stream.stream_of(stored.id)
        if stream not in heads:
            with suppress(Conflict, InvalidInput, UnsafePath), conversations.held(home, stored.id) as data:
                send_stream(server, stream, data.splitlines(keepends=True))


# --- What is where


def _wanted(base: Unit | None, remote: Unit | None, local: Unit | None) -> Unit | None:
    """Return the unit that home and ledger will have, of the one that they had and those that they have."""
    if _content(local) == _content(base):
        return remote
    if _content(remote) in (_content(base), _content(local)):
        return local
    if remote is None or local is None:
        return None
    return remote if local.files else local


def _live_or(heads: Mapping[str, int], key: str, unit: Unit | None) -> Unit | None:
    """Return None for a conversation that goes on beyond what was archived or removed, else its unit."""
    return None if unit and heads.get(key, 0) > unit.lines else unit


def _content(unit: Unit | None) -> tuple[object, ...] | None:
    return unit and unit.content


def _agreed(state: _State, local: _Local) -> dict[str, Unit]:
    """Return what to compare with: a unit that could not be taken counts as it is here, so that the ledger's is taken."""
    base = {key: unit for key, unit in state.units.items() if key not in state.lacking}
    base |= {key: unit for key, unit in local.units.items() if key in state.lacking}
    for key in local.damaged:
        if key in base:
            local.units[key] = base[key]
        else:
            local.units.pop(key, None)
    return base


def _with_news(server: Colony, state: _State) -> tuple[dict[str, Unit], Mark]:
    """Return the units of the ledger, and how far its stream was read."""
    units, mark = dict(state.units), state.mark
    while lines := server.read_after(STREAM, mark).lines:
        for line in lines:
            key, unit = _parsed(line)
            if unit:
                units[key] = unit
            else:
                units.pop(key, None)
        mark = Mark(mark.revision + len(lines), checksum_of(lines[-1]))
    return units, mark


def _parsed(line: bytes) -> tuple[str, Unit | None]:
    """Return what a line says; that of a line which names another place, or is no line of ours, is nothing."""
    with suppress(AetherError, KeyError, TypeError, ValueError, OverflowError):
        fields = unsealed(line) or {}
        key = str(fields["unit"])
        if "files" not in fields:
            return key, None
        unit = _unit(fields)
        if _is_ours(key, unit):
            return key, unit
    return "", None


def _unit(fields: JsonObject) -> Unit:
    unit_files = tuple(
        File(
            str(entry["path"]),
            str(entry["sha256"]),
            int(entry["size"]),
            tuple(map(str, entry.get("parts", ()))),
        )
        for entry in fields["files"]
    )
    return Unit(unit_files, int(fields.get("lines", 0)), str(fields.get("member", "")))


def _fields(unit: Unit) -> JsonObject:
    entries = [
        {"path": file.path, "sha256": file.sha256, "size": file.size}
        | ({"parts": list(file.parts)} if file.parts else {})
        for file in unit.files
    ]
    about = {"lines": unit.lines, "member": unit.member}
    return {"files": entries} | {name: value for name, value in about.items() if value}


def _is_ours(key: str, unit: Unit) -> bool:
    """Return whether the files of a unit are in the places of such files, and nowhere else."""
    paths = [file.path for file in unit.files]
    for file in unit.files:
        names = [file.sha256, *file.parts]
        if not all(map(regular.is_sha256, names)) or not 0 <= file.size <= regular.LOG_BYTES:
            return False
        if len(file.parts) > 1 + file.size // PART_BYTES:
            return False
    if key == conversation_stream.STREAMS:
        return False
    if key.startswith(conversation_stream.STREAMS):
        main = [path for path in paths if archive_store.FILE_NAME.fullmatch(path)]
        in_grace = [path for path in paths if archive_store.GRACE_NAME.fullmatch(path)]
        is_whole = not paths or (len(main) == 1 and len(in_grace) <= 1)
        return is_whole and len(main) + len(in_grace) == len(paths) and unit.lines >= 0
    directory, _, name = key.partition("/")
    if directory not in (_HANDOFFS, _SNAPSHOTS) or not name.endswith(".json"):
        return False
    return paths == [key] and file_name(name.removesuffix(".json"), what="file") + ".json" == name


def _beyond_quota(units: Mapping[str, Unit]) -> set[str]:
    """Return the units that make the files of a member much larger than the blobs behind them; nobody writes these."""
    pieces, size, room, beyond = set[tuple[str, str]](), Counter[str](), Counter[str](), set[str]()
    for key, unit in units.items():
        for file in unit.files:
            for number, blob in enumerate(file.blobs):
                if (unit.member, blob) not in pieces:
                    pieces.add((unit.member, blob))
                    room[unit.member] += min(PART_BYTES, file.size - number * PART_BYTES)
        size[unit.member] += unit.size
        if size[unit.member] > MEMBER_BYTES + MEMBER_TIMES * room[unit.member]:
            size[unit.member] -= unit.size
            beyond.add(key)
    return beyond


def _local(home: Path, state: _State, heads: Mapping[str, int]) -> _Local:
    """Return the units of `home` as its files are now."""
    local = _Local({}, set(), {})
    for directory in (_HANDOFFS, _SNAPSHOTS):
        for path in sorted((home / directory).glob("*.json")):
            key = f"{directory}/{path.name}"
            with suppress(AetherError, OSError):
                unit = Unit((_hashed(home, key, state, local),))
                if _is_ours(key, unit):
                    local.units[key] = unit
    sealed = seals.read(home)
    for key, unit in state.units.items():
        # They never change, and only a snapshot is ever removed: then the record of seals does not have it any more.
        other = local.units.get(key)
        if key.startswith(conversation_stream.STREAMS):
            continue
        is_removed = key.startswith(f"{_SNAPSHOTS}/") and sealed.state == "good" and key not in sealed.whole
        if not is_removed if other is None else other.content != unit.content:
            local.damaged.add(key)
    _local_conversations(home, state, heads, local)
    return local


def _local_conversations(home: Path, state: _State, heads: Mapping[str, int], local: _Local) -> None:
    listed = conversation_list.last_listed(home)

    def lines(id: str, key: str) -> int:
        entry = listed.get(id)
        agreed = state.units[key].lines if key in state.units else 0
        return (
            entry.lines if entry and entry.lines else agreed
        )  # 0: not known, so what the colony has goes on

    for row in archive_store.rows(home):
        key = conversation_stream.stream_of(row.id)
        try:
            hashed = [_hashed(home, name, state, local) for name in (row.name, row.grace) if name]
            unit = Unit(tuple(hashed), lines(row.id, key))
            if _content(unit) != _content(state.units.get(key)):
                _require_whole(home, row.id, unit)
            local.units[key] = unit
        except (AetherError, OSError, KeyError):
            local.damaged.add(key)
    for id, entry in listed.items():  # noqa: A001
        key = conversation_stream.stream_of(id)
        if key in local.units or conversations.path_of(home, id).exists():
            continue
        if entry.removed and (key in state.units or key in heads):
            local.units[key] = Unit((), lines(id, key))
    for key in state.units:
        id = key.removeprefix(conversation_stream.STREAMS)  # noqa: A001
        if id != key and key not in local.units and not conversations.path_of(home, id).exists():
            local.damaged.add(key)


def _require_whole(home: Path, id: str, unit: Unit) -> None:
    """Check that an archived conversation is as it was written.

    Raises:
        AetherError, KeyError: it is not.
    """
    main, *in_grace = [file.path for file in unit.files]
    value = archive_store.read(home, main)
    if value["id"] != id or (value["grace"] or {}).get("file", "") != "".join(in_grace):
        raise CorruptDocument("it is another one.", fix='Run "aether doctor".', where=main)
    if in_grace:
        archive_store.read_grace(home, value["grace"])


def _hashed(home: Path, name: str, state: _State, local: _Local) -> File:
    """Return a file of the home; one that has not changed since it was read last is not read."""
    path = inside(home, name)
    about = os.stat(path)
    identity = [about.st_ino, about.st_mtime_ns, about.st_size]
    before = state.seen.get(name, [])
    if before[:3] != identity:
        before = [*identity, hashlib.sha256(regular.read(path, regular.LOG_BYTES)).hexdigest()]
    local.seen[name] = before
    return File(name, before[3], about.st_size)


# --- Sending


def parts_of(data: bytes) -> list[bytes]:
    """Return the blobs that make the content of a file."""
    return [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)] or [b""]


def put_file(blobs: Blobs, name: str, data: bytes) -> File:
    """Keep the content of a file as blobs, and return what names it."""
    names = tuple(blobs.put(part) for part in parts_of(data))
    return File(name, hashlib.sha256(data).hexdigest(), len(data), names if len(names) > 1 else ())


def get_file(blobs: Blobs, file: File) -> bytes:
    """Return the content of a file, checked.

    Raises:
        NotFound: a blob is missing.
        CorruptDocument: it is another one.
    """
    parts, size = [], 0
    for name in file.blobs:
        parts.append(blobs.get(name))
        if len(parts[-1]) != min(PART_BYTES, file.size - size):
            break
        size += len(parts[-1])
    data = b"".join(parts)
    if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.sha256:
        what = "the blobs of the colony make another file."
        raise CorruptDocument(what, fix="Restore them from a backup of the server.", where=file.path)
    return data


def _sent(
    sides: _Sides, mark: Mark, target: Mapping[str, Unit | None], remote: dict[str, Unit], *, put: set[str]
) -> tuple[dict[str, Unit], Mark, bool] | None:
    """Send what the ledger lacks, up to a limit; return its units, its mark and whether that was all, None if others did.

    The names of blobs that were kept go into `put`. A role that may only read sends nothing.
    """
    home, server, blobs, now = sides
    out = [key for key in target if _content(target[key]) != _content(remote.get(key))]
    if not out:
        return remote, mark, True
    units, lines, pieces = dict(remote), list[bytes](), list[bytes]()
    with suppress(UnsafePath):
        for key in out:
            unit = target[key]
            units.pop(key, None)
            fields: JsonObject = {"unit": key, "at": clock.stamp(now)}
            if unit is not None:
                contents = [regular.read(inside(home, file.path), regular.LOG_BYTES) for file in unit.files]
                sent_files = tuple(
                    put_file(blobs, file.path, data) for file, data in zip(unit.files, contents, strict=True)
                )
                units[key] = unit._replace(files=sent_files, member=server.member)
                put |= _names_of([units[key]])
                if _content(units[key]) != _content(unit):
                    return None  # changed by hand this moment
                pieces += [part for data in contents for part in parts_of(data)]
                fields |= _fields(units[key])
            lines.append(seal_json(fields | {"member": server.member}))
            if sum(map(len, pieces)) > ROUND_BYTES:
                break
        with server.turn(STREAM, mark) as newer:
            if newer.lines:
                return None
            for data in pieces:  # nobody drops blobs now; somebody may have before
                blobs.put(data)
            if not server.append_if(STREAM, mark, lines).done:
                return None
        return (units, Mark(mark.revision + len(lines), checksum_of(lines[-1])), len(lines) == len(out))
    return remote, mark, True


def _drop(server: Colony, blobs: Blobs, state: _State) -> bool:
    """Remove the blobs that no line needs any more; return False if that is to be tried again.

    Whoever may not leaves it to others.
    """
    with suppress(UnsafePath), server.turn(STREAM, state.mark) as newer:
        if newer.lines:  # they may name them again
            return False
        for name in sorted(state.unneeded):
            blobs.drop(name)
    return True


def _names_of(units: Iterable[Unit]) -> frozenset[str]:
    return frozenset(name for unit in units for file in unit.files for name in file.blobs)


# --- Taking


def _take(sides: _Sides, key: str, unit: Unit | None, head: int, *, agreed: bool) -> None:
    """Make a unit of the home as the ledger has it, where the stream of its conversation has `head` lines.

    Raises:
        AetherError, KeyError, TypeError, ValueError: it cannot be; the home has it as it was, or is made so at the next try.
    """
    home, server, blobs, now = sides
    fetched = [(file.path, get_file(blobs, file)) for file in (unit or Unit(())).files]
    if key.startswith(conversation_stream.STREAMS):
        _take_conversation(
            home, key.removeprefix(conversation_stream.STREAMS), unit, fetched, now, agreed=agreed
        )
        if unit is None and head:
            fill(home, key, server, head, now)
        return
    directory = inside(home, key.partition("/")[0])
    if directory != Path(os.path.realpath(home)) / key.partition("/")[0]:
        raise UnsafePath("a link is in its place.", fix="Remove it.", where=key)
    path = directory / key.partition("/")[2]
    for _, data in fetched:
        if files.parse_json(data, where=key)[_NAMES[directory.name]] != path.stem:
            raise CorruptDocument("it is another file than its line says.", fix="", where=key)
    with files.storage_errors(path):
        files.make_directory(directory)
        if not fetched:
            path.unlink(missing_ok=True)
            files.sync_directory(directory)
        # Before it is there: one without a seal would count as removed here if it were lost.
        if directory.name == _SNAPSHOTS:
            seals.seal_file(home, path, fetched[0][1] if fetched else None)
        for _, data in fetched:
            files.write_whole(path, data)


def _take_conversation(
    home: Path, id: str, unit: Unit | None, fetched: list[tuple[str, bytes]], now: datetime, *, agreed: bool
) -> None:
    """Let a conversation be archived or removed as `unit` says, or no longer; what only this home has goes to quarantine.

    Raises:
        Conflict: it has lines that the unit does not cover.
    """
    value = _checked(id, fetched) if fetched else None
    row = archive_store.find(home, id)
    old = {name for name in (row.name, row.grace) if name} if row else set()
    for name in sorted(old) if row and (unit is None or not agreed) and not _is_said(home, row) else ():
        path = archive_store.placed(home, name)
        with suppress(FileNotFoundError):
            data = regular.read(path, regular.LOG_BYTES)
            documents.quarantine(home, f"archive-{path.name}", data, at=clock.stamp(now))
    is_live = unit is not None and conversations.path_of(home, id).exists()
    with conversations.held(home, id) if is_live else nullcontext(b"") as log:
        if unit and log.count(b"\n") > unit.lines:
            raise Conflict("it goes on.", fix="Try again.", where=id)
        for name, data in reversed(fetched):  # what rests in grace is there before the file that names it
            path = archive_store.placed(home, name)
            files.save(path, data)
        if unit:
            about = conversation_list.Listed(
                id, clock.stamp(now), removed=not unit.files, archived=bool(unit.files), lines=unit.lines
            )
            conversation_list.enter(home, about)
        if log:
            conversations.remove_log(home, id)
    for name in sorted(old - {name for name, _ in fetched}):
        archive_store.remove(home, name)
    if value:
        archive_store.put(home, [(fetched[0][0], value)])
    elif row:
        archive_store.take_out(home, id)


def _is_said(home: Path, row: archive_store.Row) -> bool:
    """Return whether the colony has every line of an archived conversation."""
    with suppress(AetherError, KeyError):
        return bool(archive_store.read(home, row.name)["source"]["kind"] == "conversation")
    return False


def _checked(id: str, fetched: list[tuple[str, bytes]]) -> JsonObject:
    """Return the archive file of conversation `id` that was fetched with what rests in its grace.

    Raises:
        CorruptDocument: it is another one, or in another place.
    """
    name, data = fetched[0]
    is_packed = name.endswith(".zst")
    value = archive_store.parsed(files.unpacked(data, where=name) if is_packed else data, where=name)
    grace = value.get("grace") or {}
    prefix = f"{archive_store.GRACE}/{directory_name(id, what='conversation')}."
    is_right = (
        not check.findings(archive_steps.SCHEMA, value)
        and value["id"] == id
        and archive_store.name_of(value, packed=is_packed) == name
        and grace.get("file", "") == "".join(path for path, _ in fetched[1:])
        and grace.get("file", prefix).startswith(prefix)
    )
    for path, packed in fetched[1:] if is_right else ():
        is_right = regular.digest(files.unpacked(packed, where=path)) == grace["sha256"]
    if not is_right:
        raise CorruptDocument("it is another archive file than its line says.", fix="", where=name)
    return value


def fill(home: Path, stream: str, server: Colony, head: int, now: datetime) -> None:
    """Take what is new of a conversation, whose stream has `head` lines, into its log.

    Raises:
        Conflict: the stream has less than the log, or other lines.
        CorruptDocument, LockTimeout, StorageFailed: as `conversations.take_in`.
    """
    id = stream.removeprefix(conversation_stream.STREAMS)  # noqa: A001
    while conversations.take_in(home, id, server, now=now):
        if conversations.load(home, id).held >= head:
            return


# --- What was agreed on


def _read_state(home: Path, identity: str) -> _State:
    """Return what home and ledger agreed on last; nothing if that is damaged, or of another colony."""
    empty = _State(identity, Mark(0, ""), {}, frozenset(), {})
    try:
        stored = unsealed(regular.read(home / STATE, regular.LOG_BYTES)) or {}
    except (FileNotFoundError, NotADirectoryError):
        return empty
    with suppress(AetherError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        if stored["identity"] == identity:
            parsed = {key: _unit(fields) for key, fields in stored["units"].items()}
            units = {key: unit for key, unit in parsed.items() if _is_ours(key, unit)}
            mark = Mark(int(stored["revision"]), str(stored["line"]))
            unneeded = frozenset(filter(regular.is_sha256, stored.get("unneeded", [])))
            return _State(identity, mark, units, frozenset(stored["lacking"]), dict(stored["seen"]), unneeded)
    return empty


def _write_state(home: Path, state: _State) -> None:
    value = {
        "identity": state.identity, "revision": state.mark.revision, "line": state.mark.checksum,
        "units": {key: _fields(unit) for key, unit in sorted(state.units.items())},
        "lacking": sorted(state.lacking), "seen": dict(sorted(state.seen.items())), "unneeded": sorted(state.unneeded),
    }  # fmt: skip
    path = home / STATE
    files.save(path, seal_json(value))
