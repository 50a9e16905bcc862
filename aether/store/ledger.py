"""The ledger: the order of the lines of a home that several machines share, as the commit path sees it.

A shared home is a replica: its journal and its conversations are what they are in every home, and a line is in them only
after the ledger has taken it at that revision. `append_if` is the one way in: it appends if the stream is as the writer
has read it, or says what is new. A ledger keeps bytes and never looks into them.

Without `data/share.json` a home is not shared, and nothing of `aether.sharing`, which has the ledgers, is imported.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aether.errors import StorageFailed
from aether.store.log import checksum_of

# What a shared home knows of its colony; neither an address nor a password.
PLACE = "data/share.json"
# The changes that wait for the server.
QUEUE = "share/queue"
# Touched at each try that failed: for some seconds no other process waits for the server again.
TRIED, TRIED_SECONDS = "share/tried", 30.0
# The state after the changes that wait, derived.
MADE = "share/queued.json"
# The stream of the journal; that of a conversation is `conversations/<id>`.
JOURNAL = ""
# What to do about lines of a colony that do not fit a home whose own documents are edited or damaged.
FOREIGN = 'Nothing of it was stored. Run "aether doctor --repair", then "aether fold".'
# What knows the ledger of a shared home, how changes of it wait, and who sent them: the one place where the store leads to it.
_SHARING, _SENDERS = "aether.sharing.offline", "aether.sharing.senders"


class Offline(StorageFailed):
    """The ledger could not take a line: it is unreachable, full or read-only; the home is as it was."""

    sent = False
    """Whether the line may be in the ledger all the same."""


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


class Ledger(Protocol):
    """The streams of lines of one colony, as one replica reaches them.

    Every method may raise `Offline` (the server is unreachable, full or read-only), `UnsafePath` (the role may not do
    this) or `Conflict` (the ledger and the replica have different histories: another colony of the name, a server that was
    restored from an older backup).
    """

    @property
    def member(self) -> str:
        """The name under which the server knows this replica: each line of the journal ends in it."""

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none; return when they are durable.

        Whoever was not first has a turn: from the next `read_after` of the stream until the next `append_if` others wait,
        some seconds at most. One without lines gives the turn back.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            InvalidInput: other replicas would refuse a line.
            Offline: it could not take them, or it is not known whether it did (`sent`).
        """

    def read_after(self, stream: str, mark: Mark) -> News:
        """Return lines after `mark`, oldest first, without a gap, up to a limit of the ledger; only lines that are durable.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            CorruptDocument: the next line cannot be read by this aether, or does not follow.
        """

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream; 0 if nobody has appended to it."""


_STAYS_LOCAL: list[bool] = []


def is_shared(home: Path) -> bool:
    """Return whether `home` is a replica of a colony, or was one and its file cannot be read."""
    return os.path.exists(f"{home}/{PLACE}")  # most homes are not, and pay for no more than this


def sharing(home: Path) -> Any:
    """Return `aether.sharing.offline` if `home` is shared, or has changes that wait from when it was; else None."""
    if not is_shared(home) and not os.path.exists(f"{home}/{QUEUE}"):
        return None
    __import__(_SHARING)
    return sys.modules[_SHARING]


def senders(snapshot: Any) -> dict[str, str]:
    """Return which member of the colony sent an entry of a shared home, by its id, if another than its user; else nothing."""
    if not is_shared(snapshot.home):
        return {}
    __import__(_SENDERS)  # less than all of sharing: a session waits for its brief
    found: dict[str, str] = sys.modules[_SENDERS].senders(snapshot)
    return found


def of(home: Path) -> Ledger | None:
    """Return the ledger of `home`, whose colony is the one that it is a replica of; None if it is not shared.

    Raises:
        Offline, Conflict, UnsafePath, BackendUnavailable, CorruptDocument: it cannot be used.
    """
    ledger: Ledger | None = sharing(home).ledger_of(home) if is_shared(home) else None
    return ledger


@contextmanager
def staying_local() -> Iterator[None]:
    """Ask no server during the block."""
    _STAYS_LOCAL.append(True)
    try:
        yield
    finally:
        _STAYS_LOCAL.pop()


def stays_local() -> bool:
    """Return whether no server may be asked now."""
    return bool(_STAYS_LOCAL)


class Reader(Protocol):
    """What has the lines of streams: the ledger of a home, or its colony."""

    def read_after(self, stream: str, mark: Mark) -> News:
        """Return lines after `mark`, as `Ledger.read_after`."""


def lines_after(ledger: Reader, stream: str, mark: Mark, until: int | None = None) -> list[bytes]:
    """Return the lines after `mark`, up to the number `until` or the end of the stream if that is nearer.

    Raises:
        Conflict, UnsafePath, StorageFailed: as `Ledger.read_after`.
    """
    lines: list[bytes] = []
    while until is None or mark.revision + len(lines) < until:
        at = Mark(mark.revision + len(lines), checksum_of(lines[-1])) if lines else mark
        news = ledger.read_after(stream, at).lines
        if not news:
            break
        lines += news
    return lines if until is None else lines[: max(0, until - mark.revision)]


def tried_lately(home: Path) -> bool:
    """Return whether the server could not be reached a few seconds ago, by any process."""
    return seconds_left(home) > 0


def seconds_left(home: Path) -> int:
    """Return the seconds until the server is tried again after it could not be reached; 0 if it may be tried now."""
    try:
        passed = time.time() - os.stat(f"{home}/{TRIED}").st_mtime
    except OSError:
        return 0
    return math.ceil(TRIED_SECONDS - passed) if 0 <= passed < TRIED_SECONDS else 0
