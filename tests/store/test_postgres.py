"""PostgreSQL as a ledger: rights, failures of the server and the network, and what they leave, on a real server."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aether.errors import (
    AetherError,
    BackendUnavailable,
    Conflict,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
)
from aether.sharing import ledgers as seam
from aether.sharing import lines as lines_of
from aether.sharing import postgres as store
from aether.sharing.ledgers import Unsettled
from aether.store import log
from aether.store.ledger import JOURNAL, Mark
from tests import postgres_server
from tests.children import ended, start
from tests.lines import line
from tests.postgres_server import proxied
from tests.tables import rows

pytestmark = pytest.mark.extras
NEW = Mark(0, "")
_NUMBERS = itertools.count(1)


@pytest.fixture
def colony(postgres):
    """Return the name of a colony of its own."""
    name = uuid.uuid4().hex
    store.create_colony(postgres.url(), name).close()
    return name


@pytest.fixture
def role(postgres):
    """Return a function that makes a role, and a right for it in a colony."""

    def make(colony="", right="", options="login"):
        name = f"Ana {next(_NUMBERS)}"
        postgres.sql(f'create role "{name}" {options}')
        if right:
            store.grant(postgres.url(), colony, name, right)
        return name

    return make


@contextmanager
def opened(url, colony, *, timeout=5.0):
    ledger = store.open_ledger(url, colony, replica="r1", timeout=timeout)
    try:
        yield ledger
    finally:
        ledger.close()


@pytest.fixture
def database(postgres):
    """Make a database, and yield its URL."""
    made = postgres.database(f"d{next(_NUMBERS)}_{os.getpid()}")
    yield made
    postgres.drop(made)


def url_of(postgres, role):
    return postgres.url(role.replace(" ", "%20"))


# Rights


def refused(postgres, role, statement):
    """Return the SQLSTATE with which the server refuses a statement of a role."""
    import psycopg

    with pytest.raises(psycopg.Error) as error:
        postgres.sql(statement, role=role.replace(" ", "%20"))
    return error.value.sqlstate


def test_each_right_allows_what_it_says_and_no_more(postgres, colony, role):
    reader, writer, admin = (role(colony, right) for right in store.RIGHTS)
    other = role()

    with opened(url_of(postgres, writer), colony) as ledger:
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        blob = ledger.put_blob(b"b")
        ledger.drop_blob(ledger.put_blob(b"dropped"))
        assert ledger.right == "write"
        with pytest.raises(UnsafePath, match="aether share members"):
            ledger.set_base(JOURNAL, Mark(1, ""), blob)
    with opened(url_of(postgres, admin), colony) as ledger:
        ledger.set_base(JOURNAL, Mark(1, ""), blob)
        ledger.drop_blob(blob)  # a snapshot stays
    with opened(url_of(postgres, reader), colony) as ledger:
        assert len(ledger.read_after(JOURNAL, NEW).lines) == 1
        assert (ledger.get_blob(blob), ledger.base(JOURNAL)) == (b"b", (1, blob))
        assert ledger.ends()[JOURNAL].revision == 1
        for write in (
            lambda: ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)]),
            lambda: ledger.put_blob(b"c"),
            lambda: ledger.drop_blob(blob),
            lambda: ledger.set_base(JOURNAL, Mark(1, ""), ""),
            lambda: ledger.turn(JOURNAL, NEW).__enter__(),
        ):
            with pytest.raises(UnsafePath, match="aether share members"):
                write()
    for role_name in (reader, writer):
        with pytest.raises(UnsafePath, match="aether share members"):
            store.grant(url_of(postgres, role_name), colony, other, "admin")
        with pytest.raises(UnsafePath, match="aether share members"):
            store.revoke(url_of(postgres, role_name), colony, admin)
    store.grant(url_of(postgres, admin), colony, other, "read")
    with opened(url_of(postgres, other), colony) as ledger:
        assert ledger.head(JOURNAL) == 1

    assert [
        (member.role, member.right) for member in store.members(url_of(postgres, reader), colony)
    ] == sorted([(reader, "read"), (writer, "write"), (admin, "admin"), (other, "read")])


def test_only_an_admin_makes_a_colony(postgres, colony, role):
    """The role that carries what an admin may call belongs to the whole server, and outlives the right."""
    revoked, elsewhere, group = role(colony, "admin"), role(), role(colony, "admin", options="nologin")
    store.revoke(postgres.url(), colony, revoked)
    other = postgres.database(f"other{next(_NUMBERS)}_{os.getpid()}")
    store.create_colony(other, "bees").close()
    store.grant(other, "bees", elsewhere, "admin")
    member = role()
    postgres.sql(f'grant "{group}" to "{member}"')
    refused_ones = [role(), role(colony, "read"), role(colony, "write"), revoked, elsewhere]

    for name in refused_ones:
        made = uuid.uuid4().hex
        with pytest.raises(UnsafePath, match="aether share members"):
            store.create_colony(url_of(postgres, name), made)
        assert refused(postgres, name, f"select aether.create_colony('{made}')") == "42501"
        assert postgres.sql(f"select from aether.colonies where name = '{made}'") == []
    for name in (role(colony, "admin"), member):
        store.create_colony(url_of(postgres, name), made := uuid.uuid4().hex).close()
        with opened(url_of(postgres, name), made) as ledger:
            assert ledger.right == "admin"


def test_no_member_can_change_history_by_sql(postgres, colony, role):
    """A writer and an admin may call functions; the tables are out of their reach."""
    with opened(postgres.url(), colony) as ledger:
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        number = ledger.number
    for name, statement in itertools.product(
        [role(colony, "write"), role(colony, "admin")],
        [
            "update aether.entries set line = 'x'",
            "delete from aether.entries",
            f"insert into aether.entries values ({number}, 1, 2, 'x', 'x')",
            "update aether.streams set head = 0",
            "delete from aether.blobs",
            f"insert into aether.members (colony, role, \"right\") values ({number}, session_user, 'admin')",
            "truncate aether.entries",
            "drop table aether.entries",
            "alter table aether.entries disable row level security",
            "create function aether.require(integer, text, text) returns void language sql as ''",
            "create or replace function aether.sync() returns void language sql as ''",
            f"select aether.require({number}, 'read')",
        ],
    ):
        assert refused(postgres, name, statement) == "42501", statement


AHEAD = "2999-01-01T00:00:00.000000Z"
REFUSED = {
    "no sealed line": lambda ledger: [b"one\\n"],
    "a seal of other bytes": lambda ledger: [line(1, ledger).replace(b'"x"', b'"y"', 1)],
    "two lines as one": lambda ledger: [line(1, ledger, "a\n") + line(2, ledger)],
    "no JSON": lambda ledger: [log.seal(b'{"revision":1,"at":"2026-03-01T10:15:00.000000Z",,"member":"' + ledger.member.encode() + b'"}')],
    "no text": lambda ledger: [log.seal(b'{"a":"\xff"}')],
    "another revision": lambda ledger: [line(2, ledger)],
    "the same revision twice": lambda ledger: [line(1, ledger), line(1, ledger)],
    "no time": lambda ledger: [line(1, ledger, at="soon")],
    "a day that is none": lambda ledger: [line(1, ledger, at="2026-02-31T10:15:00.000000Z")],
    "a time to come": lambda ledger: [line(1, ledger, at=AHEAD)],
    "no author": lambda ledger: [line(1, ledger, member=None)],
    "another member": lambda ledger: [line(1, ledger, member="queen")],
    "another member in front": lambda ledger: [line(1, ledger, member="queen", part={"member": ledger.member})],
    "a longer line": lambda ledger: [line(1, ledger, "x" * (1 << 26))],
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_member_who_writes_by_sql_is_refused_what_no_replica_would_take(postgres, colony, role, kind):
    name = role(colony, "write")
    with opened(url_of(postgres, name), colony, timeout=20) as ledger:
        with pytest.raises(InvalidInput, match="the server refuses the line"):
            ledger.append_if(JOURNAL, NEW, REFUSED[kind](ledger))
        assert ledger.head(JOURNAL) == 0
        for stream in (seam.READY, seam.CLAIM, seam.PLACED):
            with pytest.raises(UnsafePath):
                ledger.append_if(stream, NEW, [line(1, ledger)])
        assert ledger.append_if(JOURNAL, NEW, [line(1, ledger, "ä \0 \ud800")]).done


@pytest.mark.parametrize("lines", ["array[[%s], [%s]]", "'[4:5]={1,2}'", "array[%s, null]", "null"])
def test_a_member_who_sends_another_array_by_sql_changes_nothing(postgres, colony, role, lines):
    name = role(colony, "write")
    with opened(url_of(postgres, name), colony) as ledger:
        hexed = [f"'\\x{line(number, ledger).hex()}'::bytea" for number in (1, 2)]
        statement = f"call aether.append({ledger.number}, '', 0, '', {lines}::bytea[], 9, null, null, null)"
        assert refused(postgres, name, statement % tuple(hexed[: statement.count("%s")])) == "AE006"
        assert (ledger.head(JOURNAL), ledger.read_after(JOURNAL, NEW)) == (0, (0, []))


def test_a_member_has_a_quota_of_files(postgres, colony, role):
    one, two, admin = role(colony, "write"), role(colony, "write"), role(colony, "admin")
    postgres.sql(f"update aether.colonies set quota = 100 where name = '{colony}'")
    for name in (one, two):
        with opened(url_of(postgres, name), colony) as ledger:
            blob = ledger.put_blob(name.encode() * 5)
            assert ledger.put_blob(name.encode() * 5) == blob
            with pytest.raises(StorageFailed, match=r"bytes more than its quota.*quota of aether.colonies"):
                ledger.put_blob(b"x" * 90)
            ledger.drop_blob(blob)
            ledger.put_blob(name.encode() * 14)
    with opened(url_of(postgres, admin), colony) as ledger:
        ledger.put_blob(b"x" * 200)


def test_only_an_admin_removes_a_line(postgres, colony, role):
    writer = role(colony, "write")
    with opened(postgres.url(), colony) as ledger:
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        assert refused(postgres, writer, f"select aether.remove_line({ledger.number}, 1)") == "42501"
        ledger.remove_line(1)
        assert ledger.read_after(JOURNAL, Mark(1, log.checksum_of(line(1, ledger)))) == (1, [])
        (placeholder,) = ledger.read_after(JOURNAL, NEW).lines
        assert placeholder == lines_of.placeholder(1, line(1, ledger))
        with pytest.raises(NotFound, match="no line 2"):
            ledger.remove_line(2)


def test_tables_of_an_earlier_release_are_upgraded(postgres, database):
    name = database.split("/")[3].partition("?")[0]
    store.create_colony(database, "bees").close()
    with opened(database, "bees") as ledger:
        blob = ledger.put_blob(b"old")
    postgres.sql(
        "alter table aether.colonies drop column quota; alter table aether.blobs drop column author; "
        "drop function aether.head(integer, text), aether.heads(integer, text), aether.remove_line(integer, bigint);"
        "create function aether.base(integer, text, out base bigint, out blob text) language sql as 'select 0, null';"
        "create function aether.heads(integer, text) returns table (name text, head bigint) language sql as 'select null, 0';"
        "delete from aether.migrations where version > 7",
        database=name,
    )
    with opened(database, "bees") as ledger:
        with pytest.raises(StorageFailed, match=r"version 7.*aether share init"):
            ledger.head(JOURNAL)
        store.upgrade(ledger)
        assert ledger.append_if(JOURNAL, NEW, [line(1, ledger)]).done
        assert (ledger.ends()[JOURNAL].revision, ledger.get_blob(blob), ledger.base(JOURNAL)) == (
            1,
            b"old",
            (0, ""),
        )


def test_a_member_of_one_colony_sees_nothing_of_another(postgres, colony, role):
    hidden = uuid.uuid4().hex
    store.create_colony(postgres.url(), hidden).close()
    with opened(postgres.url(), hidden) as ledger:
        ledger.append_if("conversations/x", NEW, [line(1, ledger)])
        ledger.set_base(JOURNAL, NEW, ledger.put_blob(b"secret"))
        number = ledger.number
    name = role(colony, "admin")
    seen = name.replace(" ", "%20")

    for table in ("colonies", "streams", "entries", "blobs", "members", "replicas"):
        assert postgres.sql(f"select * from aether.{table} where colony = {number}", role=seen) == []
        assert len(postgres.sql(f"select * from aether.{table} where colony = {number}")) == (
            table not in ("members", "replicas")
        ) + (table == "streams")
    with pytest.raises(UnsafePath, match="no such colony, or the role has no right"):
        store.open_ledger(url_of(postgres, name), hidden, replica="r", timeout=5).head(JOURNAL)
    for call in (
        f"select * from aether.head({number}, '')",
        f"select * from aether.heads({number}, '')",
        f"select * from aether.lines_after({number}, 'conversations/x', 0, '', 9, 9)",
        f"call aether.read_after({number}, 'conversations/x', 0, '', 9, 9, null, null)",
        f"call aether.append({number}, '', 0, '', array['x'::bytea], 9, null, null, null)",
        f"select aether.put_blob({number}, 'x')",
        f"select aether.drop_blob({number}, 'x')",
        f"select aether.set_base({number}, '', 1, '', '', null, 9)",
        f"select aether.grant_right({number}, '{name}', 'admin')",
        f"select aether.revoke_right({number}, '{name}')",
        f"select aether.seen({number}, 'r', 1)",
        f"select aether.faults({number})",
    ):
        assert refused(postgres, name, call) == "AE001", call


def test_a_stranger_of_the_database_may_call_nothing(postgres, colony, role):
    name = role()
    for statement in (
        "select * from aether.colonies",
        f"select aether.hello('{colony}', '')",
        "select aether.sync()",
    ):
        assert refused(postgres, name, statement) == "42501"
    with (
        opened(url_of(postgres, name), colony) as ledger,
        pytest.raises(UnsafePath, match="aether share members"),
    ):
        ledger.head(JOURNAL)


def test_a_group_gives_its_right_to_its_members(postgres, colony, role):
    group, member = role(colony, "write", options="nologin"), role()
    postgres.sql(f'grant "{group}" to "{member}"')

    with opened(url_of(postgres, member), colony) as ledger:
        assert ledger.append_if(JOURNAL, NEW, [line(1, ledger)]).done
        assert ledger.right == "write"


def test_a_revoked_role_is_refused_at_its_next_call(postgres, colony, role):
    name = role(colony, "write")
    with opened(url_of(postgres, name), colony) as ledger:
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        store.grant(postgres.url(), colony, name, "read")
        with pytest.raises(UnsafePath, match="has the right read, not write"):
            ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)])
        store.revoke(postgres.url(), colony, name)
        for call in (
            lambda: ledger.read_after(JOURNAL, NEW),
            lambda: ledger.head(JOURNAL),
            lambda: ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)]),
        ):
            with pytest.raises(UnsafePath):
                call()
    with pytest.raises(NotFound):
        store.revoke(postgres.url(), colony, name)


def test_rights_are_given_to_roles_that_are_there(postgres, colony):
    with pytest.raises(NotFound, match="create role"):
        store.grant(postgres.url(), colony, "nobody of this name", "read")
    with pytest.raises(NotFound):
        store.grant(postgres.url(), colony, "pg_read_all_data", "read")
    with pytest.raises(InvalidInput):
        store.grant(postgres.url(), colony, "owner", "all")


@pytest.fixture(scope="module")
def managed():
    """Run a server whose first tables of aether belong to "ana", who may make roles and is no superuser, and return it.

    The roles of aether are hers, as on a server that somebody else manages; "bea" owns a database of her own, "bob" none.
    """
    with postgres_server.running() as server:
        for name, options in (("ana", "createrole"), ("bea", "createrole"), ("bob", "noinherit")):
            server.sql(f"create role {name} login {options}")
        for name in ("ana", "bea"):
            server.sql(f"create database {name} owner {name}")
        store.create_colony(server.url("ana", "ana"), "bees").close()
        yield server


def test_an_owner_who_is_no_superuser_makes_the_tables(managed):
    managed.sql("create role eve login", role="ana")
    store.grant(managed.url("ana", "ana"), "bees", "eve", "write")

    with opened(managed.url("eve", "ana"), "bees") as ledger:
        assert ledger.put_blob(b"b")
    with pytest.raises(UnsafePath):
        store.create_colony(managed.url("eve", "ana"), "mine")


def test_who_made_the_roles_may_be_a_member_elsewhere(managed):
    """From version 16 on, the maker of a role may give it to others, and has nothing of it."""
    managed.sql("grant aether_read, aether_write, aether_admin to bea with admin option", role="ana")
    store.create_colony(managed.url("bea", "bea"), "wasps").close()
    store.grant(managed.url("bea", "bea"), "wasps", "ana", "write")

    with opened(managed.url("ana", "bea"), "wasps") as ledger:
        assert ledger.put_blob(b"b")


def test_who_made_a_group_has_not_its_right(managed):
    """From version 16 on, the maker of a role counts as its member, and may neither use nor become it."""
    managed.sql("create role team", role="bea")
    store.grant(managed.url("ana", "ana"), "bees", "bea", "read")
    store.grant(managed.url("ana", "ana"), "bees", "team", "admin")
    with opened(managed.url("bea", "ana"), "bees") as ledger:
        assert ledger.right == "read"
    with pytest.raises(UnsafePath):
        store.create_colony(managed.url("bea", "ana"), "mine")
    store.revoke(managed.url("ana", "ana"), "bees", "bea")
    assert managed.sql("select name from aether.colonies", "ana", role="bea") == []


def test_a_role_that_inherits_nothing_is_a_member_or_refused(managed):
    """Before version 16, nothing that is given to such a role lets it call a function."""
    if managed.sql("select current_setting('server_version_num')::int >= 160000") == [(False,)]:
        with pytest.raises(UnsafePath, match=r"inherits nothing.* alter role"):
            store.grant(managed.url("ana", "ana"), "bees", "bob", "write")
        managed.sql("alter role bob inherit")
    store.grant(managed.url("ana", "ana"), "bees", "bob", "write")

    with opened(managed.url("bob", "ana"), "bees") as ledger:
        assert ledger.put_blob(b"b")


def test_an_owner_who_may_not_give_the_roles_is_advised(postgres, colony, role):
    """The roles belong to the whole server, and may have been made by the owner of another database."""
    name, member = role(), role()
    postgres.sql(f'create database "of {name}" owner "{name}"')
    url = f"postgresql:///of%20{name}?host={postgres.directory}&user={name}".replace(" ", "%20")
    store.create_colony(url, "bees").close()

    with pytest.raises(UnsafePath, match="with admin option"):
        store.grant(url, "bees", member, "write")
    assert [one.role for one in store.members(url, "bees")] == [name]
    postgres.sql(f'grant aether_read, aether_write, aether_admin to "{name}" with admin option')
    store.grant(url, "bees", member, "write")
    assert {one.role for one in store.members(url, "bees")} == {name, member}


def test_a_reader_says_nothing_of_the_replicas_of_others(postgres, colony, role):
    reader, writer = role(colony, "read"), role(colony, "write")
    with opened(url_of(postgres, writer), colony) as ledger:
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        ledger.read_after(JOURNAL, NEW)
    with opened(url_of(postgres, reader), colony) as ledger:
        for name, revision in (("r1", 99), ("r2", 1), ("r2", 2), ("long" * 100, 1)):
            ledger.call("select aether.seen(%s, %s, %s)", ledger.number, name, revision)
    found = store.status(postgres.url(), colony)["replicas"]
    assert [(one["replica"], one["role"], one["revision"]) for one in found] == [
        ("r1", writer, 0), ("r2", reader, 2)
    ]  # fmt: skip

    with opened(url_of(postgres, writer), colony) as ledger:
        ledger.call("select aether.seen(%s, %s, %s)", ledger.number, "r2", 3)
    assert {one["role"] for one in store.status(postgres.url(), colony)["replicas"]} == {writer}


def test_the_parts_of_a_base_are_dropped_by_nobody(postgres, colony, role):
    with opened(postgres.url(), colony) as ledger:
        blob, part = ledger.put_blob(b"base"), ledger.put_blob(b"part")
        ledger.set_base(JOURNAL, NEW, blob, [part])
    for right in ("write", "admin"):
        with opened(url_of(postgres, role(colony, right)), colony) as ledger:
            ledger.drop_blob(part)
            assert ledger.get_blob(part) == b"part"


def test_the_table_of_entries_may_be_partitioned(postgres, database):
    """By the statements that docs/shared.md gives, which the owner runs; and tables of the owner disturb nobody."""
    store.create_colony(database, "bees").close()
    name = database.partition("@/")[2].partition("?")[0]
    with opened(database, "bees") as ledger:
        ledger.append_if(JOURNAL, NEW, [line(number, ledger) for number in range(1, 4)])
        blocks = (Path(__file__).parents[2] / "docs/shared.md").read_text().split("```sql\n")
        (statements,) = [block.partition("```")[0] for block in blocks if "partition by hash" in block]
        postgres.sql(statements, database=name)
        postgres.sql("create table aether.mine (what text)", database=name)
        assert ledger.append_if(JOURNAL, Mark(3, ""), [line(4, ledger)]).done
    with opened(database, "bees") as ledger:
        assert len(ledger.read_after(JOURNAL, NEW).lines) == 4
    assert faults(database) == []
    (parts,) = postgres.sql("select count(distinct tableoid), count(*) from aether.entries", database=name)
    assert parts == (1, 4)
    member = f"reader {next(_NUMBERS)}"
    postgres.sql(f'create role "{member}" login')
    store.grant(database, "bees", member, "read")
    found = postgres.sql(
        "select count(*) from aether.entries", database=name, role=member.replace(" ", "%20")
    )
    assert found == [(4,)]
    postgres.sql("alter table aether.entries disable row level security", database=name)
    with pytest.raises(StorageFailed, match="missing of: entries"), opened(database, "bees") as ledger:
        ledger.head(JOURNAL)


# Colonies, versions and backups


def test_two_colonies_of_one_name_are_refused(postgres, colony):
    with pytest.raises(Conflict, match="aether share join"):
        store.create_colony(postgres.url(), colony)
    with pytest.raises(NotFound, match="no such colony"):
        store.open_ledger(postgres.url(), "none", replica="r", timeout=5).head(JOURNAL)
    with pytest.raises(InvalidInput):
        store.create_colony(postgres.url(), " ")


def test_another_colony_in_its_place_is_noticed(postgres, database):
    store.create_colony(database, "bees").close()
    with opened(database, "bees") as ledger:
        before = ledger.identity
        name = database.split("/")[3].partition("?")[0]
        postgres.sql("drop schema aether cascade", database=name)
        store.create_colony(database, "bees").close()
        ledger.close()
        with pytest.raises(Conflict, match="another colony"):
            ledger.head(JOURNAL)
        with opened(database, "bees") as now:
            assert now.identity != before


def test_a_schema_of_another_version_is_refused(postgres, database):
    name = database.split("/")[3].partition("?")[0]
    with opened(database, "bees") as ledger, pytest.raises(StorageFailed, match="aether share init"):
        ledger.head(JOURNAL)
    store.create_colony(database, "bees").close()
    postgres.sql("insert into aether.migrations values (99, 'of the future')", database=name)
    with (
        opened(database, "bees") as ledger,
        pytest.raises(StorageFailed, match=r"version 99.*Upgrade aether"),
    ):
        ledger.head(JOURNAL)
    with pytest.raises(StorageFailed, match=r"version 99.*Upgrade aether"):
        store.create_colony(database, "ants")
    postgres.sql("delete from aether.migrations where version > 7", database=name)
    postgres.sql("update aether.migrations set version = 2", database=name)
    with opened(database, "bees") as ledger, pytest.raises(StorageFailed, match=r"version 2, .*of a preview"):
        ledger.head(JOURNAL)


def test_a_server_that_is_too_old_is_refused_before_anything_is_made(postgres, database, monkeypatch):
    monkeypatch.setattr(store, "OLDEST_SERVER", 99)
    for call in (store.create_colony, store.status):
        with pytest.raises(
            StorageFailed, match=r"the server has version \d\d, and aether needs 99.* Upgrade it"
        ):
            call(database, "bees")
    name = database.split("/")[3].partition("?")[0]
    assert postgres.sql("select to_regnamespace('aether')::text", database=name) == [(None,)]


def test_two_who_make_the_tables_at_once_make_them_once(database):
    def make(name):
        store.create_colony(database, name).close()

    assert [ended(child) for child in [start(make, name) for name in ("bees", "ants", "wasps")]] == [0, 0, 0]
    with opened(database, "ants") as ledger:
        store.upgrade(ledger)
        assert ledger.head(JOURNAL) == 0


def faults(url):
    """Return what is missing in a colony, on a server of tests that may run without fsync."""
    return [fault for fault in store.status(url, "bees")["faults"] if "fsync" not in fault]


@pytest.mark.parametrize("part", ["pre-data", "data", "all", "holes"])
def test_a_backup_restored_in_part_is_refused(postgres, database, part, tmp_path):
    programs = postgres_server.dumping()
    name = database.split("/")[3].partition("?")[0]
    store.create_colony(database, "bees").close()
    with opened(database, "bees") as ledger:
        for number in range(5):
            ledger.append_if(JOURNAL, Mark(number, ""), [line(number + 1, ledger)])
        number = ledger.number
    sections = {"pre-data": ["pre-data"], "data": ["pre-data", "data"]}.get(
        part, ["pre-data", "data", "post-data"]
    )
    dumped = subprocess.run(
        [programs / "pg_dump", *(f"--section={one}" for one in sections), database],
        capture_output=True,
        check=True,
    ).stdout
    restored = postgres.database(f"{name}_restored")
    subprocess.run([programs / "psql", "-q", restored], input=dumped, check=True, capture_output=True)
    if part == "holes":
        postgres.sql("delete from aether.entries where revision = 3", database=f"{name}_restored")

    with opened(restored, "bees") as ledger:
        if part == "all":
            assert ledger.append_if(JOURNAL, Mark(5, ""), [line(6, ledger)]).done
            assert faults(restored) == []
        elif part == "holes":
            assert faults(restored) == ['stream "" has 4 of its lines 1 to 5']
            with pytest.raises(StorageFailed, match="lines after revision 0 are missing"):
                ledger.read_after(JOURNAL, NEW)
        else:
            with pytest.raises(StorageFailed, match="complete backup"):
                ledger.append_if(JOURNAL, Mark(5, ""), [line(6, ledger)])
    assert number == 1


def test_a_server_restored_from_an_older_backup_is_noticed(postgres, colony):
    with opened(postgres.url(), colony) as ledger:
        for revision in range(4):
            ledger.append_if(JOURNAL, Mark(revision, ""), [line(revision + 1, ledger)])
        last = ledger.read_after(JOURNAL, Mark(3, "")).lines[0]
        mark = Mark(4, last[-19:-3].decode())
        assert ledger.read_after(JOURNAL, mark).lines == []
        postgres.sql(f"delete from aether.entries where colony = {ledger.number} and revision > 2")
        postgres.sql(
            f"update aether.streams set head = 2, checksum = (select checksum from aether.entries e "
            f"where e.colony = {ledger.number} and e.revision = 2) where colony = {ledger.number}"
        )
        for call in (
            lambda: ledger.read_after(JOURNAL, mark),
            lambda: ledger.append_if(JOURNAL, mark, [line(mark.revision + 1, ledger)]),
        ):
            with pytest.raises(Conflict, match="older backup"):
                call()
        for revision in (2, 3):
            ledger.append_if(JOURNAL, Mark(revision, ""), [line(revision + 1, ledger, "another")])
        for call in (
            lambda: ledger.read_after(JOURNAL, mark),
            lambda: ledger.append_if(JOURNAL, mark, [line(mark.revision + 1, ledger)]),
        ):
            with pytest.raises(Conflict, match="another line at revision 4"):
                call()


# The server fails


def test_a_ledger_goes_on_after_the_server_was_restarted():
    with postgres_server.running() as server:
        store.create_colony(server.url(), "bees").close()
        with opened(server.url(), "bees") as ledger:
            for number, how in enumerate([signal.SIGINT, signal.SIGKILL, signal.SIGKILL]):
                assert ledger.append_if(JOURNAL, Mark(number, ""), [line(number + 1, ledger)]).done
                server.restart(how)
            assert ledger.read_after(JOURNAL, NEW).lines == [line(number, ledger) for number in (1, 2, 3)]
            server.stop()
            with pytest.raises(StorageFailed, match="cannot be reached"):
                ledger.head(JOURNAL)
            ledger.timeout = 0.3
            with pytest.raises(StorageFailed) as error:
                ledger.append_if(JOURNAL, Mark(3, ""), [line(4, ledger)])
            assert not isinstance(error.value, Unsettled), "nothing was sent"
            server.start(default_transaction_read_only="on")
            assert ledger.read_after(JOURNAL, Mark(2, "")).lines == [line(3, ledger)]
            for write in (
                lambda: ledger.append_if(JOURNAL, Mark(3, ""), [line(4, ledger)]),
                lambda: ledger.put_blob(b"x"),
            ):
                with pytest.raises(StorageFailed, match=r"read-only.*target_session_attrs=read-write"):
                    write()
            server.restart()
            assert ledger.append_if(JOURNAL, Mark(3, ""), [line(4, ledger)]).done


def test_a_terminated_session_is_replaced(postgres, colony):
    with opened(postgres.url(), colony) as ledger:
        for number in range(6):
            assert ledger.append_if(JOURNAL, Mark(number, ""), [line(number + 1, ledger)]).done
            postgres.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'aether'"
            )
            if number % 2:
                assert ledger.head(JOURNAL) == number + 1
        assert len(ledger.read_after(JOURNAL, NEW).lines) == 6


@pytest.mark.slow
def test_a_full_disk_of_the_server_stores_nothing_and_recovers():
    with postgres_server.running() as server:
        place = server.directory / "small"
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", place]
        if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("only root may mount a small disk")
        try:
            subprocess.run(["mkdir", place / "tables"], check=True, **postgres_server.unprivileged())
            server.sql(f"create tablespace small location '{place / 'tables'}'")
            server.sql("create database d tablespace small")
            url = server.url(database="d")
            store.create_colony(url, "bees").close()
            with opened(url, "bees") as ledger:
                stored = fill(ledger)
                assert (ledger.head("s"), len(ledger.read_after("s", NEW, limit=1).lines)) == (stored, 1)
                subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
                assert ledger.append_if("s", Mark(stored, ""), [line(1, ledger)]) == (
                    True, stored + 1, []
                )  # fmt: skip
            assert faults(url) == []
        finally:
            server.stop(signal.SIGQUIT)
            subprocess.run(["umount", "-l", place], check=False)


def fill(ledger):
    """Append until the disk of the server is full, and return how many lines are stored."""
    for stored in range(200):
        try:
            assert ledger.append_if("s", Mark(stored, ""), [line(1, ledger, os.urandom(200_000).hex())]).done
        except StorageFailed as error:
            assert "disk of the server is full" in error.what  # noqa: PT017 - the last of many calls
            return stored
    raise AssertionError("it was never full")


def test_a_long_turn_is_ended_by_the_server(postgres, colony, monkeypatch):
    monkeypatch.setattr(store, "TURN_SECONDS", 0.2)
    with (
        opened(postgres.url(), colony) as ledger,
        opened(postgres.url(), colony) as other,
        ledger.turn(JOURNAL, NEW),
    ):
        assert other.append_if(JOURNAL, NEW, [line(1, other)]).done
        assert ledger.append_if(JOURNAL, NEW, [line(1, ledger, "late")]) == (False, 1, [line(1, other)])


def test_a_writer_may_not_ask_for_a_longer_turn(postgres, colony, role):
    import psycopg

    with opened(postgres.url(), colony) as ledger:
        number = ledger.number
    turn = "select aether.take_turn(%s, '', 0, '', 1, 1, 100, %s), current_setting(%s)"
    with psycopg.connect(url_of(postgres, role(colony, "write")), autocommit=True) as connection:
        for asked, given in ((0, "1ms"), (60_000, "5s"), (2000, "2s")):
            found = connection.execute(turn, (number, asked, "idle_in_transaction_session_timeout"))
            assert found.fetchone()[1] == given


def test_a_busy_stream_is_an_error_in_time(postgres, colony):
    with opened(postgres.url(), colony) as ledger, opened(postgres.url(), colony, timeout=2) as other:
        other.timeout = 1.5  # the server has nine tenths of it to say so
        with ledger.turn(JOURNAL, NEW), pytest.raises(StorageFailed, match="others are writing"):
            other.append_if(JOURNAL, NEW, [line(1, other)])


# The network fails


@rows("direction, silent", itertools.product(["to_server", "to_client"], [False, True]))
def test_an_append_whose_answer_was_lost_is_recognised(postgres, direction, silent):
    """The connection is cut within the question or the answer; every line is stored once, whatever got through."""
    colony = uuid.uuid4().hex
    store.create_colony(postgres.url(), colony).close()
    limits = (5, 60, 200) if direction == "to_server" else (0, 40, 100)
    with (
        proxied(postgres) as proxy,
        opened(proxy.url(), colony) as ledger,
        opened(postgres.url(), colony) as sure,
    ):
        proxy.silent = silent
        for number, most in enumerate(limits):
            assert ledger.head(JOURNAL) == number
            proxy.limit(**{direction: most})
            if silent:
                proxy.release_after(0.2)
            assert ledger.append_if(JOURNAL, Mark(number, ""), [line(number + 1, ledger)]) == (
                True, number + 1, []
            )  # fmt: skip
        assert proxy.cuts == len(limits)
        assert sure.read_after(JOURNAL, NEW).lines == [
            line(number + 1, sure) for number in range(len(limits))
        ]


def test_a_lost_answer_of_a_server_that_stays_away_is_unsettled(postgres, colony):
    with (
        proxied(postgres) as proxy,
        opened(proxy.url(), colony) as ledger,
        opened(postgres.url(), colony) as sure,
    ):
        ledger.append_if(JOURNAL, NEW, [line(1, ledger)])
        ledger.timeout = 0.5
        proxy.limit(to_client=0)
        proxy.refuses = True
        with pytest.raises(Unsettled, match="not known whether"):
            ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)])
        proxy.refuses = False
        ledger.timeout = 5
        assert ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)]).head == 2
        assert sure.read_after(JOURNAL, NEW).lines == [line(1, sure), line(2, sure)]


def test_no_answer_is_waited_for_longer_than_the_timeout(postgres, colony):
    with proxied(postgres) as proxy, opened(proxy.url(), colony, timeout=2) as ledger:
        ledger.head(JOURNAL)
        proxy.silent = True
        proxy.limit(to_client=0)
        assert ledger.head(JOURNAL) == 0, "asked again on a new connection"
        assert proxy.cuts == 1


def test_what_takes_long_over_a_slow_line_arrives(postgres, colony):
    """The timeout is for silence: a long transfer in which something passes is not cut off."""
    data = os.urandom(640_000)
    with opened(postgres.url(), colony) as ledger:
        name = ledger.put_blob(data)
    with proxied(postgres) as proxy, opened(proxy.url(), colony, timeout=1) as ledger:
        ledger.head(JOURNAL)
        proxy.delay = 0.2
        started = time.monotonic()
        assert ledger.get_blob(name) == data
        assert time.monotonic() - started > 1.5
        assert len(ledger._idle) == 1


# Addresses and secrets


def test_a_password_is_in_no_error(postgres, colony):
    postgres.sql(
        f"do $$ begin create role {postgres_server.LOCKED} login password 'right-one'; exception when others then end $$"
    )
    urls = [
        f"postgresql://{postgres_server.LOCKED}:hunter2secret@/postgres?host={postgres.directory}",
        f"host={postgres.directory} user={postgres_server.LOCKED} password=hunter2secret dbname=postgres",
        "postgresql://u:hunter2secret@127.0.0.1:1/x",
        "postgresql://u:hunter2secret@[broken/x",
        "postgresql://u:hunter2secret@127.0.0.1/x?nonsense=1",
        "postgres://u:hunter2secret@127.0.0.1:port/x",
        "password=hunter2secret nonsense",
        f"postgresql://owner:hunter2secret@/none?host={postgres.directory}",
    ]
    for url in urls:
        with pytest.raises(AetherError) as error:
            store.open_ledger(url, colony, replica="r", timeout=2).head(JOURNAL)
        shown, reason = [], error.value
        while reason is not None:
            shown.append(f"{reason!r} {reason} {vars(reason)}")
            reason = reason.__cause__ or (None if reason.__suppress_context__ else reason.__context__)
        assert "hunter2secret" not in " ".join(shown), url
        assert not {"?.", ".."} & {error.value.what[-2:]}, "the words of the driver are a sentence already"
    assert "hunter2secret" not in repr(store.open_ledger(urls[0], colony, replica="r"))


def test_a_wrong_password_is_refused_at_once(postgres, colony, tmp_path, monkeypatch):
    postgres.sql(
        f"do $$ begin create role {postgres_server.LOCKED} login password 'right-one'; exception when others then end $$"
    )
    store.grant(postgres.url(), colony, postgres_server.LOCKED, "write")
    url = postgres.url(postgres_server.LOCKED)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    for given in (url, url.replace("@/", ":wrong@/")):
        with opened(given, colony) as ledger, pytest.raises(UnsafePath, match=r"\.pgpass"):
            ledger.head(JOURNAL)
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:*:right-one\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    (tmp_path / "services").write_text(
        f"[bees]\nhost={postgres.directory}\ndbname=postgres\nuser={postgres_server.LOCKED}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    for given in (url, "service=bees"):
        with opened(given, colony) as ledger:
            assert ledger.right == "write"


@rows(
    ("url", "mode"),
    [
        ("postgresql://db.example.org/x", "verify-full"),
        ("postgresql://db.example.org/x?sslmode=require", "require"),
        ("postgresql://localhost,db.example.org/x", "verify-full"),
        ("service=far", "verify-full"),
        ("postgresql:///x?service=far", "verify-full"),
        ("service=far sslmode=require", "require"),
        ("host=localhost hostaddr=192.0.2.1", "verify-full"),
        ("host=localhost,localhost hostaddr=,192.0.2.1", "verify-full"),
        ("host=db.example.org hostaddr=127.0.0.1", "verify-full"),
        ("postgresql:///x?hostaddr=192.0.2.1", "verify-full"),
        ("postgresql://localhost/x", None),
        ("postgresql://127.0.0.1/x", None),
        ("postgresql://[::1]/x", None),
        ("postgresql:///x", None),
        ("postgresql:///x?host=/run/postgresql", None),
    ],
)
def test_a_server_that_may_be_on_another_machine_is_verified(url, mode):
    """A service, whose host only libpq knows, is not taken for local."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")

    address = store._address(url, 5)

    assert address.get("sslmode") == mode
    assert address.get("sslrootcert") == ("system" if mode == "verify-full" else None)


