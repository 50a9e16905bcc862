"""Similarity: whether two statements say the same thing, or opposite things, without a model.

A statement is reduced to a *fingerprint*: weighted stems, each with a sign, plus its numbers and names.
``similarity`` compares the topics and halves the score if a sign, number or name differs, so that "use X" never
equals "do not use X", nor "timeout 30" "timeout 60". Symmetric and reflexive, exactly: weights are whole numbers.

    topic = shared / (shared + (only_a + only_b) / 2 + min(only_a, only_b))

The last term separates a word that was *replaced* (another thing) from one that was *added* (more detail).

Signs are those of the clause: "never", "avoid" and "disable" negate a clause, two negations cancel, and the words
after "instead of" or ", not" are negated alone. What an act is done "without" decides, if both statements name it:
"never push without a review" demands a review, and contradicts "push without a review". Words after "because" are reasons: they weigh little, and their
numbers and negations decide nothing. Numbers are scaled by their unit ("1 minute" is "60 seconds"); paths,
identifiers, versions and proper names are *names*.

The word lists at the end are short on purpose: function words of the common languages of notes, and the verbs and
adjectives of instructions. A missing word makes two statements different, which loses a repetition; a wrong one
would merge statements that differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from aether.text.regex import lazy
from aether.text.words import STOPWORDS, UNSPACED, stem, words

# Tuned on the even half of tests/text/similarity_pairs.json, reported on the odd half.
SAME_AT = 0.72
# Opposites share less: "enable" and "remove" are words of their own beside the topic.
CONTRADICTS_AT = 0.55
# Share of the common topic that must have the opposite sign; below it only an aside is negated.
OPPOSED_SHARE = 0.4
# Share of a statement that a longer one must contain to say the same among other things, and how much longer it may
# be: a long text contains any few words by chance.
SUPPORT_AT = 0.85
SUPPORT_SPAN = 3
# A lighter statement (two words with a topic weigh 20) is contained in too many others by chance.
LEAST_SUPPORT_WEIGHT = 20
# Most pairs compared when all statements of an index are compared with all: about a second. Only thousands of
# statements, or hundreds without a rare word, reach it.
MOST_PAIRS = 200_000
# Score of a pair whose topics are equal but whose signs, numbers or names are not.
DISAGREEMENT = 0.5


class Index(NamedTuple):
    """Statements prepared by `index` for `nearest`, `opposites` and the other searches."""

    fingerprints: list[Fingerprint]
    postings: dict[str, list[int]]
    """The statements with each stem."""
    rare: dict[str, list[int]]
    """The statements of which each stem is among the rarest; an equal statement shares one of those."""


class Near(NamedTuple):
    """A statement of an index that is similar to the query."""

    at: int
    similarity: float


def similarity(a: str, b: str) -> float:
    """Return how much `a` and `b` say the same, from 0 to 1; at least ``SAME_AT`` counts as the same.

    >>> similarity("Use atomic writes for state files", "State files must be written atomically") > 0.9
    True
    """
    return fingerprint_similarity(fingerprint(a), fingerprint(b))


def same(a: str, b: str) -> bool:
    """Return whether `a` and `b` say the same thing.

    >>> same("timeout 30", "timeout 60"), same("Retry three times", "retry 3 times")
    (False, True)
    """
    return similarity(a, b) >= SAME_AT


def contradicts(a: str, b: str) -> bool:
    """Return whether `a` and `b` are about one thing and cannot both hold.

    >>> contradicts("Use tabs", "Never use tabs"), contradicts("Use tabs", "Use locks")
    (True, False)
    """
    return fingerprints_contradict(fingerprint(a), fingerprint(b))


def fingerprint_similarity(a: Fingerprint, b: Fingerprint) -> float:
    """Return the similarity of two statements by their fingerprints."""
    if a.plain == b.plain:
        return 1.0
    topic = _topic(a, b)
    agree = a.numbers == b.numbers and a.question == b.question and not (_only_in(a, b) or _only_in(b, a))
    if agree and not _other_names(a, b) and not _opposed(a, b):
        return topic
    return topic * DISAGREEMENT


def fingerprints_contradict(a: Fingerprint, b: Fingerprint) -> bool:
    """Return whether two statements contradict each other, by their fingerprints."""
    if a.question or b.question or _other_names(a, b) or _topic(a, b) < CONTRADICTS_AT:
        return False
    # "Never push without a review" says nothing of whether to push.
    if (a.conditional and _only_in(a, b)) or (b.conditional and _only_in(b, a)):
        return False
    # The port of the API and that of the site are two values.
    other_number = bool(a.numbers - b.numbers) and bool(b.numbers - a.numbers) and not _replaced(a, b)
    # What is forbidden twice is no contradiction, though "never delete" reads as "keep".
    opposed = _opposed(a, b) and not (_FORBIDS.match(a.plain) and _FORBIDS.match(b.plain))
    # "not 30" and "60" agree: two differences cancel.
    return opposed != other_number


def index(statements: Iterable[str]) -> Index:
    """Return `statements` as an index for `nearest` and the other searches."""
    gists = [fingerprint(statement) for statement in statements]
    postings: dict[str, list[int]] = defaultdict(list)
    rare: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(gists):
        for term in each.weights or (each.plain,):
            postings[term].append(at)
    for at, each in enumerate(gists):
        for term in _rarest(each, postings, _share(SAME_AT)):
            rare[term].append(at)
    return Index(gists, dict(postings), dict(rare))


def nearest(statement: str, among: Index | Sequence[str], *, at_least: float = SAME_AT) -> list[Near]:
    """Return the statements in `among` with a similarity of `at_least`, the most similar first.

    Only statements that share one of their rarest stems are compared: the common stems alone cannot reach the score.
    Exact unless so many share one that all pairs are more than ``MOST_PAIRS``.
    """
    found = among if isinstance(among, Index) else index(among)
    asked = fingerprint(statement)
    near = [
        Near(at, fingerprint_similarity(asked, found.fingerprints[at]))
        for at in _candidates(asked, found, at_least)
        # A statement on another topic need not be compared in full.
        if asked.plain == found.fingerprints[at].plain or _topic(asked, found.fingerprints[at]) >= at_least
    ]
    return sorted(
        (each for each in near if each.similarity >= at_least), key=lambda each: (-each.similarity, each.at)
    )


def opposites(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of the statements that contradict `statement`, in order."""
    found = among if isinstance(among, Index) else index(among)
    asked = fingerprint(statement)
    candidates = sorted(_candidates(asked, found, CONTRADICTS_AT))
    return [at for at in candidates if fingerprints_contradict(asked, found.fingerprints[at])]


