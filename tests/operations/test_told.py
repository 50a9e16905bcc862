"""What sessions were told; what that means for a prompt is tested with recall."""

from __future__ import annotations

import os

import pytest

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
