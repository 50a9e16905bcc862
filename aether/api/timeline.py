"""The timeline of a home, and what its memory knows about one source file; both only read.

What a moment is, and when a path is the same file, is decided in `memory.timeline`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from aether import clock
from aether.api import hook_sessions
from aether.api.confirming import own_test
from aether.api.home import Home, find, instant, now, read
from aether.errors import AetherError, InvalidInput, NotFound, public, shown
from aether.memory import layers
from aether.memory import layers as recall
from aether.memory.briefing.kept import revoked_in
from aether.memory.captured_threads import ThreadRow, Turn, thread_rows
from aether.memory.captured_threads import thread as turns_of
from aether.memory.items import forgotten_parts, items_of
from aether.memory.sessions import sessions_of
from aether.memory.timeline import (
    MAIN_KINDS,
    FileHistory,
    Known,
    Moment,
    about_file,
    components,
    is_wanted,
    item_moment,
    moments,
)
from aether.redact.redact import redact
from aether.search.archive import archive_of, searchable_archive, shown_ids
from aether.search.index import Query, newest
from aether.store import archive_store, conversations, history, record_files, search_index
from aether.store.snapshot import Snapshot, file_id, load
from aether.store.undo import undone_revisions
from aether.text.tags import UNCONFIRMED, memory_block
from aether.text.words import argument, terms
from aether.types import JsonObject

__all__ = ["FileHistory", "Known", "Moment", "file_history", "file_reminder", "thread", "threads", "timeline"]

# The moments of the archive of the home that was asked for last: a page is asked for again and again while its home changes.
_ARCHIVED: dict[Path, tuple[Any, list[Moment]]] = {}
# Characters of a statement that a model gets when it reads a file, and how many of each part.
_REMINDED_CHARS, _REMINDED = 240, {"decisions": 3, "errors": 3}


@public
def timeline(
    *,
    since: str | datetime = "",
    until: str | datetime = "",
    conversation: str = "",
    project: str = "",
    types: Iterable[str] = (),
    limit: int = 0,
    home: Home = None,
) -> list[Moment]:
    """Return what happened, oldest first: requests, decisions, rules, results, errors, fixes, compressions, phases.

    `since` and `until` (excluded) are times, or texts such as `7d`; `conversation` and `project` are parts of their
    names. `types` are kinds of moments or types of items: changes, commands and notes are left out if none is given.
    `limit` keeps the newest; 0 keeps all.

    Raises:
        InvalidInput: a time cannot be read, or the limit is negative.
        NotFound: no conversation has this name.
    """
    if limit < 0:
        raise InvalidInput(f"limit is {limit}.", fix="Use 0 for all, or the number wanted.", where="timeline")
    moment = now()
    names = (*types,)
    keep = layers.entry_filter(
        since=instant(since, at=moment, where="since"),
        until=instant(until, at=moment, where="until"),
        project=project,
        conversation=conversation,
    )._replace(types=names, kinds=frozenset(names) or MAIN_KINDS)
    snapshot = read(home)
    items, floor = _newest(snapshot, keep, limit)
    selection = moments(
        items, compressions(snapshot, since=floor), _compactions(snapshot.home, since=floor),
        snapshot.documents["COLONY_STATE"], keep,
    )  # fmt: skip
    if conversation and not selection:
        _require_conversation(snapshot, conversation)
    return selection[-limit:]


def _require_conversation(snapshot: Snapshot, name: str) -> None:
    """Refuse a name that no conversation has: an empty answer would say that nothing happened in it."""
    part = name.casefold()
    ids = (
        stored_conversation.id for stored_conversation in conversations.stored_conversations(snapshot.home)
    )
    rested = (f"{row.id}\n{row.title}" for row in archive_store.rows(snapshot.home))
    noted = (
        f"{moment.conversation}\n{moment.title}\n{moment.pointer.get('file', '')}"
        for moment in item_moments(snapshot)
    )
    if not any(part in entry.casefold() for entry in chain(ids, rested, noted)):
        fix = 'Pass a part of its id, title or file; "aether timeline" shows those of its moments.'
        raise NotFound(f"no conversation is named {shown(name)}.", fix=fix, where="conversation")


@public
def threads(*, home: Home = None) -> list[ThreadRow]:
    """Return the conversations that were imported, or noted by hooks, the one that went on last first."""
    return thread_rows(item_moments(read(home)))


@public
def thread(conversation: str, *, home: Home = None) -> list[Turn]:
    """Return the turns of a captured conversation, oldest first, each with the notes that were made of it.

    `conversation` is its id, whole.

    Raises:
        NotFound: memory holds nothing of this conversation.
    """
    moments_of_all = (
        item_moments(read(home)) if conversation else ()
    )  # what was noted outside of all has no name
    turns = turns_of(moment for moment in moments_of_all if moment.conversation == conversation)
    if not turns:
        fix = "The page Conversations lists those that memory holds."
        raise NotFound(
            f"memory holds nothing of the conversation {shown(conversation)}.", fix=fix, where="thread"
        )
    return turns


def _newest(snapshot: Snapshot, keep: layers.Filter, limit: int) -> tuple[list[Moment], str]:
    """Return the moments of items, and a time after which none is missing, but `limit` are there; "" if all are there."""
    most = limit
    while limit:
        most = min(most * 2, sys.maxsize)
        answer = newest(snapshot.home / search_index.FILE, archive_of(snapshot), keep, most)
        if answer is None:
            break
        records, oldest = answer
        items = [*item_moments(snapshot, _moments_of(records))]
        floor = layers.item_record(oldest["item"], "archive").at if oldest else ""
        if not oldest or sum(entry.at > floor and is_wanted(entry, keep) for entry in items) >= limit:
            return items, floor
    return [*item_moments(snapshot)], ""


def item_moments(snapshot: Snapshot, archived: Iterable[Moment] | None = None) -> Iterator[Moment]:
    """Yield the moments of all items, live and `archived`, that nobody has forgotten."""
    memory = snapshot.documents["memory"]
    live = items_of(memory)
    yield from (item_moment(layers.item_record(item, "working_memory")) for item in live)
    here, is_shown = {item["id"] for item in live}, shown_ids(memory)
    cut = forgotten_parts(memory)
    candidates = searchable_archive(snapshot).find(Query((), tuple(cut))).candidates if cut else []
    texts = {candidate.id: candidate.record["item"]["content"] for candidate in candidates}
    for entry in _archived(snapshot) if archived is None else archived:
        if entry.id not in here and is_shown(entry.id):
            yield entry._replace(text=texts.get(entry.id, entry.text))


def _archived(snapshot: Snapshot) -> list[Moment]:
    """Return the moments of all archived items, read again only if the files of the archive have changed."""
    files = [file_id(str(path)) for path in record_files.files_of(snapshot.home, "items")]
    state = (record_files.head(snapshot), files)
    cached = _ARCHIVED.get(snapshot.home)
    if cached is None or cached[0] != state:
        records = (record for _, record in record_files.records(snapshot, "items"))
        cached = (state, _moments_of(records))
        _ARCHIVED.clear()
        _ARCHIVED[snapshot.home] = cached
    return cached[1]


def _moments_of(records: Iterable[JsonObject]) -> list[Moment]:
    """Return the moments of archived items; of two records of one item the newer counts."""
    newest = {str(record["item"].get("id")): record["item"] for record in records}
    return [item_moment(layers.item_record(item, "archive")) for item in newest.values()]


def _all_records(snapshot: Snapshot) -> Iterator[layers.Record]:
    source = searchable_archive(snapshot)
    stored = source.read(list(range(source.find(Query((), ())).items)))
    return layers.records(snapshot.documents["memory"], (stored[place] for place in sorted(stored)))


def compressions(snapshot: Snapshot, *, since: str = "") -> list[JsonObject]:
    """Return the receipts of the compressions `since` then that are not undone, oldest first."""
    receipts = [
        receipt
        for _, receipt in record_files.records(snapshot, "receipts")
        if receipt.get("kind") == "compression" and layers.instant_text(receipt["at"]) >= since
    ]
    newest = {receipt["session_id"]: receipt for receipt in receipts}
    receipts_in_memory = [
        newest.get(session["session_id"]) for session in sessions_of(snapshot.documents["memory"])
    ]
    # The journal is read back to the first one whose session is not there: it was undone, or evicted.
    doubtful = [int(receipt.get("revision", 0)) for receipt in receipts if receipt not in receipts_in_memory]
    undone = undone_revisions(snapshot, after=min(doubtful) - 1) if doubtful else set()
    return [receipt for receipt in receipts if receipt.get("revision") not in undone]


def compaction_sizes(home: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the time of each compaction that is not undone, with its tokens before and after."""
    for log, outcome in all_compactions(home):
        before, after = outcome.receipt.get("tokens_before"), outcome.receipt.get("tokens_after")
        if outcome.step in log.open and isinstance(before, int) and isinstance(after, int):
            yield outcome.at, before, after


