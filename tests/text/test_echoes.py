from aether.text.cleaning import without_echoes
from tests.tables import rows

TOLD = [
    '<aether-memory occasion="startup">',
    "Constraints and preferences:",
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
def test_a_line_that_was_told_is_taken_out(line):
    assert without_echoes(f"First.\n{line}\nLast.", TOLD) == "First.\nLast."


@rows(
    "line",
    [
        "Use pnpm, not npm.",
        "- Use yarn, not npm.",
        "- 2026-09-01 Fixed the webhook.",
        "Constraints and preferences:",
        "See [wm_1772359200000000_9f86d081].",
        "- see [1]",
    ],
)
def test_any_other_line_stays(line):
    assert without_echoes(f"First.\n{line}\nLast.", TOLD) == f"First.\n{line}\nLast."


def test_what_only_announces_them_goes_with_them():
    assert without_echoes("**From memory:**\n- Use pnpm, not npm.\n- Never retry the webhook.", TOLD) == ""
    assert (
        without_echoes("From memory:\n\n- Use pnpm, not npm.\nSo I did.", TOLD).strip().endswith("So I did.")
    )


def test_where_nothing_was_told_all_stays():
    text = "- 2026-09-01 Never retry the webhook.\n- Use pnpm, not npm."

    assert without_echoes(text) == text
    assert without_echoes(text, ["Use pnpm, not npm."]) == text
