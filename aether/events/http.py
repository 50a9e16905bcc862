"""HTTP for exporters: one request, its status, and a deadline that holds for the whole exchange.

The standard client's timeout counts anew with every byte, so a server that drips could hold the thread for
ever; here every step gets what is left until the deadline. No proxy, no redirect, no password in an address.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from aether.errors import InvalidInput, shown

# "HTTP/1.1 200 OK" and some words; a first line that is longer is not of HTTP.
STATUS_LINE_BYTES = 1024
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3})\b[^\r\n]*\r?\n")


class Address(NamedTuple):
    """Where a server listens."""

    secure: bool
    host: str
    port: int | None
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"http{'s' if self.secure else ''}://{host}{port}{self.path}"


def address(url: str, *, where: str) -> Address:
    """Return the parts of `url`.

    Raises:
        InvalidInput: it is not an http or https address, or has a password in it.

    >>> address("http://localhost:5175/ingest", where="exporter").port
    5175
    """
    try:
        parts = urlsplit(url)
        plain = url.isascii() and url.isprintable() and " " not in url
        if plain and parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc:
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
            return Address(parts.scheme == "https", parts.hostname, parts.port, path)
    except ValueError:  # the port is no number, or a bracket is open
        pass
    # The address is not shown: it may hold a password.
    raise InvalidInput(
        "this is not the address of a server, http or https, without a password.",
        fix="Write it as http://localhost:5175/ingest.",
        where=where,
    )


def status_of(
    to: Address, *, deadline: float, body: bytes | None = None, content_type: str = "application/json"
) -> int:
    """Return the status that the server answers, by the `time.monotonic` instant `deadline`; POST if a body is given.

    Raises:
        TimeoutError: the deadline passed.
        OSError: nobody listens, or the connection broke.
    """
    kind = http.client.HTTPSConnection if to.secure else http.client.HTTPConnection
    connection = kind(to.host, to.port, timeout=_left(deadline))
    headers = {"Connection": "close"} | ({"Content-Type": content_type} if body is not None else {})
    try:
        connection.connect()
        connection.sock.settimeout(_left(deadline))
        # A server may refuse before it has read everything: then its answer says more than the broken pipe.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("GET" if body is None else "POST", to.path or "/", body, headers)
        return _status(connection.sock, deadline)
    except http.client.HTTPException as reason:
        raise OSError(f"it cannot be asked: {shown(str(reason))}") from reason
    finally:
        connection.close()


def _status(connection: socket.socket, deadline: float) -> int:
    got = b""
    while len(got) < STATUS_LINE_BYTES and b"\n" not in got:
        connection.settimeout(_left(deadline))
        block = connection.recv(STATUS_LINE_BYTES)
        if not block:
            break
        got += block
    found = _STATUS.match(got)
    if not found:
        raise OSError("it answered nothing that is HTTP" if got else "it closed the connection")
    return int(found[1])


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
