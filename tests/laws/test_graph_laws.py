"""Laws of the knowledge graph: it does what the official memory server does, and each change can be taken back."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import NotFound
from aether.memory import graph
from aether.messages.sources import knowledge_graph
from aether.schemas import check
from aether.store import documents
from aether.store.patch import apply, apply_with_inverse

NOW = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
# Few names and texts, so that calls meet: some differ in case only, one is empty, one is a part of others.
WORDS = st.sampled_from(["ant", "Ant", "ants eat", "leaf", "/~1", "", "Ä"])
TEXTS = st.lists(WORDS, max_size=3)
ENTITY = st.fixed_dictionaries({"name": WORDS, "entityType": WORDS, "observations": TEXTS})
RELATION = st.fixed_dictionaries({"from": WORDS, "to": WORDS, "relationType": WORDS})
OBSERVED = st.fixed_dictionaries({"entityName": WORDS, "contents": TEXTS})
DELETION = st.fixed_dictionaries({"entityName": WORDS, "observations": TEXTS})
CALL = st.one_of(
    st.tuples(st.just("create_entities"), st.lists(ENTITY, max_size=3)),
    st.tuples(st.just("create_relations"), st.lists(RELATION, max_size=3)),
    st.tuples(st.just("add_observations"), st.lists(OBSERVED, max_size=3)),
    st.tuples(st.just("delete_entities"), TEXTS),
    st.tuples(st.just("delete_observations"), st.lists(DELETION, max_size=3)),
    st.tuples(st.just("delete_relations"), st.lists(RELATION, max_size=3)),
)
CALLS = st.lists(CALL, max_size=12)
TIMED = frozenset({"create_entities", "create_relations", "add_observations"})


class Official:
    """The semantics of the official server, for calls that say nothing twice."""

    def __init__(self):
        self.entities, self.relations = [], []

    def create_entities(self, entities):
        known = [entity["name"] for entity in self.entities]
        created = [dict(each) for each in entities if each["name"] not in known]
        self.entities += [{**each, "observations": list(each["observations"])} for each in created]
        return created

    def create_relations(self, relations):
        created = [each for each in relations if each not in self.relations]
        self.relations += created
        return created

    def add_observations(self, observations):
        planned = [{**each, "observations": list(each["observations"])} for each in self.entities]
        results = []
        for each in observations:
            entity = next((one for one in planned if one["name"] == each["entityName"]), None)
            if entity is None:
                return None
            added = [text for text in each["contents"] if text not in entity["observations"]]
            entity["observations"] += added
            results.append({"entityName": each["entityName"], "addedObservations": added})
        self.entities = planned
        return results

    def delete_entities(self, names):
        self.entities = [each for each in self.entities if each["name"] not in names]
        self.relations = [
            each for each in self.relations if each["from"] not in names and each["to"] not in names
        ]

    def delete_observations(self, deletions):
        for each in deletions:
            for entity in self.entities:
                if entity["name"] == each["entityName"]:
                    entity["observations"] = [
                        text for text in entity["observations"] if text not in each["observations"]
                    ]

    def delete_relations(self, relations):
        self.relations = [each for each in self.relations if each not in relations]

    def search_nodes(self, query):
        wanted = query.lower()
        return self._around(
            [
                each
                for each in self.entities
                if wanted in each["name"].lower()
                or wanted in each["entityType"].lower()
                or any(wanted in text.lower() for text in each["observations"])
            ]
        )

    def open_nodes(self, names):
        return self._around([each for each in self.entities if each["name"] in names])

    def _around(self, entities):
        names = {each["name"] for each in entities}
        return {
            "entities": entities,
            "relations": [each for each in self.relations if each["from"] in names or each["to"] in names],
        }


def said_once(name, arguments):
    """Return the arguments as if nothing in them were said twice, which is where aether differs."""
    if name == "create_entities":
        first = {each["name"]: each for each in reversed(arguments)}
        once = [first.pop(each["name"]) for each in arguments if each["name"] in first]
        return [{**each, "observations": list(dict.fromkeys(each["observations"]))} for each in once]
    if name == "create_relations":
        return [each for at, each in enumerate(arguments) if each not in arguments[:at]]
    if name == "add_observations":
        return [{**each, "contents": list(dict.fromkeys(each["contents"]))} for each in arguments]
    return arguments


def change(document, name, arguments):
    """Return what aether's function of this name makes of the document."""
    return getattr(graph, name)(document, arguments, **({"now": NOW} if name in TIMED else {}))


def played(calls):
    """Return the document and the official server after the calls, having compared each answer."""
    document, official = documents.default("graph"), Official()
    for name, arguments in calls:
        expected = getattr(official, name)(said_once(name, arguments))
        try:
            made = change(document, name, arguments)
        except NotFound:
            assert name == "add_observations"
            assert expected is None
            continue
        if name in TIMED:
            assert made.result == expected
        document = apply(document, made.patches["graph"])
    return document, official


@given(CALLS, WORDS, TEXTS)
def test_it_answers_as_the_official_server(calls, query, names):
    document, official = played(calls)

    assert graph.read_graph(document) == {"entities": official.entities, "relations": official.relations}
    assert graph.search_nodes(document, query) == official.search_nodes(query)
    assert graph.open_nodes(document, names) == official.open_nodes(names)


@given(CALLS)
def test_whatever_was_done_the_document_fits_its_schema(calls):
    assert check.findings("graph", played(calls)[0]) == []


@given(CALLS, CALL)
def test_each_change_can_be_taken_back(calls, call):
    document, _ = played(calls)
    try:
        patch = change(document, *call).patches["graph"]
    except NotFound:
        return

    after, inverse = apply_with_inverse(document, patch)

    assert apply(after, inverse) == document


@given(CALLS, CALL)
def test_doing_it_again_changes_nothing(calls, call):
    document, _ = played([*calls, call])
    try:
        again = change(document, *call)
    except NotFound:
        return

    assert again.patches.get("graph", []) == []


@given(CALLS)
def test_a_graph_comes_back_from_the_file_of_the_official_server(calls):
    found = graph.read_graph(played(calls)[0])

    text = knowledge_graph.graph_text(found["entities"], found["relations"])

    assert knowledge_graph.read_graph(text.encode().splitlines(keepends=True)) == found


@given(CALLS, CALLS)
def test_merging_adds_missing_parts_and_loses_nothing(calls, others):
    document, other = played(calls)[0], graph.read_graph(played(others)[0])

    merged = apply(document, graph.merge(document, other, now=NOW).patches.get("graph", []))

    found = {each["name"]: set(each["observations"]) for each in graph.read_graph(merged)["entities"]}
    for part in (graph.read_graph(document), other):
        assert all(set(each["observations"]) <= found[each["name"]] for each in part["entities"])
        assert all(each in graph.read_graph(merged)["relations"] for each in part["relations"])
    assert graph.merge(merged, other, now=NOW).patches.get("graph", []) == []
