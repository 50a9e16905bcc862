"""Words: how text becomes comparable terms, in any script.

Search, promotion and the extractive architect all compare text through this module, so that the
same words count as the same everywhere. Scripts without spaces (Chinese, Japanese, Thai …) are cut
into overlapping pairs of characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock

from aether.text.patterns import lazy

# Runs written without spaces between words: Thai to Khmer, kana, Han, and the planes of rarer Han.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = lazy(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:['’][^\W\d_{UNSPACED}]+)*")
# The same for ASCII, which most texts are: to compile the tables of the other takes milliseconds.
_ASCII_RUN = lazy(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
_CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED_START = lazy(rf"[{UNSPACED}]")

# Function words carry no topic. Negations and modals are not here: they decide what a sentence means.
STOPWORDS = frozenset(
    "a an the this that these those there here and or but if then than so as of at by for with about into "
    "through during before after above below to from up down in out on off over under again further once "
    "i me my we our ours us you your yours he him his she her hers it its they them their theirs who whom "
    "which what when where why how am is are was were be been being have has had having do does did doing "
    "will would can could shall may might just also very too s t re ve ll d m".split()
)

# The library's stemmer keeps the word it is at work on: two threads in it would mix their words.
_STEMMING = Lock()


def runs(text: str) -> list[str]:
    """Return the unbroken runs of letters and digits of `text`, compatibility-normalised, in order.

    >>> runs("getUser(日本語)")
    ['getUser', '日本語']
    """
    if text.isascii():
        return _ASCII_RUN.findall(text)
    return _RUN.findall(unicodedata.normalize("NFKC", text))


def words(text: str) -> Iterator[str]:
    """Yield the words of `text`, case-folded and compatibility-normalised, in order.

    >>> list(words("Don't retry fetch_user: HTTP 404 日本語"))
    ["don't", 'retry', 'fetch', 'user', 'http', '404', '日本', '本語']
    """
    for run in runs(text):
        if run.isascii() or not _UNSPACED_START.match(run):
            yield run.casefold().replace("’", "'")
        elif len(run) == 1:
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


def stems(text: str, *, stop: bool = True) -> Iterator[str]:
    """Yield the stems of the words of `text`; without the stopwords unless `stop` is false.

    >>> list(stems("The tests were failing"))
    ['test', 'fail']
    """
    for word in words(text):
        if not (stop and word in STOPWORDS):
            yield stem(word)


def parts(identifier: str) -> list[str]:
    """Return the case-folded pieces of a name in camel case, empty where it is one piece.

    >>> parts("getUserName"), parts("plain")
    (['get', 'user', 'name'], [])
    """
    pieces = _CAMEL.split(identifier)
    return [piece.casefold() for piece in pieces] if len(pieces) > 1 else []


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the English stem of a case-folded word; other scripts and numbers stay as they are."""
    if not word.isascii() or not word.isalpha() or len(word) < 3:
        return word.removesuffix("'s")
    with _STEMMING:
        return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    # 20 ms of import: only those who compare words pay it.
    import snowballstemmer

    stemmer: _Stemmer = snowballstemmer.stemmer("english")
    return stemmer


class _Stemmer:
    """What snowballstemmer offers, for the type checker."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - the library's own spelling
        raise NotImplementedError
