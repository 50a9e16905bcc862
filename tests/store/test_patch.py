import pytest

from aether.errors import InvalidInput
from aether.store.patch import apply, apply_with_inverse, diff, entry_id, get, json_equal, keys_of, pointer
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


def test_what_stands_at_a_pointer_is_found():
    assert get({"a": [{"b": 1}]}, "/a/0/b") == 1


def test_nothing_at_a_pointer_is_refused():
    with pytest.raises(InvalidInput, match="there is no 'x'"):
        get({"a": 1}, "/x")


@rows(("one", "two"), [(1, True), (1, 1.0), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ("1", 1)])
def test_values_that_json_tells_apart_are_not_the_same(one, two):
    assert not json_equal(one, two)


def test_a_difference_follows_list_entries_by_their_id():
    before = [{"id": "a", "n": 1}, {"id": "b", "n": 1}]
    after = [{"id": "b", "n": 2}, {"id": "c", "n": 1}]

    assert diff(before, after) == [
        {"op": "remove", "path": "/0"},
        {"op": "replace", "path": "/0/n", "value": 2},
        {"op": "add", "path": "/1", "value": {"id": "c", "n": 1}},
    ]


def test_reordered_entries_are_replaced_as_a_whole():
    before, after = [{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "a"}]

    assert diff(before, after) == [{"op": "replace", "path": "", "value": after}]


def test_equal_values_need_no_patch():
    assert diff({"a": [1, {"id": "x"}]}, {"a": [1, {"id": "x"}]}) == []


def test_an_entry_is_known_by_its_id_or_link_id():
    assert [entry_id(entry) for entry in ({"id": "a"}, {"link_id": "b"}, {"id": 1}, "a")] == [
        "a",
        "b",
        None,
        None,
    ]
