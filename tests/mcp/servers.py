"""Servers to test with: asked in this process, or as a process of their own over stdio."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="no mcp package to serve with")
MODES = ["auto", "legacy", "2026-07-28"]


def program(home: Any, *flags: str, code: str = "", **environment: str) -> Any:
    """Return how to start the server as a process; `code` is run in it before."""
    start = f"{code}\nfrom aether.cli.main import run\nrun(sys.argv[1:])"
    arguments = ["-c", f"import sys\n{start}", "mcp", "--home", str(home), *flags]
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"}
    return mcp.StdioServerParameters(command=sys.executable, args=arguments, env={**paths, **environment})


def ask(server: Any, asking: Any, *, mode: str = "auto") -> Any:
    """Return what the coroutine function `asking` returns about a client of `server`."""

    async def run() -> Any:
        async with mcp.Client(server, mode=mode) as client:
            return await asking(client)

    return asyncio.run(run())


def refused(server: Any, asking: Any) -> str:
    """Return the words of the protocol error with which the server answers."""

    async def asked(client: Any) -> str:
        try:
            await asking(client)
        except mcp.MCPError as reason:
            return str(reason)
        return ""

    return str(ask(server, asked))


def call(server: Any, name: str, *, mode: str = "auto", **arguments: Any) -> Any:
    """Return the result of one call."""
    return ask(server, lambda client: client.call_tool(name, arguments), mode=mode)


def text_of(result: Any) -> str:
    """Return the texts of a result in one."""
    return "\n".join(each.text for each in result.content)
