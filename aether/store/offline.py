"""The queue of a shared home: changes made while its server cannot be reached, one sealed file each, sent in their order later.

A change is planned on the newest state that the home knows, with what waits before it, and is acknowledged once its file
is written. When the server is back each is planned again on what others wrote meanwhile, or fitted to it
(`commit.send_queue`). What no longer fits goes to quarantine as it is, and doctor reports it. A change has a key, which is in its line as well: one that is in
the history already is never sent twice.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError, UnsafePath
from aether.schemas import check, migrations
from aether.store import files, ledger, spool
from aether.store.authors import only_looks
from aether.store.log import seal_json, unsealed
from aether.store.merge import Ids, ids_of, refitted, rules_of
from aether.store.patch import apply
from aether.store.snapshot import (
    REPLANNERS,
    Entry,
    Snapshot,
    entry_fields,
    entry_of,
    folded_entries,
    read_journal,
)
from aether.text.regex import lazy
from aether.types import Change, JsonObject, Patch

DIRECTORY = ledger.QUEUE
# How the name of a change in quarantine starts.
UNFIT = "queued-"
_NAME = lazy(r"\d{8,}-[0-9a-f]{32}\.json")
# Touched at each try that failed: for some seconds no other process waits for the server again.
TRIED, TRIED_SECONDS = "share/tried", ledger.TRIED_SECONDS

# What the changes make of the documents, so that nobody reads a long queue again; written after each so many changes.
MADE, KEPT_EACH = "share/queued.json", 32


class _Made(NamedTuple):
    """What the first changes that wait make of documents."""

    on: str
    """Which state of the home, and which changes: see `_key`."""
    number: int
    documents: dict[str, Any]
    """Those that they change, as they are then."""
    kept: int
    """The number of changes of which the home remembers the same."""


_MADE: dict[Path, _Made] = {}


class Queued(NamedTuple):
    """A change that waits for the server."""

    entry: Entry
    """With the revision that the home had."""
    on: dict[str, str]
    """The checksum of each document that it changes, as it was before."""
    ids: dict[str, Ids]
    """The list entries that it changes, for each document; a change of an earlier release has none."""


def waiting(home: Path) -> list[Path]:
    """Return the files of the changes that wait, oldest first; not of those that git tracks, which others wrote."""
    return [home / DIRECTORY / name for name in names(home)]


def names(home: Path) -> list[str]:
    """Return the names of these files: a queue may be long, and a path costs more than its change."""
    try:
        found = [name for name in os.listdir(f"{home}/{DIRECTORY}") if _NAME.fullmatch(name)]
    except OSError:
        return []
    others = tracked(home) if found else frozenset[str]()
    return sorted(name for name in found if name not in others)


def is_waiting(home: Path) -> bool:
    """Return whether any change waits."""
    try:
        with os.scandir(f"{home}/{DIRECTORY}") as found:
            others = tracked(home)
            return any(_NAME.fullmatch(one.name) and one.name not in others for one in found)
    except OSError:
        return False


def tracked(home: Path) -> frozenset[str]:
    """Return the names of the changes that came with a repository: nobody here made them, and they are never sent."""
    return spool.tracked(str(home), f"{DIRECTORY}/")


def put(seen: Snapshot, entry: Entry, after: Mapping[str, Any]) -> None:
    """Keep `entry`, planned for `seen`, durably until it can be sent; the caller holds the lock of the home.

    It makes the documents `after`.

    Raises:
        OSError: it was not kept.
    """
    home, before = seen.home, seen.documents
    files.make_directory(home / DIRECTORY)
    waits = names(home)
    number = int(waits[-1].partition("-")[0]) + 1 if waits else 1
    on = {name: _state_of(before[name]) for name in entry.patches}
    ids = {name: ids_of(before[name], patch) for name, patch in entry.patches.items()}
    data = seal_json({**entry_fields(entry), "schema_version": migrations.VERSION, "on": on, "ids": ids})
    path = home / DIRECTORY / f"{number:08d}-{entry.key}.json"
    files.write_whole(path, data)
    made = _made(seen, waits)
    if made.number == len(waits):
        documents = {**made.documents, **{name: after[name] for name in entry.patches}}
        waits.append(path.name)
        _remember(home, made._replace(number=len(waits), on=_key(seen, waits), documents=documents))


def read(path: Path) -> Queued | None:
    """Return the change in the file at `path`; None if it is damaged.

    Raises:
        InvalidDocument: a newer aether wrote it; it stays where it is.
    """
    fields: JsonObject | None = None
    with suppress(AetherError, OSError):
        fields = unsealed(regular.read(path, regular.LOG_BYTES))
    if fields:
        migrations.is_current(f"{DIRECTORY}/{path.stem}", fields)
        with suppress(AetherError, KeyError, TypeError, ValueError, AttributeError):
            return Queued(entry_of(fields), dict(fields["on"]), dict(fields.get("ids", {})))
    return None


def require_known(home: Path) -> None:
    """Check that this aether can send what waits.

    Raises:
        InvalidDocument: a newer aether wrote some of it.
    """
    for path in waiting(home):
        read(path)


def fitted(documents: Mapping[str, Any], queued: Queued) -> Change | None:
    """Return what does to `documents` what the change did to those it was planned for; None if it does not fit.

    A change that can be planned again from what it holds is; else its steps are fitted.
    """
    entry = queued.entry
    changed = {
        name
        for name in entry.patches
        if name not in documents or _state_of(documents[name]) != queued.on.get(name)
    }
    plans = (plan(documents, entry) for plan in REPLANNERS) if changed else iter(())
    planned = next(filter(None, plans), Change({}))
    made = dict(planned.patches)
    for name, patch in entry.patches.items():
        if name in made:
            continue
        fit: Patch | None = patch
        if name in changed:
            ids, inverse = queued.ids.get(name, [[]] * len(patch)), entry.inverse.get(name, [])
            known, rules = documents.get(name), rules_of(check.schema(name))
            fit = None if known is None else refitted(known, patch, inverse, rules, ids)
        if fit is None:
            return None
        made[name] = fit
    return Change(made, {**entry.appends, **planned.appends})


def present(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` with the documents as they are after what waits, for reading and planning; never to be stored.

    Only the changes that nobody has read yet are read: the state after the others is remembered, here and in the home.
    """
    home, waits = snapshot.home, names(snapshot.home)
    if not waits:
        return snapshot
    made = _made(snapshot, waits)
    changed, good = dict(made.documents), True
    for name in waits[made.number :]:
        queued = read(home / DIRECTORY / name)
        documents = {**snapshot.documents, **changed}
        change = fitted(documents, queued) if queued else None
        patches = change.patches if change else {}
        changed |= {document: apply(documents[document], patch) for document, patch in patches.items()}
        good = good and queued is not None  # one that cannot be read now may have been sent this moment
    if good and made.number < len(waits):
        _remember(home, made._replace(number=len(waits), on=_key(snapshot, waits), documents=changed))
    return snapshot._replace(documents={**snapshot.documents, **changed})


