"""Review: what in live memory is doubtful, for a person to keep, correct or forget.

Only what is sure to deserve a look: secrets, text that gives a model orders, statements that contradict each other, rules
and decisions that an agent wrote, statements kept twice, and entries that nobody has seen for long. Looked at is what a
briefing or a search of live memory can say: items, those that sessions keep, patterns, and the other statements of
sessions. What was kept is not doubted again, unless its text changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from aether import clock
from aether.memory.briefing.sections import keeps_items, known_items, revoked_in
from aether.memory.capture.notes import RULE_TYPES, noting_agent
from aether.memory.forget import parts_of
from aether.memory.items import items_of
from aether.memory.patterns import WORK_TYPES
from aether.memory.sessions import EXTRACTIVE, last_heard, sessions_of
from aether.redact.table import PLACEHOLDER
from aether.redact.redact import redact
from aether.text.similarity import index, nearest, opposites
from aether.text.words import STOPWORDS, sentences, words
from aether.types import Change

# Types whose statements hold until something else is said; two reports of work are no contradiction.
_LASTING = RULE_TYPES | {"decision", "lesson", "success_pattern", "failure_pattern"}
# Nobody works on a blocker for longer without a word about it. Captured ones are ended by what was captured later.
OPEN_DAYS = 30
PATTERN_DAYS = 180
_ID_CHARS = 10
_PATTERNS = "long_term_memory"
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


# A choice of one thing ("We use PostgreSQL for the session store"): what is chosen follows the verb.
_CHOICE = re.compile(
    r"\b(?:us(?:e|es|ing)|choose|chose|pick(?:ed)?|prefer|(?:go|went|stay|stick) with|switch(?:ed)? to)\s+(?:the\s+|an?\s+)?"
    r"([^\s,;:()]+)",
    re.IGNORECASE,
)
# Of the words around it; fewer do not say what it was chosen for.
_CHOICE_WORDS = 2
# In a line with one secret, another may have a form that nothing knows: a long word with signs or digits.
_LONG_TOKEN = re.compile(r"(?=\S*[A-Z\d/+=])[^\s<>]{16,}")


class Entry(NamedTuple):
    """One statement of live memory, its secrets blanked."""

    id: str
    layer: str
    type: str
    at: str
    text: str
    part: str = ""
    """The statement of the session `id`, such as `outcomes/2`; empty for an entry with an id of its own."""

    @property
    def name(self) -> tuple[str, str]:
        """Return what names it in live memory."""
        return self.id, self.part


class Doubt(NamedTuple):
    """Something that a person should decide about."""

    id: str
    """Made of its kind and the texts, so that it stays the same until one of them changes."""
    kind: str
    """`secret`, `instruction`, `contradiction`, `unconfirmed`, `duplicate` or `stale`."""
    why: str
    entries: tuple[Entry, ...]
    """The first is the one that an answer changes, unless it names the newer one of a pair, which is the second."""


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
    entries, authors = _entries(memory)
    items = {item["id"]: item["metadata"] for item in known_items(memory) if "id" in item}
    # What was captured says itself what ended it, and is kept once for each place that it was said in.
    noted = {name for name, known in items.items() if not known.get("pointer")}
    ended = revoked_in(memory)
    lasting = [one for one in entries if one.type in _LASTING and one.id not in ended]
    opposed, repeated = _pairs(sorted(lasting, key=lambda one: one.at))
    captured = items.keys() - noted
    repeated = (
        each for each in repeated
        if not (_words(each[2][0]) == _words(each[2][1]) and {one.id for one in each[2]} <= captured)
    )  # fmt: skip
    blockers = {one.id for one in entries if one.type == "blocker"} & noted
    agents = {name: by for name, by in authors.items() if name[0] not in items or name[0] in noted}
    found = chain(
        _secrets(entries), _orders(entries), opposed, _choices(lasting), _unconfirmed(entries, agents), repeated,
        _said_twice([one for one in entries if one.id in noted]), _stale(entries, blockers, now),
    )  # fmt: skip
    shown: set[tuple[str, str]] = set()
    doubtful = []
    for kind, why, concerned in found:
        name = concerned[0].name
        if name not in shown:  # one question about an entry at a time
            one = _doubt(kind, why, *concerned)
            said = _sentences_in_doubt(kind, *concerned)
            if one.id not in kept and not (said and kept.issuperset(said)):
                shown.add(name)
                doubtful.append(one)
    return doubtful


def _entries(memory: Mapping[str, Any]) -> tuple[list[Entry], dict[tuple[str, str], str]]:
    """Return what a briefing or a search can say, and by id and part the agent that wrote it, if one did."""
    live = {item["id"] for item in items_of(memory)}
    items = [item for item in known_items(memory) if "id" in item]
    patterns = memory["long_term_memory"]["patterns"]
    authors = {(item["id"], ""): by for item in items if (by := noting_agent(item))}
    items.sort(key=lambda item: item["id"] not in live)  # working memory first
    found = {
        (item["id"], ""): Entry(
            item["id"], "working_memory" if item["id"] in live else "short_term_memory", item["type"],
            item["metadata"]["timestamp"], item["content"],
        )
        for item in reversed(items)
    }  # fmt: skip
    entries = [*reversed(found.values())]
    entries += [
        Entry(one["id"], _PATTERNS, one["type"], one["last_seen"], one["pattern"]) for one in patterns
    ]
    said = "\n".join(one.text for one in entries)
    for session in sessions_of(memory):
        by = (session["metadata"].get("architect") or {}).get("backend") or ""
        quotes = by == EXTRACTIVE and keeps_items(session)
        for part in parts_of(session, "short_term_memory"):
            text = part.text.strip()
            if not all(line in said for line in text.split("\n")):
                kind, entry = _kind_of_part(session, part.part)
                entries.append(
                    Entry(
                        part.id,
                        part.layer,
                        part.type if quotes else kind,
                        last_heard(session),
                        text,
                        part.part,
                    )
                )
                if by and not quotes and not entry.get("carried"):
                    authors[part.id, part.part] = by
    return entries, authors


def _kind_of_part(session: Mapping[str, Any], part: str) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a statement of a session, and its entry."""
    name, _, nth = part.partition("/")
    entry = session[name][int(nth)] if name == "high_value_items" else {}
    return ("decision" if name == "key_decisions" else entry.get("type", name)), entry


