"""LangChain: a middleware that sends a model what fits, and leaves the messages of the agent's state whole.

    agent = create_agent(model, tools, middleware=[compaction_middleware(window=128_000)])

Messages that stay are the very objects of the state, with their ids and all that LangChain keeps in them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from aether.compaction.shapes import Policy
from aether.errors import BackendUnavailable
from aether.messages import formats
from aether.messages.repair import repair
from aether.operations import compacting, conversing
from aether.operations.compaction_case import DEFAULT_OPTIONS, Options
from aether.operations.edge import Home
from aether.shapes import JsonObject

# The conversation of an agent without a checkpointer's thread.
NO_THREAD = "default"
# A chat model that does not say its name has the smallest window that is known.
UNNAMED = "unnamed"


def compaction_middleware(
    conversation_id: str | None = None,
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Any:
    """Return an `AgentMiddleware` that compacts what each call of the model is sent.

    The conversation is the thread of the run unless named; `model` is the agent's own, `window` that model's.

    Raises:
        BackendUnavailable: langchain is not installed.
    """
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ImportError as reason:
        raise BackendUnavailable(
            "langchain is not installed.", fix='pip install "aether[langchain]".', where="langchain"
        ) from reason

    def fitted(request: Any) -> Any:
        messages = _fitted(
            conversation_id or _thread(), request, model=model, window=window, policy=policy, options=options, home=home
        )  # fmt: skip
        return request.override(messages=messages)

    class Compaction(AgentMiddleware):
        """Compacts before each call of the model; it holds configuration only."""

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(fitted(request))

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return await handler(await asyncio.to_thread(fitted, request))

    return Compaction()


def _fitted(
    conversation_id: str, request: Any, *, model: str | None, window: int | None, policy: str | Policy,
    options: Options, home: Home,
) -> list[Any]:  # fmt: skip
    raws = _raws(request.messages)
    own = {_key(raw): message for raw, message in zip(raws, request.messages, strict=True)}
    done = compacting.preflight(
        conversation_id, conversing.continued(conversation_id, raws, home=home), model=model or _name(request.model),
        window=window, policy=policy, system=request.system_prompt, tools=_tools(request.tools), wire="openai",
        options=options, home=home,
    )  # fmt: skip
    mended = repair(formats.read(done.messages, "openai"), "openai").messages
    return [own.get(_key(message.raw)) or _message(message.raw) for message in mended]


def _raws(messages: Sequence[Any]) -> list[JsonObject]:
    from langchain_core.messages import convert_to_openai_messages

    found = convert_to_openai_messages(list(messages))
    raws: list[JsonObject] = json.loads(json.dumps(found, default=str))
    for raw, message in zip(raws, messages, strict=True):
        # What is protected says so in LangChain's own place for what is not sent.
        meta = message.additional_kwargs.get(formats.META)
        if isinstance(meta, dict):
            raw[formats.META] = json.loads(json.dumps(meta, default=str))
    return raws


def _message(raw: JsonObject) -> Any:
    from langchain_core.messages import convert_to_messages

    (message,) = convert_to_messages([formats.bare(raw)])
    return message


def _key(raw: JsonObject) -> str:
    return json.dumps(raw, sort_keys=True)


def _tools(tools: Sequence[Any]) -> list[Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in tools]


def _name(model: Any) -> str:
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) and name else UNNAMED


def _thread() -> str:
    """Return the thread that the run is of, as its checkpointer knows it."""
    from langchain_core.runnables.config import ensure_config

    thread = ensure_config().get("configurable", {}).get("thread_id")
    return str(thread) if thread else NO_THREAD