@rows(
    "url",
    [
        "postgresql://ana:p@hunter2secret@db.example.org/x",
        "postgresql://ana:hunter2secret/x@db.example.org/x",
        "postgresql://ana@hunter2secret:x@db.example.org/x",
        "postgres://ana:pa/hunter2@secret@db.example.org",
        "postgresql://ana:x?y@hunter2secret@db.example.org/x",
    ],
)
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(url):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(InvalidInput) as error:
        store.open_ledger(url, "bees", replica="r")
    assert "hunter2" not in str(error.value)
    assert "secret" not in str(error.value)


def test_an_encoded_password_is_a_password():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = store._address("postgresql://ana:p%40ss%2Fw@db.example.org/x?options=-c%20a%3Db@c", 5)
    assert (found["password"], found["host"], found["dbname"]) == ("p@ss/w", "db.example.org", "x")
    assert store._address("postgresql://ana:p?w@db.example.org/x", 5)["password"] == "p?w"
    assert store._address("postgresql:///x?host=@abstract", 5)["host"] == "@abstract"


@rows("url", ["user=owner host={0} dbname=postgres", "port=5432 host={0} user=owner dbname=postgres", ""])
def test_every_form_of_an_address_that_libpq_knows_reaches_the_server(url, postgres, colony, monkeypatch):
    monkeypatch.delenv(seam.URL, raising=False)
    if not url:
        for name, value in (
            ("PGHOST", str(postgres.directory)),
            ("PGUSER", "owner"),
            ("PGDATABASE", "postgres"),
        ):
            monkeypatch.setenv(name, value)

    ledger = seam.opened(seam.url(url.format(postgres.directory)), colony, replica="r")

    with closing(ledger):
        assert ledger.head(JOURNAL) == 0


