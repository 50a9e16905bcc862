"""Conversations of a home, as an agent's memory of what was said: add, look back, take back, begin anew.

What is live and what was ever said differ where a conversation was compacted: `context` is what a model is sent,
`whole` is everything. Nothing here ever takes a message out of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aether.errors import NotFound
from aether.operations.edge import Home, find, now
from aether.shapes import JsonObject
from aether.store import conversations
from aether.store.conversation_log import load
from aether.store.files import make_directory

# Where conversations are kept where there is no home: beside the copies of the default configuration.
RECORD = ".compact"


def place(home: Home) -> Path:
    """Return the directory that keeps conversations: the home, or `.compact/` where none is named and none found.

    A directory of that name may be named too; it is made where it is missing.

    Raises:
        NotFound: the one that is named is no home.
    """
    if home is None or Path(home).name != RECORD:
        try:
            return find(home)
        except NotFound:
            if home is not None:
                raise
    record = Path(home or RECORD).absolute()
    make_directory(record)
    return record


def add(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> None:
    """Append messages to a conversation, all or none of them.

    Raises:
        InvalidInput: a message is not JSON.
        NotFound: the named one is no home.
    """
    if messages:
        conversations.extend(place(home), conversation_id, messages, now=now())


def context(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return the messages that are live: the last compaction's, and those said since.

    Raises:
        NotFound: the named one is no home.
    """
    return conversations.context(load(place(home), conversation_id))


def whole(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return every message that was ever said.

    Raises:
        NotFound: the named one is no home.
    """
    return conversations.history(load(place(home), conversation_id))


def take_back(conversation_id: str, *, home: Home = None) -> JsonObject | None:
    """Take the newest live message back and return it; None where there is none.

    Raises:
        NotFound: the named one is no home.
    """
    return conversations.pop(place(home), conversation_id, now=now())


def begin_anew(conversation_id: str, *, home: Home = None) -> None:
    """Leave nothing live; what was said stays in the whole.

    Raises:
        NotFound: the named one is no home.
    """
    conversations.clear(place(home), conversation_id, now=now())


def names(*, home: Home = None) -> list[str]:
    """Return the ids of the conversations, sorted.

    Raises:
        NotFound: the named one is no home.
    """
    return sorted(stored.id for stored in conversations.conversations(place(home)))
