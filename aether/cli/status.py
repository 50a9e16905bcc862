"""The colony at a glance: `aether status`, once or watched, the line that Claude Code shows below a session, and the page."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from aether.cli.output import (
    Ask,
    Command,
    Table,
    drop_stdout,
    emit,
    facts,
    note,
    one_line,
    pass_ask,
    plain,
    say,
    watch,
    when,
)
from aether.text.words import pluralize

# Often enough to see work arrive; a look costs a few milliseconds.
WATCH_EVERY_SECONDS = 2.0
# Written by hand: the host shows colours that come through a pipe, and asks again at every turn.
_YELLOW, _PLAIN = "\x1b[33m", "\x1b[0m"
# The host has text of its own in the same row.
LINE_COLUMNS = 80
# Rules and decisions that `aether` alone shows.
MOST_IN_FORCE = 8
# Three commands to go on with, without a home, in an empty home and in any other.
_FIRST = {
    "aether init": "make a home in this directory",
    "aether demo": "see what memory is for, on a sample",
    "aether --help": "list the commands",
}
_EMPTY = {
    "aether install": "connect the agents on this machine to memory",
    "aether import FILE": "turn a transcript into memory",
    'aether add "TEXT" --type decision': "note a decision",
}
_NEXT = {
    "aether brief": "show what a new session gets",
    "aether recall WORDS": "find something again",
    "aether --help": "list the commands",
}


@click.command("status", cls=Command)
@click.option("--watch", is_flag=True, help="Refresh it until Ctrl-C")
@click.option(
    "--layers", "part", flag_value="layers", default=None, help="Show how full the layers are instead"
)
@click.option(
    "--limits", "part", flag_value="limits", help="Check working memory against its token limits instead"
)
@click.option(
    "--compressions", "part", flag_value="compressions", help="Show the compressions so far instead"
)
@pass_ask
def status_command(ask: Ask, *, watch: bool, part: str | None) -> int:
    """Show the whole colony at a glance.

    Shows what memory holds, the active goal, the phase, the last compression, and the state of the hooks of Claude Code.
    With --watch it is refreshed in place; on a pipe every change is one line. Exits 1 if there is a problem; with
    --limits, if working memory is over its capacity.

    \b
    Example:
      aether status
      aether status --layers
    """
    from aether import clock
    from aether.api.overview import overview

    if part is not None:
        if watch:
            raise click.UsageError("--watch shows the whole colony: leave out the other option.")
        return {"layers": _layers, "limits": _limits, "compressions": _compressions}[part](ask)

    place = ask.place()
    if watch:
        ask.found = None  # looking folds nothing
        _watch(ask, place)
    state = overview(home=place)
    emit(ask, state, _lines(state, clock.now()))
    if state["compression_needed"]:
        note(ask, "Compression is needed: aether compress")
    for words in state["problems"]:
        say(plain(f"Problem: {words}"))
    return 1 if state["problems"] else 0


def show_start(ask: Ask) -> None:
    """Print the home, the rules and decisions in force, and three commands to go on with."""
    from aether.api.briefing import brief
    from aether.errors import NotFound
    from aether.memory.briefing.sections import SIGNALS

    try:
        place = ask.place()
    except NotFound:
        commands = _FIRST
        home, in_force = None, []
    else:
        home, lines = str(place), brief(place)["lines"]
        in_force = [
            {"kind": line["kind"], "text": line["text"]}
            for line in lines
            if line["kind"] in ("rule", "decision") and line["heading"] != SIGNALS
        ]
        commands = _NEXT if lines else _EMPTY
    shown = in_force[:MOST_IN_FORCE]
    text: list[str | Table] = [plain(f"Home: {home}") if home else "There is no home here yet.", ""]
    if shown:
        text += [
            "A new session gets:",
            Table([(entry["kind"], one_line(entry["text"])) for entry in shown], indent=2),
        ]
        text += (
            [f"  … and {len(in_force) - len(shown)} more: aether brief"] if in_force[MOST_IN_FORCE:] else []
        )
        text.append("")
    text += ["Next:", Table(list(commands.items()), indent=2)]
    emit(ask, {"home": home, "in_force": in_force, "next": [*commands]}, text)


def _layers(ask: Ask) -> int:
    from aether.api.status import get_memory_status

    report = get_memory_status(home=ask.place())
    emit(ask, report, layer_lines(report))
    if report["working_memory"]["compression_needed"]:
        note(ask, "Compression is needed: aether compress")
    return 0


def _limits(ask: Ask) -> int:
    from aether.api.working import verify_token_limit

    usage = verify_token_limit(home=ask.place())
    verdict = (
        "FAIL" if usage.current > usage.maximum else "WARNING" if usage.current > usage.threshold else "PASS"
    )
    data = {**usage._asdict(), "percent": usage.percent, "status": verdict}
    pairs = [
        ("Max", usage.maximum), ("Current", f"{usage.current} ({usage.percent:g}%)"),
        ("Threshold", usage.threshold), ("Status", verdict),
    ]  # fmt: skip
    emit(ask, data, facts(pairs, indent=0))
    return int(verdict == "FAIL")


def _compressions(ask: Ask) -> int:
    from aether.api.status import get_compression_stats

    statistics = get_compression_stats(home=ask.place())
    emit(ask, statistics, compression_lines(statistics))
    return 0


def layer_lines(report: dict[str, Any]) -> list[str]:
    """Return the status of the three layers as lines."""
    work, short_term, long_term, metrics = (
        report[part] for part in ("working_memory", "short_term_memory", "long_term_memory", "metrics")
    )
    types = ", ".join(
        f"{name.removesuffix('_pattern')}={number}" for name, number in long_term["types"].items()
    )
    sections: dict[str, list[tuple[str, Any]]] = {
        "Working Memory": [
            ("Items", work["items"]),
            ("Tokens", f"{work['tokens']} / {work['max_capacity_tokens']} ({work['percent']:g}%)"),
            # The name is the original's; items leave only when working memory is full.
            ("Eviction Threshold", f"{work['eviction_threshold_tokens']} (asks for compression)"),
            ("Max Capacity", work["max_capacity_tokens"]),
            ("Counted by", work["counter"]),
        ],
        "Short-term Memory": [
            (
                "Sessions",
                f"{short_term['sessions']} / {short_term['max_sessions']} ({short_term['percent']:g}%)",
            ),
            ("Ratio", f"{short_term['target_ratio']}x target"),
        ],
        "Long-term Memory": [("Patterns", long_term["patterns"]), ("Types", types)],
        "Metrics": [
            ("Total compressions", metrics["total_compressions"]),
            ("Total pattern extractions", metrics["total_pattern_extractions"]),
            ("Average compression ratio", f"{metrics['average_compression_ratio']:.2f}x"),
            ("Working memory evictions", metrics["working_memory_evictions"]),
            ("Short-term evictions", metrics["short_term_evictions"]),
        ],
    }
    widest = max(len(label) + 1 for pairs in sections.values() for label, _ in pairs)
    lines: list[str] = []
    for title, pairs in sections.items():
        lines += [title, *facts(pairs, room=widest)]
    return lines


def compression_lines(statistics: dict[str, Any]) -> list[str | Table]:
    """Return the statistics of compression as lines."""
    lines: list[str | Table] = []
    lines += facts(
        [("Total compressions", statistics["total_compressions"]), ("Average ratio",
        f"{statistics['average_compression_ratio']:.2f}x"), ("Sessions",
        f"{len(statistics['sessions'])} / {statistics['max_sessions']}"), ("Working memory evictions",
        statistics["working_memory_evictions"]), ("Short-term evictions", statistics["short_term_evictions"])],
        indent=0,
    )  # fmt: skip
    rows = [
        (
            session["session_id"], session["phase"], session["compressed_at"][:10],
            session["original_tokens"], session["compressed_tokens"], f"{session['compression_ratio']:.2f}x",
        )
        for session in statistics["sessions"]
    ]  # fmt: skip
    head = ("session", "phase", "date", "before", "after", "ratio")
    return [*lines, "", Table(rows, head=head, right=[1, 3, 4, 5])] if rows else lines


def _watch(ask: Ask, place: Any) -> None:
    from time import sleep

    from aether import clock
    from aether.api.overview import overview

    def frames() -> Iterator[list[str | Table]]:
        while True:
            yield _lines(overview(home=place), clock.now())
            sleep(WATCH_EVERY_SECONDS)

    if sys.stdout.isatty() and not ask.json:
        watch(frames())
    previous: Any = None
    while True:
        state = overview(home=place)
        if state != previous:
            emit(ask, state, _line(state, clock.now()))
            sys.stdout.flush()
        previous = state
        sleep(WATCH_EVERY_SECONDS)


def _lines(state: dict[str, Any], now: datetime) -> list[str | Table]:
    last, hooks = state["last_compression"], state["hooks"]
    compressed = (
        f"{_ago(last['compressed_at'], now)}, {last['compression_ratio']}x, {last['session_id']}"
        if last
        else "never"
    )
    heard = f"last event {_ago(hooks['last_event'], now)}" if hooks["last_event"] else "no event yet"
    waiting = f", {hooks['waiting']} waiting" if hooks["waiting"] else ""
    lines: list[str | Table] = []
    lines += facts(
        [
            ("Home", state["home"]),
            ("In force", f"{pluralize(state['rules'], 'rules')}, {pluralize(state['decisions'], 'decisions')}"),
            ("Working memory", f"{state['tokens']} / {state['max_tokens']} tokens ({state['percent']:g}%), {pluralize(state['items'], 'items')}" if state["items"] else empty_words(state)),
            ("Short-term", pluralize(state["sessions"], "sessions")),
            ("Long-term", pluralize(state["patterns"], "patterns")),
            ("Goal", _goal_words(state["goal"])),
            ("Phase", f"{'none yet' if state['phase'] is None else state['phase']} ({state['state']})"),
            ("Last compression", compressed),
            ("Hooks", f"{'paused, ' if hooks['paused'] else ''}{heard}{waiting}"),
            *architect_facts(state["architect"]),
            ("Revision", state["revision"]),
        ],
        indent=0,
    )  # fmt: skip
    return [*lines, *log_lines(state["log"], state["home"])]


def architect_facts(standing: dict[str, Any]) -> list[tuple[str, str]]:
    """Return who writes the sessions, what that costs, and its last failure, as facts."""
    limit = standing["daily_tokens"]
    used = f" ({standing['tokens_today']} of {limit} tokens today)" if limit else ""
    rows = [("Architect", f"{standing['architect']}: {standing['cost']}{used}")]
    return [*rows, ("Architect failed", one_line(standing["failure"]))] if standing["failure"] else rows


def _goal_words(goal: dict[str, Any] | None) -> str:
    if not goal:
        return 'none (aether goal add "TEXT")'
    return f"{one_line(goal['description'])} ({goal['status']}, {goal['progress']}%)"


def empty_words(found: dict[str, Any]) -> str:
    """Return why working memory is empty, and where its items are."""
    last = found["last_compression"]
    if not last:
        return "empty"
    went = pluralize(last["items"], "items") if last["items"] else "its items"
    into = f"session {last['session_id']}"
    if found["compressions"] > 1:
        went, into = (
            "its items",
            f"{pluralize(found['compressions'], 'sessions')}, last into {last['session_id']}",
        )
    return (
        f"empty: {went} went into {into}; "
        f"{pluralize(found['rules'], 'rules')} in force; to search all: aether recall WORDS"
    )


def log_lines(log: list[str], home: str) -> list[str | Table]:
    """Return the shown part of the hooks' log; nothing if it is empty."""
    if not log:
        return []
    head = f"Failures of hooks, newest last ({home}/hook.log):"
    return [plain(head), Table([(line,) for line in log], indent=2)]


