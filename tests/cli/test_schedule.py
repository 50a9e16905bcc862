"""Daily jobs of cron and systemd: the words that their own readers make of the texts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from aether.cli import schedule
from aether.errors import InvalidInput
from tests.tables import rows

# A path with everything that one of the schedulers treats as its own sign.
ODD = Path('/srv/it\'s 50% "odd" $HOME & <b>/.aether')
PROGRAM = ("/opt/my tools/aether",)
WANTED = [*PROGRAM, "archive", "age", "--yes", "--quiet", "--home", str(ODD)]


def fake(directory, name, script):
    (directory / "bin").mkdir(exist_ok=True)
    path = directory / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)


def test_systemd_reads_the_very_words_of_the_command():
    service, timer = schedule.job("systemd", ODD, PROGRAM, at="05:10").files.values()
    (line,) = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)

    words = [
        re.sub(r"\\(.)", r"\1", word).replace("$$", "$").replace("%%", "%")
        for word in re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    ]

    assert words == WANTED
    assert "OnCalendar=*-*-* 05:10:00\nPersistent=true\n" in timer


def test_cron_runs_the_very_words_of_the_command(tmp_path):
    fake(tmp_path, "aether", f'for word; do printf "%s\\n" "$word"; done > "{tmp_path}/words"')
    line = schedule.job("cron", ODD, [str(tmp_path / "bin" / "aether")], at="05:10").line
    when, command = line.split(" ", 5)[:5], line.split(" ", 5)[5]

    subprocess.run(["sh", "-c", command.replace("\\%", "%")], check=True)

    assert when == ["10", "5", "*", "*", "*"]
    assert re.search(r"(?<!\\)%", command) is None
    assert (tmp_path / "words").read_text(encoding="utf-8").splitlines() == WANTED[1:]


def test_each_home_has_a_job_of_its_own():
    names = {schedule.job(kind, home, PROGRAM).name for kind in schedule.KINDS for home in (ODD, Path("/b"))}

    assert len(names) == 2


@rows(
    ("kind", "home", "at"),
    [
        ("cron", "/a", "25:00"), ("cron", "/a", "3:30\n* * * * * rm"),
        ("cron", "/a\n* * * * * rm -r /", "03:30"), ("systemd", "/a\nExecStart=rm", "03:30"),
    ],
)  # fmt: skip
def test_no_job_is_made_of_what_could_start_something_else(kind, home, at):
    with pytest.raises(InvalidInput):
        schedule.job(kind, Path(home), PROGRAM, at=at)
