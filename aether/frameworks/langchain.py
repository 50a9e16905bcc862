"""LangChain: a middleware that sends a model messages that fit, and leaves the agent's state whole.

    agent = create_agent(model, tools, middleware=[compaction_middleware(window=128_000)])

Kept messages are the very objects of the state, with their ids and all of LangChain's own fields.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from aether.api import compact, conversations
from aether.api.compact import DEFAULT_OPTIONS, UNNAMED_MODEL, Options
from aether.api.home import Home
from aether.conversation.shapes import Policy
from aether.errors import packages_of
from aether.messages import convert
from aether.types import JsonObject

# The conversation of an agent without a checkpointer's thread.
NO_THREAD = "default"


def compaction_middleware(
    conversation_id: str | None = None, *, model: str | None = None, window: int | None = None,
    policy: str | Policy = "compact", options: Options = DEFAULT_OPTIONS, home: Home = None,
) -> Any:  # fmt: skip
    """Return an `AgentMiddleware` that compacts the messages of each call of the model.

    The conversation is the thread of the run unless named; `model` is the agent's own, `window` that model's.

    Raises:
        BackendUnavailable: langchain is not installed.
    """
    with packages_of("langchain", where="langchain"):
        from langchain.agents.middleware import AgentMiddleware

    def fitted(request: Any) -> Any:
        messages = _fitted(
            conversation_id or _thread(), request, model=model, window=window, policy=policy,
            options=options._replace(record=options.record or conversations.record_directory(home)),
        )  # fmt: skip
        return request.override(messages=messages)

    def learned(response: Any) -> None:
        usage = _usage(response)
        if usage:
            compact.answered(conversation_id or _thread(), usage, home=options.record or home)

    class Compaction(AgentMiddleware):
        """Compacts before each call of the model, and corrects the count by its usage; it holds configuration only."""

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            response = handler(fitted(request))
            learned(response)
            return response

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            response = await handler(await asyncio.to_thread(fitted, request))
            await asyncio.to_thread(learned, response)
            return response

    return Compaction()


def _fitted(
    conversation_id: str, request: Any, *, model: str | None, window: int | None, policy: str | Policy, options: Options
) -> list[Any]:  # fmt: skip
    from langchain_core.messages import convert_to_openai_messages

    spelled = [
        _with_meta(_with_invalid_calls(convert_to_openai_messages([message]), message), message)
        for message in request.messages
    ]
    raws = [raw for several in spelled for raw in several]
    done = compact.preflight(
        conversation_id, raws, model=model or _name(request.model), window=window, policy=policy, system=request.system_prompt,
        tools=_tools(request.tools), wire="openai", options=options,
    )  # fmt: skip
    compact.report_findings(conversation_id, done.findings, options)
    return _own(spelled, request.messages, done.messages)


def _with_invalid_calls(raws: Any, message: Any) -> Any:
    """Return the forms of a message with its calls whose arguments are no JSON: LangChain sends them, and their answers."""
    if invalid := getattr(message, "invalid_tool_calls", None):
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["args"]}}
            for call in invalid
        ]  # fmt: skip
        raws[-1]["tool_calls"] = [*raws[-1].get("tool_calls", []), *calls]
    return raws


def _with_meta(found: Any, message: Any) -> list[JsonObject]:
    """Return the forms of a message in OpenAI's format, several for one with results of tools, with our `meta`."""
    # Results come first: they answer the message before, and LangChain puts the text ahead of them.
    results_first = sorted(found, key=lambda raw: raw["role"] != "tool")
    raws: list[JsonObject] = json.loads(json.dumps(results_first, default=str))
    # The mark of a protected message is in LangChain's field for values that are not sent.
    meta = message.additional_kwargs.get(convert.META)
    if isinstance(meta, dict):
        for raw in raws:
            raw[convert.META] = json.loads(json.dumps(meta, default=str))
    return raws


def _own(
    spelled: Sequence[list[JsonObject]], messages: Sequence[Any], kept: Sequence[JsonObject]
) -> list[Any]:
    """Return the kept messages as LangChain's: the very ones of the state unless they were changed."""
    owner = {id(raw): at for at, raws in enumerate(spelled) for raw in raws}
    found: list[Any] = []
    for at, group in groupby(kept, key=lambda raw: owner.get(id(raw))):
        raws = list(group)
        if at is not None and len(raws) == len(spelled[at]):
            found.append(messages[at])
        else:
            found += map(_message, raws)
    return found


def _message(raw: JsonObject) -> Any:
    from langchain_core.messages import convert_to_messages

    (message,) = convert_to_messages([convert.bare(raw)])
    return message


def _usage(response: Any) -> int:
    """Return the input tokens that the answer reports, cached ones included; 0 without a report."""
    for message in getattr(response, "result", ()):
        usage = getattr(message, "usage_metadata", None)
        if usage:
            return int(usage["input_tokens"])
    return 0


def _tools(tools: Sequence[Any]) -> list[Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in tools]


def _name(model: Any) -> str:
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    name = name if isinstance(name, str) and name else UNNAMED_MODEL
    return f"ollama/{name}" if type(model).__name__ == "ChatOllama" else name


def _thread() -> str:
    """Return the run's thread id, as its checkpointer knows it."""
    from langchain_core.runnables.config import ensure_config

    thread = ensure_config().get("configurable", {}).get("thread_id")
    return str(thread) if thread else NO_THREAD
