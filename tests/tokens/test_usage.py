"""The correction is the median of the last reports about one model by one counter, within bounds."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from aether.errors import InvalidDocument, InvalidInput
from aether.paths import resource
from aether.tokens.models import (
    KEPT_REPORTS,
    LEAST_FACTOR,
    MOST_FACTOR,
    Reports,
    after,
    parsed,
    reported,
    written,
)
from tests.tables import rows


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


def test_only_the_last_reports_count():
    """So a model whose vocabulary changes under the same name is followed."""
    reports = Reports("estimate", (1.0,) * KEPT_REPORTS)
    for _ in range(KEPT_REPORTS // 2 + 1):
        reports = after(reports, "estimate", 1000, 1600)

    assert len(reports.ratios) == KEPT_REPORTS
    assert reports.factor == 1.6


@pytest.mark.parametrize(("tokens", "factor"), [(1, LEAST_FACTOR), (90_000, MOST_FACTOR)])
def test_a_correction_stays_within_bounds(tokens, factor):
    assert after(Reports("estimate"), "estimate", 1000, tokens).factor == factor


def test_nothing_reported_corrects_nothing():
    assert Reports("estimate").factor == 1.0


def test_a_small_request_says_nothing():
    reports = Reports("estimate", (1.3,))

    assert after(reports, "estimate", 199, 900) is reports


def test_reports_by_another_counter_are_not_carried_over():
    assert after(Reports("estimate", (1.6,) * 9), "o200k_base", 1000, 1200) == Reports("o200k_base", (1.2,))


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
def test_what_reports_no_input_tokens_is_refused(usage):
    with pytest.raises(InvalidInput, match="reports no input tokens"):
        reported(usage)


def test_reports_are_written_as_their_schema_says_and_read_back():
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
        {"models": {"a": {"counter": "estimate", "ratios": [float("inf")]}}},
        {"models": {"a": {"counter": "estimate", "ratios": [], "before": "1"}}},
    ],
)  # fmt: skip
def test_what_is_no_file_of_reports_is_refused_with_its_name(value):
    with pytest.raises(InvalidDocument, match=r"usage\.json: .* Remove it"):
        parsed(value, where="usage.json")
