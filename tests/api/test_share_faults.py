"""What a shared home says of a server or a replica that is not as it should be: a clear error, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import aether
from aether.api import admin, working
from aether.api import home as access
from aether.api import share as sharing
from aether.cli.main import main
from aether.errors import (
    AetherError,
    Conflict,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
)
from aether.sharing import ledgers
from aether.store import commit as commits
from aether.store import conversations, files, history, ledger, log
from aether.store.commit import commit
from aether.types import Change
from tests import children, homes
from tests.lines import line

POSTGRES = pytest.mark.parametrize(
    "colony", [pytest.param("postgres", marks=pytest.mark.extras)], indirect=True
)


def disconnect():
    """Let the next call connect again."""
    while ledgers._OPEN:
        ledgers._OPEN.popitem()[1][2].close()


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
    fault = "the server is read-only, or a standby: nothing can be written there"
    assert fault in sharing.share_status(home=two)["server"]["faults"]

    sql(colony, f'alter database "{name}" reset default_transaction_read_only')
    homes.add(one, "c")
    assert homes.ids(colony.agree()) == ["before", "a", "c"]
    assert fault not in sharing.share_status(home=two)["server"]["faults"]


@POSTGRES
def test_a_role_whose_right_is_taken_is_refused_at_once(colony, monkeypatch):
    one, member = colony.first(), f"m{os.getpid()}"
    sql(colony, f"create role {member} login")
    sharing.share_grant(member, "write", home=one)
    monkeypatch.setenv(ledgers.URL, colony.url.replace("owner@", f"{member}@"))
    disconnect()
    homes.add(one, "a")

    monkeypatch.setenv(ledgers.URL, colony.url)
    sharing.share_revoke(member, home=one)
    monkeypatch.setenv(ledgers.URL, colony.url.replace("owner@", f"{member}@"))

    with pytest.raises(UnsafePath, match="aether share members"):
        homes.add(one, "b")
    assert homes.ids(one) == ["before", "a"]
    monkeypatch.setenv(ledgers.URL, colony.url)
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
        (["create table ran as select * from aether.migrations",
          "delete from aether.migrations where version > 7", "update aether.migrations set version = 3"],
         ["delete from aether.migrations", "insert into aether.migrations select * from ran"],
         StorageFailed, "have version 3, .*of a preview"),
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
    if "disk" not in words and "lines" not in str(harm):
        assert sharing.share_status(home=one)["reachable"], "it answers"
        assert ("error", "unusable") in [(each.level, each.code) for each in admin.examine(home=one)]

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


def killed_sharing(colony, name):
    """Return a home whose sharing was killed when its base was made."""
    home = homes.fresh(colony.directory / name)
    homes.add(home, "before")

    def die():
        sharing._send_conversations = lambda *_: os._exit(9)
        sharing.share(home, colony.url, "c")

    assert children.ended(children.start(die)) == 9
    return home


@POSTGRES
def test_rights_that_were_lost_are_named_and_given_again_by_the_owner(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    member = f"m{os.getpid()}"
    sql(colony, f"create role {member} login", f"update aether.colonies set made_by = '{member}'")
    sharing.share_grant(member, "admin", home=one)
    fault = "no role is an admin of the colony: only the owner of its tables can give rights"
    assert fault not in sharing.share_status(home=one)["server"]["faults"]
    sql(colony, "delete from aether.members")

    assert fault in sharing.share_status(home=one)["server"]["faults"]
    assert f"{fault}." in [each.message for each in admin.examine(home=one)]
    monkeypatch.setenv(ledgers.URL, colony.url.replace("owner@", f"{member}@"))
    disconnect()
    refuses_writes(two)
    assert "share members" in sharing.share_status(home=two)["reason"]

    monkeypatch.setenv(ledgers.URL, colony.url)
    disconnect()
    sharing.share_grant(member, "write", home=one)
    monkeypatch.setenv(ledgers.URL, colony.url.replace("owner@", f"{member}@"))
    disconnect()
    homes.add(two, "a")
    monkeypatch.setenv(ledgers.URL, colony.url)
    disconnect()
    assert homes.ids(colony.agree()) == ["before", "a"]
    sql(colony, f"drop owned by {member}", f"drop role {member}")


def refuses_writes(home):
    with pytest.raises(UnsafePath, match=r"no right in it.*aether share members"):
        homes.add(home, "refused")
    assert homes.ids(home) == ["before"]


@POSTGRES
def test_the_owner_of_the_tables_removes_a_colony_as_the_documentation_says(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    other = homes.fresh(colony.directory / "other")
    sharing.share(other, colony.url, "other")
    text = (Path(__file__).parents[2] / "docs/shared.md").read_text()
    (block,) = [part for part in text.split("```")[1::2] if "temporary table removed" in part]

    sql(colony, block.removeprefix("sql\n").replace("'garden'", "'c'"))

    disconnect()
    for home in (one, two):
        with pytest.raises(NotFound, match="no such colony"):
            homes.add(home, "a")
        sharing.leave_share(home=home, force=True)
        homes.add(home, "alone")
        assert homes.ids(home) == ["before", "alone"]
    homes.add(other, "b")
    assert sharing.share_status(home=other)["lag"] == 0
    sharing.share(one, colony.url, "c")  # the name is free
    for table in ("streams", "entries", "kept", "blobs", "members", "replicas", "colonies"):
        sql(colony, f"do $$ begin assert not exists (select from aether.{table} where colony = 1); end $$")


def test_a_home_that_lost_its_claim_is_known_by_its_history(colony):
    home = killed_sharing(colony, "first")
    shutil.rmtree(home / "share")

    sharing.share(home, colony.url, "c")

    colony.made.append(home)
    colony.join()
    assert homes.ids(colony.agree()) == ["before"]


@POSTGRES
def test_the_name_of_a_home_that_was_lost_before_it_was_shared_can_be_freed(colony):
    shutil.rmtree(killed_sharing(colony, "lost"))
    docs = (Path(__file__).parents[2] / "docs/shared.md").read_text()
    (statement,) = re.findall("`(update aether.colonies .*)`", docs)

    sql(colony, statement.replace("'garden'", "'c'"))

    colony.first()
    colony.join()
    assert homes.ids(colony.agree()) == ["before"]


def test_a_conversation_that_the_colony_has_is_written_whatever_its_name(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    sharing.update_share(home=two)
    monkeypatch.setattr(ledgers, "NAME_BYTES", 3)

    conversations.extend(two, "talk", [{"role": "user", "content": "1"}], now=homes.NOW)
    with pytest.raises(InvalidInput, match="cannot be the id of a conversation"):
        conversations.extend(two, "chat", [{"role": "user", "content": "1"}], now=homes.NOW)

    sharing.update_share(home=one)
    assert len(conversations.load(one, "talk").texts) == 2


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
    with pytest.raises(Conflict, match="another history"):
        sharing.leave_share(home=one)
    sharing.leave_share(home=one, force=True)
    homes.add(one, "alone")
    assert homes.ids(one) == ["before", "a", "alone"]


@pytest.mark.parametrize("goes_on", [0, 2], ids=["it has less", "others went on"])
def test_an_older_backup_is_noticed_where_only_conversations_and_files_are_older(colony, goes_on, capsys):
    def say(home, text):
        conversations.extend(home, "talk", [{"role": "user", "content": text}], now=homes.NOW)

    one, two = colony.first(), colony.join()
    say(one, "0")
    aether.create_snapshot(home=one)
    colony.agree()
    held = conversations.load(two, "talk").held
    for text in "12":
        say(one, text)
    aether.create_snapshot(home=one)
    assert main(["fold", "--home", str(one)]) == 0
    colony.shorten("conversations/talk", held)
    colony.shorten("files", 1)
    disconnect()
    for number in range(goes_on):
        say(two, f"other {number}")

    apart = {each["stream"]: each for each in sharing.share_status(home=one)["streams"]}
    assert {name: each["lag"] for name, each in apart.items()} == {
        "conversations/talk": goes_on - 2,
        "files": -1,
    }
    assert all(each["fault"] for each in apart.values())
    found = [
        each.where
        for each in admin.examine(home=one)
        if (each.level, each.code) == ("error", "other-history")
    ]
    assert found == ["files", "conversations/talk"]
    capsys.readouterr()
    assert main(["fold", "--home", str(one)]) == 1
    said = capsys.readouterr().err
    assert "the server has another history of it" in said
    assert "docs/shared.md" in said
    assert main(["share", "status", "--home", str(one)]) == 1
    with pytest.raises(Conflict):
        say(one, "refused")
    with pytest.raises(Conflict, match="would lack"):
        sharing.leave_share(home=one)
    assert sharing.share_status(home=two)["streams"] == []
    assert main(["fold", "--home", str(two)]) == 0


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


DEEP = json.loads("[" * 400 + "]" * 400)
ADDED = homes.item("hostile")
HOSTILE = {
    "no revision": {"revision": None},
    "a text as revision": {"revision": "3"},
    "patches as a list": {"patches": [1]},
    "another document": {"patches": {"evil": []}},
    "a step that is none": {"patches": {"memory": [1]}},
    "a document of another kind": {"patches": {"memory": [{"op": "replace", "path": "", "value": 5}]}},
    "an entry of another kind": {"patches": {"memory": [{"op": "add", "path": "/working_memory/items/-", "value": 5}]}},
    "a newer document": {"patches": {"memory": [{"op": "replace", "path": "/schema_version", "value": 99}]}},
    "a place that is not there": {"patches": {"memory": [{"op": "remove", "path": "/nowhere"}]}},
    "too deep": {"patches": {"memory": [{"op": "test", "path": "", "value": DEEP}]}},
    "another file": {"appends": {"evil": [{}]}},
    "a record of another kind": {"appends": {"items": [{"item": 5, "why": "removed"}]}},
    "a record with a number of its own": {"appends": {"events": [{"event": "x", "at": "", "revision": 1}]}},
    "an inverse of another kind": {"inverse": {"memory": {"op": "remove"}}},
    "an inverse that takes back more": {
        "patches": {"memory": [{"op": "add", "path": "/working_memory/items/-", "value": ADDED}]},
        "inverse": {"memory": [{"op": "replace", "path": "/working_memory/items", "value": []}]},
    },
    "no inverse": {"patches": {"memory": [{"op": "add", "path": "/working_memory/items/-", "value": ADDED}]}},
    "an undo of nothing": {"operation": "undo", "reason": "of revision 1"},
    "an undo without a number": {"operation": "undo", "reason": "of all"},
    "erased": {"erased": True},
    "a number as time": {"at": 5},
    "words as time": {"at": "abc"},
    "a path as time": {"at": "../../x"},
    "a time with more": {"at": "2026-03-01T10:15:00Z\0"},
    "a number as author": {"by": 5},
    "a list as part": {"part": []},
    "a number as key": {"key": 5},
    "a number as member": {"member": 5},
}  # fmt: skip


def hostile(server, number, **fields):
    """Append a line of a member who writes by SQL; one that the server refuses as another server has taken it."""
    mark = ledger.Mark(number - 1, "")
    taken = line(number, server, **fields)
    try:
        assert server.append_if(ledger.JOURNAL, mark, [taken]).done
    except InvalidInput:
        assert server.append_if(ledger.JOURNAL, mark, [line(number, server)]).done
        import psycopg

        with psycopg.connect(os.environ[ledgers.URL], autocommit=True) as connection:
            connection.execute(
                "update aether.entries e set line = %s, checksum = %s from aether.streams s "
                "where s.stream = e.stream and s.name = '' and e.revision = %s",
                (taken, taken[-19:-3], number),
            )
            connection.execute("update aether.streams set checksum = %s where name = ''", (taken[-19:-3],))


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_that_cannot_be_read_is_set_aside_and_stops_nobody(colony, kind):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    server, head = ledgers.of(one), ledgers.of(one).head(ledger.JOURNAL)
    hostile(server, head + 1, **HOSTILE[kind])
    disconnect()

    homes.add(two, "b")
    homes.add(one, "c")
    assert sharing.update_share(home=two) == head + 3
    assert homes.ids(colony.agree()) == ["before", "a", "b", "c"]
    assert homes.ids(colony.join()) == ["before", "a", "b", "c"]
    for home in (one, two):
        (finding,) = [each for each in admin.examine(home=home) if each.code == "unreadable-line"]
        member = "an unknown member" if kind == "a number as member" else repr(server.member)
        assert f"line {head + 1} of the colony cannot be read" in finding.message
        assert kind == "a number as member" or f"{member} sent it" in finding.message
        assert [finding.message] == sharing.share_status(home=home)["unread"]
        assert [entry.revision for entry in admin.log(home=home) if entry.operation == "set aside"] == [
            head + 1
        ]

    with pytest.raises(NotFound, match="set no line"):
        sharing.share_remove(head, home=one)
    sharing.share_remove(head + 1, home=one)
    assert sharing.share_status(home=one)["unread"] == []
    taken = ledgers.of(one).read_after(ledger.JOURNAL, ledger.Mark(head, "")).lines[0]
    assert taken in colony.agree().joinpath("data/journal/2026-03.jsonl").read_bytes().splitlines(
        keepends=True
    )
    late = colony.join()
    assert sharing.share_status(home=late)["unread"] == []
    assert homes.ids(colony.agree()) == ["before", "a", "b", "c"]


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("folded", [False, True])
def test_what_was_set_aside_is_repaired_like_any_line(colony, folded, removed):
    one, two = colony.first(), colony.join()
    server, head = ledgers.of(one), ledgers.of(one).head(ledger.JOURNAL)
    hostile(server, head + 1, patches={"memory": [{"op": "remove", "path": "/nowhere"}]})
    disconnect()
    homes.add(two, "b")
    if folded:
        sharing.update_share(home=two)
    if removed:
        sharing.update_share(home=one)
        sharing.share_remove(head + 1, home=one)
    path = two / ("data/journal/2026-03.jsonl" if folded else "data/journal.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"set aside"', b'"set Aside"'))

    admin.repair(home=two)
    homes.add(two, "c")

    assert homes.ids(colony.agree()) == ["before", "b", "c"]


def test_a_part_that_another_member_adds_to_an_import_is_not_undone_with_it(colony, monkeypatch):
    one = colony.first()
    for number in (1, 2):
        commit(
            one, lambda found, number=number: homes.addition(found, homes.item(f"mine{number}")),
            homes.Author("import", part=f"talk/{number}"), now=homes.NOW,
        )  # fmt: skip
    colony.act_as("mallory", monkeypatch)
    commit(
        one, lambda found: homes.addition(found, homes.item("theirs")), homes.Author("import", part="talk/3"), now=homes.NOW
    )  # fmt: skip

    admin.undo(ledgers.of(one).head(ledger.JOURNAL) - 1, home=one)

    assert homes.ids(one) == ["before", "theirs"]


@pytest.mark.parametrize("kind", ["other history", "no right"])
def test_a_home_that_is_refused_is_searched_as_before(colony, kind, monkeypatch):
    one, two = colony.first(), colony.join()
    homes.add(one, "a", "the queue is blocked by a lock")
    sharing.update_share(home=two)
    if kind == "other history":
        colony.shorten(ledger.JOURNAL, ledgers.of(two).head(ledger.JOURNAL) - 1)
    else:
        refusal = UnsafePath("the role has the right read.", fix="Ask.", where="server")
        monkeypatch.setattr(
            type(ledgers.of(two)), "append_if", lambda *_, **__: (_ for _ in ()).throw(refusal)
        )
    assert [hit.id for hit in aether.recall("queue lock", home=two)] == ["a"]
    assert working.get_working_memory_item("a", home=two)["content"] == "the queue is blocked by a lock"


CONVERSATIONS = {
    "no id": ("", [b'{"n":1}\n']),
    "no record": ("bad", [b"no line\n"]),
    "a step without its fields": ("bad", [log.seal(b'{"line":2,"step":1}')]),
    "no object": ("bad", [log.seal(b"[1]")]),
    "a message that is none": ("bad", [log.seal(b'{"n":1,"at":"","line":2,"message":5}')]),
    "a number that fills the memory": ("bad", [log.seal(b'{"n":99999999999,"at":"","line":2,"message":{}}')]),
    "runs that fill the memory": (
        "bad",
        [log.seal(b'{"line":2,"at":"","step":1,"before":[[1,99999999999]],"after":[],"receipt":{}}')],
    ),
    "of another id": ("bad", [history.header("other")]),
    "of a newer aether": ("bad", [log.seal_json({"conversation": "bad", "format": 99})]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONVERSATIONS)
def test_a_conversation_that_cannot_be_taken_stops_no_other(colony, kind):
    one, two = colony.first(), colony.join()
    name, lines = CONVERSATIONS[kind]
    if lines[0].startswith(b'{"line":2') or b'"line":2' in lines[0]:
        lines = [history.header(name), *lines]
    server = ledgers.of(one)
    try:
        assert server.append_if(f"conversations/{name}", ledger.Mark(0, ""), lines).done
    except InvalidInput:  # the server sees that they are no sealed lines
        return
    conversations.extend(one, "later", [{"role": "user", "content": "0"}], now=homes.NOW)

    joined = colony.join()
    for home in (one, two, joined):
        sharing.update_share(home=home)
        admin.fold(home=home)
        assert len(conversations.load(home, "later").texts) == 1
        found = [each for each in admin.examine(home=home) if each.level == "error"]
        assert [(each.code, each.where) for each in found] == [
            ("unread-conversation", f"conversations/{name}")
        ]
        assert repr(name) in sharing.share_status(home=home)["unread"][0]
    assert not any(
        path.name != "later" and any(path.glob("history.jsonl")) for path in two.glob("conversations/*")
    )
    with pytest.raises(Conflict, match="would lack conversation"):
        sharing.leave_share(home=two)
    sharing.leave_share(home=two, force=True)
    assert [each for each in admin.examine(home=two) if each.level == "error"] == []


def test_a_conversation_that_another_process_writes_stops_no_other_and_is_no_fault(colony):
    one, two = colony.first(), colony.join()
    for name in ("busy", "later"):
        conversations.extend(one, name, [{"role": "user", "content": "0"}], now=homes.NOW)
    homes.configure(two, "[store]\nlock_timeout_seconds = 0.1\n")
    place = conversations.path_of(two, "busy").parent
    place.mkdir(parents=True)

    with files.locked(place):
        sharing.update_share(home=two)

    assert [len(conversations.load(two, name).texts) for name in ("busy", "later")] == [0, 1]
    assert sharing.share_status(home=two)["unread"] == []
    sharing.update_share(home=two)
    assert len(conversations.load(two, "busy").texts) == 1


def test_a_call_that_is_longer_than_the_server_answers_at_once_is_taken(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    if "directory" in colony.url:
        real = ledgers.of(two).read_after
        monkeypatch.setattr(
            type(ledgers.of(two)), "read_after",
            lambda self, stream, mark, limit=2: real(stream, mark, limit=min(limit, 2)),
        )  # fmt: skip
    else:
        monkeypatch.setattr("aether.sharing.postgres.READ_BYTES", 1000)
    said = [{"role": "user", "content": f"{number} {'x' * 600}"} for number in range(20)]

    conversations.extend(one, "talk", said, now=homes.NOW)
    conversations.extend(one, "talk", [*said, {"role": "user", "content": "last"}], now=homes.NOW)
    sharing.update_share(home=two)
    joined = colony.join()

    for home in (two, joined):
        assert (
            conversations.path_of(home, "talk").read_bytes()
            == conversations.path_of(one, "talk").read_bytes()
        )
    colony.agree()


def test_a_replica_that_is_far_behind_is_folded_on_the_way(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    for number in range(12):
        homes.add(one, str(number), "x" * 500)
    real = ledgers.of(two).read_after
    monkeypatch.setattr(
        type(ledgers.of(two)), "read_after", lambda self, stream, mark, limit=2: real(stream, mark, limit=min(limit, 2)),
    )  # fmt: skip
    monkeypatch.setenv("AETHER_STORE_FOLD_BYTES", "3000")
    sizes = []

    def appended(path, *rest, **options):
        log.append(path, *rest, **options)
        sizes.append(path.stat().st_size)

    monkeypatch.setattr(commits, "append", appended)

    sharing.update_share(home=two)

    assert max(sizes) < 3000 + 2 * 1500
    assert len(homes.ids(two)) == 13
    colony.agree()


def test_one_who_is_far_behind_in_a_conversation_writes_at_once(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    real = ledgers.of(two).read_after
    monkeypatch.setattr(
        type(ledgers.of(two)), "read_after", lambda self, stream, mark, limit=2: real(stream, mark, limit=min(limit, 2)),
    )  # fmt: skip
    for number in range(30):
        conversations.extend(one, "talk", [{"role": "user", "content": str(number)}], now=homes.NOW)

    conversations.extend(two, "talk", [{"role": "user", "content": "mine"}], now=homes.NOW)

    said = [message["content"] for message in history.history(conversations.load(two, "talk"))]
    assert said == [*map(str, range(30)), "mine"]


def test_one_who_is_far_behind_in_the_journal_writes_at_once(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    for number in range(30):
        homes.add(one, str(number))
    real = ledgers.of(two).read_after
    monkeypatch.setattr(
        type(ledgers.of(two)), "read_after", lambda self, stream, mark, limit=2: real(stream, mark, limit=min(limit, 2)),
    )  # fmt: skip
    if "directory" in colony.url:
        monkeypatch.setattr("tests.directory_ledger.ANSWER_LINES", 2)
    monkeypatch.setattr("aether.sharing.postgres.READ_LINES", 2)

    homes.add(two, "mine")

    assert homes.ids(two) == ["before", *map(str, range(30)), "mine"]


def test_a_home_that_is_refused_says_so_while_it_reads_what_it_has(colony, capsys):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    sharing.update_share(home=one)
    colony.shorten(ledger.JOURNAL, ledgers.of(one).head(ledger.JOURNAL) - 1)
    disconnect()
    access._NEXT_LOOK.clear()

    assert main(["--home", str(one), "memory", "show"]) == 0
    shown = capsys.readouterr()
    assert "Note: no news from the colony: " in shown.err

    access._NEXT_LOOK.clear()
    assert main(["--home", str(two), "memory", "show"]) == 0
    assert "nothing new" not in capsys.readouterr().err


@POSTGRES
def test_the_status_of_a_role_without_a_right_says_that_the_server_answered(colony, monkeypatch):
    one, stranger = colony.first(), f"s{os.getpid()}"
    sql(colony, f"create role {stranger} login")
    monkeypatch.setenv(ledgers.URL, colony.url.replace("owner@", f"{stranger}@"))
    disconnect()

    found = sharing.share_status(home=one)

    assert (found["reachable"], "server" in found) == (True, False)
    assert "right" in found["reason"]
    assert main(["--home", str(one), "share", "status"]) == 1
    assert ("warning", "refused") in [(each.level, each.code) for each in admin.examine(home=one)]
    sql(colony, f"drop role {stranger}")


def test_a_change_that_other_machines_would_refuse_is_refused_to_its_writer(colony):
    one, two = colony.first(), colony.join()
    bad = {"id": "x", "type": "note", "content": 5}

    def plan(snapshot):
        return Change({"memory": [{"op": "add", "path": "/working_memory/items/-", "value": bad}]})

    before = homes.ids(one)
    with pytest.raises(InvalidInput, match="the other machines of the colony would refuse the change"):
        commit(one, plan, commits.Author("test"), now=homes.NOW)

    homes.add(one, "after")
    assert homes.ids(colony.agree()) == [*before, "after"]
    assert homes.ids(two) == [*before, "after"]
