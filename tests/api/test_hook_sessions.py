import json
import os
import subprocess
import sys

import pytest

from aether.api.hook_sessions import NO_REVISION, find_session, is_idle, open_session, write_session
from tests import homes

IDLE = {"work": {"calls": {}, "failures": {}, "files": {}, "commands": {}}, "answer": None}


def known(home, session="s1", **more):
    return {**open_session(home, session), **more}


def test_a_session_nobody_heard_of_begins(home):
    assert find_session(home, "s1") is None
    assert open_session(home, "s1") == {
        "state": {}, "done": [], "seen": [], "first_source": "", "at": "", "revision": NO_REVISION, "archive_read": -1,
    }  # fmt: skip


@pytest.mark.parametrize("session", ["s1", "", "../../up", "a/b", "\ud800", "x" * 300, ".hidden", "Ü"])
def test_what_is_written_is_read_whatever_the_session_is_called(session, home):
    wanted = known(home, session, first_source="startup", seen=["a"], at="\ud800")

    write_session(home, session, wanted)

    assert find_session(home, session) == open_session(home, session) == wanted
    [path] = (home / "hooks" / "sessions").iterdir()
    assert path.suffix == ".json"
    assert find_session(home, f"{session}-") is None


@pytest.mark.parametrize("data", [b"{torn", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_file_that_makes_no_sense_is_as_good_as_none(data, home):
    write_session(home, "s1", known(home))
    [path] = (home / "hooks" / "sessions").iterdir()
    path.write_bytes(data)

    assert find_session(home, "s1") is None
    assert open_session(home, "s1")["revision"] == NO_REVISION


def test_a_file_that_cannot_be_read_now_is_not_taken_for_none(home):
    (home / "hooks" / "sessions" / "s1.json").mkdir(parents=True)

    assert find_session(home, "s1") is None
    with pytest.raises(OSError, match="directory"):
        open_session(home, "s1")


def test_sessions_that_nobody_resumes_are_forgotten_when_another_begins(home):
    write_session(home, "old", known(home))
    write_session(home, "young", known(home))
    os.utime(home / "hooks" / "sessions" / "old.json", (0, 0))
    write_session(home, "young", known(home))
    assert find_session(home, "old") is not None

    write_session(home, "new", known(home))

    assert find_session(home, "old") is None
    assert find_session(home, "young") is not None


@pytest.mark.parametrize(
    ("turns", "idle"),
    [
        ({}, True),
        ({"": IDLE}, True),
        ({"": {**IDLE, "answer": {"text": "Done.", "noted": True}}}, True),
        ({"": {**IDLE, "answer": {"text": "Done."}}}, False),
        ({"": {**IDLE, "work": {**IDLE["work"], "failures": {"$ make": {}}}}}, False),
        ({"": IDLE, "a1": IDLE}, False),
        ({"a1": IDLE}, False),
        ({"": {}}, False),
        ({"": 7}, False),
        ([7], False),
    ],
)
def test_idle_is_who_waits_for_nothing(turns, idle, home):
    assert is_idle(known(home, state={"turns": turns})) == idle


def test_a_session_without_a_state_is_idle(home):
    assert is_idle(known(home))


def test_reading_a_session_imports_none_of_the_rules_of_capture():
    code = "import aether.api.drain, sys; print(json.dumps(sorted(sys.modules)))"

    listed = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True,
        env=homes.plain_environment(),
    )  # fmt: skip

    assert {"aether.memory.capture.extract", "aether.text.classify", "aether.messages.shell"}.isdisjoint(
        json.loads(listed.stdout)
    )


def test_sessions_that_lead_elsewhere_are_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    write_session(other, "s", open_session(other, "s"))
    (home / "hooks").mkdir(parents=True)
    (home / "hooks" / "sessions").symlink_to(other / "hooks" / "sessions")

    with pytest.raises(OSError, match="leads elsewhere"):
        open_session(home, "s")
    with pytest.raises(OSError, match="leads elsewhere"):
        write_session(home, "t", open_session(other, "s"))
    assert [path.name for path in (other / "hooks" / "sessions").iterdir()] == ["s.json"]


def test_a_session_that_is_a_link_begins_anew_and_replaces_it(tmp_path):
    known = open_session(tmp_path, "s")
    write_session(tmp_path, "t", {**known, "at": "then"})
    place = tmp_path / "hooks" / "sessions"
    (place / "s.json").symlink_to(place / "t.json")

    assert open_session(tmp_path, "s")["at"] == ""
    write_session(tmp_path, "s", known)
    assert open_session(tmp_path, "t")["at"] == "then"
    assert not (place / "s.json").is_symlink()
