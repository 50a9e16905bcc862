"""The memory tool of Anthropic (`memory_20250818`) over a home: its commands as one function.

Each command that changes something is one transaction of the home: in the log, undone by `undo`, safe at a crash.
What the model sees as files are files in `memories/` as well (`memory_directory`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.memory import memory_files
from aether.operations.edge import Author, Home, change, find
from aether.operations.memory_directory import alone, seen, settled, show
from aether.shapes import Change


class ToolAnswer(NamedTuple):
    """What goes back to the model."""

    text: str
    is_error: bool


def memory_tool(command: Mapping[str, Any], *, home: Home = None) -> ToolAnswer:
    """Return the answer to `command`, the input of a call of the tool, after doing what it says.

    What the model got wrong is an answer, not an exception. A home that cannot be written can still be viewed.

    Raises:
        NotFound, LockTimeout, StorageFailed, UnsafePath: the home or its directory cannot be used.
    """
    name, path = command.get("command"), command.get("path", command.get("old_path"))
    author = Author(f"memory {name}", by="model", reason=str(path))

    def plan(documents: Mapping[str, Any]) -> Change:
        return memory_files.change(documents[memory_files.DOCUMENT], command, others=shown.others)

    place = find(home)
    if name == "view" and not os.access(place, os.W_OK):
        shown = seen(place)
        return ToolAnswer(*memory_files.run(shown.files, command, others=shown.others)[:2])
    with alone(place):
        shown = settled(place)
        answer = memory_files.run(shown.files, command, others=shown.others)
        if answer.files is not None:
            # Once more with the home's own lock held: an undo may have been in between.
            answer = change(place, plan, author).result
        if answer.files is not None:
            show(place, shown._replace(files=answer.files))
    return ToolAnswer(answer.text, answer.is_error)


def clear_memory_files(*, home: Home = None) -> int:
    """Remove every file of the memory tool and return how many there were; `undo` brings them back."""
    place = find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        document = documents[memory_files.DOCUMENT]
        return memory_files.replaced(document, {})._replace(result=len(document["files"]))

    with alone(place):
        shown = settled(place)
        count: int = change(place, plan, Author("memory clear")).result
        show(place, shown._replace(files={}))
    return count
