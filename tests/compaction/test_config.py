"""The table of settings: its rules, and the words in which a broken one is refused."""

from __future__ import annotations

import math

import pytest

from aether.backends import backend
from aether.compaction.config import BACKENDS, KEYS, CompactConfig, CompactPolicy, typed
from aether.compaction.shapes import Policy
from aether.errors import InvalidInput
from tests.tables import rows


@rows(
    ("given", "words"),
    [
        ({"trigger_pct": 1.5}, r"trigger_pct must be in range \(0.0, 1.0\], got 1.5"),
        ({"trigger_pct": 0.0}, r"trigger_pct must be in range \(0.0, 1.0\], got 0.0"),
        ({"trigger_pct": math.nan}, r"trigger_pct must be in range \(0.0, 1.0\], got nan"),
        ({"trigger_pct": True}, "trigger_pct must be a number, got True"),
        ({"target_pct": 1.0}, r"target_pct must be in range \[0.0, 1.0\)"),
        ({"target_pct": 0.85}, r"target_pct must be below trigger_pct \(0.85\), got 0.85"),
        ({"hard_cap_buffer": -1}, "hard_cap_buffer must be >= 0, got -1"),
        ({"keep_recent_turns": 0}, "keep_recent_turns must be >= 1, got 0"),
        ({"keep_recent_turns": 1.5}, "keep_recent_turns must be a whole number, got 1.5"),
        ({"keep_tool_io_pairs": 0}, "keep_tool_io_pairs must be >= 1"),
        ({"roles_never_prune": ("robot",)}, "roles_never_prune must be a list of system, developer"),
        ({"roles_never_prune": "system"}, "roles_never_prune must be a list of texts"),
        ({"protected_flag": " "}, "protected_flag must not be empty"),
        ({"strategy": "nonsense"}, "strategy must be one of task_state, brief.*got 'nonsense'"),
        ({"steps": ("summarise", "dream")}, "steps must be a list of .*'dream'"),
    ],
)
def test_a_policy_out_of_range_is_refused_by_field(given, words):
    with pytest.raises(InvalidInput, match=words):
        CompactPolicy(**given)


@rows(
    ("given", "words"),
    [
        ({"model": ""}, "model must not be empty, got ''"),
        ({"max_context_tokens": 999}, "max_context_tokens must be >= 1000, got 999"),
        ({"max_context_tokens": 1500}, r"policy.hard_cap_buffer must be below max_context_tokens \(1500\), got 1500"),
        ({"telemetry_exporter": "pigeon"}, "telemetry_exporter must be one of console, file"),
        ({"telemetry_exporter": "file"}, "telemetry.path must not be empty with the exporter file"),
        ({"ariadne_url": "nonsense"}, r"ariadne_url must be the address of a server such as http://localhost"),
        ({"otlp_url": "ftp://x"}, "otlp_url must be the address of a server"),
        ({"summarizer_backend": "nope"}, "summarizer_backend must be one of extractive, .*command:PROGRAM, got 'nope'"),
        ({"summarizer_backend": "command:"}, "summarizer_backend must be one of"),
        ({"summarizer_backend": "openai:gpt"}, "summarizer_backend must be one of"),
        ({"summarization_timeout": 1e308}, "summarization_timeout must be > 0 and at most 3600"),
        ({"storage_adapter": "ftp"}, "storage_adapter must be one of fs, s3, none"),
        ({"storage_adapter": "s3"}, "storage.bucket must not be empty"),
        ({"redaction_patterns": ("a", "(")}, r"redaction_patterns must be a list of regular expressions \(redaction.patterns\[1\]: '\('"),
        ({"redaction_patterns": ("a*",)}, "matches the empty text"),
        ({"summarization_timeout": 0.0}, "summarization_timeout must be > 0"),
        ({"summarization_timeout": math.inf}, "summarization_timeout must be > 0"),
    ],
)  # fmt: skip
def test_a_configuration_out_of_range_is_refused_by_field(given, words):
    with pytest.raises(ValueError, match=words):
        CompactConfig(**given)


def test_a_broken_value_is_refused_with_its_path_and_its_default():
    with pytest.raises(InvalidInput) as caught:
        typed(KEYS["policy.trigger_pct"], 1.5, where="compact.yaml")

    assert str(caught.value) == (
        "compact.yaml: policy.trigger_pct must be in range (0.0, 1.0], got 1.5. "
        "The default is 0.85: share of the window from which on a conversation is compacted."
    )


