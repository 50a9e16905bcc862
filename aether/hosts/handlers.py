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
HANDLER_KEYS = ("type", "command", "args", "timeout")


def merge(text: str, groups: JsonObject, *, where: str = "") -> str:
    """Return the settings `text` with `groups`, by event, as our only handlers.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    text = text if text.strip() else EMPTY
    for event in [*hooks_of(text, where=where)]:
        text = _merged(text, event, groups.get(event), where)
    missing = {event: [group] for event, group in groups.items() if event not in hooks_of(text)}
    if not missing:
        return text
    if "hooks" not in parse_settings(text):
        return json_edit.add(text, (), [("hooks", missing)])
    return json_edit.add(text, ("hooks",), missing.items())


def _merged(text: str, event: str, new_group: JsonObject | None, where: str) -> str:
    events = hooks_of(text)
    places = own_positions(events[event])
    if new_group is None:
        return _without(text, event, keep=False) if places else text
    groups = _listed(events, event, where)
    if len(places) == 1:
        (group_number, below) = places[0]
        present = groups[group_number]
        alone = len(present["hooks"]) == 1
        if alone or present.get("matcher") == new_group.get("matcher"):
            return _updated(text, ("hooks", event, group_number), present, new_group, below)
    return json_edit.add(_without(text, event, keep=True), ("hooks", event), [(None, new_group)])


def _updated(
    text: str, group_path: json_edit.Path, present: JsonObject, new_group: JsonObject, below: int
) -> str:
    """Return `text` with our handler brought up to date in its place."""
    (wanted_handler,) = new_group["hooks"]
    present_handler = present["hooks"][below]
    # Keys that a person has added, such as a statusMessage, stay.
    handler = wanted_handler | {
        key: value for key, value in present_handler.items() if key not in HANDLER_KEYS
    }
    if present_handler != handler:
        text = json_edit.put(text, (*group_path, "hooks", below), handler)
    if present.get("matcher") == new_group.get("matcher"):
        return text
    if "matcher" not in new_group:
        return json_edit.drop_key(text, group_path, "matcher")
    if "matcher" not in present:
        return json_edit.add(text, group_path, [("matcher", new_group["matcher"])])
    return json_edit.put(text, (*group_path, "matcher"), new_group["matcher"])


def unmerge(text: str, before: str = "", *, where: str = "") -> str:
    """Return the settings `text` without our handlers and the objects that they leave empty, except those in `before`.

    The text is empty if nothing else is in it and there was no file before.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    events = [event for event, groups in hooks_of(text, where=where).items() if own_positions(groups)]
    hooks_before = parse_settings(before).get("hooks") if before.strip() else None
    for event in events:
        text = _without(text, event, keep=isinstance(hooks_before, dict) and event in hooks_before)
    if events and hooks_before is None and not hooks_of(text):
        text = json_edit.drop_key(text, (), "hooks")
    return text if before.strip() or not events or parse_settings(text) else ""


def _without(text: str, event: str, *, keep: bool) -> str:
    """Return `text` without our handlers of `event`, without emptied groups and, unless `keep`, without an empty event."""
    event_path = ("hooks", event)
    for group, below in reversed(own_positions(hooks_of(text)[event])):
        text = json_edit.drop(text, (*event_path, group, "hooks"), below)
        if not hooks_of(text)[event][group]["hooks"]:
            text = json_edit.drop(text, event_path, group)
    return text if keep or hooks_of(text)[event] else json_edit.drop_key(text, ("hooks",), event)


def own_positions(groups: Any) -> list[tuple[int, int]]:
    """Return the positions of our handlers in the groups of one event: number of the group, number in it."""
    return [
        (number, below)
        for number, group in enumerate(groups if isinstance(groups, list) else [])
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for below, handler in enumerate(group["hooks"])
        if is_own_handler(handler)
    ]


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


def grouped_edit(
    path: Path, root: Path, host: str, limits: Mapping[str, int], program: list[str] | None
) -> Edit:
    """Return the edit of a file with groups of handlers, one for each event in `limits`, the time the host waits."""
    groups = {
        event: {
            "hooks": [{"type": "command", "command": command_line(program, host, event), "timeout": limit}]
        }
        for event, limit in limits.items()
    }
    return Edit(
        path,
        lambda text: merge(text, groups, where=str(path)),
        lambda text, before: unmerge(text, before, where=str(path)),
        root,
    )


def flat_edit(
    path: Path, root: Path, host: str, limits: Mapping[str, int], program: list[str] | None, *, limit_key: str
) -> Edit:
    """Return the edit of a file with handlers alone; `limit_key` names the time in seconds that the host waits."""
    handlers: dict[str, JsonObject] = {
        event: {"type": "command", "command": command_line(program, host, event), limit_key: limit}
        for event, limit in limits.items()
    }
    return Edit(
        path,
        lambda text: merge_flat(text, handlers, where=str(path)),
        lambda text, before: unmerge_flat(text, before, where=str(path)),
        root,
    )


# --- Handlers without groups


def merge_flat(text: str, handlers: Mapping[str, JsonObject], *, where: str = "") -> str:
    """Return the settings `text` with `handlers`, by event, as our only ones; a new file gets `version` 1.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    if not text.strip():
        text = json_edit.add(EMPTY, (), [("version", 1), ("hooks", {})])
    events = hooks_of(text, where=where)
    if "hooks" not in parse_settings(text):
        text = json_edit.add(text, (), [("hooks", {})])
    for event in {**events, **handlers}:
        present = _listed(events, event, where)
        places, handler_of_event = _own_places(present), handlers.get(event)
        if (
            handler_of_event is not None
            and len(places) == 1
            and handler_of_event.items() <= present[places[0]].items()
        ):
            continue
        for place in reversed(places):
            text = json_edit.drop(text, ("hooks", event), place)
        if handler_of_event is not None:
            at = ("hooks", event) if event in events else ("hooks",)
            text = json_edit.add(
                text, at, [(None, handler_of_event) if event in events else (event, [handler_of_event])]
            )
        elif places and len(places) == len(present):
            text = json_edit.drop_key(text, ("hooks",), event)
    return text


def unmerge_flat(text: str, before: str = "", *, where: str = "") -> str:
    """Return the settings `text` without our handlers and the lists that they leave empty, except those in `before`.

    The text is empty if nothing else is in it and there was no file before.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what hosts read.
    """
    events, events_before = hooks_of(text, where=where), hooks_of(before) if before.strip() else {}
    changed = False
    for event in events:
        present = _listed(events, event, where)
        places = _own_places(present)
        for place in reversed(places):
            text = json_edit.drop(text, ("hooks", event), place)
        if places and len(places) == len(present) and event not in events_before:
            text = json_edit.drop_key(text, ("hooks",), event)
        changed = changed or bool(places)
    if changed and not hooks_of(text) and "hooks" not in (parse_settings(before) if before.strip() else {}):
        text = json_edit.drop_key(text, (), "hooks")
    return text if not changed or before.strip() or parse_settings(text).keys() - {"version"} else ""


def _own_places(handlers: list[Any]) -> list[int]:
    return [place for place, handler in enumerate(handlers) if is_own_handler(handler)]
