"""Recall, as a caller asks for it: what memory knows about something, in three steps that each say what they cost.

`prompt_recall` is the fourth: what a prompt calls to mind by itself. It is asked at every prompt, so it counts
no access, takes no lock, and cuts up only the few entries that can be a match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath

from aether import clock
from aether.api import hook_sessions
from aether.api.home import Home, copied, counter_of, find, now, read
from aether.api.search import search_memory, searchable_archive
from aether.errors import AetherError, InvalidInput, NotFound, shown
from aether.memory import recall as lines
from aether.memory.briefing.prompt_match import PromptMatch, PromptQuery, match_prompt, parse_prompt
from aether.memory.items import memory_block
from aether.memory.recall import RecallLine
from aether.store.search_index import Candidate, Query, plain_text, term_counts, term_marks
from aether.store.snapshot import Snapshot, load
from aether.types import Counter, JsonObject

__all__ = ["RecallLine", "full", "prompt_recall", "recall", "timeline"]

# Archived entries that are read for a prompt, those with most of its words first.
ARCHIVED_LIMIT = 40
# A passage that begins like this in a line that was told is told: lines are cut.
REPEAT_CHARS = 60


def recall(query: str, *, limit: int = 10, budget: int | None = None, home: Home = None) -> list[RecallLine]:
    """Return an index of what memory knows about `query`, best first, that takes at most `budget` tokens.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    if budget is not None and budget < 1:
        raise InvalidInput(
            f"budget is {budget}.", fix="Use a number of tokens, or none for no bound.", where="recall"
        )
    hits = search_memory(query, limit, home=home)
    snapshot = read(home)
    count = counter_of(snapshot.documents["memory"])
    known = {record.id: record for record in _by_id(snapshot, [hit["id"] for hit in hits])}
    found = [
        lines.recall_line(known[hit["id"]], count=count, score=hit["score"])
        for hit in hits
        if hit["id"] in known
    ]
    return found if budget is None else lines.fit_lines(found, budget, count)


def timeline(id: str, *, before: int = 3, after: int = 3, home: Home = None) -> list[RecallLine]:
    """Return the entry `id` among its neighbours in time, oldest first.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: a number of neighbours is negative.
    """
    for name, value in (("before", before), ("after", after)):
        if value < 0:
            raise InvalidInput(f"{name} is {value}.", fix="Use a whole number from 0.", where="timeline")
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    found = lines.neighbours(lines.records(memory, _archived(snapshot)), id, before=before, after=after)
    if not found:
        raise _unknown(id)
    count = counter_of(memory)
    return [lines.recall_line(record, count=count) for record in found]


def full(ids: Sequence[str], *, home: Home = None) -> list[JsonObject]:
    """Return the entries `ids` in full, in that order: id, layer, type, at, tokens, text, and the stored entry.

    Raises:
        NotFound: nothing has one of these ids.
    """
    snapshot = read(home)
    count = counter_of(snapshot.documents["memory"])
    known = {record.id: record for record in _by_id(snapshot, ids)}
    for missing in (one for one in ids if one not in known):
        raise _unknown(missing)
    return [
        {
            **{key: value for key, value in record._asdict().items() if key != "value"},
            "tokens": record.tokens or count(record.text), "entry": copied(record.value),
        }
        for record in (known[one] for one in ids)
    ]  # fmt: skip


def _unknown(id: str) -> NotFound:
    return NotFound(
        f"{shown(id)} is in no layer and not in the archive.",
        fix='See "aether recall QUERY".',
        where="recall",
    )


