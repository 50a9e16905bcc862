"""The home itself, as a caller asks for it: make it, fold it, show it, look back, undo, examine, mend."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from aether import paths
from aether.errors import InvalidInput, NotFound
from aether.memory import checkup, departures
from aether.memory.changes import joined
from aether.operations import memory_directory, snapshots
from aether.operations.edge import Author, Home, find, now, owned, read
from aether.paths import HOME_NAME
from aether.schemas import check
from aether.shapes import Change, Finding, JsonObject
from aether.store import config, documents
from aether.store import doctor as store_doctor
from aether.store.commit import commit, fold_home
from aether.store.files import make_directory, storage
from aether.store.journal import Entry
from aether.store.state import Snapshot, load
from aether.store.undo import BOOKKEEPING, last_undoable, newest_first, states_back
from aether.store.undo import undo as undo_change


def init(home: Home = None) -> Path:
    """Make the home ready for use and return its path; one that exists keeps everything.

    `home` is the home itself; by default `AETHER_HOME`, else `.aether/` in the current directory. Files of
    the original v2.0 format that are there are brought in.

    Raises:
        StorageFailed: the directory cannot be written.
    """
    named = home or os.environ.get("AETHER_HOME") or Path.cwd() / HOME_NAME
    place = paths.find_home(named)
    with storage(place):
        make_directory(place / "data")
    fold_home(place, now=now())
    return place


def fold(*, home: Home = None) -> int:
    """Write what the journal says into the documents and return the revision they now contain."""
    return fold_home(find(home), now=now()).revision


def show(document: str, *, home: Home = None, revision: int | None = None) -> Any:
    """Return a document as it is now, to the last committed change, or as it was at `revision`.

    Raises:
        NotFound: there is no such document or revision.
    """
    place = find(home)
    documents.path_of(place, document)
    snapshot = load(place)
    if revision is None:
        return owned(snapshot.documents[document])
    return owned(states_back(snapshot, revision)[1][document])


class LogLine(NamedTuple):
    """One transaction, as `aether log` tells it."""

    revision: int
    at: str
    by: str
    operation: str
    reason: str
    touched: list[str]
    """Documents and append-only files that it changed."""


def log(*, limit: int = 20, everything: bool = False, home: Home = None) -> list[LogLine]:
    """Return the newest `limit` transactions, newest first (0: all); counted reads only if `everything`."""
    snapshot = read(home)
    wanted = (entry for entry in newest_first(snapshot) if everything or entry.operation not in BOOKKEEPING)
    return [
        LogLine(
            entry.revision,
            entry.at,
            entry.by,
            entry.operation,
            f"{entry.reason} (erased)".lstrip() if entry.erased else entry.reason,
            [*entry.patches, *entry.appends],
        )
        for entry in islice(wanted, min(limit, sys.maxsize) or None)
    ]


def undo(revision: int | None = None, *, home: Home = None) -> LogLine:
    """Take one transaction back (default: the last that somebody asked for and was not undone) and return it.

    Later ones stay. What hooks did of themselves nobody asked for: it is taken back by its revision.

    Raises:
        NotFound: there is no such revision.
        Conflict: it was erased, or a later change depends on it; that change is named.
    """
    place = find(home)
    chosen = revision if revision is not None else last_undoable(load(place))

    at = now()

    def plan(snapshot: Snapshot) -> Change:
        undone = departures.with_archive(snapshot.documents, undo_change(snapshot, chosen), now=at)
        mended = checkup.rederived(snapshot.documents, undone)
        return joined(undone, mended, result=undone.result)

    with memory_directory.showing(place):
        entry: Entry = commit(place, plan, Author("undo", reason=f"of revision {chosen}"), now=at).result
    return LogLine(entry.revision, entry.at, entry.by, entry.operation, entry.reason, [*entry.patches])


def examine(*, home: Home = None) -> list[Finding]:
    """Return what is wrong with the home, errors first; nothing is changed."""
    place = find(home)
    if not place.is_dir():
        raise NotFound("is not a home.", fix='Run "aether init" there.', where=str(place))
    found = [*store_doctor.examine(place), *snapshots.examine(place), *memory_directory.examine(place)]
    if not any(finding.level == "error" for finding in found):
        found += checkup.examine(load(place).documents)
    return found


def repair(*, home: Home = None) -> list[str]:
    """Mend what can be mended and return what was done, in words."""
    place = find(home)
    done = store_doctor.repair(place, now=now())

    def plan(snapshot: Snapshot) -> Change:
        return checkup.mended(snapshot.documents)

    settings = config.or_default(place)  # a broken config.toml must not keep the rest from being mended
    with memory_directory.showing(place):
        mended = commit(place, plan, Author("repair", by="doctor"), now=now(), settings=settings)
    fold_home(place, now=now())
    return [*done, *mended.result]


def check_schema(name: str, value: Any) -> list[Finding]:
    """Return where `value` breaks the schema of document `name`.

    Raises:
        NotFound: there is no such schema.
    """
    if not name.replace("_", "").isalnum():
        raise InvalidInput(
            f"{name!r} is not the name of a schema.", fix=f"Use one of {', '.join(documents.NAMES)}."
        )
    return check.findings(name, value)


def export(*, home: Home = None) -> JsonObject:
    """Return the whole colony as one JSON object: documents, archive, receipts and events."""
    from aether.store import appends

    snapshot = read(home)
    return {
        "revision": snapshot.revision,
        "documents": owned(snapshot.documents),
        **{
            kind: [owned(record) for _, record in appends.records(snapshot, kind)]
            for kind in (*appends.MONTHLY, *appends.SINGLE)
        },
    }
