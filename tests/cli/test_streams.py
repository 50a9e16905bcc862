"""Standard streams that are closed, or that nobody takes what is written from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aether.cli import streams

ROOT = Path(__file__).parents[2]


def ran(directory, line):
    """Run `aether` with words and redirections of a shell; returns the exit code and what it printed."""
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m aether {line}'], cwd=directory, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
@pytest.mark.parametrize(
    "line", ["statusline >&-", "statusline <&- >&- 2>&-", "status >&-", "memory list --json 2>&- >&-"]
)
def test_what_is_written_to_a_closed_stream_goes_nowhere(line, here, tmp_path):
    assert ran(tmp_path, line) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_an_error_but_for_the_status_line(here, tmp_path):
    assert ran(tmp_path, "statusline > /dev/full") == (0, "")

    code, text = ran(tmp_path, "status > /dev/full")
    assert (code, text.splitlines()[-1]) == (
        12, "Error: stdout: cannot be written: No space left on device. Make room, or send it elsewhere.",
    )  # fmt: skip


def test_only_what_is_missing_is_opened(monkeypatch):
    kept = sys.stdin
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)

    streams.open_missing()

    with sys.stdout, sys.stderr:
        assert (sys.stdin, sys.stdout.name, sys.stderr.name) == (kept, os.devnull, os.devnull)
