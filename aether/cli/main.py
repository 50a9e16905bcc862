"""The command `aether`: finds the noun, runs the verb, and is the one place that prints an error and exits.

A noun's module is imported when it is asked for, so that `--help` and a hook do not pay for the others.
At the end of a command the journal is folded into the documents, of one that only reads not until it is long.
"""

from __future__ import annotations

import os
import sys
from contextvars import copy_context
from importlib import import_module
from typing import NoReturn

import click

from aether import __version__
from aether.cli.former import FORMER_SPELLINGS, spelled_now
from aether.cli.output import (
    Ask,
    Command,
    Group,
    drop_stdout,
    emit,
    finding_line,
    note,
    notices,
    open_missing,
    pass_ask,
    plain,
    say,
)

# The exit codes that shells expect after Ctrl-C, and after the reader closed the pipe.
INTERRUPTED, BROKEN_PIPE = 130, 141
# Starting makes some 30,000 objects that stay: looking for garbage among them is 6 % of a short command.
COLLECT_AFTER_OBJECTS = 50_000

# Modules with work of their own when an interpreter ends: what is open is written, sent or removed.
WORK_AT_EXIT = frozenset(
    {"logging", "tempfile", "concurrent.futures", "multiprocessing", "aether.events.delivery"}
)

# Each command by the heading under which help lists it, with its module and its line of help: help imports no module.
SECTIONS = {
    "Daily": {
        "init": ("home", "Make a home for a colony's memory"),
        "import": ("transfer", "Turn transcripts into items, or restore an export"),
        "status": ("status", "Show the whole colony at a glance"),
        "brief": ("recall", "Show what a new session gets"),
        "recall": ("recall", "Recall from memory, step by step"),
        "add": ("memory", "Store one item and print its id"),
        "compress": ("memory", "Compress the items of each phase into a session"),
        "view": ("status", "Show memory as a web page on this machine"),
        "undo": ("home", "Undo one change"),
    },
    "Memory": {
        "memory": ("memory", "Search, correct and promote memory"),
        "trace": ("forget", "Show where an entry came from"),
        "timeline": ("timeline", "Show what happened, day by day, or to one file"),
        "report": ("timeline", "Write a report to keep or send"),
        "log": ("home", "Show who changed what, when and why"),
        "show": ("home", "Print a document as it is now"),
        "export": ("transfer", "Write the whole colony as JSON, or one conversation"),
    },
    "Conversations": {
        "chat": ("chat", "Talk with a model for as long as you like"),
        "compact": ("compact", "Make conversations fit a model's window"),
        "context": ("context", "Show and change the contexts of long conversations"),
        "archive": ("archive", "Keep conversations that lose detail as they age"),
        "goal": ("goal", "Set goals and keep them through every conversation"),
    },
    "Colony": {
        "signal": ("colony", "Deposit a signal, or list the active ones"),
        "phase": ("colony", "Start, complete and review phases"),
        "state": ("colony", "Show the state of the colony and its phases"),
        "claim": ("teamwork", "Claim a file or a task for one agent, or list the claims"),
        "inbox": ("teamwork", "Show what was handed over to an agent, or hand over"),
        "roster": ("teamwork", "Show who works on what"),
        "share": ("share", "Share a colony between machines"),
    },
    "Integrations": {
        "install": ("hosts", "Connect the agents on this machine to memory"),
        "uninstall": ("hosts", "Remove aether's hooks from the settings of agents"),
        "claude": ("claude", "Install in Claude Code, and check the installation"),
        "rule": ("rule", "Let rules stop tool calls of agents"),
        "mcp": ("claude", "Serve memory to an MCP client over stdin and stdout"),
    },
    "Care": {
        "doctor": ("home", "Check a home and repair it"),
        "backup": ("backup", "Back the whole home up, and restore it elsewhere"),
        "snapshot": ("home", "Save the whole colony and restore it"),
        "trust": ("home", "Confirm the settings and the memory of a home"),
        "completion": ("main", "Print the completion script of a shell"),
        "demo": ("demo", "Show what memory is for, on a sample"),
        "schema": ("home", "Print the JSON Schema of --json, or check documents"),
        "fold": ("home", "Write the journal into the documents"),
        "tokens": ("tokens", "Count tokens and choose the counter"),
        "graph": ("graph", "Search, import and export a knowledge graph"),
        "statusline": ("status", "Print one line for the status line of Claude Code"),
        "hook": ("claude", "Handle an event of an agent as its hook"),
    },
}
NOUNS = {name: row for section in SECTIONS.values() for name, row in section.items()}


