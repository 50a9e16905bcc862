"""The list of homes of this machine: only those that are there, each once, whatever lies beside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aether.project import state_directory
from aether.store import places
from tests import homes


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_homes_are_listed_once_the_last_changed_first_and_only_while_they_are_there(tmp_path):
    first, second, third = (homes.fresh(tmp_path / name) for name in ("one", "two", "dr\u00e9i \u65e5"))
    for home, at in ((first, 300), (second, 100), (third, 200)):
        for _ in range(2):
            places.remember(home)
        for name in ("head", "memory.json"):
            os.utime(home / "data" / name, (at, at))

    assert [home.path for home in places.known_homes()] == [first, third, second]
    shutil.rmtree(third)
    assert [home.path for home in places.known_homes()] == [first, second]


def test_a_file_of_another_shape_is_passed_over(tmp_path):
    home = homes.fresh(tmp_path / "one")
    places.remember(home)
    directory = Path(state_directory(), "places")
    (directory / "0123.place").write_bytes(os.fsencode(home))
    (directory / "4567.place").write_bytes(b"\xff\0")
    (directory / "89ab.place").mkdir()

    assert [known.path for known in places.known_homes()] == [home]


def test_a_state_directory_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    places.remember(homes.fresh(tmp_path / "one"))

    assert places.known_homes() == []
