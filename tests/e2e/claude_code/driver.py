"""Runs the real Claude Code in a throwaway home: nothing of this machine goes in, nothing but loopback is reached."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aether
from tests.e2e.claude_code.server import Api

SOURCE = Path(aether.__file__).parents[1]

# Seconds; a session of a few requests takes five at most.
PATIENCE = 90.0

SCRIPTS = {
    "aether": "aether.cli.main",
    "aether-hook": "aether.hosts.hook",
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


def version() -> tuple[int, ...]:
    """The version of the CLI."""
    with TemporaryDirectory() as nowhere:
        shown = subprocess.run(
            [claude(), "--version"], env={"HOME": nowhere, "PATH": os.environ["PATH"]}, capture_output=True,
            text=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
    return tuple(map(int, shown.stdout.split()[0].split(".")))


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


def ask(stage: Stage, where: Path, prompt: str, *options: str, servers: bool = False, **more: str) -> Session:
    """Run `claude -p` there, with the MCP servers of the project if asked for, and give what it showed.

    Raises:
        AssertionError: It did not end in time.
    """
    words = [prompt, *options, *([] if servers else ["--strict-mcp-config"])]
    with _running(stage, where, words, more) as process:
        out, err = process.communicate()
    return _session(_events(out), err, process.returncode)


def talk(stage: Stage, where: Path, prompts: list[str], *options: str, **more: str) -> list[Session]:
    """Run one `claude` there and give it one prompt after the other; give what it showed after each.

    Raises:
        AssertionError: It did not end in time.
    """
    shown: list[list[dict[str, Any]]] = []
    words = ["--input-format", "stream-json", "--strict-mcp-config", *options]
    with _running(stage, where, words, more) as process:
        for prompt in prompts:
            message = {"type": "user", "message": {"role": "user", "content": prompt}}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            shown.append([])
            for line in process.stdout:
                shown[-1] += _events(line)
                if shown[-1] and shown[-1][-1].get("type") == "result":
                    break
        out, err = process.communicate()
    shown[-1] += _events(out)
    return [_session(events, err, process.returncode) for events in shown]


@contextmanager
def _running(
    stage: Stage, where: Path, words: list[str], more: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run `claude -p` there; end it, and whatever it started, when its time is over."""
    late = threading.Event()
    process = subprocess.Popen(
        [
            claude(), "-p", *words, "--output-format", "stream-json", "--verbose", "--include-hook-events",
            "--dangerously-skip-permissions",
        ],
        cwd=where, env=environment(stage, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def end() -> None:
        late.set()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(PATIENCE, end)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert not late.is_set(), f"claude did not end within {PATIENCE:g} s"


def _events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def _session(events: list[dict[str, Any]], err: str, code: int) -> Session:
    results = [event for event in events if event.get("type") == "result"]
    last = results[-1] if results else {}
    return Session(
        id=next((event["session_id"] for event in reversed(events) if event.get("session_id")), ""),
        events=events,
        result=str(last.get("result", "")),
        error=bool(last.get("is_error", True)),
        stderr=err,
        code=code,
    )


def _made(directory: Path) -> str:
    directory.mkdir(exist_ok=True)
    return str(directory)
