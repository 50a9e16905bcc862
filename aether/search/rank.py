"""Search: entries of the three layers and the archive that answer a query.

An entry named by its id comes first, then one that equals the query or contains it as a phrase, then the rest by
score. Every hit contains a word of the query; filters only remove; one entry is found once, in its present layer. The
archive is asked through a `Source`, so that it may be read or indexed.

How much an entry scores is decided in `search.score`.
"""

from __future__ import annotations

import math
import re
from collections import Counter as Tally
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from aether.errors import InvalidInput, require_one_of, shown
from aether.memory.items import HISTORY, STATES
from aether.memory.layers import EVERYTHING, Filter, entry_filter, plain_text
from aether.memory.statements import end_of
from aether.search.index import EMPTY, Query, Row, Source, phrase, term_marks
from aether.search.score import (
    COMMIT,
    K1,
    USER_INPUT,
    Corpus,
    Question,
    dates,
    factors,
    full_score,
    idf,
    is_of_person,
    norm,
    scores,
    term_counts,
)
from aether.search.texts import (
    SearchEntry,
    entry_castes,
    entry_phases,
    entry_text,
    entry_texts,
    placed_objects,
    search_entries,
    texts_of_types,
)
from aether.search.weak import SMALL_HOME, guesses
from aether.text.regex import lazy
from aether.text.words import (
    UNSPACED,
    QueryTerms,
    asks_for_commit,
    is_question,
    query_terms,
    sentences,
    terms,
    with_synonyms,
)
from aether.types import JsonObject, Layer

if TYPE_CHECKING:
    from aether.types import Archived, Hit, HitEvidence


class _NotGiven(int):
    """The number of hits where the caller gives none: then the setting of the home counts, too."""


LIMIT = _NotGiven(20)
LAYERS: tuple[Layer, ...] = get_args(Layer)
# Relevance by the kind of match: the whole text or the id; the phrase; the words.
EXACT_RELEVANCE = 1.0
PHRASE_RELEVANCE = 0.7
# The share of a plain full answer's score that gives half of the relevance its kind of match allows.
_HALFWAY = 0.5
_DECIMALS = 6
# Metadata that say where an entry comes from.
_PLACES = ("speaker", "project", "conversation", "title")
# Characters of the part of a text that is shown first.
_PASSAGE_CHARS = 240
_ARCHIVED = frozenset({"left_at", "why", "session_id", "compression_id"})
_OUTSIDE = lazy(r"^[\W_]+|[\W_]+$")
_SPACED = lazy(rf"[^\W_{UNSPACED}]")

_ID, _EXACT, _PHRASE, _WORDS, _WEAK = range(5)
_WHY = ("id", "exact", "phrase", "words", "weak")
_REQUESTS = frozenset({HISTORY, USER_INPUT})
# Parts of a conversation as it was said, and a conversation of the archive, which are no notes.
_WHOLE = frozenset({HISTORY, "conversation"})
# Share of the words of a match that a better one has: then it says nothing new.
REPEATED = 0.8
# Words of questions about the state of the work, which no text about it has to contain.
_OF_STATE = (
    "next step come open left remain do done stand state status now current last point progress pending todo unfinished problem "
    "issue outstanding still"
)


# The words by which a query names the entries of an item type: its name, and plain nouns for the same. Left out are facts of a
# machine: "command" and "change" are content of most technical questions (with them, two more of 122 answers are not first).
_KIND_WORDS = {
    "constraint": "constraint rule requirement convention guideline policy", "preference": "preference rule",
    "decision": "decision choice", "blocker": "blocker problem issue open", "error": "error failure problem issue",
    "solution": "solution fix", "outcome": "outcome result", "user_input": "request instruction", "next": "next todo",
}  # fmt: skip


class _Match(NamedTuple):
    entry: SearchEntry
    tier: int
    score: float
    relevance: float
    held: Mapping[str, float]
    alike: Mapping[str, str] = MappingProxyType({})
    """Of a weak match."""


