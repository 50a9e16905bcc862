"""Additions of processes that wait for the lock of a shared home: its holder commits them with its own, each exactly once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

import aether
from aether import clock
from aether.api import home as access
from aether.api import share as sharing
from aether.api import telemetry
from aether.errors import AetherError, BudgetExceeded, StorageFailed
from aether.store import commit as commits
from aether.store import files, ledger, log, record_files, snapshot, together
from tests import children, homes

FOLLOWERS = ("a", "b", "c")
SECONDS = 30


@pytest.fixture
def home(colony, monkeypatch):
    """Return a replica of a colony with another replica; nobody asks for news there."""
    colony.first()
    home = colony.join()
    monkeypatch.setitem(access._NEXT_LOOK, home, time.monotonic() + 1000)
    return home


def waiting(home):
    """Return the files of what is asked for, written whole."""
    found = []
    for path in sorted((home / together.DIRECTORY).glob("*.json")):
        with suppress(FileNotFoundError):
            found += [path] if log.unsealed(path.read_bytes()) else []
    return found


def until(reached):
    stop = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < stop
        time.sleep(0.002)


def contents(home):
    """Return the content of what was added to a home, in its order."""
    items = snapshot.load(home).documents["memory"]["working_memory"]["items"]
    return [item["content"] for item in items if item["type"] == "note"]


def add(home, content):
    """Add an item, and keep the answer in a file beside the home."""
    place = home.parent / f"answer-{content[:20]}"
    try:
        made = aether.add_working_memory_item(content, "note", home=home)
    except AetherError as reason:
        place.write_text(f"{type(reason).__name__}: {reason}")
    else:
        place.write_text(made)


@contextmanager
def held_against(home, content):
    """Hold the lock while a child wants to add; it is forked before, or it would hold the lock as well."""
    locked = home.parent / "locked"

    def act():
        until(locked.exists)
        add(home, content)

    child = children.start(act)
    with commits.write_lock(home):
        locked.touch()
        yield child
    locked.unlink()


def answer(home, content):
    return (home.parent / f"answer-{content[:20]}").read_text()


def together_with(home, act, followers=FOLLOWERS):
    """Let a child add "own" when it has the lock and `followers` wait, after `act` there; return how each child ended."""

    def lead():
        real = commits.settle

        def settle(found, *, now):
            if not (home.parent / "leads").exists():
                (home.parent / "leads").touch()
                until(lambda: len(waiting(home)) == len(followers))
            return real(found, now=now)

        commits.settle = settle
        act()
        add(home, "own")

    leader = children.start(lead)
    until((home.parent / "leads").exists)
    made = [
        children.start(add, home, one) if isinstance(one, str) else children.start(one) for one in followers
    ]
    return children.ended(leader), [children.ended(child) for child in made]


def ids_of(home):
    return {item["content"]: item["id"] for item in aether.list_working_memory_items(home=home)}


def require_once(colony, home, ended, expected=FOLLOWERS):
    """Check that each of `expected` was acknowledged, is there once with the id that was said, and nothing waits."""
    assert ended == [0] * len(ended)
    found = contents(colony.agree())
    assert sorted(content for content in found if content != "own") == sorted(expected)
    assert found.count("own") <= 1
    ids = ids_of(home)
    assert {content: answer(home, content) for content in expected} == {
        content: ids[content] for content in expected
    }
    assert waiting(home) == []


def record(home):
    """Write down beside the home how many lines are appended at a time."""
    server = type(ledger.of(home))
    real = server.append_if

    def append_if(self, stream, mark, lines, *, key=""):
        with open(home.parent / "appends", "a") as file:
            file.write(f"{len(lines)} ")
        return real(self, stream, mark, lines, key=key)

    server.append_if = append_if


def appends(home):
    return (home.parent / "appends").read_text()


def test_who_has_the_lock_stores_what_others_wait_for_by_one_append(colony, home):
    leader, ended = together_with(home, lambda: record(home))

    assert leader == 0
    require_once(colony, home, ended)
    assert appends(home) == "4 "
    assert contents(home)[0] == "own"
    logged = [each for each in aether.log(home=home) if each.operation == "add"][:4]
    assert {each.reason for each in logged} == {"note 'own'", "note 'a'", "note 'b'", "note 'c'"}
    revisions = [each.revision for each in logged]
    assert revisions == list(range(revisions[0], revisions[0] - 4, -1))
    assert list((home / together.DIRECTORY).iterdir()) == []


def test_who_commits_something_else_stores_what_others_wait_for(colony, home):
    def act():
        record(home)
        aether.add_working_memory_item = lambda content, *args, **named: aether.transition_state(
            "INIT", home=home
        )["to"]

    leader, ended = together_with(home, act)

    assert leader == 0
    require_once(colony, home, ended)
    assert sorted(contents(home)) == sorted(FOLLOWERS)
    assert max(map(int, appends(home).split())) >= 4


def others_of(home):
    """Return acts that emit a signal, register a worker and release one, and keep what each returned beside the home."""

    def keep(name, act):
        try:
            (home.parent / name).write_text(json.dumps(act()))
        except AetherError as reason:
            (home.parent / name).write_text(json.dumps(f"{type(reason).__name__}: {reason}"))

    return {
        "signal": lambda: keep("signal", lambda: aether.emit_signal("feedback", "fast", strength=0.4, home=home)),
        "registered": lambda: keep("registered", lambda: aether.register_worker("w-2", task="t", home=home)),
        "released": lambda: keep("released", lambda: aether.release_worker("w-1", home=home)),
    }  # fmt: skip


def kept(home, name):
    return json.loads((home.parent / name).read_text())


def require_others_once(home, colony):
    colony.agree()
    signals = snapshot.load(home).documents["pheromones"]["active_pheromones"]
    made = kept(home, "signal")
    assert [signal["id"] for signal in signals if signal["type"] == "FEEDBACK"] == [made["id"]]
    assert (made["strength"], made["context"], made["queued"]) == (0.4, "fast", False)
    assert kept(home, "released")["id"] == "w-1"
    status = aether.colony(home=home)["colony_status"]
    assert status["workers"] == [kept(home, "registered")]
    assert status["workers_registered"] == 2
    operations = [each.operation for each in aether.log(home=home)]
    assert [operations.count(name) for name in ("emit", "register worker", "release worker")] == [1, 2, 1]


def test_signals_and_workers_are_stored_with_items_by_one_append(colony, home):
    aether.register_worker("w-1", home=home)

    leader, ended = together_with(home, lambda: record(home), ("a", *others_of(home).values()))

    assert [leader, *ended] == [0] * 5
    assert appends(home) == "5 "
    require_others_once(home, colony)
    assert {each.by for each in aether.log(home=home) if "worker" in each.operation} == {"w-1", "w-2"}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_holder_loses_and_repeats_no_signal_and_no_worker(colony, home, when):
    aether.register_worker("w-1", home=home)
    act = killing(lambda: type(ledger.of(home)), "append_if", when)

    leader, ended = together_with(home, act, tuple(others_of(home).values()))

    assert (leader, ended) == (-signal.SIGKILL, [0] * 3)
    require_others_once(home, colony)


def test_who_releases_an_unknown_worker_finds_that_out_alone(colony, home):
    _leader, ended = together_with(home, lambda: None, ("a", others_of(home)["released"]))

    assert ended == [0, 0]
    assert kept(home, "released").startswith("NotFound: ")
    assert sorted(contents(colony.agree())) == ["a", "own"]


def test_a_signal_that_another_process_stored_exports_what_faded(colony, home, monkeypatch):
    exported = []
    aether.emit_signal("FEEDBACK", "old", strength=0.2, home=home)
    later = clock.now() + timedelta(days=9)

    def emit():
        monkeypatch.setattr(access, "now", lambda: later)
        monkeypatch.setattr(telemetry, "export", lambda home, events: exported.extend(events))
        aether.emit_signal("FEEDBACK", "new", home=home)
        (home.parent / "exported").write_text(json.dumps(exported))

    leader, ended = together_with(home, lambda: record(home), (emit,))

    assert [leader, *ended] == [0, 0]
    assert appends(home) == "2 "
    (event,) = kept(home, "exported")
    assert (event["event"], event["signal"]["metadata"]["context"]) == ("signal_expired", "old")


def test_a_signal_that_waits_for_the_end_of_the_phase_says_so_wherever_it_was_stored(colony, home):
    aether.start_phase(1, home=home)
    path = home.parent / "queued"

    def emit():
        path.write_text(json.dumps(aether.emit_signal("FOCUS", "here", home=home)["queued"]))

    together_with(home, lambda: record(home), (emit,))

    assert appends(home) == "2 "
    assert kept(home, "queued") is True
    queued = snapshot.load(home).documents["pheromones"]["queued"]
    assert [each["metadata"]["context"] for each in queued] == ["here"]


def test_what_json_would_change_is_not_asked_for(colony, home):
    def emit():
        until((home.parent / "locked").exists)
        with suppress(AetherError):
            aether.emit_signal("FEEDBACK", "x", metadata={1: "a"}, home=home)
            (home.parent / "stored").touch()

    other = children.start(emit)
    with held_against(home, "a") as child:
        until(lambda: waiting(home))
        time.sleep(0.1)
        assert len(waiting(home)) == 1

    assert children.ended(child) == 0
    children.ended(other)
    assert not (home.parent / "stored").exists()


def test_while_others_write_who_asks_leaves_them_the_lock(home, monkeypatch):
    add(home, "first")
    child = children.start(add, home, "theirs")
    assert children.ended(child) == 0
    monkeypatch.setattr(together, "BUSY_SECONDS", 1000)
    monkeypatch.setattr(together, "MOST_PATIENCE_SECONDS", 1000)
    asking = together.Asking(home, {"operation": "add"})

    assert not asking.look()
    assert len(waiting(home)) == 1
    time.sleep(2 * together.PATIENCE_SECONDS)
    assert not asking.look()
    monkeypatch.setattr(together, "BUSY_SECONDS", 0)
    assert asking.look()
    assert asking.withdraw()


def test_who_wrote_last_needs_no_patience(home):
    add(home, "own")

    assert together.Asking(home, {"operation": "add"}).look()
    assert waiting(home) == []


def test_who_is_not_answered_while_others_write_tries_for_the_lock_all_the_same(home, monkeypatch):
    monkeypatch.setattr(together, "_is_busy", lambda home: True)
    asking = together.Asking(home, {"operation": "add"})

    assert not asking.look()
    until(asking.look)
    assert asking.withdraw()


def test_each_of_the_group_is_undone_alone(colony, home):
    together_with(home, lambda: None)
    revisions = {each.reason: each.revision for each in aether.log(home=home)}

    aether.undo(revisions["note 'b'"], home=home)

    assert "b" not in contents(home)
    assert sorted(contents(colony.agree())) == ["a", "c", "own"]


def test_one_that_is_refused_fails_alone_with_its_own_error(colony, home, monkeypatch):
    monkeypatch.setattr(together, "MOST_BYTES", 10**8)
    large = "too large " * 200_000

    leader, ended = together_with(home, lambda: None, ("a", large, "c"))

    assert leader == 0
    assert answer(home, large).startswith(f"{BudgetExceeded.__name__}: ")
    require_once(colony, home, ended, ("a", "c"))
    assert answer(home, "own") == ids_of(home)["own"]


def test_a_change_that_others_would_refuse_is_not_stored_with_the_rest(colony, home):
    def act():
        plan = together.OPERATIONS["add"].plan

        def harmed(found, arguments, at):
            change = plan(found, arguments, at)
            if arguments["entries"][0]["content"] == "b":
                change.patches["memory"][0]["value"]["token_count"] = "many"
            return change

        together.OPERATIONS["add"] = together.OPERATIONS["add"]._replace(plan=harmed)

    leader, ended = together_with(home, act)

    assert leader == 0
    require_once(colony, home, ended)


def killing(place, name, when):
    """Return what kills the process before or after it calls the function `name`."""

    def act():
        owner = place() if callable(place) else place
        real = getattr(owner, name)

        def killed(*args, **named):
            if when == "after":
                real(*args, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, killed)

    return act


@pytest.mark.parametrize(
    ("place", "name", "when", "own"),
    [
        (together, "take", "before", 0),
        (together, "take", "after", 0),
        (together, "with_asked", "after", 0),
        ("server", "append_if", "before", 0),
        ("server", "append_if", "after", 1),
        (commits, "append", "after", 1),
        (commits, "set_head", "after", 1),
        (together, "answer", "before", 1),
        (together, "answer", "after", 1),
    ],
)
def test_what_a_killed_holder_has_taken_is_stored_once_by_those_who_wait(
    colony, home, place, name, when, own
):
    owner = (lambda: type(ledger.of(home))) if place == "server" else place

    leader, ended = together_with(home, killing(owner, name, when))

    assert leader == -signal.SIGKILL
    require_once(colony, home, ended)
    assert contents(home).count("own") == own


def test_a_line_that_comes_after_its_sender_was_killed_is_not_stored_beside_that_of_the_follower(
    colony, home, tmp_path, monkeypatch
):
    """The server still works on it when a follower has looked for it: one of the two is appended."""
    looked, real = tmp_path / "looked", commits._append

    def act():
        commits._append = real
        server = type(ledger.of(home))
        append_if = server.append_if

        def sent(self, stream, mark, lines, *, key=""):
            if not os.fork():
                os.closerange(3, 100)  # the lock of the home is free
                until(looked.exists)
                with suppress(AetherError):
                    append_if(ledger.opened(colony.url, "c", replica="late"), stream, mark, lines)
                looked.with_suffix(".done").touch()
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)

        server.append_if = sent

    def late(*args, **named):
        looked.touch()
        time.sleep(0.2)
        return real(*args, **named)

    monkeypatch.setattr(commits, "_append", late)
    leader, ended = together_with(home, act)
    until(looked.with_suffix(".done").exists)

    assert leader == -signal.SIGKILL
    require_once(colony, home, ended)


@pytest.mark.parametrize(
    ("error", "when"),
    [
        (KeyboardInterrupt, "before"),
        (KeyboardInterrupt, "after"),
        (lambda: StorageFailed("full.", fix="Make room.", where="here"), "before"),
        (lambda: ledger.Unsettled("lost.", fix="Wait.", where="here"), "before"),
        (lambda: ledger.Unsettled("lost.", fix="Wait.", where="here"), "after"),
    ],
)
def test_what_a_holder_fails_to_append_is_stored_once_by_those_who_wait(colony, home, error, when):
    def act():
        server = type(ledger.of(home))
        real = server.append_if

        def fails(*args, **named):
            server.append_if = real
            if when == "after":
                real(*args, **named)
            raise error()

        server.append_if = fails

    _leader, ended = together_with(home, act)

    require_once(colony, home, ended)
    assert contents(home).count("own") == (when == "after")


def test_it_is_not_known_what_became_of_a_change_that_was_taken_if_the_server_is_away(colony, home):
    def act():
        killing(lambda: type(ledger.of(home)), "append_if", "after")()

    server = type(ledger.of(home))
    turn = server.turn

    def away(*args, **named):
        raise StorageFailed("away.", fix="Start it.", where="here")

    server.turn = away
    try:
        _leader, ended = together_with(home, act)
    finally:
        server.turn = turn

    assert ended == [0] * len(FOLLOWERS)
    said = [answer(home, content) for content in FOLLOWERS]
    assert sum("Whether it is stored is not known" in words for words in said) == len(FOLLOWERS)
    assert sorted(contents(colony.agree())) == ["a", "b", "c", "own"]


def test_who_waits_no_longer_takes_its_change_back(colony, home, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setenv("AETHER_STORE_LOCK_TIMEOUT_SECONDS", "0.2")
        with held_against(home, "a") as child:
            assert children.ended(child) == 0
    assert answer(home, "a").startswith("LockTimeout")
    assert waiting(home) == []

    add(home, "own")

    assert contents(colony.agree()) == ["own"]


def asked(home):
    """Return the file of a change that a killed process has asked for."""
    with held_against(home, "a") as child:
        until(lambda: waiting(home))
        os.kill(child, signal.SIGKILL)
        children.ended(child)
        (path,) = waiting(home)
    return path


def test_what_a_killed_process_has_asked_for_is_stored_at_most_once(colony, home):
    asked(home)

    add(home, "own")
    add(home, "next")

    assert contents(colony.agree()) == ["own", "a", "next"]


@pytest.mark.parametrize("how", ["copied", "old", "tracked", "damaged", "unknown"])
def test_what_nobody_here_asks_for_is_not_taken(colony, home, monkeypatch, how):
    path = asked(home)
    if how == "copied":
        shutil.copy2(path, path.with_suffix(".copy"))
        path.unlink()
        keep = path.with_suffix(".kept")  # so that the inode is not used again
        keep.touch()
        os.rename(path.with_suffix(".copy"), path)
    elif how == "old":
        os.utime(path, (time.time() - 2 * together.OLD_SECONDS,) * 2)
    elif how == "tracked":
        real = together.spool.tracked

        def tracked(home, start="hooks/spool/"):
            return frozenset({path.name}) if start.startswith(together.DIRECTORY) else real(home, start)

        monkeypatch.setattr(together.spool, "tracked", tracked)
    elif how == "damaged":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        monkeypatch.delitem(together.OPERATIONS, "add")

    add(home, "own")

    assert contents(colony.agree()) == ["own"]


def test_where_changes_may_wait_for_the_server_each_commits_its_own(colony, home, monkeypatch):
    monkeypatch.setenv("AETHER_SHARE_OFFLINE", "queue")
    with held_against(home, "a") as child:
        time.sleep(0.1)
        assert waiting(home) == []

    assert children.ended(child) == 0
    assert contents(colony.agree()) == ["a"]


def test_a_home_that_is_not_shared_asks_nobody(tmp_path):
    home = homes.fresh(tmp_path)
    with held_against(home, "a") as child:
        time.sleep(0.1)
        assert not (home / "share").exists()

    assert children.ended(child) == 0
    assert contents(home) == ["a"]


def test_many_writers_of_two_homes_lose_nothing(colony, home):
    places = [colony.made[0], home]

    def work(who):
        for number in range(8):
            aether.add_working_memory_item(f"{who}-{number}", "note", home=places[who % 2])

    made = [children.start(work, who) for who in range(6)]

    assert [children.ended(child) for child in made] == [0] * 6
    found = contents(colony.agree())
    assert sorted(found) == sorted(f"{who}-{number}" for who in range(6) for number in range(8))


def test_a_home_that_leaves_has_its_journal_on_its_disk_and_nothing_that_was_asked_for(
    colony, home, monkeypatch
):
    path, synced = asked(home), []
    monkeypatch.setattr(
        files, "sync_data", lambda handle: synced.append((os.fstat(handle).st_ino, ledger.is_shared(home)))
    )
    add(home, "own")
    journal = snapshot.journal_path(home).stat().st_ino
    assert (journal, True) not in synced  # the ledger has the line

    sharing.leave_share(home=home, force=True)

    assert (snapshot.journal_path(home).stat().st_ino, True) in synced
    assert not path.exists()
    assert list((home / together.DIRECTORY).iterdir()) == []
    add(home, "alone")
    assert contents(home) == ["own", "a", "alone"]


def test_a_fold_syncs_the_journal_before_what_it_writes(colony, home, monkeypatch):
    add(home, "own")
    steps = []
    journal = snapshot.journal_path(home).stat().st_ino
    write_lines = record_files.write_lines
    monkeypatch.setattr(files, "sync_data", lambda handle: steps.append(os.fstat(handle).st_ino))
    monkeypatch.setattr(
        record_files, "write_lines", lambda lines: [steps.append("lines"), write_lines(lines)]
    )

    aether.fold(home=home)

    assert steps.index(journal) < steps.index("lines")


def test_what_was_captured_is_added_by_its_own_process(colony, home, monkeypatch):
    monkeypatch.setattr(commits, "_commit_together", lambda *args, **named: pytest.fail("asked"))
    entries = [
        {"content": content, "type": "note", "metadata": {"pointer": {"file": "t", "key": f"k{nth}"}}}
        for nth, content in enumerate(("a", "b", "a"))
    ]

    made = aether.add_working_memory_items(entries, home=home)

    assert made == [ids_of(home)[content] for content in ("a", "b", "a")]


def test_what_cannot_be_asked_for_leaves_no_file_and_is_tried_once(colony, home):
    asking = together.Asking(home, {"operation": "add", "arguments": {"entries": "\ud83d\ude00"}})

    for _ in range(3):
        asking.look()

    assert list((home / together.DIRECTORY).iterdir()) == []


def test_where_nothing_was_sent_each_says_that_nothing_was_stored(colony, home, monkeypatch):
    def away(*args, **named):
        raise StorageFailed("away.", fix="Start it.", where="here")

    with monkeypatch.context() as patched:
        patched.setattr(type(ledger.of(home)), "append_if", away)
        patched.setattr(type(ledger.of(home)), "turn", away)
        _leader, ended = together_with(home, lambda: None)

    assert ended == [0] * len(FOLLOWERS)
    for content in ("own", *FOLLOWERS):
        assert "Nothing was stored" in answer(home, content)
    assert contents(colony.agree()) == []
