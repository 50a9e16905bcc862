"""The storage adapter: what every place for pre-compaction transcripts, summaries and events offers.

Layout everywhere: `<session>/transcript-pre-compact-<step>.jsonl`, `<session>/summary-<step>.json`,
`<session>/events.jsonl`, with the step in three digits. A step is written once and never overwritten. What an
adapter is given is redacted already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aether.shapes import JsonObject


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
