"""Regular expressions that are compiled when they are first used.

A hook reads few texts and runs for milliseconds; compiling every pattern of the modules it imports took a third of
that time. The result of `lazy` is used like that of `re.compile`, and is as fast from its second use on. Every module
with a pattern imports this one, so it imports nothing but `re`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class _Lazy:
    """A proxy for a compiled pattern: each attribute is taken from the pattern once, and kept."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return `pattern`, to be compiled with `flags` at its first use.

    >>> lazy("a+", re.IGNORECASE).sub("b", "cAat")
    'cbt'
    """
    return _Lazy(pattern, flags)  # type: ignore[return-value]  # it is used as one


def any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of `words`, the longest that fits, in which each character is compared once.

    >>> any_of(["curl", "cargo", "car"])
    'c(?:url|ar(?:go|))'
    """
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[:1], []).append(word[1:])
    shorter = rests.pop("", None)
    branches = [re.escape(first) + any_of(rest) for first, rest in rests.items()]
    if shorter is not None:
        branches.append("")
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


# Control characters but tab and line feed, marks that change the direction of the text after them, and halves of
# surrogate pairs: they steer a terminal or hide words from a reader, so foreign text is shown and quoted without them.
UNPRINTABLE = lazy("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
