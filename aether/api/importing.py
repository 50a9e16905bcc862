"""Importing: turn real transcripts into working-memory items, once, however often they are imported.

Notes that hooks made of a session while it ran are not stored twice. Private blocks, calls about private paths and
secrets are left out, as hooks leave them out. What a sub-agent's transcript copied of another session is imported as
that session's, unless its own transcript is imported. What was said is kept for search as well (`memory.capture.passages`). Records are read in constant memory and stored in batches; an import that
is stopped keeps its stored batches, and importing again adds the rest. Bad lines are counted and named, never fatal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from aether import clock, regular
from aether.api import dedupe
from aether.api.home import Home, counter_of, now, read
from aether.api.working import prepare_handoff, store_entries
from aether.clock import new_id
from aether.errors import AetherError, InvalidInput, NotFound, public
from aether.memory import phases
from aether.memory.capture import passages
from aether.memory.capture.extract import capture
from aether.memory.colony import check_phase
from aether.memory.items import DEFAULT_SOURCE
from aether.messages.read import detect_file_format, read_records, require_format, without_private
from aether.messages.records import BadLine, Record, read_json_values
from aether.messages.sources.claude_code import is_beside_session
from aether.store import config, record_files
from aether.store.authors import Author
from aether.store.files import require_writable
from aether.store.snapshot import Snapshot
from aether.store.undo import entries_newest_first
from aether.text.words import pluralize
from aether.types import Change, Counter, JsonObject

SUFFIXES = frozenset({".jsonl", ".json", ".md", ".txt", ".traj"})
# Left out below an imported directory: memory itself, and the history of version control.
SKIPPED_DIRECTORIES = frozenset({".aether", ".git"})
# Legal texts that lie in nearly every repository, by the name without its suffix: nobody of the project said them.
SKIPPED_NAMES = frozenset(
    "license licence copying notice copyright patents unlicense authors contributors".split()
)
# Lines from which the format of a file is recognised.
FORMAT_LINES = 32
# Characters: a longer text of one line is a dump, of which capture keeps an extract.
LONG_LINE_CHARS = 1_000_000
# Characters of the records before the first time of a conversation that wait for it; one that has none is as long as it likes.
WAITING_CHARS = 1_000_000
# A file changed before that was given its time by a program: archives that are to be the same each time write 1970 or 1980.
FIRST_YEAR = 2000


class Imported(NamedTuple):
    """Result of an import."""

    files: int
    records: int
    items: int
    """Items that were stored; in a dry run, those that would be."""
    known: int
    """Notes that an earlier import, or hooks, had stored already."""
    tokens: int
    types: dict[str, int]
    phases: list[int]
    evicted: list[str]
    bad_lines: list[JsonObject]
    """Lines that could not be read, and items that are impossible: file, line, reason."""
    revisions: list[int]
    """Committed revisions, oldest first; the undo of any of them is the undo of the import."""
    preview: list[JsonObject]
    """In a dry run, the items."""
    long_lines: list[JsonObject]
    """Texts so long that only an extract is kept: file, line, characters."""
    skipped_copies: list[JsonObject]
    """Copies, at the start of sub-agents' transcripts, of conversations whose own transcript is imported: file, conversation, records."""
    undated: list[JsonObject]
    """Files with entries for which they say no time, and the time of those: that of the last change of the file, "" if it is not known: file, at."""


class ImportInterrupted(KeyboardInterrupt):
    """Ctrl-C during an import; `done` is its result so far, and importing again adds the rest."""

    def __init__(self, done: Imported) -> None:
        super().__init__()
        self.done = done


