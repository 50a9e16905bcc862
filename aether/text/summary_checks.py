"""Checks of a model's summary: whether it is one at all, and which of its lines its sources prove.

A fault is an empty text, an error in the form of JSON or HTML, an echo of the instruction, of the input or of itself, a
text longer than requested or than its input, one that breaks off in a block of code, and one that shares no word with
its input; it is recognised by structure, so a summary may mention errors and refusals. A model is asked to end each line
with words of its source, verbatim, between « and ». A line is proven if its quotes, names and numbers are in the sources
and it does not contradict what it quotes; without any quotes each sentence has to share most of its words with one
source. What is not proven is dropped, never corrected. Omissions are checked by `memory.fidelity`.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.selection import contents
from aether.text.similarity import contradicts
from aether.text.words import STOPWORDS, find_quote, normalized, runs, sentences, stems, words
from aether.types import Counter

# A model counts by another tokenizer, up to a third more than ours; the caller cuts a small excess.
SLACK = 1.35
# A summary of a few words may replace a few words; only from here on must it be shorter than its input.
LEAST_COMPARED_TOKENS = 60
# Runs of this many words are not repeated by chance, nor by quoting names and numbers.
RUN_WORDS = 8
# An echo contains hardly anything else; a good summary quotes less than half of itself from any single place.
ECHOED_SHARE = 0.8
# A shorter summary may well be one sentence of the input.
LEAST_ECHO_WORDS = 40
# Shorter inputs cannot be selected from.
LEAST_INPUT_WORDS = 120
# Too long to be part of an instruction by chance.
LEAST_INSTRUCTION_CHARS = 40
# So much of the input shows the script that it is in.
_SAMPLE_TEXTS, _SAMPLE_CHARS = 50, 200
# A refusal or an error is short, opens like this, and names nothing that its input names.
REFUSAL_CHARS = 600
_REFUSALS = (
    "i'm sorry", "i am sorry", "sorry, ", "i apologize", "unfortunately, i", "i cannot", "i can't", "i'm unable", "i am unable",
    "i won't", "i must decline", "as an ai", "error:", "error code", "api error", "traceback (most recent call last)",
)  # fmt: skip

EMPTY = "is empty"
UNRELATED = "has no word of the goal, the files or the rest of its input"
_REFUSAL = "is a refusal, or the text of an error"
_ERROR_KEYS = frozenset({"error", "errors", "detail", "exception", "traceback"})


def model_fault(
    answer: str, *, given: Collection[str] = (), before: str = "", instruction: str = "",
    most_tokens: int = 0, count: Counter | None = None, about: Collection[str] | None = None,
) -> str:  # fmt: skip
    """Return why `answer` cannot be the summary of the texts `given`, in words that follow "It"; empty if it can.

    `before` is the summary that the new one replaces: it may be repeated, and counts as input. Lengths are compared
    only if a `count` is given; an `instruction` may contain the texts, too. With `about`, the goals, files, open calls and
    names of the input, an answer also has to share a word with these, or with the rest of the input.

    >>> model_fault("I'm sorry, I can't help with that."), model_fault("Chose SQLite; the tests pass.")
    ('is a refusal, or the text of an error', '')
    """
    text = answer.strip()
    if not text:
        return EMPTY
    if not any(map(str.isalnum, text)):
        return "says nothing"
    everything = (before, *given)
    return (
        _error(text)
        or (_REFUSAL if _refuses(text, everything) else "")
        or ("repeats the instruction" if _instructs(text, instruction, given) else "")
        or ("breaks off in a block of code" if text.count("```") % 2 else "")
        or (_length(text, everything, most_tokens, count) if count else "")
        or _echo(text, given)
        or (UNRELATED if about is not None and _is_unrelated(text, (*about, *everything), given) else "")
    )


def _error(text: str) -> str:
    if text[:9].lower().startswith(("<!doctype", "<html")):
        return "is an HTML page"
    bare = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not bare.startswith("{"):
        return ""
    try:
        document = json.loads(bare)
    except (ValueError, RecursionError):
        return ""
    is_error = _ERROR_KEYS & document.keys() or document.get("type") == "error"
    return "is the text of an error" if is_error else ""


def _refuses(text: str, sources: Iterable[str]) -> bool:
    """Return whether a short text opens like a refusal or an error and has no name or number of what was `given`."""
    if len(text) > REFUSAL_CHARS or not text.replace("’", "'").lower().startswith(_REFUSALS):
        return False
    names = [name for name in chain(*identifiers(text)) if len(name) > 1]
    return not any(name in source for source in sources for name in names)


def _instructs(text: str, instruction: str, sources: Iterable[str]) -> bool:
    """Return whether `text` is in the `instruction`, and in none of the texts `given`, of which extraction repeats sentences."""
    flat = " ".join(text.split())
    within = len(flat) >= LEAST_INSTRUCTION_CHARS and flat in " ".join(instruction.split())
    return within and not any(flat in " ".join(source.split()) for source in sources)


def _length(text: str, sources: Iterable[str], most_tokens: int, count: Counter) -> str:
    tokens = count(text)
    if most_tokens and tokens > int(most_tokens * SLACK):
        return f"has {tokens} tokens; {most_tokens} were asked for"
    if tokens <= LEAST_COMPARED_TOKENS:
        return ""
    total = 0
    for source in sources:
        total += count(source)
        if total > tokens:
            # The others need not be counted, which takes long after thousands of messages.
            return ""
    return f"has {tokens} tokens, no fewer than the {total} that it replaces"


def _is_unrelated(text: str, sources: Iterable[str], allowed_texts: Collection[str]) -> bool:
    """Return whether `text` has no word, name or number of its `sources`; one in another script than was `given` may have none."""
    own_stems = {*stems(text)} - STOPWORDS
    if not own_stems or not any(allowed_texts) or _other_script(text, allowed_texts):
        return False
    return all(own_stems.isdisjoint(stems(source)) for source in sources)


def _other_script(text: str, sources: Collection[str]) -> bool:
    """Return whether `text` and what was `given` are mostly in two alphabets, so that they share no words."""
    sample = " ".join(source[:_SAMPLE_CHARS] for source in list(sources)[:_SAMPLE_TEXTS])
    return _is_latin(text) != _is_latin(sample)


def _echo(text: str, sources: Collection[str]) -> str:
    written = list(words(text))
    if len(written) < LEAST_ECHO_WORDS:
        return ""
    # Each time counts: a message that is copied twice is a copy.
    times = Tally(zip(*(written[start:] for start in range(RUN_WORDS)), strict=False))
    own_runs, least = times.keys(), ECHOED_SHARE * times.total()
    for source in sources:
        if (
            len(source) >= LEAST_ECHO_WORDS
            and sum(times[run] for run in own_runs & _word_runs(words(source))) >= least
        ):
            return "copies one message"
    if len(own_runs) <= (1 - ECHOED_SHARE) * times.total():
        return "repeats itself"
    if len(text) < ECHOED_SHARE * sum(map(len, sources)):
        return ""
    spoken = [word for source in sources for word in words(source)]
    spoken_runs = _word_runs(spoken)
    shared = len(spoken_runs & own_runs)
    repeats = len(spoken) >= LEAST_INPUT_WORDS and shared >= ECHOED_SHARE * len(spoken_runs)
    return "repeats the whole input" if repeats else ""


def _word_runs(spoken: Iterable[str]) -> set[tuple[str, ...]]:
    """Return all runs of `RUN_WORDS` consecutive words."""
    listed = list(spoken)
    return set(zip(*(listed[start:] for start in range(RUN_WORDS)), strict=False))


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
    proven_text: list[str] = []
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
            proven_text += [heading] if heading else []
            heading = ""
            proven_text.append(bare if len(true) == len(checked) else " ".join(true))
    return Proven("\n".join(proven_text), tuple(dropped), proven)


def bears_out(texts: Sequence[str], sentence: str) -> bool:
    """Return whether `texts` say a sentence: one has most of its words, all its names and numbers are there, none denies it.

    >>> bears_out(["Port 8080 stays open."], "Port 8080 stays closed."), bears_out(["Port 8080 stays open."], "8080 stays open.")
    (False, True)
    """
    return _Sources.of(texts).bears(sentence)


class _Sources(NamedTuple):
    """What the sources of a summary say."""

    texts: Sequence[str]
    whole: str
    words: frozenset[str]
    show_names: bool
    """Whether a capital within a sentence shows a name."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Sources:
        joined = normalized("\n".join(texts)).replace(",", "")
        sample = [text[:SAMPLE_CHARS] for text in texts[:SAMPLE_TEXTS]]
        later = [word for text in sample for sentence in sentences(text) for word in sentence.split()[1:]]
        capitals = sum(word[0].isupper() for word in later)
        return cls(texts, joined, frozenset(words(joined)), capitals <= CAPITALS * len(later))

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
        mentions = identifiers(plain)
        names = [*mentions.paths, *mentions.urls, *mentions.identifiers]
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


def _contradicts(statement: str, other_statements: Iterable[str]) -> bool:
    return any(_opposed(statement, other) for other in other_statements)


@lru_cache(maxsize=256)
def _sentences_of(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences(text)))


@lru_cache(maxsize=8_192)
def _opposed(statement: str, other: str) -> bool:
    return contradicts(statement, other)
