"""Rescue of transcripts: they become items of their own project before Claude Code deletes them.

A transcript goes only into the home of its own project, known by the directory that its lines name. Claude Code's files
are only read. Notes of hooks or of an earlier import are known by their place in the transcript, so a second rescue
adds nothing, and a rescue that is stopped keeps what it has stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from aether import project
from aether.api.admin import init
from aether.api.home import Home, find, now
from aether.api.importing import import_transcripts
from aether.errors import AetherError, InvalidInput, NotFound
from aether.hosts.claude_code import install

# Claude Code's own default of `cleanupPeriodDays`.
CLEANUP_DAYS = 30
# The directory is in the first lines of a conversation; before them are only lines about the file itself.
HEAD_LINES = 200
# One line may hold images; a longer one is no line of a conversation.
LINE_BYTES = 1 << 24
_DAY_SECONDS = 86_400


class Transcript(NamedTuple):
    """One transcript of Claude Code, and the result of its rescue."""

    path: str
    bytes: int = 0
    age_days: float = 0.0
    days_left: float = 0.0
    """Until Claude Code may delete it; negative where it is overdue."""
    directory: str = ""
    """The start directory of its session; empty if no line names one."""
    home: str = ""
    """The home of its project; empty if that is unknown."""
    state: str = "found"
    """`imported` (in a dry run `planned`), `skipped`, or `failed`; `found` until then."""
    items: int = 0
    """Items that were stored, or in a dry run would be."""
    known: int = 0
    """Notes that hooks or an earlier import had stored already."""
    bad_lines: int = 0
    """Lines that could not be read."""
    revisions: tuple[int, ...] = ()
    """The revisions of the import, oldest first; undo them newest first."""
    reason: str = ""
    """Why it was skipped or failed."""


def rescue(
    home: Home = None, *, everywhere: bool = False, older_than: float = 0.0, dry_run: bool = False, make: bool = False,
    progress: Callable[[str], None] = lambda words: None,
) -> list[Transcript]:  # fmt: skip
    """Import the transcripts of this project, or with `everywhere` of each into its own home, and return the results.

    Only files of at least `older_than` days are imported. A project without a home is skipped; with `make` it gets one,
    except where no home is ever made without being named: in a user's home directory, and at the top of the disk.

    Raises:
        InvalidInput: all projects' transcripts would go into one home.
        NotFound: this project has no home.
    """
    is_named = bool(home or os.environ.get("AETHER_HOME"))
    if everywhere and is_named:
        raise InvalidInput(
            "one home cannot hold the transcripts of all projects.",
            fix="Leave out --home and unset AETHER_HOME, or leave out --all.",
            where="home",
        )
    if make and not everywhere and not dry_run:
        install.make_home(home)
    own_home = None if everywhere else find(home)
    files = transcripts(older_than=older_than)
    placed = [_placed(transcript, own_home, is_named=is_named) for transcript in files]
    # A file that names no directory is reported if it lies beside one that is imported.
    beside = {_folder(transcript) for transcript in placed if transcript.home}
    chosen = [
        transcript
        for transcript in placed
        if everywhere or transcript.home or (not transcript.directory and _folder(transcript) in beside)
    ]
    return [
        _rescued(
            transcript,
            f"{number} of {len(chosen)}: {Path(transcript.path).name}",
            progress,
            dry_run=dry_run,
            make=make,
        )
        for number, transcript in enumerate(chosen, 1)
    ]


def _placed(transcript: Transcript, own_home: Path | None, *, is_named: bool) -> Transcript:
    """Return `one` with the home of its project; with `own` only that home, and for its project only.

    A `named` home is that of the project in the current directory.
    """
    home = ""
    if transcript.directory and is_named and own_home is not None:
        home = str(own_home) if project.root_of(transcript.directory) == project.root_of(os.getcwd()) else ""
    elif transcript.directory:
        home = project.home_of(transcript.directory)
        home = home if own_home is None or home == str(own_home) else ""
    if home and not os.path.isdir(transcript.directory):
        # It may have been a project of its own, with memory that is not for the project above it.
        return transcript._replace(
            home=home,
            state="skipped",
            reason=f'{transcript.directory} no longer exists. If it was part of this project: aether import "{transcript.path}"',
        )
    return transcript._replace(home=home)


def _folder(transcript: Transcript) -> str:
    path = Path(transcript.path)
    return str(path.parents[2] if path.parent.name == "subagents" else path.parent)


def transcripts(*, older_than: float = 0.0) -> list[Transcript]:
    """Return the transcripts of at least `older_than` days, the first to be deleted first."""
    directory = install.claude_directory() / "projects"
    files = [*directory.glob("*/*.jsonl"), *directory.glob("*/*/subagents/*.jsonl")]
    all_transcripts = [
        transcript for transcript in map(_transcript, files) if transcript.age_days >= older_than
    ]
    return sorted(all_transcripts, key=lambda transcript: (transcript.days_left, transcript.path))


def _transcript(path: Path) -> Transcript:
    try:
        status = path.stat()
        directory = _directory_of(path)
    except OSError as reason:
        return Transcript(str(path), state="skipped", reason=f"cannot be read: {reason.strerror or reason}")
    age = (now() - datetime.fromtimestamp(status.st_mtime, UTC)).total_seconds() / _DAY_SECONDS
    days_left = cleanup_days(directory) - age
    transcript = Transcript(str(path), status.st_size, round(age, 1), round(days_left, 1), directory)
    if not directory:
        return transcript._replace(
            state="skipped", reason="names no directory of its session: no transcript of Claude Code"
        )
    return transcript


def _directory_of(path: Path) -> str:
    """Return the start directory of a transcript's session; for a sub-agent that of its main session."""
    if path.parent.name == "subagents":
        main = path.parents[1].with_suffix(".jsonl")
        if main.is_file() and (main_directory := _directory_of(main)):
            return main_directory
    with path.open("rb") as file:
        for _ in range(HEAD_LINES):
            line = file.readline(LINE_BYTES)
            if not line:
                break
            try:
                directory = json.loads(line)["cwd"]
                os.path.realpath(directory)  # raises for a text that cannot be a path
            except (ValueError, LookupError, TypeError, RecursionError, OSError):
                continue
            if os.path.isabs(directory):  # else it was written on another machine
                return str(directory)
    return ""


