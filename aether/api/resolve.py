"""Ending what memory says: an entry is resolved, or another takes its place. It stays in memory, and no brief has it any more.

An entry is an item, a pattern, or a statement of a session (`phase_1_ab12cd34/open/0`; `aether brief --why` shows the ids).
Both are one change, which `undo` reverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether.api.home import Home, change, counter_of, now
from aether.clock import new_id, stamp
from aether.errors import InvalidInput, NotFound, public, shown
from aether.memory import items
from aether.memory.sessions import sessions_of
from aether.memory.statements import end, statements_of
from aether.store.authors import Author
from aether.store.patch import chain_changes
from aether.types import RELEVANCE_OF_TYPE, Change, EndState, Evidence

# The type of the note that takes the place of a statement or pattern.
_TYPE_OF = {
    "rule": "constraint", "decision": "decision", "open": "blocker", "next": "next", "state": "outcome",
    "success_pattern": "observation", "failure_pattern": "observation",
}  # fmt: skip
# How ids start: a wrong one is not taken for a text.
_ID_STARTS = ("wm_", "phase_", "pattern_")


class Ending(NamedTuple):
    """An entry that ended."""

    id: str
    how: EndState
    text: str
    by: str
    """The id of the entry that took its place; empty if it was resolved."""
    revision: int


@public
def resolve_memory(id: str, *, home: Home = None) -> Ending:
    """End the item, pattern or statement `id`, because it is settled, and return it.

    Raises:
        NotFound: live memory has no such entry.
    """
    moment = stamp(now())

    def plan(state: Mapping[str, Any]) -> Change:
        _, text = _entry(state["memory"], id)
        return end(state["memory"], id, "resolved", at=moment)._replace(result=text)

    outcome = change(home, plan, Author("resolve", reason=id))
    return Ending(id, "resolved", str(outcome.result), "", outcome.revision)


@public
def supersede_memory(id: str, by: str, *, evidence: Evidence | None = None, home: Home = None) -> Ending:
    """End the item, pattern or statement `id`, because `by` takes its place, and return it.

    `by` is the id of a live entry, or a text: then a new note of the same type says it, with this `evidence`.

    Raises:
        NotFound: live memory has no such entry.
        InvalidInput: `by` is blank, or the entry itself.
    """
    if not by.strip() or by == id:
        raise InvalidInput(
            f"{shown(by)} cannot take the place of {shown(id)}.",
            fix="Give a text, or another id.",
            where="by",
        )
    moment = now()

    def plan(state: Mapping[str, Any]) -> Change:
        memory = state["memory"]
        _, text = _entry(memory, id)
        if by.startswith(_ID_STARTS) or by in _entries(memory):
            _entry(memory, by)
            return end(memory, id, "superseded", at=stamp(moment), by=by)._replace(result=(text, by))
        committed = replaced(state, id, by, evidence, at=moment)
        return committed._replace(result=(text, committed.result))

    outcome = change(home, plan, Author("supersede", reason=id))
    text, newer = outcome.result
    return Ending(id, "superseded", text, newer, outcome.revision)


def replaced(
    state: Mapping[str, Any], id: str, text: str, evidence: Evidence | None, *, at: datetime
) -> Change:
    """Return the change that notes `text` in the place of the entry `id`; its result is the id of the new item.

    Raises:
        NotFound: live memory has no such entry.
    """
    memory = state["memory"]
    type_, _ = _entry(memory, id)
    about = {items.SUPERSEDES: id, **({"evidence": evidence} if evidence else {})}
    entry = items.checked_entry(
        text, type_, RELEVANCE_OF_TYPE.get(type_, items.DEFAULT_RELEVANCE), metadata=about
    )
    added = items.add(memory, [entry], now=at, new_id=new_id, count=counter_of(memory))
    newer = added.result.ids[0]
    changes = chain_changes(
        state,
        lambda _: added,
        lambda present: end(present["memory"], id, "superseded", at=stamp(at), by=newer),
    )
    return changes._replace(result=newer)


def _entry(memory: Mapping[str, Any], id: str) -> tuple[str, str]:
    """Return the type and the text of a live entry."""
    try:
        return _entries(memory)[id]
    except KeyError:
        raise NotFound(
            f"live memory has no entry {shown(id)}.",
            fix='See "aether memory list" or "aether brief --why".',
            where="memory",
        ) from None


def _entries(memory: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the types and texts of items, those that sessions keep, patterns and statements by id."""
    sessions = sessions_of(memory)
    statements = [statement for session in sessions for statement in statements_of(session)]
    patterns = memory["long_term_memory"]["patterns"]
    session_items = [item for session in sessions for item in session["metadata"].get("items", [])]
    return {
        **{statement.id: (_TYPE_OF[statement.kind], statement.text) for statement in statements},
        **{
            pattern["id"]: (_TYPE_OF.get(pattern["type"], pattern["type"]), pattern["pattern"])
            for pattern in patterns
        },
        **{item["id"]: (item["type"], item["content"]) for item in (*session_items, *items.items_of(memory))},
    }
