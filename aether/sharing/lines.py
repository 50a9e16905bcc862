"""Lines of the ledger: what a line of the journal must hold for the replicas of a colony to take it.

Each replica checks a line of the ledger before it takes it (`checked_news`), whoever wrote it, and checks its own lines in
the same way before it sends them (`require_accepted`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aether import clock
from aether.errors import AetherError, CorruptDocument, InvalidInput, shown
from aether.schemas import check, migrations
from aether.store import documents, record_files
from aether.store.files import checked_json
from aether.store.ledger import FOREIGN, PLACE, News
from aether.store.snapshot import Entry, Snapshot, advance, load, scan_journal
from aether.types import JsonObject

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9T:.Z+-]+")
# What reading a line may fail with, whatever is in it.
_NO_LINE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def after_lines(snapshot: Snapshot, lines: Sequence[bytes]) -> Snapshot:
    """Return `snapshot` after lines of the ledger; nobody vouches for those who wrote them, so each is checked.

    Raises:
        CorruptDocument: one of them cannot be read, or does not follow.
    """
    try:
        return _checked_after(snapshot, lines)
    except (AetherError, *_NO_LINE) as reason:
        why = str(reason) if type(reason) is ValueError else "it has other fields"
        why = reason.what if isinstance(reason, AetherError) else why
        what = f"the ledger has a line at revision {snapshot.revision + 1} that this aether cannot read: {why.rstrip('.')}."
        raise CorruptDocument(what, fix=FOREIGN, where=str(snapshot.home)) from reason


def checked_news(home: Path, news: News) -> News:
    """Return the news of the journal of `home` up to the first line that cannot be read.

    Raises:
        CorruptDocument: that is the first of them.
    """
    snapshot, good = load(home), 0
    try:
        after_lines(snapshot, news.lines)
    except CorruptDocument:
        with suppress(CorruptDocument):
            for line in news.lines:
                snapshot, good = after_lines(snapshot, [line]), good + 1
        if not good:
            raise
        return News(news.head, news.lines[:good])
    return news


def require_accepted(home: Path, lines: Sequence[bytes]) -> None:
    """Check that other replicas will take `lines` after the journal of `home`; else they are not sent.

    Raises:
        InvalidInput: they will not.
    """
    try:
        _checked_after(load(home), lines)
    except (AetherError, *_NO_LINE) as reason:
        why = reason.what if isinstance(reason, AetherError) else str(reason)
        what = f"the other machines of the colony would refuse the change: {why.rstrip('.')}."
        raise InvalidInput(what, fix="Correct the value. Nothing was stored.", where=str(home)) from reason


def _checked_after(snapshot: Snapshot, lines: Sequence[bytes]) -> Snapshot:
    journal = scan_journal(b"".join(lines), base=snapshot.revision, where=PLACE)
    if journal.lines != list(lines):
        raise ValueError("it is damaged, or has another number")
    for entry in journal.entries:
        _require_known(entry)
    before = snapshot._replace(documents=_before(snapshot))
    after = advance(before, journal.entries, end=snapshot.end, torn=snapshot.torn, files=snapshot.files)
    _require_documents(snapshot, after, journal.entries)
    return after


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
