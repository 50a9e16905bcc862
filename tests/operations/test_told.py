"""What sessions were told; what that means for a prompt is tested with recall."""

from __future__ import annotations

import os

import pytest

from aether.errors import StorageFailed
from aether.operations import home as homes
from aether.operations import told


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def test_a_session_has_a_file_of_its_own_whatever_its_name(place):
    told.note(place, "a", ["x"])
    told.note(place, "../a", ["y"])
    told.begin(place, "b", ["z"])

    assert [told.told(place, name) for name in ("a", "../a", "b", "c")] == [["x"], ["y"], ["z"], []]
    assert len(list((place / "hooks" / "told").iterdir())) == 3


def test_only_the_newest_sessions_are_kept(place, monkeypatch):
    monkeypatch.setattr(told, "SESSIONS_KEPT", 2)

    for number, name in enumerate("abc"):
        told.begin(place, name)
        os.utime(place / "hooks" / "told" / f"{name}.json", (number + 1, number + 1))
    told.begin(place, "d")

    assert sorted(file.stem for file in (place / "hooks" / "told").iterdir()) == ["c", "d"]


def test_what_leads_elsewhere_is_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        place.mkdir()
    told.note(other, "s", ["wm_1"])
    (home / "hooks").mkdir()
    (home / "hooks" / "told").symlink_to(other / "hooks" / "told")

    with pytest.raises(StorageFailed, match="leads elsewhere"):
        told.note(home, "t", ["wm_2"])
    assert told.told(home, "s") == []
    assert [path.name for path in (other / "hooks" / "told").iterdir()] == ["s.json"]
