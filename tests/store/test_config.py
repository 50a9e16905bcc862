"""The settings: their table, files of every form and version, the environment, and which of them wins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from typing import get_args

import pytest

from aether.conversation.policy import SETTINGS, CompactConfig, CompactPolicy, config_from_values
from aether.conversation.shapes import Step, Strategy
from aether.errors import Conflict, InvalidDocument, InvalidInput
from aether.store import config
from aether.store.config import create, example, load, nested, settings, unknown_variables
from aether.store.keys import FIELDS, KEYS, NAMES, RETIRED, STEPS, STRATEGIES, Config, check_value
from tests import homes
from tests.tables import rows

# Another value than the default for each setting, so that one that is lost shows.
OTHER = {
    "memory.agents": "propose",
    "context.window": 4096,
    "context.profiles": "LLM_profiles.json",
    "context.compress_pct": 0.75,
    "model": "gpt-5",
    "max_context_tokens": 32000,
    "policy.trigger_pct": 0.7,
    "policy.target_pct": 0.4,
    "policy.hard_cap_buffer": 900,
    "policy.keep_recent_turns": 9,
    "policy.keep_tool_io_pairs": 2,
    "policy.roles_never_prune": ("developer",),
    "policy.strategy": "brief",
    "telemetry.enabled": False,
    "telemetry.exporter": "file",
    "telemetry.path": "events.jsonl",
    "telemetry.ariadne_url": "http://localhost:5175/ingest",
    "telemetry.otlp_url": "http://localhost:4318",
    "storage.enabled": False,
    "storage.adapter": "s3",
    "storage.path": "there",
    "storage.bucket": "kept",
    "storage.prefix": "team",
    "redaction.patterns": ("ACME-\\d{2,4}",),
    "summarizer.backend": "openai",
    "summarizer.model": "small",
    "summarizer.timeout": 3.5,
    "store.lock_timeout_seconds": 3.0,
    "store.fold_bytes": 7,
    "store.history_months": 2,
    "architect.default": "ollama",
    "architect.daily_tokens": 9,
    "architect.model": "m",
    "architect.base_url": "http://here",
    "architect.timeout_seconds": 9.0,
    "chat.backend": "ollama",
    "chat.model": "m",
    "chat.base_url": "http://here",
    "claude.capture": False,
    "claude.inject": False,
    "claude.recall": False,
    "claude.file_history": True,
    "claude.brief_tokens": 200,
    "claude.private_paths": "x/**",
    "claude.auto_compress": False,
    "claude.deadline_seconds": 4.0,
    "archive.boundaries": "1, 2, 3",
    "archive.grace_days": 3,
    "archive.auto": "daily",
    "share.offline": "queue",
    "archive.compress": True,
}


def toml(tree):
    """Return `tree`, settings nested in tables, as TOML."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in tree.items() if not isinstance(value, dict)]
    for table, values in tree.items():
        if isinstance(values, dict):
            lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def of_tree(tree, directory):
    """Return the settings of a JSON file that holds `tree`."""
    (directory / "tree.json").write_text(json.dumps(tree))
    return settings(directory / "tree.json", environ={}).values


def of_environment(environ):
    return settings(environ=environ).values


def test_without_a_file_there_are_defaults(tmp_path):
    assert load(tmp_path) == Config()


def test_every_key_of_a_home_can_be_set(tmp_path):
    made = {str: "x", int: 7, float: 7.5, bool: not True}
    values = {path: made[type(KEYS[path].default)] for path in FIELDS} | {"chat.backend": "ollama"}
    values |= {
        "archive.boundaries": "1, 2, 3",
        "archive.auto": "daily",
        "share.offline": "queue",
        "memory.agents": "off",
        "architect.default": "ollama",
    }
    values |= {path: OTHER[path] for path in FIELDS if path.startswith("context.")}
    homes.configure(tmp_path, toml(config.nested(values)))

    expected = {FIELDS[path]: value for path, value in values.items()}
    assert load(tmp_path)._asdict() == expected | {
        "claude_private_paths": f"{Config().claude_private_paths}, x"
    }


