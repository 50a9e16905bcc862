"""Quotes: whether words stand in a text, whatever its white space, quotation marks and Unicode form."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# A quote of fewer characters stands in almost any text by chance.
LEAST_CHARS = 4
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
    r"""Return the position of the first of `texts` in which `quote` stands; None if it stands in none or is too short to tell.

    >>> find_quote("never push", ["Hello.", "Never\npush to main."]), find_quote("a", ["a"])
    (1, None)
    """
    wanted = normalized(quote).strip(" .,;:!?…\"'")
    if len(wanted) < LEAST_CHARS and not (len(wanted) >= 2 and not wanted.isascii()):
        return None
    return next((place for place, text in enumerate(texts) if wanted in normalized(text)), None)
