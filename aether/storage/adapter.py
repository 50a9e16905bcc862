"""The storage adapter: what every place for pre-compaction transcripts, summaries and events offers.

Layout everywhere: `<session>/transcript-pre-compact-<step>.jsonl`, `<session>/summary-<step>.json`,
`<session>/events.jsonl`, with the step in three digits. A step is written once and never overwritten. What an
adapter is given is redacted already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from aether.errors import Conflict, InvalidInput
from aether.shapes import JsonObject
from aether.store import codec

EVENTS = "events.jsonl"
_STEP = re.compile(r"(?:transcript-pre-compact|summary)-([0-9]{3,})\.jsonl?")


class StorageAdapter(Protocol):
    """A place for copies; every method returns where it wrote, as a path or URL.

    Raises (each method):
        InvalidInput: the session id cannot be a name.
        Conflict: that step was written before, with other content.
        StorageFailed: nothing was written.
    """

    name: str
    """`fs`, `s3` or the caller's own word, as events and receipts show it."""

    def save_transcript(self, session_id: str, messages: Sequence[JsonObject], step: int) -> str:
        """Keep the messages as they were before compaction `step`."""
        ...

    def save_summary(self, session_id: str, summary: JsonObject, step: int) -> str:
        """Keep the summary of compaction `step`."""
        ...

    def save_event(self, session_id: str, event: JsonObject) -> str:
        """Append one event."""
        ...


def transcript_file(step: int) -> str:
    """Return the name of the transcript before compaction `step`.

    Raises:
        InvalidInput: steps begin with 0.

    >>> transcript_file(7), summary_file(1000)
    ('transcript-pre-compact-007.jsonl', 'summary-1000.json')
    """
    return f"transcript-pre-compact-{_step(step)}.jsonl"


def summary_file(step: int) -> str:
    """Return the name of the summary of compaction `step`.

    Raises:
        InvalidInput: steps begin with 0.
    """
    return f"summary-{_step(step)}.json"


def _step(step: int) -> str:
    if step < 0:
        raise InvalidInput(f"{step} is not a step.", fix="Count compactions from 1.", where="step")
    return f"{step:03d}"


def step_after(names: Iterable[str]) -> int:
    """Return the first step that is later than all whose files are among `names`.

    >>> step_after(["events.jsonl", "summary-002.json", "transcript-pre-compact-003.jsonl"])
    4
    """
    steps = [int(found[1]) for found in map(_STEP.fullmatch, names) if found]
    return max(steps, default=0) + 1


def lines_of(messages: Sequence[JsonObject]) -> bytes:
    """Return messages as they are kept, one line each."""
    return b"".join(codec.line(message) + b"\n" for message in messages)


def taken(where: str) -> Conflict:
    """Return the error that a step holds something else."""
    return Conflict(
        "this step was written before, with other content.",
        fix="Use the next step: what was written is never overwritten.",
        where=where,
    )
