"""Senders: which member of a colony wrote an entry last, so that a brief shows no words of another as those of its reader.

Each line of the journal ends in the role that sent it, which the server has compared. From these lines follows who changed
the words of an entry last; counters and relevance are no words. `share/senders.json` has the answer up to a revision, and is
made again if it is missing: of a long history once, by `aether share join` or the next `aether fold`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError
from aether.store import files
from aether.store.authors import only_looks
from aether.store.log import seal_json, unsealed
from aether.store.patch import apply
from aether.store.snapshot import Snapshot
from aether.store.undo import entries_newest_first

PLACE = "share/senders.json"
# What changes in an entry while its words stay.
_NO_WORDS = frozenset(
    {"access_count", "last_accessed", "relevance_score", "token_count", "associative_links"}
)


class _Known(NamedTuple):
    revision: int
    member: str
    """The own role, when the server was asked last."""
    of: dict[str, str]
    """The role that sent each live entry, by the id of the entry; empty if the line is of an earlier release."""


def senders(snapshot: Snapshot, *, member: str = "") -> dict[str, str]:
    """Return who sent the entries of a shared home that another member sent, by their ids; `member` is the own role if known."""
    known = _read(snapshot.home)
    if known.revision < snapshot.revision or member not in ("", known.member):
        of, live = known.of | _changed(snapshot, known.revision), dict[str, Any]()
        for document in snapshot.documents.values():
            _collect(document, None, live)
        of = {key: sender for key, sender in of.items() if key in live}
        known = _Known(snapshot.revision, member or known.member, of)
        if not only_looks():
            with suppress(AetherError, OSError):  # it is made again
                files.save(snapshot.home / PLACE, seal_json(known._asdict()))
    return {key: sender for key, sender in known.of.items() if sender not in ("", known.member)}


def _read(home: Path) -> _Known:
    with suppress(AetherError, OSError, KeyError, TypeError, ValueError):
        fields = unsealed(regular.read(home / PLACE)) or {}
        return _Known(int(fields["revision"]), str(fields["member"]), dict(fields["of"]))
    return _Known(0, "", {})


def _changed(snapshot: Snapshot, after: int) -> dict[str, str]:
    """Return the role that sent each entry whose words changed after a revision, as far back as the history is whole."""
    of: dict[str, str] = {}
    state, expected = dict(snapshot.documents), snapshot.revision
    with suppress(AetherError, KeyError):  # before lines were compared, an inverse may be wrong
        for entry in entries_newest_first(snapshot, after=after):
            if entry.revision != expected:
                break
            for name, inverse in entry.inverse.items():
                before = apply(state[name], inverse)
                old, new = dict[str, Any](), dict[str, Any]()
                _collect(before, state[name], old)
                _collect(state[name], before, new)
                for key in (key for key, words in new.items() if old.get(key) != words):
                    of.setdefault(key, entry.member)
                state[name] = before
            expected -= 1
    return of


def _collect(value: Any, other: Any, words: dict[str, Any]) -> None:
    """Add the words of each entry in `value` that is not the same object in `other`, by the id of the entry."""
    if value is other:
        return
    if isinstance(value, dict):
        name = value.get("id") or value.get("session_id")
        if isinstance(name, str):
            metadata = value.get("metadata")
            words[name] = [_words(value), _words(metadata) if isinstance(metadata, dict) else metadata]
        for key, below in value.items():
            _collect(below, other.get(key) if isinstance(other, dict) else None, words)
    elif isinstance(value, list):
        same = set(map(id, other)) if isinstance(other, list) else set[int]()
        for below in value:
            if id(below) not in same:
                _collect(below, None, words)


def _words(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _NO_WORDS and name != "metadata"}
