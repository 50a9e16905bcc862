"""What a person sees fits the terminal and is safe to print; what a program reads is exact."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from aether.cli import output
from aether.cli.main import main
from aether.cli.output import Ask, Table, aligned, columns, drawn, emit, facts, note, one_line, plain, when
from aether.errors import InvalidInput, NotFound
from aether.store import spool
from tests import homes
from tests.cli.stage import shown
from tests.hook_player import put, turn

ROOT = Path(__file__).parents[2]
UNSTYLED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def ran_on_a_terminal(directory, *words, columns=80, rows=24, keys=b"", until=b"", **env):
    """Run `aether` with a pseudo-terminal of that size and return all that it printed.

    Ctrl-C is sent once `until` was printed twice.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", **env}
    with subprocess.Popen(
        [sys.executable, "-m", "aether", *words], cwd=directory, env=environment,
        stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
        preexec_fn=homes.heed_interrupts,  # noqa: PLW1509 - this process has one thread
    ) as running:  # fmt: skip
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # the other side was closed: the process ended
            while read := os.read(leader, 65536):
                shown += read
                if until and shown.count(until) >= 2:
                    running.send_signal(signal.SIGINT)
                    until = b""
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def long(here, tmp_path):
    """A home with an item that is longer than any terminal is wide; returns its text."""
    text = "Every word of this statement must be found. " * 20
    assert main(["add", text.strip(), "--quiet"]) == 0
    return text.strip()


def test_the_line_below_a_head_is_short_however_long_a_cell_is():
    _head, rule, cell = aligned(Table([("a", "x" * 500)], head=("id", "text")))

    assert rule == "──  " + "─" * 60
    assert cell == "a   " + "x" * 500


def test_a_table_in_a_pipe_is_aligned_and_nothing_is_cut():
    lines = aligned(Table([("a", 5, "x" * 300), ("bcd", 10, "y")], head=("id", "n", "text"), right=[1]))

    assert lines[0].split() == ["id", "n", "text"]
    assert set(lines[1]) == {"─", " "}
    assert lines[2] == "a     5  " + "x" * 300
    assert lines[3] == "bcd  10  y"


@pytest.mark.parametrize("render", [aligned, drawn])
def test_a_table_without_rows_has_no_head_either(render):
    assert render(Table([], head=("id",))) == []


