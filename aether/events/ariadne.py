"""The Ariadne exporter: events as spans of one trace per conversation, posted to the viewer's `/ingest`.

Everything of aether is under `data`, for the viewer removes unknown keys. A post is `{"batch": [trace and span forms]}`,
with times in Z, without nulls, and never larger than the viewer accepts. A larger batch goes in several posts; a single
event that is too large has its strings cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aether import clock
from aether.errors import AetherError
from aether.events.delivery import TIMEOUT_SECONDS, BackgroundExporter, SendResult, warn
from aether.events.events import (
    STRING_CHARS,
    Event,
    json_line,
    parent_id,
    record,
    span_id,
    trace_id,
    truncate,
)
from aether.http import Address, Reply, address, request
from aether.store.keys import ARIADNE_URL
from aether.types import JsonObject

# The viewer answers 413 to a longer body.
BODY_BYTES = 256 * 1024
# It cuts longer names.
NAME_CHARS = 1024
# The length to which strings of an event that is too large are cut at most.
SHORTEST_CHARS = 64
# Conversations whose trace is known to have arrived; sending a trace again does no harm.
REMEMBERED_TRACES = 1000
_AROUND = (b'{"batch":[', b"]}")
_OK = range(200, 300)


def ariadne(url: str = "", *, timeout_seconds: float = TIMEOUT_SECONDS) -> BackgroundExporter:
    """Return the exporter to the viewer at `url`, whose path may be left out.

    Raises:
        InvalidInput: `url` is not an http or https address.
    """
    to = _ingest(url)
    arrived: set[str] = set()

    def send(events: Sequence[Event], deadline: float) -> SendResult:
        forms, spoilt = _forms(events, arrived)
        lost, trouble = 0, ""
        for body, spans in posts(forms):
            # One post gets half of the time; after a timeout it is sent once more in the other half.
            reply = _status(to, body, (deadline - time.monotonic()) / 2)
            if reply.failure == "timeout":
                reply = _status(to, body, deadline - time.monotonic())
            if reply.failure:
                lost, trouble = lost + spans, trouble or f"{to} does not answer ({reply.reason})"
            elif reply.status not in _OK:
                lost, trouble = lost + spans, trouble or f"{to} answered {reply.status}"
        if len(arrived) > REMEMBERED_TRACES:
            arrived.clear()
        if not lost:
            arrived.update(event.session_id for event in events)
        return SendResult(lost + spoilt, trouble or "an event has no time or is too large")

    return BackgroundExporter("Ariadne", send, timeout_seconds=timeout_seconds)


def healthy(url: str = "", *, timeout_seconds: float = TIMEOUT_SECONDS) -> bool:
    """Return whether the viewer at `url` answers `/healthz` with 200; if not, print why on stderr.

    Raises:
        InvalidInput: `url` is not an http or https address.
    """
    to = _ingest(url)
    place = to._replace(path=to.path.partition("?")[0].removesuffix("/ingest") + "/healthz")
    reply = _status(place, None, timeout_seconds)
    if reply.failure:
        warn("Ariadne", f"{place} does not answer ({reply.reason}).")
    elif reply.status != 200:
        warn("Ariadne", f"{place} answered {reply.status}.")
    return reply.status == 200


def _ingest(url: str) -> Address:
    to = address(url or ARIADNE_URL, where="exporter 'ariadne'")
    return to._replace(path="/ingest") if to.path in {"", "/"} else to


def span(event: Event, *, string_chars: int = STRING_CHARS) -> JsonObject:
    """Return `event` as the viewer's span, which ends when it starts.

    Raises:
        InvalidInput: its time is invalid.
    """
    time = clock.stamp(clock.parse(event.at))
    parent = {"parent_id": parent} if (parent := parent_id(event)) else {}
    return {
        "type": "span", "trace_id": trace_id(event.session_id), "span_id": span_id(event), **parent,
        "kind": event.name.partition(".")[0], "name": truncate(event.name, NAME_CHARS),
        "started_at": time, "ended_at": time, "status": event.status,
        "data": record(event, string_chars=string_chars),
    }  # fmt: skip


def trace(event: Event) -> JsonObject:
    """Return the trace of the conversation of `event`, started at its time."""
    return {
        "type": "trace", "trace_id": trace_id(event.session_id),
        "name": truncate(event.session_id, NAME_CHARS) or "conversation",
        "started_at": clock.stamp(clock.parse(event.at)), "metadata": {"source": "aether"},
    }  # fmt: skip


def _forms(events: Sequence[Event], arrived: set[str]) -> tuple[list[bytes], int]:
    """Return the forms of `events`, each trace before its first span, and the number of unsendable events."""
    forms, traced, spoilt = [], set(arrived), 0
    for event in events:
        try:
            form = _fitting(event)
            new = [] if event.session_id in traced else [json_line(trace(event))]
        except (AetherError, ValueError, RecursionError):
            spoilt += 1
            continue
        traced.add(event.session_id)
        forms += [*new, form]
    return forms, spoilt


def _fitting(event: Event) -> bytes:
    """Return the span of `event`, its strings cut until it fits into one post."""
    most = BODY_BYTES - sum(map(len, _AROUND))
    chars = STRING_CHARS
    form = json_line(span(event))
    if len(form) > most and len(json_line(span(event, string_chars=SHORTEST_CHARS))) > most:
        raise ValueError("it is too large")
    while len(form) > most:
        chars = max(SHORTEST_CHARS, chars // 2)
        form = json_line(span(event, string_chars=chars))
    return form


def posts(forms: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield bodies that the viewer accepts, with the number of spans in each.

    >>> list(posts([b'{"type":"trace"}', b'{"type":"span"}']))
    [(b'{"batch":[{"type":"trace"},{"type":"span"}]}', 1)]
    """
    start, end = _AROUND
    batch: list[bytes] = []
    size = len(start) + len(end)
    for form in chain(forms, (None,)):
        if batch and (form is None or size + len(form) + 1 > BODY_BYTES):
            yield (
                start + b",".join(batch) + end,
                sum(not item.startswith(b'{"type":"trace"') for item in batch),
            )
            batch, size = [], len(start) + len(end)
        if form is not None:
            batch.append(form)
            size += len(form) + 1
    return


def _status(to: Address, body: bytes | None, timeout_seconds: float) -> Reply:
    """Return the reply without its content; the viewer is near, so no proxy is used."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    return request(
        to, timeout_seconds=timeout_seconds, body=body, headers=headers, proxies=False, most_bytes=0
    )
