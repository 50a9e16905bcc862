"""What git says of a work tree, and that it says nothing where it cannot."""

import os
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether import git
from aether.memory.facts import fact_text


def run(place, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        cwd=place,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def place(tmp_path):
    """A repository with two commits, and one changed, one renamed, one staged and one untracked file."""
    run(tmp_path, "init", "-q", "-b", "main")
    for name in ("a.py", "b.py", "old.py"):
        (tmp_path / name).write_text(f"{name}\n" * 9)
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-qm", "first")
    run(tmp_path, "commit", "-qm", "第二", "--allow-empty")
    (tmp_path / "a.py").write_text("changed\n")
    run(tmp_path, "mv", "old.py", "new name.py")
    (tmp_path / "c.py").write_text("x\n")
    run(tmp_path, "add", "c.py")
    (tmp_path / "漢字.md").write_text("x\n")
    return tmp_path


def test_the_state_has_the_branch_the_changed_files_and_the_last_commits(place):
    state = git.ask(str(place))

    assert (state.branch, state.upstream, state.ahead, state.behind) == ("main", "", 0, 0)
    assert sorted(state.changed) == ["a.py", "c.py", "new name.py", "漢字.md"]
    assert [commit.subject for commit in state.commits] == ["第二", "first"]
    assert len(state.commits[0].id) == 40


def test_a_clone_knows_how_far_it_is_ahead(place, tmp_path_factory):
    clone = tmp_path_factory.mktemp("clone")
    run(clone, "clone", "-q", str(place), "it")
    run(clone / "it", "commit", "-qm", "third", "--allow-empty")

    fact = git.branch_fact(git.ask(str(clone / "it")))

    assert (fact["remote"], fact["outcome"], fact["times"]) == ("origin/main", "ahead 1", 0)
    assert (
        fact_text(fact)
        == f"Branch main (origin/main, ahead 1). Nothing is uncommitted. Last commit: {fact['id'][:9]} third"
    )


def test_asking_changes_no_file_of_the_repository(place):
    def files():
        return {path: path.stat().st_mtime_ns for path in place.rglob("*")}

    os.utime(place / "b.py")  # git would refresh its index
    before = files()
    git.ask(str(place))

    assert files() == before


def test_without_git_a_repository_or_a_commit_nothing_raises(tmp_path, monkeypatch):
    assert git.ask(str(tmp_path)) is None
    assert git.ask(str(tmp_path / "gone")) is None
    assert git.ask("\0") is None
    run(tmp_path, "init", "-q")
    assert git.ask(str(tmp_path)).commits == ()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.ask(str(tmp_path)) is None
    assert git.tracked(str(tmp_path)) is None


def test_a_slow_git_is_not_waited_for(place, tmp_path_factory, monkeypatch):
    slow = tmp_path_factory.mktemp("bin")
    (slow / "git").write_text("#!/bin/sh\nexec sleep 5\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}{os.pathsep}{os.environ['PATH']}")
    started = time.monotonic()

    assert git.ask(str(place)) is None
    assert time.monotonic() - started < 2


def test_programs_that_a_repository_names_are_not_run(place):
    (place / "evil").write_text(f"#!/bin/sh\ntouch {place}/ran\n")
    (place / "evil").chmod(0o755)
    run(place, "config", "core.fsmonitor", str(place / "evil"))
    run(place, "config", "core.pager", str(place / "evil"))
    run(place, "config", "log.showSignature", "true")

    assert git.ask(str(place)) is not None
    assert git.tracked(str(place))
    assert not (place / "ran").exists()


def test_variables_of_a_hook_of_git_name_no_other_repository(place, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path_factory.mktemp("other")))

    assert git.ask(str(place)).branch == "main"


def test_tracked_paths_are_below_the_directory(place):
    (place / "sub" / "in").mkdir(parents=True)
    (place / "sub" / "in" / "d.py").write_text("x\n")
    run(place, "add", "sub")

    assert git.tracked(str(place / "sub")) == {"in/d.py"}
    assert git.tracked(str(place), "sub") == {"in/d.py"}
    assert git.tracked(str(place), "gone") == frozenset()


@given(st.text())
def test_any_status_is_read(text):
    """No output of git raises."""
    git._state(text)
