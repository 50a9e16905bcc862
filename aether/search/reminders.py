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
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain, islice
from typing import NamedTuple

from aether.memory.items import HISTORY
from aether.memory.layers import Record, excerpt
from aether.text import words
from aether.text.cleaning import clean
from aether.text.regex import lazy
from aether.text.words import (
    BASE_FORMS,
    STOPWORDS,
    asks_for_commit,
    has_terms_beside,
    is_question,
    query_terms,
    terms,
)

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
    said: frozenset[str]
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
    named: dict[str, None] = {}  # identifiers, file names, tickets
    for token in _TOKEN.findall(plain):
        name = token.rpartition("/")[2]
        shaped = any(form.search(name) for form in (_CAMEL, _SNAKE, _FILE, _TICKET))
        if shaped and len(name) in _NAME_CHARS and name.casefold() not in _BRANDS:
            named[name.casefold()] = None
    weights = query_terms(plain).weights
    significant = tuple(
        one
        for one, weight in weights.items()
        if weight == 1.0 and len(one) > 2 and not one.isdigit() and one not in _EVERYDAY
    )
    why = bool(_ASKS_WHY.search(prompt))
    if not named and len(significant) < (1 if why else LEAST_WORDS):
        return None
    asks = is_question(prompt)
    commit = asks and asks_for_commit(prompt)
    return PromptQuery(tuple(named), significant, frozenset(weights), asks, commit, asks and why)


def _unless_address(run: re.Match[str]) -> str:
    """Return a run without spaces, but a space for the address of a page or of a person."""
    text = run[0]
    at = text.find("@", 1)  # one search per run: a pattern for "a@b.c" takes cubic time on "@@@…"
    mail = at > 0 and _DOTTED.search(text, at + 2) is not None
    return " " if mail or _LINK.search(text) else text


def match_prompt(
    asked_for: PromptQuery, records: Sequence[Record], *, held: Mapping[str, int] = {}, others: int = 0,
    leave_out: Iterable[str] = (),
) -> list[PromptMatch]:  # fmt: skip
    """Return the strong matches of `asked_for` among `records`, best first, at most `MOST_MATCHES`.

    `held` are the counts of each word in the `others`, entries that are not among `records`; the ids `leave_out` are
    counted, but not returned.
    """
    starts = {word: _start(word) for word in asked_for.words}
    found = _holding(records, {*asked_for.names, *starts.values()})
    named = {name: found[name] for name in asked_for.names}
    worded = {word: found[start] for word, start in starts.items()}
    most = max(RARE_ENTRIES, RARE_SHARE * (len(records) + others))
    total = len(records) + others
    holding = {word: len(found) + held.get(word, 0) for word, found in worded.items()}
    # A word unknown to memory weighs as much as one in a single entry.
    weights = {word: math.log(1 + total / max(1, n)) for word, n in holding.items()}
    rare = {word for word, n in holding.items() if n <= most}
    names = {name: found for name, found in named.items() if 0 < len(found) <= most}
    likely = _likely(names, worded, weights, rare)
    out = frozenset(leave_out)
    fitting = [
        records[at]
        for at in likely
        if records[at].id not in out
        and records[at].type not in NEVER_MATCHED
        and (records[at].type != HISTORY or asked_for.asks)
        and not (asked_for.why and records[at].type == "code_change")
    ]
    if asked_for.commit and (said := _commits(asked_for, [one for one in records if one.id not in out])):
        return [*islice(_unique(said), MOST_MATCHES)]
    reasons: list[PromptMatch | None] = []
    if asked_for.why:
        reasons = [
            _reason(asked_for, records[at], weights, rare)
            for at in sorted({*chain.from_iterable(worded[word] for word in rare)})
            if records[at].type in _REASONED and records[at].id not in out
        ]
    best = _best_first(asked_for, fitting, weights, rare, names, others=reasons)
    return [*islice(_unique(best), MOST_MATCHES)]


def _holding(records: Sequence[Record], wanted: Iterable[str]) -> dict[str, list[int]]:
    """Return the places of the records that hold each of the case-folded texts `wanted`."""
    found: dict[str, list[int]] = {each: [] for each in wanted}
    asked = [(each, places.append) for each, places in found.items()]
    for at, record in enumerate(records):
        # Not kept: a page of memory costs a prompt as much as looking through it.
        text = record.text.casefold()
        for each, add in asked:
            if each in text:
                add(at)
    return found


