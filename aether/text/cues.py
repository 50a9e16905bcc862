"""Cues: patterns that are searched only in a text that has a sign of them.

A sentence is compared with more than a hundred cues and has none of nearly all. What is cheap to see comes first: each cue
names the first letters of words, or parts of words, of which every match has one, and a text without any is not searched;
a cue that is never searched for is never compiled. A search that ignores case takes three times as long as one in small
letters, so a text is made small once, for all cues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from aether.text.regex import ODD_LETTERS, lazy
from aether.tuples import NamedTuple

_HEADS = lazy(r"(\w{1,3})\w*")
# A sentence is looked at for one question after the other.
_CACHED_TEXTS = 16


class Cue(NamedTuple):
    """A pattern in small letters, for texts of small letters, and the same for texts of any."""

    small: re.Pattern[str]
    any_case: re.Pattern[str]
    heads: tuple[frozenset[str], ...] = ()
    inside: tuple[str, ...] = ()


class Said(NamedTuple):
    """A text, the same in small letters, the first three letters of its words, and whether small letters mean another text."""

    text: str
    small: str
    heads: frozenset[str]
    is_odd: bool


def cue(pattern: str, heads: str = "", inside: tuple[str, ...] = ()) -> Cue:
    """Return the cue of a `pattern` in small letters.

    Every match has a word that starts with one of `heads`, the first three letters of words or shorter words, or has one of
    the texts `inside`; with neither, every text is searched. Of several groups of heads, between bars, it has one of each.
    A test compares them with the pattern.
    """
    groups = tuple(frozenset(group.split()) for group in heads.split("|")) if heads else ()
    return Cue(lazy(pattern), lazy(pattern, re.IGNORECASE), groups, inside)


@lru_cache(maxsize=_CACHED_TEXTS)
def said(text: str) -> Said:
    """Return `text` as it is searched for cues."""
    small = text.lower()
    is_odd = not text.isascii() and any(map(text.__contains__, ODD_LETTERS))
    return Said(text, small, frozenset(_HEADS.findall(small)), is_odd)


def may_have(cue: Cue, said: Said) -> bool:
    """Return whether a text has a sign of `cue`, or the cue has none."""
    if cue.inside and any(map(said.small.__contains__, cue.inside)):
        return True
    for group in cue.heads:
        if group.isdisjoint(said.heads):
            return False
    return bool(cue.heads) or not cue.inside


def has(cue: Cue, said: Said) -> bool:
    """Return whether a text has `cue`.

    >>> has(cue("(?:never|always) push", "nev alw"), said("NEVER push."))
    True
    """
    if said.is_odd:
        return cue.any_case.search(said.text) is not None
    return may_have(cue, said) and cue.small.search(said.small) is not None


def by_head(cues: Mapping[str, Cue]) -> dict[str, list[str]]:
    """Return the names of `cues`, each of which has heads and nothing else, under each head of their first group."""
    found: dict[str, list[str]] = {}
    for name, one in cues.items():
        for head in one.heads[0]:
            found.setdefault(head, []).append(name)
    return found


def likely(cues: Mapping[str, Cue], heads: Mapping[str, list[str]], texts: Iterable[Said]) -> list[str]:
    """Return in order the names of the `cues` of which one of `texts` has a head; `heads` is from `by_head`."""
    if any(one.is_odd for one in texts):
        return [*cues]
    named = {name for one in texts for head in heads.keys() & one.heads for name in heads[head]}
    return [name for name in cues if name in named] if named else []
