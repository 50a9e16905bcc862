"""Installing in Claude Code: hooks and MCP server put into settings files that people keep, and removed again.

One table, `EVENTS`, makes the entries of `settings.json` and the plugin's `hooks/hooks.json`; only events that give a
note or need an answer are in it. Merging is pure, text to text: every byte of others stays, merging twice is merging
once, and removing gives the bytes from before. A file is backed up in the user's own directory before it is changed,
written atomically through symlinks, and left alone if somebody else changes it meanwhile.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether import project as project_of
from aether.api.admin import init
from aether.api.home import Home
from aether.errors import AetherError, Conflict, InvalidDocument, InvalidInput, StorageFailed, shown
from aether.paths import find_home
from aether.store import config
from aether.store.files import write_whole
from aether.text import json_edit
from aether.types import JsonObject

PROGRAM, COMMAND = "aether-hook", "aether"
# How to start the package without scripts. -P: the files of the session's project must not be imported.
MODULE_ARGUMENTS = ("-P", "-m", "aether")
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
# A shell line that is silent if the program is missing: for files that are shared.
_GUARDED = re.compile(r"\Acommand -v .+ && exec .*aether.* (\w+); exit 0\Z", re.DOTALL)
EMPTY = "{}\n"
# The keys of a handler that aether sets.
HANDLER_KEYS = ("type", "command", "args", "timeout")
SCOPES = ("project", "local", "user")
# Of the digest of a path: enough to distinguish some thousand projects.
PATH_DIGEST_CHARS = 12
# For files of a project; settings of one person may be read by their owner only, as Claude Code makes them.
SHARED_MODE = 0o644
# For shared files: it names nothing of this machine.
SHARED_SERVER: JsonObject = {"command": COMMAND, "args": ["mcp"]}
BYTE_ORDER_MARK = "\ufeff"
_Merge = Callable[[str], str]
_Unmerge = Callable[[str, str], str]


class FileChange(NamedTuple):
    """The change of one file; in a dry run, the planned one."""

    path: str
    change: str
    """`created`, `changed`, `removed` or `unchanged`."""
    backup: str
    """The path of the backup; empty if there is none."""
    diff: str


class _Plan(NamedTuple):
    """A file's bytes before and after; `None` means no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    obsolete: tuple[Path, ...] = ()
    """Backups with the same bytes that the file itself will have."""


def install(
    scope: str = "project", *, project: Path | None = None, dry_run: bool = False
) -> list[FileChange]:
    """Put our hooks into the settings of `scope`, and the MCP server into its file, and return the changes.

    The servers of a user, and of one person in a project, are in a file that Claude Code writes too; if it does so meanwhile,
    nothing is changed.

    Raises:
        InvalidDocument: a file is not JSON, or not in the form of Claude Code; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = []
    for path, merge, _ in _files(scope, project):
        before = _read(path)
        text = _text(path, before)
        plans.append(_Plan(path, before, _bytes(merge(text), like=before)))
    return [_applied(plan, shared=scope == "project", dry_run=dry_run) for plan in plans]


def uninstall(
    scope: str = "project", *, project: Path | None = None, dry_run: bool = False
) -> list[FileChange]:
    """Remove our hooks and our MCP server from the files of `scope`, and return the changes.

    Raises:
        InvalidDocument: a file is not JSON; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = []
    for path, merge, unmerge in _files(scope, project):
        present = _read(path)
        text = _text(path, present)
        if not text.strip() or unmerge(text, "") == text:
            plans.append(_Plan(path, present, present))
            continue
        earlier, copies = _clean_backup(path, unmerge)
        before = _text(path, earlier)
        after = earlier
        if merge(before) != text:
            without = unmerge(text, before)
            # A file that aether made and nobody else uses is removed.
            unused = earlier is None and not parse_settings(without)
            after = None if unused else _bytes(without, like=present)
        plans.append(_Plan(path, present, after, tuple(copy for copy, data in copies if data == after)))
    return [_applied(plan, shared=scope == "project", dry_run=dry_run) for plan in plans]


