"""Loopback servers that speak the protocols of the model backends, as strictly as the real ones do.

A fake is started with steps, one per request; the last one repeats. Each request is first held
against the protocol: what the real server would refuse, the fake refuses, whatever its script says.
"""

import json
import os
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from typing import NamedTuple

from tests import loopback

KEY = "sk-loopback-key"
USAGE = (120, 30)


class Step(NamedTuple):
    """What the server does with one request: `kind` and its details."""

    kind: str
    text: str = ""
    status: int = 200
    headers: dict = MappingProxyType({})
    message: str = ""


def says(text):
    return Step("says", text)


def refuses():
    return Step("refuses")


def cuts(text='{"summary": "half a sess'):
    return Step("cuts", text)


def fails(status, message="no", **headers):
    return Step("fails", status=status, message=message, headers=headers)


def raw(text, status=200):
    return Step("raw", text, status)


HANGS = Step("hangs")
DROPS = Step("drops")


class Protocol(NamedTuple):
    """One API: where it is, what it refuses, how it answers."""

    name: str
    path: str
    base: str
    flaw: object
    answer: object
    error: object
    too_long: str
    forms: tuple


class Fake(NamedTuple):
    protocol: Protocol
    root: str
    url: str
    requests: list


@contextmanager
def serving(protocol, *steps):
    """Run a server that follows `steps` and yield its address and the requests that it took."""
    requests, script, release = [], list(steps), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            step = script.pop(0) if len(script) > 1 else script[0]
            status, flaw = _flaw(protocol, self, body)
            if flaw:
                step = fails(status, flaw)
            _perform(protocol, self, body, step, release)

        def log_message(self, *_args):
            pass

    with loopback.serving(Handler, release=release) as port:
        root = f"http://127.0.0.1:{port}"
        yield Fake(protocol, root, root + protocol.base, requests)


def _flaw(protocol, handler, body):
    if handler.path != protocol.path:
        return 404, f"no such path {handler.path}"
    if handler.headers.get("Content-Type") != "application/json":
        return 400, "Content-Type must be application/json"
    return protocol.flaw(handler.headers, body)


def _perform(protocol, handler, body, step, release):
    if step.kind == "hangs":
        release.wait(30)
        handler.close_connection = True
        return
    if step.kind == "raw":
        _send(handler, step.status, step.text.encode(), {"Content-Type": "text/html"})
        return
    if step.kind == "fails":
        _send(handler, step.status, _json(protocol.error(step.status, step.message)), step.headers)
        return
    data = _json(protocol.answer(body, step))
    if step.kind == "drops":
        _send(handler, 200, data[: len(data) // 2], {}, length=len(data))
        handler.close_connection = True
        return
    _send(handler, 200, data, {})


def _json(value):
    return json.dumps(value).encode()


def _send(handler, status, data, headers, length=None):
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def _open_objects(schema):
    """Yield the objects of a schema that structured output would refuse."""
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", [])) != set(schema["properties"]):
            yield schema
        for inner in schema["properties"].values():
            yield from _open_objects(inner)
    if "items" in schema:
        yield from _open_objects(schema["items"])


def _bounds(schema):
    return {"minLength", "maxLength", "minimum", "maximum", "minItems", "title", "$schema"} & set(
        json.dumps(schema).replace('"', " ").split()
    )


def _schema_flaw(schema):
    if list(_open_objects(schema)):
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    if _bounds(schema):
        return f"schema has unsupported keywords {sorted(_bounds(schema))}"
    return ""


def _messages_flaw(body, roles):
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model: Field required"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return "messages: Field required"
    for message in body["messages"]:
        if set(message) != {"role", "content"} or message["role"] not in roles:
            return f"messages: unexpected {sorted(message)}"
        if not isinstance(message["content"], str) or not message["content"]:
            return "messages: content must be a string"
    return ""


def _anthropic_flaw(headers, body):
    if headers.get("Authorization") != f"Bearer {KEY}":
        return 401, "invalid bearer token"
    if headers.get("anthropic-version") != "2026-10-21":
        return 400, "anthropic-version: header is required"
    extra = set(body) - {"model", "max_tokens", "messages", "output_config", "system"}
    if extra:
        return 400, f"{min(extra)}: Extra inputs are not permitted"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return 400, "max_tokens: Field required"
    form = body.get("output_config", {}).get("format")
    if form is not None and form.get("type") != "json_schema":
        return 400, "output_config.format.type: Input should be 'json_schema'"
    return 400, _messages_flaw(body, {"user", "assistant"}) or (_schema_flaw(form["schema"]) if form else "")


def _anthropic_answer(body, step):
    reason = {"refuses": "refusal", "cuts": "max_tokens"}.get(step.kind, "end_turn")
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [
            {"type": "thinking", "thinking": '{"summary": "only a thought"}', "signature": "s"},
            {"type": "text", "text": step.text},
        ],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": USAGE[0], "output_tokens": USAGE[1], "cache_read_input_tokens": None},
    }


def _anthropic_error(_status, message):
    kind = "invalid_request_error"
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _openai_flaw(headers, body):
    if headers.get("Authorization") != f"Bearer {KEY}":
        return 401, "Incorrect API key provided."
    extra = set(body) - {"model", "messages", "max_tokens", "response_format"}
    if extra:
        return 400, f"Unrecognized request argument supplied: {min(extra)}"
    form = body.get("response_format", {"type": "text"})
    if form["type"] not in {"text", "json_object", "json_schema"}:
        return 400, "Invalid value for response_format.type"
    if form["type"] == "json_schema" and set(form["json_schema"]) != {"name", "strict", "schema"}:
        return 400, "Missing required parameter: response_format.json_schema.name"
    if form["type"] == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        return 400, "'messages' must contain the word 'json' in some form"
    flaw = _messages_flaw(body, {"system", "developer", "user", "assistant"})
    if not flaw and form["type"] == "json_schema":
        flaw = _schema_flaw(form["json_schema"]["schema"])
    return 400, flaw


def _openai_answer(body, step):
    refusal = "I cannot help with that." if step.kind == "refuses" else None
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None if refusal else step.text,
                    "refusal": refusal,
                },
                "finish_reason": "length" if step.kind == "cuts" else "stop",
            }
        ],
        "usage": {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)},
    }


