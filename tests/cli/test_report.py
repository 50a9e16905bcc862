"""`aether report`: what needs no extra."""

from __future__ import annotations

import json

from tests.cli.stage import shown


def test_markdown_goes_to_stdout_or_to_a_file(here, capsys, tmp_path):
    text = shown(capsys, "report", "--format", "markdown").out
    seen = shown(capsys, "report", "--format", "markdown", "--output", "digest.md")

    written = (tmp_path / "digest.md").read_text(encoding="utf-8")
    assert (seen.out, written.splitlines()[0]) == ("", text.splitlines()[0])
    assert "Why: A crash must not tear it." in written
    assert seen.err.startswith("Written: digest.md (")


def test_a_week_and_a_time_exclude_each_other(here, capsys):
    assert "exclude each other" in shown(capsys, "report", "--week", "--since", "3d", code=2).err


def test_a_directory_that_does_not_exist_is_an_error(here, capsys):
    seen = shown(capsys, "report", "--format", "markdown", "--output", "none/x.md", "--json", code=3)

    assert json.loads(seen.out)["error"]["where"] == "none"
