from aether.text.cleaning import clean, without_escapes, without_injected
from tests.tables import rows


@rows(
    ("text", "left"),
    [
        ("<system-reminder>be brief</system-reminder>\nUse SQLite.", "Use SQLite."),
        ("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", ""),
        ("<local-command-caveat>Caveat</local-command-caveat>", ""),
        ("<bash-input>pwd</bash-input>", ""),
        ("<task-notification>\n<task-id>7</task-id> torn", ""),
        ("<permissions instructions>\nnone\n</permissions instructions>Go.", "Go."),
        ("[Request interrupted by user for tool use]", ""),
        (
            "<command-message>exit</command-message>\n<command-name>/exit</command-name>\n<command-args></command-args>",
            "",
        ),
        (
            "<command-name>/compact</command-name><command-args>keep the plan</command-args>",
            "/compact keep the plan",
        ),
        ("a < b and <b>bold</b>", "a < b and <b>bold</b>"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_only_what_was_said_is_left(text, left):
    assert clean(text) == left


@rows(
    ("text", "left"),
    [
        ("a<aether-memory>x</aether-memory>b", "ab"),
        ("a<AETHER-MEMORY layer='long'>x</Aether-Memory >b", "ab"),
        ("a<aether-memory>x<aether-memory>y</aether-memory>z</aether-memory>b", "ab"),
        ("a<aether-memory>never closed", "a"),
        ("a<aether-memory torn", "a"),
        ("a</aether-memory>b", "ab"),
        ("no block", "no block"),
    ],
)
def test_what_aether_added_never_comes_through(text, left):
    assert without_injected(text) == left


def test_line_ends_are_plain():
    assert without_escapes("a\r\nb\rc\x1b]0;title\x07d") == "a\nb\ncd"
