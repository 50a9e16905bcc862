"""The archive: conversations that lose detail as they age, and can be listed, searched, read and restored.

A conversation is either live (`conversations/`) or archived (`archive/`), never both. Each step is one transaction with a
receipt; the fuller form is kept compressed in `archive/grace/` until its grace is over.
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
from aether.clock import new_id
from aether.conversation import archive_retention as retention
from aether.conversation import archived as shapes
from aether.conversation.archive_levels import form, measure, metadata
from aether.conversation.archive_retention import Boundaries, Decision, Policy
from aether.conversation.archived import LEVELS, Conversation, Level
from aether.conversation.summarise import Written, write_archived
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidInput,
    NotFound,
    public,
    shown,
    with_stored,
)
from aether.messages.transcripts import load_conversation
from aether.redact.redact import redact, redacted
from aether.store import (
    archive_steps,
    archive_store,
    config,
    conversation_checks,
    conversation_list,
    conversations,
    files,
    history,
)
from aether.store.authors import Author
from aether.store.snapshot import load
from aether.text.cleaning import clean
from aether.text.words import query_terms
from aether.types import Change, Finding, JsonObject

# Conversations that are written in one step of a batch.
BATCH = 64
# The start of the first line that is the title of a conversation without one.
TITLE_CHARS = 60
# The rule by which a fuller form is removed.
GRACE_OVER = "grace over"
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])", re.ASCII)
_TIME = re.compile(rb'"timestamp":\s*"([^"]{10,40})"')
_SESSION = re.compile(rb'"session_?[iI]d":\s*"([^"]{1,200})"')
# Fields that are returned of a conversation that no caller gave as an object.
_FIELDS = ("id", "title", "created_at", "updated_at", "messages")
Progress = Callable[[int, int], None]


class Planned(NamedTuple):
    """A conversation whose age asks for a lesser level than it has, or whose grace is over."""

    id: str
    title: str
    days: int
    score: float
    rule: str
    from_level: str
    to_level: str
    bytes: int
    """Its present size on disk."""


class Ageing(NamedTuple):
    """The result of an ageing pass; in a dry run only the plan."""

    plan: list[Planned]
    done: list[JsonObject]
    """The receipts of the steps that were taken."""
    failed: list[Finding]
    """One for each conversation that could not be aged; it stays as it was."""
    saved_bytes: int
    """Bytes on disk before less those after, as measured; less than 0 while fuller forms are in grace."""


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
    """Fields of the others that could not be used, such as a time that cannot be read."""
    before: dict[str, Archived]
    """By id, the earlier state of those that were archived before."""


class Restored(NamedTuple):
    """A conversation that was restored."""

    conversation: JsonObject
    level: str
    exact: bool
    """Whether it is byte for byte what was archived."""
    path: str
    """The file it was written to, "" if it was only returned."""


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
    """The rules that decide the levels of a home at one instant."""

    now: datetime
    boundaries: Boundaries
    policy: Policy
    digest: str
    """The policy as the index names it."""
    marked: frozenset[str]
    restored: Mapping[str, str]
    """When each live conversation was last restored: a restore counts as a use."""
    grace_days: int
    packed: bool

    def decide(self, conversation: Conversation) -> Decision:
        is_marked = conversation["id"] in self.marked
        return retention.decide(
            conversation, now=self.now, boundaries=self.boundaries, policy=self.policy, marked=is_marked
        )

    def floor(self, conversation: Conversation) -> Level:
        """Return the least level that retention ever allows a conversation, by its own marks and its score."""
        if retention.is_marked_by_itself(conversation):
            return "full"
        score = retention.score(conversation, self.policy)
        return retention.level_of_score(score, self.policy.recent_days + 1, self.policy)[0]


class _Case(NamedTuple):
    """One conversation of a home, live or archived, in its present form."""

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
    days = [int(day) for day in settings.archive_boundaries.split(",") if day.strip()]
    if preset is not None or not days:
        boundaries = retention.boundaries(preset or "default")
    else:
        boundaries = retention.boundaries(dict(zip(LEVELS[1:], days, strict=True)))
    document = load(place).documents["retention"]
    policy = retention.policy(document["policy"])
    policy_text = repr(policy._replace(weights=dict(sorted(policy.weights.items()))))
    if now is None:
        now = clock.now()
    now = now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
    return _Rules(
        now, boundaries, policy, files.checksum(policy_text.encode()), frozenset(document["marked"]),
        conversation_list.restored_at(place), settings.archive_grace_days, settings.archive_compress,
    )  # fmt: skip


# --- Ageing


@public
def age_archive(
    *, now: datetime | None = None, preset: str | None = None, dry_run: bool = False, forever: bool = False,
    backend: str | None = None, progress: Progress | None = None, seconds: float | None = None,
    ids: Collection[str] | None = None, home: Home = None,
) -> Ageing:  # fmt: skip
    """Age every conversation that is old enough, oldest first, and return the plan, the receipts and the failures.

    `now` is the time by which it decides; the log and the receipts have the real one. With `ids` only these are aged.
    `progress` is called with the number of conversations that are done and the total. After `seconds` no further one is
    started. With `forever` the fuller forms are never removed. A `backend` writes the summaries; without one, or where its
    answer is refused, they are selected from the conversation. Calling it twice is calling it once.

    Raises:
        InvalidInput: there is no such preset or backend.
        LockTimeout, StorageFailed: nothing was aged.
    """
    until = time.monotonic() + seconds if seconds is not None else None
    if backend is not None:
        backend_of(backend)  # an unknown name is a mistake of the caller, not a failure of a backend
    place = drained(find(home))
    rules = _rules(place, now, preset)
    if not dry_run:
        archive_steps.end_open(place, now=clock.now())
    plan, failed = _plan(place, rules, forever=forever)
    if ids is not None:
        plan = [step for step in plan if step.id in ids]
        failed = [finding for finding in failed if finding.where in ids]
    result = Ageing(plan, [], failed, 0)
    for nth, step in enumerate(() if dry_run else plan):
        if until is not None and time.monotonic() > until:
            break
        try:
            age = _end_grace if step.rule == GRACE_OVER else _age
            receipt, saved = age(place, step, rules, forever, backend)
        except AetherError as reason:
            failed.append(_failure(reason, step.id))
        else:
            result.done.append(receipt)
            result = result._replace(saved_bytes=result.saved_bytes + saved)
        if progress:
            progress(nth + 1, len(plan))
    return result


def _failure(reason: AetherError, where: str) -> Finding:
    reason = with_stored(reason)
    return Finding("error", reason.code, where, reason.what, reason.fix)


def _plan(place: Path, rules: _Rules, *, forever: bool) -> tuple[list[Planned], list[Finding]]:
    """Return the conversations that lose detail now, oldest first, then those whose grace is over unless `forever`.

    Only those that are ready are read; marked ones keep their fuller form.
    """
    latest = [clock.stamp(rules.now - timedelta(days=days)) for days in rules.boundaries]
    failed: list[Finding] = []
    plan: list[Planned] = []
    ready = [
        stored.id
        for stored in conversations.stored_conversations(place)
        if "" < max(conversations.last_use(stored), rules.restored.get(stored.id, "")) <= latest[0]
    ]
    _refresh_floors(place, rules)
    ready += [row.id for row in archive_store.ready(place, latest)]
    expired = [] if forever else [row.id for row in archive_store.expired(place, clock.stamp(rules.now))]
    for id in dict.fromkeys([*ready, *expired]):  # noqa: A001
        try:
            case = _case(place, id, rules)
            decision = rules.decide(case.conversation)
        except AetherError as reason:
            failed.append(_failure(reason, id))
            continue
        if LEVELS.index(decision.level) > LEVELS.index(case.level):
            # This step still reads a form whose grace is over; its grace then ends with that of the new form.
            step: tuple[str, str, str] = (decision.rule, case.level, decision.level)
        elif id in expired and id not in rules.marked:
            grace = (case.old and case.old["grace"]) or {}
            step = (GRACE_OVER, grace.get("level", case.level), case.level)
        else:
            continue
        size, title = archive_steps.bytes_of(place, id), redact(case.conversation["title"])
        plan.append(Planned(id, title, decision.days, decision.score.total, *step, size))
    return sorted(plan, key=lambda step: (step.rule == GRACE_OVER, -step.days, step.id)), failed


def _refresh_floors(place: Path, rules: _Rules) -> None:
    """Decide the least level again for conversations of another policy."""
    floors = []
    for row in archive_store.of_other_policy(place, rules.digest):
        with suppress(AetherError, KeyError):  # `verify` reports it
            conversation = shapes.conversation_of(archive_store.read(place, row.name))
            floors.append((row.id, rules.floor(conversation), rules.digest))
    if floors:
        archive_store.set_floor(place, floors)


def _case(place: Path, id: str, rules: _Rules) -> _Case:
    """Return a conversation, live or archived, in its present form.

    Raises:
        NotFound: it is neither live nor archived.
        Conflict: the log of a live one is damaged.
    """
    row = archive_store.find(place, id)
    if row:
        old = archive_store.read(place, row.name)
        # Its age is that of the whole conversation, whichever messages remain.
        times = {"times": [row.since] if row.since else []}
        return _Case(shapes.conversation_of(old) | times, old, b"")
    path = conversations.path_of(place, id)
    if not path.exists():
        what = f"there is no conversation {shown(id)}."
        raise NotFound(what, fix='See "aether archive list".', where=str(place))
    data = regular.read(path, regular.LOG_BYTES)
    conversation = _of_log(place, id, data)
    if id in rules.restored:
        since = max(retention.last_used(conversation)[0], rules.restored[id])
        conversation["known"] = {"since": since}
    return _Case(conversation, None, data)


def _of_log(place: Path, id: str, data: bytes) -> Conversation:
    """Return the conversation in a log; the time of a message is that at which it was added."""
    log = history.extended(history.empty(conversations.path_of(place, id), id), data)
    if log.torn or log.damaged:
        what = f"the log of conversation {shown(id)} is damaged."
        raise Conflict(what, fix=files.REPAIR, where=str(log.path))
    numbers = history.said(log)
    messages = history.messages(log, numbers)
    times = [log.times[number - 1] for number in numbers]
    # The notes of its owner (`MemoryManager`): title, session, time and metadata.
    about = log.settings.get("about", {})
    raw = {
        "updated_at": max(times, default=None), **{key: about[key] for key in ("session_id", "metadata") if key in about},
        "id": id, "title": about.get("title") or _title(messages), "messages": messages,
        "created_at": about.get("created_at") or min(times, default=None),
    }  # fmt: skip
    conversation = shapes.read_conversation(raw, where=id, times=times)[0]
    conversation["id"] = id  # exactly: blanks at its ends are part of it
    return conversation


def _title(messages: list[JsonObject]) -> str:
    """Return the start of the first line that a user wrote, without secrets; a program's text only if there is no other."""
    by_user = [message for message in messages if message.get("role") == "user"]
    texts = [text for text in archive_store.texts({"messages": by_user}) if text.strip()]
    first = next(filter(None, map(clean, texts)), "") or next(iter(texts), "")
    return redact(first.strip().partition("\n")[0])[:TITLE_CHARS].strip()


