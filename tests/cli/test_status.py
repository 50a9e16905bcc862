"""The colony at a glance, watched, and in one line."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import aether
from aether.cli import status
from aether.cli.main import main
from tests.cli.stage import shown
from tests.tables import rows

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def typed(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def found(**changes):
    hooks = {"paused": False, "waiting": 0, "last_event": ""}
    return {
        "home": "/p/.aether", "revision": 3, "items": 2, "tokens": 12_345, "max_tokens": 200_000, "percent": 6.2,
        "compression_needed": False, "sessions": 1, "patterns": 0, "compressions": 1, "rules": 2, "decisions": 0, "goal": None, "state": "IDLE", "phase": None,
        "last_compression": None, "hooks": hooks, "problems": [], "log": [],
        "architect": {"architect": "extractive", "cost": "nothing", "tokens_today": 0, "daily_tokens": 0, "failure": ""}, **changes,
    }  # fmt: skip


BUSY = found(
    tokens=900, phase=2, compression_needed=True, hooks={"paused": True, "waiting": 4, "last_event": "2026-03-04T11:30:00Z"},
    last_compression={"session_id": "s1", "compressed_at": "2026-03-02T11:00:00Z", "compression_ratio": 2.5, "items": 3},
)  # fmt: skip


def test_status_says_what_there_is(here, capsys):
    text = shown(capsys, "status").out

    assert "Working memory:" in text
    assert "/ 200000 tokens (0%), 2 items" in text
    assert "Last compression:  never" in text
    assert "Hooks:             no event yet" in text


def test_the_counts_of_what_is_in_force_are_those_of_the_start(here, capsys):
    fact = {"kind": "answer", "question": "Windows?", "options": [], "choice": "Skip it"}
    metadata = {"fact": fact, "evidence": "person", "pointer": {"line": 1}, "conversation": "c1"}
    aether.add_working_memory_item("Asked: Windows?\nAnswered: Skip it", "decision", metadata=metadata)
    aether.add_working_memory_item("Never push to main.", "constraint")
    aether.emit_signal("FOCUS", "the parser")

    in_force = json.loads(shown(capsys, "--json").out)["in_force"]
    state = json.loads(shown(capsys, "status", "--json").out)

    kinds = [entry["kind"] for entry in in_force]
    assert "Skip it (asked: Windows?)" in [entry["text"] for entry in in_force]
    assert (state["rules"], state["decisions"]) == (kinds.count("rule"), kinds.count("decision"))


def test_a_quiet_and_a_busy_colony_as_lines():
    quiet, busy = "\n".join(status._lines(found(), NOW)), "\n".join(status._lines(BUSY, NOW))

    assert "none yet (IDLE)" in quiet
    assert "2 d ago, 2.5x, s1" in busy
    assert "paused, last event 30 min ago, 4 waiting" in busy


def test_a_quiet_and_a_busy_colony_on_one_line():
    assert status._line(found(), NOW) == "aether 2 rules, 1 session, 2 items"
    assert status._line(found(rules=0, sessions=0, items=0), NOW) == "aether empty"
    assert (
        status._line(BUSY, NOW)
        == (
            "aether 2 rules, 1 session, 2 items · phase 2 · compressed 2 d ago · compression needed (6.2% full) · paused"
        )[: status.LINE_COLUMNS - 1]
        + "…"
    )


def test_an_emptied_memory_says_where_its_items_went():
    last = {"session_id": "s1", "compressed_at": "2026-03-02T11:00:00Z", "compression_ratio": 2.5, "items": 3}
    emptied = found(items=0, tokens=0, percent=0, rules=1, last_compression=last)
    text = "\n".join(status._lines(emptied, NOW))

    assert "empty: 3 items went into session s1; 1 rule in force; to search all: aether recall WORDS" in text
    assert "200000" not in text
    emptied["last_compression"]["items"] = None  # stored by an older version
    assert "empty: its items went into session s1" in "\n".join(status._lines(emptied, NOW))


def test_a_memory_that_several_sessions_emptied_names_their_number():
    last = {
        "session_id": "s21",
        "compressed_at": "2026-03-02T11:00:00Z",
        "compression_ratio": 2.5,
        "items": 3,
    }
    emptied = found(items=0, tokens=0, percent=0, compressions=21, last_compression=last)

    assert "empty: its items went into 21 sessions, last into s21; 2 rules" in "\n".join(
        status._lines(emptied, NOW)
    )


def test_what_keeps_it_from_working_is_reported_and_exits_with_one(here, capsys, tmp_path, monkeypatch):
    home = tmp_path / ".aether"
    (home / "config.toml").write_text("[claude]\nrecal = true\n")
    (home / "hook.log").write_text(f"9999-01-01T00:00:00Z Stop s \x1b[31m{'x ' * 400}\n")

    done = shown(capsys, "status", code=1)
    typed(monkeypatch, "")
    line_of_session = shown(capsys, "statusline").out

    assert done.err.startswith("Problem: ")
    assert "claude.recal" in done.err
    head, line = done.out.splitlines()[-2:]
    assert head.startswith("Failures of hooks, newest last")
    assert "\x1b" not in line
    assert line.count("x") == 400
    assert "problem: aether status" in line_of_session


@rows(
    ("at", "words"),
    [("2026-03-04T11:59:30Z", "just now"), ("2026-03-04T09:00:00Z", "3 h ago"), ("once", "once")],
)
def test_how_long_ago(at, words):
    assert status._ago(at, NOW) == words


def test_the_need_for_compression_is_said_beside_it(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.api.overview.overview", lambda home: BUSY)

    assert "Compression is needed" in shown(capsys, "status").err


def watched(monkeypatch, *looks):
    """Let each look find the next of `looks`, and Ctrl-C come after the last."""
    coming = iter(looks)
    monkeypatch.setattr("aether.api.overview.overview", lambda home: next(coming))
    left = [None] * (len(looks) - 1)

    def sleep(seconds):
        if not left:
            raise KeyboardInterrupt
        left.pop()

    monkeypatch.setattr("time.sleep", sleep)


def test_without_a_terminal_every_change_is_one_line(here, capsys, monkeypatch):
    watched(monkeypatch, found(), found(), found(items=3))

    done = shown(capsys, "status", "--watch", code=130)

    assert done.out.splitlines() == [
        "aether 2 rules, 1 session, 2 items", "aether 2 rules, 1 session, 3 items",
    ]  # fmt: skip


def test_one_of_a_kind_is_said_in_the_singular():
    text = "\n".join(status._lines(found(items=1, patterns=1), NOW))

    assert ", 1 item\n" in text
    assert "1 session\n" in text
    assert "1 pattern\n" in text


def test_the_status_line_is_that_of_the_sessions_project(here, capsys, monkeypatch, tmp_path):
    below = tmp_path / "src"
    below.mkdir()
    monkeypatch.chdir("/")
    typed(
        monkeypatch, json.dumps({"cwd": str(below), "workspace": {"project_dir": str(tmp_path)}, "model": {}})
    )

    assert shown(capsys, "statusline").out.startswith("aether ")


@rows("text", ["", "{", "[]", '{"cwd": 3}', '{"cwd": "/nowhere"}', '{"workspace": "x"}'])
def test_the_status_line_never_fails(text, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    typed(monkeypatch, text)

    done = shown(capsys, "statusline")
    assert (done.out, done.err) == ("", "")


def test_only_a_need_is_coloured_and_only_where_colours_are_wanted(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.api.overview.overview", lambda home: BUSY)
    monkeypatch.delenv("NO_COLOR", raising=False)
    typed(monkeypatch, "")
    assert shown(capsys, "statusline").out.startswith("\x1b[33maether")

    monkeypatch.setenv("NO_COLOR", "1")
    typed(monkeypatch, "")
    assert shown(capsys, "statusline").out.startswith("aether")


def test_a_person_who_types_it_sees_the_project_they_are_in(here, capsys, monkeypatch):
    terminal = io.StringIO("never read")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)

    assert shown(capsys, "statusline").out.startswith("aether ")


def test_a_view_without_its_packages_says_how_to_install_them(home, capsys, monkeypatch):
    for package in ("jinja2", "starlette", "starlette.applications", "uvicorn"):
        monkeypatch.setitem(sys.modules, package, None)

    assert main(["view", "--no-browser", "--home", str(home)]) == 8

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "pip install '.[view]'" in shown.err


def test_the_first_line_of_a_view_is_its_address(here, capsys):
    assert main(["view", "--quiet"]) == 0

    assert capsys.readouterr().out.splitlines() == ["http://127.0.0.1:8010/?token=key"]


def test_the_directory_of_the_hooks_may_be_of_another_user(here, capsys, monkeypatch):
    stat, access = os.stat, os.access
    Path(".aether/hooks").mkdir(exist_ok=True)

    def refused(path, *more, **named):
        if "hooks/" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *more, **named)

    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: "hooks" not in str(path) and access(path, mode))

    assert "Working memory:" in shown(capsys, "status").out
    assert "paused:        no" in shown(capsys, "claude", "status", code=1).out
    assert "warning: hooks/: this user may not " in shown(capsys, "doctor").out