def supporting(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of the statements that say `statement`, alone or among other things.

    >>> supporting("Amounts are integer cents", ["VAT amounts are integer cents too, no floats", "Amounts are floats"])
    [0]
    """
    found = among if isinstance(among, Index) else index(among)
    asked = fingerprint(statement)
    longer = islice(_reached(asked, found.postings, SUPPORT_AT), _most(found))
    there = {at for at in longer if _supports(found.fingerprints[at], asked)}
    return sorted(there | {near.at for near in nearest(statement, found)})


def implied_by(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of what `statement` says, alone or among other things, the most similar first."""
    found = among if isinstance(among, Index) else index(among)
    asked = fingerprint(statement)
    near = [each.at for each in nearest(statement, found)]
    rare = chain.from_iterable(found.rare.get(term, ()) for term in asked.weights)
    shorter = {
        at for at in islice(rare, _most(found)) if at not in near and _supports(asked, found.fingerprints[at])
    }
    return near + sorted(shorter, key=lambda at: (-found.fingerprints[at].total, at))


def _share(at_least: float) -> float:
    """Return the share that two statements must have in common, by the formula of the topic."""
    return at_least / (2 - at_least)


def _most(found: Index) -> int:
    """Return the most statements of an index to compare one with."""
    return max(1, MOST_PAIRS // max(1, len(found.fingerprints)))


def _candidates(asked: Fingerprint, found: Index, at_least: float) -> set[int]:
    if at_least < SAME_AT:
        return _reach(asked, found, _share(at_least))
    reached = islice(_reached(asked, found.postings, _share(at_least), found.rare), _most(found))
    # The common part weighs no more than the lighter of the two.
    least, most = asked.total * _share(at_least), asked.total / _share(at_least)
    return {
        at
        for at in reached
        if least <= found.fingerprints[at].total <= most and found.fingerprints[at].numbers == asked.numbers
    }


def _reach(asked: Fingerprint, found: Index, share: float) -> set[int]:
    """Return the positions of the statements that may contain `share` of the weight of `asked`."""
    return set(islice(_reached(asked, found.postings, share), _most(found)))


def _reached(
    asked: Fingerprint,
    postings: Mapping[str, list[int]],
    share: float,
    lists: Mapping[str, list[int]] | None = None,
) -> Iterator[int]:
    """Yield the positions that share one of the rarest stems of `asked`, each once, the rarest stem first."""
    seen: set[int] = set()
    for term in _rarest(asked, postings, share):
        for at in (lists or postings).get(term, ()):
            if at not in seen:
                seen.add(at)
                yield at


def _rarest(asked: Fingerprint, postings: Mapping[str, list[int]], share: float) -> Iterator[str]:
    """Yield the rarest stems of `asked`, until the rest weighs less than `share` of it."""
    left, needed = asked.total, asked.total * share
    if not asked.weights:
        yield asked.plain
    for term in sorted(asked.weights, key=lambda term: (len(postings.get(term, ())), term)):
        if left < needed:
            break
        yield term
        left -= asked.weights[term]


def _containment(a: Fingerprint, b: Fingerprint) -> float:
    if a.plain == b.plain:
        return 1.0
    if (
        not a.weights
        or not a.numbers <= b.numbers
        or not a.names <= b.names | b.weights.keys()
        or _opposed(a, b)
        or (b.conditional and _only_in(b, a))
    ):
        return 0.0
    return _mentioned(a, b) / a.total


def _supports(longer: Fingerprint, a: Fingerprint) -> bool:
    """Return whether `longer` says `a` among a few other things."""
    if (
        a.total < LEAST_SUPPORT_WEIGHT
        or longer.total > SUPPORT_SPAN * a.total
        or a.question
        or longer.question
    ):
        return False
    return _mentioned(a, longer) >= SUPPORT_AT * a.total and _containment(a, longer) >= SUPPORT_AT


def _mentioned(a: Fingerprint, b: Fingerprint) -> int:
    return sum(weight for term, weight in a.weights.items() if term in b.weights)


def _topic(a: Fingerprint, b: Fingerprint) -> float:
    if len(a.weights) > len(b.weights):
        a, b = b, a
    shared = 0
    others = b.weights
    for term, weight in a.weights.items():
        if term in others:
            other = others[term]
            shared += min(weight, other)
    if not shared:
        return 0.0
    only_a, only_b = a.total - shared, b.total - shared
    return shared / (shared + (only_a + only_b) / 2 + min(only_a, only_b))


def _opposed(a: Fingerprint, b: Fingerprint) -> bool:
    shared = opposed = 0
    # What is done without something is about that thing, however many words name the act.
    deciding = (a.lacking | b.lacking) & a.weights.keys() & b.weights.keys()
    for term, weight in a.weights.items():
        if term in (deciding or b.weights):
            common = min(weight, b.weights[term])
            shared += common
            opposed += common if a.signs[term] != b.signs[term] else 0
    return opposed > 0 and opposed >= OPPOSED_SHARE * shared


def _only_in(a: Fingerprint, b: Fingerprint) -> bool:
    """Return whether `a` names something to be lacking of which `b` says nothing."""
    return bool(a.lacking) and a.lacking.isdisjoint(b.weights)


def _replaced(a: Fingerprint, b: Fingerprint) -> bool:
    """Return whether each of two statements has a word of its own, so that they are about two things."""
    return all(
        any(weight >= _CONTENT for term, weight in one.weights.items() if term not in other.weights)
        for one, other in ((a, b), (b, a))
    )


def _other_names(a: Fingerprint, b: Fingerprint) -> bool:
    only_a = {name for name in a.names - b.names if name not in b.weights}
    only_b = {name for name in b.names - a.names if name not in a.weights}
    return bool(only_a) and bool(only_b)


# Longer texts are not cached: 8,192 of them could hold gigabytes.
CACHED_CHARS = 1_000

# Weights in tenths of a content word, whole so that sums do not depend on their order.
_CONTENT = 10
_LIGHT = 3
# After "because": two people may decide the same for different reasons.
_REASON = 2
# After "instead of": the rejected option counts less than the chosen one.
_REJECTED = 7
# Pairs of characters with kana are mostly endings and particles.
_KANA = 2
# A path or identifier counts a little more than one word, however many pieces it has.
_NAME = 12
# A float represents this many digits exactly.
_EXACT_DIGITS = 15

_SCAN = lazy(
    r"""(?P<name>\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"'`)\]]+
        |\b\d{4}-\d\d-\d\d\b
        |(?<![^\s(\[,;:])--?[A-Za-z][\w-]*
        |\#\d+\b
        |(?<![\w-])(?:[a-z]{1,20}-){0,3}(?:eu|us|ap|ca|sa|me|af|(?:north|south)?(?:east|west)|north|south|central
            |node|host|server|shard|replica|zone|region|rack|cluster|db|web|prod|staging)-\d+\b
        |\b(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{7,64}\b
        |\b[a-z](?:\+\+|\#)
        |\b\d+(?:\.\d+){2,}(?:[-+]?[a-z]\w*)?\b)
    |(?P<path>(?<![\w.@*/-])(?:~|\.{1,2})?(?:[\w.@*-]*/)+(?:[\w.@*-]*[\w*-])?)
    |v(?=\d)(?P<version>\d+(?:\.\d+)*)\b
    |(?P<number>(?:(?<![\w)\]])-)?(?<![^\W\d_])\d+(?:[,_]\d{3}\b)*(?:\.\d+)?%?)
    |(?P<dotted>\b[^\W\d][\w-]{0,80}(?:\.[^\W\d]\w{0,80})+\b)
    |(?P<word>[^\W_](?:[\w'’]*\w)?|_\w+)
    |(?P<mark>[¬⊖∵])
    |(?P<stop>[.;!?\n。;!?]+)
    |(?P<comma>[,,、(])""",
    re.VERBOSE | re.IGNORECASE,
)
_YEAR = lazy(r"(?:19|20)\d\d")
_FORBIDS = lazy(r"(?:please |and |also )*(?:never|do not|don['’]t|must not|no)\b")
_IDENTIFIER = lazy(r"\w_\w|^_|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]")
_FILE_END = lazy(r"\.[A-Za-z]\w*$")
_UNSPACED_RUN = lazy(f"([{UNSPACED}]+)")
_KANA_IN = lazy("[\u3041-\u309f]")
_TERM_FOLDS = (("ise", "ize"), ("isation", "ization"), ("our", "or"))


class Fingerprint(NamedTuple):
    """The comparable parts of a statement."""

    weights: dict[str, int]
    total: int
    """Sum of the weights."""
    signs: dict[str, int]
    numbers: frozenset[str]
    names: frozenset[str]
    question: bool
    plain: str
    """The case-folded text: equal where only case, spacing and punctuation at the ends differ."""
    lacking: frozenset[str] = frozenset()
    """The stems after "without"."""
    conditional: bool = False
    """Whether something is forbidden only without something else."""


class _Token(NamedTuple):
    """One token: `kind` is word, name, number, not, against, because, but, stop or comma."""

    kind: str
    text: str


class _Part(NamedTuple):
    """A stretch of tokens with one sign."""

    tokens: list[_Token]
    negated: bool
    weight: int
    lacking: bool = False
    """Whether "without" comes before it."""


def fingerprint(statement: str) -> Fingerprint:
    """Return the fingerprint of `statement`; linear in its length.

    >>> found = fingerprint("Never use more than 4 workers")
    >>> found.signs["worker"], found.numbers
    (-1, frozenset({'4'}))
    """
    make = _fingerprint if len(statement) <= CACHED_CHARS else _fingerprint.__wrapped__
    return make(statement)


@lru_cache(maxsize=8_192)
def _fingerprint(statement: str) -> Fingerprint:
    text = unicodedata.normalize("NFKC", statement)
    weights: dict[str, int] = {}
    signs: dict[str, int] = {}
    numbers: set[str] = set()
    names: set[str] = set()
    lacking: set[str] = set()
    conditional = False
    for part in _parts(list(_tokens(text))):
        main = part.weight > _REASON
        found = list(_terms(part, names if main else set(), numbers if main else set()))
        turns = part.negated + sum(turn < 0 for _, _, turn in found)
        if part.lacking:
            lacking |= {term for term, weight, _ in found if term and weight > _LIGHT}
            conditional = conditional or (part.weight == _CONTENT and bool(part.tokens))
        for term, weight, _ in found:
            if term and weight > weights.get(term, 0):
                weights[term] = weight
                signs[term] = -1 if turns % 2 and main else 1
    return Fingerprint(
        weights,
        sum(weights.values()),
        signs,
        frozenset(numbers),
        frozenset(names),
        text.rstrip(" \"')*_`").endswith("?"),
        " ".join(text.casefold().split()).strip(" .!;:,") or text,
        frozenset(lacking),
        conditional,
    )


def _tokens(text: str) -> Iterator[_Token]:
    for pattern, written in PHRASES:
        text = pattern.sub(written, text)
    text = _UNSPACED_RUN.sub(r" \1 ", text.replace("`", ""))
    inside = re.findall(
        r"(?<![.!?:;\n])[ (]([A-Z][\w-]*)", text
    )  # with a capital, but not first in a sentence
    proper = frozenset(inside if len(inside) * 2 <= len(text.split()) else ())
    for found in _SCAN.finditer(text):
        kind, value = str(found.lastgroup), found.group()
        if kind == "path":
            yield from _path(value)
        elif kind == "word":
            yield from _word(value, proper)
        elif kind == "mark":
            yield _Token({"¬": "not", "⊖": "against"}.get(value, "because"), value)
        elif kind == "version":
            yield _Token("number" if value.count(".") < 2 else "name", value[1:])
        elif kind == "dotted":
            yield _Token("name", value.casefold())
        else:
            yield _Token(kind, value)


def _path(value: str) -> Iterator[_Token]:
    pieces = value.strip("/").split("/")
    if value[0] in "/.~" or len(pieces) > 2 or value.endswith("/") or _FILE_END.search(value):
        yield _Token("name", value)
    else:
        # "read/write" is two words.
        for piece in pieces:
            yield from _word(piece, frozenset())


def _word(value: str, proper: frozenset[str]) -> Iterator[_Token]:
    folded = value.casefold().replace("’", "'")
    if _IDENTIFIER.search(value):
        yield _Token("name", folded)
    elif folded in NOT or folded.endswith("n't"):
        yield _Token("not", folded)
    elif folded in WITHOUT:
        yield _Token("without", folded)
    elif folded in BUT:
        yield _Token("but", folded)
    elif folded in BECAUSE:
        yield _Token("because", folded)
    elif folded in NUMBER_WORDS:
        yield _Token("number", str(NUMBER_WORDS[folded]))
    else:
        for word in words(value):
            yield _Token("number" if word.isdecimal() else "proper" if value in proper else "word", word)


def _parts(tokens: list[_Token]) -> Iterator[_Part]:
    """Yield the stretches of `tokens` that share one sign and weight, without the markers."""
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and tokens[end].kind not in ("stop", "but"):
            end += 1
        yield from _clause(tokens[at:end])
        at = end + 1


def _clause(tokens: list[_Token]) -> list[_Part]:
    """Return the assertion, what it lacks, the rejections and the reasons of one clause."""
    main: list[_Token] = []
    lacked: list[_Token] = []
    rejected: list[_Token] = []
    reason: list[_Token] = []
    into = main
    negated = forbids_lack = prefers = False
    before = _Token("stop", "")
    for token in tokens:
        if token.kind == "because":
            into = reason
        elif token.kind == "against" or _rejects(token, before, main, prefers):
            into = rejected
        elif token.kind == "without":
            # "Never deploy without review" asks for review.
            negated, forbids_lack, into = False, forbids_lack or negated, lacked
        elif token.kind == "not":
            negated = negated or into is main
        elif token.kind == "comma":
            # "Because the disk is slow, use a cache": the main clause starts only here.
            into = into if main else main
        else:
            into.append(token)
            prefers = prefers or token.text in PREFER
        before = token
    return [
        _Part(main, negated, _CONTENT),
        _Part(lacked, not forbids_lack, _CONTENT if forbids_lack else _REJECTED, lacking=True),
        _Part(rejected, not negated, _REJECTED),
        _Part(reason, False, _REASON),
    ]


def _rejects(token: _Token, before: _Token, main: list[_Token], prefers: bool) -> bool:
    """Return whether the words after `token` are the option that the clause rejects."""
    if token.kind == "not":
        aside = token.text == "not" or before.kind == "comma"
        return bool(main) and aside and token.text in NOUN_NOT and before.text not in BEFORE_NOT
    return prefers and before.text not in PREFER and token.text in ("over", "to")


def _terms(part: _Part, names: set[str], numbers: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield term, weight and turn of each token of `part`; add its names and numbers to those sets."""
    tokens = part.tokens
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else _Token("", "")
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind == "number" and (before.text in LABELS or _is_year(tokens, at, after)):
            names.add(f"{before.text} {token.text}")
            yield f"{before.text} {token.text}", part.weight, 1
        elif token.kind == "number":
            numbers.add(_scaled(token.text, after))
        elif token.kind == "name":
            names.add(token.text)
            pieces = [stem(piece) for piece in words(token.text)] or [token.text]
            yield from (
                (piece, max(1, _NAME * part.weight // (_CONTENT * len(pieces))), 1) for piece in pieces
            )
        elif not (before.kind == "number" and token.text in UNITS):
            if token.kind == "proper":
                names.add(_term(token.text)[0])
            yield from _weighed(token.text, part.weight)


def _is_year(tokens: Sequence[_Token], at: int, after: str) -> bool:
    """Return whether the number at `at` is a year ("invoices of 2024 are locked"), before the text `after`, and no amount."""
    is_amount = at > 1 and tokens[at - 2].text in AMOUNTS
    follows = at > 0 and tokens[at - 1].text in BEFORE_YEAR and not is_amount
    return follows and bool(_YEAR.fullmatch(tokens[at].text)) and (not after or after in STOPWORDS)


def _weighed(word: str, weight: int) -> Iterator[tuple[str, int, int]]:
    term, turn = _term(word)
    if word in TURNS:
        yield "", 0, -1
    elif word in STOPWORDS or term in _lexicon().empty:
        return
    elif term in _lexicon().light:
        yield term, max(1, weight * _LIGHT // _CONTENT), turn
    else:
        yield term, max(1, weight * _KANA // _CONTENT) if _KANA_IN.search(word) else weight, turn


@lru_cache(maxsize=100_000)
def _term(word: str) -> tuple[str, int]:
    """Return the term by which `word` is compared, and -1 if the word is its opposite, else 1."""
    if len(word) > 5:
        for british, american in _TERM_FOLDS:
            word = re.sub(f"{british}(?=d$|s$|$)", american, word)
    found = stem(word)
    folded = _lexicon().equal.get(found, found)
    return _lexicon().opposite.get(found) or _lexicon().opposite.get(folded, (folded, 1))


def _scaled(number: str, unit: str) -> str:
    """Return `number` times its unit; as text, because long ids are numbers too and may not be rounded."""
    plain = number.strip("%").replace(",", "").replace("_", "")
    scale = UNITS.get(unit, 1.0)
    if len(plain) > _EXACT_DIGITS:
        return plain
    return f"{float(plain) * scale:.15g}"


class _Lexicon(NamedTuple):
    """The lexicon by stems."""

    equal: dict[str, str]
    opposite: dict[str, tuple[str, int]]
    light: frozenset[str]
    empty: frozenset[str]


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    # Stemmed on first use: the stemmer is an import that not every caller pays for.
    equal = {stem(word): stem(head) for word, head in EQUAL.items()}
    opposite = {
        stem(word): (equal.get(stem(head), stem(head)), turn) for word, (head, turn) in OPPOSITES.items()
    }
    return _Lexicon(equal, opposite, frozenset(map(stem, LIGHT)), frozenset(map(stem, EMPTY)))


NOT = frozenset(
    "not never no none nothing nobody neither nor cannot cant dont doesnt wont nicht kein keine keinen keiner "
    "keinem nie niemals pas jamais aucun aucune nunca jamás nada ningún ninguna non mai não nao нет не нельзя "
    "никогда ни nie nigdy nein niet geen nooit inte aldrig ingen ikke değil asla لا لم لن ليس לא אין नहीं मत "
    "không đừng chớ tidak jangan 않는다 않습니다 않는 마세요 마라 말것 없다".split()
)
# These can also reject a noun ("tabs, not spaces").
NOUN_NOT = frozenset("not nicht pas non no não не niet inte ikke không".split())
WITHOUT = frozenset("without ohne sans sin senza sem без bez zonder utan 없이".split())
BUT = frozenset("but however yet whereas aber mais pero ma но maar men".split())
BECAUSE = frozenset("because since weil denn da parce car porque perché потому omdat eftersom".split())
PREFER = frozenset(
    "prefer prefers preferred choose chose chosen pick picked favor favour favored favoured select".split()
)
# Words after which "not" negates the clause; elsewhere it rejects the noun that follows ("spaces, not tabs").
BEFORE_NOT = frozenset(
    "do does did is are was were be been being am must should shall will would can could may might has have had "
    "to please we it they you i and or need ought".split()
)

# These weigh little: any two instructions share them.
LIGHT = frozenset(
    "use make do set get put let keep go ensur need want chang updat add one new now current alway ever everi each "
    "all any onli still also must should requir have system way thing type kind good run work instead prefer choos favor".split()
)
# These weigh nothing: they introduce a statement.
EMPTY = frozenset(
    "decid decis agre note rememb rememb remember pleas team user must should alway ever need ought ensur sure want "
    "everi each all any anywher as well same actual realli simpli howev therefor thus hence conclus rule polici der within via per onto upon across among while until such like please die das den dem des "
    "ein eine einen le la les un une el los las il lo o os as para pour für per и в на для".split()
)

# Words with one meaning : words with the opposite one; all count as the first word of their line.
_OPPOSITE_PAIRS = """
enable/activate/switchon : disable/deactivate/switchoff
allow/permit/accept/approve : forbid/prohibit/ban/disallow/deny/block/reject/refuse
pass/succeed/success/successful/successfully : fail/failure/break/broke/broken
keep/kept/retain/preserve : remove/delete/drop/discard/erase | include : exclude/omit/skip/ignore
increase/raise/grow : decrease/reduce/lower/shrink | start/begin : stop/halt | open : close
show/display : hide/conceal | lock : unlock | fast/quick/quickly : slow/slowly
safe/safely : unsafe/unsafely | secure/securely : insecure/insecurely | stable : unstable
valid : invalid | required/mandatory/compulsory : optional | possible : impossible | public : private
mutable : immutable | sync/synchronous/synchronously : async/asynchronous/asynchronously
online : offline | present/exist : absent/missing | true : false
automatic/automatically : manual/manually | strict/strictly : lenient/leniently
reliable/reliably : unreliable/flaky/flakily | more : less/fewer | maximum/max : minimum/min
first : last | like/love : dislike/hate | erlauben/erlaubt : verboten/verbieten
aktivieren/aktiviert : deaktivieren/deaktiviert | activer/activez : désactiver/désactivez
activar/activa : desactivar/desactiva
включить/включай/включайте : отключить/отключай/отключайте/выключить
"""
# These negate a clause and are no terms themselves.
TURNS = frozenset(
    "avoid prevent non vermeide vermeiden évite évitez éviter evita evitar evite избегай избегайте".split()
)

_EQUAL = """
use/utilize/employ/adopt/leverage choose/chose/chosen/select/pick/opt verify/check/validate
fix/repair/resolve/solve complete/finish/done create/generate store/save/persist write/written/wrote
fetch/retrieve send/sent run/ran/execute build/built make/made find/found lose/lost
throw/threw/thrown/raise take/took/taken give/gave/given hold/held know/known/knew freeze/froze/frozen
config/configuration/configure repo/repository database/db auth/authentication/authenticate
directory/dir/folder documentation/docs/doc environment/env parameter/param/argument function/func
limit/cap/restrict big/large small/tiny postgres/postgresql javascript/js typescript/ts python/py
kubernetes/k8s twice/2x
"""

PHRASES = tuple(
    (lazy(pattern, re.IGNORECASE), written)
    for pattern, written in (
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]off\b", "disable"),
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]on\b", "enable"),
        (r"\b(?:instead of|rather than|in favou?r of not|anstatt|statt|au lieu de|en lugar de|en vez de|вместо)\b", "⊖"),
        (r"\b(?:in order (?:not )?to|so that|so as to|to (?:avoid|prevent|not)|due to|thanks to|for the sake of|damit|pour éviter|чтобы)\b", "∵"),
        (r"\b(?:no longer|not any ?more)\b", "never"),
        (r"\bnot only\b", " "),
        (r"\b(?:stays?|remains?) (?:exactly |just )?as (?:it|they) (?:is|are|was|were)\b", "never changes"),
        (r"\b(?:has|have|needs?) to pass\b|\bmust pass\b", "must run"),
        (r"\bstick(?:s|ing)? (?:to|with)\b", "prefer"),
        (r"\bwhole (?=cents?\b|numbers?\b|euros?\b)", "integer "),
        (r", (?:but )?please (?=no\b|not\b)", ", "),
        (r"\b(?:under no circumstances|by no means|in no case|at no time)\b", "never"),
        (r"\b(?:(?:it (?:has been|is|was) |we(?:'ve| have)? |they |the team )?(?:decided|agreed)(?: to| that| on)?|decision|entscheidung|décision|decisión|решение|决定|決定)\s*:", " "),
        (r"\bgo(?:es|ing)? with\b|\bsettled? on\b|\bopt(?:ed)? for\b", "use"),
        (r"\b(?:fall|fell|falls) back\b", "fallback"),
        (r"\btime[- ]?outs?\b|\btimed out\b", "timeout"),
        (r"因为|由于|以便|为了|ので|ため", "∵"),
        (r"代替|而不是|ではなく|の代わりに", "⊖"),
        (r"禁止|不允许|不要|不得|不能|不可|不应|切勿|请勿|没有|避免|不|没|勿|别|してはいけない|してはならない|しないでください|しないで|しない|しません|ません|ではない|ない|ไม่|อย่า|ห้าม", "¬"),
        (r"하지\s*(?:마|않|말)\S*", " ¬ "),
        (r"(?:하세요|하십시오|합니다|해야 한다|한다|하기)(?=\s|[.,!]|$)", " "),
        (r"(?<=\d)\s*(?:秒鐘|秒钟|秒間|秒|초)", " seconds "),
        (r"(?<=\d)\s*(?:分钟|分鐘|分間|分|분)", " minutes "),
        (r"(?<=\d)\s*(?:小时|小時|時間|시간)", " hours "),
    )
)  # fmt: skip

# Units, scaled so that "1 minute" is "60 seconds"; 1 for plain counts.
UNITS = {
    **dict.fromkeys("ms msec millisecond milliseconds".split(), 0.001),
    **dict.fromkeys(
        "s sec secs second seconds sekunde sekunden secondes segundos секунд times x".split(), 1.0
    ),
    **dict.fromkeys("min mins minute minutes minuten minutos минут".split(), 60.0),
    **dict.fromkeys("h hr hrs hour hours stunden heures horas часов".split(), 3600.0),
    **dict.fromkeys("day days tage jours días дней".split(), 86_400.0),
    **dict.fromkeys("kb kib k".split(), 1e3),
    **dict.fromkeys("mb mib".split(), 1e6),
    **dict.fromkeys("gb gib".split(), 1e9),
    **dict.fromkeys("percent nd rd th st".split(), 1.0),
}
NUMBER_WORDS = {
    word: number  # "one" is an article too
    for number, word in enumerate("zero - two three four five six seven eight nine ten eleven twelve".split())
    if word != "-"
} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
    "twice": 2,
}
# "Of 2000" after one of these is no year.
AMOUNTS = frozenset("limit budget maximum minimum size chunk chunks batch batches timeout port total".split())
BEFORE_YEAR = frozenset("of in since until im von".split())
# A number after one of these is a name: phase 1 and phase 2 are two things, not two values of one.
LABELS = frozenset(
    "phase step issue task ticket pr line section chapter rfc item bug story sprint milestone level stage part "
    "option test case day week node host server shard replica partition zone region rack cluster tenant customer order invoice".split()
)


EQUAL = {word: line.split("/")[0] for line in _EQUAL.split() for word in line.split("/")}
OPPOSITES = {
    word: (pair.split(" : ")[0].split("/")[0].strip(), turn)
    for pair in _OPPOSITE_PAIRS.replace("\n", "|").strip("|").split("|")
    for side, turn in zip(pair.split(" : "), (1, -1), strict=True)
    for word in side.strip().split("/")
}
