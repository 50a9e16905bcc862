"""A chat on the command line: in a pipe lines in and answers out; at a terminal a status line."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import threading
import time

import pytest

from aether.api import conversations
from aether.cli.main import main
from tests.architects import fakes, streams
from tests.cli.stage import shown


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch, tmp_path):
    fakes.without_credentials(monkeypatch, tmp_path)


@pytest.fixture
def piped(here, monkeypatch, capsys):
    """Return a function that runs a chat with lines on standard input, and gives stdout, stderr and the exit code."""

    def run(*lines, words=("talk",)):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        capsys.readouterr()
        code = main(["chat", *words])
        return *capsys.readouterr(), code

    return run


def test_a_script_writes_lines_and_reads_answers(piped):
    out, err, code = piped("Hello", "", "The port is 8080.", "//slash")

    assert out == "You said: Hello\nYou said: The port is 8080.\nYou said: /slash\n"
    assert (code, "aether chat talk" in err) == (0, True)


def test_the_commands_of_a_chat(piped):
    lines = [
        "The port is 8080.",
        "/snapshot",
        "More",
        "/rollback",
        "/mode developer",
        "/model phi:3b 4096",
        "/goal Ship it",
    ]
    out, err, code = piped(
        *lines, "/goal", "/status", "/history 2", "/compact", "/retry", "/hlp", "/help", "/quit", "never"
    )

    assert code == 0
    assert out == "You said: The port is 8080.\nYou said: More\nYou said: The port is 8080.\n"
    for words in (
        "Snapshot snap_", "Restored: ", "Mode developer.", "Model phi:3b, window 4,096 tokens, tier minimal.", "Goal: Ship it",
        "| tier minimal | 0 checkpoints | mode developer | goal: Ship it", "[4] assistant: You said: More",
        "Nothing was compressed", "Did you mean /help?", "/compact  ",
    ):  # fmt: skip
        assert words in err, words
    assert "never" not in out


def test_a_history_is_exported_as_markdown_or_json(piped, tmp_path):
    _, err, code = piped("The port is 8080.", f"/export {tmp_path}/out.md", f"/export {tmp_path}/out.json")

    assert code == 0
    assert "The port is 8080." in (tmp_path / "out.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert err.count("Written to") == 2


def test_a_full_window_is_compressed_and_said(piped):
    lines = [f"Module {nth} reads port {8000 + nth}, {'and it must stay so. ' * 8}" for nth in range(16)]
    out, err, code = piped(*lines, words=("talk", "--window", "1024"))

    assert code == 0
    assert out.count("You said") == 16
    assert "Compressed: " in err
    assert "checkpoint ckpt_" in err
    assert "Compressing" not in out + err  # the bar is for terminals


def test_one_message_and_json(here, capsys):
    found = json.loads(shown(capsys, "chat", "--message", "Hello", "--message", "On", "--json", "talk").out)

    assert [turn["text"] for turn in found["turns"]] == ["You said: Hello", "You said: On"]
    assert (found["conversation"], found["backend"]) == ("talk", "echo")


def test_a_failure_is_said_once_and_the_next_line_goes_on(piped, monkeypatch):
    answers = [streams.failure(500, {"error": "out of memory"})]
    whole = streams.ollama(4096)

    def answer(path, body):
        return answers.pop() if answers and path == "/api/chat" else whole(path, body)

    with streams.answering(answer) as (url, _):
        monkeypatch.setenv("OLLAMA_HOST", url)
        monkeypatch.setattr("aether.architects.model_server.RETRIED", frozenset())
        monkeypatch.setattr(
            "aether.architects.model_server.with_retries", lambda attempt, _settings: attempt()
        )
        out, err, code = piped(
            "Hello", "Again", words=("talk", "--backend", "ollama", "--model", "m", "--window", "9000")
        )

    assert code == 9
    assert out == "Reply 2: you said Again \n"
    assert "out of memory" in err
    assert "extractive" not in err
    assert "The server has a window of 4,096 tokens, not 9,000." in err


def test_a_chat_that_cannot_start_says_why(here, capsys):
    err = shown(capsys, "chat", "--backend", "ollama", "--message", "Hello", code=8).err
    assert "no model is chosen" in err
    assert "echo, ollama, openai" in shown(capsys, "chat", "--backend", "gpt", "--message", "x", code=2).err


posix = pytest.mark.skipif(os.name == "nt", reason="terminals are POSIX")


class Terminal:
    """A command line at a terminal of its own."""

    def __init__(self, directory, *words, **environment):
        import pty

        self.pid, self.handle = pty.fork()
        if not self.pid:  # pragma: no cover - the child
            os.chdir(directory)
            os.environ.update(environment, TERM="xterm")
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # who runs the tests in the background ignores it
            os.execv(sys.executable, [sys.executable, "-m", "aether", *words])
        self.seen = ""

    def wait_for(self, words, seconds=60):
        """Read until `words` were shown behind what was waited for before."""
        deadline = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self.handle], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.handle, 65536).decode("utf-8", "replace")
                except OSError:  # it ended
                    assert words in self.seen, self.seen[-2000:]
        before, _, self.seen = self.seen.partition(words)
        return before

    def type(self, text):
        os.write(self.handle, text.encode())

    def interrupt(self):
        """Press Ctrl-C at a prompt; a signal between the prompt and the wait for a key would be seen at the next line."""
        time.sleep(0.5)
        self.type("\x03")

    def end(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([self.handle], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.handle, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@posix
def test_at_a_terminal_a_reply_is_ended_and_ctrl_c_twice_leaves(here, tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    ended = threading.Event()
    with streams.answering(streams.ollama(4096, then=ended, first=8)) as (url, _):
        terminal = Terminal(
            tmp_path, "chat", "--backend", "ollama", "--model", "m", "talk", OLLAMA_HOST=url, PYTHONPATH=root,
            HOME=str(tmp_path),
        )  # fmt: skip
        try:
            terminal.wait_for("| 0 checkpoints |")
            terminal.wait_for("> ")
            terminal.type("one two three four five six seven eight nine ten " * 4 + "\n")
            terminal.wait_for("Reply")
            terminal.wait_for("you said one two")
            terminal.type("\x03")
            terminal.wait_for("The reply was ended")
            ended.set()
            terminal.wait_for("> ")
            terminal.type("next question\n")
            terminal.wait_for("you said next question")
            terminal.wait_for("> ")
            terminal.interrupt()
            terminal.wait_for("Ctrl-C again leaves the chat.")
            terminal.wait_for("> ")
            terminal.interrupt()
            terminal.wait_for("To continue: aether chat talk")
            assert terminal.end() == 0
        finally:
            ended.set()
            with_kill(terminal.pid)

    said = [one["content"] for one in conversations.full_history("talk", home=tmp_path / ".aether")]
    assert said[1].startswith("Reply 1: you said one two")
    assert said[2] == "next question"


def with_kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except OSError:
        pass
