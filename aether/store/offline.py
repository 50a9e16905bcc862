"""The queue of a shared home: changes made while its server cannot be reached, one sealed file each, sent in their order later.

A change is planned on the newest state that the home knows, with what waits before it, and is acknowledged once its file
is written. When the server is back each is fitted to what others wrote meanwhile (`commit.send_queue`). What no longer
fits goes to quarantine as it is, and doctor reports it. A change has a key, which is in its line as well: one that is in
the history already is never sent twice.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aether import regular
from aether.errors import AetherError, UnsafePath
from aether.schemas import check
from aether.store import files, recovery, spool
from aether.store.merge import rules_of
from aether.store.patch import apply
from aether.store.snapshot import Entry, Snapshot, entry_fields, entry_of, folded_entries, read_journal
from aether.tuples import NamedTuple
from aether.types import Patch

DIRECTORY = "share/queue"
# How the name of a change in quarantine starts.
UNFIT = "queued-"
_NAME = re.compile(r"\d{8,}-[0-9a-f]{32}\.json")
# Touched at each try that failed: for some seconds no other process waits for the server again.
TRIED, TRIED_SECONDS = "share/tried", 30.0


class Queued(NamedTuple):
    """A change that waits for the server."""

    path: Path
    entry: Entry
    """With the revision that the home had."""
    on: dict[str, str]
    """The checksum of each document that it changes, as it was before."""


def waiting(home: Path) -> list[Path]:
    """Return the files of the changes that wait, oldest first."""
    try:
        names = os.listdir(f"{home}/{DIRECTORY}")
    except OSError:
        return []
    return [home / DIRECTORY / name for name in sorted(names) if _NAME.fullmatch(name)]


def put(home: Path, entry: Entry, before: Mapping[str, Any]) -> None:
    """Keep `entry`, planned for the documents `before`, durably until it can be sent; the caller holds the lock of the home.

    Raises:
        OSError: it was not kept.
    """
    files.make_directory(home / DIRECTORY)
    last = waiting(home)[-1:]
    number = int(last[0].name.partition("-")[0]) + 1 if last else 1
    on = {name: _state_of(before[name]) for name in entry.patches}
    data = files.seal_json({**entry_fields(entry), "on": on})
    files.write_whole(home / DIRECTORY / f"{number:08d}-{entry.key}.json", data)


def read(path: Path) -> Queued | None:
    """Return the change in the file at `path`; None if it is damaged."""
    with suppress(AetherError, OSError, KeyError, TypeError, ValueError, AttributeError):
        fields = files.unsealed(regular.read(path, regular.LOG_BYTES))
        if fields:
            return Queued(path, entry_of(fields), dict(fields["on"]))
    return None


def fitted(documents: Mapping[str, Any], queued: Queued) -> dict[str, Patch] | None:
    """Return the patches that do to `documents` what the change did to those it was planned for; None if it does not fit."""
    made = {}
    for name, patch in queued.entry.patches.items():
        fit = patch if name in documents else None
        if fit is not None and _state_of(documents[name]) != queued.on.get(name):
            inverse = queued.entry.inverse.get(name, [])
            fit = recovery.refitted(documents[name], patch, inverse, rules_of(check.schema(name)))
        if fit is None:
            return None
        made[name] = fit
    return made


def present(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` with the documents as they are after what waits, for reading and planning; never to be stored."""
    documents = dict(snapshot.documents)
    for path in waiting(snapshot.home):
        queued = read(path)
        patches = fitted(documents, queued) if queued else None
        documents |= {name: apply(documents[name], patch) for name, patch in (patches or {}).items()}
    return snapshot._replace(documents=documents)


def stored_keys(home: Path, after: int) -> set[str]:
    """Return the keys of the changes that are in the history after revision `after`."""
    return {entry.key for entry in (*folded_entries(home, after=after), *read_journal(home).entries)} - {""}


def finish(path: Path, *, fits: bool) -> None:
    """Remove the change at `path`, which is in the history; one that is damaged or no longer fits goes to quarantine."""
    if fits:
        path.unlink()
    else:
        home = path.parents[2]
        kept = home / "quarantine" / f"{UNFIT}{path.name}"
        files.make_directory(kept.parent)
        os.replace(path, kept)
        files.sync_directory(kept.parent)
        what = f"a change that waited for the server no longer fits: it is in quarantine/{kept.name}."
        spool.log_failure(str(home), "share", "", what)
    files.sync_directory(path.parent)


def tried_lately(home: Path) -> bool:
    """Return whether the server could not be reached a few seconds ago, by any process."""
    try:
        return 0 <= time.time() - os.stat(f"{home}/{TRIED}").st_mtime < TRIED_SECONDS
    except OSError:
        return False


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
