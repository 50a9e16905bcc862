"""The archive: conversations that lose detail as they age, and can be listed, searched, read and brought back.

A conversation is either live (`conversations/`) or archived (`archive/`), never both. Each step is one transaction with a
receipt; the fuller form rests compressed in `archive/grace/` until its grace is over.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from aether import clock, regular
from aether.api.home import Home, change, copied, counter_of, drained, find, read
from aether.architects import backend as backend_of
from aether.architects.base import Settings
from aether.archive import retention, shapes
from aether.archive.forms import form, measure, metadata
from aether.archive.retention import Boundaries, Decision, Policy
from aether.archive.shapes import LEVELS, Conversation, Level
from aether.clock import new_id
from aether.conversation.summarise import Written, write_archived
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidInput, NotFound, public, shown
from aether.messages.transcripts import load_conversation
from aether.redact.redact import redact, redacted
from aether.store import archive_steps, archive_store, config, conversation_list, conversations, files
from aether.store.authors import Author
from aether.store.snapshot import load
from aether.text.cleaning import clean
from aether.text.words import query_terms
from aether.types import Change, Finding, JsonObject

# Conversations that are written in one step of a batch.
BATCH = 64
# Of a conversation without a title, so much of its first line.
TITLE_CHARS = 60
# The rule by which a fuller form is removed.
GRACE_OVER = "grace over"
# A month of the archive, as `list_archived` takes it.
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])", re.ASCII)
_TIME = re.compile(rb'"timestamp":\s*"([^"]{10,40})"')
_SESSION = re.compile(rb'"session_?[iI]d":\s*"([^"]{1,200})"')
# What of a conversation is returned that no caller gave as an object.
_FIELDS = ("id", "title", "created_at", "updated_at", "messages")
Progress = Callable[[int, int], None]


class Planned(NamedTuple):
    """A conversation whose age asks for a lesser level than it has, or whose fuller form has rested long enough."""

    id: str
    title: str
    days: int
    score: float
    rule: str
    from_level: str
    to_level: str
    bytes: int
    """Its size on disk now."""


class Ageing(NamedTuple):
    """The result of an ageing pass; in a dry run only the plan."""

    plan: list[Planned]
    done: list[JsonObject]
    """The receipts of the steps that were taken."""
    failed: list[Finding]
    """One for each conversation that could not be aged; it stays as it was."""
    saved_bytes: int
    """Bytes on disk before, less those after, as measured; less than 0 while fuller forms rest in grace."""


class Archived(NamedTuple):
    """One archived conversation in a list."""

    id: str
    title: str
    created_at: str
    level: str
    bytes: int
    path: str
    """Relative to the home."""


class ArchivedBatch(NamedTuple):
    """The result of adding conversations to the archive."""

    added: list[Archived]
    failed: list[Finding]
    """One for each that was not added, with the reason."""
    findings: list[Finding]
    """What could not be used of those that were added, such as a time that cannot be read."""
    before: dict[str, Archived]
    """By id, those of them that were archived before, as they were."""


class Restored(NamedTuple):
    """A conversation that was brought back."""

    conversation: JsonObject
    level: str
    exact: bool
    """Whether it is byte for byte what was archived."""
    path: str
    """Where it was written, "" if it was only returned."""


class ArchiveHit(NamedTuple):
    """An archived conversation that matches a query."""

    id: str
    title: str
    created_at: str
    level: str
    score: float
    passage: str
    """The part of it that matches."""
    path: str


class _Rules(NamedTuple):
    """What decides the levels of a home at one instant."""

    now: datetime
    boundaries: Boundaries
    policy: Policy
    digest: str
    """The policy as the index names it."""
    marked: frozenset[str]
    restored: Mapping[str, str]
    """When each live conversation was restored that was: that is a use of it."""
    grace_days: int
    packed: bool

    def decide(self, conversation: Conversation) -> Decision:
        return retention.decide(
            conversation, now=self.now, boundaries=self.boundaries, policy=self.policy,
            marked=conversation["id"] in self.marked,
        )  # fmt: skip

    def floor(self, conversation: Conversation) -> Level:
        """Return the least level that retention ever lets a conversation have, by its own marks and its score."""
        if retention.is_marked_by_itself(conversation):
            return "full"
        found = retention.score(conversation, self.policy)
        return retention.level_of_score(found, self.policy.recent_days + 1, self.policy)[0]


class _Case(NamedTuple):
    """One conversation of a home, live or archived, as it is now."""

    conversation: Conversation
    old: JsonObject | None
    """Its archive file, None if it is live."""
    log: bytes
    """Its log if it is live."""

    @property
    def level(self) -> Level:
        return cast("Level", self.old["level"]) if self.old else "full"


def _rules(place: Path, now: datetime | None, preset: str | None = None) -> _Rules:
    settings = config.load(place)
    given = [int(day) for day in settings.archive_boundaries.split(",") if day.strip()]
    if preset is not None or not given:
        boundaries = retention.boundaries(preset or settings.archive_preset)
    else:
        boundaries = retention.boundaries(dict(zip(LEVELS[1:], given, strict=True)))
    document = load(place).documents["retention"]
    policy = retention.policy(document["policy"])
    return _Rules(
        _instant(now), boundaries, policy, files.checksum(repr(policy._replace(weights=dict(sorted(policy.weights.items())))).encode()),
        frozenset(document["marked"]), conversation_list.restored_at(place), settings.archive_grace_days, settings.archive_compress,
    )  # fmt: skip


def _instant(now: datetime | None) -> datetime:
    if now is None:
        return clock.now()
    return now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)


# --- Ageing


@public
def age_archive(
    *, now: datetime | None = None, preset: str | None = None, dry_run: bool = False, forever: bool = False,
    backend: str | None = None, progress: Progress | None = None, seconds: float | None = None,
    ids: Collection[str] | None = None, home: Home = None,
) -> Ageing:  # fmt: skip
    """Age every conversation whose time has come, oldest first, and return the plan, the receipts and the failures.

    `now` is the time by which it decides; the log and the receipts have the real one. With `ids` only these. `progress` is called with the number of conversations that are done and that of all. After
    `seconds` no further one is started. With `forever` the fuller forms are kept for good. A `backend` writes the summaries;
    where its answer is refused, or without one, they are chosen from what was said. Calling it twice is calling it once.

    Raises:
            InvalidInput: there is no such preset or backend.
            LockTimeout, StorageFailed: nothing was aged.
    """
    until = time.monotonic() + seconds if seconds is not None else None
    if backend is not None:
        backend_of(backend)  # an unknown name is a mistake of the caller, and no failure of a backend
    place = drained(find(home))
    rules = _rules(place, now, preset)
    if not dry_run:
        archive_steps.end_open(place, now=clock.now())
    plan, failed = _plan(place, rules, forever=forever)
    if ids is not None:
        plan = [one for one in plan if one.id in ids]
        failed = [one for one in failed if one.where in ids]
    if dry_run:
        return Ageing(plan, [], failed, 0)
    done: list[JsonObject] = []
    saved = 0
    for nth, planned in enumerate(plan):
        if until is not None and time.monotonic() > until:
            break
        try:
            receipt, less = _age(place, planned, rules, forever, backend)
        except AetherError as reason:
            failed.append(_failure(reason, planned.id))
        else:
            done.append(receipt)
            saved += less
        if progress:
            progress(nth + 1, len(plan))
    return Ageing(plan, done, failed, saved)


def _failure(reason: AetherError, where: str) -> Finding:
    return Finding("error", reason.code, where, reason.what, reason.fix)


def _plan(place: Path, rules: _Rules, *, forever: bool) -> tuple[list[Planned], list[Finding]]:
    """Return the conversations that lose detail now, oldest first, and then those whose grace is over, unless `forever`.

    Only those are read whose time has come; marked ones keep their fuller form.
    """
    latest = [clock.stamp(rules.now - timedelta(days=days)) for days in rules.boundaries]
    failed: list[Finding] = []
    plan: list[Planned] = []
    live = [
        one.id
        for one in conversations.stored_conversations(place)
        if "" < max(conversations.last_use(one), rules.restored.get(one.id, "")) <= latest[0]
    ]
    _refresh_floors(place, rules)
    over = [] if forever else [row.id for row in archive_store.expired(place, clock.stamp(rules.now))]
    for id in dict.fromkeys([*live, *(row.id for row in archive_store.ready(place, latest)), *over]):  # noqa: A001
        try:
            case = _case(place, id, rules)
            found = rules.decide(case.conversation)
        except AetherError as reason:
            failed.append(_failure(reason, id))
            continue
        if LEVELS.index(found.level) > LEVELS.index(case.level):
            # A form whose grace is over is read once more by this step, and then rests as long as the next.
            step: tuple[str, str, str] = (found.rule, case.level, found.level)
        elif id in over and id not in rules.marked:
            grace = (case.old and case.old["grace"]) or {}
            step = (GRACE_OVER, grace.get("level", case.level), case.level)
        else:
            continue
        size = archive_steps.bytes_of(place, id)
        title = redact(case.conversation["title"])
        plan.append(Planned(id, title, found.days, found.score.total, *step, size))
    return sorted(plan, key=lambda one: (one.rule == GRACE_OVER, -one.days, one.id)), failed


def _refresh_floors(place: Path, rules: _Rules) -> None:
    """Decide again, for conversations of another policy, the least level that they may have."""
    floors = []
    for row in archive_store.of_other_policy(place, rules.digest):
        with suppress(AetherError, KeyError):  # `verify` names it
            conversation = shapes.conversation_of(archive_store.read(place, row.name))
            floors.append((row.id, rules.floor(conversation), rules.digest))
    if floors:
        archive_store.set_floor(place, floors)


def _case(place: Path, id: str, rules: _Rules) -> _Case:
    """Return a conversation, live or archived, as it is now.

    Raises:
        NotFound: it is neither live nor archived.
        Conflict: the log of a live one is damaged.
    """
    row = archive_store.find(place, id)
    if row:
        old = archive_store.read(place, row.name)
        conversation = shapes.conversation_of(old)
        # Its age is that of the whole conversation, whichever messages are left.
        return _Case(conversation | {"times": [row.since] if row.since else []}, old, b"")
    path = conversations.path_of(place, id)
    if not path.exists():
        raise NotFound(
            f"there is no conversation {shown(id)}.", fix='See "aether archive list".', where=str(place)
        )
    data = regular.read(path, regular.LOG_BYTES)
    found = _of_log(place, id, data)
    if id in rules.restored:
        found["known"] = {"since": max(retention.last_used(found)[0], rules.restored[id])}
    return _Case(found, None, data)


def _of_log(place: Path, id: str, data: bytes) -> Conversation:
    """Return the conversation in a log; each message has the time at which it was added."""
    log = conversations.extended(conversations.empty(conversations.path_of(place, id), id), data)
    if log.torn or log.damaged:
        what = f"the log of conversation {shown(id)} is damaged."
        raise Conflict(what, fix=files.REPAIR, where=str(log.path))
    said = conversations.said(log)
    messages = conversations.messages(log, said)
    stored = conversations.times(data)
    times = [stored[n] for n in said]
    # What its owner noted of it (`MemoryManager`): title, session, time and metadata.
    about = log.settings.get("about", {})
    raw = {
        "updated_at": max(times, default=None), **{key: about[key] for key in ("session_id", "metadata") if key in about},
        "id": id, "title": about.get("title") or _title(messages), "messages": messages,
        "created_at": about.get("created_at") or min(times, default=None),
    }  # fmt: skip
    read_ = shapes.read_conversation(raw, where=id, times=times)[0]
    read_["id"] = id  # exactly: blanks at its ends belong to it
    return read_


def _title(messages: list[JsonObject]) -> str:
    """Return the first line that a user said, cut, without secrets; what a program wrote around it only if there is no other."""
    said = [
        text for message in messages if message.get("role") == "user"
        for text in archive_store.texts({"messages": [message]}) if text.strip()
    ]  # fmt: skip
    own = next(filter(None, map(clean, said)), "") or next(iter(said), "")
    return redact(own.strip().partition("\n")[0])[:TITLE_CHARS].strip()


def _fullest_level(old: JsonObject) -> Level:
    return min(old["level"], (old["grace"] or old)["level"], key=LEVELS.index)


def _fullest(place: Path, old: JsonObject) -> Conversation:
    """Return the fullest form of an archived conversation that there is."""
    grace = old["grace"]
    if not grace or old["level"] == "full":
        return shapes.conversation_of(old)
    data = archive_store.read_grace(place, grace)
    if grace["level"] == "full" and old["source"]["kind"] == "conversation":
        return _of_log(place, old["id"], data)
    if grace["level"] == "full" and old["source"]["kind"] == "file":
        raw = next(one for one in _raws(data, old["source"]["name"]))
        return shapes.read_conversation({**raw, "id": old["id"]}, where=old["id"])[0]
    return shapes.conversation_of(archive_store.parsed(data, where=grace["file"]))


def _age(
    place: Path, planned: Planned, rules: _Rules, forever: bool, backend: str | None
) -> tuple[JsonObject, int]:
    """Take one step of a plan; return its receipt and the bytes that it saves.

    Raises:
        Conflict: the conversation was changed meanwhile.
        AetherError: it stays as it was.
    """
    if planned.rule == GRACE_OVER:
        return _end_grace(place, planned.id, rules)
    case = _case(place, planned.id, rules)
    found = rules.decide(case.conversation)
    if (case.level, found.level) != (planned.from_level, planned.to_level):
        raise Conflict("it was changed meanwhile.", fix="Age again.", where=planned.id)
    whole = _fullest(place, case.old) if case.old else case.conversation
    written = _written(place, whole, backend) if backend and found.level == "summary" else None
    content = redacted(form(whole, found.level, written=written.prose if written else None))
    grace, rest = _rest(case, rules, forever)
    value = _file(whole, found.level, content, rules, old=case.old)
    value["grace"] = grace
    value["marked"] = planned.id in rules.marked
    before = files.json_line(case.old["content"]) if case.old else case.log
    at = clock.now()  # also where it ages as if it were another time
    if not case.old:
        value["archived_at"] = clock.stamp(at)
    receipt = _receipt(value, case.level, found.rule, before, at)
    receipt["bytes_before"] = planned.bytes
    receipt["removed"] = {"characters": max(0, len(before) - len(files.json_line(content)))}
    if written:
        receipt |= {"summary": written.record, "failures": written.failures}
    _seal_receipt(value, receipt)
    less = archive_steps.take(
        place, value, old=case.old, log=case.log, rest=rest, packed=rules.packed, now=at
    )
    return copied(receipt), less


def _written(place: Path, whole: Conversation, backend: str) -> Written:
    """Ask a backend for the summary of a conversation; no lock is held meanwhile."""
    settings = config.load(place)
    reach = Settings(model=settings.compact_model, timeout_seconds=settings.architect_timeout_seconds)
    count = counter_of(load(place).documents["memory"])
    return write_archived(whole, backend=backend, settings=reach, count=count)


def _rest(case: _Case, rules: _Rules, forever: bool) -> tuple[JsonObject | None, bytes | None]:
    """Return what rests in grace after a step, and its bytes where it is not there yet."""
    if not rules.grace_days and not forever:
        return None, None
    until = "" if forever else clock.stamp(rules.now + timedelta(days=rules.grace_days))
    known = case.old["grace"] if case.old else None
    if known:
        # A fuller form than the present one stays; that of a file rests from now on.
        stays = case.level != "full" and not known["until"]
        return {**known, "until": "" if stays or not until else max(until, known["until"])}, None
    data = archive_store.encoded(case.old) if case.old else case.log
    kind = "dict" if case.old else "conversation"
    return archive_store.grace_of(case.conversation["id"], kind, case.level, data, until=until), data


def _file(
    conversation: Conversation, level: Level, content: JsonObject, rules: _Rules, *, old: JsonObject | None,
    source: JsonObject | None = None,
) -> JsonObject:  # fmt: skip
    """Return an archive file of a conversation, without its grace and the receipt of this step."""
    known = old["metrics"] if old else {}
    numbers = {
        "since": retention.age(conversation, rules.now).since, "floor": rules.floor(conversation), "policy": rules.digest,
    }  # fmt: skip
    numbers |= {key: known[key] for key in ("since", "sha256") if key in known}
    if not old and level == "full":
        numbers["sha256"] = archive_steps.digest(files.json_line(content))
    return {
        "version": archive_store.VERSION,
        **{key: conversation[key] for key in ("id", "created_at", "updated_at")},
        "title": redact(conversation["title"]),
        "archived_at": old["archived_at"] if old else clock.stamp(rules.now),
        "level": level,
        "marked": False,
        "source": source or (old["source"] if old else {"kind": "conversation", "name": ""}),
        "content": content,
        "metadata": redacted(old["metadata"] if old else metadata(conversation)),
        "metrics": measure(conversation, content) | numbers,
        "steps": [*old["steps"]] if old else [],
        "grace": None,
    }


def _receipt(value: JsonObject, before: str, rule: str, data: bytes, at: datetime) -> JsonObject:
    """Return the receipt of a step, which holds no text."""
    return {
        "id": new_id("age", at), "at": clock.stamp(at), "kind": "archive", "conversation": value["id"],
        "from": before, "to": value["level"], "rule": rule, "bytes_before": 0, "bytes_after": 0,
        "kept": {"ratio": value["metrics"]["ratio"], **value["metrics"]["retention"]}, "removed": {},
        "sha256_before": archive_steps.digest(data), "sha256_after": archive_steps.digest(files.json_line(value["content"])),
        "grace_until": value["grace"]["until"] if value["grace"] else None,
    }  # fmt: skip


def _seal_receipt(value: JsonObject, receipt: JsonObject) -> None:
    """Add a receipt to the steps of its file, with the bytes that the file has then."""
    value["steps"] = [*value["steps"], receipt]
    for _ in range(3):  # the number is part of the file
        receipt["bytes_after"] = len(archive_store.encoded(value))


def _end_grace(place: Path, id: str, rules: _Rules) -> tuple[JsonObject, int]:
    """Remove the fuller form of a conversation whose grace is over."""
    case = _case(place, id, rules)
    old = case.old
    if not old or not old["grace"] or not "" < old["grace"]["until"] <= clock.stamp(rules.now):
        raise Conflict("it was changed meanwhile.", fix="Age again.", where=id)
    value = {**old, "grace": None}
    at = clock.now()
    receipt = _receipt(value, old["level"], GRACE_OVER, files.json_line(old["content"]), at)
    receipt["bytes_before"] = archive_steps.bytes_of(place, id)
    receipt["removed"] = {"level": old["grace"]["level"], "bytes": old["grace"]["bytes"]}
    _seal_receipt(value, receipt)
    return copied(receipt), archive_steps.take(place, value, old=old, packed=rules.packed, now=at)


# --- Adding


class _Given(NamedTuple):
    """A conversation that is to be added."""

    raw: JsonObject
    source: JsonObject
    data: bytes | None
    """The file it was read from, if it is the only one in it."""


@public
def archive_conversations(conversations: Iterable[Mapping[str, Any]], *, home: Home = None) -> ArchivedBatch:
    """Add conversation dicts to the archive at level `full`; each failure is reported, and the rest goes on.

    One that is there already is left as it is; one that has grown since takes its place.
    """
    given = (_Given(cast("JsonObject", one), {"kind": "dict", "name": ""}, None) for one in conversations)
    return _add_all(given, ArchivedBatch([], [], [], {}), home)


@public
def archive_files(paths: Iterable[str | os.PathLike[str]], *, home: Home = None) -> ArchivedBatch:
    """Add transcripts and conversation files to the archive at level `full`; each failure is reported.

    The file itself rests compressed beside it, so that it can be restored byte for byte.
    """
    batch = ArchivedBatch([], [], [], {})
    return _add_all(_read_files(paths, batch), batch, home)


def _read_files(paths: Iterable[str | os.PathLike[str]], batch: ArchivedBatch) -> Iterator[_Given]:
    for path in paths:
        name = os.fspath(path)
        try:
            with regular.named(path) as file:
                data = file.read()
                written = clock.stamp(datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC))
            raws = [*_raws(data, name, batch.findings)]
        except AetherError as reason:
            batch.failed.append(_failure(reason, name))
            continue
        for raw in raws:
            if not (raw.get("created_at") or raw.get("updated_at")):
                raw["created_at"] = written  # without a time it would never age
            yield _Given(
                raw, {"kind": "file", "name": os.path.basename(name)}, data if len(raws) == 1 else None
            )


def _raws(data: bytes, name: str, unread: list[Finding] | None = None) -> Iterator[JsonObject]:
    """Yield the conversations in a file: conversation objects, or the transcript of any known agent.

    `unread` gets the lines that are in none of them.

    Raises:
        InvalidInput: it has none.
    """
    if data[:2] == b"\x1f\x8b":
        with suppress(CorruptDocument):
            data = archive_store.gunzipped(data, where=name)
    value: Any = None
    with suppress(AetherError):
        value = files.parse_json(data, where=name)
    if isinstance(value, dict) and isinstance(value.get("original_conversation"), dict):
        value = value["original_conversation"]  # an archive of an earlier program
    listed = value if isinstance(value, list) else [value]
    if listed and all(isinstance(one, dict) and isinstance(one.get("messages"), list) for one in listed):
        yield from (_named(one, data, name, nth) for nth, one in enumerate(listed))
        return
    nth, others = 0, 1
    while nth < others:
        found = load_conversation(io.BytesIO(data), nth=nth)
        if unread is not None and not nth:
            unread.extend(one._replace(where=f"{name}: {one.where}") for one in found.unread)
        others = found.others + 1
        yield _named({"messages": [one.raw for one in found.messages]}, data, name, nth)
        nth += 1


def _named(raw: JsonObject, data: bytes, name: str, nth: int) -> JsonObject:
    """Return a conversation of a file with an id, a title and times, which a transcript has in its lines."""
    fields: JsonObject = {}
    if not raw.get("id"):
        session = _SESSION.search(data)
        path = Path(name)
        stem = (
            session[1].decode(errors="replace")
            if session
            else f"{path.stem}-{files.checksum(str(path.absolute()).encode())[:8]}"
        )
        fields["id"] = f"{stem}-{nth + 1}" if nth else stem
    if not raw.get("title"):
        fields["title"] = _title([one for one in raw["messages"] if isinstance(one, dict)])
    if not (raw.get("created_at") or raw.get("updated_at")):
        times = sorted(found[1].decode(errors="replace") for found in _TIME.finditer(data))
        if times:
            fields |= {"created_at": times[0], "updated_at": times[-1]}
    return fields | raw | fields  # in the order in which they are shown; what the file has empty is filled


def _add_all(given: Iterable[_Given], batch: ArchivedBatch, home: Home) -> ArchivedBatch:
    """Add conversations to the archive; `batch` gets what came of it, and is returned."""
    place = drained(find(home))
    rules = _rules(place, None)
    archive_steps.end_open(place, now=rules.now)
    waiting: dict[str, tuple[JsonObject, bytes | None]] = {}
    made: set[str] = set()
    for nth, one in enumerate(given):
        try:
            value, data, found = _full(one, rules, nth)
            if len(waiting) == BATCH or value["id"] in waiting:
                _flush(place, waiting, rules, batch)
            row = archive_store.find(place, value["id"])
            if row:
                batch.added.append(_replace(place, row, value, data, rules))
                if row.id not in made:
                    batch.before.setdefault(row.id, _listed(row))
            elif conversations.path_of(place, value["id"]).exists():
                what = f"conversation {shown(value['id'])} is live in this home."
                raise Conflict(
                    what, fix="Age it instead, or give this one another id.", where=str(value["id"])
                )
            else:
                for packed in (False, True):
                    archive_store.require_free(
                        place, archive_store.name_of(value, packed=packed), value["id"]
                    )
                waiting[value["id"]] = (value, data)
                made.add(value["id"])
            batch.findings.extend(found)
        except AetherError as reason:
            batch.failed.append(_failure(reason, one.source["name"] or f"conversations[{nth}]"))
    _flush(place, waiting, rules, batch)
    return batch


def _full(one: _Given, rules: _Rules, nth: int) -> tuple[JsonObject, bytes | None, list[Finding]]:
    """Return the archive file of a conversation at level `full`, what rests beside it, and findings."""
    where = one.source["name"] or f"conversations[{nth}]"
    files.checked_json(one.raw, where=where, above=2)
    conversation, found = shapes.read_conversation(one.raw, where=where)
    value = _file(conversation, "full", form(conversation, "full"), rules, old=None, source=one.source)
    value["marked"] = retention.is_marked_by_itself(conversation) or value["id"] in rules.marked
    if one.data is not None:
        value["grace"] = archive_store.grace_of(value["id"], "file", "full", one.data, until="")
    return value, one.data, found


def _flush(
    place: Path, waiting: dict[str, tuple[JsonObject, bytes | None]], rules: _Rules, batch: ArchivedBatch
) -> None:
    if not waiting:
        return
    made = [*waiting.values()]
    waiting.clear()
    try:
        names = archive_steps.add(place, made, packed=rules.packed, now=rules.now)
    except Conflict:  # another process added some of them meanwhile
        for value, data in made:
            _add_one(place, value, data, rules, batch)
        return
    except AetherError as reason:
        batch.failed.extend(_failure(reason, str(value["id"])) for value, _ in made)
        return
    batch.added.extend(_archived(place, value, name) for name, (value, _) in zip(names, made, strict=True))


def _add_one(place: Path, value: JsonObject, data: bytes | None, rules: _Rules, batch: ArchivedBatch) -> None:
    try:
        if row := archive_store.find(place, value["id"]):
            batch.added.append(_replace(place, row, value, data, rules))
            batch.before.setdefault(row.id, _listed(row))
        else:
            names = archive_steps.add(place, [(value, data)], packed=rules.packed, now=rules.now)
            batch.added.extend(_archived(place, value, name) for name in names)
    except AetherError as reason:
        batch.failed.append(_failure(reason, str(value["id"])))


def _archived(place: Path, value: JsonObject, name: str) -> Archived:
    size = archive_store.size(place, name) + (
        archive_store.size(place, value["grace"]["file"]) if value["grace"] else 0
    )
    return Archived(value["id"], value["title"], value["created_at"], value["level"], size, name)


def _replace(
    place: Path, row: archive_store.Row, value: JsonObject, data: bytes | None, rules: _Rules
) -> Archived:
    """Put a conversation in the place of an earlier state of it; the same one is left as it is.

    Raises:
        Conflict: the archived one has messages that this one lacks.
    """
    old = archive_store.read(place, row.name)
    is_same = old["level"] == "full" and _without_times(old["content"]) == _without_times(value["content"])
    if is_same or old["metrics"].get("sha256") == value["metrics"]["sha256"]:
        return _listed(row)
    if not _continues(place, value["content"], old):
        what = f"conversation {shown(value['id'])} is archived with other messages than these."
        raise Conflict(what, fix="Give this one another id.", where=row.name)
    value = {**value, "archived_at": old["archived_at"], "steps": [*old["steps"]]}
    receipt = _receipt(value, old["level"], "added again", files.json_line(old["content"]), rules.now)
    receipt["bytes_before"] = row.bytes
    _seal_receipt(value, receipt)
    archive_steps.take(place, value, old=old, rest=data, packed=rules.packed, now=rules.now)
    return _archived(place, value, archive_store.name_of(value, packed=rules.packed))


def _continues(place: Path, content: JsonObject, old: JsonObject) -> bool:
    """Return whether a full conversation starts with the messages of an archived one.

    Where no full form of that is left, what was measured of it when it was whole is compared.
    """
    size = old["metadata"]["total_messages"]
    start = content["messages"][:size]
    if len(start) < size:
        return False
    if _fullest_level(old) == "full":
        return bool(start == _fullest(place, old)["messages"])
    given = shapes.given_conversation(content) | {"messages": start}
    found, _ = shapes.read_conversation(given, where=old["id"], times=content.get("times"))
    measured, about = measure(found, {}), redacted(metadata(found))
    return all(measured[key] == old["metrics"].get(key) for key in ("text_chars", "facts")) and all(
        about[key] == old["metadata"][key] for key in ("topics", "key_entities")
    )


def _without_times(content: JsonObject) -> JsonObject:
    """Return a conversation without its times, which of a file may be those of the file."""
    given = content.get("given") or {}
    return content | {
        "given": {key: value for key, value in given.items() if key not in ("created_at", "updated_at")}
    }


# --- Bringing back


@public
def restore_conversation(
    id: str, *, output: str | os.PathLike[str] | None = None, home: Home = None
) -> Restored:
    """Bring a conversation back as full as it still is; within its grace exactly as it was.

    The log of a live conversation returns to `conversations/`, byte for byte, and goes on from there; its age counts from
    now, as if it had been used. Dicts and files are
    returned, and stay in the archive; one that was restored before is returned as it is. With `output` it is written to that file, and the archive is not changed: the file
    that was added, or the conversation as JSON.

    Raises:
        NotFound: it is not archived, or is live again and `output` is given.
        CorruptDocument: its archive file, or its fuller form, is damaged.
        Conflict: the file `output` exists.
        LockTimeout, StorageFailed: it is as it was.
    """
    place = drained(find(home))
    at = clock.now()
    archive_steps.end_open(place, now=at)
    path = conversations.path_of(place, id)
    # As after a restore that was killed. One that never was archived is not restored.
    if output is None and path.exists() and id in conversation_list.restored_at(place):
        live = _of_log(place, id, regular.read(path, regular.LOG_BYTES))
        return Restored({key: live[key] for key in _FIELDS}, "full", True, str(path))
    old = read_archived(id, home=place)
    grace, kind, level = old["grace"], old["source"]["kind"], _fullest_level(old)
    data = archive_store.read_grace(place, grace) if grace else b""
    whole = _fullest(place, old)
    exact = level == "full" and (kind == "dict" or bool(grace))
    conversation = _given_back(old, whole, data, level)
    if output is not None:
        written = data if kind == "file" and exact else files.json_document(conversation)
        return Restored(conversation, level, exact, str(files.write_new(Path(output), written)))
    if kind == "conversation" and exact:
        receipt = _receipt(
            old | {"level": "full", "grace": None},
            old["level"],
            "restored",
            files.json_line(old["content"]),
            at,
        )
        receipt |= {
            "bytes_before": archive_steps.bytes_of(place, id),
            "bytes_after": len(data),
            "kept": {"ratio": 1.0},
        }
        receipt["sha256_after"] = archive_steps.digest(data)
        return Restored(conversation, level, exact, str(archive_steps.restore(place, id, receipt, now=at)))
    return Restored(conversation, level, exact, "")


def _given_back(old: JsonObject, whole: Conversation, data: bytes, level: str) -> JsonObject:
    """Return a conversation as its caller gave it, or what is left of it."""
    if level == "full":
        if old["level"] == "full":
            return shapes.given_conversation(old["content"])
        if old["source"]["kind"] == "dict":
            return shapes.given_conversation(archive_store.parsed(data, where=old["id"])["content"])
        return {key: whole[key] for key in _FIELDS}
    content = (
        archive_store.parsed(data, where=old["id"])["content"]
        if data and level != old["level"]
        else old["content"]
    )
    fields = {key: old[key] for key in ("id", "title", "created_at", "updated_at")}
    left: JsonObject = copied({**fields, "level": level, **content, "metadata": old["metadata"]})
    return left


@public
def delete_archived(id: str, *, home: Home = None) -> bool:
    """Take a conversation out of the archive, and return whether it was there; its files are kept in `quarantine/`.

    Raises:
        LockTimeout, StorageFailed: it is as it was.
    """
    return archive_steps.set_aside(drained(find(home)), id, now=clock.now())


# --- Looking


@public
def list_archived(
    *, month: str | None = None, level: str | None = None, limit: int | None = None, home: Home = None
) -> list[Archived]:
    """Return the archived conversations, newest first; of one `month` (YYYY-MM), at one `level`.

    Raises:
        InvalidInput: the month, the level or the limit is impossible.
    """
    if month is not None and not _MONTH.fullmatch(month):
        raise InvalidInput(f"{shown(month)} is not a month.", fix="Write it as 2026-03.", where="month")
    if level is not None:
        shapes.level(level)
    if limit is not None and limit < 0:
        raise InvalidInput(f"limit is {limit}.", fix="Use a whole number from 0.", where="limit")
    return [
        _listed(row)
        for row in archive_store.rows(find(home), month=month or "", level=level or "", limit=limit)
    ]


def _listed(row: archive_store.Row) -> Archived:
    return Archived(row.id, row.title, row.created_at, row.level, row.bytes, row.name)


@public
def read_archived(id: str, *, home: Home = None) -> JsonObject:
    """Return the archive file of a conversation; `marked` says whether it is marked now.

    Raises:
        NotFound: it is not archived.
        CorruptDocument, InvalidDocument: its file is damaged, or of another version.
    """
    place = find(home)
    row = archive_store.find(place, id)
    if row is None:
        raise NotFound(
            f"conversation {shown(id)} is not archived.", fix='See "aether archive list".', where=str(place)
        )
    value = archive_store.read(place, row.name)
    marked = load(place).documents["retention"]["marked"]
    return {**value, "marked": id in marked or _marks_itself(value)}


def _marks_itself(value: JsonObject) -> bool:
    return bool(
        ((value["content"].get("given") or {}).get("metadata") or {}).get("user_marked_important") is True
    )


@public
def search_archive(query: str, *, limit: int = 10, home: Home = None) -> list[ArchiveHit]:
    """Return the archived conversations that match `query`, best first, each with the matching part, without secrets.

    Raises:
        InvalidInput: the query is blank, or the limit is below 1.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query is required.", fix="Pass one or more words.", where="search")
    if limit < 1:
        raise InvalidInput(f"limit is {limit}.", fix="Use a whole number from 1.", where="search")
    from aether.memory.search import best_passage

    place = find(home)
    wanted = query_terms(query).weights
    found = []
    for row, score in archive_store.search(place, wanted, limit=limit):
        with suppress(AetherError):  # `verify` names it
            passage = best_passage(
                archive_store.texts(archive_store.read(place, row.name)["content"]), wanted
            )
            found.append(
                ArchiveHit(
                    row.id, row.title, row.created_at, row.level, round(score, 6), redact(passage), row.name
                )
            )
    return found