def _by_id(snapshot: Snapshot, ids: Sequence[str]) -> Iterator[lines.Record]:
    """Yield the entries with these ids, in no order, asking the archive only for those that are not live."""
    wanted = set(ids)
    for record in lines.records(snapshot.documents["memory"]):
        if record.id in wanted:
            wanted.discard(record.id)
            yield record
    if not wanted:
        return
    source = searchable_archive(snapshot)
    found = source.find(Query((), (), tuple(sorted(map(plain_text, wanted))))).candidates
    stored = source.read([candidate.place for candidate in found])
    yield from lines.records(
        {"working_memory": {"items": []}, "short_term_memory": {"sessions": []}, "long_term_memory": {"patterns": []}},
        (stored[place] for place in sorted(stored)),
    )  # fmt: skip


def _archived(snapshot: Snapshot) -> Iterator[JsonObject]:
    """Yield all that the archive shows, oldest first."""
    source = searchable_archive(snapshot)
    size = source.find(Query((), (), ())).items
    stored = source.read(list(range(size)))
    yield from (stored[place] for place in sorted(stored))


def prompt_recall(prompt: str, *, budget: int, home: Home = None, session: str = "") -> str:
    """Return what memory strongly has to say to `prompt` as one `<aether-memory …>` block, or "".

    Nothing that `session` noted itself or was told before is in it.
    """
    wanted = parse_prompt(prompt)
    if wanted is None or budget < 1:
        return ""
    place = find(home)
    # What waits in the spool is of this turn or another's, and is taken in at its end: a prompt does not wait for that.
    snapshot = load(place)
    memory = snapshot.documents["memory"]
    known = hook_sessions.read_injected(place, session)
    records = [record for record in lines.records(memory) if not _is_of(record, session)]
    stored, held, others = _in_archive(snapshot, wanted, {record.id for record in records})
    records += [record for record in stored if not _is_of(record, session)]
    found = [
        one
        for one in match_prompt(wanted, records, held=held, others=others, leave_out=known)
        if not any(one.passage[:REPEAT_CHARS] in line for line in known)
    ]
    text, shown_ids = _reminder_block(found, budget, counter_of(memory))
    if shown_ids and session:
        with suppress(AetherError):  # it is injected again at worst
            hook_sessions.record_injected(place, session, [*known, *shown_ids])
    return text


def _in_archive(
    snapshot: Snapshot, wanted: PromptQuery, live: set[str]
) -> tuple[list[lines.Record], dict[str, int], int]:
    """Return the archived entries that may be a match, and how many of the others hold each word."""
    source = searchable_archive(snapshot)
    answer = source.find(Query(wanted.words, (), ()))
    marked = term_marks(wanted.words)

    def words(candidate: Candidate) -> int:
        return len(term_counts(candidate.row.marked, marked))

    newest = {each.row.id: each for each in answer.candidates}
    likely = sorted(newest.values(), key=lambda each: (-words(each), -each.place))[:ARCHIVED_LIMIT]
    held = dict(answer.held)
    for candidate in likely:
        for word in term_counts(candidate.row.marked, marked):
            held[word] -= 1
    stored = source.read([candidate.place for candidate in likely]) if likely else {}
    found = [lines.item_record(record["item"], "archive") for record in stored.values()]
    return [one for one in found if one.id not in live], held, answer.items - len(likely)


def _is_of(record: lines.Record, session: str) -> bool:
    """Return whether an entry was noted in `session` itself: its model has it before its eyes."""
    pointer = (record.value.get("metadata") or {}).get("pointer") or {}
    return bool(session) and PurePath(str(pointer.get("file", ""))).stem == session


def _reminder_block(found: Sequence[PromptMatch], budget: int, count: Counter) -> tuple[str, list[str]]:
    """Return the block of as many reminders as the budget allows, and their ids."""
    at = now()
    for number in range(len(found), 0, -1):
        said = [
            f"- {lines.date_and_age(one.record.at, at)} {one.record.type}: {one.passage} [{one.record.id}]"
            for one in found[:number]
        ]
        text = memory_block(
            [*said, f"In full: aether recall --full {found[0].record.id}"],
            occasion="prompt",
            at=clock.stamp(at),
        )
        if count(text) <= budget:
            return text, [one.record.id for one in found[:number]]
    return "", []
