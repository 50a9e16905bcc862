"""The ledger: the order of the lines of a colony that several machines share, and the protocol of the server that keeps it.

A shared home is a replica: its journal and its conversations are what they are in every home, and a line is in them only
after the ledger has taken it at that revision. `append_if` is the one way in: it appends if the stream is as the writer
has read it, or says what is new. A ledger keeps bytes and never looks into them: plans, merging and folding stay here.

Without `data/share.json` a home is not shared: its journal file is its ledger, and nothing of this module runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aether import regular
from aether.errors import Conflict, CorruptDocument, InvalidInput, StorageFailed, UnsafePath, shown
from aether.store import files, spool
from aether.store.log import checksum_of
from aether.text.regex import lazy

# What a shared home knows of its colony; neither an address nor a password.
PLACE = "data/share.json"
# The changes that wait for the server.
QUEUE = "share/queue"
URL = "AETHER_SHARE_URL"
# Where the files of a colony are if not in the database: a directory that all machines have, or s3://bucket/prefix.
FILES = "AETHER_SHARE_FILES"
# How an address starts, and the module whose `open_ledger` and `create_colony` know such servers.
MODULES = dict.fromkeys(("postgresql://", "postgres://"), "aether.store.postgres")
# The other form that libpq knows: `service=NAME`, `user=ana host=db`.
_PARAMETERS = lazy(r"\s*[a-z_]+\s*=")
# libpq's own variables: with one of them an empty address is enough.
_OWN = ("PGSERVICE", "PGHOST", "PGDATABASE")
TIMEOUT_SECONDS = 10.0
# A server that failed is not asked again for as long.
TRIED_SECONDS = 30.0
# What is said of a home that came with a repository, and what to do.
TRACKED = (
    "git tracks it, so it came with the repository: nothing is sent to the colony or taken from it.",
    "If the home is yours: git rm --cached -r .aether, and keep .aether/ in .gitignore; else run aether share leave.",
)
# What to do about a line of a colony that a home cannot read.
FOREIGN = (
    "Nothing of it was stored. If a newer aether wrote it: pip install --upgrade aether-memory. Else the owner of the "
    "database removes it, as docs/shared.md says."
)

# The stream of the journal; that of a conversation is `conversations/<id>`.
JOURNAL = ""
# One line in this stream shows that the first replica of a colony was sent whole.
READY = "ready"
# The first line of this stream is that of the home which the colony is made of.
CLAIM = "claim"
# One line in this stream shows that the files of a colony are kept outside its ledger.
PLACED = "placed"
# The name of a stream or a colony is text for a server, and part of a key.
NAME_BYTES = 2000


class Unsettled(StorageFailed):
    """The connection broke after lines were sent, and the server could not be asked whether it has stored them."""


class Unusable(StorageFailed):
    """The server answers, but its tables are missing, incomplete or of another version: waiting does not help."""


class OldTables(Unusable):
    """The tables of the server are older than this aether needs: who owns them upgrades them."""


class Offline(StorageFailed):
    """The ledger could not take a line: it is unreachable, full or read-only; the home is as it was."""

    sent = False
    """Whether the line may be in the ledger all the same."""


class Share(NamedTuple):
    """What a shared home knows of its colony."""

    colony: str
    identity: str
    """See `Ledger.identity`."""
    replica: str
    """The name of this home among the replicas of the colony."""


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
    """If not done: the lines after the mark, up to a limit of the ledger; what is missing up to `head` is read after.

    If done: none, or for a key that was used before the line that has it.
    """
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

    @property
    def right(self) -> str:
        """The right of the own role: `read`, `write` or `admin`, who alone may set a base. It may connect."""

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream; 0 if nobody has appended to it."""

    def heads(self, prefix: str = "") -> dict[str, int]:
        """Return the head of every stream whose name starts with `prefix`."""

    def ends(self) -> dict[str, Mark]:
        """Return the head and the checksum of the last line of every stream; to compare with, it may not be durable yet."""

    def read_after(self, stream: str, mark: Mark, *, limit: int = 1000) -> News:
        """Return at most `limit` lines after `mark`, oldest first, without a gap; only lines that are durable.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
        """

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes], *, key: str = "") -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none; return when they are durable.

        An answer that was lost is no failure: after connecting again the ledger looks at the lines after `mark`, and if
        they are these, byte for byte, they were appended. A `key` that was used in this stream before appends nothing, is
        done, and gives the line that has it, which may be another one: that is how a queue is sent twice without harm. Without lines it is only asked: it was used if `revision`
        is at most `head`.

        Raises:
            Conflict: the stream ends before the mark, or has another line there.
            Unsettled: it was sent, and the server could not be asked again whether it was stored.
        """

    def turn(self, stream: str, mark: Mark, *, early: bool = False) -> AbstractContextManager[News]:
        """Keep other writers of a stream waiting during the block, and yield what is new since `mark`.

        A writer that has met a conflict plans again inside: its next `append_if` on this stream, in this thread, meets
        none, and ends the turn. The server ends a turn that is longer than a few seconds. Writers get it in order.
        With `early` what is new may become durable only with that append: without it nobody may store or show it.
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

    def drop_blob(self, name: str) -> None:
        """Remove the bytes of that name, if they are there and belong to no snapshot of a stream."""

    def set_base(self, stream: str, mark: Mark, blob: str, parts: Sequence[str] = ()) -> str | None:
        """Let an empty stream start after `mark`, whose state is in the blob; a home without its first months is shared so.

        For a stream with lines it records a newer snapshot, from which a new replica may start. Its `parts` are the other
        blobs of it. It returns the blob of the snapshot before, or None if there is a newer one already.
        """

    def base(self, stream: str) -> tuple[int, str]:
        """Return the newest snapshot of a stream: its revision and its blob; 0 and nothing without one."""

    def close(self) -> None:
        """Give the connections back."""


