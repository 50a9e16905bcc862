"""Each example runs in an empty directory and prints what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MAX_LINES = 25
SHOWN = {
    "import_and_search": ["2 items, then 0 new and 2 known", "We decided to use PostgreSQL, because two services write."],
    "orchestrator_loop": ["2 items became session 1, written by command", "left in working memory: 0"],
    "steering_by_signals": ["REDIRECT 0.9 no new dependencies", "FOCUS 0.7 speed of the importer"],
    "undo_and_time_travel": [
        "then: The limit is 30 requests a second.", "now:  The limit is 60 requests a second.",
        "undid: update", "now:  The limit is 30 requests a second.",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_what_it_shows(name, tmp_path):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")], cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == SHOWN[name]


def test_no_example_goes_unrun():
    assert {path.stem for path in EXAMPLES} == {*SHOWN, "architect"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
