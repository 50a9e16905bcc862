"""PostgreSQL as the ledger of shared colonies: `ledgers.Colony` over `psycopg`, migrations, members and their rights.

The work is done by the functions of `data/postgres/*.sql`, one round trip for each call, and without any state of the
session, so that a pooler in transaction mode works. Connections are made when they are needed and are kept by the ledger:
the pool of `psycopg` starts threads, and it hides why a server refuses.

The address and the password come from the caller and from libpq's own sources (`PG*`, service file, `.pgpass`). No error
shows a password. Connections to other machines verify the server's certificate and name unless `sslmode` says otherwise.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

from aether import clock
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
    packages_of,
    require_one_of,
    shown,
)
from aether.paths import resource
from aether.sharing.ledgers import OldTables, Unsettled, Unusable, require_name
from aether.store.ledger import JOURNAL, Appended, Mark, News

RIGHTS = ("read", "write", "admin")
# The oldest version of PostgreSQL that the tests run.
OLDEST_SERVER = 14
# A home may read a line of so many bytes at once with others; a longer one is read alone.
READ_BYTES = 8_000_000
# The server ends the turn of a writer that plans for longer.
TURN_SECONDS = 5.0
# The share of the timeout in which the server looks through all lines of a colony; a large one has too many.
LOOK_SHARE = 0.3
# How often a replica is recorded as seen.
SEEN_SECONDS = 10.0
FIRST_WAIT_SECONDS = 0.02
LONGEST_WAIT_SECONDS = 0.5
READ_LINES = 1000
# What moves megabytes, or makes tables, may take longer than an answer.
LONG_SECONDS = 120.0
# Connections of the parent of a forked process: they are its own, and collecting them must not end its sessions.
_INHERITED: list[Any] = []
_UPGRADE = "Upgrade aether on this machine: pip install --upgrade '.[postgres]' in a clone of aether."
_INIT = "Let the owner of the database run: aether share init URL COLONY."
_OWNER = "Let who owns the database and its tables run it, with a role that may create roles: aether share init URL COLONY."
_ASK = "Ask an admin of the colony for the right: aether share members ROLE RIGHT."
_REFUSED = "Set the clock of this machine, if it is ahead; else report this. Nothing was stored."
_QUOTA = "Remove snapshots; or let the owner of the database raise the column quota of aether.colonies."
_LOG = "See the log of the server."
_TLS = "Name the authority of the server's certificate by sslrootcert, and the host as the certificate does."
_NO_TLS = "Switch TLS on at the server (ssl = on); without it nothing is sent to another machine."
_UNREACHABLE = "Check the address, the server and the network."
_RESTORE = "It may be restored in part: restore the database from a complete backup."


# Who makes a colony is its admin, but for a superuser, who needs no right.
_WITHOUT_ADMIN = """select 1 from aether.colonies c where c.colony = %s
    and not exists (select from aether.members m where m.colony = c.colony and m."right" = 'admin')
    and not exists (select from pg_roles r where r.rolname = c.made_by and r.rolsuper)"""


class Member(NamedTuple):
    """A role of the database with a right in a colony."""

    role: str
    right: str
    replicas: int
    """How many replicas have been used with this role."""
    last_seen: str
    """When one of them was last seen, in UTC; empty if none was."""


class _Colony(NamedTuple):
    """A colony as the server knows it, for the role of this connection."""

    number: int
    identity: str
    right: str
    member: str


def open_ledger(url: str, colony: str, *, replica: str, timeout: float = 10.0) -> PostgresLedger:
    """Return the ledger of `colony` on the server at `url`, for the replica of this name; nothing is connected yet.

    Raises:
        BackendUnavailable: psycopg is not installed.
        InvalidInput: this is not a PostgreSQL address.
    """
    return PostgresLedger(url, colony, replica=replica, timeout=timeout)


def create_colony(url: str, colony: str, *, timeout: float = 10.0) -> PostgresLedger:
    """Make `colony` on the server, and before it what is missing of aether's tables; return its ledger.

    Raises:
        Conflict: the server has a colony of this name.
        UnsafePath: the role may not make tables or colonies.
        StorageFailed: the server cannot be used; nothing was made.
    """
    if not colony.strip():
        raise InvalidInput("a colony needs a name.", fix="Name it.", where="colony")
    require_name(colony, what="name of a colony")
    ledger = open_ledger(url, colony, replica="", timeout=timeout)
    try:
        upgrade(ledger)
        with ledger.connected(greet=False) as connection:
            connection.execute("select aether.create_colony(%s)", (colony,))
    except BaseException as reason:
        ledger.close()
        if not isinstance(reason, Conflict):
            raise
        what = "there is a colony of this name already."
        raise Conflict(
            what, fix="Join it with aether share join, or use another name.", where=ledger.where
        ) from None
    return ledger


def upgrade(ledger: PostgresLedger) -> None:
    """Apply the migrations that the database does not have, and make the functions of their version: all or none.

    Raises:
        StorageFailed: its version is newer than this aether, or that of a preview that no migration starts from.
        UnsafePath: the role may not change the schema.
    """
    steps, changes = migrations(), False
    try:
        with ledger.connected(greet=False, seconds=LONG_SECONDS) as connection, connection.transaction():
            # Whoever is second waits, and finds them applied.
            connection.execute("select pg_advisory_xact_lock(hashtext('aether migrations'))")
            table = connection.execute("select to_regclass('aether.migrations')::text").fetchone()
            if table == (None,):
                changes = True
                connection.execute("create schema if not exists aether")
                connection.execute(
                    "create table aether.migrations (version integer primary key, name text not null, "
                    "at timestamptz not null default clock_timestamp())"
                )
            (version,) = connection.execute(
                "select coalesce(max(version), 0) from aether.migrations"
            ).fetchone() or (0,)
            if version > max(steps) or 0 < version < min(steps):
                _require_version(version, ledger.where)
            for number, path in steps.items():
                if number > version:
                    connection.execute(path.read_bytes())
                    connection.execute("insert into aether.migrations values (%s, %s)", (number, path.stem))
            if version < max(steps):
                changes = True
                connection.execute(resource("data/postgres/functions.sql").read_bytes())
    except UnsafePath as reason:
        if not changes:
            raise
        raise UnsafePath(reason.what, fix=_OWNER, where=reason.where) from None


def migrations() -> dict[int, Path]:
    """Return the files of the migrations by the version that each makes; those of previews are in the first one.

    What a line of the journal may hold belongs to a version too: a release that adds to it adds a migration, because a
    replica with the tables of that version sets aside what it cannot read.
    """
    return {int(path.stem[:4]): path for path in sorted(resource("data/postgres").glob("[0-9]*.sql"))}


def members(url: str, colony: str, *, timeout: float = 10.0) -> list[Member]:
    """Return the roles that have a right in `colony`, by name.

    Raises:
        UnsafePath: the role has no right there.
        StorageFailed: the server cannot be used.
    """
    with _administered(url, colony, timeout) as ledger:
        rows = ledger.rows(
            """select m.role, m."right", count(r.replica), max(r.seen_at) from aether.members m
            left join aether.replicas r on r.colony = m.colony and r.role = m.role
            where m.colony = %s group by m.role, m."right" order by m.role""",
            ledger.number,
        )
        return [Member(role, right, count, _utc(seen)) for role, right, count, seen in rows]


def grant(url: str, colony: str, role: str, right: str, *, timeout: float = 10.0) -> None:
    """Give `role` of the database a right in `colony`; it replaces the one that the role has.

    Raises:
        InvalidInput: there is no such right.
        NotFound: there is no such role; aether makes none, and never sees a password.
        UnsafePath: the own role is no admin of the colony.
        StorageFailed: the server cannot be used.
    """
    require_one_of(right, RIGHTS, "a right", where="right")
    with _administered(url, colony, timeout) as ledger:
        ledger.call("select aether.grant_right(%s, %s, %s)", ledger.number, role, right)


def revoke(url: str, colony: str, role: str, *, timeout: float = 10.0) -> None:
    """Take the right of `role` in `colony`, from its next call on.

    Raises:
        NotFound: it has none.
        UnsafePath: the own role is no admin of the colony.
        StorageFailed: the server cannot be used.
    """
    with _administered(url, colony, timeout) as ledger:
        if ledger.call("select aether.revoke_right(%s, %s)", ledger.number, role) != (True,):
            what = f"the role {shown(role)} has no right in this colony."
            raise NotFound(what, fix='See "aether share members".', where=ledger.where)


def status(url: str, colony: str, *, timeout: float = 10.0) -> dict[str, Any]:
    """Return what the server knows of `colony`: versions, heads, replicas, and faults that a restored backup may have.

    Raises:
        UnsafePath: the role has no right there.
        StorageFailed: the server cannot be used.
    """
    with _administered(url, colony, timeout) as ledger:
        number = ledger.number
        (server, synced, safe, fixed), *_ = ledger.rows(
            "select current_setting('server_version'), current_setting('fsync')::boolean, "
            "current_setting('full_page_writes')::boolean, current_setting('transaction_read_only')::boolean"
        )
        (streams, lines), *_ = ledger.rows(
            "select count(*), coalesce(sum(head - start), 0)::bigint from aether.streams where colony = %s",
            number,
        )
        replicas = ledger.rows(
            "select replica, role, revision, seen_at from aether.replicas where colony = %s order by replica",
            number,
        )
        found = ledger.faults()
        faults = found or []
        if not (synced and safe):
            faults.append(
                "the server runs without fsync or full_page_writes: a crash loses acknowledged lines"
            )
        if fixed:
            faults.append("the server is read-only, or a standby: nothing can be written there")
        if ledger.rows(_WITHOUT_ADMIN, number):
            faults.append("no role is an admin of the colony: only the owner of its tables can give rights")
        return {
            "server_version": server,
            "schema_version": max(migrations()),
            "colony": colony,
            "identity": ledger.identity,
            "right": ledger.right,
            "head": ledger.head(JOURNAL),
            "streams": streams,
            "lines": lines,
            "replicas": [
                {"replica": name, "role": role, "revision": revision, "seen_at": _utc(seen)}
                for name, role, revision, seen in replicas
            ],
            "faults": faults,
            "checked": found is not None,
        }


@contextmanager
def _administered(url: str, colony: str, timeout: float) -> Iterator[PostgresLedger]:
    ledger = open_ledger(url, colony, replica="", timeout=timeout)
    try:
        yield ledger
    finally:
        ledger.close()


def _utc(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if at else ""


class PostgresLedger:
    """A `ledgers.Colony` in a database of PostgreSQL."""

    def __init__(self, url: str, colony: str, *, replica: str, timeout: float) -> None:
        self._driver = _psycopg()
        self._address = _address(url, timeout)
        self.where = f"{_shown_address(self._address)}, colony {colony}"
        self.colony = colony
        self.replica = replica
        self.timeout = timeout
        self._found: _Colony | None = None
        self._seen = 0.0
        self._start()

    def _start(self) -> None:
        self._idle: list[Any] = []
        self._greeted: WeakSet[Any] = WeakSet()
        self._turns = threading.local()
        self._pid = os.getpid()

    @property
    def identity(self) -> str:
        """The identity of the colony; it is asked for when it is first needed."""
        return self._known().identity

    @property
    def right(self) -> str:
        """The right of the own role: read, write or admin."""
        return self._known().right

    @property
    def member(self) -> str:
        """The own role, as the server knows it."""
        return self._known().member

    @property
    def number(self) -> int:
        """The number of the colony in the tables."""
        return self._known().number

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream; 0 if nobody has appended to it."""
        return int(self.call("select head from aether.head(%s, %s)", self.number, stream)[0] or 0)

    def ends(self, prefix: str = "") -> dict[str, Mark]:
        """Return the end of every stream whose name starts with `prefix`; to compare with, it may not be durable yet."""
        rows = self.rows("select * from aether.heads(%s, %s)", self.number, prefix)
        return {
            name: Mark(head, (checksum or b"").decode("ascii", "replace")) for name, head, checksum in rows
        }

    def read_after(self, stream: str, mark: Mark, *, limit: int = READ_LINES) -> News:
        """Return at most `limit` lines after `mark`, oldest first, without a gap; only lines that are durable.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            StorageFailed: the server cannot be used, or lines are missing there.
        """
        statement = "call aether.read_after(%s, %s, %s, %s, %s, %s, null, null)"
        head, lines = self.call(
            statement, self.number, stream, mark.revision, mark.checksum, limit, READ_BYTES
        )
        if stream == JOURNAL and self.replica and time.monotonic() - self._seen > SEEN_SECONDS:
            self._seen = time.monotonic()
            with suppress(AetherError):  # only `share status` misses it
                self.call("select aether.seen(%s, %s, %s)", self.number, self.replica, mark.revision)
        return News(head, lines)

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none; return when they are durable.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            Unsettled: it was sent, and the server could not be asked again whether it was stored.
            StorageFailed, UnsafePath: nothing was stored.
        """
        arguments = (
            self.number, stream, mark.revision, mark.checksum, list(lines), self._wait_ms()
        )  # fmt: skip
        self._leave_parents()
        turn = getattr(self._turns, "of", {}).pop(stream, None)
        try:
            if turn:
                return self._append_in_turn(turn, arguments)
            with self.connected() as connection:
                return _append(connection, arguments)
        except _LostAnswer as lost:
            with self._waiting():
                return self._settled(arguments, lost)

    @contextmanager
    def turn(self, stream: str, mark: Mark) -> Iterator[News]:
        """Keep other writers of a stream waiting during the block, and yield what is new since `mark`.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            StorageFailed: the server cannot be used, or others had their turns for longer than the timeout.
        """
        number = self.number
        with self.connected(seconds=self.timeout + TURN_SECONDS) as connection:
            # Statements in one message: one round trip.
            cursor = self._driver.ClientCursor(connection).execute(
                "begin; select * from aether.take_turn(%s, %s, %s, %s, %s, %s, %s, %s)",
                (number, stream, mark.revision, mark.checksum, READ_LINES, READ_BYTES, self._wait_ms(),
                 int(TURN_SECONDS * 1000)),
            )  # fmt: skip
            cursor.nextset()
            head, lines = cursor.fetchone()
            if lines:
                self.call("select aether.sync()")  # by another connection: this one must not commit yet
            turns = self._turns.__dict__.setdefault("of", {})
            turns[stream] = connection
            try:
                yield News(head, lines)
            finally:
                turns.pop(stream, None)

    def put_blob(self, data: bytes) -> str:
        """Keep `data`, once, and return its name: the SHA-256 of the bytes, in hexadecimal."""
        name = hashlib.sha256(data).hexdigest()
        query = "select 1 from aether.blobs where colony = %s and name = %s"
        if not self.rows(query, self.number, name):
            self.call("select aether.put_blob(%s, %s)", self.number, data, seconds=LONG_SECONDS)
        return name

    def get_blob(self, name: str) -> bytes:
        """Return the bytes of that name, checked against it.

        Raises:
            NotFound: there are none.
            CorruptDocument: they are others.
        """
        data = self.call("select aether.get_blob(%s, %s)", self.number, name, seconds=LONG_SECONDS)[0]
        if data is None:
            raise NotFound(f"there is no blob {shown(name)}.", fix=_RESTORE, where=self.where)
        if hashlib.sha256(data).hexdigest() != name:
            raise CorruptDocument(f"the blob {name} is damaged.", fix=_RESTORE, where=self.where)
        return bytes(data)

    def drop_blob(self, name: str) -> None:
        """Remove the bytes of that name, if they are there and belong to no snapshot of a stream."""
        self.call("select aether.drop_blob(%s, %s)", self.number, name)

    def set_base(self, stream: str, mark: Mark, blob: str, parts: Sequence[str] = ()) -> str | None:
        """Let an empty stream start after `mark`, or record a newer snapshot of one with lines; return the blob before.

        The blobs `parts` of a snapshot cannot be dropped while it is the newest. None if there is a newer one already.

        Raises:
            NotFound: there is no such blob.
            Conflict: the stream has no such revision.
        """
        (replaced,) = self.call(
            "select aether.set_base(%s, %s, %s, %s, %s, %s, %s)", self.number, stream, mark.revision,
            mark.checksum, blob, list(parts), self._wait_ms(),
        )  # fmt: skip
        return None if replaced is None else str(replaced)

    def base(self, stream: str) -> tuple[int, str]:
        """Return the newest snapshot of a stream: its revision and its blob; 0 and nothing without one."""
        revision, blob = self.call("select base, blob from aether.head(%s, %s)", self.number, stream)
        return int(revision or 0), str(blob or "")

    def remove_line(self, revision: int) -> None:
        """Put in the place of a line of the journal the one that replicas make of it if they cannot read it.

        Raises:
            NotFound: there is no such line.
        """
        if self.call("select aether.remove_line(%s, %s)", self.number, revision) != (True,):
            what = f"the colony has no line {revision}."
            raise NotFound(what, fix='See "aether share status".', where=self.where)

    def faults(self) -> list[str] | None:
        """Return what a complete backup would have and the server does not; None if there is too much to look through."""
        number = self.number
        with self.connected() as connection:
            try:
                with connection.transaction():
                    connection.execute(
                        f"set local statement_timeout = {int(self.timeout * LOOK_SHARE * 1000)}"
                    )
                    return [
                        fault for (fault,) in connection.execute("select * from aether.faults(%s)", (number,))
                    ]
            except self._driver.errors.QueryCanceled:
                return None

    def close(self) -> None:
        """Give the connections back."""
        self._leave_parents()
        self._drop_idle()

    def __del__(self) -> None:
        """Close what its user has forgotten; at the end of the process nothing is left to do it with."""
        try:  # noqa: SIM105 - `suppress` may be missing by then
            self.close()
        except Exception:  # noqa: BLE001, S110 - nobody could be asked
            pass

    def call(self, statement: str, *arguments: object, seconds: float = 0.0) -> tuple[Any, ...]:
        """Return the one row that a statement gives, as `rows`."""
        return self.rows(statement, *arguments, seconds=seconds)[0]

    def rows(self, statement: str, *arguments: object, seconds: float = 0.0) -> list[tuple[Any, ...]]:
        """Return the rows that a statement gives; where its answer was lost it is sent again, so it must bear that."""
        try:
            with self.connected(seconds=seconds) as connection:
                return list(connection.execute(statement, arguments, binary=True))
        except _LostAnswer:
            self._drop_idle()  # the server was restarted: they are closed, all of them
            with self.connected(seconds=seconds) as connection:
                return list(connection.execute(statement, arguments, binary=True))

    @contextmanager
    def connected(self, *, greet: bool = True, seconds: float = 0.0) -> Iterator[Any]:
        """Lend a connection to the server for the block, and turn what it raises into our errors.

        Raises:
            StorageFailed, UnsafePath, Conflict, NotFound: as the server says.
        """
        self._leave_parents()
        try:
            connection = self._idle.pop()
        except IndexError:
            with self._waiting():
                connection = self._connect()
        try:
            with (
                self._waiting(),
                self._failures(connection),
                _broken_after(connection, seconds or self.timeout),
            ):
                if greet and connection not in self._greeted:
                    self._greet(connection)
                yield connection
        finally:
            self._give_back(connection)

    def _waiting(self) -> AbstractContextManager[None]:
        return clock.waiting_for(lambda: f"the server {self.where}")

    def _connect(self) -> Any:
        try:
            made = self._driver.connect(**self._address, autocommit=True, prepare_threshold=None)
        except self._driver.Error as reason:
            raise self._unreachable(str(reason)) from None
        if (version := made.info.server_version // 10000) < OLDEST_SERVER:
            made.close()
            what = f"the server has version {version}, and aether needs {OLDEST_SERVER} or newer."
            raise Unusable(what, fix="Upgrade it, or name another server.", where=self.where)
        return made

    def _unreachable(self, reason: str) -> AetherError:
        """Return the error of a connection that could not be made; libpq gives only words for it."""
        password = self._address.get("password")
        words = " ".join(reason.replace(password, "***").split() if password else reason.split())
        if any(part in words for part in _REFUSALS):
            fix = "Check the role and its password: in the URL, PGPASSWORD, the service file or .pgpass."
            return UnsafePath(
                _sentence("the server refuses the connection", words), fix=fix, where=self.where
            )
        if "certificate" in words or "SSL" in words:
            fix = _NO_TLS if "does not support SSL" in words else _TLS
            return StorageFailed(_sentence("no verified connection", words), fix=fix, where=self.where)
        return StorageFailed(_sentence("cannot be reached", words), fix=_UNREACHABLE, where=self.where)

    def _greet(self, connection: Any) -> None:
        """Ask what this connection leads to: the version of the schema, the colony, and whether a pooler is between."""
        try:
            (found,) = _row(connection, "select aether.hello(%s, %s)", (self.colony, self.replica))
        except (self._driver.errors.InvalidSchemaName, self._driver.errors.UndefinedFunction):
            what = "this database has no tables of aether, or not all of them."
            raise Unusable(what, fix=_INIT, where=self.where) from None
        except self._driver.DatabaseError as reason:
            # Older functions take the partitions of a table for what a backup left.
            if reason.sqlstate == "AE003":
                (version,) = _row(connection, "select max(version) from aether.migrations", ())
                if version:
                    _require_version(version, self.where)
            raise
        _require_version(found["version"], self.where)
        if found["colony"] is None:
            if found["owner"]:
                raise NotFound("there is no such colony.", fix=_INIT, where=self.where)
            what = "there is no such colony, or the role has no right in it."
            raise UnsafePath(what, fix=_ASK, where=self.where)
        colony = _Colony(found["colony"], found["identity"], found["right"], found["member"])
        if self._found and self._found.identity != colony.identity:
            what = "this is another colony of the same name than before."
            raise Conflict(what, fix="Share this home again, or join the new colony.", where=self.where)
        self._found = colony
        self._greeted.add(connection)

    def _known(self) -> _Colony:
        if self._found is None:
            with self.connected() as connection:
                self._greet(connection)  # again, where `upgrade` has made the connection
        return self._found  # type: ignore[return-value]  # a greeting finds it, or raises

    def _give_back(self, connection: Any) -> None:
        status, states = connection.info.transaction_status, self._driver.pq.TransactionStatus
        if status in (states.INTRANS, states.INERROR):
            with suppress(self._driver.Error):
                connection.execute("rollback")
                status = connection.info.transaction_status
        if status == states.IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _leave_parents(self) -> None:
        """Let a forked child leave the connections of its parent as they are, and make its own."""
        if self._pid != os.getpid():
            _INHERITED.extend([self._idle, self._turns])
            self._start()

    @contextmanager
    def _failures(self, connection: Any) -> Iterator[None]:
        """Turn an error of the driver in the block into ours."""
        try:
            yield
        except UnicodeEncodeError as reason:
            what = "a name has half of a surrogate pair."
            raise InvalidInput(what, fix="Use another one.", where=self.where) from reason
        except self._driver.Error as reason:
            said = " ".join((reason.diag.message_primary or str(reason)).split())
            states = self._driver.pq.TransactionStatus
            broken = connection.info.transaction_status in (states.UNKNOWN, states.ACTIVE)
            if broken or reason.sqlstate in _CANCELED:
                raise _LostAnswer(
                    _sentence("the answer was lost", said), fix=_UNREACHABLE, where=self.where
                ) from reason
            kind, what, fix = _REASONS.get(reason.sqlstate or "", (StorageFailed, "the server refuses", _LOG))
            raise kind(_sentence(what, said), fix=fix, where=self.where) from reason

    def _append_in_turn(self, connection: Any, arguments: tuple[Any, ...]) -> Appended:
        """Append in the transaction that has the turn, and end it."""
        with self._failures(connection), _broken_after(connection, self.timeout):
            cursor = self._driver.ClientCursor(connection).execute(
                "select * from aether.append_lines(%s, %s, %s, %s, %s::bytea[], %s); "
                "commit; select aether.sync()",
                arguments,
            )
            done, head, lines = cursor.fetchone()
        return Appended(done, head, lines or [])

    def _settled(self, arguments: tuple[Any, ...], lost: _LostAnswer) -> Appended:
        """Return what became of lines whose answer was lost.

        They are sent again. If they had been stored, or are stored while this is asked, the mark is no longer the end, and
        the lines after it are these: no other line has these bytes. A second copy is never stored.
        """
        until, pause = time.monotonic() + self.timeout, FIRST_WAIT_SECONDS
        last: AetherError = lost
        self._drop_idle()
        while time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_WAIT_SECONDS)
            try:
                with self.connected() as connection:
                    answer = _append(connection, arguments)
            except (StorageFailed, UnsafePath) as reason:
                last = reason
                continue
            if answer.lines and all(a == b for a, b in zip(answer.lines, arguments[4], strict=False)):
                return Appended(True, answer.head, [])
            return answer
        what = f"lines were sent, and it is not known whether they are stored: {last.what}"
        raise Unsettled(what, fix=last.fix, where=self.where) from last

    def _wait_ms(self) -> int:
        return max(1, int(self.timeout * 900))  # the server gives up first, and says why


class _LostAnswer(StorageFailed):
    """The connection broke, or no answer came in time, after something was sent."""


def _sentence(what: str, said: str) -> str:
    """Return what happened, with the words of the driver, as one sentence.

    >>> _sentence("cannot be reached", "is the server running?")
    'cannot be reached: is the server running?'
    """
    return f"{what}: {said}" if said.endswith(("?", ".", "!")) else f"{what}: {said}."


def _row(connection: Any, statement: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    (row,) = connection.execute(statement, arguments, binary=True)
    return row  # type: ignore[no-any-return]


def _append(connection: Any, arguments: tuple[Any, ...]) -> Appended:
    done, head, lines = _row(
        connection, "call aether.append(%s, %s, %s, %s, %s::bytea[], %s, null, null, null)", arguments
    )
    return Appended(done, head, lines or [])


# Why a server refuses, by the SQLSTATE: our error, what it means, and what to do.
_REASONS: dict[str, tuple[type[AetherError], str, str]] = {
    "AE001": (UnsafePath, "the server refuses", _ASK),
    "42501": (UnsafePath, "the server refuses", _ASK),
    "AE002": (
        Conflict,
        "the ledger has another history than this replica",
        "The server was restored from an older backup, or this replica was: see docs/shared.md.",
    ),
    "AE003": (Unusable, "the tables of aether are incomplete", _RESTORE),
    "42P01": (Unusable, "the tables of aether are incomplete", _RESTORE),
    "42883": (Unusable, "the tables of aether are incomplete", _RESTORE),
    "25006": (
        StorageFailed,
        "the server is read-only",
        "Connect to the primary: name all hosts in the URL, with target_session_attrs=read-write.",
    ),
    "53100": (StorageFailed, "the disk of the server is full", "Make room on the server, then try again."),
    "55P03": (StorageFailed, "others are writing to this stream", "Try again."),
    "23505": (Conflict, "it is there already", "Use another name."),
    "42704": (NotFound, "the server refuses", "Make the role first: create role NAME login; then its password."),
    "54000": (InvalidInput, "a name is too long for the server", "Use a shorter one."),
    "AE004": (
        UnsafePath,
        "the server refuses",
        "Let a superuser, or who made these roles, run: grant aether_read, aether_write, aether_admin to OWNER with admin option.",
    ),
    "AE005": (UnsafePath, "the server refuses", "Run: alter role NAME inherit; then grant the right again."),
    **dict.fromkeys(("AE006", "22P02", "22021", "22007", "22008", "54001"), (InvalidInput, "the server refuses the line", _REFUSED)),
    "AE007": (StorageFailed, "the server refuses the file", _QUOTA),
    "P0002": (NotFound, "the server refuses", "Put the blob first."),
}  # fmt: skip
# After these the transaction may have been committed: canceled, and the ends of a session.
_CANCELED = frozenset({"57014", "57P01", "57P02", "57P03", "57P05"})
# The words in which a server refuses a login.
_REFUSALS = (
    "authentication failed", "no password supplied", "pg_hba.conf", "permission denied", "not permitted to log in",
    'role "',
)  # fmt: skip


def _require_version(version: int | None, where: str) -> None:
    """Refuse a schema that this aether does not know.

    Raises:
        StorageFailed: it is newer or older.
    """
    known = max(migrations())
    if version == known:
        return
    what = f"the tables have version {version}, and this aether needs version {known}."
    if (version or 0) > known:
        raise Unusable(what, fix=_UPGRADE, where=where)
    if (version or 0) < min(migrations()):
        fix = "They are of a preview: let the homes leave, and share one of them as a new colony in another database."
        raise Unusable(what, fix=fix, where=where)
    raise OldTables(what, fix=_INIT, where=where)


@cache
def _psycopg() -> Any:
    """Return the package psycopg.

    Raises:
        BackendUnavailable: it is not installed.
    """
    with packages_of("postgres", where="aether share"):
        import psycopg
        import psycopg.conninfo
    return psycopg


@contextmanager
def _broken_after(connection: Any, seconds: float) -> Iterator[None]:
    """Break the connection if the block lasts longer: libpq waits for an answer for ever."""
    descriptor = os.dup(connection.fileno())
    watchdog = threading.Timer(seconds, _break, [descriptor])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        os.close(descriptor)


def _break(descriptor: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as end:
        end.shutdown(socket.SHUT_RDWR)


def _address(url: str, timeout: float) -> dict[str, Any]:
    """Return the parameters of a connection: those of `url`, and a verified certificate where a network is between.

    Raises:
        InvalidInput: this is not a PostgreSQL address. The message does not repeat it: it may hold a password.
    """
    driver = _psycopg()
    fix = "Use postgresql://USER@HOST/DATABASE, or service=NAME."
    try:
        given = driver.conninfo.conninfo_to_dict(url)
    except driver.Error:
        given = {}
    # Of an address without any part, libpq's own variables say all.
    if not given and url not in ("postgresql://", "postgres://"):
        raise InvalidInput("this is not a PostgreSQL address.", fix=fix, where="AETHER_SHARE_URL")
    scheme, _, rest = url.partition("://")
    if "/" not in rest.partition("@")[0]:  # libpq looks for role and password so
        rest = rest.partition("@")[2]
    if (
        scheme in ("postgresql", "postgres") and "@" in rest.partition("?")[0]
    ):  # a message would show it as a host
        what = "a sign of the role or the password is not percent-encoded."
        fix = "Write @ as %40, / as %2F, : as %3A and ? as %3F; or keep the password in .pgpass."
        raise InvalidInput(what, fix=fix, where="AETHER_SHARE_URL")
    # A service leads to a server that only libpq knows; a socket ignores `sslmode`.
    is_elsewhere = "service" in given or bool(os.environ.get("PGSERVICE"))
    about = {**_environment(), **given}
    if "sslmode" not in about and (
        is_elsewhere or not _is_local(f"{about.get('host', '')},{about.get('hostaddr', '')}")
    ):
        given["sslmode"] = "verify-full"
        if "sslrootcert" not in about and not os.path.exists(os.path.expanduser("~/.postgresql/root.crt")):
            given["sslrootcert"] = "system"  # the authorities that this machine trusts
    # A connection to a machine that left the network ends within the timeout.
    patience = {
        "connect_timeout": max(2, int(timeout)), "application_name": "aether", "tcp_user_timeout": int(timeout * 1000),
        "keepalives_idle": max(1, int(timeout / 2)), "keepalives_interval": 1, "keepalives_count": max(1, int(timeout / 2)),
    }  # fmt: skip
    return {**{name: value for name, value in patience.items() if name not in about}, **given}


def _environment() -> dict[str, str]:
    """Return the parameters that libpq reads from the environment and that say where a server is."""
    names = {
        "host": "PGHOST", "hostaddr": "PGHOSTADDR", "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT",
        "application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT",
    }  # fmt: skip
    return {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}


def _is_local(hosts: str) -> bool:
    """Return whether all hosts are sockets of this machine or its loopback.

    >>> [_is_local(hosts) for hosts in ("", "/run/postgresql", "localhost,::1", "127.0.0.1,db.example.org")]
    [True, True, True, False]
    """
    return all(_is_loopback(host) for host in hosts.split(","))


def _is_loopback(host: str) -> bool:
    if not host or host == "localhost" or host[0] in "/@":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _shown_address(address: dict[str, Any]) -> str:
    """Return an address for messages, without role and password.

    >>> _shown_address({"host": "db", "port": "6432", "dbname": "team", "user": "ana", "password": "x"})
    'postgresql://db:6432/team'
    """
    if "service" in address:
        return f"service={address['service']}"
    host, port = address.get("host") or address.get("hostaddr") or "", address.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{address.get('dbname', '')}"
