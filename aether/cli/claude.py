"""Claude Code on the command line: install, uninstall, status, rescue, pause and resume; the hook and the MCP server."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from aether import project
from aether.cli.complete import architects, completes
from aether.cli.hosts import native_lines, scope_options, uninstall_native, verb
from aether.cli.output import (
    Ask,
    Command,
    Group,
    Table,
    emit,
    facts,
    is_typed,
    note,
    note_undo,
    pass_ask,
    plain,
    progress,
    say,
    when,
)
from aether.hosts import DEFAULT_HOST
from aether.store import origin
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.hosts.installing import Scope
    from aether.hosts.settings import FileChange

BYTES_PER_KB = 1_000


@click.group("claude", cls=Group)
def claude_command() -> None:
    """Install in Claude Code, and check the installation.

    \b
    Example:
      aether claude install --dry-run
    """


@claude_command.command("install")
@scope_options("project", "local", "user")
@click.option(
    "--link",
    is_flag=True,
    help="Also link the programs of this environment into ~/.local/bin, for every shell",
)
@click.option(
    "--architect",
    shell_complete=completes(architects),
    metavar="NAME",
    help="Who writes the sessions: host, claude-code, anthropic, openai, ollama, command:'…' or extractive  [default: ask, else host]",
)
@pass_ask
def install(ask: Ask, scope: Scope | None, dry_run: bool, link: bool, architect: str | None) -> None:
    """Put hooks and MCP server into the settings of Claude Code.

    With --project they start the aether on PATH, because these files are committed; with --local and --user the program
    of this environment. The MCP server is left out if its package is not installed. The default is --project if aether is
    on PATH in every shell, else --local. At a terminal it asks once who writes the sessions, and shows the cost of each
    choice. The choice is written into the config.toml of the home, with --user into your own. Everything else in these
    files stays unchanged to the byte, and a backup is kept. In a virtual environment, --link makes the programs run in
    every shell.

    \b
    Example:
      aether claude install --project
      aether claude install --link --dry-run
      aether claude install --architect extractive --dry-run
    """
    from aether.api import architects
    from aether.errors import AetherError, InvalidDocument
    from aether.hosts import installing, programs
    from aether.hosts.claude_code import install
    from aether.paths import find_home

    scope = scope or installing.default_scope("local")
    place = find_home(ask.home or project.home_of(os.getcwd()))
    name = architect or architects.chosen(scope, place) or _asked_architect(ask, dry_run)
    try:
        chosen = architects.choose(name, scope, place)
    except AetherError as reason:
        if architect:
            raise
        note(ask, f"No architect is chosen: {reason}")  # the hooks work without one
        chosen = None
    links = programs.link_programs(dry_run=dry_run) if link else []
    try:
        files = installing.install(DEFAULT_HOST, scope, dry_run=dry_run).files
    except InvalidDocument:
        groups = {event: [group] for event, group in install.wanted_groups(scope).items()}
        note(ask, f"To add by hand:\n{json.dumps({'hooks': groups}, indent=2)}")
        raise
    home, is_new = (None, False) if scope == "user" or dry_run else install.make_home(ask.home)
    if home and origin.is_tracked(home):
        note(ask, f"Note: {origin.PUBLISHED}")
    if chosen and not dry_run:
        architects.write_choice(chosen, scope)
    plugin = str(install.plugin_directory())
    data = {
        "scope": scope, "links": links, "files": files,
        "home": str(home) if home else None, "made_home": is_new, "plugin": plugin,
        "architect": chosen.architect if chosen else None, "architect_file": str(chosen.path) if chosen else None,
    }  # fmt: skip
    lines = _change_lines([*links, *files], dry_run=dry_run)
    lines += [f"{home}: made"] if is_new else []
    emit(ask, data, [*lines, *([plain(f"Architect: {chosen.architect} ({chosen.path})")] if chosen else [])])
    if chosen:
        note(ask, f"Its cost: {architects.COSTS[chosen.architect.partition(':')[0]]}.")
    if not dry_run:
        _note_next_steps(ask, scope, plugin)


def _asked_architect(ask: Ask, dry_run: bool) -> str:
    """Return the architect that a person at the terminal chooses; the usual one where nobody can be asked."""
    from aether.api import architects

    if dry_run or ask.json or ask.quiet or not (is_typed() and sys.stderr.isatty()):
        return architects.USUAL
    say("Who writes the session of a conversation: its state, next steps, rules, decisions and open points?")
    for name in architects.OFFERED:
        say(f"  {name}: {architects.COSTS[name]}")
    offered = click.Choice(architects.OFFERED)
    return str(
        click.prompt("Architect", type=offered, default=architects.USUAL, show_choices=False, err=True)
    )


def _note_next_steps(ask: Ask, scope: str, plugin: str) -> None:
    """Print the next steps, and the limits of this installation."""
    from aether.hosts import programs
    from aether.hosts.claude_code import install

    if not install.can_serve():
        note(ask, install.LEFT_OUT)
    if advice := programs.path_advice():
        note(ask, advice)
        if scope == "project":
            note(ask, "For this machine alone, without PATH: aether claude install --local")
    note(ask, f"To remove it: aether claude uninstall --{scope}. To check it: aether claude status.")
    note(ask, "The plugin does the same and adds slash commands; use one of the two:")
    note(ask, f"  claude plugin marketplace add {shlex.join([plugin])}")
    note(ask, "  claude plugin install aether@aether")


@claude_command.command("uninstall")
@scope_options("project", "local", "user")
@pass_ask
def uninstall(ask: Ask, scope: str | None, dry_run: bool) -> None:
    """Remove the hooks from the settings of Claude Code.

    Without --project, --local and --user they are removed from both files of the project. Only the entries of aether
    are removed; the memory stays.

    \b
    Example:
      aether claude uninstall --project
    """
    from aether.hosts import settings
    from aether.hosts.claude_code import install

    scopes = [scope] if scope else ["project", "local"]
    native = uninstall_native(ask, dry_run=dry_run)
    files = [
        file
        for name in scopes
        for file in settings.uninstall(install.edits(name, None), install.claude_directory(), dry_run=dry_run)
    ]
    emit(
        ask,
        {"scope": scope, "files": files, "native_memory": native},
        [*_change_lines(files, dry_run=dry_run), *native_lines(native, dry_run)],
    )
    if not dry_run:
        note(ask, "The memory stays in the project's .aether/; remove that directory to forget all of it.")


def _change_lines(files: list[FileChange], *, dry_run: bool) -> list[str]:
    lines = []
    for change in files:
        lines.append(plain(f"{change.path}: {verb(change, dry_run)}"))
        if dry_run:
            lines += plain(change.diff).splitlines()
        elif change.backup:
            lines.append(plain(f"  backup: {change.backup}"))
    return lines


@claude_command.command("status")
@pass_ask
def status(ask: Ask) -> int:
    """Show the installation, and whether it works.

    Runs the program of the hooks once. Exits 1 if there is a problem.

    \b
    Example:
      aether claude status
    """
    from aether.cli.status import architect_facts, log_lines
    from aether.hosts.claude_code import health
    from aether.paths import find_home

    report = health.status(find_home(ask.home) if ask.home else None)
    rows = []
    for settings in report.installed:
        hooks = f"{len(settings.events)} hooks" if settings.events else "nothing"
        rows.append((settings.scope, f"{hooks}{', plugin' if settings.plugin else ''}", settings.path))
    session = report.last_session
    architect = [(label.lower(), words) for label, words in architect_facts(report.architect._asdict())]
    pairs = [
        ("MCP server", ", ".join(report.servers) or "not in settings"),
        ("on PATH", "not in every shell" if report.path else "yes"), ("home", report.home or "none"),
        ("paused", "yes" if report.paused else "no"), ("waiting", pluralize(report.waiting, "events")),
        ("last session", f"{when(session['at'])}  {session['session']}" if session else "none yet"),
        *architect,
    ]  # fmt: skip
    installed = Table(rows, head=("scope", "installed", "settings"))
    emit(ask, report, [installed, *facts(pairs, indent=0), *log_lines(report.log, report.home)])
    for words in report.problems:
        say(plain(f"Problem: {words}"))
    if report.path:
        note(ask, report.path)
    return 1 if report.problems else 0


@claude_command.command("pause")
@click.option("--resume", is_flag=True, help="Resume them")
@pass_ask
def pause(ask: Ask, resume: bool) -> None:
    """Pause the hooks of this home, or resume them.

    \b
    Example:
      aether claude pause
    """
    from aether.hosts.claude_code import health

    place = health.resume(ask.place()) if resume else health.pause(ask.place())
    emit(ask, {"home": str(place), "paused": not resume}, f"{'Working' if resume else 'Paused'}: {place}")
    if not resume:
        note(ask, "To continue: aether claude pause --resume")


@claude_command.command("rescue")
@click.option(
    "--project", "everywhere", flag_value=False, type=bool, default=False,
    help="The transcripts of this project  [default]",
)  # fmt: skip
@click.option(
    "--all", "everywhere", flag_value=True, type=bool,
    help="The transcripts of every project, each into its own home",
)  # fmt: skip
@click.option("--init", "make", is_flag=True, help="Make a home for each project that has none")
@click.option(
    "--older-than", type=click.FloatRange(0), default=0.0, metavar="DAYS",
    help="Only files of at least this age in days  [default: all]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the items, and store nothing")
@pass_ask
def rescue(ask: Ask, everywhere: bool, make: bool, older_than: float, dry_run: bool) -> int:
    """Import transcripts before Claude Code deletes them.

    Claude Code deletes transcripts older than cleanupPeriodDays (default 30). The files are only read, each is imported
    into the home of its own project, and a second run adds only new items.

    \b
    Example:
      aether claude rescue --older-than 20 --dry-run
      aether claude rescue --all --init --dry-run
    """
    from aether.hosts.claude_code import install, rescue

    if not everywhere and (dry_run or not make):
        ask.place()
    with progress(ask) as report:
        transcripts = rescue.rescue(
            ask.home,
            everywhere=everywhere,
            older_than=older_than,
            dry_run=dry_run,
            make=make,
            progress=report,
        )
    for transcript in transcripts:
        if transcript.reason:
            say(plain(f"{transcript.path}: {transcript.state}, {transcript.reason}"))
    rows = [
        (transcript.state, transcript.items, transcript.known, f"{transcript.age_days:.0f}", f"{transcript.days_left:.0f}", f"{transcript.bytes / BYTES_PER_KB:.0f}", transcript.path)
        for transcript in transcripts
    ]  # fmt: skip
    head = ("state", "items", "known", "days old", "days left", "kB", "transcript")
    items = sum(transcript.items for transcript in transcripts)
    imported = sum(transcript.state in {"imported", "planned"} for transcript in transcripts)
    total = f"{pluralize(items, 'items')} {'would be stored' if dry_run else 'stored'}, from {imported} of {pluralize(len(transcripts), 'transcripts')}."
    data = {"dry_run": dry_run, "transcripts": transcripts, "items": items}
    skipped = Counter(transcript.reason for transcript in transcripts if transcript.state == "skipped")
    why = [
        plain(f"{pluralize(number, 'transcripts')} skipped: {reason}.") for reason, number in skipped.items()
    ]
    emit(ask, data, [Table(rows, head=head, right=range(1, 6)), total, *why])
    if not transcripts:
        where = install.claude_directory() / "projects"
        note(ask, f"No session {'' if everywhere else 'that was started in this project '}is in {where}.")
        note(ask, "A single transcript: aether import FILE")
    by_home: dict[str, list[int]] = {}
    for transcript in transcripts:
        by_home.setdefault(transcript.home, []).extend(
            transcript.revisions[-1:]
        )  # an import is undone as one
    for home, revisions in by_home.items():
        if revisions:
            note_undo(ask, revisions, f" --home {shlex.join([home])}" if everywhere else "")
    return 1 if any(transcript.state == "failed" for transcript in transcripts) else 0


class _HookCommand(Command):
    """The command of a hook: any error is logged and exits 1, because the host reads 2 as "block this call"."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _logged(next((word for word in args if not word.startswith("-")), ""), parent):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _logged(" ".join(ctx.params["names"][:2]), ctx):
            return super().invoke(ctx)


