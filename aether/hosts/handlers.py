"""The hook handlers of aether in the settings of a host, text to text: every byte of others stays.

Claude Code, Codex CLI and Gemini CLI keep groups of handlers for each event: `{"hooks": {"Stop": [{"matcher": "…",
"hooks": [handler]}]}}`; Copilot CLI and Cursor keep the handlers themselves: `{"version": 1, "hooks": {"stop": [handler]}}`.
Merging twice is merging once, and removing gives the text from before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aether.errors import InvalidDocument, shown
from aether.hosts import HOSTS
from aether.hosts.programs import MODULE_ARGUMENTS, PROGRAM
from aether.hosts.settings import Edit
from aether.text import json_edit
from aether.types import JsonObject

# A shell line that is silent if the program is missing: for files that are shared.
_GUARDED = re.compile(r"\Acommand -v .+ && exec .*aether.* (\w+); exit 0\Z", re.DOTALL)


EMPTY = "{}\n"


# The keys of a handler that aether sets.
HANDLER_KEYS = ("type", "command", "args", "timeout", "timeoutSec")

Place = tuple[int, ...]
"""The place of a handler in the list of its event: its number, or those of its group and of the handler in it."""


def merge(text: str, entries: JsonObject, *, where: str = "", new_file: str = EMPTY) -> str:
    """Return the settings `text` with `entries`, a group or a handler by event, as our only handlers.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    text = text if text.strip() else new_file
    for event in [*hooks_of(text, where=where)]:
        text = _merged(text, event, entries.get(event), where)
    missing = {event: [entry] for event, entry in entries.items() if event not in hooks_of(text)}
    if not missing:
        return text
    if "hooks" not in parse_settings(text):
        return json_edit.add(text, (), [("hooks", missing)])
    return json_edit.add(text, ("hooks",), missing.items())


def _merged(text: str, event: str, entry: JsonObject | None, where: str) -> str:
    events = hooks_of(text)
    places = own_places(events[event])
    if entry is None:
        return _without(text, event, keep=False) if places else text
    present = _listed(events, event, where)
    if len(places) == 1 and (len(places[0]) > 1) == ("hooks" in entry):
        (number, *_) = place = places[0]
        group = present[number]
        if len(place) == 1:
            return _updated(text, ("hooks", event, number), group, entry)
        if len(group["hooks"]) == 1 or group.get("matcher") == entry.get("matcher"):
            at: json_edit.Path = ("hooks", event, number, "hooks", place[1])
            text = _updated(text, at, group["hooks"][place[1]], *entry["hooks"])
            return _with_matcher(text, ("hooks", event, number), group, entry)
    return json_edit.add(_without(text, event, keep=True), ("hooks", event), [(None, entry)])


def _updated(text: str, at: json_edit.Path, present: JsonObject, handler: JsonObject) -> str:
    """Return `text` with our handler brought up to date in its place."""
    # Keys that a person has added, such as a statusMessage, stay.
    wanted = handler | {key: value for key, value in present.items() if key not in HANDLER_KEYS}
    return text if present == wanted else json_edit.put(text, at, wanted)


def _with_matcher(text: str, at: json_edit.Path, present: JsonObject, group: JsonObject) -> str:
    """Return `text` with the matcher of `group` in the group at `at`."""
    if present.get("matcher") == group.get("matcher"):
        return text
    if "matcher" not in group:
        return json_edit.drop_key(text, at, "matcher")
    if "matcher" not in present:
        return json_edit.add(text, at, [("matcher", group["matcher"])])
    return json_edit.put(text, (*at, "matcher"), group["matcher"])