@dataclass
class _Tally:
    """Counts so far, and the limits: all state that changes while files are read."""

    capacity: int
    """Tokens that working memory holds."""
    private: str
    """The patterns of private paths."""
    root: str
    """The directory of the project, from which relative paths are seen."""
    count: Counter
    archive_read: int
    """Position of the last archived item whose key is known."""
    whole: str
    """The name of this import in the journal: its transactions are undone as one."""
    others: Callable[[], set[str]]
    """The conversations that the home had, and those of all files: asked for only if one was copied."""
    keys: set[str]
    """Of all notes so far."""
    held: dict[str, set[int]]
    """The phases that notes had before the import, by file."""
    history: list[JsonObject]
    """The conversations of which words are kept."""
    following: int
    """The first free phase."""
    foreign: set[str] = field(default_factory=set)
    """Keys and ids of passages found in the home when a batch was committed."""
    revision: int = -1
    """The revision of the home up to which `foreign` is known."""
    is_full: bool = False
    """Whether working memory should be compressed."""
    revisions: list[int] = field(default_factory=list)
    records: int = 0
    items: int = 0
    known: int = 0
    tokens: int = 0
    types: dict[str, int] = field(default_factory=dict)
    phases: set[int] = field(default_factory=set)
    evicted: list[str] = field(default_factory=list)
    bad: list[JsonObject] = field(default_factory=list)
    preview: list[JsonObject] = field(default_factory=list)
    long: list[JsonObject] = field(default_factory=list)
    skipped: list[JsonObject] = field(default_factory=list)
    undated: list[JsonObject] = field(default_factory=list)
    written: str = ""
    """The time of the last change of the file that is read."""
    is_undated: bool = False
    """Whether that file has entries for which it says no time."""
    read: set[str] = field(default_factory=set)
    """The conversations whose own transcript was read."""

    @property
    def batch_chars(self) -> float:
        return dedupe.batch_chars(self.capacity)


class _OwnPhases(NamedTuple):
    """The phases of one conversation: those that its notes have in the home, and the first free one."""

    words: passages.Collector
    of_file: Collection[int]
    """Those of all files of this name."""
    following: int
    forced: int | None
    """The phase of all, if it is forced."""

    def nth(self, segment: int) -> int:
        """Return the phase of the stretch before the compaction number `segment`."""
        if self.forced is not None:
            return self.forced
        phases_before = self.words.known_phases(self.of_file)
        phase = (
            phases_before[segment]
            if segment < len(phases_before)
            else self.following + segment - len(phases_before)
        )
        self.words.phases.add(phase)
        return phase


@public
def import_transcripts(
    sources: Iterable[str | os.PathLike[str] | IO[bytes]],
    *,
    phase: int | None = None,
    format: str | None = None,
    dry_run: bool = False,
    home: Home = None,
    progress: Callable[[int, int], None] = lambda records, items: None,
) -> Imported:
    """Turn transcripts into working-memory items and return the result.

    `sources` are files, directories or byte streams; of several, one that cannot be read is among the bad lines, as in a
    directory, and the others are imported. The phase of an item is `phase`; else each file, and each stretch
    between two compactions in it, is a phase of its own, the same when the file is imported again. `progress` is called with the records read and the items kept.

    Raises:
        NotFound: there is no such file.
        InvalidInput: a format is unknown, `phase` is not a phase number, or a directory holds nothing to read.
        ImportInterrupted: Ctrl-C was pressed; it has the result so far.
    """
    require_format(format)
    if phase is not None:
        check_phase(phase)
    sources, snapshot = list(sources), read(home)
    if not dry_run:
        require_writable(snapshot.home)
    tally = _new_tally(snapshot, sources)
    files = 0
    try:
        for file in _files(sources, tally.bad):
            files += 1
            is_path = isinstance(file, (str, os.PathLike))
            name = Path(file).name if is_path else str(getattr(file, "name", "-"))
            try:
                _import_file(
                    file, name, tally, phase=phase, format=format, dry_run=dry_run, home=home, progress=progress
                )  # fmt: skip
            except (InvalidInput, NotFound) as reason:
                if len(sources) == 1 and file is sources[0]:
                    raise
                # One foreign file among others does not stop the import; it is named like a bad line.
                tally.bad.append({"file": name, "line": 0, "reason": reason.what})
    except KeyboardInterrupt as stop:
        tally.revisions = _committed(tally, home, after=snapshot.revision)
        raise ImportInterrupted(_imported(files, tally)) from stop
    if tally.is_full:
        prepare_handoff(home)
    return _imported(files, tally)


