"""Forgetting and superseding: no search finds the entries until it is undone."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import admin as homes
from aether.api import colony, forget, graph, recall, timeline, working
from aether.api.prompt_recall import prompt_recall
from aether.errors import Conflict, InvalidInput, NotFound
from aether.store import record_files, snapshot
from tests.cli import stage
from tests.tables import rows

TEXT = "The customer Quorvex pays by invoice."


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def add(place, text=TEXT, **metadata):
    return str(aether.add_working_memory_item(text, "decision", 0.8, home=place, metadata=metadata))


def compressed(place, **changes):
    aether.prepare_compression_data(1, home=place, manual=True)
    aether.trigger_phase_boundary_compression(
        1, {**stage.session(), "key_decisions": [], **changes}, home=place
    )


def documents(place):
    return json.dumps(snapshot.load(place).documents)


def is_sound(place):
    return [one for one in homes.examine(home=place) if one.level == "error"] == []


def found(place, text="Quorvex"):
    """Return the ids of the entries with words of `text`; a guess, which has none of them, must not be about it either."""
    hits = recall.search_memory(text, home=place)
    assert not any(hit.get("weak") and text.lower() in json.dumps(hit).lower() for hit in hits)
    return [hit["id"] for hit in hits if not hit.get("weak")]


@pytest.mark.parametrize("by", ["id", "text"])
@pytest.mark.parametrize("where", ["live", "archived"])
def test_forgotten_entries_are_not_found_until_the_undo(place, where, by):
    item, other = add(place), add(place, "Another note stays.")
    if where == "archived":
        working.clear_working_memory(home=place)
    assert found(place) == [item]

    done = forget.forget([item] if by == "id" else [], match="" if by == "id" else "qUORVEX", home=place)

    assert [(one.id, one.layer) for one in done.targets] == [
        (item, "working_memory" if where == "live" else "archive")
    ]
    assert found(place) == []
    assert all(hit.weak and hit.id != item for hit in recall.recall("Quorvex", home=place))
    assert prompt_recall("who is the customer Quorvex, by invoice?", budget=400, home=place) == ""
    with pytest.raises(NotFound):
        recall.full([item], home=place)
    assert [line.id for line in recall.timeline(other, home=place)] == [other]
    assert forget.preview_forget(match="Quorvex", home=place).targets == []
    assert is_sound(place)
    homes.undo(done.revision, home=place)
    assert found(place) == [item]
    assert is_sound(place)


def test_a_preview_changes_nothing(place):
    add(place)
    before = snapshot.load(place).revision

    looked = forget.preview_forget(match="Quorvex", home=place)

    assert (len(looked.targets), looked.receipt, looked.revision) == (1, None, 0)
    assert snapshot.load(place).revision == before


def test_the_receipt_names_the_entries_and_not_their_text(place):
    item = add(place)

    done = forget.forget([item], home=place)

    (receipt,) = (one for _, one in record_files.records(snapshot.load(place), "receipts"))
    assert receipt["forgotten"] == [
        {"id": item, "layer": "working_memory", "part": "", "sha256": receipt["forgotten"][0]["sha256"]}
    ]
    assert (receipt["revision"], receipt["receipt_id"]) == (done.revision, done.receipt["receipt_id"])
    assert "Quorvex" not in json.dumps(receipt)


def test_of_a_session_only_the_statements_that_hold_it_go(place):
    add(place, "A note.", phase=1)
    compressed(
        place,
        summary="State is atomic.\nQuorvex asked for it.",
        outcomes=[
            {"result": "Quorvex is content", "impact": "none"},
            {"result": "It survives", "impact": "yes"},
        ],
    )

    done = forget.forget(match="Quorvex", home=place)

    assert sorted(one.part for one in done.targets) == ["outcomes/0", "summary/1"]
    (session,) = snapshot.load(place).documents["memory"]["short_term_memory"]["sessions"]
    assert session["summary"] == "State is atomic.\n[forgotten]"
    assert [one["result"] for one in session["outcomes"]] == ["It survives"]
    assert "Quorvex" not in documents(place)
    assert is_sound(place)
    homes.undo(done.revision, home=place)
    assert "Quorvex is content" in documents(place)


def test_a_whole_session_goes_with_what_leads_to_it(place):
    add(place, "A note.", phase=1)
    compressed(place)
    pattern = aether.extract_pattern_to_long_term(
        "Never block the loop", session_id="phase_1_by_hand", home=place
    )

    forget.forget(["phase_1_by_hand"], home=place)

    memory = snapshot.load(place).documents["memory"]
    assert memory["short_term_memory"]["sessions"] == []
    assert "phase_1_by_hand" not in json.dumps(
        [one["associative_links"] for one in memory["long_term_memory"]["patterns"]]
    )
    assert pattern in {one["id"] for one in memory["long_term_memory"]["patterns"]}
    assert is_sound(place)


def test_a_pattern_goes_with_the_statements_it_would_come_back_from(place):
    add(place, "Decision: never block the loop", phase=1)
    compressed(place, key_decisions=[{"decision": "Never block the loop", "rationale": ""}])
    pattern = aether.extract_pattern_to_long_term(
        "Never block the loop", session_id="phase_1_by_hand", home=place
    )

    forget.forget([pattern], home=place)

    assert found(place, "block loop") == []
    assert aether.trigger_pattern_extraction(home=place) == 0
    assert is_sound(place)


def test_a_signal_is_forgotten_too_and_other_documents_are_named(place):
    colony.emit_signal("FOCUS", "Look after Quorvex", home=place)
    colony.start_phase(1, name="Make Quorvex content", home=place)
    add(place)

    done = forget.forget(match="quorvex", home=place)

    assert {one.layer for one in done.targets} == {"signals", "working_memory"}
    assert "Quorvex" not in json.dumps(snapshot.load(place).documents["pheromones"])
    assert done.elsewhere == ["COLONY_STATE"]


def test_verbatim_texts_of_a_session_are_forgotten_too(place):
    add(place, "A note.", phase=1)
    add(place, phase=1, protected=True)
    compressed(place)
    assert "Quorvex" in documents(place)

    forget.forget(match="Quorvex", home=place)

    assert "Quorvex" not in json.dumps(snapshot.load(place).documents["memory"])
    assert is_sound(place)


def test_statements_and_proposals_of_a_session_are_forgotten_with_their_quotes(place):
    add(place, TEXT, phase=1)
    add(place, "Send each invoice twice.", phase=1)
    said = {"text": "The customer pays by invoice.", "quote": "Quorvex pays by invoice"}
    compressed(place, state=[said, "Send each invoice twice"], rules=[{**said, "text": "Quorvex pays."}])
    (session,) = snapshot.load(place).documents["memory"]["short_term_memory"]["sessions"]
    assert len(session["state"]) == 2
    assert len(session["rules"]) == 1

    done = forget.forget(match="Quorvex", home=place)

    assert {"state/0", "rules/0"} <= {one.part for one in done.targets}
    (session,) = snapshot.load(place).documents["memory"]["short_term_memory"]["sessions"]
    assert [one["text"] for one in session["state"]] == ["Send each invoice twice"]
    assert "Quorvex" not in json.dumps(session)
    assert is_sound(place)


def test_an_open_hand_off_that_holds_it_is_closed(place):
    item, _ = add(place, phase=1), add(place, "stays", phase=1)
    aether.prepare_compression_data(1, home=place, manual=True)

    forget.forget([item], home=place)

    assert snapshot.load(place).documents["memory"]["compression"]["open"] == []


def test_a_second_forgetting_keeps_the_first(place):
    first, second = add(place), add(place, "The customer Quorvex moved.")

    forget.forget([first], home=place)
    forget.forget([second], home=place)

    assert found(place) == []
    again = add(place, "The customer Quorvex is back.")
    assert found(place) == [again]


def test_nothing_to_forget_changes_nothing(place):
    before = snapshot.load(place).revision

    done = forget.forget(match="nobody said this", home=place)

    assert (done.targets, done.receipt, done.revision) == ([], None, 0)
    assert snapshot.load(place).revision == before


@rows(
    ("ids", "match", "error", "words"),
    [
        ([], "", InvalidInput, "expected either"), (["a"], "text", InvalidInput, "expected either"), ([], " ab ", InvalidInput, "too short"),
        (["wm_none"], "", NotFound, "wm_none"),
    ],
)  # fmt: skip
def test_invalid_requests_are_rejected(place, ids, match, error, words):
    with pytest.raises(error, match=words):
        forget.forget(ids, match=match, home=place)


def test_an_import_does_not_bring_it_back(place, tmp_path):
    transcript = tmp_path / "talk.jsonl"
    line = {"type": "user", "uuid": "8e5285ef-9cf7-4314-bcd1-c9aab1995614", "sessionId": "s", "timestamp": "2026-03-01T10:00:00Z",
            "message": {"role": "user", "content": "Please never mail the customer Quorvex about invoices."}}  # fmt: skip
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    aether.import_transcripts([transcript], home=place)

    forget.forget(match="Quorvex", home=place)
    aether.import_transcripts([transcript], home=place)

    assert found(place) == []


def test_the_knowledge_graph_forgets_it_too_and_undo_restores_it(place):
    graph.create_entities(
        [
            {"name": "Quorvex", "entityType": "customer", "observations": ["Pays late."]},
            {"name": "Ada", "entityType": "person", "observations": ["Knows Quorvex.", "Is kind."]},
            {"name": "Bob", "entityType": "person", "observations": []},
        ],
        home=place,
    )
    for one, kind, other in (
        ("Ada", "calls", "Quorvex"),
        ("Ada", "calls", "Bob"),
        ("Bob", "ran from Quorvex to", "Ada"),
    ):
        graph.create_relations([{"from": one, "relationType": kind, "to": other}], home=place)

    done = forget.forget(match="quorvex", home=place)

    left = graph.read_graph(home=place)
    assert [(each["name"], each["observations"]) for each in left["entities"]] == [
        ("Ada", ["Is kind."]),
        ("Bob", []),
    ]
    assert left["relations"] == [{"from": "Ada", "relationType": "calls", "to": "Bob"}]
    assert done.elsewhere == []
    homes.undo(done.revision, home=place)
    assert len(graph.read_graph(home=place)["relations"]) == 3


def test_similar_statements_are_named_and_go_only_when_asked_for(place):
    first, other = (
        add(place, "State files must be written atomically."),
        add(place, "Write state files atomically."),
    )

    looked = forget.preview_forget([first], home=place)
    assert ([one.id for one in looked.targets], [one.id for one in looked.similar]) == ([first], [other])
    done = forget.forget([first], similar=True, home=place)

    assert ([one.id for one in done.targets], done.similar) == ([first, other], [])
    assert found(place, "state files") == []


def test_other_documents_with_the_text_are_named(place):
    item = add(place, "Make Quorvex content")
    colony.start_phase(1, name="Make Quorvex content", home=place)

    assert forget.forget([item], home=place).elsewhere == ["COLONY_STATE"]


def test_a_session_that_says_nothing_of_it_stays_as_it_is(place):
    add(place, "A note.", phase=1)
    compressed(place)
    before = snapshot.load(place).documents["memory"]["short_term_memory"]

    forget.forget([add(place)], home=place)

    assert snapshot.load(place).documents["memory"]["short_term_memory"] == before


OLD, NEW = "We must support Windows 7.", "We must support Windows 7 and 10."


def compressed_superseding(place):
    item = str(aether.add_working_memory_item(OLD, "constraint", 0.9, home=place, metadata={"phase": 1}))
    aether.prepare_compression_data(1, home=place, manual=True)
    answer = {
        **stage.session(),
        "key_decisions": [],
        "high_value_items": [{"content": OLD, "type": "constraint", "relevance_score": 0.9}],
    }
    aether.trigger_phase_boundary_compression(1, answer, home=place)
    (pattern,) = [
        each["id"]
        for each in snapshot.load(place).documents["memory"]["long_term_memory"]["patterns"]
        if each["pattern"] == OLD
    ]
    return {"item": item, "pattern": pattern}


@pytest.mark.parametrize("which", ["item", "pattern"])
def test_an_entry_that_left_working_memory_is_superseded_and_one_undo_reverses_it(place, which):
    named = compressed_superseding(place)[which]
    before = snapshot.load(place).documents["memory"]

    done = forget.supersede(named, {"content": NEW, "metadata": {"ticket": 7}}, home=place)

    assert (done.item["content"], done.item["type"]) == (NEW, "constraint")
    assert (done.item["metadata"]["supersedes"], done.item["metadata"]["ticket"]) == (named, 7)
    assert {one.layer for one in done.forgotten} == {"archive", "short_term_memory", "long_term_memory"}
    assert [hit["id"] for hit in recall.search_memory("Windows", home=place)] == [done.item["id"]]
    assert OLD not in json.dumps(snapshot.load(place).documents["memory"])
    with pytest.raises(NotFound):
        recall.full([named], home=place)
    assert [one for one in homes.examine(home=place) if one.level == "error"] == []
    homes.undo(home=place)
    after = snapshot.load(place).documents["memory"]
    assert {**after, "metrics": 0} == {**before, "metrics": 0}


def test_an_entry_of_several_statements_is_rejected_with_advice(place):
    compressed_superseding(place)
    graph.create_entities([{"name": "Ada", "entityType": "person", "observations": []}], home=place)
    signal = colony.emit_signal("FOCUS", "Look after it", home=place)["id"]
    revision = snapshot.load(place).revision

    for named, words in (
        ("phase_1_by_hand", "forget --match"),
        ("entity:Ada", "aether memory forget entity:Ada"),
        (signal, f"aether memory forget {signal}"),
    ):
        with pytest.raises(InvalidInput) as said:
            forget.supersede(named, {"content": NEW}, home=place)
        assert words in said.value.fix
    assert snapshot.load(place).revision == revision


def test_without_a_text_nothing_is_corrected(place):
    named = compressed_superseding(place)["item"]

    with pytest.raises(InvalidInput, match="only its text") as said:
        forget.supersede(named, {"relevance_score": 0.1}, home=place)

    assert f"aether memory update {named} --content" in said.value.fix
    assert len(recall.search_memory(OLD, home=place)) == 3
    with pytest.raises(InvalidInput, match="required"):
        forget.supersede(named, {"content": " "}, home=place)
    assert aether.list_working_memory_items(home=place) == []


def test_an_unknown_id_is_not_found(place):
    with pytest.raises(NotFound, match="wm_none"):
        forget.supersede("wm_none", {"content": NEW}, home=place)


def test_forgetting_a_statement_leaves_the_other_statements_of_an_archived_session(place):
    other = "Releases are signed by the build server."
    add(place, phase=1)
    add(place, other, phase=1)
    outcomes = [{"result": TEXT, "impact": ""}, {"result": other, "impact": ""}]
    compressed(place, summary=f"{TEXT}\n{other}", key_decisions=[], outcomes=outcomes, high_value_items=[])
    session = aether.evict_short_term_session(home=place)["session_id"]
    again = add(place)
    assert session in found(place)

    done = forget.forget([again], home=place)

    assert {(one.id, one.part) for one in done.targets if one.id == session} == {
        (session, "summary/0"),
        (session, "outcomes/0"),
    }
    assert found(place) == []
    assert session in found(place, "signed releases build server")
    text = recall.full([session], home=place)[0]["text"]
    assert (TEXT in text, text.count(other)) == (False, 2)
    assert [TEXT in one.text for one in timeline.timeline(home=place) if one.id == session] == [False]
    assert forget.preview_forget(match="Quorvex", home=place).targets == []
    assert forget.forgotten_with([session], home=place) == {session: 1}
    assert is_sound(place)

    homes.undo(done.revision, home=place)
    assert session in found(place)


@pytest.mark.parametrize("layer", ["item", "session"])
def test_what_was_forgotten_after_it_left_memory_is_not_brought_back_by_undoing_that(place, layer):
    named = add(place, phase=1)
    if layer == "session":
        add(place, "Releases are signed by the build server.", phase=1)
        compressed(place, summary=f"{TEXT} Releases are signed by the build server.", high_value_items=[])
        named = aether.evict_short_term_session(home=place)["session_id"]
    else:
        working.clear_working_memory(home=place)
    left = snapshot.load(place).revision
    done = forget.forget([], match="Quorvex", home=place)
    assert named in {one.id for one in done.targets}

    with pytest.raises(Conflict, match=f"{named}, forgotten by revision {done.revision} ") as raised:
        homes.undo(left, home=place)
    assert raised.value.fix == "Undo the later change first."
    assert found(place) == []

    homes.undo(done.revision, home=place)
    homes.undo(left, home=place)
    assert named in found(place)
    assert is_sound(place)
