"""Correcting: what left working memory is said anew, and what said it before is told by nothing."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import admin as homes
from aether.api import colony, forget, graph, recall, search
from aether.errors import InvalidInput, NotFound
from aether.store import snapshot
from tests.cli import stage

OLD, NEW = "We must support Windows 7.", "We must support Windows 7 and 10."


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def compressed(place):
    item = str(aether.add_working_memory_item(OLD, "constraint", 0.9, home=place, metadata={"phase": 1}))
    aether.prepare_compression_data(1, home=place, manual=True)
    answer = {
        **stage.session(),
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
def test_what_left_working_memory_is_said_anew_and_one_undo_takes_it_back(place, which):
    named = compressed(place)[which]
    before = snapshot.load(place).documents["memory"]

    done = forget.supersede(named, {"content": NEW, "metadata": {"ticket": 7}}, home=place)

    assert (done.item["content"], done.item["type"]) == (NEW, "constraint")
    assert (done.item["metadata"]["supersedes"], done.item["metadata"]["ticket"]) == (named, 7)
    assert {one.layer for one in done.forgotten} == {"archive", "short_term_memory", "long_term_memory"}
    assert [hit["id"] for hit in search.search_memory("Windows", home=place)] == [done.item["id"]]
    assert OLD not in json.dumps(snapshot.load(place).documents["memory"])
    with pytest.raises(NotFound):
        recall.full([named], home=place)
    assert [one for one in homes.examine(home=place) if one.level == "error"] == []
    homes.undo(home=place)
    after = snapshot.load(place).documents["memory"]
    assert {**after, "metrics": 0} == {**before, "metrics": 0}


def test_what_is_not_one_statement_is_refused_with_what_to_do(place):
    compressed(place)
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
    named = compressed(place)["item"]

    with pytest.raises(InvalidInput, match="only its text") as said:
        forget.supersede(named, {"relevance_score": 0.1}, home=place)

    assert f"aether memory update {named} --content" in said.value.fix
    assert len(search.search_memory(OLD, home=place)) == 3
    with pytest.raises(InvalidInput, match="required"):
        forget.supersede(named, {"content": " "}, home=place)
    assert aether.list_working_memory_items(home=place) == []


def test_an_id_that_names_nothing_is_said(place):
    with pytest.raises(NotFound, match="wm_none"):
        forget.supersede("wm_none", {"content": NEW}, home=place)
