"""Asked changes by name: what the process that has the lock of a shared home makes for others that wait for it.

Each is planned on the state after the one before, so the order of those who wait does not matter to them: items, signals
with the events of those that faded, and workers, each with an id of its own. How they are asked for is in `store.together`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aether.api.home import counter_of
from aether.clock import new_id
from aether.memory import items
from aether.memory.items import add_items, token_usage
from aether.store import files
from aether.store.snapshot import Entry, Snapshot
from aether.store.together import OPERATIONS, Operation
from aether.types import Change, JsonObject


def _addition(snapshot: Snapshot, arguments: JsonObject, moment: datetime) -> Change:
    entries = items.checked_entries(files.checked_json(arguments["entries"], where="item"))
    count = counter_of(snapshot.documents["memory"])
    return add_items(snapshot.documents, entries, now=moment, new_id=new_id, count=count)


def _added(snapshot: Snapshot, entry: Entry) -> list[Any]:
    steps = [step for step in entry.patches[items.DOCUMENT] if step["path"] == f"{items.PART}/items/-"]
    evicted = [record["item"]["id"] for record in entry.appends.get("items", [])]
    needed = token_usage(snapshot.documents[items.DOCUMENT]).needed
    return [[step["value"]["id"] for step in steps], evicted, needed]


def _signal(snapshot: Snapshot, arguments: JsonObject, moment: datetime) -> Change:
    from aether.memory import signals  # most processes ask for items only

    return signals.deposit(snapshot.documents, arguments, now=moment, new_id=new_id)


def _emitted(_snapshot: Snapshot, entry: Entry) -> list[Any]:
    from aether.memory import signals

    return [list(signals.deposited(entry.patches[signals.DOCUMENT])), entry.appends.get("events", [])]


def _registration(snapshot: Snapshot, arguments: JsonObject, moment: datetime) -> Change:
    from aether.memory import colony

    fields = {name: arguments[name] for name in ("caste", "task")}
    return colony.register_worker(snapshot.documents[colony.DOCUMENT], arguments["id"], now=moment, **fields)


def _registered(_snapshot: Snapshot, entry: Entry) -> list[Any]:
    from aether.memory import colony

    return [entry.patches[colony.DOCUMENT][0]["value"], []]


def _release(snapshot: Snapshot, arguments: JsonObject, _at: datetime) -> Change:
    from aether.memory import colony

    return colony.release_worker(snapshot.documents[colony.DOCUMENT], arguments["id"])


def _released(_snapshot: Snapshot, entry: Entry) -> list[Any]:
    from aether.memory import colony

    return [entry.inverse[colony.DOCUMENT][0]["value"], []]


# The results of all but `add` are what the change returns, and its events.
OPERATIONS |= {
    "add": Operation(_addition, _added),
    "emit": Operation(_signal, _emitted),
    "register worker": Operation(_registration, _registered),
    "release worker": Operation(_release, _released),
}
