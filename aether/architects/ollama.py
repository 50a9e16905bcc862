"""The ollama backend: a model on this machine or a near one, through Ollama's own chat API.

Ollama silently drops the head of a prompt that does not fit. So every request sets the window and switches
truncation off, and the number of tokens that the server reports is compared with those sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from aether.architects import dialog, model_server, stream
from aether.architects.base import Completion, Request, Settings
from aether.architects.request import strict_schema
from aether.errors import AetherError, BackendUnavailable
from aether.messages.model import as_arguments, as_object, content_text
from aether.types import Counter, JsonObject

NAME = "ollama"
# A local server answers at once, or not at all.
ASK_SECONDS = 1.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)$", re.MULTILINE)
DEFAULT_PORT = 11434
# Local models write 10 to 40 tokens a second: a small part ends within the default timeout.
ANSWER_TOKENS = 2_000
# The largest prompt by default: with the answer it makes a window that fits beside the model in 8 GB.
INPUT_TOKENS = 12_000
# A new window size reloads the model; steps keep the number of sizes small.
WINDOW_STEP_TOKENS = 4_096
# Tokenizers count up to this much more than our estimate.
TOKENIZER_MARGIN = 1.3
# No tokenizer counts half of what another does: a smaller share read means that the prompt was cut.
LEAST_READ_SHARE = 0.5


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer of an Ollama model to `request`.

    Raises:
        BackendUnavailable: no model is chosen or pulled, or no server answers.
        BackendFailed: it was reached and failed, or its answer was cut off.
    """
    server, name = _reached(settings)

    def exchange(prompt: str, room: int, form: JsonObject) -> model_server.Reply:
        expected = count(prompt)
        reply = model_server.post(
            f"{server}/api/chat",
            _body(name, prompt, room, expected, settings.temperature or 0) | form,
            headers={},
            timeout_seconds=settings.timeout_seconds,
        )
        # Older servers do not know `truncate`; the number of tokens they report shows that they cut.
        tokens_read = reply.body.get("prompt_eval_count")
        if (
            reply.status == 200
            and isinstance(tokens_read, int)
            and 0 < tokens_read < expected * LEAST_READ_SHARE
        ):
            words = f"the server read {tokens_read} of about {expected} tokens"
            return model_server.Reply(413, {"error": words}, words)
        return reply

    model = dialog.Model(
        name=NAME, server=server, exchange=exchange, read=_read,
        forms=({"format": strict_schema(request.schema)}, {"format": "json"}, {}), fixes=_fixes(name),
        input_tokens=INPUT_TOKENS, answer_tokens=ANSWER_TOKENS, room=2 * ANSWER_TOKENS,
    )  # fmt: skip
    return dialog.converse(request, model, settings=settings, count=count)


def chat(
    messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: stream.OnText,
    tools: Sequence[JsonObject] = (),
) -> stream.ChatReply:  # fmt: skip
    """Return the reply of an Ollama model while it is written; the window is set in the request.

    Raises:
        ContextOverflow, BackendUnavailable, BackendFailed: as `stream.ChatBackend` says.
    """
    server, name = _reached(settings)
    prompt = [{"role": "system", "content": system}] if system else []
    options: JsonObject = {"num_predict": settings.max_output_tokens}
    if settings.window_tokens:
        options["num_ctx"] = settings.window_tokens
    body: JsonObject = {
        "model": name, "messages": [*prompt, *map(_message, messages)], "stream": True, "truncate": False,
        "options": options,
    }  # fmt: skip
    if tools:
        body["tools"] = list(tools)
    chat_server = stream.Server(NAME, server, "/api/chat", body, _hear, _fixes(name))
    return stream.exchanged(chat_server, settings=settings, on_text=on_text)


def served(settings: Settings) -> stream.Served:
    """Return the window of the model as the server runs or configures it, and the largest that it has; never an error."""
    try:
        server, name = _reached(settings)
        seconds = min(ASK_SECONDS, settings.timeout_seconds)
        running = stream.ask_json(f"{server}/api/ps", None, seconds=seconds).get("models") or []
        sizes = [one["context_length"] for one in running if name in (one.get("name"), one.get("model"))]
        about = stream.ask_json(f"{server}/api/show", {"model": name}, seconds=seconds)
        sizes = sizes or _NUM_CTX.findall(str(about.get("parameters", "")))
        trained = [
            size
            for key, size in as_object(about.get("model_info")).items()
            if key.endswith(".context_length")
        ]
        return stream.Served(max(map(int, sizes), default=0), max(map(int, trained), default=0))
    except (AetherError, ValueError, TypeError, KeyError, AttributeError):
        return stream.Served()