def _fullest_level(old: JsonObject) -> Level:
    return min(old["level"], (old["grace"] or old)["level"], key=LEVELS.index)


def _fullest(place: Path, old: JsonObject) -> Conversation:
    """Return the fullest form that exists of an archived conversation."""
    grace = old["grace"]
    if not grace or old["level"] == "full":
        return shapes.conversation_of(old)
    data = archive_store.read_grace(place, grace)
    if grace["level"] == "full" and old["source"]["kind"] == "conversation":
        return _of_log(place, old["id"], data)
    if grace["level"] == "full" and old["source"]["kind"] == "file":
        raw = next(iter(_raws(data, old["source"]["name"])))
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
    case = _case(place, planned.id, rules)
    decision = rules.decide(case.conversation)
    if (case.level, decision.level) != (planned.from_level, planned.to_level):
        raise Conflict("it was changed meanwhile.", fix="Age again.", where=planned.id)
    conversation = _fullest(place, case.old) if case.old else case.conversation
    written = _written(place, conversation, backend) if backend and decision.level == "summary" else None
    content = redacted(form(conversation, decision.level, written=written.prose if written else None))
    aged_at = clock.now()  # also if it ages as if it were another time
    value = _file(conversation, decision.level, content, rules, old=case.old)
    value["grace"], grace = _grace(case, rules, forever)
    value["marked"] = planned.id in rules.marked
    if not case.old:
        value["archived_at"] = clock.stamp(aged_at)
    before = files.json_line(case.old["content"]) if case.old else case.log
    receipt = _receipt(value, case.level, decision.rule, before, aged_at)
    receipt["bytes_before"] = planned.bytes
    receipt["removed"] = {"characters": max(0, len(before) - len(files.json_line(content)))}
    if written:
        receipt |= {"summary": written.record, "failures": written.failures}
    _add_step(value, receipt)
    saved = archive_steps.take(
        place, value, old=case.old, log=case.log, grace=grace, packed=rules.packed, now=aged_at
    )
    return copied(receipt), saved


