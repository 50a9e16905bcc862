"""A crash at any system call of the memory tool, and many processes that use it: no edit is lost, each call is whole."""

from __future__ import annotations

import gc
import os

import pytest

import aether
from aether.api.memory_tool import memory_tool
from aether.store import doctor, files
from aether.store.undo import states_since
from tests import homes
from tests.api.test_memory_tool import shown, stored, tool
from tests.crash import faults
from tests.crash.test_writers import start

A, B = "/memories/a.md", "/memories/dir/b.md"


def _used(home):
    """A home with two notes, shown."""
    homes.fresh(home.parent)
    tool(home, "create", path=A, file_text="one")
    tool(home, "create", path=B, file_text="two")


def _edited(home):
    """A home with two notes, one of which a person has edited since, and one of the person's own."""
    _used(home)
    (home / "memories/a.md").write_text("one by hand")
    (home / "memories/mine.md").write_text("mine")


def _create(home):
    tool(home, "create", path="/memories/dir/sub/c.md", file_text="three")


def _replace(home):
    tool(home, "str_replace", path=B, old_str="two", new_str="zwei")


def _rename(home):
    tool(home, "rename", old_path="/memories/dir", new_path="/memories/d2")


def _delete(home):
    tool(home, "delete", path="/memories/dir")


def _undo(home):
    aether.undo(3, home=home)


CASES = {
    "create": (_used, _create), "replace": (_used, _replace), "rename": (_used, _rename), "delete": (_used, _delete),
    "undo": (_used, _undo), "replace after an edit": (_edited, _replace), "undo after an edit": (_edited, _undo),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_the_next_command_finds_all_or_nothing(case, kind, chosen, tmp_path, copies):
    prepare, act = CASES[case]
    original = tmp_path / "original" / ".aether"
    prepare(original)
    for _ in range(2):  # the first time reads shipped files as well
        measured = copies(original)
        homes.reopened(measured)
        with faults.injected(faults.Calls()) as calls:
            act(measured)
    before, after = settled(copies(original)), settled(measured)
    assert before != after

    for number, name, fault in chosen(faults.cases(calls.names, kind)):
        home = copies(original)
        homes.reopened(home)
        done = faults.acknowledged(lambda home=home: act(home), faults.Calls(number, fault))
        where = f"{fault.name} at call {number} ({name})"

        found = settled(home)

        assert found in ([after] if done else [before, after]), where
        if prepare is _edited:
            assert_kept(home, {"/memories/a.md": "one by hand", "/memories/mine.md": "mine"}, where)
        doctor.repair(home, now=homes.later(1))
        assert not list(home.rglob(f"*{files.TEMP_SUFFIX}")), where
        assert not [one for one in aether.examine(home=home) if one.level == "error"], where
    gc.collect()
    assert len(calls.names) > 40


def settled(home):
    """Return the notes after one more command, having seen that the directory shows them."""
    homes.reopened(home)
    memory_tool({"command": "view", "path": "/memories"}, home=home)
    assert shown_whole(home) == stored(home)
    return stored(home)


def shown_whole(home):
    return {path: text for path, text in shown(home).items() if not path.endswith(files.TEMP_SUFFIX)}


def assert_kept(home, edits, where):
    snapshot = homes.reopened(home)
    pasts = [
        states_since(snapshot, revision)[1]["memories"]["files"]
        for revision in range(1, snapshot.revision + 1)
    ]
    for path, text in edits.items():
        assert any(past.get(path) == text for past in pasts), where


WRITERS = 16
NOTES = 4


def write(home, who):
    for nth in range(NOTES):
        path = f"/memories/{who}/{nth}.md"
        tool(home, "create", path=path, file_text="a")
        tool(home, "str_replace", path=path, old_str="a", new_str=f"{who}-{nth}\n")


def take(home, who):
    """Take the one mark that is there, and put one's own in its place."""
    command = {
        "command": "str_replace",
        "path": "/memories/one.md",
        "old_str": "free",
        "new_str": f"taken by {who}",
    }
    answer = memory_tool(command, home=home)
    (home / f"told{who}").write_text(f"{answer.is_error} {answer.text}")


def ended(children):
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


@pytest.mark.slow
def test_sixteen_processes_with_files_of_their_own_lose_nothing(home):
    assert ended([start(write, home, who) for who in range(WRITERS)]) == [0] * WRITERS

    expected = {
        f"/memories/{who}/{nth}.md": f"{who}-{nth}\n" for who in range(WRITERS) for nth in range(NOTES)
    }
    assert stored(home) == shown(home) == expected


@pytest.mark.slow
def test_of_sixteen_processes_that_replace_one_text_one_does(home):
    tool(home, "create", path="/memories/one.md", file_text="free")

    assert ended([start(take, home, who) for who in range(WRITERS)]) == [0] * WRITERS

    reported = [(home / f"told{who}").read_text() for who in range(WRITERS)]
    assert sum(one.startswith("False The memory file has been edited.") for one in reported) == 1
    assert (
        sum(one.startswith("True No replacement was performed, old_str `free`") for one in reported)
        == WRITERS - 1
    )
    assert shown(home) == stored(home)