def _words(entry: Entry) -> tuple[str, ...]:
    return tuple(words(entry.text))


def find_text(memory: Mapping[str, Any], entry: Entry) -> str | None:
    """Return the present text of an entry, its secrets too; None if it is not there any more."""
    found, _ = _entries(memory)
    return next((one.text for one in found if one.name == entry.name), None)


def is_current(memory: Mapping[str, Any], doubt: Doubt) -> bool:
    """Return whether the entries of a doubt still have the texts that it is about, and it was not kept."""
    if any(each["id"] == doubt.id for each in memory.get("reviewed", [])):
        return False
    held = {one.name: one.text for one in _entries(memory)[0]}
    now = [entry._replace(text=held[name]) for entry in doubt.entries if (name := entry.name) in held]
    return len(now) == len(doubt.entries) and _doubt(doubt.kind, doubt.why, *now).id == doubt.id


def keep(memory: Mapping[str, Any], doubt: Doubt, *, now: datetime) -> Change:
    """Return the change that remembers that this doubt was looked at and all of it kept.

    The sentences that it is about are remembered too: a session that repeats them is no other doubt.
    """
    held = {one.name: one for one in _entries(memory)[0]}
    said = _sentences_in_doubt(doubt.kind, *(held.get(one.name, one) for one in doubt.entries))
    values: list[Any] = [{"id": name, "at": clock.stamp(now)} for name in (doubt.id, *said)]
    if "reviewed" in memory:
        return Change({"memory": [{"op": "add", "path": "/reviewed/-", "value": value} for value in values]})
    return Change({"memory": [{"op": "add", "path": "/reviewed", "value": values}]})