def search(
    memory: Mapping[str, Any], query: str, *, now: datetime, archived: Source = EMPTY,
    limit: int | None = LIMIT, layers: Iterable[str] = (), types: Iterable[str] = (),
    phase: int | str | None = None, caste: str | None = None,
    since: datetime | None = None, until: datetime | None = None,
    project: str | None = None, conversation: str | None = None,
    by_layer: bool = False, context: int = 0, evidence: bool = False, asking: Collection[str] = (),
    entries: Sequence[SearchEntry] | None = None, first: Collection[str] = (),
) -> list[Hit]:  # fmt: skip
    """Return the entries that answer `query`, best first, each as a hit with its place and the kind of its match.

    In a small home without any, at most `MOST_GUESSES` that may answer: weak matches.

    At most `limit` hits (with `by_layer` for each layer; None: all; by default `LIMIT`, and of each layer the
    `search.max_results_per_layer` of the home) of the given `layers`, `types`, `phase`, `caste`, `project`,
    `conversation` (a part of its name, id, title or file) and time (from `since` to before `until`), with `context`
    neighbours on either side of each, and with the `evidence` of its score. `by_layer` orders them by layer, relevance and time. The entries `asking` are what
    asks: they are found by their id only. `entries` are those of `memory`, if the caller has them; those with an id in `first`
    are found as if the query named them.

    Raises:
        InvalidInput: the query is blank, or an option has an impossible value.
    """
    layers = frozenset(layers)
    _check(query, limit, layers, context)
    keep = entry_filter(
        types=types, phase=phase, caste=caste, since=since, until=until, project=project,
        conversation=conversation,
    )  # fmt: skip
    terms_asked, means = with_synonyms(query_terms(query))
    ids = frozenset(plain_text(match_of_any) for match_of_any in (query.strip(), *query.split(), *first))
    kinds = kinds_named(query_terms(query).weights)
    ask = _Query(query, terms_asked, means, ids, keep, now, asks_for_commit(query), kinds)
    live = [*(search_entries(memory) if entries is None else entries)]
    answer = _matches([*live], ask, archived)
    asks, all_wanted = is_question(query), keep == EVERYTHING and not layers
    chosen = [
        match_of_any for match_of_any in answer.matches
        # The question itself, noted when it was asked, is not an answer.
        if (all_wanted or _wanted(match_of_any.entry, keep, layers)) and not (asks and match_of_any.tier == _EXACT and match_of_any.entry.row.type in _REQUESTS)
        and (match_of_any.tier == _ID or match_of_any.entry.row.id not in asking)
    ]  # fmt: skip
    # By kind and score, then newest first, by layer and by id: no two are equal.
    chosen.sort(key=lambda match: (LAYERS.index(match.entry.layer), match.entry.row.id))
    chosen.sort(key=lambda match: match.entry.row.at, reverse=True)
    chosen.sort(key=lambda match: (match.tier, -match.score))
    if not chosen and terms_asked.weights and len(live) < SMALL_HOME:
        wanted = {entry.row.id for entry in live if _wanted(entry, keep, layers)} - {*asking}
        chosen = [
            _Match(guess.entry, _WEAK, guess.score, 0.0, {}, guess.alike)
            for guess in guesses(live, wanted, terms_asked.weights)
        ]
    successors = (
        entry for entry in live if (all_wanted or _wanted(entry, keep, layers)) and entry.row.id not in asking
    )
    chosen = _successors_first(chosen, successors)
    most: int | None = None if by_layer else LIMIT
    of_layer: int | None = memory.get("search", {}).get("max_results_per_layer") or None
    if limit is not LIMIT:
        most, of_layer = (None, limit) if by_layer else (limit, None)
    if by_layer:  # the order fixed by the first design: layer, then relevance, then recency
        chosen.sort(key=lambda match: match.entry.row.at, reverse=True)
        chosen.sort(key=lambda match: -match.relevance)
        chosen.sort(key=lambda match: LAYERS.index(match.entry.layer))
    chosen, repeats = _without_repeats(chosen, most, of_layer)
    around = _around(memory, chosen, archived, context) if context else {}
    hits = _hits(chosen, ask, answer.records, around, context)
    for hit, match in zip(hits, chosen, strict=True):
        if again := repeats.get(match.entry.row.id):
            hit["repeats"] = again
        if evidence:
            hit["evidence"] = _evidence(match, answer.corpus, answer.question, terms_asked.spelled)
    return _without_replaced(hits)