def _written(place: Path, conversation: Conversation, backend: str) -> Written:
    """Ask a backend for the summary of a conversation, without holding a lock."""
    settings = config.load(place)
    reach = Settings(model=settings.compact_model, timeout_seconds=settings.architect_timeout_seconds)
    count = counter_of(load(place).documents["memory"])
    return write_archived(conversation, backend=backend, settings=reach, count=count)


def _grace(case: _Case, rules: _Rules, forever: bool) -> tuple[JsonObject | None, bytes | None]:
    """Return the grace of a conversation after a step, and the bytes of the fuller form unless it is stored already."""
    if not rules.grace_days and not forever:
        return None, None
    until = "" if forever else clock.stamp(rules.now + timedelta(days=rules.grace_days))
    current = case.old["grace"] if case.old else None
    if current:
        # A form that is fuller than the present one stays; the grace of an added file starts now.
        stays = case.level != "full" and not current["until"]
        return {**current, "until": "" if stays or not until else max(until, current["until"])}, None
    data = archive_store.encoded(case.old) if case.old else case.log
    kind = "dict" if case.old else "conversation"
    return archive_store.grace_of(case.conversation["id"], kind, case.level, data, until=until), data


def _file(
    conversation: Conversation, level: Level, content: JsonObject, rules: _Rules, *, old: JsonObject | None = None,
    source: JsonObject | None = None,
) -> JsonObject:  # fmt: skip
    """Return an archive file of a conversation, without its grace and the receipt of this step."""
    metrics = measure(conversation, content)
    metrics |= {"since": retention.age(conversation, rules.now).since, "policy": rules.digest}
    metrics["floor"] = rules.floor(conversation)
    if old:
        metrics |= {key: old["metrics"][key] for key in ("since", "sha256") if key in old["metrics"]}
    elif level == "full":
        metrics["sha256"] = regular.digest(files.json_line(content))
    return {
        "version": archive_store.VERSION, **{key: conversation[key] for key in ("id", "created_at", "updated_at")},
        "title": redact(conversation["title"]), "archived_at": old["archived_at"] if old else clock.stamp(rules.now),
        "level": level, "marked": False,
        "source": source or (old["source"] if old else {"kind": "conversation", "name": ""}), "content": content,
        "metadata": redacted(old["metadata"] if old else metadata(conversation)), "metrics": metrics,
        "steps": [*old["steps"]] if old else [], "grace": None,
    }  # fmt: skip


