from aether.memory.phases import PhaseMarker, phase_markers
from tests.tables import rows


@rows(
    "line",
    [
        "Phase 2 complete", "Phase 2 complete.", "**Phase 2 complete!**", "## Phase 2: done", "✅ Phase 2 completed",
        "Phase 2 is now finished.", "phase 2 – done", "aether: complete phase 2", "_Phase 2 has been completed._",
        "Phase 2 is complete ✅",
    ],
)  # fmt: skip
def test_a_line_of_its_own_says_that_a_phase_is_over(line):
    assert phase_markers(f"All tests pass.\n\n{line}\n\nShall I go on?") == [PhaseMarker("complete", 2)]


@rows(
    "text",
    [
        "Is phase 2 complete?", "Phase 2 complete?", "Once phase 2 is complete, we deploy.", '"Phase 2 complete"',
        "`Phase 2 complete`", "> Phase 2 complete", "- Phase 2: done", "1. Phase 2: done", "- [x] Phase 2 complete",
        "| Phase 2 complete |", "    Phase 2 complete", "\tPhase 2 complete", "```\nPhase 2 complete\n```",
        "~~~text\nPhase 2 complete\n~~~\nmore", "```\nPhase 2 complete", "I'll then write:\n\nPhase 2 complete",
        "**When the tests pass, say:**\nPhase 2 complete", "Phase 2 complete\n\nNo: phase 2 is not really complete.",
        "Phase 2 is almost complete", "Phase two complete", "Phase 2 completes the parser", "Phase 2 done by Friday",
        "", "phase", "Phase 12345678 complete",
    ],
)  # fmt: skip
def test_quotes_code_plans_questions_and_denials_say_nothing(text):
    assert phase_markers(text) == []


@rows(
    ("line", "name"),
    [
        ('aether: start phase 3 "the importer"', "the importer"), ("aether: start phase 3", ""),
        ("**aether: start phase 3: hooks**", "hooks"), ("Aether: start phase 3 “Plugin”.", "Plugin"),
    ],
)  # fmt: skip
def test_an_explicit_line_starts_a_phase(line, name):
    assert phase_markers(line) == [PhaseMarker("start", 3, name)]


def test_only_an_explicit_line_starts_one():
    assert phase_markers("Start phase 3") == phase_markers("Phase 3 started") == []


def test_markers_keep_their_order():
    text = "Phase 2 complete\r\n\r\naether: start phase 3 'x'\r\n"

    assert phase_markers(text) == [PhaseMarker("complete", 2), PhaseMarker("start", 3, "x")]


def test_code_before_a_line_does_not_hide_it():
    assert phase_markers("```\nmake\n```\nPhase 2 complete") == [PhaseMarker("complete", 2)]


def test_long_text_without_an_end_takes_no_time():
    assert phase_markers("phase " + "not " * 50_000) == []
