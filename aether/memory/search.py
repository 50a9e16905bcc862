"""Search: what the colony knows about something, over the three layers and the archive.

What is named by its id comes first, then what is the query or holds it as a phrase, then the rest by score
(`ranking`). Every hit holds a word of the query; filters only remove; one entry is found once, where it
lives now. The archive is asked through a `Source`, so that it may be read or indexed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from aether import clock
from aether.errors import InvalidInput, shown
from aether.memory import ranking
from aether.memory.dates import dates
from aether.memory.entries import Entry, castes, content, live, phases, texts
from aether.shapes import JsonObject, Layer
from aether.store.rows import EVERYTHING, NOTHING, Ask, Keep, Source, marks, phrase, plain
from aether.text.patterns import lazy
from aether.text.words import UNSPACED, Asked, asked

LIMIT = 20
LAYERS: tuple[Layer, ...] = get_args(Layer)
# Relevance by the kind of match: the whole text or the id; the phrase; the words.
EXACT_RELEVANCE = 1.0
PHRASE_RELEVANCE = 0.7

# The share of a plain full answer's score that is worth half of what its kind of match can be.
_HALFWAY = 0.5
_DECIMALS = 6
_ARCHIVED = frozenset({"left_at", "why", "session_id", "compression_id"})
_OUTSIDE = lazy(r"^[\W_]+|[\W_]+$")
_SPACED = lazy(rf"[^\W_{UNSPACED}]")

_ID, _EXACT, _PHRASE, _WORDS = range(4)
_WHY = ("id", "exact", "phrase", "words")


class _Match(NamedTuple):
    entry: Entry
    tier: int
    score: float
    relevance: float
    held: Mapping[str, float]


def search(
    memory: Mapping[str, Any], query: str, *, now: datetime, archived: Source = NOTHING,
    limit: int | None = LIMIT, layers: Iterable[str] = (), types: Iterable[str] = (),
    phase: int | str | None = None, caste: str | None = None,
    since: datetime | None = None, until: datetime | None = None,
    by_layer: bool = False, context: int = 0,
) -> list[JsonObject]:  # fmt: skip
    """Return the entries that answer `query`, best first, each as a hit that says where and why.

    At most `limit` hits (by layer: for each layer; None: all), of the wanted `layers`, `types`, `phase`,
    `caste` and time (from `since` to before `until`), with `context` neighbours on either side of each.
    `by_layer` orders them by layer, relevance and time.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    layers = frozenset(layers)
    _check(query, limit, layers, context)
    keep = Keep(
        tuple(plain(each) for each in types), plain(phase), plain(caste),
        clock.stamp(since) if since else "", clock.stamp(until) if until else "",
    )  # fmt: skip
    said = asked(query)
    ids = frozenset(plain(each) for each in (query.strip(), *query.split()))
    matches = _matches(memory, _Asked(query, said, ids, keep, now), archived)
    wanted = [each for each in matches if _wanted(each.entry, keep, layers)]
    chosen = _by_layer(wanted, limit) if by_layer else _sorted(wanted)[:limit]
    return _hits(memory, chosen, said, archived, context)


