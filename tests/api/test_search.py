import json
import sqlite3
from contextlib import closing

import pytest

import aether
from aether.api import recall
from aether.api.prompt_recall import prompt_recall
from aether.errors import InvalidInput, NotFound, StorageFailed
from aether.search import archive
from tests.api.calls import memory, snapshot
from tests.children import ended, start
from tests.memory.states import answer
from tests.tables import rows


@pytest.fixture
def known(home):
    """Return a home that knows about harbours in every layer and in the archive."""
    aether.add_working_memory_item("Harbour pilots use the archived chart", "note", home=home)
    aether.clear_working_memory(home=home)
    aether.add_working_memory_item(
        "Harbour depth is measured in metres", "decision", caste="scout", metadata={"phase": 2}, home=home
    )
    high = [{"content": "Never enter the harbour at night", "relevance_score": 0.9, "type": "constraint"}]
    aether.create_short_term_session(
        1, answer("s1", summary="The harbour was charted.", high_value_items=high), home=home
    )
    return home


def found(home, query="harbour", **options):
    return [hit["layer"] for hit in aether.search_memory(query, home=home, **options)]


def test_all_layers_and_the_archive_are_searched(known):
    hits = aether.search_memory("harbour", home=known)

    assert {hit["layer"] for hit in hits} == {
        "working_memory",
        "short_term_memory",
        "long_term_memory",
        "archive",
    }
    assert all(0 <= hit["relevance"] <= 1 and hit["score"] > 0 and hit["id"] for hit in hits)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_by_layer_working_memory_comes_first(known):
    """Defect 11 of the original: the order was the wrong way round."""
    assert found(known, by_layer=True) == [
        "working_memory",
        "short_term_memory",
        "long_term_memory",
        "archive",
    ]


def test_only_what_is_returned_counts_as_accessed(known):
    """Defect 11 of the original: matches beyond the limit were counted too."""
    other = aether.add_working_memory_item("harbour harbour", "note", home=known)

    [hit] = aether.search_memory("harbour", 1, layers=["working_memory"], home=known)

    counts = {
        each["id"]: each["metadata"]["access_count"] for each in memory(known)["working_memory"]["items"]
    }
    assert sorted(counts.values()) == [0, 1]
    assert counts[hit["id"]] == 1
    assert other in counts
    assert "access" not in [line.operation for line in aether.log(home=known)]


def test_a_search_without_items_writes_nothing(known):
    before = snapshot(known)

    guesses = aether.search_memory("submarine", home=known)
    assert [hit["why"] for hit in guesses] == ["weak"] * 3
    assert prompt_recall("Where does the submarine surface after its voyage?", budget=400, home=known) == ""
    assert found(known, layers=["archive"]) == ["archive"]
    assert snapshot(known) == before


@rows(
    ("options", "layers"),
    [
        ({"types": ["decision"]}, ["working_memory"]), ({"caste": "scout"}, ["working_memory"]),
        ({"phase": 2}, ["working_memory"]), ({"layers": ["archive"]}, ["archive"]), ({"until": "2020-01-01"}, []),
        ({"since": "2126-01-01T00:00:00Z"}, []), ({"since": "2020-01-01", "layers": ["archive"]}, ["archive"]),
    ],
)  # fmt: skip
def test_filters_only_remove(known, options, layers):
    assert found(known, **options) == layers


def test_a_list_has_the_filters_of_a_search(known):
    def listed(**options):
        return len(aether.list_working_memory_items(home=known, **options))

    assert (listed(), listed(types=["decision"]), listed(types=["note"]), listed(caste="scout")) == (
        1,
        1,
        0,
        1,
    )
    assert (listed(phase=2), listed(phase=1), listed(since="7d"), listed(until="7d")) == (1, 0, 1, 0)
    assert (listed(project="x"), listed(conversation="x")) == (0, 0)
    for options in ({"since": "soon"}, {"phase": "first"}):
        with pytest.raises(InvalidInput):
            listed(**options)
        with pytest.raises(InvalidInput):
            aether.recall("harbour", home=known, **options)
    assert [hit["layer"] for hit in aether.recall("harbour", types=["decision"], home=known)] == [
        "working_memory"
    ]


@rows("query", ["", " ", "\n", None, 5])
def test_a_query_is_required(known, query):
    with pytest.raises(InvalidInput, match="query is required"):
        aether.search_memory(query, home=known)


