"""A loopback Messages API: it says what a script says, and keeps every request.

A script is a function of the request. What the model was sent is what the tests assert on.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any, NamedTuple

from aether.architects.claude_cli import SYSTEM
from tests import loopback

SUMMARISER = "Your task is to create a detailed summary of"
# What the CLI says in the person's place when a tool that was held back is on offer.
TOOL_LOADED = "Tool loaded."
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


class Request(NamedTuple):
    """A request to /v1/messages."""

    number: int
    kind: str  # main, agent, summary, architect or side
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """Everything that the model was sent but the tools, as text."""
        return "\n".join([*_texts(self.body.get("system")), *_texts(self.body["messages"])])

    @property
    def prompt(self) -> str:
        """The last text that a person, or an agent's parent, wrote; without reminders."""
        return self._last_prompt()[1]

    @property
    def step(self) -> int:
        """How often the model has answered since that text."""
        after = self.body["messages"][self._last_prompt()[0] :]
        return sum(message["role"] == "assistant" for message in after)

    def _last_prompt(self) -> tuple[int, str]:
        messages = self.body["messages"]
        for index in range(len(messages) - 1, -1, -1):
            if messages[index]["role"] == "user":
                for text in reversed(own_texts(messages[index]["content"])):
                    left = REMINDER.sub("", text).strip()
                    if left and left != TOOL_LOADED:
                        return index, left
        return 0, ""

    @property
    def directory(self) -> str:
        """The directory that the session was started in."""
        return re.search(r"[Ww]orking directory: (\S+)", self.text)[1]

    @property
    def tools(self) -> set[str]:
        """The names of the tools on offer."""
        return {tool["name"] for tool in self.body.get("tools", [])}


class Reply(NamedTuple):
    """What the model says: texts and calls, or an error."""

    blocks: list[dict[str, Any]]
    context: int = 1_000
    error: int = 0


Script = Callable[[Request], Reply]


def say(text: str, *, context: int = 1_000) -> Reply:
    """Answer with a text."""
    return Reply([{"type": "text", "text": text}], context)


def plot(scenes: dict[str, list[Reply]], *, summary: Reply) -> Script:
    """Answer by what the prompt holds: one reply after the other, then a last word.

    A scene of sub-agents is one like any other: their prompt is what their parent wrote.
    """

    def script(request: Request) -> Reply:
        if request.kind == "summary":
            return summary
        for cue, replies in scenes.items():
            if cue in request.prompt and request.step < len(replies):
                return replies[request.step]
        return say("All done.")

    return script


_CALLS = count(1)


def call(name: str, **inputs: Any) -> dict[str, Any]:
    """One tool call."""
    return {"type": "tool_use", "id": f"toolu_{next(_CALLS):024d}", "name": name, "input": inputs}


def calls(*made: dict[str, Any], text: str = "", context: int = 1_000) -> Reply:
    """Answer with tool calls, at once."""
    return Reply([*([{"type": "text", "text": text}] if text else []), *made], context)


class Api(NamedTuple):
    """A running server."""

    port: int
    requests: list[Request]
    others: list[str]

    def of(self, kind: str) -> list[Request]:
        """The requests of one kind, in order."""
        return [request for request in self.requests if request.kind == kind]


@contextmanager
def serving(script: Script) -> Iterator[Api]:
    """Answer /v1/messages by the script, on a port of its own."""
    requests: list[Request] = []
    others: list[str] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            _send(self, 200, "text/plain", b"")

        def do_GET(self) -> None:
            others.append(f"GET {self.path}")
            _send(self, 404, "application/json", b"{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                _send(self, 200, "application/json", b'{"input_tokens": 1000}')
                return
            if path != "/v1/messages":
                others.append(f"POST {self.path}")
                _send(self, 404, "application/json", b"{}")
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                request = Request(len(requests), kind_of(body, headers), body, headers)
                requests.append(request)
            reply = say("Side answer") if request.kind == "side" else script(request)
            if reply.error:
                error = {"type": "error", "error": {"type": "api_error", "message": "The model is away"}}
                _send(self, reply.error, "application/json", json.dumps(error).encode())
            elif body.get("stream"):
                _send(self, 200, "text/event-stream", b"".join(_events(request, reply)))
            else:
                _send(self, 200, "application/json", json.dumps(_message(request, reply)).encode())

    with loopback.serving(Handler) as port:
        yield Api(port, requests, others)


@contextmanager
def trap() -> Iterator[tuple[int, list[str]]]:
    """Stand where a proxy would: refuse all, and keep what was asked for."""
    attempts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def refuse(self) -> None:
            attempts.append(f"{self.command} {self.path}")
            _send(self, 403, "text/plain", b"")

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self.refuse

    with loopback.serving(Handler) as port:
        yield port, attempts


def kind_of(body: dict[str, Any], headers: dict[str, str]) -> str:
    """Who asks: the main conversation, a sub-agent, the summariser, or something on the side."""
    system = "\n".join(_texts(body.get("system")))
    asked = [message for message in body["messages"] if message["role"] == "user"]
    if SUMMARISER in "\n".join(_texts(asked[-1:])):
        return "summary"
    if "x-claude-code-agent-id" in headers or "cc_is_subagent=true" in system:
        return "agent"
    if not body.get("tools") or "haiku" in body.get("model", ""):
        return "architect" if SYSTEM in str(body.get("system")) else "side"
    return "main"


def own_texts(content: Any) -> list[str]:
    """Give the texts of a message's content that are not in tool results."""
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        if value.get("type") == "tool_use":
            yield json.dumps(value["input"], ensure_ascii=False)
        else:
            yield from _texts(value.get("text"))
            yield from _texts(value.get("content"))


def _send(handler: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("request-id", "req_loopback")
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _message(request: Request, reply: Reply) -> dict[str, Any]:
    called = any(block["type"] == "tool_use" for block in reply.blocks)
    return {
        "id": f"msg_{request.number:024d}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", ""),
        "content": reply.blocks,
        "stop_reason": "tool_use" if called else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.context,
            "output_tokens": 20,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _events(request: Request, reply: Reply) -> Iterator[bytes]:
    message = _message(request, reply)
    opening = {**message, "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": opening})
    for index, block in enumerate(reply.blocks):
        calling = block["type"] == "tool_use"
        start = {**block, "input": {}} if calling else {**block, "text": ""}
        part = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if calling
            else {"type": "text_delta", "text": block["text"]}
        )
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        yield _event({"type": "content_block_delta", "index": index, "delta": part})
        yield _event({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ending, "usage": message["usage"]})
    yield _event({"type": "message_stop"})


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
