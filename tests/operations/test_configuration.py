"""Reading the configuration of compaction from files and the environment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aether.compaction.config import CompactConfig, CompactPolicy
from aether.errors import Conflict, InvalidInput, NotFound
from aether.operations.configuration import configuration, create_configuration
from tests import homes
from tests.tables import rows

NESTED = {
    "compact.toml": "[policy]\nkeep_recent_turns = 9\n[storage]\npath = 'kept'\n",
    "compact.yaml": "policy:\n  keep_recent_turns: 9\nstorage: {path: kept}\n",
    "compact.yml": "# flat\npolicy: {keep_recent_turns: 9}\nstorage_path: kept\n",
    "compact.json": '{"policy": {"keep_recent_turns": 9}, "storage_path": "kept"}',
}


@rows("name", NESTED)
def test_a_file_of_any_kind_sets_what_it_names(name, tmp_path):
    (tmp_path / name).write_text(NESTED[name])

    found = configuration(tmp_path / name, environ={})

    assert found.config == CompactConfig(policy=CompactPolicy(keep_recent_turns=9), storage_path="kept")


def test_without_a_file_there_are_the_defaults_and_the_environment(monkeypatch):
    monkeypatch.setenv("COMPACT_MODEL", "gpt-5")

    assert configuration().config == CompactConfig(model="gpt-5")
    assert configuration(environ={}).config == CompactConfig()


def test_the_environment_wins_over_the_file_key_by_key(tmp_path):
    file = tmp_path / "compact.toml"
    file.write_text("model = 'a'\n[policy]\nkeep_recent_turns = 9\ntrigger_pct = 0.9\n")

    found = configuration(file, environ={"COMPACT_TRIGGER_PCT": "0.7"})

    assert found.config == CompactConfig(
        model="a", policy=CompactPolicy(keep_recent_turns=9, trigger_pct=0.7)
    )
    assert found.origins["policy.trigger_pct"] == "environment"
    assert found.origins["policy.keep_recent_turns"] == "file"
    assert found.origins["policy.strategy"] == "default"


def test_a_variable_with_a_slip_is_a_finding():
    found = configuration(environ={"COMPACT_TRIGER_PCT": "0.7"})

    assert [(one.level, one.where) for one in found.findings] == [("warning", "COMPACT_TRIGER_PCT")]


@rows(
    ("name", "data", "error", "words"),
    [
        ("c.toml", b"[policy", InvalidInput, "is not TOML"),
        ("c.yaml", b"a: [", InvalidInput, "is not YAML"),
        ("c.yaml", b"!!python/object/apply:os.getcwd []", InvalidInput, "is not YAML"),
        ("c.json", b"{", InvalidInput, "is not JSON"),
        ("c.json", b"[" * 100_000, InvalidInput, "is not JSON"),
        ("c.json", b'{"model": "a", "model": "b"}', InvalidInput, "is not JSON: 'model' is given twice"),
        ("c.json", b"[]", InvalidInput, r"must hold settings by name, got \[\]"),
        ("c.ini", b"", InvalidInput, "is no kind of configuration file. Use .toml, .yaml, .yml, .json"),
        ("c.toml", b"\xff\xfe", InvalidInput, "is not UTF-8"),
        ("c.toml", b"typo = 1", InvalidInput, "'typo' is not a setting"),
        ("c.toml", b"policy.trigger_pct = 1.5", InvalidInput, r"policy.trigger_pct must be in range \(0.0, 1.0\]"),
    ],
)  # fmt: skip
def test_a_file_with_a_mistake_is_named(name, data, error, words, tmp_path):
    (tmp_path / name).write_bytes(data)

    with pytest.raises(error, match=words) as caught:
        configuration(tmp_path / name, environ={})

    assert caught.value.where == str(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFound, match="cannot be read"):
        configuration(tmp_path / "c.toml", environ={})


def test_a_yaml_file_of_comments_sets_nothing(tmp_path):
    (tmp_path / "c.yaml").write_text("# nothing yet\n")

    assert configuration(tmp_path / "c.yaml", environ={}).config == CompactConfig()


@rows("name", ["deep/compact.toml", "compact.yaml", "compact.json"])
def test_a_created_file_makes_the_defaults(name, tmp_path):
    path = create_configuration(tmp_path / name)

    assert configuration(path, environ={}).config == CompactConfig()


def test_a_file_is_never_written_over(tmp_path):
    (tmp_path / "compact.toml").write_text("mine = 1\n")

    with pytest.raises(Conflict, match="is there already"):
        create_configuration(tmp_path / "compact.toml")
    assert (tmp_path / "compact.toml").read_text() == "mine = 1\n"


def test_yaml_is_imported_for_a_yaml_file_only(tmp_path):
    (tmp_path / "c.json").write_text("{}")
    code = "import sys; from aether.operations.configuration import configuration; configuration(sys.argv[1])"

    listed = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint('yaml' in sys.modules)", str(tmp_path / "c.json")],
        capture_output=True, text=True, check=True, env=homes.plain_environment(),
    )  # fmt: skip

    assert listed.stdout.strip() == "False"