def _successors_first(matches: Sequence[_Match], live: Iterable[SearchEntry]) -> list[_Match]:
    """Return `matches` with what supersedes a match in its place, and the match after it; each entry once."""
    ends = {match.entry.row.id: end_of(match.entry.value) for match in matches}
    if not any(ends.values()):
        return [*matches]
    known = {entry.row.id: _Match(entry, _WORDS, 0.0, 0.0, {}) for entry in live}
    known |= {match.entry.row.id: match for match in matches}
    ordered: dict[str, _Match] = {}
    for match in matches:
        chain = [match]
        while end := end_of(chain[-1].entry.value):
            successor = known.get(end["by"].partition("/")[0])  # it may be a statement of a session
            if successor is None or successor in chain:
                break
            chain.append(successor)
        for each in reversed(chain):
            ranked = each._replace(tier=match.tier, score=match.score, relevance=match.relevance)
            ordered.setdefault(each.entry.row.id, ranked)
    return [*ordered.values()]


def _without_replaced(hits: Sequence[Hit]) -> list[Hit]:
    """Return `hits` with only the newest state of the plan and of the work tree of each conversation."""
    places: list[tuple[str, str, str] | None] = []
    newest: dict[tuple[str, str, str], str] = {}
    for hit in hits:
        metadata = hit["entry"].get("metadata")
        metadata_of_hit = metadata if isinstance(metadata, dict) else {}
        place = (
            str(metadata_of_hit.get("role")),
            str(metadata_of_hit.get("conversation", "")),
            str(metadata_of_hit.get("caste")),
        )
        places.append(place if place[0] in STATES and hit["why"] == _WHY[_WORDS] else None)
        if places[-1]:
            newest[place] = max(newest.get(place, ""), hit["at"])
    return [
        hit for hit, place in zip(hits, places, strict=True) if place is None or hit["at"] == newest[place]
    ]


def asks_for_state(query: str) -> bool:
    """Return whether a query asks for the state of the work or for what comes next, and names nothing.

    >>> asks_for_state("What is left to do?"), asks_for_state("what comes next?"), asks_for_state("what is next for the parser?")
    (True, True, False)
    """
    weights = query_terms(query.replace("’", "'").replace("'s ", " ")).weights
    return is_question(query) and bool(weights) and weights.keys() <= _state_terms()


@cache
def _state_terms() -> frozenset[str]:
    return frozenset(query_terms(_OF_STATE).weights)


def _without_repeats(
    matches: Sequence[_Match], most: int | None, of_layer: int | None
) -> tuple[list[_Match], dict[str, list[JsonObject]]]:
    """Return the first `most` matches, `of_layer` of each layer, without those that a better one says as well.

    Of several entries from one message only the best is kept. Compared by words are passages of a conversation with the notes
    that were made of it, and notes of one type of different conversations with the same words. Of these, the second result has the places, by the id of the match that is kept.
    """
    nth: Tally[Layer] = Tally()
    first: dict[tuple[Any, ...], str] = {}
    repeated: dict[str, list[JsonObject]] = {}
    chosen: list[_Match] = []
    word_sets: list[tuple[bool, frozenset[str]]] = []
    messages: set[tuple[str, str, int]] = set()
    # Without a passage no words are compared.
    compared = any(match.entry.row.type == HISTORY for match in matches)
    for match in matches:
        if len(chosen) == most:
            break
        if of_layer is not None and nth[match.entry.layer] >= of_layer:
            continue
        row = match.entry.row
        is_passage = row.type == HISTORY
        if row.conversation and row.type not in _WHOLE and match.tier != _ID:
            same = first.setdefault((row.type, match.entry.fields), row.id)
            if same != row.id:
                place = {"id": row.id, "at": row.at, "conversation": row.conversation.partition("\n")[0]}
                repeated.setdefault(same, []).append(place)
                continue
        words = frozenset(
            word for _, text in match.entry.fields if compared for word in text.partition("(")[0].split("]")
        )
        repeats = match.tier == _WORDS and any(
            (is_passage or of_passage) and len(words & other) >= REPEATED * len(words)
            for of_passage, other in word_sets
        )
        if repeats:
            continue
        word_sets.append((is_passage, words))
        message = _message_of(match.entry)
        if message is None or message not in messages or match.tier == _ID:
            nth[match.entry.layer] += 1
            chosen.append(match)
            messages.update([message] if message else [])
    return chosen, repeated


