"""Many processes use the memory tool at once: nothing is lost, and what two of them want is answered, never raised."""

from __future__ import annotations

import os

import pytest

from aether.api.memory_tool import memory_tool
from tests.api.test_memory_tool import shown, stored, tool
from tests.crash.test_writers import start

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

    told = [(home / f"told{who}").read_text() for who in range(WRITERS)]
    assert sum(one.startswith("False The memory file has been edited.") for one in told) == 1
    assert (
        sum(one.startswith("True No replacement was performed, old_str `free`") for one in told)
        == WRITERS - 1
    )
    assert shown(home) == stored(home)