class Nouns(Group):
    """The commands at the top, imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the commands in the order of the help."""
        return list(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        """Return a command, importing its module."""
        if cmd_name not in NOUNS:
            return None
        module = import_module(f"aether.cli.{NOUNS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name; of a former spelling, with a hint on stderr, the one of today."""
        spelling = next(
            (words for length in (2, 1) if (words := " ".join(args[:length])) in FORMER_SPELLINGS), ""
        )
        if spelling:
            now = FORMER_SPELLINGS[spelling].replace("{*}", "…").replace("{}", "…")
            hint = f"aether {spelling} is now aether {now}; the former spelling ends with the next release."
            note(ctx.ensure_object(Ask), hint)
            args = spelled_now(spelling, args[len(spelling.split()) :])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        """Write the commands under their headings without importing them."""
        width = max(map(len, NOUNS))
        for heading, section in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in section.items()])


@click.command(cls=Nouns, invoke_without_command=True)
@click.pass_context
@click.version_option(__version__, prog_name="aether", message="%(prog)s %(version)s")
def cli(ctx: click.Context) -> None:
    """Keep, compress and search the memory of a colony of agents.

    State is JSON below .aether/, found with --home, AETHER_HOME, or the nearest one above here. Data goes to stdout,
    messages go to stderr; every command takes --json.

    \b
    Example:
      aether init
    """
    if ctx.invoked_subcommand is None:
        from aether.cli.status import show_start

        show_start(ctx.ensure_object(Ask))


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, else the exit code of the error (docs/errors.md)."""
    import gc

    gc.set_threshold(COLLECT_AFTER_OBJECTS)
    leave(interruptible(sys.argv[1:] if arguments is None else arguments), at_once=arguments is None)


def interruptible(arguments: list[str], *, command: click.Command = cli, name: str = "aether") -> int:
    """Run one command line as `main` does; Ctrl-C, which ended the process while it started, interrupts it from here on."""
    import signal

    try:
        if callable(signal.getsignal(signal.SIGINT)):  # it is ignored in the background
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return main(arguments, command=command, name=name)
    except KeyboardInterrupt:  # a second one, while the first was answered
        return INTERRUPTED


def leave(code: int, *, at_once: bool) -> NoReturn:
    """End the process with `code`; `at_once` without freeing what it holds, if nothing else is left to do.

    The ordinary end of an interpreter takes a seventh of the time of a short command.
    """
    import signal
    import threading

    if at_once and callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))

    if at_once and threading.active_count() == 1 and WORK_AT_EXIT.isdisjoint(sys.modules):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)  # the interpreter reports what it cannot write
        os._exit(code)
    sys.exit(code)


def main(arguments: list[str], *, command: click.Command = cli, name: str = "aether") -> int:
    """Run one command line, of `command` under its name, and return its exit code."""
    ask = Ask()
    open_missing()
    try:
        with notices(ask):
            # In a copy of the context, so that the author of its changes ends with it.
            result = copy_context().run(
                command.main, args=arguments, prog_name=name, standalone_mode=False, obj=ask
            )
            _age(ask)
            _fold(ask)
        _note_waiting(ask)
        _note_untrusted(ask)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as left:
        # click leaves by SystemExit: with 0 after completing a word, else because its output has no reader.
        if isinstance(left, SystemExit) and left.code == 0:
            return 0
        drop_stdout()
        return BROKEN_PIPE
    except BaseException as reason:  # noqa: BLE001 - the one place that turns every error into words and a code
        _note_untrusted(ask, reason)
        return _failed(reason, ask, as_data=ask.json or "--json" in arguments)
    return result if isinstance(result, int) else 0


def _failed(reason: BaseException, ask: Ask, *, as_data: bool) -> int:
    from aether.errors import AetherError

    if isinstance(reason, (KeyboardInterrupt, click.Abort)):
        say("Interrupted. What was acknowledged is stored.")
        return INTERRUPTED
    if isinstance(reason, click.exceptions.NoArgsIsHelpError):
        if not as_data:
            reason.show()
            return reason.exit_code
        reason = click.UsageError("Missing command.", reason.ctx)
    if isinstance(reason, click.ClickException):
        return _print_error(_usage(reason), ask, as_data=as_data, code=reason.exit_code)
    if isinstance(reason, OSError) and not isinstance(reason, AetherError):
        reason = _refused(reason)
    if not isinstance(reason, AetherError):
        raise reason
    words = {"code": reason.code, "where": reason.where, "what": reason.what, "fix": reason.fix}
    return _print_error(words, ask, as_data=as_data, code=reason.exit_code)


def _refused(reason: OSError) -> Exception:
    """Return our error for a failed read or write of the command line itself."""
    from aether.errors import StorageFailed, shown

    words = reason.strerror or reason
    if reason.filename is None:  # only a stream that is open already has no name
        drop_stdout()
        return StorageFailed(
            f"cannot be written: {words}.", fix="Free some space, or write elsewhere.", where="stdout"
        )
    return StorageFailed(
        f"{shown(str(reason.filename))}: {words}.", fix="Check the name and its permissions."
    )


# What click calls a value, longest first, and what a person calls it.
_KINDS = {
    "integer range": "a whole number", "integer": "a whole number", "float range": "a number", "float": "a number",
}  # fmt: skip


def _usage(reason: click.ClickException) -> dict[str, str]:
    """Return the parts of the error for a command line that cannot be parsed."""
    context = getattr(reason, "ctx", None)
    where = context.command_path if context else "aether"
    what = reason.format_message()
    for kind, words in _KINDS.items():
        what = what.replace(f"not a valid {kind}", f"not {words}")
    return {
        "code": "UsageError", "where": where, "what": what, "fix": f"See {where} --help.",
    }  # fmt: skip


def _print_error(words: dict[str, str], ask: Ask, *, as_data: bool, code: int) -> int:
    """Print an error: one line on stderr and, with `--json`, its parts on stdout."""
    if as_data:
        ask.json = True
        emit(ask, {"error": {**words, "exit_code": code}}, "")
    where = f"{words['where']}: " if words["where"] else ""
    say(plain(f"Error: {where}{words['what']} {words['fix']}"))
    return code


def _note_untrusted(ask: Ask, reason: BaseException | None = None) -> None:
    """Say which settings of the home were ignored, unless the error says it."""
    from aether.errors import UnsafePath

    if ask.found is None or isinstance(reason, UnsafePath):
        return
    from aether.store.config import untrusted

    for finding in untrusted(ask.found):
        note(ask, finding_line(finding, "Note"))
    from aether.store.origin import is_confirmed

    if not is_confirmed(ask.found):
        note(
            ask,
            "Note: this memory came with the repository, and nobody confirmed it. See: aether trust --show",
        )


def _note_waiting(ask: Ask) -> None:
    """Say how many changes of a shared home wait for its server, and why it takes none of others."""
    if ask.found is None:
        return
    access = sys.modules.get("aether.api.home")
    refusal = access.REFUSALS.get(ask.found) if access else None
    if refusal and refusal.code != "Offline":  # then the next line says it
        note(ask, plain(f"Note: no news from the colony: {refusal.what} See: aether share status"))
    if not os.path.isdir(f"{ask.found}/share"):
        return
    from aether.sharing import offline
    from aether.text.words import pluralize

    if names := offline.names(ask.found):
        waits = pluralize(len(names), "changes")
        note(ask, f"Note: {waits} waiting for the server of the colony: aether share status")
    if unfit := offline.unfit(ask.found):
        unfit_changes = pluralize(len(unfit), "changes")
        note(
            ask,
            f"Note: {unfit_changes} no longer fitted the changes of others, kept in quarantine: aether doctor",
        )


def _age(ask: Ask) -> None:
    """Age the archive if this is the first command of a day and `archive.auto` says so; hooks have no `found` home."""
    if ask.found is None or not ask.ages:
        return
    from aether.store import config

    if config.or_default(ask.found).archive_auto == "daily":
        from aether.cli.archive import age_daily

        age_daily(ask.found)


def _fold(ask: Ask) -> None:
    """Fold the journal; the change is stored already, so a failure is only a note. A read-only home stays as it is."""
    if ask.found is None or not os.access(ask.found, os.W_OK):
        return
    from aether import clock
    from aether.errors import AetherError
    from aether.store.commit import fold_home

    try:
        fold_home(ask.found, now=clock.now(), least=ask.least_to_fold)
    except AetherError as reason:
        say(f"Note: stored in the journal, but not folded into the documents yet: {reason}")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_ask
def completion_command(ask: Ask, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      aether completion bash
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows all three
        raise click.UsageError(f"click does not complete {shell}.")
    script = kind(cli, {}, "aether", "_AETHER_COMPLETE").source()
    emit(ask, {"shell": shell, "script": script}, script)
