"""Review: what in live memory is doubtful, for a person to keep, correct or forget.

Only what is sure to deserve a look: secrets, text that gives a model orders, proposals of sessions, rules and decisions that an
agent noted, statements kept twice, and entries that nobody has seen for long. Looked at is what a briefing or a search of live
memory can say: items, those that sessions keep, patterns, and the other statements of sessions. What was kept is not doubted
again, unless its text changes.

A proposal is what waits for a person (`gate`), such as a rule that rests on an agent's words: no model sees it. To keep
it puts it in force.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from aether import clock
from aether.memory import gate
from aether.memory.briefing.kept import keeps_items, known_items, revoked_in
from aether.memory.forget import parts_of
from aether.memory.items import DEFAULT_SOURCE, is_noted, items_of
from aether.memory.patterns import WORK_TYPES
from aether.memory.sessions import EXTRACTIVE, last_heard, sessions_of
from aether.memory.statements import in_force
from aether.redact.redact import redact
from aether.redact.table import PLACEHOLDER
from aether.store.authors import HOOK, QUEEN
from aether.text.similarity import index, nearest
from aether.text.words import sentences, words
from aether.types import RULE_TYPES, Change, Item

# Types whose statements hold until something else is said.
_LASTING = RULE_TYPES | {"decision", "lesson", "success_pattern", "failure_pattern"}
# Nobody works on a blocker for longer without a word about it.
OPEN_DAYS = 30
PATTERN_DAYS = 180
_ID_CHARS = 10
_PATTERNS = "long_term_memory"
# Security, no judgement of prose: orders to a model in the words of published injections. Each only raises a question to a person;
# in 2,054 messages of sessions of other people none fires.
_ORDERS = {
    "drop the instructions before": r"\b(?:ignore|disregard|forget)\s+(?:(?:all|any|the|your|of|these)\s+){0,3}"
    r"(?:previous|prior|above|earlier|preceding)\s+(?:instructions?|rules?|prompts?|messages?|directions?)\b",
    "become another": r"\byou\s+are\s+now\s+(?:in\s+)?(?:an?\s+|the\s+)?(?:\w+\s+){0,2}(?:mode|assistant|agent|model)\b",
    "hide it from the user": r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|alert|mention\s+(?:this|it)\s+to)\s+the\s+(?:user|human|operator)\b",
    "reveal the prompt": r"\b(?:reveal|print|send|repeat|leak)\s+(?:me\s+)?(?:your|the)\s+(?:system|hidden)\s+prompt\b",
    "marks of a chat template": r"<\|im_start\|>|\[/?INST\]|</?system(?:-reminder|-prompt)?>",
}
_ORDER = re.compile("|".join(_ORDERS.values()), re.IGNORECASE)
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
    """`secret`, `instruction`, `proposal`, `unconfirmed`, `duplicate` or `stale`."""
    why: str
    entries: tuple[Entry, ...]
    """The first is the one that an answer changes, unless it names the newer one of a pair, which is the second."""
    quote: str = ""
    """Of a proposal: the words that it rests on."""
    source: str = ""
    """Of a proposal: who states it, and in which conversation or file."""
    effect: str = ""
    """Of a proposal: what it would change."""


_Question = tuple[str, str, tuple[Entry, ...]]


def doubts(documents: Mapping[str, Any], *, now: datetime) -> list[Doubt]:
    """Return what is doubtful and was not kept before, the most serious first."""
    memory = documents["memory"]
    raised = [*_raised(memory, now=now)]
    serious = [doubt for doubt in raised if doubt.kind in ("secret", "instruction")]
    return [*serious, *_proposals(documents), *(doubt for doubt in raised if doubt not in serious)]


def _raised(memory: Mapping[str, Any], *, now: datetime) -> list[Doubt]:
    ids = {entry["id"] for entry in memory.get("reviewed", [])}
    entries, authors = _entries(memory)
    items = {item["id"]: item for item in known_items(memory) if "id" in item}
    noted = {name for name, item in items.items() if is_noted(item)}
    ended = revoked_in(memory)
    # What was captured is kept once for each place that it was said in.
    lasting = [
        entry
        for entry in entries
        if entry.type in _LASTING and entry.id not in ended and entry.id not in items.keys() - noted
    ]
    blockers = {entry.id for entry in entries if entry.type == "blocker"} & noted - ended.keys()
    agents = {
        name: author
        for name, author in authors.items()
        if (name[0] not in items or name[0] in noted) and name[0] not in ended
    }
    raised = chain(
        _secrets(entries), _orders(entries), _unconfirmed(entries, agents),
        _repeated(sorted(lasting, key=lambda entry: entry.at)), _said_twice([entry for entry in entries if entry.id in noted - ended.keys()]),
        _stale(entries, blockers, now),
    )  # fmt: skip
    raised_names: set[tuple[str, str]] = set()
    doubtful = []
    for kind, why, concerned in raised:
        name = concerned[0].name
        if name not in raised_names:  # one question about an entry at a time
            doubt = _doubt(kind, why, *concerned)
            sentence_ids = _sentences_in_doubt(kind, *concerned)
            if doubt.id not in ids and not (sentence_ids and ids.issuperset(sentence_ids)):
                raised_names.add(name)
                doubtful.append(doubt)
    return doubtful


def _entries(memory: Mapping[str, Any]) -> tuple[list[Entry], dict[tuple[str, str], str]]:
    """Return what a briefing or a search can say, and by id and part the agent that wrote it, if one did."""
    live = {item["id"] for item in items_of(memory)}
    items = [item for item in known_items(memory) if "id" in item]
    patterns = memory["long_term_memory"]["patterns"]
    authors = {(item["id"], ""): noting_agent for item in items if (noting_agent := _noting_agent(item))}
    items.sort(key=lambda item: item["id"] not in live)  # working memory first
    entry_of_item = {
        (item["id"], ""): Entry(
            item["id"], "working_memory" if item["id"] in live else "short_term_memory", item["type"],
            item["metadata"]["timestamp"], item["content"],
        )
        for item in reversed(items)
    }  # fmt: skip
    entries = [*reversed(entry_of_item.values())]
    entries += [
        Entry(pattern["id"], _PATTERNS, pattern["type"], pattern["last_seen"], pattern["pattern"])
        for pattern in patterns
    ]
    texts = "\n".join(entry.text for entry in entries)
    for session in sessions_of(memory):
        noting_agent = (session["metadata"].get("architect") or {}).get("backend") or ""
        quotes = noting_agent == EXTRACTIVE and keeps_items(session)
        for part in parts_of(session, "short_term_memory"):
            text = part.text.strip()
            if not all(line in texts for line in text.split("\n")):
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
                if noting_agent and not quotes and not entry.get("carried"):
                    authors[part.id, part.part] = noting_agent
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
    entries, _ = _entries(memory)
    return next((element.text for element in entries if element.name == entry.name), None)


def is_current(memory: Mapping[str, Any], doubt: Doubt) -> bool:
    """Return whether the entries of a doubt still have the texts that it is about, and it was not kept."""
    if any(entry["id"] == doubt.id for entry in memory.get("reviewed", [])):
        return False
    text_of = {entry.name: entry.text for entry in _entries(memory)[0]}
    now = [entry._replace(text=text_of[name]) for entry in doubt.entries if (name := entry.name) in text_of]
    return len(now) == len(doubt.entries) and _doubt(doubt.kind, doubt.why, *now).id == doubt.id


def keep(memory: Mapping[str, Any], doubt: Doubt, *, now: datetime) -> Change:
    """Return the change that remembers that this doubt was looked at and all of it kept.

    The sentences that it is about are remembered too: a session that repeats them is no other doubt.
    """
    entry_of = {entry.name: entry for entry in _entries(memory)[0]}
    sentence_ids = _sentences_in_doubt(
        doubt.kind, *(entry_of.get(entry.name, entry) for entry in doubt.entries)
    )
    values: list[Any] = [{"id": name, "at": clock.stamp(now)} for name in (doubt.id, *sentence_ids)]
    if "reviewed" in memory:
        return Change({"memory": [{"op": "add", "path": "/reviewed/-", "value": value} for value in values]})
    return Change({"memory": [{"op": "add", "path": "/reviewed", "value": values}]})


def _sentences_in_doubt(kind: str, *entries: Entry) -> list[str]:
    """Return ids of the sentences that a doubt about a secret or an order is about: they are the same in any entry."""
    if kind not in ("secret", "instruction"):
        return []
    is_about = _has_secret if kind == "secret" else _gives_orders
    texts = (
        " ".join(words(sentence))
        for entry in entries
        for sentence in sentences(entry.text)
        if is_about(sentence)
    )
    return [_id_of(f"{kind}\n{entry}") for entry in dict.fromkeys(texts)]


def _has_secret(text: str) -> bool:
    return redact(text) != text


def _gives_orders(text: str) -> bool:
    return _ORDER.search(text) is not None


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


def _secrets(entries: list[Entry]) -> Iterator[_Question]:
    for entry in entries:
        if _has_secret(entry.text):
            yield "secret", "it holds what looks like a secret", (entry,)


def _orders(entries: list[Entry]) -> Iterator[_Question]:
    for entry in entries:
        if _gives_orders(entry.text):
            yield "instruction", "it speaks to a model like an order, and may come from outside", (entry,)


def _unconfirmed(entries: list[Entry], authors: Mapping[tuple[str, str], str]) -> Iterator[_Question]:
    for entry in entries:
        author = authors.get(entry.name)
        if author and entry.type in RULE_TYPES:
            yield "unconfirmed", f"{author} wrote this rule, no person", (entry,)
        elif author and entry.type in ("decision", "lesson") and not entry.part:
            yield "unconfirmed", f"{author} wrote this {entry.type}, no person", (entry,)


def _said_twice(entries: list[Entry]) -> Iterator[_Question]:
    """Yield each fact whose words an older one has too."""
    oldest: dict[tuple[str, ...], Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.at):
        entry_words = _words(entry)
        if entry.type not in _LASTING | WORK_TYPES and entry_words:
            if entry_words in oldest:
                yield "duplicate", "the newer one says the same", (oldest[entry_words], entry)
            oldest[entry_words] = entry


def _repeated(lasting: list[Entry]) -> Iterator[_Question]:
    """Yield the repetitions among `lasting`, which are the oldest first."""
    texts = index(entry.text for entry in lasting)
    for place, older in enumerate(lasting):
        for near in nearest(older.text, texts):
            newer = lasting[near.at]
            if near.at > place and (older.layer == _PATTERNS) == (newer.layer == _PATTERNS):
                yield "duplicate", "the newer one says the same", (older, newer)


def _proposals(documents: Mapping[str, Any]) -> Iterator[Doubt]:
    """Yield what waits for a person, oldest first."""
    waiting = gate.waiting_of(documents)
    patterns = documents["memory"]["long_term_memory"]["patterns"] if waiting else []
    known_patterns = index(pattern["pattern"] for pattern in patterns)
    texts = {entry.id: entry.text for entry in in_force(documents["memory"])} if waiting else {}
    for item in waiting:
        metadata, about = item["metadata"], item["metadata"]["proposal"]
        entry = Entry(item["id"], "proposals", item["type"], metadata["timestamp"], _blanked(item["content"]))
        place = metadata.get("conversation") or (metadata.get("pointer") or {}).get("file", "")
        author = about["by"] if about["by"] != HOOK else metadata["caste"] or "the agent"
        if author == QUEEN and place:
            author = "an import"
        effect = f"new {item['type']}"
        if about["target"]:
            verb = "ends" if about["how"] == "resolve" else "takes the place of"
            effect = f"{verb} {about['target']}: {_blanked(' '.join(texts.get(about['target'], '').split()))}".rstrip(
                ": "
            )
        elif near := [*nearest(item["content"], known_patterns)]:
            effect += f", more evidence for {patterns[near[0].at]['id']}"
        yield Doubt(
            item["id"], "proposal", f"{author} states this {item['type']}, no person", (entry,),
            _blanked(about["quote"]), f"{author}, {place}" if place else author, effect,
        )  # fmt: skip


def _noting_agent(item: Item) -> str:
    """Return the caste or program that noted `item`, "" if a person may have."""
    metadata = item["metadata"]
    if metadata.get("confirmed_by") == "person":
        return ""
    return metadata["caste"] or ("" if metadata["source"] == DEFAULT_SOURCE else metadata["source"])


def _stale(entries: list[Entry], open_ids: set[str], now: datetime) -> Iterator[_Question]:
    for entry in entries:
        days = OPEN_DAYS if entry.id in open_ids else PATTERN_DAYS if entry.layer == _PATTERNS else 0
        if days and entry.at < clock.stamp(now - timedelta(days=days)):
            yield "stale", f"not seen since {entry.at[:10]}", (entry,)