def _receipt(value: JsonObject, before: str, rule: str, data: bytes, timestamp: datetime) -> JsonObject:
    """Return the receipt of a step, which contains no text of the conversation."""
    return {
        "id": new_id("age", timestamp), "at": clock.stamp(timestamp), "kind": "archive", "conversation": value["id"],
        "from": before, "to": value["level"], "rule": rule, "bytes_before": 0, "bytes_after": 0,
        "kept": {"ratio": value["metrics"]["ratio"], **value["metrics"]["retention"]}, "removed": {},
        "sha256_before": regular.digest(data), "sha256_after": regular.digest(files.json_line(value["content"])),
        "grace_until": value["grace"]["until"] if value["grace"] else None,
    }  # fmt: skip


def _add_step(value: JsonObject, receipt: JsonObject) -> None:
    """Add a receipt to the steps of its file, with the bytes of the file including that number."""
    value["steps"] = [*value["steps"], receipt]
    size = len(archive_store.encoded(value))
    receipt["bytes_after"] = size + len(str(size)) - len("0")


def _end_grace(place: Path, planned: Planned, rules: _Rules, *_: object) -> tuple[JsonObject, int]:
    """Remove the fuller form of a conversation whose grace is over."""
    old = _case(place, planned.id, rules).old
    if not old or not old["grace"] or not "" < old["grace"]["until"] <= clock.stamp(rules.now):
        raise Conflict("it was changed meanwhile.", fix="Age again.", where=planned.id)
    value = {**old, "grace": None}
    ended_at = clock.now()
    receipt = _receipt(value, old["level"], GRACE_OVER, files.json_line(old["content"]), ended_at)
    receipt["bytes_before"] = archive_steps.bytes_of(place, planned.id)
    receipt["removed"] = {"level": old["grace"]["level"], "bytes": old["grace"]["bytes"]}
    _add_step(value, receipt)
    return copied(receipt), archive_steps.take(place, value, old=old, packed=rules.packed, now=ended_at)


# --- Adding


class _Given(NamedTuple):
    """A conversation to add."""

    raw: JsonObject
    source: JsonObject
    data: bytes | None
    """The file it was read from, if the file has no other one."""


@public
def archive_conversations(conversations: Iterable[Mapping[str, Any]], *, home: Home = None) -> ArchivedBatch:
    """Add conversation dicts to the archive at level `full`; failures are reported, and the others added.

    One that is archived already is unchanged; one that has grown since replaces it.
    """
    additions = (_Given(cast("JsonObject", raw), {"kind": "dict", "name": ""}, None) for raw in conversations)
    return _add_all(additions, ArchivedBatch([], [], [], {}), home)


@public
def archive_files(paths: Iterable[str | os.PathLike[str]], *, home: Home = None) -> ArchivedBatch:
    """Add transcripts and conversation files to the archive at level `full`; failures are reported.

    The file itself is kept compressed beside it, so that it can be restored byte for byte.
    """
    batch = ArchivedBatch([], [], [], {})
    return _add_all(_read_files(paths, batch), batch, home)


def _read_files(paths: Iterable[str | os.PathLike[str]], batch: ArchivedBatch) -> Iterator[_Given]:
    for path in paths:
        name = os.fspath(path)
        try:
            with regular.named(path) as file:
                data = file.read()
                changed = clock.stamp(datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC))
            raws = [*_raws(data, name, batch.findings)]
        except AetherError as reason:
            batch.failed.append(_failure(reason, name))
            continue
        for raw in raws:
            if not (raw.get("created_at") or raw.get("updated_at")):
                raw["created_at"] = changed  # without a time it would never age
            source = {"kind": "file", "name": _readable(os.path.basename(name))}
            yield _Given(raw, source, data if len(raws) == 1 else None)


