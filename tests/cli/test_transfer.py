"""Import and export by hand."""

from __future__ import annotations

import io
import json
import sys

import aether
from aether.api import dedupe
from tests.cli.stage import shown


def test_a_dry_run_shows_the_items_and_stores_none(here, capsys):
    done = shown(capsys, "import", "session.jsonl", "--dry-run")

    assert "items would be stored" in done.out
    assert done.out.splitlines()[0].split() == ["type", "rel", "phase", "content"]
    assert len(aether.list_working_memory_items()) == 2


def test_importing_counts_and_importing_again_adds_nothing(here, capsys):
    done = shown(capsys, "import", "session.jsonl", "--phase", "7")

    assert "Phases: 7.\n" in done.out
    newest = aether.log(limit=1)[0].revision
    assert done.err == f"To undo it: aether undo {newest}\nNext: aether memory compress --phase 7\n"
    assert (
        "were known from an earlier import." in shown(capsys, "import", "session.jsonl", "--phase", "7").out
    )


def test_an_import_of_many_batches_says_how_to_take_it_back(here, capsys, monkeypatch):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 1)
    before = aether.list_working_memory_items()

    reported = shown(capsys, "import", "session.jsonl").err.splitlines()[0]

    revisions = [line.revision for line in aether.log(limit=0) if line.operation == "import"]
    assert reported == f"To undo it: aether undo {revisions[0]}"
    aether.undo()
    assert aether.list_working_memory_items() == before


def test_bad_lines_are_named(here, tmp_path, capsys):
    lines = (tmp_path / "session.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "session.jsonl").write_text("".join([*lines[:5], "{ torn\n", *lines[5:]]), encoding="utf-8")

    done = shown(capsys, "import", "session.jsonl")

    assert "session.jsonl: line 6: " in done.err
    assert "1 line or file could not be read" in done.out


def test_standard_input_is_read_for_a_dash(here, capsys, monkeypatch):
    item = json.dumps({"content": "Prefer plain functions.", "type": "preference"}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(item + b"\n")))

    assert "1 item stored" in shown(capsys, "import", "-", "--format", "items").out


def test_what_the_limit_pushed_out_is_reported(here, tmp_path, capsys):
    path = tmp_path / ".aether/data/memory.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            '"max_capacity_tokens": 200000', '"max_capacity_tokens": 400'
        ),
        encoding="utf-8",
    )

    assert "Compress more often." in shown(capsys, "import", "session.jsonl").out


def test_the_whole_colony_is_exported(here, tmp_path, capsys):
    printed = json.loads(shown(capsys, "export").out)

    assert shown(capsys, "export", "--output", "all.json").out == "all.json\n"
    assert json.loads((tmp_path / "all.json").read_text(encoding="utf-8")) == printed
    assert printed["documents"]["memory"]["working_memory"]["items"]


def test_exporting_into_nowhere_says_so(here, capsys):
    assert "no such directory" in shown(capsys, "export", "--output", "nowhere/all.json", code=3).err
