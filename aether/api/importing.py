"""Importing: turn real transcripts into working-memory items, once, however often they are imported.

Notes that hooks made of a session while it ran are not stored twice. Private blocks, calls about private paths and
secrets are left out, as hooks leave them out. What a sub-agent's transcript copied of another session is imported as
that session's, unless its own transcript is imported. What was said is kept for search as well (`memory.capture.passages`). Records are read in constant memory and stored in batches; an import that
is stopped keeps its stored batches, and importing again adds the rest. Bad lines are counted and named, never fatal.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
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
from aether.memory import gate, phases
from aether.memory.capture import passages
from aether.memory.capture.extract import capture
from aether.memory.colony import check_phase
from aether.memory.items import DEFAULT_SOURCE, DOCUMENT, add
from aether.messages.directories import joined
from aether.messages.read import detect_file_format, read_records, require_format, without_private
from aether.messages.records import BadLine, Record, read_json_values
from aether.messages.sources.claude_code import is_beside_session
from aether.messages.unpack import is_zip, members
from aether.store import config, record_files
from aether.store.authors import Author
from aether.store.commit import fold_home
from aether.store.files import require_writable
from aether.store.patch import apply
from aether.store.snapshot import Snapshot
from aether.store.undo import entries_newest_first
from aether.text.words import pluralize
from aether.types import Change, Counter, JsonObject

SUFFIXES = frozenset(
    {".jsonl", ".json", ".md", ".txt", ".traj", ".af", ".gz", ".zip", ".db", ".sqlite", ".sqlite3"}
)
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
# Entries of a clock that is ahead, in a file without any other time: before all others, so that they outrank none.
BEFORE_ALL = f"{FIRST_YEAR}-01-01T00:00:00.000000Z"
# Clocks differ; one that is more than a day ahead is wrong.
CLOCKS_DIFFER = timedelta(days=1)


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
    future: list[JsonObject]
    """Files with entries of a clock that was ahead, and the first such time: file, at. They get the time of the entries around them."""
    waiting: int = 0
    """Items that wait for a person, as `memory.agents` says; they are not among `items`."""
    displaced: int = 0
    """Items that were to wait and do not: only so many can, and the oldest leave."""


class ImportInterrupted(KeyboardInterrupt):
    """Ctrl-C during an import; `done` is its result so far, and importing again adds the rest."""

    def __init__(self, done: Imported) -> None:
        super().__init__()
        self.done = done


@dataclass
class _Import:
    """The options of an import, and all state that changes while files are read."""

    home: Home
    phase: int | None
    """The phase of all notes, if it is forced."""
    format: str | None
    dry_run: bool
    progress: Callable[[int, int], None]
    capacity: int
    """Tokens that working memory holds."""
    private: str
    """The patterns of private paths."""
    root: str
    """The directory of the project, from which relative paths are seen."""
    count: Counter
    archive_read: int
    """Position of the last archived item whose key is known."""
    name: str
    """The name of this import in the journal: its transactions are undone as one."""
    conversations: Callable[[], set[str]]
    """The conversations that the home had, and those of all files: asked for only if one was copied."""
    keys: set[str]
    """Of all notes so far."""
    phases_before: dict[str, set[int]]
    """The phases that notes had before the import, by file."""
    history: list[JsonObject]
    """The conversations of which words are kept."""
    next_phase: int
    """The first free phase."""
    foreign: set[str] = field(default_factory=set)
    """Keys and ids of passages found in the home when a batch was committed."""
    revision: int = -1
    """The revision of the home up to which `foreign` is known."""
    is_full: bool = False
    """Whether working memory should be compressed."""
    planned: Mapping[str, Any] = field(default_factory=dict)
    """In a dry run, the memory as the import would have made it so far."""
    written: str = ""
    """The time of the last change of the file that is read."""
    is_undated: bool = False
    """Whether that file has entries for which it says no time."""
    conversations_read: set[str] = field(default_factory=set)
    """The conversations whose own transcript was read."""
    files: int = 0
    records: int = 0
    items: int = 0
    known: int = 0
    tokens: int = 0
    types: Tally[str] = field(default_factory=Tally)
    phases: set[int] = field(default_factory=set)
    evicted: list[str] = field(default_factory=list)
    bad_lines: list[JsonObject] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)
    preview: list[JsonObject] = field(default_factory=list)
    long_lines: list[JsonObject] = field(default_factory=list)
    skipped_copies: list[JsonObject] = field(default_factory=list)
    undated: list[JsonObject] = field(default_factory=list)
    future: list[JsonObject] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)
    waits: Callable[[JsonObject, Mapping[str, Any]], bool] = lambda entry, memory: False
    """Whether an entry waits for a person."""
    has_words: bool = True
    """Whether the words of conversations are kept for search: they cannot wait."""

    @property
    def batch_chars(self) -> float:
        return dedupe.batch_chars(self.capacity)

    def result(self) -> Imported:
        """Return the result so far."""
        counts = {name: getattr(self, name) for name in Imported._fields[:-2]}
        documents = read(self.home).documents if self.proposed else {}
        ids = {item["id"] for item in gate.waiting_of(documents)} if documents else set()
        waiting = sum(id in ids for id in self.proposed)  # noqa: A001
        counts |= {"waiting": waiting, "displaced": len(self.proposed) - waiting}
        return Imported(**counts | {"types": dict(sorted(self.types.items())), "phases": sorted(self.phases)})


@public
def import_transcripts(
    sources: Iterable[str | os.PathLike[str] | IO[bytes]],
    *,
    phase: int | None = None,
    format: str | None = None,
    dry_run: bool = False,
    accept: bool = False,
    home: Home = None,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Turn transcripts into working-memory items and return the result.

    `sources` are files, directories or byte streams; of several, one that cannot be read is among the bad lines, as in a
    directory, and the others are imported. The phase of an item is `phase`; else each file, and each stretch
    between two compactions in it, is a phase of its own, the same when the file is imported again. `progress` is called
    with the records read and the items kept. If `memory.agents` is not write, all items wait for a person and the words of the
    conversations are not kept; `accept` says that the person vouches for the sources.

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
    run = _new_import(
        snapshot,
        sources,
        home,
        phase,
        format,
        dry_run=dry_run,
        progress=progress or (lambda records, items: None),
    )
    mode = gate.WRITE if accept else config.or_default(snapshot.home).memory_agents
    run.has_words = mode == gate.WRITE
    run.waits = lambda entry, memory: (
        not accept and (mode != gate.WRITE or gate.waits(entry, mode, memory, captured=True))
    )
    try:
        for file in _files(sources, run.bad_lines):
            run.files += 1
            is_path = isinstance(file, (str, os.PathLike))
            name = Path(file).name if is_path else str(getattr(file, "name", "-"))
            try:
                _import_file(run, file, name)
            except (InvalidInput, NotFound) as reason:
                if len(sources) == 1 and file is sources[0]:
                    raise
                # One foreign file among others does not stop the import; it is named like a bad line.
                run.bad_lines.append({"file": name, "line": 0, "reason": reason.what})
    except KeyboardInterrupt as stop:
        # The last revision may have been stored when Ctrl-C was pressed.
        newer = entries_newest_first(read(home), after=snapshot.revision)
        run.revisions = sorted(entry.revision for entry in newer if entry.part.startswith(f"{run.name}/"))
        raise ImportInterrupted(run.result()) from stop
    if run.is_full:
        prepare_handoff(home)
    if run.revisions:
        with suppress(AetherError):  # everything is in the journal: the next commit folds
            fold_home(snapshot.home, now=now(), least=config.or_default(snapshot.home).fold_bytes)
    return run.result()


def _new_import(
    snapshot: Snapshot, sources: list[Any], home: Home, phase: int | None, format: str | None, *, dry_run: bool,
    progress: Callable[[int, int], None],
) -> _Import:  # fmt: skip
    @cache
    def conversations() -> set[str]:
        return dedupe.conversations(snapshot) | {*map(_first_conversation, _files(sources, []))}

    memory = snapshot.documents["memory"]
    phases_before, history = dedupe.phases_by_file(snapshot), memory.get("history", [])
    noted = [*phases_before.values(), *filter(None, (entry.get("phases") for entry in history))]
    current = phases.current_phase(snapshot.documents["COLONY_STATE"])
    return _Import(
        home, phase, format, dry_run, progress, memory["working_memory"]["max_capacity_tokens"],
        config.load(snapshot.home).claude_private_paths, str(snapshot.home.parent), counter_of(memory),
        record_files.head(snapshot), new_id("import", now()), conversations,
        dedupe.known_keys(snapshot, to_hooks=False), phases_before, history,
        max([current, *(1 + max(numbers) for numbers in noted)]),
    )  # fmt: skip


def _import_file(run: _Import, file: Any, name: str) -> None:
    """Store the notes and the words of one file: first those that it copied from another session, as that session's."""
    before, stored_before = run.records, (len(run.revisions), run.items)
    run.written, run.is_undated = _written(file), False
    records = _records(run, file, name)
    if run.private:
        records = without_private(records, run.private, directory=run.root)
    for copied, part in groupby(records, key=lambda record: record.session if record.copied else ""):
        if copied and (copied in run.conversations_read or copied in run.conversations()):
            number = sum(1 for _ in part)
            run.skipped_copies.append({"file": name, "conversation": copied, "records": number})
        else:
            _import_part(run, part, name, is_copy=bool(copied))
    if run.records == before:
        raise _nothing_in(file, run.format, name)
    if run.is_undated and run.written != BEFORE_ALL and (len(run.revisions), run.items) != stored_before:
        run.undated.append({"file": name, "at": run.written})