def _raws(data: bytes, name: str, unread: list[Finding] | None = None) -> Iterator[JsonObject]:
    """Yield the conversations in a file: conversation objects, or the transcript of any supported agent.

    `unread` gets all other lines.

    Raises:
        InvalidInput: it has none.
    """
    if data[:2] == b"\x1f\x8b":
        with suppress(CorruptDocument):
            data = files.gunzipped(data, where=name)
    value: Any = None
    with suppress(AetherError):
        value = files.parse_json(data, where=name)
    if isinstance(value, dict) and isinstance(value.get("original_conversation"), dict):
        value = value["original_conversation"]  # an archive of the original program
    listed = value if isinstance(value, list) else [value]
    if listed and all(isinstance(raw, dict) and isinstance(raw.get("messages"), list) for raw in listed):
        yield from (_named(raw, data, name, nth) for nth, raw in enumerate(listed))
        return
    nth, last = 0, 0
    while nth <= last:
        transcript = load_conversation(io.BytesIO(data), nth=nth)
        if unread is not None and not nth:
            unread.extend(finding._replace(where=f"{name}: {finding.where}") for finding in transcript.unread)
        last = transcript.others
        yield _named({"messages": [message.raw for message in transcript.messages]}, data, name, nth)
        nth += 1


def _named(raw: JsonObject, data: bytes, name: str, nth: int) -> JsonObject:
    """Return a conversation of a file with an id, a title and times, which are in the lines of a transcript."""
    fields: JsonObject = {}
    if not raw.get("id"):
        session, path = _SESSION.search(data), Path(name)
        stem = f"{_readable(path.stem)}-{files.checksum(os.fsencode(path.absolute()))[:8]}"
        stem = session[1].decode(errors="replace") if session else stem
        fields["id"] = f"{stem}-{nth + 1}" if nth else stem
    if not raw.get("title"):
        fields["title"] = _title([message for message in raw["messages"] if isinstance(message, dict)])
    if not (raw.get("created_at") or raw.get("updated_at")):
        times = sorted(match[1].decode(errors="replace") for match in _TIME.finditer(data))
        if times:
            fields |= {"created_at": times[0], "updated_at": times[-1]}
    return fields | raw | fields  # in the order in which they are shown; empty fields of the file are filled


def _readable(name: str) -> str:
    """Return a file's name as text; bytes that are not UTF-8 become question marks."""
    return name.encode("utf-8", "replace").decode("utf-8")


def read_again(place: Path, id: str, data: bytes) -> JsonObject:
    """Return the archive file of a conversation at level `full`, made again from the file that was added.

    Raises:
        AetherError: the file holds no conversation, or several.
    """
    rules = _rules(place, None)
    raws = [*_raws(data, id)]
    if len(raws) != 1:
        raise CorruptDocument("it holds several conversations.", fix="Add it again.", where=id)
    raw = {"created_at": clock.stamp(rules.now), **raws[0], "id": id}
    return _full(_Given(raw, {"kind": "file", "name": ""}, data), rules, id)[0]


def _add_all(additions: Iterable[_Given], batch: ArchivedBatch, home: Home) -> ArchivedBatch:
    """Add conversations to the archive; `batch` gets the results, and is returned."""
    place = drained(find(home))
    rules = _rules(place, None)
    archive_steps.end_open(place, now=rules.now)
    waiting: dict[str, tuple[JsonObject, bytes | None]] = {}
    new: set[str] = set()
    for nth, addition in enumerate(additions):
        where = addition.source["name"] or f"conversations[{nth}]"
        try:
            value, findings = _full(addition, rules, where)
            if len(waiting) == BATCH or value["id"] in waiting:
                _write_waiting(place, waiting, rules, batch)
            if archive_store.find(place, value["id"]):
                _replace(place, value, addition.data, rules, batch)
                if value["id"] in new:
                    del batch.before[value["id"]]
            elif conversations.path_of(place, value["id"]).exists():
                what, fix = f"conversation {shown(value['id'])} is live in this home.", "Age it instead, or give this one another id."  # fmt: skip
                raise Conflict(what, fix=fix, where=str(value["id"]))
            else:
                for packed in (False, True):
                    name = archive_store.name_of(value, packed=packed)
                    archive_store.require_free(place, name, value["id"])
                waiting[value["id"]] = (value, addition.data)
                new.add(value["id"])
            batch.findings.extend(findings)
        except AetherError as reason:
            batch.failed.append(_failure(reason, where))
    _write_waiting(place, waiting, rules, batch)
    return batch


def _full(addition: _Given, rules: _Rules, where: str) -> tuple[JsonObject, list[Finding]]:
    """Return the archive file of a conversation at level `full`, and findings."""
    files.checked_json(addition.raw, where=where, above=2)
    conversation, findings = shapes.read_conversation(addition.raw, where=where)
    value = _file(conversation, "full", form(conversation, "full"), rules, source=addition.source)
    value["marked"] = retention.is_marked_by_itself(conversation) or value["id"] in rules.marked
    if addition.data is not None:
        value["grace"] = archive_store.grace_of(value["id"], "file", "full", addition.data, until="")
    return value, findings


