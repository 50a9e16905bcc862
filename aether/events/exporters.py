"""Exporters: the one place that makes an exporter of a kind, and redacts every event before it leaves.

An exporter from here never raises and never waits for longer than its timeout. It gets a redacted copy of each event;
with `rules=None` the copy is not redacted, and a warning comes before the first event. The console and the file are
written here, the exporters over a network are `ariadne` and `otlp`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from aether.errors import InvalidInput, StorageFailed, require_one_of, shown
from aether.events import events
from aether.events.delivery import TIMEOUT_SECONDS, DirectExporter
from aether.events.events import Event, Exporter, json_line, record
from aether.redact.redact import DEFAULT, Rules, redacted

Kind = Literal["none", "console", "file", "ariadne", "otlp"]


class FunctionExporter(NamedTuple):
    """An exporter made of three functions."""

    emit: Callable[[Event], None]
    flush: Callable[[], None]
    close: Callable[[], None]


NO_EXPORTER = FunctionExporter(lambda event: None, lambda: None, lambda: None)


def exporter(
    kind: Kind, *, url: str = "", path: str | os.PathLike[str] = "", timeout_seconds: float = TIMEOUT_SECONDS,
    content: bool | None = None, rules: Rules | None = DEFAULT,
) -> Exporter:  # fmt: skip
    """Return the exporter of `kind`.

    `url` is the address of the viewer or collector, empty for its usual one on this machine; `path` the file of the
    kind `file`. With `content` payloads, which hold texts, are exported; None: by every kind but `otlp`. `rules` are
    those of redaction; None: no redaction.

    Raises:
        InvalidInput: the kind is unknown, or the address, path or timeout is invalid.
        BackendUnavailable: the kind needs a package that is not installed.
        StorageFailed: the file cannot be written.
    """
    require_one_of(kind, get_args(Kind), "an exporter", where="exporter")
    if not 0 < timeout_seconds < float("inf"):
        raise InvalidInput(
            f"{shown(timeout_seconds)} is not a timeout.", fix="Use seconds, such as 2.0.", where="exporter"
        )
    if kind == "none":
        return NO_EXPORTER
    if kind == "console":
        inner: Exporter = console()
    elif kind == "file":
        if not path:
            raise InvalidInput("has no path.", fix="Name the file to append to.", where="exporter 'file'")
        inner = file(path)
    elif kind == "ariadne":
        from aether.events.ariadne import ariadne

        inner = ariadne(url, timeout_seconds=timeout_seconds)
    else:
        from aether.events.otlp import otlp

        inner = otlp(url, timeout_seconds=timeout_seconds)
    content = kind != "otlp" if content is None else content
    return screened(inner, kind=kind, content=content, rules=rules)


def callback(function: Callable[[Event], None], *, rules: Rules | None = DEFAULT) -> Exporter:
    """Return the exporter that calls `function` with each event; its exceptions are counted, and reported once."""
    return screened(DirectExporter("callback", function), kind="callback", rules=rules)


def fan_out(exporters: Iterable[Exporter]) -> Exporter:
    """Return one exporter that gives every event to each of `exporters`, even if others fail."""
    receivers = tuple(exporters)

    def emit(event: Event) -> None:
        for receiver in receivers:
            with contextlib.suppress(Exception):
                receiver.emit(event)

    return FunctionExporter(
        emit,
        lambda: _all(receiver.flush for receiver in receivers),
        lambda: _all(receiver.close for receiver in receivers),
    )


def screened(
    inner: Exporter, *, kind: str = "custom", content: bool = True, rules: Rules | None = DEFAULT
) -> Exporter:
    """Return an exporter that gives `inner` redacted copies, without payload unless `content`, and never raises."""
    warned: list[bool] = []

    def put(event: Event) -> None:
        if rules is None and not warned:
            warned.append(True)
            moment = events.Moment(event.at, event.session_id)
            inner.emit(events.redaction_disabled(moment, f'the exporter "{kind}"'))
        inner.emit(redacted_copy(event, rules=rules, content=content))

    return FunctionExporter(
        DirectExporter(kind, put).emit, lambda: _all([inner.flush]), lambda: _all([inner.close])
    )


def redacted_copy(event: Event, *, rules: Rules | None = DEFAULT, content: bool = True) -> Event:
    """Return a redacted copy of `event`, without payload unless `content`."""
    event = event if content else event._replace(payload=None)
    if rules is None:
        return event
    return event._replace(
        session_id=redacted(event.session_id, rules),
        properties=redacted(event.properties, rules),
        payload=redacted(event.payload, rules),
    )


def _all(actions: Iterable[Callable[[], None]]) -> None:
    for action in actions:
        with contextlib.suppress(Exception):
            action()


def console() -> DirectExporter:
    """Return an exporter that writes each event as a line of JSON to the stderr of that moment."""
    return DirectExporter("console", _write)


def _write(event: Event) -> None:
    # ASCII: stderr may have any encoding, and JSON reads the same.
    sys.stderr.write(json.dumps(record(event)) + "\n")
    sys.stderr.flush()


def file(path: str | os.PathLike[str]) -> DirectExporter:
    """Return an exporter that appends lines of JSON to the file at `path`, which only its owner may read.

    Several processes may share the file: each line is one write.

    Raises:
        StorageFailed: the file cannot be made or written.
    """
    place = Path(path).absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _append(place, b"")
    except (OSError, ValueError) as reason:
        raise StorageFailed(
            f"events cannot be written there ({reason}).",
            fix="Name a file that can be written.",
            where=str(place),
        ) from reason

    return DirectExporter("file", lambda event: _append(place, json_line(record(event)) + b"\n"))


def _append(path: Path, data: bytes) -> None:
    # Without waiting for the reader of a pipe.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        if os.write(handle, data) != len(data):
            os.write(handle, b"\n")  # the next line must not join the torn one
            raise OSError("only a part of it was written")
    finally:
        os.close(handle)
