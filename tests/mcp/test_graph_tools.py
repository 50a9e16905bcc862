"""The nine tools of the official memory server: shapes, answers as text and as values, and long graphs."""

from __future__ import annotations

import json

import pytest

from aether.api import graph
from aether.errors import InvalidInput
from aether.mcp import graph_tools as tools
from aether.mcp.graph_tools import ENTITY, RELATION, array_of, validated
from aether.mcp.results import RESULT_CHARS
from tests.tables import rows

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}
EATS = {"from": "ant", "to": "leaf", "relationType": "eats"}


def test_each_answers_with_the_same_as_text_and_as_a_value(home):
    entities = tools.create_entities([{**ANT, "color": "red"}], home=home)
    relations = tools.create_relations([EATS], home=home)
    added = tools.add_observations([{"entityName": "ant", "contents": ["It swarms."]}], home=home)

    assert entities.data == {"entities": json.loads(entities.text)} == {"entities": [ANT]}
    assert relations.data == {"relations": json.loads(relations.text)} == {"relations": [EATS]}
    assert added.data == {"results": json.loads(added.text)}
    assert added.data["results"] == [{"entityName": "ant", "addedObservations": ["It swarms."]}]
    found = tools.read_graph(home=home)
    assert found.data == json.loads(found.text)
    assert tools.search_nodes("SWARM", home=home) == tools.open_nodes(["ant"], home=home) == found


def test_left_out_text_is_reported_beside_the_stored_entries(home):
    texts = ["keep <private>x</private>", "use `<private>` here"]

    made = tools.create_entities([{**ANT, "observations": texts}], home=home)
    added = tools.add_observations(
        [{"entityName": "ant", "contents": ["api_key=abcdef1234567890abcdef"]}], home=home
    )
    plain = tools.create_relations([EATS], home=home)

    assert json.loads(made.text)[0]["observations"] == ["keep ", "use `<private>` here"]
    assert "left out" in made.note
    assert made.data["note"] == made.note
    assert "REDACTED" in added.note
    assert (plain.note, list(plain.data)) == ("", ["relations"])


def test_a_name_of_which_nothing_is_left_is_refused(home):
    with pytest.raises(InvalidInput, match=r"\[1\]: name is empty"):
        tools.create_entities([ANT, {**ANT, "name": "<private>q</private>"}], home=home)
    with pytest.raises(InvalidInput, match="to is empty"):
        tools.create_relations([{**EATS, "to": " "}], home=home)

    assert tools.read_graph(home=home).data == {"entities": [], "relations": []}


def test_deleting_says_that_it_succeeded(home):
    answers = [
        tools.delete_entities(["ant"], home=home),
        tools.delete_observations([{"entityName": "ant", "observations": ["x"]}], home=home),
        tools.delete_relations([EATS], home=home),
    ]

    assert [answer.text for answer in answers] == [
        "Entities deleted successfully",
        "Observations deleted successfully",
        "Relations deleted successfully",
    ]
    assert all(answer.data == {"success": True, "message": answer.text} for answer in answers)


def test_a_missing_field_of_an_argument_is_named(home):
    with pytest.raises(InvalidInput, match=r"entities\[0\]: entityType is None"):
        tools.create_entities([{"name": "ant"}], home=home)


def test_a_long_graph_is_cut_and_names_the_entities_left_out(home):
    many = [
        {"name": f"entity {n}", "entityType": "thing", "observations": ["It is one of many." * 5]}
        for n in range(300)
    ]
    tools.create_entities(many, home=home)
    chain = [{"from": f"entity {n}", "to": f"entity {n + 1}", "relationType": "precedes"} for n in range(299)]
    tools.create_relations(chain, home=home)

    answer = tools.read_graph(home=home)

    assert len(answer.text) + len(answer.note) <= RESULT_CHARS
    shown = len(answer.data["entities"])
    assert answer.data["entities"] == many[:shown]
    assert f"Cut: {shown} of 300 entities" in answer.note
    assert f"Open the others by name: entity {shown}, entity {shown + 1}" in answer.note
    assert answer.data["note"] == answer.note


