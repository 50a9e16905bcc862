import json

from aether.messages import records
from aether.messages.records import decode_line, read_json_values
from tests.tables import rows


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