def _write_waiting(
    place: Path, waiting: dict[str, tuple[JsonObject, bytes | None]], rules: _Rules, batch: ArchivedBatch
) -> None:
    """Write new conversations in one step, or one at a time if another process added some of them meanwhile."""
    pairs = [*waiting.values()]
    waiting.clear()
    try:
        _write_new(place, pairs, rules, batch)
    except Conflict:
        for value, data in pairs:
            try:
                if archive_store.find(place, value["id"]):
                    _replace(place, value, data, rules, batch)
                else:
                    _write_new(place, [(value, data)], rules, batch)
            except AetherError as reason:
                batch.failed.append(_failure(reason, str(value["id"])))
    except AetherError as reason:
        batch.failed.extend(_failure(reason, str(value["id"])) for value, _ in pairs)


def _write_new(
    place: Path, pairs: list[tuple[JsonObject, bytes | None]], rules: _Rules, batch: ArchivedBatch
) -> None:
    names = archive_steps.add(place, pairs, packed=rules.packed, now=rules.now) if pairs else []
    batch.added.extend(_archived(place, value, name) for name, (value, _) in zip(names, pairs, strict=True))


def _archived(place: Path, value: JsonObject, name: str) -> Archived:
    grace = value["grace"] or {}
    size = archive_store.size(place, name) + (archive_store.size(place, grace["file"]) if grace else 0)
    return Archived(value["id"], value["title"], value["created_at"], value["level"], size, name)


def _replace(place: Path, value: JsonObject, data: bytes | None, rules: _Rules, batch: ArchivedBatch) -> None:
    """Replace an earlier state of a conversation; the same one is unchanged.

    Raises:
        Conflict: the archived one has messages that this one lacks.
    """
    row = archive_store.find(place, value["id"])
    assert row  # noqa: S101 - the caller found it
    old = archive_store.read(place, row.name)
    is_same = old["level"] == "full" and _without_times(old["content"]) == _without_times(value["content"])
    if is_same or old["metrics"].get("sha256") == value["metrics"]["sha256"]:
        batch.added.append(_listed(row))
    elif not _continues(place, value["content"], old):
        what = f"conversation {shown(value['id'])} is archived with other messages than these."
        raise Conflict(what, fix="Give this one another id.", where=row.name)
    else:
        value = {**value, "archived_at": old["archived_at"], "steps": [*old["steps"]]}
        receipt = _receipt(value, old["level"], "added again", files.json_line(old["content"]), rules.now)
        receipt["bytes_before"] = row.bytes
        _add_step(value, receipt)
        archive_steps.take(place, value, old=old, grace=data, packed=rules.packed, now=rules.now)
        batch.added.append(_archived(place, value, archive_store.name_of(value, packed=rules.packed)))
    batch.before.setdefault(row.id, _listed(row))


def _continues(place: Path, content: JsonObject, old: JsonObject) -> bool:
    """Return whether a full conversation starts with the messages of an archived one.

    Without a full form of the archived one, the measures taken of its full form are compared.
    """
    size = old["metadata"]["total_messages"]
    start = content["messages"][:size]
    if len(start) < size:
        return False
    if _fullest_level(old) == "full":
        return bool(start == _fullest(place, old)["messages"])
    raw = shapes.given_conversation(content) | {"messages": start}
    conversation, _ = shapes.read_conversation(raw, where=old["id"], times=content.get("times"))
    measures, about = measure(conversation, {}), redacted(metadata(conversation))
    return all(measures[key] == old["metrics"].get(key) for key in ("text_chars", "facts")) and all(
        about[key] == old["metadata"][key] for key in ("topics", "key_entities")
    )


def _without_times(content: JsonObject) -> JsonObject:
    """Return a conversation without its times, which may be those of its file."""
    fields = content.get("given") or {}
    timeless = {key: field for key, field in fields.items() if key not in ("created_at", "updated_at")}
    return content | {"given": timeless}


# --- Restoring


