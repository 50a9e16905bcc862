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
from aether.memory import gate, graph, items, sessions
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
    """The layer, `archive`, `signals`, `graph`, `proposals` or `packets`."""
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
    memory, pheromones, knowledge = (
        documents["memory"],
        documents["pheromones"],
        documents.get(graph.DOCUMENT),
    )
    signals = _ids(chosen, "signals")
    fewer = {
        name: [signal for signal in pheromones[name] if signal["id"] not in signals]
        for name in ("active_pheromones", "queued")
        if name in pheromones
    }
    patches = {
        "memory": diff(memory, _memory_without(memory, chosen, now, count)),
        "pheromones": diff(pheromones, {**pheromones, **fewer}),
    }
    if knowledge:
        patches[graph.DOCUMENT] = diff(knowledge, _graph_without(knowledge, chosen))
    if packets := _ids(chosen, "packets"):
        team = documents["teamwork"]
        waiting_packets = [packet for packet in team["packets"] if packet["id"] not in packets]
        patches["teamwork"] = diff(team, {**team, "packets": waiting_packets})
    appends = {"receipts": [receipt]}
    waiting, ids = _ids(chosen, gate.DOCUMENT), _ids(chosen, "working_memory")
    if removed := [item for item in items.items_of(memory) if item["id"] in ids]:
        appends["items"] = items.archive_records(removed, why=WHY, now=now)
    change = chain_changes(
        documents,
        lambda state: Change(patches, appends),
        lambda state: gate.reject(state, waiting & {item["id"] for item in gate.waiting_of(state)}, now=now),
        lambda state: items.withdraw_threshold(state, now=now),
    )
    return change._replace(result=receipt)


def _ids(targets: Iterable[Target], layer: str) -> set[str]:
    return {target.id for target in targets if target.layer == layer and not target.part}


def _memory_without(
    memory: Mapping[str, Any], chosen: list[Target], now: datetime, count: Counter
) -> JsonObject:
    removed = {target.id for target in chosen if not target.part}
    parts = _parts(chosen)
    texts = statement_texts(chosen) or [target.text for target in chosen]
    working, short, long = memory["working_memory"], memory["short_term_memory"], memory["long_term_memory"]
    entries = [_unquoting(item, texts) for item in working["items"] if item["id"] not in removed]
    remaining = [
        _session_without(session, parts.get(session["session_id"], set()), texts, count)
        for session in short["sessions"]
        if session["session_id"] not in removed
    ]
    patterns = [pattern for pattern in long["patterns"] if pattern["id"] not in removed]
    # A hand-off that contains the text has to be prepared again.
    records = [record for record in memory["compression"]["open"] if removed.isdisjoint(record["items"])]
    tokens = sum(item["token_count"] for item in entries)
    after = {
        **memory,
        "working_memory": {**working, "items": entries, "current_tokens": tokens},
        "short_term_memory": {**short, "sessions": remaining, "current_sessions": len(remaining)},
        "long_term_memory": {**long, "patterns": patterns},
        "compression": {**memory["compression"], "open": records},
    }
    hidden, hidden_parts = items.forgotten_ids(memory), items.forgotten_parts(memory)
    archived = [target for target in chosen if target.layer in ("archive", "working_memory")]
    if archived:
        new = [
            {"id": target.id, "at": clock.stamp(now), **({"part": target.part} if target.part else {})}
            for target in archived
            if target.id not in hidden and target.part not in hidden_parts.get(target.id, ())
        ]
        after["forgotten"] = [*memory.get("forgotten", []), *new]
    unlinked: JsonObject = _unlinked(after, removed)
    return unlinked


def _parts(chosen: Iterable[Target]) -> dict[str, set[str]]:
    parts: dict[str, set[str]] = {}
    for target in chosen:
        if target.part:
            parts.setdefault(target.id, set()).add(target.part)
    return parts


def _graph_without(knowledge: Mapping[str, Any], chosen: list[Target]) -> JsonObject:
    """Return the knowledge graph without the chosen entities, their relations, and the chosen parts of others."""
    removed = {name.removeprefix(ENTITY) for name in _ids(chosen, "graph")}
    parts = _parts(chosen)
    entities = []
    for entity in knowledge["entities"]:
        if entity["name"] not in removed:
            hidden = parts.get(ENTITY + entity["name"], ())
            numbered = enumerate(entity["observations"])
            observations = [text for nth, text in numbered if f"observations/{nth}" not in hidden]
            entities.append({**entity, "observations": observations})
    relations = [
        relation
        for relation in knowledge["relations"]
        if relation["id"] not in parts and removed.isdisjoint({relation["from"], relation["to"]})
    ]
    return {**knowledge, "entities": entities, "relations": relations}


