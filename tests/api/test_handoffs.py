import pytest

from aether.api.handoffs import prose_of

PROSE = "The index was moved to SQLite. The tests of the importer still fail on Windows; next is the clock."
SUMMARY = f"<analysis>I think about it.</analysis>\n<summary>{PROSE}</summary>"


@pytest.mark.parametrize(
    ("raw", "prose"),
    [
        (SUMMARY, PROSE),
        (PROSE, PROSE),
        (f"<ANALYSIS>\nhm\n</ANALYSIS>\n{PROSE}", PROSE),
        (f"<analysis>I will write a <summary> soon.</analysis><summary>{PROSE}", PROSE),
        ("<analysis>cut off", ""),
        ("<aether-memory>told</aether-memory>", ""),
        ("<summary></summary>", ""),
    ],
)
def test_the_prose_is_what_stands_in_the_summary(raw, prose):
    assert prose_of(raw) == prose


def test_secrets_do_not_come_with_the_prose():
    assert "hunter2hunter2" not in prose_of("The password=hunter2hunter2 was set.")


def test_of_a_long_summary_code_goes_first_and_the_rest_is_shortened():
    code = "```go\n" + "x := 1\n" * 2_000 + "```\n"

    assert prose_of(f"Before.\n{code}After.") == "Before.\n\nAfter."
    assert prose_of(f"Short.\n{code[:40]}```") != "Short."
    assert 6_000 <= len(prose_of("word " * 5_000)) < 6_100
