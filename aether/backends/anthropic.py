"""The anthropic backend: the Messages API through the `anthropic` package, with structured output.

The package finds its key, address and profile itself; settings come first. Its own retries are off,
because `model_server` does them alike for every backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aether import http
from aether.backends import dialog, model_server
from aether.backends.base import Completion, Request, Settings
from aether.backends.request import strict_schema
from aether.errors import BackendUnavailable
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
_READ_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
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
                model=name,
                max_tokens=room,
                messages=[{"role": "user", "content": prompt}],
                timeout=client.timeout,
                **form,
            )
            answered = message.http_response
        except anthropic.CredentialsError as reason:
            raise _no_key(f"the anthropic profile cannot be used ({reason}).") from reason
        except anthropic.APIStatusError as refusal:
            answered = refusal.response
        except anthropic.APITimeoutError as reason:
            return model_server.Reply(0, {}, str(reason), failure="timeout")
        except anthropic.APIConnectionError as reason:
            import httpx2

            failure: http.Failure = "dropped"
            if isinstance(reason.__cause__, httpx2.ConnectError):
                failure = "unreachable"
            return model_server.Reply(0, {}, str(reason.__cause__ or reason), failure=failure)
        return model_server.parsed_reply(answered.status_code, answered.content, answered.headers)

    model = dialog.Model(
        name=NAME,
        server=str(client.base_url),
        exchange=exchange,
        read=_read,
        forms=(
            {"output_config": {"format": {"type": "json_schema", "schema": strict_schema(request.schema)}}},
            {},
        ),
        fixes=_FIXES,
    )
    with client:
        return dialog.converse(request, model, settings=settings, count=count)


def _client(settings: Settings) -> Anthropic:
    try:
        import anthropic
    except ImportError as reason:
        raise BackendUnavailable(
            f"the package anthropic cannot be imported ({reason}).",
            fix="Run: pip install aether-memory, or use the extractive backend.",
            where=NAME,
        ) from reason
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
        outcome=_OUTCOMES.get(reason, "whole"),
        text="".join(texts),
        model=str(body.get("model", "")),
        input_tokens=sum(usage.get(kind) or 0 for kind in _READ_TOKENS),
        output_tokens=usage.get("output_tokens") or 0,
        detail=reason,
    )
