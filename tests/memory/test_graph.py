"""The knowledge graph: what each call changes, and what is found; the contract as a whole is in the laws."""

from __future__ import annotations

import json

import pytest

from aether.errors import InvalidInput, NotFound
from aether.memory import graph
from aether.store import documents
from aether.store.patch import apply
from tests.homes import NOW

ANT = {"name": "ant", "entityType": "insect", "observations": ["It carries leaves.", "It has six legs."]}
BEE = {"name": "Bee", "entityType": "insect", "observations": ["It flies."]}
EATS = {"from": "ant", "to": "leaf", "relationType": "eats"}


def after(document, change):
    return apply(document, change.patches["graph"])


@pytest.fixture
def document():
    empty = documents.default("graph")
    two = after(empty, graph.create_entities(empty, [ANT, BEE], now=NOW))
    return after(two, graph.create_relations(two, [EATS], now=NOW))


def test_of_two_names_of_which_one_is_absent_nothing_is_stored(document):
    wanted = [{"entityName": "ant", "contents": ["x"]}, {"entityName": "wolf", "contents": ["y"]}]

    with pytest.raises(NotFound, match="Entity with name wolf not found"):
        graph.add_observations(document, wanted, now=NOW)


def test_an_entity_takes_its_relations_along(document):
    change = graph.delete_entities(document, ["ant", "wolf"])

    assert change.result == 1
    assert graph.read_graph(after(document, change)) == {"entities": [BEE], "relations": []}


def test_deleting_absent_observations_and_relations_is_no_error(document):
    missing = [{"entityName": "wolf", "observations": ["x"]}, {"entityName": "ant", "observations": ["x"]}]

    assert graph.delete_observations(document, missing).result == 0
    assert graph.delete_relations(document, [{**EATS, "to": "Leaf"}]).result == 0


def test_merging_returns_its_counts(document):
    twice = [{**ANT, "observations": ["It digs."]}, {**ANT, "observations": ["It swarms.", "It digs."]}]
    wolf = {"name": "wolf", "entityType": "mammal", "observations": []}

    merged = graph.merge(document, {"entities": [*twice, wolf], "relations": [EATS, EATS]}, now=NOW)

    assert merged.result == graph.Merged(entities=1, observations=2, relations=0, known=2)
    assert graph.open_nodes(after(document, merged), ["ant"])["entities"][0]["observations"] == [
        *ANT["observations"],
        "It digs.",
        "It swarms.",
    ]


@pytest.mark.parametrize("query", ["ANT", "six LEGS", "nsec"])
def test_searching_finds_a_part_of_any_text_without_case(document, query):
    assert "ant" in [entity["name"] for entity in graph.search_nodes(document, query)["entities"]]


def test_an_entity_is_described_with_its_relations(document):
    assert graph.describe(document, "ant").text.splitlines() == [
        "ant (insect)",
        *ANT["observations"],
        "ant eats leaf",
    ]
    with pytest.raises(NotFound, match="wolf"):
        graph.describe(document, "wolf")


def test_entities_written_by_hand_without_ids_and_times_are_read():
    by_hand = {"name": "ant", "entityType": "insect", "observations": [{"id": "It digs."}]}
    document = {
        **documents.default("graph"),
        "entities": [by_hand, {**by_hand, "observations": []}],
        "relations": [EATS],
    }

    added = graph.add_observations(document, [{"entityName": "ant", "contents": ["x"]}], now=NOW)

    assert [len(entity["observations"]) for entity in after(document, added)["entities"]] == [2, 0]
    assert graph.matches(document, "ant digs", at_least=1.0)[0].at == ""
    assert graph.delete_relations(document, [EATS]).result == 1


def test_parts_that_fit_one_by_one_are_too_much_together(document, monkeypatch):
    wasp, seen = {**ANT, "name": "wasp"}, {**EATS, "to": "bark"}
    monkeypatch.setattr(graph, "MAX_CHARS", len(json.dumps(document, ensure_ascii=False)) + 350)
    graph.create_entities(document, [wasp], now=NOW)
    graph.create_relations(document, [seen], now=NOW)

    with pytest.raises(InvalidInput, match="nothing was added"):
        graph.merge(document, {"entities": [wasp], "relations": [seen]}, now=NOW)