def _new_tally(snapshot: Snapshot, sources: list[Any]) -> _Tally:
    @cache
    def others() -> set[str]:
        return dedupe.conversations(snapshot) | {*map(_first_conversation, _files(sources, []))}

    memory = snapshot.documents["memory"]
    phases_by_file, history = dedupe.phases_by_file(snapshot), memory.get("history", [])
    noted = [*phases_by_file.values(), *filter(None, (entry.get("phases") for entry in history))]
    current = phases.current_phase(snapshot.documents["COLONY_STATE"])
    return _Tally(
        memory["working_memory"]["max_capacity_tokens"], config.load(snapshot.home).claude_private_paths,
        str(snapshot.home.parent), counter_of(memory), record_files.head(snapshot),
        new_id("import", now()), others, dedupe.known_keys(snapshot, to_hooks=False), phases_by_file, history,
        max([current, *(1 + max(numbers) for numbers in noted)]),
    )  # fmt: skip


def _import_file(
    file: Any, name: str, tally: _Tally, *, phase: int | None, format: str | None, dry_run: bool, home: Home,
    progress: Callable[[int, int], None],
) -> None:  # fmt: skip
    """Store the notes and the words of one file: first those that it copied from another session, as that session's."""
    before, counts_before = tally.records, (len(tally.revisions), tally.items)
    tally.written, tally.is_undated = _written(file), False
    records = _records(file, format, name, tally, progress)
    if tally.private:
        records = without_private(records, tally.private, directory=tally.root)
    for copied, part in groupby(records, key=lambda record: record.session if record.copied else ""):
        if copied and (copied in tally.read or copied in tally.others()):
            number = sum(1 for _ in part)
            tally.skipped.append({"file": name, "conversation": copied, "records": number})
            continue
        stored = len(tally.revisions)
        words = passages.Collector(name, tally.history, tally.keys)
        own_phases = _OwnPhases(words, tally.held.get(name, ()), tally.following, phase)
        try:
            _import_part(part, own_phases, tally, is_copy=bool(copied), dry_run=dry_run, home=home)
        finally:
            used = (*tally.phases, *words.kept_phases)
            tally.following = max([tally.following, *(1 + phase_number for phase_number in used)])
        if len(tally.revisions) > stored:
            # The next file may have the same name and start with the same words.
            tally.history = read(home).documents["memory"].get("history", [])
    if tally.records == before:
        raise _nothing_in(file, format, name)
    if tally.is_undated and (len(tally.revisions), tally.items) != counts_before:
        tally.undated.append({"file": name, "at": tally.written})


def _import_part(
    records: Iterable[Record], own: _OwnPhases, tally: _Tally, *, is_copy: bool, dry_run: bool, home: Home
) -> None:
    words = own.words
    captured = capture(words.watch(records), file=words.file, phase=own.forced, phases=own.nth)
    entries = _new_entries(captured, words.file, tally, is_copy=is_copy)
    for batch in dedupe.batches(entries, tally.batch_chars):
        _store(batch, words, tally, home, dry_run=dry_run)
    if (passages_left := words.drain()) and not dry_run:
        _commit([], words, passages_left, tally, home)


def _first_conversation(file: Any) -> str:
    """Return the conversation that a file starts with, "" if that is a copy, cannot be read, or a stream."""
    with suppress(AetherError, OSError):
        if isinstance(file, (str, os.PathLike)) and (first := next(read_records(file), None)):
            return "" if first.copied else first.session
    return ""