def _unquoting(item: Item, texts: Sequence[str]) -> Item:
    """Return `item` without a name of its conversation, or a person's reply, that repeats one of `texts`."""
    metadata = {
        name: value
        for name, value in item["metadata"].items()
        if not (name in ("title", "reply") and isinstance(value, str) and quotes(value, texts))
    }
    return cast(Item, {**item, "metadata": metadata})


def _session_without(
    session: Mapping[str, Any], parts: set[str], texts: Sequence[str], count: Counter
) -> JsonObject:
    """Return a session without the statements `parts`, its tokens counted again; no item of it repeats one of `texts`."""
    after: JsonObject = {**session}
    if entries := session["metadata"].get("items"):
        after["metadata"] = {**session["metadata"], "items": [_unquoting(item, texts) for item in entries]}
    if parts:
        after = sessions.without_parts(after, parts)
        after["compressed_tokens"] = session_tokens(after, count)
        ratio = sessions.compression_ratio(after["original_tokens"], after["compressed_tokens"])
        after["compression_ratio"] = ratio
    return after


def _unlinked(value: Any, removed: set[str]) -> Any:
    """Return `value` without links and references to the ids in `removed`."""
    if isinstance(value, list):
        return [_unlinked(entry, removed) for entry in value]
    if not isinstance(value, dict):
        return value
    after = {key: _unlinked(field, removed) for key, field in value.items()}
    if "associative_links" in after:
        links = after["associative_links"]
        after["associative_links"] = [link for link in links if link["target_id"] not in removed]
    if isinstance(after.get("related_patterns"), list):
        after["related_patterns"] = [id for id in after["related_patterns"] if id not in removed]  # noqa: A001
    return after


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


# --- Finding


