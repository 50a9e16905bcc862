"""Text without the machinery around it, and without lines that aether injected."""

from __future__ import annotations

from aether.text.cleaning import clean, without_echoes, without_escapes, without_injected
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
def test_only_the_words_of_a_person_or_model_are_left(text, left):
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
def test_injected_text_never_comes_through(text, left):
    assert without_injected(text) == left


def test_line_ends_are_plain():
    assert without_escapes("a\r\nb\rc\x1b]0;title\x07d") == "a\nb\ncd"


TOLD = [
    '<aether-memory occasion="startup">',
    "Constraints and preferences of this project:",
    "- 2026-09-01 (81 days ago) Never retry the webhook.",
    "- Use pnpm, not npm.",
    "</aether-memory>",
]


@rows(
    "line",
    [
        "- 2026-09-01 (81 days ago) Never retry the webhook.",
        "- 2026-09-01 Never retry the webhook.",
        "  * Never  retry the **webhook**.",
        "> - Use pnpm, not npm.",
        "2026-09-02 Use pnpm, not npm.",
        "- yesterday decision: We chose SQLite. [wm_1772359200000000_9f86d081]",
        "- 3 days ago summary: Moved. [phase_1_9f86d081]",
        "In full: aether recall --full wm_1772359200000000_9f86d081",
    ],
)
def test_a_repeated_injected_line_is_removed(line):
    assert without_echoes(f"First.\n{line}\nLast.", TOLD) == "First.\nLast."


@rows(
    "line",
    [
        "Use pnpm, not npm.",
        "- Use yarn, not npm.",
        "- 2026-09-01 Fixed the webhook.",
        "Constraints and preferences of this project:",
        "See [wm_1772359200000000_9f86d081].",
        "- see [1]",
    ],
)
def test_any_other_line_stays(line):
    assert without_echoes(f"First.\n{line}\nLast.", TOLD) == f"First.\n{line}\nLast."


def test_the_announcement_of_removed_lines_is_removed():
    assert without_echoes("**From memory:**\n- Use pnpm, not npm.\n- Never retry the webhook.", TOLD) == ""
    assert (
        without_echoes("From memory:\n\n- Use pnpm, not npm.\nSo I did.", TOLD).strip().endswith("So I did.")
    )


def test_without_injected_lines_all_is_kept():
    text = "- 2026-09-01 Never retry the webhook.\n- Use pnpm, not npm."

    assert without_echoes(text) == text
    assert without_echoes(text, ["Use pnpm, not npm."]) == text
