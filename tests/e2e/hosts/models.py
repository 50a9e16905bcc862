"""A model on this machine for agents of several makers: it runs one command, and then says one sentence.

It speaks the Responses API, Chat Completions and Gemini's `generateContent`, each as a stream and as one answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import serving

COMMAND, ANSWER = "echo made-it", "Decided: the cache is SQLite."
CALL = "call_1"
SHELLS = {
    "exec_command": "cmd",
    "shell_command": "command",
    "bash": "command",
    "run_shell_command": "command",
}


@contextmanager
def model() -> Iterator[tuple[str, list[str]]]:
    """Serve, and return the address and the list of the requests, as JSON text."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "mock"}]}))

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            requests.append(text)
            body = json.loads(text)
            events = _events(self.path, body, is_called=CALL in text or "functionResponse" in text)
            if "stream" in self.path or body.get("stream"):
                self.answer("text/event-stream", "".join(map(_sent, events)))
            else:
                self.answer("application/json", json.dumps(events[-1]))

        def answer(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}", requests


def _sent(event: dict[str, Any]) -> str:
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


def _events(path: str, body: dict[str, Any], *, is_called: bool) -> list[dict[str, Any]]:
    shell = next((name for name in SHELLS if f'"{name}"' in json.dumps(body.get("tools", []))), "")
    arguments = {SHELLS[shell]: COMMAND} if shell and not is_called else None
    if "/responses" in path:
        return _responses(shell, arguments)
    if "/chat/completions" in path:
        return _chat(shell, arguments, is_stream=bool(body.get("stream")))
    call = {"functionCall": {"name": shell, "args": arguments}}
    content = {"role": "model", "parts": [call if arguments else {"text": ANSWER}]}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    return [
        {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    ]


def _responses(shell: str, arguments: dict[str, str] | None) -> list[dict[str, Any]]:
    if arguments:
        item = {"type": "function_call", "id": "f1", "call_id": CALL, "name": shell, "arguments": json.dumps(arguments)}  # fmt: skip
    else:
        text = {"type": "output_text", "text": ANSWER, "annotations": []}
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [text]}
    item["status"] = "completed"
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    whole = {"id": "r1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def _chat(shell: str, arguments: dict[str, str] | None, *, is_stream: bool) -> list[dict[str, Any]]:
    reply: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    if arguments:
        function = {"name": shell, "arguments": json.dumps({**arguments, "description": "say it"})}
        reply = {"role": "assistant", "tool_calls": [{"index": 0, "id": CALL, "type": "function", "function": function}]}  # fmt: skip
    end = {"index": 0, "finish_reason": "tool_calls" if arguments else "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    head = {"id": "c1", "created": 1, "model": "mock"}
    if not is_stream:
        return [{**head, "object": "chat.completion", "choices": [{**end, "message": reply}], "usage": usage}]
    return [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": reply}]},
        {**head, "object": "chat.completion.chunk", "choices": [{**end, "delta": {}}], "usage": usage},
    ]