@public
def archive_stats(*, home: Home = None) -> JsonObject:
    """Return the number of archived conversations, their bytes on disk, and how many have each level."""
    return archive_store.stats(find(home))


@public
def verify_archive(*, home: Home = None) -> list[Finding]:
    """Check every file of the archive and return the findings, errors first; nothing is changed."""
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(archive_steps.examine(find(home)), key=lambda finding: order[finding.level])


# --- Retention


@public
def mark_conversation_important(id: str, marked: bool = True, *, home: Home = None) -> bool:
    """Mark a conversation so that it stays full, or take the mark back; False if there is no such conversation.

    Detail that is lost does not come back by a mark. `undo` reverses it.
    """
    place = drained(find(home))
    if not archive_store.find(place, id) and not conversations.path_of(place, id).exists():
        return False
    at = clock.stamp(clock.now())

    def plan(documents: Mapping[str, Any]) -> Change:
        known = documents["retention"]["marked"]
        if (id in known) == marked:
            return Change({})
        path = "/marked/" + id.replace("~", "~0").replace("/", "~1")
        step = {"op": "add", "path": path, "value": at} if marked else {"op": "remove", "path": path}
        return Change({"retention": [cast("Any", step)]})

    change(place, plan, Author("mark" if marked else "unmark", reason=id))
    return True