def _made(snapshot: Snapshot, waits: list[str]) -> _Made:
    """Return what is remembered of the documents after the first of the changes `waits`; nothing if it is of others."""
    for remembered in (_MADE.get, _read_made):
        known = remembered(snapshot.home)
        if known and 0 < known.number <= len(waits) and known.on == _key(snapshot, waits[: known.number]):
            return known
    return _Made("", 0, {}, 0)


def _key(snapshot: Snapshot, waits: list[str]) -> str:
    """Return a checksum by which a state of the home, with the changes `waits` after it, is known."""
    # What an earlier release made of older documents is made again.
    versions = {name: one.get("schema_version") for name, one in sorted(snapshot.documents.items())}
    return files.checksum(files.json_line([snapshot.revision, snapshot.files, waits, versions]))


def _read_made(home: Path) -> _Made | None:
    with suppress(AetherError, OSError, KeyError, TypeError, ValueError):
        fields = unsealed(regular.read(home / MADE, regular.LOG_BYTES)) or {}
        return _Made(fields["on"], fields["number"], fields["documents"], fields["number"])
    return None


def _remember(home: Path, made: _Made) -> None:
    if made.number - made.kept >= KEPT_EACH and not only_looks():
        with suppress(AetherError, OSError):  # it is derived: the changes are read again
            fields = {"on": made.on, "number": made.number, "documents": made.documents}
            files.write_whole(home / MADE, seal_json(fields))
            made = made._replace(kept=made.number)
    _MADE[home] = made


def stored_keys(home: Path, after: int) -> set[str]:
    """Return the keys of the changes that are in the history after revision `after`."""
    return {entry.key for entry in (*folded_entries(home, after=after), *read_journal(home).entries)} - {""}


def finish(path: Path, *, fits: bool) -> None:
    """Remove the change at `path`, which is in the history; one that is damaged or no longer fits goes to quarantine."""
    home = path.parents[2]
    (home / MADE).unlink(missing_ok=True)
    if fits:
        path.unlink()
    else:
        kept = home / "quarantine" / f"{UNFIT}{path.name}"
        files.make_directory(kept.parent)
        os.replace(path, kept)
        files.sync_directory(kept.parent)
        what = f"a change that waited for the server no longer fits: it is in quarantine/{kept.name}."
        spool.log_failure(str(home), "share", "", what)
    files.sync_directory(path.parent)


def unfit(home: Path) -> list[Path]:
    """Return the changes in quarantine, which no longer fitted what others wrote."""
    return sorted((home / "quarantine").glob(f"{UNFIT}*"))


def tried_lately(home: Path) -> bool:
    """Return whether the server could not be reached a few seconds ago, by any process."""
    return seconds_left(home) > 0


def seconds_left(home: Path) -> int:
    """Return the seconds until the server is tried again after it could not be reached; 0 if it may be tried now."""
    try:
        passed = time.time() - os.stat(f"{home}/{TRIED}").st_mtime
    except OSError:
        return 0
    return math.ceil(TRIED_SECONDS - passed) if 0 <= passed < TRIED_SECONDS else 0


def note_try(home: Path, *, failed: bool) -> None:
    """Note that the server could not be reached now, or that it could."""
    with suppress(OSError, UnsafePath):
        if failed:
            files.make_directory((home / TRIED).parent)
            regular.touch(home / TRIED)
        else:
            (home / TRIED).unlink(missing_ok=True)


def _state_of(document: Any) -> str:
    return files.checksum(files.json_line(document))