def _best_first(
    asked_for: PromptQuery, records: Iterable[Record], weights: Mapping[str, float], rare: set[str],
    names: Mapping[str, list[int]], *, others: Iterable[PromptMatch | None],
) -> Iterator[PromptMatch]:  # fmt: skip
    """Yield the matches of `records` and the `others`, best first; a record is cut into words when its turn may have come."""
    waiting = [(-one.score, one.record.id, 1, nth, one) for nth, one in enumerate(others) if one]
    heapify(waiting)
    found = []
    for nth, record in enumerate(records):
        passages = _candidates(asked_for, record, weights, rare, names)
        if passages:
            found.append((-max(one.most for one in passages), record.id, nth, record, passages))
    for *earliest, nth, record, passages in sorted(found):
        while waiting and [*waiting[0][:2]] < earliest:
            yield heappop(waiting)[-1]
        best = _best_passage(asked_for, record, passages, weights, rare)
        if best:
            heappush(waiting, (-best.score, record.id, 0, nth, best))
    while waiting:
        yield heappop(waiting)[-1]


def _reason(
    asked_for: PromptQuery, record: Record, weights: Mapping[str, float], rare: set[str]
) -> PromptMatch | None:
    """Return the passage of a record that gives a reason with a rare word of the question, or None."""
    for passage in _PASSAGES.split(record.text):
        if not _REASON.search(passage):
            continue
        said = terms(passage)
        held = [word for word in asked_for.words if word in {*said.words, *said.parts}]
        if rare.intersection(held) and 2 * len(held) >= len(asked_for.words):
            worth = sum(map(weights.__getitem__, held))
            return PromptMatch(record, excerpt(passage, PASSAGE_CHARS), worth * WEIGHT_OF_TYPE[record.type])
    return None


def _commits(asked_for: PromptQuery, records: Sequence[Record]) -> list[PromptMatch]:
    """Return the newest state of the work tree that says whether a thing is committed, and the newest commit of it."""
    newest = sorted(records, key=lambda one: one.at, reverse=True)
    changed = next((one for one in newest if one.type == "code_change" and _says(one, asked_for)), None)
    trees: list[Record] = []
    commits: list[Record] = []
    for record in newest:
        role = (record.value.get("metadata") or {}).get("role")
        # What the state of its conversation does not list since then is committed.
        if role == "tree" and changed and record.at >= changed.at and _place(record) == _place(changed):
            trees.append(record)
        is_commit = role == "commit" or (record.type == "command" and _COMMITS.search(record.text))
        if is_commit and _says(record, asked_for, words=role == "commit"):
            commits = [record]
            break
    found = [*(one for one in trees[:1] if _COMMITTED.search(one.text)), *commits]
    return [PromptMatch(one, excerpt(_subject(one.text), PASSAGE_CHARS), NAME_WEIGHT) for one in found]


def _says(record: Record, asked_for: PromptQuery, *, words: bool = False) -> bool:
    """Return whether a record has a name of the prompt or, with `words`, most of its words."""
    if _named(record.text.casefold(), asked_for.names):
        return True
    said = terms(record.text) if words else None
    held = [word for word in asked_for.words if said and word in {*said.words, *said.parts}]
    return len(held) >= max(LEAST_WORDS, COVERAGE * len(asked_for.words))


def _place(record: Record) -> object:
    return (record.value.get("metadata") or {}).get("conversation")


def _subject(text: str) -> str:
    """Return the name of a commit or pull request, with its subject or title if that is not part of it."""
    named, _, message = text.partition("\n\n")
    subject = message.partition("\n")[0]
    return named if subject in named else f"{named} {subject}"


def _start(word: str) -> str:
    """Return the common start of all regular forms of a stem: "happi" is the stem of "happy"."""
    return word[:-1] if len(word) > 4 else word


@lru_cache(maxsize=256)
def _opening(word: str) -> str:
    """Return the letters that every form of a stem starts with; none if it may be the stem of an irregular word.

    >>> _opening("cach"), _opening("tie"), _opening("buy")
    ('cac', 't', '')
    """
    kept = word[: max(1, min(3, len(word) - 1))]
    if any(base.startswith(kept) for base in BASE_FORMS.values()):
        return ""
    return kept if len(word) > 3 else kept[:1]  # "tying" is a form of "tie"


def _number_in(text: str, starts: Iterable[str]) -> int:
    return sum(map(text.__contains__, starts))


