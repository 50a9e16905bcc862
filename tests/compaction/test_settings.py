"""Settings as text: nested and flat files, one variable for one key, and examples that say the defaults."""

from __future__ import annotations

import json
import tomllib

import pytest

from aether.compaction.config import KEYS, CompactConfig, CompactPolicy
from aether.compaction.settings import (
    built,
    example,
    of_environment,
    of_tree,
    strangers,
    tree_of,
    value_of,
)
from aether.errors import InvalidInput
from tests.tables import rows

# Another value than the default for each setting, so that one that is lost shows.
OTHER = {
    "model": "gpt-5", "max_context_tokens": 32_000, "policy.trigger_pct": 0.7, "policy.target_pct": 0.4,
    "policy.trigger_tokens": 9000, "policy.trigger_messages": 40, "policy.hard_cap_buffer": 900,
    "policy.keep_recent_turns": 9, "policy.keep_tool_io_pairs": 2, "policy.roles_never_prune": ("developer",),
    "policy.protected_flag": "pinned", "policy.protected_labels": ("law",), "policy.protected_paths": ("*.md", "a/*"),
    "policy.min_reclaim_pct": 0.1, "policy.strategy": "brief", "policy.steps": ("summarise", "select"),
    "telemetry.enabled": False, "telemetry.exporter": "file", "telemetry.path": "events.jsonl",
    "telemetry.ariadne_url": "http://localhost:5175/ingest", "telemetry.otlp_url": "http://localhost:4318",
    "storage.enabled": False, "storage.adapter": "s3", "storage.path": "there", "storage.bucket": "kept",
    "storage.prefix": "team", "storage.kms_key_id": "key", "redaction.enabled": False,
    "redaction.patterns": (r"ACME-\d{2,4}",), "summarizer.backend": "openai", "summarizer.model": "small",
    "summarizer.timeout": 3.5,
}  # fmt: skip


def test_there_is_another_value_for_every_setting():
    assert OTHER.keys() == KEYS.keys()
    assert [path for path in OTHER if OTHER[path] == KEYS[path].default] == []


@rows("path", KEYS)
def test_a_setting_can_be_made_nested_flat_and_by_its_variable(path):
    key, value = KEYS[path], OTHER[path]
    table, _, name = path.rpartition(".")
    plain = list(value) if isinstance(value, tuple) else value
    text = value if isinstance(value, str) else json.dumps(plain)

    nested = of_tree({table: {name: plain}} if table else {name: plain})
    variable = of_environment({key.env: text})

    assert nested == variable == {path: value}
    if table != "policy":
        assert of_tree({key.flat: plain}) == nested


def test_a_configuration_written_and_read_is_the_same():
    config = built(OTHER)

    assert built(of_tree(tree_of(config))) == config
    assert all(value_of(config, KEYS[path]) == value for path, value in OTHER.items())


def test_one_variable_overrides_one_setting_of_the_policy():
    """A policy from a file keeps its other settings; the original lost them all (defect 16)."""
    file = of_tree({"policy": {"keep_recent_turns": 9, "trigger_pct": 0.9}})

    config = built({**file, **of_environment({"COMPACT_TRIGGER_PCT": "0.7"})})

    assert config.policy == CompactPolicy(trigger_pct=0.7, keep_recent_turns=9)


@rows(
    ("text", "truth"),
    [("true", True), ("1", True), ("YES", True), ("on", True), ("false", False), ("0", False), ("No", False)],
)
def test_truths_have_many_names_in_variables(text, truth):
    assert of_environment({"COMPACT_TELEMETRY_ENABLED": text}) == {"telemetry.enabled": truth}


@rows(
    ("variable", "text", "words"),
    [
        ("COMPACT_TELEMETRY_ENABLED", "maybe", "telemetry.enabled must be true or false, got 'maybe'"),
        ("COMPACT_TRIGGER_PCT", "much", "policy.trigger_pct must be a number, got 'much'"),
        ("COMPACT_TRIGGER_PCT", "1.5", r"policy.trigger_pct must be in range \(0.0, 1.0\], got 1.5"),
        ("COMPACT_KEEP_RECENT_TURNS", "6.5", "policy.keep_recent_turns must be a whole number"),
        ("COMPACT_STRATEGY", "nonsense", "policy.strategy must be one of task_state"),
        ("COMPACT_PROTECTED_LABELS", "[1]", "policy.protected_labels must be a list of texts"),
        ("COMPACT_PROTECTED_LABELS", "[", "policy.protected_labels must be a list of texts"),
    ],
)
def test_a_variable_that_is_not_allowed_is_named(variable, text, words):
    with pytest.raises(InvalidInput, match=f"^{variable}: {words}"):
        of_environment({variable: text})


def test_lists_in_variables_stand_between_commas():
    assert of_environment({"COMPACT_PROTECTED_LABELS": "a, b,"}) == {"policy.protected_labels": ("a", "b")}


def test_empty_variables_are_not_set():
    assert of_environment({"COMPACT_MODEL": " "}) == {}


def test_variables_of_others_are_named_not_refused():
    assert strangers({"COMPACT_TRIGER_PCT": "1", "COMPACT_MODEL": "x", "PATH": "y"}) == ["COMPACT_TRIGER_PCT"]


@rows(
    ("tree", "words"),
    [
        (
            {"policy": {"triger_pct": 0.5}},
            "'policy.triger_pct' is not a setting. Did you mean policy.trigger_pct",
        ),
        ({"policy": {"keep_last_turns": 5}}, "Did you mean policy.keep_recent_turns"),
        ({"keep_recent_turn": 5}, "Did you mean policy.keep_recent_turns"),
        ({"xyzzy": 5}, "'xyzzy' is not a setting. \"compactctl create-config\" lists"),
        ({"trigger": 0.5}, "'trigger' is not a setting"),
        ({"telemetry": {"ariadne": {"url": "x"}}}, "'telemetry.ariadne' is not a setting"),
        ({"policy": 0.5}, "policy must be a table of settings, got 0.5"),
        ({"storage_path": "a", "storage": {"path": "b"}}, "storage.path is given twice"),
        ({3: 4}, "'3' is not a setting"),
    ],
)
def test_what_is_no_setting_is_refused_with_its_path(tree, words):
    with pytest.raises(InvalidInput, match=words):
        of_tree(tree)


def test_an_empty_table_sets_nothing():
    assert of_tree({"policy": None, "storage": {}}) == {}


def test_the_examples_say_every_setting_at_its_default():
    import yaml

    for kind, read in (("toml", tomllib.loads), ("yaml", yaml.safe_load), ("json", json.loads)):
        settings = of_tree(read(example(kind)))

        assert settings.keys() == KEYS.keys()
        assert built(settings) == CompactConfig()
    assert all(example("toml").count(key.env) == 1 for key in KEYS.values())
