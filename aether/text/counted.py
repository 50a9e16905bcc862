"""Counted things, as a person says them: "1 session", "2 sessions"."""

from __future__ import annotations

# Plurals that are more than an "s" at the end.
_ONE = {
    "entities": "entity",
    "entries": "entry",
    "errors that are over": "error that is over",
    "hashes of files that were read": "hash of a file that was read",
    "hashes of files": "hash of a file",
    "files that were read": "file that was read",
    "notes of Claude Code": "note of Claude Code",
    "observations of known ones": "observation of known ones",
}


def counted(number: int, what: str) -> str:
    """Return `number` of `what`, which is given in the plural.

    >>> counted(2, "files that were read"), counted(1, "files that were read"), counted(1, "decisions")
    ('2 files that were read', '1 file that was read', '1 decision')
    """
    return f"{number} {what}" if number != 1 else f"1 {_ONE.get(what, what.removesuffix('s'))}"
