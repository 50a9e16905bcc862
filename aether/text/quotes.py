"""Quotes: whether words be in a text, whatever its white space, quotation marks and Unicode form."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

# A quote of fewer characters is in almost any text by chance.
LEAST_CHARS = 4
_AROUND = " .,;:!?…\"'"
# Typographic signs that models replace when they copy.
_ALIKE = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " ", "…": "..."}
)


def normalized(text: str) -> str:
    r"""Return `text` in one Unicode form, with plain quotation marks and dashes, without emphasis and with single blanks.

    >>> normalized("“Never  push”\n**to** `main`")
    '"never push" to main'
    """
    plain = unicodedata.normalize("NFKC", text).translate(_ALIKE).replace("**", "").replace("`", "")
    return " ".join(plain.split()).casefold()


def find_quote(quote: str, texts: Sequence[str]) -> int | None:
    r"""Return the position of the first of `texts` that contain `quote`; None if it is in none or too short.

    A short quote counts only if it is a whole text.

    >>> find_quote("never push", ["Hello.", "Never\npush to main."]), find_quote("a", ["a b"]), find_quote("Yes!", ["yes"])
    (1, None, 0)
    """
    return next((place for place, text in enumerate(texts) if is_quoted(quote, normalized(text))), None)


def is_quoted(quote: str, text: str) -> bool:
    """Return whether `quote` is in `text`, which is `normalized` already: many quotes are sought in one text."""
    wanted = normalized(quote).strip(_AROUND)
    if len(wanted) < LEAST_CHARS and not (len(wanted) >= 2 and not wanted.isascii()):
        return bool(wanted) and wanted == text.strip(_AROUND)
    return wanted in text


def missing_name(names: Iterable[str], text: str) -> str:
    """Return the first of `names` that does not be in `text`, which is `normalized` already, as a whole; "" if all do.

    >>> missing_name(["30", "src/a.py"], "wait 300 s, see src/a.py")
    '30'
    """
    return next((name for name in names if not _is_whole_in(normalized(name), text)), "")


def _is_whole_in(name: str, text: str) -> bool:
    start = text.find(name)
    while name and start >= 0:
        before, after = text[start - 1 : start], text[start + len(name) : start + len(name) + 1]
        if not (_joins(before, name[0]) or _joins(name[-1], after)):
            return True
        start = text.find(name, start + 1)
    return not name


def _joins(left: str, right: str) -> bool:
    """Return whether two characters are of one word or of one number: of "10k" the number is 10."""
    if left.isdigit() or right.isdigit():
        return left.isdigit() and right.isdigit()
    return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()
