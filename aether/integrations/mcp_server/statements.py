"""Statements: what is stored of a text that a model gives, and the words that say what is not.

Nothing is left out without a word: a model that believes that something is remembered does not say it again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from aether.redact.private import without_whole_blocks
from aether.redact.redaction import redact

LEFT_OUT = "What is marked as private, or as aether's own memory, was left out."
REPLACED = "Secrets in it were replaced by <REDACTED> and are not stored."


class Statement(NamedTuple):
    """What is stored of a text."""

    text: str
    note: str
    """What was changed; empty where nothing was."""


def stated(text: str) -> Statement:
    """Return what is stored of `text`, and what is to be said of that.

    >>> stated("Use SQLite. <private>It is mine.</private>")
    Statement(text='Use SQLite. ', note="What is marked as private, or as aether's own memory, was left out.")
    """
    public = without_whole_blocks(text)
    kept = redact(public)
    # A tag of aether's own that stands alone is written otherwise, as long as it was, and is not left out.
    noted = {LEFT_OUT: len(public) != len(text), REPLACED: kept != public}
    return Statement(kept, " ".join(words for words, holds in noted.items() if holds))


def note_of(value: Any) -> str:
    """Return what is to be said of all texts in `value`."""
    texts = [value]
    notes: dict[str, None] = {}
    for each in texts:
        if isinstance(each, (dict, list)):
            texts += each.values() if isinstance(each, dict) else each
        else:
            notes |= {stated(each).note: None}
    return " ".join(note for note in notes if note)
