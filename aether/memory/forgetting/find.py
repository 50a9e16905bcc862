"""Mentions: every place of memory that says something, and which of them say the same.

One statement is in several places as soon as it was compressed: the archived item, statements of a session and what
it keeps word for word, a pattern, the prompt that it was part of. Guaranteed: each place is found once, as the
smallest thing that can be taken out of memory by itself; `forgetting` takes it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from aether.memory import graph, items, sessions
from aether.text.similarity import supporting
from aether.text.words import STOPWORDS, sentences, words
from aether.types import JsonObject

STATEMENT_FIELDS = {"key_decisions": ("decision", "rationale"), "outcomes": ("result", "impact"), "high_value_items": ("content",)}  # fmt: skip
# What a session keeps of its items word for word, in its metadata.
VERBATIM_FIELDS = ("protected", "noted", "files", "open", "asked", "found")
# Before the name of an entity of the knowledge graph, where an id is asked for.
ENTITY = "entity:"
# A shorter text is in too much by accident: it is only the same as what says nothing else.
MIN_WORDS = 3
# A part of a sentence that is shorter may be anybody's.
MIN_PART_WORDS = 5
# What has fewer of the words that carry the topic is not like it.
SIMILAR_SHARE = 0.5
# To look closer at all of a large archive takes long: a millisecond each.
MAX_COMPARED = 200


class Target(NamedTuple):
    """One place of memory that says something."""

    id: str
    layer: str
    """The layer, `archive`, `signals` or `graph`."""
    type: str
    text: str
    part: str
    """Which statement of a session or entity, such as `outcomes/2` or `summary/0`; empty for the whole."""


def find_by_ids(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> tuple[list[Target], list[str]]:
    """Return what the ids name with all that says the same, and the ids that name nothing.

    What says the same holds the words of a named item or pattern, or is a sentence or a longer part of it; of a
    session only the statements that do. With a pattern goes what it was made of: it would come back from that. A
    session, signal or entity that is named goes by itself.
    """
    wanted = list(dict.fromkeys(ids))
    there = list(archived)
    whole = [*_whole_targets(documents), *_archived_targets(documents, there)]
    named = [target for target in whole if target.id in wanted]
    gone = {target.id for target in named}
    said = [text for target in named for text in _lines(target) if _is_statement(target)]
    others = (target for target in _all_targets(documents, there) if target.id not in gone)
    return named + find_same(others, said), [one for one in wanted if one not in gone]


def find_by_text(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return everything that holds `text`, whatever the case of its letters; of sessions and entities only the statements."""
    sought = text.casefold()
    return [target for target in _all_targets(documents, archived) if sought in target.text.casefold()]


def find_same(targets: Iterable[Target], texts: Iterable[str]) -> list[Target]:
    """Return those of `targets` that say what one of `statement_texts` says, with these words, or a part of it."""
    sought = [
        _SearchText(_padded_words(text), frozenset(map(_padded_words, sentences(text)))) for text in texts
    ]
    return [
        target
        for target in targets
        if any(_repeats(list(map(_padded_words, _lines(target))), one) for one in sought)
    ]


def find_similar(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], targets: Collection[Target]
) -> list[Target]:
    """Return what says the same as the items and patterns of `targets` in other words."""
    gone = {(target.id, target.part) for target in targets} | {
        (target.id, "") for target in targets if not target.part
    }
    others = [
        target
        for target in _all_targets(documents, archived)
        if not {(target.id, target.part), (target.id, "")} & gone
    ]
    topics = [frozenset(words(target.text)) for target in others]
    found: dict[Target, None] = {}
    for text in dict.fromkeys(statement_texts(targets)):
        near = _most_alike(frozenset(words(text)) - STOPWORDS, topics)
        found |= dict.fromkeys(others[near[at]] for at in supporting(text, [others[at].text for at in near]))
    return list(found)


def _most_alike(asked: frozenset[str], topics: list[frozenset[str]]) -> list[int]:
    """Return the places of the `topics` that have enough of the words `asked`, those with the most of them."""
    shared = [len(asked & topic) for topic in topics]
    near = [at for at, number in enumerate(shared) if asked and number >= SIMILAR_SHARE * len(asked)]
    return sorted(near, key=lambda at: -shared[at])[:MAX_COMPARED]


def statement_texts(targets: Iterable[Target]) -> list[str]:
    """Return what the items and patterns of `targets` say."""
    return [line for target in targets if _is_statement(target) for line in _lines(target)]


class _SearchText(NamedTuple):
    """A text that is looked for, as its words with blanks around each."""

    whole: str
    sentences: frozenset[str]


def _padded_words(text: str) -> str:
    """Return the words of `text` with blanks around each, so that whole words are compared.

    >>> _padded_words("Never use tabs!") in _padded_words("So: never use TABS. Ever.")
    True
    """
    return f" {' '.join(words(text))} "


