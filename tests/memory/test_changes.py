from aether.store.patch import apply, chain_changes, join_changes
from aether.types import Change


def test_joined_changes_keep_their_order_by_document_and_file():
    one = Change({"a": [{"op": "remove", "path": "/x"}], "b": []}, {"events": [{"n": 1}]}, "one")
    two = Change({"a": [{"op": "remove", "path": "/y"}]}, {"events": [{"n": 2}], "history": [{"n": 3}]})

    change = join_changes(one, two, result="both")

    assert change.patches == {"a": [{"op": "remove", "path": "/x"}, {"op": "remove", "path": "/y"}]}
    assert change.appends == {"events": [{"n": 1}, {"n": 2}], "history": [{"n": 3}]}
    assert change.result == "both"


def test_joining_leaves_the_parts_as_they_are():
    one = Change({"a": [{"op": "remove", "path": "/x"}]}, {"events": [{"n": 1}]})

    join_changes(one, one)

    assert one == Change({"a": [{"op": "remove", "path": "/x"}]}, {"events": [{"n": 1}]})


def test_nothing_joined_is_no_change():
    assert join_changes() == Change({}, {}, None)


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


def test_nothing_chained_is_no_change():
    assert chain_changes({}) == Change({}, {}, [])
