"""The knowledge graph over the store: journaled, undoable, without secrets, and lossless with many writers."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from aether.api import graph
from aether.api.admin import log, undo
from aether.errors import Conflict, InvalidInput, NotFound
from aether.store import doctor
from tests import homes

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}
EATS = {"from": "ant", "to": "leaf", "relationType": "eats"}
WRITERS, EACH = 16, 5
WRITER = f"""
import sys
from aether.api import graph
for n in range({EACH}):
    name = f"{{sys.argv[2]}}-{{n}}"
    made = graph.create_entities([{{"name": name, "entityType": "t", "observations": []}}], home=sys.argv[1])
    assert made
    graph.add_observations([{{"entityName": "ant", "contents": [name]}}], home=sys.argv[1])
"""


def test_created_entities_are_there_when_the_home_is_opened_again(home):
    assert graph.create_entities([ANT], home=home) == [ANT]
    assert graph.create_relations([EATS], home=home) == [EATS]

    homes.reopened(home)

    assert graph.read_graph(home=home) == {"entities": [ANT], "relations": [EATS]}
    assert [line.operation for line in log(home=home)][:2] == ["create relations", "create entities"]
    assert log(home=home)[0].by == "mcp"


def test_each_call_does_what_its_name_says(home):
    graph.create_entities([ANT], home=home)
    graph.create_relations([EATS], home=home)

    added = graph.add_observations([{"entityName": "ant", "contents": ["It swarms."]}], home=home)
    removed = graph.delete_observations([{"entityName": "ant", "observations": ["It digs."]}], home=home)

    assert (added, removed) == ([{"entityName": "ant", "addedObservations": ["It swarms."]}], 1)
    assert graph.search_nodes("SWARM", home=home)["entities"][0]["observations"] == ["It swarms."]
    assert graph.open_nodes(["ant"], home=home)["relations"] == [EATS]
    assert graph.delete_relations([EATS], home=home) == 1
    assert graph.delete_entities(["ant"], home=home) == 1
    assert graph.read_graph(home=home) == {"entities": [], "relations": []}


def test_nothing_new_is_no_transaction(home):
    graph.create_entities([ANT], home=home)
    before = len(log(home=home))

    graph.create_entities([ANT], home=home)

    assert len(log(home=home)) == before


def test_one_observation_is_undone_although_others_were_added_since(home):
    graph.create_entities([ANT], home=home)
    graph.add_observations([{"entityName": "ant", "contents": ["first"]}], home=home)
    revision = log(home=home)[0].revision
    graph.add_observations([{"entityName": "ant", "contents": ["second"]}], home=home)

    undo(revision, home=home)

    assert graph.open_nodes(["ant"], home=home)["entities"][0]["observations"] == ["It digs.", "second"]


def test_an_entity_with_later_additions_is_not_undone(home):
    graph.create_entities([ANT], home=home)
    revision = log(home=home)[0].revision
    graph.add_observations([{"entityName": "ant", "contents": ["more"]}], home=home)

    with pytest.raises(Conflict):
        undo(revision, home=home)


def test_secrets_and_text_that_aether_injected_are_not_stored(home):
    name = "key of api_key=sk-abcdefghijklmnop1234"
    said = "Old. <aether-memory>told before</aether-memory>New."

    graph.create_entities([{"name": name, "entityType": "t", "observations": [said]}], home=home)

    assert "sk-abc" not in (home / "data" / "journal.jsonl").read_text(encoding="utf-8")
    (entity,) = graph.open_nodes([name], home=home)["entities"]
    assert entity == {"name": "key of api_key=<REDACTED>", "entityType": "t", "observations": ["Old. New."]}
    graph.delete_entities([name], home=home)
    assert graph.read_graph(home=home)["entities"] == []


def test_two_names_that_differ_by_their_secrets_alone_are_refused(home):
    names = ["api_key=abcdef1234567890abcdef", "api_key=zzzzzz1234567890zzzzzz"]

    with pytest.raises(InvalidInput, match=r"\[1\]: without its secrets") as refused:
        graph.create_entities([{**ANT, "name": name} for name in names], home=home)

    assert "zzzzzz" not in str(refused.value)
    assert graph.read_graph(home=home)["entities"] == []
    assert len(graph.create_entities([{**ANT, "name": names[0]}] * 2, home=home)) == 1


def test_recalling_finds_entities_by_most_words(home):
    graph.create_entities([ANT, {**ANT, "name": "bee"}], home=home)

    assert [match.name for match in graph.recall_entities("digging ant", limit=5, home=home)] == ["ant"]
    assert len(graph.recall_entities("insects", limit=1, home=home)) == 1
    assert graph.describe_entity("bee", home=home).text == "bee (insect)\nIt digs."


@pytest.mark.slow
def test_sixteen_processes_that_write_at_once_lose_nothing(home):
    graph.create_entities([ANT], home=home)

    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(home), str(n)]) for n in range(WRITERS)]

    assert [process.wait() for process in running] == [0] * WRITERS
    found = {each["name"]: each for each in graph.read_graph(home=home)["entities"]}
    assert len(found) == 1 + WRITERS * EACH
    assert len(found["ant"]["observations"]) == 1 + WRITERS * EACH
    assert doctor.examine(home) == []


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def test_a_file_of_the_official_server_is_merged_once_and_can_be_undone(home, tmp_path):
    graph.create_entities([{**ANT, "observations": ["It swarms."]}], home=home)
    path = tmp_path / "memory.jsonl"
    path.write_text(lines({"type": "entity", **ANT}, {"type": "relation", **EATS}, 5), encoding="utf-8")

    done, again = graph.import_graph(path, home=home), graph.import_graph(path, home=home)

    assert (done.merged.observations, done.merged.relations, done.merged.known) == (1, 1, 1)
    assert [bad.line for bad in done.bad_lines] == [3]
    assert (again.revision, again.merged.known) == (0, 2)
    undo(done.revision, home=home)
    assert graph.read_graph(home=home)["relations"] == []


def test_a_stream_is_merged_too_and_given_out_again(home):
    text = lines({"type": "entity", **ANT}, {"type": "relation", **EATS})

    graph.import_graph(io.BytesIO(text.encode()), home=home)

    assert [json.loads(line) for line in graph.export_graph(home=home).splitlines()] == [
        json.loads(line) for line in text.splitlines()
    ]


@pytest.mark.parametrize("name", ["missing.jsonl", "\0"])
def test_a_file_that_cannot_be_read_is_named(home, name):
    with pytest.raises(NotFound, match="cannot be read"):
        graph.import_graph(name, home=home)
