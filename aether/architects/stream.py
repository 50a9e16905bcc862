"""Replies as they are written: what a chat over every backend shares, and the built-in backend `echo`.

A chat backend is a module with `NAME`, `chat` and `served`. Messages come in the format of OpenAI's chat completions, with
calls of tools. A connection that fails is tried again until the first text arrives: nobody reads half an answer twice.
A prompt that the server refuses as too long is `ContextOverflow`, and is never tried again unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from aether import http
from aether.architects import model_server
from aether.architects.base import Settings
from aether.errors import BackendFailed
from aether.messages.model import as_object, content_text
from aether.tokens.estimate import estimate
from aether.types import JsonObject

NAME = "echo"
# The window of `echo`, if none is chosen: small, so that a try shows what happens when it is full.
ECHO_WINDOW = 8_192
# A model that calls more tools in one reply is broken.
MOST_CALLS = 128
_WORD = re.compile(r"\s*\S+|\s+\Z")
_RECALL = re.compile(r"\s*recall\s+(\S.*)", re.IGNORECASE | re.DOTALL)

OnText = Callable[[str], None]
Stop = Literal["end", "length", "tools", "refused"]


class ToolCall(NamedTuple):
    """One call of a tool by a model."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""


class ChatReply(NamedTuple):
    """A whole reply, and what it cost."""

    text: str
    backend: str
    model: str = ""
    input_tokens: int = 0
    """As the server counted them; 0 if it did not say."""
    output_tokens: int = 0
    stop: Stop = "end"
    calls: tuple[ToolCall, ...] = ()


class Served(NamedTuple):
    """The window of a model as its server says; 0 for what it does not."""

    window: int = 0
    """The tokens that it is served with now."""
    most: int = 0
    """The tokens that the model can be served with."""


class ChatBackend(Protocol):
    """What the module of every chat backend offers."""

    NAME: str

    def chat(
        self, messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: OnText, tools: Sequence[JsonObject] = (),
    ) -> ChatReply:  # fmt: skip
        """Return the reply to `messages`; each piece of its text is given to `on_text` when it arrives.

        Raises:
            ContextOverflow: the server refused the prompt as too long.
            BackendUnavailable: a package, key, program, model or server is missing.
            BackendFailed: it was reached and failed, or the connection broke in the middle of the reply.
        """
        ...

    def served(self, settings: Settings) -> Served:
        """Return the window of the model, asked of its server; never an error."""
        ...


@dataclass
class Heard:
    """A reply as far as it has arrived."""

    text: list[str] = field(default_factory=list)
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    stop: Stop | Literal[""] = ""
    """Empty until the server says that the reply is whole."""
    calls: list[dict[str, str]] = field(default_factory=list)
    error: JsonObject = field(default_factory=dict)
    """What the server said instead of the rest."""


class Server(NamedTuple):
    """One exchange: where it goes, and how an event of the answer is read."""

    name: str
    address: str
    path: str
    body: JsonObject
    read: Callable[[JsonObject, Heard], str]
    """Notes what an event says, and returns the text in it."""
    fixes: Mapping[int, str]
    headers: Mapping[str, str] = {}