def find_by_ids(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> tuple[list[Target], list[str]]:
    """Return the targets that the ids name with all targets that repeat them, and the ids that name nothing.

    A target repeats an item or pattern if it contains its words, or is a sentence or a longer part of it; of a
    session only such statements. The sources of a pattern are included, because it would be promoted from them again. A
    session, signal or entity matches only itself.
    """
    unique_ids, records = list(dict.fromkeys(ids)), list(archived)
    everything = [*_whole_targets(documents), *_archived_targets(documents, records)]
    targets = [target for target in everything if target.id in unique_ids]
    present = {target.id for target in targets}
    unnamed_targets = (target for target in _all_targets(documents, records) if target.id not in present)
    absent = [id for id in unique_ids if id not in present]  # noqa: A001
    return targets + find_same(unnamed_targets, statement_texts(targets)), absent


def find_by_text(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return every target that contains `text`, ignoring case; of sessions and entities only the statements."""
    folded = text.casefold()
    return [target for target in _all_targets(documents, archived) if folded in target.text.casefold()]


def find_repeats(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return every target that repeats `text` as those of a named entry do: word for word, not as a part of a word."""
    return find_same(_all_targets(documents, archived), [text])


def find_same(targets: Iterable[Target], texts: Iterable[str]) -> list[Target]:
    """Return those of `targets` that repeat one of `texts`, or a part of it, word for word."""
    sought = [*texts]
    queries, sought_sentences = [*map(_search_text, sought)], _padded_sentences(sought)
    return [
        target
        for target in targets
        if _contains(_readings(target), queries)
        or (target.part == items.QUOTED and _quotes(target.text, sought_sentences))
    ]


def forgotten_with(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> dict[str, int]:
    """Return how many entries `find_by_ids` finds by each of `ids` alone; an id that names nothing is left out."""
    records, forgotten_ids = list(archived), {*ids}
    targets_of: dict[str, list[Target]] = {}
    for target in (*_whole_targets(documents), *_archived_targets(documents, records)):
        if target.id in forgotten_ids:
            targets_of.setdefault(target.id, []).append(target)
    readings_of = [(target.id, _readings(target)) for target in _all_targets(documents, records)]
    totals = {}
    for id, targets in targets_of.items():  # noqa: A001
        queries = [*map(_search_text, statement_texts(targets))]
        repeats = sum(other != id and _contains(readings, queries) for other, readings in readings_of)
        totals[id] = len(targets) + repeats
    return totals


def find_similar(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], targets: Collection[Target]
) -> list[Target]:
    """Return the targets with the meaning of the items and patterns of `targets` in other words."""
    excluded = {(target.id, target.part) for target in targets}
    candidates = [
        target
        for target in _all_targets(documents, archived)
        if not {(target.id, target.part), (target.id, "")} & excluded
    ]
    bags = [frozenset(words(target.text)) for target in candidates]
    similar: dict[Target, None] = {}
    for text in dict.fromkeys(statement_texts(targets)):
        content = frozenset(words(text)) - STOPWORDS
        shared = [len(content & bag) for bag in bags]
        near = [nth for nth, number in enumerate(shared) if content and number >= SIMILAR_SHARE * len(content)]  # fmt: skip
        near = sorted(near, key=lambda nth: -shared[nth])[:MAX_COMPARED]
        matches = supporting(text, [candidates[nth].text for nth in near])
        similar |= dict.fromkeys(candidates[near[nth]] for nth in matches)
    return list(similar)


def statement_texts(targets: Iterable[Target]) -> list[str]:
    """Return the texts of the items and patterns of `targets`, which others may repeat."""
    layers = ("working_memory", "archive", "long_term_memory")
    return [
        line
        for target in targets
        if target.layer in layers and target.type != "session" and not target.part
        for line in _lines(target)
    ]


def quotes(text: str, texts: Iterable[str]) -> bool:
    """Return whether a sentence of `text`, perhaps cut at its end, is one of a text in `texts`, or starts one.

    >>> quotes("Move the parser. Never use tabs in…", ["Never use tabs in Go files."]), quotes("Make all tests pass.", ["All tests pass."])
    (True, False)
    """
    return _quotes(text, _padded_sentences(texts))


def _quotes(text: str, sought: Collection[str]) -> bool:
    return any(line in sought for line in map(_padded_words, sentences(text))) or bool(_start_of(text, sought))  # fmt: skip


def torn_starts(cut: Iterable[str], texts: Iterable[str]) -> dict[str, str]:
    """Return, for each of the `cut` texts whose end is the start of a sentence in `texts`, that start.

    >>> torn_starts(["Move the parser. Never use tabs in…", "Run it…"], ["Never use tabs in Go files."])
    {'Move the parser. Never use tabs in…': 'Never use tabs in'}
    """
    sought = _padded_sentences(texts)
    return {text: start for text in cut if (start := _start_of(text, sought))}


def _start_of(text: str, sought: Collection[str]) -> str:
    torn = next(reversed(sentences(text)), "") if text.endswith("…") else ""
    start = _padded_words(torn).rstrip()  # the cut may be in a word
    is_start = _count(start) >= MIN_WORDS and any(line.startswith(start) for line in sought)
    return torn.removesuffix("…") if is_start else ""


def _padded_sentences(texts: Iterable[str]) -> set[str]:
    return {_padded_words(line) for text in texts for line in (text, *sentences(text))}


class _SearchText(NamedTuple):
    """A text to search for, as its words with blanks around each."""

    whole: str
    sentences: frozenset[str]


def _search_text(text: str) -> _SearchText:
    return _SearchText(_padded_words(text), frozenset(map(_padded_words, sentences(text))))


def _padded_words(text: str) -> str:
    """Return the words of `text` with blanks around each, for comparing whole words.

    >>> _padded_words("Never use tabs!") in _padded_words("So: never use TABS. Ever.")
    True
    """
    return f" {' '.join(words(text))} "


def _readings(target: Target) -> list[list[str]]:
    """Return the lines of a target that are compared together; each wording of a pattern is compared by itself."""
    lines = [_padded_words(line) for line in _lines(target)]
    return [[line] for line in lines] if target.layer == "long_term_memory" else [lines]


def _contains(readings: list[list[str]], queries: Sequence[_SearchText]) -> bool:
    return any(_repeats(lines, query) for lines in readings for query in queries)


def _repeats(lines: list[str], query: _SearchText) -> bool:
    """Return whether a target of these `lines` repeats `query` or a part of it."""
    is_long = _count(query.whole) >= MIN_WORDS
    if any(line == query.whole or (is_long and query.whole in line) for line in lines):
        return True
    if _count(lines[0]) >= MIN_WORDS and lines[0] in query.sentences:
        return True
    parts = [line for line in lines if line.strip()]
    return sum(map(_count, parts)) >= MIN_PART_WORDS and all(line in query.whole for line in parts)


def _count(joined: str) -> int:
    return len(joined.split())


def _lines(target: Target) -> list[str]:
    is_made = target.layer == "long_term_memory" or target.part.partition("/")[0] in STATEMENT_FIELDS
    return target.text.split("\n") if is_made else [target.text]


# --- Targets


def _all_targets(documents: Mapping[str, Any], archived: Iterable[JsonObject]) -> Iterator[Target]:
    """Yield every target once; sessions, archived ones too, and entities as their statements."""
    for target in _whole_targets(documents):
        if target.layer == "graph":
            yield target._replace(text=target.text.partition("\n")[0])
        elif target.layer != "short_term_memory":
            yield target
    yield from _archived_targets(documents, archived, cut=True)
    yield from _statements(documents)
    knowledge = _graph(documents)
    for entity in knowledge["entities"]:
        for nth, observation in enumerate(entity["observations"]):
            name = ENTITY + entity["name"]
            yield Target(name, "graph", "observation", observation["id"], f"observations/{nth}")
    for relation in knowledge["relations"]:
        text = f"{relation['from']} {relation['relationType']} {relation['to']}"
        yield Target(relation["id"], "graph", "relation", text, "relation")


def _whole_targets(documents: Mapping[str, Any]) -> Iterator[Target]:
    memory = documents["memory"]
    for item in items.items_of(memory):
        yield Target(item["id"], "working_memory", item["type"], item["content"], "")
    for session in sessions.sessions_of(memory):
        text = sessions.session_text(session)
        yield Target(session["session_id"], "short_term_memory", "session", text, "")
    for pattern in memory["long_term_memory"]["patterns"]:
        texts = [pattern["pattern"], pattern["metadata"].get("context")]
        texts += [evidence["text"] for evidence in pattern["metadata"].get("evidence", [])]
        text = "\n".join(dict.fromkeys(filter(None, texts)))
        yield Target(pattern["id"], "long_term_memory", pattern["type"], text, "")
    pheromones = documents["pheromones"]
    for signal in (*pheromones["active_pheromones"], *pheromones.get("queued", [])):
        text = str(signal["metadata"].get("context") or "")
        yield Target(signal["id"], "signals", signal["type"], text, "")
    for item in documents.get(gate.DOCUMENT, {}).get("waiting", []):
        texts = [item["content"], item["metadata"]["proposal"]["quote"]]
        yield Target(item["id"], gate.DOCUMENT, item["type"], "\n".join(filter(None, texts)), "")
    for entity in _graph(documents)["entities"]:
        lines = [f"{entity['name']} ({entity['entityType']})"]
        lines += [observation["id"] for observation in entity["observations"]]
        yield Target(ENTITY + entity["name"], "graph", "entity", "\n".join(lines), "")


def _statements(documents: Mapping[str, Any]) -> Iterator[Target]:
    for session in sessions.sessions_of(documents["memory"]):
        yield from parts_of(session, "short_term_memory")
        for part, entries in verbatim_texts(session).items():
            for nth, entry in enumerate(entries):
                text = str(entry)
                if isinstance(entry, dict):
                    text = entry.get("content") or f"{entry['text']}\n{entry['quote']}"
                yield Target(session["session_id"], "short_term_memory", part, text, f"{part}/{nth}")


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
    return documents.get(graph.DOCUMENT) or {"entities": [], "relations": []}


def _archived_targets(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], *, cut: bool = False
) -> Iterator[Target]:
    """Yield the archived items and the sessions, whole or, with `cut`, in parts.

    Parts are the remaining statements of a session, and the request that a passage quotes.
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
            parts = parts_of(session, "archive")
            yield from (target for target in parts if target.part not in hidden.get(name, ()))
            continue
        quoted = request_in(item) if cut else ""
        if quoted and items.QUOTED not in hidden.get(name, ()):
            yield Target(name, "archive", item["type"], quoted, items.QUOTED)
        text = item["content"].partition("\n")[2] if quoted else item["content"]
        yield Target(name, "archive", item["type"], text, "")
