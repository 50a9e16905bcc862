"""Prompt recall: the entries that a prompt strongly matches, and the archive in which they are looked for.

`prompt_recall` runs at every prompt, which waits for all that this module imports: it counts no access, takes no lock, and
cuts up only the few entries that can match. Which do is decided in `memory.briefing.prompt_match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from aether import clock
from aether.api import hook_sessions
from aether.api.home import Home, counter_of, find, now, present
from aether.errors import AetherError
from aether.memory import items
from aether.memory import recall as lines
from aether.memory.briefing.prompt_match import PromptMatch, PromptQuery, match_prompt, parse_prompt
from aether.store import record_files, search_index
from aether.store.search_index import EMPTY, Archive, Candidate, Found, Query, Source, plain_text
from aether.store.snapshot import Snapshot
from aether.text.tags import memory_block
from aether.types import Counter, JsonObject

# Archived entries that are read for a prompt; those with most of its words come first.
ARCHIVED_LIMIT = 40
# Characters: a passage counts as injected if a line that was injected holds its start, because lines are cut.
REPEAT_CHARS = 60


def prompt_recall(prompt: str, *, budget: int, home: Home = None, session: str = "") -> str:
    """Return the entries that match `prompt` strongly as one `<aether-memory …>` block, or "".

    Entries that `session` noted itself or was given before are left out.
    """
    wanted = parse_prompt(prompt)
    if wanted is None or budget < 1:
        return ""
    place = find(home)
    # A prompt does not wait for the drain: the spool is drained at the end of the turn.
    compared = hook_sessions.read_compared(place)
    snapshot = present(place, compared=compared)
    hook_sessions.note_compared(snapshot, compared)
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
        with suppress(AetherError):  # at worst it is injected again
            hook_sessions.add_injected(place, session, shown_ids)
    return text


def _in_archive(
    snapshot: Snapshot, wanted: PromptQuery, live: set[str]
) -> tuple[list[lines.Record], dict[str, int], int]:
    """Return the archived candidates, and how many of the other entries hold each word."""
    source = searchable_archive(snapshot)
    answer = source.find(Query(wanted.words, (), most=ARCHIVED_LIMIT))
    newest = {each.id: each for each in answer.candidates}
    # What was taken out again, by an undo or by hand, is found by those who look for it.
    likely = [each for each in newest.values() if each.record.get("why") != items.REMOVED]
    likely.sort(key=lambda each: each.place)
    held = dict(answer.held)
    for candidate in likely:
        for word in candidate.held:
            held[word] -= 1
    found = [lines.item_record(each.record["item"], "archive") for each in likely]
    return [one for one in found if one.id not in live], held, answer.items - len(likely)


def _is_of(record: lines.Record, session: str) -> bool:
    """Return whether an entry was noted in `session` itself, so that it is still in the context."""
    pointer = (record.value.get("metadata") or {}).get("pointer")
    if not pointer or not session:
        return False
    file = str(pointer.get("file", ""))
    # To look for the name takes a twentieth of the time of a path, and most entries have none.
    return session in file and PurePath(file).stem == session


def _kind(record: lines.Record) -> str:
    """Return the type of an entry, of a passage of a conversation who wrote it."""
    speaker = (record.value.get("metadata") or {}).get("speaker")
    return f"{speaker} wrote" if record.type == items.HISTORY and speaker else record.type


def _reminder_block(found: Sequence[PromptMatch], budget: int, count: Counter) -> tuple[str, list[str]]:
    """Return the block of as many matches as the budget allows, and their ids."""
    at = now()
    for number in range(len(found), 0, -1):
        said = [
            f"- {lines.date_and_age(one.record.at, at)} {_kind(one.record)}: {one.passage} [{one.record.id}]"
            for one in found[:number]
        ]
        said.append(f"In full: aether recall --full {found[0].record.id}")
        text = memory_block(said, occasion="prompt", at=clock.stamp(at))
        if count(text) <= budget:
            return text, [one.record.id for one in found[:number]]
    return "", []


def searchable_archive(snapshot: Snapshot) -> Source:
    """Return the archive of `snapshot` as a source for searches: indexed if possible, without forgotten entries."""
    head = record_files.head(snapshot)
    if head < 0:
        return EMPTY
    archive = Archive(
        head,
        lambda after: record_files.located(snapshot, "items", after=after),
        lambda wanted: record_files.fetch(snapshot, "items", wanted),
    )
    whole = search_index.indexed_source(snapshot.home / "index.sqlite", archive)
    memory = snapshot.documents["memory"]
    is_shown = shown_ids(memory)
    parts = items.forgotten_parts(memory)

    def find(ask: Query) -> Found:
        found = whole.find(ask)
        visible = [each for each in found.candidates if is_shown(each.id)]
        if parts:
            visible = [left for each in visible if (left := _left_of(each, parts, ask))]
        if any(
            _is_bare_passage(each.record.get("item") or {}) for each in visible
        ):  # seldom, and prompts wait
            placed = _with_places([each.record for each in visible], memory)
            visible = [each._replace(record=record) for each, record in zip(visible, placed, strict=True)]
        return found._replace(candidates=visible)

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        stored = whole.read(places)
        visible = {
            at: items.left_of(each, parts)
            for at, each in stored.items()
            if is_shown(plain_text(each["item"].get("id")))
        }
        return dict(zip(visible, _with_places([*visible.values()], memory), strict=True))

    return Source(find, read)


def shown_ids(memory: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return whether an archived item may be found, by its id as rows of the index spell it.

    It is not forgotten, and no passage of an import that was undone.
    """
    hidden = frozenset(map(plain_text, items.forgotten_ids(memory)))
    kept = items.known_places(memory)
    return lambda one: one not in hidden and items.is_kept(one, kept)


def _left_of(found: Candidate, parts: Mapping[str, set[str]], ask: Query) -> Candidate | None:
    """Return a candidate without what is forgotten of it; None if nothing that was asked for is left."""
    if found.id not in parts:
        return found
    record = items.left_of(found.record, parts)
    held = frozenset(
        search_index.term_counts(search_index.row(record).marked, search_index.term_marks(ask.terms))
    )
    return found._replace(record=record, held=held) if held or not found.held else None


def _with_places(records: list[JsonObject], memory: Mapping[str, Any]) -> list[JsonObject]:
    """Return archived records; passages of an earlier release get the project and title that others of their conversation have."""
    bare = [nth for nth, record in enumerate(records) if _is_bare_passage(record.get("item") or {})]
    if not bare:
        return records
    places: dict[str, dict[str, str]] = {}
    for item in (*items.items_of(memory), *(record.get("item") or {} for record in records)):
        known = item.get("metadata") or {}
        place = {name: known[name] for name in ("project", "title") if known.get(name)}
        places.setdefault(str(known.get("conversation", "")), {}).update(place)
    made = [*records]
    for nth in bare:
        item = records[nth]["item"]
        metadata = places[item["metadata"]["conversation"]] | item["metadata"]
        made[nth] = {**records[nth], "item": {**item, "metadata": metadata}}
    return made


def _is_bare_passage(item: JsonObject) -> bool:
    known = item.get("metadata") or {}
    return (
        item.get("type") == items.HISTORY
        and isinstance(known.get("conversation"), str)
        and "title" not in known
    )
