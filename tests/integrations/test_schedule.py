"""Daily jobs of four schedulers: what their own readers make of the texts, and installing with fake programs."""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from aether.errors import BackendFailed, InvalidInput, NotFound
from aether.integrations import schedule
from tests.tables import rows

# A path with everything that one of the schedulers treats as its own sign.
ODD = Path('/srv/it\'s 50% "odd" $HOME & <b>/.aether')
PROGRAM = ("/opt/my tools/aether",)
WANTED = [*PROGRAM, "archive", "age", "--yes", "--quiet", "--home", str(ODD)]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a directory with an empty home directory and fake schedulers, each of which logs its calls."""
    for name in ("systemctl", "launchctl", "schtasks"):
        fake(tmp_path, name, f'echo "{name} $*" >> "{tmp_path}/log"')
    fake(
        tmp_path, "crontab",
        f'if [ "$1" = -l ]; then cat "{tmp_path}/tab" 2>/dev/null || {{ echo "no crontab for me" >&2; exit 1; }}; '
        f'else cat > "{tmp_path}/tab"; fi',
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path


def fake(directory, name, script):
    (directory / "bin").mkdir(exist_ok=True)
    path = directory / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)


def log(machine):
    return (machine / "log").read_text(encoding="utf-8").splitlines()


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


def test_launchd_and_windows_read_the_very_words_of_the_command():
    (plist,) = schedule.job("launchd", ODD, PROGRAM, at="05:10").files.values()
    (task,) = schedule.job("windows", ODD, PROGRAM, at="05:10").files.values()

    found = plistlib.loads(plist.encode())
    tree = ET.fromstring(task)
    space = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}

    assert found["ProgramArguments"] == WANTED
    assert found["StartCalendarInterval"] == {"Hour": 5, "Minute": 10}
    assert tree.findtext(".//t:Command", namespaces=space) == WANTED[0]
    assert tree.findtext(".//t:Arguments", namespaces=space) == subprocess.list2cmdline(WANTED[1:])
    assert tree.findtext(".//t:StartBoundary", namespaces=space) == "2026-01-01T05:10:00"


def test_each_home_has_a_job_of_its_own():
    names = {schedule.job(kind, home, PROGRAM).name for kind in schedule.KINDS for home in (ODD, Path("/b"))}

    assert len(names) == 2


@rows(
    ("kind", "home", "at"),
    [
        ("at", "/a", "03:30"), ("cron", "/a", "25:00"), ("cron", "/a", "3:30\n* * * * * rm"),
        ("cron", "/a\n* * * * * rm -r /", "03:30"), ("systemd", "/a\nExecStart=rm", "03:30"),
    ],
)  # fmt: skip
def test_no_job_is_made_of_what_could_start_something_else(kind, home, at):
    with pytest.raises(InvalidInput):
        schedule.job(kind, Path(home), PROGRAM, at=at)


@rows("kind", schedule.KINDS)
def test_a_job_is_installed_once_and_removed_whole(kind, machine):
    made = schedule.job(kind, ODD, PROGRAM)
    assert not schedule.is_installed(made)

    for _ in range(2):
        schedule.install(made)
    assert schedule.is_installed(made)
    if kind == "cron":
        assert (machine / "tab").read_text(encoding="utf-8") == f"{made.line}\n"
        schedule.install(schedule.job(kind, ODD, PROGRAM, at="07:00"))
        assert (machine / "tab").read_text(encoding="utf-8").startswith("0 7 * * * ")

    assert schedule.remove(made)
    assert not schedule.is_installed(made)
    assert not schedule.remove(made)
    assert [path for path in made.files if Path(path).exists()] == []


def test_the_commands_name_the_job(machine):
    for kind in ("systemd", "launchd", "windows"):
        made = schedule.job(kind, ODD, PROGRAM)
        schedule.install(made)
        schedule.remove(made)
        ran = log(machine)
        (machine / "log").unlink()

        assert ran == [" ".join(words) for words in (*made.start, *made.stop)]
        assert made.name in ran[-1]


def test_other_lines_of_a_crontab_stay_byte_for_byte(machine):
    before = "# mine\n\n5 4 * * * backup # aether-archive\n0 0 * * 0 echo 100\\%"
    (machine / "tab").write_text(before, encoding="utf-8")
    made = schedule.job("cron", ODD, PROGRAM)

    schedule.install(made)
    assert (machine / "tab").read_text(encoding="utf-8") == f"{before}\n{made.line}\n"
    schedule.remove(made)
    assert (machine / "tab").read_text(encoding="utf-8") == f"{before}\n"


def test_a_crontab_that_cannot_be_read_is_not_replaced(machine):
    (machine / "tab").write_text("5 4 * * * backup\n", encoding="utf-8")
    fake(
        machine,
        "crontab",
        f'[ "$1" = -l ] && {{ echo "permission denied" >&2; exit 1; }}; cat > "{machine}/tab"',
    )

    with pytest.raises(BackendFailed, match="permission denied"):
        schedule.install(schedule.job("cron", ODD, PROGRAM))

    assert (machine / "tab").read_text(encoding="utf-8") == "5 4 * * * backup\n"


def test_a_refused_job_leaves_no_file(machine):
    fake(machine, "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    made = schedule.job("systemd", ODD, PROGRAM)

    with pytest.raises(BackendFailed, match="Failed to connect to bus") as failed:
        schedule.install(made)

    assert "--kind" in failed.value.fix
    assert [path for path in made.files if Path(path).exists()] == []


def test_a_machine_without_the_scheduler_says_so(machine, monkeypatch):
    monkeypatch.setenv("PATH", str(machine))

    for kind in schedule.KINDS:
        with pytest.raises(NotFound, match="no such program"):
            schedule.install(schedule.job(kind, ODD, PROGRAM))
    assert not (machine / "user").exists()


def test_the_scheduler_of_the_machine_is_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    found = {}
    for platform in ("darwin", "win32", "linux"):
        monkeypatch.setattr(sys, "platform", platform)
        found[platform] = schedule.default_kind()
    (tmp_path / "systemd").mkdir()

    assert found == {"darwin": "launchd", "win32": "windows", "linux": "cron"}
    assert schedule.default_kind() == "systemd"
