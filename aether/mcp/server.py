"""The MCP server: tools, resources and prompts over stdio, spoken by the `mcp` package.

Each call finds its home and reads the state again, because hooks and other servers write to the same home, and runs in
a thread of its own, so that a long call delays no other. A cancelled call is one transaction and goes on to its end.
Only the protocol is written to stdout; errors of aether reach the model with their fix. Long resources are cut and
name the tool that gives the rest, except `memory://knowledge-graph`, which is whole, as in the official memory server.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Self

from aether import __version__, paths, project
from aether import prompts as texts
from aether.api import colony, graph, recall
from aether.api import home as api_home
from aether.api.admin import init
from aether.api.confirming import labelled, own_test
from aether.api.status import get_memory_status
from aether.architects.request import SUMMARIES
from aether.errors import AetherError, InvalidInput, NotFound, packages_of, require_one_of, shown
from aether.mcp import catalogue
from aether.mcp.catalogue import Tool
from aether.mcp.graph_tools import RESOURCE
from aether.mcp.results import Answer, as_json, minify, part_of
from aether.mcp.tools import handoff_text
from aether.memory import gate, layers, phases
from aether.memory import layers as lines
from aether.redact.redact import redacted
from aether.store import authors
from aether.store.snapshot import require_home
from aether.text.tags import UNCONFIRMED

NAME = "aether"
UNREADABLE = "This line is no JSON-RPC message in UTF-8: it is cut off, or holds half of a surrogate pair. Nothing was done."
# Claude Code names the project of the servers that it starts.
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
# Arguments that the server gives, not the model.
_SERVER_ARGUMENTS = frozenset({"home", "progress"})
JSON, TEXT = "application/json", "text/plain"
# The newest entries that an overview lists.
NEWEST = 50
# A page, which a person reads.
SUMMARY_TOKENS = 800
# No phase has more; Python refuses to make a number of some thousand digits.
MOST_DIGITS = 9


def serve(home: str | None = None, *, tools: str = catalogue.DEFAULT_SET) -> None:
    """Speak MCP on stdin and stdout until stdin ends.

    Raises:
        BackendUnavailable: the package `mcp` is not installed, or is not of version 2.
        InvalidInput: the set of tools is unknown.
    """
    server = build(home, tools=tools)
    with suppress(AttributeError):  # a stdout that is no file has no buffer either
        # The package redirects prints to stderr meanwhile; a buffer would keep them until stdout is stdout again.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    asyncio.run(_speak(server))


async def _speak(server: Any) -> None:
    """Speak over stdio as `server.run` does, and answer lines that are no messages, which it passes over in silence."""
    from mcp.server.stdio import stdio_server

    lowlevel = server._lowlevel_server  # noqa: SLF001 - its own run has no place for this
    async with stdio_server() as (read, write):
        messages = _Messages(read, write)
        await lowlevel.run(messages, write, lowlevel.create_initialization_options())


class _Messages:
    """The messages of a client, in the protocol that the package has for them; invalid lines are answered here."""

    def __init__(self, read: Any, write: Any) -> None:
        self.read = read
        self.write = write

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> Any:
        while isinstance(item := await anext(self.read), Exception):
            await self.write.send(_fault_answer(item))
        return item

    async def receive(self) -> Any:
        """Return the next message."""
        while isinstance(item := await self.read.receive(), Exception):
            await self.write.send(_fault_answer(item))
        return item

    async def aclose(self) -> None:
        """Read no more."""
        await self.read.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _fault_answer(fault: Exception) -> Any:
    """Return the answer to a line that the package could not read because of `fault`."""
    from mcp.shared.message import SessionMessage
    from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

    faults: list[Any] = getattr(fault, "errors", list)()
    line = faults[0].get("input") if faults else None
    about = ErrorData(code=PARSE_ERROR, message=UNREADABLE)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=_request_id(line), error=about))


def _request_id(line: Any) -> str | int | None:
    """Return the id of the request in `line`, None if it cannot be read."""
    with suppress(ValueError, TypeError, RecursionError, AttributeError):
        id = json.loads(line).get("id")  # noqa: A001
        if isinstance(id, (int, str)) and id == _without_surrogates(id):
            return id
    return None


def build(home: str | None = None, *, tools: str = catalogue.DEFAULT_SET) -> Any:
    """Return the server, an `MCPServer`, for the home that is named, else for that of the project.

    Raises:
        BackendUnavailable: the package `mcp` is not installed, or is not of version 2.
        InvalidInput: the set of tools is unknown.
    """
    offered = catalogue.tools_of(tools)
    with packages_of("mcp", where="mcp"):
        from mcp.server.mcpserver import MCPServer
    server = MCPServer(
        NAME, version=__version__, instructions=catalogue.instructions(tools),
        tools=[_made(tool, home) for tool in offered], log_level="WARNING",
    )  # fmt: skip
    register_resources(server, home, memory=tools != "graph")
    if tools != "graph":
        register_prompts(server, home)
    return server


# Clients call in parallel: the first call creates the home, and the others wait for it.
_CREATING = Lock()


def served_home(home: str | None) -> Path:
    """Return the home that `home` or AETHER_HOME names, else that of the project; a missing one is created.

    None is created in the user's own home directory or at the top of the disk unless it is named, nor with
    AETHER_AUTO_INIT=0.

    Raises:
        NotFound: it is missing, and may not be created.
        UnsafePath: the project's home leads out of the project.
        StorageFailed: it cannot be created.
    """
    chosen = home or os.environ.get("AETHER_HOME", "")
    cwd, started = os.getcwd(), os.environ.get(PROJECT_VARIABLE, "")
    place = paths.find_home(chosen or paths.home_of_project(cwd, started))
    # Hooks may have put their files into a home that is not created yet, and another call may be creating it now.
    with _CREATING:
        with suppress(NotFound):
            return require_home(place)
        if place.exists() and place.name != paths.HOME_NAME and not (place / "data").exists():
            return place
        if chosen:
            allowed = os.environ.get("AETHER_AUTO_INIT") != project.OFF
        else:
            allowed = project.may_create_home(project.root_of(cwd, started))
        return init(place) if allowed else place


def _made(tool: Tool, home: str | None) -> Any:
    """Return a tool as the package knows it."""
    from mcp.types import ToolAnnotations

    hints = ToolAnnotations(
        read_only_hint=tool.reads, destructive_hint=tool.destroys, idempotent_hint=tool.reads or tool.repeats,
        open_world_hint=False,
    )  # fmt: skip
    packaged = _kind().from_function(
        _call(tool, home), tool.name, description=tool.description, annotations=hints
    )
    packaged.parameters = minify(packaged.parameters, tool.arguments)
    if tool.output:
        required = [name for name in tool.output if name != "note"]
        packaged.fn_metadata.output_schema = {
            "type": "object",
            "properties": tool.output,
            "required": required,
        }
    return packaged


@cache
def _kind() -> Any:
    """Return the class of tools: its errors say what to do, and it ignores no unknown argument."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool as Packaged

    class Made(Packaged):
        async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
            known = self.parameters["properties"]
            unknown = [shown(name) for name in arguments if name not in known]
            # The contract of the official memory server ignores unknown arguments.
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
    """Return the function that the package calls; the schema of the arguments is made from its signature."""
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult

    signature = inspect.signature(tool.do, eval_str=True)

    async def call(ctx: Any, **arguments: Any) -> Any:
        if "progress" in signature.parameters:
            loop, step = asyncio.get_running_loop(), count(1)

            def report(text: str) -> None:
                with suppress(RuntimeError):  # the client left; the work goes on
                    asyncio.run_coroutine_threadsafe(ctx.report_progress(next(step), None, text), loop)

            arguments["progress"] = report  # a client that did not ask gets nothing
        try:
            answer = await asyncio.to_thread(
                lambda: _as_agent(tool, {**arguments, "home": served_home(home)})
            )
        except AetherError as reason:
            raise ToolError(_without_surrogates(str(reason))) from reason
        if tool.output and not tool.reads:
            await ctx.notify_resource_updated(RESOURCE)
        return _result(answer)

    parameters = [
        parameter for name, parameter in signature.parameters.items() if name not in _SERVER_ARGUMENTS
    ]
    parameters.append(inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context))
    call.__signature__ = inspect.Signature(parameters, return_annotation=CallToolResult)  # type: ignore[attr-defined]
    call.__annotations__ = {
        **{parameter.name: parameter.annotation for parameter in parameters},
        "return": CallToolResult,
    }
    return call


