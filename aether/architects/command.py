"""The command backend: any program that reads a task as JSON on stdin and writes the answer to stdout.

For a hand-off the answer is session JSON, for a summary (`"task": "summary"`) plain text.

The program runs in a process group of its own, without a shell. However the wait ends (exit, timeout, Ctrl-C, too
much output), no process of the group is left.
"""

from __future__ import annotations

import codecs
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import IO, Any

from aether.architects import model_server, stream
from aether.architects.base import Completion, Request, Settings
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput, shown
from aether.messages.model import content_text
from aether.types import Counter, JsonObject

NAME = "command"
# No session comes near this.
MAX_OUTPUT_BYTES = 16 * 1024 * 1024
# Errors are at the end of stderr.
STDERR_TAIL_BYTES = 2_000
# Time to clean up between the request to end and the kill.
GRACE_SECONDS = 2.0
# Interval at which a running program is checked; adds at most this much to its time.
_POLL_SECONDS = 0.02
_BLOCK_BYTES = 64 * 1024
_WINDOWS = os.name == "nt"


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the output of the program for the task as data, with its `feedback` if there is any.

    Raises:
        InvalidInput: the command is empty or its quotes do not match.
        BackendUnavailable: there is no such program, or it cannot be run.
        BackendFailed: it failed, wrote nothing or too much, or did not end in time.
    """
    del count  # the tokens of the caller's own program are not counted
    words = _words(settings.command)
    handoff = request.data | ({"feedback": request.feedback} if request.feedback else {})
    text = run_program(
        words, json.dumps(handoff).encode(), name=NAME, timeout_seconds=settings.timeout_seconds
    )
    return Completion(text=text, backend=NAME, model=words[0])


def chat(
    messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: stream.OnText,
    tools: Sequence[JsonObject] = (),
) -> stream.ChatReply:  # fmt: skip
    """Return what the program writes for the conversation on its standard input; it has no tools.

    Its input is plain text: the system prompt, then each message below a line with its role, and the role of the answer.

    Raises:
        ContextOverflow, BackendUnavailable, BackendFailed: as `stream.ChatBackend` says.
    """
    del tools
    words = _words(settings.command)
    turns = [(message["role"], content_text(message.get("content"))) for message in messages]
    parts = [*([("system", system)] if system else []), *turns, ("assistant", "")]
    prompt = "\n\n".join(f"## {role}\n{text}" for role, text in parts)
    text = codecs.getincrementaldecoder("utf-8-sig")("replace")
    written: list[str] = []

    def on_output(block: bytes) -> None:
        piece = text.decode(block)
        if piece:
            written.append(piece)
            on_text(piece)

    try:
        run_program(
            words, prompt.encode("utf-8", "replace"), name=NAME, timeout_seconds=settings.timeout_seconds, on_output=on_output
        )  # fmt: skip
    except BackendFailed as reason:
        if not written and model_server.says_too_long(reason.what):
            raise model_server.overflow(reason.what, where=NAME) from reason
        raise
    return stream.ChatReply("".join(written).rstrip("\n"), NAME, words[0])


def served(settings: Settings) -> stream.Served:  # noqa: ARG001 - the interface of chat backends
    """Return nothing: a program does not say its window."""
    return stream.Served()


def run_program(
    words: list[str], data: bytes, *, name: str, timeout_seconds: float, environment: Mapping[str, str] | None = None,
    directory: str | None = None, fix: str = "Check its spelling and PATH, or use the extractive backend.",
    on_output: Callable[[bytes], None] | None = None,
) -> str:  # fmt: skip
    """Return what a program writes for `data` on its standard input; none of its processes is left.

    `fix` is the advice if there is no such program, `name` the backend that reports it. `on_output` is given each piece of
    the output as soon as it is there.

    Raises:
        BackendUnavailable, BackendFailed: as `complete` says.
    """
    process = _start(words, name, fix, {"env": environment, "cwd": directory})
    output, errors, flooded = bytearray(), bytearray(), Event()
    threads = [
        Thread(target=_feed, args=(process.stdin, data), daemon=True),
        Thread(target=_collect, args=(process.stdout, output, flooded), daemon=True),
        Thread(target=_collect, args=(process.stderr, errors, None), daemon=True),
    ]
    reported = 0

    def heard() -> None:
        nonlocal reported
        if on_output and len(output) > reported:
            block = bytes(output[reported:])
            reported += len(block)
            on_output(block)

    try:
        for thread in threads:
            thread.start()
        ended = _wait(process, threads, flooded, timeout_seconds, heard)
        heard()
    finally:
        _end_group(process, threads)
    tail = errors.decode("utf-8", "replace").strip()
    if flooded.is_set():
        raise _failed(f"wrote more than {MAX_OUTPUT_BYTES} bytes.", words, tail, name)
    if not ended:
        raise _failed(f"did not end within {timeout_seconds:g} s and was stopped.", words, tail, name)
    if process.returncode:
        end = f"exit code {process.returncode}"
        if process.returncode < 0:
            end = f"signal {-process.returncode}"
            with suppress(ValueError):
                end = f"signal {signal.Signals(-process.returncode).name}"
        raise _failed(f"ended with {end}.", words, tail, name)
    return _text(bytes(output), words, tail, name)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=not _WINDOWS)
    except ValueError as reason:
        raise InvalidInput(
            f"{shown(command)} cannot be read ({reason}).", fix="Close its quotes.", where=NAME
        ) from reason
    if not words:
        raise InvalidInput("no command is given.", fix="Write it as command:'my-program --flag'.", where=NAME)
    return [word.strip('"') for word in words] if _WINDOWS else words


def _start(words: list[str], name: str, fix: str, place: dict[str, Any]) -> subprocess.Popen[bytes]:
    program = shutil.which(words[0])
    if program is None:
        raise BackendUnavailable(f"there is no program {shown(words[0])}.", fix=fix, where=name)
    own_group: dict[str, Any] = (
        {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        if _WINDOWS
        else {"start_new_session": True}
    )
    try:
        return subprocess.Popen(  # noqa: S603 - running the caller's program is what this is for
            [program, *words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # closing a buffered pipe waits for whoever is still writing to it
            **own_group,
            **place,
        )
    except (OSError, ValueError) as reason:
        raise BackendUnavailable(
            f"{shown(words[0])} cannot be run ({reason}).",
            fix="Make it executable, or use the extractive backend.",
            where=name,
        ) from reason


def _feed(pipe: IO[bytes], data: bytes) -> None:
    unsent = memoryview(data)
    # A program may close its input early; that is not a failure.
    with suppress(OSError, ValueError):
        while unsent:
            unsent = unsent[pipe.write(unsent) :]
    with suppress(OSError):
        pipe.close()


def _collect(pipe: IO[bytes], output: bytearray, flooded: Event | None) -> None:
    """Read everything until `flooded`; without that event only the tail is kept."""
    with suppress(OSError, ValueError):
        while block := pipe.read(_BLOCK_BYTES):
            output.extend(block)
            if flooded is None:
                del output[:-STDERR_TAIL_BYTES]
            elif len(output) > MAX_OUTPUT_BYTES:
                flooded.set()
                return


def _wait(
    process: subprocess.Popen[bytes], threads: list[Thread], flooded: Event, timeout_seconds: float,
    each_time: Callable[[], None],
) -> bool:  # fmt: skip
    """Return whether the program ended, and everything that writes to its pipes with it, in time."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline and not flooded.is_set():
        each_time()
        if process.poll() is not None:
            # A child that it left running may hold the pipes; the answer is then already complete.
            for thread in threads:
                thread.join(max(0.0, min(GRACE_SECONDS, deadline - time.monotonic())))
            return True
        flooded.wait(_POLL_SECONDS)
    return False


def _end_group(process: subprocess.Popen[bytes], threads: list[Thread]) -> None:
    _signal_group(process, hard=False)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal_group(process, hard=True)
        process.wait()
    for thread in threads:
        thread.join(GRACE_SECONDS)
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        with suppress(OSError):
            pipe.close()


def _signal_group(process: subprocess.Popen[bytes], *, hard: bool) -> None:
    if _WINDOWS:
        if process.poll() is None:
            kill = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(kill, capture_output=True, check=False)  # noqa: S603 - the id is our own child's
        return
    # The group has the id of the program as long as one of its processes runs.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def _text(raw: bytes, words: list[str], tail: str, name: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise _failed("wrote something that is not UTF-8.", words, tail, name) from reason
    if not text.strip():
        raise _failed("wrote nothing to stdout.", words, tail, name)
    return text


def _failed(what: str, words: list[str], tail: str, name: str) -> BackendFailed:
    said = f" Its last words: {tail}" if tail else ""
    return BackendFailed(
        f"{shown(words[0])} {what}{said}",
        fix="Run it by hand on the hand-off file, or use the extractive backend.",
        where=name,
    )
