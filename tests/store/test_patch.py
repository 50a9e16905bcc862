"""Patches and their inverses, joined changes, and merging two changes of one document."""

import pytest

from aether.errors import InvalidInput
from aether.schemas.check import schema
from aether.store.merge import merge, rules_of, value_at
from aether.store.patch import (
    apply,
    apply_with_inverse,
    chain_changes,
    diff,
    entry_id,
    get,
    join_changes,
    json_equal,
    keys_of,
    pointer,
)
from aether.types import Change
from tests.tables import rows


@rows(
    ("state", "operation", "expected"),
    [
        ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": 1}, {"op": "remove", "path": "/a"}, {}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": 1}, {"op": "replace", "path": "", "value": []}, []),
        ({"a": 1}, {"op": "add", "path": "", "value": 7}, 7),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
        ({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": 1, "b": 1}),
        ([1, 3], {"op": "add", "path": "/1", "value": 2}, [1, 2, 3]),
        ([1], {"op": "add", "path": "/-", "value": 2}, [1, 2]),
        ([1, 2], {"op": "remove", "path": "/0"}, [2]),
        ({"": {"~/": [0]}}, {"op": "replace", "path": "//~0~1/0", "value": 1}, {"": {"~/": [1]}}),
    ],
)
def test_each_operation_does_what_rfc_6902_says(state, operation, expected):
    assert apply(state, [operation]) == expected


@rows(
    ("state", "operation", "words"),
    [
        ({}, {"op": "remove", "path": "/a"}, "there is no 'a'"),
        ({}, {"op": "replace", "path": "/a", "value": 1}, "there is no 'a'"),
        ({}, {"op": "add", "path": "/a/b", "value": 1}, "there is no 'a'"),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, "holds nothing"),
        (1, {"op": "add", "path": "/a", "value": 1}, "holds nothing"),
        ({"a": 1}, {"op": "remove", "path": ""}, "whole document"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "holds 1, not True"),
        ([1], {"op": "add", "path": "/2", "value": 1}, "has 1 entries"),
        ([1], {"op": "remove", "path": "/1"}, "has 1 entries"),
        ([1], {"op": "remove", "path": "/-"}, "not a list index"),
        ([1], {"op": "remove", "path": "/00"}, "not a list index"),
        ([1], {"op": "remove", "path": "/+0"}, "not a list index"),
        ([1], {"op": "remove", "path": "/٠"}, "not a list index"),
        ([1], {"op": "remove", "path": "/"}, "not a list index"),
        ({}, {"op": "add", "path": "a", "value": 1}, "starts with '/'"),
        ({}, {"op": "add", "path": "/a"}, "'value' is missing"),
        ({}, {"op": "copy", "path": "/a"}, "'from' is missing"),
        ({}, {"op": "grow", "path": "/a"}, "not an RFC 6902 operation"),
        ({}, {"op": "add", "value": 1}, "not an RFC 6902 operation"),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}, "there is no 'a'"),
    ],
)
def test_an_impossible_operation_is_refused_with_its_reason(state, operation, words):
    with pytest.raises(InvalidInput, match=words.replace("+", r"\+")):
        apply(state, [operation])


def test_a_refused_patch_changes_nothing():
    state = {"a": [1]}

    with pytest.raises(InvalidInput):
        apply(state, [{"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/b"}])

    assert state == {"a": [1]}


def test_what_a_patch_does_not_touch_is_shared():
    state = {"large": [1] * 1000, "small": {"n": 1}}

    after = apply(state, [{"op": "replace", "path": "/small/n", "value": 2}])

    assert after["large"] is state["large"]
    assert state["small"] == {"n": 1}


def test_the_value_of_an_operation_is_not_changed_by_the_next_one():
    value = {"n": 1}

    apply({}, [{"op": "add", "path": "/a", "value": value}, {"op": "add", "path": "/a/n", "value": 2}])

    assert value == {"n": 1}


def test_what_was_moved_out_can_be_changed_elsewhere_without_changing_the_way_back():
    state = {"a": {"n": 1}}
    patch = [
        {"op": "replace", "path": "/a/n", "value": 2},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "replace", "path": "/b/n", "value": 3},
    ]

    after, inverse = apply_with_inverse(state, patch)

    assert after == {"b": {"n": 3}}
    assert apply(after, inverse) == state


