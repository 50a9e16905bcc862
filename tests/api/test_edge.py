import json
import os
import sys

import pytest

import aether
from aether.api import home as api_home
from aether.errors import InvalidInput, NotFound
from aether.store import snapshot, spool
from aether.types import Change
from tests.hook_player import put, turn
from tests.memory.states import answer


def test_a_home_is_found_by_name_by_environment_and_from_below(home, monkeypatch):
    below = home.parent / "src" / "deep"
    below.mkdir(parents=True)

    assert api_home.find(home) == api_home.find(str(home)) == api_home.find(home.parent) == home
    monkeypatch.setenv("AETHER_HOME", str(home))
    assert api_home.find(None) == home
    monkeypatch.delenv("AETHER_HOME")
    monkeypatch.chdir(below)
    assert api_home.find(None) == home


def test_a_symlinked_home_is_the_home(home, tmp_path):
    os.symlink(home, tmp_path / "link")

    assert api_home.find(tmp_path / "link") == home


def test_no_home_is_an_error_with_advice():
    with pytest.raises(NotFound, match="aether init"):
        api_home.read(None)


@pytest.mark.parametrize("name", ["\0", "\ud800"])
def test_a_name_that_cannot_be_a_path_is_refused(name):
    with pytest.raises(InvalidInput):
        api_home.find(name)


def test_a_change_is_committed_once_and_read_back(home):
    patch = [{"op": "replace", "path": "/metrics/total_compressions", "value": 7}]

    done = api_home.change(home, lambda _: Change({"memory": patch}, result="told"), api_home.Author("test"))

    assert (done.result, done.changed) == ("told", True)
    assert api_home.read(home).documents["memory"]["metrics"]["total_compressions"] == 7
    assert api_home.read(home).revision == done.revision


def test_the_counter_is_the_one_that_the_home_records(home):
    memory = api_home.read(home).documents["memory"]

    once = api_home.counter_of(memory)("Use JSON for the state of the colony")
    twice = api_home.counter_of({"token_counter": {"counter": "estimate", "factor": 2.0}})(
        "Use JSON for the state of the colony"
    )

    assert once > 0
    assert twice == pytest.approx(2 * once, abs=1)


def test_a_data_directory_of_somebody_else_is_no_home(tmp_path):
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "data" / "sales.csv").write_text("1")

    with pytest.raises(NotFound, match="is not a home"):
        aether.add_working_memory_item("x", "note", home=tmp_path / "project")
    assert [path.name for path in (tmp_path / "project" / "data").iterdir()] == ["sales.csv"]


def test_the_home_in_a_project_is_meant_although_the_project_has_data_of_its_own(tmp_path):
    (tmp_path / "project" / "data").mkdir(parents=True)
    place = aether.init(tmp_path / "project" / ".aether")

    aether.add_working_memory_item("x", "note", home=tmp_path / "project")

    assert len(aether.list_working_memory_items(home=place)) == 1


def spoil(value):
    """Change everything in `value` that can be changed."""
    if isinstance(value, dict):
        for below in list(value.values()):
            spoil(below)
        value["spoilt"] = True
    elif isinstance(value, list | tuple):
        for below in value:
            spoil(below)
        if isinstance(value, list):
            value.append("spoilt")


@pytest.mark.parametrize(
    "call",
    [
        lambda home: aether.emit_signal("FEEDBACK", "well done", metadata={"a": [1]}, home=home),
        lambda home: aether.trigger_phase_boundary_compression(1, answer("s1"), home=home),
        lambda home: aether.export(home=home),
        lambda home: aether.show("memory", home=home),
        lambda home: aether.show("memory", revision=1, home=home),
        lambda home: aether.register_worker("w1", home=home),
        lambda home: aether.transition_state("INIT", home=home),
        lambda home: aether.colony(home=home),
        lambda home: aether.search_memory("note", home=home),
        lambda home: aether.list_working_memory_items(home=home),
    ],
)
def test_what_a_caller_is_given_is_never_part_of_the_state(home, call):
    """The state is shared between calls: to change it would write a change that no journal knows."""
    aether.add_working_memory_item("a note", "note", metadata={"deep": {"list": [1]}}, home=home)

    spoil(call(home))

    cached = snapshot.load(home)
    assert "spoilt" not in json.dumps([cached.documents, cached.pending])


def test_what_hooks_have_spooled_is_there_for_whoever_reads_or_changes(home):
    put(home, *turn(1))
    assert len(api_home.read(home).documents["memory"]["working_memory"]["items"]) == 3
    put(home, *turn(2))

    seen = []
    api_home.change(home, lambda documents: seen.append(documents) or Change({}), api_home.Author("look"))

    assert len(seen[0]["memory"]["working_memory"]["items"]) == 6
    assert spool.waiting(str(home)) == []


def test_where_nothing_waits_nothing_is_imported_and_nothing_done(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "aether.api.drain", None)

    assert api_home.drained(home) == home


def test_an_edit_by_hand_is_its_own_change_by_hand_although_a_hook_finds_it(home):
    path = home / "data" / "memory.json"
    aether.fold(home=home)
    document = json.loads(path.read_bytes())
    document["edited"] = 1
    path.write_text(json.dumps(document))

    change = Change({"memory": [{"op": "add", "path": "/noted", "value": 1}]})
    api_home.change(home, lambda documents: change, api_home.Author("note", by="hook"))

    assert [line.by for line in aether.log(limit=2, home=home)] == ["hook", "hand"]
