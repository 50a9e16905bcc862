"""Results: long texts in parts, and schemas without the words that no model needs."""

from __future__ import annotations

import pytest

from aether.errors import InvalidInput
from aether.mcp.results import RESULT_CHARS, as_json, minify, part_of
from tests.tables import rows


def test_the_parts_of_a_text_are_all_of_it_and_each_says_how_to_go_on():
    text = "".join(f"line {n}\n" for n in range(8_000))

    parts = []
    while not parts or "Go on with" in parts[-1]:
        parts.append(part_of(text, len(parts) + 1, ask="get the same"))

    assert len(parts) > 2
    assert "".join(part.rpartition("\n[part")[0] for part in parts) == text
    assert all(len(part) < RESULT_CHARS + 100 for part in parts)
    assert parts[0].endswith("Go on with get the same, part=2.]")
    assert parts[-1].endswith("This is the last.]")


def test_a_line_that_is_too_long_is_cut_in_the_middle():
    text = "x" * (RESULT_CHARS + 10)

    assert part_of(text, 2, ask="").startswith("x" * 10 + "\n")


@rows("part", [0, 2, -1])
def test_an_unknown_part_is_rejected(part):
    with pytest.raises(InvalidInput, match="Use 1 to 1"):
        part_of("short", part, ask="")


def test_values_are_written_for_people():
    assert as_json({"a": "ä"}) == '{\n  "a": "ä"\n}'


def made(value, known=""):
    schema = {"type": "object", "title": "Arguments", "properties": {"title": value}, "required": ["title"]}
    return minify(schema, {"title": known} if known else {})


def test_titles_go_and_a_property_of_that_name_stays():
    assert made({"type": "string", "title": "Title"}) == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }


def test_an_optional_argument_has_no_null():
    value = {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}], "default": None}

    assert made(value)["properties"]["title"] == {"type": "string", "enum": ["a"]}


def test_several_kinds_stay():
    value = {"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}], "default": None}

    assert made(value, "JSON")["properties"]["title"] == {
        "anyOf": [{"type": "object"}, {"type": "string"}],
        "description": "JSON",
    }


def test_a_default_that_says_something_stays():
    assert made({"type": "integer", "default": 10})["properties"]["title"] == {
        "type": "integer",
        "default": 10,
    }


def test_a_whole_schema_takes_the_place_of_the_generated_one():
    assert made({"type": "array"}, {"type": "array", "items": {}})["properties"]["title"] == {
        "type": "array",
        "items": {},
    }
    assert minify({"type": "object"}, {}) == {"type": "object", "properties": {}}