@contextmanager
def _logged(event: str, ctx: click.Context | None) -> Iterator[None]:
    from aether.errors import AetherError

    try:
        yield
    except (click.UsageError, AetherError) as reason:
        from aether.store import spool

        if ctx and (ask := ctx.find_object(Ask)) and ask.home:
            os.environ["AETHER_HOME"] = ask.home
        home = project.home_of(os.getcwd(), os.environ.get("CLAUDE_PROJECT_DIR", ""))
        spool.log_failure(home, event, "", f"{type(reason).__name__}: {reason}")
        if isinstance(reason, AetherError):
            raise AetherError(reason.what, fix=reason.fix, where=reason.where) from reason
        fix = "See aether hook --help."
        raise AetherError(reason.format_message(), fix=fix, where="aether hook") from reason


@click.command("hook", cls=_HookCommand)
@click.argument("names", nargs=-1, metavar="[HOST] [EVENT] [FILE]")
@pass_ask
def hook_command(ask: Ask, names: tuple[str, ...]) -> int:
    """Handle an event of an agent as its hook.

    The event is one JSON object on standard input, or in FILE; the text for the model is printed. HOST is the agent
    (default claude-code), EVENT is used if the object does not name its event. Failures are logged in hook.log and never
    block the agent: the exit code is 0, or 1 if the command itself is wrong, never 2.

    \b
    Example:
      aether hook SessionStart event.json
    """
    from aether import regular
    from aether.hosts import HOSTS, hook

    count = 2 if names and names[0] in HOSTS else 1
    words, file = [*names[:count]], names[count] if len(names) > count else None
    if len(names) > count + 1:
        raise click.UsageError(f"Got unexpected extra argument ({names[count + 1]})")
    if ask.home:
        os.environ["AETHER_HOME"] = ask.home
    if file is None and not ask.json:
        return hook.serve(words)
    if file is None:
        payload = sys.stdin.buffer.read()
    else:
        with regular.named(file) as opened:
            payload = opened.read()
    code, text = hook.main(words, payload)
    answer = json.loads(text) if text.startswith("{") else text
    emit(ask, {"told": answer}, [text] if text else [])
    return code


@click.command("mcp", cls=Command)
@click.option(
    "--tools", type=click.Choice(["memory", "team", "graph", "all"]), default="memory", show_default=True,
    help="The tools of aether, also those of a team, those of the official memory server, or all",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="Print the descriptions of the tools, and serve nothing")
@pass_ask
def mcp_command(ask: Ask, tools: str, *, listed: bool) -> None:
    """Serve memory to an MCP client over stdin and stdout.

    Runs until stdin ends. The home is --home, AETHER_HOME, else that of the project in CLAUDE_PROJECT_DIR or of the
    current directory; a missing home is created. Needs the package mcp: pip install '.[mcp]' in a clone of aether.

    \b
    Example:
      aether mcp --list
      aether mcp --tools graph --list
    """
    from aether.mcp import catalogue, server

    if not listed:
        server.serve(ask.home, tools=tools)
        return
    offered = catalogue.tools_of(tools)
    data = [{"name": tool.name, "description": tool.description} for tool in offered]
    lines = [[tool.name, *(plain(f"  {line}") for line in tool.description.splitlines())] for tool in offered]
    emit(ask, data, [line for tool_lines in lines for line in tool_lines])