def _line(state: dict[str, Any], now: datetime) -> str:
    """Return the overview as one line."""
    last, hooks = state["last_compression"], state["hooks"]
    held = [
        pluralize(state[name], name) for name in ("rules", "decisions", "sessions", "items") if state[name]
    ]
    parts = [
        f"aether {', '.join(held) or 'empty'}",
        "" if state["phase"] is None else f"phase {state['phase']}",
        f"compressed {_ago(last['compressed_at'], now)}" if last else "",
        f"compression needed ({state['percent']:g}% full)" if state["compression_needed"] else "",
        "paused" if hooks["paused"] else "",
        "problem: aether status" if state["problems"] else "",
    ]
    line = plain(" · ".join(filter(None, parts)))
    return line if len(line) <= LINE_COLUMNS else line[: LINE_COLUMNS - 1] + "…"


def _ago(timestamp: str, now: datetime) -> str:
    """Return how long ago `at` was, in the largest unit that fits; an invalid time is shown unchanged."""
    from aether import clock
    from aether.errors import InvalidInput

    try:
        seconds = (now - clock.parse(timestamp)).total_seconds()
    except InvalidInput:
        return when(timestamp)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


@click.command("statusline", cls=Command)
@pass_ask
def statusline_command(ask: Ask) -> int:
    """Print one line for the status line of Claude Code.

    Reads the session from Claude Code on standard input, and shows the memory of its project: rules and decisions in
    force, sessions, items, phase, last compression. Prints nothing if there is no memory; it never fails.

    \b
    Example:
      aether statusline
    """
    try:
        from pathlib import Path

        from aether import clock, paths
        from aether.api.overview import overview

        text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
        payload = json.loads(text) if text.strip() else {}
        session = payload if isinstance(payload, dict) else {}
        workspace = session.get("workspace") or {}
        directory = session.get("cwd") or workspace.get("current_dir") or str(Path.cwd())
        state = overview(
            home=ask.home or paths.home_of_project(directory, workspace.get("project_dir") or "")
        )
        line = _line(state, clock.now())
        if state["compression_needed"] and not os.environ.get("NO_COLOR") and not ask.json:
            line = f"{_YELLOW}{line}{_PLAIN}"
    except Exception:  # noqa: BLE001 - the host shows this to a person at every turn: better nothing than a traceback
        state, line = None, ""
    try:
        emit(ask, {"line": line, "overview": state}, line or [])
        sys.stdout.flush()
    except OSError:  # a full disk, or a host that no longer reads
        drop_stdout()
    return 0