def _files(scope: str, project: Path | None) -> list[tuple[Path, _Merge, _Unmerge]]:
    path = settings_path(scope, project=project)
    if scope != "user" and is_user_settings(path):
        raise InvalidInput(
            "this project's settings would be those of the user.",
            fix="Use --user, or go into a project.",
            where=str(path),
        )
    groups = wanted_groups(scope)
    files: list[tuple[Path, _Merge, _Unmerge]] = [
        (
            path,
            lambda text: merge(text, groups, where=str(path)),
            lambda text, before: unmerge(text, before, where=str(path)),
        )
    ]
    servers = server_path(scope, project=project)
    if can_serve() or servers.exists():
        server = SHARED_SERVER if scope == "project" else own_server()
        server_keys = server_place(scope, project)
        files.append(
            (
                servers,
                lambda text: merge_server(text, server, at=server_keys, where=str(servers)),
                lambda text, before: unmerge_server(text, before, at=server_keys, where=str(servers)),
            )
        )
    return files


def _clean_backup(path: Path, unmerge: _Unmerge) -> tuple[bytes | None, list[tuple[Path, bytes]]]:
    """Return the newest backup without our entries, if there is one, and all backups."""
    names = sorted(_backups().glob(f"{_backup_prefix(path)}*"), reverse=True)
    copies = [(name, name.read_bytes()) for name in names]
    for name, data in copies:
        with contextlib.suppress(InvalidDocument):
            text = _text(name, data)
            if not text.strip() or unmerge(text, "") == text:
                return data, copies
    return None, copies


def _applied(plan: _Plan, *, shared: bool, dry_run: bool) -> FileChange:
    path, before, after = plan.path, plan.before, plan.after
    if before == after:
        return FileChange(str(path), "unchanged", "", "")
    change = "created" if before is None else "removed" if after is None else "changed"
    old, new = (_text(path, data).splitlines(keepends=True) for data in (before, after))
    lines = difflib.unified_diff(old, new, f"{path} (now)", f"{path} (then)")
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    result = FileChange(str(path), change, "", "".join(ended))
    if dry_run:
        return result
    with _disk(path):
        if _read(path) != before:
            raise Conflict(
                "was changed by somebody else meanwhile. Nothing was written.",
                fix="Try again.",
                where=str(path),
            )
        if before is not None and after is not None and not plan.obsolete:
            # Outside of any project, or it would be committed.
            backup = _backups() / f"{_backup_prefix(path)}{clock.now():%Y%m%dT%H%M%S%fZ}"
            backup.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(backup, before)
            result = result._replace(backup=str(backup))
        _write(path, after, shared=shared)
        for copy in plan.obsolete:
            copy.unlink()
        with contextlib.suppress(OSError):  # it holds others, or does not exist
            _backups().rmdir()
    return result


def _backups() -> Path:
    return claude_directory() / "aether-backups"


def _backup_prefix(path: Path) -> str:
    """Return the prefix of the names of a file's backups."""
    place = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:PATH_DIGEST_CHARS]
    return f"{path.name}-{place}-"


def _write(path: Path, data: bytes | None, *, shared: bool) -> None:
    target = Path(os.path.realpath(path))  # a link to settings elsewhere stays a link
    if data is None:
        target.unlink()
        with contextlib.suppress(OSError):  # it holds other files
            if path.parent.name == ".claude" and path.parent != claude_directory():
                path.parent.rmdir()
        return
    mode = target.stat().st_mode & 0o7777 if target.exists() else SHARED_MODE if shared else None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, data)
    if mode is not None:
        target.chmod(mode)


def _read(path: Path) -> bytes | None:
    with _disk(path):
        try:
            return regular.read(os.path.realpath(path))
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except AetherError:
        raise
    except OSError as reason:
        raise StorageFailed(
            f"{reason.strerror or reason}. Nothing was changed.",
            fix="Make it a readable and writable file, then try again.",
            where=str(path),
        ) from reason


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as reason:
        raise InvalidDocument(
            "is not UTF-8 text. Nothing was changed.", fix="Convert it to UTF-8.", where=str(path)
        ) from reason


