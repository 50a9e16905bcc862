"""Whatever is named on the command line, a command answers in its own words: no traceback, one line."""

from __future__ import annotations

import io
import sys

import pytest

from aether.cli.main import main
from tests.tables import rows

FILES = ["binary", "empty", "directory", "list.json", "deep.json", "odd.jsonl", "number.json", "missing", "", "-",
         "../x", "a_file/x", "x" * 5000]  # fmt: skip
ON_FILES = [
    "import {}", "import --dry-run {}", "memory ingest --phase 1 {}", "schema check {}",
    "schema check --schema memory {}", "tokens count {}", "export --output {}", "demo --keep {}", "init {}",
    "memory status --home {}", "memory add x --home {}", "doctor --home {}", "doctor --repair --home {}",
    "snapshot list --home {}", "log --home {}", "memory search x --home {}", "undo --home {}",
]  # fmt: skip
VALUES = ["../x", "", "a/b", "con", "x" * 300, "9" * 23, "-1", "\ud800", "*", "1e400", "nan", "a\x1bb"]
ON_VALUES = [
    "memory get {}", "memory update {} --content y", "memory update $ITEM --relevance {}",
    "memory update $ITEM --metadata {}", "memory link $ITEM {}", "memory search {}", "memory search x --limit {}",
    "memory search x --since {}", "memory search x --phase {}", "memory list --limit {}",
    "memory prepare --phase {}", "memory compress --phase {}", "memory compress --phase 1 --architect {}",
    "memory add {}", "memory add y --type {}", "memory add y --relevance {}", "memory add y --phase {}",
    "memory add y --metadata {}", "memory add y --source {} --caste {}", "snapshot restore {} --yes",
    "snapshot create --label {}", "show {}", "show memory --revision {}", "undo {}", "log --limit {}",
    "signal emit {} c", "signal emit FOCUS {}", "signal emit FEEDBACK c --strength {}", "signal list --caste {}",
    "phase start {}", "phase complete {}", "phase decide {}", "state set {}", "state set INIT --trigger {}",
    "import session.jsonl --format {}", "import session.jsonl --phase {}", "schema check README.md --schema {}",
    "tokens use {}", "completion {}", "memory list", "memory verify", "doctor", "log", "phase show",
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
