"""Copies of a home's files from another machine, and files in which git left both sides of a merge.

A program that keeps folders alike names a copy like its original, with more words before the ending. What a copy has that
memory lacks is recognised by ids: those of entries, and revision and time of changes. Nothing that was removed here comes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aether import regular
from aether.schemas import check
from aether.store import documents, seals
from aether.store.journal import Entry, entry_of
from aether.store.log import unsealed
from aether.store.merge import merge, refitted, rules_of
from aether.store.patch import apply
from aether.types import JsonObject

JOURNAL, MONTHS, ITEMS = "journal", "data/journal", "data/archive/items"
_KNOWN = dict.fromkeys((*documents.NAMES, "seals"), ".json") | dict.fromkeys(
    (JOURNAL, "receipts", "events", "history", "conversations"), ".jsonl"
) | {"head": ""}  # fmt: skip
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
# The lines that git writes around the two sides of a conflict, and around their ancestor.
_OURS, _BASE, _THEIRS, _END = (sign * 7 for sign in (b"<", b"|", b"=", b">"))


class Copy(NamedTuple):
    """A file of another machine."""

    path: Path
    original: str
    """The name of its original without the ending: a document, `journal` or another file of the home."""
    is_live: bool
    """Whether it is the home's own file, with both sides of a merge."""

    @property
    def is_mergeable(self) -> bool:
        """Whether its entries or changes can be taken over."""
        return self.original in (*documents.NAMES, JOURNAL)

    @property
    def is_derived(self) -> bool:
        """Whether aether makes its original again from other files."""
        return self.original in ("seals", "head")


def copies(home: Path, *, is_quick: bool = False) -> Iterator[Copy]:
    """Yield the copies in `home`, and its files with both sides of a merge, by their paths; quickly without those files."""
    for directory in ("data", MONTHS, ITEMS):
        for path in sorted((home / directory).glob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            original, is_own = _original(path.name, directory)
            if original and (not is_own or (not is_quick and _has_sides(path))):
                yield Copy(path, original, is_own)


def _original(name: str, directory: str) -> tuple[str, bool]:
    """Return whose copy a file is by its name, "" without an original, and whether it is the file itself."""
    stem, dot, ending = name.rpartition(".") if "." in name else (name, "", "")
    if directory != "data":
        month = _MONTH.match(stem)
        kind = JOURNAL if directory == MONTHS else "items"
        return (kind, stem == month[0]) if month and ending == "jsonl" else ("", False)
    original = next((name for name in _KNOWN if stem.startswith(name)), "")
    following = stem[len(original) : len(original) + 1]
    if not original or following.isalnum() or following == "_" or dot + ending not in (_KNOWN[original], ""):
        return "", False
    return original, name == original + _KNOWN[original]


def _has_sides(path: Path) -> bool:
    data = regular.read(path, regular.LOG_BYTES)
    return data.startswith(_OURS) or b"\n" + _OURS in data


def sides(data: bytes) -> list[bytes]:
    r"""Return the two versions of a file in which git left both sides of a merge; of another the file itself.

    >>> sides(b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n")
    [b'a\nb\n', b'a\nc\n']
    """
    both: Literal["", "ours", "base", "theirs"] = ""
    ours, theirs = bytearray(), bytearray()
    for line in data.splitlines(keepends=True):
        if line.startswith(_OURS):
            both = "ours"
        elif both and line.startswith(_BASE):
            both = "base"
        elif both and line.startswith(_THEIRS):
            both = "theirs"
        elif both and line.startswith(_END):
            both = ""
        else:
            if both in ("", "ours"):
                ours += line
            if both in ("", "theirs"):
                theirs += line
    return [bytes(ours)] if ours == theirs else [bytes(ours), bytes(theirs)]


def merged(
    state: Mapping[str, Any], history: Sequence[Entry], original: str, versions: Iterable[Any]
) -> tuple[dict[str, Any], dict[str, list[JsonObject]]]:
    """Return the documents with what `versions` of `original` have and they lack, and the records that come with it.

    A version is a document, or the lines of a journal; `history` has all changes made here.
    """
    was_here = frozenset().union(*(ids_in([entry.patches, entry.inverse]) for entry in history))
    known = {_key(entry) for entry in history}
    documents, appends = dict(state), dict[str, list[JsonObject]]()
    for version in versions:
        if original != JOURNAL:
            documents[original] = _with_entries(original, documents[original], version, was_here)
            continue
        for entry in _changes(version):
            after = None if _key(entry) in known else _after(documents, entry)
            if after is not None and not (ids_in(after) - ids_in(documents)) & was_here:
                documents = after
                for kind, records in entry.appends.items():
                    appends.setdefault(kind, []).extend(records)
    return documents, appends


def _with_entries(name: str, present: Any, other: Any, was_here: frozenset[str]) -> Any:
    """Return document `name` with the entries of `other` that it lacks and never had; of one that both have, it keeps its own."""
    new = ids_in(other) - ids_in(present) - was_here
    wanted = _without(other, ids_in(other) - ids_in(present) - new)
    return merge(_without(wanted, new), present, wanted, rules_of(check.schema(name)))[0]


def _changes(data: bytes) -> list[Entry]:
    """Return the changes in the lines of a journal, oldest first; damaged lines are skipped."""
    lines = filter(None, map(unsealed, data.splitlines(keepends=True)))
    return sorted((entry_of(line) for line in lines if "revision" in line), key=_key)


def _key(entry: Entry) -> tuple[int, str]:
    """Return what distinguishes a change from those of other machines."""
    return entry.revision, entry.at


def _after(state: Mapping[str, Any], entry: Entry) -> dict[str, Any] | None:
    """Return the documents after a change of another machine as it fits them, None if it does not."""
    after = dict(state)
    for name, patch in entry.patches.items():
        rules = rules_of(check.schema(name))
        fit = refitted(after[name], patch, entry.inverse.get(name, []), rules) if name in after else None
        if fit is None:
            return None
        after[name] = apply(after[name], fit)
    return after


def ids_in(value: Any) -> frozenset[str]:
    """Return the ids of all entries in a value."""
    ids: set[str] = set()
    waiting = [value]
    while waiting:
        below = waiting.pop()
        if isinstance(below, dict):
            if isinstance(below.get("id"), str):
                ids.add(below["id"])
            waiting += below.values()
        elif isinstance(below, list):
            waiting += below
    return frozenset(ids)


def _without(value: Any, ids: frozenset[str]) -> Any:
    """Return `value` without the entries of lists that have one of `ids`."""
    if isinstance(value, dict):
        return {key: _without(below, ids) for key, below in value.items()}
    if isinstance(value, list):
        return [
            _without(below, ids)
            for below in value
            if not (isinstance(below, dict) and isinstance(below.get("id"), str) and below["id"] in ids)
        ]
    return value


def place(home: Path, copy: Copy) -> str:
    """Return the place of a copy in the home."""
    return seals.place(home, copy.path)