def all_compactions(home: Path, *, since: str = "") -> Iterator[tuple[history.Log, history.Compaction]]:
    """Yield the compactions `since` then of all conversations that can be read; `doctor` names the others."""
    for stored in conversations.stored_conversations(home):
        if clock.stamp(clock.of_file(stored.path.stat().st_mtime)) >= since:
            with suppress(AetherError):
                log = conversations.load(home, stored.id)
                yield from ((log, compaction) for compaction in log.compactions if compaction.at >= since)


def _compactions(home: Path, *, since: str) -> Iterator[Moment]:
    for log, outcome in all_compactions(home, since=since):
        receipt = outcome.receipt
        state = "" if outcome.step in log.open else " (undone)"
        text = f"Compacted from {receipt.get('tokens_before')} to {receipt.get('tokens_after')} tokens, {len(outcome.before)} to {len(outcome.after)} messages{state}"
        author = str((receipt.get("summary") or {}).get("backend") or "")
        yield Moment(outcome.at, "compaction", "compaction", text, log.id, conversation=log.id, agent=author)


@public
def file_history(path: str, *, home: Home = None) -> FileHistory:
    """Return what memory knows about the file at `path`: changes, errors and fixes, decisions, and where it is named.

    `path` is a name, the end of a path, or a whole one; it is compared by whole components, and need not exist.

    Raises:
        InvalidInput: the path names no file.
    """
    if not components(path)[-1:] or not components(path)[-1]:
        raise InvalidInput(f"{shown(path)} names no file.", fix="Name one, such as src/app.py.", where="file")
    snapshot = read(home)
    return about_file(_all_records(snapshot), path, ended=revoked_in(snapshot.documents["memory"]))


