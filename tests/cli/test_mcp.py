"""The MCP server by hand: what it is started with, and what it is without its package."""

from __future__ import annotations

import json
import sys

from aether.cli.main import main
from aether.cli.output import DEFAULT_COLUMNS
from aether.integrations.mcp_server import catalogue, server


def test_it_serves_the_home_and_the_tools_that_are_named(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(server, "serve", lambda home, *, tools: started.append((home, tools)))

    assert main(["mcp", "--home", str(tmp_path), "--tools", "graph"]) == 0
    assert main(["mcp"]) == 0

    assert started == [(str(tmp_path), "graph"), (None, "memory")]


def test_what_a_model_is_told_of_the_tools_is_shown(capsys):
    assert main(["mcp", "--list", "--tools", "all", "--json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in listed][:2] == ["remember", "recall"]
    assert len(listed) == 17


def test_to_a_person_every_description_is_shown_whole(capsys):
    assert main(["mcp", "--list", "--tools", "all"]) == 0

    text = capsys.readouterr().out
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= DEFAULT_COLUMNS
    said = " ".join(text.split())
    for tool in catalogue.chosen("all"):
        assert f"{tool.name} {' '.join(tool.description.split())}" in said


def test_without_the_package_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)

    assert main(["mcp"]) == 8
    assert "pip install 'aether-memory[mcp]'" in capsys.readouterr().err