def _message_of(entry: SearchEntry) -> tuple[str, str, int] | None:
    """Return the conversation, file and line that an entry is from; None if that is unknown or the file is one line."""
    metadata = entry.value.get("metadata")
    pointer = metadata.get("pointer") if isinstance(metadata, dict) else None
    match pointer:
        case {"file": str(file), "line": int(line)} if line > 1:
            return entry.row.conversation, file, line
    return None


def _check(query: object, limit: object, layers: Iterable[str], context: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query is required.", fix="Pass one or more words.", where="search")
    for name, value, least in (("limit", limit, 1), ("context", context, 0)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise InvalidInput(
                f"{name} is {shown(value)}.", fix=f"Use a whole number from {least}.", where="search"
            )
    for layer in layers:
        require_one_of(layer, LAYERS, "a layer", where="search")


class _Query(NamedTuple):
    """A query with its terms, the ids it may name, and its filters."""

    query: str
    said: QueryTerms
    means: Mapping[str, str]
    """The asked term of each synonym."""
    ids: frozenset[str]
    keep: Filter
    now: datetime
    commit: bool
    """Whether it asks for a commit."""
    kinds: Mapping[str, frozenset[str]]
    """The item types of each term that names any."""


def kinds_named(terms: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the item types of each of the `terms` that names kinds of entries.

    >>> {term: sorted(types) for term, types in kinds_named(["rule", "test"]).items()}
    {'rule': ['constraint', 'preference']}
    """
    return {term: types for term in terms if (types := _types_of_terms().get(term))}


@cache
def _types_of_terms() -> dict[str, frozenset[str]]:
    types: dict[str, set[str]] = {}
    for type_name, kind_words in _KIND_WORDS.items():
        for word in kind_words.split():
            for kind_term in query_terms(f"{word} {word}s").weights:
                types.setdefault(kind_term, set()).add(type_name)
    return {kind_term: frozenset(names) for kind_term, names in types.items()}


class _Answer(NamedTuple):
    """What matches, in no order, with the records of the archive by their places, and what the scores follow from."""

    matches: list[_Match]
    records: dict[int, JsonObject]
    corpus: Corpus
    question: Question


def _matches(entries: list[SearchEntry], ask: _Query, archived: Source) -> _Answer:
    """Return what matches of the live `entries` and the archive."""
    counts, corpus, records = _candidates(entries, ask, archived)
    hit = [
        number
        for number, entry_counts in enumerate(counts)
        if entry_counts or entries[number].row.id in ask.ids
    ]
    entries, counts = [entries[number] for number in hit], [counts[number] for number in hit]
    question = Question(
        ask.said.weights, frozenset(ask.said.sequence), dates(ask.query), ask.now, is_question(ask.query),
        ask.means, ask.commit, is_of_person(ask.query), ask.kinds,
    )  # fmt: skip
    scores_ = scores(entries, counts, corpus, question)
    tiers = _tiers(entries, counts, ask)
    full_ = full_score(corpus, question)
    matches = [
        _Match(entry, tier, score, _relevance(tier, score, full_), terms_held)
        for entry, tier, score, terms_held in zip(entries, tiers, scores_, counts, strict=True)
    ]
    return _Answer(matches, records, corpus, question)


def _candidates(
    entries: list[SearchEntry], ask: _Query, archived: Source
) -> tuple[list[dict[str, float]], Corpus, dict[int, JsonObject]]:
    """Add the archive's candidates to all live entries; return the term counts of each, and the statistics of all.

    With them the records of the archive by their places.
    """
    terms = tuple(ask.said.weights)
    marked_terms = term_marks(terms)
    counts = [term_counts(entry, marked_terms) for entry in entries]
    weights = tuple(ask.said.weights.values())
    answer = archived.find(Query(terms, tuple(sorted(ask.ids)), ask.keep, weights=weights))
    for entry, inside in zip(entries, counts, strict=True):
        _say_kind(entry, inside, ask)
    live = Tally(chain.from_iterable(counts))
    corpus = Corpus(
        answer.items + len(entries),
        answer.length + sum(entry.row.length for entry in entries),
        {
            # The archive counts words only; it holds about as large a share of a kind as the live layers.
            term: answer.held[term]
            + live[term] * (1 + answer.items // len(entries) if live[term] and term in ask.kinds else 1)
            for term in terms
        },
    )
    for entry, inside in zip(entries, counts, strict=True):
        _say_commit(entry.row, inside, ask)
    ids = {entry.row.id for entry in entries}
    for candidate in reversed(answer.candidates):  # of two records of one item the newer counts
        row = candidate.row
        if row.id not in ids:
            ids.add(row.id)
            item = candidate.record.get("item") or {}
            entries.append(SearchEntry("archive", candidate.place, row, ((1.0, row.marked),), item))
            counts.append(term_counts(entries[-1], marked_terms))
            _say_kind(entries[-1], counts[-1], ask)
            _say_commit(row, counts[-1], ask)
    return counts, corpus, {one.place: one.record for one in answer.candidates}


def _say_kind(entry: SearchEntry, inside: dict[str, float], ask: _Query) -> None:
    """Let an entry of a kind that the query names have the word for it, too."""
    for kind_term, types in ask.kinds.items():
        if texts_of_types(entry, types):
            inside.setdefault(kind_term, 1.0)


def _say_commit(row: Row, inside: dict[str, float], ask: _Query) -> None:
    """Let the message of a commit that has words of a query for one have that word, too."""
    if ask.commit and inside and row.role == COMMIT and COMMIT in ask.said.weights:
        inside.setdefault(COMMIT, 1.0)


def _tiers(entries: Sequence[SearchEntry], counts: Sequence[Mapping[str, float]], ask: _Query) -> list[int]:
    """Return the kind of match of each entry; only texts that can contain the phrase are read for it."""
    sequence = phrase(ask.said.sequence)
    single = len(ask.said.sequence) == 1
    wanted_terms = ask.said.weights.keys() & ask.said.sequence
    maybe = [
        number for number, (entry, inside) in enumerate(zip(entries, counts, strict=True))
        if sequence and wanted_terms <= inside.keys()
        and any(text.partition("(")[0] == sequence if single else sequence in text for _, text in entry.fields)
    ]  # fmt: skip
    tiers = [_ID if entry.row.id in ask.ids else _WORDS for entry in entries]
    phrase_text = _normalized(ask.query)
    # Words end where a letter or digit meets none; scripts without spaces have no such ends.
    before = r"(?<![^\W_])" if _SPACED.match(phrase_text[:1]) else ""
    after = r"(?![^\W_])" if _SPACED.match(phrase_text[-1:]) else ""
    pattern = re.compile(before + re.escape(phrase_text) + after)
    for number in maybe:
        bodies = [_normalized(text) for text in entry_texts(entries[number])]
        if phrase_text in bodies:
            tiers[number] = min(tiers[number], _EXACT)
        elif not single and any(pattern.search(body) for body in bodies):
            tiers[number] = min(tiers[number], _PHRASE)
    return tiers


def _normalized(text: str) -> str:
    """Return a text without differences in case, width, white space and outer punctuation."""
    from unicodedata import normalize  # a prompt needs two functions of this module

    return _OUTSIDE.sub("", " ".join(normalize("NFKC", text).casefold().split()))


def _relevance(tier: int, score: float, full: float) -> float:
    """Return the relevance, which rises with kind and score and approaches but never reaches the next kind's."""
    if tier <= _EXACT:
        return EXACT_RELEVANCE
    share = score / (score + _HALFWAY * full)
    if tier == _PHRASE:
        return PHRASE_RELEVANCE + (EXACT_RELEVANCE - PHRASE_RELEVANCE) * share
    return PHRASE_RELEVANCE * share


def _wanted(entry: SearchEntry, keep: Filter, layers: frozenset[str]) -> bool:
    return (
        (not layers or entry.layer in layers)
        and (keep == EVERYTHING or keep._replace(phase="", caste="").takes(entry.row))
        and (not keep.phase or keep.phase in entry_phases(entry))
        and (not keep.caste or keep.caste in {name.casefold() for name in entry_castes(entry)})
    )


def _hits(
    matches: Sequence[_Match], ask: _Query, records: Mapping[int, JsonObject], items: Mapping[int, JsonObject],
    context: int,
) -> list[Hit]:  # fmt: skip
    """Return the hits, archived ones with what the `records` of the archive say, and with neighbours among `items`."""
    hits: list[Hit] = []
    types = frozenset(chain.from_iterable(ask.kinds.values()))
    for match in matches:
        entry = match.entry
        # Of the kind that is asked for, as far as it says no less.
        texts = dict.fromkeys([*texts_of_types(entry, types), *entry_texts(entry)])
        row = entry.row
        hit: Hit = {
            "id": str(entry.value.get("session_id") or entry.value.get("id") or row.id),
            "layer": entry.layer, "layer_priority": LAYERS.index(entry.layer),
            "relevance": round(match.relevance, _DECIMALS), "score": round(match.score, _DECIMALS),
            "why": _WHY[match.tier],
            "matched": list(dict.fromkeys(ask.said.spelled[term] for term in ask.said.weights if term in match.held)),
            "type": row.type, "phase": int(row.phase) if row.phase.isdecimal() else None, "at": row.at,
            "content": entry_text(entry), "passage": best_passage(texts, ask.said.weights),
            "tokens": 0, "gist": "", "entry": entry.value,
        }  # fmt: skip
        if match.tier == _WEAK:
            hit["weak"] = True
        if ended := end_of(entry.value):
            hit["ended"] = ended
        metadata = entry.value.get("metadata")
        for name in _PLACES:
            if isinstance(metadata, dict) and isinstance(metadata.get(name), str):
                hit[name] = metadata[name]  # type: ignore[literal-required]
        if entry.place in records:
            record = records[entry.place]
            hit["archived"] = cast("Archived", {key: record[key] for key in _ARCHIVED if key in record})
        if context:
            around = {"before": range(-context, 0), "after": range(1, context + 1)}
            hit["neighbours"] = {
                side: [
                    {key: items[place].get(key) for key in ("id", "type", "content")}
                    for place in (entry.place + step for step in steps) if place in items
                ]
                for side, steps in around.items()
            }  # fmt: skip
        hits.append(hit)
    return hits


def _around(
    memory: Mapping[str, Any], matches: Sequence[_Match], archived: Source, context: int
) -> dict[int, JsonObject]:
    """Return the items of `matches` and up to `context` places away, by their places."""
    stored = [match.entry.place for match in matches if match.entry.layer == "archive"]
    places = {at for place in stored for at in range(place - context, place + context + 1)}
    records = archived.read(sorted(places)) if stored else {}
    items = {place: value for _, place, value in placed_objects(memory)}
    return items | {place: record.get("item") or {} for place, record in records.items()}


def best_passage(texts: Iterable[str], weights: Mapping[str, float]) -> str:
    """Return the stretch of `texts` that says most of a query, with the sentence after it where there is room.

    >>> best_passage(["We met on Monday. The cache was slow. We removed it."], {"cach": 1.0})
    'The cache was slow. We removed it.'
    """
    best: tuple[float, str] = (-1.0, "")
    each_parts = [sentences(text) for text in texts]
    if sum(map(len, each_parts)) == 1:  # there is nothing to choose
        return next(part for parts in each_parts for part in parts)
    for parts in each_parts:
        worth = []
        for part in parts:
            part_terms = terms(part)
            inside = {*part_terms.words, *part_terms.parts}
            worth.append({word for word in weights if word in inside})
        for start in range(len(parts)):
            words_found: set[str] = set()
            end, size = start, 0
            while end < len(parts) and (end == start or size + len(parts[end]) < _PASSAGE_CHARS):
                words_found |= worth[end]
                size += len(parts[end]) + 1
                end += 1
            score = sum(weights[word] for word in words_found) + (0.1 if worth[start] else 0.0)
            if score > best[0]:
                best = (score, " ".join(parts[start:end]))
    return best[1]


def _evidence(match: _Match, corpus: Corpus, question: Question, spelled: Mapping[str, str]) -> HitEvidence:
    """Return why a match has its score."""
    own: dict[str, float] = {}
    half = norm(match.entry, corpus)
    for term, times in match.held.items():
        word = f"{spelled[term]} ({term})" if term in question.synonyms else spelled[term]
        value = question.weights[term] * idf(corpus, term) * times * (K1 + 1) / (times + half)
        own[word] = own.get(word, 0.0) + value
    (named,) = factors([match.entry], [match.held], corpus, question) if match.held else ({},)
    total = match.score / math.prod(named.values()) if match.held else 0.0
    return {
        "words": {word: round(value, _DECIMALS) for word, value in own.items()},
        "surroundings": round(max(0.0, total - sum(own.values())), _DECIMALS),
        "factors": {name: round(factor, _DECIMALS) for name, factor in named.items() if factor != 1},
        "alike": {spelled[term]: other for term, other in match.alike.items()},
    }
