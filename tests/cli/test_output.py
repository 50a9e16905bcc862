"""What a person sees fits the terminal and is safe to print; what a program reads is exact."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from aether.cli import output
from aether.cli.output import Ask, columns, emit, facts, note, plain, short, table, when, wrapped
from aether.errors import InvalidInput, NotFound
from aether.store import spool
from tests.hook_player import put, turn
from tests.tables import rows


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_a_table_fits_its_columns_and_cuts_the_last_one():
    lines = table([("a", 5, "x" * 300), ("bcd", 10, "y")], head=("id", "n", "text"), right=[1])

    assert lines[0].split() == ["id", "n", "text"]
    assert lines[2].startswith("a     5  xxx")
    assert lines[3] == "bcd  10  y"
    assert max(columns(line) for line in lines) == output.DEFAULT_COLUMNS
    assert lines[2].endswith("…")


def test_an_indented_table_fits_as_well():
    assert {columns(line) for line in table([("x" * 300,)], indent=7)} == {output.DEFAULT_COLUMNS}


def test_a_table_uses_the_terminal_that_is_there(monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((60, 20)))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)

    assert columns(table([("x" * 300,)])[0]) == 60


def test_a_table_without_rows_has_no_head_either():
    assert table([], head=("id",)) == []


def test_wide_letters_keep_the_columns_straight():
    one, two = table([("日本語", "x"), ("abc", "y")])

    assert (columns(one), columns(two)) == (9, 9)


@rows("room", [0, 1, 2, 5, 9])
def test_a_short_text_never_takes_more_room(room):
    for text in ("", "a", "abc def ghi jkl", "日本語日本語", "e\u0301" * 9, "x" * 10**6):
        assert columns(short(text, room)) <= max(room, 1)


def test_what_fits_is_not_cut():
    assert short("one\n two", 7) == "one two"


def test_nothing_in_a_text_steers_the_terminal():
    assert plain("a\x1b[2J\x07\u202eb\ud800\nc\td") == "a�[2J��b�\nc\td"


def test_long_lines_are_wrapped_with_an_indent():
    first, second = wrapped("word " * 30, indent=2)

    assert columns(first) <= output.DEFAULT_COLUMNS
    assert second.startswith("  word")


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


def test_progress_shows_after_a_while_and_is_gone_at_the_end(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "PROGRESS_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(output, "PROGRESS_EVERY_SECONDS", 0.001)

    with output.progress(Ask()) as tell:
        tell("3 records read")
        while "3 records read" not in terminal.getvalue():
            pass

    assert terminal.getvalue() == "\r\x1b[K3 records read\r\x1b[K"


def test_quick_work_shows_no_progress(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with output.progress(Ask()) as tell:
        tell("at once")

    assert terminal.getvalue() == ""


def test_progress_is_for_terminals_only(capsys, monkeypatch):
    monkeypatch.setattr(output, "PROGRESS_AFTER_SECONDS", 0.0)

    with output.progress(Ask()) as tell:
        tell("to a file")

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
    assert "It will go. Go on?" in capsys.readouterr().err


def test_a_terminal_without_a_size_takes_that_of_the_environment(monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((0, 0)))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)

    monkeypatch.setenv("COLUMNS", "72")
    assert output.terminal_columns() == 72
    monkeypatch.setenv("COLUMNS", "wide")
    assert output.terminal_columns() == output.DEFAULT_COLUMNS


def test_a_pipe_that_is_named_is_written_into_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    output.write_file(str(pipe), b"data")

    assert os.read(reader, 9) == b"data"
    assert pipe.is_fifo()
    os.close(reader)


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
