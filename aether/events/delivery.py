"""Delivery of events: at once, or by a thread from a bounded queue; a failure never reaches the work it reports.

A direct exporter is for a line on stderr, a line in a file or a function of the caller, which take microseconds. A
background exporter is for a network: `emit` never waits, a thread sends all waiting events as soon as there are some, a
full queue drops its oldest event, and `flush`, `close` and the end of the interpreter wait for the timeout at most. A
forked child has a queue of its own. Lost events are counted, and reported once on stderr.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aether.events.events import Event
from aether.text.words import pluralize

# A compaction is six events: these are minutes of work while a server hangs, and a few megabytes.
QUEUE_EVENTS = 10_000
# As in Ariadne: an exporter delays nobody for longer.
TIMEOUT_SECONDS = 2.0


class DirectExporter:
    """An exporter that gives each event to `put` at once; exceptions are counted, and reported once."""

    def __init__(self, name: str, put: Callable[[Event], None]) -> None:
        self.name = name
        self.lost = 0
        """Events that were not delivered."""
        self._put = put

    def emit(self, event: Event) -> None:
        """Deliver `event`."""
        try:
            self._put(event)
        except Exception as reason:  # noqa: BLE001 - an exporter must not end the work
            self.lost += 1
            if self.lost == 1:
                warn(self.name, f"an event was lost: {type(reason).__name__}: {reason}")

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class SendResult(NamedTuple):
    """The result of sending some events."""

    lost: int = 0
    trouble: str = ""
    """Why they were lost."""


class BackgroundExporter:
    """An exporter whose `send` gets, in a thread, the emitted events and a deadline.

    `send(events, deadline)` may block until `deadline` (`time.monotonic`) and returns the events that it lost.
    """

    def __init__(
        self, name: str, send: Callable[[Sequence[Event], float], SendResult], *,
        timeout_seconds: float = TIMEOUT_SECONDS, queue_events: int = QUEUE_EVENTS,
    ) -> None:  # fmt: skip
        self.name = name
        self.timeout_seconds = timeout_seconds
        self.lost = 0
        """Events that were dropped, not delivered, or still without an answer when the exporter was closed."""
        self._send = send
        self._most = queue_events
        self._closed = False
        self._renew()
        _OPEN.add(self)

    def _renew(self) -> None:
        """Start with an empty queue, also in a forked child, which has no thread and perhaps a held lock."""
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._sending = 0
        self._thread: threading.Thread | None = None

    def emit(self, event: Event) -> None:
        """Queue `event` for the thread, which sends it at once."""
        with self._changed:
            if self._closed:
                self._lose(1, "it came after the exporter was closed")
                return
            if len(self._waiting) >= self._most:
                self._waiting.popleft()
                self._lose(1, f"more than {self._most} wait; the oldest are dropped")
            self._waiting.append(event)
            if self._thread is None and not self._start():
                return
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is sent, but no longer than the timeout."""
        self._wait(self.timeout_seconds)

    def close(self) -> None:
        """Flush, and end the thread; later events are lost."""
        self._end(self.timeout_seconds)

    def _end(self, seconds: float) -> None:
        self._wait(seconds)
        with self._changed:
            if not self._closed and (late := self._sending + len(self._waiting)):
                self._lose(late, f"they were not sent within {self.timeout_seconds:g} s")
                self._waiting.clear()
            self._closed = True
            self._changed.notify_all()
        _OPEN.discard(self)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._sending, max(0.0, seconds))

    def _start(self) -> bool:
        self._thread = threading.Thread(target=self._run, name=f"aether {self.name} exporter", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as reason:  # the interpreter is ending, or the machine has no thread to give
            self._thread = None
            self._lose(len(self._waiting), str(reason))
            self._waiting.clear()
        return self._thread is not None

    def _run(self) -> None:
        while events := self._taken():
            try:
                sent = self._send(events, time.monotonic() + self.timeout_seconds)
            except Exception as reason:  # noqa: BLE001 - one batch that cannot be sent must not end the thread
                sent = SendResult(len(events), f"{type(reason).__name__}: {reason}")
            with self._changed:
                self._sending = 0
                if sent.lost and not self._closed:  # closing counted all that was being sent
                    self._lose(sent.lost, sent.trouble)
                self._changed.notify_all()

    def _taken(self) -> list[Event]:
        """Return all waiting events as soon as there are some; none once the exporter is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            events = list(self._waiting)
            self._waiting.clear()
            self._sending = len(events)
            return events

    def _lose(self, count: int, why: str) -> None:
        first, self.lost = not self.lost, self.lost + count
        if first:
            warn(
                self.name,
                f"{pluralize(count, 'events')} lost: {why}. Further losses are counted, not reported.",
            )


def warn(who: str, words: str) -> None:
    """Write one line to stderr: `[Ariadne] …`."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"[{who}] {words}\n")


_OPEN: weakref.WeakSet[BackgroundExporter] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Flush and close all exporters, together within the longest of their timeouts."""
    open_exporters = list(_OPEN)
    deadline = time.monotonic() + max((exporter.timeout_seconds for exporter in open_exporters), default=0.0)
    for exporter in open_exporters:
        exporter._end(deadline - time.monotonic())  # noqa: SLF001 - of this module


def _renew_all() -> None:
    for exporter in list(_OPEN):
        exporter._renew()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows does not fork
    os.register_at_fork(after_in_child=_renew_all)
