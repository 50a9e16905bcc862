"""Forgetting: remove targets from memory in one change, so that one undo brings all of them back.

Targets are items, sessions or single statements of them, patterns, signals, entities and relations: the places that
contain a text or have the meaning of an entry. A compressed statement is in several: the archived item, statements and
verbatim texts of a session, a pattern, the prompt that it was part of. Each place is found once, as the smallest part of
memory that can be removed by itself. Archived items, and statements of archived sessions, are hidden by their ids
(`memory.forgotten`), because the archive is only appended to. The text itself stays in the history of the home until it
is erased (`erase`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from aether import clock
from aether.memory import graph, items, sessions
from aether.memory.capture.passages import request_in
from aether.memory.sessions import STATEMENT_FIELDS, verbatim_texts
from aether.store.patch import chain_changes, diff
from aether.text.similarity import supporting
from aether.text.words import STOPWORDS, sentences, words
from aether.tokens.counters import session_tokens
from aether.types import Change, Counter, Item, JsonObject

# The reason in the archive records.
WHY = "forgotten"
RECEIPT_KIND = "forgetting"
# Precedes the name of an entity of the knowledge graph in an id.
ENTITY = "entity:"
# A shorter text is part of too many others: it only equals a whole text.
MIN_WORDS = 3
# A shorter part of a sentence is too common.
MIN_PART_WORDS = 5
# A similar text contains at least this share of the content words.
SIMILAR_SHARE = 0.5
# A comparison takes a millisecond, so only the most alike of a large archive are compared.
MAX_COMPARED = 200


class Target(NamedTuple):
    """One place of memory with a text."""

    id: str
    layer: str
    """The layer, `archive`, `signals` or `graph`."""
    type: str
    text: str
    part: str
    """The statement of a session or entity, such as `outcomes/2` or `summary/0`, or the request that a passage quotes;
    empty for the whole."""


def forget(
    documents: Mapping[str, Any], targets: Iterable[Target], *, now: datetime, count: Counter, receipt_id: str
) -> Change:
    """Return the change that forgets `targets`; its result is the receipt."""
    chosen = list(targets)
    if not chosen:
        return Change({}, result=None)
    receipt = _receipt(chosen, now, receipt_id)
    memory, pheromones, known = documents["memory"], documents["pheromones"], documents.get(graph.DOCUMENT)
    signals = _ids(chosen, "signals")
    kept = {
        name: [signal for signal in pheromones[name] if signal["id"] not in signals]
        for name in ("active_pheromones", "queued")
        if name in pheromones
    }
    ids = _ids(chosen, "working_memory")
    removed = [item for item in items.items_of(memory) if item["id"] in ids]
    patches = {
        "memory": diff(memory, _memory_without(memory, chosen, now, count)),
        "pheromones": diff(pheromones, {**pheromones, **kept}),
    }
    if known:
        patches[graph.DOCUMENT] = diff(known, _graph_without(known, chosen))
    appends = {"receipts": [receipt]}
    if removed:
        appends["items"] = items.archive_records(removed, why=WHY, now=now)
    change = chain_changes(
        documents,
        lambda state: Change(patches, appends),
        lambda state: items.withdraw_threshold(state, now=now),
    )
    return change._replace(result=receipt)


def _ids(targets: Iterable[Target], layer: str) -> set[str]:
    return {target.id for target in targets if target.layer == layer and not target.part}


def _memory_without(
    memory: Mapping[str, Any], chosen: list[Target], now: datetime, count: Counter
) -> JsonObject:
    whole = {target.id for target in chosen if not target.part}
    parts = _parts(chosen)
    working, short, long = memory["working_memory"], memory["short_term_memory"], memory["long_term_memory"]
    texts = statement_texts(chosen) or [target.text for target in chosen]
    held = [_unquoting(item, texts) for item in working["items"] if item["id"] not in whole]
    kept = [
        _session_without(session, parts.get(session["session_id"], set()), texts, count)
        for session in short["sessions"]
        if session["session_id"] not in whole
    ]
    patterns = [pattern for pattern in long["patterns"] if pattern["id"] not in whole]
    # A hand-off that contains the text has to be prepared again.
    records = [record for record in memory["compression"]["open"] if whole.isdisjoint(record["items"])]
    tokens = sum(item["token_count"] for item in held)
    made = {
        **memory,
        "working_memory": {**working, "items": held, "current_tokens": tokens},
        "short_term_memory": {**short, "sessions": kept, "current_sessions": len(kept)},
        "long_term_memory": {**long, "patterns": patterns},
        "compression": {**memory["compression"], "open": records},
    }
    hidden, cut = items.forgotten_ids(memory), items.forgotten_parts(memory)
    hide = [target for target in chosen if target.layer in ("archive", "working_memory")]
    if hide:
        at = clock.stamp(now)
        fresh = [
            {"id": each.id, "at": at, **({"part": each.part} if each.part else {})}
            for each in hide
            if each.id not in hidden and each.part not in cut.get(each.id, ())
        ]
        made["forgotten"] = [*memory.get("forgotten", []), *fresh]
    unlinked: JsonObject = _unlinked(made, whole)
    return unlinked


def _parts(chosen: Iterable[Target]) -> dict[str, set[str]]:
    parts: dict[str, set[str]] = {}
    for target in chosen:
        if target.part:
            parts.setdefault(target.id, set()).add(target.part)
    return parts


def _graph_without(known: Mapping[str, Any], chosen: list[Target]) -> JsonObject:
    """Return the knowledge graph without the chosen entities, their relations, and the chosen parts of others."""
    removed = {one.removeprefix(ENTITY) for one in _ids(chosen, "graph")}
    parts = _parts(chosen)
    entities = []
    for entity in known["entities"]:
        if entity["name"] not in removed:
            without = parts.get(ENTITY + entity["name"], ())
            numbered = enumerate(entity["observations"])
            kept = [each for nth, each in numbered if f"observations/{nth}" not in without]
            entities.append({**entity, "observations": kept})
    relations = [
        each
        for each in known["relations"]
        if each["id"] not in parts and removed.isdisjoint({each["from"], each["to"]})
    ]
    return {**known, "entities": entities, "relations": relations}


def _unquoting(item: Item, texts: Sequence[str]) -> Item:
    """Return `item` without a name of its conversation, or a person's reply, that repeats one of `texts`."""
    metadata = item["metadata"]
    said = [
        name
        for name in ("title", "reply")
        if isinstance(metadata.get(name), str) and quotes(metadata[name], texts)
    ]
    if not said:
        return item
    left = {name: value for name, value in metadata.items() if name not in said}
    return cast(Item, {**item, "metadata": left})