def _as_agent(tool: Tool, arguments: dict[str, Any]) -> Answer:
    """Return the answer of a tool; whatever it changes is a model's change, not the Queen's."""
    # What a model writes is redacted in every field; files of the memory tool are kept byte for byte.
    clean = (
        arguments if tool.name == "memory" else {name: redacted(value) for name, value in arguments.items()}
    )
    with authors.acting(authors.MCP):
        return tool.do(**clean)


def _result(answer: Answer) -> Any:
    from mcp.types import CallToolResult, TextContent

    texts = [answer.text, *([answer.note] if answer.note else [])]
    return CallToolResult(
        content=[TextContent(type="text", text=_without_surrogates(text)) for text in texts],
        structured_content=_without_surrogates(answer.data),
    )


def _without_surrogates(value: Any) -> Any:
    """Return `value` without lone surrogates, which a home may hold and UTF-8 may not."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _without_surrogates(inner) for key, inner in value.items()}
    return [_without_surrogates(inner) for inner in value] if isinstance(value, list) else value


def register_resources(server: Any, home: str | None, *, memory: bool) -> None:
    """Add the resources to the server; without those of aether's own memory unless `memory`."""
    _add(server, home, RESOURCE, "The whole knowledge graph", knowledge_graph)
    if not memory:
        return
    _add(server, home, "aether://memory", "An overview of memory", overview)
    _add(server, home, "aether://signals", "The active signals", signals)
    _add(server, home, "aether://state", "State of the colony and its phases", state)
    _add(server, home, "aether://sessions", "The compressed sessions", sessions)

    async def reading(id: str) -> str:
        return part_of(await _in_thread(lambda: entry(id, served_home(home))), 1, ask=f"get, ids=[{id}]")

    for kind in ("items", "sessions"):
        name, about = kind.removesuffix("s"), f"One of the {kind} by its id"
        server.resource(f"aether://{kind}/{{id}}", name=name, description=about, mime_type=TEXT)(reading)