@rows(
    ("text", "words"),
    [
        ("[store]\nfold = 1", "'store.fold' is not a setting. Did you mean store.fold_bytes?"),
        ("[claude]\nbanana = 1", "'claude.banana' is not a setting. \"compactctl create-config\" lists"),
        ("[other]\nthing = 1", "'other.thing' is not a setting. \"compactctl create-config\" lists"),
        ("store = 1", "store must be a table of settings, got 1. Nest its keys below it"),
        ("[store]\nfold_bytes = -1", "store.fold_bytes must be >= 0, got -1. The default is 1048576"),
        ("[store]\nfold_bytes = true", "store.fold_bytes must be a whole number, got True"),
        ("[store]\nfold_bytes = 1.5", "store.fold_bytes must be a whole number, got 1.5"),
        ("[store]\nlock_timeout_seconds = nan", "store.lock_timeout_seconds must be >= 0, got nan"),
        ("[store]\nlock_timeout_seconds = -0.5", "store.lock_timeout_seconds must be >= 0, got -0.5"),
        ("[architect]\nmodel = 1", "architect.model must be a string, got 1"),
        ("[claude]\ncapture = 1", "claude.capture must be true or false, got 1"),
        ("[store", "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_path(tmp_path, text, words):
    (tmp_path / "config.toml").write_text(text)

    with pytest.raises(InvalidDocument, match=re.escape(words)) as caught:
        load(tmp_path)

    assert caught.value.where == str(tmp_path / "config.toml")


def test_a_changed_file_is_read_again(tmp_path):
    homes.configure(tmp_path, "[store]\nfold_bytes = 1\n")
    assert load(tmp_path).fold_bytes == 1

    homes.configure(tmp_path, "[store]\nfold_bytes = 22\n")

    assert load(tmp_path).fold_bytes == 22


def test_an_unchanged_file_is_read_once(tmp_path, monkeypatch):
    homes.configure(tmp_path, "[store]\nfold_bytes = 1\n")
    load(tmp_path)
    monkeypatch.setattr(config, "_mapping", os.abort)

    assert load(tmp_path).fold_bytes == 1


def test_each_setting_is_read_by_itself_where_one_is_wrong(tmp_path):
    homes.configure(
        tmp_path, "[claude]\nprivate_paths = '.env*'\nnew_key = 1\ncapture = 'no'\n[store]\nfold_bytes = 7\n"
    )

    found, wrong = config.load_with_errors(tmp_path)

    assert found == Config(claude_private_paths=f"{Config().claude_private_paths}, .env*", fold_bytes=7)
    assert wrong.keys() == {"claude.new_key", "claude.capture"}
    assert config.or_default(tmp_path) == found


def test_a_file_that_cannot_be_read_at_all_has_the_defaults(tmp_path):
    (tmp_path / "config.toml").write_text("[claude\n")

    found, wrong = config.load_with_errors(tmp_path)

    assert found == Config()
    assert wrong.keys() == {""}
    assert config.load_with_errors(tmp_path / "nowhere") == (Config(), {})


def test_there_is_another_value_for_every_setting():
    assert OTHER.keys() == KEYS.keys()
    assert [path for path in OTHER if OTHER[path] == KEYS[path].default] == []


@pytest.mark.parametrize(
    ("text", "truth"),
    [("true", True), ("1", True), ("YES", True), ("on", True), ("false", False), ("0", False), ("No", False)],
)
def test_truths_have_many_names_in_variables(text, truth):
    assert of_environment({"COMPACT_TELEMETRY_ENABLED": text}) == {"telemetry.enabled": truth}


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("COMPACT_TELEMETRY_ENABLED", "maybe", "telemetry.enabled must be true or false, got 'maybe'"),
        ("COMPACT_TRIGGER_PCT", "much", "policy.trigger_pct must be a number, got 'much'"),
        ("COMPACT_TRIGGER_PCT", "1.5", r"policy.trigger_pct must be in range \(0.0, 1.0\], got 1.5"),
        ("COMPACT_KEEP_RECENT_TURNS", "6.5", "policy.keep_recent_turns must be a whole number"),
        ("COMPACT_STRATEGY", "nonsense", "policy.strategy must be one of task_state"),
        ("COMPACT_ROLES_NEVER_PRUNE", "[1]", "policy.roles_never_prune must be a list of strings"),
        ("COMPACT_ROLES_NEVER_PRUNE", "[", "policy.roles_never_prune must be a list of strings"),
    ],
)
def test_a_variable_that_is_not_allowed_is_named(variable, text, words):
    with pytest.raises(InvalidInput, match=f"^{variable}: {words}"):
        of_environment({variable: text})


def test_lists_in_variables_stand_between_commas():
    assert of_environment({"COMPACT_ROLES_NEVER_PRUNE": "user, tool,"}) == {
        "policy.roles_never_prune": ("user", "tool")
    }


def test_empty_variables_are_not_set():
    assert of_environment({"COMPACT_MODEL": " "}) == {}


@pytest.mark.parametrize(
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
def test_an_unknown_setting_is_refused_with_its_path(tree, words, tmp_path):
    with pytest.raises(InvalidInput, match=words):
        of_tree(tree, tmp_path)


NESTED = {
    "compact.toml": "[policy]\nkeep_recent_turns = 9\n[storage]\npath = 'kept'\n",
    "compact.yaml": "policy:\n  keep_recent_turns: 9\nstorage: {path: kept}\n",
    "compact.yml": "# flat\npolicy: {keep_recent_turns: 9}\nstorage_path: kept\n",
    "compact.json": '{"policy": {"keep_recent_turns": 9}, "storage_path": "kept"}',
}


@pytest.mark.parametrize("name", NESTED)
def test_a_file_of_any_kind_sets_what_it_names(name, tmp_path):
    (tmp_path / name).write_text(NESTED[name])

    found = config_from_values(settings(tmp_path / name, environ={}).values)

    assert found == CompactConfig(policy=CompactPolicy(keep_recent_turns=9), storage_path="kept")


@pytest.mark.parametrize(
    ("name", "data", "error", "words"),
    [
        ("c.toml", b"[policy", InvalidInput, "is not TOML"),
        ("c.yaml", b"a: [", InvalidInput, "is not YAML"),
        ("c.yaml", b"!!python/object/apply:os.getcwd []", InvalidInput, "is not YAML"),
        ("c.json", b"{", InvalidInput, "is not JSON"),
        ("c.json", b"[" * 60_000, InvalidInput, "is nested too deeply"),
        ("c.toml", b"x = " + b"[" * 60_000, InvalidInput, "is nested too deeply"),
        ("c.toml", b"a." * 30_000 + b"a = 1", InvalidInput, "more than 250 dots"),
        ("c.toml", b" " * 70_000, InvalidDocument, "has 70,000 bytes, and at most 65,536 are read"),
        ("c.json", b'{"model": "a", "model": "b"}', InvalidInput, "is not JSON: 'model' is given twice"),
        ("c.json", b"[]", InvalidInput, r"must hold settings by name, got \[\]"),
        ("c.ini", b"", InvalidInput, "has no ending of a configuration file. Use .toml, .yaml, .yml, .json"),
        ("c.toml", b"\xff\xfe", InvalidInput, "is not UTF-8"),
        ("c.toml", b"typo = 1", InvalidInput, "'typo' is not a setting"),
        ("c.toml", b"policy.trigger_pct = 1.5", InvalidInput, r"policy.trigger_pct must be in range \(0.0, 1.0\]"),
    ],
)  # fmt: skip
def test_a_file_with_a_mistake_is_named(name, data, error, words, tmp_path):
    (tmp_path / name).write_bytes(data)

    with pytest.raises(error, match=words) as caught:
        settings(tmp_path / name, environ={})

    assert caught.value.where == str(tmp_path / name)


@pytest.mark.parametrize("name", ["deep/compact.toml", "compact.yaml", "compact.json"])
def test_a_created_file_makes_the_defaults(name, tmp_path):
    path = create(tmp_path / name)

    assert config_from_values(settings(path, environ={}).values) == CompactConfig()


def test_a_file_is_never_written_over(tmp_path):
    (tmp_path / "compact.toml").write_text("mine = 1\n")

    with pytest.raises(Conflict, match="is there already"):
        create(tmp_path / "compact.toml")
    assert (tmp_path / "compact.toml").read_text() == "mine = 1\n"


def test_yaml_is_imported_for_a_yaml_file_only(tmp_path):
    (tmp_path / "c.json").write_text("{}")
    code = "import sys; from aether.store.config import settings; settings(sys.argv[1])"

    listed = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint('yaml' in sys.modules)", str(tmp_path / "c.json")],
        capture_output=True, text=True, check=True, env=homes.plain_environment(),
    )  # fmt: skip

    assert listed.stdout.strip() == "False"


@pytest.mark.parametrize("path", KEYS)
def test_a_setting_can_be_made_nested_by_its_older_names_and_by_its_variables(path, tmp_path):
    key, value = KEYS[path], OTHER[path]
    plain = list(value) if isinstance(value, tuple) else value

    assert of_tree(nested({path: plain}), tmp_path) == {path: value}
    for name in key.also:
        assert of_tree(nested({name: plain}), tmp_path) == {path: value}
    for name in key.env:
        assert of_environment({name: value if isinstance(value, str) else json.dumps(plain)}) == {path: value}


def test_an_older_name_is_noted(tmp_path):
    (tmp_path / "c.toml").write_text("ariadne_url = 'http://here'\n[summarizer]\nmodel = 'x'\n")

    (note,) = settings(tmp_path / "c.toml", environ={}).findings

    assert (note.level, note.message) == ("info", "ariadne_url is an older name of telemetry.ariadne_url.")


def test_each_source_overrides_those_below_it_key_by_key(tmp_path, monkeypatch):
    """A policy from a file keeps its other settings; the original lost them all (defect 16)."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    policy = dict.fromkeys(("keep_recent_turns", "keep_tool_io_pairs", "hard_cap_buffer", "target_pct"))
    for nth, name in enumerate(("user/aether/config.toml", "home/config.toml", "compact.toml"), start=2):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            toml({"policy": dict.fromkeys(policy, nth) | ({"target_pct": 0.2} if nth == 2 else {})})
        )
        policy.popitem()
    config.grant_trust(tmp_path / "home/config.toml", (tmp_path / "home/config.toml").read_bytes())
    monkeypatch.setenv("COMPACT_KEEP_RECENT_TURNS", "9")
    monkeypatch.setenv("AETHER_POLICY_KEEP_RECENT_TURNS", "8")

    found = settings(tmp_path / "compact.toml", home=tmp_path / "home")

    assert config_from_values(found.values).policy == CompactPolicy(
        target_pct=0.2, hard_cap_buffer=3, keep_tool_io_pairs=4, keep_recent_turns=9
    )
    assert [found.origins[f"policy.{name}"] for name in (
        "strategy", "target_pct", "hard_cap_buffer", "keep_tool_io_pairs", "keep_recent_turns"
    )] == ["default", "user", "home", "file", "environment"]  # fmt: skip


def test_compaction_leaves_out_what_a_home_has_no_authority_for(tmp_path):
    (tmp_path / "config.toml").write_text(
        "[summarizer]\nbackend = 'command:x'\n[policy]\nroles_never_prune = []\nkeep_recent_turns = 2\n"
    )

    assert settings(home=tmp_path).values == {"policy.keep_recent_turns": 2}


def test_a_mistake_in_the_home_is_a_finding_of_compaction(tmp_path):
    homes.configure(tmp_path, "[store]\nfold = 1\n[policy]\nkeep_recent_turns = 2\n")

    found = settings(home=tmp_path)

    assert found.values == {"policy.keep_recent_turns": 2}
    assert [(one.level, one.where) for one in found.findings] == [("warning", str(tmp_path / "config.toml"))]


def test_a_home_has_the_settings_of_its_user_its_own_and_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "user/aether").mkdir(parents=True)
    (tmp_path / "user/aether/config.toml").write_text(
        "[store]\nfold_bytes = 1\nhistory_months = 1\n[claude]\nbrief_tokens = 1\n"
    )
    homes.configure(tmp_path, "[store]\nfold_bytes = 2\nhistory_months = 2\n")
    monkeypatch.setenv("AETHER_STORE_FOLD_BYTES", "3")
    monkeypatch.setenv("COMPACT_SUMMARIZER_BACKEND", "nonsense")  # of compaction only

    assert load(tmp_path) == Config(fold_bytes=3, history_months=2, claude_brief_tokens=1)

    monkeypatch.setenv("AETHER_STORE_FOLD_BYTES", "many")
    with pytest.raises(
        InvalidInput, match=r"^AETHER_STORE_FOLD_BYTES: store.fold_bytes must be a whole number, got 'many'"
    ):
        load(tmp_path)
    assert config.or_default(tmp_path).fold_bytes == 2


def test_a_variable_with_a_slip_is_a_finding():
    found = settings(environ={"COMPACT_TRIGER_PCT": "0.7", "COMPACT_MODEL": "x", "PATH": "y"})

    assert [(one.level, one.where) for one in found.findings] == [("warning", "COMPACT_TRIGER_PCT")]
    assert found.findings == unknown_variables({"COMPACT_TRIGER_PCT": ""})


# As a user of an older version has them: every key of a home then, and every key of a file of compaction.
OLD_HOME = """
[store]
lock_timeout_seconds = 5
fold_bytes = 2000
history_months = 6
[architect]
default = "anthropic"
model = "m"
base_url = "http://localhost:1"
timeout_seconds = 60
max_retries = 0
max_output_tokens = 8000
window_tokens = 100000
input_usd_per_million = 3
output_usd_per_million = 15
[compact]
backend = "ollama"
model = "small"
timeout_seconds = 7200
storage = "ftp"
storage_path = ""
storage_bucket = "b"
storage_prefix = "p"
[telemetry]
exporter = "file, pigeon"
ariadne_url = "nonsense"
otlp_url = "http://localhost:4318"
path = "told.jsonl"
timeout_seconds = 1
content = true
[claude]
capture = false
inject = false
recall = false
recall_tokens = 300
brief_tokens = 900
private_paths = "secrets/**"
auto_compress = false
deadline_seconds = 4
"""
OLD_COMPACT = """
model = "gpt-4-32k"
max_context_tokens = 20000
storage_path = "copies"
summarization_timeout = 3
ariadne_url = "http://localhost:5175/ingest"
[policy]
trigger_pct = 0.7
keep_recent_turns = 9
roles_never_prune = ["system"]
steps = ["summarise", "select"]
[redaction]
patterns = ["ACME-[0-9]+"]
[summarizer]
backend = "command:cat"
"""


def test_the_config_of_an_older_home_has_the_same_effect(tmp_path):
    homes.configure(tmp_path, OLD_HOME)

    assert load(tmp_path) == Config(
        lock_timeout_seconds=5.0, fold_bytes=2000, history_months=6, architect="anthropic", architect_model="m",
        architect_base_url="http://localhost:1", architect_timeout_seconds=60.0, compact_backend="ollama", compact_model="small",
        compact_timeout_seconds=7200.0, telemetry_exporter="file, pigeon", telemetry_ariadne_url="nonsense",
        telemetry_otlp_url="http://localhost:4318", telemetry_path="told.jsonl", claude_capture=False, claude_inject=False, claude_recall=False, claude_brief_tokens=900, claude_private_paths=f"{Config().claude_private_paths}, secrets/**", claude_auto_compress=False,
        claude_deadline_seconds=4.0,
    )  # fmt: skip
    assert [note.message.partition(" ")[0] for note in config.notes(tmp_path) if note.code == "removed-setting"] == [
        "architect.max_retries", "architect.max_output_tokens", "architect.window_tokens", "architect.input_usd_per_million",
        "architect.output_usd_per_million", "telemetry.timeout_seconds", "telemetry.content", "claude.recall_tokens",
    ]  # fmt: skip
    config.revoke_trust(tmp_path / "config.toml")
    assert settings(home=tmp_path).values.keys() & SETTINGS.keys() == set()  # nothing for CompactManager


def test_an_older_file_of_compaction_and_its_variables_have_the_same_effect(tmp_path):
    (tmp_path / "compact.toml").write_text(OLD_COMPACT)
    around = {
        "COMPACT_TRIGGER_PCT": "0.9",
        "COMPACT_STORAGE_PATH": "elsewhere",
        "COMPACT_TELEMETRY_ENABLED": "no",
    }

    assert config_from_values(settings(tmp_path / "compact.toml", environ=around).values) == CompactConfig(
        model="gpt-4-32k", max_context_tokens=20_000, storage_path="elsewhere", summarization_timeout=3.0,
        ariadne_url="http://localhost:5175/ingest", redaction_patterns=("ACME-[0-9]+",), telemetry_enabled=False,
        summarizer_backend="command:cat",
        policy=CompactPolicy(
            trigger_pct=0.9, keep_recent_turns=9, roles_never_prune=("system",)
        ),
    )  # fmt: skip


def test_the_examples_say_every_setting_at_its_default(tmp_path):
    for form in ("toml", "yaml", "json"):
        (tmp_path / f"c.{form}").write_text(example(form))
        values = settings(tmp_path / f"c.{form}", environ={}).values

        assert values == {path: key.default for path, key in KEYS.items()}
        assert config_from_values(values) == CompactConfig()
    assert all(
        example("toml").count(f"{name},") + example("toml").count(f"{name})") == 1
        for key in KEYS.values()
        for name in key.env
    )
    (tmp_path / "config.toml").write_text(example("toml"))
    assert load(tmp_path) == Config()
    assert tomllib.loads(example("toml")) == json.loads(example("json"))


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


def test_a_removed_setting_is_ignored_with_a_note(tmp_path):
    assert len(KEYS) <= 51
    assert RETIRED.keys() & NAMES.keys() == set()
    for path in RETIRED:
        (tmp_path / "tree.json").write_text(json.dumps(nested({path: 1})))
        found = settings(tmp_path / "tree.json", environ={})

        assert found.values == {}
        assert [note.message for note in found.findings] == [
            f"{path} is no longer a setting, and is ignored."
        ]


def test_a_name_in_a_file_means_one_key():
    assert sum(1 + len(key.also) for key in KEYS.values()) == len(NAMES)


def test_the_names_of_steps_and_strategies_are_those_of_a_policy():
    assert set(STEPS) == set(get_args(Step))
    assert get_args(Strategy) == STRATEGIES


# A home that nobody trusts may lower these, and set those; every other key is ignored there.
LOWERED = {
    "claude.capture": (False, True), "claude.inject": (False, True), "claude.recall": (False, True), "claude.file_history": (False, True),
    "claude.auto_compress": (False, True), "claude.brief_tokens": (100, 200),
    "claude.deadline_seconds": (1.0, 2.0), "memory.agents": ("propose", "write"),
}  # fmt: skip
HARMLESS = {
    "model",
    "max_context_tokens",
    "policy.trigger_pct",
    "policy.target_pct",
    "policy.hard_cap_buffer",
    "policy.keep_recent_turns",
    "policy.keep_tool_io_pairs",
    "policy.strategy",
    "redaction.patterns",
    "archive.compress",
    "summarizer.timeout",
    "store.lock_timeout_seconds",
    "store.fold_bytes",
    "architect.timeout_seconds",
    "claude.private_paths",
    "context.compress_pct",
}


def test_every_key_is_ignored_in_a_home_that_nobody_trusts_unless_there_is_a_reason():
    """Whoever adds a key that a cloned repository may set has to say here why that is harmless."""
    for path, key in KEYS.items():
        assert not (key.authority and key.lowers), path
    assert {path for path, key in KEYS.items() if key.lowers} == LOWERED.keys()
    assert {path for path, key in KEYS.items() if not (key.authority or key.lowers)} == HARMLESS


def test_a_home_that_nobody_trusts_changes_no_setting_with_authority(tmp_path):
    given = {path: OTHER[path] for path, key in KEYS.items() if key.authority}
    (tmp_path / "config.toml").write_text(toml(config.nested(given)))

    assert load(tmp_path) == Config()
    assert settings(home=tmp_path).values == {}
    (finding,) = config.untrusted(tmp_path)
    assert all(path in finding.message for path in given)


def test_a_home_that_nobody_trusts_may_lower_what_its_user_has_and_not_raise_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    own, home = tmp_path / "user/aether/config.toml", tmp_path / "home"
    own.parent.mkdir(parents=True)
    home.mkdir()
    for place, side in ((own, 0), (home / "config.toml", 1)):
        place.write_text(toml(config.nested({path: pair[side] for path, pair in LOWERED.items()})))

    def found():
        loaded = load(home)._asdict()
        return {path: loaded[FIELDS[path]] for path in LOWERED}

    assert found() == {path: pair[0] for path, pair in LOWERED.items()}
    assert all(path in config.untrusted(home)[0].message for path in LOWERED)
    assert config.authority(home / "config.toml")[1] == {path: pair[1] for path, pair in LOWERED.items()}

    config.grant_trust(home / "config.toml", (home / "config.toml").read_bytes())
    assert found() == {path: pair[1] for path, pair in LOWERED.items()}
    assert config.untrusted(home) == []

    config.revoke_trust(home / "config.toml")
    for place, side in ((own, 1), (home / "config.toml", 0)):
        place.write_text(toml(config.nested({path: pair[side] for path, pair in LOWERED.items()})))
    assert found() == {path: pair[0] for path, pair in LOWERED.items()}
    assert config.untrusted(home) == []
    assert config.authority(home / "config.toml")[1] == {}


def test_a_home_adds_private_paths_and_takes_none_away(tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text('[claude]\nprivate_paths = ""\n')
    assert load(tmp_path) == Config()
    (tmp_path / "config.toml").write_text('[claude]\nprivate_paths = "a/**, *.key"\n')
    assert load(tmp_path).claude_private_paths == f"{Config().claude_private_paths}, a/**"

    monkeypatch.setenv("AETHER_CLAUDE_PRIVATE_PATHS", "b/**")
    assert load(tmp_path).claude_private_paths == "b/**"


def test_a_setting_without_effect_is_not_reported(tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text(
        "[telemetry]\nenabled = true\nexporter = 'file'\n[architect]\ndefault = 'extractive'\n"
    )

    assert [one.message for one in config.untrusted(tmp_path)] == [
        "ignored, because a home is data and only its user may set them: telemetry.exporter."
    ]
    assert config.untrusted(tmp_path, "architect.") == []
    config.require_trusted(tmp_path, "architect.")
    monkeypatch.setenv("AETHER_TELEMETRY_EXPORTER", "none")
    assert config.untrusted(tmp_path) == []


def test_the_word_of_the_user_is_in_the_users_own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "home").mkdir()
    path = homes.configure(tmp_path / "home", "[architect]\nmodel = 'm'\n")
    (word,) = (tmp_path / "state" / "aether" / "trust").iterdir()

    assert load(tmp_path / "home").architect_model == "m"
    assert json.loads(word.read_text())["path"] == str(path)
    for broken in ("[]", "{", "[" * 50_000):
        word.write_text(broken)
        assert load(tmp_path / "home").architect_model == ""
    word.unlink()
    assert load(tmp_path / "home").architect_model == ""
    assert not config.revoke_trust(path)
