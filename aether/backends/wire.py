"""The wire: one HTTP exchange as a value, tried again while trying helps, and its failures as our errors.

A reply is data, also where none came: what is worth a retry, what means that the prompt was too long
and which error the caller sees are decided here, once, for every backend that talks to a server.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.parse import urlsplit

from aether import clock
from aether.backends.base import Settings
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput, shown
from aether.shapes import JsonObject

Trouble = Literal["", "timeout", "unreachable", "dropped"]

# Request timeout, conflict, too early, rate limit, and everything that is the server's own fault.
RETRIED = frozenset({408, 409, 425, 429})
# A server that wants a longer pause than this is better reported than waited for.
LONGEST_WAIT_SECONDS = 60.0
# No session comes near this; a server that sends more is broken, and memory is not endless.
MAX_REPLY_BYTES = 32 * 1024 * 1024
# Enough of a server's own words to understand it.
QUOTED_CHARS = 300
_BLOCK_BYTES = 64 * 1024
_ADDRESS = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?(?:/[\w./~%+@-]*)?")
_TOO_LONG = re.compile(
    r"\bcontext\b|context_length|(?:prompt|input|request|message)s?\b.{0,40}\btoo (?:long|large)",
    re.IGNORECASE | re.DOTALL,
)
# With these the server means the key, the model or the pace, whatever words it uses.
_NOT_ABOUT_LENGTH = frozenset({401, 403, 404, 429})


class Reply(NamedTuple):
    """What came back: status 0 means that nothing whole did, and `trouble` says why."""

    status: int
    body: JsonObject
    """The JSON object of the reply; empty where it was none."""
    text: str = ""
    retry_after: str = ""
    trouble: Trouble = ""


def chosen(explicit: str, *variables: str) -> str:
    """Return `explicit`, else the first of the environment's `variables` that is set, else nothing.

    Raises:
        InvalidInput: the value cannot stand in a request, such as a key with a line break inside.
    """
    for name, value in (("setting", explicit), *((name, os.environ.get(name, "")) for name in variables)):
        if value.strip():
            if not (value.strip().isascii() and value.strip().isprintable()):
                # The value may be a key: it is not shown.
                raise InvalidInput(
                    "the value has characters that cannot be sent.", fix="Copy it again.", where=name
                )
            return value.strip()
    return ""


def post(url: str, body: JsonObject, *, headers: Mapping[str, str], timeout_seconds: float) -> Reply:
    """Return what the server at `url` answers to `body`, or what kept it from answering.

    Raises:
        InvalidInput: `url` is not an http or https address.
    """
    opener = _opener(url)
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked by _opener
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json", **headers},
        method="POST",
    )
    deadline = time.monotonic() + timeout_seconds
    try:
        with opener.open(request, timeout=timeout_seconds) as response:
            return reply(response.status, _read(response, deadline), dict(response.headers))
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _refused(refusal, deadline)
    except (OSError, http.client.HTTPException) as reason:
        return Reply(0, {}, str(reason), trouble=_trouble(reason))


def reply(status: int, raw: bytes, headers: Mapping[str, str]) -> Reply:
    """Return the reply that `raw` spells."""
    text = raw.decode("utf-8", "replace")
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    asked = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return Reply(status, parsed if isinstance(parsed, dict) else {}, text, asked)


def persistent(attempt: Callable[[], Reply], settings: Settings) -> Reply:
    """Return the reply of `attempt`, tried again after a pause while the failure may pass.

    A timeout is not tried again: the next wait would be as long, and the caller has other architects.
    """
    for nth in range(settings.max_retries):
        found = attempt()
        wait = max(_asked_wait(found.retry_after), settings.backoff_seconds * 2**nth)
        if not _may_pass(found) or wait > LONGEST_WAIT_SECONDS:
            return found
        time.sleep(wait)
    return attempt()


def too_long(found: Reply) -> bool:
    """Return whether the server refused because the prompt does not fit.

    >>> too_long(Reply(400, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}))
    True
    """
    if found.status < 400 or found.status in _NOT_ABOUT_LENGTH:
        return False
    return found.status == 413 or bool(_TOO_LONG.search(said(found)))


def said(found: Reply) -> str:
    """Return the server's own words about a failure, shortened."""
    error = found.body.get("error", found.body.get("message"))
    words = error.get("message") if isinstance(error, dict) else error
    text = words if isinstance(words, str) and words else found.text
    return text if len(text) <= QUOTED_CHARS else text[: QUOTED_CHARS - 1] + "…"