def _check(query: object, limit: object, layers: Iterable[str], context: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query is required.", fix="Pass one or more words.", where="search")
    for name, value, least in (("limit", limit, 1), ("context", context, 0)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise InvalidInput(
                f"{name} is {shown(value)}.", fix=f"Use a whole number from {least}.", where="search"
            )
    for layer in layers:
        if layer not in LAYERS:
            raise InvalidInput(
                f"{shown(layer)} is not a layer.", fix=f"Use one of {', '.join(LAYERS)}.", where="search"
            )


class _Asked(NamedTuple):
    """A query in the forms in which its parts are compared."""

    query: str
    said: Asked
    ids: frozenset[str]
    keep: Keep
    now: datetime


def _matches(memory: Mapping[str, Any], ask: _Asked, archived: Source) -> list[_Match]:
    entries, found, corpus = _gathered(memory, ask, archived)
    hit = [at for at, each in enumerate(found) if each or entries[at].row.id in ask.ids]
    entries, found = [entries[at] for at in hit], [found[at] for at in hit]
    question = ranking.Question(ask.said.weights, frozenset(ask.said.sequence), dates(ask.query), ask.now)
    scores = ranking.scores(entries, found, corpus, question)
    tiers = _tiers(entries, ask, archived)
    full = ranking.full(corpus, question)
    return [
        _Match(entry, tier, score, _relevance(tier, score, full), held)
        for entry, tier, score, held in zip(entries, tiers, scores, found, strict=True)
    ]


def _gathered(
    memory: Mapping[str, Any], ask: _Asked, archived: Source
) -> tuple[list[Entry], list[dict[str, float]], ranking.Corpus]:
    """Return all live entries and the archive's candidates, what each holds, and what is known of all."""
    terms = tuple(ask.said.weights)
    marked_terms = marks(terms)
    entries = list(live(memory))
    found = [ranking.held(entry, marked_terms) for entry in entries]
    answer = archived.find(Ask(terms, ask.said.sequence, tuple(sorted(ask.ids)), ask.keep))
    corpus = ranking.Corpus(
        answer.items + len(entries),
        answer.length + sum(entry.row.length for entry in entries),
        {term: answer.held[term] + sum(term in each for each in found) for term in terms},
    )
    known = {entry.row.id for entry in entries}
    for candidate in reversed(answer.candidates):  # of two records of one item the newer counts
        row = candidate.row
        if row.id not in known:
            known.add(row.id)
            entries.append(Entry("archive", candidate.place, row, ((1.0, row.marked),), {}))
            found.append(ranking.held(entries[-1], marked_terms))
    return entries, found, corpus


def _tiers(entries: Sequence[Entry], ask: _Asked, archived: Source) -> list[int]:
    """Return the kind of match of each entry; only texts that can hold the phrase are read for it."""
    sequence = phrase(ask.said.sequence)
    single = len(ask.said.sequence) == 1
    maybe = [
        at
        for at, entry in enumerate(entries)
        if sequence
        and any(
            text.partition("(")[0] == sequence if single else sequence in text for _, text in entry.fields
        )
    ]
    stored = [entries[at].place for at in maybe if entries[at].layer == "archive"]
    records = archived.read(stored) if stored else {}
    tiers = [_ID if entry.row.id in ask.ids else _WORDS for entry in entries]
    plainly = _plainly(ask.query)
    pattern = _pattern(plainly)
    for at in maybe:
        entry = entries[at]
        if entry.layer == "archive":
            entry = entry._replace(value=records.get(entry.place, {}).get("item", {}))
        bodies = [_plainly(text) for text in texts(entry)]
        if plainly in bodies:
            tiers[at] = min(tiers[at], _EXACT)
        elif not single and any(pattern.search(body) for body in bodies):
            tiers[at] = min(tiers[at], _PHRASE)
    return tiers


def _plainly(text: str) -> str:
    """Return a text without what phrases do not differ by: case, width, white space, outer punctuation."""
    return _OUTSIDE.sub("", " ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def _pattern(plainly: str) -> re.Pattern[str]:
    # Words end where a letter or digit meets none; scripts without spaces have no such ends.
    before = r"(?<![^\W_])" if _SPACED.match(plainly[:1]) else ""
    after = r"(?![^\W_])" if _SPACED.match(plainly[-1:]) else ""
    return re.compile(before + re.escape(plainly) + after)


def _relevance(tier: int, score: float, full: float) -> float:
    """Return the relevance, which rises with kind and score and nears but never reaches the next kind's."""
    if tier <= _EXACT:
        return EXACT_RELEVANCE
    share = score / (score + _HALFWAY * full)
    if tier == _PHRASE:
        return PHRASE_RELEVANCE + (EXACT_RELEVANCE - PHRASE_RELEVANCE) * share
    return PHRASE_RELEVANCE * share


def _wanted(entry: Entry, keep: Keep, layers: frozenset[str]) -> bool:
    return (
        (not layers or entry.layer in layers)
        and (keep == EVERYTHING or keep._replace(phase="", caste="").takes(entry.row))
        and (not keep.phase or keep.phase in phases(entry))
        and (not keep.caste or keep.caste in castes(entry))
    )


def _sorted(matches: Iterable[_Match]) -> list[_Match]:
    """Return the matches by kind and score, then newest first, by layer and by id: no two are equal."""
    ordered = sorted(matches, key=lambda match: (LAYERS.index(match.entry.layer), match.entry.row.id))
    ordered.sort(key=lambda match: match.entry.row.at, reverse=True)
    ordered.sort(key=lambda match: (match.tier, -match.score))
    return ordered


def _by_layer(matches: Iterable[_Match], limit: int | None) -> list[_Match]:
    """Return the requirement's order: layer, then relevance, then recency, with `limit` for each layer."""
    ordered = _sorted(matches)
    ordered.sort(key=lambda match: match.entry.row.at, reverse=True)
    ordered.sort(key=lambda match: -match.relevance)
    return [
        match for layer in LAYERS for match in [each for each in ordered if each.entry.layer == layer][:limit]
    ]


def _hits(
    memory: Mapping[str, Any], matches: Sequence[_Match], said: Asked, archived: Source, context: int
) -> list[JsonObject]:
    stored = [match.entry.place for match in matches if match.entry.layer == "archive"]
    places = {at for place in stored for at in range(place - context, place + context + 1)}
    records = archived.read(sorted(places)) if stored else {}
    items = {entry.place: entry.value for entry in live(memory)} if context else {}
    items |= {place: record.get("item") or {} for place, record in records.items()}
    hits = []
    for match in matches:
        entry = match.entry
        if entry.layer == "archive":
            entry = entry._replace(value=items.get(entry.place, {}))
        hit = _hit(match, entry, said)
        if entry.place in records:
            hit["archived"] = {key: value for key, value in records[entry.place].items() if key in _ARCHIVED}
        if context:
            hit["neighbours"] = _neighbours(items, entry.place, context)
        hits.append(hit)
    return hits


def _hit(match: _Match, entry: Entry, said: Asked) -> JsonObject:
    return {
        "id": str(entry.value.get("session_id") or entry.value.get("id") or entry.row.id),
        "layer": entry.layer,
        "layer_priority": LAYERS.index(entry.layer),
        "relevance": round(match.relevance, _DECIMALS),
        "score": round(match.score, _DECIMALS),
        "why": _WHY[match.tier],
        "matched": [said.spelled[term] for term in said.weights if term in match.held],
        "type": entry.row.type,
        "phase": int(entry.row.phase) if entry.row.phase.isdecimal() else None,
        "at": entry.row.at,
        "content": content(entry),
        "entry": entry.value,
    }


def _neighbours(items: Mapping[int, JsonObject], place: int, reach: int) -> JsonObject:
    def shown_items(places: Iterable[int]) -> list[JsonObject]:
        return [
            {key: items[at].get(key) for key in ("id", "type", "content")} for at in places if at in items
        ]

    return {
        "before": shown_items(range(place - reach, place)),
        "after": shown_items(range(place + 1, place + reach + 1)),
    }