def test_whole_numbers_stand_for_numbers_and_lists_for_tuples():
    assert typed(KEYS["summarizer.timeout"], 3) == 3.0
    assert typed(KEYS["policy.protected_labels"], ["a", "b"]) == ("a", "b")
    with pytest.raises(InvalidInput, match="must be a list of texts"):
        typed(KEYS["policy.protected_labels"], ["a", 1])


def test_the_defaults_are_those_of_the_requirement():
    config = CompactConfig()

    assert (config.model, config.max_context_tokens) == ("gpt-4", 128_000)
    assert config.policy.policy() == Policy()
    assert (config.telemetry_enabled, config.storage_enabled, config.redaction_enabled) == (True, True, True)


def test_every_field_of_the_policy_reaches_the_plan():
    mine = CompactPolicy(
        trigger_pct=0.5, target_pct=0.3, trigger_tokens=7, trigger_messages=8, hard_cap_buffer=9, keep_recent_turns=2,
        keep_tool_io_pairs=3, roles_never_prune=("user",), protected_flag="pin", protected_labels=("x",),
        protected_paths=("*.md",), min_reclaim_pct=0.1, strategy="brief", steps=("select",),
    )  # fmt: skip

    assert mine.policy() == Policy(
        trigger=0.5, target=0.3, trigger_tokens=7, trigger_messages=8, reserve=9, keep_recent_turns=2,
        keep_tool_pairs=3, protected_roles=("user",), protected_flag="pin", protected_labels=("x",),
        protected_paths=("*.md",), min_reclaim=0.1, strategy="brief", steps=("select",),
    )  # fmt: skip


@rows("trigger", [0.01, 0.3, 0.85, 1.0])
def test_a_target_left_out_is_below_any_trigger(trigger):
    policy = CompactPolicy(trigger_pct=trigger).policy()

    assert 0 < policy.target < policy.trigger
    assert policy.target <= 0.6


@rows(
    ("given", "exporter"),
    [
        ({}, "none"),
        ({"otlp_url": "http://localhost:4318/v1/traces"}, "otlp"),
        ({"ariadne_url": "http://localhost:5175/ingest"}, "ariadne"),
        (
            {
                "ariadne_url": "http://localhost:5175/ingest",
                "telemetry_exporter": "file",
                "telemetry_path": "x",
            },
            "file",
        ),
        ({"telemetry_enabled": False, "telemetry_exporter": "file"}, "none"),
    ],
)
def test_events_go_where_the_settings_point(given, exporter):
    assert CompactConfig(**given).exporter == exporter


def test_the_window_is_the_models_own_where_none_is_set():
    assert CompactConfig(model="gpt-4-turbo").max_context_tokens == 128_000
    assert CompactConfig(model="gpt-4-32k").max_context_tokens == 32_768
    assert CompactConfig(model="gpt-4-32k", max_context_tokens=20_000).max_context_tokens == 20_000
    assert CompactConfig(model="home-made").max_context_tokens == 128_000


def test_the_summarisers_are_the_backends_there_are():
    for name in BACKENDS:
        spec = "command:cat" if name == "command" else name

        assert backend(spec)
        assert CompactConfig(summarizer_backend=spec).summarizer_backend == spec


def test_a_password_in_an_address_is_not_shown():
    with pytest.raises(InvalidInput) as caught:
        CompactConfig(ariadne_url="http://someone:hunter2hunter2@viewer/ingest")

    assert "hunter2" not in str(caught.value)


def test_every_setting_has_its_own_variable_and_says_what_it_means():
    assert len({key.env for key in KEYS.values()}) == len(KEYS)
    assert all(key.meaning and not key.meaning.endswith(".") for key in KEYS.values())
    required = (
        "MODEL MAX_CONTEXT_TOKENS TRIGGER_PCT HARD_CAP_BUFFER KEEP_RECENT_TURNS KEEP_TOOL_IO_PAIRS STRATEGY"
    )
    required += " ARIADNE_URL TELEMETRY_ENABLED STORAGE_ADAPTER STORAGE_BUCKET STORAGE_PREFIX"

    assert {f"COMPACT_{name}" for name in required.split()} <= {key.env for key in KEYS.values()}
