from aether.memory.briefing.block import HEADINGS, Line, Share, lay_out, longest_fit, rank
from tests.memory.briefs import NOW, at


def lines(section, *texts):
    return [Line(section, text, at(20)) for text in texts]


def test_sections_share_the_order_by_their_first_line_and_their_step():
    given = {"decisions": lines("decisions", "d1", "d2", "d3"), "files": lines("files", "f1", "f2", "f3")}

    order = rank(given, {"decisions": Share(0, 2, 9), "files": Share(1, 1, 9)})

    assert [line.text for line in order] == ["d1", "f1", "d2", "f2", "f3", "d3"]


def test_a_section_has_no_more_than_its_share_and_may_be_missing():
    order = rank({"files": lines("files", "f1", "f2")}, {"files": Share(0, 1, 1), "open": Share(0, 1, 9)})

    assert [line.text for line in order] == ["f1"]


def test_lines_stand_by_section_below_its_heading():
    given = [
        *lines("files", "/p/a.py (changed, 1x)"),
        *lines("rules", "Never push."),
        *lines("goal", "Goal: Ship it"),
    ]

    assert lay_out(given, now=NOW, root="/p/") == [
        "2026-02-20 Goal: Ship it",
        "Constraints and preferences:",
        "- 2026-02-20 Never push.",
        "Files changed (below /p/):",
        "- 2026-02-20 a.py (changed, 1x)",
    ]


def test_a_day_that_all_lines_of_a_section_share_is_told_once_with_its_age():
    old = "2026-01-02T00:00:00.000000Z"
    given = [
        *lines("rules", "Never push.", "Prefer tabs."),
        Line("decisions", "One", old),
        Line("decisions", "Two", old),
    ]

    assert lay_out(given, now=NOW) == [
        "Constraints and preferences (2026-02-20):",
        "- Never push.",
        "- Prefer tabs.",
        "Decisions (2026-01-02, 58 days ago):",
        "- One",
        "- Two",
    ]


def test_lines_of_several_days_or_of_none_say_their_own():
    given = [
        *lines("rules", "Never push."),
        Line("rules", "Prefer tabs.", at(21)),
        Line("open", "A"),
        Line("open", "B"),
    ]

    assert lay_out(given, now=NOW) == [
        "Constraints and preferences:", "- 2026-02-20 Never push.", "- 2026-02-21 Prefer tabs.",
        "Open errors and blockers:", "- A", "- B",
    ]  # fmt: skip


def test_without_a_root_files_are_told_by_their_whole_paths():
    assert lay_out(lines("files", "/p/a.py"), now=NOW) == ["Files changed:", "- 2026-02-20 /p/a.py"]


def test_every_section_but_the_goal_has_a_heading():
    assert [section for section, heading in HEADINGS.items() if not heading] == ["goal"]


def test_what_fits_is_the_longest_beginning():
    given = lines("rules", "one", "two", "three", "four")

    def make(some):
        return " ".join(line.text for line in some)

    assert longest_fit(given, make, lambda text: len(text) <= 8) == "one two"
    assert longest_fit(given, make, lambda text: True) == "one two three four"
    assert longest_fit(given, make, lambda text: False) == ""
    assert longest_fit([], make, lambda text: True) == ""
