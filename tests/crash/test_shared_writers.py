"""Writers of one shared home who send together: each line that was acknowledged is stored once, whoever is killed."""

from __future__ import annotations

import os
import signal
import time

import pytest

import aether
from aether.api import share as sharing
from aether.errors import AetherError, StorageFailed
from aether.store import commit as commits
from aether.store import snapshot, waiting
from aether.store.ledger import Unsettled
from aether.types import Change
from tests import children, directory_ledger, homes

PLAIN = pytest.mark.parametrize("colony", ["directory"], indirect=True)


def slow(ledger, act=lambda call: None):
    """Let each append of this process and its children take 20 ms, and call `act` with "before" and "after" it."""
    real = ledger.append_if

    def append_if(*args, **kwargs):
        with open(args[0].server / "calls", "a") as calls:
            calls.write("x")
        time.sleep(0.02)
        act("before")
        answer = real(*args, **kwargs)
        act("after")
        return answer

    return append_if


def working(home):
    return [item["content"] for item in aether.list_working_memory_items(home=home)]


@PLAIN
def test_writers_of_one_home_share_an_append(colony, monkeypatch):
    home = colony.first()
    calls = colony.directory / "server" / "calls"
    monkeypatch.setattr(directory_ledger.DirectoryLedger, "append_if", slow(directory_ledger.DirectoryLedger))

    def work(who):
        for number in range(5):
            aether.add_working_memory_item(f"{who}-{number}", "note", home=home)

    started = [children.start(work, who) for who in range(8)]
    assert [children.ended(child) for child in started] == [0] * 8

    assert calls.stat().st_size < 30  # 40 additions
    assert sorted(working(home)) == sorted(["note", *(f"{who}-{n}" for who in range(8) for n in range(5))])
    entries = [*snapshot.folded_entries(home), *snapshot.read_journal(home).entries]
    assert [each.revision for each in entries] == list(range(1, 43))
    colony.agree()


@PLAIN
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_that_is_killed_while_it_sends_for_others_loses_nothing(
    colony, monkeypatch, moment, replicas
):
    home = colony.first()
    made = [home, colony.join()][:replicas]
    monkeypatch.setattr(
        directory_ledger.DirectoryLedger, "append_if",
        slow(directory_ledger.DirectoryLedger, lambda now: now == moment and victim() and os.kill(os.getpid(), signal.SIGKILL)),
    )  # fmt: skip
    kills = colony.directory / "kills"
    kills.mkdir()

    def victim():
        """Return whether this process is one of the three that are killed."""
        for name in ("1", "2", "3"):
            try:
                (kills / name).mkdir()
            except FileExistsError:
                continue
            return True
        return False

    def work(who):
        for number in range(4):
            aether.add_working_memory_item(f"{who}-{number}", "note", home=made[who % replicas])
            with open(home / f"acknowledged{who}", "a") as file:
                file.write(f"{who}-{number}\n")

    started = [children.start(work, who) for who in range(8)]
    ends = [children.ended(child) for child in started]
    assert ends.count(-signal.SIGKILL) == 3
    assert ends.count(0) == 5

    monkeypatch.undo()
    monkeypatch.setenv("AETHER_SHARE_URL", colony.url)
    monkeypatch.setitem(sharing.ledger.MODULES, directory_ledger.START, directory_ledger.__name__)
    colony.agree()
    stored = working(home)
    acknowledged = [name for path in home.glob("acknowledged*") for name in path.read_text().split()]
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)
    assert len(stored) <= 1 + len(acknowledged) + 3


@PLAIN
def test_a_lost_answer_is_unknown_for_everybody_whose_line_was_sent(colony, monkeypatch):
    home = colony.first()

    def lose(now):
        if now == "after":
            raise Unsettled("the answer was lost.", fix="Wait.", where="here")

    def work(who):
        try:
            aether.add_working_memory_item(f"{who}", "note", home=home)
        except StorageFailed as reason:
            (home / f"unknown{who}").write_text(str(reason))

    with monkeypatch.context() as patched:
        patched.setattr(
            directory_ledger.DirectoryLedger, "append_if", slow(directory_ledger.DirectoryLedger, lose)
        )
        started = [children.start(work, who) for who in range(6)]
        assert [children.ended(child) for child in started] == [0] * 6

    unknown = [path.read_text() for path in home.glob("unknown*")]
    assert unknown
    assert all("is not known" in reason for reason in unknown)
    aether.add_working_memory_item("last", "note", home=home)
    colony.agree()
    stored = working(home)
    assert len(set(stored)) == len(stored)
    assert {f"{who}" for who in range(6) if not (home / f"unknown{who}").exists()} <= set(stored)