def file_reminder(path: str, *, home: Home = None, session: str = "") -> str:
    """Return the decisions and errors about the file at `path` as one `<aether-memory …>` block, or "".

    A `session` gets it once for each file, all of it, also what was said about another file before. It waits for no
    commit and reads of the archive only the entries with the words of the name. What was revoked is left out.
    """
    name, once = components(path)[-1:], f"file:{path}"
    if not name or not name[0]:
        return ""
    place = find(home)
    if session and once in hook_sessions.read_injected(place, session):
        return ""
    snapshot = load(place)  # no drain: a reading tool does not wait for one
    candidates = searchable_archive(snapshot, lambda: None).find(Query(terms(name[0]).words, ())).candidates
    records = [*layers.records(snapshot.documents["memory"], (candidate.record for candidate in candidates))]
    about = about_file(records, path, ended=revoked_in(snapshot.documents["memory"]))
    moment = now()
    chosen = [
        entry
        for part, most in _REMINDED.items()
        for entry in [entry for entry in getattr(about, part) if not entry.revoked][-most:]
    ]
    if not chosen:
        return ""
    if session:
        with suppress(AetherError):  # at worst it is injected again
            if not hook_sessions.add_injected(place, session, [entry.id for entry in chosen], once=once):
                return ""
    is_own = own_test(place)
    own = {record.id for record in records if is_own is None or is_own(record.value)}
    lines = [
        f"- {recall.date_and_age(entry.at, moment)} {entry.type if entry.id in own else UNCONFIRMED}: {recall.excerpt(entry.text, _REMINDED_CHARS)} [{entry.id}]"
        for entry in sorted(chosen, key=lambda entry: entry.id not in own)
    ]
    lines = [f"About {path}:", *lines, f"All of it: aether timeline {argument(path)}"]
    return memory_block([redact(line) for line in lines], occasion="read", at=clock.stamp(moment))
