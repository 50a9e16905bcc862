"""Gist: what a statement says, as weighted and signed stems, numbers and names.

Signs are those of the clause: "never", "avoid" and "disable" turn a clause around, two turns undo each
other, and what stands behind "instead of" or ", not" is turned alone. Words behind "because" are
reasons: they weigh little, and their numbers and negations decide nothing. Numbers are scaled by their
unit ("1 minute" is "60 seconds"); paths, identifiers, versions and proper names are *names*.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from aether.text import lexicon
from aether.text.patterns import lazy
from aether.text.words import STOPWORDS, UNSPACED, stem, words

# Longer texts are not cached: 8,192 of them could hold gigabytes.
CACHED_CHARS = 1_000

# Weights in tenths of a content word, whole so that sums do not depend on their order.
_CONTENT = 10
_LIGHT = 3
# Behind "because": two people may decide the same for different reasons.
_REASON = 2
# Behind "instead of": what was rejected says less than what was chosen.
_REJECTED = 7
# Pairs of characters that hold kana are mostly endings and particles.
_KANA = 2
# A path or identifier counts like one word and a bit, however many pieces it has.
_NAME = 12

# A float holds this many digits exactly.
_EXACT_DIGITS = 15

_SCAN = lazy(
    r"""(?P<name>\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"'`)\]]+
        |\b\d{4}-\d\d-\d\d\b
        |(?<![^\s(\[,;:])--?[A-Za-z][\w-]*
        |\#\d+\b
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
_IDENTIFIER = lazy(r"\w_\w|^_|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]")
_FILE_END = lazy(r"\.[A-Za-z]\w*$")
_UNSPACED_RUN = lazy(f"([{UNSPACED}]+)")
_KANA_IN = lazy("[\u3041-\u309f]")
_TERM_FOLDS = (("ise", "ize"), ("isation", "ization"), ("our", "or"))


class Gist(NamedTuple):
    """What is compared of a statement."""

    weights: dict[str, int]
    total: int
    """Sum of the weights."""
    signs: dict[str, int]
    numbers: frozenset[str]
    names: frozenset[str]
    question: bool
    plain: str
    """The case-folded text: equal where only case, spacing and punctuation at the ends differ."""


class _Token(NamedTuple):
    """One token: `kind` is word, name, number, not, against, because, but, stop or comma."""

    kind: str
    text: str


class _Part(NamedTuple):
    """A stretch of tokens with one sign."""

    tokens: list[_Token]
    negated: bool
    weight: int


def gist(statement: str) -> Gist:
    """Return the gist of `statement`; linear in its length.

    >>> found = gist("Never use more than 4 workers")
    >>> found.signs["worker"], found.numbers
    (-1, frozenset({'4'}))
    """
    return _cached(statement) if len(statement) <= CACHED_CHARS else _gist(statement)


@lru_cache(maxsize=8_192)
def _cached(statement: str) -> Gist:
    return _gist(statement)


def _gist(statement: str) -> Gist:
    text = unicodedata.normalize("NFKC", statement)
    weights: dict[str, int] = {}
    signs: dict[str, int] = {}
    numbers: set[str] = set()
    names: set[str] = set()
    for part in _parts(list(_tokens(text))):
        main = part.weight > _REASON
        found = list(_terms(part, names if main else set(), numbers if main else set()))
        turns = part.negated + sum(turn < 0 for _, _, turn in found)
        for term, weight, _ in found:
            if term and weight > weights.get(term, 0):
                weights[term] = weight
                signs[term] = -1 if turns % 2 and main else 1
    return Gist(
        weights,
        sum(weights.values()),
        signs,
        frozenset(numbers),
        frozenset(names),
        text.rstrip(" \"')*_`").endswith("?"),
        " ".join(text.casefold().split()).strip(" .!;:,") or text,
    )


def _tokens(text: str) -> Iterator[_Token]:
    for pattern, written in lexicon.PHRASES:
        text = pattern.sub(written, text)
    text = _UNSPACED_RUN.sub(r" \1 ", text.replace("`", ""))
    proper = _proper_names(text)
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


def _proper_names(text: str) -> frozenset[str]:
    """Return the words written with a capital inside a sentence, where capitals are the exception."""
    found = re.findall(r"(?<![.!?:;\n])[ (]([A-Z][\w-]*)", text)
    return frozenset(found) if len(found) * 2 <= len(text.split()) else frozenset()


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
    elif folded in lexicon.NOT or folded.endswith("n't"):
        yield _Token("not", folded)
    elif folded in lexicon.WITHOUT:
        yield _Token("without", folded)
    elif folded in lexicon.BUT:
        yield _Token("but", folded)
    elif folded in lexicon.BECAUSE:
        yield _Token("because", folded)
    elif folded in lexicon.NUMBER_WORDS:
        yield _Token("number", str(lexicon.NUMBER_WORDS[folded]))
    else:
        for word in words(value):
            yield _Token("number" if word.isdecimal() else "proper" if value in proper else "word", word)


def _parts(tokens: list[_Token]) -> Iterator[_Part]:
    """Yield the stretches of `tokens` that share one sign and weight, markers taken out."""
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and tokens[end].kind not in ("stop", "but"):
            end += 1
        yield from _clause(tokens[at:end])
        at = end + 1


def _clause(tokens: list[_Token]) -> list[_Part]:
    """Return what one clause says, what it rejects and what it gives as reasons."""
    found: dict[int, list[_Token]] = {_CONTENT: [], _REJECTED: [], _REASON: []}
    main = found[_CONTENT]
    negated = prefers = False
    weight = _CONTENT
    before = _Token("stop", "")
    for token in tokens:
        if token.kind == "because":
            weight = _REASON
        elif token.kind == "against" or _rejects(token, before, main, prefers):
            weight = _REJECTED
        elif token.kind == "without":
            # "Never deploy without review" asks for review.
            negated, weight = (False, weight) if negated else (negated, _REJECTED)
        elif token.kind == "not":
            negated = negated or weight == _CONTENT
        elif token.kind == "comma":
            # "Because the disk is slow, use a cache": the sentence begins only now.
            weight = weight if main else _CONTENT
        else:
            found[weight].append(token)
            prefers = prefers or token.text in lexicon.PREFER
        before = token
    return [
        _Part(main, negated, _CONTENT),
        _Part(found[_REJECTED], not negated, _REJECTED),
        _Part(found[_REASON], False, _REASON),
    ]


def _rejects(token: _Token, before: _Token, main: list[_Token], prefers: bool) -> bool:
    """Return whether what follows `token` is what the clause decides against."""
    if token.kind == "not":
        aside = token.text == "not" or before.kind == "comma"
        return (
            bool(main) and aside and token.text in lexicon.NOUN_NOT and before.text not in lexicon.BEFORE_NOT
        )
    return prefers and before.text not in lexicon.PREFER and token.text in ("over", "to")


def _terms(part: _Part, names: set[str], numbers: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield term, weight and turn of each token of `part`; add what may not differ to `names` and `numbers`."""
    tokens = part.tokens
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else _Token("", "")
        if token.kind == "number" and before.text in lexicon.LABELS:
            names.add(f"{before.text} {token.text}")
            yield f"{before.text} {token.text}", part.weight, 1
        elif token.kind == "number":
            numbers.add(_scaled(token.text, tokens[at + 1].text if at + 1 < len(tokens) else ""))
        elif token.kind == "name":
            names.add(token.text)
            pieces = [stem(piece) for piece in words(token.text)] or [token.text]
            yield from (
                (piece, max(1, _NAME * part.weight // (_CONTENT * len(pieces))), 1) for piece in pieces
            )
        elif not (before.kind == "number" and token.text in lexicon.UNITS):
            if token.kind == "proper":
                names.add(_term(token.text)[0])
            yield from _weighed(token.text, part.weight)


def _weighed(word: str, weight: int) -> Iterator[tuple[str, int, int]]:
    term, turn = _term(word)
    if word in lexicon.TURNS:
        yield "", 0, -1
    elif word in STOPWORDS or term in _lexicon().empty:
        return
    elif term in _lexicon().light:
        yield term, max(1, weight * _LIGHT // _CONTENT), turn
    else:
        yield term, max(1, weight * _KANA // _CONTENT) if _KANA_IN.search(word) else weight, turn


@lru_cache(maxsize=100_000)
def _term(word: str) -> tuple[str, int]:
    """Return what `word` is compared as, and -1 where it is the opposite of that."""
    if len(word) > 5:
        for british, american in _TERM_FOLDS:
            word = re.sub(f"{british}(?=d$|s$|$)", american, word)
    found = stem(word)
    folded = _lexicon().equal.get(found, found)
    return _lexicon().opposite.get(found) or _lexicon().opposite.get(folded, (folded, 1))


def _scaled(number: str, unit: str) -> str:
    """Return `number` times its unit; as text, because long ids are numbers too and may not be rounded."""
    plain = number.strip("%").replace(",", "").replace("_", "")
    scale = lexicon.UNITS.get(unit, 1.0)
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
    # By stems only here: stemming needs an import that not every caller pays for.
    equal = {stem(word): stem(head) for word, head in lexicon.EQUAL.items()}
    opposite = {
        stem(word): (equal.get(stem(head), stem(head)), turn)
        for word, (head, turn) in lexicon.OPPOSITES.items()
    }
    return _Lexicon(equal, opposite, frozenset(map(stem, lexicon.LIGHT)), frozenset(map(stem, lexicon.EMPTY)))
