"""The history of a conversation: its lines as one value, the messages of its context, and the records that change it.

A line is a message, numbered from 1, or a record: of a step (a compaction or the restoring of a snapshot), its undo, a
message taken back, a cleared context, settings (a merge patch, RFC 7396), a snapshot, or lines that were lost. Nothing is
ever removed, so that every step can be undone. All lines of one call but the last carry `more`: a call counts whole or not
at all. Pure: files and locks are in `conversations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import Conflict, InvalidDocument, NotFound, shown
from aether.regular import sealed_body
from aether.store import files
from aether.store.log import lines_of, seal_json
from aether.store.seals import ranges
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

FORMAT = 1
# Snapshots of a context that can be restored; automatic ones never displace those that a person took.
KEPT_SNAPSHOTS = 5


class Compaction(NamedTuple):
    """One compaction: the numbers of the messages before and after it, in order."""

    step: int
    at: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    receipt: JsonObject


class Snapshot(NamedTuple):
    """The exact state of a context: the numbers of its messages, in order, and its settings."""

    id: str
    at: str
    purpose: str
    """`recovery`, `rollback` or `emergency`."""
    context: tuple[int, ...]
    settings: JsonObject
    tokens: int
    compressions: int


class Log(NamedTuple):
    """One conversation, as far as its file was read."""

    path: Path
    id: str
    texts: list[bytes]
    """The JSON of message `n` at `n - 1`, byte for byte; empty if it was lost."""
    times: list[str]
    """The time at which each message was added."""
    derived: list[int]
    """For each message the step of the compaction that made it, 0 if none did."""
    context: list[int]
    """Numbers of the live messages, in order."""
    uncompacted: list[int]
    """Numbers of the messages that the context would have without any compaction."""
    compactions: list[Compaction]
    open: list[int]
    """Steps that can be undone, newest last."""
    added: set[int]
    """Numbers of the messages that callers added, and neither took back nor cleared: each is in some view."""
    settings: JsonObject
    """Settings of its context: window, model, mode, system prompt; empty if it was never opened as one."""
    snapshots: list[Snapshot]
    """Snapshots of its context, oldest first; only the newest can be restored."""
    inode: int = 0
    end: int = 0
    """Byte offset after the last whole call."""
    lines: int = 0
    """The number of the last line before `end`."""
    last: bytes = b""
    """The last line before `end`: if it changed, another log replaced this one."""
    torn: bytes = b""
    """The bytes after `end`: a write that was cut off."""
    damaged: int = 0
    """Places with damaged or missing lines, before `end`."""
    lost: int = 0
    """Lines that are recorded as lost."""
    held: int = 0
    """The number of lines before `end`: fewer than `lines` if one record stands for several lost ones."""


class Restored(NamedTuple):
    """The state of a context before a compaction."""

    step: int
    context: list[int]
    findings: list[Finding]


# --- Reading


def empty(path: Path, id: str) -> Log:
    """Return the log of a conversation that has no record yet."""
    return Log(path, id, [], [], [], [], [], [], [], set(), {}, [])


def extended(log: Log, data: bytes) -> Log:
    """Return `log` with the records of `data`, which follows its end.

    Raises:
        Conflict: the file belongs to another conversation.
        InvalidDocument: a newer aether wrote it.
    """
    if log.end and data == log.torn:
        return log
    grown = log._replace(
        texts=log.texts.copy(), times=log.times.copy(), derived=log.derived.copy(), context=log.context.copy(),
        uncompacted=log.uncompacted.copy(), compactions=log.compactions.copy(), open=log.open.copy(), added=log.added.copy(),
        settings=log.settings.copy(), snapshots=log.snapshots.copy(),
    )  # fmt: skip
    offset, end, last, number = log.end, log.end, log.last, log.lines
    acknowledged, damaged, lost, bad = log.lines, log.damaged, log.lost, 0
    seen = held = log.held
    call: list[tuple[JsonObject, bytes]] = []
    for line in data.splitlines(keepends=True):
        offset += len(line)
        seen += 1
        body = sealed_body(line) if line.endswith(b"\n") else None
        if body is None:
            bad += 1
            continue
        record, text = parsed(body)
        nth = record.get("line", 0)
        if bad or nth > number + 1:
            _apply_call(grown, call)  # it was acknowledged, because other lines follow it
            damaged += "lost" not in record
        number, bad = max(nth, number) if nth else number + bad + 1, 0
        lost += record.get("lost", 0)
        call.append((record, text))
        if not record.get("more"):
            _apply_call(grown, call)
            end, last, acknowledged, held = offset, line, number, seen
    return grown._replace(
        end=end,
        last=last,
        lines=acknowledged,
        torn=data[end - log.end :],
        damaged=damaged,
        lost=lost,
        held=held,
    )


def parsed(body: bytes) -> tuple[JsonObject, bytes]:
    """Return the record of a line without its checksum; of a message without the message, which is returned as JSON."""
    if body.startswith(b'{"n":'):
        fields, _, text = body.partition(b',"message":')
        return files.parse_json(fields + b"}", where="history.jsonl"), text[:-1]
    return files.parse_json(body, where="history.jsonl"), b""


def _apply_call(log: Log, call: list[tuple[JsonObject, bytes]]) -> None:
    """Apply the lines of one call, and clear the list of them."""
    size = len(log.texts)
    first = call[0][0] if call else {}
    # A process whose lock did not hold wrote it a second time; it was never acknowledged.
    is_repeated = first.get("n", size + 1) <= size or ("conversation" in first and bool(log.end or log.texts))
    if call and not is_repeated:
        for record, text in call:
            _apply(log, record, text)
        if (
            "n" in call[-1][0]
        ):  # else they were stored with a compaction: the list of its caller is their place
            new = range(size + 1, len(log.texts) + 1)
            log.added.update(n for n in new if log.texts[n - 1] and not log.derived[n - 1])
    call.clear()


def _apply(log: Log, record: JsonObject, text: bytes) -> None:
    if "conversation" in record:
        _require_ours(log, record)
    elif "n" in record:
        _apply_message(log, record, text)
    elif "clear" in record:
        log.context.clear()
        log.uncompacted.clear()
        log.open.clear()
        log.added.clear()
    elif "pop" in record:
        for numbers in (log.context, log.uncompacted):
            numbers[:] = [n for n in numbers if n != record["pop"]]
        log.added.discard(record["pop"])
    elif "undo" in record:
        _apply_undo(log, record)
    elif "step" in record:
        _apply_step(log, record)
    elif "settings" in record:
        _set_settings(log, merge_patched(log.settings, record["settings"]))
    if snapshot := record.get("snapshot"):
        log.snapshots.append(
            Snapshot(
                snapshot["id"], record["at"], snapshot["purpose"], tuple(expanded(snapshot["context"])),
                snapshot["settings"], snapshot["tokens"], snapshot["compressions"],
            )
        )  # fmt: skip


def _apply_undo(log: Log, record: JsonObject) -> None:
    step = record["undo"]
    log.context[:] = _present(log, record["context"])
    log.open[:] = [other for other in log.open if other != step]
    for entry in log.compactions[step - 1 : step]:
        _set_settings(log, entry.receipt.get("settings_before"))


def _apply_step(log: Log, record: JsonObject) -> None:
    before, after = tuple(_present(log, record["before"])), tuple(_present(log, record["after"]))
    missing = range(len(log.compactions) + 1, record["step"])
    log.compactions.extend(Compaction(step, record["at"], (), (), {}) for step in missing)
    log.compactions.append(Compaction(record["step"], record["at"], before, after, record["receipt"]))
    log.context[:] = [*after, *_present(log, record.get("late", []))]
    log.open.append(record["step"])
    _set_settings(log, record["receipt"].get("settings"))


def _apply_message(log: Log, record: JsonObject, text: bytes) -> None:
    lost = record["n"] - len(log.texts) - 1
    if lost < 0:
        return  # a line that is there twice
    log.texts.extend([*([b""] * lost), text])
    log.times.extend([*([""] * lost), record["at"]])
    log.derived.extend([*([0] * lost), record.get("derived", 0)])
    if not log.derived[-1]:
        log.context.append(len(log.texts))
        log.uncompacted.append(len(log.texts))


def _set_settings(log: Log, settings: JsonObject | None) -> None:
    if settings is not None:
        new = {**settings}
        log.settings.clear()
        log.settings.update(new)


def merge_patched(value: JsonObject, patch: JsonObject) -> JsonObject:
    """Return `value` after the JSON merge patch (RFC 7396) `patch`; null removes a key.

    >>> merge_patched({"mode": "user", "parts": {"goals": "Ship."}}, {"mode": None, "parts": {"skills": "Go."}})
    {'parts': {'goals': 'Ship.', 'skills': 'Go.'}}
    """
    merged = dict(value)
    for key, field in patch.items():
        if field is None:
            merged.pop(key, None)
        elif isinstance(field, dict):
            below = merged.get(key)
            merged[key] = merge_patched(below if isinstance(below, dict) else {}, field)
        else:
            merged[key] = field
    return merged


def _present(log: Log, runs: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers of `runs` whose messages are not lost."""
    return [n for n in expanded(runs) if n <= len(log.texts) and log.texts[n - 1]]


