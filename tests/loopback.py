"""A server of HTTP on this machine, for as long as a test asks it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], *, release: threading.Event | None = None
) -> Iterator[int]:
    """Serve by `handler` on a free port of the loopback, and return the port; `release` is set before it ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        if release:
            release.set()  # what hangs goes on
        server.shutdown()
        server.server_close()
        thread.join()
