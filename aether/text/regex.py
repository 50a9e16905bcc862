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
    from typing import Any, AnyStr


# These the engine takes for an "s" or an "i" where it ignores case, although they are no capitals of them.
ODD_LETTERS = "\u017f\u0130\u0131"


class _Lazy:
    """A proxy for a compiled pattern: each attribute is taken from the pattern once, and kept."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


class _Needing(_Lazy):
    """A pattern that matches in no text without one of some words: such a text neither compiles nor searches it."""

    def __init__(self, pattern: str | bytes, flags: int, needs: tuple[str, ...]) -> None:
        super().__init__(pattern, flags)
        self._needs, self._any_case = needs, bool(flags & re.IGNORECASE)
        self._made: re.Pattern[str] | None = None

    def _may_match(self, text: str) -> bool:
        small = text.lower() if self._any_case else text
        for word in self._needs:  # twice as fast as `any`
            if word in small:
                return True
        return self._any_case and not text.isascii() and any(map(text.__contains__, ODD_LETTERS))

    def _pattern(self) -> re.Pattern[str]:
        if self._made is None:
            self._made = re.compile(*self._given)
        return self._made

    def search(self, text: str, *bounds: int) -> re.Match[str] | None:
        return self._pattern().search(text, *bounds) if self._may_match(text) else None

    def match(self, text: str, *bounds: int) -> re.Match[str] | None:
        return self._pattern().match(text, *bounds) if self._may_match(text) else None

    def sub(self, new: str, text: str, count: int = 0) -> str:
        return self._pattern().sub(new, text, count) if self._may_match(text) else text

    def findall(self, text: str) -> list[Any]:
        return self._pattern().findall(text) if self._may_match(text) else []

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        return self._pattern().finditer(text) if self._may_match(text) else ()


def lazy(pattern: AnyStr, flags: int = 0, *, needs: tuple[str, ...] = ()) -> re.Pattern[AnyStr]:
    """Return `pattern`, to be compiled with `flags` at its first use.

    Every match must hold one of the words that it `needs`, in small letters if it ignores case: a text without any is
    answered without the pattern. A test compares them with the pattern.

    >>> lazy("a+", re.IGNORECASE).sub("b", "cAat")
    'cbt'
    """
    return _Needing(pattern, flags, needs) if needs else _Lazy(pattern, flags)  # type: ignore[return-value]  # it is used as one


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
