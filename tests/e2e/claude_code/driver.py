"""Runs the real Claude Code in a throwaway home: nothing of this machine goes in, nothing but loopback is reached."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import aether
from tests.e2e.claude_code.server import Api

SOURCE = Path(aether.__file__).parents[1]

# Seconds; a session of a few requests takes five at most.
PATIENCE = 90.0

SCRIPTS = {
    "aether": "aether.cli.main",
    "aether-hook": "aether.integrations.claude_code.hook",
}


class Stage(NamedTuple):
    """Where sessions play: a home of the person, a directory of programs, and the API they talk to."""

    root: Path
    home: Path
    programs: Path
    api: Api
    proxy: int


class Session(NamedTuple):
    """What a run of the CLI showed."""

    id: str
    events: list[dict[str, Any]]
    result: str
    error: bool
    stderr: str
    code: int

    def system(self, subtype: str) -> list[dict[str, Any]]:
        """The system events of one kind."""
        return [
            event
            for event in self.events
            if event.get("type") == "system" and event.get("subtype") == subtype
        ]


def claude() -> str:
    """The CLI to test, or an empty text."""
    return os.environ.get("AETHER_TEST_CLAUDE", "") or shutil.which("claude") or ""


def stage(root: Path, *, api: Api, proxy: int) -> Stage:
    """Make a home and a directory that holds the programs of this environment."""
    home, programs = root / "home", root / "programs"
    home.mkdir(parents=True)
    programs.mkdir()
    for name, module in SCRIPTS.items():
        launcher = programs / name
        launcher.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path[0] = {str(SOURCE)!r}\nfrom {module} import run\nrun()\n"
        )
        launcher.chmod(0o755)
    (home / ".gitconfig").write_text("[user]\nname = A Person\nemail = person@example.com\n")
    return Stage(root, home, programs, api, proxy)


def project(stage: Stage, name: str = "project") -> Path:
    """Make a git project with one commit."""
    directory = stage.root / name
    directory.mkdir()
    (directory / "README.md").write_text(f"# {name}\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        run(stage, directory, ["git", *words])
    return directory


def environment(stage: Stage, **more: str) -> dict[str, str]:
    """Nothing but the search path comes in; whatever would leave the machine runs into the trap."""
    others = [
        directory
        for directory in os.environ["PATH"].split(os.pathsep)
        if not (Path(directory) / "aether-hook").exists() and not (Path(directory) / "aether").exists()
    ]
    proxy = f"http://127.0.0.1:{stage.proxy}"
    return {
        "PATH": os.pathsep.join([str(stage.programs), *others]),
        "HOME": str(stage.home),
        "LANG": "C.UTF-8",
        "TMPDIR": _made(stage.root / "tmp"),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{stage.api.port}",
        "ANTHROPIC_API_KEY": "no-key-is-needed-here",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "IS_SANDBOX": "1",  # permissions may be skipped by root only where this is said
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "ALL_PROXY": proxy,
        "NO_PROXY": "127.0.0.1,localhost",
        **more,
    }


def run(stage: Stage, where: Path, words: list[str], **more: str) -> str:
    """Run a program there and give what it printed.

    Raises:
        AssertionError: It failed.
    """
    ran = subprocess.run(
        words, cwd=where, env=environment(stage, **more), capture_output=True, text=True, timeout=PATIENCE,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def ask(stage: Stage, where: Path, prompt: str, *options: str, **more: str) -> Session:
    """Run `claude -p` there and give what it showed.

    Raises:
        AssertionError: It did not end in time.
    """
    words = [
        claude(), "-p", prompt, "--output-format", "stream-json", "--verbose", "--include-hook-events",
        "--dangerously-skip-permissions", *options,
    ]  # fmt: skip
    process = subprocess.Popen(
        words, cwd=where, env=environment(stage, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"claude did not end in {PATIENCE:g} s\n{out[-3000:]}\n{err[-1000:]}") from None
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    results = [event for event in events if event.get("type") == "result"]
    last = results[-1] if results else {}
    return Session(
        id=next((event["session_id"] for event in events if event.get("session_id")), ""),
        events=events,
        result=str(last.get("result", "")),
        error=bool(last.get("is_error", True)),
        stderr=err,
        code=process.returncode,
    )


def transcript(stage: Stage, session: Session) -> list[dict[str, Any]]:
    """The lines that the CLI keeps of a session."""
    (path,) = (stage.home / ".claude" / "projects").glob(f"*/{session.id}.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _made(directory: Path) -> str:
    directory.mkdir(exist_ok=True)
    return str(directory)
