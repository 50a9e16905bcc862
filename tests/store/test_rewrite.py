"""Many files exchanged as one: decided with the list, finished by whoever takes the lock."""

from __future__ import annotations

import os
import shutil

import pytest

from aether.errors import LockTimeout, StorageFailed
from aether.store import doctor, files, rewrite
from aether.store.commit import write_lock
from aether.store.files import locked
from aether.store.rewrite import Step, file_identity, finish, stage
from tests import homes

GONE = (0, 0, 0)


def step(home, path, data, *, to=None):
    return Step(path, path if to is None else to, file_identity(home / path), data)


def put(home, path, data):
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_bytes(data)


def test_all_files_are_exchanged_renamed_and_removed_as_was_decided(home):
    for name in ("one", "two", "old/three"):
        put(home, name, name.encode())
    os.chmod(home / "one", 0o640)

    stage(
        home,
        [step(home, "one", b"1"), step(home, "old/three", b"3", to="new/three"), Step("two", "", GONE, b"")],
    )
    assert (home / "one").read_bytes() == b"one"

    assert finish(home) == []
    assert ((home / "one").read_bytes(), (home / "new/three").read_bytes()) == (b"1", b"3")
    assert (home / "one").stat().st_mode & 0o777 == 0o640
    assert not any((home / name).exists() for name in ("two", "old", "erasing"))


def test_who_takes_the_lock_next_finishes_and_the_doctor_says_so(home):
    put(home, "one", b"one")
    stage(home, [step(home, "one", b"1")])
    assert [(one.level, one.where) for one in doctor.examine(home)] == [("warning", "erasing/")]

    doctor.repair(home, now=homes.NOW)

    assert ((home / "one").read_bytes(), doctor.examine(home)) == (b"1", [])


def test_what_was_not_decided_is_dropped(home):
    put(home, "one", b"one")
    put(home, "erasing/0", b"1")

    with write_lock(home):
        assert not (home / "erasing").exists()

    assert (home / "one").read_bytes() == b"one"


def test_what_was_appended_since_stays_behind_what_is_new_however_often_it_is_finished(home, monkeypatch):
    put(home, "hook.log", b"one\n")
    stage(home, [step(home, "hook.log", b"1\n")])
    with (home / "hook.log").open("ab") as log:
        log.write(b"later\n")
    monkeypatch.setattr(shutil, "rmtree", lambda place: None)
    monkeypatch.setattr(rewrite.Path, "unlink", lambda path, missing_ok=False: None)

    assert (finish(home), finish(home)) == ([], [])

    assert (home / "hook.log").read_bytes() == b"1\nlater\n"


@pytest.mark.parametrize("path", ["one.json", "short.log"])
def test_what_was_changed_otherwise_is_left_and_named(home, path):
    put(home, path, b"one")
    stage(home, [step(home, path, b"1")])
    with (home / path).open("r+b") as file:
        file.truncate(1) if path.endswith("log") else file.write(b"edited")
    there = (home / path).read_bytes()

    assert finish(home) == [path]
    assert (home / path).read_bytes() == there


def test_what_was_replaced_by_another_file_is_left_and_what_is_missing_is_missing(home):
    put(home, "one", b"one")
    put(home, "two", b"two")
    stage(home, [step(home, "one", b"1"), step(home, "two", b"2"), step(home, "two", b"2", to="three")])
    files.write_whole(home / "one", b"another")
    (home / "two").unlink()

    assert finish(home) == ["one"]
    assert not (home / "two").exists()


def test_a_full_disk_decides_nothing(home, monkeypatch):
    put(home, "one", b"one")
    monkeypatch.setattr(rewrite, "write_whole", lambda path, data: (_ for _ in ()).throw(OSError(28, "full")))

    with pytest.raises(StorageFailed, match=r"Nothing was changed"):
        stage(home, [step(home, "one", b"1")])


def test_a_name_below_a_file_has_no_identity(home):
    put(home, "one", b"one")

    assert file_identity(home / "one/below") is None


def test_a_writer_waits_for_a_held_conversation_no_longer_than_its_own_time(home):
    """A rewrite that cannot be finished is an error of the writer, and stays for the next one."""
    name = "conversations/talk/history.jsonl"
    put(home, name, b"one")
    stage(home, [step(home, name, b"1")])

    with locked(home / "conversations/talk"), pytest.raises(LockTimeout), write_lock(home, timeout=0.05):
        pass
    with write_lock(home):
        assert (home / name).read_bytes() == b"1"


def test_a_file_that_an_interrupted_rewrite_left_is_named_in_the_log(home):
    put(home, "one", b"one")
    stage(home, [step(home, "one", b"1")])
    put(home, "one", b"changed meanwhile")

    with write_lock(home):
        assert (home / "one").read_bytes() == b"changed meanwhile"
    assert "one changed while an erasing was interrupted" in (home / "hook.log").read_text()