def _session_without(
    session: Mapping[str, Any], parts: set[str], texts: Sequence[str], count: Counter
) -> JsonObject:
    """Return a session without the statements `parts`, its tokens counted again; no item of it repeats one of `texts`."""
    made: JsonObject = {**session}
    if quoting := session["metadata"].get("items"):
        made["metadata"] = {**session["metadata"], "items": [_unquoting(item, texts) for item in quoting]}
    if not parts:
        return made
    made = sessions.without_parts(made, parts)
    made["compressed_tokens"] = session_tokens(made, count)
    made["compression_ratio"] = sessions.compression_ratio(made["original_tokens"], made["compressed_tokens"])
    return made


def _unlinked(value: Any, removed: set[str]) -> Any:
    """Return `value` without links and references to the ids in `removed`."""
    if isinstance(value, dict):
        made = {key: _unlinked(below, removed) for key, below in value.items()}
        if "associative_links" in made:
            made["associative_links"] = [
                link for link in made["associative_links"] if link["target_id"] not in removed
            ]
        if isinstance(made.get("related_patterns"), list):
            made["related_patterns"] = [one for one in made["related_patterns"] if one not in removed]
        return made
    return [_unlinked(below, removed) for below in value] if isinstance(value, list) else value


def _receipt(chosen: list[Target], now: datetime, receipt_id: str) -> JsonObject:
    """Return the receipt: the place and the digest of each forgotten text, without the text."""
    return {
        "receipt_id": receipt_id, "kind": RECEIPT_KIND, "at": clock.stamp(now),
        "forgotten": [
            {
                "id": target.id, "layer": target.layer, "part": target.part,
                "sha256": hashlib.sha256(target.text.encode("utf-8", "surrogatepass")).hexdigest(),
            }
            for target in chosen
        ],
        "undo": 'aether undo REVISION, the revision of this receipt; "aether log" names it',
    }  # fmt: skip


