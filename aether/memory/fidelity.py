"""Fidelity: what of a hand-off must survive its compression, and the gate that carries it over.

Must survive: protected statements, word for word; decisions, constraints and open blockers, in other
words too, but with every path, identifier and number they hang on. What the answer lacks is carried into
its high-value items verbatim (`carried: true`): protected always, the others within ``CARRY_SHARE`` of
the target. The law: after the gate every protected text stands in the session, and whatever is still missing
is named.
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
from aether.types import Counter, Handoff, HighValueItem, Item, JsonObject

Why = Literal["protected", "constraint", "decision", "blocker"]

# Share of the target tokens that carried statements may add: a quarter more still compresses by 2.
RESTORED_SHARE = 0.25
# Below this a hand-off is so short that its decisions may double it.
RESTORED_FLOOR_TOKENS = 200
# Keys and brackets of one high-value item as JSON.
ITEM_TOKENS = 20
# Share of a statement that one statement of the answer must hold to have kept it.
KEPT_AT = 0.6
# A later solution or outcome is about a blocker when it holds this share of it.
SOLVED_AT = 0.5
# What is longer is data that mentions a rule, not a rule.
STATEMENT_CHARS = 600
# What is typed as a decision is one as a whole up to this; in a longer text some sentences decide.
WHOLE_CHARS = 280
# A question and its answer decide together.
QUESTION_PREFIX = "Asked: "
# DAST: an item above this is of high value; in others a cue word makes no decision of the colony.
HIGH_VALUE = 0.7

_ORDER: dict[Why, int] = {"protected": 0, "constraint": 1, "decision": 2, "blocker": 3}
_FIELDS = (
    ("key_decisions", ("decision", "rationale")),
    ("outcomes", ("result", "impact")),
    ("high_value_items", ("content",)),
)
_TYPED: dict[str, Why] = {
    "decision": "decision",
    "constraint": "constraint",
    "preference": "constraint",
    "blocker": "blocker",
}
# What these speak of as failing is what was put right.
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
    """A session after the gate, and what the gate had to do."""

    session: JsonObject
    carried: list[JsonObject]
    """What was carried over verbatim: `item_id`, `content` and `why`."""
    missing_anchors: list[str]
    """Paths, identifiers and numbers of required statements that the session still lacks."""
    score: float
    """Share of the required statements that the answer itself had kept; 1 where none was required."""
    left_out: list[JsonObject]
    """As `carried`: what the answer lacks and the cap had no room for; it stays in the archive only."""


def gate(handoff: Handoff, session: Mapping[str, Any], *, count: Counter) -> GateResult:
    """Return `session` with the required statements of `handoff` that it lacks carried over verbatim."""
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
    items = [*(session.get("high_value_items") or []), *map(_high_value_item, carried)]
    gated = {**session, "high_value_items": items}
    score = 1 - len(missing) / len(needed) if needed else 1.0
    lost = _lost_identifiers(left_out, "\n".join(_texts(gated)))
    return GateResult(gated, [*map(_as_entry, carried)], lost, round(score, 4), [*map(_as_entry, left_out)])


def required_statements(handoff: Handoff) -> list[Required]:
    """Return what of `handoff` must survive, in the order of its items, nothing twice."""
    said: list[tuple[int, Required]] = []
    ends: list[tuple[int, str]] = []
    for at, item in enumerate(handoff["items"]):
        if not item["metadata"].get("injected"):
            said += ((at, each) for each in _stated(item))
    if any(each.why == "blocker" for _, each in said):
        ends = [(at, text) for at, item in enumerate(handoff["items"]) for text in _solutions(item)]
    solved = index(text for _, text in ends)
    found = list(_protected(handoff))
    for at, each in said:
        # A blocker that a later item solves is history.
        later = each.why == "blocker" and mentioning(each.content, solved, at_least=SOLVED_AT)
        if not (later and ends[later[-1]][0] > at):
            found.append(each)
    first: dict[str, Required] = {}
    for each in found:
        first.setdefault(each.content, each)
    return list(first.values())


def required_entries(handoff: Handoff) -> list[JsonObject]:
    """Return what must survive as data for an architect: `item_id`, `content` and `why`, what goes first first."""
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
    found = [
        (sentence, binding_kind(sentence)) for sentence in sentences(text) if len(sentence) <= STATEMENT_CHARS
    ]
    told = [
        (sentence, kind)
        for sentence, kind in found
        if kind and (kind != "blocker" or item["type"] not in _PAST)
    ]
    for sentence, kind in told:
        yield _required(item, without_lead_in(sentence), cast(Why, kind))
    if why and not told and len(text) <= STATEMENT_CHARS:
        yield _required(item, text, why)


def _solutions(item: Item) -> Iterator[str]:
    """Yield what `item` says to be solved or reached."""
    for sentence in sentences(without_injected(item["content"])):
        if (
            item["type"] == "solution"
            or classify(sentence) in ("solution", "outcome")
            or _SOLVED.search(sentence)
        ):
            yield sentence


def _texts(session: Mapping[str, Any]) -> list[str]:
    """Return every text of `session`, each field for itself."""
    return [str(session.get("summary") or ""), *(text for entry in _entries(session) for text in entry)]


def _entries(session: Mapping[str, Any]) -> list[list[str]]:
    """Return the texts of each entry of `session`."""
    return [
        [str(entry.get(key) or "") for key in keys]
        for field, keys in _FIELDS
        for entry in session.get(field) or []
    ]


def _missing(needed: list[Required], session: Mapping[str, Any]) -> list[Required]:
    """Return what of `needed` the session lacks; of what is said twice, the first."""
    texts = _texts(session)
    whole = "\n".join(texts)
    # A decision and its rationale say together what was stated in one sentence.
    together = [" ".join(entry) for entry in _entries(session) if len(entry) > 1 and all(entry)]
    # A long field holds any few words somewhere: only its sentences can say the same.
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
    return all(_contains_whole(anchor, whole) for anchor in (*found.paths, *found.identifiers, *found.urls))


def _lost_identifiers(left_out: list[Required], whole: str) -> list[str]:
    lost: dict[str, None] = {}
    for each in left_out:
        found = identifiers(each.content)
        lost |= dict.fromkeys((*found.paths, *found.identifiers, *found.numbers, *found.urls))
    return [anchor for anchor in lost if not _contains_whole(anchor, whole)]


def _contains_whole(anchor: str, text: str) -> bool:
    """Return whether `anchor` stands in `text` as a whole: 30 does not stand in 300."""
    at = text.find(anchor)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(anchor) : at + len(anchor) + 1]
        if not (_word(before) and _word(anchor[0])) and not (_word(after) and _word(anchor[-1])):
            return True
        at = text.find(anchor, at + 1)
    return False


def _word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _high_value_item(each: Required) -> HighValueItem:
    item: HighValueItem = {
        "content": each.content, "relevance_score": each.relevance, "type": each.type, "carried": True,
    }  # fmt: skip
    if each.injected:
        item["injected"] = True
    return item


def _as_entry(each: Required) -> JsonObject:
    return {"item_id": each.item_id, "content": each.content, "why": each.why}
