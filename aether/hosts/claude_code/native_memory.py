"""Native memory: Claude Code keeps its own notes in `memories/` of the home, so that each of its writes is a change of the home.

Its setting `autoMemoryDirectory` points there, in the settings of one person in one project: of files that are committed Claude
Code ignores it. What the directory before held is brought in, and uninstalling gives all notes back to it. Where that is, is
known in the user's own state directory only: a home that came from others must not choose where files are written.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from aether import regular
from aether.project import repository_of, state_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aether.hosts.installing import NativeMemory
    from aether.hosts.settings import Edit
    from aether.types import JsonObject

SETTING = "autoMemoryDirectory"
HOST = "claude-code"
# Claude Code makes the name of a project's directory so; a longer name is cut, and has a digest behind it.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9]")
_MOST_NAME_CHARS = 200


def record_file(home: str | os.PathLike[str]) -> str:
    """Return the path of the record of an installation, whether or not it is there."""
    name = regular.digest(os.path.realpath(home).encode("utf-8", "surrogateescape"))
    return os.path.join(state_directory(), "native-memory", f"{name}.json")


def is_note(home: str, call: Mapping[str, Any]) -> bool:
    """Return whether a call of a tool writes a note of an installed native memory."""
    path = call["input"].get("file_path")
    if not isinstance(path, str) or "\0" in path or not is_installed(home):
        return False
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(home), "memories", ""))


def is_installed(home: str) -> bool:
    """Return whether Claude Code keeps its notes in `home`."""
    return os.path.isdir(os.path.join(home, "memories")) and os.path.exists(record_file(home))


def keep_writes(home: str, event: str, session: str) -> None:
    """Commit what Claude Code wrote into `memories/` since the last time.

    Raises:
        AetherError: it could not be stored; the next event, or the next command of the memory tool, stores it.
    """
    from pathlib import Path

    from aether.api.memory_tool import keep_edits

    keep_edits(Path(home), by=HOST, reason=f"{event} {session}".strip())


def install(home: Path, *, project: Path | None = None, dry_run: bool = False) -> NativeMemory:
    """Let Claude Code keep its notes of this project in `memories/` of `home`, with those that it has.

    Doing it again changes nothing.

    Raises:
        InvalidInput: the settings of this project would be those of the user.
        InvalidDocument: a settings file is not JSON; nothing was changed.
        Conflict, StorageFailed: a file cannot be read or written, or was changed meanwhile.
    """
    from pathlib import Path

    from aether.api.memory_tool import bring_in, notes_in
    from aether.hosts import settings
    from aether.hosts.claude_code.install import claude_directory
    from aether.hosts.installing import NativeMemory
    from aether.memory.memory_tool import checksum
    from aether.store.files import save

    edit = _edit(home, project)
    record = _record(home)
    directory = Path(record["directory"]) if record else _present_directory(home, edit.path, edit.root)
    texts, others = ({}, []) if record else notes_in(directory)
    (planned,) = settings.install([edit], claude_directory(), shared=False, dry_run=True)
    if dry_run:
        return NativeMemory(planned, str(directory), sorted(texts), others)
    if not record:
        known = {path: checksum(text) for path, text in texts.items()}
        value = {"home": str(home), "settings": str(edit.path), "directory": str(directory), "files": known}
        path = Path(record_file(home))
        save(path, json.dumps(value, indent=2).encode("ascii") + b"\n")
    bring_in(home, texts, by=HOST, reason=str(directory))
    (change,) = settings.install([edit], claude_directory(), shared=False)
    return NativeMemory(change, str(directory), sorted(texts), others)


def uninstall(home: Path, *, dry_run: bool = False) -> NativeMemory | None:
    """Give the notes back to the directory that Claude Code used before, and restore its setting; None if nothing is installed.

    The notes stay in the home as well. A file that somebody else has written there meanwhile is kept beside the note.

    Raises:
        InvalidDocument: a settings file is not JSON; nothing was changed.
        Conflict, StorageFailed: a file cannot be read or written, or was changed meanwhile.
    """
    from pathlib import Path

    from aether.api.memory_tool import give_back, keep_edits
    from aether.hosts import settings
    from aether.hosts.claude_code.install import claude_directory
    from aether.hosts.installing import NativeMemory

    record = _record(home)
    if not record:
        return None
    edit = _edit(home, Path(record["settings"]).parent.parent)
    directory = Path(record["directory"])
    files, left = list[str](), list[str]()
    if (home / "data").is_dir():  # else the home was removed, and the notes with it
        if not dry_run:
            keep_edits(home, by=HOST, reason="uninstall")
        files, left = give_back(home, directory, record["files"], dry_run=dry_run)
    (change,) = settings.uninstall([edit], claude_directory(), dry_run=dry_run)
    if not dry_run:
        os.unlink(record_file(home))
    return NativeMemory(change, str(directory), files, left)


def _record(home: Path) -> JsonObject | None:
    """Return the record of an installation; None without one.

    Raises:
        CorruptDocument: it is damaged.
    """
    from aether.errors import CorruptDocument

    path = record_file(home)
    try:
        value = json.loads(regular.read(path, regular.CONFIG_BYTES))
        if isinstance(value["directory"], str) and isinstance(value["settings"], str):
            return {**value, "files": dict(value["files"])}
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise CorruptDocument("does not record native memory.", fix="Remove it, and install again.", where=path)


def _edit(home: Path, project: Path | None) -> Edit:
    """Return the edit of the settings of one person in a project that points the setting to `home`.

    Raises:
        InvalidInput: they would be those of the user, which hold for every project.
    """
    from aether.errors import InvalidInput
    from aether.hosts.claude_code.install import is_user_settings, project_directory, settings_path
    from aether.hosts.handlers import EMPTY, parse_settings
    from aether.hosts.settings import Edit
    from aether.text import json_edit

    path, value = settings_path("local", project=project), str(home / "memories")
    if is_user_settings(path):
        raise InvalidInput(
            "this project's settings would be those of the user.",
            fix="Go into a project: each has a memory of its own.",
            where=str(path),
        )

    def merge(text: str) -> str:
        text = text if text.strip() else EMPTY
        present = parse_settings(text, where=str(path))
        if SETTING not in present:
            return json_edit.add(text, (), [(SETTING, value)])
        return text if present[SETTING] == value else json_edit.put(text, (SETTING,), value)

    def unmerge(text: str, before: str) -> str:
        if parse_settings(text, where=str(path)).get(SETTING) != value:
            return text
        earlier = parse_settings(before).get(SETTING) if before.strip() else None
        if earlier is not None and earlier != value:
            return json_edit.put(text, (SETTING,), earlier)
        text = json_edit.drop_key(text, (), SETTING)
        return text if before.strip() or parse_settings(text) else ""

    return Edit(path, merge, unmerge, project or project_directory())


def _present_directory(home: Path, local: Path, project: Path) -> Path:
    """Return the directory in which Claude Code keeps its notes of a project now."""
    from pathlib import Path

    from aether.hosts.claude_code.install import claude_directory, read_settings, settings_path

    for path in (local, settings_path("user")):
        value = read_settings(path).get(SETTING)
        if isinstance(value, str) and value and value != str(home / "memories"):
            return Path(value).expanduser()
    root = repository_of(str(project))[1] or os.path.realpath(project)
    name = _NOT_IN_NAMES.sub("-", root)
    projects = claude_directory() / "projects"
    if len(name) > _MOST_NAME_CHARS:
        name = next((path.name for path in projects.glob(f"{name[:_MOST_NAME_CHARS]}-*")), name)
    return projects / name / "memory"


if __name__ == "__main__":
    keep_writes(*sys.argv[1:])
