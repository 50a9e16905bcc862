"""The openai backend: chat completions of OpenAI and of every compatible server.

It needs no package of OpenAI. With `OPENAI_BASE_URL` a local server is called, which may need no key.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aether.backends import dialog, model_server
from aether.backends.base import Completion, Request, Settings
from aether.backends.request import strict_schema
from aether.errors import BackendUnavailable
from aether.types import Counter, JsonObject

NAME = "openai"
HOSTED = "https://api.openai.com/v1"
_FIXES = {
    0: "Start it, check OPENAI_BASE_URL, or use the extractive backend.",
    401: "Check OPENAI_API_KEY, or use the extractive backend.",
    403: "Check what OPENAI_API_KEY may do, or use the extractive backend.",
    404: "Check AETHER_MODEL and OPENAI_BASE_URL (it mostly ends in /v1), or use the extractive backend.",
}
_OUTCOMES: dict[str, dialog.Outcome] = {"length": "cut", "content_filter": "refused"}


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer of a chat-completions server to `request`.

    Raises:
        BackendUnavailable: a key, the choice of a model or the server is missing, or the key is not accepted.
        BackendFailed: it was reached and failed, refused, or its answer was cut off.
    """
    server = _server(settings)
    key = model_server.setting_or_environment(settings.api_key, "OPENAI_API_KEY")
    name = model_server.setting_or_environment(settings.model, "AETHER_MODEL")
    if server == HOSTED and not key:
        raise BackendUnavailable(
            "OPENAI_API_KEY is not set.",
            fix="Set it, name a local server in OPENAI_BASE_URL, or use the extractive backend.",
            where=NAME,
        )
    if not name:
        raise BackendUnavailable(
            f"no model is chosen for {server}.",
            fix="Name one in AETHER_MODEL, or use the extractive backend.",
            where=NAME,
        )

    described = {"name": request.task, "strict": True, "schema": strict_schema(request.schema)}

    def exchange(prompt: str, room: int, form: JsonObject) -> model_server.Reply:
        body = {"model": name, "messages": [{"role": "user", "content": prompt}], **form}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        # OpenAI's own models refuse `max_tokens`; most other servers know only that.
        body["max_completion_tokens" if server == HOSTED else "max_tokens"] = room
        return model_server.post(
            f"{server}/chat/completions",
            body,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout_seconds=settings.timeout_seconds,
        )

    model = dialog.Model(
        name=NAME,
        server=server,
        exchange=exchange,
        read=_read,
        forms=(
            {"response_format": {"type": "json_schema", "json_schema": described}},
            {"response_format": {"type": "json_object"}},
            {},
        ),
        fixes=_FIXES,
    )
    return dialog.converse(request, model, settings=settings, count=count)


def _server(settings: Settings) -> str:
    given = model_server.setting_or_environment(settings.base_url, "OPENAI_BASE_URL")
    address = (given or HOSTED).rstrip("/")
    return address if urlsplit(address).path else f"{address}/v1"


def _read(body: JsonObject) -> dialog.Answer:
    choice = (body.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    usage = body.get("usage") or {}
    reason = choice.get("finish_reason") or "stop"
    refusal = message.get("refusal")
    return dialog.Answer(
        outcome="refused" if refusal else _OUTCOMES.get(reason, "whole"),
        text=message.get("content") or "",
        model=str(body.get("model", "")),
        input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        detail=str(refusal or reason),
    )
