"""HTTP: one request as a value, with one deadline for the whole exchange.

The client is the library that comes with `anthropic`; it is imported with the first request, never before. Its
timeouts count again with every byte, so a server that drips could hold a caller forever: here every read gets the
time that is left. A reply is data even if none came. No cookies, no password in an address.
It is below both its users: exporters (`events`), rank files (`tokens`) and model backends (`backends`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from aether.errors import InvalidInput, shown

if TYPE_CHECKING:
    import httpx2

Failure = Literal["", "timeout", "unreachable", "dropped"]
# No answer of a model comes near this: a server that sends more is broken.
MAX_REPLY_BYTES = 32 * 1024 * 1024
# A proxy cannot reach this machine's loopback interface.
_NEAR = frozenset({"localhost", "127.0.0.1", "::1"})
_NEW_STREAM = (".connect_tcp.complete", ".start_tls.complete")


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


class Reply(NamedTuple):
    """An answer of a server: status 0 means that none arrived whole, and `failure` says why."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = {}
    reason: str = ""
    """The server's words for the status, or the library's for the failure."""
    failure: Failure = ""


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
    what = "this is not the address of a server, http or https, without a password."
    raise InvalidInput(what, fix="Write it as http://127.0.0.1:11434 or https://….", where=where)


def request(
    to: Address,
    *,
    timeout_seconds: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    proxies: bool = True,
    redirects: bool = False,
    most_bytes: int = MAX_REPLY_BYTES,
) -> Reply:
    """Return the answer of the server, or the trouble that prevented it; POST if there is a body.

    The deadline holds for the whole exchange. An answer of more than `most_bytes` is dropped; with 0 only the status
    is read. Redirects are not followed by default: a key would go along, and a POST would become a GET.
    """
    deadline = time.monotonic() + timeout_seconds
    return _exchange(
        to, partial(_reply, most_bytes=most_bytes), timeout_seconds=timeout_seconds, body=body, headers=headers or {},
        proxies=proxies, redirects=redirects, extensions={"trace": _held_to(deadline)},
    )  # fmt: skip


def stream(
    to: Address,
    *,
    timeout_seconds: float,
    body: bytes,
    on_line: Callable[[bytes], None],
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Give each line of an answer of status 200 to `on_line` as soon as it is there, and return the reply without them.

    Any other answer is returned with its content. `timeout_seconds` is the longest silence: an answer may take as long as
    it goes on. What `on_line` raises ends the exchange and is raised here.
    """
    raised: list[Exception] = []
    reply = _exchange(
        to, partial(_read_lines, on_line=on_line, raised=raised),
        timeout_seconds=timeout_seconds, body=body, headers=headers or {},
    )  # fmt: skip
    if raised:
        raise raised[0]
    return reply


def _exchange(
    to: Address,
    take: Callable[[httpx2.Response], Reply],
    *,
    timeout_seconds: float,
    body: bytes | None,
    headers: Mapping[str, str],
    proxies: bool = True,
    redirects: bool = False,
    extensions: Mapping[str, Any] | None = None,
) -> Reply:
    import ssl
    from urllib.request import getproxies, proxy_bypass

    import httpx2

    secure = to.secure or redirects
    try:
        proxy = None
        if proxies and to.host not in _NEAR and not proxy_bypass(to.host):
            proxy = getproxies().get("https" if to.secure else "http")
            proxy = f"http://{proxy}" if proxy and "://" not in proxy else proxy
        with (
            httpx2.Client(
                verify=ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                proxy=proxy,
                timeout=timeout_seconds,
                follow_redirects=redirects,
                trust_env=False,
            ) as client,
            client.stream(
                "GET" if body is None else "POST",
                str(to),
                content=body,
                headers={"Accept-Encoding": "identity", "Connection": "close", **headers},
                extensions=dict(extensions or {}),
            ) as response,
        ):
            return take(response)
    except (httpx2.TimeoutException, TimeoutError):
        return Reply(0, reason="timed out", failure="timeout")
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.InvalidURL, ImportError, ValueError) as failure:
        return Reply(0, reason=_words(failure), failure="unreachable")
    except (httpx2.HTTPError, OSError) as failure:
        return Reply(0, reason=_words(failure), failure="dropped")


def _read_lines(
    response: httpx2.Response, *, on_line: Callable[[bytes], None], raised: list[Exception]
) -> Reply:
    if response.status_code != 200:
        return _reply(response, MAX_REPLY_BYTES)
    done = Reply(200, b"", dict(response.headers), response.reason_phrase)
    pieces: list[bytes] = []
    size = 0
    try:
        for block in response.iter_bytes():
            size += len(block)
            if size > MAX_REPLY_BYTES:
                return Reply(
                    0, reason=f"the answer is larger than {MAX_REPLY_BYTES} bytes", failure="dropped"
                )
            pieces.append(block)
            if b"\n" in block:
                *lines, rest = b"".join(pieces).split(b"\n")
                pieces = [rest]
                _give(lines, on_line, raised)
        _give([b"".join(pieces)], on_line, raised)
    except _Ended:
        pass
    return done


class _Ended(Exception):
    """The caller's function raised: an error of the caller is no failure of the exchange."""


def _give(lines: Iterable[bytes], on_line: Callable[[bytes], None], raised: list[Exception]) -> None:
    try:
        for line in lines:
            on_line(line)
    except Exception as reason:
        raised.append(reason)
        raise _Ended from reason


def _reply(response: httpx2.Response, most_bytes: int) -> Reply:
    import httpx2

    content, headers = bytearray(), dict(response.headers)
    try:
        for block in response.iter_bytes() if most_bytes else ():
            content += block
            if len(content) > most_bytes:
                return Reply(0, reason=f"the answer is larger than {most_bytes} bytes", failure="dropped")
    except (httpx2.HTTPError, OSError):
        if response.status_code < 400:
            raise
        content.clear()  # the status of a refusal says enough
    return Reply(response.status_code, bytes(content), headers, response.reason_phrase)


def _held_to(deadline: float) -> Callable[[str, Mapping[str, Any]], None]:
    """Return a trace function that gives each read and write of a new connection the time left."""

    def limited(step: Callable[..., Any]) -> Callable[..., Any]:
        def within(data: Any, timeout: float | None = None) -> Any:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            return step(data, left if timeout is None else min(left, timeout))

        return within

    def trace(name: str, info: Mapping[str, Any]) -> None:
        if name.endswith(_NEW_STREAM):
            stream = info["return_value"]
            stream.read, stream.write = limited(stream.read), limited(stream.write)

    return trace


def _words(failure: Exception) -> str:
    return shown(str(failure))[1:-1] or type(failure).__name__