def _require_ours(log: Log, header: JsonObject) -> None:
    if header.get("format", FORMAT) > FORMAT:
        what = f"written by a newer aether (format {header['format']}, this one knows {FORMAT})."
        raise InvalidDocument(what, fix="Upgrade aether; the file was left as it is.", where=str(log.path))
    if header["conversation"] != log.id:
        what = f"it belongs to conversation {shown(header['conversation'])}, not {shown(log.id)}."
        fix = "Use an id that differs in more than capitals: this disk treats them as one."
        raise Conflict(what, fix=fix, where=str(log.path))


def expanded(runs: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers of `runs`, as `ranges` made them."""
    return [number for first, last in runs for number in range(first, last + 1)]


def require_possible(record: JsonObject, most: int) -> None:
    """Check the numbers of a record from elsewhere: lists of that length are made of them.

    Raises:
        ValueError, TypeError, AttributeError: one is larger than `most`, or impossible.
    """
    snapshot = record.get("snapshot") or {}
    runs: list[Any] = [record.get(key, []) for key in ("before", "after", "late", "context")]
    runs.append(snapshot.get("context", []))
    if any(not 0 < first <= last for numbers in runs for first, last in numbers):
        raise ValueError("a run of numbers ends before it starts")
    sizes = [sum(last - first + 1 for first, last in numbers) for numbers in runs]
    sizes += [record.get(key, 0) for key in ("n", "step", "undo")]
    sizes += [record.get(key, 0) // 10 for key in ("line", "lost")]  # a line may be of another kind
    if max(sizes) > most:
        raise ValueError("a number is too large")


# --- Views


def context(log: Log) -> list[JsonObject]:
    """Return the live messages, as fresh copies."""
    return messages(log, log.context)


def history(log: Log) -> list[JsonObject]:
    """Return every message that was ever added, in order; not the messages that compactions made."""
    return messages(log, said(log))


def said(log: Log) -> list[int]:
    """Return the numbers of the messages that were added and are not lost; not of those that compactions made."""
    return [n for n, step in enumerate(log.derived, 1) if not step and log.texts[n - 1]]


def messages(log: Log, numbers: Sequence[int]) -> list[JsonObject]:
    """Return the messages with these numbers, as fresh copies."""
    return [files.parse_json(log.texts[n - 1], where=str(log.path)) for n in numbers]


def starts_with(log: Log, numbers: Sequence[int], listed: Sequence[JsonObject]) -> bool:
    """Return whether `listed` starts with the messages of these numbers; the first that differs ends the comparison."""
    same = (message == messages(log, [n])[0] for n, message in zip(numbers, listed, strict=False))
    return len(listed) >= len(numbers) and all(same)


def unseen(log: Log) -> list[int]:
    """Return the numbers of added messages that are in no view: neither live nor replaced by a step that can be undone."""
    seen = {*log.context, *(n for step in log.open for n in log.compactions[step - 1].before)}
    return sorted(log.added - seen)


def next_step(log: Log) -> int:
    """Return the step of the next compaction."""
    return len(log.compactions) + 1


def compaction(log: Log, step: int) -> tuple[list[JsonObject], list[JsonObject], JsonObject]:
    """Return the messages before and after compaction `step`, and its receipt.

    Raises:
        NotFound: there was no such step.
    """
    _require_compacted(log)
    if not 1 <= step <= len(log.compactions):
        what = f"conversation {shown(log.id)} has no compaction {step}; it has had {len(log.compactions)}."
        raise NotFound(what, fix="Name one of those, or none for the newest.", where=str(log.path))
    entry = log.compactions[step - 1]
    return messages(log, entry.before), messages(log, entry.after), entry.receipt


def _require_compacted(log: Log) -> None:
    if not log.compactions:
        what = f"conversation {shown(log.id)} {'was not compacted yet' if log.texts else 'is not kept here'}."
        fix = 'See what is kept with "aether compact show".'
        raise NotFound(what, fix=fix, where=str(log.path.parent.parent))


def snapshots(log: Log, *, most: int = KEPT_SNAPSHOTS) -> list[Snapshot]:
    """Return the snapshots that can be restored, oldest first: the newest `most` by hand, and as many others."""
    restorable = set[str]()
    for by_hand in (True, False):
        of_kind = [snapshot.id for snapshot in log.snapshots if (snapshot.purpose == "rollback") == by_hand]
        restorable.update(of_kind[-most:])
    return [snapshot for snapshot in log.snapshots if snapshot.id in restorable]


def compressions(log: Log) -> int:
    """Return the number of compressions that made the present context, without those that were undone or rolled back."""
    total = 0
    for step in log.open:
        receipt = log.compactions[step - 1].receipt
        if receipt.get("kind") == "restore":
            total = receipt["compressions"]
        else:
            total += receipt.get("kind") == "context"
    return total


def undone(log: Log, step: int) -> Restored:
    """Return the state before the newest compaction that is not undone, with the messages since; `step`: the expected one, or 0.

    Raises:
        NotFound: there is no compaction to undo.
        Conflict: `step` is not the newest compaction.
    """
    _require_compacted(log)
    newest = log.open[-1] if log.open else 0
    if step and step != newest:
        what = (
            f"the newest compaction of {shown(log.id)} that is not undone is {newest or 'none'}, not {step}."
        )
        fix = "Look at the conversation as it is now, and decide again."
        raise Conflict(what, fix=fix, where=str(log.path))
    if not newest:
        what = f"conversation {shown(log.id)} has no compaction to undo; it has had {len(log.compactions)}."
        raise NotFound(what, fix='See them with "aether compact show --diff".', where=str(log.path))
    entry, live = log.compactions[newest - 1], log.context
    if tuple(live[: len(entry.after)]) == entry.after:
        return Restored(newest, [*entry.before, *live[len(entry.after) :]], [])
    others = [n for n in live if n not in {*entry.before, *entry.after}]
    joined = [n for n in others if n in log.added]
    what = f"it did not continue the result of compaction {newest}, so it has the messages before that; "
    what += f"{pluralize(len(others) - len(joined), 'messages')} of it in the history only."
    finding = Finding("warning", "not-joined", f"conversation {log.id}", what, "Append those that you miss again.")  # fmt: skip
    return Restored(newest, [*entry.before, *joined], [finding])


def require_unchanged(log: Log, read: Log) -> None:
    """Raise `Conflict` if others did more to the log since `read` than add messages."""
    if log.context[: len(read.context)] != read.context or len(log.compactions) != len(read.compactions):
        what = f"conversation {shown(log.id)} was changed while it was compacted."
        raise Conflict(what, fix="Load it and compact it again.", where=str(log.path))


# --- Records


def header(id: str, *, listed: bool = False) -> bytes:
    """Return the first line of the log of conversation `id`; `listed`: the list of its home names it."""
    return seal_json(header_record(id) | ({"listed": True} if listed else {}))


def header_record(id: str) -> JsonObject:
    """Return the first record of a log."""
    return {"conversation": id, "format": FORMAT, "head": True}


def texts(messages: Sequence[JsonObject]) -> list[bytes]:
    """Return messages as the log writes them.

    Raises:
        InvalidInput: a message is not JSON.
    """
    return [text_of(message, nth) for nth, message in enumerate(messages)]


def text_of(message: JsonObject, nth: int) -> bytes:
    """Return the message at position `nth` as the log writes it."""
    return files.json_line(files.checked_json(message, where=f"messages[{nth}]", above=1))


def message_lines(first: int, texts: Sequence[bytes], at: str) -> list[bytes]:
    """Return the records of added messages, numbered from `first`."""
    return [message_line(n, text, at) for n, text in enumerate(texts, first)]


def message_line(n: int, text: bytes, at: str, *, derived: int = 0) -> bytes:
    """Return the record of message `n`; `derived` is the step of the compaction that made it, or 0."""
    by = f',"derived":{derived}' if derived else ""
    return f'{{"n":{n},"at":"{at}"{by},"message":'.encode() + text + b"}"


def record_line(record: JsonObject, at: str) -> bytes:
    """Return any other record."""
    return files.json_line({**record, "at": at})


def numbered_line(record: bytes, nth: int, *, more: bool) -> bytes:
    """Return a record with the number of its line, and whether its call goes on, which only messages say."""
    if not record.startswith(b'{"n":'):
        return b'{"line":%d,' % nth + record[1:]
    fields = b',"line":%d' % nth + (b',"more":true' if more else b"")
    return record.replace(b',"message":', fields + b',"message":', 1)


def step_lines(
    log: Log, *, had: Sequence[bytes], made: Sequence[bytes], places: Sequence[int | None], receipt: JsonObject, at: str,
    read: Log | None, snapshot: JsonObject | None,
) -> list[bytes]:  # fmt: skip
    """Return the records of a compaction of the list `had` to `made`, as `conversations.record_compaction` says."""
    step, known = next_step(log), _known(log, had)
    size = len(log.context if read is None else read.context)
    lines = message_lines(len(log.texts) + 1, [text for text, n in zip(had, known, strict=True) if not n], at)
    newest = len(log.texts) + len(lines)
    sources = _filled(known, len(log.texts) + 1)
    compacted = set(sources)
    late = [n for nth, n in enumerate(log.context) if n not in compacted and (nth >= size or n in log.added)]
    results = []
    for text, place in zip(made, places, strict=True):
        if place is not None and had[place] == text:
            results.append(sources[place])
        else:
            newest += 1
            results.append(newest)
            lines.append(message_line(newest, text, at, derived=step))
    record = {"step": step, "before": ranges(sources), "after": ranges(results), "receipt": {**receipt, "step": step}}  # fmt: skip
    if late:
        record["late"] = ranges(late)
    if snapshot:
        record["snapshot"] = snapshot_record(log if read is None else read, snapshot)
    return [*lines, record_line(record, at)]


def snapshot_record(log: Log, snapshot: JsonObject) -> JsonObject:
    """Return a snapshot with the context of `log`."""
    state = {"context": ranges(log.context), "settings": log.settings, "compressions": compressions(log)}
    return {**snapshot, **state}


def numbered(log: Log, had: Sequence[bytes]) -> list[int]:
    """Return the log number of each message of the list `had`, existing or new."""
    return _filled(_known(log, had), len(log.texts) + 1)


def _filled(known: Sequence[int], first: int) -> list[int]:
    """Return `known` with the numbers from `first` on for messages that are not stored yet."""
    new = count(first)
    return [n or next(new) for n in known]


def _known(log: Log, had: Sequence[bytes]) -> list[int]:
    """Return the numbers of the stored messages in `had`, 0 for each that is not stored.

    Stored are those that it starts with, of the context or of the uncompacted one, and then those that were added
    between the additions of others.
    """
    live = _prefix(log, log.context, had)
    start = live if len(live) == len(log.context) else max(live, _prefix(log, log.uncompacted, had), key=len)
    remaining = had[len(start) :]
    if len(live) == len(log.context):
        return [*start, *(0 for _ in remaining)]
    by_text = dict[bytes, list[int]]()
    for n in reversed(log.context):
        if n in log.added and n not in start:
            by_text.setdefault(log.texts[n - 1], []).append(n)
    return [*start, *(by_text[text].pop() if by_text.get(text) else 0 for text in remaining)]


def _prefix(log: Log, numbers: list[int], had: Sequence[bytes]) -> list[int]:
    for nth, (n, text) in enumerate(zip(numbers, had, strict=False)):
        if log.texts[n - 1] != text:
            return numbers[:nth]
    return numbers[: len(had)]


def message_records(
    messages: Sequence[JsonObject], derived: Sequence[JsonObject], *, above: int, at: str
) -> list[JsonObject]:
    """Return the records of messages as one call, `above` lines down, and of those that the first step made."""
    size, records = len(messages), []
    for n, message in enumerate([*messages, *derived], 1):
        checked = files.checked_json(message, where=f"messages[{n - 1}]", above=1)
        fields: JsonObject = {"derived": 1} if n > size else {}
        fields["line"] = n + above
        if n != size:
            fields["more"] = True
        records.append({"n": n, "at": at, **fields, "message": checked})
    return records


def first_step(size: int, after: Sequence[int], receipt: JsonObject, line: int, at: str) -> JsonObject:
    """Return the record of a step that replaces the first `size` messages by those with the numbers `after`."""
    change = {"before": ranges(range(1, size + 1)), "after": ranges(after)}
    return {"line": line, "step": 1, **change, "receipt": {**receipt, "step": 1}, "at": at}


def with_losses(log: Log, data: bytes, head: int, at: str, *, listed: bool) -> bytes:
    """Return the good lines of `data`, the file of a log, with a record of loss in place of damaged and missing ones."""
    lines: list[bytes] = []
    number, gap = 0, 0

    def lose(until: int) -> None:
        if not lines:
            lines.append(header(log.id, listed=listed))
        lines.append(seal_json({"lost": max(1, until - number), "line": max(until, number + 1), "at": at}))

    for line, good in lines_of(data):
        if not good:
            gap += max(1, line.count(b"\n"))
            continue
        nth = parsed(sealed_body(line) or b"{}")[0].get("line", 0)
        if gap or nth > number + 1:
            until = nth - 1 if nth else number + gap
            lose(until)
            number = until
        lines.append(line)
        number, gap = nth or number + 1, 0
    if head > number:
        lose(head)
    return b"".join(lines)
