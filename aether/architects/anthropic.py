"""The anthropic backend: the Messages API through the `anthropic` package, with structured output.

The package finds its key, address and profile itself; settings come first. Its own retries are off,
because `model_server` does them alike for every backend.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aether import http
from aether.architects import dialog, model_server, stream
from aether.architects.base import Completion, Request, Settings
from aether.architects.request import strict_schema
from aether.errors import BackendUnavailable, packages_of
from aether.messages import convert
from aether.messages.model import as_object
from aether.tokens.models import ANTHROPIC_INPUT
from aether.types import Counter, JsonObject

if TYPE_CHECKING:
    from anthropic import Anthropic

NAME = "anthropic"
# The cheapest current model, which is good enough to condense notes.
DEFAULT_MODEL = "claude-haiku-5-5"
_FIXES = {
    0: "Check the connection and ANTHROPIC_BASE_URL, or use the extractive backend.",
    401: "Check ANTHROPIC_API_KEY, or use the extractive backend.",
    403: "Check what ANTHROPIC_API_KEY may do, or use the extractive backend.",
    404: "Check AETHER_MODEL and ANTHROPIC_BASE_URL, or use the extractive backend.",
}
_OUTCOMES: dict[str, dialog.Outcome] = {
    "max_tokens": "cut",
    "refusal": "refused",
    "model_context_window_exceeded": "too long",
}


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer of a Claude model to `request`.

    Raises:
        BackendUnavailable: the package, a key or the server is missing, or the key is not accepted.
        BackendFailed: it was reached and failed, refused, or its answer was cut off.
    """
    client = _client(settings)
    name = model_server.setting_or_environment(settings.model, "AETHER_MODEL") or DEFAULT_MODEL

    def exchange(prompt: str, room: int, form: JsonObject) -> model_server.Reply:
        import anthropic

        try:
            message: Any = client.messages.with_raw_response.create(
                model=name, max_tokens=room, messages=[{"role": "user", "content": prompt}], timeout=client.timeout,
                **form,
            )  # fmt: skip
            answered = message.http_response
        except anthropic.AnthropicError as reason:
            return _as_reply(reason)
        return model_server.parsed_reply(answered.status_code, answered.content, answered.headers)

    model = dialog.Model(
        name=NAME, server=str(client.base_url), exchange=exchange, read=_read,
        forms=({"output_config": {"format": {"type": "json_schema", "schema": strict_schema(request.schema)}}}, {}),
        fixes=_FIXES,
    )  # fmt: skip
    with client:
        return dialog.converse(request, model, settings=settings, count=count)


def chat(
    messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: stream.OnText,
    tools: Sequence[JsonObject] = (),
) -> stream.ChatReply:  # fmt: skip
    """Return the reply of a Claude model while it is written.

    Raises:
        ContextOverflow, BackendUnavailable, BackendFailed: as `stream.ChatBackend` says.
    """
    import anthropic
    import httpx2

    client = _client(settings)
    name = model_server.setting_or_environment(settings.model, "AETHER_MODEL") or DEFAULT_MODEL
    converted = convert.convert(convert.read(list(messages), "openai"), "anthropic", system=system)
    body: dict[str, Any] = {
        "model": name, "max_tokens": settings.max_output_tokens,
        "messages": [convert.bare(message.raw) for message in converted.messages],
    }  # fmt: skip
    if converted.system:
        body["system"] = converted.system
    if tools:
        body["tools"] = [_tool(as_object(tool.get("function"))) for tool in tools]
    finals: list[Any] = []

    def attempt() -> model_server.Reply:
        started = False
        try:
            with client.messages.stream(**body) as streamed:
                for text in streamed.text_stream:
                    started = True
                    on_text(text)
                finals.append(streamed.get_final_message())
        except (
            anthropic.AnthropicError,
            httpx2.HTTPError,
        ) as reason:  # the stream raises those of its client
            reply = _as_reply(reason)
            if started:
                model_server.raise_failure(reply, where=NAME, server=str(client.base_url), settings=settings, fixes=_FIXES)  # fmt: skip
            return reply
        return model_server.Reply(200, {})

    with client:
        reply = model_server.with_retries(attempt, settings)
        if not finals:
            model_server.raise_failure(reply, where=NAME, server=str(client.base_url), settings=settings, fixes=_FIXES)  # fmt: skip
    return _chat_reply(finals[0].model_dump(mode="json"))


