"""Shared homes over a ledger: every acknowledged write once in every replica, in one order, and byte for byte the same."""

from __future__ import annotations

import os
import re
import shutil
import threading
import uuid
from contextlib import suppress

import pytest

import aether
from aether.api import admin, briefing, working
from aether.api import forget as forgetting
from aether.api import home as access
from aether.api import share as sharing
from aether.cli.main import main
from aether.errors import Conflict, InvalidInput, NotFound, StorageFailed
from aether.sharing import ledgers, shared_base
from aether.store import commit as commits
from aether.store import conversations, doctor, documents, ledger, log, record_files, snapshot
from aether.store import history as store_history
from aether.store import journal as journals
from aether.store.commit import fold_home
from aether.types import Change
from tests import children, directory_ledger, homes
from tests.colonies import Colony, content, history


def test_a_replica_has_everything_byte_for_byte(colony):
    home = colony.first()
    homes.add(home, "one")
    homes.remove(home, "before")

    other = colony.join()

    assert homes.ids(other) == ["one"]
    assert (other / "data/archive/items").is_dir()
    colony.agree()


def test_replicas_write_in_turns_and_see_each_other(colony):
    one, two = colony.first(), colony.join()

    homes.add(one, "a")
    homes.add(two, "b")
    homes.add(one, "c")

    assert homes.ids(colony.agree()) == ["before", "a", "b", "c"]
    assert [each.revision for each in journals.folded_entries(one)] == list(range(1, 6))


def test_a_refusal_counts_for_the_newest_state_only(colony):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")

    def plan(found):
        if len(found.documents["memory"]["working_memory"]["items"]) < 2:
            raise NotFound("there is no a.", fix="Add it.")
        return homes.removal(found, "a")

    commits.commit(two, plan, commits.Author("remove"), now=homes.NOW)  # `two` has not seen it yet
    with pytest.raises(NotFound):
        commits.commit(one, plan, commits.Author("remove"), now=homes.NOW)

    assert homes.ids(colony.agree()) == ["before"]


@pytest.fixture
def met(colony):
    """Return two replicas; the second lacks a line of the first, and waits for its turn before it appends."""
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    return one, two


def test_a_turn_that_fails_stores_nothing_of_what_others_wrote_and_the_next_one_does(
    colony, met, monkeypatch
):
    journal = journals.journal_path(met[1])
    before = journal.read_bytes()

    def fail(*arguments, **named):
        raise StorageFailed("the server is full.", fix="Make room.", where="here")

    with monkeypatch.context() as patched:
        patched.setattr(type(ledgers.of(met[1])), "append_if", fail)
        with pytest.raises(ledger.Offline):
            homes.add(met[1], "b")
    assert journal.read_bytes() == before

    homes.add(met[1], "b")
    assert homes.ids(colony.agree()) == ["before", "a", "b"]


def test_a_change_that_does_nothing_is_answered_by_the_newest_state(met):
    two = met[1]
    unchanged = commits.commit(two, lambda found: Change({}), commits.Author("x"), now=homes.NOW)
    assert (unchanged.changed, unchanged.revision) == (False, snapshot.load(two).revision)
    assert homes.ids(two) == ["before", "a"]


def test_a_turn_that_was_over_before_the_append_is_taken_again(colony, met):
    one, two = met
    seen = []

    def plan(found):
        seen.append(found.revision)
        if len(seen) == 2:
            if colony.url.startswith(directory_ledger.START):
                ledgers.of(two).turns.pop("").close()
            else:
                ledgers.of(two)._turns.of.pop("").execute("rollback")
            homes.add(one, "between")
        return homes.addition(found, homes.item("b"))

    commits.commit(two, plan, commits.Author("add"), now=homes.NOW)

    assert seen == [2, 3, 4]
    assert homes.ids(colony.agree()) == ["before", "a", "between", "b"]


def test_many_writers_of_many_replicas_lose_nothing(colony):
    replicas = [colony.first(), colony.join(), colony.join()]

    def work(who):
        for number in range(6):
            homes.add(replicas[who % 3], f"{who}-{number}")

    started = [children.start(work, who) for who in range(6)]
    assert [children.ended(child) for child in started] == [0] * 6

    stored = homes.ids(colony.agree())
    assert sorted(stored) == sorted(["before", *(f"{who}-{n}" for who in range(6) for n in range(6))])