def _imported(files: int, tally: _Tally) -> Imported:
    return Imported(
        files, tally.records, tally.items, tally.known, tally.tokens, dict(sorted(tally.types.items())),
        sorted(tally.phases), tally.evicted, tally.bad, tally.revisions, tally.preview,
        tally.long, tally.skipped, tally.undated,
    )  # fmt: skip


def _committed(tally: _Tally, home: Home, *, after: int) -> list[int]:
    """Return the revisions of this import from the journal: the last one may have been stored when Ctrl-C was pressed."""
    newer = entries_newest_first(read(home), after=after)
    return sorted(entry.revision for entry in newer if entry.part.startswith(f"{tally.whole}/"))


def _nothing_in(file: Any, format: str | None, name: str) -> InvalidInput:
    """Return the error that `file` has no record: it is empty, or of another format than the one that was given."""
    regular_file = isinstance(file, (str, os.PathLike)) and Path(file).is_file()
    is_empty = regular_file and not Path(file).stat().st_size
    if is_empty or not format:
        what = "it is empty." if is_empty else "it has no message and no note."
        return InvalidInput(what, fix="Name a file that has a transcript.", where=name)
    what = f"it has no record of the format {format}."
    if regular_file:
        with suppress(InvalidInput), regular.named(file) as stream:
            head = [value for _, value in read_json_values(islice(stream, FORMAT_LINES))]
            what += f" It is of the format {detect_file_format(head, where=name)}."
    return InvalidInput(what, fix="Leave out --format, or name another file.", where=name)


def _files(sources: list[Any], bad: list[JsonObject]) -> Iterator[Any]:
    """Yield the files and streams to read; a directory without any is named like a bad line if it is one of several sources."""
    for source in sources:
        if not isinstance(source, (str, os.PathLike)) or not os.path.isdir(source):
            yield source
            continue
        paths = [
            path for path in sorted(Path(source).rglob("*"))
            if path.is_file() and path.suffix in SUFFIXES and path.stem.lower().split("-")[0] not in SKIPPED_NAMES
            and SKIPPED_DIRECTORIES.isdisjoint(path.relative_to(source).parts) and not is_beside_session(path)
        ]  # fmt: skip
        if not paths:
            reason = NotFound(
                "holds no transcripts.",
                fix=f"Name a directory with {', '.join(sorted(SUFFIXES))} files.",
                where=str(source),
            )
            if len(sources) == 1:
                raise reason
            bad.append({"file": str(source), "line": 0, "reason": reason.what})
        yield from paths


def _records(
    file: Any, format: str | None, name: str, tally: _Tally, progress: Callable[[int, int], None]
) -> Iterator[Record]:
    def on_bad(bad: BadLine) -> None:
        tally.bad.append({"file": name, **bad._asdict()})

    for record in _dated(read_records(file, format=format, on_bad=on_bad), tally):
        tally.records += 1
        tally.read.add("" if record.copied else record.session)
        if len(record.text) > LONG_LINE_CHARS:
            tally.long.append({"file": name, "line": record.line, "characters": len(record.text)})
        progress(tally.records, tally.items)
        yield record


def _dated(records: Iterable[Record], tally: _Tally) -> Iterator[Record]:
    """Yield `records` with times; one without has that of the one before in its conversation, else the first that follows, else that of the file.

    A record that names no conversation belongs to that of the one before.
    """
    times: dict[str, str] = {}
    waiting: list[Record] = []
    session, room = "", WAITING_CHARS
    for record in records:
        is_other = bool(session and record.session) and record.session != session
        if waiting and (is_other or room < 0):
            tally.is_undated, times[session] = True, tally.written
            yield from _all_at(tally.written, waiting)
            waiting, room = [], WAITING_CHARS
        session = record.session or session
        if time := record.time or times.get(session, ""):
            times[session] = time
            yield from _all_at(time, [*waiting, record])
            waiting, room = [], WAITING_CHARS
        else:
            waiting.append(record)
            room -= len(record.text) + len(str(record.arguments))
    tally.is_undated = tally.is_undated or bool(waiting)
    yield from _all_at(tally.written, waiting)