def exchanged(server: Server, *, settings: Settings, on_text: OnText) -> ChatReply:
    """Return the reply of `server`, whose events are lines of JSON or server-sent events.

    Raises:
        ContextOverflow, BackendUnavailable, BackendFailed: as `ChatBackend.chat` says.
    """
    heard = Heard()

    def on_line(line: bytes) -> None:
        data = line.strip().removeprefix(b"data:").strip()
        if not data.startswith(b"{"):
            return  # a blank, a comment, the name of an event, or [DONE]
        try:
            event = json.loads(data)
            text = server.read(event, heard)
        except (ValueError, AttributeError, TypeError, LookupError, RecursionError) as reason:
            raise BackendFailed(
                f"the server at {server.address} did not answer in the form of {server.name} ({reason}).",
                fix="Check the base URL.", where=server.name,
            ) from reason  # fmt: skip
        if event.get("error"):
            heard.error = event
        if text:
            heard.text.append(text)
            on_text(text)

    def attempt() -> model_server.Reply:
        heard.calls.clear()  # of a try that failed before its first text
        to = http.address(f"{server.address}{server.path}", where="base url")
        received = http.stream(
            to, timeout_seconds=settings.timeout_seconds, body=json.dumps(server.body).encode(), on_line=on_line,
            headers={"Content-Type": "application/json", **server.headers},
        )  # fmt: skip
        reply = _as_reply(received, heard)
        if heard.text:
            check(reply)  # not another try: what arrived is on the screen
        return reply

    def check(reply: model_server.Reply) -> None:
        if reply.status != 200:
            model_server.raise_failure(
                reply, where=server.name, server=server.address, settings=settings, fixes=server.fixes
            )

    check(model_server.with_retries(attempt, settings))
    calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in heard.calls)
    return ChatReply(
        "".join(heard.text), server.name, heard.model, heard.input_tokens, heard.output_tokens,
        "tools" if calls else heard.stop or "end", calls,
    )  # fmt: skip


def _as_reply(received: http.Reply, heard: Heard) -> model_server.Reply:
    if received.failure or received.status != 200:
        return model_server.as_reply(received)
    if heard.error:
        # A server that had answered 200 says the status of its failure in the event, if at all.
        code = as_object(heard.error["error"]).get("code") or heard.error.get("status_code")
        words = json.dumps(heard.error)
        status = (
            code
            if isinstance(code, int) and code >= 400
            else 400
            if model_server.says_too_long(words)
            else 500
        )
        heard.error = {}
        return model_server.Reply(status, json.loads(words), words)
    if not heard.stop:
        return model_server.Reply(0, {}, "it ended in the middle", failure="dropped")
    return model_server.Reply(200, {})


def ask_json(url: str, body: JsonObject | None, *, seconds: float, headers: Mapping[str, str] | None = None) -> JsonObject:  # fmt: skip
    """Return the JSON object that a server answers within `seconds`; empty for any failure."""
    data = None if body is None else json.dumps(body).encode()
    reply = http.request(
        http.address(url, where="base url"), timeout_seconds=seconds, body=data,
        headers={"Content-Type": "application/json", **(headers or {})},
    )  # fmt: skip
    return model_server.as_reply(reply).body if reply.status == 200 else {}


def chat(
    messages: Sequence[JsonObject], *, system: str, settings: Settings, on_text: OnText, tools: Sequence[JsonObject] = ()
) -> ChatReply:  # fmt: skip
    """Return the last message of the user, said back, with its number: a chat without a model, the same every time.

    `recall WORDS` calls the tool `recall`, if it is offered, and the result is said back. Its window is a hard limit.

    Raises:
        ContextOverflow: the prompt is larger than the window.
    """
    requests = [content_text(message.get("content")) for message in messages if message["role"] == "user"]
    size = estimate(system) + sum(estimate(content_text(message.get("content"))) for message in messages)
    size += estimate(json.dumps([*tools])) if tools else 0
    window = settings.window_tokens or ECHO_WINDOW
    if size > window:
        raise model_server.overflow(f"{size} tokens of {window}", where=NAME)
    request = requests[-1] if requests else ""
    last: Mapping[str, Any] = messages[-1] if messages else {}
    query = _RECALL.fullmatch(request)
    if query and tools and last.get("role") == "user":
        call = ToolCall(f"call_{len(messages)}", "recall", json.dumps({"query": query[1].strip()}))
        return ChatReply("", NAME, NAME, size, estimate(call.arguments), "tools", (call,))
    echoed = content_text(last.get("content")) if last.get("role") == "tool" else request
    text = f"{'Found' if last.get('role') == 'tool' else 'You said'}: {echoed}"
    for piece in _WORD.findall(text):
        on_text(piece)
    return ChatReply(text, NAME, NAME, size, estimate(text))


def served(settings: Settings) -> Served:
    """Return the window of `echo`: the chosen one, else a small one."""
    window = settings.window_tokens or ECHO_WINDOW
    return Served(window, window)
