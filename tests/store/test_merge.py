import pytest

from aether.schemas.check import schema
from aether.store.merge import merge, rules_of, value_at
from tests.tables import rows


def test_only_their_change_holds():
    assert merge({"a": 1}, {"a": 2}, {"a": 1}, {}) == ({"a": 2}, [])


def test_only_our_change_holds():
    assert merge({"a": 1}, {"a": 1}, {"a": 2}, {}) == ({"a": 2}, [])


def test_the_same_change_twice_is_one_change():
    assert merge({"a": 1}, {"a": 2}, {"a": 2}, {}) == ({"a": 2}, [])


@rows("both", [[1, 2], {"a": [1]}, 7, None, [{"id": "b"}]])
def test_what_both_sides_agree_on_is_no_conflict(both):
    assert merge({"l": "old"}, {"l": both}, {"l": both}, {}) == ({"l": both}, [])


def test_changes_of_different_members_are_both_kept():
    assert merge({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2, "c": 3}, {})[0] == {
        "a": 2,
        "b": 2,
        "c": 3,
    }


def test_two_changes_of_one_place_are_a_conflict_named_by_ids():
    merged, conflicts = merge([{"id": "x", "n": 1}], [{"id": "x", "n": 2}], [{"id": "x", "n": 3}], {})

    assert conflicts == [("x", "n")]
    assert merged == [{"id": "x", "n": 2}]


def test_a_list_that_grew_on_both_sides_keeps_both():
    base = [{"id": "a"}]
    now, wanted = [{"id": "a"}, {"id": "b"}], [{"id": "c"}, {"id": "a"}, {"id": "d"}]

    assert merge(base, now, wanted, {}) == ([{"id": "c"}, {"id": "a"}, {"id": "d"}, {"id": "b"}], [])


def test_an_entry_removed_here_and_changed_there_is_a_conflict():
    assert merge([{"id": "a", "n": 1}], [{"id": "a", "n": 2}], [], {})[1] == [("a",)]
    assert merge([{"id": "a", "n": 1}], [], [{"id": "a", "n": 2}], {})[1] == [("a",)]


def test_lists_without_ids_that_both_changed_are_a_conflict():
    assert merge({"l": [1]}, {"l": [1, 2]}, {"l": [0, 1]}, {})[1] == [("l",)]


def test_entries_with_the_same_id_twice_are_not_followed():
    double = [{"id": "a"}, {"id": "a"}]

    assert merge([], double, [{"id": "b"}], {})[1] == [()]


@pytest.mark.parametrize("kind", [int, float])
def test_both_differences_of_a_counter_count(kind):
    assert merge({"n": kind(10)}, {"n": kind(15)}, {"n": kind(8)}, {("n",): "sum"}) == ({"n": kind(13)}, [])


def test_two_equal_differences_of_a_counter_are_two_differences():
    rules = {("part", "n"): "sum"}

    assert merge({"part": {"n": 2}}, {"part": {"n": 3}}, {"part": {"n": 3}}, rules) == (
        {"part": {"n": 4}},
        [],
    )


def test_a_counter_that_is_no_number_any_more_is_a_conflict():
    assert merge({"n": 1}, {"n": 2}, {"n": "3"}, {("n",): "sum"})[1] == [("n",)]


def test_bookkeeping_of_reads_stays_as_it_is_now():
    rules = {("*", "seen"): "touch"}

    assert merge([{"id": "a", "seen": 1}], [{"id": "a", "seen": 5}], [{"id": "a", "seen": 2}], rules) == (
        [{"id": "a", "seen": 5}],
        [],
    )


def test_an_entry_that_was_only_read_since_may_still_go():
    rules = {("*", "meta", "seen"): "touch"}
    base, now = [{"id": "a", "meta": {"seen": 1, "tags": []}}], [{"id": "a", "meta": {"seen": 5, "tags": []}}]

    assert merge(base, now, [], rules) == ([], [])


def test_the_rules_of_a_schema_are_found_through_references():
    rules = rules_of(schema("memory"))

    assert rules["working_memory", "current_tokens"] == "sum"
    assert rules["working_memory", "items", "*", "metadata", "access_count"] == "touch"


def test_a_schema_that_refers_to_itself_ends():
    assert rules_of({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}}}) == {}


def test_what_stands_at_a_place_is_found_by_ids():
    state = {"items": [{"id": "a", "n": [1]}]}

    assert value_at(state, ("items", "a", "n")) == [1]
    assert value_at(state, ("items", "b")) is None
    assert value_at(state, ("items", "a", "n", "x", "y")) is None
