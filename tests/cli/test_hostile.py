"""Whatever is named on the command line, a command answers in its own words: no traceback, one line."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from aether.cli.main import main
from tests.tables import rows

FILES = ["binary", "empty", "directory", "list.json", "deep.json", "odd.jsonl", "number.json", "missing", "", "-",
         "../x", "a_file/x", "x" * 5000]  # fmt: skip
ON_FILES = [
    "import {}", "import --dry-run {}", "memory ingest --phase 1 {}", "schema --check {}",
    "schema --check --schema memory {}", "tokens count {}", "export --output {}", "demo --keep {}", "init {}",
    "status --layers --home {}", "add x --home {}", "doctor --home {}", "doctor --repair --home {}",
    "snapshot --list --home {}", "log --home {}", "memory search x --home {}", "undo --home {}",
]  # fmt: skip
VALUES = ["../x", "", "a/b", "con", "x" * 300, "9" * 23, "-1", "\ud800", "*", "1e400", "nan", "a\x1bb"]
ON_VALUES = [
    "memory show {}", "memory update {} --content y", "memory update $ITEM --relevance {}",
    "memory update $ITEM --metadata {}", "graph --link $ITEM {}", "memory search {}", "memory search x --limit {}",
    "memory search x --since {}", "memory search x --phase {}", "memory show --limit {}",
    "memory prepare --phase {}", "compress --phase {}", "compress --phase 1 --architect {}",
    "add {}", "add y --type {}", "add y --relevance {}", "add y --phase {}",
    "add y --metadata {}", "add y --source {} --caste {}", "snapshot --restore {} --yes",
    "snapshot --label {}", "show {}", "show memory --revision {}", "undo {}", "log --limit {}",
    "signal {} c", "signal FOCUS {}", "signal FEEDBACK c --strength {}", "signal --caste {}",
    "phase start {}", "phase complete {}", "phase decide {}", "state {}", "state INIT --trigger {}",
    "import session.jsonl --format {}", "import session.jsonl --phase {}", "schema --check README.md --schema {}",
    "tokens use {}", "completion {}", "memory show", "status --limits", "doctor", "log", "state",
]  # fmt: skip
# These answer 1 with findings, or with nothing to do, on stdout: that is their result, not an error.
ANSWERS = {"doctor", "schema", "prepare", "init"}


class Garbage:
    """Standard input that holds no text."""

    buffer = io.BytesIO(b"\xff\x00garbage")

    def isatty(self):
        return False


@pytest.fixture
def littered(here, tmp_path, monkeypatch):
    """A home among files that are not what a command hopes for."""
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "odd.jsonl").write_text('{"content":"\\ud800","type":"note"}\n{"content":5}\nnull\n[]\n')
    (tmp_path / "number.json").write_text('{"id":' + "9" * 6000 + "}")
    (tmp_path / "a_file").write_text("x")
    monkeypatch.setattr(sys, "stdin", Garbage())
    return here


def answered(line, value, variables, capsys):
    words = [word.replace("{}", value).replace("$ITEM", variables["ITEM"]) for word in line.split()]
    capsys.readouterr()

    code = main(words)

    shown = capsys.readouterr()
    if code and not ANSWERS & set(words):
        assert shown.out == "", words
        assert shown.err.startswith("Error: "), words
        assert shown.err.count("\n") == 1, words
        assert "\x1b" not in shown.err, words


@rows("line", ON_FILES)
def test_any_file_is_met_with_words(line, littered, capsys):
    for name in FILES:
        answered(line, name, littered, capsys)


@rows("line", ON_VALUES)
def test_any_value_is_met_with_words(line, littered, capsys):
    for value in VALUES:
        answered(line, value, littered, capsys)


READERS = [
    "import {}", "import --dry-run {}", "import --format chat {}", "memory ingest --phase 1 {}",
    "schema --check --schema memory {}", "tokens count {}",
    "compact run {} --window 8000", "compact run --dry-run {} --window 8000", "compact check {} --for openai", "graph --import {}",
    "hook SessionStart {}",
]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="there are no FIFOs")
def test_no_command_waits_for_a_pipe_or_a_device_that_is_named_as_a_file(littered, capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "to-pipe").symlink_to(tmp_path / "pipe.jsonl")
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "pipe.jsonl")
    (tmp_path / "pipes" / "zero.json").symlink_to("/dev/zero")
    for line in READERS:
        for name in ("pipe.jsonl", "zero.jsonl", "to-pipe", "pipes", "/dev/zero"):
            code = main([word.replace("{}", name) for word in line.split()])

            shown = capsys.readouterr()
            # A hook with 2 blocks Claude Code.
            assert code in ((1,) if line.startswith("hook") else (2, 3)), (line, name, shown)
            assert (
                "pipe or a device" in shown.err or "irectory" in shown.err or "no transcripts" in shown.err
            ), line


@pytest.mark.skipif(os.name == "nt", reason="there are no descriptors with names")
@rows(
    "line", ["import {}", "compact run {} --window 8000", "compact check {} --for openai", "tokens count {}"]
)
def test_a_descriptor_that_a_shell_made_of_a_command_is_read(line, littered, capsys):
    read_end, write_end = os.pipe()
    os.write(write_end, b'[{"role": "user", "content": "We decided to use SQLite for the ledger."}]')
    os.close(write_end)
    try:
        code = main([word.replace("{}", f"/dev/fd/{read_end}") for word in line.split()])
    finally:
        os.close(read_end)

    assert code == 0, capsys.readouterr()


@rows("text", ["null", "null\n", "true", " 7 ", "null\nnull\n", "[null]", "{}", "[]"])
def test_a_file_in_which_nothing_is_recognised_is_no_import(text, littered, capsys):
    Path("nothing.json").write_text(text)

    assert main(["import", "nothing.json"]) == 2
    assert "nothing.json" in capsys.readouterr().err