@public
def restore_conversation(
    id: str, *, output: str | os.PathLike[str] | None = None, home: Home = None
) -> Restored:
    """Restore a conversation in its fullest form; within its grace exactly as it was archived.

    The log of a live conversation returns to `conversations/`, byte for byte, and can be continued; its age counts from
    now, as if it had been used. Dicts and files are returned, and stay in the archive; one that was restored before is
    returned as it is. With `output` it is written to that file, and the archive is unchanged: the file that was added, or
    the conversation as JSON.

    Raises:
        NotFound: it is not archived, or is live again and `output` is given.
        CorruptDocument: its archive file, or its fuller form, is damaged.
        Conflict: the file `output` exists.
        LockTimeout, StorageFailed: nothing was changed.
    """
    place = drained(find(home))
    restored_at = clock.now()
    archive_steps.end_open(place, now=restored_at)
    path = conversations.path_of(place, id)
    # It was restored before, perhaps by a process that was killed.
    if output is None and path.exists() and id in conversation_list.restored_at(place):
        live = _of_log(place, id, regular.read(path, regular.LOG_BYTES))
        return Restored({key: live[key] for key in _FIELDS}, "full", True, str(path))
    old = read_archived(id, home=place)
    grace, kind, level = old["grace"], old["source"]["kind"], _fullest_level(old)
    data = archive_store.read_grace(place, grace) if grace else b""
    exact = level == "full" and (kind == "dict" or bool(grace))
    conversation = _given_back(place, old, data, level)
    if output is not None:
        content = data if kind == "file" and exact else files.json_document(conversation)
        return Restored(conversation, level, exact, str(files.write_new(Path(output), content)))
    if kind != "conversation" or not exact:
        return Restored(conversation, level, exact, "")
    full = old | {"level": "full", "grace": None}
    receipt = _receipt(full, old["level"], "restored", files.json_line(old["content"]), restored_at)
    receipt |= {"bytes_before": archive_steps.bytes_of(place, id), "bytes_after": len(data)}
    receipt |= {"kept": {"ratio": 1.0}, "sha256_after": regular.digest(data)}
    return Restored(
        conversation, level, exact, str(archive_steps.restore(place, id, receipt, now=restored_at))
    )


def _given_back(place: Path, old: JsonObject, data: bytes, level: str) -> JsonObject:
    """Return a conversation as its caller gave it, or its fullest form."""
    if level == "full" and old["level"] != "full" and old["source"]["kind"] != "dict":
        conversation = _fullest(place, old)
        return {key: conversation[key] for key in _FIELDS}
    is_fuller = bool(data) and level != old["level"]
    content = archive_store.parsed(data, where=old["id"])["content"] if is_fuller else old["content"]
    if level == "full":
        return shapes.given_conversation(content)
    fields = {key: old[key] for key in ("id", "title", "created_at", "updated_at")}
    fields_left: JsonObject = copied({**fields, "level": level, **content, "metadata": old["metadata"]})
    return fields_left


@public
def delete_archived(id: str, *, home: Home = None) -> bool:
    """Remove a conversation from the archive, and return whether it was archived; its files are kept in `quarantine/`.

    Raises:
        LockTimeout, StorageFailed: nothing was changed.
    """
    return archive_steps.set_aside(drained(find(home)), id, now=clock.now())


# --- Looking


@public
def list_archived(
    *, month: str | None = None, level: str | None = None, limit: int | None = None, home: Home = None
) -> list[Archived]:
    """Return the archived conversations, newest first; only those of one `month` (YYYY-MM), at one `level`.

    Raises:
        InvalidInput: the month, the level or the limit is impossible.
    """
    _require_filter(month, level)
    if limit is not None and limit < 0:
        raise InvalidInput(f"limit is {limit}.", fix="Use a whole number from 0.", where="limit")
    rows = archive_store.rows(find(home), month=month or "", level=level or "", limit=limit)
    return [_listed(row) for row in rows]


def count_archived(*, month: str | None = None, level: str | None = None, home: Home = None) -> int:
    """Return the number of archived conversations; only those of one `month` (YYYY-MM), at one `level`.

    Raises:
        InvalidInput: the month or the level is impossible.
    """
    _require_filter(month, level)
    return archive_store.number(find(home), month=month or "", level=level or "")


def _require_filter(month: str | None, level: str | None) -> None:
    if month is not None and not _MONTH.fullmatch(month):
        raise InvalidInput(f"{shown(month)} is not a month.", fix="Write it as 2026-03.", where="month")
    if level is not None:
        shapes.level(level)


def _listed(row: archive_store.Row) -> Archived:
    return Archived(row.id, row.title, row.created_at, row.level, row.bytes, row.name)


@public
def read_archived(id: str, *, home: Home = None) -> JsonObject:
    """Return the archive file of a conversation; `marked` is its present mark.

    Raises:
        NotFound: it is not archived.
        CorruptDocument, InvalidDocument: its file is damaged, or of another version.
    """
    place = find(home)
    row = archive_store.find(place, id)
    if row is None:
        what = f"conversation {shown(id)} is not archived."
        raise NotFound(what, fix='See "aether archive list".', where=str(place))
    value = archive_store.read(place, row.name)
    about = (value["content"].get("given") or {}).get("metadata") or {}
    marked = id in load(place).documents["retention"]["marked"] or about.get("user_marked_important") is True
    return {**value, "marked": marked}


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
    from aether.search.rank import best_passage

    place = find(home)
    weights = query_terms(query).weights
    hits = []
    for row, score in archive_store.search(place, weights, limit=limit):
        with suppress(AetherError):  # `verify` reports it
            content = archive_store.read(place, row.name)["content"]
            passage = redact(best_passage(archive_store.texts(content), weights))
            hits.append(ArchiveHit(*_listed(row)[:4], round(score, 6), passage, row.name))
    return hits


