"""The handlers of Claude Code's hooks: which events aether asks for, and how each is called.

One table, from which the plugin's `hooks/hooks.json` and the entries of `settings.json` are made. Only what can give
a note or needs an answer is asked for: for a tool that merely reads, no process is started.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from typing import NamedTuple

from aether.shapes import JsonObject

PROGRAM, COMMAND = "aether-hook", "aether"
# Where there are no scripts. A session stands in a project whose own files must not be imported: hence -P.
MODULE = ("-P", "-m", "aether")
# Seconds after which Claude Code ends the process: above the program's own deadlines (4, 12 and 27 at most until the
# event is kept), so that only one that is stuck is ended from outside.
LIGHT_SECONDS = 5
HEAVY_SECONDS = 15
COMPACTING_SECONDS = 30
# A person waits for the end of a session; it only writes one small file.
LAST_SECONDS = 2
# Tools that change something, run something or bring an answer; aether's own MCP tools are no news to it.
TOOLS = (
    "^(Bash|PowerShell|Monitor|Edit|Write|MultiEdit|NotebookEdit|Task|Agent|SendMessage|ExitPlanMode|AskUserQuestion"
    "|mcp__(?!aether__|plugin_aether_).+)$"
)


class Asked(NamedTuple):
    """How one event is asked for."""

    seconds: int
    matcher: str = ""


EVENTS = {
    "SessionStart": Asked(HEAVY_SECONDS),
    "UserPromptSubmit": Asked(HEAVY_SECONDS),
    "PostToolUse": Asked(LIGHT_SECONDS, TOOLS),
    "PostToolUseFailure": Asked(LIGHT_SECONDS, TOOLS),
    "SubagentStart": Asked(HEAVY_SECONDS),
    "SubagentStop": Asked(HEAVY_SECONDS),
    "PreCompact": Asked(COMPACTING_SECONDS),
    "PostCompact": Asked(COMPACTING_SECONDS),
    "Stop": Asked(HEAVY_SECONDS),
    "TaskCompleted": Asked(LIGHT_SECONDS),
    "SessionEnd": Asked(LAST_SECONDS),
}
# A shell line that is silent where the program is missing: for files that others use too.
_GUARDED = re.compile(r"\Acommand -v .+ && exec .*aether.* (\w+); exit 0\Z", re.DOTALL)


def program() -> list[str]:
    """Return the words that start this environment's hook program: its own script, else the one on PATH."""
    script = own_script(PROGRAM) or shutil.which(PROGRAM)
    return [os.path.abspath(script)] if script else [sys.executable, *MODULE, "hook"]


def path_advice() -> str:
    """Return what does not work because our programs are not on PATH in every shell, and how to mend that; else nothing."""
    missing = [name for name in (COMMAND, PROGRAM) if not is_on_path(name)]
    if not missing:
        return ""
    scripts = [script for script in map(own_script, missing) if script]
    link = f", or: ln -s {shlex.join(scripts)} ~/.local/bin/" if scripts and os.name != "nt" else ""
    return (
        f"{' and '.join(missing)} of this environment {'are' if missing[1:] else 'is'} not on PATH in every shell. "
        "Where Claude Code is started without, there are no plugin, slash commands, status line and hooks of --project, "
        'and the model cannot run the "aether recall" it is told of. '
        f"Add {sysconfig.get_path('scripts')} to PATH{link}"
    )


def own_script(name: str) -> str:
    """Return the path of a script of this environment, or nothing where it has none of that name."""
    path = os.path.join(sysconfig.get_path("scripts"), f"{name}.exe" if os.name == "nt" else name)
    return path if os.path.isfile(path) else ""


def is_on_path(name: str) -> bool:
    """Return whether the bare `name` starts this environment's script in every shell.

    What is on PATH only because a virtual environment is active is not there for the next session.
    """
    script, found = own_script(name), shutil.which(name)
    if not script or not found:
        return False
    everywhere = sys.prefix == sys.base_prefix or os.path.abspath(found) != script
    return everywhere and os.path.samefile(found, script)


def shared_groups() -> JsonObject:
    """Return the group of each event for the plugin and for settings that others get too.

    They say nothing of this machine: `aether-hook` on PATH is started, and where there is none nothing happens.
    """
    return {event: _group(event, _guarded(event)) for event in EVENTS}


def own_groups(words: Sequence[str]) -> JsonObject:
    """Return the group of each event for settings of one person: `words` start the program, without a shell."""
    return {event: _group(event, {"command": words[0], "args": [*words[1:], event]}) for event in EVENTS}


def _group(event: str, called: JsonObject) -> JsonObject:
    asked = EVENTS[event]
    handler = {"type": "command", **called, "timeout": asked.seconds}
    return {**({"matcher": asked.matcher} if asked.matcher else {}), "hooks": [handler]}


def _guarded(event: str) -> JsonObject:
    return {"command": f"command -v {PROGRAM} >/dev/null 2>&1 && exec {PROGRAM} {event}; exit 0"}


def is_ours(handler: object) -> bool:
    """Return whether a handler is one that aether made, of this version or an earlier one.

    >>> is_ours({"type": "command", "command": "/venv/bin/aether-hook", "args": ["Stop"]})
    True
    >>> is_ours({"type": "command", "command": "echo aether-hook"})
    False
    """
    return bool(started(handler))


def started(handler: object) -> list[str]:
    """Return the words that start the program of one of our handlers, without the event; none for another's."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return []
    command, given = handler["command"], handler.get("args", [])
    if _GUARDED.match(command):
        words = _words(command.partition(" && exec ")[2].partition("; ")[0])
    elif isinstance(given, list) and all(isinstance(word, str) for word in given) and given:
        words = [command, *given]
    else:
        words = _words(command)
    return words[:-1] if _is_program(words[:-1]) else []


def _is_program(words: list[str]) -> bool:
    names = [re.split(r"[\\/]", word)[-1].removesuffix(".exe") for word in words[:1]] + words[1:]
    return names in ([PROGRAM], ["aether", "hook"]) or names[1:] == [*MODULE, "hook"]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: not of ours
        return []
