"""Steps of the archive: one conversation ages, comes back or is added, whole or not at all, and only once.

Each step holds the lock of the home, then that of the conversation. It names itself in `archive/step.json`, makes the
fuller form durable in grace, writes the archive file (from here it is decided), commits its receipt, and removes what it
replaces. `settle` ends a step that a killed process left: forwards from the decision on, else back.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
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
)
from aether.store.authors import ARCHIVE, Author
from aether.store.commit import commit_locked, write_lock
from aether.store.files import REPAIR, storage_errors
from aether.store.log import seal_json, unsealed
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import Change, Finding, JsonObject

SCHEMA = "archived_conversation"


def digest(data: bytes) -> str:
    """Return the checksum by which receipts and grace name bytes."""
    return hashlib.sha256(data).hexdigest()


def add(
    home: Path, made: Sequence[tuple[JsonObject, bytes | None]], *, packed: bool, now: datetime
) -> list[str]:
    """Write new archive files, each with the file it was read from, which rests in grace; return their places.

    Raises:
        Conflict: one of them is in the home by now.
        CorruptDocument, InvalidDocument: the file in the place of one is damaged, or of another version.
        LockTimeout, StorageFailed: some were not written; the next step ends what was.
    """
    names = [archive_store.name_of(value, packed=packed) for value, _ in made]
    with write_lock(home):
        settle(home, now=now)
        for name, (value, _) in zip(names, made, strict=True):
            archive_store.require_free(home, name, value["id"])
            if archive_store.find(home, value["id"]) or conversations.path_of(home, value["id"]).exists():
                raise Conflict(
                    f"conversation {shown(value['id'])} is there by now.", fix="Try again.", where=str(home)
                )
        rest = [value["grace"]["file"] for value, data in made if data is not None]
        archive_store.set_step(home, {"kind": "add", "new": names, "grace": rest})
        for name, (value, data) in zip(names, made, strict=True):
            if data is not None:
                archive_store.write_grace(home, value["grace"]["file"], data)
            archive_store.write(home, name, value)
        conversations.retire(home, [value["id"] for value, _ in made], now=now)
        archive_store.put(home, zip(names, (value for value, _ in made), strict=True))
        archive_store.set_step(home, None)
    return names


def take(
    home: Path, value: JsonObject, *, old: JsonObject | None, log: bytes = b"", rest: bytes | None = None, packed: bool,
    now: datetime,
) -> int:  # fmt: skip
    """Put `value` in the place of a conversation's `old` archive file, or of its `log`, and return the bytes on disk it saves.

    Its last step is the receipt, which is committed. `rest` is what rests in its grace from now on, None where that is
    there already.

    Raises:
        Conflict: the conversation was changed meanwhile, or its log is damaged; it is as it was.
        LockTimeout, StorageFailed: it is as it was, or the next step ends this one.
    """
    id = value["id"]  # noqa: A001
    with write_lock(home):
        settle(home, now=now)
        with conversations.held(home, id) if old is None else nullcontext() as data:
            found = archive_store.find(home, id)
            present = archive_store.read(home, found.name) if found else None
            is_same = data == log if old is None else bool(present and present["checksum"] == old["checksum"])
            if not is_same or (old is None and found):
                what = f"conversation {shown(id)} was changed meanwhile."
                raise Conflict(what, fix="Try again.", where=found.name if found else id)
            name = archive_store.name_of(value, packed=packed)
            grace = (value["grace"] or {}).get("file", "")
            step = {
                "kind": "age", "id": id, "receipt": value["steps"][-1]["id"], "new": name, "grace": grace,
                "old": found.name if found else "", "old_grace": found.grace if found else "", "live": old is None,
            }  # fmt: skip
            before = bytes_of(home, id)
            archive_store.set_step(home, step)
            if rest is not None:
                archive_store.write_grace(home, grace, rest)
            archive_store.write(home, name, value)
            _forward(home, step, value, now, again=False)
    return before - bytes_of(home, id)


def exchange(home: Path, name: str, value: JsonObject, *, packed: bool, now: datetime) -> str:
    """Put `value` in the place of the file `name` of an older version, which goes to quarantine; return its place.

    Raises:
        Conflict: its conversation is in the home already.
        LockTimeout, StorageFailed: the older file is as it was.
    """
    with write_lock(home):
        settle(home, now=now)
        if archive_store.find(home, value["id"]) or conversations.path_of(home, value["id"]).exists():
            raise Conflict(
                f"conversation {shown(value['id'])} is in the home already.", fix="Move one away.", where=name
            )
        path, new = archive_store.placed(home, name), archive_store.name_of(value, packed=packed)
        with storage_errors(path):
            documents.quarantine(
                home, f"archive-{path.stem}", regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
            )
        archive_store.write(home, new, value, over=new == name)
        conversations.retire(home, [value["id"]], now=now)
        if new != name:
            archive_store.remove(home, name)
        archive_store.put(home, [(new, value)])
    return new


def bytes_of(home: Path, id: str) -> int:
    """Return the bytes on disk of a conversation, live or archived."""
    log = seals.place(home, conversations.path_of(home, id))
    found = archive_store.find(home, id)
    return archive_store.size(home, log) + (found.bytes if found else 0)


def restore(home: Path, id: str, receipt: JsonObject, *, now: datetime) -> Path:
    """Bring the log of a conversation back from grace, byte for byte, and return where it is.

    Raises:
        NotFound: it is not archived, or its grace is over.
        CorruptDocument: its fuller form is damaged.
        Conflict: it is live by now.
        LockTimeout, StorageFailed: it is as it was, or the next step ends this one.
    """
    with write_lock(home):
        settle(home, now=now)
        found = archive_store.find(home, id)
        grace = archive_store.read(home, found.name)["grace"] if found else None
        if not found or not grace:
            raise NotFound(f"{shown(id)} has no fuller form.", fix='See "aether archive show".', where=id)
        data = archive_store.read_grace(home, grace)
        with conversations.held(home, id) as log:
            if log:
                raise Conflict(f"conversation {shown(id)} is live.", fix="Nothing to do.", where=id)
            step = {"kind": "restore", "id": id, "old": found.name, "grace": found.grace, "receipt": receipt}
            archive_store.set_step(home, step)
            path = conversations.put_back(home, id, data, now=now, restored=True)
            _come_back(home, step, now, again=False)
    return path


def set_aside(home: Path, id: str, *, now: datetime) -> bool:
    """Move an archived conversation and its fuller form to quarantine, and return whether it was there.

    Raises:
        LockTimeout, StorageFailed: it is as it was, or the next step ends this one.
    """
    with write_lock(home):
        settle(home, now=now)
        found = archive_store.find(home, id)
        if found is None:
            return False
        names = [name for name in (found.name, found.grace) if name]
        for name in names:
            path = archive_store.placed(home, name)
            with storage_errors(path), suppress(FileNotFoundError):
                data = regular.read(path, regular.LOG_BYTES)
                documents.quarantine(home, f"archive-{path.name}", data, at=clock.stamp(now))
        step = {"kind": "remove", "id": id, "names": names}
        archive_store.set_step(home, step)
        _remove(home, step, now)
        archive_store.set_step(home, None)
    return True


def end_open(home: Path, *, now: datetime) -> None:
    """End the step that a killed process left, if there is one.

    Raises:
        LockTimeout, StorageFailed: it is as it was.
    """
    if not archive_store.is_empty(home) and archive_store.open_step(home) is not None:
        with write_lock(home):
            settle(home, now=now)


def _remove(home: Path, step: JsonObject, now: datetime) -> None:
    conversations.strike(home, step["id"], now=now)
    for name in step["names"]:
        archive_store.remove(home, name)
    archive_store.take_out(home, step["id"])


def settle(home: Path, *, now: datetime) -> str:
    """End the step that a killed process left, and return what was done, "" without one; the caller holds the lock."""
    step = archive_store.open_step(home)
    if step is None:
        return ""
    done = ""
    match step["kind"]:
        case "add":
            done = _end_add(home, step, now)
        case "age":
            done = _end_age(home, step, now)
        case "restore":
            with conversations.held(home, step["id"]) as log:
                if log:
                    conversations.put_back(home, step["id"], log, now=now, restored=True)
                    _come_back(home, step, now, again=True)
                    return f"completed the return of conversation {shown(step['id'])}"
            done = f"undid the return of conversation {shown(step['id'])}"
        case "remove":
            _remove(home, step, now)
            done = f"completed the removal of conversation {shown(step['id'])}"
        case _:
            kept = archive_store.set_step_aside(home)
            archive_store.rebuild_index(home)
            return f"kept archive/step.json, which is no step of this home, as {kept}"
    archive_store.set_step(home, None)
    return done


def _end_add(home: Path, step: JsonObject, now: datetime) -> str:
    written = []
    for name in step["new"]:
        with suppress(AetherError):
            written.append((name, archive_store.read(home, name)))
    named = {(value["grace"] or {}).get("file") for _, value in written}
    for name in step["grace"]:
        if name not in named:
            archive_store.remove(home, name)
    conversations.retire(home, [value["id"] for _, value in written], now=now)
    archive_store.put(home, written)
    return f"entered {len(written)} of {len(step['new'])} conversations that were being added"


def _end_age(home: Path, step: JsonObject, now: datetime) -> str:
    value = None
    with suppress(AetherError):
        value = archive_store.read(home, step["new"])
    is_decided = value is not None and bool(value["steps"]) and value["steps"][-1]["id"] == step["receipt"]
    with conversations.held(home, step["id"]) if step["live"] else nullcontext(b"") as log:
        is_same = not log or (value and digest(log) == value["steps"][-1]["sha256_before"])
        if value and is_decided and is_same:
            _forward(home, step, value, now, again=True)
            return f"completed a step of conversation {shown(step['id'])}"
        if is_decided:  # it was written to since: it is live
            archive_store.remove(home, step["new"])
        if log:
            conversations.put_back(home, step["id"], log, now=now)
        if step["grace"] and step["grace"] != step["old_grace"]:
            archive_store.remove(home, step["grace"])
    if step["live"]:
        archive_store.take_out(home, step["id"])
    return f"undid a step of conversation {shown(step['id'])}"


def _forward(home: Path, step: JsonObject, value: JsonObject, now: datetime, *, again: bool) -> None:
    """Do what follows the decision; each part may have been done before."""
    if step["live"]:
        conversations.retire(home, [step["id"]], now=now)
    record(home, value["steps"][-1], again=again, now=now)
    if step["live"]:
        conversations.remove_log(home, step["id"])
    if step["old"] and step["old"] != step["new"]:
        archive_store.remove(home, step["old"])
    if step["old_grace"] and step["old_grace"] != step["grace"]:
        archive_store.remove(home, step["old_grace"])
    archive_store.put(home, [(step["new"], value)])
    archive_store.set_step(home, None)


def _come_back(home: Path, step: JsonObject, now: datetime, *, again: bool) -> None:
    record(home, step["receipt"], again=again, now=now)
    archive_store.remove(home, step["old"])
    archive_store.remove(home, step["grace"])
    archive_store.take_out(home, step["id"])
    archive_store.set_step(home, None)


def record(home: Path, receipt: JsonObject, *, again: bool, now: datetime) -> None:
    """Commit a receipt; `again`: it may be committed already. The caller holds the lock of the home."""

    def plan(snapshot: Snapshot) -> Change:
        known = record_files.records(snapshot, "receipts", holding=[("id", receipt["id"])]) if again else ()
        return Change(
            {}, {} if any(one.get("id") == receipt["id"] for _, one in known) else {"receipts": [receipt]}
        )

    author = Author("restore" if receipt["rule"] == "restored" else "age", by=ARCHIVE)
    commit_locked(home, plan, author, now=now)


# --- Copies that leave the home


def exported(home: Path) -> Iterator[JsonObject]:
    """Yield each archived conversation with what rests in its grace, without secrets."""
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name)
            rest = archive_store.read_grace(home, value["grace"]) if value["grace"] else None
        except (AetherError, KeyError) as reason:
            yield {"problem": str(reason)}
            continue
        made: JsonObject = {"file": redacted(value)}
        if rest is not None and _is_log(value):
            made["records"] = [
                redacted(one) for line in rest.splitlines(keepends=True) if (one := unsealed(line))
            ]
        elif rest is not None and _is_file(value):
            made |= _exported_file(rest)
        elif rest is not None:
            made["before"] = redacted(archive_store.parsed(rest, where=name))
        yield made


def _is_log(value: JsonObject) -> bool:
    """Return whether what rests of a conversation is its log."""
    return bool(value["source"]["kind"] == "conversation" and value["grace"]["level"] == "full")


def _is_file(value: JsonObject) -> bool:
    """Return whether what rests of a conversation is the file that it was read from."""
    return bool(
        value["source"]["kind"] == "file"
        and value["grace"]["level"] == "full"
        and archive_store.grace_kind(value["grace"]["file"]) == "file"
    )


def _exported_file(data: bytes) -> JsonObject:
    """Return a file that was added, without secrets: its text, or in base64 what is not UTF-8."""
    clean = _without_secrets(data)
    try:
        return {"text": clean.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(clean).decode()}


def _without_secrets(data: bytes) -> bytes:
    """Return a file without its secrets, in its own encoding and compression; byte for byte if it has none."""
    if data.startswith(b"\x1f\x8b"):
        with suppress(CorruptDocument):
            plain = archive_store.gunzipped(data, where="")
            clean = _without_secrets(plain)
            return data if clean == plain else gzip.compress(clean, mtime=0)
    for encoding, errors in ((json.detect_encoding(data), "surrogatepass"), ("utf-8", "surrogateescape")):
        with suppress(UnicodeError):
            text = data.decode(encoding, errors)
            clean_text = redact(text)
            return data if clean_text == text else clean_text.encode(encoding, errors)
    return data


def importable(given: Any) -> list[JsonObject]:
    """Return those of `given`, the archived conversations of an export, that fit their schema.

    Raises:
        InvalidDocument: one of them does not.
    """
    found = []
    for nth, one in enumerate(given if isinstance(given, list) else []):
        if isinstance(one, dict) and "file" in one:
            wrong = [finding.message for finding in check.findings(SCHEMA, one["file"])]
            try:
                base64.b64decode(one.get("base64", ""), validate=True)
            except (TypeError, ValueError) as reason:
                wrong.append(f"its file is no base64 ({reason}).")
            if wrong:
                raise InvalidDocument(wrong[0], fix="Export the home again.", where=f"archived[{nth}]")
            found.append(one)
    return found


def bring_in(home: Path, given: Sequence[JsonObject], *, now: datetime) -> None:
    """Write the archived conversations of an export, with what rests of them."""
    made = []
    for one in given:
        value, rest = one["file"], None
        if value["grace"]:
            if "records" in one:
                rest = b"".join(map(seal_json, one["records"]))
            elif "text" in one:
                rest = one["text"].encode("utf-8", "surrogatepass")
            elif "base64" in one:
                rest = base64.b64decode(one["base64"])
            elif "before" in one:
                rest = archive_store.encoded(one["before"])
            value = value | {"grace": value["grace"] and _grace_of(value, rest)}
        made.append((value, rest))
    if made:
        add(home, made, packed=False, now=now)


def _grace_of(value: JsonObject, rest: bytes | None) -> JsonObject | None:
    if rest is None:
        return None
    old = value["grace"]
    return archive_store.grace_of(
        value["id"], archive_store.grace_kind(old["file"]), old["level"], rest, until=old["until"]
    )


# --- Checks and repairs


def examine(home: Path) -> list[Finding]:
    """Return the problems of the archive: damaged and missing files, what crashes left, and an index that is not right."""
    if archive_store.is_empty(home):
        return []
    found: list[Finding] = []
    if archive_store.open_step(home) is not None:
        what = "a step was interrupted; the next one ends it first."
        found.append(Finding("warning", "open-step", archive_store.STEP, what, REPAIR))
    places: dict[str, str] = {}
    resting: set[str] = set()
    newer = 0
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name)
        except (AetherError, KeyError) as reason:
            found.append(_finding(reason, name))
            newer += isinstance(reason, InvalidDocument) and _is_newer(home, name)
            continue
        wrong = check.findings(SCHEMA, value)
        found += [one._replace(where=f"{name}{one.where.removeprefix(SCHEMA)}") for one in wrong]
        if wrong:
            continue
        if value["id"] in places:
            what = f"conversation {shown(value['id'])} is in {places[value['id']]} as well."
            found.append(Finding("error", "twice", name, what, "Move one of them away."))
        places[value["id"]] = name
        if value["grace"]:
            resting.add(value["grace"]["file"])
            found += _examine_grace(home, value)
    # A file of a newer aether may name what is left.
    for name in sorted({*archive_store.grace_names(home)} - resting) if not newer else ():
        what = "no archive file names it: a killed process left it, or the archive file was lost."
        found.append(Finding("warning", "left-over", name, what, REPAIR))
    if {row.id: row.name for row in archive_store.rows(home)} != places:
        what = "it does not fit the files; it can be made again at any time."
        found.append(Finding("warning", "stale-index", archive_store.INDEX, what, REPAIR))
    return found


def _finding(reason: Exception, name: str) -> Finding:
    if not isinstance(reason, AetherError):
        return Finding("error", "damaged-file", name, f"{reason} is missing in it.", REPAIR)
    code = "damaged-file" if isinstance(reason, CorruptDocument) else reason.code
    return Finding("error", code, name, reason.what, REPAIR if code == "damaged-file" else reason.fix)


def _examine_grace(home: Path, value: JsonObject) -> Iterator[Finding]:
    try:
        archive_store.read_grace(home, value["grace"])
    except AetherError as reason:
        what = f"{reason.what} The conversation can be restored only with level {value['level']}."
        yield Finding("error", "damaged-grace", value["grace"]["file"], what, REPAIR)


def repair(home: Path, *, now: datetime) -> Iterator[str]:
    """Repair the archive as far as possible, and yield a line for each repair and each loss; nothing damaged is deleted.

    The caller holds the lock of the home.
    """
    if archive_store.is_empty(home):
        return
    try:
        done = settle(home, now=now)
    except Conflict as reason:  # the log is repaired after this; the step is ended by the next command
        yield f"left the step that was interrupted, because {reason.what} Run it again"
        return
    if done:
        yield done
    kept, newer = yield from _repair_files(home, now)
    archive_store.rebuild_index(home)
    if newer:
        # What rests in grace, and what the list names, may be theirs.
        yield f"left {pluralize(newer, 'archive files')} of a newer aether as they are, and all that may belong to them"
        return
    for name in archive_store.grace_names(home):
        if name not in kept:
            yield from _bring_forth(home, name, now)
    archive_store.rebuild_index(home)
    yield from _repair_list(home, now)


def _repair_files(home: Path, now: datetime) -> Generator[str, None, tuple[dict[str, str], int]]:
    """Repair the archive files; return what rests of them in grace, and how many a newer aether wrote."""
    kept: dict[str, str] = {}
    newer = 0
    for name in archive_store.names(home):
        try:
            value = archive_store.read(home, name)
        except InvalidDocument:
            newer += _is_newer(home, name)
            continue
        except (AetherError, KeyError):
            yield from _repair_file(home, name, now)
            with suppress(AetherError, KeyError):
                value = archive_store.read(home, name)
                kept |= _resting(value)
            continue
        if value["grace"] and any(_examine_grace(home, value)):
            yield from _drop_grace(home, name, value, now)
        else:
            kept |= _resting(value)
    return kept, newer


def _is_newer(home: Path, name: str) -> bool:
    try:
        return not archive_store.is_older(archive_store.other_version(home, name))
    except AetherError:
        return True  # not known: what may be its stays


def _resting(value: JsonObject) -> dict[str, str]:
    return {value["grace"]["file"]: value["id"]} if value["grace"] else {}


def _repair_file(home: Path, name: str, now: datetime) -> Iterator[str]:
    """Seal an archive file that was changed again as it is, if it is still valid; else put it into quarantine."""
    path = archive_store.placed(home, name)
    with storage_errors(path):
        data = regular.read(path, regular.LOG_BYTES)
        quarantined = documents.quarantine(home, f"archive-{path.stem}", data, at=clock.stamp(now))
        place = seals.place(home, quarantined)
        with suppress(AetherError):
            value = files.parse_json(archive_store.read_bytes(home, name), where=name)
            if isinstance(value, dict) and not check.findings(SCHEMA, value):
                archive_store.write(home, name, value, over=True)
                _lose(home, name, f"it was changed, and counts as it is now; what it was is {place}", now)
                yield f"sealed {name} again, which was changed; what it was is {place}"
                return
        path.unlink()
    yield f"kept the damaged {name} as {place}"


def _lose(home: Path, name: str, what: str, now: datetime) -> None:
    """Enter a loss in the record of seals, so that doctor names it from now on."""
    record = seals.read(home)
    if record.state == "good":
        seals.write(home, seals.with_loss(record, name, what, now=now))


def _repair_list(home: Path, now: datetime) -> Iterator[str]:
    """Enter the loss of archived conversations of which nothing is left."""
    known = {row.id for row in archive_store.rows(home)}
    for one in conversation_list.listed(home)[0].values():
        if one.archived and one.id not in known:
            conversations.enter_loss(home, one.id, now=now)
            yield f"conversation {shown(one.id)} is lost: its archive file was deleted or damaged, and nothing of it rests in grace"


def _drop_grace(home: Path, name: str, value: JsonObject, now: datetime) -> Iterator[str]:
    """Keep a damaged fuller form in quarantine, and take it out of its archive file."""
    grace = value["grace"]["file"]
    path = archive_store.placed(home, grace)
    if path.exists():
        kept = documents.quarantine(
            home, f"grace-{path.stem}", regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
        )
        archive_store.remove(home, grace)
        yield f"kept the damaged {grace} as {seals.place(home, kept)}; its conversation stays with level {value['level']}"
    archive_store.write(home, name, {**value, "grace": None})
    _lose(home, grace, f"the fuller form of conversation {shown(value['id'])} was lost", now)


def _bring_forth(home: Path, name: str, now: datetime) -> Iterator[str]:
    """Bring back what rests in grace and has no archive file; remove it if the conversation is there without it."""
    kind = archive_store.grace_kind(name)
    data = b""
    with suppress(AetherError):
        data = archive_store.read_bytes(home, name)
    known = {row.id for row in archive_store.rows(home)}
    fields = unsealed(data.partition(b"\n")[0] + b"\n") if kind == "conversation" else None
    if fields and "conversation" in fields:
        id = str(fields["conversation"])  # noqa: A001
        if id not in known and not conversations.path_of(home, id).exists():
            with conversations.held(home, id):
                conversations.put_back(home, id, data, now=now)
            _lose(
                home,
                name,
                f"the archive file of conversation {shown(id)} was lost; it is live again, from its log",
                now,
            )
            yield f"brought conversation {shown(id)} back from {name}: its archive file was lost"
        archive_store.remove(home, name)
        return
    with suppress(AetherError):
        value = archive_store.parsed(data, where=name)
        if value["id"] not in known:
            archive_store.write(home, archive_store.name_of(value), value)
            what = f"the archive file of conversation {shown(value['id'])} was lost; it has level {value['level']} again"
            _lose(home, name, what, now)
            yield f"brought conversation {shown(value['id'])} back from {name}: its archive file was lost"
        archive_store.remove(home, name)
        return
    path = archive_store.placed(home, name)
    kept = documents.quarantine(
        home, f"grace-{path.stem}", data or regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
    )
    archive_store.remove(home, name)
    yield f"kept {name}, which no archive file names, as {seals.place(home, kept)}: add it again if it is missed"
