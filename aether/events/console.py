"""The console exporter: each event is one line of JSON on stderr."""

from __future__ import annotations

import json
import sys

from aether.events.direct import Direct
from aether.events.event import Event
from aether.events.record import record


def console() -> Direct:
    """Return an exporter to stderr; whatever stderr is when the event happens."""
    return Direct("console", _write)


def _write(event: Event) -> None:
    # ASCII: stderr may have any encoding, and JSON reads the same.
    sys.stderr.write(json.dumps(record(event)) + "\n")
    sys.stderr.flush()
