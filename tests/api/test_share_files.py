"""Files of shared homes: they are in every replica, in no other place, and their blobs go with the last line that names them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from contextlib import nullcontext
from datetime import timedelta

import pytest

import aether
from aether.api import admin, archive, briefing, compress, recall, review, working
from aether.api import home as access
from aether.api import share as sharing
from aether.cli.main import main
from aether.errors import Conflict, NotFound, StorageFailed, UnsafePath
from aether.sharing import ledgers, shared_base, shared_files
from aether.store import (
    archive_steps,
    archive_store,
    conversation_list,
    conversations,
    doctor,
    documents,
    files,
    ledger,
    log,
    snapshot,
    spool,
)
from aether.store import history as store_history
from aether.store import journal as journals
from aether.store.commit import fold_home
from aether.store.ledger import Mark
from aether.store.log import checksum_of
from tests import children, homes
from tests.colonies import content, history, tree

LATER = homes.NOW + timedelta(days=40)
SAID = [{"role": "user", "content": f"We chose SQLite for part {number}."} for number in range(3)]


def blobs_of(colony):
    server = ledgers.opened(colony.url, "c", replica="test")
    _, mark = shared_files._with_news(
        server, shared_files._State("", ledger.Mark(0, ""), {}, frozenset(), {})
    )
    units, _ = shared_files._with_news(
        server, shared_files._State("", ledger.Mark(0, ""), {}, frozenset(), {})
    )
    assert mark.revision == server.head(shared_files.STREAM)
    server.close()
    return {name for unit in units.values() for one in unit.files for name in one.blobs}


def test_a_handoff_that_one_machine_prepared_is_finished_by_another(colony):
    one, two = colony.first(), colony.join()
    working.add_working_memory_item("We chose SQLite.", type="decision", home=one)
    made = compress.prepare_compression_data(1, manual=True, home=one)
    sharing.update_share(home=one)

    found = compress.prepare_compression_data(1, manual=True, home=two)

    assert found.read_bytes() == made.read_bytes()
    assert found != made
    colony.agree()
    assert tree(one) == tree(two)


def test_an_archived_conversation_ages_and_returns_in_every_replica(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    colony.agree()
    log = conversations.path_of(two, "talk").read_bytes()

    archive.age_archive(now=LATER, home=one)
    colony.agree()
    for home in (one, two):
        assert archive.read_archived("talk", home=home)["level"] == "key_points"
        assert not conversations.path_of(home, "talk").exists()
        assert len(archive_store.grace_names(home)) == 1
        with pytest.raises(Conflict, match="was archived"):
            conversations.extend(home, "talk", SAID, now=homes.NOW)
    assert tree(one) == tree(two)

    archive.restore_conversation("talk", home=two)
    colony.agree()
    assert conversations.path_of(one, "talk").read_bytes() == log
    assert tree(one) == tree(two) == {"conversations/talk/history.jsonl": log}


def test_a_conversation_that_goes_on_elsewhere_is_not_hidden_by_its_archive_file(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    colony.agree()
    archive.age_archive(now=LATER, home=one)
    conversations.extend(two, "talk", [{"role": "user", "content": "More."}], now=homes.NOW)

    colony.agree()

    for home in (one, two):
        assert len(conversations.load(home, "talk").texts) == 4
        assert archive.list_archived(home=home) == []
    assert tree(one) == tree(two)


def test_what_two_machines_did_with_one_conversation_is_what_the_first_in_the_ledger_did(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    colony.agree()
    for home in (one, two):
        archive.age_archive(now=LATER, home=home)
    colony.agree()
    assert tree(one) == tree(two)

    archive.age_archive(now=LATER + timedelta(days=300), home=one)
    assert archive.delete_archived("talk", home=two)
    colony.agree()
    assert tree(one) == tree(two) == {}


def test_a_conversation_that_one_machine_brings_back_is_live_although_another_aged_it(colony):
    one, two, three = colony.first(), colony.join(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    colony.agree()
    archive.age_archive(now=LATER + timedelta(days=300), home=two)
    archive.restore_conversation("talk", home=one)
    sharing.update_share(home=two)  # the first in the ledger

    colony.agree()

    assert [*tree(one)] == ["conversations/talk/history.jsonl"]
    assert tree(one) == tree(two) == tree(three)


def test_a_blob_goes_with_the_last_line_that_names_it(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    conversations.extend(one, "copy", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    sharing.update_share(home=one)
    before = blobs_of(colony)
    grace = {row.id: row.grace for row in archive_store.rows(one)}

    archive.age_archive(now=LATER + timedelta(days=31), home=one)  # the grace is over
    sharing.update_share(home=two)
    sharing.update_share(home=one)

    server, left = ledgers.opened(colony.url, "c", replica="test"), blobs_of(colony)
    assert len(before) == 4
    assert len(left) == 2
    for name in before - left:
        with pytest.raises(LookupError):
            server.get_blob(name)
    for name in left:
        assert server.get_blob(name)
    server.close()
    colony.agree()
    assert not any((home / name).exists() for home in (one, two) for name in grace.values())


@pytest.mark.parametrize("others", [False, True])
def test_a_blob_that_could_not_be_removed_is_removed_at_the_next_exchange(colony, monkeypatch, others):
    one, _two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    colony.agree()
    before, server = blobs_of(colony), ledgers.of(one)
    real, calls = server.turn, []

    def turn(stream, mark):
        calls.append(stream)
        if others and len(calls) == 2:  # the first one sends
            line = log.seal_json({"unit": "snapshots/none.json", "member": server.member})
            server.append_if(stream, ledger.Mark(server.head(stream), ""), [line])
        return real(stream, mark)

    def drop(name):
        raise StorageFailed("the server is away.", fix="Wait.", where="server")

    archive.age_archive(now=LATER + timedelta(days=31), home=one)  # the grace is over
    with monkeypatch.context() as patched:
        patched.setattr(server, "turn", turn)
        patched.setattr(server, "drop_blob", drop)
        with nullcontext() if others else pytest.raises(StorageFailed):
            sharing.update_share(home=one)
    left = before - blobs_of(colony)
    for name in left:
        assert server.get_blob(name)

    sharing.update_share(home=one)

    assert left
    for name in left:
        with pytest.raises(LookupError):
            server.get_blob(name)
    colony.agree()


def test_a_snapshot_that_is_lost_after_a_killed_exchange_is_fetched_again(colony):
    one, two = colony.first(), colony.join()
    aether.create_snapshot(home=one)
    sharing.update_share(home=one)

    def die():
        real = files.write_whole

        def write(path, data, **options):
            real(path, data, **options)
            if path.parent.name == "snapshots":
                os._exit(9)

        files.write_whole = write
        sharing.exchange(two)

    assert children.ended(children.start(die)) == 9
    colony.agree()
    (path,) = (two / "snapshots").glob("*.json")
    path.unlink()

    colony.agree()
    assert tree(one) == tree(two) != {}


def test_many_long_lines_are_sent_in_several_calls(colony, monkeypatch):
    monkeypatch.setattr(shared_files, "SEND_BYTES", 1000)
    server, sent = ledgers.created(colony.url, "lines"), []
    real = server.append_if
    monkeypatch.setattr(
        server, "append_if", lambda stream, mark, lines: sent.append(lines) or real(stream, mark, lines)
    )
    lines = [
        log.seal_json({"n": number, "x": "x" * size}) for number, size in enumerate([300] * 9 + [5000, 1, 1])
    ]

    shared_files.send_stream(server, "s", lines)

    assert [len(one) for one in sent] == [2, 2, 2, 2, 1, 1, 2]
    assert ledger.lines_after(server, "s", ledger.Mark(0, "")) == lines
    server.close()


def test_what_was_done_without_the_server_is_sent_later(colony, monkeypatch):
    monkeypatch.setattr(ledger, "TRIED_SECONDS", 0)
    monkeypatch.setattr(access, "FAILED_SECONDS", 0)
    one, two = colony.first(), colony.join()
    monkeypatch.delenv(ledgers.URL)
    aether.create_snapshot("before", home=two)
    assert main(["fold", "--home", str(two)]) == 1
    with pytest.raises(StorageFailed):
        sharing.update_share(home=two)

    monkeypatch.setenv(ledgers.URL, colony.url)
    assert main(["fold", "--home", str(two)]) == 0
    sharing.update_share(home=one)

    assert [each["label"] for each in aether.list_snapshots(home=one)] == ["before"]
    assert tree(one) == tree(two) != {}


def test_a_damaged_file_is_fetched_again_and_never_sent(colony):
    one, two = colony.first(), colony.join()
    aether.create_snapshot("s", home=one)
    working.add_working_memory_item("We chose SQLite.", type="decision", home=one)
    compress.prepare_compression_data(1, manual=True, home=one)
    for talk in ("talk", "other"):
        conversations.extend(one, talk, SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    colony.agree()
    known = tree(one)
    assert len(known) == 6

    for nth, name in enumerate(sorted(known)):
        path = two / name
        if nth % 2 and not name.startswith("snapshots"):
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-9] + b"xxxxxxxx\n")
    colony.agree()

    assert tree(one) == tree(two) == known


def test_a_repair_takes_what_the_colony_has_and_spoils_nothing_elsewhere(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.archive_conversations([{"id": "given", "messages": SAID}], home=one)
    archive.age_archive(now=LATER, home=one)
    colony.agree()
    known = tree(one)

    for name in known:
        path = two / name
        if "grace" in name:
            path.write_bytes(path.read_bytes()[:-3])
        else:
            path.unlink()
    admin.repair(home=two)
    colony.agree()
    assert tree(one) == tree(two) == known

    for name in known:
        (two / name).unlink()
    doctor.repair(two, now=homes.NOW)  # without the server
    colony.agree()
    assert tree(one) == tree(two)
    assert {name for name in known if "given" in name} <= {*tree(two)}


@pytest.mark.parametrize(
    "at", ["put_blob", "append_if", "write", "second write", "list", "state", "drop_blob"]
)
def test_an_exchange_that_was_killed_is_done_again(colony, at):
    one, two = colony.first(), colony.join()
    for talk in ("talk", "gone"):
        conversations.extend(one, talk, SAID, now=homes.NOW)
    archive.age_archive(now=LATER, ids=["gone"], home=one)
    colony.agree()
    archive.age_archive(now=LATER, ids=["talk"], home=one)
    archive.delete_archived("gone", home=one)
    aether.create_snapshot(home=one)
    if at in ("write", "second write", "list"):
        sharing.update_share(home=one)

    def die():
        server = ledgers.of(two if at in ("write", "second write", "list") else one)
        left = iter(range({"second write": 2}.get(at, 1)))

        def killed(real):
            def call(*given, **named):
                done = real(*given, **named)
                next(left)
                return done if left.__length_hint__() else os._exit(9)

            return call

        if at in ("put_blob", "append_if", "drop_blob"):
            setattr(server, at, killed(getattr(server, at)))
        elif at == "list":
            conversation_list.enter = killed(conversation_list.enter)
        elif at == "state":
            shared_files._write_state = lambda *_: os._exit(9)
        else:
            files.write_whole = killed(files.write_whole)
        sharing.exchange(two if at in ("write", "second write", "list") else one)

    assert children.ended(children.start(die)) == 9
    colony.agree()

    assert tree(one) == tree(two)
    assert [name for name in tree(one) if "gone" in name] == []
    assert len(tree(one)) == 3
    for home in (one, two):
        assert archive_steps.examine(home) == []


HOSTILE = [
    ("compressions/../../../escaped.json", ["compressions/../../../escaped.json"]),
    ("compressions/a.json", ["config.toml"]),
    ("compressions/config.toml", ["compressions/config.toml"]),
    ("snapshots/.hidden.json", ["snapshots/.hidden.json"]),
    ("snapshots/a/b.json", ["snapshots/a/b.json"]),
    ("data/memory.json", ["data/memory.json"]),
    ("/tmp/escaped.json", ["/tmp/escaped.json"]),
    ("conversations/x", ["conversations/x/history.jsonl"]),
    ("conversations/x", ["archive/2026/03/../../../../escaped.json"]),
    ("conversations/x", ["archive/2026/03/a.json", "archive/grace/../../config.toml.zst"]),
    ("conversations/x", ["archive/2026/03/no_archive_file.json"]),
    ("conversations/x", ["archive/grace/x.conversation.full.00000000.zst"]),
    ("conversations/x", ["archive/index.sqlite"]),
    ("hooks/settings.json", ["hooks/settings.json"]),
]


def test_a_hostile_line_writes_nowhere(colony):
    one, two = colony.first(), colony.join()
    server = ledgers.opened(colony.url, "c", replica="test")
    name = server.put_blob(b'{"hostile": true}')

    def everything():
        return {
            path: path.read_bytes()
            for path in colony.directory.rglob("*")
            if path.is_file() and path.is_relative_to(two.parent) and "share" not in path.parts
        }

    before, mark = everything(), ledger.Mark(0, "")
    for key, paths in HOSTILE:
        for size in (17, 2**50, -1):
            fields = [{"path": path, "sha256": name, "size": size} for path in paths]
            line = log.seal_json({"unit": key, "files": fields, "member": server.member})
            assert server.append_if(shared_files.STREAM, mark, [line]).done
            mark = ledger.Mark(mark.revision + 1, checksum_of(line))
    parts = [{"path": "compressions/a.json", "sha256": name, "size": 17, "parts": [name] * 100}]
    for fields in (
        {"unit": "compressions/a.json", "files": parts},
        {"unit": ["x"], "files": 3},
        *(
            {"unit": "compressions/b.json", "files": [{"path": "compressions/b.json"} | wrong]}
            for wrong in (
                {"sha256": "../x", "size": 1},
                {"sha256": name, "size": 1, "parts": ["/etc/passwd"]},
            )
        ),
    ):
        line = log.seal_json({**fields, "member": server.member})
        assert server.append_if(shared_files.STREAM, mark, [line]).done
        mark = ledger.Mark(mark.revision + 1, "")
    server.close()

    sharing.update_share(home=two)

    assert {path: data for path, data in everything().items() if before.get(path) != data} == {}
    assert not (colony.directory / "escaped.json").exists()
    assert [each.code for each in admin.examine(home=two) if each.code == "lacking-files"] == [
        "lacking-files"
    ]
    aether.create_snapshot(home=one)  # the others go on
    colony.agree()
    assert tree(one) == tree(two) != {}


def test_a_link_in_the_place_of_a_directory_is_not_followed(colony, tmp_path):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    (tmp_path / "elsewhere").mkdir()
    (two / "archive").mkdir(exist_ok=True)
    for name in ("2026", "grace"):
        (two / "archive" / name).symlink_to(tmp_path / "elsewhere")
    sharing.update_share(home=one)

    sharing.update_share(home=two)

    assert [*(tmp_path / "elsewhere").iterdir()] == []
    assert "lacking-files" in {each.code for each in admin.examine(home=two)}


def test_a_missing_blob_is_reported_and_taken_when_it_is_there(colony):
    one, two = colony.first(), colony.join()
    aether.create_snapshot(home=one)
    sharing.update_share(home=one)
    server = ledgers.opened(colony.url, "c", replica="test")
    (name,) = blobs_of(colony)
    data = server.get_blob(name)
    server.drop_blob(name)

    sharing.update_share(home=two)
    assert "lacking-files" in {each.code for each in admin.examine(home=two)}
    assert tree(two) == {}
    with pytest.raises(Conflict, match=r"would lack the file .?snapshots/.*--force"):
        sharing.leave_share(home=two)
    three = colony.join()
    assert sharing.leave_share(home=three, force=True).missing[0].startswith("the file ")
    (left,) = [each for each in admin.examine(home=three) if each.code == "left-without"]
    assert "has left the colony 'c' without \"the file" in left.message
    # A home may come with such a file of somebody else's.
    (three / "share" / "left.json").write_text(
        json.dumps({"colony": "c", "missing": ["x\x1b[31m\nNothing is wrong"]})
    )
    (left,) = [each for each in admin.examine(home=three) if each.code == "left-without"]
    assert left.message.isprintable()
    colony.made.remove(three)

    sharing.share(three, colony.url, "d")
    sharing.leave_share(home=three)
    assert [each for each in admin.examine(home=three) if each.code == "left-without"] == []

    server.put_blob(data)
    server.close()
    colony.agree()
    assert tree(one) == tree(two) != {}


def test_a_long_file_is_several_blobs_and_many_files_take_several_rounds(colony, monkeypatch):
    monkeypatch.setattr(shared_files, "PART_BYTES", 1000)
    monkeypatch.setattr(shared_files, "ROUND_BYTES", 5000)
    one, two = colony.first(), colony.join()
    for label in "abc":
        aether.create_snapshot(label, home=one)

    colony.agree()

    assert tree(one) == tree(two)
    assert len(tree(one)) == 3
    assert len(blobs_of(colony)) > 6


def test_the_files_may_be_in_a_directory(colony, tmp_path, monkeypatch):
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    colony.agree()
    assert tree(one) == tree(two) != {}
    held = blobs_of(colony)
    places = {path.name for path in (tmp_path / "files").rglob("*") if path.is_file()}
    assert held < places

    archive.delete_archived("talk", home=two)
    colony.agree()
    assert not held & {path.name for path in (tmp_path / "files").rglob("*") if path.is_file()}
    monkeypatch.delenv(ledgers.FILES)
    with pytest.raises(LookupError):
        colony.join()


def test_a_directory_of_files_that_is_not_mounted_swallows_nothing(colony, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    one, two = colony.first(), colony.join()
    aether.create_snapshot(home=one)
    (tmp_path / "files").rename(tmp_path / "unmounted")
    (tmp_path / "files").mkdir()

    with pytest.raises(StorageFailed, match="Mount"):
        sharing.update_share(home=one)
    assert main(["fold", "--home", str(one)]) == 1
    assert "the files of the colony are not there" in capsys.readouterr().err
    found = [(each.level, each.code) for each in admin.examine(home=one) if each.code != "server"]
    assert found == [("info", "unsent-files"), ("warning", "files-away")] or found == [
        ("warning", "files-away"),
        ("info", "unsent-files"),
    ]
    assert (
        "the files of the colony are not there, and nothing was put."
        in sharing.share_status(home=one)["faults"]
    )
    assert list((tmp_path / "files").rglob("*.*")) == []
    with pytest.raises(NotFound, match=ledgers.FILES):
        colony.join()
    monkeypatch.delenv(ledgers.FILES)
    with pytest.raises(NotFound, match=ledgers.FILES):
        colony.join()

    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    (tmp_path / "files").rmdir()
    (tmp_path / "unmounted").rename(tmp_path / "files")
    colony.agree()
    assert tree(one) == tree(two) != {}


def test_a_place_of_an_earlier_release_is_known_by_the_base(colony, tmp_path, monkeypatch):
    """It had no mark, and an empty directory must not become the place of files that are elsewhere."""
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    one, two = colony.first(), colony.join()
    aether.create_snapshot(home=one)
    (mark,) = (tmp_path / "files").rglob(ledgers.PLACED)
    mark.unlink()
    colony.shorten(ledgers.PLACED, 0)
    (tmp_path / "files").rename(tmp_path / "unmounted")
    (tmp_path / "files").mkdir()

    with pytest.raises(StorageFailed, match="Mount"):
        sharing.update_share(home=one)
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []

    (tmp_path / "files").rmdir()
    (tmp_path / "unmounted").rename(tmp_path / "files")
    colony.agree()
    assert tree(one) == tree(two) != {}
    assert mark.exists()


def test_a_place_of_files_that_was_copied_without_its_mark_is_known_by_the_base(
    colony, tmp_path, monkeypatch
):
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    one, two = colony.first(), colony.join()
    (mark,) = (tmp_path / "files").rglob(ledgers.PLACED)
    mark.unlink()

    aether.create_snapshot(home=one)
    colony.agree()

    assert tree(one) == tree(two) != {}
    assert mark.exists()


def test_the_parts_of_the_base_stay_in_the_place_of_files(colony, tmp_path, monkeypatch):
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    one = colony.first()
    server = ledgers.of(one)
    other = sharing._blobs(server).put(b"other")
    for part in (*shared_base.parts(server), other):
        sharing._blobs(server).drop(part)

    assert other not in {path.name for path in (tmp_path / "files").rglob("*")}
    colony.join()
    colony.agree()


def test_a_place_of_files_that_cannot_be_reached_stops_nothing_else(colony, tmp_path, monkeypatch):
    one, two = colony.first(), colony.join()
    (tmp_path / "files").write_text("no directory")
    monkeypatch.setenv(ledgers.FILES, str(tmp_path / "files"))
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    homes.add(one, "a")
    aether.create_snapshot(home=one)
    assert [main(["fold", "--home", str(home)]) for home in (one, two)] == [1, 0]
    assert homes.ids(two) == ["before", "a"]
    assert len(conversations.load(two, "talk").texts) == 3

    (tmp_path / "files").unlink()
    colony.agree()
    assert tree(one) == tree(two)


def test_a_new_base_is_made_from_time_to_time_and_shares_its_blobs_with_the_one_before(colony, monkeypatch):
    monkeypatch.setattr(shared_base, "LINES", 3)
    monkeypatch.setattr(shared_base, "PART_BYTES", 500)
    one = colony.first()
    server = ledgers.opened(colony.url, "c", replica="test")
    first = shared_base.read(server)
    for name in "abcd":
        homes.add(one, name)
    homes.remove(one, "a")
    sharing.update_share(home=one)
    second = shared_base.read(server)

    two = colony.join()

    assert second.revision == first.revision + 5 == snapshot.load(two).revision
    blobs = [{name for file in base.files for name in file.blobs} for base in (first, second)]
    assert blobs[0] & blobs[1]
    for name in blobs[0] - blobs[1]:
        with pytest.raises(LookupError):
            server.get_blob(name)
    colony.agree()
    fold_home(two, now=homes.NOW)
    assert history(one) == history(two) != b""
    for revision in range(1, second.revision + 1):
        assert aether.show("memory", revision=revision, home=two) == aether.show(
            "memory", revision=revision, home=one
        )
    server.close()


def test_of_two_bases_made_at_once_the_blobs_of_the_older_one_are_removed(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    monkeypatch.setattr(shared_base, "LINES", 1)
    server, put = ledgers.of(one), []
    real, keep = server.set_base, server.put_blob

    def late(*given):
        homes.add(two, "b")
        sharing.update_share(home=two)
        return real(*given)

    monkeypatch.setattr(server, "set_base", late)
    monkeypatch.setattr(server, "put_blob", lambda data: put.append(keep(data)) or put[-1])
    sharing.update_share(home=one)

    newest = shared_base.read(server)
    named = {name for file in newest.files for name in file.blobs} | {server.base("")[1]}
    assert newest.revision == snapshot.load(two).revision
    assert set(put) - named
    for name in named:
        assert server.get_blob(name)
    for name in set(put) - named:
        with pytest.raises(LookupError):
            server.get_blob(name)
    colony.join()
    colony.agree()


def test_a_replica_that_lacks_history_makes_no_base(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    sharing.update_share(home=two)
    for path in journals.month_files(two):
        path.unlink()
    monkeypatch.setattr(shared_base, "LINES", 1)
    server = ledgers.opened(colony.url, "c", replica="test")
    before = server.base("")

    sharing.update_share(home=two)

    assert server.base("") == before
    sharing.update_share(home=one)
    assert server.base("")[0] > before[0]
    server.close()


def test_a_damaged_base_is_refused_and_nothing_is_made(colony):
    one = colony.first()
    server = ledgers.opened(colony.url, "c", replica="test")
    revision, name = server.base("")
    data = server.get_blob(name)
    for wrong in (
        b"{}",
        log.seal_json((log.unsealed(data) or {}) | {"files": [{"path": "../x", "sha256": "", "size": 0, "parts": []}]}),
        data.replace(b'"sha256":"', b'"sha256":"0'),
    ):  # fmt: skip
        server.set_base("", ledger.Mark(revision, ""), server.put_blob(wrong))
        with pytest.raises(ValueError):
            colony.join()
        assert not (colony.directory / "r1" / ".aether").exists()
    server.set_base("", ledger.Mark(revision, ""), name)
    server.close()
    assert homes.ids(colony.join()) == homes.ids(one)


def test_a_shared_home_is_exported_and_left_with_everything(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    conversations.extend(one, "live", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, ids=["talk"], home=one)
    homes.add(one, "last")
    aether.create_snapshot(home=one)
    sharing.update_share(home=one)

    given = admin.export(home=two)
    plain = admin.init(colony.directory / "plain" / ".aether")
    admin.import_export(given, home=plain)
    three = colony.join()
    homes.add(one, "after")
    sharing.leave_share(home=three)
    colony.made.remove(three)

    assert homes.ids(plain) == ["before", "last"]
    assert [each.id for each in archive.list_archived(home=plain)] == ["talk"]
    assert [each.id for each in conversations.stored_conversations(plain)] == ["live"]
    assert ledgers.shared(three) is None
    assert tree(three) == tree(one)
    sharing.update_share(home=one)
    for name in documents.NAMES:
        assert content(three, name) == content(one, name)
    monkeypatch.delenv(ledgers.URL)
    shutil.rmtree(two.parent)
    homes.add(three, "alone")
    assert homes.ids(three)[-1] == "alone"


@pytest.mark.extras
def test_only_an_admin_makes_a_base_and_a_reader_takes_files_but_sends_none(
    postgres, tmp_path, monkeypatch, capsys
):
    name, url = f"r{uuid.uuid4().hex[:8]}", postgres.url()
    postgres.sql(f'create role "{name}" login')
    monkeypatch.setenv(ledgers.URL, url)
    colony_name = uuid.uuid4().hex
    home = homes.fresh(tmp_path / "first")
    sharing.share(home, url, colony_name)
    aether.create_snapshot("one", home=home)
    sharing.update_share(home=home)
    sharing.share_grant(name, "read", home=home)
    monkeypatch.setattr(shared_base, "LINES", 0)

    reader = sharing.join(postgres.url(name), colony_name, tmp_path / "reader").home
    monkeypatch.setenv(ledgers.URL, postgres.url(name))
    aether.create_snapshot("two", home=reader)
    sharing.update_share(home=reader)

    assert {each["label"] for each in aether.list_snapshots(home=reader)} == {"one", "two"}
    said = {"event": "UserPromptSubmit", "session": "s", "prompt": "Never push to main."}
    spool.put(str(reader), {**said, "at": "2026-03-01T10:15:00.000000Z"})
    found = {each.code: each for each in admin.examine(home=reader)}
    assert {found["unsent-files"].level, found["unsent-notes"].level} == {"warning"}
    assert "aether share members" in found["unsent-notes"].fix
    assert main(["fold", "--home", str(reader)]) == 1
    assert "1 note of hooks cannot be stored: the role may only read" in capsys.readouterr().err
    for path in (reader / "hooks" / "spool").glob("*.json"):
        path.unlink()
    server = ledgers.opened(postgres.url(name), colony_name, replica="test")
    for right in ("read", "write"):
        monkeypatch.setenv(ledgers.URL, url)
        sharing.share_grant(name, right, home=home)
        with pytest.raises(UnsafePath):
            server.set_base("", ledger.Mark(1, ""), "")
    server.close()
    monkeypatch.setenv(ledgers.URL, postgres.url(name))
    sharing.update_share(home=reader)
    monkeypatch.setenv(ledgers.URL, url)
    sharing.update_share(home=home)
    assert {each["label"] for each in aether.list_snapshots(home=home)} == {"one", "two"}
    while ledgers._OPEN:
        ledgers._OPEN.popitem()[1][2].close()


def test_a_repair_without_the_server_spoils_nothing_for_others(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    archive.age_archive(now=LATER, home=one)
    aether.create_snapshot(home=one)
    colony.agree()
    known = tree(one)
    monkeypatch.delenv(ledgers.URL)

    for name in known:
        path = two / name
        data = path.read_bytes()
        path.write_bytes(data[:-3] if "grace" in name else data.replace(b"talk", b"tall", 1)[:-1] + b" \n")
    admin.repair(home=two)
    for path in (two / "snapshots").iterdir():
        path.unlink()
    admin.repair(home=two)
    monkeypatch.setenv(ledgers.URL, colony.url)
    colony.agree()

    assert tree(one) == tree(two) == known


def test_what_cannot_be_fetched_takes_no_room_from_the_rest(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    monkeypatch.setattr(shared_files, "ROUND_BYTES", 3_000)
    for name in "abc":
        archive.archive_conversations([{"id": name, "messages": SAID}], home=one)
    sharing.update_share(home=one)
    real = shared_files.get_file

    def lost(blobs, file):
        if "_c." not in file.path and "/c." not in file.path:
            raise NotFound("it is missing.", fix="", where=file.path)
        return real(blobs, file)

    with monkeypatch.context() as patch:
        patch.setattr(shared_files, "get_file", lost)
        sharing.update_share(home=two)
        assert [row.id for row in archive_store.rows(two)] == ["c"]
    assert len(shared_files.lacking(two)) == 2
    colony.agree()
    assert tree(one) == tree(two)


def test_a_conversation_of_the_colony_goes_on_although_another_of_its_id_is_archived_elsewhere(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", SAID, now=homes.NOW)
    sharing.update_share(home=one)
    # The other machine has not heard of it.
    given = {"id": "talk", "messages": [{"role": "user", "content": "Something else."}]}
    archive.archive_conversations([given], home=two)
    colony.agree()

    for home in (one, two):
        assert len(store_history.history(conversations.load(home, "talk"))) == len(SAID)
        assert archive_store.find(home, "talk") is None
    kept = b"".join(path.read_bytes() for path in (two / "quarantine").iterdir())
    assert b"Something else." in kept


def test_of_two_archived_conversations_of_one_id_the_other_is_in_quarantine(colony):
    one, two = colony.first(), colony.join()
    for home, words in ((one, "The first."), (two, "The second.")):
        archive.archive_conversations(
            [{"id": "same", "messages": [{"role": "user", "content": words}]}], home=home
        )
    colony.agree()

    assert tree(one) == tree(two)
    assert b"The second." in b"".join(path.read_bytes() for path in (two / "quarantine").iterdir())


def test_a_few_lines_do_not_let_every_replica_write_much_more_than_was_sent(colony, monkeypatch):
    """A member sends one blob, and lines that name it many times: as 64 parts of a file, and as parts of many files."""
    monkeypatch.setattr(shared_files, "PART_BYTES", 1 << 14)
    monkeypatch.setattr(shared_files, "MEMBER_BYTES", 1 << 16)
    one, two = colony.first(), colony.join()
    server, fetched = ledgers.of(one), []

    def send(name, content, *, times=1):
        parts = [server.put_blob(part) for part in shared_files.parts_of(content)] * times
        data = content * times
        file = {
            "path": f"snapshots/{name}.json",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "parts": parts,
        }
        fields = {"unit": f"snapshots/{name}.json", "files": [file], "member": server.member}
        mark = ledger.Mark(server.head(shared_files.STREAM), "")
        assert server.append_if(shared_files.STREAM, mark, [log.seal_json(fields)]).done

    padding = b" " * (shared_files.PART_BYTES * 3)
    send("repeated", padding, times=16)
    for number in range(30):
        send(f"shared{number}", padding + files.json_line({"snapshot_id": f"shared{number}"}))
    send("another", files.json_line({"snapshot_id": "x"}))
    real = type(server).get_blob
    monkeypatch.setattr(
        type(server), "get_blob", lambda self, name: fetched.append(data := real(self, name)) or data
    )

    sharing.update_share(home=two)

    sent = {hashlib.sha256(data).digest(): len(data) for data in fetched}
    assert sum(map(len, fetched)) <= shared_files.MEMBER_BYTES + shared_files.MEMBER_TIMES * sum(
        sent.values()
    )
    assert 0 < len(list((two / "snapshots").glob("shared*"))) < 15
    assert {"snapshots/repeated.json", "snapshots/another.json"} <= shared_files.lacking(two).keys()
    (finding,) = [each for each in admin.examine(home=two) if each.code == "lacking-files"]
    assert f"sent by {server.member!r}" in finding.message


def test_lines_that_no_aether_writes_stop_no_exchange(colony):
    one, two = colony.first(), colony.join()
    server = ledgers.of(one)
    lines = [
        {"unit": "conversations/", "files": []},
        {"unit": "conversations/x", "files": [], "lines": "1e999"},
        {"unit": "snapshots/x.json", "files": [{"path": "snapshots/x.json", "sha256": "0" * 64, "size": "1e999"}]},
    ]  # fmt: skip
    for line in lines:
        sealed = log.seal(files.json_line(line | {"member": server.member}).replace(b'"1e999"', b"1e999"))
        mark = Mark(server.head(shared_files.STREAM), "")
        assert server.append_if(shared_files.STREAM, mark, [sealed]).done
    aether.create_snapshot(home=one)

    colony.agree()

    assert tree(one) == tree(two) != {}
    assert shared_files.lacking(two) == {}


def test_what_waits_in_one_home_waits_in_every_replica_and_is_decided_once(colony, monkeypatch):
    monkeypatch.setenv("AETHER_MEMORY_AGENTS", "propose")
    one, two = colony.first(), colony.join()
    added = working.add_working_memory_item(
        "The exporter runs at night.", "decision", caste="scout", home=one
    )

    waiting = [review.waiting(home=home) for home in (two, one)]

    assert [[item["id"] for item in items] for items in waiting] == [[added], [added]]
    assert added not in [hit["id"] for hit in recall.recall("exporter night", home=two)]
    assert "exporter" not in briefing.session_brief(two, "startup")
    review.decide([added], accept=True, home=two)
    with pytest.raises(NotFound, match="does not wait"):
        review.decide([added], accept=False, home=one)
    assert added in [hit["id"] for hit in recall.recall("exporter night", home=one)]
    colony.agree()
