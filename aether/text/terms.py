"""Terms: the words by which search compares texts, on both sides of a comparison.

A text gives its stems in order, stopwords included so that phrases can be found, and beside them the
parts of compound names and the single characters of scripts without spaces. A term holds letters and
digits only, so that any full-text index can take it as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from aether.text import words
from aether.text.irregular import BASE
from aether.text.patterns import lazy

# Longer runs are encoded data: nobody types them, and their beginning tells them apart.
MAX_TERM_CHARS = 64
# A part of a compound name says less than a word that stands alone.
PART_WEIGHT = 0.5
# About as many texts as a full working memory holds, so that repeated searches cut them up once.
CACHED_TEXTS = 16_384
_CACHED_RUNS = 100_000
_BRAND = lazy(r"[A-Z][a-z]+[A-Z]{2,}")
_UNSPACED = lazy(rf"[{words.UNSPACED}]{{2,}}")


class Terms(NamedTuple):
    """The terms of one text."""

    words: tuple[str, ...]
    parts: tuple[str, ...]
    length: int
    """How many of the words carry a topic."""


class Asked(NamedTuple):
    """The terms of a query."""

    weights: dict[str, float]
    """Each term that counts, with its weight."""
    spelled: dict[str, str]
    """Each of these terms as it was written."""
    sequence: tuple[str, ...]
    """The words in order, stopwords included."""


class _Piece(NamedTuple):
    words: tuple[str, ...]
    content: tuple[bool, ...]
    names: tuple[str, ...]
    characters: tuple[str, ...]


def term(word: str) -> str:
    """Return the term that a case-folded word is compared by.

    >>> [term(word) for word in ("alice's", "bought", "don't", "retries")]
    ['alic', 'buy', 'dont', 'retri']
    """
    plain = word.removesuffix("'s").replace("'", "")[:MAX_TERM_CHARS]
    return words.stem(BASE.get(plain, plain))


@lru_cache(maxsize=CACHED_TEXTS)
def terms(text: str) -> Terms:
    """Return the terms of a text.

    >>> terms("The getUser retries")
    Terms(words=('the', 'getus', 'retri'), parts=('get', 'user'), length=2)
    """
    pieces = [_piece(run) for run in words.runs(text)]
    return Terms(
        tuple(word for piece in pieces for word in piece.words),
        tuple(part for piece in pieces for part in (*piece.names, *piece.characters)),
        sum(sum(piece.content) for piece in pieces),
    )


def asked(query: str) -> Asked:
    """Return the terms of a query; stopwords count only where there is nothing else.

    >>> asked("Why does fetchUser fail?").weights
    {'fetchus': 1.0, 'fail': 1.0, 'fetch': 0.5, 'user': 0.5}
    """
    runs = [(run, _piece(run)) for run in words.runs(query)]
    only_stopwords = not any(any(piece.content) for _, piece in runs)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for run, piece in runs:
        for word, content in zip(piece.words, piece.content, strict=True):
            if content or only_stopwords:
                weights[word] = 1.0
                spelled.setdefault(word, run if len(piece.words) == 1 else word)
    for _, piece in runs:
        for part in piece.names:
            weights.setdefault(part, PART_WEIGHT)
            spelled.setdefault(part, part)
    return Asked(weights, spelled, tuple(word for _, piece in runs for word in piece.words))


@lru_cache(maxsize=_CACHED_RUNS)
def _piece(run: str) -> _Piece:
    cut = list(words.words(run))
    return _Piece(
        tuple(term(word) for word in cut),
        tuple(word not in words.STOPWORDS for word in cut),
        tuple(term(part) for part in _names(run)),
        # A single character can be asked for, where words are cut into pairs.
        tuple(run) if not run.isascii() and _UNSPACED.fullmatch(run) else (),
    )


def _names(run: str) -> list[str]:
    """Return the parts of a compound name; "PostgreSQL" is a name of its own, no kind of SQL."""
    return [] if _BRAND.fullmatch(run) else words.parts(run)
