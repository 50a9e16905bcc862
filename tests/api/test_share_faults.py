"""What a shared home says of a server or a replica that is not as it should be: a clear error, and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from aether.api import admin
from aether.api import share as sharing
from aether.errors import AetherError, Conflict, StorageFailed, UnsafePath
from aether.paths import resource
from aether.store import conversations, documents, ledger, shared_base
from aether.store.commit import commit, fold_home
from tests import homes

POSTGRES = pytest.mark.parametrize(
    "colony", [pytest.param("postgres", marks=pytest.mark.extras)], indirect=True
)


def disconnect():
    """Let the next call connect again."""
    while ledger._OPEN:
        ledger._OPEN.popitem()[1][2].close()


def sql(colony, *statements):
    import psycopg

    with psycopg.connect(colony.url, autocommit=True) as connection:
        connection.execute("set session characteristics as transaction read write")
        for statement in statements:
            connection.execute(statement)
    disconnect()


@POSTGRES
def test_a_read_only_server_is_read_and_refuses_what_is_added(colony):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    name = colony.url.partition("@/")[2].partition("?")[0]
    sql(colony, f'alter database "{name}" set default_transaction_read_only = on')

    with pytest.raises(StorageFailed, match="the server is read-only"):
        homes.add(one, "b")
    sharing.update_share(home=two)
    assert homes.ids(two) == ["before", "a"]

    sql(colony, f'alter database "{name}" reset default_transaction_read_only')
    homes.add(one, "c")
    assert homes.ids(colony.agree()) == ["before", "a", "c"]


@POSTGRES
def test_a_role_whose_right_is_taken_is_refused_at_once(colony, monkeypatch):
    one, member = colony.first(), f"m{os.getpid()}"
    sql(colony, f"create role {member} login")
    sharing.share_grant(member, "write", home=one)
    monkeypatch.setenv(ledger.URL, colony.url.replace("owner@", f"{member}@"))
    disconnect()
    homes.add(one, "a")

    monkeypatch.setenv(ledger.URL, colony.url)
    sharing.share_revoke(member, home=one)
    monkeypatch.setenv(ledger.URL, colony.url.replace("owner@", f"{member}@"))

    with pytest.raises(UnsafePath, match="aether share grant"):
        homes.add(one, "b")
    assert homes.ids(one) == ["before", "a"]
    monkeypatch.setenv(ledger.URL, colony.url)
    disconnect()
    sql(colony, f"drop owned by {member}", f"drop role {member}")
    assert homes.ids(colony.agree()) == ["before", "a"]


FULL = """create function aether.full() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$"""


def refuses(colony, home, error, words):
    """Check that nothing is added, said or shown wrongly while a server is as it should not be, and nothing is lost."""
    before = {
        path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file() and path.name != "lock"
    }
    for act in (
        lambda: homes.add(home, "refused"),
        lambda: conversations.extend(home, "talk", [{"role": "user", "content": "refused"}], now=homes.NOW),
    ):
        with pytest.raises(error, match=words) as refused:
            act()
        assert refused.value.fix
    assert homes.ids(home) == ["before", "a"]
    after = {
        path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file() and path.name != "lock"
    }
    assert after == before


@POSTGRES
@pytest.mark.parametrize(
    ("harm", "restore", "error", "words"),
    [
        ([FULL, "create trigger full_disk before insert on aether.entries execute function aether.full()"],
         ["drop trigger full_disk on aether.entries"], StorageFailed, "disk of the server is full"),
        (["insert into aether.migrations values (999, 'later')"], ["delete from aether.migrations where version = 999"],
         StorageFailed, "have version 999.*pip install --upgrade"),
        (["create table kept as select * from aether.migrations", "delete from aether.migrations where version > 3"],
         ["insert into aether.migrations select * from kept where version > 3"],
         StorageFailed, "have version 3, .*aether share init"),
        (["create table kept as select * from aether.entries",
          "delete from aether.entries where revision = (select max(revision) from aether.entries)"],
         ["insert into aether.entries select * from kept on conflict do nothing"],
         StorageFailed, "restore the database from a complete backup"),
        (["drop table aether.entries"], [], StorageFailed, "incomplete"),
    ],
    ids=["disk full", "newer tables", "older tables", "lines missing", "a table missing"],
)  # fmt: skip
def test_a_server_that_is_not_as_it_should_be_loses_nothing(colony, harm, restore, error, words):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    sql(colony, *harm)

    refuses(colony, one, error, words)

    sql(colony, *restore)
    if not restore:
        return  # its keys and rights are missing as well: only a complete backup brings it back
    homes.add(two, "b")
    conversations.extend(two, "talk", [{"role": "user", "content": "1"}], now=homes.NOW)
    assert homes.ids(colony.agree()) == ["before", "a", "b"]
    assert len(conversations.load(one, "talk").texts) == 2


@POSTGRES
def test_a_full_disk_of_the_server_lets_a_change_wait(colony, monkeypatch):
    monkeypatch.setenv("AETHER_SHARE_OFFLINE", "queue")
    one, _two = colony.first(), colony.join()
    sql(
        colony,
        FULL,
        "create trigger full_disk before insert on aether.entries execute function aether.full()",
    )

    def plan(found):
        return homes.addition(found, homes.item("waits"))

    assert commit(one, plan, homes.Author("add"), now=homes.NOW, may_wait=True).revision == 0
    sql(colony, "drop trigger full_disk on aether.entries")

    assert homes.ids(colony.agree()) == ["before", "waits"]


@POSTGRES
def test_tables_of_an_earlier_release_are_upgraded_by_who_owns_them(colony):
    """Also by a replica with an edit by hand, which asks the server for what others wrote before it is folded."""
    one = colony.first()
    homes.add(one, "a")
    fold_home(one, now=homes.NOW)
    functions = resource("data/postgres/0002_functions.sql").read_text()
    sql(
        colony, "delete from aether.migrations where version > 3", "drop function aether.drop_blob",
        "create or replace function aether.create_colony(p_name text) returns integer language sql as 'select 0'",
        "drop function aether.set_base", "drop table aether.kept", "alter table aether.streams drop column origin",
        re.sub("create (function|procedure)", r"create or replace \1", functions),
    )  # fmt: skip
    refuses(colony, one, StorageFailed, "aether share init")
    path = documents.path_of(one, "memory")
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    member = f"m{os.getpid()}"
    sql(colony, f"create role {member} login", f"grant aether_admin to {member}")

    with pytest.raises(UnsafePath, match="owns the database"):
        sharing.share(one, colony.url.replace("owner@", f"{member}@"), "c")
    assert sharing.share(one, colony.url, "c").colony == "c"
    with pytest.raises(Conflict, match="the tables of its server are those of this aether"):
        sharing.share(one, colony.url, "c")
    disconnect()

    homes.add(one, "b")
    assert homes.ids(colony.agree()) == ["before", "a", "b"]
    server = ledger.of(one)
    base = shared_base.read(server)
    for part in {name for file in base.files for name in file.blobs}:
        server.drop_blob(part)  # a base of an earlier release stays as well
        assert server.get_blob(part)
    sql(colony, f"drop owned by {member}", f"drop role {member}")


@POSTGRES
def test_a_server_restored_from_an_older_backup_is_refused_by_who_has_more(colony):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    conversations.extend(one, "talk", [{"role": "user", "content": "1"}], now=homes.NOW)
    colony.shorten("", 2)
    colony.shorten("conversations/talk", 2)
    disconnect()

    refuses(colony, one, Conflict, "older backup")
    assert ("error", "other-history") in [(each.level, each.code) for each in admin.examine(home=one)]
    homes.add(two, "b")  # it has no more than the server
    refuses(colony, one, Conflict, "older backup")

    assert homes.ids(two) == ["before", "b"]
    sharing.leave_share(home=one)
    homes.add(one, "alone")
    assert homes.ids(one) == ["before", "a", "alone"]


@POSTGRES
def test_another_colony_of_the_name_is_refused(colony):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    sharing.update_share(home=two)
    sql(colony, "drop schema aether cascade")
    another = homes.fresh(colony.directory / "another")
    homes.add(another, "secret of another")
    sharing.share(another, colony.url, "c")
    disconnect()

    for home in (one, two):
        refuses(colony, home, Conflict, "another colony of the name c")
        with pytest.raises(Conflict, match="another colony"):
            sharing.update_share(home=home)
        assert ("error", "other-history") in [(each.level, each.code) for each in admin.examine(home=home)]
    assert homes.ids(another) == ["secret of another"]


def test_a_replica_that_was_copied_and_its_copy_lose_nothing(colony):
    one, two = colony.first(), colony.join()
    homes.add(two, "a")
    copy = colony.directory / "copy" / ".aether"
    shutil.copytree(two, copy)
    colony.made.append(copy)

    homes.add(two, "b")
    homes.add(copy, "c")
    homes.add(two, "d")
    homes.add(one, "e")

    assert homes.ids(colony.agree()) == ["before", "a", "b", "c", "d", "e"]


def test_a_replica_restored_from_an_older_copy_catches_up(colony):
    _one, two = colony.first(), colony.join()
    copy = colony.directory / "copy" / ".aether"
    shutil.copytree(two, copy)
    homes.add(two, "a")
    shutil.rmtree(two)
    shutil.copytree(copy, two)

    homes.add(two, "b")

    assert homes.ids(colony.agree()) == ["before", "a", "b"]


def test_a_home_that_has_left_and_comes_back_with_its_own_lines_is_refused(colony):
    one, two = colony.first(), colony.join()
    share = (two / ledger.PLACE).read_bytes()
    sharing.leave_share(home=two)
    homes.add(two, "alone")
    homes.add(one, "shared")
    (two / ledger.PLACE).write_bytes(share)

    def plan(found):
        return homes.addition(found, homes.item("more"))

    with pytest.raises(Conflict, match="another"):
        commit(two, plan, homes.Author("add"), now=homes.NOW)
    assert homes.ids(two) == ["before", "alone"]
    with pytest.raises(AetherError):
        sharing.update_share(home=two)
    colony.made.remove(two)
    assert homes.ids(colony.agree()) == ["before", "shared"]