def _all_at(time: str, records: list[Record]) -> Iterator[Record]:
    return (record if record.time else record._replace(time=time) for record in records)


def _written(file: Any) -> str:
    """Return the time of the last change of a file; "" if it is not known."""
    if isinstance(file, (str, os.PathLike)):
        with suppress(OSError, OverflowError, ValueError):
            time = min(now(), clock.of_file(os.stat(file).st_mtime))
            return clock.stamp(time) if time.year >= FIRST_YEAR else ""
    return ""


def _new_entries(captured: Iterable[Any], name: str, tally: _Tally, *, is_copy: bool) -> Iterator[JsonObject]:
    """Yield the new notes that can be stored, checked; impossible ones are named like bad lines."""
    before: dict[str, int] = {}
    for note in captured:
        key = dedupe.copy_key(note, before)
        if is_copy:
            note["metadata"]["pointer"]["key"] = key
        if key in tally.keys or not dedupe.is_new(note, tally.keys):
            tally.known += 1
            continue
        try:
            yield dedupe.storable(
                note, capacity=tally.capacity, certain_chars=tally.batch_chars, count=tally.count
            )
        except InvalidInput as reason:
            line = note["metadata"]["pointer"]["line"]
            tally.bad.append({"file": name, "line": line, "reason": reason.what})


def _store(
    batch: list[JsonObject], words: passages.Collector, tally: _Tally, home: Home, *, dry_run: bool
) -> None:
    if dry_run:
        tally.preview += batch
    else:
        batch = _commit(batch, words, words.drain(), tally, home)
    tally.items += len(batch)
    for entry in batch:
        tally.types[entry["type"]] = tally.types.get(entry["type"], 0) + 1
        if "phase" in entry["metadata"]:
            tally.phases.add(entry["metadata"]["phase"])
        tally.tokens += tally.count(entry["content"])


def _commit(
    batch: list[JsonObject], words: passages.Collector, said: list[JsonObject], tally: _Tally, home: Home
) -> list[JsonObject]:
    """Store the entries of `batch` that no other process stored meanwhile and the passages `said`; return the new items."""

    def wanted(snapshot: Snapshot, entries: list[JsonObject]) -> list[JsonObject]:
        # Only under the lock are all notes visible that another process, importing the same, has stored.
        if snapshot.revision != tally.revision:
            tally.foreign |= dedupe.known_keys(snapshot, to_hooks=False, after=tally.archive_read)
            tally.archive_read = record_files.head(snapshot)
        return [entry for entry in entries if not dedupe.is_known(entry, tally.foreign)]

    def new_words() -> list[JsonObject]:
        return [passage for passage in said if passage["id"] not in tally.foreign]

    def beside(snapshot: Snapshot) -> Change:
        return passages.keep(snapshot.documents["memory"], words, new_words(), now())

    tally.keys.update(filter(None, map(dedupe.note_key, said)))
    by = batch[0]["source"] if batch else DEFAULT_SOURCE
    reason = f"{words.file} ({pluralize(len(batch), 'items')})"
    author = Author("import", by, reason, part=f"{tally.whole}/{len(tally.revisions) + 1}")
    stored = store_entries(batch, author, home=home, wanted=wanted, beside=beside, is_last=False)
    # What this import stored itself is known by its notes; nothing else is in a revision that follows the last one.
    tally.revision, tally.is_full = stored.revision, tally.is_full or stored.needed
    tally.known += len(batch) - len(stored.entries)
    if stored.ids:
        tally.evicted += stored.ids[0].evicted  # the same for every id of a batch
    if stored.ids or new_words():
        tally.revisions.append(stored.revision)
    return [entry for nth, entry in enumerate(stored.entries) if nth not in stored.again]