def _sentences_in_doubt(kind: str, *entries: Entry) -> list[str]:
    """Return ids of the sentences that a doubt about a secret or an order is about: they are the same in any entry."""
    if kind not in ("secret", "instruction"):
        return []
    is_about = _has_secret if kind == "secret" else _gives_orders
    said = (" ".join(words(one)) for entry in entries for one in sentences(entry.text) if is_about(one))
    return [_id_of(f"{kind}\n{one}") for one in dict.fromkeys(said)]


def _has_secret(text: str) -> bool:
    return redact(text) != text


def _gives_orders(text: str) -> bool:
    return _ORDERS.search(text) is not None


def _doubt(kind: str, why: str, *entries: Entry) -> Doubt:
    seen = [kind, *(f"{entry.id}{entry.part and '/'}{entry.part} {entry.text}" for entry in entries)]
    safe = (entry._replace(text=_blanked(entry.text)) for entry in entries)
    return Doubt(_id_of("\n".join(seen)), kind, why, tuple(safe))


def _id_of(text: str) -> str:
    return f"doubt_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_ID_CHARS]}"


def _blanked(text: str) -> str:
    """Return `text` without its secrets, and without what may be one in the same line.

    >>> _blanked("The key is AKIAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG its secret.")
    'The key is <REDACTED> and <REDACTED> its secret.'
    """
    lines = redact(text).split("\n")
    return "\n".join(_LONG_TOKEN.sub(PLACEHOLDER, line) if PLACEHOLDER in line else line for line in lines)


def _secrets(entries: list[Entry]) -> Iterator[_Raised]:
    for entry in entries:
        if _has_secret(entry.text):
            yield "secret", "it holds what looks like a secret", (entry,)


def _orders(entries: list[Entry]) -> Iterator[_Raised]:
    for entry in entries:
        if _gives_orders(entry.text):
            yield "instruction", "it speaks to a model like an order, and may come from outside", (entry,)


def _unconfirmed(entries: list[Entry], authors: Mapping[tuple[str, str], str]) -> Iterator[_Raised]:
    for entry in entries:
        author = authors.get(entry.name)
        if author and entry.type in RULE_TYPES:
            yield "unconfirmed", f"{author} wrote this rule, no person", (entry,)
        elif author and entry.type in ("decision", "lesson") and not entry.part:
            yield "unconfirmed", f"{author} wrote this {entry.type}, no person", (entry,)


def _choices(lasting: list[Entry]) -> Iterator[_Raised]:
    """Yield each choice whose words an older one has too, but for the one thing that is chosen."""
    held: dict[str, tuple[Entry, str]] = {}
    for entry in sorted(lasting, key=lambda one: one.at):
        chosen = _CHOICE.search(entry.text)
        if entry.layer == _PATTERNS or not chosen:
            continue
        around = [*words(entry.text[: chosen.start(1)]), "\n", *words(entry.text[chosen.end(1) :])]
        about, thing = " ".join(around), chosen[1].casefold().rstrip(".")
        older, before = held.get(about, (entry, thing))
        held[about] = (entry, thing)
        if before != thing and len({*around[around.index("\n") :]} - STOPWORDS - {"\n"}) >= _CHOICE_WORDS:
            yield "contradiction", "the newer one chooses something else for the same", (older, entry)


def _said_twice(entries: list[Entry]) -> Iterator[_Raised]:
    """Yield each fact whose words an older one has too."""
    held: dict[tuple[str, ...], Entry] = {}
    for entry in sorted(entries, key=lambda one: one.at):
        said = _words(entry)
        if entry.type not in _LASTING | WORK_TYPES and said:
            if said in held:
                yield "duplicate", "the newer one says the same", (held[said], entry)
            held[said] = entry


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
            (each.at, each.similarity)
            for each in nearest(text, found)
            if (lasting[each.at].layer == _PATTERNS) == (layer == _PATTERNS)
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
        days = OPEN_DAYS if entry.id in open_ids else PATTERN_DAYS if entry.layer == _PATTERNS else 0
        if days and entry.at < clock.stamp(now - timedelta(days=days)):
            yield "stale", f"not seen since {entry.at[:10]}", (entry,)
