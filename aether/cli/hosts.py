"""Installing in the agents of this machine on the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Command, Table, emit, note, pass_ask, plain, say, with_options
from aether.hosts import DEFAULT_HOST, HOSTS
from aether.store import origin
from aether.text.words import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from aether.hosts.installing import HostChange, NativeMemory, Scope
    from aether.hosts.settings import FileChange


_SCOPES = {
    "project": "For everyone in this project", "local": "For you in this project", "user": "For you in every project",
}  # fmt: skip
host_argument = click.argument("hosts", metavar="[HOST]...", nargs=-1, type=click.Choice([*HOSTS]))


def scope_options(*scopes: str) -> Callable[[Any], Any]:
    """Return what adds the options that choose the settings of one of these scopes."""
    options = [
        click.option(f"--{scope}", "scope", flag_value=scope, default=None, help=_SCOPES[scope])
        for scope in scopes
    ]
    options.append(click.option("--dry-run", is_flag=True, help="Show the changes, and make none"))
    return lambda command: with_options(command, options)


@click.command("install", cls=Command)
@host_argument
@scope_options("project", "user")
@click.option(
    "--native-memory", is_flag=True,
    help="Also let Claude Code keep its own notes of this project in the home, where each change can be seen and undone",
)  # fmt: skip
@pass_ask
def install_command(
    ask: Ask, hosts: Sequence[str], scope: Scope | None, dry_run: bool, *, native_memory: bool
) -> int:
    """Connect the agents on this machine to memory.

    Puts hooks into the settings of the agents. HOST is claude-code, codex, gemini-cli, copilot, cursor or
    opencode; the default is every host installed on this machine. All hosts share one home, so each gets the
    memory of the others. --project changes the project's settings, which start the aether on PATH; --user
    changes your own. The default is --project if aether is on PATH in every shell, else --user. Everything else
    in these files stays unchanged to the byte, and a backup is kept. For the choices of Claude Code (architect,
    local settings), see aether claude install --help.

    \b
    Example:
      aether install codex gemini-cli --dry-run
      aether install claude-code --native-memory --dry-run
    """
    from aether.hosts import installing
    from aether.hosts.claude_code.install import LEFT_OUT, can_serve, make_home
    from aether.hosts.programs import path_advice

    if native_memory and hosts and DEFAULT_HOST not in hosts:
        raise click.UsageError(f"--native-memory works only with {DEFAULT_HOST}.")
    chosen = list(hosts) or [state.host for state in installing.hosts() if state.present]
    if not chosen:
        say(f"No agent was found on this machine. Name one: {', '.join(HOSTS)}.")
        return 1
    scope = scope or installing.default_scope()
    changes, failures = _install_each(chosen, scope, dry_run=dry_run)
    without_home = dry_run or (scope == "user" and not native_memory)
    home, is_new = (None, False) if without_home else make_home(ask.home)
    if home and origin.is_tracked(home):
        note(ask, f"Note: {origin.PUBLISHED}")
    native = _install_native(ask, home) if native_memory else None
    lines = [
        *_lines(changes, dry_run=dry_run),
        *([f"{home}: made"] if is_new else []),
        *native_lines(native, dry_run),
    ]
    data = {
        "scope": scope, "hosts": changes, "failed": failures, "home": home, "native_memory": native,
    }  # fmt: skip
    emit(ask, data, lines)
    for host, failure in failures.items():
        say(plain(f"{host}: {failure}"))
    if changes and not dry_run:
        for change in changes:
            if change.advice:
                note(ask, change.advice)
        if DEFAULT_HOST in chosen and not can_serve():
            note(ask, LEFT_OUT)
        if scope == "project" and (advice := path_advice()):
            note(ask, advice)
        note(ask, f"To remove them: aether uninstall {' '.join(hosts)}{' ' if hosts else ''}--{scope}")
    return 1 if failures else 0


def _install_each(
    hosts: Iterable[str], scope: Scope, *, dry_run: bool
) -> tuple[list[HostChange], dict[str, str]]:
    """Install in each host, and return the changes, and by host why it could not be changed."""
    from aether.errors import AetherError
    from aether.hosts import installing

    changes: list[HostChange] = []
    failures: dict[str, str] = {}
    for host in hosts:
        try:
            changes.append(installing.install(host, scope, dry_run=dry_run))
        except AetherError as reason:  # the settings of one host must not keep the others from theirs
            failures[host] = str(reason)
    return changes, failures


def _install_native(ask: Ask, home: Path | None) -> NativeMemory:
    """Let Claude Code keep its notes in the home; without one, which a dry run makes not, only plan it."""
    from aether.hosts.claude_code import native_memory
    from aether.paths import find_home, home_of_project

    place = home or find_home(ask.home or home_of_project(os.getcwd()))
    return native_memory.install(place, dry_run=home is None)


def uninstall_native(ask: Ask, *, dry_run: bool) -> NativeMemory | None:
    """Give the notes of Claude Code in this project back, if it keeps them in the home."""
    from aether.hosts.claude_code import native_memory
    from aether.paths import find_home
    from aether.project import home_of

    named = ask.home or home_of(os.getcwd())
    return native_memory.uninstall(find_home(named), dry_run=dry_run) if named else None


def native_lines(native: NativeMemory | None, dry_run: bool) -> list[str]:
    """Return the lines about the native memory of Claude Code."""
    if native is None:
        return []
    lines = [plain(f"{native.settings.path}: {verb(native.settings, dry_run)}")]
    lines += plain(native.settings.diff).splitlines() if dry_run else []
    notes = f"{pluralize(len(native.files), 'notes')} of Claude Code"
    lines.append(plain(f"{notes}; its own directory: {native.directory}"))
    return [*lines, *(plain(f"  left as it is: {name}") for name in native.left)]


@click.command("uninstall", cls=Command)
@host_argument
@scope_options("project", "user")
@pass_ask
def uninstall_command(ask: Ask, hosts: Sequence[str], scope: Scope | None, dry_run: bool) -> None:
    """Remove aether's hooks from the settings of agents.

    The memory stays. Notes that Claude Code keeps in the home are given back to its own directory.

    Without HOST, removes them for every host; without --project and --user, from both.

    \b
    Example:
      aether uninstall codex --user
    """
    from aether.hosts import installing

    scopes: list[Scope] = [scope] if scope else ["project", "user"]
    native = uninstall_native(ask, dry_run=dry_run) if DEFAULT_HOST in (hosts or HOSTS) else None
    changes = [
        installing.uninstall(host, chosen_scope, dry_run=dry_run)
        for host in hosts or HOSTS
        for chosen_scope in scopes
    ]
    changed = [
        change._replace(files=files)
        for change in changes
        if (files := [file for file in change.files if file.change != "unchanged"])
    ]
    lines = _lines(changed, dry_run=dry_run) if changed else ["Nothing of aether is in these settings."]
    data = {"scope": scope, "hosts": changed, "native_memory": native}
    emit(ask, data, [*lines, *native_lines(native, dry_run)])
    if changed and not dry_run:
        note(ask, "The memory stays in the project's .aether/; remove that directory to forget all of it.")


def _lines(changes: Iterable[HostChange], *, dry_run: bool) -> list[Any]:
    rows = [(change.label, verb(file, dry_run), file.path) for change in changes for file in change.files]
    diffs = [line for change in changes for file in change.files for line in plain(file.diff).splitlines()]
    return [Table(rows, head=("host", "change", "file")), *(diffs if dry_run else [])]


def verb(file: FileChange, dry_run: bool) -> str:
    """Return what was done to a file, or in a dry run would be."""
    return f"would be {file.change}" if dry_run and file.change != "unchanged" else file.change