def test_an_undo_a_hand_edit_and_a_fold_are_the_same_everywhere(colony):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")
    fold_home(one, now=homes.NOW)
    path = documents.path_of(two, "memory")
    sharing.update_share(home=two)
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    homes.add(two, "b")
    sharing.update_share(home=one)

    aether.undo(home=one)

    assert homes.ids(colony.agree()) == ["before", "a"]
    assert b'"edited"' in content(one, "memory")


def test_a_hand_edit_that_others_were_before_is_merged_with_what_they_wrote(colony):
    one, two = colony.first(), colony.join()
    path = documents.path_of(two, "memory")
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    homes.add(one, "a")

    assert homes.ids(colony.agree()) == ["before", "a"]
    assert b'"edited"' in content(one, "memory")


def test_a_home_without_its_server_refuses_and_goes_on_later(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    monkeypatch.delenv(ledgers.URL)

    with pytest.raises(StorageFailed, match=ledgers.URL):
        homes.add(two, "lost")
    assert homes.ids(two) == ["before"]
    assert sharing.share_status(home=two)["reachable"] is False

    monkeypatch.setenv(ledgers.URL, colony.url)
    homes.add(two, "a")
    assert homes.ids(colony.agree()) == ["before", "a"]
    assert sharing.share_status(home=one)["lag"] == 0


def test_a_replica_killed_after_the_ledger_took_its_line_has_it_after_the_next_write(colony):
    _one, two = colony.first(), colony.join()

    def killed():
        commits.append = lambda *args, **kwargs: os._exit(9)
        homes.add(two, "a")

    assert children.ended(children.start(killed)) == 9
    homes.add(two, "b")

    assert homes.ids(colony.agree()) == ["before", "a", "b"]


def test_an_answer_that_is_lost_is_said_to_be_unknown_and_its_line_is_kept_once(tmp_path, monkeypatch):
    monkeypatch.setitem(ledgers.MODULES, directory_ledger.START, directory_ledger.__name__)
    (tmp_path / "server").mkdir()
    url = f"{directory_ledger.START}{tmp_path / 'server'}"
    monkeypatch.setenv(ledgers.URL, url)
    colony = Colony(tmp_path, url)
    _one, two = colony.first(), colony.join()
    (tmp_path / "server" / "lose").write_text("append_if")

    with pytest.raises(StorageFailed, match="Whether the change is stored is not known"):
        homes.add(two, "a")
    homes.add(two, "b")

    assert homes.ids(colony.agree()) == ["before", "a", "b"]


def test_no_text_is_erased_from_one_replica_alone(colony):
    with pytest.raises(Conflict, match="cannot be erased from one replica"):
        forgetting.erase(match="a secret text", home=colony.first())


def test_a_home_that_leaves_goes_on_alone(colony):
    one, two = colony.first(), colony.join()

    sharing.leave_share(home=two)
    colony.made.remove(two)
    homes.add(two, "alone")
    homes.add(one, "shared")

    assert homes.ids(two) == ["before", "alone"]
    assert homes.ids(colony.agree()) == ["before", "shared"]
    with pytest.raises(NotFound, match="not shared"):
        sharing.leave_share(home=two)


def test_two_replicas_in_one_conversation_lose_nothing(colony):
    one = colony.first()
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    two = colony.join()

    for number, home in enumerate((one, two, two, one), 1):
        conversations.extend(home, "talk", [{"role": "user", "content": str(number)}], now=homes.NOW)
    conversations.extend(two, "other", [{"role": "user", "content": "x"}] * 3, now=homes.NOW)
    colony.agree()

    for talk in ("talk", "other"):
        assert conversations.path_of(one, talk).read_bytes() == conversations.path_of(two, talk).read_bytes()
    said = [message["content"] for message in store_history.history(conversations.load(one, "talk"))]
    assert said == ["0", "1", "2", "3", "4"]


def test_who_comes_late_in_a_conversation_takes_a_turn(colony, monkeypatch):
    one = colony.first()
    conversations.extend(one, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    two, rivals, real = colony.join(), [], conversations._agree

    def extend(home, text):
        conversations.extend(home, "talk", [{"role": "user", "content": text}], now=homes.NOW)

    def rivalled(home, *rest):
        if home == one and len(rivals) < 10:  # another machine is first each time, unless it has to wait
            rivals.append(threading.Thread(target=extend, args=(two, f"rival {len(rivals)}")))
            rivals[-1].start()
            rivals[-1].join(0.5)
        return real(home, *rest)

    monkeypatch.setattr(conversations, "_agree", rivalled)
    extend(one, "late")
    for each in rivals:
        each.join()
    colony.agree()

    said = [message["content"] for message in store_history.history(conversations.load(one, "talk"))]
    assert sorted(said) == ["0", "late", *(f"rival {n}" for n in range(len(rivals)))]
    monkeypatch.setattr(conversations, "RIVALS_SECONDS", -1)
    monkeypatch.setattr(conversations, "_agree", lambda *_: False)
    with pytest.raises(Conflict, match="other machines added to the conversation"):
        extend(one, "outrun")


def test_many_writers_of_one_conversation_lose_nothing(colony):
    replicas = [colony.first(), colony.join(), colony.join(), colony.join()]

    def work(who):
        for number in range(10):
            said = [{"role": "user", "content": f"{who}-{number}"}]
            conversations.extend(replicas[who], "talk", said, now=homes.NOW)

    started = [children.start(work, who) for who in range(4)]
    assert [children.ended(child) for child in started] == [0] * 4
    colony.agree()

    said = [message["content"] for message in store_history.history(conversations.load(replicas[0], "talk"))]
    assert sorted(said) == sorted(f"{who}-{number}" for who in range(4) for number in range(10))


def test_what_is_said_while_a_home_is_shared_is_in_the_colony(colony, monkeypatch):
    home = homes.fresh(colony.directory / "first")
    conversations.extend(home, "talk", [{"role": "user", "content": "0"}], now=homes.NOW)
    real, sent = sharing._send_conversations, []

    def say(talk):
        conversations.extend(home, talk, [{"role": "user", "content": "meanwhile"}], now=homes.NOW)

    def late(server, place):
        real(server, place)
        if not sent:
            assert [children.ended(children.start(say, talk)) for talk in ("talk", "new")] == [0, 0]
        sent.append(place)

    monkeypatch.setattr(sharing, "_send_conversations", late)
    sharing.share(home, colony.url, "c")
    colony.made.append(home)
    conversations.extend(home, "talk", [{"role": "user", "content": "later"}], now=homes.NOW)
    two = colony.join()

    for talk in ("talk", "new"):
        assert conversations.path_of(home, talk).read_bytes() == conversations.path_of(two, talk).read_bytes()
    said = [message["content"] for message in store_history.history(conversations.load(two, "talk"))]
    assert said == ["0", "meanwhile", "later"]


def test_a_home_takes_nothing_of_another_colony_of_its_name(colony, tmp_path, monkeypatch):
    one = colony.first()
    conversations.extend(one, "talk", [{"role": "user", "content": "secret"}], now=homes.NOW)
    cloned = homes.fresh(tmp_path / "cloned")
    ledgers.write_share(cloned, ledgers.Share("c", "another", "replica_1"))

    for act in (sharing.exchange, lambda home: sharing.share_members(home=home)):
        with pytest.raises(Conflict, match="another colony of the name"):
            act(cloned)
    assert main(["fold", "--home", str(cloned)]) != 2
    assert not (cloned / "conversations" / "talk").exists()


def test_a_reader_sees_what_others_wrote_and_a_hook_asks_nobody(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    homes.add(one, "a")

    with ledger.staying_local():
        assert len(aether.list_working_memory_items(home=two)) == 1
        with pytest.raises(StorageFailed, match="does not wait"):
            homes.add(two, "hook")
    monkeypatch.setattr(access, "_NEXT_LOOK", {})

    assert {each["id"] for each in aether.list_working_memory_items(home=two)} == {"before", "a"}


def test_who_has_just_written_has_what_others_wrote_and_asks_for_no_news(colony, monkeypatch):
    one = colony.first()
    asked = []

    def ask(*arguments, **named):
        asked.append(arguments)
        raise StorageFailed("the server went away.", fix="Start it.", where="here")

    aether.add_working_memory_item("a", "note", home=one)
    with monkeypatch.context() as patched:
        patched.setitem(access._NEXT_LOOK, one, 0.0)
        with monkeypatch.context() as late:
            late.setattr(access, "_refresh", lambda place: None)
            aether.add_working_memory_item("b", "note", home=one)
        patched.setattr(type(ledgers.of(one)), "read_after", ask)

        assert len(aether.list_working_memory_items(home=one)) == 3
        assert asked == []

        patched.setitem(access._NEXT_LOOK, one, 0.0)
        assert len(aether.list_working_memory_items(home=one)) == 3
        assert len(asked) == 1


def test_a_replica_waits_until_others_have_written(colony):
    one, two = colony.first(), colony.join()

    assert sharing.update_share(home=two, wait=0.01) == 2
    writing = threading.Timer(0.1, lambda: homes.add(one, "a"))
    writing.start()
    assert sharing.update_share(home=two, wait=30) == 3
    writing.join()


def test_a_home_that_was_never_shared_imports_and_asks_nothing(home, monkeypatch):
    monkeypatch.setattr(ledger, "_SHARING", "there.is.none")

    homes.add(home, "one")

    assert not (home / ledger.PLACE).exists()


def test_a_home_is_shared_once_and_joined_where_none_is(colony):
    home = colony.first()

    with pytest.raises(Conflict, match="already"):
        sharing.share(home, colony.url, "c")
    other = homes.fresh(colony.directory / "other")
    with pytest.raises(Conflict, match="of this name already"):
        sharing.share(other, colony.url, "c")
    with pytest.raises(Conflict, match="a home already"):
        sharing.join(colony.url, "c", colony.directory / "other")
    with pytest.raises((NotFound, StorageFailed)):
        sharing.join(colony.url, uuid.uuid4().hex, colony.directory / "none")
    assert not (colony.directory / "none" / ".aether").exists()
    with pytest.raises(InvalidInput, match="address"):
        sharing.join("what", "c", colony.directory / "none")
    assert ledgers.shared(other) is None
    assert "postgres" not in (home / ledger.PLACE).read_text() + str(ledgers.shared(home))


@pytest.mark.parametrize("killed", ["created", "base", "conversations", "sent", "named", "files"])
def test_a_sharing_that_was_killed_goes_on_when_it_is_run_again(colony, killed, monkeypatch):
    home = homes.fresh(colony.directory / "first")
    for number in range(6):
        homes.add(home, f"{number}")
    conversations.extend(home, "talk", [{"role": "user", "content": "x"}] * 5, now=homes.NOW)
    aether.create_snapshot(home=home)

    def die():
        calls = {"conversations": 1, "files": 2}.get(killed)
        if killed == "sent":
            ledgers.write_share = lambda *_: os._exit(9)
        elif killed == "named":
            write = ledgers.write_share
            ledgers.write_share = lambda *given: (write(*given), os._exit(9))
        else:
            made = iter(range(99))
            real = sharing.ledgers.created

            def created(*args):
                server = real(*args)
                append, base = server.append_if, server.set_base
                server.append_if = lambda *given: os._exit(9) if next(made) == calls else append(*given)
                if killed == "created":
                    server.set_base = lambda *_: os._exit(9)
                elif killed == "base":
                    server.set_base = lambda *given: (base(*given), os._exit(9))
                return server

            sharing.ledgers.created = created
        sharing.share(home, colony.url, "c")

    assert children.ended(children.start(die)) == 9
    with pytest.raises(Conflict, match="not whole"):
        colony.join()
    other = homes.fresh(colony.directory / "other")
    homes.add(other, "another")
    with pytest.raises(Conflict, match="of this name already"):
        sharing.share(other, colony.url, "c")

    homes.add(home, "since")
    sharing.share(home, colony.url, "c")
    colony.made.append(home)
    two = colony.join()

    assert homes.ids(colony.agree()) == [*"012345", "since"]
    assert len(aether.list_snapshots(home=two)) == 1
    assert conversations.path_of(home, "talk").read_bytes() == conversations.path_of(two, "talk").read_bytes()


def test_of_two_homes_shared_as_one_name_at_once_the_second_is_refused(colony, monkeypatch):
    """Also if they have the same revision: nothing of one is ever on top of the base of the other."""
    one, two = homes.fresh(colony.directory / "one"), homes.fresh(colony.directory / "two")
    homes.add(one, "of one")
    homes.add(two, "of two")
    real = sharing.shared_base.set_base

    def late(*given, **options):
        monkeypatch.setattr(sharing.shared_base, "set_base", real)
        with pytest.raises(Conflict, match="of this name already"):
            sharing.share(two, colony.url, "c")
        real(*given, **options)

    monkeypatch.setattr(sharing.shared_base, "set_base", late)
    sharing.share(one, colony.url, "c")
    colony.made.append(one)
    colony.join()

    assert ledgers.shared(two) is None
    assert homes.ids(colony.agree()) == ["of one"]


def test_a_sharing_that_was_killed_goes_on_with_what_the_home_has_by_then(colony):
    home = homes.fresh(colony.directory / "first")
    homes.add(home, "a", content="a secret text")

    def die():
        sharing._send_conversations = lambda *_: os._exit(9)
        sharing.share(home, colony.url, "c")

    assert children.ended(children.start(die)) == 9
    before = ledgers.opened(colony.url, "c", replica="")
    (held, *_) = [one for one in shared_base.read(before).files if one.path.startswith("data/journal/")]
    assert b"a secret text" in b"".join(map(before.get_blob, held.blobs))
    homes.add(home, "b")
    assert forgetting.erase(match="a secret text", home=home)

    sharing.share(home, colony.url, "c")
    colony.made.append(home)
    two = colony.join()

    assert history(two) == history(colony.agree())
    with pytest.raises(NotFound):
        before.get_blob(held.blobs[0])
    assert not (home / sharing.CLAIM).exists()
    before.close()


def test_a_replica_is_not_shared_as_its_colony_on_another_server(colony, tmp_path, request):
    home = colony.first()
    if colony.url.startswith(directory_ledger.START):
        other = f"{colony.url}2"
        (tmp_path / "server2").mkdir()
    else:
        other = request.getfixturevalue("postgres").database(f"d{uuid.uuid4().hex[:12]}")
    share = (home / ledger.PLACE).read_bytes()

    with pytest.raises((NotFound, StorageFailed)):
        sharing.share(home, other, "c")
    sharing.share(homes.fresh(tmp_path / "theirs"), other, "c")
    with pytest.raises(Conflict, match="another colony of the name"):
        sharing.share(home, other, "c")

    assert (home / ledger.PLACE).read_bytes() == share
    homes.add(home, "a")
    assert homes.ids(colony.agree()) == ["before", "a"]


def test_a_home_that_left_and_went_on_alone_is_not_put_on_top_of_its_colony(colony):
    one, two = colony.first(), colony.join()
    sharing.leave_share(home=two)
    homes.add(two, "alone")

    with pytest.raises(Conflict, match="another name"):
        sharing.share(two, colony.url, "c")
    colony.made.remove(two)
    homes.add(one, "a")

    assert ledgers.shared(two) is None
    assert homes.ids(colony.agree()) == ["before", "a"]


@pytest.mark.parametrize("name", ["half \ud800", "nul \0", "long" * 600])
def test_names_that_no_server_takes_are_refused_before_anything_is_made(colony, name):
    home = homes.fresh(colony.directory / "odd")
    with pytest.raises(InvalidInput, match="name of a colony"):
        sharing.share(home, colony.url, name)
    with pytest.raises(InvalidInput, match="name of a colony"):
        sharing.join(colony.url, name, colony.directory / "none")
    conversations.extend(home, name, [{"role": "user", "content": "0"}], now=homes.NOW)
    with pytest.raises(InvalidInput, match="id of a conversation"):
        sharing.share(home, colony.url, "c")
    with pytest.raises((NotFound, StorageFailed)):
        ledgers.opened(colony.url, "c", replica="").identity  # noqa: B018 - it asks

    shared = colony.first()
    with pytest.raises(InvalidInput, match="id of a conversation"):
        conversations.extend(shared, name, [{"role": "user", "content": "0"}], now=homes.NOW)
    homes.add(shared, "a")
    assert homes.ids(colony.agree()) == ["before", "a"]


def test_a_damaged_journal_of_a_replica_is_read_again_from_the_ledger(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    for name in "abc":
        homes.add(two, name)
    path = journals.journal_path(two)
    path.write_bytes(path.read_bytes().replace(b'"reason":"b"', b'"reason":"???"'))

    monkeypatch.delenv(ledgers.URL)
    with pytest.raises(StorageFailed, match=ledgers.URL):
        homes.add(two, "d")
    monkeypatch.setenv(ledgers.URL, colony.url)
    homes.add(two, "d")

    assert homes.ids(colony.agree()) == ["before", *"abcd"]
    assert b'"reason":"b"' in history(two)
    assert [*(two / "quarantine").glob("journal.corrupt-*")]
    assert not [each for each in doctor.examine(two) if each.code == "known-loss"]
    assert homes.ids(one) == homes.ids(two)


def test_a_journal_is_not_repaired_from_a_ledger_that_has_less_or_other_lines(colony):
    _one, two = colony.first(), colony.join()
    for name in "abc":
        homes.add(two, name)
    path = journals.journal_path(two)
    whole = path.read_bytes()
    damaged = whole.replace(b'"reason":"b"', b'"reason":"???"')
    other = damaged.splitlines(keepends=True)
    other[-1] = log.seal_json({**log.unsealed(other[-1]), "reason": "another"})
    missing = b"".join(whole.splitlines(keepends=True)[:-1])  # the head of the home knows of it
    for data, head, words in (
        (b"".join(other), 5, "another line"),
        (damaged, 4, "has acknowledged 5"),
        (missing, 4, "has acknowledged 5"),
    ):
        colony.shorten("", head)
        path.write_bytes(data)

        for act in (
            lambda: homes.add(two, "d"),
            lambda: admin.repair(home=two),
            lambda: sharing.update_share(home=two),
        ):
            with pytest.raises(Conflict, match=words):
                act()
        assert path.read_bytes() == data
        assert ledgers.shared(two)
    assert ("error", "damaged-journal") in [(each.level, each.code) for each in doctor.examine(two)]


SAID = (
    [{"role": "user", "content": "a"}],
    [{"role": "user", "content": "b"}] * 2,
    [{"role": "user", "content": "c"}],
)


@pytest.fixture
def talked(colony):
    """A colony with two replicas that have a conversation of three calls, and the log of the second."""
    one, two = colony.first(), colony.join()
    for said in SAID:
        conversations.extend(one, "talk", said, now=homes.NOW)
    sharing.update_share(home=two)
    return colony, one, two, conversations.path_of(two, "talk")


def harm(path, how):
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "damaged":
        path.write_bytes(b"".join(lines).replace(b'"content":"b"', b'"content":"???"'))
    elif how == "cut":
        path.write_bytes(b"".join(lines[:-2]))
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "removed":
        path.unlink()
    else:
        shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    ("how", "by"),
    [
        ("damaged", "doctor"), ("damaged", "a message"), ("damaged", "an update"), ("cut", "doctor"), ("cut", "an update"),
        ("emptied", "doctor"), ("emptied", "a message"), ("removed", "doctor"), ("directory", "doctor"),
    ],
)  # fmt: skip
def test_a_damaged_conversation_is_read_again_from_the_ledger(talked, how, by, monkeypatch):
    colony, one, two, path = talked
    harm(path, how)
    harmed = path.read_bytes() if path.exists() else None

    monkeypatch.delenv(ledgers.URL)
    with suppress(StorageFailed):
        admin.repair(home=two)
    with pytest.raises(StorageFailed, match=ledgers.URL):
        conversations.extend(two, "talk", [{"role": "user", "content": "d"}], now=homes.NOW)
    assert (path.read_bytes() if path.exists() else None) == harmed, (
        "nothing is lost while the server is away"
    )
    monkeypatch.setenv(ledgers.URL, colony.url)
    if by == "doctor":
        admin.repair(home=two)
    elif by == "a message":
        conversations.extend(two, "talk", [{"role": "user", "content": "d"}], now=homes.NOW)
    else:
        sharing.update_share(home=two)
        conversations.extend(one, "talk", [{"role": "user", "content": "d"}], now=homes.NOW)
        sharing.update_share(home=two)
    sharing.update_share(home=one)

    assert path.read_bytes() == conversations.path_of(one, "talk").read_bytes()
    assert conversations.load(two, "talk", whole=True).lost == 0
    assert [each for each in doctor.examine(two) if each.level != "info" or each.code == "known-loss"] == []


def test_a_conversation_with_a_recorded_loss_is_shared_and_goes_on(colony):
    home = homes.fresh(colony.directory / "first")
    for text in "abcdef":
        conversations.extend(home, "talk", [{"role": "user", "content": text}], now=homes.NOW)
    path = conversations.path_of(home, "talk")
    path.write_bytes(path.read_bytes().replace(b'"content":"b"', b"?").replace(b'"content":"c"', b"?"))
    admin.repair(home=home)
    assert conversations.load(home, "talk").lost == 2
    sharing.share(home, colony.url, "c")
    colony.made.append(home)
    two = colony.join()

    for number, each in enumerate((home, two, two, home, two, home)):
        conversations.extend(each, "talk", [{"role": "user", "content": str(number)}], now=homes.NOW)
    conversations.take_in(two, "talk", ledgers.of(two), now=homes.NOW)

    assert path.read_bytes() == conversations.path_of(two, "talk").read_bytes()
    said = [message["content"] for message in store_history.history(conversations.load(two, "talk"))]
    assert said == [*"adef", *"012345"]
    before = path.read_bytes()
    assert not any("talk" in line for line in admin.repair(home=home))
    assert path.read_bytes() == before


def test_a_loss_that_an_earlier_release_recorded_in_a_replica_is_made_good(talked):
    _colony, one, two, path = talked
    harm(path, "damaged")
    share = (two / ledger.PLACE).read_bytes()
    (two / ledger.PLACE).unlink()
    admin.repair(home=two)
    (two / ledger.PLACE).write_bytes(share)
    assert conversations.load(two, "talk").lost == 2

    assert any("nothing is lost" in line for line in admin.repair(home=two))

    assert path.read_bytes() == conversations.path_of(one, "talk").read_bytes()


@pytest.mark.parametrize("how", ["damaged", "cut", "emptied"])
def test_a_conversation_is_not_repaired_from_a_ledger_that_has_less(talked, how):
    colony, _one, two, path = talked
    colony.shorten("conversations/talk", 4)
    harm(path, how)
    harmed = path.read_bytes()

    with pytest.raises(Conflict, match="the ledger has 4 lines of conversation"):
        conversations.extend(two, "talk", [{"role": "user", "content": "d"}], now=homes.NOW)
    assert any("as it is" in line or "left" in line for line in admin.repair(home=two))

    assert path.read_bytes() == harmed
    assert [each for each in doctor.examine(two) if each.level == "error"]


@pytest.mark.parametrize("how", ["damaged", "cut", "removed"])
def test_a_damaged_history_of_a_replica_is_read_again_from_the_ledger(colony, how, monkeypatch):
    one, two = colony.first(), colony.join()
    for name in "abc":
        homes.add(two, name)
    fold_home(two, now=homes.NOW)
    (path,) = journals.month_files(two)
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "damaged":
        path.write_bytes(b"".join(lines).replace(b'"reason":"b"', b'"reason":"???"'))
    elif how == "cut":
        path.write_bytes(b"".join(lines[:-2]))
    else:
        path.unlink()

    monkeypatch.delenv(ledgers.URL)
    with pytest.raises(StorageFailed, match=ledgers.URL):
        admin.repair(home=two)
    monkeypatch.setenv(ledgers.URL, colony.url)
    homes.add(two, "d")  # it goes on all the same
    admin.repair(home=two)

    assert homes.ids(colony.agree()) == ["before", *"abcd"]
    assert not [each for each in doctor.examine(two) if each.code == "known-loss"]
    assert history(one) == history(two)


def test_doctor_says_what_the_server_shows(colony, monkeypatch):
    one, two = colony.first(), colony.join()
    colony.agree()

    def codes(home):
        return [(each.level, each.code) for each in admin.examine(home=home) if each.code != "server"]

    assert codes(one) == codes(two) == []
    monkeypatch.setenv(
        ledgers.URL, f"{colony.url}/elsewhere" if "directory" in colony.url else "postgresql:///?host=/none"
    )
    assert codes(two) in ([("info", "unreachable")], [("error", "other-history")])
    monkeypatch.delenv(ledgers.URL)
    assert codes(two) == [("info", "unreachable")]
    monkeypatch.setenv(ledgers.URL, colony.url)

    copied = colony.directory / "copied"
    shutil.copytree(two, copied / ".aether")
    homes.add(two, "a")
    if "directory" not in colony.url:
        monkeypatch.setattr("aether.sharing.postgres.SEEN_SECONDS", -1)
        sharing.update_share(home=two)
        assert codes(copied / ".aether") == [("info", "copied-replica")]
    sharing.update_share(home=copied / ".aether")
    assert codes(copied / ".aether") == []

    sharing.leave_share(home=copied / ".aether")
    homes.add(copied / ".aether", "alone")
    (copied / ".aether" / ledger.PLACE).write_bytes((two / ledger.PLACE).read_bytes())
    homes.add(two, "b")
    assert codes(copied / ".aether") == [("error", "other-history")]
    (two / ledger.PLACE).write_text("{")
    assert ("error", "CorruptDocument") in codes(two)
    sharing.leave_share(home=two, force=True)
    assert codes(two) == [("warning", "left-without")]


def test_a_home_without_its_first_months_is_shared_with_the_history_that_it_has(colony):
    home = homes.fresh(colony.directory / "first")
    homes.add(home, "kept")
    homes.remove(home, "kept")
    homes.add(home, "a")
    conversations.extend(home, "talk", [{"role": "user", "content": "x"}] * 3, now=homes.NOW)
    fold_home(home, now=homes.NOW)
    for path in journals.month_files(home):
        path.unlink()
    doctor.repair(home, now=homes.NOW)
    homes.add(home, "b")

    sharing.share(home, colony.url, "c")
    colony.made.append(home)
    two = colony.join()
    homes.add(two, "c")
    path = documents.path_of(two, "memory")
    sharing.update_share(home=two)
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    homes.add(home, "d")
    colony.agree()
    three = colony.join()

    assert homes.ids(colony.agree()) == ["a", "b", "c", "d"]
    assert b'"edited"' in content(home, "memory")
    aether.undo(home=three)
    assert len(homes.ids(colony.agree())) < 4 or b'"edited"' not in content(home, "memory")
    for each in (two, three):
        found = record_files.records(snapshot.load(each), "items")
        assert [entry["item"]["id"] for _, entry in found] == ["kept"]
        assert len(conversations.load(each, "talk").texts) == 3


def test_a_conversation_that_one_machine_removed_is_removed_everywhere_until_somebody_goes_on_with_it(colony):
    one, two = colony.first(), colony.join()
    said = [{"role": "user", "content": "x"}]
    conversations.extend(one, "talk", said, now=homes.NOW)
    sharing.update_share(home=two)
    lines = conversations.load(two, "talk").lines
    assert conversations.set_aside(two, "talk", lines=lines, now=homes.NOW)
    colony.agree()
    for home in (one, two, colony.join()):
        assert [each.id for each in conversations.stored_conversations(home)] == []
        assert [each.code for each in doctor.examine(home) if each.level == "error"] == []

    conversations.extend(one, "talk", said * 3, now=homes.NOW)
    colony.agree()

    assert conversations.path_of(one, "talk").read_bytes() == conversations.path_of(two, "talk").read_bytes()
    assert len(conversations.load(one, "talk").texts) == 4


def test_what_was_said_while_another_machine_removed_the_conversation_is_not_lost(colony):
    one, two = colony.first(), colony.join()
    conversations.extend(one, "talk", [{"role": "user", "content": "x"}], now=homes.NOW)
    sharing.update_share(home=two)
    lines = conversations.load(two, "talk").lines
    conversations.extend(one, "talk", [{"role": "user", "content": str(n)} for n in "xy"], now=homes.NOW)
    assert conversations.set_aside(two, "talk", lines=lines, now=homes.NOW)
    colony.agree()

    for home in (one, two):
        assert len(conversations.load(home, "talk").texts) == 3


def test_a_brief_and_the_log_name_the_member_who_sent_an_entry(colony, monkeypatch):
    one = colony.first()
    aether.add_working_memory_item("Never push on a Friday.", type="constraint", home=one)
    colony.act_as("ben", monkeypatch)
    two = colony.join()
    rule = aether.add_working_memory_item("Publish every key.", type="constraint", home=two)
    assert "- Publish every key.\n" in briefing.brief(home=two)["block"]
    assert "Never push on a Friday. (sent by " in briefing.brief(home=two)["block"]
    changed = aether.add_working_memory_item("Review twice.", type="constraint", home=two)
    read_by_others = aether.add_working_memory_item("Use plain words.", type="constraint", home=two)

    colony.act_as("cid", monkeypatch)
    three = colony.join()
    working.update_working_memory_item(changed, {"content": "Review never."}, home=three)
    working.get_working_memory_item(read_by_others, home=three)
    (three / "share/senders.json").unlink()  # it is derived
    colony.act_as("ben", monkeypatch)
    admin.fold(home=two)
    block = briefing.brief(home=two)["block"]

    assert "- Publish every key.\n" in block
    assert "- Use plain words.\n" in block
    assert re.search(r"Review never\. \(sent by cid\w*\)", block)
    assert re.search(r"Publish every key\. \(sent by ben\w*\)", briefing.brief(home=three)["block"])
    assert {entry.member.partition("_")[0] for entry in admin.log(home=two) if entry.operation == "add"} >= {
        "ben"
    }
    assert f"{rule}" in str(briefing.brief(home=three)["lines"])


def test_in_a_shared_colony_one_replica_holds_a_claim_and_without_the_server_none_is_granted(
    colony, monkeypatch
):
    monkeypatch.setenv("AETHER_SHARE_OFFLINE", "queue")
    one, two = colony.first(), colony.join()
    claim = aether.claim("task:docs", by="a", home=one)

    with pytest.raises(Conflict, match="a holds 'task:docs'"):
        aether.claim("task:docs", by="b", home=two)
    monkeypatch.delenv(ledgers.URL)
    with pytest.raises(ledger.Offline):
        aether.claim("task:other", by="b", home=two)
    monkeypatch.setenv(ledgers.URL, colony.url)

    aether.release("task:docs", by="a", home=one)
    assert aether.claim("task:docs", by="b", home=two)["revision"] > claim["revision"]
    assert [held["by"] for held in aether.claims(home=colony.agree())] == ["b"]
