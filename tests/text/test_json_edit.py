"""Edits of one place of a JSON file."""

from __future__ import annotations

import json

import pytest

from aether.text.json_edit import add, drop, drop_key, parse, put
from tests.tables import rows

LINES = '{\n    "a": 1,\n    "b": [\n        2\n    ]\n}\n'


def test_an_addition_follows_the_style_of_the_file():
    assert add(LINES, (), [("c", {"d": [3]})]) == (
        '{\n    "a": 1,\n    "b": [\n        2\n    ],\n    "c": {\n        "d": [\n            3\n        ]\n    }\n}\n'
    )
    assert add(LINES, ("b",), [(None, 3), (None, 4)]) == LINES.replace("2\n", "2,\n        3,\n        4\n")


def test_a_text_on_one_line_stays_on_one():
    assert add('{"a":{}}', ("a",), [("b", [1, {"c": None}])]) == '{"a":{"b": [1, {"c": null}]}}'
    assert add("[1]", (), [(None, 2)]) == "[1, 2]"


def test_line_ends_of_windows_and_tabs_stay():
    text = '{\r\n\t"a": []\r\n}\r\n'

    assert add(text, ("a",), [(None, {"b": 1})]) == (
        '{\r\n\t"a": [\r\n\t\t{\r\n\t\t\t"b": 1\r\n\t\t}\r\n\t]\r\n}\r\n'
    )


def test_a_part_is_dropped_with_its_comma():
    assert drop(LINES, (), 0) == '{\n    "b": [\n        2\n    ]\n}\n'
    assert drop(LINES, (), 1) == '{\n    "a": 1\n}\n'
    assert drop_key('{"only": 1 }', (), "only") == "{}"
    assert drop("[1 , 2 , 3]", (), 1) == "[1 , 3]"


def test_dropping_an_addition_restores_the_text():
    assert drop_key(add(LINES, (), [("c", 3)]), (), "c") == LINES


def test_a_value_is_replaced_in_place():
    assert put(LINES, ("b", 0), {"x": 1}) == LINES.replace("2\n", '{\n            "x": 1\n        }\n')


def test_strings_may_contain_brackets_and_commas():
    text = '{"a}\\"]": ["{,", "\\\\"], "b": 1}'

    assert json.loads(put(text, ["b"], 2)) == {'a}"]': ["{,", "\\"], "b": 2}


@rows(
    "text",
    [
        "",
        "{",
        '{"a": 1,}',
        "// note\n{}",
        "{'a': 1}",
        '{"a": NaN}',
        "[" * 100_000 + "]" * 100_000,
        "[" * 600 + "]" * 600,
    ],
)
def test_invalid_json_is_refused(text):
    with pytest.raises(ValueError):
        parse(text)


def test_many_brackets_side_by_side_are_no_depth():
    text = f"[{', '.join(['[]'] * 500)}]"

    assert parse(text) == [[]] * 500
