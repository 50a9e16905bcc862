import json

from hypothesis import given
from hypothesis import strategies as st

from aether.backends import chunks
from tests.backends import fakes

contents = st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=12)
"""Contents of working memory items, of any characters."""


def split(*texts, most, **more):
    items = [fakes.item(nth, text) for nth, text in enumerate(texts)]
    return chunks.split_handoff(fakes.handoff(*items, **more), most_tokens=most, count=fakes.quarter)


def test_what_fits_stays_one_part():
    (only,) = split("one", "two", most=1000, target=7)

    assert [item["content"] for item in only["items"]] == ["one", "two"]
    assert only["target_tokens"] == 7


def test_parts_share_the_target_by_size():
    first, second = split("a" * 400, "b" * 400, most=140, target=100)

    assert first["target_tokens"] == second["target_tokens"] == 50
    assert first["total_tokens"] == 100
    assert first["item_count"] == 1


def test_a_protected_statement_goes_with_its_item_and_a_strange_one_with_the_first_part():
    kept = [{"id": "wm_1", "content": "b"}, {"id": "elsewhere", "content": "c"}]

    first, second = split("a" * 400, "b" * 400, most=140, protected=kept)

    assert first["protected"] == [kept[1]]
    assert second["protected"] == [kept[0]]


def test_a_large_item_is_cut_at_blanks_and_keeps_its_id():
    found = split("word " * 500, most=100)

    pieces = [item for part in found for item in part["items"]]
    assert len(pieces) > 3
    assert {item["id"] for item in pieces} == {"wm_0"}
    assert all(item["content"].endswith(" ") for item in pieces)
    assert all(chunks._size(item, fakes.quarter) <= 100 for item in pieces)


@given(contents, st.integers(min_value=30, max_value=400))
def test_every_character_goes_to_exactly_one_part_in_order(texts, most):
    """Parts together hold the contents of the items, nothing twice, nothing lost."""
    found = split(*texts, most=most)

    assert "".join(item["content"] for part in found for item in part["items"]) == "".join(texts)


@given(contents, st.integers(min_value=120, max_value=400))
def test_no_part_of_whole_items_is_larger_than_asked(texts, most):
    """A part holds at most as many tokens as asked, unless one escaped piece is larger by itself."""
    for part in split(*texts, most=most):
        sizes = [chunks._size(item, fakes.quarter) for item in part["items"]]
        assert sum(sizes) <= most or len(sizes) == 1


def test_merging_keeps_order_and_drops_exact_repeats_only():
    decision = {"decision": "stream", "rationale": "memory"}
    merged = chunks.merge_sessions(
        fakes.handoff(),
        [
            {"summary": " A. ", "key_decisions": [decision], "outcomes": [{"result": "x", "impact": "1"}]},
            {"summary": "B.", "key_decisions": [decision | {"decision": "Stream"}, decision]},
            {
                "summary": 5,
                "outcomes": "none",
                "high_value_items": [{"content": 7}, "text", {"content": "c"}],
            },
        ],
    )

    assert merged["summary"] == "A. B."
    assert [entry["decision"] for entry in merged["key_decisions"]] == ["stream", "Stream"]
    assert merged["outcomes"] == [{"result": "x", "impact": "1"}]
    assert merged["high_value_items"] == [{"content": "c"}]
    assert (merged["id"], merged["session_id"], merged["phase"]) == ("comp_7", "comp_7", 3)


def test_a_session_is_found_among_words_fences_and_other_objects():
    text = 'See {"a": {"summary": 1}} and {bad\n```json\n{"summary": "S", "b": {"c": 1}}\n```{"summary": "later"}'

    assert chunks.find_session(text) == {"summary": "S", "b": {"c": 1}}


def test_text_without_a_session_gives_none():
    for text in ("", "no", '{"summary": 5}', "{" * 5, '{"summary": "cut', json.dumps(["summary"])):
        assert chunks.find_session(text) is None


def test_bottomless_nesting_gives_none():
    assert chunks.find_session('{"a":' * 5_000) is None
