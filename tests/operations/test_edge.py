import os

import pytest

from aether.errors import InvalidInput, NotFound
from aether.operations import edge
from aether.shapes import Change


def test_a_home_is_found_by_name_by_environment_and_from_below(home, monkeypatch):
    below = home.parent / "src" / "deep"
    below.mkdir(parents=True)

    assert edge.find(home) == edge.find(str(home)) == edge.find(home.parent) == home
    monkeypatch.setenv("AETHER_HOME", str(home))
    assert edge.find(None) == home
    monkeypatch.delenv("AETHER_HOME")
    monkeypatch.chdir(below)
    assert edge.find(None) == home


def test_a_symlinked_home_is_the_home(home, tmp_path):
    os.symlink(home, tmp_path / "link")

    assert edge.find(tmp_path / "link") == home


def test_no_home_is_an_error_with_advice():
    with pytest.raises(NotFound, match="aether init"):
        edge.read(None)


@pytest.mark.parametrize("name", ["\0", "\ud800"])
def test_a_name_that_cannot_be_a_path_is_refused(name):
    with pytest.raises(InvalidInput):
        edge.find(name)


def test_a_change_is_committed_once_and_read_back(home):
    patch = [{"op": "replace", "path": "/metrics/total_compressions", "value": 7}]

    done = edge.change(home, lambda _: Change({"memory": patch}, result="told"), edge.Author("test"))

    assert (done.result, done.changed) == ("told", True)
    assert edge.read(home).documents["memory"]["metrics"]["total_compressions"] == 7
    assert edge.read(home).revision == done.revision


def test_the_counter_is_the_one_that_the_home_records(home):
    memory = edge.read(home).documents["memory"]

    once = edge.counter_of(memory)("Use JSON for the state of the colony")
    twice = edge.counter_of({"token_counter": {"counter": "estimate", "factor": 2.0}})(
        "Use JSON for the state of the colony"
    )

    assert once > 0
    assert twice == pytest.approx(2 * once, abs=1)
