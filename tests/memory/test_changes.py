from aether.memory.changes import joined
from aether.shapes import Change


def test_joined_changes_keep_their_order_by_document_and_file():
    one = Change({"a": [{"op": "remove", "path": "/x"}], "b": []}, {"events": [{"n": 1}]}, "one")
    two = Change({"a": [{"op": "remove", "path": "/y"}]}, {"events": [{"n": 2}], "history": [{"n": 3}]})

    change = joined(one, two, result="both")

    assert change.patches == {"a": [{"op": "remove", "path": "/x"}, {"op": "remove", "path": "/y"}]}
    assert change.appends == {"events": [{"n": 1}, {"n": 2}], "history": [{"n": 3}]}
    assert change.result == "both"


def test_joining_leaves_the_parts_as_they_are():
    one = Change({"a": [{"op": "remove", "path": "/x"}]}, {"events": [{"n": 1}]})

    joined(one, one)

    assert one == Change({"a": [{"op": "remove", "path": "/x"}]}, {"events": [{"n": 1}]})


def test_nothing_joined_is_no_change():
    assert joined() == Change({}, {}, None)
