"""The knowledge graph by hand: in, found, out."""

from __future__ import annotations

import io
import json
import sys

import pytest

from aether.cli import graph
from tests.cli.stage import shown


def test_a_file_is_merged_and_how_to_take_it_back_is_said(here, capsys):
    first = shown(capsys, "graph", "--import", "memory.jsonl")
    again = shown(capsys, "graph", "--import", "memory.jsonl")

    assert first.out == "1 entity, 0 observations of known ones, 1 relation added; 0 known already.\n"
    assert first.err.startswith("To undo it: aether undo ")
    assert (again.out.split()[-3], again.err) == ("2", "")


def test_what_is_found_is_shown_with_its_relations(here, capsys):
    shown(capsys, "graph", "--import", "memory.jsonl")

    assert shown(capsys, "graph", "COLONY").out.splitlines() == [
        "Colony (project)",
        "  Its state is JSON.",
        "Colony answers to Queen",
    ]


def test_a_search_that_finds_nothing_says_so(here, capsys):
    shown(capsys, "graph", "--import", "memory.jsonl")

    assert shown(capsys, "graph", "prune").err == "Nothing found.\n"


def test_what_comes_in_through_a_pipe_goes_out_again(here, tmp_path, capsys, monkeypatch):
    data = (tmp_path / "memory.jsonl").read_bytes() + b"garbage\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert shown(capsys, "graph", "--import", "-").err.startswith("line 3: not JSON")
    assert shown(capsys, "graph", "--export").out.encode() == data.removesuffix(b"garbage\n")
    assert shown(capsys, "graph", "--export", "--output", "out.jsonl").out == "out.jsonl\n"
    assert (tmp_path / "out.jsonl").read_bytes() == data.removesuffix(b"garbage\n")


def test_a_file_that_is_missing_is_named(here, capsys):
    assert "cannot be read" in shown(capsys, "graph", "--import", "missing", code=3).err


@pytest.mark.parametrize(
    "line", [b'{"type": "user", "message": {}}', b"\x00\xff", b'{"type": "entity", "name": 1}']
)
def test_a_file_that_is_no_graph_is_an_error_of_one_line(line, here, tmp_path, capsys):
    (tmp_path / "wrong").write_bytes(b"\n".join([line] * 500))

    text = shown(capsys, "graph", "--import", "wrong", code=2).err

    assert text.startswith("Error: wrong: no line is an entity or a relation (line 1: ")
    assert text.endswith('A transcript: "aether import".\n')
    assert text.count("\n") == 1


def test_of_many_bad_lines_some_are_named(here, tmp_path, capsys):
    (tmp_path / "torn.jsonl").write_bytes((tmp_path / "memory.jsonl").read_bytes() + b"garbage\n" * 13)

    reported = shown(capsys, "graph", "--import", "torn.jsonl").err.splitlines()

    assert len(reported) == graph.MOST_BAD_LINES + 2
    assert reported[-2] == "… and 3 lines more; --json names all."
    data = json.loads(shown(capsys, "graph", "--import", "torn.jsonl", "--json").out)
    assert (len(data["bad_lines"]), data["known"]) == (13, 2)
