"""The health of an installation in Claude Code, and pausing it: settings, program, waiting events, last session.

`status` only reads; the program of the hooks is run once, on an event that is kept nowhere. `install` changes settings.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from aether import project, regular
from aether.api.architects import Standing, standing
from aether.api.home import find
from aether.api.hook_sessions import find_session
from aether.api.overview import config_problems, file_problems, recent_log
from aether.errors import AetherError, UnsafePath
from aether.hosts import handlers as own_handlers
from aether.hosts import programs
from aether.hosts.claude_code import install
from aether.paths import home_of_project
from aether.store import spool
from aether.store.files import make_directory, storage_errors
from aether.types import JsonObject

# Far above any start-up time; a program that is stuck is reported.
RUN_SECONDS = 10
BARE_COMMAND = (programs.PROGRAM,)
# Not an event of Claude Code, so nothing of it is kept.
PROBE_EVENT = "Check"


class Installed(NamedTuple):
    """The entries of aether in one settings file."""

    scope: str
    path: str
    events: list[str]
    programs: list[list[str]]
    """The commands that start the program; several if entries of several environments are there."""
    hooks_disabled: bool
    """Whether this file switches all hooks off."""
    plugin: bool
    """Whether it enables the plugin."""
    problem: str


class Report(NamedTuple):
    """The report of `aether claude status`."""

    installed: list[Installed]
    servers: list[str]
    """Scopes with the MCP server of aether; `plugin` if it is enabled, for it brings its own."""
    home: str
    """The project's home; empty if it has none."""
    paused: bool
    waiting: int
    """Entries of hooks that are not drained yet."""
    last_session: JsonObject | None
    """The newest session that a hook has seen: session, at, first_source."""
    log: list[str]
    """The last lines of hook.log of these days: failures of hooks."""
    path: str
    """What fails because the programs are not on PATH in every shell; empty if they are."""
    problems: list[str]
    """Each problem with its fix."""
    architect: Standing
    """Who writes the sessions, and what that costs."""


def status(home: Path | None = None, *, start: Path | None = None) -> Report:
    """Return the state of the installation for a session that is started in `start`, else here."""
    directory = install.project_directory(start)
    try:
        place, problems = str(home or home_of_project(str(start or Path.cwd()))), []
    except UnsafePath as reason:
        place, problems = os.devnull, [str(reason)]  # a home without content
    paths = {scope: install.settings_path(scope, project=directory) for scope in install.SCOPES}
    installed = [
        _installed(scope, path)
        for scope, path in paths.items()
        if scope == "user" or not install.is_user_settings(path)
    ]
    sessions = [
        (str(session["at"]), path.stem, session["first_source"])
        for path in Path(place).glob("hooks/sessions/*.json")
        if (session := find_session(Path(place), path.stem)) is not None
    ]
    report = Report(
        installed,
        install.installed_servers(directory),
        place if os.path.isdir(place) else "",
        spool.is_paused(str(place)),
        len(spool.waiting(place)),
        dict(zip(("at", "session", "first_source"), max(sessions), strict=True)) if sessions else None,
        recent_log(Path(place)),
        programs.path_advice(),
        [],
        standing(Path(place)),
    )
    return report._replace(
        problems=[*problems, *_problems(report), *config_problems(Path(place)), *file_problems(Path(place))]
    )


def _installed(scope: str, path: Path) -> Installed:
    try:
        settings = install.read_settings(path)
        hooks = settings.get("hooks", {})
        own_handlers.hooks_of(json.dumps(settings), where=str(path))
    except AetherError as reason:
        return Installed(scope, str(path), [], [], hooks_disabled=False, plugin=False, problem=str(reason))
    places = {
        event: [place for place in own_handlers.own_places(groups) if len(place) > 1]
        for event, groups in hooks.items()
    }
    ours = {
        event: [hooks[event][group]["hooks"][below] for group, below in in_event]
        for event, in_event in places.items()
        if in_event
    }
    old = [
        event
        for event in ours
        for place in places[event]
        if not install.is_current(event, hooks[event][place[0]])
    ]
    words = {tuple(own_handlers.program_of(handler)) for handlers in ours.values() for handler in handlers}
    plugins = settings.get("enabledPlugins")
    enabled = [name for name, on in plugins.items() if on] if isinstance(plugins, dict) else []
    return Installed(
        scope, str(path), list(ours), [list(program) for program in sorted(words)],
        hooks_disabled=settings.get("disableAllHooks") is True,
        plugin=any(name.partition("@")[0] == install.PLUGIN for name in enabled),
        problem=f'{path}: the hook for {", ".join(old)} is that of an earlier release. Run "aether claude install --{scope}".' if old else "",
    )  # fmt: skip