def _bytes(text: str, *, like: bytes | None) -> bytes:
    mark = BYTE_ORDER_MARK if (like or b"").startswith(BYTE_ORDER_MARK.encode()) else ""
    return f"{mark}{text}".encode()


def read_settings(path: Path) -> JsonObject:
    """Return the settings in a file, empty without one.

    Raises:
        InvalidDocument: it is not JSON.
        StorageFailed: it cannot be read.
    """
    text = _text(path, _read(path))
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


def default_scope() -> str:
    """Return the scope that works on this machine: project if the programs are on PATH, else local."""
    return "local" if path_advice() else "project"


def settings_path(scope: str, *, project: Path | None = None) -> Path:
    """Return the settings file of a scope: project, local or user.

    Raises:
        InvalidInput: the scope is unknown.
    """
    if scope not in SCOPES:
        raise InvalidInput(
            f"unknown scope {shown(scope)}.", fix=f"Use one of {', '.join(SCOPES)}.", where="scope"
        )
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
            servers = servers_of(_text(path, _read(path)) or EMPTY, at=server_place(scope, directory))
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


def own_program() -> list[str]:
    """Return the command of this environment's hook program: its own script, else the one on PATH."""
    script = own_script(PROGRAM) or shutil.which(PROGRAM)
    return [os.path.abspath(script)] if script else [sys.executable, *MODULE_ARGUMENTS, "hook"]


def path_advice() -> str:
    """Return what fails because the programs are not on PATH in every shell, and the fix; empty if they are."""
    missing = [name for name in (COMMAND, PROGRAM) if not is_on_path(name)]
    if not missing:
        return ""
    scripts = [script for script in map(own_script, missing) if script]
    directory = link_directory()
    link = ""
    if scripts and os.name != "nt":
        linked = all((directory / name).exists() for name in missing)
        link = f", or {directory}" if linked else ", or let aether link them: aether claude install --link"
    return (
        f"{' and '.join(missing)} of this environment {'are' if missing[1:] else 'is'} not on PATH in every shell. "
        "Without that these do not work in Claude Code: the plugin, the slash commands, the status line, the hooks of "
        '--project, and the command "aether recall", which the model is shown in its memory. '
        f"Add {sysconfig.get_path('scripts')} to PATH{link}"
    )


def link_directory() -> Path:
    """Return the directory of a user's own programs, which most systems have on PATH."""
    return Path("~/.local/bin").expanduser()


def link_programs(*, dry_run: bool = False) -> list[FileChange]:
    """Link the programs of this environment into `~/.local/bin`, and return the changes.

    A link that leads nowhere, as of an environment that was removed, is replaced; a program of another is left alone.

    Raises:
        InvalidInput: this environment has no such programs, or this system has no links of this kind.
        Conflict: another program of that name is there; nothing was changed.
        StorageFailed: the directory cannot be written.
    """
    scripts = {name: own_script(name) for name in (COMMAND, PROGRAM)}
    if os.name == "nt" or not all(scripts.values()):
        raise InvalidInput(
            "there are no programs to link.",
            fix=f"Add {sysconfig.get_path('scripts')} to PATH.",
            where=sysconfig.get_path("scripts"),
        )
    directory = link_directory()
    changes: dict[str, str] = {}
    for name, script in scripts.items():
        link = directory / name
        if link.exists() and os.path.samefile(link, script):
            changes[name] = "unchanged"
        elif link.exists() or (link.is_symlink() and Path(os.readlink(link)).name != name):
            raise Conflict(
                "is another program. Nothing was changed.",
                fix=f"Remove it, or add {sysconfig.get_path('scripts')} to PATH.",
                where=str(link),
            )
        else:
            changes[name] = "changed" if link.is_symlink() else "created"
    for name, script in scripts.items():
        if not dry_run and changes[name] != "unchanged":
            link = directory / name
            with _disk(link):
                directory.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                link.symlink_to(script)
    return [FileChange(str(directory / name), change, "", "") for name, change in changes.items()]


