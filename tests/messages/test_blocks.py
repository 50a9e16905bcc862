from aether.messages.model import (
    IMAGE,
    as_arguments,
    as_object,
    as_text,
    content_text,
    is_failure_text,
    parts,
    with_part,
)
from aether.messages.records import Record
from tests.tables import rows


def kinds(content):
    return [(part.kind, part.text) for _, part in parts(content)]


def test_content_may_be_a_string_a_list_or_nothing():
    assert kinds("hi") == [("text", "hi")]
    assert kinds(["hi", {"type": "text", "text": "there"}]) == [("text", "hi"), ("text", "there")]
    assert kinds(None) == []
    assert kinds({"type": "input_text", "text": "one block"}) == [("text", "one block")]


def test_what_is_no_block_is_left_out():
    assert (
        kinds([7, None, ["x"], {"type": "tool_reference"}, {"type": "text", "text": 3}, {"type": "thinking"}])
        == []
    )


def test_images_are_named_not_carried():
    assert kinds([{"type": "image", "source": {"data": "AAAA"}}]) == [("text", IMAGE)]
    assert content_text({"type": "image_url", "image_url": {"url": "data:"}}) == IMAGE


def test_calls_of_both_spellings_are_calls():
    calls = [
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}, "id": "t1"},
        {"type": "toolCall", "name": "bash", "arguments": {"command": "ls"}, "id": "t2"},
    ]

    assert [(part.tool, part.arguments, part.call_id) for _, part in parts(calls)] == [
        ("Bash", {"command": "ls"}, "t1"),
        ("bash", {"command": "ls"}, "t2"),
    ]


@rows(
    ("block", "text", "is_error"),
    [
        ({"content": "fine"}, "fine", False),
        ({"content": "Exit code 2\nno"}, "Exit code 2\nno", True),
        ({"content": "Error: quoted", "is_error": False}, "Error: quoted", False),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image"}], "is_error": True},
            f"a\n{IMAGE}",
            True,
        ),
        ({}, "", False),
    ],
)
def test_results_say_what_and_whether_they_failed(block, text, is_error):
    [(_, part)] = parts([{"type": "tool_result", "tool_use_id": "t", **block}])

    assert (part.text, part.is_error, part.call_id) == (text, is_error, "t")


def test_arguments_that_are_no_object_become_input():
    assert as_arguments('{"a": 1}') == {"a": 1}
    assert as_arguments("*** Begin Patch") == {"input": "*** Begin Patch"}
    assert as_arguments("[1]") == {"input": "[1]"}
    assert as_arguments(None) == as_arguments("") == {}


@rows(
    ("text", "answer"),
    [
        ("<returncode>1</returncode>", True),
        ("<returncode>0</returncode>", False),
        ("Process exited with code 127\nOutput:", True),
        ("Traceback (most recent call last):\n", True),
        ("errors are handled in main.py", False),
        ("", False),
    ],
)
def test_a_failure_announces_itself_at_the_head(text, answer):
    assert is_failure_text(text) is answer


def test_a_record_takes_over_what_a_part_says():
    [(_, call)] = parts({"type": "tool_use", "name": "Bash", "id": "t"})

    assert with_part(Record("system", line=3), call, "assistant")[:3] == ("call", "", "Bash")
    assert (as_text(3), as_object([])) == ("", {})
    assert content_text(3) == content_text({"text": 3}) == ""
