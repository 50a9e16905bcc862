"""Places: the home of a call, and when it may be made."""

from __future__ import annotations

import pytest

from aether.errors import NotFound
from aether.integrations.mcp_server.server import served_home


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in which the server is started from somewhere else."""
    directory = tmp_path / "project"
    (directory / ".git").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(directory))
    monkeypatch.chdir(tmp_path)
    return directory


def test_the_project_that_claude_code_names_has_its_home_made(project):
    assert served_home(None) == project / ".aether"
    assert (project / ".aether" / "data" / "memory.json").exists()


def test_a_home_that_is_named_comes_before_that_of_the_project(project, tmp_path, monkeypatch):
    assert served_home(str(tmp_path / "one" / ".aether")) == tmp_path / "one" / ".aether"

    monkeypatch.setenv("AETHER_HOME", str(tmp_path / "two" / ".aether"))

    assert served_home(None) == tmp_path / "two" / ".aether"
    assert (tmp_path / "two" / ".aether" / "data").is_dir()


def test_without_a_word_from_claude_code_it_is_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    assert served_home(None) == tmp_path / ".aether"


def test_a_home_that_only_holds_what_hooks_put_there_is_made_whole(project):
    (project / ".aether" / "hooks" / "spool").mkdir(parents=True)

    assert (served_home(None) / "data" / "memory.json").exists()


def test_no_home_is_made_in_ones_home_directory_unless_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)

    assert not served_home(None).exists()
    assert served_home(str(tmp_path / ".aether")).exists()


def test_no_home_is_made_where_that_is_turned_off(project, monkeypatch):
    monkeypatch.setenv("AETHER_AUTO_INIT", "0")

    assert not served_home(None).exists()
    assert not served_home(str(project / "other")).exists()


def test_nothing_of_another_kind_is_made_a_home(tmp_path):
    from aether.api.status import get_memory_status

    assert served_home(str(tmp_path)) == tmp_path
    with pytest.raises(NotFound, match="is not a home"):
        get_memory_status(home=served_home(str(tmp_path)))