def test_a_colony_with_too_many_lines_to_look_through_has_a_status(postgres, database, monkeypatch):
    store.create_colony(database, "bees").close()
    assert store.status(database, "bees")["checked"] is True
    name = database.partition("@/")[2].partition("?")[0]
    postgres.sql(
        "create or replace function aether.faults(p_colony integer) returns setof text language plpgsql as "
        "$$ begin perform pg_sleep(60); end $$", name,
    )  # fmt: skip

    found = store.status(database, "bees", timeout=2)

    assert found["checked"] is False
    assert found["head"] == 0


def test_the_environment_says_where_the_server_is(monkeypatch):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert store._address("dbname=x", 5)["sslmode"] == "verify-full"
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    assert "sslmode" not in store._address("dbname=x", 5)


@pytest.fixture(scope="module")
def encrypted():
    """Run a server on an address of the loopback, with a certificate for db.example.org that it signed itself."""
    openssl = shutil.which("openssl") or pytest.skip("openssl is not installed")
    with postgres_server.running() as server:
        subprocess.run(
            [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=db.example.org",
             "-addext", "subjectAltName=DNS:db.example.org", "-keyout", server.data / "server.key",
             "-out", server.data / "server.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
        for name in ("server.key", "server.crt"):
            shutil.chown(server.data / name, server.data.stat().st_uid, server.data.stat().st_gid)
        (server.data / "server.key").chmod(0o600)
        with open(server.data / "pg_hba.conf", "a") as rules:
            rules.write("host all all 127.0.0.0/8 trust\n")
        store.create_colony(server.url(), "bees").close()
        address = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"
        server.settings |= {"listen_addresses": address, "ssl": "on"}
        server.restart()
        yield server


def far(server, **parameters):
    """Return the address of the server as that of another machine: libpq connects to the loopback all the same."""
    known = {
        "host": "db.example.org",
        "hostaddr": server.settings["listen_addresses"],
        "user": "owner",
        "dbname": "postgres",
    }
    return " ".join(f"{name}={value}" for name, value in (known | parameters).items())


@rows(
    ("parameters", "encrypts", "reason"),
    [
        ({}, True, "no verified connection: .*certificate verify failed"),
        ({"sslrootcert": "{crt}"}, True, ""),
        (
            {"sslrootcert": "{crt}", "host": "other.example.org"},
            True,
            "no verified connection: .*does not match host name",
        ),
        ({"sslrootcert": "{crt}"}, False, "no verified connection: .*does not support SSL"),
        ({}, False, "no verified connection: .*does not support SSL"),
        ({"sslmode": "require"}, False, "no verified connection: .*does not support SSL"),
    ],
)
def test_a_server_on_another_machine_is_verified(
    encrypted, parameters, encrypts, reason, tmp_path, monkeypatch
):
    """Without its authority it is refused, and no connection goes on without encryption."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if (encrypted.settings["ssl"] == "on") != encrypts:
        encrypted.settings["ssl"] = "on" if encrypts else "off"
        encrypted.restart()
    crt = encrypted.data / "server.crt"
    crt.chmod(0o644)
    shutil.copy(crt, tmp_path / "ca.crt")
    given = {name: value.format(crt=tmp_path / "ca.crt") for name, value in parameters.items()}

    with opened(far(encrypted, **given), "bees") as ledger:
        if not reason:
            head = ledger.head(JOURNAL)
            assert ledger.append_if(JOURNAL, Mark(head, ""), [line(head + 1, ledger)]).done
            assert encrypted.sql(
                "select bool_and(s.ssl) from pg_stat_ssl s join pg_stat_activity a using (pid) where a.client_port > 0"
            ) == [(True,)]
            return
        with pytest.raises(StorageFailed, match=reason) as refused:
            ledger.head(JOURNAL)
    assert ("sslrootcert" if encrypts else "Switch TLS on") in refused.value.fix


def test_the_own_authorities_of_a_user_are_used(encrypted, tmp_path, monkeypatch):
    if encrypted.settings["ssl"] == "off":
        encrypted.settings["ssl"] = "on"
        encrypted.restart()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".postgresql").mkdir()
    shutil.copy(encrypted.data / "server.crt", tmp_path / ".postgresql" / "root.crt")

    with opened(far(encrypted), "bees") as ledger:
        assert ledger.head(JOURNAL) >= 0


def test_without_the_driver_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    store._psycopg.cache_clear()
    with pytest.raises(BackendUnavailable, match=re.escape("pip install '.[postgres]'")):
        store.open_ledger("postgresql:///x", "c", replica="r")
    store._psycopg.cache_clear()


# A pooler in transaction mode


@pytest.fixture
def pooler(postgres, tmp_path):
    """Run pgbouncer in transaction mode before the server; return its URL."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    directory = postgres.directory / f"bouncer{next(_NUMBERS)}"
    directory.mkdir()
    (directory / "users").write_text(f'"{postgres_server.OWNER}" ""\n')
    (directory / "ini").write_text(
        f"[databases]\n* = host={postgres.directory} port=5432\n[pgbouncer]\nunix_socket_dir={directory}\n"
        f"listen_addr=\nlisten_port=6432\nauth_type=any\npool_mode=transaction\ndefault_pool_size=3\n"
        f"auth_file={directory}/users\n[users]\n".replace("auth_type=any", "auth_type=trust")
    )
    for path in (directory, directory / "users", directory / "ini"):
        path.chmod(0o777)
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [program, directory / "ini"], stdout=log, stderr=log, **postgres_server.unprivileged()
        )
    url = f"postgresql://{postgres_server.OWNER}@:6432/postgres?host={directory}"
    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(url).close()
            break
        except psycopg.Error:
            time.sleep(0.02)
    else:
        raise AssertionError((tmp_path / "log").read_text())
    yield url
    process.terminate()
    process.wait()


def test_a_pooler_in_transaction_mode_works(pooler, colony):
    with opened(pooler, colony) as ledger, opened(pooler, colony) as other:
        assert ledger.append_if(JOURNAL, NEW, [line(1, ledger)]).done
        with ledger.turn(JOURNAL, NEW) as news:
            assert news == (1, [line(1, ledger)])
            assert ledger.append_if(JOURNAL, Mark(1, ""), [line(2, ledger)]).done
        ledger.append_if(JOURNAL, Mark(2, ""), [line(3, ledger)])
        assert other.append_if(JOURNAL, NEW, [line(1, other, "late")]).lines == [
            line(number, other) for number in (1, 2, 3)
        ]

        def write(who):
            for number in range(10):
                at = 0
                while not (
                    answer := ledger.append_if("s", Mark(at, ""), [line(1, ledger, f"{who}-{number}")])
                ).done:
                    at = answer.head

        threads = [threading.Thread(target=write, args=(who,)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(other.read_after("s", NEW).lines)) == 60


def test_migrations_run_through_a_pooler(pooler, postgres):
    name = f"pooled{next(_NUMBERS)}_{os.getpid()}"
    postgres.sql(f'create database "{name}"')
    url = pooler.replace("/postgres?", f"/{name}?")
    store.create_colony(url, "bees").close()
    store.grant(url, "bees", "owner", "admin")
    assert [member.right for member in store.members(url, "bees")] == ["admin"]
