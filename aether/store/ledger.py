"""The ledger: the order of the lines of a colony that several machines share, and the protocol of the server that keeps it.

A shared home is a replica: its journal and its conversations are what they are in every home, and a line is in them only
after the ledger has taken it at that revision. `append_if` is the one way in: it appends if the stream is as the writer
has read it, or says what is new. A ledger keeps bytes and never looks into them: plans, merging and folding stay here.

Without `data/share.json` a home is not shared: its journal file is its ledger, and nothing of this module runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from aether.errors import StorageFailed
from aether.tuples import NamedTuple

# The stream of the journal; that of a conversation is `conversations/<id>`.
JOURNAL = ""


class Unsettled(StorageFailed):
    """The connection broke after lines were sent, and the server could not be asked whether it has stored them."""


class Mark(NamedTuple):
    """How far a replica has a stream: the number of its last line, and the checksum at the end of that line.

    The checksum shows a replica that its line was not the one that the ledger has, so that two histories never mix.
    """

    revision: int
    checksum: str
    """16 hexadecimal digits; empty where the replica has no line, or does not know: then it is not compared."""


class News(NamedTuple):
    """Lines of a stream that a replica does not have yet."""

    head: int
    """The revision of the last line of the stream; 0 where it has none."""
    lines: list[bytes]
    """Whole lines, each with its newline, byte for byte as they were appended; the first follows the mark asked for."""


class Appended(NamedTuple):
    """The answer to an append."""

    done: bool
    """Whether the lines are in the stream, durably, from the revision after the mark on."""
    head: int
    """As in `News`."""
    lines: list[bytes]
    """If not done: the lines after the mark, up to a limit of the ledger; what is missing up to `head` is read after."""
    revision: int = 0
    """If done: the revision of the first of the lines. It is another than mark + 1 only for a key that was used before."""


class Ledger(Protocol):
    """One colony on a server, as one replica reaches it.

    Every method may raise `StorageFailed` (the server is unreachable, full or read-only), `UnsafePath` (the role may not
    do this) or `Conflict` (the ledger and the replica have different histories: another colony of the name, a server that
    was restored from an older backup). A ledger connects when it is first used, connects again after a failure, and waits
    for no answer longer than its timeout. One ledger may be used by several threads; after a fork a child opens its own.
    """

    colony: str

    @property
    def identity(self) -> str:
        """The name made once when the colony was made: two colonies of one name have two. It may connect."""

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream; 0 if nobody has appended to it."""

    def heads(self, prefix: str = "") -> dict[str, int]:
        """Return the head of every stream whose name starts with `prefix`."""

    def read_after(self, stream: str, mark: Mark, *, limit: int = 1000) -> News:
        """Return at most `limit` lines after `mark`, oldest first, without a gap; only lines that are durable.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
        """

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes], *, key: str = "") -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none; return when they are durable.

        An answer that was lost is no failure: after connecting again the ledger looks at the lines after `mark`, and if
        they are these, byte for byte, they were appended. A `key` that was used in this stream before appends nothing and
        is done: that is how a queue is sent twice without harm.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            Unsettled: it was sent, and the server could not be asked again whether it was stored.
        """

    def turn(self, stream: str, mark: Mark) -> AbstractContextManager[News]:
        """Keep other writers of a stream waiting during the block, and yield what is new since `mark`.

        A writer that has met a conflict plans again inside: its next `append_if` on this stream, in this thread, meets
        none, and ends the turn. The server ends a turn that is longer than a few seconds. Writers get it in order.
        """

    def wait(self, stream: str, revision: int, timeout: float) -> bool:
        """Wait until the stream has a line after `revision`, or for `timeout` seconds; return whether it has."""

    def put_blob(self, data: bytes) -> str:
        """Keep `data`, once, and return its name: the SHA-256 of the bytes, in hexadecimal."""

    def get_blob(self, name: str) -> bytes:
        """Return the bytes of that name, checked against it.

        Raises:
            NotFound: there are none.
            CorruptDocument: they are others.
        """

    def set_base(self, stream: str, revision: int, blob: str) -> None:
        """Let an empty stream start after `revision`, whose state is in the blob; a home without its first months is shared so.

        For a stream with lines it records a newer snapshot, from which a new replica may start.
        """

    def base(self, stream: str) -> tuple[int, str]:
        """Return the newest snapshot of a stream: its revision and its blob; 0 and nothing without one."""

    def close(self) -> None:
        """Give the connections back."""