def unmerge(text: str, before: str = "", *, where: str = "") -> str:
    """Return the settings `text` without our handlers and the objects that they leave empty, except those in `before`.

    The text is empty if nothing but a version is left in it and there was no file before.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    events = [event for event, entries in hooks_of(text, where=where).items() if own_places(entries)]
    hooks_before = parse_settings(before).get("hooks") if before.strip() else None
    for event in events:
        text = _without(text, event, keep=isinstance(hooks_before, dict) and event in hooks_before)
    if events and hooks_before is None and not hooks_of(text):
        text = json_edit.drop_key(text, (), "hooks")
    return text if before.strip() or not events or parse_settings(text).keys() - {"version"} else ""


def _without(text: str, event: str, *, keep: bool) -> str:
    """Return `text` without our handlers of `event`, without emptied groups and, unless `keep`, without an empty event."""
    event_path = ("hooks", event)
    for number, *below in reversed(own_places(hooks_of(text)[event])):
        if below:
            text = json_edit.drop(text, (*event_path, number, "hooks"), below[-1])
        if not below or not hooks_of(text)[event][number]["hooks"]:
            text = json_edit.drop(text, event_path, number)
    return text if keep or hooks_of(text)[event] else json_edit.drop_key(text, ("hooks",), event)


def own_places(entries: Any) -> list[Place]:
    """Return the places of our handlers in the list of one event."""
    places: list[Place] = []
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
            places += [
                (number, below) for below, handler in enumerate(entry["hooks"]) if is_own_handler(handler)
            ]
        elif is_own_handler(entry):
            places.append((number,))
    return places


def is_own_handler(handler: object) -> bool:
    """Return whether aether made a handler, in this version or an earlier one.

    >>> is_own_handler({"type": "command", "command": "/venv/bin/aether-hook", "args": ["Stop"]})
    True
    >>> is_own_handler({"type": "command", "command": "echo aether-hook"})
    False
    """
    return bool(program_of(handler))


def program_of(handler: object) -> list[str]:
    """Return the command of one of our handlers, without host and event; empty for a handler of others."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return []
    command, arguments = handler["command"], handler.get("args", [])
    if _GUARDED.match(command):
        words = _words(command.partition(" && exec ")[2].partition("; ")[0])
    elif isinstance(arguments, list) and all(isinstance(word, str) for word in arguments) and arguments:
        words = [command, *arguments]
    else:
        words = _words(command)
    words = words[:-1]  # the event
    words = words[:-1] if words and words[-1] in HOSTS else words
    names = [re.split(r"[\\/]", word)[-1].removesuffix(".exe") for word in words[:1]] + words[1:]
    ours = names in ([PROGRAM], ["aether", "hook"]) or names[1:] == [*MODULE_ARGUMENTS, "hook"]
    return words if ours else []


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: not ours
        return []


def hooks_of(text: str, *, where: str = "") -> JsonObject:
    """Return the hooks in settings, by event."""
    return table_at(text, ("hooks",), where)


def table_at(text: str, names: Sequence[str], where: str) -> JsonObject:
    """Return the nested object `names` of a text; empty if it is missing."""
    value = parse_settings(text, where=where)
    for name in names:
        value = value.get(name, {})
        if not isinstance(value, dict):
            raise InvalidDocument(
                f"{name} is {shown(value)}.",
                fix="Make it an object, as the host reads it.",
                where=where or "settings",
            )
    return value


def _listed(events: JsonObject, event: str, where: str) -> list[Any]:
    """Return what the settings hold for `event`; an empty list if it is missing."""
    present = events.get(event, [])
    if not isinstance(present, list):
        raise InvalidDocument(
            f"hooks.{event} is {shown(present)}.",
            fix="Make it a list, as the host reads it.",
            where=where or "settings",
        )
    return present


def parse_settings(text: str, *, where: str = "") -> JsonObject:
    """Return the settings in a text.

    Raises:
        InvalidDocument: it is not strict JSON, or no object.
    """
    try:
        value = json_edit.parse(text)
    except ValueError as reason:
        raise InvalidDocument(
            f"is not JSON: {reason}. Nothing was changed.",
            fix="Correct it (comments and trailing commas are not allowed), then try again.",
            where=where or "settings",
        ) from reason
    if not isinstance(value, dict):
        raise InvalidDocument(
            f"holds {shown(value)}, not an object. Nothing was changed.",
            fix="Correct it, then try again.",
            where=where or "settings",
        )
    return value


# --- What installing puts into a file


def command_line(program: list[str] | None, host: str, event: str) -> str:
    """Return the shell line that reports `event` of `host`; without a program that of the PATH, silent if it has none."""
    if program is None:
        return f"command -v {PROGRAM} >/dev/null 2>&1 && exec {PROGRAM} {host} {event}; exit 0"
    return shlex.join([*program, host, event])


def edit(
    path: Path, root: Path, host: str, limits: Mapping[str, int], program: list[str] | None, *, flat: str = ""
) -> Edit:
    """Return the edit of a file with a handler for each event in `limits`, the time the host waits.

    Each handler is in a group of its own; `flat` is the key of the time where the host has no groups.
    """
    handlers: JsonObject = {
        event: {"type": "command", "command": command_line(program, host, event), flat or "timeout": limit}
        for event, limit in limits.items()
    }
    if flat:
        return edit_of(path, root, handlers, new_file='{\n  "version": 1\n}\n')
    return edit_of(path, root, {event: {"hooks": [handler]} for event, handler in handlers.items()})


def edit_of(path: Path, root: Path, entries: JsonObject, *, new_file: str = EMPTY) -> Edit:
    """Return the edit of a file with `entries`, a group or a handler by event."""
    return Edit(
        path,
        lambda text: merge(text, entries, where=str(path), new_file=new_file),
        lambda text, before: unmerge(text, before, where=str(path)),
        root,
    )
