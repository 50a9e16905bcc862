"""Directories in which one conversation is many files: these are joined, one record on a line, in the order of their names.

opencode keeps each message and each part of it in a file, OpenHands each event.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from aether.types import JsonObject

# Files that a host keeps beside a conversation, with the file of the conversation: they repeat it, or are about it.
_BESIDE = {
    "ui_messages.json": "api_conversation_history.json",
    "task_metadata.json": "api_conversation_history.json",
    "base_state.json": "events",
}


class Joined(io.BytesIO):
    """The lines of one conversation; `name` is that of its directory."""

    def __init__(self, name: str, values: Iterable[JsonObject]) -> None:
        super().__init__(b"".join(json.dumps(value).encode() + b"\n" for value in values))
        self.name = name


def joined(paths: Iterable[Path]) -> Iterator[Path | Joined]:
    """Yield `paths`, sorted by directory, with the files of one conversation as one stream.

    Files beside a conversation that only repeat it are left out.
    """
    for directory, files in groupby(paths, key=lambda path: path.parent):
        members = [*files]
        storage = directory.parent.parent
        if _is_part(directory) or (directory.parent.name == "session" and (storage / "message").is_dir()):
            continue
        if directory.parent.name == "message" and members[0].name.startswith("msg_"):
            yield Joined(directory.name, _messages(members, storage / "part"))
        elif directory.name == "events" and all(path.suffix == ".json" for path in members):
            events = map(_content, sorted(members, key=_order))
            yield Joined(directory.parent.name, filter(None, events))
        else:
            yield from (path for path in members if not _is_beside(path))


def _is_part(directory: Path) -> bool:
    return directory.parent.name == "part" and directory.name.startswith("msg_")


def _is_beside(path: Path) -> bool:
    conversation = _BESIDE.get(path.name)
    return conversation is not None and path.with_name(conversation).exists()


def _messages(members: list[Path], parts: Path) -> Iterator[JsonObject]:
    for path in members:
        files = sorted((parts / path.stem).glob("*.json"))
        yield {"info": _content(path), "parts": [*filter(None, map(_content, files))]}


def _order(path: Path) -> tuple[int, str]:
    """Return the place of an event: its number, else its name."""
    digits = path.stem.removeprefix("event-").partition("-")[0]
    return (int(digits), "") if digits.isdecimal() else (0, path.name)


def _content(path: Path) -> Any:
    """Return the JSON of a file; nothing if it is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        return json.loads(path.read_bytes())
    return {}
