"""The colony at a glance: `aether status`, once or watched, and the line that Claude Code shows below a session."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from typing import Any

import click

from aether.cli.output import (
    Ask,
    Command,
    emit,
    facts,
    note,
    pass_ask,
    plain,
    say,
    short,
    terminal_columns,
    when,
)
from aether.cli.streams import drop_stdout
from aether.text.words import counted

# Often enough to see work arrive; a look costs a few milliseconds.
WATCH_EVERY_SECONDS = 2.0
# Cursor home and all below erased: what stood there is written over, without a flicker.
_AGAIN = "\x1b[H\x1b[J"
_YELLOW, _PLAIN = "\x1b[33m", "\x1b[0m"
# Columns of a line that shares its row with what the host says.
LINE_COLUMNS = 80
# A line of the log that is longer is mostly the list of what would have been right.
LOG_COLUMNS = 200


@click.command("status", cls=Command)
@click.option("--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C")
@pass_ask
def status_command(ask: Ask, watch: bool) -> int:
    """Show how the whole colony is, at a glance.

    Tokens in memory, the phase, the last compression, and what the hooks of Claude Code do. With --watch it is
    refreshed in place; where stdout is no terminal, every change is one line. Exits 1 where something keeps it from
    working.

    \b
    Example:
      aether status
    """
    from aether import clock
    from aether.operations.overview import overview

    place = ask.place()
    if watch:
        ask.found = None  # looking folds nothing
        _watch(ask, place)
    found = overview(home=place)
    emit(ask, found, _lines(found, clock.now()))
    if found["compression_needed"]:
        note(ask, "Compression is needed: aether memory compress --phase N")
    for words in found["problems"]:
        say(plain(f"Problem: {words}"))
    return 1 if found["problems"] else 0


def _watch(ask: Ask, place: Any) -> None:
    from time import sleep

    from aether import clock
    from aether.operations.overview import overview

    in_place = sys.stdout.isatty() and not ask.json
    shown: Any = None
    while True:
        found = overview(home=place)
        if in_place:
            emit(ask, found, _AGAIN + "\n".join(_on_screen(_lines(found, clock.now()))))
        elif found != shown:
            emit(ask, found, _line(found, clock.now()))
        sys.stdout.flush()
        shown = found
        sleep(WATCH_EVERY_SECONDS)


def _on_screen(lines: list[str]) -> list[str]:
    """Return of `lines` what a terminal shows without scrolling: below them stands the cursor."""
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        rows = 0
    return [short(line, terminal_columns()) for line in (lines[: max(1, rows - 1)] if rows else lines)]


def _lines(found: dict[str, Any], now: datetime) -> list[str]:
    last, hooks = found["last_compression"], found["hooks"]
    compressed = (
        f"{_ago(last['compressed_at'], now)}, {last['compression_ratio']}x, {short(last['session_id'], 40)}"
        if last
        else "never"
    )
    heard = f"last event {_ago(hooks['last_event'], now)}" if hooks["last_event"] else "nothing heard yet"
    waiting = f", {hooks['waiting']} waiting" if hooks["waiting"] else ""
    lines = facts(
        [
            ("Home", found["home"]),
            ("Working memory", f"{found['tokens']} / {found['max_tokens']} tokens ({found['percent']:g}%), {counted(found['items'], 'items')}"),
            ("Short-term", counted(found["sessions"], "sessions")),
            ("Long-term", counted(found["patterns"], "patterns")),
            ("Phase", f"{'none yet' if found['phase'] is None else found['phase']} ({found['state']})"),
            ("Last compression", compressed),
            ("Hooks", f"{'paused, ' if hooks['paused'] else ''}{heard}{waiting}"),
            ("Revision", found["revision"]),
        ],
        indent=0,
    )  # fmt: skip
    return [*lines, *log_lines(found["log"], found["home"])]


def log_lines(log: list[str], home: str) -> list[str]:
    """Return what is shown of the log of the hooks; nothing where it is empty."""
    if not log:
        return []
    head = f"What hooks could not do, newest last ({home}/hook.log):"
    return [plain(head), *(plain(f"  {short(line, LOG_COLUMNS)}") for line in log)]


def _line(found: dict[str, Any], now: datetime) -> str:
    """Return the overview as one line."""
    last, hooks = found["last_compression"], found["hooks"]
    parts = [
        f"aether {_thousands(found['tokens'])} tokens ({found['percent']:g}%)",
        "" if found["phase"] is None else f"phase {found['phase']}",
        f"compressed {_ago(last['compressed_at'], now)}" if last else "",
        "compression needed" if found["compression_needed"] else "",
        "paused" if hooks["paused"] else "",
        "trouble: aether status" if found["problems"] else "",
    ]
    return short(" · ".join(filter(None, parts)), LINE_COLUMNS)


def _thousands(number: int) -> str:
    return str(number) if number < 1_000 else f"{number / 1_000:.1f}k"


def _ago(at: str, now: datetime) -> str:
    """Return how long ago `at` was, in the largest unit that fits; what is no time is shown as it is."""
    from aether import clock
    from aether.errors import InvalidInput

    try:
        seconds = (now - clock.parse(at)).total_seconds()
    except InvalidInput:
        return when(at)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


@click.command("statusline", cls=Command)
@pass_ask
def statusline_command(ask: Ask) -> int:
    """Print one line for the status line of Claude Code.

    Reads what Claude Code says of the session on standard input, and shows the memory of its project: tokens,
    phase, last compression. Prints nothing where there is no memory; it never fails.

    \b
    Example:
      aether statusline
    """
    try:
        found, line = _session_line(ask)
    except Exception:  # noqa: BLE001 - the host shows this to a person at every turn: better nothing than a traceback
        found, line = None, ""
    try:
        emit(ask, {"line": line, "overview": found}, line or [])
        sys.stdout.flush()
    except OSError:  # a full disk, or a host that no longer reads
        drop_stdout()
    return 0


def _session_line(ask: Ask) -> tuple[dict[str, Any], str]:
    from pathlib import Path

    from aether import clock, paths
    from aether.operations.overview import overview

    said = _said()
    workspace = said.get("workspace") or {}
    at = said.get("cwd") or workspace.get("current_dir") or str(Path.cwd())
    found = overview(home=ask.home or paths.home_of_project(at, workspace.get("project_dir") or ""))
    line = _line(found, clock.now())
    colored = found["compression_needed"] and not os.environ.get("NO_COLOR") and not ask.json
    return found, f"{_YELLOW}{line}{_PLAIN}" if colored else line


def _said() -> dict[str, Any]:
    """Return what the host says on standard input; nothing where a person types."""
    text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    found = json.loads(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}
