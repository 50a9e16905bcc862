"""Conversations of a home, as an agent's memory of what was said: add, look back, take back, begin anew.

What is live and what was ever said differ where a conversation was compacted: `context` is what a model is sent,
`whole` is everything. Nothing here ever takes a message out of the whole.

Checking a conversation for a provider: read it in any format, say it in the provider's words, check, mend.

Nothing is stored: the mended conversation comes back as the bytes of a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from aether.api.compact_case import RECORD_NAME, record_directory
from aether.api.home import Home, now
from aether.errors import InvalidInput
from aether.messages.model import ProviderFormat
from aether.messages.sources.chat import is_message
from aether.messages.transcripts import Conversation, conversation_bytes, convert_conversation
from aether.messages.transcripts import load_conversation as transcripts_load
from aether.messages.validate import check
from aether.messages.validate import repair as mend
from aether.store import conversations
from aether.store.conversations import Log, load
from aether.store.files import make_directory
from aether.types import Finding, JsonObject

# Conversations of which is remembered what was said; an agent has few at a time.
KEPT_CONVERSATIONS = 64
# What was said, by the log that it was read from; never handed out, since a caller may change what he is given.
_LIVE: dict[Path, tuple[Log, dict[int, JsonObject]]] = {}


def place(home: Home) -> Path:
    """Return the directory that keeps conversations: the home, or `.compact/` here where none is named and none found.

    A directory of that name may be named too: a caller who remembers where he began goes on there.

    Raises:
        NotFound: the one that is named is no home.
    """
    if home is not None and Path(home).name == RECORD_NAME:
        return Path(home).absolute()
    return record_directory(home)


def add_messages(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> None:
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


def full_history(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return every message that was ever said.

    Raises:
        NotFound: the named one is no home.
    """
    return conversations.history(load(place(home), conversation_id))


def since_cleared(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return every message that was said since the conversation was begun anew.

    Raises:
        NotFound: the named one is no home.
    """
    return list(_since_cleared(load(place(home), conversation_id)).values())


def _since_cleared(log: Log) -> dict[int, JsonObject]:
    """Return what was said since the conversation was begun anew, by number."""
    replaced = (n for step in log.open for n in log.compactions[step - 1].before)
    wanted = {*log.context, *replaced}
    said = (n for n, step in enumerate(log.derived, 1) if not step)
    return {n: message for n, message in zip(said, conversations.history(log), strict=True) if n in wanted}


def resume(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> list[JsonObject]:
    """Return `messages`, the whole of a conversation, with what was compacted before as it was compacted.

    For callers who hold the whole themselves and pass all of it each time: what is recorded goes on from there. What
    no compaction made comes back as the very object that was given.

    Raises:
        NotFound: the named one is no home.
    """
    return resume_in(place(home), conversation_id, messages)


def resume_in(record: Path, conversation_id: str, messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return what `continued` does, of the conversations that the directory `record` keeps."""
    log = load(record, conversation_id)
    said = _live_messages(log)
    if not said or list(messages[: len(said)]) != list(said.values()):
        return list(messages)
    given = dict(zip(said, messages, strict=False))
    live = zip(log.context, conversations.context(log), strict=True)
    return [*(given.get(n, made) for n, made in live), *messages[len(said) :]]


def _live_messages(log: Log) -> dict[int, JsonObject]:
    """Return what was said since `log` was begun anew, read once for as long as the log does not grow."""
    known = _LIVE.pop(log.path, None)
    said = known[1] if known and known[0] is log else _since_cleared(log)
    _LIVE[log.path] = (log, said)
    if len(_LIVE) > KEPT_CONVERSATIONS:
        _LIVE.pop(next(iter(_LIVE)), None)
    return said


def pop_message(conversation_id: str, *, home: Home = None) -> JsonObject | None:
    """Take the newest live message back and return it; None where there is none.

    Raises:
        NotFound: the named one is no home.
    """
    return conversations.pop(place(home), conversation_id, now=now())


def clear_context(conversation_id: str, *, home: Home = None) -> None:
    """Leave nothing live; what was said stays in the whole.

    Raises:
        NotFound: the named one is no home.
    """
    conversations.clear(place(home), conversation_id, now=now())


def conversation_ids(*, home: Home = None) -> list[str]:
    """Return the ids of the conversations, sorted.

    Raises:
        NotFound: the named one is no home.
    """
    return sorted(stored.id for stored in conversations.stored_conversations(place(home)))


# What is wrong with a message of nobody in particular, and gone once it is said in a provider's words.
_FIXED_BY_CONVERSION = frozenset({"bad-role", "empty-content"})


class CheckedMessages(NamedTuple):
    """What a provider would say of a conversation."""

    provider: ProviderFormat
    wire: ProviderFormat
    """How the file spells its messages."""
    messages: int
    findings: list[Finding]
    """What is wrong; after a repair, what still is."""
    converted: list[Finding]
    """What could not be said in the provider's words, where the file uses others."""
    repairs: list[Finding]
    """What the repair did; `where` counts the messages before it."""
    others: int
    """How many more conversations the file holds."""
    mended: bytes
    """The conversation after conversion and repair, as a file; empty where no repair was asked for."""


def check_messages(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    provider: ProviderFormat | None = None,
    repair: bool = False,
    nth: int = 0,
) -> CheckedMessages:
    """Return every reason for which `provider` would refuse the conversation in `source`, mended if asked.

    Where none is named it is the provider whose words `source` uses.

    Raises:
        NotFound: there is no such file, or no such conversation in it.
        InvalidInput: the file holds no conversation, or its words are nobody's in particular and no provider is named.
    """
    read = transcripts_load(source, nth=nth)
    provider = provider or read.format
    if provider == "plain":
        raise InvalidInput(
            "its words are no provider's in particular.",
            fix="Say whose rules hold, with --for.",
            where=read.name,
        )
    said, converted = convert_conversation(read, provider)
    hidden = _hidden(read)
    done = mend(said.messages, provider) if repair else None
    if done:
        said = said._replace(messages=done.messages)
    return CheckedMessages(
        provider,
        read.format,
        len(said.messages),
        [
            *read.unread,
            *([] if repair else hidden),
            *check(said.messages, provider, system=said.system, tools=said.tools),
        ],
        [*(hidden if repair else []), *converted],
        done.findings if done else [],
        read.others,
        conversation_bytes(said) if done else b"",
    )


def _hidden(read: Conversation) -> list[Finding]:
    """Return what is wrong with plain messages as they stand, and no longer is when they are converted."""
    known = read.format != "plain" or read.origin.kind == "derived"
    if known or all(is_message(message.raw) for message in read.messages):
        return []  # the words of an agent's own dialect are nothing wrong
    return [found for found in check(read.messages, "plain") if found.code in _FIXED_BY_CONVERSION]
