"""Hostile homes: what may be in the place of each file of a home, and a process that runs commands on one within limits.

`python -m tests.crash.hostile` reads one line of JSON for each command (`home`, `argv`), runs it in a forked child with
limits of memory and time, and answers with one line of JSON.
"""

from __future__ import annotations

import gc
import io
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

MB = 1 << 20
# What a command may take: far more than one on a full home, and far less than what the hostile files unpack to.
ADDRESS_BYTES, MEMORY_BYTES, SECONDS, WAIT_SECONDS = 3 << 30, 1024 * MB, 20, 120
PROMPT = {"prompt": "Which database do we use for part 3?", "session_id": "s", "source": "startup"}


def bomb(path: Path, size: int = 3 << 30) -> None:
    """Put gigabytes of spaces there, which zstandard packs into a hundred kilobytes."""
    import zstandard

    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file, size=size) as packer:
        for _ in range(size // (4 * MB)):
            packer.write(b" " * (4 * MB))


def bomb_within_limits(path: Path) -> None:
    """Put a bomb there that unpacks to less than the largest file that is read."""
    bomb(path, 900 * MB)


def sparse(path: Path) -> None:
    """Put three gigabytes there that take no room."""
    with path.open("wb") as file:
        file.truncate(3 << 30)


def sparse_within_limits(path: Path) -> None:
    """Put a hole behind the content, so that all of it is smaller than the largest file that is read."""
    with path.open("ab") as file:
        file.truncate(900 * MB)


def huge_line(path: Path) -> None:
    """Put a line of 60 MB there."""
    path.write_bytes(b'{"text": "' + b"a" * (60 * MB) + b'"}\n')


def deep(path: Path) -> None:
    """Put JSON of 100,000 levels there."""
    path.write_bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n")


def wide(path: Path, values: int = 3_000_000) -> None:
    """Put JSON there whose values take twenty times the room of its text."""
    path.write_bytes(b'{"a":[' + b"[]," * values + b"[]]}\n")


def wide_within_limits(path: Path) -> None:
    """Put nearly as many values there as are read."""
    wide(path, 990_000)


def nul(path: Path) -> None:
    """Put bytes of NUL there."""
    path.write_bytes(bytes(5000))


def no_utf8(path: Path) -> None:
    """Put bytes there that are no text."""
    path.write_bytes(b"\xff\xfe\x80" * 1000 + b"\n")


def fifo(path: Path) -> None:
    """Put a FIFO there, at which a reader waits."""
    os.mkfifo(path)


def loop(path: Path) -> None:
    """Put a link there that leads to itself."""
    path.symlink_to(path.name)


def device(path: Path) -> None:
    """Put a link to an endless device there."""
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    """Put a directory there."""
    path.mkdir()
    (path / "inside").write_text("x")


def forbidden(path: Path) -> None:
    """Take the right to read away."""
    path.chmod(0)


def odd_name(path: Path) -> None:
    """Put a file with a name beside it that is not UTF-8."""
    name = os.fsencode(path.with_name("caf")) + b"\xe9" + os.fsencode(path.suffix)
    with suppress(FileExistsError), open(name, "xb") as file:
        file.write(path.read_bytes())


KINDS = (bomb, bomb_within_limits, sparse, sparse_within_limits, huge_line, deep, wide, wide_within_limits, nul, no_utf8, fifo, loop, device, directory, forbidden, odd_name)  # fmt: skip
# For packed files.
BOMBS = (bomb, bomb_within_limits)
# These change what is there; the others take its place.
CHANGES = (sparse_within_limits, forbidden, odd_name)
COMMANDS = (
    ["hook", "SessionStart"], ["hook", "UserPromptSubmit"], ["hook", "Stop"], ["status"], ["brief"], ["recall", "SQLite"],
    ["archive", "list"], ["log"], ["VIEW"], ["doctor"], ["backup", "create", "BACKUPS"], ["doctor", "--repair"],
    ["backup", "create", "BACKUPS"], ["status"], ["add", "One more note."],
)  # fmt: skip


class Runner:
    """The process that runs commands."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.hostile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, home: Path, argv: list[str]) -> dict:
        """Return `code`, `out`, `err`, `seconds` and `bytes` of a command."""
        self.process.stdin.write(json.dumps({"home": str(home), "argv": argv}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        with self.process:  # closes the pipes, and waits
            self.process.stdin.close()


def _pages(home: Path) -> int:
    """Make every page of the view."""
    from starlette.requests import Request

    from aether.view.app import PAGES, _page_route, create_app

    frame, worst = create_app(home, port=1).state.frame, 0
    for page in PAGES:
        if "{" in page.path:
            continue
        scope = {"type": "http", "method": "GET", "path": page.path, "query_string": b"", "headers": [], "path_params": {}}  # fmt: skip
        answer = _page_route(frame, page)(Request(scope))
        if hasattr(answer, "body_iterator"):
            import asyncio

            async def body(pieces=answer.body_iterator) -> None:
                async for piece in pieces:
                    sys.stdout.write(str(piece)[:0])

            asyncio.run(body())
        elif answer.status_code >= 500:
            sys.stderr.write(answer.body.decode())
            worst = 1
    return worst


def _command(home: Path, argv: list[str]) -> int:
    if argv[0] == "hook":
        from aether.hosts import hook

        payload = {"hook_event_name": argv[1], "cwd": str(home.parent), **PROMPT}
        return hook.main(argv[1:], json.dumps(payload).encode())[0]
    if argv[0] == "VIEW":
        return _pages(home)
    from aether.cli.main import main

    words = [str(home.parent.parent / "backups") if word == "BACKUPS" else word for word in argv]
    return main(["--home", str(home), *words])


def _obey_modes() -> None:
    """Give up the capabilities of root, to whom no file is forbidden."""
    import ctypes

    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the version of the structure, this process
    with suppress(OSError, AttributeError):  # another system than Linux
        ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


def _child(request: dict, answer: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    _obey_modes()
    out, err, code = io.StringIO(), io.StringIO(), -1
    home = Path(request["home"])
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = _command(home, request["argv"])
        except SystemExit as reason:
            code = int(reason.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
    text = json.dumps({"code": code, "out": out.getvalue()[:200_000], "err": err.getvalue()[:200_000]})
    with os.fdopen(answer, "w") as file:
        file.write(text)


def _served(request: dict) -> dict:
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            _child(request, writing)
        finally:
            os._exit(0)
    os.close(writing)
    data = b""
    while select.select([reading], [], [], max(0, start + WAIT_SECONDS - time.monotonic()))[0]:
        piece = os.read(reading, 1 << 16)
        if not piece:
            break
        data += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status, usage = os.wait4(child, 0)
    answer = json.loads(data) if data else {"code": -9, "out": "", "err": f"ended by {status}"}
    return {**answer, "seconds": usage.ru_utime + usage.ru_stime, "bytes": usage.ru_maxrss * 1024}


def serve() -> None:
    """Answer requests until their end."""
    import importlib

    for name in ("main", "status", "recall", "home", "memory", "archive", "backup", "json_results"):
        importlib.import_module(f"aether.cli.{name}")
    for name in ("orjson", "sqlite3", "zstandard", "jinja2", "starlette.requests", "starlette.applications", "uvicorn",
                 "aether.view.app", "aether.hosts.hook", "aether.hosts.handlers", "aether.api.drain", "jsonschema"):  # fmt: skip
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_served(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
