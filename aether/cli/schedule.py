"""Schedules: the daily ageing of one archive, as the line of a crontab or the unit files of systemd.

Only texts are made here, for a person to read and put in place; aether installs nothing. A job has a name of its own for each home.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import unicodedata
from collections.abc import Sequence
from datetime import time
from pathlib import Path
from typing import NamedTuple

from aether.errors import InvalidInput, shown

KINDS = ("cron", "systemd")
AT = "03:30"


class Job(NamedTuple):
    """One daily job, as texts."""

    kind: str
    """One of `KINDS`."""
    name: str
    words: tuple[str, ...]
    """The command that runs each day."""
    files: dict[str, str]
    """The text of each file by its path; none for cron."""
    line: str = ""
    """The line of the crontab; empty for systemd."""
    start: tuple[str, ...] = ()
    """Commands that a person runs after writing the files."""


def job(kind: str, home: Path, program: Sequence[str], *, at: str = AT) -> Job:
    """Return the job that runs `program archive age --yes` for `home`, each day `at` a local time, written HH:MM.

    Raises:
        InvalidInput: it is no time, or a path has a control character.
    """
    moment = _time_of_day(at)
    words = (*program, "archive", "age", "--yes", "--quiet", "--home", str(home))
    for word in words:
        # A control character would end a line of a unit or a crontab, and start another one.
        if any(unicodedata.category(character) == "Cc" for character in word):
            raise InvalidInput(
                f"{shown(word)} has a control character.", fix="Rename the directory.", where="home"
            )
    name = f"aether-archive-{hashlib.sha256(str(home).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
    return (_cron if kind == "cron" else _systemd)(name, words, moment)


def _time_of_day(text: str) -> time:
    try:
        if len(text) == len(AT):
            return time.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidInput(
        f"{shown(text)} is not a time of day.", fix="Write it as 03:30, from 00:00 to 23:59.", where="at"
    )


def _cron(name: str, words: tuple[str, ...], start: time) -> Job:
    # A bare % ends the command of a crontab, even inside quotes.
    command = shlex.join(words).replace("%", "\\%")
    return Job("cron", name, words, {}, line=f"{start.minute} {start.hour} * * * {command} # {name}")


def _systemd(name: str, words: tuple[str, ...], at: time) -> Job:
    directory = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    service = (
        f"[Unit]\nDescription=Age the aether archive of {words[-1].replace('%', '%%')}\n\n"
        f"[Service]\nType=oneshot\nNice=10\nExecStart={' '.join(map(_quoted_in_unit, words))}\n"
    )
    timer = (
        f"[Unit]\nDescription=Age an aether archive each day\n\n"
        f"[Timer]\nOnCalendar=*-*-* {at:%H:%M}:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    files = {str(directory / f"{name}.service"): service, str(directory / f"{name}.timer"): timer}
    start = ("systemctl --user daemon-reload", f"systemctl --user enable --now {name}.timer")
    return Job("systemd", name, words, files, start=start)


def _quoted_in_unit(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%")
    return f'"{escaped}"'
