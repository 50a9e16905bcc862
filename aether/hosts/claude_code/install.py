"""Installing in Claude Code: hooks and MCP server put into settings files that people keep, and removed again.

One table, `EVENTS`, makes the entries of `settings.json` and the plugin's `hooks/hooks.json`; only events that give a
note or need an answer are in it. Merging is pure, text to text: every byte of others stays, merging twice is merging
once, and removing gives the bytes from before (`aether.hosts.settings`, `aether.hosts.handlers`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aether import project as project_of
from aether.api.admin import init
from aether.api.home import Home
from aether.errors import AetherError, InvalidInput, require_one_of
from aether.hosts.handlers import EMPTY, edit_of, parse_settings, table_at
from aether.hosts.programs import COMMAND, MODULE_ARGUMENTS, PROGRAM, is_on_path, own_program, own_script
from aether.hosts.settings import Edit, read_bytes, text_of
from aether.paths import find_home
from aether.store import config
from aether.text import json_edit
from aether.types import JsonObject

SERVER, SERVERS = "aether", "mcpServers"
# The plugin brings the server along.
PLUGIN = "aether"
# Seconds after which Claude Code ends the process: above the program's own deadlines (4, 12 and 27 at most until the
# event is kept), so that only a stuck one is ended from outside.
LIGHT_TIMEOUT = 5
HEAVY_TIMEOUT = 15
COMPACTION_TIMEOUT = 30
# A person waits for the end of a session; it only writes one small file.
SESSION_END_TIMEOUT = 2
# Tools that change or run something, keep the list of tasks or bring an answer; not aether's own MCP tools.
TOOLS = (
    "^(Bash|PowerShell|Monitor|Edit|Write|MultiEdit|NotebookEdit|Task|Agent|SendMessage|ExitPlanMode|AskUserQuestion"
    "|TodoWrite|TaskCreate|TaskUpdate|mcp__(?!aether__|plugin_aether_).+)$"
)


# With `claude.file_history`.
WITH_READS = TOOLS.replace("^(", "^(Read|", 1)


class EventHook(NamedTuple):
    """The hook of one event: its time limit, and the tools it is for."""

    seconds: int
    matcher: str = ""


EVENTS = {
    "SessionStart": EventHook(HEAVY_TIMEOUT),
    "UserPromptSubmit": EventHook(HEAVY_TIMEOUT),
    "PreToolUse": EventHook(LIGHT_TIMEOUT),
    "PostToolUse": EventHook(LIGHT_TIMEOUT, TOOLS),
    "PostToolUseFailure": EventHook(LIGHT_TIMEOUT, TOOLS),
    "SubagentStart": EventHook(HEAVY_TIMEOUT),
    "SubagentStop": EventHook(HEAVY_TIMEOUT),
    "PreCompact": EventHook(COMPACTION_TIMEOUT),
    "PostCompact": EventHook(COMPACTION_TIMEOUT),
    "Stop": EventHook(HEAVY_TIMEOUT),
    "TaskCompleted": EventHook(LIGHT_TIMEOUT),
    "SessionEnd": EventHook(SESSION_END_TIMEOUT),
}
SCOPES = ("project", "local", "user")
# For shared files: it names nothing of this machine.
SHARED_SERVER: JsonObject = {"command": COMMAND, "args": ["mcp"]}


def edits(scope: str, project: Path | None) -> list[Edit]:
    """Return how the files of `scope` are changed: its settings, and the file of its MCP servers.

    The servers of a user, and of one person in a project, are in a file that Claude Code writes too.

    Raises:
        InvalidInput: the scope is unknown, or the settings of the project would be those of the user.
    """
    path = settings_path(scope, project=project)
    if scope != "user" and is_user_settings(path):
        raise InvalidInput(
            "this project's settings would be those of the user.",
            fix="Use --user, or go into a project.",
            where=str(path),
        )
    root = project or project_directory()
    changes = [edit_of(path, root, wanted_groups(scope))]
    servers = server_path(scope, project=project)
    serves = can_serve()
    if serves or servers.exists():  # an older installation may have put the server there
        server = SHARED_SERVER if scope == "project" else own_server()
        server_keys = server_place(scope, project)
        changes.append(
            Edit(
                servers,
                lambda text: (
                    merge_server(text, server, at=server_keys, where=str(servers)) if serves else text
                ),
                lambda text, before: unmerge_server(text, before, at=server_keys, where=str(servers)),
                root,
            )
        )
    return changes


def read_settings(path: Path) -> JsonObject:
    """Return the settings in a file, empty without one.

    Raises:
        InvalidDocument: it is not JSON.
        StorageFailed: it cannot be read.
    """
    text = text_of(path, read_bytes(path))
    return parse_settings(text, where=str(path)) if text.strip() else {}


def claude_directory() -> Path:
    """Return the directory in which Claude Code keeps its settings and transcripts."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path("~/.claude").expanduser())


