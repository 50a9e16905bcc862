"""The rules that act in a home, in the user's own state directory: one file for each home.

They are not in the home: what a repository brings, or another member writes, can never stop or allow a call. The hook
that is asked before each call reads only this file.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple, cast

from aether import regular
from aether.errors import AetherError, CorruptDocument
from aether.project import state_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aether.types import EnforcedRule

# Beside the file with the rules: the calls that they stopped.
_STOPS, _MOST_STOP_BYTES, _NAME_CHARS = "l", 64 * 1024, 120
_FIELDS = frozenset({"id", "entry", "text", "said_at", "action", "tool", "command", "regex", "path"})


class Stop(NamedTuple):
    """A call of a tool that a rule stopped."""

    at: str
    """ISO 8601 in UTC."""
    rule: str
    action: str
    tool: str
    session: str


def file_of(home: str | os.PathLike[str]) -> str:
    """Return the path of the file with the rules of `home`, whether or not it is there."""
    name = regular.digest(os.path.realpath(home).encode("utf-8", "surrogateescape"))
    return os.path.join(state_directory(), "rules", f"{name}.json")


def former_homes() -> list[str]:
    """Return the paths of the homes that have rules and are not there: moved, removed, or on a disk that is elsewhere."""
    from pathlib import Path

    from aether.store import files

    places = []
    for path in files.files_ending(Path(os.path.dirname(file_of(""))), ".json"):
        try:
            home = json.loads(regular.read(path, regular.DOCUMENT_BYTES))["home"]
            places += [home] if str(path) == file_of(home) and not os.path.isdir(home) else []
        except (AetherError, OSError, ValueError, LookupError, TypeError, RecursionError):
            continue  # it acts nowhere
    return places


def read(home: str | os.PathLike[str]) -> list[EnforcedRule]:
    """Return the rules that act in `home`, oldest first.

    Raises:
        CorruptDocument: the file is not one of rules.
        OSError, UnsafePath: it cannot be read.
    """
    path = file_of(home)
    try:
        value = json.loads(regular.read(path, regular.DOCUMENT_BYTES))["rules"]
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, TypeError, RecursionError) as reason:
        raise CorruptDocument(
            "is not a file of rules.", fix="Remove it, and enforce the rules again.", where=path
        ) from reason
    if not isinstance(value, list) or not all(
        isinstance(rule, dict) and rule.keys() >= _FIELDS for rule in value
    ):
        raise CorruptDocument(
            "holds something else than rules.", fix="Remove it, and enforce the rules again.", where=path
        )
    return cast("list[EnforcedRule]", value)


def note_stop(home: str, rule: str, action: str, tool: str, session: str) -> None:
    """Note that a rule stopped a call; the words of the call are not kept. A failure is ignored: the call is stopped anyway."""
    stop = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rule": rule, "action": action,
        "tool": tool[:_NAME_CHARS], "session": session[:_NAME_CHARS],
    }  # fmt: skip
    try:
        regular.append_line(
            f"{file_of(home)}{_STOPS}", json.dumps(stop).encode("ascii") + b"\n", _MOST_STOP_BYTES
        )
    except (AetherError, OSError):
        return


def stops(home: str | os.PathLike[str]) -> list[Stop]:
    """Return the calls that rules of `home` stopped, oldest first; those before the newest few hundred are dropped.

    Raises:
        OSError, UnsafePath: the file cannot be read.
    """
    try:
        lines = (
            regular.read(f"{file_of(home)}{_STOPS}", 2 * _MOST_STOP_BYTES)
            .decode("utf-8", "replace")
            .splitlines()
        )
    except FileNotFoundError:
        return []
    values = []
    for line in lines:
        try:
            values.append(Stop(**json.loads(line)))
        except (ValueError, TypeError):
            continue  # the write was cut short
    return values


def change(home: Path, edit: Callable[[list[EnforcedRule]], list[EnforcedRule]]) -> list[EnforcedRule]:
    """Replace the rules that act in `home` by what `edit` makes of them, and return these.

    Raises:
        CorruptDocument: the file is not one of rules; nothing was changed.
        StorageFailed: the state directory cannot be written.
    """
    from pathlib import Path

    from aether.store import files

    path = Path(file_of(home))
    with files.storage_errors(path):
        files.make_directory(path.parent)
        with files.locked(path.parent):
            rules = edit(read(home))
            record = {"home": os.path.realpath(home), "rules": rules}
            files.write_whole(path, json.dumps(record, ensure_ascii=False, indent=2).encode() + b"\n")
    return rules
