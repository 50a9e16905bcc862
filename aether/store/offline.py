"""The queue of a shared home: changes made while its server cannot be reached, one sealed file each, sent in their order later.

A change is planned on the newest state that the home knows, with what waits before it, and is acknowledged once its file
is written. When the server is back each is planned again on what others wrote meanwhile, or fitted to it
(`commit.send_queue`). What no longer fits goes to quarantine as it is, and doctor reports it. A change has a key, which is in its line as well: one that is in
the history already is never sent twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aether import regular
from aether.errors import AetherError, UnsafePath
from aether.schemas import check
from aether.store import files, ledger, recovery, spool
from aether.store.merge import rules_of
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
from aether.tuples import NamedTuple
from aether.types import Change, Patch

DIRECTORY = ledger.QUEUE
# How the name of a change in quarantine starts.
UNFIT = "queued-"
_NAME = lazy(r"\d{8,}-[0-9a-f]{32}\.json")
# Touched at each try that failed: for some seconds no other process waits for the server again.
TRIED, TRIED_SECONDS = "share/tried", ledger.TRIED_SECONDS


class Queued(NamedTuple):
    """A change that waits for the server."""

    path: Path
    entry: Entry
    """With the revision that the home had."""
    on: dict[str, str]
    """The checksum of each document that it changes, as it was before."""
    ids: dict[str, recovery.Ids]
    """The list entries that it changes, for each document; a change of an earlier release has none."""


def waiting(home: Path) -> list[Path]:
    """Return the files of the changes that wait, oldest first; not of those that git tracks, which others wrote."""
    try:
        names = [name for name in os.listdir(f"{home}/{DIRECTORY}") if _NAME.fullmatch(name)]
    except OSError:
        return []
    others = tracked(home) if names else frozenset[str]()
    return [home / DIRECTORY / name for name in sorted(names) if name not in others]


def tracked(home: Path) -> frozenset[str]:
    """Return the names of the changes that came with a repository: nobody here made them, and they are never sent."""
    return spool.tracked(str(home), f"{DIRECTORY}/")


def put(home: Path, entry: Entry, before: Mapping[str, Any]) -> None:
    """Keep `entry`, planned for the documents `before`, durably until it can be sent; the caller holds the lock of the home.

    Raises:
        OSError: it was not kept.
    """
    files.make_directory(home / DIRECTORY)
    last = waiting(home)[-1:]
    number = int(last[0].name.partition("-")[0]) + 1 if last else 1
    on = {name: _state_of(before[name]) for name in entry.patches}
    ids = {name: recovery.ids_of(before[name], patch) for name, patch in entry.patches.items()}
    data = files.seal_json({**entry_fields(entry), "on": on, "ids": ids})
    files.write_whole(home / DIRECTORY / f"{number:08d}-{entry.key}.json", data)


def read(path: Path) -> Queued | None:
    """Return the change in the file at `path`; None if it is damaged."""
    with suppress(AetherError, OSError, KeyError, TypeError, ValueError, AttributeError):
        fields = files.unsealed(regular.read(path, regular.LOG_BYTES))
        if fields:
            return Queued(path, entry_of(fields), dict(fields["on"]), dict(fields.get("ids", {})))
    return None


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
            fit = None if known is None else recovery.refitted(known, patch, inverse, rules, ids)
        if fit is None:
            return None
        made[name] = fit
    return Change(made, {**entry.appends, **planned.appends})


def present(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` with the documents as they are after what waits, for reading and planning; never to be stored."""
    documents = dict(snapshot.documents)
    for path in waiting(snapshot.home):
        queued = read(path)
        change = fitted(documents, queued) if queued else None
        patches = change.patches if change else {}
        documents |= {name: apply(documents[name], patch) for name, patch in patches.items()}
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
