"""Ledgers: what a shared home knows of its colony, the server that keeps it, and the ledger that its commits use.

Every server is a module with `open_ledger`, `create_colony`, `status`, `members`, `grant` and `revoke`; the table
`MODULES` names it by the start of its addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from aether import regular
from aether.errors import Conflict, CorruptDocument, InvalidInput, StorageFailed, UnsafePath, shown
from aether.sharing.lines import checked_news, require_accepted
from aether.store import files, spool
from aether.store.ledger import JOURNAL, PLACE, Appended, Mark, News, Offline, is_shared, stays_local

URL = "AETHER_SHARE_URL"
# Where the files of a colony are if not in the database: a directory that all machines have, or s3://bucket/prefix.
FILES = "AETHER_SHARE_FILES"
MODULES = dict.fromkeys(("postgresql://", "postgres://"), "aether.sharing.postgres")
# The other form that libpq knows: `service=NAME`, `user=ana host=db`.
_PARAMETERS = re.compile(r"\s*[a-z_]+\s*=")
# libpq's own variables: with one of them an empty address is enough.
_OWN = ("PGSERVICE", "PGHOST", "PGDATABASE")
TIMEOUT_SECONDS = 10.0
# What is said of a home that came with a repository, and what to do.
TRACKED = (
    "git tracks it, so it came with the repository: nothing is sent to the colony or taken from it.",
    "If the home is yours: git rm --cached -r .aether, and keep .aether/ in .gitignore; else run aether share leave.",
)
# One line in this stream shows that the first replica of a colony was sent whole.
READY = "ready"
# The first line of this stream is that of the home which the colony is made of.
CLAIM = "claim"
# One line in this stream shows that the files of a colony are kept outside its ledger.
PLACED = "placed"
# The name of a stream or a colony is text for a server, and part of a key.
NAME_BYTES = 2000
T = TypeVar("T")


class Unsettled(StorageFailed):
    """The connection broke after lines were sent, and the server could not be asked whether it has stored them."""


class Unusable(StorageFailed):
    """The server answers, but its tables are missing, incomplete or of another version: waiting does not help."""


class OldTables(Unusable):
    """The tables of the server are older than this aether needs: who owns them upgrades them."""


class Share(NamedTuple):
    """What a shared home knows of its colony."""

    colony: str
    identity: str
    """See `Colony.identity`."""
    replica: str
    """The name of this home among the replicas of the colony."""


class Colony(Protocol):
    """One colony on a server: a `Ledger`, and what else is kept there.

    Every method may raise `StorageFailed`, `UnsafePath` or `Conflict`, as those of a ledger. A colony connects when it is
    first used, connects again after a failure, and waits for no answer longer than its timeout. It may be used by several
    threads; after a fork a child opens its own.
    """

    colony: str

    @property
    def identity(self) -> str:
        """The name made once when the colony was made: two colonies of one name have two. It may connect."""

    @property
    def right(self) -> str:
        """The right of the own role: `read`, `write` or `admin`, who alone may set a base. It may connect."""

    @property
    def member(self) -> str:
        """The own role: lines of the journal and of the files end in it, and the server compares. It may connect."""

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream; 0 if nobody has appended to it."""

    def ends(self, prefix: str = "") -> dict[str, Mark]:
        """Return the end of every stream whose name starts with `prefix`; to compare with, it may not be durable yet."""

    def read_after(self, stream: str, mark: Mark, *, limit: int = 1000) -> News:
        """Return at most `limit` lines after `mark`, as `Ledger.read_after`."""

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none, as `Ledger.append_if`.

        An answer that was lost is no failure: after connecting again the colony looks at the lines after `mark`, and if
        they are these, byte for byte, they were appended.

        Raises:
            Unsettled: it was sent, and the server could not be asked again whether it was stored.
        """

    def turn(self, stream: str, mark: Mark) -> AbstractContextManager[News]:
        """Keep other writers of a stream waiting during the block, and yield what is new since `mark`.

        The next `append_if` on this stream, in this thread, meets no conflict, and ends the turn. The server ends a turn
        that is longer than a few seconds. Writers get it in order.
        """

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

    def remove_line(self, revision: int) -> None:
        """Put in the place of a line of the journal the one that replicas make of it if they cannot read it; for an admin.

        Raises:
            NotFound: there is no such line.
        """

    def close(self) -> None:
        """Give the connections back."""


# By home: what its colony was opened for, and the colony.
_OPEN: dict[Path, tuple[Share, str, Colony]] = {}
_TURNS: dict[tuple[Path, str], ExitStack | None] = {}


class HomeLedger:
    """The `Ledger` of a shared home: its colony, with the turns of losers, and with each line checked on its way."""

    def __init__(self, home: Path, colony: Colony) -> None:
        self.home, self.colony = home, colony

    @property
    def member(self) -> str:
        """The name under which the server knows this replica."""
        return self._asked(lambda: self.colony.member)

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> Appended:
        """Append all `lines` if `mark` is the end of the stream, or none; see `Ledger.append_if`."""
        turn = _TURNS.pop((self.home, stream), None)
        try:
            if not lines:
                return Appended(True, mark.revision, [])
            if stream == JOURNAL:
                require_accepted(self.home, lines)
            elif not mark.revision:  # one that is there may have a longer name, of an earlier release
                require_name(stream.partition("/")[2], what="id of a conversation")
            answer = self._asked(lambda: self.colony.append_if(stream, mark, lines))
        finally:
            if turn:
                turn.close()
        if not answer.done:
            _TURNS[self.home, stream] = None
        return answer

    def read_after(self, stream: str, mark: Mark) -> News:
        """Return lines after `mark`; see `Ledger.read_after`."""
        if _TURNS.get((self.home, stream), self) is None:
            turn = _TURNS[self.home, stream] = ExitStack()
            news = self._asked(lambda: turn.enter_context(self.colony.turn(stream, mark)))
        else:
            news = self._asked(lambda: self.colony.read_after(stream, mark))
        return checked_news(self.home, news) if stream == JOURNAL else news

    def head(self, stream: str) -> int:
        """Return the revision of the last line of a stream."""
        return self._asked(lambda: self.colony.head(stream))

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except StorageFailed as reason:
            raise unreachable(reason) from reason


def unreachable(reason: StorageFailed) -> Offline:
    """Return why a ledger could not take a line, and whether it may have it all the same."""
    if isinstance(reason, Offline):
        return reason
    if isinstance(reason, Unsettled):
        what = f"{reason.what} Whether the change is stored is not known."
        failed = Offline(what, fix='See "aether log" when the server is back.', where=reason.where)
        failed.sent = True
        return failed
    return Offline(f"{reason.what} Nothing was stored.", fix=reason.fix, where=reason.where)


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


def is_tracked(home: Path) -> bool:
    """Return whether git tracks what makes `home` shared: then whoever wrote the repository did."""
    return bool(spool.tracked(str(home), PLACE))


def write_share(home: Path, share: Share) -> None:
    """Make `home` a replica of the colony from now on."""
    files.write_whole(home / PLACE, files.json_document({"format": 1, **share._asdict()}))


def of(home: Path) -> Colony | None:
    """Return the colony of `home`, which is the one that it is a replica of; None if it is not shared.

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
    if stays_local():
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
    for start, name in MODULES.items():
        if address.startswith(start):
            return import_module(name)
    if _PARAMETERS.match(address):
        return import_module("aether.sharing.postgres")
    raise InvalidInput(
        "it is not the address of a server.",
        fix="Use one such as postgresql://HOST/DATABASE.",
        where=f"URL or {URL}",
    )


def opened(address: str, colony: str, *, replica: str) -> Colony:
    """Return the ledger of a colony on the server at `address`, not connected yet."""
    made: Colony = module(address).open_ledger(address, colony, replica=replica, timeout=TIMEOUT_SECONDS)
    return made


def created(address: str, colony: str) -> Colony:
    """Make a colony on the server at `address` and return its ledger."""
    made: Colony = module(address).create_colony(address, colony, timeout=TIMEOUT_SECONDS)
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


def ledger_of(home: Path) -> HomeLedger | None:
    """Return the ledger that commits of `home` use; None if it is not shared.

    Raises:
        Offline, Conflict, UnsafePath, BackendUnavailable, CorruptDocument: as `of`.
    """
    try:
        colony = of(home)
    except StorageFailed as reason:
        raise unreachable(reason) from reason
    return HomeLedger(home, colony) if colony else None