@PLAIN
def test_additions_of_replicas_follow_each_other_without_a_new_plan(colony):
    one, two = colony.first(), colony.join()
    plans = []

    def plan(found):
        plans.append(found.revision)
        return homes.addition(found, homes.item("b"))._replace(
            commutes={"memory": {"/working_memory/current_tokens": 100}}
        )

    homes.add(one, "a")
    commits.commit(two, plan, commits.Author("add"), now=homes.NOW)

    assert len(plans) == 1
    assert homes.ids(colony.agree()) == ["before", "a", "b"]


@PLAIN
def test_a_change_that_would_be_planned_differently_is_planned_again(colony):
    one, two = colony.first(), colony.join()
    plans = []

    def plan(found):
        plans.append(found.revision)
        total = found.documents["memory"]["working_memory"]["current_tokens"]
        if total >= 2:
            return Change({})
        return homes.addition(found, homes.item("b"))._replace(
            commutes={"memory": {"/working_memory/current_tokens": 2}}
        )

    homes.add(one, "a")
    done = commits.commit(two, plan, commits.Author("add"), now=homes.NOW)

    assert len(plans) > 1
    assert not done.changed
    assert homes.ids(colony.agree()) == ["before", "a"]


@PLAIN
def test_lines_that_wait_on_another_state_are_not_planned_on(colony):
    one, two = colony.first(), colony.join()
    homes.add(two, "a")
    mark = commits.mark_of(snapshot.load(one))
    waiting.add(one, mark, waiting.read(one, mark), waiting.Line(b'{"revision":9}\n', None))
    path = one / "share" / "waiting"

    for harm in (lambda data: data, lambda data: data[:-5], lambda data: b"", lambda data: os.urandom(200)):
        path.write_bytes(harm(path.read_bytes()))
        homes.add(one, f"after{len(homes.ids(one))}")

    assert len(homes.ids(colony.agree())) == 6


@PLAIN
def test_a_failure_of_the_server_stores_nothing_of_what_waits(colony):
    home = colony.first()
    (colony.directory / "server" / "down").touch()

    with pytest.raises(AetherError, match="does not answer"):
        homes.add(home, "a")
    (colony.directory / "server" / "down").unlink()

    homes.add(home, "b")
    assert homes.ids(colony.agree()) == ["before", "b"]


@PLAIN
def test_a_line_sent_by_one_who_was_killed_is_not_sent_again_after_others(colony, monkeypatch):
    one, two = colony.first(), colony.join()

    def plan(found):
        number = found.documents["memory"]["metrics"]["total_compressions"] + 1
        step = {"op": "replace", "path": "/metrics/total_compressions", "value": number}
        return Change({"memory": [step]}, commutes={})

    def killed():
        monkeypatch.setattr(
            directory_ledger.DirectoryLedger, "append_if",
            slow(directory_ledger.DirectoryLedger, lambda now: now == "after" and os._exit(9)),
        )  # fmt: skip
        commits.commit(two, plan, commits.Author("one"), now=homes.NOW)

    homes.add(one, "a")
    waiting.note_contended(two, contended=True)
    assert children.ended(children.start(killed)) == 9
    commits.commit(two, plan, commits.Author("two"), now=homes.NOW)

    home = colony.agree()
    assert snapshot.load(home).documents["memory"]["metrics"]["total_compressions"] == 2


@PLAIN
def test_folds_between_the_plan_and_the_answer_lose_nothing(colony):
    made = [colony.first(), colony.join()]
    for home in made:
        homes.configure(home, "[store]\nfold_bytes = 1500\n")

    def work(who):
        for number in range(6):
            aether.add_working_memory_item(f"{who}-{number}", "note", home=made[who % 2])

    started = [children.start(work, who) for who in range(6)]
    assert [children.ended(child) for child in started] == [0] * 6

    assert sorted(working(colony.agree())) == sorted(
        ["note", *(f"{who}-{n}" for who in range(6) for n in range(6))]
    )
