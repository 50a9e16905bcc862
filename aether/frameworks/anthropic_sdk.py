"""The Anthropic SDK: the arguments of `messages.create`, made to fit before they are sent.

    answer = client.messages.create(**compacted("user-42", {"model": …, "max_tokens": …, "messages": messages}))
    answered("user-42", answer)  # its usage corrects the next count

The caller keeps the whole list and goes on appending to it; a compacted part is not compacted again. The SDK itself is
not imported: with `client`, its token-count endpoint is asked once for each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from aether.api import compact, conversations
from aether.api.compact import DEFAULT_OPTIONS, Options
from aether.api.home import Home
from aether.api.tokens import counting
from aether.conversation.policy import policy as named
from aether.conversation.shapes import Policy
from aether.messages import convert
from aether.messages.validate import sendable
from aether.tokens.count import message_tokens, system_tokens, tools_tokens
from aether.tokens.models import ANTHROPIC_INPUT
from aether.types import Counter, JsonObject

# The arguments that the endpoint counts; others cost nothing.
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")


def compacted(
    conversation_id: str, request: Mapping[str, Any], *, client: Any = None, window: int | None = None,
    policy: str | Policy = "compact", options: Options = DEFAULT_OPTIONS, home: Home = None,
) -> JsonObject:  # fmt: skip
    """Return `request`, the arguments of `messages.create`, with messages that fit the model's window.

    System prompt and tools are counted, and `max_tokens` stays free for the answer. With `client` the provider's own
    count of this request is used.

    Raises:
        BudgetExceeded: the protected messages do not fit.
        InvalidInput: a message is invalid.
    """
    place = options.record or conversations.record_directory(home)
    chosen = named(policy) if isinstance(policy, str) else policy
    chosen = chosen._replace(reserve=max(chosen.reserve, request.get("max_tokens", 0)))
    messages = conversations.resume(conversation_id, request["messages"], home=home)
    system, tools = request.get("system"), request.get("tools")
    if client is not None:
        count = _exact(
            client,
            {**request, "messages": [*map(convert.bare, sendable(messages, "anthropic").raws)]},
            counting(request["model"], place=place).count,
        )
        options = options._replace(counter=count, counter_name="count_tokens")
    done = compact.preflight(
        conversation_id, messages, model=request["model"], window=window, policy=chosen, system=system, tools=tools,
        wire="anthropic", options=options._replace(record=place),
    )  # fmt: skip
    compact.report_findings(conversation_id, done.findings, options)
    return {**request, "messages": list(map(convert.bare, done.messages))}


def answered(conversation_id: str, answer: Any, *, home: Home = None) -> bool:
    """Correct later counts by the usage in the `answer` of `messages.create`, and return whether that was possible.

    Nothing is corrected without a home, or if the provider has counted already.
    """
    usage = getattr(answer, "usage", None)
    tokens = [getattr(usage, name, None) or 0 for name in ANTHROPIC_INPUT]
    return compact.answered(conversation_id, sum(tokens), home=home)


def _exact(client: Any, request: Mapping[str, Any], count: Counter) -> Counter:
    """Return `count` scaled so that it gives the endpoint's count of the request."""
    asked = {name: request[name] for name in _COUNTED if name in request}
    exact = client.messages.count_tokens(**asked).input_tokens
    estimated = sum(
        message_tokens(message, count) for message in convert.read(request["messages"], "anthropic")
    )
    estimated += system_tokens(request.get("system"), count) + tools_tokens(request.get("tools"), count)
    return partial(_scaled, count, exact / max(1, estimated))


def _scaled(count: Counter, factor: float, text: str) -> int:
    return round(count(text) * factor)
