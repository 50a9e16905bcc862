"""Colonies on a server, with the replicas that a test makes of them: the same tests for a directory and for PostgreSQL."""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from aether.api import share as sharing
from aether.sharing import ledgers, postgres
from aether.store import doctor, documents
from aether.store import journal as journals
from tests import directory_ledger, homes


class Colony:
    """A colony on a server, and the replicas that a test makes of it."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory, self.url, self.made = directory, url, list[Path]()

    def first(self) -> Path:
        home = homes.fresh(self.directory / "first")
        homes.add(home, "before")
        sharing.share(home, self.url, "c")
        self.made.append(home)
        return home

    def join(self) -> Path:
        self.made.append(sharing.join(self.url, "c", self.directory / f"r{len(self.made)}").home)
        return self.made[-1]

    def act_as(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let what follows be done by the member `name` of the colony, with the right to write."""
        if self.url.startswith(directory_ledger.START):
            monkeypatch.setattr(directory_ledger.DirectoryLedger, "member", name)
            return
        import psycopg

        owner = re.sub("//[^@]*@", "//owner@", self.url)
        role = f"{name}_{os.path.basename(owner.partition('?')[0])}"
        with psycopg.connect(owner, autocommit=True) as connection, suppress(psycopg.errors.DuplicateObject):
            connection.execute(f"create role {role} login")  # type: ignore[arg-type]
        postgres.grant(owner, "c", role, "write")
        self.url = owner.replace("owner@", f"{role}@")
        monkeypatch.setenv(ledgers.URL, self.url)
        while ledgers._OPEN:
            ledgers._OPEN.popitem()[1][2].close()

    def agree(self) -> Path:
        """Check that every replica has the same documents and the same history, and that doctor finds no fault."""
        for home in self.made * 2:  # what one had to send is new to those before it
            sharing.update_share(home=home)
        first = self.made[0]
        for home in self.made:
            assert [each for each in doctor.examine(home) if each.level == "error"] == []
            for name in documents.NAMES:
                assert content(home, name) == content(first, name)
            assert history(home) == history(first)
        return first

    def shorten(self, stream: str, head: int) -> None:
        """Let the server be one that was restored from a backup in which a stream ended at `head`."""
        if self.url.startswith(directory_ledger.START):
            found = directory_ledger.open_ledger(self.url, "c", replica="", timeout=1)
            path, (start, _) = found._file(stream), found._start(stream)
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: head - start]))
            return
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            (number,) = connection.execute(
                "select stream from aether.streams where name = %s", (stream,)
            ).fetchone()
            connection.execute(
                "delete from aether.entries where stream = %s and revision > %s", (number, head)
            )
            connection.execute(
                "update aether.streams s set head = %s, checksum = (select e.checksum from aether.entries e "
                "where e.stream = s.stream and e.revision = %s) where stream = %s", (head, head, number),
            )  # fmt: skip


def content(home, name):
    path = documents.path_of(home, name)
    return path.read_bytes() if path.exists() else b""


def history(home):
    return b"".join(path.read_bytes() for path in journals.month_files(home))


def tree(home):
    """Return the files that a home has beside its documents and its history, with their content."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for pattern in (
            "compressions/*.json",
            "snapshots/*.json",
            "archive/[0-9g]*/**/*.*",
            "conversations/*/history.jsonl",
        )
        for path in home.glob(pattern)
        if path.is_file()
    }


@pytest.fixture(params=["directory", pytest.param("postgres", marks=pytest.mark.extras)])
def colony(request, tmp_path, monkeypatch):
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").database(f"d{uuid.uuid4().hex[:12]}")
    else:
        monkeypatch.setitem(ledgers.MODULES, directory_ledger.START, directory_ledger.__name__)
        (tmp_path / "server").mkdir()
        url = f"{directory_ledger.START}{tmp_path / 'server'}"
    monkeypatch.setenv(ledgers.URL, url)
    yield Colony(tmp_path, url)
    while ledgers._OPEN:
        ledgers._OPEN.popitem()[1][2].close()
    if request.param == "postgres":
        request.getfixturevalue("postgres").drop(url)