def project_directory(start: Path | None = None) -> Path:
    """Return the directory whose `.claude/` counts for sessions that are started in `start`, else here.

    Claude Code reads only that of the directory it is started in: most likely the nearest one above with a `.claude/`,
    up to the top of the checkout; else that top.
    """
    here = Path(os.path.realpath(start or Path.cwd()))
    above = [here, *here.parents]
    tops = [number for number, path in enumerate(above) if (path / ".git").exists()]
    within = above[: tops[0] + 1] if tops else [here]
    user = os.path.realpath(claude_directory())
    return next(
        (path for path in within if (path / ".claude").is_dir() and str(path / ".claude") != user), within[-1]
    )


def settings_path(scope: str, *, project: Path | None = None) -> Path:
    """Return the settings file of a scope: project, local or user.

    Raises:
        InvalidInput: the scope is unknown.
    """
    require_one_of(scope, SCOPES, "a scope", where="scope")
    if scope == "user":
        return claude_directory() / "settings.json"
    name = "settings.local.json" if scope == "local" else "settings.json"
    return (project or project_directory()) / ".claude" / name


def is_user_settings(path: Path) -> bool:
    """Return whether a settings file is in the directory of the user's own settings, which is no project."""
    return os.path.realpath(path.parent) == os.path.realpath(claude_directory())


def server_path(scope: str, *, project: Path | None = None) -> Path:
    """Return the file in which Claude Code keeps the MCP servers of a scope."""
    if scope == "project":
        return (project or project_directory()) / ".mcp.json"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path("~").expanduser()) / ".claude.json"


def server_place(scope: str, project: Path | None = None) -> Sequence[str]:
    """Return the path of the object in that file that has the servers of a scope: one's own are by the top of a checkout."""
    if scope != "local":
        return ()
    here = Path(os.path.realpath(project or project_directory()))
    tops = (path for path in (here, *here.parents) if (path / ".git").exists())
    return ("projects", str(next(tops, here)))


def plugin_directory() -> Path:
    """Return the directory of the plugin, which is a marketplace of itself as well."""
    return Path(__file__).with_name("plugin")


def make_home(named: Home = None) -> tuple[Path, bool]:
    """Return the home of this project and whether this call created it; git ignores a created one.

    Raises:
        StorageFailed: the directory cannot be written.
    """
    place = find_home(named or project_of.home_of(os.getcwd()))
    is_new = not (place / "data").is_dir()
    init(place)
    return place, is_new


LEFT_OUT = (
    "The MCP server was left out: its package is not installed (pip install '.[mcp]' in a clone of aether)."
)


def can_serve() -> bool:
    """Return whether the package that the MCP server needs is installed."""
    return importlib.util.find_spec("mcp") is not None


def installed_servers(project: Path | None = None) -> list[str]:
    """Return the scopes in whose files our MCP server is for sessions in `project`, else here; `plugin` if that is enabled.

    A file that cannot be read has none.
    """
    directory, scopes = project or project_directory(), []
    for scope in SCOPES:
        path = server_path(scope, project=directory)
        with contextlib.suppress(AetherError):
            servers = servers_of(text_of(path, read_bytes(path)) or EMPTY, at=server_place(scope, directory))
            scopes += [scope] if any(map(is_own_server, servers.values())) else []
    plugins: dict[str, Any] = {}
    for scope in SCOPES:
        with contextlib.suppress(AetherError, TypeError, ValueError):
            plugins |= read_settings(settings_path(scope, project=directory)).get("enabledPlugins", {})
    enabled = any(on and name.partition("@")[0] == PLUGIN for name, on in plugins.items())
    return [*scopes, *(["plugin"] if enabled else [])]


def ways_to_close(project: Path | None = None) -> tuple[bool, str]:
    """Return how the agent of a session can close it: whether our MCP server is installed, and the command, if there is one."""
    start = os.environ.get("CLAUDE_PROJECT_DIR")
    directory = project or project_directory(Path(start) if start else None)
    command = COMMAND if shutil.which(COMMAND) else own_script(COMMAND)
    return bool(installed_servers(directory)), command


