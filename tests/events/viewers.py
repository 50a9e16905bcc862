"""Loopback receivers that are as strict as the real ones: an Ariadne viewer, and an OTLP collector's door.

A receiver is started with steps, one per request; the last one repeats. A step is `TAKES`, a status to answer,
or one of the ways in which servers fail. What a real receiver would refuse, these refuse whatever the step says.
"""

import gzip
import json
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from tests import loopback

TAKES = 200
HANGS, DROPS, DRIPS, REFUSES_UNREAD, RAMBLES = "hangs", "drops", "drips", "refuses unread", "rambles"
# Longer than any test lets an exporter wait, so that who waits to the end sees the connection closed.
MISBEHAVES_SECONDS = 60
MAX_BODY = 256 * 1024
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TRACE = {"type", "trace_id", "name", "group_id", "started_at", "ended_at", "metadata"}
SPAN = {
    "type",
    "trace_id",
    "span_id",
    "parent_id",
    "kind",
    "name",
    "started_at",
    "ended_at",
    "data",
    "status",
}


class Viewer(NamedTuple):
    root: str
    url: str
    bodies: list
    """Every body that came, also what was refused."""
    statuses: list
    forms: list
    """What was taken: traces and spans, as the viewer keeps them."""
    arrived: threading.Event
    """Set as soon as something was taken."""

    @property
    def spans(self):
        return [form for form in self.forms if form["type"] == "span"]

    @property
    def traces(self):
        return [form for form in self.forms if form["type"] == "trace"]


class Refusal(Exception):
    """Status and words of a refusal."""


@contextmanager
def viewer(*steps):
    """Run an Ariadne viewer that follows `steps`."""
    with _serving(steps or (TAKES,), "/ingest", _ingest) as found:
        yield found


@contextmanager
def collector(*steps):
    """Run an OTLP collector that follows `steps`; its `forms` are spans as protobuf."""
    with _serving(steps or (TAKES,), "/v1/traces", _collect) as found:
        yield found


@contextmanager
def _serving(steps, path, take):
    script, release, arrived = list(steps), threading.Event(), threading.Event()
    bodies, statuses, forms = [], [], []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            step = script.pop(0) if len(script) > 1 else script[0]
            _answer(self, step if self.path == "/healthz" and step in range(600) else 404, b"{}")

        def do_POST(self):
            step = script.pop(0) if len(script) > 1 else script[0]
            if step == REFUSES_UNREAD or int(self.headers["Content-Length"]) > MAX_BODY:
                statuses.append(413)
                _answer(self, 413, b'{"error":"too large"}')
                while self.rfile.read1(1 << 16):
                    pass  # to close with something unread would take the answer back
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(body)
            if step in (HANGS, DROPS, DRIPS, RAMBLES):
                _misbehave(self, step, release)
                return
            status, reply, taken = step, b"{}", []
            if self.path != path:
                status = 404
            elif step == TAKES:
                try:
                    reply, taken = take(self.headers, body)
                except Refusal as refusal:
                    status, reply = (
                        400,
                        json.dumps({"error": "Validation failed", "details": str(refusal)}).encode(),
                    )
            statuses.append(status)
            forms.extend(taken)
            if taken:
                arrived.set()
            _answer(self, status, reply)

        def log_message(self, *_args):
            pass

    with loopback.serving(Handler, release=release) as port:
        root = f"http://127.0.0.1:{port}"
        yield Viewer(root, root + path, bodies, statuses, forms, arrived)


def _answer(handler, status, body):
    try:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    except OSError:
        pass  # the exporter has what it wants to know after the first line


def _misbehave(handler, step, release):
    if step == HANGS:
        release.wait(MISBEHAVES_SECONDS)
    elif step == RAMBLES:
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    elif step == DRIPS:
        until = time.monotonic() + MISBEHAVES_SECONDS
        while not release.wait(0.02) and time.monotonic() < until:
            try:
                handler.wfile.write(b"H")
                handler.wfile.flush()
            except OSError:
                break
    handler.close_connection = True


def _ingest(headers, body):
    if headers["Content-Type"] != "application/json":
        raise Refusal("not JSON")
    try:
        value = json.loads(body, parse_constant=Refusal)
    except ValueError as reason:
        raise Refusal("not JSON") from reason
    forms = value["batch"] if isinstance(value, dict) and "batch" in value else [value]
    if not isinstance(forms, list):
        raise Refusal("batch is no list")
    kept = [_kept(form) for form in forms]
    return json.dumps({"success": True, "count": len(kept)}).encode(), kept


def _kept(form):
    """Return what the viewer keeps of one form: known keys, cut strings."""
    if not isinstance(form, dict) or form.get("type") not in ("trace", "span"):
        raise Refusal("type is neither trace nor span")
    known = TRACE if form["type"] == "trace" else SPAN
    kept = {key: value for key, value in form.items() if key in known}
    required = {"trace_id"} | ({"span_id"} if form["type"] == "span" else set())
    for key, value in kept.items():
        _check(key, value)
    for key in required:
        if not kept.get(key):
            raise Refusal(f"{key} is missing")
    if "started_at" in kept and kept.get("ended_at", kept["started_at"]) < kept["started_at"]:
        raise Refusal("ended before it started")
    return kept


def _check(key, value):
    if key in ("started_at", "ended_at") and not (isinstance(value, str) and TIME.fullmatch(value)):
        raise Refusal(f"{key} is no time")
    if key == "status" and value not in ("ok", "error"):
        raise Refusal("status")
    if key == "metadata" and not (
        isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    ):
        raise Refusal("metadata is not of texts")
    if key == "data" and not isinstance(value, dict):
        raise Refusal("data is no object")
    if key == "data" and _has_null(value):
        raise Refusal("null")
    if key not in ("metadata", "data") and not isinstance(value, str):
        raise Refusal(f"{key} is no text")


def _has_null(value):
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or isinstance(value, Refusal) or any(map(_has_null, below))


def _collect(headers, body):
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    if headers["Content-Type"] != "application/x-protobuf":
        raise Refusal("not protobuf")
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as reason:
        raise Refusal("not an ExportTraceServiceRequest") from reason
    spans = []
    for resource in request.resource_spans:
        if not any(pair.key == "service.name" for pair in resource.resource.attributes):
            raise Refusal("no service.name")
        for scope in resource.scope_spans:
            spans += scope.spans
    for span in spans:
        if len(span.trace_id) != 16 or len(span.span_id) != 8 or not any(span.trace_id) or not span.name:
            raise Refusal("a span without ids or name")
        if span.end_time_unix_nano < span.start_time_unix_nano:
            raise Refusal("ended before it started")
    return ExportTraceServiceResponse().SerializeToString(), spans


def eventually(condition, seconds=60.0):
    """Return whether `condition()` comes to hold."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(condition())
