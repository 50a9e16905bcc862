"""Places: the homes that this user has worked in on this machine, so that a person can go from one to another.

Each is a small file with its path in the user's own state directory. Nothing depends on them but the list of projects.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aether import regular
from aether.errors import AetherError
from aether.project import state_directory
from aether.store.files import files_ending

SUFFIX = ".place"


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