def _add(server: Any, home: str | None, uri: str, about: str, read: Callable[[Path], str]) -> None:
    async def reading() -> str:
        text = await _in_thread(lambda: read(served_home(home)))
        return text if uri == RESOURCE else part_of(text, 1, ask="the tool get")

    name = uri.rpartition("/")[2]
    server.resource(uri, name=name, description=about, mime_type=JSON)(reading)


async def _in_thread(read: Callable[[], str]) -> str:
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

    try:
        return (await asyncio.to_thread(read)).encode("utf-8", "replace").decode()
    except NotFound as reason:
        raise ResourceNotFoundError(str(reason)) from reason
    except AetherError as reason:
        raise ResourceError(str(reason)) from reason


def knowledge_graph(home: Path) -> str:
    """Return the whole knowledge graph."""
    return as_json(graph.read_graph(home=home))


def overview(home: Path) -> str:
    """Return the status, and the newest entries with id, gist and the cost of the full text."""
    memory = api_home.read(home).documents["memory"]
    newest = sorted(layers.records(memory), key=lambda record: record.at, reverse=True)[:NEWEST]
    count = api_home.counter_of(memory)
    shown_lines = [lines.recall_line(record, count=count)._asdict() for record in newest]
    newest_lines = [
        {key: line[key] for key in ("id", "layer", "type", "at", "tokens", "gist")} for line in shown_lines
    ]
    origin = {"origin": UNCONFIRMED} if own_test(home) else {}
    return as_json({**get_memory_status(home=home), "newest": newest_lines, **origin})


def signals(home: Path) -> str:
    """Return the active signals, strongest first."""
    return as_json(colony.active_signals(home=home))


def state(home: Path) -> str:
    """Return the state of the colony."""
    return as_json(colony.colony(home=home))


def sessions(home: Path) -> str:
    """Return the sessions of short-term memory, each with its summary."""
    fields = ("session_id", "phase", "compressed_at", "original_tokens", "compressed_tokens", "summary")
    stored = api_home.read(home).documents["memory"]["short_term_memory"]["sessions"]
    return as_json([labelled({field: session[field] for field in fields}, home) for session in stored])


def entry(id: str, home: Path) -> str:
    """Return the item, session or pattern of this id in full.

    Raises:
        NotFound: the id is unknown.
    """
    (full_entry,) = recall.full([id], home=home)
    return as_json(labelled(gate.without_waiting(full_entry["entry"]), home))


def register_prompts(server: Any, home: str | None) -> None:
    """Add the prompts to the server."""

    async def compress(phase: str = "") -> str:
        return await _prompt_text(lambda: compress_prompt(phase, home))

    async def summary(kind: str = "task_state") -> str:
        return await _prompt_text(lambda: summary_prompt(kind))

    about = "Compress working memory: you are the architect who writes the session"
    server.prompt("compress", description=about)(compress)
    server.prompt("summary", description=f"Sum this conversation up, as {', '.join(SUMMARIES)}")(summary)


def compress_prompt(phase: str, home: str | None) -> str:
    """Return the hand-off for the architect, and how to hand the session in.

    Raises:
        InvalidInput: the phase is not a number.
    """
    if phase and not (phase.isdecimal() and len(phase) <= MOST_DIGITS):
        raise InvalidInput(
            f"phase is {shown(phase)}.", fix="Use a number, or leave it out.", where="compress"
        )
    place = served_home(home)
    number = int(phase) if phase else phases.current_phase(colony.colony(home=place))
    text, path = handoff_text(number, place)
    if not path:
        return text
    shown_part = part_of(text, 1, ask=f"the tool compress, action=prepare, phase={number}")
    return f"{shown_part}\nGive the session JSON to the tool compress with action=ingest."


def summary_prompt(kind: str) -> str:
    """Return the prompt for an account of the conversation.

    Raises:
        InvalidInput: the kind is unknown.
    """
    require_one_of(kind, SUMMARIES, "a summary", where="summary")
    return texts.render(SUMMARIES[kind], max_tokens=str(SUMMARY_TOKENS))


async def _prompt_text(make: Any) -> str:
    from mcp.shared.exceptions import MCPError
    from mcp.types import INVALID_PARAMS

    try:
        return str(await asyncio.to_thread(make))
    except AetherError as reason:
        raise MCPError(code=INVALID_PARAMS, message=str(reason)) from reason
