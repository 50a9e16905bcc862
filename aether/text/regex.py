"""Regular expressions that are compiled when they are first used.

A hook reads few texts and runs for milliseconds; compiling every pattern of the modules it imports took a third of
that time. The result of `lazy` is used like that of `re.compile`, and is as fast from its second use on. Every module
with a pattern imports this one, so it imports nothing but `re`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from typing import Any, AnyStr


class _Lazy:
    """A proxy for a compiled pattern: each attribute is taken from the pattern once, and kept."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = pattern, flags

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(re.compile(*self._given), name)
        setattr(self, name, attribute)
        return attribute


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return `pattern`, to be compiled with `flags` at its first use.

    >>> lazy("a+", re.IGNORECASE).sub("b", "cAat")
    'cbt'
    """
    return _Lazy(pattern, flags)  # type: ignore[return-value]  # it is used as one


# Control characters but tab and line feed, marks that change the direction of the text after them, and halves of
# surrogate pairs: they steer a terminal or hide words from a reader, so foreign text is shown and quoted without them.
UNPRINTABLE = lazy("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