def find_by_ids(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> tuple[list[Target], list[str]]:
    """Return the targets that the ids name with all targets that repeat them, and the ids that name nothing.

    A target repeats an item or pattern if it contains its words, or is a sentence or a longer part of it; of a
    session only the statements that do. The sources of a pattern are found with it, because it would be promoted
    from them again. A session, signal or entity is found by itself.
    """
    wanted = list(dict.fromkeys(ids))
    records = list(archived)
    whole = [*_whole_targets(documents), *_archived_targets(documents, records)]
    named = [target for target in whole if target.id in wanted]
    known = {target.id for target in named}
    others = (target for target in _all_targets(documents, records) if target.id not in known)
    return named + find_same(others, statement_texts(named)), [one for one in wanted if one not in known]


def find_by_text(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return every target that contains `text`, ignoring case; of sessions and entities only the statements."""
    folded = text.casefold()
    return [target for target in _all_targets(documents, archived) if folded in target.text.casefold()]


def find_repeats(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return every target that repeats `text` as those of a named entry do: word for word, not as a part of a word."""
    return find_same(_all_targets(documents, archived), [text])


def find_same(targets: Iterable[Target], texts: Iterable[str]) -> list[Target]:
    """Return those of `targets` that repeat one of `texts`, or a part of it, word for word."""
    said = [*texts]
    sought, quoted = [*map(_search_text, said)], _sought_sentences(said)
    return [
        one
        for one in targets
        if _holds(_readings(one), sought) or (one.part == items.QUOTED and _quotes(one.text, quoted))
    ]


def forgotten_with(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> dict[str, int]:
    """Return how many entries `find_by_ids` finds by each of `ids` alone, those of no entry left out."""
    records, wanted = list(archived), {*ids}
    named: dict[str, list[Target]] = {}
    for target in (*_whole_targets(documents), *_archived_targets(documents, records)):
        if target.id in wanted:
            named.setdefault(target.id, []).append(target)
    others = [(one.id, _readings(one)) for one in _all_targets(documents, records)]
    found = {}
    for name, own in named.items():
        sought = [*map(_search_text, statement_texts(own))]
        found[name] = len(own) + sum(other != name and _holds(readings, sought) for other, readings in others)
    return found


def _search_text(text: str) -> _SearchText:
    return _SearchText(_padded_words(text), frozenset(map(_padded_words, sentences(text))))


def _readings(target: Target) -> list[list[str]]:
    """Return the lines of a target that are compared together; each wording of a pattern is compared by itself."""
    lines = [_padded_words(line) for line in _lines(target)]
    return [[line] for line in lines] if target.layer == "long_term_memory" else [lines]


def _holds(readings: list[list[str]], sought: Sequence[_SearchText]) -> bool:
    return any(_repeats(reading, text) for reading in readings for text in sought)


def quotes(text: str, texts: Iterable[str]) -> bool:
    """Return whether a sentence of `text`, perhaps cut at its end, is one of a text in `texts`, or starts one.

    >>> quotes("Move the parser. Never use tabs in…", ["Never use tabs in Go files."]), quotes("Make all tests pass.", ["All tests pass."])
    (True, False)
    """
    return _quotes(text, _sought_sentences(texts))


def _quotes(text: str, sought: Collection[str]) -> bool:
    said = map(_padded_words, sentences(text))
    return any(one in sought for one in said) or bool(_start_of(text, sought))


def torn_starts(cut: Iterable[str], texts: Iterable[str]) -> dict[str, str]:
    """Return, for each of the `cut` texts whose end is the start of a sentence in `texts`, that start.

    >>> torn_starts(["Move the parser. Never use tabs in…", "Run it…"], ["Never use tabs in Go files."])
    {'Move the parser. Never use tabs in…': 'Never use tabs in'}
    """
    sought = _sought_sentences(texts)
    return {text: start for text in cut if (start := _start_of(text, sought))}


def _start_of(text: str, sought: Collection[str]) -> str:
    said = sentences(text)
    torn = said[-1] if said and text.endswith("…") else ""
    start = _padded_words(torn).rstrip()  # the cut may be in a word
    is_start = _count(start) >= MIN_WORDS and any(one.startswith(start) for one in sought)
    return torn.removesuffix("…") if is_start else ""


def _sought_sentences(texts: Iterable[str]) -> set[str]:
    return {_padded_words(one) for each in texts for one in (each, *sentences(each))}


def find_similar(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], targets: Collection[Target]
) -> list[Target]:
    """Return the targets with the meaning of the items and patterns of `targets` in other words."""
    known = {(target.id, target.part) for target in targets}
    others = [
        target
        for target in _all_targets(documents, archived)
        if not {(target.id, target.part), (target.id, "")} & known
    ]
    bags = [frozenset(words(target.text)) for target in others]
    found: dict[Target, None] = {}
    for text in dict.fromkeys(statement_texts(targets)):
        asked = frozenset(words(text)) - STOPWORDS
        shared = [len(asked & bag) for bag in bags]
        near = [at for at, number in enumerate(shared) if asked and number >= SIMILAR_SHARE * len(asked)]
        near = sorted(near, key=lambda at: -shared[at])[:MAX_COMPARED]
        found |= dict.fromkeys(others[near[at]] for at in supporting(text, [others[at].text for at in near]))
    return list(found)


def statement_texts(targets: Iterable[Target]) -> list[str]:
    """Return the texts of the items and patterns of `targets`, which others may repeat."""
    layers = ("working_memory", "archive", "long_term_memory")
    statements = (one for one in targets if one.layer in layers and one.type != "session" and not one.part)
    return [line for target in statements for line in _lines(target)]


class _SearchText(NamedTuple):
    """A text to search for, as its words with blanks around each."""

    whole: str
    sentences: frozenset[str]


def _padded_words(text: str) -> str:
    """Return the words of `text` with blanks around each, for comparing whole words.

    >>> _padded_words("Never use tabs!") in _padded_words("So: never use TABS. Ever.")
    True
    """
    return f" {' '.join(words(text))} "


def _repeats(lines: list[str], text: _SearchText) -> bool:
    """Return whether a target of these `lines` repeats `text` or a part of it."""
    if any(line == text.whole or (_count(text.whole) >= MIN_WORDS and text.whole in line) for line in lines):
        return True
    main = lines[0]
    if _count(main) >= MIN_WORDS and main in text.sentences:
        return True
    parts = [line for line in lines if line.strip()]
    return sum(map(_count, parts)) >= MIN_PART_WORDS and all(line in text.whole for line in parts)


def _count(joined: str) -> int:
    return len(joined.split())


def _lines(target: Target) -> list[str]:
    is_made = target.layer == "long_term_memory" or target.part.partition("/")[0] in STATEMENT_FIELDS
    return target.text.split("\n") if is_made else [target.text]


def _all_targets(documents: Mapping[str, Any], archived: Iterable[JsonObject]) -> Iterator[Target]:
    """Yield every target once; sessions, archived ones too, and entities as their statements."""
    for target in _whole_targets(documents):
        if target.layer == "graph":
            yield target._replace(text=target.text.partition("\n")[0])
        elif target.layer != "short_term_memory":
            yield target
    yield from _archived_targets(documents, archived, cut=True)
    yield from _statements(documents)
    known = _graph(documents)
    for entity in known["entities"]:
        for nth, each in enumerate(entity["observations"]):
            yield Target(ENTITY + entity["name"], "graph", "observation", each["id"], f"observations/{nth}")
    for each in known["relations"]:
        text = f"{each['from']} {each['relationType']} {each['to']}"
        yield Target(each["id"], "graph", "relation", text, "relation")


def _whole_targets(documents: Mapping[str, Any]) -> Iterator[Target]:
    memory = documents["memory"]
    for item in items.items_of(memory):
        yield Target(item["id"], "working_memory", item["type"], item["content"], "")
    for session in sessions.sessions_of(memory):
        text = sessions.session_text(session)
        yield Target(session["session_id"], "short_term_memory", "session", text, "")
    for pattern in memory["long_term_memory"]["patterns"]:
        texts = [pattern["pattern"], pattern["metadata"].get("context")]
        texts += [each["text"] for each in pattern["metadata"].get("evidence", [])]
        text = "\n".join(dict.fromkeys(filter(None, texts)))
        yield Target(pattern["id"], "long_term_memory", pattern["type"], text, "")
    pheromones = documents["pheromones"]
    for signal in (*pheromones["active_pheromones"], *pheromones.get("queued", [])):
        text = str(signal["metadata"].get("context") or "")
        yield Target(signal["id"], "signals", signal["type"], text, "")
    for entity in _graph(documents)["entities"]:
        lines = [f"{entity['name']} ({entity['entityType']})"]
        lines += [each["id"] for each in entity["observations"]]
        yield Target(ENTITY + entity["name"], "graph", "entity", "\n".join(lines), "")


def _statements(documents: Mapping[str, Any]) -> Iterator[Target]:
    for session in sessions.sessions_of(documents["memory"]):
        name = session["session_id"]
        yield from parts_of(session, "short_term_memory")
        for part, kept in verbatim_texts(session).items():
            for nth, one in enumerate(kept):
                text = (
                    one.get("content") or f"{one['text']}\n{one['quote']}"
                    if isinstance(one, dict)
                    else str(one)
                )
                yield Target(name, "short_term_memory", part, text, f"{part}/{nth}")


def parts_of(session: Mapping[str, Any], layer: str) -> Iterator[Target]:
    """Yield the statements of a session that a search reads."""
    name = session["session_id"]
    for nth, line in enumerate(session["summary"].split("\n")):
        yield Target(name, layer, "summary", line, f"summary/{nth}")
    for part, fields in STATEMENT_FIELDS.items():
        for nth, entry in enumerate(session.get(part, [])):
            text = "\n".join(str(entry[field]) for field in fields if entry.get(field) is not None)
            yield Target(name, layer, part, text, f"{part}/{nth}")


def _graph(documents: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = documents.get(graph.DOCUMENT) or {"entities": [], "relations": []}
    return found


def _archived_targets(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], *, cut: bool = False
) -> Iterator[Target]:
    """Yield the archived items and the sessions, whole or, with `cut`, in parts.

    Those are the statements of a session that are left, and the request that a passage quotes.
    """
    live = {item["id"] for item in items.items_of(documents["memory"])}
    live |= {session["session_id"] for session in sessions.sessions_of(documents["memory"])}
    hidden = items.forgotten_parts(documents["memory"])
    newest = {record["item"]["id"]: record for record in archived}
    for name, record in newest.items():
        item, session = record["item"], record.get("session")
        if name in live:
            continue
        if cut and session:
            yield from (one for one in parts_of(session, "archive") if one.part not in hidden.get(name, ()))
            continue
        quoted = request_in(item) if cut else ""
        if quoted and items.QUOTED not in hidden.get(name, ()):
            yield Target(name, "archive", item["type"], quoted, items.QUOTED)
        text = item["content"].partition("\n")[2] if quoted else item["content"]
        yield Target(name, "archive", item["type"], text, "")
