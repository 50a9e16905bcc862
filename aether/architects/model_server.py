"""Model servers: JSON requests over `aether.http`, retries, and failures as our errors.

For every backend that talks to a server, this module decides which failure is worth a retry, which means that the
prompt is too long and which error the caller sees. The HTTP client itself is in `aether.http`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, NoReturn

from aether import clock, http
from aether.architects.base import Settings
from aether.errors import BackendFailed, BackendUnavailable, ContextOverflow, InvalidInput
from aether.types import JsonObject

# Request timeout, conflict, too early, rate limit; statuses from 500 on are retried, too.
RETRIED = frozenset({408, 409, 425, 429})
# A server that asks for a longer pause is reported instead of waited for.
LONGEST_WAIT_SECONDS = 60.0
# Enough of a server's message to understand it.
QUOTED_CHARS = 300
# Servers and their libraries say that a prompt is larger than the window by its name, or by what is measured and that it is too much.
_MEASURE = r"(?:tokens?\b|length|prompts?|inputs?\b|context|request (?:body|entity)|payload|conversation|messages?\b)"
_EXCESS = (
    r"(?:exceed|too (?:long|large|big|many)\b|(?:long|larg|great|bigg)er than\b|(?:must|should) be (?:<|at most|less|\[)"
    r"|overflow|reduce the|limit is\b|only supports)"
)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size|limit)|exceed_context|n_ctx|request_too_large|token limit"
    r"|maximum (?:context|prompt|input|token|(?:\w+ )?(?:model|sequence) length|number of (?:input )?tokens)"
    r"|\b(?:prompt|input|request|conversation|message)s?\b[^.]{0,40}\btoo (?:long|large|big)\b"
    rf"|{_MEASURE}[^.]{{0,80}}?{_EXCESS}|{_EXCESS}[^.]{{0,80}}?{_MEASURE}",
    re.IGNORECASE,
)
# The same words about the time of a call, the length of the answer, or a list.
_NOT_THE_PROMPT = re.compile(
    r"context deadline|array too long|max\w*[_ ](?:\w+[_ ])?tokens\W[^.\n]{0,20}(?:too large|you requested)",
    re.IGNORECASE,
)
# These are about the key, the model or the pace, whatever the message says.
NOT_ABOUT_LENGTH = frozenset({401, 403, 404, 429})


class Reply(NamedTuple):
    """An answer read as JSON: status 0 means that none arrived whole, for the reason in `failure`."""

    status: int
    body: JsonObject
    """The JSON object of the reply; empty if it is not one."""
    text: str = ""
    retry_after: str = ""
    failure: http.Failure = ""


def setting_or_environment(explicit: str, *variables: str) -> str:
    """Return `explicit`, else the first of the environment's `variables` that is set, else nothing.

    Raises:
        InvalidInput: the value cannot be part of a request, such as a key with a line break inside.
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
    """Return the reply of the server at `url` to `body`, or the failure of the exchange.

    Raises:
        InvalidInput: `url` is not an http or https address.
    """
    reply = http.request(
        http.address(url, where="base url"),
        timeout_seconds=timeout_seconds,
        body=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json", **headers},
    )
    return as_reply(reply)


def as_reply(received: http.Reply) -> Reply:
    """Return the answer of an exchange with its body read, or its failure."""
    if received.failure:
        return Reply(0, {}, received.reason, failure=received.failure)
    return parsed_reply(received.status, received.content or received.reason.encode(), received.headers)


def parsed_reply(status: int, raw: bytes, headers: Mapping[str, str]) -> Reply:
    """Return a reply with its body read from `raw`."""
    text = raw.decode("utf-8", "replace")
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    retry_after = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return Reply(status, parsed if isinstance(parsed, dict) else {}, text, retry_after)


def with_retries(attempt: Callable[[], Reply], settings: Settings) -> Reply:
    """Return the reply of `attempt`, retried after a pause while the failure may be temporary.

    A timeout is not retried: the next wait would be as long, and the caller has other architects.
    """
    for nth in range(settings.max_retries):
        reply = attempt()
        if reply.status == 0:
            temporary = reply.failure != "timeout"
        else:
            temporary = (reply.status in RETRIED or reply.status >= 500) and not is_too_long(reply)
        wait = max(_requested_wait(reply.retry_after), settings.backoff_seconds * 2**nth)
        if not temporary or wait > LONGEST_WAIT_SECONDS:
            return reply
        time.sleep(wait)
    return attempt()


def is_too_long(reply: Reply) -> bool:
    """Return whether the server refused the prompt as too long.

    >>> is_too_long(Reply(400, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}))
    True
    """
    if reply.status < 400 or reply.status in NOT_ABOUT_LENGTH:
        return False
    return reply.status == 413 or says_too_long(failure_text(reply))


def says_too_long(text: str) -> bool:
    """Return whether the words of a failure say that a prompt is larger than the window.

    >>> says_too_long("prompt is too long: 9 tokens > 8 maximum"), says_too_long("context deadline exceeded")
    (True, False)
    """
    return bool(_TOO_LONG.search(text)) and not _NOT_THE_PROMPT.search(text)


def overflow(said: str, *, where: str) -> ContextOverflow:
    """Return the error for a prompt that is too long, in the words of the server."""
    return ContextOverflow(
        f"the prompt is larger than the window of the model: {said}",
        fix="Compact the conversation, or take a model with a larger window.", where=where,
    )  # fmt: skip


def failure_text(reply: Reply) -> str:
    """Return the server's message about a failure, shortened."""
    error = reply.body.get("error", reply.body.get("message"))
    words = error.get("message") if isinstance(error, dict) else error
    text = words if isinstance(words, str) and words else reply.text
    return text if len(text) <= QUOTED_CHARS else text[: QUOTED_CHARS - 1] + "…"


def raise_failure(
    reply: Reply, *, where: str, server: str, settings: Settings, fixes: Mapping[int, str]
) -> NoReturn:
    """Raise the error for `reply`; `fixes` gives the backend's own advice by status.

    Raises:
        ContextOverflow: the prompt is too long.
        BackendUnavailable: the server, its key or its model is missing.
        BackendFailed: anything else.
    """
    if is_too_long(reply):
        raise overflow(failure_text(reply), where=where)
    if reply.failure == "unreachable":
        raise BackendUnavailable(f"no server answers at {server} ({reply.text}).", fix=fixes[0], where=where)
    if reply.failure == "timeout":
        raise BackendFailed(
            f"no answer within {settings.timeout_seconds:g} s.",
            fix="Raise the timeout, use a faster model, or use the extractive backend.",
            where=where,
        )
    if reply.failure == "dropped":
        raise BackendFailed(
            f"the connection to {server} broke before the answer was whole ({reply.text}).",
            fix="Try again, or use the extractive backend.",
            where=where,
        )
    kind = BackendUnavailable if reply.status in {401, 403, 404} else BackendFailed
    pause = f" (it asks to wait {reply.retry_after} s)" if reply.retry_after else ""
    fix = "Correct what it names, or use the extractive backend."
    if reply.status in RETRIED or reply.status >= 500:
        fix = "It was tried again without success; wait a while, or use the extractive backend."
    raise kind(
        f"the server answered {reply.status}{pause}: {failure_text(reply)}",
        fix=fixes.get(reply.status, fix),
        where=where,
    )


def _requested_wait(retry_after: str) -> float:
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - clock.now()).total_seconds())
    except (TypeError, ValueError):
        return 0.0
