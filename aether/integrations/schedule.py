"""Schedules: the daily ageing of one archive as a job of systemd, cron, launchd or the task scheduler of Windows.

`job` only makes texts: the files, the line of a crontab and the commands, for anybody to read before they are used.
`install` and `remove` write the files and run the commands; a job that cannot be started leaves no file behind. A job
has a name of its own for each home, and a line of a crontab is known by that name; other lines stay as they are.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from aether.errors import BackendFailed, InvalidInput, NotFound, shown
from aether.project import user_file
from aether.store.files import make_directory, storage_errors, write_whole

KINDS = ("systemd", "cron", "launchd", "windows")
AT = "03:30"
_AT = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
# A control character would end a line of a unit or a crontab, and start another one.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A scheduler answers at once; one that asks for a password would wait for ever.
RUN_SECONDS = 30
OTHERWISE = 'Choose another one with --kind, or set archive.auto = "daily".'


class Job(NamedTuple):
    """One daily job of one scheduler, as texts."""

    kind: str
    """One of `KINDS`."""
    name: str
    words: tuple[str, ...]
    """What is run each day."""
    files: dict[str, str]
    """The text of each file by its path."""
    line: str = ""
    """The line of the crontab; empty for other kinds."""
    start: tuple[tuple[str, ...], ...] = ()
    """Commands that start it, after the files are written."""
    stop: tuple[tuple[str, ...], ...] = ()
    """Commands that end it, before the files are removed."""


def default_kind() -> str:
    """Return the scheduler of this machine: systemd only where it runs for this user."""
    if sys.platform in ("darwin", "win32"):
        return {"darwin": "launchd", "win32": "windows"}[sys.platform]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return "systemd" if runtime and os.path.isdir(os.path.join(runtime, "systemd")) else "cron"


def job(kind: str, home: Path, program: Sequence[str], *, at: str = AT) -> Job:
    """Return the job that runs `program archive age --yes` for `home`, each day `at` a local time.

    Raises:
        InvalidInput: there is no such kind or time, or a path has a control character.
    """
    if kind not in KINDS:
        raise InvalidInput(f"{shown(kind)} is no scheduler.", fix=f"Use one of {', '.join(KINDS)}.", where="kind")  # fmt: skip
    if not _AT.fullmatch(at):
        raise InvalidInput(
            f"{shown(at)} is no time of day.", fix="Write it as 03:30, from 00:00 to 23:59.", where="at"
        )
    words = (*program, "archive", "age", "--yes", "--quiet", "--home", str(home))
    if odd := next(filter(_CONTROL.search, words), None):
        raise InvalidInput(
            f"{shown(odd)} has a control character.", fix="Rename the directory.", where="home"
        )
    name = f"aether-archive-{hashlib.sha256(str(home).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
    make = {"systemd": _systemd, "cron": _cron, "launchd": _launchd, "windows": _windows}[kind]
    return make(name, words, at)


def _systemd(name: str, words: tuple[str, ...], at: str) -> Job:
    directory = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    service = (
        f"[Unit]\nDescription=Age the aether archive of {_in_unit(words[-1])}\n\n"
        f"[Service]\nType=oneshot\nNice=10\nExecStart={' '.join(map(_quoted_in_unit, words))}\n"
    )
    timer = (
        f"[Unit]\nDescription=Age an aether archive each day\n\n"
        f"[Timer]\nOnCalendar=*-*-* {at}:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    control = ("systemctl", "--user")
    return Job(
        "systemd", name, words,
        {str(directory / f"{name}.service"): service, str(directory / f"{name}.timer"): timer},
        start=((*control, "daemon-reload"), (*control, "enable", "--now", f"{name}.timer")),
        stop=((*control, "disable", "--now", f"{name}.timer"),),
    )  # fmt: skip


def _in_unit(text: str) -> str:
    return text.replace("%", "%%")


def _quoted_in_unit(word: str) -> str:
    inner = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_in_unit(inner)}"'


def _cron(name: str, words: tuple[str, ...], at: str) -> Job:
    hour, minute = map(int, at.split(":"))
    # A bare % ends the command of a crontab, even inside quotes.
    command = shlex.join(words).replace("%", "\\%")
    return Job("cron", name, words, {}, line=f"{minute} {hour} * * * {command} # {name}")


def _launchd(name: str, words: tuple[str, ...], at: str) -> Job:
    hour, minute = map(int, at.split(":"))
    path = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    text = plistlib.dumps({
        "Label": name, "ProgramArguments": list(words), "ProcessType": "Background",
        "StartCalendarInterval": {"Hour": hour, "Minute": minute},
    }).decode()  # fmt: skip
    return Job(
        "launchd", name, words, {str(path): text},
        start=(("launchctl", "load", "-w", str(path)),), stop=(("launchctl", "unload", "-w", str(path)),),
    )  # fmt: skip


def _windows(name: str, words: tuple[str, ...], at: str) -> Job:
    path = Path(user_file()).parent / f"{name}.xml"
    command, arguments = escape(words[0]), escape(subprocess.list2cmdline(words[1:]))
    text = (
        '<?xml version="1.0"?>\n'
        '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">\n'
        "  <Triggers>\n    <CalendarTrigger>\n"
        f"      <StartBoundary>2026-01-01T{at}:00</StartBoundary>\n"
        "      <ScheduleByDay><DaysInterval>1</DaysInterval></ScheduleByDay>\n"
        "    </CalendarTrigger>\n  </Triggers>\n"
        "  <Settings><StartWhenAvailable>true</StartWhenAvailable></Settings>\n"
        f"  <Actions>\n    <Exec><Command>{command}</Command><Arguments>{arguments}</Arguments></Exec>\n"
        "  </Actions>\n</Task>\n"
    )
    return Job(
        "windows", name, words, {str(path): text},
        start=(("schtasks", "/Create", "/TN", name, "/XML", str(path), "/F"),),
        stop=(("schtasks", "/Delete", "/TN", name, "/F"),),
    )  # fmt: skip


def with_job(crontab: str, job: Job) -> str:
    """Return a crontab with the line of `job` at its end; all other lines stay as they are."""
    rest = without_job(crontab, job)
    return f"{rest}{'' if not rest or rest.endswith(chr(10)) else chr(10)}{job.line}\n"


def without_job(crontab: str, job: Job) -> str:
    """Return a crontab without the line of `job`."""
    lines = crontab.splitlines(keepends=True)
    return "".join(line for line in lines if not line.rstrip().endswith(f" # {job.name}"))


def is_installed(job: Job) -> bool:
    """Return whether the scheduler has this very job, as far as its files or the crontab say."""
    if job.kind == "cron":
        try:
            return job.line in _crontab().splitlines()
        except (BackendFailed, NotFound):
            return False
    return all(_text(path) == text for path, text in job.files.items())


def install(job: Job) -> None:
    """Write the files of `job` and start it, in the place of an older one of the same home.

    Raises:
        NotFound: this machine has no such scheduler.
        BackendFailed: the scheduler refused; no file is left.
        StorageFailed: a file cannot be written.
    """
    if job.kind == "cron":
        _set_crontab(with_job(_crontab(), job))
        return
    _program(job.start[0][0])
    for path, text in job.files.items():
        with storage_errors(Path(path), left="Nothing was scheduled."):
            make_directory(Path(path).parent)
            write_whole(
                Path(path), text.encode("utf-16" if job.kind == "windows" else "utf-8", "surrogateescape")
            )
    try:
        for words in job.start:
            _run(words)
    except BaseException:
        _unlink(job)
        raise


def remove(job: Job) -> bool:
    """End `job` and remove its files, and return whether it was there.

    Raises:
        NotFound: this machine has no such scheduler.
        BackendFailed: the scheduler refused; the files are still there.
    """
    if job.kind == "cron":
        crontab = _crontab()
        left = without_job(crontab, job)
        if left != crontab:
            _set_crontab(left)
        return left != crontab
    if not any(os.path.lexists(path) for path in job.files):
        return False
    for words in job.stop:
        _run(words)
    _unlink(job)
    return True


def _unlink(job: Job) -> None:
    for path in job.files:
        with storage_errors(Path(path)):
            Path(path).unlink(missing_ok=True)


def _text(path: str) -> str:
    try:
        data = Path(path).read_bytes()
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _crontab() -> str:
    done = _called(("crontab", "-l"))
    if done.returncode and "no crontab" not in done.stderr.lower():
        raise _refused(("crontab", "-l"), done)  # an empty answer would replace every line of the user
    return "" if done.returncode else done.stdout


def _set_crontab(text: str) -> None:
    _run(("crontab", "-"), text)


def _run(words: Sequence[str], given: str | None = None) -> None:
    done = _called(words, given)
    if done.returncode:
        raise _refused(words, done)


def _called(words: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the scheduler of this machine, found on PATH
            [_program(words[0]), *words[1:]], input=given or "", capture_output=True, encoding="utf-8",
            errors="surrogateescape", timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as reason:
        what = f"does not answer within {RUN_SECONDS} seconds."
        raise BackendFailed(what, fix=OTHERWISE, where=words[0]) from reason


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotFound("there is no such program on PATH.", fix=OTHERWISE, where=name)
    return found


def _refused(words: Sequence[str], done: subprocess.CompletedProcess[str]) -> BackendFailed:
    last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    said = f": {last[0]}" if last else ""
    return BackendFailed(f"{' '.join(words)} ended with {done.returncode}{said}.", fix=OTHERWISE, where=words[0])  # fmt: skip
