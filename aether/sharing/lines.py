"""Lines of the ledger: what a line of the journal must hold for the replicas of a colony to take it.

Each replica checks a line of the ledger before it takes it (`checked_news`), whoever wrote it, and checks its own lines in
the same way before it sends them (`require_accepted`). A line that fails is *set aside*: a line without effect takes its
place in the journal, the same in every replica, and the line itself goes to `quarantine/` with the name of who sent it. That keeps
replicas the same because all of them know the same lines: what a line may hold belongs to a version of the server's tables.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aether import clock, regular
from aether.errors import AetherError, CorruptDocument, InvalidInput, shown
from aether.schemas import check, migrations
from aether.store import documents, files, record_files
from aether.store.authors import AETHER
from aether.store.files import checked_json
from aether.store.journal import Entry, scan_journal
from aether.store.ledger import FOREIGN, PLACE, News
from aether.store.log import checksum_of, seal_json, unsealed
from aether.store.patch import apply, json_equal
from aether.store.snapshot import Snapshot, advance, load
from aether.types import JsonObject

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9T:.Z+-]+")
_TIME_OF = re.compile(rb'\{"revision":\d+,"at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"')
_CHECKSUM = re.compile("[0-9a-f]{16}")
# How the name of a line starts that was set aside.
UNREADABLE = "line-"
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
        what = f"line {snapshot.revision + 1} of the colony cannot be read: {why.rstrip('.')}."
        raise CorruptDocument(what, fix=FOREIGN, where=str(snapshot.home)) from reason


def checked_news(home: Path, news: News) -> News:
    """Return the news of the journal of `home`, with a line without effect in the place of each that cannot be read.

    Raises:
        CorruptDocument: one cannot be read, and that may be so because documents of this home are being edited or damaged.
    """
    snapshot = load(home)
    try:
        after_lines(snapshot, news.lines)
    except CorruptDocument:
        if snapshot.irregular or snapshot.known or snapshot.harm:
            raise
        return news._replace(lines=[*_readable(snapshot, news.lines)])
    return news


def _readable(snapshot: Snapshot, lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield `lines` after keeping those that cannot be read in quarantine, each replaced by its placeholder."""
    home = snapshot.home
    for line in lines:
        revision, taken = snapshot.revision + 1, line
        try:
            snapshot = after_lines(snapshot, [line])
        except CorruptDocument as reason:
            about = {
                "revision": revision,
                "member": _member_of(line),
                "why": reason.what,
                "line": line.decode("utf-8", "backslashreplace"),
            }
            path = home / "quarantine" / f"{UNREADABLE}{revision:012d}.json"
            files.save(path, files.json_document(about))
            taken = placeholder(revision, line)
            snapshot = after_lines(snapshot, [taken])
        yield taken


def placeholder(revision: int, line: bytes) -> bytes:
    """Return the line without effect that takes the place of `line`, as `aether.remove_line` of the server makes it.

    That of a placeholder is itself.
    """
    at, checksum = _TIME_OF.match(line), checksum_of(line)
    try:
        time = at.group(1).decode() if at else ""
        clock.parse(time)
    except InvalidInput:
        time = "1970-01-01T00:00:00.000000Z"
    known = checksum if _CHECKSUM.fullmatch(checksum) else ""
    return seal_json(
        {"revision": revision, "at": time, "by": AETHER, "operation": "set aside", "replaces": known}
    )


def as_taken(home: Path, lines: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return lines of the ledger, by their revisions, as the journal of `home` has them: those set aside as placeholders."""
    unreadable = {about["revision"] for _, about in set_aside(home)}
    return {
        number: placeholder(number, line) if number in unreadable else line for number, line in lines.items()
    }


def words_of(about: JsonObject) -> str:
    """Return, in words, a line that was set aside."""
    member = shown(str(about["member"])) if about["member"] else "an unknown member"
    return f"{about['why'].rstrip('.')}. {member} sent it, and it has no effect."


def _member_of(line: bytes) -> str:
    with suppress(AetherError, *_NO_LINE):
        return str((unsealed(line) or {})["member"])
    return ""


def set_aside(home: Path) -> list[tuple[Path, JsonObject]]:
    """Return the lines of others that were set aside, as `home` keeps them in quarantine until a person removes them."""
    kept: list[tuple[Path, JsonObject]] = []
    for path in sorted((home / "quarantine").glob(f"{UNREADABLE}*.json")):
        with suppress(AetherError, OSError, *_NO_LINE):
            about = files.parse_json(regular.read(path, regular.LOG_BYTES), where=path.name)
            kept.append((path, {name: about[name] for name in ("revision", "member", "why")}))
    return kept


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
    before = snapshot._replace(documents=_before(snapshot))
    after = before
    for entry in journal.entries:
        _require_known(entry)
        state = after.documents
        after = advance(after, [entry], end=snapshot.end, torn=snapshot.torn, files=snapshot.files)
        _require_inverse(entry, state, after.documents)
    _require_documents(snapshot, after, journal.entries)
    return after


def _require_inverse(entry: Entry, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Check that the inverse of an entry takes back what it did, and nothing else: an undo relies on it."""
    if entry.inverse.keys() != entry.patches.keys() or not all(
        json_equal(apply(after[name], entry.inverse[name]), before[name]) for name in entry.patches
    ):
        raise ValueError("its inverse is that of another change")


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
    words = (entry.at, entry.by, entry.operation, entry.reason, entry.part, entry.key, entry.member)
    if not all(isinstance(word, str) for word in words) or entry.erased:
        raise TypeError
    if entry.operation == "undo" and not (entry.patches and entry.reason.rpartition(" ")[2].isdecimal()):
        raise ValueError("it undoes nothing")
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
