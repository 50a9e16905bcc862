"""Echoes: lines of memory that stand in a conversation without the tags in which aether told them.

A model quotes them, a person pastes them. They are in memory already; noted again, they would be told with one more
day in front each time. The law: what nobody was told, and what bears no id of memory, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aether.text.patterns import lazy

# How reminders end a line, and what they say of the rest.
_IDENTIFIED = lazy(
    r"\s*[-*•+>]\s.*\[(?:wm|phase|pattern)_\w+\]\W*\Z|\W*In full: aether recall --full \S+\s*\Z",
    re.IGNORECASE,
)
_BULLET = lazy(r"\s*(?:>\s*)?[-*•+]\s+")
_DAY = lazy(r"\d{4}-\d\d-\d\d(?: \(\d+ days ago\))?:? ")


def without_echoes(text: str, told: Collection[str] = ()) -> str:
    r"""Return `text` without the lines that end in an id of memory, and those that are `told`, as a list or with a day.

    >>> without_echoes("I know:\n- 2026-11-21 Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Go on.'
    >>> without_echoes("Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Never retry.\nGo on.'
    """
    known = {_words(line) for line in told if _BULLET.match(line)}
    if not known and "[" not in text and "In full" not in text:
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        if not _is_echo(line, known):
            kept.append(line)
        elif kept and kept[-1].rstrip(" *_").endswith(":"):
            kept.pop()  # it only announced them
    return "\n".join(kept)


def _is_echo(line: str, known: set[str]) -> bool:
    listed = _BULLET.match(line) or _DAY.match(line.lstrip())
    return bool(_IDENTIFIED.match(line)) or (bool(listed) and _words(line) in known)


def _words(line: str) -> str:
    bare = _BULLET.sub("", line, count=1)
    return " ".join(_DAY.sub("", bare.lstrip(), count=1).replace("**", "").split())
