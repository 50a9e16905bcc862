"""The directory of the memory tool against the document: what a person edited in it, and what it has yet to show.

A file whose checksum is that of what was last shown was not touched since, however the process ended; any other that
differs from the document is a person's edit, and wins: what the document said stays in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from aether.errors import UnsafePath
from aether.memory.memory_files import Files, replaced, storable
from aether.memory.memory_paths import ROOT, canonical, in_the_way, index
from aether.shapes import Change

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Compared(NamedTuple):
    """Where the directory is not what the document says: text by path, None for no file."""

    edited: dict[str, str | None]
    """What a person made of it since it was last shown."""
    due: dict[str, str | None]
    """What it has yet to show: nobody touched the file since."""


def compared(
    files: Files,
    texts: Files,
    *,
    others: Iterable[str] = (),
    stamps: Mapping[str, str] = _NOTHING,
) -> Compared:
    """Return how the `texts` in the directory differ from `files`; `stamps` has the checksum of what was last shown.

    >>> compared({"/memories/a": "new"}, {"/memories/a": "old"}, stamps={"/memories/a": checksum("old")}).due
    {'/memories/a': 'new'}
    """
    edited: dict[str, str | None] = {}
    due: dict[str, str | None] = {}
    taken = set(others)
    for path in sorted({*files, *texts, *stamps}):
        wanted, there = files.get(path), texts.get(path)
        if there == wanted:
            continue
        if path in taken or checksum(there) != stamps.get(path, ""):
            edited[path] = there
        elif showable(path, wanted):
            due[path] = wanted
    return Compared(edited, due)


def checksum(text: str | None) -> str:
    """Return what tells one text from another; that of no file is empty."""
    return "" if text is None else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def showable(path: str, text: str | None) -> bool:
    """Return whether `text` may be written to `path`: a person may have put anything into the document."""
    try:
        return canonical(path) == path != ROOT and (text is None or storable(text))
    except UnsafePath:
        return False


def with_edits(document: Mapping[str, Any], edited: Mapping[str, str | None]) -> Change:
    """Return the change that brings in what a person `edited`; what has no place beside the other files stays out."""
    files = {path: text for path, text in document["files"].items() if path not in edited}
    known = index(files)
    for path, text in edited.items():
        if text is not None and not in_the_way(known, path):
            files[path] = text
            known |= index([path])
    return replaced(document, files)
