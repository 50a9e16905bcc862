"""Fidelity: the gate that restores in a session what its hand-off says must survive word for word.

Required are protected statements, rules, decisions and blockers that were noted on purpose, and what a person answered to a
question. Each survives in a text of the session, or in a proven statement that rests on its item; a protected one only word for
word. Missing ones are added to the high-value items (`carried: true`): protected ones always, the others within
``RESTORED_SHARE`` of the target. Guaranteed: after the gate the session contains every protected text, and the rest of the
missing is named. No sentence is judged here: `proof` checks what the architect wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from aether.memory.items import is_noted
from aether.memory.sessions import STATEMENT_FIELDS
from aether.memory.statements import evidence_of
from aether.text.cleaning import without_injected
from aether.text.identifiers import identifiers
from aether.text.words import is_quoted, missing_name, normalized
from aether.types import Counter, Handoff, Item, JsonObject

Why = Literal["protected", "constraint", "decision", "blocker"]

# Share of the target tokens that restored statements may add: a quarter more still compresses by 2.
RESTORED_SHARE = 0.25
# Below this a hand-off is so short that its decisions may double it.
RESTORED_FLOOR_TOKENS = 200
# Keys and brackets of one high-value item as JSON.
ITEM_TOKENS = 20

_ORDER: dict[Why, int] = {"protected": 0, "constraint": 1, "decision": 2, "blocker": 3}
_BINDING: dict[str, Why] = {
    "decision": "decision", "constraint": "constraint", "preference": "constraint", "blocker": "blocker",
}  # fmt: skip


class Required(NamedTuple):
    """A statement that must survive."""

    item_id: str
    content: str
    why: Why
    relevance: float
    type: str
    injected: bool


class GateResult(NamedTuple):
    """A session after the gate, and the statements that it lacked."""

    session: JsonObject
    carried: list[JsonObject]
    """The statements that were added verbatim: `item_id`, `content` and `why`."""
    missing_identifiers: list[str]
    """Paths, identifiers and numbers of required statements that the session still lacks."""
    score: float
    """Share of the required statements that the answer had kept; 1 without required statements."""
    left_out: list[JsonObject]
    """As `carried`: missing statements beyond the limit of tokens; only the archive has them."""


def gate(handoff: Handoff, session: Mapping[str, Any], *, count: Counter) -> GateResult:
    """Return `session` with the required statements of `handoff` that it lacks added verbatim."""
    needed = required_statements(handoff)
    texts, proven = list(_texts(session)), _proven_items(session)
    plain = normalized("\n".join(texts))
    missing = [entry for entry in needed if not _survives(entry, texts, plain, proven)]
    room = max(RESTORED_FLOOR_TOKENS, int(handoff["target_tokens"] * RESTORED_SHARE))
    carried: list[Required] = []
    left_out: list[Required] = []
    for entry in _ranked(missing):
        tokens = 0 if entry.why == "protected" else count(entry.content) + ITEM_TOKENS
        if tokens > room:
            left_out.append(entry)
            continue
        room -= tokens
        carried.append(entry)
    restored: list[JsonObject] = [
        {
            "content": entry.content, "relevance_score": entry.relevance, "type": entry.type, "carried": True,
            **({"injected": True} if entry.injected else {}),
        }
        for entry in carried
    ]  # fmt: skip
    gated = {**session, "high_value_items": [*(session.get("high_value_items") or []), *restored]}
    score = 1 - len(missing) / len(needed) if needed else 1.0
    text = normalized("\n".join(_texts(gated)))
    lost = [name for name in _names(left_out) if missing_name([name], text)]
    return GateResult(gated, [*map(_as_entry, carried)], lost, round(score, 4), [*map(_as_entry, left_out)])


def required_statements(handoff: Handoff) -> list[Required]:
    """Return the statements of `handoff` that must survive, protected ones first, without repeats."""
    entries = [*_protected(handoff)]
    entries += [
        _required(item, text, _BINDING[item["type"]])
        for item in handoff["items"]
        if _binds(item) and (text := without_injected(item["content"]).strip())
    ]
    first: dict[str, Required] = {}
    for entry in entries:
        first.setdefault(entry.content, entry)
    return list(first.values())


def required_entries(handoff: Handoff) -> list[JsonObject]:
    """Return the required statements as data for an architect: `item_id`, `content` and `why`, most important first."""
    return [*map(_as_entry, _ranked(required_statements(handoff)))]


def _ranked(entries: list[Required]) -> list[Required]:
    return sorted(entries, key=lambda entry: (_ORDER[entry.why], -entry.relevance))


def _protected(handoff: Handoff) -> Iterator[Required]:
    items = {item["id"]: item for item in handoff["items"]}
    for entry in handoff["protected"]:
        item = items.get(entry.get("id", ""))
        if item is not None:
            yield _required(item, entry["content"], "protected")
        else:
            yield Required(
                entry.get("id", ""), entry["content"], "protected", 1.0, "protected", injected=False
            )
    for item in items.values():
        if item["metadata"].get("protected"):
            yield _required(item, item["content"], "protected")


def _required(item: Item, content: str, why: Why) -> Required:
    metadata = item["metadata"]
    injected = bool(metadata.get("injected"))
    return Required(item["id"], content, why, metadata["relevance_score"], item["type"], injected=injected)


def _binds(item: Item) -> bool:
    """Return whether `item` holds beyond its session: noted on purpose, or what a person answered."""
    metadata = item["metadata"]
    if item["type"] not in _BINDING or metadata.get("injected") or metadata.get("ended_at"):
        return False
    return is_noted(item) or evidence_of(item) == "person"


def _texts(session: Mapping[str, Any]) -> Iterator[str]:
    yield str(session.get("summary") or "")
    for field, names in STATEMENT_FIELDS.items():
        for entry in session.get(field) or []:
            yield from (str(entry[name]) for name in names if entry.get(name))


def _proven_items(session: Mapping[str, Any]) -> set[str]:
    """Return the ids of the items on which proven statements rest."""
    return {
        item_id
        for field in STATEMENT_FIELDS
        for entry in session.get(field) or []
        for item_id in entry.get("items", ())
    }


def _survives(entry: Required, texts: list[str], plain: str, proven: set[str]) -> bool:
    if entry.why == "protected":
        return any(entry.content in text for text in texts)
    return entry.item_id in proven or entry.content in texts or is_quoted(entry.content, plain)


def _names(entries: list[Required]) -> list[str]:
    """Return the paths, identifiers, numbers and addresses of `entries`, each once."""
    identified = [
        name
        for entry in entries
        for identified in [identifiers(entry.content)]
        for name in (*identified.paths, *identified.identifiers, *identified.numbers, *identified.urls)
    ]
    return list(dict.fromkeys(identified))


def _as_entry(entry: Required) -> JsonObject:
    return {"item_id": entry.item_id, "content": entry.content, "why": entry.why}
