"""Each example runs in an empty directory and prints what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aether
from tests.tables import rows

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What an example may be told of, whole; the lines that compaction itself takes are fewer.
MAX_LINES = 30
MOST_LINES_OF_USER_CODE = 10
NEEDS = {"agents_sdk_minimal": "agents", "langchain_agent": "langchain"}
SHOWN = {
    "agents_sdk_minimal": [
        "N items are sent instead of 39; the first: Read chapter 0.",
        "and the summary of what is not sent:", "<COMPACT-SUMMARY vN>",
    ],
    "anthropic_messages": [
        "N messages are sent instead of 39; the first: Read chapter 0.",
        "and the summary of what is not sent:", "<COMPACT-SUMMARY vN>",
    ],
    "archive": [
        "29 days: full", "30 days: key_points", "90 days: summary", "365 days: summary",
        "its age asks for metadata - its importance keeps the summary",
        "exactly as it was: True", "['talk']",
    ],
    "coding_session": [
        "compacted on the way: True - by hand, tokens fewer by 40 % or more: True",
        "the policy is the very same message: True", "the goal is still there: True",
        "and the summary:", "<COMPACT-SUMMARY vN>",
    ],
    "context_loop": ["fits: True - first: Be brief. - whole: True", "[Checkpoint 1"],
    "import_and_search": ["2 items, then 0 new and 2 known", "We decided to use PostgreSQL, because two services write."],
    "langchain_agent": ["the state is whole: 40 - compactions: True", "<COMPACT-SUMMARY vN>"],
    "long_research": [
        "always fits: True - rounds: True - one summary: True",
        "first of all: Find out why bees leave. The budget is 5,000 EUR; never contact the press.",
        "had back word for word: True - of three windows: True",
    ],
    "memory_tool": [
        "File created successfully at: /memories/ants.md", "Ants carry fifty times their weight.", "undid: memory create",
    ],
    "orchestrator_loop": [
        "handed over: Decided to keep state in JSON, because a person can read it.", "at work: builder-1", "2 items became session 1, written by command", "left in working memory: 0"],
    "steering_by_signals": ["REDIRECT 0.9 no new dependencies", "FOCUS 0.7 speed of the importer"],
    "typed_orchestrator": [
        "queued - speed of the writes", "decision of phase 1", "session: Phase 1 chose how state is kept.",
        "next phase: speed of the writes",
        *["archive - State is JSON, because people read it."]
        * 2,
    ],
    "undo_and_time_travel": [
        "then: The limit is 30 requests a second.", "now:  The limit is 60 requests a second.",
        "undid: update", "now:  The limit is 30 requests a second.",
    ],
}  # fmt: skip


ALONE = [name for name in SHOWN if name not in NEEDS]
# Runs examples one after the other, each in a directory of its own, and prints what each printed.
RUNNER = """
import contextlib, io, json, os, runpy, sys
printed = {}
for path in sys.argv[1:]:
    name = os.path.splitext(os.path.basename(path))[0]
    os.mkdir(name)
    with contextlib.chdir(name), contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(path, run_name="__main__")
    printed[name] = out.getvalue()
print(json.dumps(printed))
"""


def test_examples_print_what_they_show_and_touch_no_home_but_their_own(tmp_path):
    """In one process, which imports once; the slow tier runs each of them in its own."""
    home = aether.init(tmp_path / ".aether")
    aether.archive_conversations(
        [{"id": "mine", "messages": [{"role": "user", "content": "Hi."}]}], home=home
    )
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    paths = [str(ROOT / "examples" / f"{name}.py") for name in ALONE]
    printed = json.loads(ran(["-c", RUNNER, *paths], tmp_path))

    assert [name for name in ALONE if not matches(printed[name], SHOWN[name])] == []
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert [name for name in ALONE if any((tmp_path / name).iterdir())] == []


@pytest.mark.slow
@rows("name", ALONE)
def test_an_example_prints_what_it_shows(name, tmp_path):
    require_shown(name, tmp_path)


@pytest.mark.extras
@pytest.mark.parametrize("name", NEEDS)
def test_an_example_with_another_package_prints_what_it_shows(name, tmp_path):
    pytest.importorskip(NEEDS[name], reason=f"needs the package {NEEDS[name]}")
    require_shown(name, tmp_path)


def require_shown(name, tmp_path):
    assert matches(ran([str(ROOT / "examples" / f"{name}.py")], tmp_path), SHOWN[name])


def ran(words, directory):
    """Run the interpreter in `directory`, and return what it printed."""
    scratch = directory / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, *words], cwd=directory, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def matches(printed, shown):
    """Return whether the lines are those that are shown: N is a number, and what follows a summary's head is its text."""
    lines = printed.splitlines()
    if shown[-1].startswith("<COMPACT-SUMMARY"):
        assert len(lines) > len(shown)
        lines = lines[: len(shown)]
    patterns = [
        re.escape(line).replace("N\\ ", r"([12][0-9]|[1-9])\ ").replace("vN", "v[0-9]+") for line in shown
    ]
    return len(lines) == len(patterns) and all(map(re.fullmatch, patterns, lines))


def test_the_architect_says_what_it_is_for_where_there_is_no_hand_off():
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "architect.py")], input="", check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("No hand-off on stdin.")


def test_no_example_goes_unrun():
    assert {path.stem for path in EXAMPLES} == {*SHOWN, "architect"}


@rows("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_compaction_of_an_agent_takes_ten_lines():
    _, _, rest = (
        (ROOT / "examples" / "agents_sdk_minimal.py").read_text(encoding="utf-8").partition("# start")
    )
    code, _, _ = rest.partition("# end")

    assert "compaction_filter(session" in code
    assert len(code.strip().splitlines()) - 1 <= MOST_LINES_OF_USER_CODE


@rows("name", sorted(NEEDS))
def test_an_example_without_its_package_says_how_to_install_it(name, tmp_path):
    hidden = f"import sys; sys.modules.update(agents=None, langchain=None); exec(compile(open({str(ROOT / 'examples' / name)!r} + '.py').read(), 'x', 'exec'))"
    ran = subprocess.run(
        [sys.executable, "-c", hidden], cwd=tmp_path, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip

    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert f"pip install '.[{NEEDS[name]}]'" in ran.stderr


@pytest.mark.slow
def test_an_orchestrator_with_typed_results_passes_the_strictest_check(tmp_path):
    mypy = pytest.importorskip("mypy.api", reason="needs mypy")
    cache = ROOT / ".mypy_cache"
    said, wrong, code = mypy.run(
        ["--strict", "--follow-imports=silent", "--config-file=", "--cache-dir", str(cache if cache.is_dir() else tmp_path),
         str(ROOT / "examples/typed_orchestrator.py")]
    )  # fmt: skip

    assert code == 0, said + wrong
