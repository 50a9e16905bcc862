"""The plugin: whole, in step with the package, its commands real, and accepted by the real Claude Code."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess

import click
import pytest

from aether import __version__
from aether.cli.main import cli
from aether.integrations.claude_code.install import plugin_directory
from tests.tables import rows

PLUGIN = plugin_directory()
PAGES = sorted(PLUGIN.rglob("*.md"))
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
COMMAND_LINE = re.compile(r"`(aether [^`]+)`")
CLAUDE = os.environ.get("AETHER_TEST_CLAUDE") or shutil.which("claude")


def parts(path):
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines()), body


def command_of(words):
    """Return the longest run of `words` that names a command."""
    found = cli
    while isinstance(found, click.Group) and words:
        below = found.get_command(click.Context(found), words[0])
        if below is None:
            return None
        found, words = below, words[1:]
    return found


def test_the_manifests_name_the_plugin_and_its_version():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())

    assert (manifest["name"], manifest["version"]) == ("aether", __version__)
    assert [(one["name"], one["source"]) for one in market["plugins"]] == [("aether", "./")]
    assert json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["aether"]["args"] == ["mcp"]


def test_all_commands_are_there():
    assert [path.stem for path in COMMANDS] == ["memory", "phase", "recall", "remember", "signal", "why"]


@rows("path", PAGES, ids=lambda path: path.stem)
def test_every_page_says_what_it_is_for(path):
    head, body = parts(path)

    assert len(head["description"]) > 20
    assert body.strip()


@rows("path", PAGES, ids=lambda path: path.stem)
def test_every_command_line_is_one_that_aether_has(path):
    lines = COMMAND_LINE.findall(path.read_text(encoding="utf-8"))

    for line in lines:
        words = shlex.split(line)[1:]
        command = command_of(words)
        assert command is not None, line
        assert not isinstance(command, click.Group), line
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= known, line


@rows("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_may_run_what_it_tells_and_no_more(path):
    head, body = parts(path)
    allowed = re.findall(r"Bash\((aether [^:)]+)", head["allowed-tools"])

    assert head["allowed-tools"].count("Bash(") == len(allowed)
    for line in COMMAND_LINE.findall(body):
        assert any(line.startswith(words) for words in allowed), line
    assert all(words in body for words in allowed)


@rows("path", COMMANDS, ids=lambda path: path.stem)
def test_what_a_person_types_is_never_put_into_a_shell(path):
    """Claude Code runs lines with `!` itself, arguments pasted in: quotes and $() in them would be run."""
    head, body = parts(path)

    assert "argument-hint" in head
    assert not re.search(r"!`|```!", body)
    assert "@$" not in body
    assert body.count("$ARGUMENTS") == 1
    assert re.search(r"<words>\n\$ARGUMENTS\n</words>", body)
    assert not re.search(r"\$[0-9]", body)
    assert r"`'` in it written as `'\''`" in body


@pytest.mark.skipif(
    not CLAUDE, reason="the real Claude Code is not here (AETHER_TEST_CLAUDE, or claude on PATH)"
)
def test_the_real_claude_code_finds_nothing_amiss(tmp_path):
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1", "HTTPS_PROXY": "http://127.0.0.1:9",
    }  # fmt: skip

    done = subprocess.run(
        [str(CLAUDE), "plugin", "validate", str(PLUGIN), "--strict"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
