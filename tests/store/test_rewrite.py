"""Many files exchanged as one: decided with the list, finished by whoever takes the lock."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from aether.errors import AetherError, LockTimeout, StorageFailed, UnsafePath
from aether.store import doctor, files, rewrite
from aether.store.commit import write_lock
from aether.store.files import locked
from aether.store.rewrite import Step, file_identity, finish, stage
from tests import homes
from tests.tables import rows

GONE = (0, 0, 0)


def step(home, path, data, *, to=None):
    return Step(path, path if to is None else to, file_identity(home / path), data)


def put(home, path, data):
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_bytes(data)


def test_all_files_are_exchanged_renamed_and_removed_as_was_decided(home):
    for name in ("one", "index.sqlite", "old/three"):
        put(home, name, name.encode())
    os.chmod(home / "one", 0o640)

    stage(
        home,
        [
            step(home, "one", b"1"),
            step(home, "old/three", b"3", to="new/three"),
            Step("index.sqlite", "", GONE, b""),
        ],
    )
    assert (home / "one").read_bytes() == b"one"

    assert finish(home) == []
    assert ((home / "one").read_bytes(), (home / "new/three").read_bytes()) == (b"1", b"3")
    assert (home / "one").stat().st_mode & 0o777 == 0o640
    assert not any((home / name).exists() for name in ("index.sqlite", "old", "erasing"))


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


def plan(home, *steps):
    """Put a plan in the form of earlier releases into `home`, as a clone may have it."""
    put(home, "erasing/plan.json", json.dumps(list(steps)).encode())


@rows(
    "path, to",
    [
        ("{victim}", ""),
        ("../victim", ""),
        ("data/../../victim", ""),
        ("link/victim", ""),
        ("data/memory.json", ""),
        ("config.toml", ""),
        ("hook.log", "{victim}"),
        ("hook.log", "../new"),
        ("hook.log", "link/new"),
        ("hook.log", "data/\0"),
        ("", "data/new"),
        ("data//memory.json", "data/new"),
        (7, ""),
        ("hook.log", None),
    ],
)
def test_a_plan_that_names_what_no_rewrite_replaces_is_put_aside_and_nothing_else_is_touched(
    tmp_path, path, to
):
    home = homes.fresh(tmp_path)
    (tmp_path / "outside").mkdir()
    for victim in (tmp_path / "victim", tmp_path / "outside/victim", home / "hook.log", home / "config.toml"):
        victim.write_bytes(b"")
    (home / "link").symlink_to(tmp_path / "outside")
    names = [
        each.format(victim=tmp_path / "victim") if isinstance(each, str) else each for each in (path, to)
    ]
    plan(home, [*names, file_identity(home / "hook.log")])
    put(home, "erasing/0", b"new")
    before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file() and one.name != "lock"}

    homes.add(home, "one", "anything")

    assert not (home / "erasing").exists()
    (kept,) = (home / "quarantine").iterdir()
    assert sorted(one.name for one in kept.iterdir()) == ["0", "plan.json"]
    for one, data in before.items():
        if "erasing" not in one.parts and one.name not in ("journal.jsonl", "head", "hook.log"):
            assert one.read_bytes() == data
    assert {one.name for one in (tmp_path / "outside").iterdir()} == {"victim"}
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["victim"]
    assert "an erasing" in (home / "hook.log").read_text()


def link(path):
    path.parent.mkdir()
    path.symlink_to("/etc/hostname")


def pipe(path):
    path.parent.mkdir()
    os.mkfifo(path)


def text(data):
    return lambda path: (path.parent.mkdir(), path.write_bytes(data))


@rows(
    "make",
    [
        text(b"no JSON"),
        text(b'{"a": 1}'),
        text(b"[1, 2]"),
        text(b'[["one"]]'),
        text(b'[["one", "two", "three"]]'),
        text(b'[["one", "two", [1, 2]]]'),
        lambda path: path.mkdir(parents=True),
        lambda path: path.parent.write_bytes(b"a file"),
        lambda path: path.parent.symlink_to("/etc"),
        lambda path: path.parent.symlink_to("nowhere"),
        link,
        pipe,
    ],
)
def test_a_plan_that_is_none_stops_no_writer_and_the_doctor_names_it(tmp_path, make):
    home = homes.fresh(tmp_path)
    make(home / "erasing" / "plan.json")
    assert [one.where for one in doctor.examine(home) if one.code == "erasing"] == ["erasing/"]

    doctor.repair(home, now=homes.NOW)

    assert not os.path.lexists(home / "erasing")
    found = [one for one in doctor.examine(home) if one.level != "info" and one.code != "no-file"]
    assert [(one.level, one.where.partition(".")[0]) for one in found] == [("warning", "quarantine/erasing")]


def test_a_step_that_a_link_or_a_large_file_came_in_the_way_of_is_left_and_the_others_are_done(home):
    for name in ("one", "two"):
        put(home, name, name.encode())
    stage(home, [step(home, "one", b"1"), step(home, "two", b"2")])
    (home / "one").unlink()
    (home / "one").symlink_to("/etc/hostname")

    assert finish(home) == ["one"]
    assert (home / "two").read_bytes() == b"2"


def test_what_a_repository_brings_is_no_rewrite(tmp_path):
    """What git tracks came from somebody else, even where every path and every file fits."""
    home = homes.fresh(tmp_path)
    put(home, "one", b"one")
    stage(home, [step(home, "one", b"1")])
    for command in (["init", "-q"], ["add", "-f", ".aether/erasing"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)

    with write_lock(home):
        assert ((home / "one").read_bytes(), (home / "erasing").exists()) == (b"one", False)
    assert "git tracks it" in (home / "hook.log").read_text()


def test_a_damaged_plan_is_refused(home):
    """No bit of a plan may name another file."""
    for name in ("one", "ond", "two"):
        put(home, name, name.encode())
    stage(home, [step(home, "one", b"1"), Step("index.sqlite", "", GONE, b"")])
    good = (home / "erasing/plan.json").read_bytes()
    shutil.copytree(home, home.parent / "copy", symlinks=True)

    for at in range(0, len(good) * 8, 37):
        flipped = bytearray(good)
        flipped[at // 8] ^= 1 << at % 8
        put(home, "erasing/plan.json", bytes(flipped))
        with pytest.raises(AetherError):
            rewrite.staged(home)

    for data in (good[:-9], good.splitlines(keepends=True)[0], good + good):
        put(home, "erasing/plan.json", data)
        with pytest.raises(AetherError):
            rewrite.staged(home)


def test_a_plan_of_an_earlier_release_is_finished(home):
    put(home, "one", b"one")
    put(home, "index.sqlite", b"")
    plan(home, ["one", "new/one", file_identity(home / "one")], ["index.sqlite", "", GONE])
    put(home, "erasing/0", b"1")

    assert finish(home) == []
    assert (home / "new/one").read_bytes() == b"1"
    assert not any((home / name).exists() for name in ("one", "index.sqlite", "erasing"))


@rows("path, to", [("../one", "one"), ("one", "/tmp/one"), ("one", "")])
def test_what_may_not_be_in_a_plan_is_not_staged(tmp_path, path, to):
    home = homes.fresh(tmp_path)
    put(home, "one", b"one")

    with pytest.raises(UnsafePath):
        stage(home, [Step(path, to, GONE, b"1")])

    with write_lock(home):
        assert (home / "one").read_bytes() == b"one"