def served(settings: Settings) -> stream.Served:  # noqa: ARG001 - the interface of chat backends
    """Return nothing: the windows of hosted models are in the profiles."""
    return stream.Served()


def _tool(function: JsonObject) -> JsonObject:
    described: JsonObject = {key: function[key] for key in ("name", "description") if key in function}
    return {**described, "input_schema": function.get("parameters") or {"type": "object"}}


def _chat_reply(body: JsonObject) -> stream.ChatReply:
    answer = _read(body)
    calls = tuple(
        stream.ToolCall(block["id"], block["name"], json.dumps(block.get("input") or {}))
        for block in body.get("content") or []
        if block.get("type") == "tool_use"
    )
    if answer.outcome == "too long" and not answer.text:
        raise model_server.overflow(answer.detail, where=NAME)
    stop: stream.Stop = "length" if answer.outcome in ("cut", "too long") else "refused" if answer.outcome == "refused" else "end"  # fmt: skip
    return stream.ChatReply(
        answer.text, NAME, answer.model, answer.input_tokens, answer.output_tokens, "tools" if calls else stop, calls
    )  # fmt: skip


def _as_reply(reason: Exception) -> model_server.Reply:
    """Return the failure of a call as the reply of its server.

    Raises:
        BackendUnavailable: there are no credentials.
    """
    import anthropic

    if isinstance(reason, anthropic.CredentialsError):
        raise _no_key(f"the anthropic profile cannot be used ({reason}).") from reason
    if isinstance(reason, anthropic.APIStatusError):
        answered = reason.response
        if answered.status_code != 200:
            return model_server.parsed_reply(answered.status_code, answered.content, answered.headers)
        # An event of the stream: its status was sent before the failure.
        body = as_object(reason.body)
        kind = as_object(body.get("error")).get("type")
        return model_server.Reply(400 if kind == "invalid_request_error" else 529, body, str(reason))
    import httpx2

    if isinstance(reason, (anthropic.APITimeoutError, httpx2.TimeoutException)):
        return model_server.Reply(0, {}, str(reason), failure="timeout")
    failure: http.Failure = "dropped"
    if isinstance(reason.__cause__, httpx2.ConnectError):
        failure = "unreachable"
    return model_server.Reply(0, {}, str(reason.__cause__ or reason), failure=failure)


def _client(settings: Settings) -> Anthropic:
    with packages_of("", where=NAME, otherwise=", or use the extractive backend."):
        import anthropic
    key = model_server.setting_or_environment(settings.api_key, "ANTHROPIC_API_KEY")
    try:
        client = anthropic.Anthropic(
            api_key=key or None,
            base_url=model_server.setting_or_environment(settings.base_url, "ANTHROPIC_BASE_URL") or None,
            timeout=settings.timeout_seconds,
            max_retries=0,
            # A redirect would take the key to an address that nobody named.
            http_client=anthropic.DefaultHttpxClient(follow_redirects=False),
        )
    except anthropic.CredentialsError as reason:
        raise _no_key(f"the anthropic profile cannot be used ({reason}).") from reason
    if client.api_key or client.auth_token or client.credentials:
        return client
    client.close()
    raise _no_key("ANTHROPIC_API_KEY is not set.")


def _no_key(what: str) -> BackendUnavailable:
    return BackendUnavailable(what, fix="Set ANTHROPIC_API_KEY, or use the extractive backend.", where=NAME)


def _read(body: JsonObject) -> dialog.Answer:
    usage = body.get("usage") or {}
    reason = body.get("stop_reason") or "end_turn"
    # Thinking comes first on current models, so blocks are selected by type, not by place.
    texts = [block.get("text", "") for block in body.get("content") or [] if block.get("type") == "text"]
    return dialog.Answer(
        outcome=_OUTCOMES.get(reason, "whole"), text="".join(texts), model=str(body.get("model", "")), detail=reason,
        input_tokens=sum(usage.get(kind) or 0 for kind in ANTHROPIC_INPUT), output_tokens=usage.get("output_tokens") or 0,
    )  # fmt: skip