@click.command("view", cls=Command)
@click.option("--port", default=0, type=click.IntRange(0, 65_535), help="The port  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the address only")
@click.option("--read-only", is_flag=True, help="Show everything, and change nothing")
@pass_ask
def view_command(ask: Ask, port: int, *, no_browser: bool, read_only: bool) -> None:
    """Show memory as a web page on this machine, until Ctrl-C.

    Prints the address, which holds the key to the page, and opens it in the browser. The page shows the
    entries, their sources and what a session gets, and lets you forget, correct or undo. Only this machine can
    reach it. It needs the extra `view`: pip install '.[view]' in a clone of aether.

    \b
    Example:
      aether view
      aether view --read-only --no-browser --port 8010
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from aether.api.home import find
    from aether.view.app import View

    view = View(find(ask.home), port=port, read_only=read_only)
    emit(ask, {"url": view.address, "read_only": read_only}, view.address)
    sys.stdout.flush()
    with TemporaryDirectory(prefix="aether-view-") as directory:  # this user's alone
        if not no_browser and not _opened(view.entrance(Path(directory)).as_uri()):
            note(ask, "No browser was found: open the address above in one on this machine.")
        note(ask, "Ctrl-C stops it.")
        view.serve()
    note(ask, "Stopped.")


def _opened(address: str) -> bool:
    """Open the address in the browser of the desktop; a browser of the terminal would take it over."""
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
