"""What was injected into sessions; what that means for a prompt is tested with recall."""

from __future__ import annotations

import os

import pytest

from aether.errors import StorageFailed
from aether.operations import home as homes
from aether.operations import injected_log


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def test_a_session_has_a_file_of_its_own_whatever_its_name(place):
    injected_log.record(place, "a", ["x"])
    injected_log.record(place, "../a", ["y"])
    injected_log.start(place, "b", ["z"])

    assert [injected_log.injected(place, name) for name in ("a", "../a", "b", "c")] == [
        ["x"],
        ["y"],
        ["z"],
        [],
    ]
    assert len(list((place / "hooks" / "injected").iterdir())) == 3


def test_only_the_newest_sessions_are_kept(place, monkeypatch):
    monkeypatch.setattr(injected_log, "SESSIONS_KEPT", 2)

    for number, name in enumerate("abc"):
        injected_log.start(place, name)
        os.utime(place / "hooks" / "injected" / f"{name}.json", (number + 1, number + 1))
    injected_log.start(place, "d")

    assert sorted(file.stem for file in (place / "hooks" / "injected").iterdir()) == ["c", "d"]


def test_what_leads_elsewhere_is_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        place.mkdir()
    injected_log.record(other, "s", ["wm_1"])
    (home / "hooks").mkdir()
    (home / "hooks" / "injected").symlink_to(other / "hooks" / "injected")

    with pytest.raises(StorageFailed, match="leads elsewhere"):
        injected_log.record(home, "t", ["wm_2"])
    assert injected_log.injected(home, "s") == []
    assert [path.name for path in (other / "hooks" / "injected").iterdir()] == ["s.json"]


def test_the_log_of_an_earlier_release_is_read_until_the_next_injection(place):
    old = place / "hooks" / "told" / "s.json"
    old.parent.mkdir(parents=True)
    old.write_text('["x"]')

    assert injected_log.injected(place, "s") == ["x"]
    injected_log.record(place, "s", ["y"])
    assert injected_log.injected(place, "s") == ["y"]
