"""The openai backend: chat completions of OpenAI and of every compatible server.

It needs no package of OpenAI. With `OPENAI_BASE_URL` a local server is called, which may need no key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from aether.architects import dialog, model_server, stream
from aether.architects.base import Completion, Request, Settings
from aether.architects.request import strict_schema
from aether.errors import AetherError, BackendFailed, BackendUnavailable
from aether.messages.convert import bare
from aether.messages.model import as_object
from aether.types import Counter, JsonObject

NAME = "openai"
HOSTED = "https://api.openai.com/v1"
# A server of one's own answers at once; the hosted list of models takes a moment.
ASK_SECONDS = 3.0
# Of a model in the list of models: vLLM, then OpenRouter and others.
_WINDOW_KEYS = ("max_model_len", "context_length", "context_window")
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
    server, key, name = _reached(settings)
    described = {"name": request.task, "strict": True, "schema": strict_schema(request.schema)}

    def exchange(prompt: str, room: int, form: JsonObject) -> model_server.Reply:
        body = {"model": name, "messages": [{"role": "user", "content": prompt}], **form}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        body[_room_key(server)] = room
        return model_server.post(
            f"{server}/chat/completions",
            body,
            headers=_headers(key),
            timeout_seconds=settings.timeout_seconds,
        )

    model = dialog.Model(
        name=NAME, server=server, exchange=exchange, read=_read, fixes=_FIXES,
        forms=({"response_format": {"type": "json_schema", "json_schema": described}}, {"response_format": {"type": "json_object"}}, {}),
    )  # fmt: skip
    return dialog.converse(request, model, settings=settings, count=count)


def chat(
    messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: stream.OnText,
    tools: Sequence[JsonObject] = (),
) -> stream.ChatReply:  # fmt: skip
    """Return the reply of a chat-completions server while it is written.

    Raises:
        ContextOverflow, BackendUnavailable, BackendFailed: as `stream.ChatBackend` says.
    """
    server, key, name = _reached(settings)
    prompt = [{"role": "system", "content": system}] if system else []
    body: JsonObject = {
        "model": name, "messages": [*prompt, *map(bare, messages)], "stream": True,
        "stream_options": {"include_usage": True}, _room_key(server): settings.max_output_tokens,
    }  # fmt: skip
    if tools:
        body["tools"] = list(tools)
    chat_server = stream.Server(NAME, server, "/chat/completions", body, _hear, _FIXES, _headers(key))
    try:
        return stream.exchanged(chat_server, settings=settings, on_text=on_text)
    except BackendFailed as reason:
        if "stream_options" not in reason.what:
            raise
        del body["stream_options"]  # an older server: it streams, but reports no usage
        return stream.exchanged(chat_server, settings=settings, on_text=on_text)


def served(settings: Settings) -> stream.Served:
    """Return the window that the server reports in its list of models, as vLLM and others do; never an error."""
    try:
        server, key, name = _reached(settings)
        seconds = min(ASK_SECONDS, settings.timeout_seconds)
        listed = stream.ask_json(f"{server}/models", None, seconds=seconds, headers=_headers(key))
        sizes = [
            int(entry[size])
            for entry in listed.get("data") or []
            for size in _WINDOW_KEYS
            if entry.get("id") == name and entry.get(size)
        ]
    except (AetherError, ValueError, TypeError, AttributeError):
        sizes = []
    return stream.Served(*sizes[:1], *sizes[:1])


def _reached(settings: Settings) -> tuple[str, str, str]:
    """Return the address of the server, the key and the name of the model."""
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
    return server, key, name


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _room_key(server: str) -> str:
    # OpenAI's own models refuse `max_tokens`; most other servers know only that.
    return "max_completion_tokens" if server == HOSTED else "max_tokens"


def _hear(event: JsonObject, heard: stream.Heard) -> str:
    heard.model = str(event.get("model") or heard.model)
    usage = event.get("usage") or {}
    heard.input_tokens = usage.get("prompt_tokens") or heard.input_tokens
    heard.output_tokens = usage.get("completion_tokens") or heard.output_tokens
    choice: dict[str, Any] = (event.get("choices") or [{}])[0]
    delta = choice.get("delta") or {}
    for call in delta.get("tool_calls") or []:
        index, function = call.get("index", 0), as_object(call.get("function"))
        while len(heard.calls) <= index < stream.MOST_CALLS:
            heard.calls.append({"id": f"call_{len(heard.calls)}", "name": "", "arguments": ""})
        heard.calls[index]["id"] = call.get("id") or heard.calls[index]["id"]
        heard.calls[index]["name"] += function.get("name") or ""
        heard.calls[index]["arguments"] += function.get("arguments") or ""
    reason = choice.get("finish_reason")
    if reason:
        heard.stop = "refused" if reason == "content_filter" else "length" if reason == "length" else "end"
    text = delta.get("content") or delta.get("refusal") or ""
    return text if isinstance(text, str) else ""


def _server(settings: Settings) -> str:
    base_url = model_server.setting_or_environment(settings.base_url, "OPENAI_BASE_URL")
    address = (base_url or HOSTED).rstrip("/")
    return address if urlsplit(address).path else f"{address}/v1"


def _read(body: JsonObject) -> dialog.Answer:
    choice = (body.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    usage = body.get("usage") or {}
    reason = choice.get("finish_reason") or "stop"
    refusal = message.get("refusal")
    return dialog.Answer(
        outcome="refused" if refusal else _OUTCOMES.get(reason, "whole"), text=message.get("content") or "",
        model=str(body.get("model", "")), input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0, detail=str(refusal or reason),
    )  # fmt: skip
