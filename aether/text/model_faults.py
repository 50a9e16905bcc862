"""Model faults: the reasons for which a model's answer is not the requested summary, recognised by structure.

A fault is an empty text, an error in the form of JSON or HTML, an echo of the instruction, of the input or of itself, a text
longer than requested or than its input, one that breaks off in a block of code, and one that shares no word with its input.
What a summary says is not judged, so it may speak of errors and refusals. Omissions are checked by `memory.fidelity`.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Collection, Iterable
from itertools import chain

from aether.text.identifiers import identifiers
from aether.text.words import STOPWORDS, stems, words
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


def _refuses(text: str, given: Iterable[str]) -> bool:
    """Return whether a short text opens like a refusal or an error and has no name or number of what was `given`."""
    if len(text) > REFUSAL_CHARS or not text.replace("’", "'").lower().startswith(_REFUSALS):
        return False
    names = [name for name in chain(*identifiers(text)) if len(name) > 1]
    return not any(name in source for source in given for name in names)


def _instructs(text: str, instruction: str, given: Iterable[str]) -> bool:
    """Return whether `text` is in the `instruction`, and in none of the texts `given`, of which extraction repeats sentences."""
    flat = " ".join(text.split())
    within = len(flat) >= LEAST_INSTRUCTION_CHARS and flat in " ".join(instruction.split())
    return within and not any(flat in " ".join(source.split()) for source in given)


def _length(text: str, given: Iterable[str], most_tokens: int, count: Counter) -> str:
    tokens = count(text)
    if most_tokens and tokens > int(most_tokens * SLACK):
        return f"has {tokens} tokens; {most_tokens} were asked for"
    if tokens <= LEAST_COMPARED_TOKENS:
        return ""
    total = 0
    for source in given:
        total += count(source)
        if total > tokens:
            # The others need not be counted, which takes long after thousands of messages.
            return ""
    return f"has {tokens} tokens, no fewer than the {total} that it replaces"


def _is_unrelated(text: str, sources: Iterable[str], given: Collection[str]) -> bool:
    """Return whether `text` has no word, name or number of its `sources`; one in another script than was `given` may have none."""
    own = {*stems(text)} - STOPWORDS
    if not own or not any(given) or _other_script(text, given):
        return False
    return all(own.isdisjoint(stems(source)) for source in sources)


def _other_script(text: str, given: Collection[str]) -> bool:
    """Return whether `text` and what was `given` are mostly in two alphabets, so that they share no words."""
    sample = " ".join(source[:_SAMPLE_CHARS] for source in list(given)[:_SAMPLE_TEXTS])
    return _is_latin(text) != _is_latin(sample)


def _is_latin(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return 2 * sum(char < "\u0250" for char in letters) >= len(letters)


def _echo(text: str, given: Collection[str]) -> str:
    written = list(words(text))
    if len(written) < LEAST_ECHO_WORDS:
        return ""
    # Each time counts: a message that is copied twice is a copy.
    times = Tally(zip(*(written[at:] for at in range(RUN_WORDS)), strict=False))
    mine, least = times.keys(), ECHOED_SHARE * times.total()
    for source in given:
        if (
            len(source) >= LEAST_ECHO_WORDS
            and sum(times[run] for run in mine & _runs(words(source))) >= least
        ):
            return "copies one message"
    if len(mine) <= (1 - ECHOED_SHARE) * times.total():
        return "repeats itself"
    if len(text) < ECHOED_SHARE * sum(map(len, given)):
        return ""
    spoken = [word for source in given for word in words(source)]
    runs = _runs(spoken)
    repeats = len(spoken) >= LEAST_INPUT_WORDS and len(runs & mine) >= ECHOED_SHARE * len(runs)
    return "repeats the whole input" if repeats else ""


def _runs(spoken: Iterable[str]) -> set[tuple[str, ...]]:
    """Return all runs of `RUN_WORDS` consecutive words."""
    listed = list(spoken)
    return set(zip(*(listed[at:] for at in range(RUN_WORDS)), strict=False))