def test_wide_letters_keep_the_columns_straight(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    table = Table([("日本語", "x"), ("abc", "y")], indent=3)

    for render in (aligned, drawn):
        one, two = render(table)
        assert (columns(one), columns(two), one[:3]) == (12, 12, "   "), render


def test_commands_print_whole_texts_into_a_pipe_whatever_the_width(long, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for words in (["memory", "show"], ["memory", "search", "statement"], ["memory", "show", "ID"]):
        item = json.loads(shown(capsys, "memory", "search", "statement", "--json").out)[0]["id"]

        text = shown(capsys, *[item if word == "ID" else word for word in words]).out

        assert long in text, words
        assert "\x1b" not in text, words


@pytest.mark.parametrize(
    ("size", "env", "width"),
    [(60, {}, 60), (200, {}, 200), (80, {"COLUMNS": "60"}, 60), (80, {"COLUMNS": "200"}, 200)],
)
def test_a_table_fills_the_terminal_and_cuts_its_last_column(long, tmp_path, size, env, width):
    assert main(["signal", "FOCUS", long, "--quiet"]) == 0
    text = ran_on_a_terminal(tmp_path, "signal", columns=size, **env)

    lines = [UNSTYLED.sub("", line) for line in text.splitlines()]
    assert lines[0].split() == ["type", "now", "at", "first", "since", "(UTC)", "context"]
    (item,) = (line for line in lines if "Every word" in line)
    assert (max(map(columns, lines)), item[-1]) == (width, "…")


def test_a_terminal_gets_styles_unless_they_are_unwanted(here, tmp_path):
    assert "\x1b[1m" in ran_on_a_terminal(tmp_path, "log")
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in ran_on_a_terminal(tmp_path, "log", **env)


@pytest.mark.parametrize(
    "words", [["memory", "show"], ["log", "--json"], ["status", "--layers"], ["add", "A note"]]
)
def test_rich_is_imported_for_tables_on_a_terminal_only(here, tmp_path, words):
    imported = {"PYTHONPROFILEIMPORTTIME": "1"}

    assert " rich" not in ran_on_a_terminal(tmp_path, *words, **imported)
    assert " rich" in ran_on_a_terminal(tmp_path, "log", **imported)


def test_a_foreign_text_with_markup_is_shown_as_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    (line,) = drawn(Table([("[bold]a[/bold] :smile: \x1b[31m",)]))

    assert UNSTYLED.sub("", line) == "[bold]a[/bold] :smile: �[31m"


def test_status_is_watched_in_place_and_fits_the_terminal(here, tmp_path):
    text = ran_on_a_terminal(tmp_path, "status", "--watch", columns=40, rows=5, until=b"Working memory")

    frames = text.split("Home:")[1:]
    assert len(frames) >= 2
    assert "Revision" not in frames[0]
    assert max(columns(UNSTYLED.sub("", line)) for line in frames[0].splitlines()) <= 40


def test_a_text_is_put_on_one_line():
    assert one_line("one\n  two\x1b") == "one two�"


def test_nothing_in_a_text_steers_the_terminal():
    assert plain("a\x1b[2J\x07\u202eb\ud800\nc\td") == "a�[2J��b�\nc\td"


def test_facts_stand_below_each_other():
    assert facts([("a", 1), ("long", 2)], indent=0) == ["a:     1", "long:  2"]


def test_a_time_is_shown_without_its_fraction():
    assert when("2026-03-01T10:15:00.123456Z") == "2026-03-01 10:15:00"


def test_a_terminal_that_knows_only_ascii_gets_ascii(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    emit(Ask(), None, "a → b … é")

    sys.stdout.flush()
    assert raw.getvalue() == b"a -> b ... \\xe9\n"


def test_json_comes_back_exactly_where_only_ascii_is_known(monkeypatch):
    raw, ask = io.BytesIO(), Ask()
    ask.json = True
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    emit(ask, {"text": "日本 \ud800"}, "words")

    sys.stdout.flush()
    assert json.loads(raw.getvalue()) == {"text": "日本 \ud800"}


def test_quiet_leaves_notes_out(capsys):
    ask = Ask()
    note(ask, "one")
    ask.quiet = True
    note(ask, "two")

    assert capsys.readouterr().err == "one\n"


def test_progress_shows_after_a_while_and_is_removed_at_the_end(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "PROGRESS_AFTER_SECONDS", 0.0)

    with output.progress(Ask()) as report:
        report("3 records [read]")
        while "3 records [read]" not in terminal.getvalue():
            pass

    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")


def test_quick_work_shows_no_progress(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with output.progress(Ask()) as report:
        report("at once")

    assert terminal.getvalue() == ""


def test_progress_is_for_terminals_only(capsys, monkeypatch):
    monkeypatch.setattr(output, "PROGRESS_AFTER_SECONDS", 0.0)

    with output.progress(Ask()) as report:
        report("to a file")

    assert capsys.readouterr().err == ""


def test_reading_says_what_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(NotFound, match="cannot be read"):
        output.read_text(str(tmp_path))
    with pytest.raises(NotFound, match="cannot be read"):
        output.read_text("a\0b")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        output.read_text(str(tmp_path / "binary"))


def test_a_byte_order_mark_is_not_text(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfhello")

    assert output.read_text(str(tmp_path / "file")) == "hello"


def test_without_a_terminal_only_yes_agrees(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    assert output.confirmed("It will go.", yes=True)
    with pytest.raises(InvalidInput, match="Pass --yes"):
        output.confirmed("It will go.", yes=False)


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False)])
def test_a_person_at_a_terminal_is_asked(monkeypatch, capsys, answer, agreed):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    assert output.confirmed("It will go.", yes=False) is agreed
    assert "It will go. Continue?" in capsys.readouterr().err


def test_a_pipe_that_is_named_is_written_into_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    output.write_file(str(pipe), b"data")

    assert os.read(reader, 9) == b"data"
    assert pipe.is_fifo()
    os.close(reader)


def test_a_directory_is_no_place_for_a_report_and_is_called_one(here, capsys):
    assert (
        ": is a directory. Name a file."
        in shown(capsys, "report", "--format", "markdown", "--output", ".", code=2).err
    )


def test_a_link_that_is_named_stays_one(tmp_path):
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "there")

    output.write_file(str(tmp_path / "link"), b"new")

    assert (tmp_path / "there").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_the_home_of_a_command_holds_what_hooks_have_spooled(home):
    put(home, *turn(1))
    ask = Ask()
    ask.home = str(home)

    assert ask.place() == home
    assert spool.waiting(str(home)) == []


def ran(directory, line):
    """Run `aether` with words and redirections of a shell; returns the exit code and what it printed."""
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m aether {line}'], cwd=directory, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
@pytest.mark.parametrize(
    "line", ["statusline >&-", "statusline <&- >&- 2>&-", "status >&-", "memory show --json 2>&- >&-"]
)
def test_what_is_written_to_a_closed_stream_goes_nowhere(line, here, tmp_path):
    assert ran(tmp_path, line) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_an_error_but_for_the_status_line(here, tmp_path):
    assert ran(tmp_path, "statusline > /dev/full") == (0, "")

    code, text = ran(tmp_path, "status > /dev/full")
    assert (code, text.splitlines()[-1]) == (
        12, "Error: stdout: cannot be written: No space left on device. Free some space, or write elsewhere.",
    )  # fmt: skip


def test_only_what_is_missing_is_opened(monkeypatch):
    kept = sys.stdin
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)

    output.open_missing()

    with sys.stdout, sys.stderr:
        assert (sys.stdin, sys.stdout.name, sys.stderr.name) == (kept, os.devnull, os.devnull)
