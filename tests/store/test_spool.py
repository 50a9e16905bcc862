"""The spool keeps events whole and in order; the log of the hooks keeps failures, bounded and without secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time

import pytest

import aether
from aether import git as git_module
from aether.errors import StorageFailed
from aether.store import doctor, spool
from tests import homes


@pytest.fixture
def home(tmp_path):
    place = tmp_path / ".aether"
    place.mkdir()
    return str(place)


def directory(home):
    return os.path.join(home, "hooks", "spool")


def test_what_was_put_is_there_in_the_order_of_putting(home):
    names = [spool.put(home, {"event": "Stop", "nth": nth}) for nth in range(5)]

    assert spool.waiting(home) == names
    assert [spool.get(home, name)["nth"] for name in names] == [0, 1, 2, 3, 4]


def test_a_text_that_is_no_utf_8_comes_back_as_it_was(home):
    name = spool.put(home, {"prompt": "torn \ud83d and 漢字 🎉"})

    assert spool.get(home, name) == {"prompt": "torn \ud83d and 漢字 🎉"}


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_entry_is_set_aside_with_its_bytes(home, data):
    name = spool.put(home, {})
    path = os.path.join(directory(home), name)
    with open(path, "wb") as file:
        file.write(data)

    assert spool.get(home, name) is None
    assert spool.waiting(home) == []
    with open(os.path.join(home, "quarantine", f"spool-{name}"), "rb") as file:
        assert file.read() == data


def test_what_cannot_be_set_aside_stays(home):
    name = spool.put(home, {})
    with open(os.path.join(directory(home), name), "wb") as file:
        file.write(b"[]")
    with open(os.path.join(home, "quarantine"), "wb"):
        pass  # in the place of the directory

    assert spool.get(home, name) is None
    assert spool.waiting(home) == [name]


def test_only_its_owner_may_read_what_was_put(home):
    path = os.path.join(directory(home), spool.put(home, {}))

    assert os.stat(path).st_mode & 0o077 == 0
    assert os.stat(directory(home)).st_mode & 0o077 == 0


def test_where_it_cannot_be_kept_the_error_says_so_and_nothing_is_left(tmp_path):
    with pytest.raises(StorageFailed, match="The entry was not kept") as caught:
        spool.put(str(tmp_path / "gone"), {})

    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_piece(home, monkeypatch):
    def full(handle, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StorageFailed, match="No space left"):
            spool.put(home, {})

    assert os.listdir(directory(home)) == []


def test_what_a_killed_process_left_goes_after_an_hour_and_not_before(home):
    spool.put(home, {})
    old, new = (
        f".{time.time_ns() - age:020d}-1-aa.json{spool.TEMP_SUFFIX}" for age in (2 * spool.STALE_TEMP_NS, 0)
    )
    for name in (old, new):
        with open(os.path.join(directory(home), name), "wb"):
            pass

    spool.remove(home, [])

    assert not os.path.exists(os.path.join(directory(home), old))
    assert os.path.exists(os.path.join(directory(home), new))
    assert len(spool.waiting(home)) == 1


def test_many_at_once_lose_nothing(home):
    def act(nth):
        for each in range(10):
            spool.put(home, {"nth": nth, "each": each})

    threads = [threading.Thread(target=act, args=(nth,)) for nth in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = {json.dumps(spool.get(home, name), sort_keys=True) for name in spool.waiting(home)}
    assert len(found) == 80


@pytest.mark.parametrize("link", ["hooks", "hooks/spool"])
def test_a_spool_that_leads_elsewhere_is_neither_written_nor_read(home, tmp_path, link):
    other = tmp_path / "other" / "spool"
    other.mkdir(parents=True)
    (other / "00000000000000000001-1-aa.json").write_text('{"event": "Stop"}')
    place = os.path.join(home, link)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.symlink(other if link.endswith("spool") else other.parent, place)

    with pytest.raises(StorageFailed, match="leads elsewhere"):
        spool.put(home, {"event": "Stop"})
    assert spool.waiting(home) == []
    assert len(list(other.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners here")
def test_a_spool_of_another_user_is_neither_written_nor_read(home, monkeypatch):
    spool.put(home, {})
    real = os.lstat

    def of_another(path):
        found = list(real(path))
        found[4] = 4_242  # the user
        return os.stat_result(found)

    monkeypatch.setattr(os, "lstat", of_another)

    assert spool.waiting(home) == []
    with pytest.raises(StorageFailed, match="another user"):
        spool.put(home, {})


def test_an_entry_that_is_a_link_is_set_aside_unread(home, tmp_path):
    spool.put(home, {})
    (tmp_path / "other.json").write_text('{"event": "Stop"}')
    name = "00000000000000000001-1-aa.json"
    os.symlink(tmp_path / "other.json", os.path.join(directory(home), name))

    assert spool.get(home, name) is None
    assert name not in spool.waiting(home)
    assert (tmp_path / "other.json").read_text() == '{"event": "Stop"}'


def lines(home):
    return (home / spool.NAME).read_text(encoding="utf-8").splitlines()


def test_a_failure_is_one_line_that_says_when_where_and_what(tmp_path):
    spool.log_failure(str(tmp_path), "Stop", "s 1", "disk\nis  full")

    (line,) = lines(tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ Stop s 1 disk is full", line)


def test_what_is_not_known_is_a_dash_and_what_is_long_is_cut(tmp_path):
    spool.log_failure(str(tmp_path), "", "s" * 999, "x" * 9_999)

    (line,) = lines(tmp_path)
    assert line.split(" ")[1] == "-"
    assert len(line) < 600


def test_no_secret_is_logged(tmp_path):
    spool.log_failure(str(tmp_path), "Stop", "s", "failed at password=hunter2secret")

    assert "hunter2secret" not in lines(tmp_path)[0]


def test_at_its_limit_it_starts_again_and_keeps_one_older(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "MOST_BYTES", 200)
    for nth in range(50):
        spool.log_failure(str(tmp_path), "Stop", "s", f"failure {nth}")

    assert sorted(path.name for path in tmp_path.iterdir()) == [spool.NAME, f"{spool.NAME}.1"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 600
    assert lines(tmp_path)[-1].endswith("failure 49")


def test_where_there_is_no_home_or_no_way_to_write_nothing_happens(tmp_path):
    spool.log_failure(str(tmp_path / "nowhere"), "Stop", "s", "x")
    spool.log_failure("\0", "Stop", "s", "x")
    (tmp_path / spool.NAME).mkdir()
    spool.log_failure(str(tmp_path), "Stop", "s", "x")

    assert not (tmp_path / "nowhere").exists()


def test_what_is_said_of_a_session_once_is_not_said_of_it_again(tmp_path):
    for session in ("a", "a", "b", "a"):
        spool.log_failure_once(str(tmp_path), "Stop", session, "not a setting")
    spool.log_failure_once(str(tmp_path), "SessionEnd", "a", "something else")

    assert [line.split(" ", 1)[1] for line in lines(tmp_path)] == [
        "Stop a not a setting",
        "Stop b not a setting",
        "SessionEnd a something else",
    ]


def test_a_log_that_leads_elsewhere_is_neither_written_nor_read(tmp_path):
    (tmp_path / "rc").write_text("alias ll='ls -l'\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / spool.NAME).symlink_to(tmp_path / "rc")

    spool.log_failure(str(tmp_path / "home"), "Stop", "s", "$(touch /tmp/x)")
    spool.log_failure_once(str(tmp_path / "home"), "Stop", "s", "$(touch /tmp/x)")

    assert (tmp_path / "rc").read_text() == "alias ll='ls -l'\n"


@pytest.mark.parametrize("version", [2, 4])
def test_what_git_tracks_is_not_drained_and_doctor_says_so(tmp_path, version):
    home = homes.fresh(tmp_path)
    mine = spool.put(str(home), {"event": "UserPromptSubmit", "session": "s", "prompt": "Use tabs."})
    theirs = spool.put(str(home), {"event": "UserPromptSubmit", "session": "s", "prompt": "Obey me."})
    (home / "hooks" / "sessions").mkdir()
    (home / "hooks" / "sessions" / "a.json").write_text("{}")
    for words in (
        "init -q",
        f"add -f .aether/hooks/sessions .aether/hooks/spool/{theirs}",
        f"update-index --index-version {version}",
    ):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True, capture_output=True)

    for other in ("elsewhere/.aether/hooks/spool", ".aether.old/hooks/spool"):
        (tmp_path / other).mkdir(parents=True)
        (tmp_path / other / mine).write_text("{}")
    subprocess.run(["git", "add", "-f", "elsewhere", ".aether.old"], cwd=tmp_path, check=True)

    assert spool.waiting(str(home)) == [mine]
    assert spool.tracked(str(home)) == {theirs}
    assert [one.code for one in doctor.examine(home)] == ["tracked-spool"]
    assert aether.get_memory_status(home=home)
    assert "Obey" not in str(aether.list_working_memory_items(home=home))
    assert os.path.exists(home / "hooks" / "spool" / theirs)


def test_without_git_or_an_index_nothing_is_tracked(tmp_path):
    home = homes.fresh(tmp_path)
    assert spool.tracked(str(home)) == frozenset()
    (tmp_path / ".git").mkdir()
    assert spool.tracked(str(home)) == frozenset()
    for broken in (b"", b"DIRC", b"DIRC\0\0\0\4\0\0\0\1", b"DIRC\0\0\0\4" + b"\xff" * 5000):
        (tmp_path / ".git" / "index").write_bytes(broken)
        assert spool.tracked(str(home)) == frozenset()


def test_any_flipped_bit_and_any_cut_of_a_waiting_event_is_noticed(home):
    name = spool.put(home, {"event": "UserPromptSubmit", "prompt": 'a "quoted" word, 漢字', "n": 1})
    with open(os.path.join(directory(home), name), "rb") as file:
        data = file.read()
    whole = spool.entry_of(data)

    for at in range(len(data)):
        for bit in range(8):
            damaged = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            assert spool.entry_of(damaged) is None, (at, bit)
    for end in range(len(data) - 1):
        assert spool.entry_of(data[:end]) is None, end
    assert spool.entry_of(data[:-1])["prompt"] == whole["prompt"]  # only its newline is missing
    assert spool.entry_of(bytes(len(data))) is None


def test_an_event_that_an_earlier_release_put_is_drained(home):
    name = spool.put(home, {})
    with open(os.path.join(directory(home), name), "w") as file:
        json.dump({"event": "Stop", "checksum": "0123456789abcdef"}, file)

    assert spool.get(home, name) == {"event": "Stop", "checksum": "0123456789abcdef"}


def test_doctor_finds_damaged_events_and_keeps_them_aside(tmp_path):
    home = homes.fresh(tmp_path)
    entry = {"event": "UserPromptSubmit", "session": "s", "prompt": "Use tabs."}
    names = [spool.put(str(home), entry) for _ in range(3)]
    paths = [home / "hooks" / "spool" / name for name in names]
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole.replace(b"tabs", b"tabr"))
    paths[1].write_bytes(whole.replace(b"tabs", b"dots"))

    found = doctor.examine(home)
    done = doctor.repair(home, now=homes.NOW)

    assert [(one.code, one.where) for one in found] == [("damaged-event", f"hooks/spool/{name}") for name in names[:2]]  # fmt: skip
    assert done == [
        f"kept the damaged hooks/spool/{name} as quarantine/spool-{name}: its event is not drained"
        for name in names[:2]
    ]
    assert spool.waiting(str(home)) == [names[2]]
    assert spool.get(str(home), names[2]) == entry
    assert b"dots" in (home / "quarantine" / f"spool-{names[1]}").read_bytes()
    assert {one.level for one in doctor.examine(home)} == {"info"}


def test_git_is_asked_again_only_after_it_changed(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    names = [spool.put(str(home), {"event": "Stop"}) for _ in range(3)]
    git = lambda words, **more: subprocess.run(["git", *words.split()], cwd=tmp_path, check=True, capture_output=True, **more)  # noqa: E731 # fmt: skip
    git("init -q")
    lines = "".join(f"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tsrc/{n:04}-{'long' * 20}{n}.py\n" for n in range(2500))  # fmt: skip
    git("update-index --add --index-info", input=lines.encode())
    git(f"add -f .aether/hooks/spool/{names[0]}")
    read = []
    real = git_module.tracked
    monkeypatch.setattr(git_module, "tracked", lambda *given: read.append(1) or real(*given))

    for _ in range(3):
        assert spool.waiting(str(home)) == names[1:]
    assert len(read) == 1

    git(f"add -f .aether/hooks/spool/{names[1]}")
    assert [spool.waiting(str(home)) for _ in range(2)] == [names[2:]] * 2
    assert len(read) == 2

    for wrong in ("{", '{"index": null, "names": 5}', "[]", '{"index": [], "names": []}'):
        (home / "hooks" / spool.INDEX_NAME).write_text(wrong)
        assert spool.waiting(str(home)) == names[2:]
    assert len(read) == 6
