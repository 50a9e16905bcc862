"""What is stored of a text that a model gives, and what is said of the rest."""

from __future__ import annotations

from aether.integrations.mcp_server.tools import LEFT_OUT, REPLACED, notes_on, statement
from tests.tables import rows

SECRET = "api_key=abcdef1234567890abcdef"


@rows(
    ("text", "kept", "note"),
    [
        ("plain", "plain", ""),
        ("a <private> b", "a <private> b", ""),
        ("a <aether-memory> b", "a ‹aether-memory> b", ""),
        ("a <private>b</private>", "a ", LEFT_OUT),
        (SECRET, "api_key=<REDACTED>", REPLACED),
        (f"<private>b</private>{SECRET}", "api_key=<REDACTED>", f"{LEFT_OUT} {REPLACED}"),
    ],
)
def test_nothing_is_left_out_without_a_word(text, kept, note):
    assert statement(text) == (kept, note)


def test_one_note_is_about_all_texts_of_a_value():
    assert notes_on([{"a": "plain", "b": ["<private>x</private>", "<private>y</private>"]}]) == LEFT_OUT
    assert notes_on([]) == ""
