"""Lean schemas: nothing that a model needs is lost, and nothing else is kept."""

from __future__ import annotations

from aether.integrations.mcp_server.results import minify


def made(value, known=""):
    schema = {"type": "object", "title": "Arguments", "properties": {"title": value}, "required": ["title"]}
    return minify(schema, {"title": known} if known else {})


def test_titles_go_and_a_property_of_that_name_stays():
    assert made({"type": "string", "title": "Title"}) == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }


def test_what_may_be_left_out_is_not_said_to_be_null():
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
