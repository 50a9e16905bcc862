"""Model profiles: the shipped ones, the user's own, and what is assumed of the rest."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from aether.errors import InvalidDocument
from aether.messages.model import PROVIDER_FORMATS
from aether.paths import resource
from aether.tokens import models
from aether.tokens.counters import EXACT
from aether.tokens.models import UNKNOWN_WINDOW, Entry, entries, finding, profile
from tests.tables import rows

SCHEMA = json.loads(resource("data/schemas/models.schema.json").read_bytes())


@rows(
    ("model", "window"),
    [
        ("claude-opus-5-5", 1_000_000),
        ("claude-fable-5-2", 1_000_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("gpt-6.1-sol", 922_000),
        ("gpt-5.4-mini", 272_000),
        ("gpt-5.6-sol", 922_000),
        ("gpt-5.1-codex", 272_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4-0613", 8_192),
        ("gpt-4", 8_192),
        ("o3-mini", 200_000),
        ("gemini-2.5-pro", 1_048_576),
    ],
)
def test_widely_used_models_have_their_window(model, window):
    found = profile(model)

    assert (found.model, found.window, found.known) == (model, window, True)
    assert finding(found) is None


@rows(
    "name",
    [
        "anthropic/claude-opus-4-5", "openrouter/anthropic/claude-opus-4-5", "us.anthropic.claude-opus-4-5-v1:0",
        "Claude-Opus-4-5", "anthropic:claude-opus-4-5",
    ],
)  # fmt: skip
def test_routers_and_clouds_may_put_words_before_the_name(name):
    assert profile(name).window == 200_000
    assert profile(name).known


def test_newer_claude_models_have_more_tokens_than_older_ones():
    """Their vocabulary differs, so a factor is never carried from one to the other."""
    assert profile("claude-opus-4-7").factor > profile("claude-opus-4-6").factor > 1


@rows("model", ["home-made", "llama3.1:8b", ""])
def test_an_unknown_model_gets_a_window_that_is_safe_and_a_finding(model):
    found = profile(model)
    told = finding(found)

    assert (found.window, found.known) == (UNKNOWN_WINDOW, False)
    assert told is not None
    assert (told.code, told.where) == ("unknown-model", model)
    assert "8192" in told.message


def test_no_listed_model_has_a_smaller_window_than_an_unknown_one():
    assert min(entry.window for entry in models.shipped()) == UNKNOWN_WINDOW


def test_a_new_member_of_a_known_family_is_assumed_to_be_like_it_and_said_so():
    told = finding(profile("claude-verse-9"))

    assert told is not None
    assert "200000 tokens are assumed, like claude-*" in told.message


def test_own_entries_come_first():
    own = (Entry("gpt-4o", 64_000), Entry("llama*", 32_768))

    assert profile("gpt-4o", own=own).window == 64_000
    assert profile("gpt-4o-mini", own=own).window == 128_000
    assert profile("Llama3.1:8b", own=own) == profile("Llama3.1:8b")._replace(
        match="llama*", window=32_768, known=True
    )


def test_the_shipped_file_fits_its_schema_and_every_entry_can_be_reached():
    value = json.loads(resource("data/models.json").read_bytes())

    assert list(Draft202012Validator(SCHEMA).iter_errors(value)) == []
    for entry in models.shipped():
        example = entry.match.replace("*", "0").replace("[678]", "7").replace("[78]", "7")
        example = example.replace("[456]", "5").replace("[134]", "3")
        assert profile(example).match == entry.match, f"{entry.match} is hidden by an earlier pattern"


def test_the_schema_and_the_code_agree():
    properties = SCHEMA["properties"]["models"]["items"]["properties"]

    assert tuple(sorted(properties)) == tuple(sorted(Entry._fields))
    assert {
        key: field["default"] for key, field in properties.items() if "default" in field
    } == Entry._field_defaults
    assert tuple(properties["wire"]["enum"]) == PROVIDER_FORMATS
    assert all(entry.counter in ("estimate", *EXACT) for entry in models.shipped())


@rows(
    ("value", "where"),
    [
        ([], "own.json::$"),
        ({"model": []}, "own.json::$.model"),
        ({"schema_version": 2}, "own.json::$.schema_version"),
        ({"models": {}}, "own.json::$.models"),
        ({"models": [7]}, "own.json::$.models[0]"),
        ({"models": [{"match": "a", "window": 9}, {"match": "b"}]}, "own.json::$.models[1]"),
        ({"models": [{"match": "a", "windwo": 9}]}, "own.json::$.models[0].windwo"),
        ({"models": [{"match": "", "window": 9}]}, "own.json::$.models[0].match"),
        ({"models": [{"match": "a", "window": 0}]}, "own.json::$.models[0].window"),
        ({"models": [{"match": "a", "window": True}]}, "own.json::$.models[0].window"),
        ({"models": [{"match": "a", "window": 9.5}]}, "own.json::$.models[0].window"),
        ({"models": [{"match": "a", "window": 9, "output": -1}]}, "own.json::$.models[0].output"),
        ({"models": [{"match": "a", "window": 9, "factor": 0}]}, "own.json::$.models[0].factor"),
        ({"models": [{"match": "a", "window": 9, "factor": "1"}]}, "own.json::$.models[0].factor"),
        ({"models": [{"match": "a", "window": 9, "wire": "xml"}]}, "own.json::$.models[0].wire"),
        ({"models": [{"match": "a", "window": 9, "counter": "words"}]}, "own.json::$.models[0].counter"),
        ({"models": [{"match": "a", "window": 9, "assumed": 1}]}, "own.json::$.models[0].assumed"),
    ],
)
def test_a_mistake_is_refused_with_its_path(value, where):
    with pytest.raises(InvalidDocument) as caught:
        entries(value, where="own.json")

    assert caught.value.where == where


def test_what_the_code_takes_the_schema_takes():
    value = {"models": [{"match": "Mine*", "window": 9, "factor": 2, "wire": "plain"}]}

    assert list(Draft202012Validator(SCHEMA).iter_errors(value)) == []
    assert entries(value, where="own.json") == (Entry("mine*", 9, factor=2.0, wire="plain"),)


def test_a_file_that_is_not_json_is_said_to_be_none(tmp_path):
    path = tmp_path / "models.json"
    path.write_bytes(b"{")

    with pytest.raises(InvalidDocument, match="not JSON"):
        models.read(path)
