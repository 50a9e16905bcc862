"""Prompt recall: the entries that a prompt strongly matches.

`prompt_recall` runs at every prompt, which waits for all that this module imports: it counts no access, takes no lock, and
cuts up only the few entries that can match. Which do is decided in `search.prompt_match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from aether import clock
from aether.api import hook_sessions
from aether.api.confirming import own_test
from aether.api.home import Home, counter_of, find, now, present
from aether.errors import AetherError
from aether.memory import items
from aether.memory.layers import Record, date_and_age, item_record, records
from aether.memory.statements import end_of
from aether.paths import project_root
from aether.project import checks_facts
from aether.search.archive import searchable_archive
from aether.search.index import Found, Query
from aether.search.prompt_match import PromptMatch, PromptQuery, match_prompt, most_of_rare, parse_prompt
from aether.store import places
from aether.store.snapshot import Snapshot
from aether.text.tags import UNCONFIRMED, memory_block
from aether.text.words import query_terms
from aether.types import Counter

# Archived entries that are read for a prompt, beside those next to them.
ARCHIVED_LIMIT = 40
# Characters: a passage counts as injected if a line that was injected holds its start, because lines are cut.
REPEAT_CHARS = 60


def prompt_recall(
    prompt: str, *, budget: int, home: Home = None, session: str = "", late: Callable[[], None] = lambda: None
) -> str:  # fmt: skip
    """Return the entries that match `prompt` strongly as one `<aether-memory …>` block, or "".

    Entries that `session` noted itself or was given before are left out. A prompt does not wait for the search index: where
    it lacks much of the archive, `late` is called.
    """
    query = parse_prompt(prompt)
    if query is None or budget < 1:
        return ""
    place = find(home)
    # A prompt does not wait for the drain: the spool is drained at the end of the turn.
    snapshot = present(place)
    memory = snapshot.documents["memory"]
    injected = hook_sessions.read_injected(place, session)
    entries = [
        record for record in records(memory) if not _is_of(record, session) and not end_of(record.value)
    ]
    archive, candidates = _in_archive(snapshot, query, late, entries)
    archived = [record for record in candidates if not _is_of(record, session) and not end_of(record.value)]
    matches = [
        match
        for match in match_prompt(
            query, entries, archived, held=archive.held, others=archive.items, leave_out=injected
        )
        if not any(match.passage[:REPEAT_CHARS] in line for line in injected)
    ]
    is_own = own_test(place)
    if is_own:
        matches.sort(key=lambda match: not is_own(match.record.value))
    matches = _checked(snapshot, matches)
    text, shown_ids = _reminder_block(matches, budget, counter_of(memory), is_own)
    if shown_ids and session:
        with suppress(AetherError):  # at worst it is injected again
            hook_sessions.add_injected(place, session, shown_ids)
    places.note_recall(place, places.PROMPT, len(shown_ids))
    return text


def _in_archive(
    snapshot: Snapshot, query: PromptQuery, late: Callable[[], None], live: Sequence[Record]
) -> tuple[Found, list[Record]]:
    """Return the answer of the archive, and its candidates: those with a name of the prompt or one of its rare words."""
    names = tuple(tuple(query_terms(name).weights) for name in query.names)
    # The newest commit of a thing may have none of its rare words.
    rare = None if query.commit else lambda items: most_of_rare(items + len(live))
    asked = Query(query.words, (), cap=ARCHIVED_LIMIT, names=names, rare=rare)
    answer = searchable_archive(snapshot, late).find(asked)
    newest = {each.id: each for each in answer.candidates}
    # What was taken out again, by an undo or by hand, is found by those who look for it.
    likely = [each for each in newest.values() if each.record.get("why") != items.REMOVED]
    likely.sort(key=lambda each: each.place)
    ids = {record.id for record in live}
    records = [item_record(each.record["item"], "archive") for each in likely]
    return answer, [record for record in records if record.id not in ids]


def _is_of(record: Record, session: str) -> bool:
    """Return whether an entry was noted in `session` itself, so that it is still in the context."""
    pointer = (record.value.get("metadata") or {}).get("pointer")
    if not pointer or not session:
        return False
    file = str(pointer.get("file", ""))
    # To look for the name takes a twentieth of the time of a path, and most entries have none.
    return session in file and PurePath(file).stem == session


def _kind(record: Record, is_own: Callable[[Mapping[str, Any]], bool] | None) -> str:
    """Return the type of an entry, of a passage of a conversation who wrote it, of what came with a repository that."""
    if is_own and not is_own(record.value):
        return UNCONFIRMED
    speaker = (record.value.get("metadata") or {}).get("speaker")
    return f"{speaker} wrote" if record.type == items.HISTORY and speaker else record.type


def _checked(snapshot: Snapshot, matches: list[PromptMatch]) -> list[PromptMatch]:
    """Return the matches, each with what changed in the project since it was written."""
    root = project_root(snapshot.home)
    if not matches or not root or not checks_facts():
        return matches
    from aether.api import checking
    from aether.memory.briefing.sections import Line

    lines = [
        Line(
            "lesson", match.passage, match.record.at, ids=(match.record.id,), source="explicit", evidence=_evidence(match.record),
        )
        for match in matches
    ]  # fmt: skip
    facts = {
        match.record.id: fact
        for match in matches
        if (fact := (match.record.value.get("metadata") or {}).get("fact"))
    }
    checked = checking.check(lines, root, facts=facts, seconds=checking.SECONDS).lines
    return [
        match._replace(passage=f"{line.text} ({line.note})" if line and line.note else match.passage)
        for match, line in zip(matches, checked, strict=True)
    ]


def _evidence(record: Record) -> str:
    return str((record.value.get("metadata") or {}).get("evidence") or "")


def _reminder_block(
    matches: Sequence[PromptMatch],
    budget: int,
    count: Counter,
    is_own: Callable[[Mapping[str, Any]], bool] | None,
) -> tuple[str, list[str]]:
    """Return the block of as many matches as the budget allows, and their ids."""
    moment = now()
    for number in range(len(matches), 0, -1):
        lines = [
            f"- {date_and_age(match.record.at, moment)} {_kind(match.record, is_own)}: {match.passage} [{match.record.id}]"
            for match in matches[:number]
        ]
        lines.append(f"In full: aether recall --full {matches[0].record.id}")
        text = memory_block(lines, occasion="prompt", at=clock.stamp(moment))
        if count(text) <= budget:
            return text, [match.record.id for match in matches[:number]]
    return "", []
