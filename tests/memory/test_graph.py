"""The knowledge graph: what each call changes, and what is found; the contract as a whole is in the laws."""

from __future__ import annotations

import json

import pytest

from aether.errors import InvalidInput, NotFound
from aether.memory import graph
from aether.store import documents
from aether.store.patch import apply
from tests.homes import NOW, later

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


def test_repetitions_within_a_call_are_stored_once(document):
    wasp = {"name": "wasp", "entityType": "insect", "observations": ["It stings.", "It stings."]}

    made = graph.create_entities(document, [wasp, {**wasp, "observations": []}], now=NOW)

    assert made.result == [{**wasp, "observations": ["It stings."]}]


def test_an_entity_and_its_observations_have_their_times(document):
    added = graph.add_observations(
        document, [{"entityName": "Bee", "contents": ["It hums.", "It flies."]}], now=later(60)
    )

    bee = after(document, added)["entities"][1]

    assert added.result == [{"entityName": "Bee", "addedObservations": ["It hums."]}]
    assert bee["created_at"] == "2026-03-01T10:15:00.000000Z"
    assert bee["observations"][1] == {"id": "It hums.", "at": "2026-03-01T10:16:00.000000Z"}


def test_of_two_names_of_which_one_is_absent_nothing_is_stored(document):
    wanted = [{"entityName": "ant", "contents": ["x"]}, {"entityName": "wolf", "contents": ["y"]}]

    with pytest.raises(NotFound, match="Entity with name wolf not found"):
        graph.add_observations(document, wanted, now=NOW)


def test_an_entity_takes_its_relations_along(document):
    change = graph.delete_entities(document, ["ant", "wolf"])

    assert change.result == 1
    assert graph.read_graph(after(document, change)) == {"entities": [BEE], "relations": []}


def test_an_entity_goes_that_only_relations_lead_to(document):
    change = graph.delete_entities(document, ["leaf"])

    assert change.result == 0
    assert graph.read_graph(after(document, change))["relations"] == []


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


def test_of_an_entity_that_a_file_holds_twice_nothing_is_lost():
    empty = documents.default("graph")
    twice = [{**ANT, "observations": ["It digs."]}, {**ANT, "observations": ["It swarms."]}]

    merged = after(empty, graph.merge(empty, {"entities": twice, "relations": []}, now=NOW))

    assert graph.read_graph(merged)["entities"][0]["observations"] == ["It digs.", "It swarms."]


@pytest.mark.parametrize("query", ["ANT", "six LEGS", "nsec"])
def test_searching_finds_a_part_of_any_text_without_case(document, query):
    assert "ant" in [entity["name"] for entity in graph.search_nodes(document, query)["entities"]]


def test_relations_are_found_at_either_end(document):
    assert graph.open_nodes(document, ["ant"])["relations"] == [EATS]
    assert graph.open_nodes(document, ["Bee", "leaf"])["relations"] == []


def test_the_best_match_has_most_of_the_words_and_of_equals_the_newest_is_first(document):
    newer = after(
        document, graph.add_observations(document, [{"entityName": "Bee", "contents": ["x"]}], now=later(5))
    )

    found = graph.matches(newer, "insects", at_least=0.6)
    best = graph.matches(newer, "which insect carried leaves", at_least=0.6)

    assert [match.name for match in found] == ["Bee", "ant"]
    assert [match.name for match in best] == ["ant"]
    assert graph.matches(newer, "the", at_least=0.6) == []


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


@pytest.mark.parametrize(
    "add",
    [
        lambda at: graph.create_entities(at, [{**ANT, "name": "wasp"}], now=NOW),
        lambda at: graph.create_relations(at, [{**EATS, "to": "bark"}], now=NOW),
        lambda at: graph.add_observations(at, [{"entityName": "ant", "contents": ["It digs."]}], now=NOW),
        lambda at: graph.merge(at, {"entities": [{**ANT, "observations": ["It digs."]}], "relations": []}, now=NOW),
    ],
)  # fmt: skip
def test_a_full_graph_takes_nothing_more(document, add, monkeypatch):
    size = len(json.dumps(document, ensure_ascii=False))
    monkeypatch.setattr(graph, "MAX_CHARS", size + 1_000)
    add(document)

    monkeypatch.setattr(graph, "MAX_CHARS", size)
    with pytest.raises(InvalidInput, match=f"the most is {size:,}; nothing was added"):
        add(document)


def test_a_graph_that_is_too_large_already_can_be_asked_again_and_made_smaller(document, monkeypatch):
    monkeypatch.setattr(graph, "MAX_CHARS", 0)

    assert graph.merge(document, graph.read_graph(document), now=NOW).result.known == 3
    assert graph.create_entities(document, [ANT], now=NOW).result == []
    assert graph.delete_entities(document, ["ant"]).result == 1


def test_parts_that_fit_one_by_one_are_too_much_together(document, monkeypatch):
    wasp, seen = {**ANT, "name": "wasp"}, {**EATS, "to": "bark"}
    monkeypatch.setattr(graph, "MAX_CHARS", len(json.dumps(document, ensure_ascii=False)) + 350)
    graph.create_entities(document, [wasp], now=NOW)
    graph.create_relations(document, [seen], now=NOW)

    with pytest.raises(InvalidInput, match="nothing was added"):
        graph.merge(document, {"entities": [wasp], "relations": [seen]}, now=NOW)
