"""A shared home without its server: with `share.offline = "queue"` changes wait, are sent once and in order, and none is lost silently."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from functools import partial

import pytest

import aether
from aether import clock
from aether.api import admin
from aether.api import home as access
from aether.api import share as sharing
from aether.cli.main import main
from aether.conversation import goals
from aether.errors import Conflict, InvalidDocument, StorageFailed, UnsafePath
from aether.memory import items
from aether.sharing import ledgers, offline
from aether.store import commit as commits
from aether.store import doctor, documents, ledger, log, record_files, snapshot
from aether.store import journal as journals
from aether.store.patch import apply
from aether.types import Change
from tests import children, homes, postgres_server
from tests.colonies import Colony, content


@pytest.fixture
def pair(colony, monkeypatch):
    """Two replicas that queue, and a way to take the server away."""
    monkeypatch.setenv("AETHER_SHARE_OFFLINE", "queue")
    return colony, colony.first(), colony.join()


@pytest.fixture
def away(monkeypatch, pair):
    def leave(*, back=False):
        if not back:
            monkeypatch.delenv(ledgers.URL)
        else:
            monkeypatch.setenv(ledgers.URL, pair[0].url)

    return leave


def add(home, id, **fields):
    return commits.commit(
        home, lambda found: homes.addition(found, homes.item(id, **fields)), commits.Author("add", reason=id),
        now=homes.NOW, may_wait=True,
    )  # fmt: skip


def remove(home, id):
    return commits.commit(
        home, lambda found: homes.removal(found, id), commits.Author("remove", reason=id), now=homes.NOW, may_wait=True
    )  # fmt: skip


def names(home):
    return [each["id"] for each in access.read(home).documents["memory"]["working_memory"]["items"]]


def unfit(home):
    return [each for each in doctor.examine(home) if each.code == "unfit-change"]


def test_changes_wait_are_read_and_are_sent_in_order(pair, away):
    colony, one, two = pair
    away()
    waited = add(two, "a")
    add(two, "b")
    remove(two, "a")  # planned on what waits before it

    assert waited.changed
    assert waited.revision == 0
    assert names(two) == ["before", "b"]
    assert homes.ids(two) == ["before"]  # the home itself has what the ledger has
    assert sharing.share_status(home=two)["waiting"] == 3
    assert [each.code for each in doctor.examine(two)] == ["waiting"]

    away(back=True)
    homes.add(one, "c")
    colony.agree()

    assert sharing.share_status(home=two)["waiting"] == 0
    assert homes.ids(two) == ["before", "c", "b"]
    assert [each.reason for each in journals.folded_entries(one)][-4:] == ["c", "a", "b", "a"]


def test_a_long_queue_is_not_read_again_by_each_change_nor_by_each_process(pair, away, monkeypatch):
    _, one, two = pair
    away()
    asked, real = [], offline.read
    monkeypatch.setattr(offline, "read", lambda path: asked.append(path) or real(path))
    for number in range(50):
        add(two, f"n{number}")
    assert asked == []
    offline._MADE.clear()  # as another process would

    assert names(two) == ["before", *(f"n{number}" for number in range(50))]
    assert len(asked) <= offline.KEPT_EACH

    asked.clear()
    offline._MADE.clear()
    path = documents.path_of(two, "memory")
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    assert len(names(two)) == 51
    assert "edited" in str(access.read(two).documents["memory"]["working_memory"]["items"][0])
    assert len(asked) == 50  # what is remembered was made of other documents
    offline._MADE.clear()
    (two / offline.MADE).write_bytes(b"{")
    assert len(names(two)) == 51
    assert names(one) == ["before"]


def test_reading_adds_nothing_to_the_queue(pair, away):
    _, _one, two = pair
    away()
    aether.add_working_memory_item("the importer reads CSV", "note", home=two)

    for _ in range(3):
        (hit,) = aether.search_memory("importer", home=two)
        assert aether.get_working_memory_item(hit["id"], home=two)["content"] == "the importer reads CSV"

    assert len(offline.waiting(two)) == 1


def test_a_new_change_never_overtakes_one_that_waits(pair, away, monkeypatch):
    colony, _one, two = pair
    away()
    add(two, "a")
    away(back=True)

    add(two, "b")  # the server was away a moment ago, and is not asked again yet
    assert len(offline.waiting(two)) == 2
    monkeypatch.setattr(ledger, "TRIED_SECONDS", 0)
    add(two, "c")

    assert offline.waiting(two) == []
    assert homes.ids(colony.agree()) == ["before", "a", "b", "c"]


def test_a_fold_asks_a_server_that_was_away_a_moment_ago(pair, away, capsys):
    colony, _one, two = pair
    away()
    add(two, "a")
    assert main(["fold", "--home", str(two)]) == 1
    assert "not exchanged with the colony: no server is named." in capsys.readouterr().err
    with pytest.raises(ledger.Offline, match=r"tried again in \d+ seconds.*aether fold"):
        homes.add(two, "refused")
    away(back=True)

    assert main(["fold", "--home", str(two)]) == 0
    assert offline.waiting(two) == []

    offline.note_try(two, failed=True)
    assert sharing.share_status(home=two)["reachable"]
    assert not ledger.tried_lately(two)
    assert homes.ids(colony.agree()) == ["before", "a"]


def test_what_no_longer_fits_goes_to_quarantine_and_is_reported(pair, away, capsys):
    colony, one, two = pair
    away()
    remove(two, "before")
    add(two, "kept")
    away(back=True)
    homes.remove(one, "before")
    colony.agree()

    assert homes.ids(two) == ["kept"]
    (found,) = unfit(two)
    assert "remove by queen" in found.message
    assert b'"before"' in (two / found.where).read_bytes()
    assert sharing.share_status(home=two)["unfit"] == 1
    assert main(["memory", "show", "--home", str(two)]) == 0
    assert "1 change no longer fitted the changes of others, kept in quarantine" in capsys.readouterr().err
    assert unfit(one) == []


def fill(home, capacity):
    """Let the home hold so many items of one token."""

    def plan(found):
        return Change(
            {"memory": [{"op": "replace", "path": "/working_memory/max_capacity_tokens", "value": capacity}]}
        )

    commits.commit(home, plan, commits.Author("settings"), now=homes.NOW)
    while len(homes.ids(home)) < capacity:
        homes.add(home, f"old {len(homes.ids(home))}")


def note(home, text):
    """Add an item of one token as a caller does."""
    entry = items.checked_entry(text, "observation")

    def plan(found):
        return items.add_items(
            found.documents, [entry], now=clock.now(), new_id=lambda kind, at, nth: text, count=lambda text: 1
        )

    commits.commit(home, plan, commits.Author("add", reason=text), now=clock.now(), may_wait=True)


@pytest.mark.parametrize("meanwhile", ["evicted the same", "made room", "read it", "nothing"])
def test_an_addition_that_evicts_is_planned_again(pair, away, meanwhile):
    colony, one, two = pair
    fill(one, 4)
    sharing.update_share(home=two)
    away()
    note(two, "waits")
    assert "before" not in names(two)  # the least recently used
    away(back=True)
    if meanwhile == "evicted the same":
        note(one, "first")
    elif meanwhile == "made room":
        homes.remove(one, "old 2")
    elif meanwhile == "read it":
        commits.commit(
            one, lambda found: items.record_access(found.documents["memory"], ["before"], now=clock.now()),
            commits.Author("search"), now=clock.now(),
        )  # fmt: skip
    wanted = {
        "evicted the same": ["old 2", "old 3", "first", "waits"], "made room": ["before", "old 1", "old 3", "waits"],
        "read it": ["before", "old 2", "old 3", "waits"], "nothing": ["old 1", "old 2", "old 3", "waits"],
    }  # fmt: skip

    colony.agree()

    memory = access.read(one).documents["memory"]
    assert names(one) == wanted[meanwhile]
    assert unfit(two) == []
    assert memory["working_memory"]["current_tokens"] == 4
    archived = [record["item"]["id"] for _, record in record_files.records(snapshot.load(two), "items")]
    assert sorted([*archived, *names(one)]) == sorted({*archived, *names(one)}), "each is in one place"
    assert memory["metrics"]["working_memory_evictions"] == len(archived) - (meanwhile == "made room")
    assert [each for each in admin.examine(home=two) if each.level != "info" and each.code != "server"] == []


def score(home, id, value):
    def plan(found):
        held = found.documents["memory"]["working_memory"]["items"]
        (place,) = (nth for nth, each in enumerate(held) if each["id"] == id)
        path = f"/working_memory/items/{place}/metadata/relevance_score"
        return Change({"memory": [{"op": "replace", "path": path, "value": value}]})

    commits.commit(home, plan, commits.Author("score", reason=id), now=homes.NOW, may_wait=True)


@pytest.mark.parametrize("release", ["this", "earlier"])
def test_a_change_of_a_field_never_meets_another_entry_of_the_same_value(pair, away, release):
    colony, one, two = pair
    homes.add(one, "meant")
    sharing.update_share(home=two)
    away()
    score(two, "meant", 0.9)
    if release == "earlier":  # its queue did not name the entries
        (path,) = offline.waiting(two)
        fields = log.unsealed(path.read_bytes())
        path.write_bytes(log.seal_json({name: value for name, value in fields.items() if name != "ids"}))
    away(back=True)
    homes.remove(one, "meant")

    colony.agree()

    (left,) = access.read(one).documents["memory"]["working_memory"]["items"]
    assert (left["id"], left["metadata"]["relevance_score"]) == ("before", 0.5)
    assert len(unfit(two)) == 1


def test_a_damaged_change_goes_to_quarantine_and_the_others_are_sent(pair, away):
    colony, _one, two = pair
    away()
    for name in ("a", "b", "c"):
        add(two, name)
    path = offline.waiting(two)[1]
    path.write_bytes(path.read_bytes().replace(b'"id":"b"', b'"id":"x"'))
    assert [each.code for each in doctor.examine(two)] == ["damaged-change", "waiting"]
    away(back=True)

    assert homes.ids(colony.agree()) == ["before", "a", "c"]
    assert len(unfit(two)) == 1


def test_the_first_text_that_two_machines_forget_is_forgotten_by_both(pair, away):
    colony, one, two = pair
    added = [
        str(aether.add_working_memory_item(f"The customer {name} pays late.", "decision", 0.5, home=one))
        for name in ("Quorvex", "Tralfamo")
    ]
    sharing.update_share(home=two)
    away()
    aether.forget([added[0]], home=two)
    away(back=True)
    aether.forget([added[1]], home=one)

    assert homes.ids(colony.agree()) == ["before"]
    assert unfit(two) == []
    for home in (one, two):
        hidden = {each["id"] for each in access.read(home).documents["memory"]["forgotten"]}
        assert hidden == {*added}


@pytest.mark.parametrize("last", ["mine", "theirs"])
def test_goals_that_two_machines_add_are_in_both_and_the_last_is_current(pair, away, last):
    colony, one, two = pair
    earlier = aether.add_goal("Ship the writer.", home=one) if last == "mine" else {}
    away()
    mine = aether.add_goal("Ship the reader.", home=two)
    away(back=True)
    theirs = earlier or aether.add_goal("Ship the writer.", home=one)

    colony.agree()

    assert unfit(two) == []
    for home in (one, two):
        assert {goal["id"]: goal["status"] for goal in aether.goals(home=home)} == {
            mine["id"]: "active" if last == "mine" else "paused",
            theirs["id"]: "active" if last == "theirs" else "paused",
        }


def test_a_goal_that_waits_does_not_fit_twice_or_without_its_parent(pair, away):
    _colony, one, two = pair
    parent = aether.add_goal("Ship the reader.", home=one)
    sharing.update_share(home=two)
    away()
    aether.add_goal("Read lines.", parent=parent["id"], home=two)
    patch = offline.read(offline.waiting(two)[0]).entry.patches["goals"]
    document = snapshot.load(one).documents["goals"]

    added = goals.added_again(document, patch, now=homes.NOW)
    assert added.result["description"] == "Read lines."
    with_it = apply(document, added.patches["goals"])
    assert goals.added_again(with_it, patch, now=homes.NOW) is None
    assert goals.added_again({**document, "goals": [], "current": None}, patch, now=homes.NOW) is None


def test_a_queue_of_an_earlier_release_is_sent(pair, away):
    colony, _one, two = pair
    away()
    add(two, "a")
    (path,) = offline.waiting(two)
    fields = log.unsealed(path.read_bytes())
    path.write_bytes(
        log.seal_json({name: fields[name] for name in fields if name not in ("schema_version", "ids")})
    )
    offline._MADE.clear()
    assert names(two) == ["before", "a"]
    away(back=True)

    assert homes.ids(colony.agree()) == ["before", "a"]


def test_a_queue_of_a_newer_aether_is_refused_and_kept(pair, away):
    colony, _one, two = pair
    away()
    add(two, "a")
    (path,) = offline.waiting(two)
    data = path.read_bytes()
    newer = log.seal_json({**log.unsealed(data), "schema_version": 4})
    path.write_bytes(newer)
    offline._MADE.clear()

    (found,) = [each for each in doctor.examine(two) if each.level == "error"]
    assert (found.where, found.fix) == (f"share/queue/{path.name}", "Upgrade aether.")
    for refused in (
        lambda: access.read(two), lambda: add(two, "b"), lambda: sharing.leave_share(home=two, force=True)
    ):  # fmt: skip
        with pytest.raises(
            InvalidDocument, match=r"written by a newer aether \(version 4, this one knows 3\)"
        ):
            refused()
    away(back=True)
    with pytest.raises(InvalidDocument):
        sharing.update_share(home=two)
    assert [one.read_bytes() for one in offline.waiting(two)] == [newer]

    path.write_bytes(data)  # as the newer aether would send it
    assert homes.ids(colony.agree()) == ["before", "a"]


@pytest.mark.parametrize("place", ["append", "finish"])
def test_a_change_whose_sender_is_killed_is_in_the_history_once(pair, away, place):
    colony, one, two = pair
    away()
    add(two, "a")
    add(two, "b")
    away(back=True)

    def killed():
        module = commits if place == "append" else offline
        setattr(module, place, lambda *args, **kwargs: os._exit(9))
        sharing.update_share(home=two)

    assert children.ended(children.start(killed)) == 9
    homes.add(one, "c")

    assert homes.ids(colony.agree()) == ["before", "a", "c", "b"]
    assert unfit(two) == []


def test_a_change_whose_answer_was_lost_waits_and_is_stored_once(pair, monkeypatch):
    colony, _one, two = pair
    real = ledgers.of(two).append_if
    for stored in (True, False):

        def lost(*args, stored=stored, **named):
            if stored:
                real(*args, **named)
            raise ledgers.Unsettled("the answer was lost.", fix="Wait.", where="server")

        monkeypatch.setattr(ledgers.of(two), "append_if", lost)
        assert add(two, f"{stored}").revision == 0
        monkeypatch.setattr(ledgers.of(two), "append_if", real)
        assert len(offline.waiting(two)) == 1
        sharing.update_share(home=two)
        assert offline.waiting(two) == []

    assert homes.ids(colony.agree()) == ["before", "True", "False"]
    assert unfit(two) == []


@pytest.mark.parametrize("shortened", [False, True])
def test_a_home_that_was_copied_with_what_waits_sends_it_once(pair, away, shortened):
    colony, one, two = pair
    away()
    add(two, "a")
    add(two, "b")
    copy = colony.directory / "copy" / ".aether"
    shutil.copytree(two, copy)
    away(back=True)
    sharing.update_share(home=copy)
    homes.add(one, "c")
    if shortened:  # it does not show any more what was sent
        commits.fold_home(two, now=homes.NOW)
        with commits.write_lock(two):
            commits.fold(commits.catch_up(snapshot.load(two), now=homes.NOW), now=homes.NOW)
        for path in journals.month_files(two):
            path.unlink()
        sharing.update_share(home=two)
        assert (homes.ids(two), len(unfit(two))) == (["before", "a", "b", "c"], 2)
        return
    colony.made.append(copy)

    assert homes.ids(colony.agree()) == ["before", "a", "b", "c"]
    assert offline.waiting(two) == offline.waiting(copy) == []
    assert unfit(two) == unfit(copy) == []


def test_a_change_that_a_copy_sends_at_the_same_moment_is_in_every_home_once(pair, away, monkeypatch):
    colony, _one, two = pair
    away()
    add(two, "a")
    copy = colony.directory / "copy" / ".aether"
    shutil.copytree(two, copy)
    away(back=True)
    real, sent = ledgers.of(two).append_if, []

    def late(stream, mark, lines):
        if not sent:
            sent.append(sharing.update_share(home=copy))
        return real(stream, mark, lines)

    monkeypatch.setattr(ledgers.of(two), "append_if", late)
    monkeypatch.setattr(
        clock, "stamp", lambda now, real=clock.stamp: real(now).replace("2026", f"20{26 - len(sent)}")
    )
    sharing.update_share(home=two)
    add(two, "b")
    colony.made.append(copy)

    assert homes.ids(colony.agree()) == ["before", "a", "b"]
    assert offline.waiting(two) == offline.waiting(copy) == []


def test_a_disk_that_is_full_while_a_queue_is_sent_is_an_error_of_the_disk(pair, away, monkeypatch):
    colony, _one, two = pair
    away()
    add(two, "a")
    add(two, "b")
    away(back=True)
    journal, real = journals.journal_path(two), commits.append

    def full(path, data, **named):
        if path == journal:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data, **named)

    monkeypatch.setattr(commits, "append", full)
    with pytest.raises(StorageFailed, match="No space left"):
        sharing.update_share(home=two)
    monkeypatch.setattr(commits, "append", real)

    assert homes.ids(colony.agree()) == ["before", "a", "b"]
    assert unfit(two) == []


def git(directory, words):
    subprocess.run(["git", *words.split()], cwd=directory, check=True, capture_output=True)


def test_changes_that_came_with_a_repository_are_not_sent(pair, away):
    colony, _one, two = pair
    away()
    add(two, "theirs")
    (theirs,) = offline.waiting(two)
    git(two.parent, "init -q")
    git(two.parent, f"add -f .aether/{offline.DIRECTORY}/{theirs.name}")
    add(two, "mine")
    assert names(two) == ["before", "mine"]
    away(back=True)

    assert homes.ids(colony.agree()) == ["before", "mine"]
    assert [each.code for each in doctor.examine(two)] == ["tracked-queue"]
    assert theirs.exists()
    sharing.leave_share(home=two)
    assert homes.ids(two) == ["before", "mine"]


def test_a_replica_that_came_with_a_repository_sends_and_takes_nothing(pair, away):
    colony, one, two = pair
    clone = colony.directory / "clone" / ".aether"
    shutil.copytree(two, clone)
    git(clone.parent, "init -q")
    git(clone.parent, "add -f .aether/data")
    path = documents.path_of(clone, "memory")
    path.write_bytes(
        path.read_bytes().replace(b'"note"', b'"obey"')
    )  # an edit, by whoever wrote the repository
    homes.add(one, "secret")

    assert "secret" not in names(clone)
    with pytest.raises(UnsafePath, match="git rm --cached"):
        add(clone, "mine")
    with pytest.raises(UnsafePath, match="it came with the repository"):
        sharing.update_share(home=clone)
    assert ("warning", "tracked-share") in [(each.level, each.code) for each in doctor.examine(clone)]
    assert [each.where for each in admin.examine(home=clone)].count(ledger.PLACE) == 1
    assert b'"obey"' not in content(colony.agree(), "memory")

    git(clone.parent, "rm -q -f --cached -r .aether")
    sharing.update_share(home=clone)
    assert "secret" in names(clone)


def test_many_replicas_that_were_away_lose_nothing(pair, away):
    colony, one, two = pair
    three = colony.join()
    away()

    def work(who, home):
        for number in range(3):
            add(home, f"{who}-{number}")

    started = [children.start(work, who, (one, two, three)[who % 3]) for who in range(6)]
    assert [children.ended(child) for child in started] == [0] * 6
    away(back=True)
    started = [children.start(partial(sharing.update_share, home=home)) for home in (one, two, three) * 2]
    assert [children.ended(child) for child in started] == [0] * 6

    stored = homes.ids(colony.agree())
    assert sorted(stored) == sorted(["before", *(f"{who}-{n}" for who in range(6) for n in range(3))])
    assert not any(map(unfit, (one, two, three)))


def test_a_hand_edit_and_a_queue_are_both_kept(pair, away):
    colony, one, two = pair
    away()
    add(two, "a")
    path = documents.path_of(two, "memory")
    path.write_bytes(path.read_bytes().replace(b'"note"', b'"edited"'))
    add(two, "b")
    away(back=True)
    homes.add(one, "c")

    assert homes.ids(colony.agree()) == ["before", "c", "a", "b"]
    assert b'"edited"' in documents.path_of(one, "memory").read_bytes()


def test_a_home_that_leaves_keeps_what_waits(pair, away):
    colony, _one, two = pair
    away()
    add(two, "a")

    with pytest.raises(Conflict, match="would lack what others wrote after revision 2"):
        sharing.leave_share(home=two)
    assert sharing.leave_share(home=two, force=True).missing
    colony.made.remove(two)
    add(two, "b")

    assert homes.ids(two) == ["before", "a", "b"]
    assert offline.waiting(two) == []


def test_hooks_undo_and_imports_wait_for_nobody(pair, away):
    _, _one, two = pair
    away()
    added = aether.add_working_memory_item("a fact that waits", type="observation", home=two)
    assert added in names(two)

    with ledger.staying_local(), pytest.raises(StorageFailed):
        add(two, "hook")
    with pytest.raises(Conflict, match="wait for the server"):
        aether.undo(home=two)
    with pytest.raises(StorageFailed):
        aether.undo(2, home=two)
    assert admin.show("memory", home=two)["working_memory"]["items"][-1]["id"] == added
    with pytest.raises(StorageFailed):
        homes.add(two, "not asked to wait")

    assert len(offline.waiting(two)) == 1


def test_a_home_refuses_unless_it_is_set_to_queue(pair, away, monkeypatch):
    _, _one, two = pair
    monkeypatch.delenv("AETHER_SHARE_OFFLINE")
    away()

    with pytest.raises(StorageFailed, match=ledgers.URL):
        add(two, "lost")

    assert offline.waiting(two) == []
    assert names(two) == ["before"]


def test_commands_say_what_waits(pair, away, monkeypatch, capsys):
    _, _one, two = pair
    away()
    monkeypatch.chdir(two.parent)

    assert main(["add", "a fact that waits", "--type", "observation"]) == 0
    assert "1 change waiting for the server of the colony: aether share status" in capsys.readouterr().err
    assert main(["memory", "show"]) == 0
    assert "a fact that waits" in capsys.readouterr().out
    assert main(["share", "status"]) == 1
    assert "waiting" in capsys.readouterr().out
    assert main(["memory", "forget", "--match", "a fact that waits", "--yes"]) == 0
    assert "forgotten. It waits for the server of the colony." in capsys.readouterr().out


@pytest.mark.extras
def test_a_hook_does_not_say_that_the_server_failed(pair, away):
    _, one, _ = pair
    away()
    add(one, "waits")
    away(back=True)
    (one / offline.TRIED).unlink(missing_ok=True)

    with ledger.staying_local(), pytest.raises(ledger.Offline), commits.write_lock(one):
        offline.send_queue(snapshot.load(one), homes.NOW)

    assert not ledger.tried_lately(one)


def test_a_server_that_was_killed_and_is_back_gets_what_waited(tmp_path, monkeypatch):
    """The other tests take the address away; here a real server dies."""
    with postgres_server.running() as server:
        url = server.database("trouble")
        monkeypatch.setenv(ledgers.URL, url)
        monkeypatch.setenv("AETHER_SHARE_OFFLINE", "queue")
        made = Colony(tmp_path, url)
        one, two = made.first(), made.join()
        add(two, "a")
        server.stop(signal.SIGKILL)

        assert add(two, "b").revision == 0
        assert add(one, "c").revision == 0
        assert names(two) == ["before", "a", "b"]
        server.start()
        stored = homes.ids(made.agree())
        ledgers.of(one).close()
        ledgers.of(two).close()

    assert sorted(stored) == ["a", "b", "before", "c"]
    assert not unfit(one) + unfit(two)


@pytest.mark.parametrize("mode", ["refuse", "queue"])
def test_a_replica_is_searched_while_its_server_is_dead(tmp_path, monkeypatch, mode):
    with postgres_server.running() as server:
        url = server.database("dead")
        monkeypatch.setenv(ledgers.URL, url)
        monkeypatch.setenv("AETHER_SHARE_OFFLINE", mode)
        made = Colony(tmp_path, url)
        one, two = made.first(), made.join()
        item = aether.add_working_memory_item("the importer reads CSV", "note", home=one)
        names(two)
        made.agree()
        server.stop(signal.SIGKILL)
        access._NEXT_LOOK.clear()

        assert [hit["id"] for hit in aether.search_memory("importer", home=two)] == [item]
        assert [hit.id for hit in aether.recall("which importer reads", home=two)] == [item]
        ledgers.of(one).close()
        ledgers.of(two).close()


def test_a_server_that_is_away_is_not_waited_for_by_each_command(pair, away, monkeypatch):
    _, _one, two = pair
    asked = []
    real = ledgers.of
    monkeypatch.setattr(ledger, "of", lambda home: asked.append(home) or real(home))
    away()

    for _ in range(3):
        access._NEXT_LOOK.clear()  # as another process would
        assert names(two) == ["before"]
    assert len(asked) == 1

    away(back=True)
    monkeypatch.setattr(ledger, "TRIED_SECONDS", 0)
    access._NEXT_LOOK.clear()
    names(two)
    assert len(asked) > 1
