"""The command `compactctl`: its help, its examples run for real, its JSON against its schemas, its failures."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

from aether.cli.json_results import RESULTS
from aether.compat.compactctl import compactctl, run
from aether.schemas.derive import json_schema
from tests.tables import rows

ROOT = Path(__file__).parents[2]
COMMANDS = dict(compactctl.commands)
EVERY = {"": compactctl, **COMMANDS}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Stand in a directory with messages and a configuration, and without variables."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("COMPACT_", "OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "messages.json").write_text(json.dumps(messages(40)))
    (tmp_path / "compact.yaml").write_text("max_context_tokens: 2000\npolicy: {hard_cap_buffer: 100}\n")


def messages(turns):
    return [
        {"role": role, "content": f"{role} {nth}: the parser takes a lock and releases it when done. " * 2}
        for nth in range(turns)
        for role in ("user", "assistant")
    ]


def called(*words):
    with pytest.raises(SystemExit) as left:
        run(list(words))
    return left.value.code


def examples(command):
    _, _, after = command.help.partition("Example:")
    return [shlex.split(line)[1:] for line in after.splitlines() if line.strip()]


def shown(capsys, name, *words):
    assert called(name, *words, "--json") == 0
    value = json.loads(capsys.readouterr().out)
    validator = Draft202012Validator(json_schema(RESULTS[f"compactctl {name}"], name))
    assert [error.message for error in validator.iter_errors(value)] == []
    return value


@rows("name", EVERY)
def test_help_is_a_sentence_with_an_example_that_runs(name, capsys):
    command = EVERY[name]
    first = command.help.splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 60
    assert all(option.help for option in command.params if isinstance(option, click.Option))

    for words in examples(command):
        assert called(*words) == 0, capsys.readouterr().err


@rows("name", COMMANDS)
def test_json_has_the_commands_own_shape(name, capsys):
    (words,) = examples(COMMANDS[name])

    shown(capsys, *words)


@rows("name", EVERY)
def test_every_command_is_in_the_reference(name):
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert f"\n## {f'compactctl {name}'.strip()}\n" in text


def test_a_dry_run_counts_and_changes_nothing(capsys, tmp_path):
    """Defect 17: it could not be run without a key."""
    found = shown(capsys, "dry-run", "--messages", "messages.json", "--config", "compact.yaml")

    assert found["total"] == 80 == sum(found[part] for part in ("pinned", "recent", "tool_io", "eligible"))
    assert found["trigger"]
    assert found["tokens_after"] < found["tokens"]
    assert not (tmp_path / ".compact").exists()
    assert called("dry-run", "--messages", "messages.json") == 0
    assert "trigger:         No\n" in capsys.readouterr().out


def test_a_dry_run_knows_calls_and_what_is_protected(capsys):
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    given = [
        {"role": "system", "content": "Be kind."},
        *messages(9),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "tool", "tool_call_id": "nobody", "content": "stray"},
        {"role": "user", "content": "Go on."},
    ]

    found = shown(capsys, "dry-run", "--messages", json.dumps(given))

    assert (found["total"], found["tool_io"], found["trigger"]) == (23, 2, False)
    assert found["pinned"] >= 3
    assert found["eligible"] >= 5


@pytest.mark.parametrize("source", ["text", "file", "stdin"])
def test_messages_come_as_text_file_or_stdin(source, capsys, monkeypatch, tmp_path):
    text = json.dumps({"messages": messages(2), "system": "Be kind."})
    (tmp_path / "body.json").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    words = {"text": text, "file": "body.json", "stdin": "-"}[source]

    assert shown(capsys, "dry-run", "--messages", words)["total"] == 4


def test_compacting_writes_messages_and_statistics(capsys, tmp_path):
    found = shown(
        capsys,
        "compact",
        "--messages",
        "messages.json",
        "--output",
        "o.json",
        "--session",
        "mine",
        "--note",
        "x",
    )

    assert json.loads((tmp_path / "o.json").read_text()) == found
    assert found["statistics"]["pruned_count"] == 80 - len(found["messages"]) + 1
    assert found["statistics"]["tokens_after"] < found["statistics"]["tokens_before"]
    assert (tmp_path / ".compact/conversations/mine/history.jsonl").exists()
    assert (tmp_path / ".compact/archive/mine/transcript-pre-compact-001.jsonl").exists()


def test_what_is_too_little_to_compact_comes_back(capsys):
    few = [{"role": "user", "content": "hi"}]

    found = shown(capsys, "compact", "--messages", json.dumps(few))

    assert found["messages"] == few
    assert found["statistics"]["pruned_count"] == 0


def test_a_difference_shows_what_went_and_what_came(capsys, tmp_path):
    rows = shown(capsys, "diff", "--messages", "messages.json")
    assert {row["change"] for row in rows} == {"kept", "removed", "added"}
    (added,) = [row for row in rows if row["change"] == "added"]
    assert added["text"].startswith("<COMPACT-SUMMARY v1>")
    assert not (tmp_path / ".compact").exists()

    (tmp_path / "after.json").write_text(json.dumps(messages(40)[2:]))
    rows = shown(capsys, "diff", "--messages", "messages.json", "--after", "after.json")
    assert [row["change"] for row in rows] == ["removed"] * 2 + ["kept"] * 78


def test_the_environment_counts_where_it_is_merged(capsys, monkeypatch):
    monkeypatch.setenv("COMPACT_STRATEGY", "brief")
    monkeypatch.setenv("COMPACT_TRIGER_PCT", "1")

    alone = shown(capsys, "validate-config", "--config", "compact.yaml")
    assert called("validate-config", "--config", "compact.yaml", "--merge-env", "--json") == 0
    merged, words = capsys.readouterr()

    assert alone["config"]["policy"]["strategy"] == "task_state"
    assert json.loads(merged)["config"]["policy"]["strategy"] == "brief"
    assert json.loads(merged)["origins"]["max_context_tokens"] == "file"
    assert words.startswith("warning: COMPACT_TRIGER_PCT: is not a setting of aether.")
    assert called("dry-run", "--messages", "messages.json") == 0
    assert "COMPACT_TRIGER_PCT" in capsys.readouterr().err


def test_a_configuration_is_created_once_and_is_valid(capsys):
    assert called("create-config") == 0
    assert capsys.readouterr().out.startswith("# Configuration of aether")
    assert called("create-config", "--output", "new.toml") == 0
    assert called("validate-config", "--config", "new.toml") == 0
    capsys.readouterr()

    assert called("create-config", "--output", "new.toml") == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["validate-config", "--config", "none.yaml"], "none.yaml: cannot be read"),
        (
            ["validate-config", "--config", "bad.yaml"],
            r"policy.trigger_pct must be in range (0.0, 1.0], got 1.5.",
        ),
        (["dry-run", "--messages", "none.json"], "none.json"),
        (["dry-run", "--messages", "[1]"], "Error: "),
        (["dry-run"], "Missing option '--messages'"),
        (["compact", "--messages", "large.json", "--config", "compact.yaml"], "protected"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_every_failure_ends_with_one_and_says_why_on_stderr(words, what, capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text("policy:\n  trigger_pct: 1.5\n")
    (tmp_path / "large.json").write_text(
        json.dumps([{"role": "system", "content": "law " * 5000}, *messages(1)])
    )

    assert called(*words) == 1

    shown_ = capsys.readouterr()
    assert what in shown_.err
    assert shown_.err.startswith("Error: ")
    assert shown_.out == ""


def test_a_slip_in_the_name_of_a_variable_is_said_though_another_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("COMPACT_FOO", "1")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "2")

    assert called("dry-run", "--messages", "messages.json") == 1

    reported = capsys.readouterr().err
    assert "warning: COMPACT_FOO" in reported
    assert "COMPACT_TRIGGER_PCT: policy.trigger_pct must be" in reported


def test_a_terminal_is_not_filled_with_json(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert called("compact", "--messages", "messages.json") == 1
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--merge-env"]])
def test_an_older_name_in_a_file_is_noted_once(capsys, tmp_path, more):
    (tmp_path / "old.toml").write_text("storage_path = 'copies'\n")

    assert called("validate-config", "--config", "old.toml", *more) == 0

    words = capsys.readouterr().err
    assert (
        words.count("info: old.toml: storage_path is an older name of storage.path. Write storage.path.") == 1
    )