def _repeats(lines: list[str], said: _SearchText) -> bool:
    if any(line == said.whole or (_count(said.whole) >= MIN_WORDS and said.whole in line) for line in lines):
        return True
    main = lines[0]
    if _count(main) >= MIN_WORDS and main in said.sentences:
        return True
    parts = [line for line in lines if line.strip()]
    return sum(map(_count, parts)) >= MIN_PART_WORDS and all(line in said.whole for line in parts)


def _count(joined: str) -> int:
    return len(joined.split())


def _is_statement(target: Target) -> bool:
    """Return whether a target is one statement, which others may repeat: an item or a pattern."""
    return target.layer in ("working_memory", "archive", "long_term_memory") and target.type != "session"


def _lines(target: Target) -> list[str]:
    """Return the texts of which a target is made."""
    is_made = target.layer == "long_term_memory" or target.part.partition("/")[0] in STATEMENT_FIELDS
    return target.text.split("\n") if is_made else [target.text]


def _all_targets(documents: Mapping[str, Any], archived: Iterable[JsonObject]) -> Iterator[Target]:
    """Yield every place once; sessions and entities in their statements."""
    for target in (*_whole_targets(documents), *_archived_targets(documents, archived)):
        if target.layer == "graph":
            yield target._replace(text=target.text.partition("\n")[0])
        elif target.layer != "short_term_memory":
            yield target
    yield from _statements(documents)
    yield from _graph_parts(documents)


def _whole_targets(documents: Mapping[str, Any]) -> Iterator[Target]:
    memory = documents["memory"]
    for item in items.items_of(memory):
        yield Target(item["id"], "working_memory", item["type"], item["content"], "")
    for session in sessions.sessions_of(memory):
        yield Target(
            session["session_id"], "short_term_memory", "session", sessions.session_text(session), ""
        )
    for pattern in memory["long_term_memory"]["patterns"]:
        yield Target(
            pattern["id"], "long_term_memory", pattern["type"], "\n".join(_pattern_texts(pattern)), ""
        )
    for signal in documents["pheromones"]["active_pheromones"]:
        yield Target(
            signal["id"], "signals", signal["type"], str(signal["metadata"].get("context") or ""), ""
        )
    for entity in _graph(documents)["entities"]:
        lines = [
            f"{entity['name']} ({entity['entityType']})",
            *(each["id"] for each in entity["observations"]),
        ]
        yield Target(ENTITY + entity["name"], "graph", "entity", "\n".join(lines), "")


def _pattern_texts(pattern: Mapping[str, Any]) -> list[str]:
    said = [pattern["pattern"], pattern["metadata"].get("context") or ""]
    return list(dict.fromkeys(filter(None, [*said, *(each["text"] for each in pattern.get("evidence", []))])))


def _statements(documents: Mapping[str, Any]) -> Iterator[Target]:
    for session in sessions.sessions_of(documents["memory"]):
        name = session["session_id"]
        for nth, line in enumerate(session["summary"].split("\n")):
            yield Target(name, "short_term_memory", "summary", line, f"summary/{nth}")
        for part, fields in STATEMENT_FIELDS.items():
            for nth, entry in enumerate(session[part]):  # type: ignore[literal-required]  # the parts are keys of a session
                text = "\n".join(str(entry[field]) for field in fields)
                yield Target(name, "short_term_memory", part, text, f"{part}/{nth}")
        for part, kept in verbatim_texts(session).items():
            for nth, text in enumerate(kept):
                yield Target(name, "short_term_memory", part, str(text), f"{part}/{nth}")


def verbatim_texts(session: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what a session keeps of its items word for word, by kind."""
    return {
        name: texts
        for name, texts in session["metadata"].items()
        if name in VERBATIM_FIELDS and isinstance(texts, list)
    }


def _graph_parts(documents: Mapping[str, Any]) -> Iterator[Target]:
    for entity in _graph(documents)["entities"]:
        for nth, each in enumerate(entity["observations"]):
            yield Target(ENTITY + entity["name"], "graph", "observation", each["id"], f"observations/{nth}")
    for each in _graph(documents)["relations"]:
        text = f"{each['from']} {each['relationType']} {each['to']}"
        yield Target(each["id"], "graph", "relation", text, "relation")


def _graph(documents: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = documents.get(graph.DOCUMENT) or {"entities": [], "relations": []}
    return found


def _archived_targets(documents: Mapping[str, Any], archived: Iterable[JsonObject]) -> Iterator[Target]:
    live = {item["id"] for item in items.items_of(documents["memory"])}
    newest = {record["item"]["id"]: record["item"] for record in archived}
    for name, item in newest.items():
        if name not in live:
            yield Target(name, "archive", item["type"], item["content"], "")
