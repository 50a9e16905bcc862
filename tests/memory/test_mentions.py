"""Which places of memory say the same; over a home it is tested in tests/api/test_forget.py."""

from __future__ import annotations

import json
from pathlib import Path

from aether.memory.forgetting import find
from aether.memory.forgetting.find import find_by_ids, find_by_text, find_similar
from tests.homes import item
from tests.tables import rows

DATA = Path(__file__).parents[2] / "data"
RULE = "Never use tabs in SQL files."


def documents(*items, sessions=(), graph=None):
    made = {
        name: json.loads((DATA / f"{name}.json").read_bytes())
        for name in ("memory", "pheromones", "COLONY_STATE")
    }
    made["memory"]["working_memory"]["items"] = list(items)
    made["memory"]["short_term_memory"]["sessions"] = list(sessions)
    return made | ({"graph": graph} if graph else {})


def session(**fields):
    empty = {"session_id": "s", "summary": "", "key_decisions": [], "outcomes": [], "high_value_items": [], "metadata": {}}  # fmt: skip
    return empty | fields


def found(made, archived=(), ids=("a",)):
    return [(one.id, one.part) for one in find_by_ids(made, archived, ids)[0]]


@rows(
    "text",
    [
        RULE, "never use TABS in sql files", "The user said: never use tabs in SQL files. And more.", "use tabs in SQL files!",
        "Never use tabs, in SQL - files",
    ],
)  # fmt: skip
def test_what_holds_the_words_or_a_longer_part_of_them_says_the_same(text):
    assert found(documents(item("a", RULE), item("b", text))) == [("a", ""), ("b", "")]


@rows("text", ["Never use tabs.", "use tabs", "Never use tabs in MySQL files.", "SQL files", "..."])
def test_what_says_less_or_something_else_stays(text):
    assert found(documents(item("a", RULE), item("b", text))) == [("a", "")]


def test_a_short_text_is_only_the_same_as_what_says_nothing_else():
    assert found(documents(item("a", "Yes."), item("b", "yes"), item("c", "Yes, go on."))) == [
        ("a", ""),
        ("b", ""),
    ]


def test_a_sentence_of_a_forgotten_prompt_goes_with_it():
    made = documents(
        item("a", f"{RULE} Ship on Friday."), item("b", "Ship on Friday."), item("c", "on Friday")
    )

    assert found(made) == [("a", ""), ("b", "")]


def test_a_decision_that_was_cut_from_its_reason_is_still_the_same():
    made = documents(
        item("a", "Use pathlib, because it works on Windows too."),
        sessions=[
            session(
                summary="Paths.\nUse pathlib, because it works on Windows too, they said.",
                key_decisions=[
                    {"decision": "Use pathlib", "rationale": "it works on Windows too"},
                    {"decision": "Use pathlib", "rationale": "it is faster"},
                ],
            )
        ],
    )

    assert found(made) == [("a", ""), ("s", "summary/1"), ("s", "key_decisions/0")]


def test_what_a_session_keeps_word_for_word_is_found_and_other_metadata_is_not():
    kept = {
        "protected": [RULE],
        "noted": ["x", RULE],
        "asked": [f"Please: {RULE}"],
        "castes": [RULE],
        "files": 3,
    }

    made = documents(item("a", RULE), sessions=[session(metadata=kept)])

    assert found(made) == [("a", ""), ("s", "protected/0"), ("s", "noted/1"), ("s", "asked/0")]


def test_a_session_that_is_named_goes_by_itself():
    made = documents(item("a", RULE), sessions=[session(summary=RULE)])

    assert found(made, ids=["s"]) == [("s", "")]


def test_the_archive_is_looked_through_too_and_an_archived_session_is_no_statement():
    archived = [{"item": item("old", RULE)}, {"item": item("s", RULE) | {"type": "session"}}]

    assert found(documents(item("a", RULE)), archived) == [("a", ""), ("old", ""), ("s", "")]
    assert found(documents(item("a", RULE)), archived, ["s"]) == [("s", "")]


GRAPH = {
    "entities": [
        {"name": "Ada", "entityType": "person", "observations": [{"id": RULE}, {"id": "Knows SQL."}]},
        {"name": "Bob", "entityType": "person", "observations": []},
    ],
    "relations": [{"id": "r", "from": "Ada", "relationType": "knows", "to": "Bob"}],
}


def test_of_the_knowledge_graph_the_observations_that_say_it_are_found():
    assert found(documents(item("a", RULE), graph=GRAPH)) == [("a", ""), ("entity:Ada", "observations/0")]


def test_an_entity_is_named_by_the_id_that_recalling_gives():
    made = documents(item("a", RULE), graph=GRAPH)

    assert found(made, ids=["entity:Ada"]) == [("entity:Ada", "")]
    assert find_by_ids(made, [], ["entity:Nobody"])[1] == ["entity:Nobody"]


def test_a_text_is_found_in_names_observations_and_relations():
    def held(text):
        return [(one.id, one.part) for one in find_by_text(documents(graph=GRAPH), [], text)]

    assert held("knows") == [("entity:Ada", "observations/1"), ("r", "relation")]
    assert held("bob") == [("entity:Bob", ""), ("r", "relation")]


def test_what_says_it_in_other_words_is_similar_and_what_goes_is_not():
    made = documents(
        item("a", "State files must be written atomically."),
        item("b", "Write state files atomically, always."),
        item("c", "The state of the art is files."),
        item("d", "State files must be written atomically. Yes."),
    )
    targets, _ = find_by_ids(made, [], ["a"])

    assert [one.id for one in targets] == ["a", "d"]
    assert [one.id for one in find_similar(made, [], targets)] == ["b"]


def test_what_has_no_words_is_similar_to_nothing():
    made = documents(item("a", "..."), item("b", "!!!"))

    assert find_similar(made, [], find_by_ids(made, [], ["a"])[0]) == []


def test_of_many_only_what_shares_most_is_looked_at_closer(monkeypatch):
    monkeypatch.setattr(find, "MAX_COMPARED", 1)
    made = documents(
        item("a", "State files must be written atomically."),
        item("b", "Files and the state are what is written of here."),
        item("c", "All state files must always be written out atomically!"),
    )
    targets, _ = find_by_ids(made, [], ["a"])

    assert [one.id for one in find_similar(made, [], targets)] == ["c"]
