"""The choice of an architect: where it is written, that it counts, and that the rest of the file stays."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.api import architects
from aether.errors import AetherError, Conflict, InvalidDocument, InvalidInput
from aether.project import user_file
from aether.store import config
from tests import homes
from tests.tables import rows

TABLES = st.lists(
    st.sampled_from([
        "[claude]\nrecall = false\n", "# mine\n", "[store]\nfold_bytes = 9 # few\n", 'model = "gpt-4"\n', "\n", "[chat]\r\n",
    ]), unique=True, max_size=5,
).map(lambda parts: "".join(sorted(parts, key=lambda part: part.startswith("["))))  # fmt: skip
ARCHITECT = st.sampled_from(
    ["", '[architect]\nmodel = "m"\n', '[architect] # who\ndefault = "ollama" # then\n[policy]\n']
)


@given(TABLES, ARCHITECT, st.sampled_from([*architects.OFFERED, "command:jq -r '.a' \"ü\""]))
def test_the_choice_is_written_and_nothing_else_changes(tables, architect, name):
    text = tables + architect

    made = architects.with_architect(text, name)

    before, after = tomllib.loads(text), tomllib.loads(made)
    assert after.pop("architect")["default"] == name
    before.pop("architect", None)
    assert after == before
    assert architects.with_architect(made, name) == made
    assert set(tables.splitlines()) <= set(made.splitlines())


def test_for_a_project_the_home_has_it_and_the_user_trusts_it(home):
    architects.write_choice(architects.choose("claude-code", "project", home), "project")

    assert config.load(home).architect == "claude-code"
    assert architects.chosen("project", home) == "claude-code"
    assert not Path(user_file()).exists()


def test_for_all_projects_the_user_has_it(home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    architects.write_choice(architects.choose("host", "user", home), "user")

    assert config.load(home).architect == "host"
    assert not (home / config.NAME).exists()
    assert architects.chosen("user", home) == "host"


def test_what_a_repository_chose_counts_for_nothing(home):
    (home / config.NAME).write_text('[architect]\ndefault = "claude-code"\n')

    assert architects.chosen("project", home) == ""
    with pytest.raises(Conflict, match="nobody trusts"):
        architects.choose("host", "project", home)


def test_settings_of_the_home_that_are_trusted_stay_trusted(home):
    homes.configure(home, '[architect]\nmodel = "m"\n')

    architects.write_choice(architects.choose("ollama", "local", home), "local")

    assert (config.load(home).architect, config.load(home).architect_model) == ("ollama", "m")


@rows("name", ["", "gpt", "command", "command:", "host:x", "Host"])
def test_there_is_no_other_architect(home, name):
    with pytest.raises(InvalidInput, match="must be one of"):
        architects.choose(name, "project", home)


@rows("text", ["[", "architect = 3", 'architect.default = "host"'])
def test_a_file_that_only_a_person_can_change_is_left(home, text):
    homes.configure(home, text)

    with pytest.raises(AetherError) as refused:
        architects.choose("ollama", "project", home)

    assert isinstance(refused.value, (InvalidDocument, InvalidInput))
    assert (home / config.NAME).read_text() == text
