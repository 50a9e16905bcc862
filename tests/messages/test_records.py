import json
from collections import OrderedDict

from aether.messages import records
from aether.messages.model import (
    IMAGE,
    as_arguments,
    as_object,
    as_text,
    content_text,
    is_failure_text,
)
from aether.messages.records import (
    BadLine,
    Record,
    decode_line,
    ignore_bad_line,
    parts,
    put_bounded,
    read_json_values,
    with_part,
)
from tests.tables import rows


def test_a_record_needs_no_more_than_its_kind():
    assert Record("user").text == ""
    assert dict(Record("call").arguments) == {}


def test_the_oldest_is_forgotten_first():
    known = OrderedDict()

    for n in range(5):
        put_bounded(known, n, n, most=3)

    assert list(known) == [2, 3, 4]


def test_bad_lines_may_be_ignored():
    assert ignore_bad_line(BadLine(1, "torn")) is None


def read(text):
    bad = []
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    found = list(read_json_values(data.splitlines(keepends=True), on_bad=bad.append))
    return found, [line.line for line in bad]


def test_each_line_is_a_value_with_its_number():
    assert read('{"a": 1}\n\n{"b": 2}\n') == ([(1, {"a": 1}), (3, {"b": 2})], [])


def test_two_objects_on_one_line_are_both_read():
    assert read('{"a": 1}{"b": 2} {"c": 3}\n') == ([(1, {"a": 1}), (1, {"b": 2}), (1, {"c": 3})], [])


@rows("indent", [0, 1, 2])
def test_an_object_printed_over_many_lines_is_one_value(indent):
    value = {"messages": [{"role": "user", "content": 'a { b [ c " d'}], "n": [1, 2, {"x": []}]}

    found, bad = read(json.dumps(value, indent=indent))

    assert found == [(1, value)]
    assert bad == []


def test_lines_after_a_printed_object_are_read_as_well():
    found, bad = read('{\n "a": [\n  1\n ]\n}\n{"b": 2}\n')

    assert [value for _, value in found] == [{"a": [1]}, {"b": 2}]
    assert found[1][0] == 6
    assert bad == []


def test_values_around_bytes_without_text_are_read_and_the_line_is_reported():
    assert read('{"a": 1}\0\0{"b": 2}\n\0\0{"c": 3}\n{"d": "to\0\0{"e": 5}\n') == (
        [(1, {"a": 1}), (1, {"b": 2}), (2, {"c": 3}), (3, {"e": 5})],
        [1, 2, 3, 3],
    )


def test_a_torn_last_line_is_reported_and_the_rest_is_read():
    assert read('{"a": 1}\n{"b": "tor') == ([(1, {"a": 1})], [2])


def test_a_line_torn_between_brackets_does_not_swallow_what_follows():
    found, bad = read('{"a": {"b": \n{"c": 3}\n{"d": 4}{"e": 5}\nnot json\n')

    assert [value for _, value in found] == [{"c": 3}, {"d": 4}, {"e": 5}]
    assert bad == [1, 4]


def test_an_opening_bracket_draws_only_so_much_into_memory(monkeypatch):
    monkeypatch.setattr(records, "SPANNING_BYTES", 20)

    found, bad = read("[\n" + '{"a": "0123456789"}\n' * 4)

    assert [value for _, value in found] == [{"a": "0123456789"}] * 4
    assert bad == [1]


def test_a_good_object_before_a_broken_one_is_kept():
    assert read('{"a": 1}{"b": oops}\n') == ([(1, {"a": 1})], [1])


def test_nesting_beyond_the_parser_is_a_bad_line():
    assert read("[" * 100_000 + "]" * 100_000 + '\n{"a": 1}\n') == ([(2, {"a": 1})], [1])


def test_carriage_returns_and_a_byte_order_mark_are_no_part_of_a_line():
    assert decode_line(b"\xef\xbb\xbf{}\r\n", first=True) == "{}"


def test_bytes_that_are_no_utf8_do_not_stop_the_reading():
    found, bad = read(b'{"a": "\xff\xfe"}\n')

    assert found == [(1, {"a": "\ufffd\ufffd"})]
    assert bad == []


def test_large_numbers_and_lone_surrogates_come_through_exactly():
    found, _ = read('{"n": 123456789012345678901234567890, "s": "\\ud800\\u0000"}\n')

    assert found[0][1] == {"n": 123456789012345678901234567890, "s": "\ud800\0"}


def kinds(content):
    return [(part.kind, part.text) for _, part in parts(content)]


def test_content_may_be_a_string_a_list_or_nothing():
    assert kinds("hi") == [("text", "hi")]
    assert kinds(["hi", {"type": "text", "text": "there"}]) == [("text", "hi"), ("text", "there")]
    assert kinds(None) == []
    assert kinds({"type": "input_text", "text": "one block"}) == [("text", "one block")]


def test_values_that_are_not_blocks_are_left_out():
    assert (
        kinds([7, None, ["x"], {"type": "tool_reference"}, {"type": "text", "text": 3}, {"type": "thinking"}])
        == []
    )


def test_images_are_named_not_carried():
    assert kinds([{"type": "image", "source": {"data": "AAAA"}}]) == [("text", IMAGE)]
    assert content_text({"type": "image_url", "image_url": {"url": "data:"}}) == IMAGE


def test_calls_of_both_forms_are_read():
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


def test_a_record_gets_the_content_of_a_part():
    [(_, call)] = parts({"type": "tool_use", "name": "Bash", "id": "t"})

    assert with_part(Record("system", line=3), call, "assistant")[:3] == ("call", "", "Bash")
    assert (as_text(3), as_object([])) == ("", {})
    assert content_text(3) == content_text({"text": 3}) == ""