@rows("options", [{"limit": 0}, {"limit": -1}, {"layers": ["attic"]}, {"context": -1}, {"since": "soon"}])
def test_an_impossible_option_is_refused(known, options):
    with pytest.raises(InvalidInput):
        aether.search_memory("harbour", home=known, **options)


@rows("query", ["\0", "\ud800", '"', "' OR 1=1 --", "*", "NEAR(a b)", "harbour " * 2_000, "../x", "日本"])
def test_any_query_is_a_query(known, query):
    assert isinstance(aether.search_memory(query, home=known), list)


def test_an_id_finds_its_item_first(known):
    item = aether.add_working_memory_item("something else", "note", home=known)

    assert aether.search_memory(item, home=known)[0]["id"] == item


def test_an_item_brought_back_by_undo_is_found_once_and_in_working_memory(home):
    item = aether.add_working_memory_item("lighthouse", "note", home=home)
    aether.clear_working_memory(home=home)
    assert found(home, "lighthouse") == ["archive"]

    aether.undo(home=home)

    assert [(hit["id"], hit["layer"]) for hit in aether.search_memory("lighthouse", home=home)] == [
        (item, "working_memory")
    ]


def test_what_others_wrote_since_the_last_search_of_a_process_is_found_at_once(known):
    many = [{"content": f"Buoy {nth} marks the harbour", "type": "note"} for nth in range(120)]
    buoys = aether.add_working_memory_items(many, home=known)

    def shown():
        return {hit["id"]: hit["score"] for hit in aether.search_memory("buoy harbour", None, home=known)}

    first = shown()
    assert first == shown() == shown()  # all terms of an entry are counted at the second search
    recall._ENTRIES.clear()
    assert first == shown()  # as a process does that starts

    change = lambda: aether.update_working_memory_item(buoys[7], {"content": "A pier"}, home=known)  # noqa: E731 - forked
    assert ended(start(change)) == 0
    assert first.keys() - shown().keys() == {buoys[7]}
    aether.fold(home=known)
    file = known / "data" / "memory.json"
    file.write_text(file.read_text(encoding="utf-8").replace("Buoy 9 ", "Lamp 9 "), encoding="utf-8")
    assert shown()[buoys[9]] < shown()[buoys[20]]


def test_a_damaged_or_missing_index_changes_no_answer(known):
    before = aether.search_memory("harbour", home=known, layers=["archive"])
    for harm in (lambda path: path.write_bytes(b"no database"), lambda path: path.unlink(missing_ok=True)):
        harm(known / "index.sqlite")
        again = aether.search_memory("harbour", home=known, layers=["archive"])
        assert [hit["id"] for hit in again] == [hit["id"] for hit in before]


def test_a_process_of_its_own_makes_the_index_for_a_prompt(known):
    (known / "index.sqlite").unlink(missing_ok=True)
    archive.main([str(known)])

    with closing(sqlite3.connect(known / "index.sqlite")) as db:
        assert db.execute("SELECT items FROM state").fetchone() == (1,)


def test_a_home_that_cannot_be_written_can_be_searched(home, monkeypatch):
    aether.add_working_memory_item("The importer reads records one by one.", "note", home=home)

    def refuse(*args, **kwargs):
        raise StorageFailed("Read-only file system.", fix="Make it writable.")

    monkeypatch.setattr(recall, "note_reading", refuse)

    assert [hit["content"] for hit in aether.search_memory("importer", home=home)] == [
        "The importer reads records one by one."
    ]


def test_anything_is_found_by_its_id_wherever_it_is(home):
    item_id = aether.add_working_memory_item("The importer reads records one by one.", "note", home=home)
    aether.clear_working_memory(home=home)

    hit = recall.find_by_id(item_id, home=home)

    assert (hit["id"], hit["layer"]) == (item_id, "archive")
    with pytest.raises(NotFound, match="in no layer and not in the archive"):
        recall.find_by_id("wm_0", home=home)


@rows("query", ["What is left to do?", "where do we stand?", "what are the next steps?"])
def test_a_question_about_the_state_of_the_work_finds_what_a_start_shows_of_it(home, tmp_path, query):
    said = [("user", "Add a harbour page."), ("assistant", "Added `harbour.py`. Next step: draw the chart.")]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"role": role, "content": text} for role, text in said]), encoding="utf-8")
    aether.import_transcripts([path], home=home)
    aether.add_working_memory_item("The next ship comes when it has left the open sea.", "note", home=home)

    hits = [hit["content"] for hit in aether.search_memory(query, 2, home=home)]

    assert sorted(hits) == sorted(text for _, text in said)
    assert found(home, "what is next for the mast?") != found(home, query)
