"""Review: what in live memory is doubtful, for a person to keep, correct or forget.

Only what is sure to deserve a look: secrets, text that gives a model orders, statements that contradict each other, rules
that an agent wrote, statements kept twice, and entries that nobody has seen for long. What was kept is not doubted
again, unless its text changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from aether import clock
from aether.memory.capture.notes import RULE_TYPES, noting_agent
from aether.memory.items import items_of
from aether.redact.redact import redact
from aether.text.similarity import index, nearest, opposites
from aether.types import Change

# Types whose statements hold until something else is said; two reports of work are no contradiction.
_LASTING = RULE_TYPES | {"decision", "lesson", "success_pattern", "failure_pattern"}
# Nobody works on a blocker for longer without a word about it. Captured ones are ended by what was captured later.
OPEN_DAYS = 30
PATTERN_DAYS = 180
_ID_CHARS = 10
# Orders to a model, in the words of known injections; a person's own rule does not speak like this.
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:(?:all|any|the|your|of|these)\s+){0,3}(?:previous|prior|above|earlier|preceding)"
    r"\s+(?:instructions?|rules?|prompts?|messages?|directions?)\b"
    r"|\byou\s+are\s+now\s+(?:in\s+)?(?:an?\s+|the\s+)?(?:\w+\s+){0,2}(?:mode|assistant|agent|model)\b"
    r"|\b(?:do\s+not|don't|never)\s+(?:tell|inform|alert|mention\s+(?:this|it)\s+to)\s+the\s+(?:user|human|operator)\b"
    r"|\b(?:reveal|print|send|repeat|leak)\s+(?:me\s+)?(?:your|the)\s+(?:system|hidden)\s+prompt\b"
    r"|<\|im_start\|>|\[/?INST\]|</?system(?:-reminder|-prompt)?>",
    re.IGNORECASE,
)


class Entry(NamedTuple):
    """One statement of live memory, its secrets blanked."""

    id: str
    layer: str
    type: str
    at: str
    text: str


class Doubt(NamedTuple):
    """Something that a person should decide about."""

    id: str
    """Made of its kind and the texts, so that it stays the same until one of them changes."""
    kind: str
    """`secret`, `instruction`, `contradiction`, `unconfirmed`, `duplicate` or `stale`."""
    why: str
    entries: tuple[Entry, ...]
    """The first is the one that an answer changes; of a pair it is the older."""


class _Pair(NamedTuple):
    """Two entries of which the newer repeats or contradicts the older."""

    older: Entry
    newer: Entry
    similarity: float
    """0 of a contradiction."""


_Raised = tuple[str, str, tuple[Entry, ...]]
# The entries that were compared last, and their pairs.
_compared: list[tuple[frozenset[Entry], list[_Pair]]] = []


def doubts(memory: Mapping[str, Any], *, now: datetime) -> list[Doubt]:
    """Return what is doubtful and was not kept before, the most serious first."""
    kept = {each["id"] for each in memory.get("reviewed", [])}
    items = [item for item in items_of(memory) if not item["metadata"].get("injected")]
    patterns = memory["long_term_memory"]["patterns"]
    entries = [
        *(Entry(one["id"], "working_memory", one["type"], one["metadata"]["timestamp"], one["content"]) for one in items),
        *(Entry(one["id"], "long_term_memory", one["type"], one["last_seen"], one["pattern"]) for one in patterns),
    ]  # fmt: skip
    authors = {item["id"]: noting_agent(item) for item in items}
    noted = {
        item["id"] for item in items if item["type"] == "blocker" and not item["metadata"].get("pointer")
    }
    opposed, repeated = _pairs(
        sorted((one for one in entries if one.type in _LASTING), key=lambda one: one.at)
    )
    found = chain(
        _secrets(entries), _orders(entries), opposed, _unconfirmed(entries, authors), repeated, _stale(entries, noted, now)
    )  # fmt: skip
    shown: set[str] = set()
    doubtful = []
    for kind, why, concerned in found:
        if concerned[0].id not in shown:  # one question about an entry at a time
            one = _doubt(kind, why, *concerned)
            if one.id not in kept:
                shown.add(concerned[0].id)
                doubtful.append(one)
    return doubtful


def is_current(memory: Mapping[str, Any], doubt: Doubt) -> bool:
    """Return whether the entries of a doubt still have the texts that it is about, and it was not kept."""
    held = {item["id"]: item["content"] for item in items_of(memory)}
    held |= {one["id"]: one["pattern"] for one in memory["long_term_memory"]["patterns"]}
    if any(each["id"] == doubt.id for each in memory.get("reviewed", [])):
        return False
    now = [entry._replace(text=held[entry.id]) for entry in doubt.entries if entry.id in held]
    return len(now) == len(doubt.entries) and _doubt(doubt.kind, doubt.why, *now).id == doubt.id


def keep(memory: Mapping[str, Any], doubt: Doubt, *, now: datetime) -> Change:
    """Return the change that remembers that this doubt was looked at and all of it kept."""
    value: Any = {"id": doubt.id, "at": clock.stamp(now)}
    if "reviewed" in memory:
        return Change({"memory": [{"op": "add", "path": "/reviewed/-", "value": value}]})
    return Change({"memory": [{"op": "add", "path": "/reviewed", "value": [value]}]})


def _doubt(kind: str, why: str, *entries: Entry) -> Doubt:
    seen = "\n".join([kind, *(f"{entry.id} {entry.text}" for entry in entries)])
    digest = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARS]
    safe = (entry._replace(text=redact(entry.text)) for entry in entries)
    return Doubt(f"doubt_{digest}", kind, why, tuple(safe))


def _secrets(entries: list[Entry]) -> Iterator[_Raised]:
    for entry in entries:
        if redact(entry.text) != entry.text:
            yield "secret", "it holds what looks like a secret", (entry,)


def _orders(entries: list[Entry]) -> Iterator[_Raised]:
    for entry in entries:
        if _ORDERS.search(entry.text):
            yield "instruction", "it speaks to a model like an order, and may come from outside", (entry,)


def _unconfirmed(entries: list[Entry], authors: Mapping[str, str]) -> Iterator[_Raised]:
    for entry in entries:
        if entry.type in RULE_TYPES and (author := authors.get(entry.id)):
            yield "unconfirmed", f"{author} wrote this rule, no person", (entry,)


def _pairs(lasting: list[Entry]) -> tuple[Iterator[_Raised], Iterator[_Raised]]:
    """Return the contradictions and the repetitions among `lasting`, which are the oldest first.

    Only entries that are new since the last call are compared with the others: whoever answers one doubt after another
    waits for one entry at most.
    """
    place = {entry: at for at, entry in enumerate(lasting)}
    known, compared = _compared[-1] if _compared else (frozenset[Entry](), [])
    pairs = [pair for pair in compared if pair.older in place and pair.newer in place]
    fresh = [at for at, entry in enumerate(lasting) if entry not in known]
    found = index(entry.text for entry in (lasting if fresh else ()))
    new = {*fresh}
    for at in fresh:
        text, layer = lasting[at].text, lasting[at].layer
        near = [
            (each.at, each.similarity) for each in nearest(text, found) if lasting[each.at].layer == layer
        ]
        for other, similar in (*((other, 0.0) for other in opposites(text, found)), *near):
            if other > at or other not in new:  # a pair of two new ones is found from the older one
                pairs.append(_Pair(lasting[min(at, other)], lasting[max(at, other)], similar))
    _compared[:] = [(frozenset(lasting), pairs)]
    pairs = sorted(pairs, key=lambda pair: (place[pair.older], -pair.similarity, place[pair.newer]))
    return (
        (
            ("contradiction", "the newer one says the opposite", pair[:2])
            for pair in pairs
            if not pair.similarity
        ),
        (("duplicate", "the newer one says the same", pair[:2]) for pair in pairs if pair.similarity),
    )


def _stale(entries: list[Entry], open_ids: set[str], now: datetime) -> Iterator[_Raised]:
    for entry in entries:
        days = OPEN_DAYS if entry.id in open_ids else PATTERN_DAYS if entry.layer == "long_term_memory" else 0
        if days and entry.at < clock.stamp(now - timedelta(days=days)):
            yield "stale", f"not seen since {entry.at[:10]}", (entry,)
