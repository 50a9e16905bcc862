"""Sharing: a home becomes a replica of a colony on a server, a new replica joins, and a replica goes on alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.api.home import REFUSALS, Home, find, now
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidInput,
    LockTimeout,
    NotFound,
    StorageFailed,
    UnsafePath,
    public,
    shown,
)
from aether.paths import HOME_NAME
from aether.sharing import ledgers, offline, senders, shared_base, shared_files
from aether.sharing.ledgers import Colony, Share
from aether.sharing.lines import as_taken, checked_news, set_aside, words_of
from aether.sharing.offline import send_queue
from aether.sharing.shared_files import Blobs
from aether.storage import named_files
from aether.storage.adapter import NamedFiles
from aether.store import (
    archive_store,
    conversation_list,
    conversation_stream,
    conversations,
    files,
    ledger,
    spool,
)
from aether.store.commit import catch_up, fold, mark_of, settle, take_in, write_lock
from aether.store.journal import journal_header, journal_path
from aether.store.ledger import JOURNAL, Mark
from aether.store.log import seal_json
from aether.store.snapshot import Snapshot, load
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

# Lines that are sent or read at once.
LINES = 500
# How often who waits for news asks for them.
POLL_SECONDS = 0.1
# A new replica is folded each time its journal has grown to so much.
FOLD_BYTES = 1 << 22
# The line of the stream `READY`.
WHOLE = seal_json({"sent": "whole"})
# What the colony that is made of a home knows it by, until it is whole.
CLAIM = "share/claim.json"
_OLDER = "The server was restored from an older backup, or this home was: see docs/shared.md."
_FOLD = "They are sent by aether fold."
_WRITE = "An admin gives the right with: aether share members ROLE write."
_JOIN = "Join it with: aether share join URL COLONY."
# The conversations of the colony that this home could not take, and why.
UNREAD = "share/unread.json"
# What a home that has left its colony lacks of it.
LEFT = "share/left.json"
# Seconds: what a killed process left beside a home is older than that.
_STALE_SECONDS = 3600.0


class Shared(NamedTuple):
    """The result of sharing, joining and leaving."""

    home: Path
    colony: str
    replica: str
    revision: int
    missing: tuple[str, ...] = ()
    """What a home that has left its colony lacks of it, in words."""


@public
def share(home: Home = None, url: str = "", colony: str = "") -> Shared:
    """Share a home as a colony on a server; the home becomes its first replica.

    Without `url` the server is that of `AETHER_SHARE_URL`, where every later use of the home looks for it: no address is
    kept in a home. Without `colony` its name is that of the project. An interrupted call is completed by another one;
    until then nobody can join the colony.

    Raises:
        Conflict: the home is shared already, or the server has a colony of this name with another history.
        StorageFailed, UnsafePath, BackendUnavailable, InvalidInput: the server cannot be used.
    """
    place = find(home)
    name = colony or place.parent.name
    ledgers.require_name(name, what="name of a colony")
    with write_lock(place):
        unfinished = ledgers.shared(place)
        _require_alone(place, besides=name)
        address = ledgers.url(url)
        if unfinished and _upgraded(address, unfinished, place):
            return Shared(place, name, unfinished.replica, load(place).revision)
        for stored in conversations.stored_conversations(place):
            ledgers.require_name(stored.id, what="id of a conversation")
        snapshot = settle(load(place), now=now())
        # Every document is stamped with the revision that changed it last, as it is in every other replica.
        snapshot = fold(snapshot._replace(changed=frozenset(snapshot.stamps)), now=now())
        replica = unfinished.replica if unfinished else clock.new_id("replica", now())
        if unfinished:
            server = ledgers.opened(address, name, replica=replica)
        else:
            server = _created(address, name, replica, place)
        blobs = _blobs(server)
        try:
            is_ready = server.head(ledgers.READY) > 0
            if is_ready:
                _require_history(server, snapshot)
            shared_base.set_base(server, blobs, snapshot, whole=is_ready)
            _require_history(server, snapshot)
            _send_conversations(server, place)
            new_share = Share(name, server.identity, replica)
            ledgers.write_share(place, new_share)
            senders.senders(snapshot, member=server.member)
            # What was said meanwhile; from now on the server is asked first.
            _send_conversations(server, place)
            while shared_files.exchange(place, server, blobs, now=now()):
                pass
            shared_files.send_stream(server, ledgers.READY, [WHOLE])
            (place / LEFT).unlink(missing_ok=True)  # of the colony before
            (place / CLAIM).unlink(missing_ok=True)
        finally:
            server.close()
    return Shared(place, name, new_share.replica, snapshot.revision)


@public
def join(url: str = "", colony: str = "", directory: str | os.PathLike[str] = ".") -> Shared:
    """Make a new home in `directory`, a replica with all that its colony has, and return it; or nothing at all.

    It starts from the newest base of the colony, which has the history as files, and reads the lines after that.

    Raises:
        Conflict: there is a home already, or what the server has is not whole.
        NotFound: the server has no such colony.
        StorageFailed, UnsafePath, BackendUnavailable, InvalidInput: the server cannot be used.
    """
    if not colony:
        raise InvalidInput("no colony is named.", fix=_JOIN, where="colony")
    ledgers.require_name(colony, what="name of a colony")
    root = Path(os.path.realpath(directory))
    place = root if root.name == HOME_NAME else root / HOME_NAME
    if place.exists():
        fix = "Name another directory. A home that is in use cannot join; share it as a colony of its own."
        raise Conflict("there is a home already.", fix=fix, where=str(place))
    replica = clock.new_id("replica", now())
    server = ledgers.opened(ledgers.url(url), colony, replica=replica)
    try:
        new_share = Share(colony, server.identity, replica)
        if not server.head(ledgers.READY):
            what = "the colony is not whole: its first replica was not sent to the end."
            fix = "Run aether share init again in that home: it goes on where it was interrupted."
            raise Conflict(what, fix=fix, where=colony)
        with _in_making(place) as new:
            blobs = _blobs(server)
            snapshot = _filled(new, server, blobs)
            with write_lock(new):
                while shared_files.exchange(new, server, blobs, now=now()):
                    pass
            _fill_conversations(server, new)
            ledgers.write_share(new, new_share)
            senders.senders(load(new), member=server.member)
    finally:
        server.close()
    return Shared(place, colony, replica, snapshot.revision)


@public
def leave_share(*, home: Home = None, force: bool = False) -> Shared:
    """Leave the colony, and keep everything that it has; the colony and its other replicas stay as they are.

    With `force` it leaves with what it has: `missing`, `share/left.json` and doctor list what it lacks.

    Raises:
        NotFound: the home is not shared.
        Conflict: it lacks something of the colony, or the server cannot be reached, and `force` is not given.
        InvalidDocument: a newer aether wrote what waits in its queue.
    """
    place = find(home)
    offline.require_known(place)
    try:
        share = _require_shared(place)
        missing = _missing(place)
    except CorruptDocument as reason:
        share, missing = Share("", "", ""), [f"what its colony has ({reason.what.rstrip('.')})"]
    if missing and not force:
        fix = "Make it reachable and try again; to go on without this: aether share leave --force."
        raise Conflict(f"the home would lack {'; '.join(missing)}.", fix=fix, where=str(place))
    with write_lock(place), files.storage_errors(place):
        if missing:
            about = {
                "colony": share.colony,
                "identity": share.identity,
                "at": clock.stamp(now()),
                "missing": missing,
            }
            files.save(place / LEFT, files.json_document(about))
        for name in (ledger.PLACE, shared_files.STATE, UNREAD, senders.PLACE):
            (place / name).unlink(missing_ok=True)
        files.sync_directory(place / "data")
        revision = send_queue(settle(load(place), now=now()), now(), insist=True).revision
    REFUSALS.pop(place, None)
    return Shared(place, share.colony, share.replica, revision, tuple(missing))


def _missing(place: Path) -> list[str]:
    """Take what the colony of a shared home has, and return in words what the home lacks all the same."""
    if ledgers.is_tracked(place):  # it came with a repository, and has never taken anything
        return []
    try:
        with write_lock(place):
            fold(catch_up(settle(load(place), now=now()), now=now()), now=now())
    except AetherError as reason:
        lines = f"what others wrote after revision {load(place).revision} ({reason.what.rstrip('.')})"
        if isinstance(reason, ledger.Offline):
            return [f"{lines}, and their new conversations and files"]
        missing = [lines]
    else:
        missing = []
    try:
        exchange(place)
    except AetherError as reason:
        missing.append(f"new files and conversations ({reason.what.rstrip('.')})")
    missing += [
        f"conversation {shown(name)} ({why.rstrip('.')})" for name, (why, _) in sorted(_unread(place).items())
    ]
    return missing + [f"the file {shown(name)}" for name in shared_files.lacking(place)]


@public
def share_status(*, home: Home = None) -> JsonObject:
    """Return colony, replica, revision and lag of a shared home, and what its server says of the colony.

    A server that cannot be reached, or refuses, is not an error: `reachable` shows whether it answered, and `reason` why
    something is missing here. `waiting` counts the changes to send, and `unfit` those in quarantine because they no
    longer fitted. `unread` names what the colony has and this home cannot read. `streams` are the conversations, and the
    files, that lag behind the server: `revision` here, `head` there, `lag`, and the `fault` if they differ. `faults`
    lists other faults of the exchange.

    Raises:
        NotFound: the home is not shared.
    """
    place = find(home)
    share = _require_shared(place)
    revision = load(place).revision
    status: JsonObject = {
        "colony": share.colony, "replica": share.replica, "revision": revision,
        "waiting": len(offline.waiting(place)), "unfit": len(offline.unfit(place)),
        "unread": [
            *(words_of(about) for _, about in set_aside(place)),
            *(f"conversation {shown(name)}: {why}" for name, (why, _) in sorted(_unread(place).items())),
        ],
    }  # fmt: skip
    try:
        if seen := _seen(place, share):
            status |= {
                "streams": [stream._asdict() for stream in seen.apart],
                "faults": [finding.message for finding in seen.findings],
                "reachable": True, "head": seen.head, "lag": seen.head - revision, "server": seen.about,
            }  # fmt: skip
    except AetherError as reason:
        answered = isinstance(reason, (Conflict, NotFound, UnsafePath, ledgers.Unusable))
        status |= {"reachable": answered and not ledgers.is_tracked(place), "reason": str(reason)}
    return status


class _Seen(NamedTuple):
    """What the server of a shared home shows of it."""

    head: int
    about: JsonObject
    """See `postgres.status`."""
    apart: list[Apart]
    findings: list[Finding]
    """What of conversations, files and notes of hooks the home could not take or send."""


def _seen(place: Path, share: Share) -> _Seen | None:
    """Return what the server of a shared home shows of it; None if the home is not shared any more.

    Raises:
        StorageFailed, UnsafePath, Conflict: as the server says.
    """
    server = ledgers.of(place)
    if server is None:
        return None
    about = ledgers.module(ledgers.url()).status(ledgers.url(), share.colony)
    server.read_after(JOURNAL, mark_of(load(place)), limit=1)
    offline.note_try(place, failed=False)
    apart = _apart(place, server)
    return _Seen(server.head(JOURNAL), about, apart, _examine_exchange(place, server, apart))


class Apart(NamedTuple):
    """A stream that a home does not have as the server has it: a conversation, or the files."""

    stream: str
    revision: int
    head: int
    lag: int
    """How many lines the home lacks; below zero if the server has less."""
    fault: str
    """Why neither can go on; empty if the home only lags."""


def _apart(place: Path, server: Colony) -> list[Apart]:
    """Return the conversations, and the files, that a home does not have as its server has them.

    Raises:
        StorageFailed, UnsafePath: as the server says.
    """
    diverged, stream_ends = list[Apart](), server.ends()
    marks = {shared_files.STREAM: shared_files.mark_of(place, server)}
    for name in _unequal(place, stream_ends):
        marks[conversation_stream.stream_of(name)] = Mark(0, "")
        with suppress(AetherError):  # one that cannot be read is not compared
            marks[conversation_stream.stream_of(name)] = conversation_stream.mark_of(
                conversations.load(place, name)
            )
    for stream, mark in marks.items():
        end, fault = stream_ends.get(stream, Mark(0, "")), ""
        if mark == end:
            continue
        try:
            server.read_after(stream, mark, limit=1)
        except Conflict as reason:
            fault = reason.what
        if fault or mark.revision < end.revision:
            diverged.append(Apart(stream, mark.revision, end.revision, end.revision - mark.revision, fault))
    return diverged


def _unequal(place: Path, stream_ends: Mapping[str, Mark]) -> list[str]:
    """Return the conversations that a home may not have as the `ends` of the streams of its server say.

    Those that are archived or removed here are left out.
    """
    removed, start = conversation_list.removed_ids(place), conversation_stream.STREAMS
    names = {stream.removeprefix(start) for stream in stream_ends if stream.startswith(start)}
    names |= {stored.id for stored in conversations.stored_conversations(place)}
    return [
        name
        for name in sorted(names)
        if conversations.end_of(place, name)
        != stream_ends.get(conversation_stream.stream_of(name), Mark(0, ""))
        and name not in removed
        and not archive_store.find(place, name)
    ]


def examine_share(place: Path) -> list[Finding]:
    """Return what the server of a shared home shows of it; a server that cannot be reached is no damage."""
    try:
        share = ledgers.shared(place)
        if share and ledgers.is_tracked(place):
            return []  # the rest of doctor says so
        seen = _seen(place, share) if share else None
    except AetherError as reason:
        return [_refusal(reason)]
    if not share or not seen:
        return _examine_left(place)
    findings = [
        Finding("warning", "server", ledger.PLACE, f"{fault}.", "Ask the administrator of the server.")
        for fault in seen.about.get("faults", [])
    ]
    if not seen.about.get("checked", True):
        what = "the server has too many lines to look through: whether any are missing was not checked."
        findings.append(Finding("info", "unchecked", ledger.PLACE, what, "This is not a fault."))
    findings += seen.findings
    revision = load(place).revision
    replicas = [replica for replica in seen.about["replicas"] if replica["replica"] == share.replica]
    if (reached := max((replica["revision"] for replica in replicas), default=0)) > revision:
        what = f"a replica of this name has reached revision {reached}, and this home has {revision}: it is a copy, or was restored from one."
        fix = "It catches up with the next command. For a name of its own, join the colony in a new home."
        findings.append(Finding("info", "copied-replica", ledger.PLACE, what, fix))
    return findings


def _refusal(reason: AetherError) -> Finding:
    """Return why a shared home has nothing new from its server; that it cannot be reached is no damage."""
    if isinstance(reason, CorruptDocument):
        return failure(reason)
    if isinstance(reason, Conflict):
        return Finding("error", "other-history", ledger.PLACE, reason.what, reason.fix)
    if isinstance(reason, UnsafePath):
        what = f"nothing new arrives from the colony: {reason.what}"
        return Finding("warning", "refused", ledger.PLACE, what, reason.fix)
    if isinstance(reason, ledgers.Unusable):
        what = f"the server answers, and nothing comes from it or goes there: {reason.what}"
        return Finding("error", "unusable", ledger.PLACE, what, reason.fix)
    what = f"the colony cannot be asked for news: {reason.what}"
    return Finding("info", "unreachable", ledger.PLACE, what, reason.fix)


LISTED_MISSING = 10


def _examine_left(place: Path) -> list[Finding]:
    """Return what a home that has left its colony lacks of it."""
    with suppress(AetherError, OSError, KeyError, TypeError):
        about = files.parse_json(regular.read(place / LEFT), where=LEFT)
        missing = "; ".join(shown(str(part)) for part in list(about["missing"])[:LISTED_MISSING])
        what = f"this home has left the colony {shown(about['colony'])} without {missing}."
        fix = "To have it, join the colony in a new home; else remove the file."
        return [Finding("warning", "left-without", LEFT, what, fix)]
    return []


def troubles(place: Path) -> list[Finding]:
    """Return what keeps conversations, files or notes of hooks of a shared home from the colony, or those of others from it."""
    try:
        server = ledgers.of(place)
        findings = _examine_exchange(place, server, _apart(place, server)) if server else []
    except AetherError as reason:
        return [failure(reason)]
    return [finding for finding in findings if finding.level != "info"]


def failure(reason: AetherError) -> Finding:
    """Return an error as a finding."""
    return Finding("error", reason.code, reason.where, reason.what, reason.fix)


def _examine_exchange(place: Path, server: Colony, diverged: list[Apart]) -> list[Finding]:
    """Return what of conversations, files and notes of hooks the home could not take or send.

    `diverged` are the streams that it does not have as the server has them.

    Raises:
        StorageFailed, UnsafePath: as the server says.
    """
    findings = [
        Finding("error", "other-history", stream_state.stream, f"the server has another history of it: {stream_state.fault}", _OLDER)
        for stream_state in diverged
        if stream_state.fault
    ]  # fmt: skip
    apart = {finding.where for finding in findings}
    findings += [
        Finding("error", "unread-conversation", f"conversations/{name}", f"the colony has more of it: {why}", fix)
        for name, (why, fix) in sorted(_unread(place).items())
        if conversation_stream.stream_of(name) not in apart
    ]  # fmt: skip
    if lacking := shared_files.lacking(place):
        names = ", ".join(
            shown(key) + (f" (sent by {shown(member)})" if member else "")
            for key, member in islice(lacking.items(), 3)
        )
        what = f"{pluralize(len(lacking), 'files')} of the colony could not be taken: {names}."
        fix = f"Set {ledgers.FILES} if the colony keeps its files outside the database; then run aether fold."
        findings.append(Finding("warning", "lacking-files", ledger.PLACE, what, fix))
    is_reader = server.right == "read"
    try:
        _require_files(server)
    except AetherError as reason:
        findings.append(Finding("warning", "files-away", ledgers.FILES, reason.what, reason.fix))
    if unsent := shared_files.unsent(place, server):
        what = f"{pluralize(len(unsent), 'files')} of this home {'is' if len(unsent) == 1 else 'are'} not in the colony: {', '.join(map(shown, unsent[:3]))}."
        findings.append(
            Finding(
                "warning" if is_reader else "info",
                "unsent-files",
                ledger.PLACE,
                what,
                _WRITE if is_reader else _FOLD,
            )
        )
    if is_reader and (notes := spool.waiting(str(place))):
        what = f"{pluralize(len(notes), 'notes')} of hooks cannot be stored: the role may only read."
        findings.append(
            Finding(
                "warning",
                "unsent-notes",
                "hooks/spool/",
                what,
                f"{_WRITE} Or stop them: aether claude uninstall.",
            )
        )
    return findings


@public
def share_members(*, home: Home = None) -> list[JsonObject]:
    """Return the roles with a right in the colony of a shared home.

    Raises:
        NotFound: the home is not shared.
        StorageFailed, UnsafePath: the server cannot be used.
    """
    return [member._asdict() for member in _on_server(home, "members")]


@public
def share_grant(role: str, right: str, *, home: Home = None) -> None:
    """Give a role of the server a right in the colony of a shared home: `read`, `write` or `admin`.

    Raises:
        InvalidInput, NotFound: there is no such right or role, or the home is not shared.
        StorageFailed, UnsafePath: the server cannot be used.
    """
    _on_server(home, "grant", role, right)


@public
def share_revoke(role: str, *, home: Home = None) -> None:
    """Revoke the right of a role in the colony of a shared home.

    Raises:
        NotFound: it has none, or the home is not shared.
        StorageFailed, UnsafePath: the server cannot be used.
    """
    _on_server(home, "revoke", role)


@public
def share_remove(revision: int, *, home: Home = None) -> None:
    """Remove a line that no replica can read from the server of the colony; an admin may.

    Afterwards the server has the line without effect that the replicas have in its place.

    Raises:
        NotFound: this home has set no line of that revision aside, or is not shared.
        StorageFailed, UnsafePath: the server cannot be used, or your role is not an admin.
    """
    place = find(home)
    _require_shared(place)
    paths = {about["revision"]: path for path, about in set_aside(place)}
    if revision not in paths:
        what = f"this home has set no line {revision} aside."
        raise NotFound(what, fix='See "aether share status".', where=str(place))
    if server := ledgers.of(place):
        server.remove_line(revision)
        paths[revision].unlink(missing_ok=True)


@public
def update_share(*, home: Home = None, wait: float = 0.0) -> int:
    """Fetch what other replicas wrote, send what a shared home has for them, and return its revision.

    With `wait` it waits at most that many seconds for changes by others.

    Raises:
        NotFound: the home is not shared.
        StorageFailed, UnsafePath, Conflict, CorruptDocument: as the server says; the home is as it was.
    """
    place = find(home)
    _require_shared(place)
    if wait > 0 and (server := ledgers.of(place)):
        until, revision = time.monotonic() + wait, load(place).revision
        while server.head(JOURNAL) <= revision and (seconds := until - time.monotonic()) > 0:
            time.sleep(min(seconds, POLL_SECONDS))
    with write_lock(place):
        snapshot = catch_up(settle(load(place), now=now()), now=now())
        snapshot = fold(send_queue(snapshot, now(), insist=True), now=now())
    exchange(place)
    return snapshot.revision


def exchange(place: Path) -> None:
    """Exchange with the colony of a shared home what is not in its journal: files and conversations.

    From time to time the base is made again from which new replicas start.

    Raises:
        StorageFailed, UnsafePath, Conflict, CorruptDocument: as the server says; some may be newer than before.
    """
    server = ledgers.of(place)
    if server is None:
        return
    blobs, is_incomplete = _blobs(server), True
    try:
        while is_incomplete:
            with write_lock(place):
                is_incomplete = shared_files.exchange(place, server, blobs, now=now())
    finally:  # the files may be in another place, which cannot be reached
        _fill_conversations(server, place)
    senders.senders(load(place), member=server.member)
    if shared_base.needs_another(server, load(place).revision):
        with write_lock(place):
            shared_base.set_base(server, blobs, fold(settle(load(place), now=now()), now=now()))


def colony_lines(place: Path, revisions: list[int]) -> dict[int, bytes]:
    """Return those lines of the journal that the colony of a shared home has, by their revisions.

    Raises:
        StorageFailed, UnsafePath, Conflict, CorruptDocument: as the server says.
    """
    server = ledgers.of(place)
    return as_taken(place, shared_base.lines_of(server, _blobs(server), revisions)) if server else {}


def _fill_conversations(server: Colony, place: Path) -> None:
    """Take what other replicas added to conversations, but for those that are archived or removed.

    One that cannot be taken stops no other: it is noted, and tried again the next time.
    """
    unread, stream_ends = dict[str, list[str]](), server.ends()
    for name in _unequal(place, stream_ends):
        stream = conversation_stream.stream_of(name)
        try:
            shared_files.fill(place, stream, server, stream_ends.get(stream, Mark(0, "")).revision, now())
        except LockTimeout:
            continue  # another process writes there: the next time
        except AetherError as reason:
            if isinstance(reason, StorageFailed):
                server.head(stream)  # it is the server that fails, unless it answers
            unread[name] = [reason.what, reason.fix]
    if unread != _unread(place):
        files.save(place / UNREAD, files.json_document(unread))


def _unread(place: Path) -> dict[str, list[str]]:
    """Return the conversations of the colony that a home could not take, each with the reason and what to do."""
    with suppress(AetherError, OSError, TypeError, ValueError, AttributeError):
        stored = files.parse_json(regular.read(place / UNREAD), where=UNREAD)
        return {name: [str(what), str(fix)] for name, (what, fix) in stored.items()}
    return {}


def _blobs(server: Colony) -> Blobs:
    """Return where the blobs of the colony are: in its ledger, or where `AETHER_SHARE_FILES` says."""
    storage_url = os.environ.get(ledgers.FILES, "")
    if not storage_url:
        return Blobs(server.put_blob, partial(_blob_of, server), server.drop_blob)
    target, identity, placed = named_files(storage_url), server.identity, list[bool]()

    def require_place() -> None:
        if not placed:
            _require_place(server, target)
            placed.append(True)

    def put(data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        require_place()
        if not target.has(f"{identity}/{name}"):
            target.put(f"{identity}/{name}", data)
        return name

    def get(name: str) -> bytes:
        try:
            return target.get(f"{identity}/{name}", regular.DOCUMENT_BYTES)
        except NotFound:  # from before the place was named
            return _blob_of(server, name)

    def drop(name: str) -> None:
        require_place()
        if name not in shared_base.parts(server):
            target.remove(f"{identity}/{name}")
        server.drop_blob(name)

    return Blobs(put, get, drop)


def _has_blob(server: Colony, name: str) -> bool:
    try:
        server.get_blob(name)
    except NotFound:
        return False
    return True


def _blob_of(server: Colony, name: str) -> bytes:
    try:
        return server.get_blob(name)
    except NotFound:
        if not server.head(ledgers.PLACED):
            raise
        what = f"the blob {name} is not in the database: this colony keeps its files elsewhere."
        fix = f"Set {ledgers.FILES} as on its other machines, and mount the file system."
        raise NotFound(what, fix=fix, where=server.colony) from None


def _require_place(server: Colony, target: NamedFiles) -> None:
    """Check that the files of a colony are where `AETHER_SHARE_FILES` says; the first who puts some makes the place.

    A place has a mark, or a part of the base. Earlier releases made no mark, and what they put is not in the database.

    Raises:
        StorageFailed: they are not, as in the empty directory of a file system that is not mounted.
    """
    mark, is_placed = f"{server.identity}/{ledgers.PLACED}", server.head(ledgers.PLACED) > 0
    if not target.has(mark):
        parts = shared_base.parts(server)
        is_there = any(target.has(f"{server.identity}/{part}") for part in parts)
        if not is_there and (is_placed or not all(_has_blob(server, part) for part in parts)):
            _require_mark(target, mark)
        target.put(mark, WHOLE)
    if not is_placed:
        server.append_if(ledgers.PLACED, Mark(0, ""), [WHOLE])


def _require_mark(target: NamedFiles, mark: str) -> None:
    if not target.has(mark):
        what = "the files of the colony are not there, and nothing was put."
        fix = f"Mount the file system, or correct {ledgers.FILES}."
        raise StorageFailed(what, fix=fix, where=target.where(mark))


def _require_files(server: Colony) -> None:
    """Check that the place of the files of a colony is there, if it has one; nothing is made.

    Raises:
        NotFound: this machine does not know it.
        StorageFailed, InvalidInput, BackendUnavailable: it is not there, or cannot be used.
    """
    if not server.head(ledgers.PLACED):
        return
    storage_url = os.environ.get(ledgers.FILES, "")
    if not storage_url:
        fix = f"Set {ledgers.FILES} as on its other machines."
        what = f"the colony keeps its files outside the database, and {ledgers.FILES} does not say where."
        raise NotFound(what, fix=fix, where=server.colony)
    _require_mark(named_files(storage_url), f"{server.identity}/{ledgers.PLACED}")


def _on_server(home: Home, verb: str, *arguments: str) -> Any:
    place = find(home)
    share, url = _require_shared(place), ledgers.url()
    ledgers.of(place)  # the server may have another colony of its name
    return getattr(ledgers.module(url), verb)(url, share.colony, *arguments)


def _require_shared(place: Path) -> Share:
    current = ledgers.shared(place)
    if current is None:
        fix = "Share it with: aether share init URL COLONY."
        raise NotFound("this home is not shared.", fix=fix, where=str(place))
    return current


def _send_conversations(server: Colony, place: Path) -> None:
    for stored in conversations.stored_conversations(place):
        with conversations.held(place, stored.id) as data:
            shared_files.send_stream(
                server, conversation_stream.stream_of(stored.id), data.splitlines(keepends=True)
            )


def _require_alone(place: Path, *, besides: str = "") -> None:
    """Check that the home is in no colony, but for one that it may be in the middle of making."""
    current = ledgers.shared(place)
    if current and current.colony != besides:
        what = f"this home is a replica of the colony {shown(current.colony)} already."
        raise Conflict(what, fix="Leave it with: aether share leave.", where=str(place))


def _created(address: str, name: str, replica: str, home: Path) -> Colony:
    """Return the ledger of a new colony, or of the one that a killed process was making of `home`.

    Raises:
        Conflict: there is another colony of this name, or another home is being made one.
    """
    conflict = None
    try:
        server = ledgers.created(address, name)
    except Conflict as reason:
        server, conflict = ledgers.opened(address, name, replica=replica), reason
    is_ours = False
    try:
        is_ours = shared_base.is_of(server, home) if server.head(ledgers.READY) else _claimed(server, home)
    finally:
        if not is_ours:
            server.close()
    if not is_ours:
        what = "another home is being shared as a colony of this name."
        raise conflict or Conflict(what, fix="Use another name.", where=name)
    return server


def _claimed(server: Colony, home: Path) -> bool:
    """Return whether a colony that nobody can join yet is made of `home`; the first home that asks has it."""
    path = home / CLAIM
    with files.storage_errors(path):
        if not path.exists():
            files.save(path, seal_json({"claim": os.urandom(16).hex()}))
        line = regular.read(path)
    claims = server.read_after(ledgers.CLAIM, Mark(0, ""), limit=1).lines
    if not claims and shared_base.is_of(server, home):  # an earlier release has made the base without a claim
        answer = server.append_if(ledgers.CLAIM, Mark(0, ""), [line])
        claims = [line] if answer.done else answer.lines[:1]
    # What lost its claim, as a home restored from a backup, is known by its history.
    return claims == [line] or (shared_base.read(server) is not None and shared_base.is_of(server, home))


def _upgraded(address: str, share: Share, home: Path) -> bool:
    """Return whether the server of a replica had older tables, which were upgraded; False if its colony is not whole yet.

    Raises:
        Conflict: there is nothing to upgrade, or this is another server than that of its colony.
    """
    server, upgraded = ledgers.opened(address, share.colony, replica=share.replica), False
    try:
        try:
            identity = server.identity
        except ledgers.OldTables:
            ledgers.module(address).upgrade(server)
            upgraded, identity = True, server.identity
        if identity != share.identity:
            what = f"this home is a replica of another colony of the name {shown(share.colony)}."
            fix = "Name the server of its colony, or leave that with: aether share leave."
            raise Conflict(what, fix=fix, where=str(home))
        if not server.head(ledgers.READY):
            return False
    finally:
        server.close()
    if not upgraded:
        what = f"this home is a replica of the colony {shown(share.colony)} already, and the tables of its server are those of this aether."
        raise Conflict(what, fix="Nothing is left to do; aether share leave leaves it.", where=str(home))
    return True


def _require_history(server: Colony, snapshot: Snapshot) -> None:
    """Check that a colony has the history of a home up to its last line.

    Raises:
        Conflict: it has less, or another one.
    """
    try:
        server.read_after(JOURNAL, mark_of(snapshot), limit=1)
    except Conflict as reason:
        fix = "Use another name, or join the colony in a new home."
        raise Conflict(reason.what, fix=fix, where=reason.where) from None


def _temporary(place: Path) -> Path:
    """Return a name beside the home at `place` for one that is made, after removing what killed processes left there."""
    for leftover in place.parent.glob(f"{place.name}.*{files.TEMP_SUFFIX}"):
        with suppress(OSError):
            if leftover.is_dir() and time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)
    return place.with_name(f"{place.name}.{os.urandom(6).hex()}{files.TEMP_SUFFIX}")


@contextmanager
def _in_making(place: Path) -> Iterator[Path]:
    """Yield the place of a home that is made, and give it its name when it is whole; else it is removed."""
    new = _temporary(place)
    with files.storage_errors(place):
        files.make_directory(new / "data")
        try:
            regular.create(new / ".gitignore", b"*\n")
            yield new
            os.rename(new, place)
            files.sync_directory(place.parent)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise


def _filled(home: Path, server: Colony, blobs: Blobs) -> Snapshot:
    """Fill the empty `home` with the newest base of its colony and the lines after it, folded."""

    def read(mark: Mark) -> list[bytes]:
        return checked_news(home, server.read_after(JOURNAL, mark, limit=LINES)).lines

    if not shared_base.fill(home, server, blobs):
        files.write_whole(journal_path(home), journal_header(0))
    with write_lock(home):
        snapshot = load(home)
        if not snapshot.revision:
            snapshot = take_in(snapshot, read(Mark(0, "")))
        snapshot = fold(settle(snapshot, now=now()), now=now())
        while lines := read(mark_of(snapshot)):
            snapshot = take_in(snapshot, lines)
            if snapshot.end > FOLD_BYTES:
                snapshot = fold(snapshot, now=now())
        return fold(snapshot, now=now())
