"""A PostgreSQL of its own for tests: on a socket in a temporary directory, without a port, killed and started at will.

It is the newest of this machine, or the one whose directory of programs `AETHER_TEST_POSTGRES` names; a user other than
root must be able to run these. It syncs the disk as a server does if `AETHER_TEST_FSYNC=on`; else not, because a killed
process loses nothing either way.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests import homes

OWNER = "owner"
# Of these roles a password is wanted.
LOCKED = "locked"
SECONDS = 60
SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "autovacuum_naptime": "5s",
    "log_min_messages": "warning",
    "fsync": os.environ.get("AETHER_TEST_FSYNC", "off"),
}


def programs() -> Path | None:
    """Return the directory of the newest PostgreSQL of this machine; None if there is none."""
    named = os.environ.get("AETHER_TEST_POSTGRES")
    found = (
        [named]
        if named
        else sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[-2]))
    )
    if not found and (path := shutil.which("postgres")):
        found = [os.path.dirname(os.path.realpath(path))]
    return Path(found[-1]) if found else None


def dumping() -> Path:
    """Return a directory of pg_dump and psql that fit `programs`, or skip: some servers come without, Debian's have them."""
    server = require()
    for found in (server, *map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin")))):
        if (found / "pg_dump").exists() and _version(found / "pg_dump") >= _version(server / "postgres"):
            return found
    return pytest.skip("no pg_dump that is as new as the server")


def _version(program: Path) -> int:
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.findall(r"\d+", said)[0])


def require() -> Path:
    """Return the programs of PostgreSQL, or skip the test with the reason."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = programs()
    if found is None:
        pytest.skip(
            "no PostgreSQL here: apt-get install postgresql, or name its programs in AETHER_TEST_POSTGRES"
        )
    return found


def unprivileged() -> dict[str, object]:
    """Return the arguments of `Popen` for a user other than root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return pytest.skip("there is no user postgres or nobody to run PostgreSQL as")


class Server:
    """A server in `directory`, which must be short: the path of a socket has 107 bytes at most."""

    def __init__(self, directory: Path, bin: Path, **settings: str) -> None:
        self.directory, self.bin = directory, bin
        self.settings = SETTINGS | settings
        self.process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make an empty cluster."""
        whom = unprivileged()
        if whom:
            os.chown(self.directory, whom["user"], whom["group"])  # type: ignore[arg-type]
        command = [
            self.bin / "initdb",
            "-D",
            self.data,
            "-U",
            OWNER,
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **whom)  # type: ignore[call-overload]
        (self.data / "pg_hba.conf").write_text(
            f"local all {LOCKED} scram-sha-256\nlocal all all trust\nlocal replication all trust\n"
        )

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def start(self, **settings: str) -> None:
        """Start the server, and wait until it answers."""
        options = [
            part
            for name, value in (self.settings | settings).items()
            for part in ("-c", f"{name}={value.strip(chr(39))}")
        ]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, "-k", self.directory, *options],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **unprivileged(),
            )  # type: ignore[call-overload]  # fmt: skip
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(Exception):
                self.sql("select 1")
                return
            time.sleep(0.02)
        raise AssertionError((self.directory / "log").read_text()[-2000:])

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop the server at once; `SIGKILL` as a power failure would, with all its processes."""
        if not self.process:
            return
        if how == signal.SIGKILL:
            # Stopped first: a child that it still started would wait for ever on a lock of a killed one.
            pid = self.process.pid
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            while children := _children(pid):
                for child in children:
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                time.sleep(0.005)
        self.process.send_signal(how)
        self.process.wait(SECONDS)
        self.process = None

    def restart(self, how: int = signal.SIGINT, **settings: str) -> None:
        """Stop the server and start it again."""
        self.stop(how)
        self.start(**settings)

    def url(self, role: str = OWNER, database: str = "postgres") -> str:
        return f"postgresql://{role}@/{database}?host={self.directory}"

    def sql(self, statement: str, database: str = "postgres", role: str = OWNER) -> list[tuple[object, ...]]:
        """Return the rows of a statement."""
        import psycopg

        with contextlib.closing(
            psycopg.connect(self.url(role, database), autocommit=True, connect_timeout=5)
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database(self, name: str) -> str:
        """Make a database, and return its URL."""
        self.sql(f'create database "{name}"')
        return self.url(database=name)

    def drop(self, url: str) -> None:
        """Remove a database that was made, whoever is connected to it: it takes 8 MB of memory."""
        name = url.split("/")[3].partition("?")[0]
        self.sql(f'drop database if exists "{name}" with (force)')


@contextmanager
def running(**settings: str) -> Iterator[Server]:
    """Run a server of its own."""
    found = require()
    syncs = (SETTINGS | settings)["fsync"] == "on"
    # Making a database takes ten times as long on a disk, which has nothing to show without syncing it.
    directory = Path(tempfile.mkdtemp(prefix="aether-pg", dir=None if syncs else homes.IN_MEMORY))
    server = Server(directory, found, **({} if syncs else {"max_wal_size": "64MB"}) | settings)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(directory, ignore_errors=True)


def _children(pid: int) -> list[int]:
    """Return the children of a process that have not ended."""
    said = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], check=True, capture_output=True, text=True)
    found = map(str.split, said.stdout.splitlines())
    return [int(child) for child, parent, state in found if int(parent) == pid and state[0] != "Z"]


