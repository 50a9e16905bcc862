"""Finding, forgetting and erasing on plain documents and files; over a home they are tested in tests/api."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aether.memory import erase as erasure
from aether.memory import forget as forgetting
from aether.memory import handoff, sessions, snapshots
from aether.memory.capture.notes import title_of
from aether.memory.forget import find_by_ids, find_by_text, find_similar, forget
from aether.store import files, log
from aether.store import journal as journals
from aether.store.patch import apply
from tests import homes
from tests.homes import NOW, item
from tests.tables import rows

DATA = Path(__file__).parents[2] / "data"


def memory_of(*items, sessions=(), graph=None):
    """Return the documents of a home with these items and sessions, and a knowledge graph if there is one."""
    made = {
        name: json.loads((DATA / f"{name}.json").read_bytes())
        for name in ("memory", "pheromones", "COLONY_STATE")
    }
    made["memory"]["working_memory"]["items"] = list(items)
    made["memory"]["working_memory"]["current_tokens"] = sum(one["token_count"] for one in items)
    made["memory"]["short_term_memory"]["sessions"] = list(sessions)
    return made | ({"graph": graph} if graph else {})


def test_an_unknown_id_is_returned():
    found, unknown = find_by_ids(memory_of(item("a")), [], ["a", "b", "a"])

    assert ([one.id for one in found], unknown) == (["a"], ["b"])


def test_an_archived_item_that_is_live_again_is_one_thing():
    archived = [{"item": item("a", "note two")}, {"item": item("b", "note")}]

    assert [(one.id, one.layer) for one in find_by_text(memory_of(item("a", "note")), archived, "NOTE")] == [
        ("a", "working_memory"), ("b", "archive"),
    ]  # fmt: skip


def test_after_forgetting_the_totals_are_right_and_no_link_is_dangling():
    linked = item("b", "another", tokens=3) | {"associative_links": [{"target_id": "a", "id": "l"}]}
    before = memory_of(item("a", tokens=2), linked)
    targets, _ = find_by_ids(before, [], ["a"])

    done = forget(before, targets, now=NOW, count=len, receipt_id="r")

    after = apply(before["memory"], done.patches["memory"])
    assert [(one["id"], one["associative_links"]) for one in after["working_memory"]["items"]] == [("b", [])]
    assert after["working_memory"]["current_tokens"] == 3
    assert [one["id"] for one in after["forgotten"]] == ["a"]
    assert [one["why"] for one in done.appends["items"]] == ["forgotten"]


RULE = "Never use tabs in SQL files."


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
def test_a_text_with_the_words_or_a_longer_part_of_them_is_a_repeat(text):
    assert found(memory_of(item("a", RULE), item("b", text))) == [("a", ""), ("b", "")]


@rows("text", ["Never use tabs.", "use tabs", "Never use tabs in MySQL files.", "SQL files", "..."])
def test_a_shorter_or_different_text_is_not_a_repeat(text):
    assert found(memory_of(item("a", RULE), item("b", text))) == [("a", "")]


def test_a_short_text_only_matches_whole_texts():
    assert found(memory_of(item("a", "Yes."), item("b", "yes"), item("c", "Yes, go on."))) == [
        ("a", ""),
        ("b", ""),
    ]


def test_a_sentence_of_a_forgotten_prompt_goes_with_it():
    made = memory_of(
        item("a", f"{RULE} Ship on Friday."), item("b", "Ship on Friday."), item("c", "on Friday")
    )

    assert found(made) == [("a", ""), ("b", "")]


def test_a_decision_that_was_cut_from_its_reason_is_still_the_same():
    made = memory_of(
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


def test_verbatim_texts_of_a_session_are_found_and_other_metadata_is_not():
    kept = {
        "protected": [RULE],
        "noted": ["x", RULE],
        "asked": [f"Please: {RULE}"],
        "castes": [RULE],
        "files": 3,
    }

    made = memory_of(item("a", RULE), sessions=[session(metadata=kept)])

    assert found(made) == [("a", ""), ("s", "protected/0"), ("s", "noted/1"), ("s", "asked/0")]


def test_a_pattern_and_its_evidence_in_other_wordings_are_found_by_the_id_of_either():
    other = "SQL files are indented with spaces only."
    made = memory_of(item("a", other), item("b", f"{RULE} Ship on Friday."), item("c", "Ship on Friday."))
    evidence = [{"session_id": name, "phase": 1, "text": text} for name, text in (("s", RULE), ("t", other))]
    made["memory"]["long_term_memory"]["patterns"] = [
        {"id": "p", "type": "constraint", "pattern": RULE, "metadata": {"context": "", "evidence": evidence}}
    ]

    assert found(made, ids=["p"]) == [("p", ""), ("a", ""), ("b", "")]
    assert found(made, ids=["a"]) == [("a", ""), ("p", "")]
    # Each wording of a pattern is compared by itself: one of them in a forgotten prompt is enough.
    assert found(made, ids=["b"]) == [("b", ""), ("c", ""), ("p", "")]


def test_the_archive_is_looked_through_too_and_an_archived_session_is_no_statement():
    archived = [{"item": item("old", RULE)}, {"item": item("s", RULE) | {"type": "session"}}]

    assert found(memory_of(item("a", RULE)), archived) == [("a", ""), ("old", ""), ("s", "")]
    assert found(memory_of(item("a", RULE)), archived, ["s"]) == [("s", "")]


GRAPH = {
    "entities": [
        {"name": "Ada", "entityType": "person", "observations": [{"id": RULE}, {"id": "Knows SQL."}]},
        {"name": "Bob", "entityType": "person", "observations": []},
    ],
    "relations": [{"id": "r", "from": "Ada", "relationType": "knows", "to": "Bob"}],
}


def test_of_the_knowledge_graph_the_observations_that_say_it_are_found():
    assert found(memory_of(item("a", RULE), graph=GRAPH)) == [("a", ""), ("entity:Ada", "observations/0")]


def test_an_entity_is_named_by_the_id_that_recalling_gives():
    made = memory_of(item("a", RULE), graph=GRAPH)

    assert found(made, ids=["entity:Ada"]) == [("entity:Ada", "")]
    assert find_by_ids(made, [], ["entity:Nobody"])[1] == ["entity:Nobody"]


def test_a_text_is_found_in_names_observations_and_relations():
    def held(text):
        return [(one.id, one.part) for one in find_by_text(memory_of(graph=GRAPH), [], text)]

    assert held("knows") == [("entity:Ada", "observations/1"), ("r", "relation")]
    assert held("bob") == [("entity:Bob", ""), ("r", "relation")]


def test_a_paraphrase_is_similar_and_a_chosen_target_is_not():
    made = memory_of(
        item("a", "State files must be written atomically."),
        item("b", "Write state files atomically, always."),
        item("c", "The state of the art is files."),
        item("d", "State files must be written atomically. Yes."),
    )
    targets, _ = find_by_ids(made, [], ["a"])

    assert [one.id for one in targets] == ["a", "d"]
    assert [one.id for one in find_similar(made, [], targets)] == ["b"]


def test_of_many_candidates_only_the_most_alike_are_compared(monkeypatch):
    monkeypatch.setattr(forgetting, "MAX_COMPARED", 1)
    made = memory_of(
        item("a", "State files must be written atomically."),
        item("b", "Files and the state are what is written of here."),
        item("c", "All state files must always be written out atomically!"),
    )
    targets, _ = find_by_ids(made, [], ["a"])

    assert [one.id for one in find_similar(made, [], targets)] == ["c"]


OLD, NEW = "Quorvex", "[ERASED]"


def erase(text):
    return text.replace(OLD, NEW)


def test_a_journal_line_is_rewritten_and_sealed_and_its_paths_key_by_key():
    line = journals.entry_line(
        journals.Entry(
            3, "2026-03-01", "queen", "undo", f"of revision {OLD} 2",
            {"memories": [{"op": "add", "path": f"/files/~1{OLD}~0", "value": {OLD: 1}}, {"op": "remove", "path": "/a"}]},
            {"memories": [{"op": "move", "from": f"/{OLD}", "path": "/b"}]}, {"items": [{"item": OLD}]},
        )
    )  # fmt: skip

    made = log.unsealed(erasure.rewrite_file("data/journal.jsonl", line, erase))

    assert made["patches"]["memories"] == [
        {"op": "add", "path": f"/files/~1{NEW}~0", "value": {NEW: 1}},
        {"op": "remove", "path": "/a"},
    ]
    assert made["inverse"]["memories"] == [{"op": "move", "from": f"/{NEW}", "path": "/b"}]
    assert (made["appends"], made["reason"]) == ({"items": [{"item": NEW}]}, f"of revision {OLD} 2")


@pytest.mark.parametrize("good", [True, False])
def test_an_intact_snapshot_or_handoff_gets_a_new_checksum(good):
    snapshot = snapshots.take_snapshot(
        {"memory": {"a": OLD}}, snapshot_id="s", label="", now=homes.NOW, revision=1
    )
    given = handoff.seal({"items": [OLD]}, {"text": OLD})
    if not good:
        snapshot["checksum"] = given["checksum"] = "0"

    made, handed = (
        json.loads(erasure.rewrite_file("x.json", files.json_document(one), erase))
        for one in (snapshot, given)
    )

    assert (made["checksum"] == snapshots.checksum({"memory": {"a": NEW}})) is good
    assert handed["items"] == [NEW]
    if good:
        assert handoff.require_intact(handed, where="") == handed
    else:
        assert (made["checksum"], handed["checksum"]) == ("0", "0")


def test_digests_of_erased_texts_are_replaced_and_others_emptied():
    item = homes.item("one", f"{OLD} is it")
    known = erasure.digests(OLD, erase) | erasure.digests(item, erase)
    after = homes.item("one", f"{NEW} is it")

    made = erasure.map_strings(
        {"items": {"one": handoff.item_digest(item)}, "sha256_before": "a", "sha256_after": "b"},
        lambda text: known.get(text) or erase(text),
    )

    assert made == {"items": {"one": handoff.item_digest(after)}, "sha256_before": "", "sha256_after": ""}
    assert erasure.digests({"content": OLD}, erase) == {}
    forgotten = {"id": "a", "layer": "archive", "part": "", "sha256": "x", "at": "y"}
    assert erasure.map_strings(forgotten, erase) == forgotten | {"sha256": ""}


def test_the_texts_of_an_entry_are_yielded_whole_and_in_longer_sentences():
    session = {
        "session_id": "s", "summary": "One. Two sentences that are long enough.", "key_decisions": [{"decision": "D", "rationale": ""}],
        "outcomes": "none", "high_value_items": [None], "metadata": {"protected": ["P"], "context": None},
    }  # fmt: skip
    pattern = {"pattern": "A", "metadata": {"context": "C", "evidence": [{"text": "E"}]}}

    assert list(erasure.texts_of(session)) == [
        "One. Two sentences that are long enough.", "Two sentences that are long enough.", "P", "D",
    ]  # fmt: skip
    assert list(erasure.texts_of(pattern)) == ["A", "C", "E"]
    assert list(erasure.texts_of({"content": "x", "metadata": 1})) == ["x"]


@pytest.mark.parametrize("text", ["content", "assistant", "working", "2026-03-01", "observation", "metadata"])
def test_words_of_the_file_formats_are_reserved(text):
    assert erasure.is_reserved(text)


def test_the_name_of_a_conversation_and_a_reply_are_texts_to_erase():
    said = "Fix the login of the customer Acme, whose token is in the vault, before anybody else sees it at all. Soon."
    entry = {"content": said, "metadata": {"reply": "do b, for Acme"}}
    session = {
        "session_id": "s",
        "summary": "x",
        "metadata": {"items": [{"content": "Acme pays."}], "ended": ["Never bill Acme."]},
    }

    assert {title_of(said), "do b, for Acme"} <= {*erasure.texts_of(entry)}
    assert {"Acme pays.", "Never bill Acme."} <= {*erasure.texts_of(session)}


def test_a_text_is_ended_in_a_session_as_a_whole_sentence():
    session = {"metadata": {"ended": ["Always use tabs. Never use mocks in Go."]}}

    for text, ended in (
        ("Always use tabs.", True),
        ("Never use mocks in Go.", True),
        ("use tabs", False),
        ("", False),
    ):
        assert sessions.ended_in(session, text) is ended