@public
def update_retention_policy(changes: Mapping[str, Any], *, home: Home = None) -> JsonObject:
    """Change weights and thresholds of the retention policy, and return the whole policy; `undo` reverses it.

    Raises:
        InvalidInput: a name is unknown, a value is impossible, or the thresholds do not descend; nothing was changed.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        held = documents["retention"]["policy"]
        after = retention.policy(changes, of=retention.policy(held))
        given = dict(changes)
        if "weights" in given:
            given["weights"] = {**held.get("weights", {}), **given["weights"]}
        wanted = {**held, **given}
        step: JsonObject = {"op": "replace", "path": "/policy", "value": wanted}
        return Change({"retention": [cast("Any", step)] if wanted != held else []}, result=after)

    done = change(home, plan, Author("retention policy"))
    return _as_json(done.result)


@public
def retention_policy(*, home: Home = None) -> JsonObject:
    """Return the whole retention policy of a home."""
    return _as_json(retention.policy(read(home).documents["retention"]["policy"]))


def _as_json(policy: Policy) -> JsonObject:
    return policy._asdict() | {"weights": dict(policy.weights)}


@public
def retention_recommendations(
    *, limit: int | None = 100, now: datetime | None = None, home: Home = None
) -> list[JsonObject]:
    """Return what retention recommends for each conversation, the most important first.

    Each has conversation_id, title, created_at, importance_score, should_compress, recommended_level,
    user_marked_important, message_count and retention_reason.
    """
    place = drained(find(home))
    rules = _rules(place, now)
    ids = [one.id for one in conversations.stored_conversations(place)] + [
        row.id for row in archive_store.rows(place)
    ]
    found = []
    for id in ids:  # noqa: A001
        with suppress(AetherError):  # `verify` and `doctor` name it
            case = _case(place, id, rules)
            made = rules.decide(case.conversation)
            level = max(made.level, case.level, key=LEVELS.index)
            found.append({
                "conversation_id": id, "title": redact(case.conversation["title"]),
                "created_at": case.conversation["created_at"], "importance_score": made.score.total,
                "should_compress": level != case.level, "recommended_level": level,
                "user_marked_important": made.rule == "marked",
                "message_count": case.old["metadata"]["total_messages"] if case.old else case.conversation["total_messages"],
                "retention_reason": made.reason,
            })  # fmt: skip
    found.sort(key=lambda one: (-one["importance_score"], one["conversation_id"]))
    return found[:limit]


@public
def explain_retention(id: str, *, now: datetime | None = None, home: Home = None) -> JsonObject:
    """Return the decision about one conversation: level, rule and reason, score and its parts, age and since when, and the next level.

    Raises:
        NotFound: there is no such conversation.
    """
    place = drained(find(home))
    rules = _rules(place, now)
    case = _case(place, id, rules)
    made = rules.decide(case.conversation)
    since_is = retention.last_used(case.conversation)[1]
    return {
        "id": id, "title": redact(case.conversation["title"]), "archived": case.old is not None, "level": case.level,
        "decided_level": made.level, "age_level": made.age_level, "retention_level": made.retention_level,
        "rule": made.rule, "reason": made.reason, "score": made.score.total, "parts": dict(made.score.parts),
        "days": made.days, "since": made.since, "since_is": "last use" if case.old or since_is == "known" else since_is,
        "grace_until": (case.old["grace"] or {}).get("until") if case.old else None,
        **_next(case, rules, made.since),
    }  # fmt: skip


def _next(case: _Case, rules: _Rules, since: str) -> JsonObject:
    """Return the next level that a conversation loses detail to if nothing changes, and from when on; empty if it stays."""
    for days in rules.boundaries if since else ():
        at = max(rules.now, clock.parse(since) + timedelta(days=days))
        level = rules._replace(now=at).decide(case.conversation).level
        if LEVELS.index(level) > LEVELS.index(case.level):
            return {"next_level": level, "next_at": clock.stamp(at)}
    return {"next_level": "", "next_at": ""}


# --- Versions


@public
def migrate_archive(*, home: Home = None) -> list[Path]:
    """Write archive files of older versions as the present one, and return them; the older file goes to quarantine.

    Raises:
        InvalidDocument: a newer aether wrote one of them; those before it are migrated.
    """
    place = drained(find(home))
    rules = _rules(place, None)
    done = []
    for name in archive_store.older_names(place):
        value = _migrated(place, name, rules)
        kept = archive_steps.exchange(place, name, value, packed=rules.packed, now=rules.now)
        done.append(place / kept)
    return done


def _migrated(place: Path, name: str, rules: _Rules) -> JsonObject:
    """Return the archive file that one of an older version becomes.

    Version 1.0 has the whole conversation beside its lesser form: the whole one is kept.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    value = files.parse_json(archive_store.read_bytes(place, name), where=name)
    if not isinstance(value.get("original_conversation"), dict):
        raise archive_store.of_other_version(value["version"], name)
    conversation, _ = shapes.read_conversation(value["original_conversation"], where=name)
    source = {"kind": "dict", "name": ""}
    return _file(conversation, "full", form(conversation, "full"), rules, old=None, source=source)