_STAYS_LOCAL: list[bool] = []
# By home: what its ledger was opened for, and the ledger.
_OPEN: dict[Path, tuple[Share, str, Ledger]] = {}


def shared(home: Path) -> Share | None:
    """Return what `home` knows of its colony; None if it is not shared.

    Raises:
        CorruptDocument: the file cannot be read.
    """
    path = f"{home}/{PLACE}"
    if not is_shared(home):
        return None
    try:
        fields = files.parse_json(regular.read(path), where=PLACE)
        return Share(str(fields["colony"]), str(fields["identity"]), str(fields["replica"]))
    except (KeyError, TypeError) as reason:
        fix = "Join the colony in a new home, or run aether share leave --force."
        raise CorruptDocument("it does not name a colony.", fix=fix, where=path) from reason


def is_shared(home: Path) -> bool:
    """Return whether `home` is a replica of a colony, or was one and its file cannot be read."""
    return os.path.exists(f"{home}/{PLACE}")


def is_tracked(home: Path) -> bool:
    """Return whether git tracks what makes `home` shared: then whoever wrote the repository did."""
    return bool(spool.tracked(str(home), PLACE))


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


def write_share(home: Path, share: Share) -> None:
    """Make `home` a replica of the colony from now on."""
    files.write_whole(home / PLACE, files.json_document({"format": 1, **share._asdict()}))


def of(home: Path) -> Ledger | None:
    """Return the ledger of `home`, whose colony is the one that it is a replica of; None if it is not shared.

    Raises:
        Offline: the environment names no server.
        Conflict: the server has another colony of the same name.
        UnsafePath: git tracks the file that makes it shared; or as the next.
        StorageFailed, UnsafePath: it cannot be asked.
        BackendUnavailable: the package that reaches it is not installed.
        CorruptDocument: as `shared`.
    """
    share = shared(home)
    if share is None:
        return None
    if _STAYS_LOCAL:
        what = "a hook does not wait for the server of a shared home. Nothing was stored."
        raise Offline(what, fix="The next command takes it from the spool.", where=str(home))
    try:
        address = url()
    except InvalidInput as reason:
        raise Offline(reason.what, fix=reason.fix, where=reason.where) from None
    known = _OPEN.get(home)
    if known is None or known[:2] != (share, address):
        if is_tracked(home):
            raise UnsafePath(TRACKED[0], fix=TRACKED[1], where=f"{home}/{PLACE}")
        known = _OPEN[home] = share, address, opened(address, share.colony, replica=share.replica)
    if known[2].identity != share.identity:
        what = f"the server has another colony of the name {share.colony}."
        fix = f"Set {URL} to the server of this home's colony, or join the other one in a new home."
        raise Conflict(what, fix=fix, where=str(home))
    return known[2]


def url(given: str = "") -> str:
    """Return the address of the server: as given, else of the environment; it is never kept in a home.

    Raises:
        InvalidInput: none is named, or nothing here reaches such a server.
    """
    found = given or os.environ.get(URL, "")
    if not found and any(os.environ.get(name) for name in _OWN):
        found = "postgresql://"
    if not found:
        fix = f"Set {URL}, such as postgresql://HOST/DATABASE; the password belongs in .pgpass."
        raise InvalidInput("no server is named.", fix=fix, where=URL)
    return found


def module(address: str) -> Any:
    """Return the module that knows servers of this kind of address.

    Raises:
        InvalidInput: none does.
    """
    from importlib import import_module  # most homes have no server

    for start, name in MODULES.items():
        if address.startswith(start):
            return import_module(name)
    if _PARAMETERS.match(address):
        return import_module("aether.store.postgres")
    raise InvalidInput(
        "it is no address of a server.", fix="Use one such as postgresql://HOST/DATABASE.", where=URL
    )


def opened(address: str, colony: str, *, replica: str) -> Ledger:
    """Return the ledger of a colony on the server at `address`, not connected yet."""
    made: Ledger = module(address).open_ledger(address, colony, replica=replica, timeout=TIMEOUT_SECONDS)
    return made


def created(address: str, colony: str) -> Ledger:
    """Make a colony on the server at `address` and return its ledger."""
    made: Ledger = module(address).create_colony(address, colony, timeout=TIMEOUT_SECONDS)
    return made


def require_name(name: str, *, what: str) -> None:
    """Check that a server takes `name` as that of a colony or a conversation.

    Raises:
        InvalidInput: it has half of a surrogate pair or a NUL character, or is too long.
    """
    data = name.encode("utf-8", "replace")
    if data.decode() != name or "\0" in name or len(data) > NAME_BYTES:
        raise InvalidInput(
            f"{shown(name)} cannot be the {what} on a server.",
            fix=f"Use text without NUL characters and halves of surrogate pairs, of {NAME_BYTES} bytes at most.",
            where=what,
        )


def lines_after(server: Ledger, stream: str, mark: Mark, until: int | None = None) -> list[bytes]:
    """Return the lines after `mark`, up to the number `until` or the end of the stream if that is nearer.

    Raises:
        Conflict, UnsafePath, StorageFailed: as `Ledger.read_after`.
    """
    lines: list[bytes] = []
    while until is None or mark.revision + len(lines) < until:
        at = Mark(mark.revision + len(lines), checksum_of(lines[-1])) if lines else mark
        more = server.read_after(stream, at).lines
        if not more:
            break
        lines += more
    return lines if until is None else lines[: max(0, until - mark.revision)]