@lru_cache(maxsize=64)
def served_window(model: str) -> int:
    """Return the tokens of `model`'s window on the user's own server, as it runs or is configured; 0 if that is not known.

    The address is that of `OLLAMA_HOST`, never that of a home; the server is asked once per process.
    """
    return served(Settings(model=model)).window


def _reached(settings: Settings) -> tuple[str, str]:
    """Return the address of the server and the name of the model."""
    server = _server(model_server.setting_or_environment(settings.base_url, "OLLAMA_HOST"))
    name = model_server.setting_or_environment(settings.model, "AETHER_MODEL")
    if name:
        return server, name
    raise BackendUnavailable(
        "no model is chosen.",
        fix='Name one of "ollama list" in AETHER_MODEL, or use the extractive backend.',
        where=NAME,
    )


def _fixes(name: str) -> dict[int, str]:
    return {
        0: 'Start it with "ollama serve", check OLLAMA_HOST, or use the extractive backend.',
        404: f'Run "ollama pull {name}", or use the extractive backend.',
    }


def _message(raw: JsonObject) -> JsonObject:
    """Return a message of chat completions as Ollama takes it: arguments are objects, and there are no ids."""
    made: JsonObject = {"role": raw["role"], "content": content_text(raw.get("content"))}
    calls = [as_object(as_object(call).get("function")) for call in raw.get("tool_calls") or []]
    if calls:
        made["tool_calls"] = [
            {"function": {"name": call.get("name"), "arguments": as_arguments(call.get("arguments"))}}
            for call in calls
        ]
    if raw["role"] == "tool" and raw.get("name"):
        made["tool_name"] = raw["name"]
    return made


def _hear(event: JsonObject, heard: stream.Heard) -> str:
    said = event.get("message") or {}
    for call in said.get("tool_calls") or []:
        known = {"id": f"call_{len(heard.calls)}", "name": str(call["function"]["name"])}
        arguments = json.dumps(call["function"].get("arguments") or {})
        heard.calls.append({**known, "arguments": arguments})
    heard.model = str(event.get("model") or heard.model)
    if event.get("done"):
        heard.stop = "length" if event.get("done_reason") == "length" else "end"
        heard.input_tokens = event.get("prompt_eval_count") or 0
        heard.output_tokens = event.get("eval_count") or 0
    text = said.get("content") or ""
    return text if isinstance(text, str) else ""


def _server(host: str) -> str:
    """Return the address of a value of `OLLAMA_HOST`, which may lack scheme, name or port.

    >>> _server(""), _server("0.0.0.0"), _server("https://box/ollama")
    ('http://127.0.0.1:11434', 'http://127.0.0.1:11434', 'https://box:443/ollama')
    """
    scheme, _, location = host.rpartition("://")
    address = urlsplit(f"{scheme or 'http'}://{location}")
    netloc, port = address.netloc, ""
    if ":" in netloc and not netloc.endswith("]"):
        netloc, _, port = netloc.rpartition(":")
    # A server may listen on 0.0.0.0, but is not called there.
    netloc = "127.0.0.1" if netloc in {"", "0.0.0.0"} else netloc  # noqa: S104 - replaced, not bound
    port = port or {"http": "80", "https": "443"}.get(scheme, str(DEFAULT_PORT))
    return f"{address.scheme}://{netloc}:{port}{address.path.rstrip('/')}"


def _body(model: str, prompt: str, room: int, expected: int, temperature: float) -> JsonObject:
    needed = int(expected * TOKENIZER_MARGIN) + room
    return {
        "model": model, "messages": [{"role": "user", "content": prompt}], "stream": False, "truncate": False,
        "options": {
            "num_ctx": -(-needed // WINDOW_STEP_TOKENS) * WINDOW_STEP_TOKENS, "num_predict": room, "temperature": temperature,
        },
    }  # fmt: skip


def _read(body: JsonObject) -> dialog.Answer:
    reason = body.get("done_reason") or "stop"
    return dialog.Answer(
        outcome="cut" if reason == "length" else "whole", text=(body.get("message") or {}).get("content") or "",
        model=str(body.get("model", "")), input_tokens=body.get("prompt_eval_count") or 0,
        output_tokens=body.get("eval_count") or 0, detail=reason,
    )  # fmt: skip
