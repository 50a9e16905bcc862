"""Steps of the archive: one conversation ages, returns or is added, whole or not at all, and only once.

A step holds the lock of the home, then that of the conversation. It names itself in `archive/step.json`, writes the fuller
form to grace, writes the archive file (the commit point), commits its receipt, and removes what it replaces. `settle` ends a
step that a killed process left: forwards after the commit point, else back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from aether import clock, regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, NotFound, shown
from aether.redact.redact import redact, redacted
from aether.schemas import check
from aether.store import (
    archive_store,
    conversation_list,
    conversations,
    documents,
    files,
    record_files,
    seals,
    search_index,
)
from aether.store.authors import ARCHIVE, Author
from aether.store.commit import commit_locked, write_lock
from aether.store.files import REPAIR, storage_errors
from aether.store.log import seal_json, unsealed
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import Change, Finding, JsonObject

SCHEMA = "archived_conversation"
ReadAgain = Callable[[str, bytes], JsonObject]
"""From the id of a conversation and the file that it was added as to its archive file."""


def add(
    home: Path, additions: Sequence[tuple[JsonObject, bytes | None]], *, packed: bool, now: datetime
) -> list[str]:
    """Write new archive files, each with the file it was read from, which is kept in grace; return their paths.

    Raises:
        Conflict: one of them is in the home by now.
        CorruptDocument, InvalidDocument: the file in the place of one is damaged, or of another version.
        LockTimeout, StorageFailed: some were not written; the next step ends those that were.
    """
    names = [archive_store.name_of(value, packed=packed) for value, _ in additions]
    with write_lock(home):
        settle(home, now=now)
        for name, (value, _) in zip(names, additions, strict=True):
            archive_store.require_free(home, name, value["id"])
            _require_new(home, value["id"])
        graces = [value["grace"]["file"] for value, data in additions if data is not None]
        archive_store.set_step(home, {"kind": "add", "new": names, "grace": graces})
        for name, (value, data) in zip(names, additions, strict=True):
            if data is not None:
                archive_store.write_grace(home, value["grace"]["file"], data)
            archive_store.write(home, name, value)
        conversations.retire(home, [value["id"] for value, _ in additions], now=now)
        archive_store.put(home, zip(names, (value for value, _ in additions), strict=True))
        archive_store.set_step(home, None)
    return names


def _require_new(home: Path, id: str) -> None:
    if archive_store.find(home, id) or conversations.path_of(home, id).exists():
        raise Conflict(f"conversation {shown(id)} exists by now.", fix="Try again.", where=str(home))


def take(
    home: Path, value: JsonObject, *, old: JsonObject | None, log: bytes = b"", grace: bytes | None = None, packed: bool,
    now: datetime,
) -> int:  # fmt: skip
    """Replace a conversation's `old` archive file, or its `log`, by `value`, and return the bytes on disk it saves.

    The last of its steps is the receipt, which is committed. `grace` is the fuller form, None if it is stored already.

    Raises:
        Conflict: the conversation was changed meanwhile, or its log is damaged; nothing was changed.
        LockTimeout, StorageFailed: nothing was changed, or the next step ends this one.
    """
    id = value["id"]  # noqa: A001
    with write_lock(home):
        settle(home, now=now)
        with conversations.held(home, id) if old is None else nullcontext() as data:
            row = archive_store.find(home, id)
            current = archive_store.read(home, row.name) if row else None
            is_same = data == log and not row if old is None else current and current["checksum"] == old["checksum"]  # fmt: skip
            if not is_same:
                what = f"conversation {shown(id)} was changed meanwhile."
                raise Conflict(what, fix="Try again.", where=row.name if row else id)
            step = {
                "kind": "age", "id": id, "receipt": value["steps"][-1]["id"],
                "new": archive_store.name_of(value, packed=packed), "grace": (value["grace"] or {}).get("file", ""),
                "old": row.name if row else "", "old_grace": row.grace if row else "", "live": old is None,
            }  # fmt: skip
            before = bytes_of(home, id)
            archive_store.set_step(home, step)
            if grace is not None:
                archive_store.write_grace(home, step["grace"], grace)
            archive_store.write(home, step["new"], value)
            _finish_age(home, step, value, now, again=False)
    return before - bytes_of(home, id)


def bytes_of(home: Path, id: str) -> int:
    """Return the bytes on disk of a conversation, live or archived."""
    row = archive_store.find(home, id)
    log = seals.place(home, conversations.path_of(home, id))
    return archive_store.size(home, log) + (row.bytes if row else 0)


def restore(home: Path, id: str, receipt: JsonObject, *, now: datetime) -> Path:
    """Restore the log of a conversation from grace, byte for byte, and return its path.

    Raises:
        NotFound: it is not archived, or its grace is over.
        CorruptDocument: its fuller form is damaged.
        Conflict: it is live by now.
        LockTimeout, StorageFailed: nothing was changed, or the next step ends this one.
    """
    with write_lock(home):
        settle(home, now=now)
        row = archive_store.find(home, id)
        grace = archive_store.read(home, row.name)["grace"] if row else None
        if not row or not grace:
            raise NotFound(f"{shown(id)} has no fuller form.", fix='See "aether archive list".', where=id)
        data = archive_store.read_grace(home, grace)
        with conversations.held(home, id) as log:
            if log:
                raise Conflict(f"conversation {shown(id)} is live.", fix="Nothing to do.", where=id)
            step = {"kind": "restore", "id": id, "old": row.name, "grace": row.grace, "receipt": receipt}
            archive_store.set_step(home, step)
            path = conversations.put_back(home, id, data, now=now, restored=True)
            _finish_restore(home, step, now, again=False)
    return path


def set_aside(home: Path, id: str, *, now: datetime) -> bool:
    """Move an archived conversation and its fuller form to quarantine, and return whether it was archived.

    Raises:
        LockTimeout, StorageFailed: nothing was changed, or the next step ends this one.
    """
    with write_lock(home):
        settle(home, now=now)
        row = archive_store.find(home, id)
        if row is None:
            return False
        step = {"kind": "remove", "id": id, "names": [name for name in (row.name, row.grace) if name]}
        archive_store.set_step(home, step)
        _end_remove(home, step, now)
        archive_store.set_step(home, None)
    return True


def end_open(home: Path, *, now: datetime) -> None:
    """End the step that a killed process left, if there is one.

    Raises:
        LockTimeout, StorageFailed: it is unchanged.
    """
    if not archive_store.is_empty(home) and archive_store.open_step(home) is not None:
        with write_lock(home):
            settle(home, now=now)


def settle(home: Path, *, now: datetime) -> str:
    """End the step that a killed process left, and return a report, "" without one; the caller holds the lock."""
    step = archive_store.open_step(home)
    if step is None:
        return ""
    endings = {"add": _end_add, "age": _end_age, "restore": _end_restore, "remove": _end_remove}
    with suppress(KeyError, TypeError):  # it is not a step of this home
        report = endings[step["kind"]](home, step, now)
        archive_store.set_step(home, None)
        return report
    kept = archive_store.set_step_aside(home)
    archive_store.rebuild_index(home)
    return f"kept archive/step.json, which is not a step of this home, as {kept}"


def _end_add(home: Path, step: JsonObject, now: datetime) -> str:
    written = []
    for name in step["new"]:
        with suppress(AetherError):
            written.append((name, archive_store.read(home, name)))
    conversations.retire(home, [value["id"] for _, value in written], now=now)
    archive_store.put(home, written)
    in_use = {row.grace for row in archive_store.rows(home)}
    for name in {*step["grace"]} - in_use:
        archive_store.remove(home, name)
    return f"entered {len(written)} of {len(step['new'])} conversations that were being added"


def _end_age(home: Path, step: JsonObject, now: datetime) -> str:
    id, value = step["id"], None  # noqa: A001
    with suppress(AetherError):
        value = archive_store.read(home, step["new"])
    is_written = value is not None and bool(value["steps"]) and value["steps"][-1]["id"] == step["receipt"]
    with conversations.held(home, id) if step["live"] else nullcontext(b"") as log:
        is_same = not log or (value and regular.digest(log) == value["steps"][-1]["sha256_before"])
        if value and is_written and is_same:
            _finish_age(home, step, value, now, again=True)
            return f"completed a step of conversation {shown(id)}"
        if is_written:  # it was written to since: it is live
            archive_store.remove(home, step["new"])
        if log:
            conversations.put_back(home, id, log, now=now)
        if step["grace"] and step["grace"] != step["old_grace"]:
            archive_store.remove(home, step["grace"])
    if step["live"]:
        archive_store.take_out(home, id)
    return f"undid a step of conversation {shown(id)}"


def _finish_age(home: Path, step: JsonObject, value: JsonObject, now: datetime, *, again: bool) -> None:
    """Do what follows the commit point; `again`: parts of it may be done already."""
    if step["live"]:
        conversations.retire(home, [step["id"]], now=now)
    _commit_receipt(home, value["steps"][-1], again=again, now=now)
    if step["live"]:
        conversations.remove_log(home, step["id"])
    for old, new in (("old", "new"), ("old_grace", "grace")):
        if step[old] and step[old] != step[new]:
            archive_store.remove(home, step[old])
    archive_store.put(home, [(step["new"], value)])
    archive_store.set_step(home, None)


def _end_restore(home: Path, step: JsonObject, now: datetime) -> str:
    with conversations.held(home, step["id"]) as log:
        if not log:
            return f"undid the return of conversation {shown(step['id'])}"
        conversations.put_back(home, step["id"], log, now=now, restored=True)
        _finish_restore(home, step, now, again=True)
    return f"completed the return of conversation {shown(step['id'])}"


def _finish_restore(home: Path, step: JsonObject, now: datetime, *, again: bool) -> None:
    _commit_receipt(home, step["receipt"], again=again, now=now)
    archive_store.remove(home, step["old"])
    archive_store.remove(home, step["grace"])
    archive_store.take_out(home, step["id"])
    archive_store.set_step(home, None)


def _end_remove(home: Path, step: JsonObject, now: datetime) -> str:
    """Move the files of a conversation to quarantine; again for those that a killed process left."""
    conversations.strike(home, step["id"], now=now)
    for name in step["names"]:
        _quarantine(home, name, now)
        archive_store.remove(home, name)
    archive_store.take_out(home, step["id"])
    return f"completed the removal of conversation {shown(step['id'])}"


def _commit_receipt(home: Path, receipt: JsonObject, *, again: bool, now: datetime) -> None:
    """Commit a receipt; `again`: it may be committed already. The caller holds the lock of the home."""

    def plan(snapshot: Snapshot) -> Change:
        records = record_files.records(snapshot, "receipts", holding=[("id", receipt["id"])]) if again else ()
        is_new = all(record.get("id") != receipt["id"] for _, record in records)
        return Change({}, {"receipts": [receipt]} if is_new else {})

    author = Author("restore" if receipt["rule"] == "restored" else "age", by=ARCHIVE)
    commit_locked(home, plan, author, now=now)


def _quarantine(home: Path, name: str, now: datetime) -> str:
    """Copy a file of the archive to quarantine, and return the path of the copy, "" if it is missing."""
    path = archive_store.placed(home, name)
    with storage_errors(path), suppress(FileNotFoundError):
        data = regular.read(path, regular.LOG_BYTES)
        return seals.place(home, documents.quarantine(home, f"archive-{path.name}", data, at=clock.stamp(now)))  # fmt: skip
    return ""


# --- Copies that leave the home


def exported(home: Path) -> Iterator[JsonObject]:
    """Yield each archived conversation with its fuller form in grace, without secrets."""
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name)
            fuller = archive_store.read_grace(home, value["grace"]) if value["grace"] else None
        except (AetherError, KeyError) as reason:
            yield {"problem": str(reason)}
            continue
        record: JsonObject = {"file": redacted(value)}
        if fuller is not None:
            kind = archive_store.grace_kind(value["grace"]["file"])
            if kind == "conversation":
                lines = map(unsealed, fuller.splitlines(keepends=True))
                record["records"] = [redacted(line) for line in lines if line]
            elif kind == "dict":
                record["before"] = redacted(archive_store.parsed(fuller, where=name))
            else:
                record |= _exported_file(fuller)
        yield record


def _exported_file(data: bytes) -> JsonObject:
    """Return a file that was added: its text without secrets; in base64 if it is not UTF-8, left out if that has secrets."""
    with suppress(UnicodeError):
        return {"text": redact(data.decode())}
    plain = data
    if data.startswith(b"\x1f\x8b"):
        with suppress(CorruptDocument):
            plain = files.gunzipped(data, where="")
    for encoding in (json.detect_encoding(plain), "latin-1"):
        with suppress(UnicodeError):
            text = plain.decode(encoding)
            if redact(text) != text:
                return {}
    return {"base64": base64.b64encode(data).decode()}


def importable(given: Any) -> list[JsonObject]:
    """Return the archived conversations of an export that have a file, checked against their schema.

    Raises:
        InvalidDocument: one of them does not match.
    """
    records = []
    for nth, record in enumerate(given if isinstance(given, list) else []):
        if isinstance(record, dict) and "file" in record:
            faults = [finding.message for finding in check.findings(SCHEMA, record["file"])]
            try:
                base64.b64decode(record.get("base64", ""), validate=True)
            except (TypeError, ValueError) as reason:
                faults.append(f"its file is not base64 ({reason}).")
            if faults:
                raise InvalidDocument(faults[0], fix="Export the home again.", where=f"archived[{nth}]")
            records.append(record)
    return records


def bring_in(home: Path, given: Sequence[JsonObject], *, now: datetime) -> None:
    """Write the archived conversations of an export, with their fuller forms."""
    additions = []
    for record in given:
        value, fuller = record["file"], None
        if grace := value["grace"]:
            fuller = _fuller_form(record)
            kind = archive_store.grace_kind(grace["file"])
            value = value | {"grace": None}
            if fuller is not None:
                kept = archive_store.grace_of(value["id"], kind, grace["level"], fuller, until=grace["until"])
                value["grace"] = kept
        additions.append((value, fuller))
    if additions:
        add(home, additions, packed=False, now=now)


def _fuller_form(record: JsonObject) -> bytes | None:
    if "records" in record:
        return b"".join(map(seal_json, record["records"]))
    if "text" in record:
        return str(record["text"]).encode("utf-8", "surrogatepass")
    if "base64" in record:
        return base64.b64decode(record["base64"])
    return archive_store.encoded(record["before"]) if "before" in record else None


# --- Checks and repairs


def examine(home: Path) -> list[Finding]:
    """Return the problems of the archive: damaged and missing files, remains of crashes, and a stale index."""
    if archive_store.is_empty(home):
        return []
    findings: list[Finding] = []
    if archive_store.open_step(home) is not None:
        what = "a step was interrupted; the next one ends it first."
        findings.append(Finding("warning", "open-step", archive_store.STEP, what, REPAIR))
    places: dict[str, str] = {}
    graces: set[str] = set()
    newer, directories = 0, dict[str, Path]()
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name, directories)
            faults = check.findings(SCHEMA, value)
        except (AetherError, KeyError) as reason:
            findings.append(_finding(reason, name))
            newer += isinstance(reason, InvalidDocument)
            continue
        findings += [fault._replace(where=f"{name}{fault.where.removeprefix(SCHEMA)}") for fault in faults]
        if faults:
            continue
        if value["id"] in places:
            what = f"conversation {shown(value['id'])} is in {places[value['id']]} as well."
            findings.append(Finding("error", "twice", name, what, "Move one of them away."))
        places[value["id"]] = name
        if value["grace"]:
            graces.add(value["grace"]["file"])
            findings += _examine_grace(home, value, directories)
    # A file of a newer aether may name the others.
    for name in sorted({*archive_store.grace_names(home)} - graces) if not newer else ():
        what = "no archive file names it: a killed process left it, or the archive file was lost."
        findings.append(Finding("warning", "left-over", name, what, REPAIR))
    if {row.id: row.name for row in archive_store.rows(home)} != places:
        what = "it does not match the files; it can be rebuilt at any time."
        findings.append(Finding("warning", "stale-index", search_index.FILE, what, REPAIR))
    return findings


def _finding(reason: Exception, name: str) -> Finding:
    if not isinstance(reason, AetherError):
        return Finding("error", "damaged-file", name, f"{reason} is missing in it.", REPAIR)
    code = "damaged-file" if isinstance(reason, CorruptDocument) else reason.code
    return Finding("error", code, name, reason.what, REPAIR if code == "damaged-file" else reason.fix)


def _examine_grace(home: Path, value: JsonObject, directories: dict[str, Path]) -> Iterator[Finding]:
    try:
        archive_store.read_grace(home, value["grace"], directories)
    except AetherError as reason:
        what = f"{reason.what} The conversation can be restored only with level {value['level']}."
        yield Finding("error", "damaged-grace", value["grace"]["file"], what, REPAIR)


def repair(home: Path, *, now: datetime, read_again: ReadAgain | None = None) -> Iterator[str]:
    """Repair the archive as far as possible, and yield a line for each repair and each loss; no damaged file is deleted.

    The caller holds the lock of the home. `read_again` makes an archive file of the file that was added.
    """
    if archive_store.is_empty(home):
        return
    try:
        if report := settle(home, now=now):
            yield report
    except Conflict as reason:  # the log is repaired after this; the step is ended by the next command
        yield f"left the step that was interrupted, because {reason.what} Run it again"
        return
    graces, newer = yield from _repair_files(home, now)
    archive_store.rebuild_index(home)
    if newer:  # fuller forms, and names in the list, may belong to them
        yield f"left {pluralize(newer, 'archive files')} of a newer aether as they are, and all that may belong to them"
        return
    for name in archive_store.grace_names(home):
        if name not in graces:
            if line := _recover_file(home, name, now, read_again):
                yield line
            else:
                yield from _recover_grace(home, name, now)
    archive_store.rebuild_index(home)
    archived = {row.id for row in archive_store.rows(home)}
    for entry in conversation_list.listed(home)[0].values():
        if entry.archived and entry.id not in archived:
            conversations.enter_loss(home, entry.id, now=now)
            yield f"conversation {shown(entry.id)} is lost: its archive file was deleted or damaged, and it has no fuller form"


def _repair_files(home: Path, now: datetime) -> Generator[str, None, tuple[set[str], int]]:
    """Repair the archive files; return the fuller forms that they name, and the number of files of a newer aether."""
    graces, newer = set[str](), 0
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name)
        except InvalidDocument:
            newer += 1
            continue
        except (AetherError, KeyError):
            yield from _repair_file(home, name, now)
            try:
                value = archive_store.read(home, name)
            except AetherError:
                continue
        if value["grace"] and any(_examine_grace(home, value, {})):
            yield from _drop_grace(home, name, value, now)
        elif value["grace"]:
            graces.add(value["grace"]["file"])
    return graces, newer


def _repair_file(home: Path, name: str, now: datetime) -> Iterator[str]:
    """Seal an archive file that was edited, if it is still valid; else move it to quarantine."""
    copy = _quarantine(home, name, now)
    with suppress(AetherError):
        value = files.parse_json(archive_store.read_bytes(home, name), where=name)
        if isinstance(value, dict) and not check.findings(SCHEMA, value):
            archive_store.write(home, name, value, over=True)
            _record_loss(home, name, f"it was changed, and counts as it is now; its copy is {copy}", now)
            yield f"sealed {name} again, which was changed; its copy is {copy}"
            return
    archive_store.remove(home, name)
    yield f"kept the damaged {name} as {copy}"


def _record_loss(home: Path, name: str, what: str, now: datetime) -> None:
    """Enter a loss in the record of seals, so that doctor reports it from now on."""
    record = seals.read(home)
    if record.state == "good":
        seals.write(home, seals.with_loss(record, name, what, now=now))


def _drop_grace(home: Path, name: str, value: JsonObject, now: datetime) -> Iterator[str]:
    """Move a damaged fuller form to quarantine, and remove it from its archive file."""
    grace = value["grace"]["file"]
    if copy := _quarantine(home, grace, now):
        archive_store.remove(home, grace)
        yield f"kept the damaged {grace} as {copy}; its conversation stays at level {value['level']}"
    archive_store.write(home, name, {**value, "grace": None})
    _record_loss(home, grace, f"the fuller form of conversation {shown(value['id'])} was lost", now)


def _recover_file(home: Path, name: str, now: datetime, read_again: ReadAgain | None) -> str:
    """Make the archive file of a file that was added again, and return a line; empty if that cannot be done."""
    if read_again is None or archive_store.grace_kind(name) != "file":
        return ""
    archived = {row.id for row in archive_store.rows(home)}
    listed = conversation_list.listed(home)[0].values()
    ids = [entry.id for entry in listed if entry.archived and archive_store.is_grace_of(name, entry.id)]
    for id in ids[:1] if archived.isdisjoint(ids) else ():  # noqa: A001
        with suppress(AetherError):
            data = archive_store.read_bytes(home, name)
            value = read_again(id, data)
            if value["grace"]["file"] != name:  # it is damaged, too
                return ""
            archive_store.write(home, archive_store.name_of(value), value)
            archive_store.put(home, [(archive_store.name_of(value), value)])
            what = f"the archive file of conversation {shown(id)} was lost; it was made again from the file that was added"
            _record_loss(home, name, what, now)
            return f"recovered conversation {shown(id)} from {name}, the file that was added: its archive file was lost"
    return ""


def _recover_grace(home: Path, name: str, now: datetime) -> Iterator[str]:
    """Restore the conversation of a fuller form that no archive file names; remove the form if it is not needed."""
    kind, data = archive_store.grace_kind(name), b""
    with suppress(AetherError):
        data = archive_store.read_bytes(home, name)
    archived = {row.id for row in archive_store.rows(home)}
    header = unsealed(data.partition(b"\n")[0] + b"\n") if kind == "conversation" else None
    id, level = "", "full"  # noqa: A001
    if header and "conversation" in header:
        id = str(header["conversation"])  # noqa: A001
        if id not in archived and not conversations.path_of(home, id).exists():
            with conversations.held(home, id):
                conversations.put_back(home, id, data, now=now)
        else:
            archived.add(id)
    else:
        with suppress(AetherError):
            value = archive_store.parsed(data, where=name)
            id, level = value["id"], value["level"]  # noqa: A001
            if id not in archived:
                archive_store.write(home, archive_store.name_of(value), value)
    if not id:
        copy = _quarantine(home, name, now)
        yield f"kept {name}, which no archive file names, as {copy}: add it again if it is missed"
    elif id not in archived:
        what = f"the archive file of conversation {shown(id)} was lost; it has level {level} again"
        _record_loss(home, name, what, now)
        yield f"recovered conversation {shown(id)} from {name}: its archive file was lost"
    archive_store.remove(home, name)
