"""The file exporter: each event is one line of JSON, appended to a file that only its owner may read."""

from __future__ import annotations

import os
from pathlib import Path

from aether.errors import StorageFailed
from aether.events.direct import Direct
from aether.events.record import line, record


def file(path: str | os.PathLike[str]) -> Direct:
    """Return an exporter that appends to the file at `path`, and makes it and its directory if need be.

    Several processes may share the file: each line is one write.

    Raises:
        StorageFailed: the file cannot be made or written.
    """
    place = Path(path).absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _append(place, b"")
    except (OSError, ValueError) as reason:
        raise StorageFailed(
            f"events cannot be written there ({reason}).",
            fix="Name a file that can be written.",
            where=str(place),
        ) from reason

    return Direct("file", lambda event: _append(place, line(record(event)) + b"\n"))


def _append(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if os.write(handle, data) != len(data):
            os.write(handle, b"\n")  # what follows shall not be glued to the torn line
            raise OSError("only a part of it was written")
    finally:
        os.close(handle)