def test_the_whole_document_can_be_copied_into_itself():
    patch = [{"op": "add", "path": "/-", "value": 1}, {"op": "copy", "from": "", "path": "/-"}]

    after, inverse = apply_with_inverse([], patch)

    assert after == [1, [1]]
    assert apply(after, inverse) == []


def test_a_pointer_names_any_key():
    keys = ["a/b", "~1", "", "0", "-"]

    assert keys_of(pointer(*keys)) == keys


def test_what_is_at_a_pointer_is_found():
    assert get({"a": [{"b": 1}]}, "/a/0/b") == 1


def test_nothing_at_a_pointer_is_refused():
    with pytest.raises(InvalidInput, match="there is no 'x'"):
        get({"a": 1}, "/x")


@rows(("one", "two"), [(1, True), (1, 1.0), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ("1", 1)])
def test_values_that_json_distinguishes_are_not_the_same(one, two):
    assert not json_equal(one, two)


def test_a_difference_follows_list_entries_by_their_id():
    before = [{"id": "a", "n": 1}, {"id": "b", "n": 1}]
    after = [{"id": "b", "n": 2}, {"id": "c", "n": 1}]

    assert diff(before, after) == [
        {"op": "remove", "path": "/0"},
        {"op": "replace", "path": "/0/n", "value": 2},
        {"op": "add", "path": "/-", "value": {"id": "c", "n": 1}},
    ]


def test_reordered_entries_are_replaced_as_a_whole():
    before, after = [{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "a"}]

    assert diff(before, after) == [{"op": "replace", "path": "", "value": after}]


def test_an_entry_is_known_by_its_id_or_link_id():
    assert [entry_id(entry) for entry in ({"id": "a"}, {"link_id": "b"}, {"id": 1}, "a")] == [
        "a",
        "b",
        None,
        None,
    ]


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


def test_a_list_that_was_not_there_before_loses_only_the_entries_that_came_with_it():
    first, both = [{"id": "a"}], [{"id": "a"}, {"id": "b"}]

    assert merge({"l": first}, {"l": both}, {}, {}) == ({"l": [{"id": "b"}]}, [])
    assert merge({"l": first}, {"l": [{"id": "a", "n": 2}]}, {}, {})[1] == [("l", "a")]
    # What was taken out meanwhile is elsewhere: nothing would be undone.
    assert (
        merge({"l": first}, {"l": []}, {}, {})[1]
        == merge({"l": first}, {"l": both[1:]}, {}, {})[1]
        == [("l",)]
    )


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


def test_what_is_at_a_place_is_found_by_ids():
    state = {"items": [{"id": "a", "n": [1]}]}

    assert value_at(state, ("items", "a", "n")) == [1]
    assert value_at(state, ("items", "b")) is None
    assert value_at(state, ("items", "a", "n", "x", "y")) is None


def test_joined_changes_keep_their_order_by_document_and_file():
    one = Change({"a": [{"op": "remove", "path": "/x"}], "b": []}, {"events": [{"n": 1}]}, "one")
    two = Change({"a": [{"op": "remove", "path": "/y"}]}, {"events": [{"n": 2}], "history": [{"n": 3}]})

    change = join_changes(one, two, result="both")

    assert change.patches == {"a": [{"op": "remove", "path": "/x"}, {"op": "remove", "path": "/y"}]}
    assert change.appends == {"events": [{"n": 1}, {"n": 2}], "history": [{"n": 3}]}
    assert change.result == "both"


def test_chained_steps_see_what_those_before_them_leave():
    documents = {"a": {"n": 1}, "b": {}}

    def double(state):
        value = state["a"]["n"] * 2
        return Change(
            {"a": [{"op": "replace", "path": "/n", "value": value}]}, {"events": [{"n": value}]}, value
        )

    change = chain_changes(documents, double, lambda _: Change({}), double)

    assert change.result == [2, None, 4]
    assert apply(documents["a"], change.patches["a"]) == {"n": 4}
    assert change.appends == {"events": [{"n": 2}, {"n": 4}]}
    assert documents == {"a": {"n": 1}, "b": {}}
