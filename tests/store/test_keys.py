"""The table of keys: what each one says, its rules, and the words in which a broken one is refused."""

from __future__ import annotations

from typing import get_args

import pytest

from aether.compaction.shapes import Step, Strategy
from aether.errors import InvalidInput
from aether.store.keys import FIELDS, KEYS, NAMES, STEPS, STRATEGIES, Config, check_value


def test_a_broken_value_is_refused_with_its_path_and_its_default():
    with pytest.raises(InvalidInput) as caught:
        check_value(KEYS["policy.trigger_pct"], 1.5)

    assert str(caught.value) == (
        "policy.trigger_pct must be in range (0.0, 1.0], got 1.5. "
        "The default is 0.85: share of the window from which on a conversation is compacted."
    )


def test_whole_numbers_stand_for_numbers_and_lists_for_tuples():
    assert check_value(KEYS["summarizer.timeout"], 3) == 3.0
    assert check_value(KEYS["policy.protected_labels"], ["a", "b"]) == ("a", "b")
    with pytest.raises(InvalidInput, match="must be a list of texts"):
        check_value(KEYS["policy.protected_labels"], ["a", 1])


def test_every_key_has_variables_of_its_own_and_one_line_of_meaning():
    variables = [name for key in KEYS.values() for name in key.env]

    assert len(set(variables)) == len(variables)
    assert all(key.env and key.meaning and not key.meaning.endswith(".") for key in KEYS.values())
    assert "AETHER_MODEL" not in variables  # the model of a backend has that
    required = (
        "MODEL MAX_CONTEXT_TOKENS TRIGGER_PCT HARD_CAP_BUFFER KEEP_RECENT_TURNS KEEP_TOOL_IO_PAIRS STRATEGY"
    )
    required += " ARIADNE_URL TELEMETRY_ENABLED STORAGE_ADAPTER STORAGE_BUCKET STORAGE_PREFIX"
    assert {f"COMPACT_{name}" for name in required.split()} <= set(variables)


def test_every_default_keeps_its_own_rule():
    assert all(check_value(key, key.default) == key.default for key in KEYS.values())
    assert {FIELDS[path]: KEYS[path].default for path in FIELDS} == Config()._asdict()


def test_a_name_in_a_file_means_one_key():
    assert sum(1 + len(key.also) for key in KEYS.values()) == len(NAMES)


def test_the_names_of_steps_and_strategies_are_those_of_a_policy():
    assert set(STEPS) == set(get_args(Step))
    assert get_args(Strategy) == STRATEGIES


def test_authority_is_marked():
    """Programs, servers, exporters, paths, and protections that can be turned off."""
    assert {path for path, key in KEYS.items() if key.authority} == {
        "architect.default", "architect.model", "architect.base_url", "summarizer.backend", "summarizer.model",
        "storage.enabled", "storage.adapter", "storage.path", "storage.bucket", "storage.prefix", "storage.kms_key_id",
        "telemetry.enabled", "telemetry.exporter", "telemetry.path", "telemetry.ariadne_url", "telemetry.otlp_url",
        "telemetry.content", "redaction.enabled",
    }  # fmt: skip
