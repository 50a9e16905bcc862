"""Layout: which lines of a briefing fit, and how they stand.

Lines are ranked once, whatever the budget; what is told is the longest beginning of that order that fits. So a
higher budget never loses a line, and nothing is left out for something less important.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from aether.memory.briefing.sections import Line, date_and_age, day_of, format_line

# In the order in which they stand.
HEADINGS = {
    "goal": "",
    "protected": "Protected, to be kept word for word:",
    "rules": "Constraints and preferences:",
    "signals": "Active signals:",
    "open": "Open errors and blockers:",
    "asked": "Asked last by the user:",
    "stands": "Last results:",
    "decided": "Decisions:",
    "files": "Files changed:",
    "ran": "Commands run last:",
    "solved": "Errors and what put them right:",
    "did": "What this caste did last:",
    "noted": "Noted by agents, said by no person:",
    "learned": "Learned over sessions:",
    "before": "Earlier work:",
}


class Share(NamedTuple):
    """The part of a briefing that one section gets: its first line, the distance to the next, the most of them."""

    first: float
    step: float
    most: int


def rank(lines: Mapping[str, Sequence[Line]], shares: Mapping[str, Share]) -> list[Line]:
    """Return the lines of all sections in the order of their importance."""
    places = {section: at for at, section in enumerate(HEADINGS)}
    numbered = [
        (share.first + share.step * at, places[section], at, line)
        for section, share in shares.items()
        for at, line in enumerate(lines.get(section, ())[: share.most])
    ]
    return [line for *_, line in sorted(numbered, key=lambda each: each[:3])]


def lay_out(lines: Sequence[Line], *, now: datetime, root: str = "") -> list[str]:
    """Return `lines` as text, section by section; file paths are told from `root`, a day that all share once."""
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
            told = format_line(shown, now=now)
            text.append(told if heading else told.removeprefix("- "))
    return text


def longest_fit(
    lines: Sequence[Line], make: Callable[[Sequence[Line]], str], fits: Callable[[str], bool]
) -> str:
    """Return what `make` makes of the longest beginning of `lines` that fits, "" where not even one line does."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(make(lines[:middle])):
            low = middle
        else:
            high = middle - 1
    return make(lines[:low]) if low else ""
