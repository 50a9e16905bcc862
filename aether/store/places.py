"""Places: the homes that this user has worked in on this machine, and how often memory had an answer there.

Each home is a small file with its path, and a log of its recalls without their words, in the user's own state directory.
Nothing depends on them but the list of projects and the charts.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aether import regular
from aether.errors import AetherError
from aether.project import state_directory
from aether.store.files import files_ending

SUFFIX = ".place"
# Beside the place: the recalls in that home, the newest ten thousand at least.
_RECALLS, _MOST_RECALL_BYTES = ".recalls", 512 * 1024
# What asks memory: a prompt by itself, a search, and who opens an entry that it was given or that a search returned.
PROMPT, SEARCH, OPEN = "prompt", "search", "open"


class KnownHome(NamedTuple):
    """A home that is still where it was."""

    key: str
    """A short name of it that says nothing of its path."""
    path: Path
    changed: float
    """Seconds since 1970 of the last change of what it holds."""


def remember(home: str | os.PathLike[str]) -> None:
    """Add `home` to the known ones; a failure is ignored, since nothing but a list lacks it then."""
    place = os.path.realpath(home)
    path = os.path.join(state_directory(), "places", f"{key_of(place)}{SUFFIX}")
    with suppress(AetherError, OSError):
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            regular.create(path, os.fsencode(place))


class Recall(NamedTuple):
    """A question to memory."""

    at: str
    """ISO 8601 in UTC."""
    by: str
    """`PROMPT`, `SEARCH` or `OPEN`."""
    hits: int


def note_recall(home: str | os.PathLike[str], by: str, hits: int) -> None:
    """Note that memory was asked, and how many entries it answered with; a failure is ignored: a chart lacks it then."""
    record = Recall(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), by, hits)
    path = _recalls_of(home)
    with suppress(AetherError, OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        regular.append_line(path, json.dumps(record).encode("ascii") + b"\n", _MOST_RECALL_BYTES)


def recalls(home: str | os.PathLike[str]) -> list[Recall]:
    """Return the recalls in `home` that are still in the log, oldest first."""
    found = []
    for path in (f"{_recalls_of(home)}.1", _recalls_of(home)):
        with suppress(AetherError, OSError):
            for line in regular.read(path, 2 * _MOST_RECALL_BYTES).splitlines():
                with suppress(ValueError, TypeError):  # the write was cut short
                    at, by, hits = json.loads(line)
                    found.append(Recall(str(at), str(by), int(hits)))
    return found


def _recalls_of(home: str | os.PathLike[str]) -> str:
    return os.path.join(state_directory(), "places", f"{key_of(os.path.realpath(home))}{_RECALLS}")


def known_homes() -> list[KnownHome]:
    """Return the known homes that are still there, the one that changed last first."""
    homes = []
    for file in files_ending(Path(state_directory(), "places"), SUFFIX):
        with suppress(AetherError, OSError, ValueError):
            path = Path(os.fsdecode(regular.read(file, regular.CONFIG_BYTES)))
            changed = max((path / "data" / name).stat().st_mtime for name in ("head", "memory.json"))
            if key_of(str(path)) == file.name.removesuffix(SUFFIX):
                homes.append(KnownHome(key_of(str(path)), path, changed))
    return sorted(homes, key=lambda home: home.changed, reverse=True)


def key_of(place: str) -> str:
    """Return the key of the home at the real path `place`."""
    return regular.digest(os.fsencode(place))[:32]