def fail(found: Reply, *, where: str, server: str, settings: Settings, fixes: Mapping[int, str]) -> NoReturn:
    """Raise the error that `found` means; `fixes` gives the backend's own advice by status.

    Raises:
        BackendUnavailable: the server, its key or its model is missing.
        BackendFailed: anything else.
    """
    if found.trouble == "unreachable":
        raise BackendUnavailable(f"no server answers at {server} ({found.text}).", fix=fixes[0], where=where)
    if found.trouble == "timeout":
        raise BackendFailed(
            f"no answer within {settings.timeout_seconds:g} s.",
            fix="Raise the timeout, take a faster model, or use the extractive backend.",
            where=where,
        )
    if found.trouble == "dropped":
        raise BackendFailed(
            f"the connection to {server} broke before the answer was whole ({found.text}).",
            fix="Try again, or use the extractive backend.",
            where=where,
        )
    kind = BackendUnavailable if found.status in {401, 403, 404} else BackendFailed
    pause = f" (it asks to wait {found.retry_after} s)" if found.retry_after else ""
    raise kind(
        f"the server answered {found.status}{pause}: {said(found)}",
        fix=fixes.get(found.status, _general_fix(found.status)),
        where=where,
    )


def _general_fix(status: int) -> str:
    if status in RETRIED or status >= 500:
        return "It was tried again without success; wait a while, or use the extractive backend."
    return "Correct what it names, or use the extractive backend."


def _may_pass(found: Reply) -> bool:
    if found.status == 0:
        return found.trouble != "timeout"
    return (found.status in RETRIED or found.status >= 500) and not too_long(found)


def _asked_wait(retry_after: str) -> float:
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - clock.now()).total_seconds())
    except (TypeError, ValueError):
        return 0.0


def _refused(refusal: urllib.error.HTTPError, deadline: float) -> Reply:
    try:
        raw = _read(refusal, deadline)
    except (OSError, http.client.HTTPException):
        raw = b""
    return reply(refusal.code, raw or str(refusal.reason).encode(), dict(refusal.headers))


def _read(response: Any, deadline: float) -> bytes:
    # The socket's own timeout counts from byte to byte, so a server that drips would never end.
    blocks: list[bytes] = []
    size = 0
    while block := response.read1(_BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer did not end in time")
        if size > MAX_REPLY_BYTES:
            raise http.client.HTTPException(f"the answer is larger than {MAX_REPLY_BYTES} bytes")
    if getattr(response, "length", 0):
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(blocks)


def _trouble(reason: Exception) -> Trouble:
    inner = reason.reason if isinstance(reason, urllib.error.URLError) else reason
    if isinstance(inner, TimeoutError):
        return "timeout"
    broken = isinstance(inner, (ConnectionResetError, BrokenPipeError, http.client.HTTPException))
    return "dropped" if broken else "unreachable"


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would go along, and a POST would become a GET."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    if not _ADDRESS.fullmatch(url):
        raise InvalidInput(
            f"{shown(url)} is not the address of a server.",
            fix="Write it as http://127.0.0.1:11434 or https://….",
            where="base url",
        )
    # A proxy cannot reach this machine's loopback interface.
    near = urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}
    return urllib.request.build_opener(urllib.request.ProxyHandler({} if near else None), _Stay)