def _problems(report: Report) -> list[str]:
    hooked = [settings for settings in report.installed if settings.events]
    plugin = [settings for settings in report.installed if settings.plugin]
    problems = [settings.problem for settings in report.installed if settings.problem]
    if not hooked and not plugin:
        problems.append('No hooks of aether. Run "aether claude install", or install the plugin.')
    for settings in hooked:
        missing = [event for event in install.EVENTS if event not in settings.events]
        if missing:
            problems.append(
                f'{settings.path}: no hook for {", ".join(missing)}. Run "aether claude install --{settings.scope}".'
            )
    called = [(settings.scope, tuple(words)) for settings in hooked for words in settings.programs]
    called += [("plugin", BARE_COMMAND)] if plugin else []
    # The shared line is silent if the program is not on PATH: no problem while another line works.
    heard = [call for call in called if call[1] != BARE_COMMAND or shutil.which(programs.PROGRAM)] or called
    places = list(dict.fromkeys(place for place, _ in heard))
    if len(places) > 1:
        problems.append(
            f"Each event starts several programs ({', '.join(places)}), of which one answers. "
            'Run "aether claude uninstall" for all but one.'
        )
    problems += [
        f"{settings.path}: disableAllHooks is true. Remove it."
        for settings in report.installed
        if settings.hooks_disabled
    ]
    problems += [
        words for program in sorted({words for _, words in heard}) if (words := program_problem(program))
    ]
    if not report.home:
        problems.append('This project has no home. Run "aether init", or start a session, which creates it.')
    if report.paused:
        problems.append('Paused: nothing is captured. Run "aether claude pause --resume".')
    return problems


def program_problem(words: Sequence[str]) -> str:
    """Return the problem of the program that `words` start; empty if it runs."""
    command = " ".join(words)
    fix = 'Run "aether claude install" again, from the environment that has aether.'
    if words[0] == programs.PROGRAM:
        fix = "Start Claude Code with it on PATH."
    with tempfile.TemporaryDirectory() as nowhere:
        environment = {**os.environ, "AETHER_AUTO_INIT": project.OFF, "AETHER_HOME": nowhere}
        try:
            process = subprocess.run(  # noqa: S603 - the settings would start it anyway
                [*words, PROBE_EVENT], input=b"{}", capture_output=True, cwd=nowhere, env=environment,
                timeout=RUN_SECONDS, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            return f"{command} does not exist. {fix}"
        except OSError as reason:
            return f"{command} cannot be started ({reason.strerror or reason}). {fix}"
        except subprocess.TimeoutExpired:
            return f"{command} does not answer within {RUN_SECONDS} seconds. {fix}"
    if process.returncode or process.stdout:
        last = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"{command} ends with {process.returncode}{': ' + last[0] if last else ''}. {fix}"
    return ""


def paused_file(home: str | os.PathLike[str]) -> Path:
    """Return the file whose presence pauses the hooks."""
    return Path(home) / "hooks" / "paused"


def pause(home: Path) -> Path:
    """Pause the hooks of `home`, so that they capture and print nothing, and return it."""
    place, file = find(home), paused_file(home)
    with storage_errors(file):
        make_directory(file.parent)
        regular.touch(file)
    return place


def resume(home: Path) -> Path:
    """Resume the hooks of `home`, and return it."""
    place = find(home)
    with storage_errors(place):
        paused_file(place).unlink(missing_ok=True)
    return place
