"""Answers: parts of a long text, none longer than a client takes."""

from __future__ import annotations

import pytest

from aether.errors import InvalidInput
from aether.integrations.mcp_server.results import RESULT_CHARS, as_json, part_of
from tests.tables import rows


def test_the_parts_of_a_text_are_all_of_it_and_each_says_how_to_go_on():
    text = "".join(f"line {n}\n" for n in range(8_000))

    parts = []
    while not parts or "Go on with" in parts[-1]:
        parts.append(part_of(text, len(parts) + 1, ask="get the same"))

    assert len(parts) > 2
    assert "".join(part.rpartition("\n[part")[0] for part in parts) == text
    assert all(len(part) < RESULT_CHARS + 100 for part in parts)
    assert parts[0].endswith("Go on with get the same, part=2.]")
    assert parts[-1].endswith("This is the last.]")


def test_a_line_that_is_too_long_is_cut_in_the_middle():
    text = "x" * (RESULT_CHARS + 10)

    assert part_of(text, 2, ask="").startswith("x" * 10 + "\n")


@rows("part", [0, 2, -1])
def test_a_part_that_is_none_is_refused(part):
    with pytest.raises(InvalidInput, match="Use 1 to 1"):
        part_of("short", part, ask="")


def test_values_are_written_for_people():
    assert as_json({"a": "ä"}) == '{\n  "a": "ä"\n}'
