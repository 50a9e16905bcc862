"""Fidelity: the gate that restores the required statements of a hand-off in the session made of it.

Required are protected statements, word for word, and decisions, constraints and open blockers, in other words
too, but with all their paths, identifiers and numbers. Statements that the answer lacks are added verbatim to its
high-value items (`carried: true`): protected ones always, the others within ``RESTORED_SHARE`` of the target.
Guaranteed: after the gate the session contains every protected text, and the rest of the missing is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from aether.text.classify import binding_kind, classify, without_lead_in
from aether.text.cleaning import without_injected
from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.similarity import Index, containing, index, mentioning, nearest
from aether.text.words import sentences
from aether.types import Counter, Handoff, Item, JsonObject

Why = Literal["protected", "constraint", "decision", "blocker"]

# Share of the target tokens that restored statements may add: a quarter more still compresses by 2.
RESTORED_SHARE = 0.25
# Below this a hand-off is so short that its decisions may double it.
RESTORED_FLOOR_TOKENS = 200
# Keys and brackets of one high-value item as JSON.
ITEM_TOKENS = 20
# Share of a statement that one statement of the answer must contain to keep it.
KEPT_AT = 0.6
# A later solution or outcome is about a blocker when it contains this share of it.
SOLVED_AT = 0.5
# A longer text is data that mentions a rule, not a rule.
STATEMENT_CHARS = 600
# Up to this length an item of type decision is one statement; in a longer text some sentences decide.
WHOLE_CHARS = 280
# A question and its answer decide together.
QUESTION_PREFIX = "Asked: "
# An item above this relevance is of high value; in others a cue word does not make a decision of the colony.
HIGH_VALUE = 0.7

_ORDER: dict[Why, int] = {"protected": 0, "constraint": 1, "decision": 2, "blocker": 3}
_FIELDS = (
    ("key_decisions", ("decision", "rationale")),
    ("outcomes", ("result", "impact")),
    ("high_value_items", ("content",)),
)
_TYPED: dict[str, Why] = {
    "decision": "decision", "constraint": "constraint", "preference": "constraint", "blocker": "blocker",
}  # fmt: skip
# Items of these types mention failures that were repaired.
_PAST = frozenset({"solution", "outcome", "decision"})
_SOLVED = lazy(
    r"\b(?:unblocked|no longer (?:blocked|fails?|failing)|(?:now|again) (?:works?|pass(?:es)?))\b",
    re.IGNORECASE,
)


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
    missing = _missing(needed, session)
    room = max(RESTORED_FLOOR_TOKENS, int(handoff["target_tokens"] * RESTORED_SHARE))
    carried: list[Required] = []
    left_out: list[Required] = []
    for each in sorted(missing, key=lambda each: (_ORDER[each.why], -each.relevance)):
        tokens = 0 if each.why == "protected" else count(each.content) + ITEM_TOKENS
        if tokens > room:
            left_out.append(each)
        else:
            room -= tokens
            carried.append(each)
    restored: list[JsonObject] = [
        {
            "content": each.content, "relevance_score": each.relevance, "type": each.type, "carried": True,
            **({"injected": True} if each.injected else {}),
        }
        for each in carried
    ]  # fmt: skip
    gated = {**session, "high_value_items": [*(session.get("high_value_items") or []), *restored]}
    score = 1 - len(missing) / len(needed) if needed else 1.0
    whole = "\n".join(_texts(gated))
    named = [
        name
        for found in (identifiers(each.content) for each in left_out)
        for name in (*found.paths, *found.identifiers, *found.numbers, *found.urls)
    ]
    lost = [name for name in dict.fromkeys(named) if not _contains_whole(name, whole)]
    return GateResult(gated, [*map(_as_entry, carried)], lost, round(score, 4), [*map(_as_entry, left_out)])


def required_statements(handoff: Handoff) -> list[Required]:
    """Return the statements of `handoff` that must survive, in the order of its items, without repeats."""
    stated: list[tuple[int, Required]] = []
    for at, item in enumerate(handoff["items"]):
        if not item["metadata"].get("injected"):
            stated += ((at, each) for each in _stated(item))
    has_blocker = any(each.why == "blocker" for _, each in stated)
    ends = [
        (at, sentence)
        for at, item in enumerate(handoff["items"] if has_blocker else [])
        for sentence in sentences(without_injected(item["content"]))
        if item["type"] == "solution"
        or classify(sentence) in ("solution", "outcome")
        or _SOLVED.search(sentence)
    ]
    solved = index(text for _, text in ends)
    found = list(_protected(handoff))
    for at, each in stated:
        # A blocker that a later item solves is not required.
        later = each.why == "blocker" and mentioning(each.content, solved, at_least=SOLVED_AT)
        if not (later and ends[later[-1]][0] > at):
            found.append(each)
    first: dict[str, Required] = {}
    for each in found:
        first.setdefault(each.content, each)
    return list(first.values())


def required_entries(handoff: Handoff) -> list[JsonObject]:
    """Return the required statements as data for an architect: `item_id`, `content` and `why`, most important first."""
    ranked = sorted(required_statements(handoff), key=lambda each: (_ORDER[each.why], -each.relevance))
    return [_as_entry(each) for each in ranked]


def _protected(handoff: Handoff) -> Iterator[Required]:
    items = {item["id"]: item for item in handoff["items"]}
    for each in handoff["protected"]:
        yield _required(items.get(each.get("id", "")), each["content"], "protected", str(each.get("id", "")))
    for item in items.values():
        if item["metadata"].get("protected"):
            yield _required(item, item["content"], "protected")


def _required(item: Item | None, content: str, why: Why, item_id: str = "") -> Required:
    if item is None:
        return Required(item_id, content, why, 1.0, why, injected=False)
    metadata = item["metadata"]
    injected = bool(metadata.get("injected"))
    return Required(item["id"], content, why, metadata["relevance_score"], item["type"], injected=injected)


def _stated(item: Item) -> Iterator[Required]:
    """Yield the decisions, constraints and blockers that `item` states."""
    text = without_injected(item["content"]).strip()
    why = _TYPED.get(item["type"])
    if not text or not (why or item["metadata"]["relevance_score"] > HIGH_VALUE):
        return
    if why and (
        len(text) <= WHOLE_CHARS or (len(text) <= STATEMENT_CHARS and text.startswith(QUESTION_PREFIX))
    ):
        yield _required(item, without_lead_in(text), why)
        return
    stated = False
    for sentence in sentences(text):
        kind = binding_kind(sentence) if len(sentence) <= STATEMENT_CHARS else None
        if kind and (kind != "blocker" or item["type"] not in _PAST):
            stated = True
            yield _required(item, without_lead_in(sentence), cast(Why, kind))
    if why and not stated and len(text) <= STATEMENT_CHARS:
        yield _required(item, text, why)


def _texts(session: Mapping[str, Any]) -> list[str]:
    return [str(session.get("summary") or ""), *(text for entry in _entries(session) for text in entry)]


def _entries(session: Mapping[str, Any]) -> list[list[str]]:
    return [
        [str(entry.get(key) or "") for key in keys]
        for field, keys in _FIELDS
        for entry in session.get(field) or []
    ]


def _missing(needed: list[Required], session: Mapping[str, Any]) -> list[Required]:
    """Return those of `needed` that the session lacks; of statements with the same meaning, the first."""
    texts = _texts(session)
    whole = "\n".join(texts)
    # A decision and its rationale together may repeat one sentence of an item.
    together = [" ".join(entry) for entry in _entries(session) if len(entry) > 1 and all(entry)]
    # A long field contains any few words somewhere: only its sentences can have the same meaning.
    units = [
        each
        for text in (*texts, *together)
        for each in ({text, *sentences(text)} if len(text) <= STATEMENT_CHARS else sentences(text))
    ]
    said = index(dict.fromkeys(units))
    missing = [each for each in needed if not _survives(each, whole, texts, said)]
    alike = index(each.content for each in missing)
    taken: set[int] = set()
    for at, each in enumerate(missing):
        if each.why == "protected" or not any(near.at in taken for near in nearest(each.content, alike)):
            taken.add(at)
    return [missing[at] for at in sorted(taken)]


def _survives(each: Required, whole: str, texts: list[str], kept: Index) -> bool:
    if each.content in whole:
        return each.why != "protected" or any(each.content in text for text in texts)
    if each.why == "protected" or not containing(each.content, kept, at_least=KEPT_AT):
        return False
    found = identifiers(each.content)
    return all(_contains_whole(name, whole) for name in (*found.paths, *found.identifiers, *found.urls))


def _contains_whole(name: str, text: str) -> bool:
    """Return whether `text` contains `name` as a whole: 300 does not contain 30."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (_is_word(before) and _is_word(name[0])) and not (_is_word(after) and _is_word(name[-1])):
            return True
        at = text.find(name, at + 1)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _as_entry(each: Required) -> JsonObject:
    return {"item_id": each.item_id, "content": each.content, "why": each.why}
