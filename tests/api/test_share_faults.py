"""What a shared home says of a server or a replica that is not as it should be: a clear error, and nothing is lost."""

from __future__ import annotations

import os
import shutil

import pytest

from aether.api import share as sharing
from aether.errors import AetherError, Conflict, StorageFailed, UnsafePath
from aether.store import ledger
from aether.store.commit import commit
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


@POSTGRES
def test_tables_of_another_version_are_refused_by_a_home(colony):
    one = colony.first()
    sql(colony, "insert into aether.migrations values (999, 'later')")

    with pytest.raises(StorageFailed, match="have version 999"):
        homes.add(one, "a")
    assert homes.ids(one) == ["before"]

    sql(colony, "delete from aether.migrations where version = 999")
    homes.add(one, "b")
    assert homes.ids(colony.agree()) == ["before", "b"]


@POSTGRES
def test_a_colony_restored_in_part_is_refused_by_a_home(colony):
    one = colony.first()
    homes.add(one, "a")
    sql(colony, "delete from aether.entries where revision = (select max(revision) from aether.entries)")

    with pytest.raises(StorageFailed, match="restore the database from a complete backup"):
        homes.add(one, "b")
    assert homes.ids(one) == ["before", "a"]


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