@public
def archive_stats(*, home: Home = None) -> JsonObject:
    """Return the number of archived conversations, their bytes on disk, and the number at each level."""
    return archive_store.stats(find(home))


@public
def verify_archive(*, home: Home = None) -> list[Finding]:
    """Check every file of the archive and return the findings, errors first; nothing is changed."""
    order = {"error": 0, "warning": 1, "info": 2}
    place = find(home)
    findings = [*archive_steps.examine(place), *conversation_checks.missing_archived(place)]
    return sorted(findings, key=lambda finding: order[finding.level])


# --- Retention


@public
def mark_conversation_important(id: str, marked: bool = True, *, home: Home = None) -> bool:
    """Mark a conversation so that it stays full, or remove the mark; False if there is no such conversation.

    A mark does not restore lost detail. `undo` reverses it.
    """
    place = drained(find(home))
    if not archive_store.find(place, id) and not conversations.path_of(place, id).exists():
        return False
    timestamp = clock.stamp(clock.now())

    def plan(documents: Mapping[str, Any]) -> Change:
        if (id in documents["retention"]["marked"]) == marked:
            return Change({})
        path = "/marked/" + id.replace("~", "~0").replace("/", "~1")
        step = {"op": "add", "path": path, "value": timestamp} if marked else {"op": "remove", "path": path}
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
        stored = documents["retention"]["policy"]
        policy = retention.policy(changes, of=retention.policy(stored))
        after = {**stored, **changes}
        if "weights" in changes:
            after["weights"] = {**stored.get("weights", {}), **changes["weights"]}
        step: JsonObject = {"op": "replace", "path": "/policy", "value": after}
        return Change({"retention": [cast("Any", step)] if after != stored else []}, result=policy)

    return _as_json(change(home, plan, Author("retention policy")).result)


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
    """Return the recommendation of retention for each conversation, the most important first.

    Each has conversation_id, title, created_at, importance_score, should_compress, recommended_level,
    user_marked_important, message_count and retention_reason.
    """
    place = drained(find(home))
    rules = _rules(place, now)
    live = [stored.id for stored in conversations.stored_conversations(place)]
    recommendations = []
    for id in [*live, *(row.id for row in archive_store.rows(place))]:  # noqa: A001
        with suppress(AetherError):  # `verify` and `doctor` report it
            case = _case(place, id, rules)
            decision, about = rules.decide(case.conversation), case.conversation
            level = max(decision.level, case.level, key=LEVELS.index)
            recommendations.append({
                "conversation_id": id, "title": redact(about["title"]), "created_at": about["created_at"],
                "importance_score": decision.score.total, "should_compress": level != case.level,
                "recommended_level": level, "user_marked_important": decision.rule == "marked",
                "message_count": case.old["metadata"]["total_messages"] if case.old else about["total_messages"],
                "retention_reason": decision.reason,
            })  # fmt: skip
    recommendations.sort(
        key=lambda recommendation: (-recommendation["importance_score"], recommendation["conversation_id"])
    )
    return recommendations[:limit]


@public
def explain_retention(id: str, *, now: datetime | None = None, home: Home = None) -> JsonObject:
    """Return the decision about a conversation: level, rule and reason, score and its parts, age and its start, and the next level.

    Raises:
        NotFound: there is no such conversation.
    """
    place = drained(find(home))
    rules = _rules(place, now)
    case = _case(place, id, rules)
    decision = rules.decide(case.conversation)
    since_is = retention.last_used(case.conversation)[1]
    return {
        "id": id, "title": redact(case.conversation["title"]), "archived": case.old is not None, "level": case.level,
        "decided_level": decision.level, "age_level": decision.age_level, "retention_level": decision.retention_level,
        "rule": decision.rule, "reason": decision.reason, "score": decision.score.total, "parts": dict(decision.score.parts),
        "days": decision.days, "since": decision.since,
        "since_is": "last use" if case.old or since_is == "known" else since_is,
        "grace_until": (case.old["grace"] or {}).get("until") if case.old else None,
        **_next(case, rules, decision.since),
    }  # fmt: skip


def _next(case: _Case, rules: _Rules, since: str) -> JsonObject:
    """Return the next level of a conversation and the time it is reached if nothing changes; empty if it stays."""
    for days in rules.boundaries if since else ():
        next_time = max(rules.now, clock.parse(since) + timedelta(days=days))
        level = rules._replace(now=next_time).decide(case.conversation).level
        if LEVELS.index(level) > LEVELS.index(case.level):
            return {"next_level": level, "next_at": clock.stamp(next_time)}
    return {"next_level": "", "next_at": ""}
