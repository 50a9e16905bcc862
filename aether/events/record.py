"""Records: an event as one JSON object, the form in which every exporter sends or writes it.

A record holds nothing but JSON: no null, no number that JSON cannot write, no key that is not text; a long
string is cut. Ids of traces and spans follow from the event alone, so the same event is the same span in
every tracer and however often it is sent.
"""

from __future__ import annotations

import json
import math
from hashlib import sha256
from typing import Any

from aether.events.event import Event
from aether.events.names import TOKEN_ESTIMATE
from aether.shapes import JsonObject

# The viewer cuts longer strings itself (facts of its /ingest contract), and a post that holds one is needlessly large.
STRING_CHARS = 102_400
CUT = "... [truncated]"
# Deeper than any event; what lies below is told as text rather than by an endless descent.
DEEPEST = 32


def record(event: Event, *, string_chars: int = STRING_CHARS) -> JsonObject:
    """Return `event` as JSON: `ts`, `session_id`, `event`, `status`, its properties, and `payload` if it has one.

    >>> record(Event("window.budget", "2026-03-01T10:15:00.000000Z", "s1", {"max": 8, "note": None}))
    {'ts': '2026-03-01T10:15:00.000000Z', 'session_id': 's1', 'event': 'window.budget', 'status': 'ok', 'max': 8}
    """
    whole = {
        "ts": event.at, "session_id": event.session_id, "event": event.name, "status": event.status,
        **{name: value for name, value in event.properties.items() if name not in {"ts", "event", "status"}},
        "payload": event.payload or None,
    }  # fmt: skip
    made: JsonObject = plain(whole, string_chars=string_chars)
    return made


def line(value: JsonObject) -> bytes:
    """Return `value` as one line of UTF-8 JSON without its line break; half a surrogate pair becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def plain(value: Any, *, string_chars: int = STRING_CHARS, depth: int = DEEPEST) -> Any:
    """Return a copy of `value` that is JSON without nulls, its strings cut at `string_chars`.

    >>> plain({"a": [None, float("inf"), 1], 2: None, 3: (1.5, True)})
    {'a': ['inf', 1], '3': [1.5, True]}
    """
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict) and depth:
        below = {cut(str(key), string_chars): one for key, one in value.items() if one is not None}
        return {key: plain(one, string_chars=string_chars, depth=depth - 1) for key, one in below.items()}
    if isinstance(value, list | tuple) and depth:
        return [plain(one, string_chars=string_chars, depth=depth - 1) for one in value if one is not None]
    return cut(value if isinstance(value, str) else str(value), string_chars)


def cut(text: str, most: int) -> str:
    """Return `text`, or its beginning and a mark, `most` characters together.

    >>> cut("a" * 20, 18)
    'aaa... [truncated]'
    """
    return text if len(text) <= most else text[: max(0, most - len(CUT))] + CUT[:most]


def trace_id(session_id: str) -> str:
    """Return the id of the trace of one conversation: 32 hex digits, as tracers want them."""
    return _digest("trace", session_id)[:32]


def span_id(event: Event) -> str:
    """Return the id of the span of one event: 16 hex digits.

    The estimate that opens a preflight takes the preflight's own, so that its other events can name it.
    """
    preflight = event.properties.get("preflight")
    if preflight and event.name == TOKEN_ESTIMATE:
        return _of_preflight(event)
    return _digest("span", line(record(event)).decode())[:16]


def parent_id(event: Event) -> str:
    """Return the id of the span that `event` belongs under; empty where it stands by itself."""
    if not event.properties.get("preflight") or event.name == TOKEN_ESTIMATE:
        return ""
    return _of_preflight(event)


def _of_preflight(event: Event) -> str:
    return _digest("preflight", event.session_id, str(event.properties["preflight"]))[:16]


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
