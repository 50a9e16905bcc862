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
    pairs = list(_pairs(sorted(entries, key=lambda entry: entry.at)))
    found = [
        *_secrets(entries), *_orders(entries), *(one for one in pairs if one.kind == "contradiction"),
        *_unconfirmed(entries, authors), *(one for one in pairs if one.kind == "duplicate"), *_stale(entries, noted, now),
    ]  # fmt: skip
    shown: set[str] = set()
    doubtful = []
    for one in found:
        if one.id not in kept and one.entries[0].id not in shown:  # one question about an entry at a time
            shown.add(one.entries[0].id)
            doubtful.append(one)
    return doubtful


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


def _secrets(entries: list[Entry]) -> Iterator[Doubt]:
    for entry in entries:
        if redact(entry.text) != entry.text:
            yield _doubt("secret", "it holds what looks like a secret", entry)


def _orders(entries: list[Entry]) -> Iterator[Doubt]:
    for entry in entries:
        if _ORDERS.search(entry.text):
            yield _doubt(
                "instruction", "it speaks to a model like an order, and may come from outside", entry
            )


def _unconfirmed(entries: list[Entry], authors: Mapping[str, str]) -> Iterator[Doubt]:
    for entry in entries:
        if entry.type in RULE_TYPES and (author := authors.get(entry.id)):
            yield _doubt("unconfirmed", f"{author} wrote this rule, no person", entry)


def _pairs(entries: list[Entry]) -> Iterator[Doubt]:
    """Yield the contradictions and repetitions among `entries`, the oldest first."""
    lasting = [entry for entry in entries if entry.type in _LASTING]
    found = index(entry.text for entry in lasting)
    for at, entry in enumerate(lasting):
        for other in opposites(entry.text, found):
            if other > at:
                yield _doubt("contradiction", "the newer one says the opposite", entry, lasting[other])
        for near in nearest(entry.text, found):
            if near.at > at and lasting[near.at].layer == entry.layer:
                yield _doubt("duplicate", "the newer one says the same", entry, lasting[near.at])


def _stale(entries: list[Entry], open_ids: set[str], now: datetime) -> Iterator[Doubt]:
    for entry in entries:
        days = OPEN_DAYS if entry.id in open_ids else PATTERN_DAYS if entry.layer == "long_term_memory" else 0
        if days and entry.at < clock.stamp(now - timedelta(days=days)):
            yield _doubt("stale", f"not seen since {entry.at[:10]}", entry)
