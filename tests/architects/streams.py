"""Loopback servers that stream replies, and one that speaks Ollama's API with a window that is a hard limit.

Run by hand, it serves a terminal chat:  python -m tests.architects.streams 2048
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from tests import loopback

MODEL = "llama-loopback:8b"


class Answer(NamedTuple):
    """Lines to send one by one; `cut` ends the connection without the end of the chunks."""

    lines: tuple[str, ...] = ()
    status: int = 200
    cut: bool = False
    then: object = None
    """An event to wait for behind the first lines."""
    first: int = 1
    """How many lines these are."""
    pause: float = 0.0
    """Seconds between two lines."""


def sse(*events, done=True):
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Answer((": comment\n\n", *lines, *(["data: [DONE]\n\n"] if done else [])))


def ndjson(*events):
    return Answer(tuple(json.dumps(event) + "\n" for event in events))


def failure(status, body):
    return Answer((json.dumps(body),), status)


def typed(*events):
    """Return server-sent events with names, as Anthropic sends them."""
    return Answer(tuple(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events))


@contextmanager
def answering(answer):
    """Serve `answer(path, body) -> Answer` on the loopback interface; yields the address and the requests."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.reply(None)

        def do_POST(self):
            self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def reply(self, body):
            requests.append((self.path, body))
            found = answer(self.path, body)
            self.send_response(found.status)
            kind = "text/event-stream" if "data:" in "".join(found.lines[:2]) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for nth, line in enumerate(found.lines):
                    if nth == found.first and found.then is not None:
                        found.then.wait(30)
                    self.chunk(line.encode())
                    time.sleep(found.pause)
                if not found.cut:
                    self.chunk(b"")
            except OSError:
                pass  # the reader left
            self.close_connection = True

        def chunk(self, data):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, *_args):
            pass

    with loopback.serving(Handler) as port:
        yield f"http://127.0.0.1:{port}", requests


def scripted(*answers):
    """Return what answers with each of `answers` in turn; the last one repeats."""
    left = list(answers)
    return lambda _path, _body: left.pop(0) if len(left) > 1 else left[0]


def ollama(window, *, pause=0.0, then=None, first=1):
    """Return an Ollama whose model has `window` tokens, a quarter of the characters each, and refuses more.

    Its replies pause between words, and behind the `first` of them for the event `then`.
    """

    def answer(path, body):
        if path == "/api/ps":
            return Answer((json.dumps({"models": []}),))
        if path == "/api/show":
            info = {"llama.context_length": window}
            return Answer((json.dumps({"parameters": f"num_ctx {window}", "model_info": info}),))
        given = [message["content"] for message in body["messages"]]
        tokens = sum(-(-len(text) // 4) for text in given)
        most = min(window, body["options"].get("num_ctx", window))
        if tokens > most:
            return failure(400, {"error": "the input length exceeds the context length"})
        words = f"Reply {len(given)}: you said {given[-1]}".split(" ")
        made = [{"model": body["model"], "message": {"role": "assistant", "content": f"{word} "}, "done": False} for word in words]  # fmt: skip
        end = {
            "model": body["model"], "message": {"role": "assistant", "content": ""}, "done": True,
            "done_reason": "stop", "prompt_eval_count": tokens, "eval_count": len(words),
        }  # fmt: skip
        return ndjson(*made, end)._replace(pause=pause, then=then, first=first)

    return answer


if __name__ == "__main__":
    size = int(sys.argv[1])
    with answering(ollama(size, pause=0.05)) as (url, seen):
        print(f"OLLAMA_HOST={url}", flush=True)
        while True:
            time.sleep(1)
            if seen:
                print(len(seen), seen[-1][0], flush=True)
