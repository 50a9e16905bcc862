"""Private calls: what a tool did with private paths is not read out of a transcript.

Hooks leave such calls out before they are kept; a transcript has them, and is read as if it had not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aether.messages.record import Record
from aether.redact.private import is_private


def without_private(records: Iterable[Record], patterns: str, *, directory: str = "") -> Iterator[Record]:
    """Yield `records` without the calls that name a path which `patterns` mean, and without their results.

    Relative paths are seen from where the call was made, else from `directory`.

    >>> calls = [Record("call", arguments={"path": path}, call_id=path) for path in (".env", "a.py")]
    >>> [record.call_id for record in without_private(calls, ".env*", directory="/app")]
    ['a.py']
    """
    private: set[str] = set()
    for record in records:
        if record.kind == "call":
            private.discard(record.call_id)  # an id may be used again
            if is_private(record.arguments, patterns, record.directory or directory):
                private.add(record.call_id)
                continue
        elif record.kind == "result" and record.call_id in private:
            continue
        yield record
