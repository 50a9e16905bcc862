"""Prompt recall: the entries that a prompt strongly matches, and no others.

An irrelevant entry costs more than a missing one, so a match has two conditions: one *passage* of the entry (a
sentence or a line) must answer the prompt, not words scattered over it, and the match must be of one of two kinds:

- by *name*: the passage has an identifier, a file name or a ticket of the prompt that few entries have;
- by *words*: it has at least `LEAST_WORDS` significant words of the prompt, `LEAST_RARE` of them rare in this memory, and
  with them at least `COVERAGE` of the prompt's weight.

Two kinds of question have an answer of their own. "Did we commit load.py?" is answered by the newest commit with that name
or most of those words, or by a later state of the work tree that names it. "Why jitter?" is answered by a decision or fix
that gives a reason and has a rare word of the question; a changed line is no reason.

Everyday words of the trade, addresses and pasted pages are not significant. A passage that only repeats the prompt is
no match. The numbers were measured: `benchmarks/prompt_recall.py`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from itertools import chain, islice
from typing import Any, NamedTuple

from aether.memory.items import HISTORY
from aether.memory.layers import Record, excerpt
from aether.text import words
from aether.text.cleaning import clean
from aether.text.regex import lazy
from aether.text.words import STOPWORDS, asks_for_commit, has_terms_beside, is_question, query_terms, terms

# More matches are a page to read, not a hint.
MOST_MATCHES = 3
# Characters: longer prompts are pasted pages, with the request at their start or end.
PROMPT_CHARS = 1_200
# One word is too little; most of the prompt must be in the answer.
LEAST_WORDS = 2
LEAST_RARE = 2
COVERAGE = 0.6
# Rare words are in at most three entries, or three in a hundred.
RARE_ENTRIES = 3
RARE_SHARE = 0.03
# New words in a passage: with fewer it only repeats the prompt.
LEAST_NEWS = 3
# Entries cut into words, best first: a bound on the time of a prompt.
LOOKED_AT = 40
PASSAGE_CHARS = 300
# The weight of a name: about that of a word in one entry of a thousand.
NAME_WEIGHT = 6.0
# A past command is of little use to a later prompt, and a changed line only if its name is in the prompt.
NEVER_MATCHED = frozenset({"command", "observation"})
# The words of a conversation answer a question that names something; otherwise they are never injected.
ONLY_BY_NAME = frozenset({"code_change", "error", HISTORY})
# Statements of persons and settled questions before mere reports.
WEIGHT_OF_TYPE = {"constraint": 1.5, "preference": 1.4, "decision": 1.3, "solution": 1.3, "blocker": 1.2, "success_pattern": 1.2, "failure_pattern": 1.2, "user_input": 0.8, "code_change": 0.7}  # fmt: skip

# Everyday words of programming, as stems: stemming them would take longer than a prompt.
_EVERYDAY = frozenset(
    """
    abl actual add again all alreadi alway ani anoth answer anyth app ask automat back becaus between branch
    bug build call cant case chang check class clean close code com come command comment commit compil
    conflict content cool correct couldnt creat current data day default didnt differ directori doc document
    doesnt dont each end error etc everi everyon everyth exampl exit explain fail failur featur field file
    find first fix folder follow full function get github gitlab give go good great handl hello help hey hi
    http https id ill im implement input instal instead isnt issu it ive keep know last less let like line
    lint linter list local log look lot main make mani master mayb mean merg messag method more most move much
    must name need net never new next nice no not note noth now number ok okay old one onli onto open option
    order org other output part path per perfect plan pleas point possibl pr previous print problem project
    proper pull push put question read readm realli reason rebas releas rememb repo repositori request respons
    result review right run same say see session set should show sinc singl some someth start state step still
    stop sure switch take task tell test text thank that thing think three time today tri two type until updat
    use user valu version want wasnt way were what while without wont work write wrong www yes yesterday yet
    your
    """.split()
)
# Words in the shape of a name that name no part of this project.
_BRANDS = frozenset(
    "github gitlab javascript typescript postgresql mysql sqlite openai chatgpt youtube linkedin macos iphone ipad "
    "nodejs nextjs graphql mongodb dynamodb bigquery devops webassembly utf-8 utf-16 sha-1 sha-256 iso-8601 gpt-4 "
    "readme.md claude.md agents.md changelog.md license.md package.json go.mod main.go main.py index.html index.ts "
    "index.js __init__.py cargo.toml pyproject.toml setup.py requirements.txt".split()
)
_RUN = lazy(r"\S+")
_LINK = lazy(r"\w://\S|\bwww\.\S")
_DOTTED = lazy(r"\.\w")
# A token before "=" or a JSON colon is a key that a program printed.
_TOKEN = lazy(r"[\w./~-]*\w(?![\w./~-])(?!=|[\"']\s*:)")
_NAME_CHARS = range(5, 80)
_CAMEL = lazy(r"[a-z0-9][A-Z]")
_SNAKE = lazy(r"[^\W_]_+[^\W_]")
_FILE = lazy(r"[\w-]{2}\.[a-z][a-z0-9]{0,4}\Z")
_TICKET = lazy(r"[A-Z]{2,}-\d+")
_CODE = lazy(r"[{;]\s*\Z|:=|[=!]=|\w\(\w+(?:\.\w+)*(?:, \w+(?:\.\w+)*)+\)")
# A question for a reason.
_ASKS_WHY = lazy(
    r"\b(?:why|what (?:for|was the reason|is the reason)|how come|reasons? (?:for|behind|why))\b",
    re.IGNORECASE,
)
_REASON = lazy(
    r"\b(?:because|since|so that|otherwise|due to|to (?:avoid|prevent|keep)|the reason|in order to|root cause)\b",
    re.IGNORECASE,
)
_COMMITTED = lazy(r"\b(?:uncommitted|committed|commits?)\b", re.IGNORECASE)
_COMMITS = lazy(r"\bgit (?:-\S+ \S+ )?(?:commit|push|merge)\b")
# What gives reasons that hold: a person's choice, a demand, a fix that worked.
_REASONED = frozenset({"constraint", "preference", "decision", "solution"})
_PASSAGES = lazy(r"(?<=[.!?])\s+|\n+")


class PromptQuery(NamedTuple):
    """The searchable parts of a prompt."""

    names: tuple[str, ...]
    """Case-folded names of things."""
    words: tuple[str, ...]
    """Significant terms."""
    terms: frozenset[str]
    """All terms of the prompt."""
    asks: bool = False
    """Whether the prompt is a question."""
    commit: bool = False
    """Whether it asks for a commit."""
    why: bool = False
    """Whether it asks for a reason."""


class PromptMatch(NamedTuple):
    """One entry that a prompt matches."""

    record: Record
    passage: str
    """The passage that answers, on one line."""
    score: float


class _Weights(NamedTuple):
    """The words and names of a prompt in this memory."""

    words: Mapping[str, float]
    """The rarer a word, the heavier; one that memory does not have weighs as much as one in a single entry."""
    rare: frozenset[str]
    names: Mapping[str, list[int]]
    """The places of the records that hold each name, without names that many hold."""
    holders: Mapping[str, list[int]]
    """The places of the records that may hold each word."""

    def is_enough(self, words: Sequence[str]) -> bool:
        """Return whether a passage with these `words` says enough of the prompt."""
        covered = sum(map(self.words.__getitem__, words))
        has_rare = len(self.rare.intersection(words)) >= LEAST_RARE
        return len(words) >= LEAST_WORDS and has_rare and covered >= COVERAGE * sum(self.words.values())


def parse_prompt(prompt: str) -> PromptQuery | None:
    """Return the searchable parts of `prompt`; None for a command of the program, or if there are too few.

    >>> parse_prompt("where is commitWithMetadata called?").names
    ('commitwithmetadata',)
    >>> parse_prompt("ok, fix it then"), parse_prompt("/compact keep the plan")
    (None, None)
    """
    prompt = clean(prompt)  # text that the program itself submits is no request
    if prompt.startswith("/"):
        return None
    if len(prompt) > PROMPT_CHARS:
        prompt = f"{prompt[: PROMPT_CHARS // 2]}\n{prompt[-PROMPT_CHARS // 2 :]}"
    plain = _RUN.sub(_unless_address, prompt)
    names: dict[str, None] = {}  # identifiers, file names, tickets
    for token in _TOKEN.findall(plain):
        name = token.rpartition("/")[2]
        is_shaped = any(form.search(name) for form in (_CAMEL, _SNAKE, _FILE, _TICKET))
        if is_shaped and len(name) in _NAME_CHARS and name.casefold() not in _BRANDS:
            names[name.casefold()] = None
    weights = query_terms(plain).weights
    words = tuple(
        word
        for word, weight in weights.items()
        if weight == 1.0 and len(word) > 2 and not word.isdigit() and word not in _EVERYDAY
    )
    why = bool(_ASKS_WHY.search(prompt))
    if not names and len(words) < (1 if why else LEAST_WORDS):
        return None
    asks = is_question(prompt)
    commit = asks and asks_for_commit(prompt)
    return PromptQuery(tuple(names), words, frozenset(weights), asks, commit, asks and why)


def _unless_address(run: re.Match[str]) -> str:
    """Return a run without spaces, but a space for the address of a page or of a person."""
    text = run[0]
    sign_at = text.find("@", 1)  # one search per run: a pattern for "a@b.c" takes cubic time on "@@@…"
    is_mail = sign_at > 0 and _DOTTED.search(text, sign_at + 2) is not None
    return " " if is_mail or _LINK.search(text) else text


def match_prompt(
    prompt: PromptQuery, live: Sequence[Record], archived: Sequence[Record] = (), *, held: Mapping[str, int] = {},
    others: int = 0, leave_out: Iterable[str] = (),
) -> list[PromptMatch]:  # fmt: skip
    """Return the strong matches of `prompt` among `live` and `archived` records, best first, at most `MOST_MATCHES`.

    `held` are the counts of each word in the `others`, the whole archive; the ids `leave_out` are counted, but not returned.
    """
    records = [*live, *archived]
    weights = _weights(prompt, records, len(live), held, others)
    hidden = frozenset(leave_out)
    if prompt.commit and (
        commits := _commits(
            prompt, [record_shown for record_shown in records if record_shown.id not in hidden]
        )
    ):
        return [*islice(_unique(commits), MOST_MATCHES)]
    matches = [
        match for record in (records[place] for place in _likely(weights))
        if record.id not in hidden and record.type not in NEVER_MATCHED and (record.type != HISTORY or prompt.asks)
        and not (prompt.why and record.type == "code_change") and (match := _best_passage(prompt, record, weights))
    ]  # fmt: skip
    if prompt.why:
        places = sorted({*chain.from_iterable(weights.holders[word] for word in weights.rare)})
        settled = [records[place] for place in places if records[place].type in _REASONED]
        matches += [
            match
            for record_shown in settled
            if record_shown.id not in hidden and (match := _reason(prompt, record_shown, weights))
        ]
    matches.sort(key=lambda match: (-match.score, match.record.id))
    return [*islice(_unique(matches), MOST_MATCHES)]


def _weights(
    prompt: PromptQuery,
    records: Sequence[Record],
    live: int,
    archive_counts: Mapping[str, int],
    archive_size: int,
) -> _Weights:
    """Look for the names and words of the prompt in all records, of which the first `live` are not in the archive."""
    starts = {word: _start(word) for word in prompt.words}
    places: dict[str, list[int]] = {text: [] for text in (*prompt.names, *starts.values())}
    appends = [(text, places_of_text.append) for text, places_of_text in places.items()]
    for place, record in enumerate(records):
        # Not kept: a page of memory costs a prompt as much as looking through it.
        folded = record.text.casefold()
        for text, append in appends:
            if text in folded:
                append(place)
    total = live + archive_size
    most = most_of_rare(total)
    numbers = {
        word: bisect_left(places[start], live) + archive_counts.get(word, 0) for word, start in starts.items()
    }
    return _Weights(
        {word: math.log(1 + total / max(1, number)) for word, number in numbers.items()},
        frozenset(word for word, number in numbers.items() if number <= most),
        {name: places[name] for name in prompt.names if 0 < len(places[name]) <= most},
        {word: places[start] for word, start in starts.items()},
    )


def most_of_rare(total: int) -> float:
    """Return how many of `total` entries may hold a rare word."""
    return max(RARE_ENTRIES, RARE_SHARE * total)


def _start(word: str) -> str:
    """Return the common start of all regular forms of a stem: "happi" is the stem of "happy"."""
    return word[:-1] if len(word) > 4 else word


def _likely(weights: _Weights) -> list[int]:
    """Return the places of the entries that can be a match, best first, at most `LOOKED_AT`.

    What neither names a thing of the prompt nor has its rare words cannot answer it.
    """
    rare = Counter(chain.from_iterable(weights.holders[word] for word in weights.rare))
    scores = {place: 0.0 for place, number in rare.items() if number >= LEAST_RARE}
    for place in {*chain.from_iterable(weights.names.values())}:
        scores[place] = NAME_WEIGHT
    for word, places in weights.holders.items():
        for place in scores.keys() & places:
            scores[place] += weights.words[word]
    return nsmallest(LOOKED_AT, scores, key=lambda place: (-scores[place], place))


def _best_passage(prompt: PromptQuery, record: Record, weights: _Weights) -> PromptMatch | None:
    """Return the passage of a record that answers the prompt best, or None."""
    best: PromptMatch | None = None
    is_whole = _PASSAGES.search(record.text) is None
    for passage in _passages(record, weights):
        folded = passage.casefold()
        names = _named(folded, weights.names)
        # A question is no answer to another; a decision has its question beside it.
        only_asks = prompt.asks and record.type != "decision" and passage.rstrip().endswith("?")
        if not names and (only_asks or record.type in ONLY_BY_NAME):
            continue
        likely = [word for word in prompt.words if _start(word) in folded]
        if not (names or weights.is_enough(likely)):
            continue  # to cut a passage into terms takes far longer
        words = _words_in(passage, prompt)
        if not (names or weights.is_enough(words)) or not (is_whole or _is_prose(passage)):
            continue
        worth = sum(weights.words[word] for word in words) + NAME_WEIGHT * len(names)
        score = worth * WEIGHT_OF_TYPE.get(record.type, 1.0)
        is_better = best is None or score > best.score
        if is_better and has_terms_beside(passage, prompt.terms, least=LEAST_NEWS):
            best = PromptMatch(record, excerpt(passage, PASSAGE_CHARS), score)
    return best


def _passages(record: Record, weights: _Weights) -> Iterator[str]:
    """Yield the passages of a record that have a name or enough rare words; to cut the others into terms takes longest."""
    clues = [_start(word) for word in weights.rare]

    def may_answer(text: str) -> bool:
        return (
            any(name in text for name in weights.names) or sum(clue in text for clue in clues) >= LEAST_RARE
        )

    for line in record.text.split("\n"):
        if may_answer(line.casefold()):
            yield from (passage for passage in _PASSAGES.split(line) if may_answer(passage.casefold()))


def _words_in(passage: str, prompt: PromptQuery) -> list[str]:
    """Return the significant words of the prompt that a passage has."""
    passage_terms = terms(passage)
    return [word for word in prompt.words if word in {*passage_terms.words, *passage_terms.parts}]


def _reason(prompt: PromptQuery, record: Record, weights: _Weights) -> PromptMatch | None:
    """Return the passage of a record that gives a reason with a rare word of the question, or None."""
    for passage in _PASSAGES.split(record.text):
        words = _words_in(passage, prompt) if _REASON.search(passage) else []
        if weights.rare.intersection(words) and 2 * len(words) >= len(prompt.words):
            score = sum(map(weights.words.__getitem__, words)) * WEIGHT_OF_TYPE[record.type]
            return PromptMatch(record, excerpt(passage, PASSAGE_CHARS), score)
    return None


def _commits(prompt: PromptQuery, records: Sequence[Record]) -> list[PromptMatch]:
    """Return the newest state of the work tree that says whether a thing is committed, and the newest commit of it."""
    newest = sorted(records, key=lambda record: record.at, reverse=True)
    commit = next((note for note in newest if _is_commit_of(note, prompt)), None)
    changed = next((note for note in newest if note.type == "code_change" and _is_about(note, prompt)), None)
    # What the state of its conversation does not list since then is committed.
    trees = [
        note for note in newest[: newest.index(commit) if commit else None]
        if changed and _metadata(note).get("role") == "tree" and note.at >= changed.at
        and _metadata(note).get("conversation") == _metadata(changed).get("conversation")
    ]  # fmt: skip
    answers = [note for note in trees[:1] if _COMMITTED.search(note.text)] + ([commit] if commit else [])
    return [PromptMatch(note, excerpt(_subject(note.text), PASSAGE_CHARS), NAME_WEIGHT) for note in answers]


def _is_commit_of(record: Record, prompt: PromptQuery) -> bool:
    is_commit = _metadata(record).get("role") == "commit"
    runs_git = record.type == "command" and bool(_COMMITS.search(record.text))
    return (is_commit or runs_git) and _is_about(record, prompt, by_words=is_commit)


def _is_about(record: Record, prompt: PromptQuery, *, by_words: bool = False) -> bool:
    """Return whether a record has a name of the prompt or, with `by_words`, most of its words."""
    if _named(record.text.casefold(), prompt.names):
        return True
    words = _words_in(record.text, prompt) if by_words else []
    return len(words) >= max(LEAST_WORDS, COVERAGE * len(prompt.words))


def _metadata(record: Record) -> Mapping[str, Any]:
    return record.value.get("metadata") or {}


def _subject(text: str) -> str:
    """Return the name of a commit or pull request, with its subject or title if that is not part of it."""
    name, _, message = text.partition("\n\n")
    subject = message.partition("\n")[0]
    return name if subject in name else f"{name} {subject}"


def _named(folded: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` that are in the case-folded passage as whole words."""
    return [name for name in names if name in folded and _whole(name).search(folded)]


@lru_cache(maxsize=256)
def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _is_prose(passage: str) -> bool:
    """Return whether a line is prose: most code, logs and tables have no function words."""
    if _CODE.search(passage):
        return False
    return not passage.isascii() or any(word in STOPWORDS for word in words.words(passage))


def _unique(matches: Iterable[PromptMatch]) -> Iterator[PromptMatch]:
    """Yield the matches without those whose passage repeats a better one."""
    earlier: list[frozenset[str]] = []
    for match in matches:
        terms_of_match = frozenset(query_terms(match.passage).weights)
        if all(len(terms_of_match & other) * 2 <= len(terms_of_match) for other in earlier):
            yield match
            earlier.append(terms_of_match)
