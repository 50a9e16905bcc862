"""Block: the lines of a briefing, how they are merged, ranked, laid out, and fitted into its budget.

Lines are ranked once, whatever the budget, and the longest front of that order that fits is shown: a higher budget
never loses a line, and no line is left out for a less important one. Of several lines that say the same, or cannot
both hold, the newest is kept. The lines of each section are made in `sections`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.text.cleaning import without_injected
from aether.text.regex import lazy
from aether.text.words import STOPWORDS

# A day this long ago is followed by its age.
OLD_DAYS = 30
# The length of a stamp of `clock.stamp`.
_STAMP_CHARS = 27
# Two lines that share less of the words of the longer one are about two things.
SHARED_AT = 0.5
_TOPIC_WORD = lazy(r"[^\W_][\w./:+#-]*[\w+#]|[^\W_]")
_NUMBER = lazy(r"\d+(?:[.,]\d+)*%?")

# In the order of the block.
HEADINGS = {
    "goal": "",
    "protected": "Protected, to be kept word for word:",
    "rules": "Constraints and preferences:",
    "signals": "Active signals:",
    "open": "Open errors and blockers:",
    "requests": "Asked last by the user:",
    "results": "Last results:",
    "decisions": "Decisions:",
    "files": "Files changed:",
    "commands": "Commands run last:",
    "solutions": "Errors and what put them right:",
    "caste": "What this caste did last:",
    "noted": "Noted by agents, said by no person:",
    "learned": "Learned over sessions:",
    "earlier": "Earlier work:",
}


class Line(NamedTuple):
    """One line of a briefing."""

    section: str
    text: str
    at: str = ""
    """Its time in the form of `clock.stamp`; empty if unknown."""
    note: str = ""


class Share(NamedTuple):
    """The rank of a section's lines: that of the first, the step to each further one, and the most lines."""

    first: float
    step: float
    most: int


def rank(lines: Mapping[str, Sequence[Line]], shares: Mapping[str, Share]) -> list[Line]:
    """Return the lines of all sections in order of importance."""
    places = {section: at for at, section in enumerate(HEADINGS)}
    numbered = [
        (share.first + share.step * at, places[section], at, line)
        for section, share in shares.items()
        for at, line in enumerate(lines.get(section, ())[: share.most])
    ]
    return [line for *_, line in sorted(numbered, key=lambda each: each[:3])]


def lay_out(lines: Sequence[Line], *, now: datetime, root: str = "") -> list[str]:
    """Return `lines` as text by section; file paths are relative to `root`, a common day is in the heading."""
    text: list[str] = []
    for section, heading in HEADINGS.items():
        mine = [line for line in lines if line.section == section]
        days = {day_of(line.at) for line in mine}
        about = [f"below {root}"] if section == "files" and root else []
        if heading and len(mine) > 1 and len(days) == 1 and days != {""}:
            about += date_and_age(mine[0].at, now=now)
            mine = [line._replace(at="") for line in mine]
        if mine and heading:
            text.append(heading.removesuffix(":") + (f" ({', '.join(about)})" if about else "") + ":")
        for line in mine:
            shown = line._replace(text=line.text.removeprefix(root)) if section == "files" else line
            formatted = format_line(shown, now=now)
            text.append(formatted if heading else formatted.removeprefix("- "))
    return text


def longest_fit(
    lines: Sequence[Line], make: Callable[[Sequence[Line]], str], fits: Callable[[str], bool]
) -> str:
    """Return the text that `make` makes of the longest front of `lines` that fits; "" if no line does."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(make(lines[:middle])):
            low = middle
        else:
            high = middle - 1
    return make(lines[:low]) if low else ""


def topic_words(text: str) -> frozenset[str]:
    """Return the words of `text` that make its topic, unstemmed.

    >>> sorted(topic_words("Never use more than 4 workers"))
    ['more', 'never', 'use', 'worker']
    """
    found = _TOPIC_WORD.findall(text.casefold().replace("’", "'"))
    return frozenset(
        word.rstrip("s") if len(word) > 3 else word
        for word in found
        if word not in STOPWORDS and not _NUMBER.fullmatch(word)
    )


def without_repeats(lines: Iterable[Line], *, most: int, replacing: bool = False) -> list[Line]:
    """Return the first `most` of `lines`, newest first, without those that a newer one repeats.

    With `replacing`, an older line that contradicts a newer one is left out too, and the newer one says so. Only lines
    that share most of their words are compared: a briefing is made while somebody waits, and most hold no such lines.
    """
    kept: list[Line] = []
    topics: list[frozenset[str]] = []
    for line in lines:
        mine = topic_words(line.text)
        near = [
            at
            for at, other in enumerate(topics)
            if len(mine & other) >= SHARED_AT * max(len(mine), len(other))
        ]
        if near:
            # The word lists of this module cost a hook more than the rest of a briefing.
            from aether.text.similarity import contradicts, same
        if any(
            line.text.casefold() == kept[at].text.casefold() or same(line.text, kept[at].text) for at in near
        ):
            continue
        opposed = (at for at in near if contradicts(line.text, kept[at].text))
        against = next(opposed, None) if replacing else None
        if against is None:
            kept.append(line)
            topics.append(mine)
            if len(kept) == most:
                break
        elif not kept[against].note:
            since = f"on {day_of(line.at)}" if line.at else "before"
            kept[against] = kept[against]._replace(note=f"replaces what was said {since}")
    return kept


def one_line(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` characters, without blocks that aether injected.

    >>> one_line("Use **SQLite**  for now", 100), one_line("Use SQLite for now", 14)
    ('Use SQLite for now', 'Use SQLite...')
    """
    whole = " ".join(without_injected(text).replace("**", "").split())
    if len(whole) <= most:
        return whole
    # Cut between words if possible, so that no name is torn.
    space = whole.rfind(" ", most // 3, most - 2)
    # The counter handles ASCII dots ten times faster than an ellipsis.
    return whole[: space if space > 0 else most - 3].rstrip(" ,;:.") + "..."


def timestamp(text: object) -> str:
    """Return the time in `text` in the form of `clock.stamp`, or "" if it is not a time."""
    if isinstance(text, str) and len(text) == _STAMP_CHARS and text.endswith("Z"):
        return text
    try:
        return clock.stamp(clock.parse(str(text)))
    except InvalidInput:
        return ""


def day_of(at: str) -> str:
    """Return the day of a stamp."""
    return at[:10]


def date_and_age(at: str, *, now: datetime) -> list[str]:
    """Return the day of a stamp and, if it is old, its age; nothing for an unknown time."""
    if not at:
        return []
    age = (now - clock.parse(at)).days
    return [day_of(at), f"{age} days ago"] if age > OLD_DAYS else [day_of(at)]


def format_line(line: Line, *, now: datetime) -> str:
    """Return `line` as text: its day, its age if it is old, its text and note.

    >>> format_line(Line("rules", "Never push.", "2026-01-01T00:00:00.000000Z"), now=datetime(2026, 3, 1, tzinfo=clock.parse("2026-01-01").tzinfo))
    '- 2026-01-01 (59 days ago) Never push.'
    """
    day, *age = date_and_age(line.at, now=now) or [""]
    note = f" ({line.note})" if line.note else ""
    return " ".join(filter(None, ["-", day, *(f"({each})" for each in age), line.text])) + note
