"""Merging: of several lines that say the same, or cannot both hold, the newest stays.

Words are compared as they are written, without a stemmer: a briefing is made while somebody waits. So only near
repetitions are found, and contradictions that lie in a negation or a number. Names, paths and versions that
differ make two statements of two things.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aether.memory.brief_lines import Line, day_of
from aether.text.patterns import lazy
from aether.text.words import STOPWORDS

# One statement must hold all words of the other, for any other word may make it about something else; and it
# must not hold many more, for they may be what it is about.
SAME_AT = 0.75
# What turns a statement around is not counted, so that less of it has to agree.
OPPOSED_AT = 0.6

_WORD = lazy(r"[^\W_][\w./:+#-]*[\w+#]|[^\W_]")
_NUMBER = lazy(r"\d+(?:[.,]\d+)*%?")
_NAME = lazy(r"[./:_]|[a-z]\d|\d[a-z]")
_TURNS = frozenset(
    "not never no don't dont doesn't isn't can't cannot won't mustn't shouldn't without avoid stop forbidden disable "
    "disabled refuse nothing neither nor".split()
)
# How firmly it is said is not what is said.
_FIRMNESS = frozenset("always must should shall please ever really only use using".split())


class Sense(NamedTuple):
    """What of a statement is compared."""

    words: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    turned: bool
    plain: str


def sense(text: str) -> Sense:
    """Return what of `text` is compared.

    >>> found = sense("Never use more than 4 workers")
    >>> sorted(found.words), sorted(found.numbers), found.turned
    (['more', 'worker'], ['4'], True)
    """
    plain = text.casefold().replace("’", "'")
    found = _WORD.findall(plain.replace("n't", "not") if "n't" in plain else plain)
    numbers = frozenset(word for word in found if _NUMBER.fullmatch(word))
    names = frozenset(word for word in found if word not in numbers and _NAME.search(word))
    turns = sum(word in _TURNS or word.endswith("not") for word in found)
    words = frozenset(
        word.rstrip("s") if len(word) > 3 else word
        for word in found
        if not (
            word in numbers
            or word in STOPWORDS
            or word in _FIRMNESS
            or word in _TURNS
            or word.endswith("not")
        )
    )
    return Sense(words, names, numbers, turns % 2 == 1, " ".join(plain.split()).rstrip(" .;:,") or text)


def alike(one: Sense, other: Sense) -> bool:
    """Return whether both say the same."""
    if one.plain == other.plain:
        return True
    return (
        one.turned == other.turned
        and one.numbers == other.numbers
        and one.names == other.names
        and _shared(one, other) >= SAME_AT
    )


def opposed(one: Sense, other: Sense) -> bool:
    """Return whether both speak of the same thing and cannot both hold.

    >>> opposed(sense("At most 4 workers"), sense("At most 8 workers")), opposed(sense("Edit a.py"), sense("Never edit b.py"))
    (True, False)
    """
    differs = (one.turned != other.turned) + bool(
        one.numbers and other.numbers and one.numbers != other.numbers
    )
    return differs == 1 and one.names == other.names and _shared(one, other) >= OPPOSED_AT


def _shared(one: Sense, other: Sense) -> float:
    fewer, more = sorted((one.words, other.words), key=len)
    return len(fewer) / len(more) if more and fewer <= more else 0.0


def merged(lines: Iterable[Line], *, most: int, replacing: bool = False) -> list[Line]:
    """Return the first `most` of `lines`, newest first, without those that a newer one repeats.

    With `replacing`, an older line that cannot hold beside a newer one goes too, and the newer one says so.
    """
    kept: list[Line] = []
    senses: list[Sense] = []
    for line in lines:
        mine = sense(line.text)
        if any(alike(mine, there) for there in senses):
            continue
        against = (
            next((at for at, there in enumerate(senses) if opposed(mine, there)), None) if replacing else None
        )
        if against is None:
            kept.append(line)
            senses.append(mine)
            if len(kept) == most:
                break
        elif not kept[against].note:
            said = (
                f"replaces what was said on {day_of(line.at)}" if line.at else "replaces what was said before"
            )
            kept[against] = kept[against]._replace(note=said)
    return kept
