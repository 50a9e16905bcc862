"""Statements: what an architect's sessions say as rules, decisions, open points, next steps and state, and how one ends.

A statement has the id `SESSION/FIELD/N`, such as `phase_1_ab12cd34/open/0`; items and patterns have ids of their own. An end
is a field of the statement, item or pattern: `resolved`, `superseded` or `revoked`, with its time and what ended it. A session
ends earlier statements of sessions, captured items and patterns; what was noted on purpose only a person ends, so that a session
proposes it, as it proposes the end of a person's rule or decision without words of a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from aether.errors import NotFound, shown
from aether.memory.items import is_noted, items_of
from aether.memory.sessions import last_heard, sessions_of
from aether.types import Change, Evidence

if TYPE_CHECKING:
    from aether.types import Ended, EndState, Item, JsonObject, Patch

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
# The lists of statements in an architect's answer beside its decisions.
STATED_FIELDS = ("state", "next", "rules", "open", "resolved")
_KIND_OF_TYPE: dict[str, Kind] = {
    "constraint": "rule", "preference": "rule", "decision": "decision", "blocker": "open", "error": "open",
}  # fmt: skip


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
                f"{session['session_id']}/{field}/{position}", kind, entry[name], entry.get("rationale", ""),
                tuple(entry.get("items", ())), entry.get("quote", ""), entry.get("evidence", "agent"),
                entry.get("ended"),
            )  # fmt: skip


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
        *_end_statement(memory, id, {"how": how, "at": at, "by": by}),
        *_end_entries(memory, id, how, at, by),
    ]
    if not patch:
        raise NotFound(
            f"live memory has no entry {shown(id)}.",
            fix='See "aether memory show" or "aether brief --why".',
            where="memory",
        )
    return Change({"memory": patch})


def end_of(entry: Mapping[str, Any]) -> Ended | None:
    """Return how an item or a pattern ended; None if it is in force."""
    metadata = entry.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("ended_at"):
        return None
    # Homes of earlier releases have no state: a person's words ended it.
    how = cast("EndState", metadata.get("state") or "revoked")
    return {"how": how, "at": str(metadata["ended_at"]), "by": str(metadata.get("ended_by", ""))}


def end_words(ended: Mapping[str, Any] | None) -> str:
    """Return how an entry ended, in words; empty for one in force.

    >>> end_words({"how": "superseded", "by": "wm_1"}), end_words({"how": "resolved", "by": ""}), end_words(None)
    ('superseded by wm_1', 'resolved', '')
    """
    if not ended:
        return ""
    by = f" by {ended['by']}" if ended["how"] == "superseded" and ended["by"] else ""
    return f"{ended['how']}{by}"


def _end_statement(memory: Mapping[str, Any], id: str, ended: Ended) -> Patch:
    for place, session in enumerate(sessions_of(memory)):
        if any(statement.id == id for statement in statements_of(session)):
            field, position = id.removeprefix(f"{session['session_id']}/").split("/")
            path = f"/short_term_memory/sessions/{place}/{field}/{position}/ended"
            return [{"op": "add", "path": path, "value": ended}]
    return []


def _end_entries(memory: Mapping[str, Any], id: str, how: EndState, ended_at: str, ended_by: str) -> Patch:
    """Return the patch that ends an item or pattern in each of its places: a session may keep an item, too."""
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
    fields: JsonObject = {"state": how, "ended_at": ended_at, **({"ended_by": ended_by} if ended_by else {})}
    return [
        {"op": "add", "path": f"{path}/metadata/{name}", "value": value}
        for path, entry in places
        if entry["id"] == id
        for name, value in fields.items()
    ]


_WITNESSES = {"person": "a person said it", "machine": "a machine showed it", "agent": "an agent wrote it"}


def witness(evidence: str, *, corrected: bool = False) -> str:
    """Return who vouches for a text, in words.

    >>> witness("machine"), witness("person", corrected=True), witness("")
    ('a machine showed it', 'a person corrected it', 'its author is unknown')
    """
    if corrected:
        return f"{'a person' if evidence == 'person' else 'an agent'} corrected it"
    return _WITNESSES.get(evidence, "its author is unknown")


class Earlier(NamedTuple):
    """Something in force that a session may end."""

    id: str
    kind: Kind
    text: str
    evidence: Evidence
    noted: bool
    """Whether it was noted on purpose."""


def evidence_of(item: Mapping[str, Any]) -> Evidence:
    """Return who vouches for an item, of corrected words who corrected them; the Queen is a person."""
    metadata = item["metadata"]
    stated = metadata.get("corrected_by") or metadata.get("evidence")
    if stated in get_args(Evidence):
        return cast(Evidence, stated)
    typed = is_noted(item) or item["type"] == "user_input"
    return "person" if typed and metadata.get("source", "queen") == "queen" else "agent"


def explicit_notes(memory: Mapping[str, Any]) -> list[Item]:
    """Return the rules and decisions in force that a person noted on purpose, each once."""
    notes = [
        item
        for item in _items(memory)
        if is_noted(item)
        and evidence_of(item) == "person"
        and not item["metadata"].get("injected")
        and not item["metadata"].get("ended_at")
        and _KIND_OF_TYPE.get(item["type"]) in ("rule", "decision")
    ]
    return list({item["id"]: item for item in notes}.values())


def in_force(memory: Mapping[str, Any]) -> list[Earlier]:
    """Return the rules, decisions, open points and next steps in force, those of the newest sessions first."""
    newest = sorted(sessions_of(memory), key=last_heard, reverse=True)
    entries = [
        Earlier(stated.id, stated.kind, stated.text, stated.evidence, noted=False)
        for session in newest
        for stated in statements_of(session)
        if not stated.ended and stated.kind != "state"
    ]
    entries += [
        Earlier(item["id"], _KIND_OF_TYPE[item["type"]], item["content"], evidence_of(item), is_noted(item))
        for item in _items(memory)
        if item["type"] in _KIND_OF_TYPE and not item["metadata"].get("ended_at")
    ]
    entries += [
        Earlier(pattern["id"], "rule", pattern["pattern"], "person", bool(pattern["metadata"].get("noted")))
        for pattern in memory["long_term_memory"]["patterns"]
        if pattern["type"] in _KIND_OF_TYPE and not pattern["metadata"].get("ended_at")
    ]
    return list({entry.id: entry for entry in entries}.values())


def _items(memory: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the items of working memory, then those that sessions keep."""
    yield from items_of(memory)
    for session in sessions_of(memory):
        yield from session["metadata"].get("items", [])


def find_earlier(references: Iterable[str], earlier: Sequence[Earlier]) -> Earlier | None:
    """Return the entry of `earlier` that the first fitting one of `references` names, by its id or by its words."""
    # A brief reads statements without finding any.
    from aether.text.similarity import nearest
    from aether.text.words import find_quote

    ids = {entry.id: entry for entry in earlier}
    texts = [entry.text for entry in earlier]
    for reference in references:
        if reference in ids:
            return ids[reference]
        among = [place for place, text in enumerate(texts) if find_quote(reference, [text]) is not None]
        among = among or [
            place for place, text in enumerate(texts) if find_quote(text, [reference]) is not None
        ]
        # Words that be in several say nothing about which is meant.
        among = among if len(among) == 1 else [near.at for near in nearest(reference, texts)]
        if among:
            return earlier[among[0]]
    return None


def may_end(target: Earlier, evidence: Evidence) -> bool:
    """Return whether a session's statement with this `evidence` ends `target`, and does not only propose it."""
    if target.noted:
        return False
    return target.kind in ("open", "next") or target.evidence != "person" or evidence == "person"
