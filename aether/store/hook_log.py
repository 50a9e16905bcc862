"""The log of the hooks: one line for each failure in `hook.log`, for there is no screen to say it on.

It never raises, and never grows: at its limit it becomes `hook.log.1`, in the place of the one before. The event of
a tool imports it, so it has nothing but `os` and `time`.
"""

from __future__ import annotations

import os
import time

NAME = "hook.log"
MOST_BYTES = 256 * 1024
# Longer messages hide what they say.
LINE_CHARS = 400
# Where a link would lead, a repository with a home in it may have chosen: it could be a file that a shell runs.
_AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def note(home: str, event: str, session: str, what: str) -> None:
    """Add a line that says when, in which event of which session, and what; do nothing where there is no home."""
    try:
        path = os.path.join(home, NAME)
        if not os.path.isdir(home) or os.path.islink(path):
            return
        _make_room(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _AS_IT_IS, 0o600)
        try:
            os.write(handle, _line(event, session, what).encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except Exception:  # noqa: BLE001 - a log that fails must not be what fails
        return


def note_once(home: str, event: str, session: str, what: str) -> None:
    """Add a line as `note` does, unless the log has one that says the same of that session."""
    said = _line(event, session, what).split(" ", 2)[2]  # without the time and the event
    path = os.path.join(home, NAME)
    try:
        if not os.path.islink(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                if any(line.endswith(said) for line in file):
                    return
    except OSError:
        pass  # there is none yet
    note(home, event, session, what)


def _make_room(path: str) -> None:
    try:
        if os.stat(path).st_size >= MOST_BYTES:
            os.replace(path, f"{path}.1")
    except OSError:
        return  # there is none yet, or another hook was faster


def _line(event: str, session: str, what: str) -> str:
    from aether.redact.redaction import redact

    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = " ".join(redact(what[: 2 * LINE_CHARS]).split())
    words = [" ".join(redact(word[: 2 * LINE_CHARS]).split())[:80] or "-" for word in (event, session)]
    return f"{at} {' '.join(words)} {said[:LINE_CHARS]}\n"
