"""What was injected into sessions; what that means for a prompt is tested with recall."""

from __future__ import annotations

import os

import pytest

from aether.api import admin as homes
from aether.api import hook_sessions
from aether.errors import StorageFailed


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def test_a_session_has_a_file_of_its_own_whatever_its_name(place):
    hook_sessions.record_injected(place, "a", ["x"])
    hook_sessions.record_injected(place, "../a", ["y"])
    hook_sessions.start_injected(place, "b", ["z"])

    assert [hook_sessions.read_injected(place, name) for name in ("a", "../a", "b", "c")] == [
        ["x"],
        ["y"],
        ["z"],
        [],
    ]
    assert len(list((place / "hooks" / "injected").iterdir())) == 3


def test_only_the_newest_sessions_are_kept(place, monkeypatch):
    monkeypatch.setattr(hook_sessions, "INJECTED_KEPT", 2)

    for number, name in enumerate("abc"):
        hook_sessions.start_injected(place, name)
        os.utime(place / "hooks" / "injected" / f"{name}.json", (number + 1, number + 1))
    hook_sessions.start_injected(place, "d")

    assert sorted(file.stem for file in (place / "hooks" / "injected").iterdir()) == ["c", "d"]


def test_what_leads_elsewhere_is_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        place.mkdir()
    hook_sessions.record_injected(other, "s", ["wm_1"])
    (home / "hooks").mkdir()
    (home / "hooks" / "injected").symlink_to(other / "hooks" / "injected")

    with pytest.raises(StorageFailed, match="leads elsewhere"):
        hook_sessions.record_injected(home, "t", ["wm_2"])
    assert hook_sessions.read_injected(home, "s") == []
    assert [path.name for path in (other / "hooks" / "injected").iterdir()] == ["s.json"]


def test_the_log_of_an_earlier_release_is_read_until_the_next_injection(place):
    old = place / "hooks" / "told" / "s.json"
    old.parent.mkdir(parents=True)
    old.write_text('["x"]')

    assert hook_sessions.read_injected(place, "s") == ["x"]
    hook_sessions.record_injected(place, "s", ["y"])
    assert hook_sessions.read_injected(place, "s") == ["y"]
