"""The server: the tools, resources and prompts of the catalogue, spoken over stdio by the `mcp` package.

Each call opens the state anew, because hooks and other servers write to the same home, and runs in a thread of its
own, so that a long one keeps nobody waiting. A call that is cancelled goes on to its end: it is one transaction.
Nothing but the protocol is written to stdout; errors of aether are told to the model with what to do.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any

from aether import __version__
from aether.errors import AetherError, BackendUnavailable, shown
from aether.integrations.mcp_server import catalogue, prompts, resources
from aether.integrations.mcp_server.answers import Answer
from aether.integrations.mcp_server.catalogue import Tool
from aether.integrations.mcp_server.graph_tools import RESOURCE
from aether.integrations.mcp_server.lean import lean
from aether.integrations.mcp_server.places import place

NAME = "aether"
# Arguments that the server gives, not the model.
_OURS = frozenset({"home", "progress"})


def serve(home: str | None = None, *, tools: str = catalogue.DEFAULT_SET) -> None:
    """Speak MCP on stdin and stdout until stdin ends.

    Raises:
        BackendUnavailable: the package `mcp` is not installed, or is not of version 2.
        InvalidInput: there is no such set of tools.
    """
    server = build(home, tools=tools)
    with suppress(AttributeError):  # a stdout that is no file has no buffer either
        # The package leads what is printed meanwhile to stderr; a buffer would keep it until stdout is stdout again.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    server.run("stdio")


def build(home: str | None = None, *, tools: str = catalogue.DEFAULT_SET) -> Any:
    """Return the server, an `MCPServer`, for the home that is named, else for that of the project.

    Raises:
        BackendUnavailable: the package `mcp` is not installed, or is not of version 2.
        InvalidInput: there is no such set of tools.
    """
    offered = catalogue.chosen(tools)
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError as reason:
        raise BackendUnavailable(
            "the package mcp is missing, or older than 2.",
            fix="Run: pip install 'aether-memory[mcp]'",
            where="mcp",
        ) from reason
    server = MCPServer(
        NAME,
        version=__version__,
        instructions=catalogue.instructions(tools),
        tools=[_made(tool, home) for tool in offered],
        log_level="WARNING",
    )
    resources.register(server, home, memory=tools != "graph")
    if tools != "graph":
        prompts.register(server, home)
    return server


def _made(tool: Tool, home: str | None) -> Any:
    """Return a tool as the package knows it."""
    from mcp.types import ToolAnnotations

    hints = ToolAnnotations(
        read_only_hint=tool.reads,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.reads or tool.repeats,
        open_world_hint=False,
    )
    made = _kind().from_function(
        _call(tool, home), tool.name, description=tool.description, annotations=hints
    )
    made.parameters = lean(made.parameters, tool.arguments)
    if tool.output:
        required = [name for name in tool.output if name != "note"]
        made.fn_metadata.output_schema = {"type": "object", "properties": tool.output, "required": required}
    return made


@cache
def _kind() -> Any:
    """Return the class of tools: one whose refusals say what to do, and which swallows no argument."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool as Packaged

    class Made(Packaged):
        async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
            known = self.parameters["properties"]
            unknown = [shown(name) for name in arguments if name not in known]
            # The contract of the graph is another's, and passes over what it does not know.
            if unknown and not self.fn_metadata.output_schema:
                raise ToolError(f"{self.name} has no {', '.join(unknown[:5])}. It takes {', '.join(known)}.")
            try:
                return await super().run(arguments, context, convert_result)
            except ToolError as reason:
                if not (errors := getattr(reason.__cause__, "errors", None)):
                    raise
                faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors()[:5]]
                raise ToolError(f"{self.name}: {'; '.join(faults)}. It takes {', '.join(known)}.") from reason

    return Made


def _call(tool: Tool, home: str | None) -> Callable[..., Any]:
    """Return the function that the package calls: its signature is what the schema of the arguments is made of."""
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult

    signature = inspect.signature(tool.do, eval_str=True)

    async def call(ctx: Any, **arguments: Any) -> Any:
        if "progress" in signature.parameters:
            arguments["progress"] = _telling(ctx)
        try:
            answer = await asyncio.to_thread(lambda: tool.do(**arguments, home=place(home)))
        except AetherError as reason:
            raise ToolError(_sound(str(reason))) from reason
        if tool.output and not tool.reads:
            await ctx.notify_resource_updated(RESOURCE)
        return _result(answer)

    own = [each for name, each in signature.parameters.items() if name not in _OURS]
    own.append(inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context))
    call.__signature__ = inspect.Signature(own, return_annotation=CallToolResult)  # type: ignore[attr-defined]
    call.__annotations__ = {**{each.name: each.annotation for each in own}, "return": CallToolResult}
    return call


def _result(answer: Answer) -> Any:
    from mcp.types import CallToolResult, TextContent

    texts = [answer.text, *([answer.note] if answer.note else [])]
    return CallToolResult(
        content=[TextContent(type="text", text=_sound(text)) for text in texts],
        structured_content=_sound(answer.data),
    )


def _sound(value: Any) -> Any:
    """Return `value` without lone surrogates: they may stand in a home, but not in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _sound(each) for key, each in value.items()}
    return [_sound(each) for each in value] if isinstance(value, list) else value


def _telling(ctx: Any) -> Callable[[str], None]:
    """Return what a thread calls to tell the client how far it is; a client that did not ask hears nothing."""
    loop, step = asyncio.get_running_loop(), count(1)

    def tell(text: str) -> None:
        with suppress(RuntimeError):  # the client is gone; the work is done all the same
            asyncio.run_coroutine_threadsafe(ctx.report_progress(next(step), None, text), loop)

    return tell
