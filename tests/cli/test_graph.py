"""The knowledge graph by hand: in, found, out."""

from __future__ import annotations

import io
import sys

from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def test_a_file_is_merged_and_how_to_take_it_back_is_said(here, capsys):
    first = shown(capsys, "graph", "import", "memory.jsonl")
    again = shown(capsys, "graph", "import", "memory.jsonl")

    assert first.out == "1 entities, 0 observations of known ones, 1 relations added; 0 were known.\n"
    assert first.err.startswith("To take it back: aether undo ")
    assert (again.out.split()[-3], again.err) == ("2", "")


def test_what_is_found_is_shown_with_its_relations(here, capsys):
    shown(capsys, "graph", "import", "memory.jsonl")

    assert shown(capsys, "graph", "search", "COLONY").out.splitlines() == [
        "Colony (project)",
        "  Its state is JSON.",
        "Colony answers to Queen",
    ]


def test_what_comes_in_through_a_pipe_goes_out_again(here, tmp_path, capsys, monkeypatch):
    data = (tmp_path / "memory.jsonl").read_bytes() + b"garbage\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert shown(capsys, "graph", "import", "-").err.startswith("line 3: not JSON")
    assert shown(capsys, "graph", "export").out.encode() == data.removesuffix(b"garbage\n")
    assert shown(capsys, "graph", "export", "--output", "out.jsonl").out == "out.jsonl\n"
    assert (tmp_path / "out.jsonl").read_bytes() == data.removesuffix(b"garbage\n")


def test_a_file_that_is_missing_is_named(here, capsys):
    assert "cannot be read" in shown(capsys, "graph", "import", "missing", code=3).err
