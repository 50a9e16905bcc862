"""Each example runs in an empty directory and prints what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What an example may be told of, whole; the lines that compaction itself takes are fewer.
MAX_LINES = 30
MOST_LINES_OF_USER_CODE = 10
NEEDS = {"agents_sdk_minimal": "agents", "langchain_agent": "langchain"}
SHOWN = {
    "agents_sdk_minimal": [
        "sent fewer than 39 items: True - summaries among them: 1", "the opening request is still there: Read chapter 0.",
    ],
    "anthropic_messages": ["kept: 40 - sent fewer than 39: True", "the opening request is still there: Read chapter 0."],
    "coding_session": [
        "compacted on the way: True - by hand, tokens fewer by 40 % or more: True",
        "the policy is the very same message: True", "the goal is still there: True",
    ],
    "import_and_search": ["2 items, then 0 new and 2 known", "We decided to use PostgreSQL, because two services write."],
    "langchain_agent": ["the state is whole: 40 - compactions: True - thread: bees"],
    "long_research": [
        "always fits: True - rounds: True - one summary: True",
        "first of all: Find out why bees leave. The budget is 5,000 EUR; never contact the press.",
        "had back word for word: True - of three windows: True",
    ],
    "orchestrator_loop": ["2 items became session 1, written by command", "left in working memory: 0"],
    "steering_by_signals": ["REDIRECT 0.9 no new dependencies", "FOCUS 0.7 speed of the importer"],
    "undo_and_time_travel": [
        "then: The limit is 30 requests a second.", "now:  The limit is 60 requests a second.",
        "undid: update", "now:  The limit is 30 requests a second.",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_what_it_shows(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs the package {NEEDS[name]}")
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


def test_compaction_of_an_agent_takes_ten_lines():
    _, _, rest = (
        (ROOT / "examples" / "agents_sdk_minimal.py").read_text(encoding="utf-8").partition("# begin")
    )
    code, _, _ = rest.partition("# end")

    assert "compaction_filter(session" in code
    assert len(code.strip().splitlines()) - 1 <= MOST_LINES_OF_USER_CODE