class Proxy:
    """A loopback between clients and the socket of a server, which delays, cuts and swallows what passes."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.silent = False
        """Whether a connection that has passed all it may is left open, and swallows the rest, instead of being cut."""
        self.refuses = False
        """Whether new connections are cut at once."""
        self.delay = 0.0
        self.cuts = 0
        """How many connections were cut by a limit."""
        self._pairs: list[_Pair] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, role: str = OWNER, database: str = "postgres") -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"

    def limit(self, *, to_server: int | None = None, to_client: int | None = None) -> None:
        """Let so many further bytes pass on each connection that is open now, then cut it."""
        for pair in self._pairs:
            pair.left = {"to_server": to_server, "to_client": to_client}

    def release_after(self, seconds: float) -> None:
        """Cut all connections after a while."""
        threading.Timer(seconds, self.cut).start()

    def cut(self) -> None:
        """Cut all connections."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.end()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                if self.refuses:
                    raise ConnectionRefusedError
                server.connect(self.upstream)
            except OSError:
                client.close()
                server.close()
                continue
            pair = _Pair(client, server)
            self._pairs.append(pair)
            for direction in ("to_server", "to_client"):
                threading.Thread(target=self._pump, args=(pair, direction), daemon=True).start()

    def _pump(self, pair: _Pair, direction: str) -> None:
        source, sink = (pair.client, pair.server)[:: 1 if direction == "to_server" else -1]
        with suppress(OSError):
            while data := source.recv(65536):
                if self.delay:
                    time.sleep(self.delay)
                left = pair.left[direction]
                if left is not None and len(data) > left:
                    sink.sendall(data[:left])
                    self.cuts += 1
                    while self.silent and source.recv(65536):
                        pass
                    break
                if left is not None:
                    pair.left[direction] = left - len(data)
                sink.sendall(data)
        pair.end()


class _Pair:
    """The two ends of a connection, and how many bytes still pass in each direction (None: all)."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.left: dict[str, int | None] = {"to_server": None, "to_client": None}

    def end(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def proxied(server: Server) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    proxy = Proxy(f"{server.directory}/.s.PGSQL.5432")
    try:
        yield proxy
    finally:
        proxy.close()


def disturb(server: Server, proxy: Proxy, chance: random.Random) -> None:
    """Do one thing to a server and the connections through a proxy that its clients must survive."""
    what = chance.choice("cut cut end end slow fast part kill stop".split())
    if what == "cut":
        proxy.cut()
    elif what == "part":
        proxy.limit(**{chance.choice(("to_server", "to_client")): chance.randrange(400)})
    elif what == "end":
        server.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'aether'")
    elif what in ("kill", "stop"):
        server.restart(signal.SIGKILL if what == "kill" else signal.SIGINT)
    else:
        proxy.delay = 0.02 if what == "slow" else 0.0