def _likely(
    names: Mapping[str, list[int]], worded: Mapping[str, list[int]], weights: Mapping[str, float], rare: set[str]
) -> list[int]:  # fmt: skip
    """Return the places of the entries that can be a match, best first, at most `LOOKED_AT`.

    What neither names a thing of the prompt nor has its rare words cannot answer it.
    """
    number = Tally(chain.from_iterable(worded[word] for word in rare))
    by_name = {at for found in names.values() for at in found}
    can = by_name.union(at for at, words in number.items() if words >= LEAST_RARE)
    scores = dict.fromkeys(can, 0.0)
    for word, found in worded.items():
        for at in can.intersection(found):
            scores[at] += weights[word]
    for at in by_name:
        scores[at] += NAME_WEIGHT
    return nsmallest(LOOKED_AT, can, key=lambda at: (-scores[at], at))


class _Candidate(NamedTuple):
    """A passage that may answer a prompt, before it is cut into words."""

    text: str
    names: int
    """How many names of the prompt it has."""
    most: float
    """No score of it is higher."""


def _candidates(
    asked_for: PromptQuery, record: Record, weights: Mapping[str, float], rare: set[str],
    names: Mapping[str, list[int]],
) -> list[_Candidate]:  # fmt: skip
    """Return the passages of a record that may answer the prompt."""
    found = []
    whole = sum(weights.values())
    starts = {word: _start(word) for word in weights}
    clues = [starts[word] for word in rare]
    openings = {word: _opening(word) for word in weights}
    for passage in _passages(record.text, names, clues):
        folded = passage.casefold()
        by_name = _named(folded, names) if names else []
        # A question is no answer to another; a decision has its question beside it.
        only_asks = asked_for.asks and record.type != "decision" and passage.rstrip().endswith("?")
        if not by_name and (only_asks or record.type in ONLY_BY_NAME):
            continue
        # Cutting a passage into words takes far longer than looking for their starts.
        if not by_name:
            if _number_in(folded, clues) < LEAST_RARE:
                continue
            likely = [word for word, start in starts.items() if start in folded]
            if not _is_enough(likely, weights, rare, whole):
                continue
        plain = folded.isascii() and "'" not in folded
        worth = sum(weights[word] for word in weights if not plain or openings[word] in folded)
        most = (worth + NAME_WEIGHT * len(by_name)) * WEIGHT_OF_TYPE.get(record.type, 1.0)
        found.append(_Candidate(passage, len(by_name), most))
    return found


def _best_passage(
    asked_for: PromptQuery, record: Record, passages: Iterable[_Candidate], weights: Mapping[str, float],
    rare: set[str],
) -> PromptMatch | None:  # fmt: skip
    """Return the best of the `passages` of a record if it answers the prompt, or None."""
    best: PromptMatch | None = None
    whole = sum(weights.values())
    alone = _PASSAGES.search(record.text) is None
    for passage, by_name, most in passages:
        if best is not None and most <= best.score:
            continue
        if not alone and not _is_prose(passage):
            continue
        said = terms(passage)
        inside = {*said.words, *said.parts}
        held = [word for word in asked_for.words if word in inside]
        worth = sum(weights[word] for word in held)
        if not by_name and not _is_enough(held, weights, rare, whole):
            continue
        score = (worth + NAME_WEIGHT * by_name) * WEIGHT_OF_TYPE.get(record.type, 1.0)
        if best is not None and score <= best.score:
            continue
        if has_terms_beside(passage, asked_for.said, least=LEAST_NEWS):
            best = PromptMatch(record, excerpt(passage, PASSAGE_CHARS), score)
    return best


def _passages(text: str, names: Iterable[str], clues: Sequence[str]) -> Iterator[str]:
    """Yield the passages of the lines of `text` that may answer; to cut the other lines takes longer than all else."""
    enough = len(clues) >= LEAST_RARE
    for line, said in zip(text.split("\n"), text.casefold().split("\n"), strict=True):
        if any(map(said.__contains__, names)) or (enough and _number_in(said, clues) >= LEAST_RARE):
            yield from _PASSAGES.split(line)


def _is_enough(held: Sequence[str], weights: Mapping[str, float], rare: set[str], whole: float) -> bool:
    """Return whether a passage with the words `held` says enough of the prompt, whose words weigh `whole`."""
    enough = len(held) >= LEAST_WORDS and len(rare.intersection(held)) >= LEAST_RARE
    return enough and sum(map(weights.__getitem__, held)) >= COVERAGE * whole


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


def _unique(found: Iterable[PromptMatch]) -> Iterator[PromptMatch]:
    """Yield the matches without those whose passage repeats a better one."""
    before: list[frozenset[str]] = []
    for one in found:
        said = frozenset(query_terms(one.passage).weights)
        if all(len(said & other) * 2 <= len(said) for other in before):
            yield one
            before.append(said)
