r"""Erasing: every way in which a text may stand written, and the mark that takes its place.

A text is found whatever its case and however its words are spaced, escaped as JSON escapes it (also twice), as URLs and
Python write it, in every Unicode form, and where it was cut off at one end by at least `LEAST_CHARS` characters. Every
spelling gets a mark of its own, which stands nowhere else, so that two strings that differ still differ afterwards: what
was a key or an id stays one.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

# A shorter text is part of too many words.
LEAST_CHARS = 6
# So much of the beginning, or the end, of a longer text is taken for it where it was cut off.
FRAGMENT_CHARS = 16
# Text in JSON, itself a string in JSON, which a transcript holds as a string.
_ESCAPED_TIMES = 3
# A mark must not join with what stands beside it to the text again: its ends are in no spelling.
_ENDS = (("[", "]"), ("<", ">"), ("{", "}"), ("«", "»"))
_MARK = re.compile(r"[\[<{«]ERASED(-\d+)?[\]>}»]")
_BLANK = r"(?:\s|\\+[nrt])+"
_CUT_AFTER = re.compile(r"\s*(?:…|\.\.\.|\[…)")
_CUT_BEFORE = ("…", "...", "…]")


class Form(NamedTuple):
    """One way to write a text."""

    pattern: str
    anchor: str
    """Its longest word, in small letters: what does not hold it needs no second look."""


class Sought(NamedTuple):
    """What is to be erased."""

    texts: tuple[str, ...]
    forms: tuple[Form, ...]


def sought(texts: Iterable[str]) -> Sought:
    """Return `texts` with all the ways to write them, longest first."""
    wanted = tuple(dict.fromkeys(text.strip() for text in texts))
    written = sorted({form for text in wanted for form in _written(text)}, key=lambda one: (-len(one), one))
    return Sought(wanted, tuple(map(_form, written)))


def _written(text: str) -> set[str]:
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC")} | {text}
    forms |= {
        html.escape(text),
        quote(text, safe="", errors="replace"),
        quote(text, errors="replace"),
        repr(text)[1:-1],
    }
    fresh = forms | {json.dumps(text, ensure_ascii=flag)[1:-1].replace("/", "\\/") for flag in (True, False)}
    for _ in range(_ESCAPED_TIMES):
        fresh = {json.dumps(one, ensure_ascii=flag)[1:-1] for one in fresh for flag in (True, False)} | fresh
    return fresh


def _form(text: str) -> Form:
    words = text.split()
    return Form(_BLANK.join(map(re.escape, words)), max(words, key=len, default="").lower())


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


def spans(text: str, wanted: Sought) -> list[tuple[int, int]]:
    """Return where what is wanted stands in `text`, in order and without overlaps.

    >>> spans("set TOKEN-12345", sought(["token-12345"]))
    [(4, 15)]
    """
    found = whole(text, wanted)
    for start, end in sorted(_cut_off(text, wanted.texts)):
        if all(end <= first or last <= start for first, last in found):
            found.append((start, end))
    return sorted(found)


def may_hold(text: str, wanted: Sought) -> bool:
    """Tell, at little cost, whether anything of what is wanted can stand in `text`."""
    folded = text.lower()
    ends = (end for one in wanted.texts for end in (one[: _least(one)], one[-_least(one) :]))
    return any(form.anchor in folded for form in wanted.forms) or any(end in text for end in ends)


def _least(text: str) -> int:
    return max(LEAST_CHARS, min(len(text) // 2, FRAGMENT_CHARS))


def whole(text: str, wanted: Sought) -> list[tuple[int, int]]:
    """Return where what is wanted stands in `text` from its first character to its last."""
    folded = text.lower()
    live = tuple(form.pattern for form in wanted.forms if form.anchor in folded)
    return [match.span() for match in _compiled(live).finditer(text)] if live else []


def _cut_off(text: str, texts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield where the beginning of a text ends in an ellipsis, or in the middle of a word; and the same of its end."""
    for one in texts:
        least = _least(one)
        if len(one) > least:
            yield from _heads(text, one, least)
            yield from _tails(text, one, least)


def _heads(text: str, one: str, least: int) -> Iterator[tuple[int, int]]:
    at = text.find(one[:least])
    while at >= 0:
        size = least
        while at + size < len(text) and size < len(one) and text[at + size] == one[size]:
            size += 1
        torn = at + size == len(text) and one[size - 1 : size + 1].isalnum()
        if size < len(one) and (torn or _CUT_AFTER.match(text, at + size)):
            yield at, at + size
        at = text.find(one[:least], at + 1)


def _tails(text: str, one: str, least: int) -> Iterator[tuple[int, int]]:
    at = text.find(one[-least:])
    while at >= 0:
        size, end = least, at + least
        while end - size > 0 and size < len(one) and text[end - size - 1] == one[-size - 1]:
            size += 1
        torn = end == size and one[-size - 1 : len(one) - size + 1].isalnum()
        if size < len(one) and (torn or text[: end - size].rstrip().endswith(_CUT_BEFORE)):
            yield end - size, end
        at = text.find(one[-least:], at + 1)


def marks(spellings: Iterable[str], wanted: Sought, *, taken: str) -> dict[str, str]:
    """Return a mark for each of `spellings`; none of them stands in `taken`.

    >>> marks(["hunter2", "HUNTER2"], sought(["hunter2"]), taken="")
    {'hunter2': '[ERASED]', 'HUNTER2': '[ERASED-2]'}
    """
    used = "".join([*wanted.texts, *(form.anchor for form in wanted.forms)])
    first, last = next((ends for ends in _ENDS if not set(ends) & set(used)), _ENDS[-1])
    made: dict[str, str] = {}
    number = 0
    for spelling in dict.fromkeys(spellings):
        mark = ""
        while not mark or mark in taken:
            number += 1
            mark = f"{first}ERASED{f'-{number}' if number > 1 else ''}{last}"
        made[spelling] = mark
    return made


def is_mark(text: str) -> bool:
    """Tell whether `text` is what took the place of another.

    >>> is_mark("[ERASED-2]"), is_mark("ERASED")
    (True, False)
    """
    return bool(_MARK.fullmatch(text))


def replaced(text: str, wanted: Sought, by: Mapping[str, str]) -> str:
    """Return `text` with the mark of each spelling in its place."""
    parts, at = [], 0
    for start, end in spans(text, wanted):
        parts += [text[at:start], by[text[start:end]]]
        at = end
    return "".join([*parts, text[at:]]) if at else text
