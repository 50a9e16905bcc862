"""Profiles of models, and the factors learned from usage."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from aether.errors import InvalidDocument, InvalidInput
from aether.messages.model import PROVIDER_FORMATS
from aether.paths import resource
from aether.tokens import models
from aether.tokens.counters import EXACT
from aether.tokens.models import (
    KEPT_REPORTS,
    LEAST_FACTOR,
    MOST_FACTOR,
    UNKNOWN_WINDOW,
    Entry,
    Reports,
    after,
    finding,
    parsed,
    profile,
    reported,
    written,
)
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
    warning = finding(found)

    assert (found.window, found.known) == (UNKNOWN_WINDOW, False)
    assert warning is not None
    assert (warning.code, warning.where) == ("unknown-model", model)
    assert "8192" in warning.message


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
        example = example.replace("[[]", "[").replace("[0-9]", "1").replace("[5-9]", "5").replace("[.-]", ".")
        example = (
            example.replace("[.p]", ".").replace("[123]", "1").replace("[456]", "5").replace("[134]", "3")
        )
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
        ({"model": []}, "own.json::$"),
        ({"schema_version": 2, "models": []}, "own.json::$.schema_version"),
        ({"models": {}}, "own.json::$.models"),
        ({"models": [7]}, "own.json::$.models[0]"),
        ({"models": [{"match": "a", "window": 9}, {"match": "b"}]}, "own.json::$.models[1]"),
        ({"models": [{"match": "a", "windwo": 9}]}, "own.json::$.models[0]"),
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
def test_a_mistake_is_refused_with_its_path(value, where, tmp_path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps(value))

    with pytest.raises(InvalidDocument) as caught:
        models.read(path)

    assert caught.value.where == f"{tmp_path}/{where}"


def test_own_entries_and_limits_are_read(tmp_path):
    path = tmp_path / "models.json"
    models_ = [{"match": "Mine*", "window": 9, "factor": 2, "wire": "plain"}]
    path.write_text(json.dumps({"models": models_, "context_profiles": {"100": 80}}))

    own = models.read(path)

    assert own == ((Entry("mine*", 9, factor=2.0, wire="plain"),), {100: 80})


def test_a_file_that_is_not_json_is_rejected(tmp_path):
    path = tmp_path / "models.json"
    path.write_bytes(b"{")

    with pytest.raises(InvalidDocument, match="not JSON"):
        models.read(path)


def test_one_odd_report_moves_nothing():
    reports = Reports("estimate")
    for tokens in (1300, 1310, 2900, 1290, 1305):
        reports = after(reports, "estimate", 1000, tokens)

    assert reports.factor == 1.3


def test_a_correction_moves_only_when_the_reports_have():
    """A new factor has every message of every conversation counted anew, so noise must not make one."""
    reports = Reports("estimate")
    noisy = [1300, 1290, 1320, 1310, 1284, 1316] * 6
    factors = []
    for tokens in noisy:
        reports = after(reports, "estimate", 1000, tokens)
        factors.append(reports.factor)
    assert factors == [1.3] * len(noisy)

    for _ in range(KEPT_REPORTS):
        reports = after(reports, "estimate", 1000, 1400)
    assert reports.factor == 1.4


@pytest.mark.parametrize(("tokens", "factor"), [(1, LEAST_FACTOR), (90_000, MOST_FACTOR)])
def test_a_correction_stays_within_bounds(tokens, factor):
    assert after(Reports("estimate"), "estimate", 1000, tokens).factor == factor


def test_a_report_of_a_small_request_is_ignored():
    reports = Reports("estimate", (1.3,))

    assert after(reports, "estimate", 199, 900) is reports


@rows(
    ("usage", "tokens"),
    [
        (900, 900),
        ({"input_tokens": 12, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 800, "output_tokens": 5}, 912),
        ({"input_tokens": 12, "cache_creation_input_tokens": None, "cache_read_input_tokens": None}, 12),
        ({"input_tokens": 900, "input_tokens_details": {"cached_tokens": 800}}, 900),
        ({"prompt_tokens": 900, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 800}}, 900),
        ({"promptTokenCount": 900, "cachedContentTokenCount": 800}, 900),
        ({"prompt_token_count": 900}, 900),
        ({"prompt_eval_count": 900, "eval_count": 5}, 900),
    ],
)  # fmt: skip
def test_cached_tokens_are_input_tokens_too(usage, tokens):
    assert reported(usage) == tokens


@rows("usage", [0, -1, True, 1.5, {}, {"output_tokens": 7}, {"input_tokens": "9"}, None])
def test_usage_without_input_tokens_is_rejected(usage):
    with pytest.raises(InvalidInput, match="reports no input tokens"):
        reported(usage)


def test_written_reports_fit_their_schema_and_are_read_back():
    schema = json.loads(resource("data/schemas/usage.schema.json").read_bytes())
    reports = {"b": Reports("estimate", (1.25, 1.3), 1.25), "a": Reports("o200k_base")}

    value = written(reports)

    assert list(Draft202012Validator(schema).iter_errors(value)) == []
    assert (
        schema["properties"]["models"]["additionalProperties"]["properties"]["ratios"]["maxItems"]
        == KEPT_REPORTS
    )
    assert parsed(value, where="usage.json") == reports


@rows(
    "value",
    [
        [], {}, {"models": []}, {"models": {"a": []}}, {"models": {"a": {"counter": 7, "ratios": []}}},
        {"models": {"a": {"counter": "estimate", "ratios": 1.0}}},
        {"models": {"a": {"counter": "estimate", "ratios": ["1"]}}},
        {"models": {"a": {"counter": "estimate", "ratios": [-1]}}},
        {"models": {"a": {"counter": "estimate", "ratios": [], "before": "1"}}},
    ],
)  # fmt: skip
def test_an_invalid_file_of_reports_is_rejected_with_its_name(value):
    with pytest.raises(InvalidDocument, match=r"usage\.json: .* Remove it"):
        parsed(value, where="usage.json")


@rows(("model", "window"), [
    ("deepseek-chat", 128_000), ("deepseek/deepseek-reasoner", 128_000), ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 262_144),
    ("qwen2.5-7b-instruct", 32_768), ("moonshotai/kimi-k2-0905", 262_144), ("kimi-latest", 131_072), ("x-ai/grok-4", 256_000),
    ("grok-4-fast-reasoning", 2_000_000), ("grok-3-mini", 131_072), ("mistral-large-latest", 131_072),
    ("mistralai/Mistral-7B-Instruct-v0.3", 32_768), ("codestral-2508", 256_000), ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
    ("accounts/fireworks/models/llama-v3p1-8b-instruct", 131_072), ("llama3.2", 131_072), ("qwen3:latest", UNKNOWN_WINDOW),
    ("claude-sonnet-4-5[1m]", 1_000_000), ("sonnet[1m]", UNKNOWN_WINDOW), ("claude-sonnet-4-5", 200_000),
])  # fmt: skip
def test_common_open_families_and_long_windows_are_known(model, window):
    found = profile(model)

    assert found.window == window
    assert (models.finding(found) is None) == (window != UNKNOWN_WINDOW)