def cleanup_days(directory: str) -> float:
    """Return after how many days Claude Code deletes the transcripts of sessions in `directory`."""
    root = Path(directory or "/")
    files = [install.settings_path(scope, project=root) for scope in ("local", "project", "user")]
    for file in files if directory else files[2:]:
        try:
            days: Any = json.loads(file.read_bytes())["cleanupPeriodDays"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
        if isinstance(days, (int, float)) and not isinstance(days, bool) and days >= 0:
            return days
    return CLEANUP_DAYS


def _rescued(
    transcript: Transcript, which: str, progress: Callable[[str], None], *, dry_run: bool, make: bool
) -> Transcript:
    if transcript.state != "found":
        return transcript
    missing = not os.path.isdir(transcript.home)
    if missing and not (make and project.may_create_home(project.root_of(transcript.directory))):
        return transcript._replace(
            state="skipped", reason=f'its project has no home: run "aether init" in {transcript.directory}'
        )
    try:
        with TemporaryDirectory() if missing and dry_run else nullcontext(transcript.home) as place:
            if missing:
                init(place)
            result = import_transcripts(
                [transcript.path], dry_run=dry_run, home=place,
                progress=lambda records, items: progress(f"{which}, {records} records read, {items} items stored"),
            )  # fmt: skip
    except (InvalidInput, NotFound) as reason:
        return transcript._replace(state="skipped", reason=reason.what)
    except AetherError as reason:  # a problem of that home only
        return transcript._replace(state="failed", reason=str(reason))
    return transcript._replace(
        state="planned" if dry_run else "imported", items=result.items, known=result.known,
        bad_lines=len(result.bad_lines), revisions=tuple(result.revisions),
    )  # fmt: skip