def wanted_groups(scope: str) -> JsonObject:
    """Return the group of handlers that installing puts into the settings of `scope` for each event."""
    groups = shared_groups() if scope == "project" else own_groups(own_program())
    home = project_of.home_of(os.getcwd())
    if home and config.or_default(Path(home)).claude_file_history:
        groups["PostToolUse"]["matcher"] = WITH_READS
    return groups


def is_current(event: str, group: JsonObject) -> bool:
    """Return whether a group with our handler of `event` is for the tools of this release, if it is for tools."""
    matcher = EVENTS[event].matcher if event in EVENTS else ""
    return not matcher or group.get("matcher") in (None, "", matcher, WITH_READS)


def own_server() -> JsonObject:
    """Return the entry of the MCP server for one person: by its bare name if that is ours in every shell."""
    name = COMMAND
    script = own_script(name) or shutil.which(name)
    words = [os.path.abspath(script)] if script else [sys.executable, *MODULE_ARGUMENTS]
    if is_on_path(name):
        words = [name]
    return {"command": words[0], "args": [*words[1:], "mcp"]}


def shared_groups() -> JsonObject:
    """Return the group of each event for the plugin and for shared settings.

    They name nothing of this machine: `aether-hook` on PATH is started, and without one nothing happens.
    """
    line = "command -v {0} >/dev/null 2>&1 && exec {0} {1}; exit 0"
    return {event: _group(event, {"command": line.format(PROGRAM, event)}) for event in EVENTS}


def own_groups(words: Sequence[str]) -> JsonObject:
    """Return the group of each event for settings of one person; `words` start the program without a shell."""
    return {event: _group(event, {"command": words[0], "args": [*words[1:], event]}) for event in EVENTS}


def _group(event: str, called: JsonObject) -> JsonObject:
    hook = EVENTS[event]
    handler = {"type": "command", **called, "timeout": hook.seconds}
    return {**({"matcher": hook.matcher} if hook.matcher else {}), "hooks": [handler]}


def merge_server(text: str, server: JsonObject, *, at: Sequence[str] = (), where: str = "") -> str:
    """Return the text of a file with our server in the object `at`; a foreign server of that name stays.

    Raises:
        InvalidDocument: it is not JSON, or not what Claude Code reads.
    """
    text = text if text.strip() else EMPTY
    servers, names = servers_of(text, at=at, where=where), (*at, SERVERS)
    if SERVER in servers:
        present = servers[SERVER]
        entry = {**present, **server} if is_own_server(present) else present
        return text if entry == present else json_edit.put(text, (*names, SERVER), entry)
    depth = _depth(text, names)
    key, value = (*names, SERVER)[depth], server
    for name in reversed((*names, SERVER)[depth + 1 :]):
        value = {name: value}
    return json_edit.add(text, names[:depth], [(key, value)])


def unmerge_server(text: str, before: str = "", *, at: Sequence[str] = (), where: str = "") -> str:
    """Return the text of a file without our server, whatever its name there, and without objects it alone was in.

    Raises:
        InvalidDocument: it is not JSON, or not what Claude Code reads.
    """
    names = (*at, SERVERS)
    ours = [name for name, server in servers_of(text, at=at, where=where).items() if is_own_server(server)]
    for name in ours:
        text = json_edit.drop_key(text, names, name)
    present = _depth(before, names) if before.strip() else 0
    for depth in range(len(names), present, -1):
        if not ours or table_at(text, names[:depth], where):
            break
        text = json_edit.drop_key(text, names[: depth - 1], names[depth - 1])
    return text if before.strip() or not ours or parse_settings(text) else ""


def _depth(text: str, names: Sequence[str]) -> int:
    """Return how many of the nested objects `names` a text has."""
    value, depth = parse_settings(text), 0
    while depth < len(names) and names[depth] in value:
        value, depth = value[names[depth]], depth + 1
    return depth


def is_own_server(server: Any) -> bool:
    """Return whether an MCP server is `aether mcp`.

    >>> is_own_server({"command": "/venv/bin/aether", "args": ["mcp"]}), is_own_server({"command": "other"})
    (True, False)
    """
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return False
    name = re.split(r"[\\/]", server["command"])[-1].removesuffix(".exe")
    words = [name, *(server["args"] if isinstance(server.get("args"), list) else [])]
    return words[:2] == ["aether", "mcp"] or words[1:5] == [*MODULE_ARGUMENTS, "mcp"]


def servers_of(text: str, *, at: Sequence[str] = (), where: str = "") -> JsonObject:
    """Return the MCP servers in the object `at` of a text, by name."""
    return table_at(text, (*at, SERVERS), where)
