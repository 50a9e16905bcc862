"""Fitting: the facts that have room in a summary, and by name what has not.

What is easiest to find again goes first: errors that are over, files that were read long ago, hashes, old requests
(their names stay), names, the newest files that were read, then decisions, and only then what describes the
present state. Constraints, goals and the newest pointer to the full text are never dropped; where they alone are
too long, each keeps its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aether.compaction.names import names_in
from aether.compaction.shapes import Facts, Summary
from aether.compaction.summary import rendered
from aether.messages.tool_calls import FileFact
from aether.shapes import Counter
from aether.text.words import counted

# The newest of these say where the work stands; they outlive the older ones of everything else.
NEWEST = 3
NEWEST_NAMES = 40
NEWEST_DECISIONS = 10
NEWEST_FILES = 12
# What was read last is about to be used; a path costs as much as three names, so more would cost the ids people gave.
NEWEST_READ = 3
# The newest of the dropped requests, whose names may stay.
NAMED_REQUESTS = 100
# On average no text has longer tokens.
LONGEST_TOKEN_CHARS = 20
# A goal or constraint that is shortened says at least this much.
LEAST_CHARS = 80
CUT = "… [the rest of this was removed with the messages; see the archive]"
# Halvings between the whole text and the least of it.
_HALVINGS = 12


class _Rung(NamedTuple):
    """One thing that may go: which entries of a field, the oldest first."""

    what: str
    field: str
    goes: Callable[[Any], object] = lambda _: True
    stay: int = 0
    """How many of the newest are not dropped on this rung."""
    left: Callable[[Any], Any] = lambda _: None
    """What is left of an entry that goes; None: nothing."""


def _hashless(file: FileFact) -> FileFact:
    return file._replace(sha256="")


def _is_read(file: FileFact) -> bool:
    return file.action == "read"


_RUNGS = (
    _Rung("errors that are over", "errors", lambda error: not error.open),
    _Rung(
        "hashes of files that were read", "files", lambda file: _is_read(file) and file.sha256, left=_hashless
    ),
    _Rung("files that were read", "files", _is_read, stay=NEWEST_READ),
    _Rung("hashes of files", "files", lambda file: file.sha256, left=_hashless),
    _Rung("requests", "requests", stay=NEWEST),
    _Rung("names", "names", stay=NEWEST_NAMES),
    _Rung("names", "names"),
    _Rung("decisions", "decisions", stay=NEWEST_DECISIONS),
    _Rung("files that were read", "files", _is_read),
    _Rung("lookups", "lookups", stay=1),
    _Rung("requests", "requests"),
    _Rung("decisions", "decisions", stay=NEWEST),
    _Rung("open errors", "errors", stay=NEWEST),
    _Rung("open errors", "errors"),
    _Rung("files", "files", stay=NEWEST_FILES),
    _Rung("decisions", "decisions"),
    _Rung("open calls", "open_calls"),
    _Rung("files", "files"),
)


def fitted(facts: Facts, *, count: Counter, most: int) -> tuple[Facts, list[str]]:
    """Return what of `facts` a summary of `most` tokens without prose holds, and what it does not, in words.

    Goals and constraints stay, shortened at worst; only they can make the result larger than `most`.
    """
    dropped: dict[str, int] = {}
    tokens = _tokens(facts, count)
    for rung in _RUNGS:
        if tokens <= most:
            break
        facts, gone = _without(facts, rung, count=count, most=most)
        if gone:
            tokens = _tokens(facts, count)
            dropped[rung.what] = dropped.get(rung.what, 0) + gone
    findings = [counted(number, what) for what, number in dropped.items()]
    if tokens > most:
        shorter = _shortened(facts, count=count, most=most)
        findings += ["the ends of goals and constraints"] if shorter != facts else []
        facts = shorter
    return facts, findings


def _tokens(facts: Facts, count: Counter) -> int:
    return count(rendered(Summary(1, facts, "")))


def _without(facts: Facts, rung: _Rung, *, count: Counter, most: int) -> tuple[Facts, int]:
    """Return `facts` with the fewest entries dropped that make it fit, all that may go where none is enough; and their number."""
    entries: tuple[Any, ...] = getattr(facts, rung.field)
    places = [at for at, entry in enumerate(entries) if rung.goes(entry)]
    places = places[: max(0, len(places) - rung.stay)]
    low, high = _hopeless([len(_text(entries[at])) for at in places], most), len(places)
    while low < high:
        middle = (low + high) // 2
        if _tokens(_dropped(facts, rung, places[:middle]), count) <= most:
            high = middle
        else:
            low = middle + 1
    return _dropped(facts, rung, places[:low]), low


def _hopeless(lengths: Sequence[int], most: int) -> int:
    """Return how many of the first entries have no room whatever else goes: counting thousands of texts takes long."""
    room = most * LONGEST_TOKEN_CHARS
    for newest, length in enumerate(reversed(lengths)):
        room -= length
        if room < 0:
            return len(lengths) - newest
    return 0


def _dropped(facts: Facts, rung: _Rung, places: Sequence[int]) -> Facts:
    entries: tuple[Any, ...] = getattr(facts, rung.field)
    gone = set(places)
    left = ((rung.left(entry) if at in gone else entry) for at, entry in enumerate(entries))
    kept = tuple(entry for entry in left if entry is not None)
    changed: dict[str, Any] = {rung.field: kept}
    if rung.field == "requests" and rung.stay and places:
        # A request that goes leaves its ids and numbers, which cost little.
        names = [name for at in places[-NAMED_REQUESTS:] for name in names_in(entries[at])]
        changed["names"] = tuple(
            dict.fromkeys((*(name for name in names if name not in facts.names), *facts.names))
        )
    return facts._replace(**changed)


def _text(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry[0])


def _shortened(facts: Facts, *, count: Counter, most: int) -> Facts:
    """Return `facts` with goals and constraints cut to the greatest common length that fits."""
    low, high = LEAST_CHARS, max(map(len, (*facts.goals, *facts.constraints)), default=0)
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        if _tokens(_cut_to(facts, middle), count) <= most:
            low = middle
        else:
            high = middle
    return _cut_to(facts, low)


def _cut_to(facts: Facts, chars: int) -> Facts:
    return facts._replace(
        goals=tuple(_cut(text, chars) for text in facts.goals),
        constraints=tuple(_cut(text, chars) for text in facts.constraints),
    )


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars + len(CUT) else text[:chars].rstrip() + CUT
