"""The log: one line for each failure, bounded, without secrets, and never a failure itself."""

from __future__ import annotations

import os
import re

import pytest

from aether.store import spool


def lines(home):
    return (home / spool.NAME).read_text(encoding="utf-8").splitlines()


def test_a_failure_is_one_line_that_says_when_where_and_what(tmp_path):
    spool.log_failure(str(tmp_path), "Stop", "s 1", "disk\nis  full")

    (line,) = lines(tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ Stop s 1 disk is full", line)


def test_what_is_not_known_is_a_dash_and_what_is_long_is_cut(tmp_path):
    spool.log_failure(str(tmp_path), "", "s" * 999, "x" * 9_999)

    (line,) = lines(tmp_path)
    assert line.split(" ")[1] == "-"
    assert len(line) < 600


def test_no_secret_is_logged(tmp_path):
    spool.log_failure(str(tmp_path), "Stop", "s", "failed at password=hunter2secret")

    assert "hunter2secret" not in lines(tmp_path)[0]


def test_at_its_limit_it_begins_anew_and_keeps_one_older(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "MOST_BYTES", 200)
    for nth in range(50):
        spool.log_failure(str(tmp_path), "Stop", "s", f"failure {nth}")

    assert sorted(path.name for path in tmp_path.iterdir()) == [spool.NAME, f"{spool.NAME}.1"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 600
    assert lines(tmp_path)[-1].endswith("failure 49")


def test_only_its_owner_reads_it(tmp_path):
    spool.log_failure(str(tmp_path), "Stop", "s", "x")

    assert os.stat(tmp_path / spool.NAME).st_mode & 0o077 == 0


@pytest.mark.parametrize("what", ["torn \ud83d", "漢字"])
def test_any_text_can_be_logged(tmp_path, what):
    spool.log_failure(str(tmp_path), "Stop", "s", what)

    assert len(lines(tmp_path)) == 1


def test_where_there_is_no_home_or_no_way_to_write_nothing_happens(tmp_path):
    spool.log_failure(str(tmp_path / "nowhere"), "Stop", "s", "x")
    spool.log_failure("\0", "Stop", "s", "x")
    (tmp_path / spool.NAME).mkdir()
    spool.log_failure(str(tmp_path), "Stop", "s", "x")

    assert not (tmp_path / "nowhere").exists()


def test_what_is_said_of_a_session_once_is_not_said_of_it_again(tmp_path):
    for session in ("a", "a", "b", "a"):
        spool.log_failure_once(str(tmp_path), "Stop", session, "not a setting")
    spool.log_failure_once(str(tmp_path), "SessionEnd", "a", "something else")

    assert [line.split(" ", 1)[1] for line in lines(tmp_path)] == [
        "Stop a not a setting",
        "Stop b not a setting",
        "SessionEnd a something else",
    ]


def test_a_log_that_leads_elsewhere_is_neither_written_nor_read(tmp_path):
    (tmp_path / "rc").write_text("alias ll='ls -l'\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / spool.NAME).symlink_to(tmp_path / "rc")

    spool.log_failure(str(tmp_path / "home"), "Stop", "s", "$(touch /tmp/x)")
    spool.log_failure_once(str(tmp_path / "home"), "Stop", "s", "$(touch /tmp/x)")

    assert (tmp_path / "rc").read_text() == "alias ll='ls -l'\n"
