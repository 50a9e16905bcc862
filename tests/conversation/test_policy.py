"""Named policies make sense, and settings out of range are refused by the name of their field."""

from __future__ import annotations

import math

import pytest

from aether.architects import backend
from aether.conversation.policy import (
    SETTINGS,
    STRATEGIES,
    CompactConfig,
    CompactPolicy,
    config_from_values,
    config_values,
    policy,
    validated,
)
from aether.conversation.shapes import Compacted, Facts, Policy, Receipt, Summary, SummaryTask
from aether.errors import InvalidInput
from aether.store.keys import summarisers


@pytest.mark.parametrize(
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
        ({"roles_never_prune": "system"}, "roles_never_prune must be a list of strings"),
        ({"protected_flag": " "}, "protected_flag must not be empty"),
        ({"strategy": "nonsense"}, "strategy must be one of task_state, brief.*got 'nonsense'"),
        ({"steps": ("summarise", "dream")}, "steps must be a list of .*'dream'"),
    ],
)
def test_a_policy_out_of_range_is_refused_by_field(given, words):
    with pytest.raises(InvalidInput, match=words):
        CompactPolicy(**given)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("trigger", [0.01, 0.3, 0.85, 1.0])
def test_a_target_left_out_is_below_any_trigger(trigger):
    policy = CompactPolicy(trigger_pct=trigger).policy()

    assert 0 < policy.target < policy.trigger
    assert policy.target <= 0.6


@pytest.mark.parametrize(
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
def test_events_are_sent_as_the_settings_say(given, exporter):
    assert CompactConfig(**given).exporter == exporter


def test_the_window_is_the_models_own_if_none_is_set():
    assert CompactConfig(model="gpt-4-turbo").max_context_tokens == 128_000
    assert CompactConfig(model="gpt-4-32k").max_context_tokens == 32_768
    assert CompactConfig(model="gpt-4-32k", max_context_tokens=20_000).max_context_tokens == 20_000
    assert CompactConfig(model="home-made").max_context_tokens == 128_000


def test_the_summarisers_are_the_backends_there_are():
    for name in summarisers():
        spec = "command:cat" if name == "command" else name

        assert backend(spec)
        assert CompactConfig(summarizer_backend=spec).summarizer_backend == spec


def test_a_password_in_an_address_is_not_shown():
    with pytest.raises(InvalidInput) as caught:
        CompactConfig(ariadne_url="http://someone:hunter2hunter2@viewer/ingest")

    assert "hunter2" not in str(caught.value)


def test_a_configuration_is_built_of_settings_and_gives_them_back():
    values = config_values(CompactConfig(storage_path="there", policy=CompactPolicy(keep_recent_turns=9)))

    assert values.keys() == SETTINGS.keys()
    assert (values["storage.path"], values["policy.keep_recent_turns"]) == ("there", 9)
    assert config_values(config_from_values({**values, "store.fold_bytes": 7})) == values


def test_the_named_ones_are_those_of_the_requirements():
    assert (
        policy("compact").trigger,
        policy("compact").keep_recent_turns,
        policy("compact").keep_tool_pairs,
    ) == (0.85, 6, 4)
    assert (policy("window").trigger, policy("window").keep_requests, policy("window").keep_middle) == (
        0.70,
        True,
        0.30,
    )
    assert "summarise" not in policy("prune-only").steps
    assert {policy(strategy).strategy for strategy in STRATEGIES} == set(STRATEGIES)


def test_an_unknown_policy_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'nonsense' is not a policy\. Use one of compact, window"):
        policy("nonsense")


@pytest.mark.parametrize(
    ("settings", "path", "words"),
    [
        ({"trigger": 0}, "policy.trigger", "must|is not below"),
        ({"trigger": 1.01}, "policy.trigger", "must|is not below"),
        ({"trigger": "0.85"}, "policy.trigger", "must|is not below"),
        ({"trigger": True}, "policy.trigger", "must|is not below"),
        ({"target": 0.85}, "policy.target", "0.85 is not below the trigger, 0.85"),
        ({"target": 0}, "policy.target", "must|is not below"),
        ({"trigger": 0.5}, "policy.target", "must|is not below"),
        ({"trigger_tokens": -1}, "policy.trigger_tokens", "must|is not below"),
        ({"trigger_messages": 1.5}, "policy.trigger_messages", "must|is not below"),
        ({"reserve": -1}, "policy.reserve", "must|is not below"),
        ({"keep_recent_turns": 0}, "policy.keep_recent_turns", "must|is not below"),
        ({"keep_tool_pairs": True}, "policy.keep_tool_pairs", "must|is not below"),
        ({"keep_middle": -0.1}, "policy.keep_middle", "must|is not below"),
        ({"summary_share": 0.0}, "policy.summary_share", "must|is not below"),
        ({"min_reclaim": 2}, "policy.min_reclaim", "must|is not below"),
        ({"strategy": "nonsense"}, "policy.strategy", "must|is not below"),
        ({"name": " "}, "policy.name", "must|is not below"),
        ({"name": 7}, "policy.name", "must|is not below"),
        ({"protected_flag": ""}, "policy.protected_flag", "must|is not below"),
        ({"protected_roles": ("queen",)}, "policy.protected_roles", r"\[0\]"),
        ({"protected_labels": "spec"}, "policy.protected_labels", "must|is not below"),
        ({"protected_paths": ("",)}, "policy.protected_paths", "must|is not below"),
        ({"steps": ()}, "policy.steps", "must|is not below"),
        ({"steps": ("summarise", "guess")}, "policy.steps", r"\[1\]"),
        ({"steps": ("reduce", "reduce")}, "policy.steps", r"\[1\]"),
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused_by_its_path(settings, path, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        validated(Policy()._replace(**settings))

    assert refused.value.where == path


def test_the_numbers_of_ariadne_are_the_defaults():
    policy = Policy()

    assert (policy.trigger, policy.reserve, policy.keep_recent_turns, policy.keep_tool_pairs) == (
        0.85,
        1500,
        6,
        4,
    )
    assert (policy.protected_roles, policy.protected_flag, policy.strategy) == (
        ("system", "developer"), "protected", "task_state",
    )  # fmt: skip
    assert policy.target < policy.trigger


def test_a_policy_without_a_model_has_default_facts():
    assert Summary(1, Facts(), "").facts == Facts()
    assert set(SummaryTask._fields) >= {"facts", "max_tokens", "previous", "said", "strategy", "version"}


def test_a_receipt_maps_messages_in_both_directions():
    assert {"removed", "places", "protected", "cuts"} <= set(Receipt._fields)
    assert {"places", "cuts", "protected"} <= set(Compacted._fields)
