"""The Anthropic SDK: the arguments of `messages.create`, made to fit before they are sent.

    answer = client.messages.create(**compacted("user-42", {"model": …, "max_tokens": …, "messages": messages}))
    answered("user-42", answer)  # what it cost corrects the next count

The caller keeps the whole list and goes on appending to it; what was compacted once is not compacted again. The SDK
itself is not imported: with `client`, the token-count endpoint is asked through it, once for each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from aether.api import compact, conversations
from aether.api.compact import DEFAULT_OPTIONS, Options
from aether.api.home import Home
from aether.api.tokens import counting
from aether.compaction.policy import policy as named
from aether.compaction.shapes import Policy
from aether.messages import convert
from aether.messages.validate import repair
from aether.tokens.count import message_tokens, system_tokens, tools_tokens
from aether.types import Counter, JsonObject

# What the endpoint counts of a request; other arguments cost nothing.
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")

# The parts of a usage that are input: Anthropic leaves the cached ones out of the first.
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def compacted(
    conversation_id: str,
    request: Mapping[str, Any],
    *,
    client: Any = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> JsonObject:
    """Return `request`, the arguments of `messages.create`, with messages that fit the model's window.

    System prompt and tools are counted, and `max_tokens` stays free for the answer. With `client` the messages are
    counted by the provider's own count of this request.

    Raises:
        BudgetExceeded: what must stay does not fit.
        InvalidInput: a message is none.
    """
    place = options.record or conversations.record_directory(home)
    chosen = named(policy) if isinstance(policy, str) else policy
    chosen = chosen._replace(reserve=max(chosen.reserve, request.get("max_tokens", 0)))
    messages = conversations.resume(conversation_id, request["messages"], home=home)
    system, tools = request.get("system"), request.get("tools")
    if client is not None:
        count = _exact(
            client,
            {**request, "messages": _sendable(messages)},
            counting(request["model"], place=place).count,
        )
        options = options._replace(counter=count, counter_name="count_tokens")
    done = compact.preflight(
        conversation_id, messages, model=request["model"], window=window, policy=chosen, system=system, tools=tools,
        wire="anthropic", options=options._replace(record=place),
    )  # fmt: skip
    return {**request, "messages": _sendable(done.messages)}


def answered(conversation_id: str, answer: Any, *, home: Home = None) -> bool:
    """Learn from what the `answer` of `messages.create` says that its request cost; return whether it did.

    Nothing is learned without a home, or where the provider had counted already.
    """
    usage = getattr(answer, "usage", None)
    tokens = [getattr(usage, name, None) or 0 for name in _INPUT]
    return compact.answered(conversation_id, sum(tokens), home=home)


def _sendable(messages: list[JsonObject]) -> list[JsonObject]:
    """Return messages as the provider takes them: no half of a pair, and nothing of aether's own."""
    mended = repair(convert.read(messages, "anthropic"), "anthropic").messages
    return [convert.bare(message.raw) for message in mended]


def _exact(client: Any, request: Mapping[str, Any], count: Counter) -> Counter:
    """Return `count` times what the endpoint says of the request for what `count` says of it."""
    asked = {name: request[name] for name in _COUNTED if name in request}
    exact = client.messages.count_tokens(**asked).input_tokens
    counted = sum(
        message_tokens(message, count) for message in convert.read(request["messages"], "anthropic")
    )
    counted += system_tokens(request.get("system"), count) + tools_tokens(request.get("tools"), count)
    return partial(_scaled, count, exact / max(1, counted))


def _scaled(count: Counter, factor: float, text: str) -> int:
    return round(count(text) * factor)
