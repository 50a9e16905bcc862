"""The memory tool of the Anthropic SDK: files that a model keeps, in the home.

    runner = client.beta.messages.tool_runner(…, tools=[AetherMemoryTool()])

Each command is one call of `operations.memory_files.memory_tool`; what the model got wrong goes back to it as an error.
The classes are made when they are first asked for, because the SDK takes most of a second to import.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from aether.api.home import Home
from aether.api.memory_tool import clear_memory_files, memory_tool
from aether.errors import AetherError, BackendUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    AetherMemoryTool: Any
    AsyncAetherMemoryTool: Any


def __getattr__(name: str) -> Any:
    if name not in ("AetherMemoryTool", "AsyncAetherMemoryTool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes()[name]


def _answer(command: Any, home: Home) -> str:
    """Return what the model is told of `command`, an object of the SDK.

    Raises:
        ToolError: it is an error, which the SDK marks as one.
    """
    try:
        said = memory_tool(command.model_dump(), home=home)
    except AetherError as reason:
        raise _tool_error(f"Error: {reason}") from reason
    if said.is_error:
        raise _tool_error(said.text)
    return said.text


def _tool_error(text: str) -> Exception:
    from anthropic.tools import ToolError

    return ToolError(text)


def _cleared(home: Home) -> str:
    return f"All memory cleared: {clear_memory_files(home=home)} files."


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    from asyncio import to_thread

    try:
        from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    except ImportError as reason:
        raise BackendUnavailable(
            "the package anthropic is not installed.",
            fix="Run: pip install aether-memory",
            where="memory tool",
        ) from reason

    class AetherMemoryTool(BetaAbstractMemoryTool):
        """The memory tool over the home that is named, or found when a command comes."""

        def __init__(self, home: Home = None, **given: Any) -> None:
            super().__init__(**given)
            self.home = home

        def _run(self, command: Any) -> str:
            return _answer(command, self.home)

        view = create = str_replace = insert = delete = rename = _run

        def clear_all_memory(self) -> str:
            """Remove every file and say how many there were; `undo` brings them back."""
            return _cleared(self.home)

    class AsyncAetherMemoryTool(BetaAsyncAbstractMemoryTool):
        """The same for the asynchronous client; the disk is waited for in a thread."""

        def __init__(self, home: Home = None, **given: Any) -> None:
            super().__init__(**given)
            self.home = home

        async def _run(self, command: Any) -> str:
            return await to_thread(_answer, command, self.home)

        view = create = str_replace = insert = delete = rename = _run

        async def clear_all_memory(self) -> str:
            """Remove every file and say how many there were; `undo` brings them back."""
            return await to_thread(_cleared, self.home)

    return {"AetherMemoryTool": AetherMemoryTool, "AsyncAetherMemoryTool": AsyncAetherMemoryTool}
