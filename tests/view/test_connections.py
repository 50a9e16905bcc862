"""Connections of the page: idle ones make room, slow and large headers end, and faults are logged once."""

from __future__ import annotations

import errno
import logging
import socket
import stat
import threading
import time
import urllib.request

import pytest

from tests import homes

pytest.importorskip("uvicorn", reason="no packages for the page")
pytest.importorskip("igraph", reason="no packages for the page")
from aether.view import connections
from aether.view.app import View

pytestmark = pytest.mark.extras


@pytest.fixture
def view(tmp_path, monkeypatch):
    """Return a view that is served by a thread, with room for five connections that ask within half a second."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(View, "_prepare", lambda self: None)
    view = View(homes.fresh(tmp_path))
    thread = threading.Thread(target=view.serve)
    thread.start()
    give_up = time.monotonic() + 10
    while (
        not getattr(getattr(view.app.state, "server", None), "started", False) and time.monotonic() < give_up
    ):
        time.sleep(0.01)
    yield view
    view.app.state.server.should_exit = True
    thread.join(10)


def knock(view, data=b""):
    """Return a connection to the page over which `data` was sent."""
    client = socket.create_connection(("127.0.0.1", view.port), timeout=10)
    client.sendall(data)
    return client


def is_closed(client):
    """Return whether the page has closed the connection, waiting for its answer."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_idle_connections_make_room_for_a_person(view):
    idle = [knock(view) for _ in range(20)]

    with urllib.request.urlopen(view.address, timeout=10) as page:
        assert page.status == 200
    assert all(map(is_closed, idle[:15]))
    for client in idle:
        client.close()


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_request_without_its_headers_is_not_waited_for(view, start):
    with knock(view, start) as client:
        began = time.monotonic()
        assert is_closed(client)
        assert time.monotonic() - began < 5


def test_headers_have_a_limit(view):
    with knock(
        view, b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 2 * connections.HEADER_BYTES
    ) as client:
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 400") or is_closed(client)


def test_a_fault_that_comes_again_is_one_line_without_a_traceback(monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(connections.time, "monotonic", lambda: seconds[0])
    once, logged = connections.LogOnce(), []
    for at in (0, 1, 59, 61):
        seconds[0] = at
        reason = OSError(errno.EMFILE, "Too many open files")
        record = logging.LogRecord(
            "asyncio", logging.ERROR, "", 0, "accept failed", (), (OSError, reason, None)
        )
        if once.filter(record):
            logged.append((at, record.getMessage(), record.exc_info))

    assert logged == [(at, "[Errno 24] Too many open files (the page goes on)", None) for at in (0, 61)]
    other = logging.LogRecord("asyncio", logging.ERROR, "", 0, "another", (), None)
    assert once.filter(other)


def test_faults_are_filtered_once_however_often_a_view_starts():
    connections.log_once()
    connections.log_once()

    filters = [one for one in logging.getLogger("asyncio").filters if isinstance(one, connections.LogOnce)]
    assert len(filters) == 1


def test_a_browser_gets_a_file_of_its_user_and_not_the_key(view, tmp_path):
    page = view.entrance(tmp_path)

    assert view.address in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert view.app.state.frame.token not in page.as_uri()
