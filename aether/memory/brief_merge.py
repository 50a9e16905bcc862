"""Merging: of several lines that say the same, or cannot both hold, the newest stays.

`text.similarity` decides, and only of lines that share most of their words: a briefing is made while somebody
waits, and most briefings hold no such lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from aether.memory.brief_lines import Line, day_of
from aether.text.patterns import lazy
from aether.text.words import STOPWORDS

# Two lines that share less of the longer one are about two things.
SHARED_AT = 0.5

_WORD = lazy(r"[^\W_][\w./:+#-]*[\w+#]|[^\W_]")
_NUMBER = lazy(r"\d+(?:[.,]\d+)*%?")


def topic(text: str) -> frozenset[str]:
    """Return the words of `text` that say what it is about, as they are written.

    >>> sorted(topic("Never use more than 4 workers"))
    ['more', 'never', 'use', 'worker']
    """
    found = _WORD.findall(text.casefold().replace("’", "'"))
    return frozenset(
        word.rstrip("s") if len(word) > 3 else word
        for word in found
        if word not in STOPWORDS and not _NUMBER.fullmatch(word)
    )


def merged(lines: Iterable[Line], *, most: int, replacing: bool = False) -> list[Line]:
    """Return the first `most` of `lines`, newest first, without those that a newer one repeats.

    With `replacing`, an older line that cannot hold beside a newer one goes too, and the newer one says so.
    """
    kept: list[Line] = []
    topics: list[frozenset[str]] = []
    for line in lines:
        mine = topic(line.text)
        near = [at for at, other in enumerate(topics) if _near(mine, other)]
        if any(_same(line.text, kept[at].text) for at in near):
            continue
        against = (
            next((at for at in near if _contradicts(line.text, kept[at].text)), None) if replacing else None
        )
        if against is None:
            kept.append(line)
            topics.append(mine)
            if len(kept) == most:
                break
        elif not kept[against].note:
            said = (
                f"replaces what was said on {day_of(line.at)}" if line.at else "replaces what was said before"
            )
            kept[against] = kept[against]._replace(note=said)
    return kept


def _near(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SHARED_AT * max(len(one), len(other))


def _same(one: str, other: str) -> bool:
    if one.casefold() == other.casefold():
        return True
    from aether.text.similarity import same  # its word lists cost a hook more than the rest of a briefing

    return same(one, other)


def _contradicts(one: str, other: str) -> bool:
    from aether.text.similarity import contradicts

    return contradicts(one, other)
