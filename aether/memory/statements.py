"""Statements: what an architect's sessions say as rules, decisions, open points, next steps and state, and how one ends.

A statement has the id `SESSION/FIELD/N`, such as `phase_1_ab12cd34/open/0`; items and patterns have ids of their own. An end
is a field of the statement, item or pattern: `resolved`, `superseded` or `revoked`, with its time and what ended it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aether.errors import NotFound, shown
from aether.hints import Any, Literal, get_args
from aether.memory.items import items_of
from aether.memory.sessions import sessions_of
from aether.tuples import NamedTuple
from aether.types import Change, Ended, EndState, Evidence, JsonObject, Patch

Kind = Literal["state", "next", "rule", "decision", "open"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# The fields of a session with the statements of each kind, and the name of the text in an entry.
FIELDS: dict[Kind, tuple[str, str]] = {
    "state": ("state", "text"),
    "next": ("next", "text"),
    "rule": ("rules", "text"),
    "decision": ("key_decisions", "decision"),
    "open": ("open", "text"),
}


class Stated(NamedTuple):
    """A statement of a session with its proof."""

    id: str
    kind: Kind
    text: str
    rationale: str
    """Of a decision; may be empty."""
    items: tuple[str, ...]
    quote: str
    """Empty for a statement of a session from before statements had a proof."""
    evidence: Evidence
    ended: Ended | None


def statements_of(session: Mapping[str, Any]) -> Iterator[Stated]:
    """Yield the statements of `session`, also those that ended, in the order of `KINDS`."""
    for kind, (field, name) in FIELDS.items():
        for position, entry in enumerate(session.get(field) or []):
            yield Stated(
                f"{session['session_id']}/{field}/{position}",
                kind,
                entry[name],
                entry.get("rationale", ""),
                tuple(entry.get("items", ())),
                entry.get("quote", ""),
                entry.get("evidence", "agent"),
                entry.get("ended"),
            )


def is_statement(id: str) -> bool:
    """Return whether `id` has the form of a statement of a session.

    >>> is_statement("phase_1_ab12cd34/open/0"), is_statement("wm_1")
    (True, False)
    """
    field, _, position = id.partition("/")[2].partition("/")
    return position.isdecimal() and any(field == name for name, _ in FIELDS.values())


def end(memory: Mapping[str, Any], id: str, how: EndState, *, at: str, by: str = "") -> Change:
    """Return the change that ends the item, pattern or statement `id` at time `at`; `by` is the id or text of what ended it.

    Raises:
        NotFound: live memory has nothing with this id.
    """
    patch = [
        *_end_statement(memory, id, Ended(how=how, at=at, by=by)),
        *_end_entries(memory, id, how, at, by),
    ]
    if not patch:
        raise NotFound(
            f"live memory has no entry {shown(id)}.",
            fix='See "aether memory list" or "aether brief --why".',
            where="memory",
        )
    return Change({"memory": patch})


def _end_statement(memory: Mapping[str, Any], id: str, ended: Ended) -> Patch:
    for place, session in enumerate(sessions_of(memory)):
        if any(statement.id == id for statement in statements_of(session)):
            field, position = id.removeprefix(f"{session['session_id']}/").split("/")
            path = f"/short_term_memory/sessions/{place}/{field}/{position}/ended"
            return [{"op": "add", "path": path, "value": ended}]
    return []


def _end_entries(memory: Mapping[str, Any], id: str, how: EndState, at: str, by: str) -> Patch:
    """Return the patch that ends an item or pattern wherever it is: an item may also be kept by a session."""
    places: list[tuple[str, Mapping[str, Any]]] = [
        *((f"/working_memory/items/{position}", item) for position, item in enumerate(items_of(memory))),
        *(
            (f"/short_term_memory/sessions/{place}/metadata/items/{position}", item)
            for place, session in enumerate(sessions_of(memory))
            for position, item in enumerate(session["metadata"].get("items", []))
        ),
        *(
            (f"/long_term_memory/patterns/{position}", pattern)
            for position, pattern in enumerate(memory["long_term_memory"]["patterns"])
        ),
    ]
    fields: JsonObject = {"state": how, "ended_at": at, **({"ended_by": by} if by else {})}
    return [
        {"op": "add", "path": f"{path}/metadata/{name}", "value": value}
        for path, entry in places
        if entry["id"] == id
        for name, value in fields.items()
    ]
