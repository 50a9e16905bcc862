"""Kept briefs: the block of a session's start, in `<home>/hooks/briefs/` until the home changes.

A person waits for it, and most of its time goes into reading memory and comparing its lines. A kept brief is derived:
one that is missing, or of another state, day, setting or program, is made again. Only its lines are kept, and they are
marked as a block when they are read: a home may come with a repository, and its files say no more than its memory could.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

import aether
from aether import regular
from aether.api.hook_sessions import session_file
from aether.errors import AetherError
from aether.hints import Any
from aether.paths import project_root
from aether.store import config
from aether.store.files import files_ending, make_directory, write_whole
from aether.store.snapshot import FileId, file_ids
from aether.store.spool import is_real, require_real
from aether.text.tags import memory_block
from aether.types import JsonObject

DIRECTORY = "briefs"
# Names a home whose preferences and constraints every session is given. It is a variable of the user, not a setting of a
# home: a home may come with a repository, which must not choose whose memory is read.
USER_HOME = "AETHER_USER_HOME"
# The starts whose brief follows from the home alone, and, for a compaction, from the session; and those that go on with
# a context.
KEPT_SOURCES, RESUMED = frozenset({"startup", "clear", "compact"}), frozenset({"resume", "fork"})
# Files: two kinds of start, and the sessions that were compacted last.
MOST_KEPT = 8
# The file of answers about texts, and how many it holds: those of one brief of a full home, twice.
ANSWERS, MOST_ANSWERS = "answers", 16_000
# The file of what became of the lines of long sections: of each occasion, in a few states of the home.
FATES, MOST_FATES = "fates", 16
# The lines of a block before and after those that are kept.
_HEAD_LINES, _TAIL_LINES = 2, 1
# Directories of the package that decide what a brief says: a checkout changes without its version.
_CODE = ("memory/briefing", "memory", "text")


def state_of(home: Path, files: tuple[FileId, ...], *, wide: Path | None) -> str:
    """Return what a brief of `home` with these `files` depends on; "" if they were not read as a whole."""
    if files[0] is None:
        return ""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    budget, root = config.or_default(home).claude_brief_tokens, project_root(home)
    return json.dumps([_code(), day, budget, root, files, wide and file_ids(wide)])


def find(home: Path, source: str, session: str, *, at: str, wide: Path | None) -> str | None:
    """Return the kept brief of a session that starts by `source`, as of `at`; None without one of today's state."""
    if source not in KEPT_SOURCES:
        return None
    try:
        path = _file(home, source, session)
        if path.is_symlink() or not is_real(str(home), DIRECTORY):
            return None
        kept = json.loads(regular.read(path))
        if not kept["state"] or kept["state"] != state_of(home, file_ids(home), wide=wide):
            return None
        return memory_block([str(line) for line in kept["lines"]], occasion=source, at=at)
    except (OSError, AetherError, ValueError, LookupError, TypeError, RecursionError):
        return None


def keep(home: Path, source: str, session: str, brief: str, *, state: str) -> None:
    """Keep `brief`, made of the home at `state`; what cannot be written is made again the next time."""
    if source not in KEPT_SOURCES or not state:
        return
    lines = brief.split("\n")[_HEAD_LINES:-_TAIL_LINES]
    with suppress(OSError, AetherError):
        path = _file(home, source, session)
        make_directory(path.parent)
        require_real(str(home), DIRECTORY)
        write_whole(path, json.dumps({"state": state, "lines": lines}).encode("ascii"))
        for old in sorted(files_ending(path.parent, ".json"), key=lambda file: file.stat().st_mtime)[
            :-MOST_KEPT
        ]:
            old.unlink(missing_ok=True)


def load_answers(home: Path, answers: dict[str, bool], fates: dict[str, list[int]]) -> None:
    """Add the kept answers about lines to `answers` and `fates`; none if they are of another program."""
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        kept = _load(home, ANSWERS)
        answers.update(dict.fromkeys(kept["no"].split(), False))
        answers.update(dict.fromkeys(kept["yes"].split(), True))
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        fates.update({key: [*map(int, each)] for key, each in _load(home, FATES)["fates"].items()})


def keep_answers(home: Path, answers: dict[str, bool], asked: dict[str, bool]) -> None:
    """Keep the answers that were `asked` for now, and of the other `answers` as many as there is room for."""
    kept = dict(islice({**asked, **answers}.items(), max(MOST_ANSWERS, len(asked))))
    # Two texts of keys are read in a quarter of the time of an object with each.
    yes, no = (" ".join(key for key, answer in kept.items() if answer is which) for which in (True, False))
    _save(home, ANSWERS, {"yes": yes, "no": no})


def keep_fates(home: Path, fates: dict[str, list[int]]) -> None:
    """Keep the `fates` that were asked for last."""
    _save(home, FATES, {"fates": dict([*fates.items()][-MOST_FATES:])})


def _load(home: Path, name: str) -> Any:
    """Return what `_save` wrote; nothing if another program did."""
    with suppress(OSError, AetherError, ValueError, RecursionError):
        path = home / "hooks" / DIRECTORY / name
        if not path.is_symlink() and is_real(str(home), DIRECTORY):
            kept = json.loads(regular.read(path))
            if isinstance(kept, dict) and kept.get("code") == _code():
                return kept
    return {}


def _save(home: Path, name: str, kept: JsonObject) -> None:
    with suppress(OSError, AetherError):
        require_real(str(home), DIRECTORY)
        data = json.dumps({"code": _code(), **kept}, separators=(",", ":"))
        write_whole(home / "hooks" / DIRECTORY / name, data.encode("ascii"))


def _code() -> list[object]:
    """Return what changes with the program: its version, and in a checkout the time of its newest module."""
    package = Path(aether.__file__).parent
    return [
        aether.__version__,
        max(entry.stat().st_mtime_ns for name in _CODE for entry in os.scandir(package / name)),
    ]


def _file(home: Path, source: str, session: str) -> Path:
    return session_file(home, DIRECTORY, f"{source}-{session}" if source == "compact" else source)
