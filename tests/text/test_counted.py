"""Counted things, one and many."""

from __future__ import annotations

from aether.text.words import pluralize
from tests.tables import rows


@rows(
    ("number", "what", "said"),
    [
        (0, "sessions", "0 sessions"), (1, "sessions", "1 session"), (2, "sessions", "2 sessions"),
        (1, "entries", "1 entry"), (1, "notes of Claude Code", "1 note of Claude Code"),
    ],
)  # fmt: skip
def test_one_thing_is_named_in_the_singular(number, what, said):
    assert pluralize(number, what) == said