def test_many_relations_of_a_few_entities_are_cut(home):
    tools.create_entities([ANT, {**ANT, "name": "bee"}], home=home)
    tools.create_relations([{**EATS, "to": f"leaf {n} of the tree"} for n in range(400)], home=home)

    answer = tools.read_graph(home=home)

    assert len(answer.text) <= RESULT_CHARS
    assert [entity["name"] for entity in answer.data["entities"]] == ["ant", "bee"]
    assert 0 < len(answer.data["relations"]) < 400
    assert "Some observations or relations are left out" in answer.note


def test_one_entity_with_too_many_observations_is_cut_too(home):
    long = {**ANT, "observations": [f"{n} " + "x" * 5_000 for n in range(10)]}
    tools.create_entities([long], home=home)

    answer = tools.open_nodes(["ant"], home=home)

    assert len(answer.text) + len(answer.note) <= RESULT_CHARS
    assert answer.data["entities"][0]["observations"] == long["observations"][:4]


def test_one_name_that_no_tool_gave_is_cut_too(home):
    graph.create_entities([{**ANT, "name": "a" * 300_000}], home=home)

    answer = tools.read_graph(home=home)

    assert len(answer.text) + len(answer.note) <= RESULT_CHARS
    assert answer.data["entities"][0]["observations"] == ANT["observations"]


def test_relations_have_the_room_that_entities_leave(home):
    wide = [{"name": f"{n}", "entityType": "t", "observations": ["x" * 9_000]} for n in range(4)]
    graph.create_entities(wide, home=home)
    tools.create_relations([{**EATS, "from": "3"}, {**EATS, "from": "0"}], home=home)

    answer = tools.read_graph(home=home)

    assert [entity["name"] for entity in answer.data["entities"]] == ["0", "1"]
    assert answer.data["relations"] == [{**EATS, "from": "0"}]


def test_stored_entries_are_echoed_as_far_as_an_answer_has_room(home):
    many = [{"name": f"entity {n}", "entityType": "thing", "observations": ["x" * 200]} for n in range(300)]

    answer = tools.create_entities(many, home=home)

    shown = len(answer.data["entities"])
    assert 0 < shown < 300
    assert len(answer.text) + len(answer.note) <= RESULT_CHARS
    assert json.loads(answer.text) == answer.data["entities"] == many[:shown]
    assert answer.note == f"All is stored; of 300 the first {shown} are shown."
    assert len(graph.read_graph(home=home)["entities"]) == 300


def test_a_name_that_would_fill_an_answer_is_refused(home):
    with pytest.raises(InvalidInput, match=r"entities\[0\]: name has 2,001 characters"):
        tools.create_entities([{**ANT, "name": "a" * 2_001}], home=home)
    with pytest.raises(InvalidInput, match="at most 2,000"):
        tools.add_observations([{"entityName": "a" * 300_000, "contents": []}], home=home)
    tools.create_entities([{**ANT, "name": "a" * 2_000, "observations": ["x" * 2_001]}], home=home)


def test_valid_values_are_returned_without_other_fields():
    assert validated([{**ANT, "more": 1}], ENTITY, where="entities") == [ANT]


@rows(
    ("given", "message"),
    [
        ("ant", "entities: is 'ant'"),
        (["ant"], r"entities\[0\]: is 'ant'. Use an object with name, entityType, observations"),
        ([ANT, {**ANT, "name": 5}], r"entities\[1\]: name is 5. Use a text"),
        ([{**ANT, "observations": "x"}], "Use an array of texts"),
        ([{**ANT, "observations": [1]}], "Use an array of texts"),
    ],
)
def test_an_invalid_value_is_named_by_its_place(given, message):
    with pytest.raises(InvalidInput, match=message):
        validated(given, ENTITY, where="entities")


def test_a_schema_requires_every_field():
    made = array_of(RELATION)

    assert made["items"]["required"] == ["from", "to", "relationType"]
    assert array_of(ENTITY)["items"]["properties"]["observations"]["items"] == {"type": "string"}