def own_script(name: str) -> str:
    """Return the path of a script of this environment, or nothing if it has none of that name."""
    path = os.path.join(sysconfig.get_path("scripts"), f"{name}.exe" if os.name == "nt" else name)
    return path if os.path.isfile(path) else ""


def is_on_path(name: str) -> bool:
    """Return whether the bare `name` starts this environment's script in every shell.

    A program that is on PATH only while a virtual environment is active is missing in the next session.
    """
    script, program = own_script(name), shutil.which(name)
    if not script or not program:
        return False
    everywhere = sys.prefix == sys.base_prefix or os.path.abspath(program) != script
    return everywhere and os.path.samefile(program, script)


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


def merge(text: str, groups: JsonObject, *, where: str = "") -> str:
    """Return the settings `text` with `groups`, by event, as our only handlers.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what Claude Code reads.
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
    groups = hooks_of(text)[event]
    places = own_positions(groups)
    if new_group is None:
        return _without(text, event, keep=False) if places else text
    if not isinstance(groups, list):
        raise InvalidDocument(
            f"hooks.{event} is {shown(groups)}.",
            fix="Make it a list, as Claude Code reads it.",
            where=where or "settings",
        )
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

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what Claude Code reads.
    """
    events = [event for event, groups in hooks_of(text, where=where).items() if own_positions(groups)]
    hooks_before = parse_settings(before).get("hooks") if before.strip() else None
    for event in events:
        text = _without(text, event, keep=isinstance(hooks_before, dict) and event in hooks_before)
    if events and hooks_before is None and not hooks_of(text):
        text = json_edit.drop_key(text, (), "hooks")
    return text


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
    """Return the command of one of our handlers, without the event; empty for a handler of others."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return []
    command, arguments = handler["command"], handler.get("args", [])
    if _GUARDED.match(command):
        words = _words(command.partition(" && exec ")[2].partition("; ")[0])
    elif isinstance(arguments, list) and all(isinstance(word, str) for word in arguments) and arguments:
        words = [command, *arguments]
    else:
        words = _words(command)
    names = [re.split(r"[\\/]", word)[-1].removesuffix(".exe") for word in words[:1]] + words[1:-1]
    ours = names in ([PROGRAM], ["aether", "hook"]) or names[1:] == [*MODULE_ARGUMENTS, "hook"]
    return words[:-1] if ours else []


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: not ours
        return []


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
        if not ours or _table(text, names[:depth], where):
            break
        text = json_edit.drop_key(text, names[: depth - 1], names[depth - 1])
    return text


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


def hooks_of(text: str, *, where: str = "") -> JsonObject:
    """Return the hooks in settings, by event."""
    return _table(text, ("hooks",), where)


def servers_of(text: str, *, at: Sequence[str] = (), where: str = "") -> JsonObject:
    """Return the MCP servers in the object `at` of a text, by name."""
    return _table(text, (*at, SERVERS), where)


def _table(text: str, names: Sequence[str], where: str) -> JsonObject:
    """Return the nested object `names` of a text; empty if it is missing."""
    value = parse_settings(text, where=where)
    for name in names:
        value = value.get(name, {})
        if not isinstance(value, dict):
            raise InvalidDocument(
                f"{name} is {shown(value)}.",
                fix="Make it an object, as Claude Code reads it.",
                where=where or "settings",
            )
    return value


def parse_settings(text: str, *, where: str = "") -> JsonObject:
    """Return the settings in a text.

    Raises:
        InvalidDocument: it is not strict JSON, or no object; Claude Code does not read it either.
    """
    try:
        value = json_edit.parse(text)
    except ValueError as reason:
        raise InvalidDocument(
            f"is not JSON: {reason}. Claude Code does not read it either, and nothing was changed.",
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
