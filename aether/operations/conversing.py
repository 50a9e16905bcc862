"""Conversations of a home, as an agent's memory of what was said: add, look back, take back, begin anew.

What is live and what was ever said differ where a conversation was compacted: `context` is what a model is sent,
`whole` is everything. Nothing here ever takes a message out of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aether.operations.compaction_case import RECORD, place_of
from aether.operations.edge import Home, now
from aether.shapes import JsonObject
from aether.store import conversations
from aether.store.conversation_log import Log, load
from aether.store.files import make_directory

# Conversations of which is remembered what was said; an agent has few at a time.
KEPT_HERE = 64
# What was said, by the log that it was read from; never handed out, since a caller may change what he is given.
_SAID: dict[Path, tuple[Log, dict[int, JsonObject]]] = {}


def place(home: Home) -> Path:
    """Return the directory that keeps conversations: the home, or `.compact/` here where none is named and none found.

    A directory of that name may be named too: a caller who remembers where he began goes on there.

    Raises:
        NotFound: the one that is named is no home.
    """
    if home is not None and Path(home).name == RECORD:
        return Path(home).absolute()
    return place_of(home)


def add(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> None:
    """Append messages to a conversation, all or none of them.

    Raises:
        InvalidInput: a message is not JSON.
        NotFound: the named one is no home.
    """
    if messages:
        here = place(home)
        make_directory(here)
        conversations.extend(here, conversation_id, messages, now=now())


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


def since_begun(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return every message that was said since the conversation was begun anew.

    Raises:
        NotFound: the named one is no home.
    """
    return list(_since_begun(load(place(home), conversation_id)).values())


def _since_begun(log: Log) -> dict[int, JsonObject]:
    """Return what was said since the conversation was begun anew, by number."""
    replaced = (n for step in log.open for n in log.compactions[step - 1].before)
    wanted = {*log.context, *replaced}
    said = (n for n, step in enumerate(log.derived, 1) if not step)
    return {n: message for n, message in zip(said, conversations.history(log), strict=True) if n in wanted}


def continued(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> list[JsonObject]:
    """Return `messages`, the whole of a conversation, with what was compacted before as it was compacted.

    For callers who hold the whole themselves and pass all of it each time: what is recorded goes on from there. What
    no compaction made comes back as the very object that was given.

    Raises:
        NotFound: the named one is no home.
    """
    return continued_in(place(home), conversation_id, messages)


def continued_in(record: Path, conversation_id: str, messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return what `continued` does, of the conversations that the directory `record` keeps."""
    log = load(record, conversation_id)
    said = _said(log)
    if not said or list(messages[: len(said)]) != list(said.values()):
        return list(messages)
    given = dict(zip(said, messages, strict=False))
    live = zip(log.context, conversations.context(log), strict=True)
    return [*(given.get(n, made) for n, made in live), *messages[len(said) :]]


def _said(log: Log) -> dict[int, JsonObject]:
    """Return what was said since `log` was begun anew, read once for as long as the log does not grow."""
    known = _SAID.pop(log.path, None)
    said = known[1] if known and known[0] is log else _since_begun(log)
    _SAID[log.path] = (log, said)
    if len(_SAID) > KEPT_HERE:
        _SAID.pop(next(iter(_SAID)), None)
    return said


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
