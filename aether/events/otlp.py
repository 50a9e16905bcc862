"""The OTLP exporter: events as spans for any OpenTelemetry collector, over HTTP with protobuf.

There is no standard for compaction: the attributes are `gen_ai.conversation.id` and `gen_ai.request.model`, the names of
the GenAI conventions, and `aether.compaction.*`, `aether.window.*` and `aether.memory.*` for the rest. The spans are
made here, whole: the provider and the context of the process are neither used nor changed.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aether import clock
from aether.errors import AetherError, packages_of
from aether.events.delivery import TIMEOUT_SECONDS, BackgroundExporter, SendResult
from aether.events.events import Event, json_value, parent_id, span_id, trace_id, truncate
from aether.http import address
from aether.redact.redact import redact

WHERE = "exporter 'otlp'"
# The collector's usual port (OTLP/HTTP).
URL = "http://localhost:4318/v1/traces"
# As many as OpenTelemetry's own processor sends at once; collectors limit the size of a request.
BATCH_SPANS = 512
# Characters of the library's words for a failure: enough for an address and an error, not for a page of HTML.
REASON_CHARS = 300
_AREAS = {"compact": "compaction"}
# Properties that have a name in the GenAI conventions, or are elsewhere in the span.
_NAMED = {"model": "gen_ai.request.model"}
_ELSEWHERE = frozenset({"session_id", "preflight"})
_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def otlp(url: str = "", *, timeout_seconds: float = TIMEOUT_SECONDS) -> BackgroundExporter:
    """Return the exporter to the collector at `url`, the full address of its traces.

    If `url` is empty, OpenTelemetry's own environment variables decide, else the usual port of this machine is used;
    those variables always set headers, certificates and compression.

    Raises:
        BackendUnavailable: opentelemetry is not installed.
        InvalidInput: `url` is not an http or https address.
    """
    with packages_of("otel", where=WHERE):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import SpanExportResult
    endpoint = (
        str(address(url, where=WHERE)) if url else None if any(map(os.environ.get, _VARIABLES)) else URL
    )
    # A library does not print; without a handler of the host's, logging would write every failure to stderr.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=timeout_seconds)
    to = endpoint or "the collector"
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or "aether"})

    def send(events: Sequence[Event], deadline: float) -> SendResult:
        spans, lost = [], 0
        for event in events:
            try:
                spans.append(_span(event, resource))
            except AetherError:
                lost += 1
        trouble = "an event has no time" if lost else ""
        for start in range(0, len(spans), BATCH_SPANS):
            batch = spans[start : start + BATCH_SPANS]
            if time.monotonic() > deadline:
                lost, trouble = lost + len(batch), trouble or f"{to} took too long"
                continue
            with _captured_logs() as words:
                failed = exporter.export(batch) is not SpanExportResult.SUCCESS
            if failed:
                lost, trouble = lost + len(batch), f"{to} did not accept them{_reason(words)}"
        return SendResult(lost, trouble)

    return BackgroundExporter("OTLP", send, timeout_seconds=timeout_seconds)


@contextmanager
def _captured_logs() -> Iterator[list[str]]:
    """Yield the messages that the library logs in this thread meanwhile: only they explain a failed export."""
    words: list[str] = []
    thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                words.append(record.getMessage())

    listener, logger = Listener(logging.WARNING), logging.getLogger("opentelemetry")
    logger.addHandler(listener)
    try:
        yield words
    finally:
        logger.removeHandler(listener)


def _reason(words: list[str]) -> str:
    """Return the first of `words` in brackets: the later ones are about giving up."""
    reason = " ".join(words[0].split()).rstrip(".") if words else ""
    return f" ({truncate(redact(reason), REASON_CHARS)})" if reason else ""


def _span(event: Event, resource: Any) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    def context(span: str) -> SpanContext:
        sampled = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(
            int(trace_id(event.session_id), 16), int(span, 16), is_remote=False, trace_flags=sampled
        )

    instant = clock.parse(event.at)
    nanoseconds = (
        int(instant.timestamp()) * 1_000_000_000 + instant.microsecond * 1000
    )  # exact, unlike a float
    parent = parent_id(event)
    failed = Status(StatusCode.ERROR, str(event.properties.get("message", "")))
    return ReadableSpan(
        name=event.name, context=context(span_id(event)), parent=context(parent) if parent else None,
        resource=resource, attributes=attributes(event), start_time=nanoseconds, end_time=nanoseconds,
        status=failed if event.status == "error" else Status(StatusCode.UNSET),
    )  # fmt: skip


def attributes(event: Event) -> dict[str, Any]:
    """Return the properties of `event` as attributes of a span; keys of objects are joined by dots.

    >>> attributes(Event("compact.archival", "2026-03-01T10:15:00.000000Z", "s1", {"step": 1, "model": "m"}))
    {'gen_ai.conversation.id': 's1', 'aether.compaction.step': 1, 'gen_ai.request.model': 'm'}
    """
    area = event.name.partition(".")[0]
    prefix = f"aether.{_AREAS.get(area, area)}"
    properties = {key: value for key, value in event.properties.items() if key not in _ELSEWHERE}
    if event.payload:
        properties["payload"] = event.payload
    flat = _flat(json_value(properties), prefix)
    return {"gen_ai.conversation.id": event.session_id} | {
        _NAMED.get(name.removeprefix(f"{prefix}."), name): value for name, value in flat
    }


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat(below, f"{name}.{key}")
    elif isinstance(value, list):
        yield name, [str(item) for item in value]  # an attribute's list has one type
    else:
        yield name, value
