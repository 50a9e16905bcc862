"""Paths of the memory tool: what a model may name in `/memories`, and what keeps it from being made.

A path has one form, stays below `/memories`, and is a name on every system; two that some system takes for the same
never stand beside each other. What lies at a path is `memory_files`' to know.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from aether.errors import UnsafePath, shown
from aether.paths import RESERVED
from aether.store.files import TEMP_SUFFIX
from aether.text.patterns import lazy

ROOT = "/memories"
# 255 bytes is the limit of common file systems; the name of a temp file is 25 longer.
MAX_NAME_BYTES = 200
# Below the 4096 bytes that systems take, with room for the home.
MAX_PATH_BYTES = 1024
# Dots, slashes, backslashes, NUL and the percent sign itself, disguised.
_ENCODED = lazy(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)

Index = dict[str, tuple[str, bool]]
"""What there is, by its path in the letters that all systems tell apart: its path, and whether it is a file."""


def canonical(path: str) -> str:
    """Return `path` in its one form, without double slashes or one at its end.

    Raises:
        UnsafePath: it does not begin with `/memories`, climbs, or is no name that every system takes.

    >>> canonical("/memories//tasks/./today.md/")
    '/memories/tasks/today.md'
    """
    above, root, *rest = [*path.split("/"), ""]
    if above or f"/{root}" != ROOT:
        raise _unsafe(path, f"does not begin with {ROOT}")
    if "\\" in path or _ENCODED.search(path):
        raise _unsafe(path, "holds a backslash or an encoded character")
    names = [name for name in rest if name not in ("", ".")]
    for name in names:
        _check_name(path, name)
    whole = "/".join([ROOT, *names])
    if len(whole.encode()) > MAX_PATH_BYTES:
        raise _unsafe(path, f"is longer than {MAX_PATH_BYTES} bytes")
    return whole


def _check_name(path: str, name: str) -> None:
    if name == "..":
        raise _unsafe(path, "leads up")
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
        raise _unsafe(path, "holds a control character or half of a surrogate pair")
    if name.partition(".")[0].rstrip().lower() in RESERVED or name.endswith((TEMP_SUFFIX, ".", " ")):
        raise _unsafe(path, f"holds {shown(name)}, which a system or aether itself keeps for something else")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise _unsafe(path, f"holds a name of more than {MAX_NAME_BYTES} bytes")


def _unsafe(path: str, why: str) -> UnsafePath:
    return UnsafePath(f"the path {why}.", fix=f"Use a plain path below {ROOT}.", where=shown(path))


def index(files: Iterable[str]) -> Index:
    """Return what `in_the_way` looks into: the paths of `files`, and of the directories that they make."""
    known: Index = {}
    for each in files:
        known |= {_folded(place): (place, place == each) for place in _upwards(each)}
    return known


def in_the_way(known: Index, path: str) -> str:
    """Return what keeps a file or directory from being made at `path`, or "".

    That is one at `path` itself, a file above it, or a name that some systems take for the same.
    """
    for place in _upwards(path):
        found, is_file = known.get(_folded(place), ("", False))
        if found and (found != place or place == path or is_file):
            return found
    return ROOT if path == ROOT else ""


def _upwards(path: str) -> list[str]:
    """Return `path` and what it lies in, below the root, the longest first."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 2, -1)]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