def _import_part(run: _Import, records: Iterable[Record], name: str, *, is_copy: bool) -> None:
    """Store the notes and the words of one conversation, whose stretches get the phases that it had, then free ones."""
    words = passages.Collector(name, run.history, run.keys)
    first_free, revisions = run.next_phase, len(run.revisions)

    def phase_of(segment: int) -> int:
        if run.phase is not None:
            return run.phase
        earlier = words.known_phases(run.phases_before.get(name, ()))
        phase = earlier[segment] if segment < len(earlier) else first_free + segment - len(earlier)
        words.phases.add(phase)
        return phase

    try:
        notes = capture(words.watch(records), file=name, phase=run.phase, phases=phase_of)
        entries = _new_entries(run, notes, name, is_copy=is_copy)
        for batch in dedupe.batches(entries, run.batch_chars):
            _store(run, batch, words)
        if (last_passages := words.drain()) and not run.dry_run:
            _commit(run, [], words, last_passages)
    finally:
        run.next_phase = max([run.next_phase, *(1 + phase for phase in (*run.phases, *words.kept_phases))])
    if len(run.revisions) > revisions:
        # The next file may have the same name and start with the same words.
        run.history = read(run.home).documents["memory"].get("history", [])


def _first_conversation(file: Any) -> str:
    """Return the conversation that a file starts with, "" if that is a copy, cannot be read, or a stream."""
    with suppress(AetherError, OSError):
        if isinstance(file, (str, os.PathLike)) and (first := next(read_records(file), None)):
            return "" if first.copied else first.session
    return ""


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
            yield from _unzipped(source, bad, is_alone=len(sources) == 1)
            continue
        paths = [
            path for path in sorted(Path(source).rglob("*"), key=lambda path: (path.parent, path.name))
            if path.is_file() and path.suffix.lower() in SUFFIXES and path.stem.lower().split("-")[0] not in SKIPPED_NAMES
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
        for path in joined(paths):
            yield from _unzipped(path, bad, is_alone=False)


def _unzipped(source: Any, bad: list[JsonObject], *, is_alone: bool) -> Iterator[Any]:
    """Yield a file or stream, of a zip archive the files in it; a damaged one is a bad line if it is not alone."""
    try:
        if isinstance(source, (str, os.PathLike)) and os.path.isfile(source) and is_zip(Path(source)):
            yield from members(Path(source), SUFFIXES)
        else:
            yield source
    except InvalidInput as reason:
        if is_alone:
            raise
        bad.append({"file": Path(source).name, "line": 0, "reason": reason.what})


def _records(run: _Import, file: Any, name: str) -> Iterator[Record]:
    def on_bad(bad: BadLine) -> None:
        run.bad_lines.append({"file": name, **bad._asdict()})

    read_here = read_records(file, format=run.format, on_bad=on_bad)
    for record in _dated(run, _without_future(run, read_here, name)):
        run.records += 1
        run.conversations_read.add("" if record.copied else record.session)
        if len(record.text) > LONG_LINE_CHARS:
            run.long_lines.append({"file": name, "line": record.line, "characters": len(record.text)})
        run.progress(run.records, run.items)
        yield record


def _without_future(run: _Import, records: Iterable[Record], name: str) -> Iterator[Record]:
    """Yield `records` without the times of a clock that was ahead; the first in the file is noted."""
    latest, is_noted = clock.stamp(now() + CLOCKS_DIFFER), False
    for record in records:
        if record.time[:10] <= latest[:10]:
            yield record
            continue
        if not is_noted:
            run.future.append({"file": name, "at": record.time})
            run.written, is_noted = BEFORE_ALL, True
        yield record._replace(time="")


def _dated(run: _Import, records: Iterable[Record]) -> Iterator[Record]:
    """Yield `records` with times.

    One without has that of the one before in its conversation, else the first that follows, else that of the file. A
    record that names no conversation belongs to that of the one before.
    """
    times: dict[str, str] = {}
    waiting: list[Record] = []
    session, room = "", WAITING_CHARS
    for record in records:
        is_other = bool(session and record.session) and record.session != session
        if waiting and (is_other or room < 0):
            run.is_undated, times[session] = True, run.written
            yield from _all_at(run.written, waiting)
            waiting, room = [], WAITING_CHARS
        session = record.session or session
        if time := record.time or times.get(session, ""):
            times[session] = time
            yield from _all_at(time, [*waiting, record])
            waiting, room = [], WAITING_CHARS
        else:
            waiting.append(record)
            room -= len(record.text) + len(str(record.arguments))
    run.is_undated = run.is_undated or bool(waiting)
    yield from _all_at(run.written, waiting)


def _all_at(time: str, records: list[Record]) -> Iterator[Record]:
    return (record if record.time else record._replace(time=time) for record in records)


def _written(file: Any) -> str:
    """Return the time of the last change of a file; "" if it is not known."""
    if isinstance(file, (str, os.PathLike)):
        with suppress(OSError, OverflowError, ValueError):
            time = min(now(), clock.of_file(os.stat(file).st_mtime))
            return clock.stamp(time) if time.year >= FIRST_YEAR else ""
    return ""


def _new_entries(run: _Import, notes: Iterable[Any], name: str, *, is_copy: bool) -> Iterator[JsonObject]:
    """Yield the new notes that can be stored, checked; impossible ones are named like bad lines."""
    numbers: dict[str, int] = {}
    for note in notes:
        key = dedupe.copy_key(note, numbers)
        if is_copy:
            note["metadata"]["pointer"]["key"] = key
        if key in run.keys or not dedupe.is_new(note, run.keys):
            run.known += 1
            continue
        try:
            yield dedupe.storable(note, capacity=run.capacity, certain_chars=run.batch_chars, count=run.count)
        except InvalidInput as reason:
            line = note["metadata"]["pointer"]["line"]
            run.bad_lines.append({"file": name, "line": line, "reason": reason.what})


def _store(run: _Import, batch: list[JsonObject], words: passages.Collector) -> None:
    if run.dry_run:
        batch = _plan(run, batch)
        run.preview += batch
    else:
        batch = _commit(run, batch, words, words.drain())
    run.items += len(batch)
    run.types.update(entry["type"] for entry in batch)
    run.phases.update(entry["metadata"]["phase"] for entry in batch if "phase" in entry["metadata"])


def _plan(run: _Import, batch: list[JsonObject]) -> list[JsonObject]:
    """Return the entries of a batch that would become items of their own, and add all to the planned memory."""
    run.planned = run.planned or read(run.home).documents["memory"]
    change = add(run.planned, batch, now=now(), new_id=new_id, count=run.count)
    run.planned = apply(run.planned, change.patches[DOCUMENT])
    run.evicted += change.result.evicted
    run.tokens += change.result.tokens
    return [entry for number, entry in enumerate(batch) if number not in change.result.again]


def _commit(
    run: _Import, batch: list[JsonObject], words: passages.Collector, new_passages: list[JsonObject]
) -> list[JsonObject]:
    """Store the entries and passages that no other process stored meanwhile; return the new items."""

    def wanted(snapshot: Snapshot, entries: list[JsonObject]) -> list[JsonObject]:
        # Only under the lock are all notes visible that another process, importing the same, has stored.
        if snapshot.revision != run.revision:
            run.foreign |= dedupe.known_keys(snapshot, to_hooks=False, after=run.archive_read)
            run.archive_read = record_files.head(snapshot)
        return [entry for entry in entries if not dedupe.is_known(entry, run.foreign)]

    def fresh_passages() -> list[JsonObject]:
        return [passage for passage in new_passages if passage["id"] not in run.foreign and run.has_words]

    def beside(snapshot: Snapshot) -> Change:
        if not run.has_words:
            return Change({})
        return passages.keep(snapshot.documents["memory"], words, fresh_passages(), now())

    run.keys.update(filter(None, map(dedupe.note_key, new_passages)))
    source = batch[0]["source"] if batch else DEFAULT_SOURCE
    reason = f"{words.file} ({pluralize(len(batch), 'items')})"
    author = Author("import", source, reason, part=f"{run.name}/{len(run.revisions) + 1}")
    stored = store_entries(
        batch, author, home=run.home, wanted=wanted, beside=beside, is_last=False, waits=run.waits
    )
    proposed = [str(item_id) for item_id in stored.in_order if item_id.waits and item_id]
    run.proposed += proposed
    run.tokens += stored.tokens
    # What this import stored itself is known by its notes; nothing else is in a revision that follows the last one.
    run.revision, run.is_full = stored.revision, run.is_full or stored.needed
    run.known += len(batch) - len(stored.entries) - len(proposed)
    if stored.ids:
        run.evicted += stored.ids[0].evicted  # the same for every id of a batch
    if stored.ids or proposed or fresh_passages():
        run.revisions.append(stored.revision)
    return [entry for number, entry in enumerate(stored.entries) if number not in stored.again]
