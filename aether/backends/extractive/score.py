"""Score: how much each clause would add to a session for its tokens, and the order in which clauses are kept.

A clause adds the sum over its terms: rare words count more than common ones, numbers and names more than words, and
identifiers (paths, commands, errors) by their length, because they are useless in part. The sum is scaled by the type
of the item and the kind of the sentence, by relevance, and by the active signals.

The order is greedy: take the clause whose new terms weigh most per token, count its terms as said, repeat. A repeated
term is worth a fraction of the first use, so repetition falls behind by itself. A clause comes with the clause that it
depends on. The cost is that of a heap: n log n.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from aether.backends.extractive.clauses import (
    BINDING_TYPES,
    FILE_TYPES,
    FRAME_CHARS,
    HIGH_RELEVANCE,
    REQUEST_TYPES,
    RESULT_TYPES,
    Clause,
)
from aether.text.accounts import LEAST_CHANGE, NEXT, TO_DO, rate_change
from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.words import STOPWORDS, sentences, stem, stems, words
from aether.types import Counter

# Worth of a repeated term, as a share of its first use.
REPEATED = 0.2
# Tiers, lower ones first, whatever they cost: purpose and result; a rule; a changed file; other required ones; binding; the
# purpose of an item; worth keeping; filler; kept only if another clause depends on it.
FRAMES, RULES, TOUCHED, DECIDES, BLOCKS, BINDS, OPENS, WORTH, FILLS, DEPENDENT = range(10)

# Worth of one new term. A common word says a third of a rare one; exact ones say more than either.
RARE = 1.0
COMMON_WORD = 0.3
NUMBER = 1.2
NAME = 1.6
NEGATION = 0.5
# An identifier must win against the words that its length displaces: worth per character, and at least this.
IDENTIFIER_PER_CHAR = 0.5
IDENTIFIER = 2.0
# A frequent term is the topic: worth per natural logarithm of the number of clauses with the term.
TOPIC = 0.2
# A statement costs more than its words: the end mark, the break in the text, the reader's turn of mind. Without this,
# scraps win against statements. A clause that continues another one costs its joint.
STATEMENT_TOKENS = 6
JOINT_TOKENS = 1

# Factor of a type of item, or a kind of sentence: decisions and constraints first, plain remarks last.
TYPE_FACTORS: Mapping[str, float] = {
    "constraint": 2.0, "decision": 1.6, "preference": 1.5, "solution": 2.2, "blocker": 1.5, "error": 1.4, "code_change": 1.5,
    "outcome": 1.3, "task_result": 1.3, "user_input": 1.4, "command": 1.1, "code_snippet": 0.7,
}  # fmt: skip
KIND_FACTORS: Mapping[str, float] = {
    "decision": 1.2, "constraint": 1.2, "preference": 1.05, "solution": 1.2, "blocker": 1.15, "outcome": 1.1, "fact": 1.0,
    "exploration": 0.5, "chatter": 0.2,
}  # fmt: skip
# In speech, a question says less than its answer, a remark on the other speaker less than news, and what says when it was is news.
QUESTION = 0.55
ANSWER = 1.4
REMARK = 0.7
DATED = 1.5
# Relevance 0.5, the default, leaves the weight alone; 1.0 raises it by half.
RELEVANCE_AT_ZERO = 0.5
# A matching signal of full strength makes a clause weigh this much more.
STEERED = 2.0
# The newest item weighs this much more than the oldest: it shows the present state.
RECENCY = 0.1

# The opening of an item of these types states its purpose.
LEADING_TYPES = frozenset({"constraint", "decision", "preference", "user_input", "code_change"})
# The failures that these mention were fixed.
PAST_TYPES = frozenset({"solution", "outcome"})
# Reports of workers: nobody else in the session has seen the work.
REPORT_TYPES = RESULT_TYPES | {"solution", "blocker"}
# The source of items that no worker wrote.
QUEEN = "queen"
# A summary needs the purpose and the last result; two more are outcomes.
LAST_RESULTS = 3
# So many checks, the last ones, are results by themselves.
MOST_CHECKS = 3
# So many sentences of the last result say how the work came out.
LAST_SENTENCES = 3
REQUEST_CHARS = 400
# "Done." says too little.
LEAST_FRAME_WORDS = 2
LEAST_GOAL_WORDS = 3
# A sentence of these kinds in an item of high relevance binds later work.
BINDING_KINDS = frozenset({"constraint", "decision", "blocker"})
# A request of a person in sentences of these kinds binds, too.
ASKED_KINDS = frozenset({"constraint", "decision", "preference"})
# Statements that the fidelity gate requires come first, in its order.
REQUIRED = {"constraint": RULES, "decision": DECIDES, "blocker": BLOCKS}
_NEGATIONS = frozenset(
    "not no never none cannot can't don't doesn't didn't won't isn't wasn't without nor neither".split()
)
_NAME = lazy(r"(?<=[a-z,'’] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|\"[^\"]{2,60}\"")
_CHECK = lazy(
    r"Ran `[^`]*\b(?:\w*tests?|pytest|tox|jest|vitest|check|lint\w*|golangci-lint|mypy|ruff|tsc|eslint|build|vet|clippy|verify|commit|push|pr create)\b[^`]*`[^:]*: \S"
)
_AHEAD = lazy(
    rf"\W*(?:the )?(?:{NEXT}(?: steps?)?\b|remaining\b|{TO_DO}|still (?:open|to do|missing|left|needs?)\b|not yet\b|when ready\b|left to do\b)",
    re.IGNORECASE,
)
_POINTER = lazy(r"\W*\w*:?/|\W*$")
_QUESTION_MARK = lazy("[?？]")
_REMARK = lazy(
    r"(?:you|your|that|that's|this|sounds|it sounds|it's|glad|hope|can't wait|keep|enjoy)\b",
    re.IGNORECASE,
)
_DATED = lazy(
    r"\b(?:yesterday|tonight|tomorrow|ago|recently|lately"
    r"|(?:last|next|this|past) (?:night|week|weekend|month|year|spring|summer|fall|winter|\w+day|mon|tues?|wed|thurs?|fri|sat|sun))\b",
    re.IGNORECASE,
)
# English words of every conversation, which say little about this one: doing, saying and feeling, praising, time and amount, empty nouns.
_WORDS = (
    "get got getting go going gone went come came make made making take took taking give gave given put keep kept let use used using try tried trying "
    "start started begin began need want wanted like love loved enjoy enjoyed look looked looking see saw seen find found know knew think thought feel felt "
    "say said tell told talk talking hear heard ask asked mean guess hope hoping wish believe seem seems sound sounds remember forget wonder happen happened "
    "help helped helping show showed work working works set check share shared sharing bring brought leave left turn turned become became stay keep continue "
    "live move pick choose call run do done able ready sure "
    "good great nice cool awesome amazing wonderful fantastic incredible lovely beautiful perfect best better happy glad excited exciting fun proud special "
    "important interesting hard easy big small little new old nice real different same right wrong true main own whole full free "
    "thanks thank please sorry welcome congrats yes yeah no wow hey hi hello okay bye "
    "really very much many lot lots bit more most less least quite pretty super always often sometimes usually still already yet ever maybe perhaps even "
    "actually definitely totally absolutely probably especially exactly just only almost together around away back "
    "time times day days today tonight week weekend year years now then soon later lately recently ago long last next first second once again while "
    "thing things something anything everything nothing stuff way ways kind sort type part side point case lot place one two some any every each all both "
    "someone anyone everyone people person guys folks man life world end idea reason chance moment "
    "far such another other others else than whatever gonna wanna gotta since until however though although instead must need there's here's "
    "don't doesn't didn't can't won't isn't it's that's i'm i've i'll i'd you're you've you'll he's she's we're we've they're let's what's how's".split()
)
COMMON = frozenset(map(stem, _WORDS))


class Weight(NamedTuple):
    """The worth of a clause, and its cost."""

    tier: int
    factor: float
    cost: int
    terms: dict[str, float]
    leans_on: int


def weigh_clauses(clauses: Sequence[Clause], handoff: Mapping[str, Any], *, count: Counter) -> list[Weight]:
    """Return the weight of every clause, in order."""
    items = handoff["items"]
    signals = [_signal(signal) for signal in handoff["signals"]]
    said = [tuple(words(clause.text)) for clause in clauses]
    terms = [_terms(clause.text, its) for clause, its in zip(clauses, said, strict=True)]
    spread = Tally(term for its in terms for term in its)
    # Protected content is in the session already.
    seen = {
        tuple(words(sentence)) for entry in handoff["protected"] for sentence in sentences(entry["content"])
    }
    wanted = {its for clause, its in zip(clauses, said, strict=True) if clause.required}
    met: set[tuple[str, ...]] = set()
    # The first request, what changed most and the last result are the frame of the summary.
    opening = [one for one in clauses if one.leads and not one.speaker]
    asked = [one.place for one in opening if items[one.item]["type"] in REQUEST_TYPES and may_ask(one.text)]
    done = [one.place for one in opening if is_result(items[one.item]) and may_frame(one.text)]
    last = clauses[done[-1]].item if done else -1
    early = [one.place for one in clauses if one.item == last and one.begins and may_frame(one.text)]
    asked.sort(key=lambda place: not names_goal(clauses[place].text))
    changed = [place for place in done if rate_change(clauses[place].text) > LEAST_CHANGE]
    best = sorted(changed, key=lambda place: (-rate_change(clauses[place].text), -place))[:1]
    frame = {*asked[:1], *done[-1:], *best}
    checks = [one.place for one in clauses if items[one.item]["type"] == "command" and is_check(one.text)]
    near = {*checks[-MOST_CHECKS:], *done[-LAST_RESULTS:], *early[:LAST_SENTENCES]}
    weights = []
    for clause, its_words, its_terms in zip(clauses, said, terms, strict=True):
        topical = {term: worth * (1 + TOPIC * math.log(spread[term])) for term, worth in its_terms.items()}
        factor = _factor(clause, items, its_terms, signals)
        # Of two equal clauses, the required one is kept.
        again = its_words in met if clause.required else its_words in seen or its_words in wanted
        tier = DEPENDENT
        if its_words and not again:
            tier = _tier(clause, items[clause.item], named="required" in handoff, last=clause.item == last)
        if tier < DEPENDENT and not clause.required and clause.place in frame:
            tier = FRAMES
        if (tier < DEPENDENT and clause.place in near) or (clause.is_ahead and not again):
            tier = min(tier, BINDS)
        seen.add(its_words)
        if clause.required:
            met.add(its_words)
        cost = count(clause.text) + (JOINT_TOKENS if clause.leans_on >= 0 else STATEMENT_TOKENS)
        weights.append(Weight(tier, factor, cost, topical, clause.leans_on))
    return weights


def may_frame(text: str) -> bool:
    """Return whether the opening `text` of an item is neither too long nor too short for a summary."""
    return len(text) <= FRAME_CHARS and text[-1] != ":" and len(text.split()) >= LEAST_FRAME_WORDS


def may_ask(text: str) -> bool:
    """Return whether the opening `text` of a request is neither too long nor too short for a summary."""
    return len(text) <= REQUEST_CHARS and len(text.split()) >= LEAST_FRAME_WORDS


def names_goal(text: str) -> bool:
    """Return whether a request says what it is for, rather than only where to look.

    >>> names_goal("/review https://example.org/pull/2"), names_goal("Make the import fast.")
    (False, True)
    """
    return sum(not _POINTER.match(word) for word in text.split()) >= LEAST_GOAL_WORDS


def is_result(item: Mapping[str, Any]) -> bool:
    """Return whether `item` states a result of the work, rather than asks how to go on."""
    return item["type"] in RESULT_TYPES and not is_question(item["content"])


def is_check(text: str) -> bool:
    """Return whether `text`, the note of a command, shows what a check or a commit came to.

    >>> is_check("Ran `pytest -q`: 12 passed"), is_check("Ran `pytest -q`"), is_check("Ran `ls`: a b")
    (True, False, False)
    """
    return _CHECK.match(text) is not None


def is_ahead(text: str) -> bool:
    """Return whether `text`, from the last result, says what is left to do."""
    return _AHEAD.match(text) is not None


def is_report(item: Mapping[str, Any]) -> bool:
    """Return whether `item` is the report of a worker."""
    by = item["metadata"]
    return item["type"] in REPORT_TYPES and bool(by.get("caste") or by.get("source", QUEEN) != QUEEN)


def _terms(text: str, said: Sequence[str]) -> dict[str, float]:
    terms: dict[str, float] = {}
    for word in said:
        if word in _NEGATIONS:
            terms[word] = NEGATION
        elif any(map(str.isdigit, word)):
            terms[word] = NUMBER
        elif word not in STOPWORDS:
            root = stem(word)
            terms[root] = COMMON_WORD if root in COMMON else RARE
    for found in _NAME.finditer(text):
        for root in stems(found.group()):
            terms[root] = NAME
    named = identifiers(text)
    for name in (*named.paths, *named.commands, *named.errors, *named.identifiers, *named.urls):
        terms[f"={name}"] = max(IDENTIFIER, IDENTIFIER_PER_CHAR * len(name))
    return terms


def _factor(
    clause: Clause,
    items: Sequence[Mapping[str, Any]],
    terms: Mapping[str, float],
    signals: Sequence[tuple[str, float, frozenset[str]]],
) -> float:
    item = items[clause.item]
    factor = TYPE_FACTORS.get(item["type"], 1.0) * KIND_FACTORS[clause.kind]
    factor *= RELEVANCE_AT_ZERO + float(item["metadata"].get("relevance_score", 0.5))
    factor *= 1 + RECENCY * clause.item / len(items)
    if clause.speaker:
        factor *= QUESTION if is_question(clause.text) else REMARK if _REMARK.match(clause.text) else 1
        factor *= DATED if _DATED.search(clause.text) else 1
        answers = clause.item and _QUESTION_MARK.search(items[clause.item - 1]["content"])
        factor *= ANSWER if answers else 1
    raised = 1.0
    for signal, strength, wanted in signals:
        # A signal raises a clause by the share of its words in it.
        shared = sum(root in terms for root in wanted)
        if signal != "REDIRECT" or clause.kind == "constraint" or _NEGATIONS & terms.keys():
            raised += STEERED * strength * shared / max(1, len(wanted))
    return factor * raised


def is_question(text: str) -> bool:
    """Return whether `text` asks; in a dialogue, whether its answer does."""
    return text.rstrip().endswith(("?", "？"))


def _tier(clause: Clause, item: Mapping[str, Any], *, named: bool, last: bool) -> int:
    if clause.required:
        return REQUIRED.get(clause.required, RULES)
    if clause.kind == "chatter":
        return FILLS if clause.speaker else DEPENDENT
    # What a worker asked is answered by now, except at the end.
    if item["type"] in REPORT_TYPES and not clause.speaker and not last and is_question(clause.text):
        return DEPENDENT
    opens = clause.leads and item["type"] in LEADING_TYPES
    if clause.speaker or clause.leans_on >= 0:
        return OPENS if opens else WORTH
    if opens and item["type"] in FILE_TYPES:
        return TOUCHED
    high = item["metadata"].get("relevance_score", 0.5) > HIGH_RELEVANCE
    past = clause.kind == "blocker" and item["type"] in PAST_TYPES
    binds = (
        (item["type"] in REQUEST_TYPES and clause.kind in ASKED_KINDS)
        or (clause.leads and is_report(item))
        # If the hand-off names the required statements, nothing else binds.
        or (
            not named
            and (item["type"] in BINDING_TYPES or (high and clause.kind in BINDING_KINDS and not past))
        )
    )
    return BINDS if binds else OPENS if opens else WORTH


def _signal(signal: Mapping[str, Any]) -> tuple[str, float, frozenset[str]]:
    strength = float(signal.get("effective_strength", signal["strength"]))
    return signal["type"], strength, frozenset(stems(str(signal["metadata"].get("context", ""))))


def ordered(weights: Sequence[Weight]) -> list[int]:
    """Return the places of `weights` in the order in which they are worth keeping."""
    said: dict[str, float] = defaultdict(lambda: 1.0)
    dependents: dict[int, list[int]] = defaultdict(list)
    for place, weight in enumerate(weights):
        if weight.leans_on >= 0:
            dependents[weight.leans_on].append(place)
    chosen: dict[int, None] = {}
    heap = [(*_rank(place, weights, chosen, said), place) for place in range(len(weights))]
    heap = [rank for rank in heap if rank[0] < DEPENDENT]
    heapq.heapify(heap)
    while heap:
        place = heapq.heappop(heap)[2]
        if place in chosen:
            continue
        rank = (*_rank(place, weights, chosen, said), place)
        if heap and rank > heap[0]:
            heapq.heappush(heap, rank)
            continue
        for taken in _chain(place, weights, chosen):
            chosen[taken] = None
            for term in weights[taken].terms:
                said[term] *= REPEATED
            # A clause that depends on it costs less from now on.
            for follower in dependents[taken]:
                if follower not in chosen and weights[follower].tier < DEPENDENT:
                    heapq.heappush(heap, (*_rank(follower, weights, chosen, said), follower))
    return list(chosen)


def _rank(
    place: int, weights: Sequence[Weight], chosen: Container[int], said: Mapping[str, float]
) -> tuple[int, float]:
    gain = 0.0
    cost = 0
    for link in _chain(place, weights, chosen):
        weight = weights[link]
        gain += weight.factor * sum(worth * said[term] for term, worth in weight.terms.items())
        cost += weight.cost
    return weights[place].tier, -gain / cost


def _chain(place: int, weights: Sequence[Weight], chosen: Container[int]) -> list[int]:
    """Return `place` behind every clause that it depends on and that is not chosen yet."""
    links = []
    while place >= 0 and place not in chosen:
        links.append(place)
        place = weights[place].leans_on
    return links[::-1]
