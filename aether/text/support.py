"""Support: the lines of a model's summary that its sources bear out.

A model is asked to end each line with words of its source, verbatim, between « and ». A line is proven if its quotes are in
the sources, its names and numbers are, too, and it does not contradict what it quotes. In a summary without any quotes each
sentence has to share most of its words with one source. What is not proven is dropped, never corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from aether.text.identifiers import identifiers
from aether.text.quotes import find_quote, normalized
from aether.text.regex import lazy
from aether.text.selection import contents
from aether.text.similarity import contradicts
from aether.text.words import runs, sentences, words

# So much of the weight of a sentence without a quote has to be in one source.
SUPPORTED = 0.6
# So much of a line has to be in the message that it quotes: a true quote does not prove another statement.
RELATED = 0.3
# Where more words than this start with a capital, as nouns do in German, a capital does not show a name.
CAPITALS = 0.2
SAMPLE_TEXTS, SAMPLE_CHARS = 200, 1_000
_QUOTE = lazy(r"\s*«([^«»]*)»")
# What is around a statement: the mark of a list, and a marker about the goal with its status (prompts/goal.md).
_AROUND = lazy(r"^\s*(?:[-*•+]|\d{1,3}[.)]|#+)?\s*(?:\[[A-Z]+\]\s*)?|\s+[-–—]\s+[A-Z-]+$")


class Proven(NamedTuple):
    """A summary as far as its sources bear it out."""

    kept: str
    """The proven lines without their quotes."""
    dropped: tuple[str, ...]
    proven: int
    """How many lines or sentences were proven."""

    @property
    def fault(self) -> str:
        """Return why the summary cannot be used, in words that follow "It"; "" if at least half of it is proven."""
        many = len(self.dropped) + self.proven
        if self.proven and 2 * self.proven >= many:
            return ""
        return f"says {len(self.dropped)} of {many} things that its messages do not say, such as {self.dropped[0]!r}" if self.dropped else "says nothing"  # fmt: skip


def without_quotes(summary: str) -> str:
    """Return `summary` without the quotes that prove it.

    >>> without_quotes("We keep SQLite. «one process writes»")
    'We keep SQLite.'
    """
    return _QUOTE.sub("", summary).strip()


def proven_lines(summary: str, sources: Sequence[str]) -> Proven:
    r"""Return the lines of `summary` that `sources` bear out, and those that they do not.

    >>> sources = ["We decided to use SQLite, because one process writes.", "The tests of `load.py` pass."]
    >>> proven_lines("SQLite stays. «use SQLite»\nRedis is next. «use Redis»", sources)
    Proven(kept='SQLite stays.', dropped=('Redis is next.',), proven=1)
    """
    source = _Sources.of(sources)
    quotes = _QUOTE.search(summary) is not None
    kept: list[str] = []
    dropped: list[str] = []
    heading, proven = "", 0
    for line in summary.splitlines():
        bare = without_quotes(line)
        if not bare:
            continue
        if bare.startswith("#") or bare.endswith((":", "：")):
            heading = bare
            continue
        if quotes:
            checked = [(bare, source.bears_quotes(bare, _QUOTE.findall(line)))]
        else:
            checked = [(sentence, source.bears(sentence)) for sentence in sentences(bare)]
        true = [text for text, is_proven in checked if is_proven]
        dropped += [text for text, is_proven in checked if not is_proven]
        proven += len(true)
        if true:
            kept += [heading] if heading else []
            heading = ""
            kept.append(bare if len(true) == len(checked) else " ".join(true))
    return Proven("\n".join(kept), tuple(dropped), proven)


class _Sources(NamedTuple):
    """What the sources of a summary say."""

    texts: Sequence[str]
    whole: str
    words: frozenset[str]
    show_names: bool
    """Whether a capital within a sentence shows a name."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Sources:
        whole = normalized("\n".join(texts)).replace(",", "")
        sample = [text[:SAMPLE_CHARS] for text in texts[:SAMPLE_TEXTS]]
        later = [word for text in sample for sentence in sentences(text) for word in sentence.split()[1:]]
        capitals = sum(word[0].isupper() for word in later)
        return cls(texts, whole, frozenset(words(whole)), capitals <= CAPITALS * len(later))

    def bears_quotes(self, line: str, quotes: Sequence[str]) -> bool:
        places = [find_quote(quote, self.texts) for quote in quotes]
        if not places or None in places or not self._has_names(line):
            return False
        carried = contents(_AROUND.sub("", line))
        near = [text for text in self.texts if any(find_quote(quote, [text]) is not None for quote in quotes)]
        same_script = _is_latin(line) == _is_latin(" ".join(quotes))
        if same_script and carried and all(_share(carried, text) < RELATED for text in near):
            return False  # the quote is about something else
        return not any(_contradicts(line, [quote]) for quote in quotes)

    def bears(self, sentence: str) -> bool:
        if not self._has_names(sentence):
            return False
        carried = contents(_AROUND.sub("", sentence))
        if not carried:
            return True  # it says nothing that could be wrong
        near = [text for text in self.texts if _share(carried, text) >= SUPPORTED]
        return bool(near) and not any(_contradicts(sentence, _sentences_of(text)) for text in near)

    def _has_names(self, line: str) -> bool:
        plain = _AROUND.sub("", line)
        found = identifiers(plain)
        names = [*found.paths, *found.urls, *found.identifiers]
        if any(normalized(name) not in self.whole for name in names):
            return False
        spoken = [run for run in runs(plain) if any(map(str.isdigit, run))]
        if not _is_latin(plain):
            spoken += [run for run in runs(plain) if run.isascii()]
        elif self.show_names:
            spoken += [word for sentence in sentences(plain) for word in _names(sentence)]
        return all(word in self.words for run in spoken for word in words(run))


def _share(carried: Mapping[str, float], text: str) -> float:
    """Return how much of what a statement carries, by weight, is in `text`."""
    source = contents(text)
    return sum(weight for term, weight in carried.items() if term in source) / sum(carried.values())


def _is_latin(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return 2 * sum(char < "\u0250" for char in letters) >= len(letters)


def _names(sentence: str) -> Iterator[str]:
    """Yield the words that start with a capital within a sentence, without the English "I"."""
    for word in sentence.split()[1:]:
        bare = word.strip("\"'“”‘’()[]*_`.,;:!?")
        if len(bare) > 1 and bare[0].isupper() and bare[1] not in "'’":
            yield bare


def _contradicts(statement: str, others: Iterable[str]) -> bool:
    return any(_opposed(statement, other) for other in others)


@lru_cache(maxsize=256)
def _sentences_of(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences(text)))


@lru_cache(maxsize=8_192)
def _opposed(statement: str, other: str) -> bool:
    return contradicts(statement, other)
