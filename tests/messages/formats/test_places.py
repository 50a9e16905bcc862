from aether.messages.content import is_text_block, replaced, value_at, with_only_text
from tests.tables import rows


def test_a_value_deep_inside_is_found_and_replaced_in_a_copy():
    raw = {"content": [{"text": "a"}, {"text": "b"}], "id": 1}

    new = replaced(raw, ("content", 1, "text"), "c")

    assert value_at(new, ("content", 1, "text")) == "c"
    assert new == {"content": [{"text": "a"}, {"text": "c"}], "id": 1}
    assert raw["content"][1] == {"text": "b"}
    assert new["content"][0] is raw["content"][0]


def test_a_list_says_a_new_text_once_and_keeps_what_is_no_text():
    listed = [{"type": "image"}, {"type": "text", "text": "a", "x": 1}, 3, {"text": "b"}]

    assert with_only_text(listed, "new") == [{"type": "image"}, {"type": "text", "text": "new", "x": 1}, 3]


@rows(
    ("block", "told"),
    [
        ({"type": "text", "text": "a"}, True),
        ({"text": "a"}, True),
        ({"type": "input_text", "text": "a"}, True),
        ({"type": "text"}, False),
        ({"type": "search_result", "text": "a"}, False),
        ({"type": ["text"], "text": "a"}, True),
        ("a", False),
    ],
)
def test_text_is_told_from_other_blocks(block, told):
    assert is_text_block(block) is told
