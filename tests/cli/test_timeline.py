"""`aether timeline`, `aether timeline` and `aether report`: what a person sees, without an extra."""

from __future__ import annotations

import json

import aether
from tests.cli.stage import shown


def test_a_timeline_has_days_conversations_and_castes(here, capsys):
    about = {"timestamp": "2026-01-05T10:00:00Z", "conversation": "c1", "title": "Ship the shop"}
    aether.add_working_memory_item(
        "Use one file.\nIt is simple.", "decision", 0.9, caste="builder", metadata=about
    )

    lines = shown(capsys, "timeline", "--until", "2026-02-01").out.splitlines()

    assert lines == [
        "2026-01-05",
        "  Ship the shop",
        "    10:00  decision  builder  Use one file. It is simple.",
    ]


def test_older_moments_beyond_the_limit_are_named(here, capsys):
    seen = shown(capsys, "timeline", "--limit", "1")

    assert len(seen.out.splitlines()) == 2
    assert seen.err == "Older moments are left out: --limit 0 shows all.\n"


def test_an_empty_answer_says_so(here, capsys):
    assert "Nothing happened" in shown(capsys, "timeline", "--until", "2020-01-01").err
    assert "has nothing about none.py" in shown(capsys, "timeline", "none.py").err


def test_a_history_shows_each_part_and_marks_what_was_revoked(here, capsys):
    aether.add_working_memory_item("Never edit src/app.py by hand.", "constraint", 0.9)
    aether.add_working_memory_item("`make` failed: src/app.py:3\nWorked when run again.", "solution", 0.9)

    text = shown(capsys, "timeline", "app.py").out
    data = json.loads(shown(capsys, "timeline", "app.py", "--json").out)

    assert text.index("Errors and fixes:") < text.index("Decisions and rules:")
    assert "`make` failed: src/app.py:3 Worked when run again." in text
    assert [len(data[part]) for part in ("changes", "errors", "decisions", "others")] == [0, 1, 1, 0]


def test_markdown_goes_to_stdout_or_to_a_file(here, capsys, tmp_path):
    aether.add_goal("Tell customers of a delay")
    aether.decide_goal("Mail only", rationale="SMS is dear")
    text = shown(capsys, "report", "--format", "markdown").out
    seen = shown(capsys, "report", "--format", "markdown", "--output", "digest.md")

    written = (tmp_path / "digest.md").read_text(encoding="utf-8")
    assert (seen.out, written.splitlines()[0]) == ("", text.splitlines()[0])
    assert "because a crash must not tear it" in written
    assert "Mail only Why: SMS is dear" in written
    assert seen.err.startswith("Written: digest.md (")


def test_a_week_and_a_time_exclude_each_other(here, capsys):
    assert "exclude each other" in shown(capsys, "report", "--week", "--since", "3d", code=2).err


def test_a_directory_that_does_not_exist_is_an_error(here, capsys):
    seen = shown(capsys, "report", "--format", "markdown", "--output", "none/x.md", "--json", code=3)

    assert json.loads(seen.out)["error"]["where"] == "none"
