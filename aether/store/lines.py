"""Lines of the ledger: what a line of the journal must hold for the replicas of a colony to take it.

Whoever wrote a line of the ledger, each replica checks it before it takes it (`after_lines`), so who
makes one checks the same first (`require_taken`).
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from aether import clock
from aether.errors import AetherError, CorruptDocument, InvalidInput, shown
from aether.schemas import check, migrations
from aether.store import documents, ledger, record_files
from aether.store.files import checked_json
from aether.store.snapshot import Entry, Snapshot, advance, scan_journal
from aether.text.regex import lazy
from aether.types import JsonObject

_TIME = lazy(r"[0-9]{4}-[0-9]{2}-[0-9T:.Z+-]+")


def after_lines(snapshot: Snapshot, lines: list[bytes]) -> Snapshot:
    """Return `snapshot` after lines of the ledger; nobody vouches for those who wrote them, so each is checked.

    Raises:
        CorruptDocument: one of them cannot be read, or does not follow.
    """
    try:
        return _checked_after(snapshot, lines)
    except (AetherError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as reason:
        why = str(reason) if type(reason) is ValueError else "it has other fields"
        why = reason.what if isinstance(reason, AetherError) else why
        raise unreadable(snapshot.home, snapshot.revision + 1, why) from reason


def _checked_after(snapshot: Snapshot, lines: list[bytes]) -> Snapshot:
    found = scan_journal(b"".join(lines), base=snapshot.revision, where=ledger.PLACE)
    if found.lines != lines:
        raise ValueError("it is damaged, or has another number")
    for entry in found.entries:
        _require_known(entry)
    old = snapshot._replace(documents=_before(snapshot))
    made = advance(old, found.entries, end=snapshot.end, torn=snapshot.torn, files=snapshot.files)
    _require_documents(snapshot, made, found.entries)
    return made


def require_taken(snapshot: Snapshot, after: Snapshot, entry: Entry) -> None:
    """Check that other replicas will take `entry`, which makes `after` of `snapshot`; else it is not sent.

    Raises:
        InvalidInput: they will not.
    """
    try:
        require_valid(snapshot, after, [entry])
    except (AetherError, ValueError) as reason:
        why = reason.what if isinstance(reason, AetherError) else str(reason)
        what = f"the other machines of the colony would refuse the change: {why.rstrip('.')}."
        raise InvalidInput(
            what, fix="Correct the value. Nothing was stored.", where=str(snapshot.home)
        ) from reason


def require_valid(snapshot: Snapshot, after: Snapshot, entries: list[Entry]) -> None:
    """Check what `entries` hold, and the documents of which they made `after` of `snapshot`.

    Raises:
        AetherError, KeyError, TypeError, ValueError, AttributeError: they hold something else than this aether knows.
    """
    for entry in entries:
        _require_known(entry)
    _require_documents(snapshot, after, entries)


def _require_documents(snapshot: Snapshot, after: Snapshot, entries: list[Entry]) -> None:
    before = _before(snapshot)
    for name in sorted({name for entry in entries for name in entry.patches}):
        value = after.documents[name]
        if not isinstance(value, dict) or not value.get("schema_version"):
            raise ValueError(f"it makes no document of {name}")
        changed = _unlike(before[name], migrations.current(name, value))
        if faults := check.findings(name, changed, partly=changed is not value):
            raise ValueError(f"{faults[0].where}: {faults[0].message}")


def _before(snapshot: Snapshot) -> dict[str, Any]:
    # None: the state before an edit by hand that cannot be built again.
    return {**snapshot.documents, **{name: one for name, one in snapshot.known.items() if one is not None}}


def _require_known(entry: Entry) -> None:
    """Check that an entry of the ledger names and holds only what this aether knows; its patches are tried elsewhere.

    Raises:
        AetherError, KeyError, TypeError, ValueError, AttributeError: it does not.
    """
    words = (entry.at, entry.by, entry.operation, entry.reason, entry.part, entry.key)
    if not all(isinstance(word, str) for word in words):
        raise TypeError
    clock.parse(entry.at)
    if not _TIME.fullmatch(entry.at):  # the name of a file is made of it
        raise ValueError(f"{shown(entry.at)} is not a time")
    for name, patch in (*entry.patches.items(), *entry.inverse.items()):
        if name not in documents.NAMES:
            raise ValueError(f"{shown(name)} is not a document")
        for step in patch:
            checked_json(step.get("value"), where=name, above=step["path"].count("/"))
    for kind, records in entry.appends.items():
        if kind not in record_files.KINDS or len(records) > record_files.RECORDS_PER_REVISION:
            raise ValueError(f"{shown(kind)} is not an append-only file")
        if not all(_is_record(kind, checked_json(record, where=kind)) for record in records):
            raise ValueError(f"a record of {kind} has other fields")


def _is_record(kind: str, record: JsonObject) -> bool:
    """Return whether a record has the fields that its readers rely on, and none that folding gives it."""
    if not {"revision", "nth", "checksum"}.isdisjoint(record):
        return False
    if kind != "items":
        return isinstance(record.get("timestamp" if kind == "history" else "at"), str)
    item = record["item"]
    metadata = item.get("metadata") or {}
    return all(isinstance(word, str) for word in (record["why"], item["id"])) and isinstance(metadata, dict)


def _unlike(before: Any, after: Any) -> Any:
    """Return `after` without what `before`, which was checked, has too: entries of lists, and members of objects outside of them.

    >>> kept = {"id": 1}
    >>> _unlike({"items": [kept], "by": kept}, {"items": [kept, {"id": 2}], "by": kept, "name": "a"})
    {'items': [{'id': 2}], 'name': 'a'}
    """
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() - after.keys():
            return after  # what it lacks may be required
        return {
            key: _unlike(before.get(key), value)
            for key, value in after.items()
            if key not in before or before[key] is not value
        }
    if isinstance(before, list) and isinstance(after, list):
        if all(map(operator.is_, before, after)):
            return after[len(before) :]  # most changes append
        held = set(map(id, before))
        return [entry for entry in after if id(entry) not in held]
    return after


def unreadable(home: Path, revision: int, why: str) -> CorruptDocument:
    """Return the error of a line of the ledger that cannot be read."""
    what = f"the ledger has a line at revision {revision} that this aether cannot read: {why.rstrip('.')}."
    return CorruptDocument(what, fix=ledger.FOREIGN, where=str(home))