def _openai_error(status, message):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": status}}


def _ollama_flaw(_headers, body):
    extra = set(body) - {"model", "messages", "stream", "format", "options", "truncate"}
    if extra:
        return 400, f"unknown field {min(extra)}"
    if body.get("stream") is not False:
        return 400, "this fake does not stream"
    if body.get("truncate") is not False or not isinstance(body["options"].get("num_ctx"), int):
        return 400, "the prompt would be cut silently"
    if not (body.get("format", "json") == "json" or isinstance(body["format"], dict)):
        return 400, "invalid format"
    return 400, _messages_flaw(body, {"system", "user", "assistant"})


def _ollama_answer(body, step):
    return {
        "model": body["model"],
        "created_at": "2026-03-01T10:15:00Z",
        "message": {"role": "assistant", "content": "" if step.kind == "refuses" else step.text},
        "done": True,
        "done_reason": "length" if step.kind == "cuts" else "stop",
        "prompt_eval_count": len(body["messages"][0]["content"]) // 4,
        "eval_count": USAGE[1],
    }


ANTHROPIC = Protocol(
    name="anthropic",
    path="/v1/messages",
    base="",
    flaw=_anthropic_flaw,
    answer=_anthropic_answer,
    error=_anthropic_error,
    too_long="prompt is too long: 210000 tokens > 200000 maximum",
    forms=("output_config",),
)
OPENAI = Protocol(
    name="openai",
    path="/v1/chat/completions",
    base="/v1",
    flaw=_openai_flaw,
    answer=_openai_answer,
    error=_openai_error,
    too_long="This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    forms=("response_format", "response_format"),
)
OLLAMA = Protocol(
    name="ollama",
    path="/api/chat",
    base="",
    flaw=_ollama_flaw,
    answer=_ollama_answer,
    error=lambda _status, message: {"error": message},
    too_long="the input length exceeds the context length",
    forms=("format", "format"),
)
PROTOCOLS = {protocol.name: protocol for protocol in (ANTHROPIC, OPENAI, OLLAMA)}


def quarter(text):
    """Count tokens as a quarter of the characters, rounded up."""
    return -(-len(text) // 4)


def item(nth, content, *, kind="observation", relevance=0.5):
    return {
        "id": f"wm_{nth}",
        "type": kind,
        "content": content,
        "token_count": quarter(content),
        "metadata": {"timestamp": "t", "relevance_score": relevance},
        "associative_links": [],
    }


def handoff(*items, target=None, protected=(), signals=()):
    """Return a hand-off of `items`, with a target of the usual rate."""
    total = sum(entry["token_count"] for entry in items)
    return {
        "schema_version": 1,
        "compression_id": "comp_7",
        "phase": 3,
        "prepared_at": "2026-03-01T10:15:00.000000Z",
        "items": list(items),
        "item_count": len(items),
        "total_tokens": total,
        "target_tokens": target or max(1, total * 10 // 25),
        "counter": "quarter",
        "protected": list(protected),
        "signals": list(signals),
        "prompt": {},
        "checksum": "x",
    }


def session(summary="The import streams now.", **lists):
    """Return the text of a session answer."""
    answer = {
        "id": "comp_7",
        "session_id": "comp_7",
        "compressed_at": "2026-03-01T10:15:00.000000Z",
        "phase": 3,
        "summary": summary,
        "key_decisions": [],
        "outcomes": [],
        "high_value_items": [],
    }
    return json.dumps(answer | lists)


def without_credentials(monkeypatch, folder):
    """Leave nothing in the environment that could reach or authorise a real server."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "OLLAMA_", "AETHER_")) or name.lower().endswith(
            "_proxy"
        ):
            monkeypatch.delenv(name)
    # The anthropic package also looks for a profile below the user's own folder.
    for name in ("HOME", "USERPROFILE", "APPDATA"):
        monkeypatch.setenv(name, str(folder))


def python(code):
    """Return the command that runs `code` with this Python."""
    import shlex

    return shlex.join([sys.executable, "-c", code])


def said(at, text, role="user", tool=""):
    return {"at": at, "role": role, "tool": tool, "text": text}


def summary_task(*messages, strategy="task_state", previous="", max_tokens=200, **facts):
    """Return what a summariser is asked, as JSON, with these messages or a short conversation."""
    fields = "goals requests constraints decisions open_calls files errors names lookups".split()
    return {
        "strategy": strategy,
        "version": 1,
        "said": list(messages)
        or [said(0, "Fix the login."), said(1, "The login is fixed in src/auth.py now.", "assistant")],
        "previous": previous,
        "facts": {field: [] for field in fields} | facts,
        "max_tokens": max_tokens,
    }
