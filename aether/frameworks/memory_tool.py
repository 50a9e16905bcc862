"""The memory tool of the Anthropic SDK: files that a model keeps, in the home.

    runner = client.beta.messages.tool_runner(…, tools=[AetherMemoryTool()])

Each command is one call of `aether.api.memory_tool`; a wrong command goes back to the model as an error. The classes are
made at their first use, because the SDK takes most of a second to import.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from aether.api.home import Home
from aether.api.memory_tool import clear_memory_files, memory_tool
from aether.errors import AetherError, packages_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    AetherMemoryTool: Any
    AsyncAetherMemoryTool: Any


def __getattr__(name: str) -> Any:
    if name not in ("AetherMemoryTool", "AsyncAetherMemoryTool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes()[name]


def _answer(command: Any, home: Home) -> str:
    """Return the text of the answer to `command`, an object of the SDK.

    Raises:
        ToolError: the answer is an error.
    """
    try:
        answer = memory_tool(command.model_dump(), home=home)
    except AetherError as reason:
        raise _tool_error(f"Error: {reason}") from reason
    if answer.is_error:
        raise _tool_error(answer.text)
    return answer.text


def _tool_error(text: str) -> Exception:
    from anthropic.tools import ToolError

    return ToolError(text)


def _cleared(home: Home) -> str:
    return f"All memory cleared: {clear_memory_files(home=home)} files."


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    from asyncio import to_thread

    with packages_of("", where="memory tool"):
        from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

    class AetherMemoryTool(BetaAbstractMemoryTool):
        """The memory tool over the named home, else over the one found at each command."""

        def __init__(self, home: Home = None, **given: Any) -> None:
            super().__init__(**given)
            self.home = home

        def _run(self, command: Any) -> str:
            return _answer(command, self.home)

        view = create = str_replace = insert = delete = rename = _run

        def clear_all_memory(self) -> str:
            """Remove every file and return a line with their number; `undo` brings them back."""
            return _cleared(self.home)

    class AsyncAetherMemoryTool(BetaAsyncAbstractMemoryTool):
        """The same for the asynchronous client; disk access is in a thread."""

        def __init__(self, home: Home = None, **given: Any) -> None:
            super().__init__(**given)
            self.home = home

        async def _run(self, command: Any) -> str:
            return await to_thread(_answer, command, self.home)

        view = create = str_replace = insert = delete = rename = _run

        async def clear_all_memory(self) -> str:
            """Remove every file and return a line with their number; `undo` brings them back."""
            return await to_thread(_cleared, self.home)

    return {"AetherMemoryTool": AetherMemoryTool, "AsyncAetherMemoryTool": AsyncAetherMemoryTool}
