"""Trust: the configuration files of homes that this user has allowed to name programs, servers and places.

A home is data and may come from anybody, so such settings count only if the user says so. The user's word is a file in
the user's own state directory, never in the home: it names the configuration by its path and holds the hash of its
bytes. A changed file is another file, and is not trusted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from aether import regular
from aether.errors import AetherError
from aether.project import state_directory
from aether.regular import sha256
from aether.store import files


def record_path(file: Path) -> Path:
    """Return where the user's word about the configuration `file` is kept, whether or not it is there."""
    place = os.path.join(os.path.realpath(file.parent), file.name)
    name = sha256(place.encode("utf-8", "surrogateescape")).hexdigest()
    return Path(state_directory(), "trust", f"{name}.json")


def is_trusted(file: Path, data: bytes) -> bool:
    """Return whether the user trusts `file` with exactly the content `data`."""
    return recorded(file) == sha256(data).hexdigest()


def recorded(file: Path) -> str:
    """Return the hash of the content with which the user trusts `file`; empty without one."""
    try:
        found = json.loads(regular.read(record_path(file), regular.CONFIG_BYTES))
    except (OSError, ValueError, RecursionError, AetherError):
        return ""
    return str(found.get("sha256", "")) if isinstance(found, dict) else ""


def grant(file: Path, data: bytes) -> None:
    """Trust `file` while its content is `data`.

    Raises:
        StorageFailed: the state directory cannot be written.
    """
    path = record_path(file)
    word = {
        "path": os.path.join(os.path.realpath(file.parent), file.name),
        "sha256": sha256(data).hexdigest(),
    }
    with files.storage_errors(path):
        files.make_directory(path.parent)
        files.write_whole(path, files.json_line(word) + b"\n")


def revoke(file: Path) -> bool:
    """Trust `file` no longer, and return whether it was trusted with any content.

    Raises:
        StorageFailed: the state directory cannot be written.
    """
    path = record_path(file)
    with files.storage_errors(path, left="The file is still trusted."):
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True
