"""Connections of the page: how many there are, how long each may take to ask, and how often their faults are logged.

Every program of this machine can connect, those of other users too. Connections that ask for nothing make room for new
ones, so that the page stays open to its person.
"""

from __future__ import annotations

import logging
import time
from typing import Any

# A browser has six to a site, and one for news.
MOST_CONNECTIONS = 100
# As many may wait; the server accepts all that wait at once.
WAITING = 64
# A request has its headers within this time, and they fit into so many bytes.
HEADER_SECONDS, HEADER_BYTES = 10.0, 16 * 1024
# A fault that comes again is not logged for so long.
QUIET_SECONDS = 60.0


def limited_protocol() -> Any:
    """Return the class of connections that uvicorn makes for the page."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        """A connection that is closed if it asks for nothing for too long, or if there are too many."""

        is_idle_since = 0.0

        def connection_made(self, transport: Any) -> None:
            """Take a connection, for which the idlest one goes if there are too many."""
            others: set[Any] = self.connections
            if len(others) >= MOST_CONNECTIONS:
                idle = [other for other in others if other.is_idle()]
                idlest = min(idle, key=lambda other: other.is_idle_since, default=None)
                (idlest.transport if idlest else transport).abort()
                others.discard(idlest)  # it leaves by itself only after all that connect now
            super().connection_made(transport)
            self.is_idle_since = time.monotonic()
            self.loop.call_later(HEADER_SECONDS, self.look)

        def is_idle(self) -> bool:
            """Return whether no request is being answered."""
            return self.cycle is None or bool(self.cycle.response_complete)

        def on_response_complete(self) -> None:
            """Note the time from which on the next request is waited for."""
            self.is_idle_since = time.monotonic()
            super().on_response_complete()

        def look(self) -> None:
            """Close the connection if it has waited for headers for too long; look again later if not."""
            if self.transport.is_closing():
                return
            left = self.is_idle_since + HEADER_SECONDS - time.monotonic()
            if self.is_idle() and left <= 0:
                self.transport.abort()
            else:
                self.loop.call_later(max(left, 1.0) if self.is_idle() else HEADER_SECONDS, self.look)

    return Connection


class LogOnce(logging.Filter):
    """Lets a record through once a minute, and one of the system without its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        reason = record.exc_info[1] if record.exc_info else None
        if isinstance(reason, OSError):
            record.msg, record.args = f"{reason} (the page goes on)", None
            record.exc_info = record.exc_text = None
        now, words = time.monotonic(), str(record.msg)[:200]
        is_new = now - self.logged.get(words, -QUIET_SECONDS) >= QUIET_SECONDS
        if is_new:
            self.logged = {**dict(list(self.logged.items())[-100:]), words: now}
        return is_new


def log_once() -> None:
    """Log each fault of a connection once a minute."""
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(one, LogOnce) for one in logger.filters):
            logger.addFilter(LogOnce())
