"""Checking a conversation for a provider: read it in any format, say it in the provider's words, check, mend.

Nothing is stored: the mended conversation comes back as the bytes of a file.
"""

from __future__ import annotations

import os
from typing import IO, NamedTuple

from aether.errors import InvalidInput
from aether.messages.chat import is_message
from aether.messages.check import check
from aether.messages.conversation import Conversation, dumped, load, said_in
from aether.messages.message import Wire
from aether.messages.repair import repair as mend
from aether.shapes import Finding

# What is wrong with a message of nobody in particular, and gone once it is said in a provider's words.
_MENDED_BY_CONVERSION = frozenset({"bad-role", "empty-content"})


class Checked(NamedTuple):
    """What a provider would say of a conversation."""

    provider: Wire
    wire: Wire
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
    provider: Wire | None = None,
    repair: bool = False,
    nth: int = 0,
) -> Checked:
    """Return every reason for which `provider` would refuse the conversation in `source`, mended if asked.

    Where none is named it is the provider whose words `source` uses.

    Raises:
        NotFound: there is no such file, or no such conversation in it.
        InvalidInput: the file holds no conversation, or its words are nobody's in particular and no provider is named.
    """
    read = load(source, nth=nth)
    provider = provider or read.wire
    if provider == "plain":
        raise InvalidInput(
            "its words are no provider's in particular.",
            fix="Say whose rules hold, with --for.",
            where=read.name,
        )
    said, converted = said_in(read, provider)
    hidden = _hidden(read)
    done = mend(said.messages, provider) if repair else None
    if done:
        said = said._replace(messages=done.messages)
    return Checked(
        provider,
        read.wire,
        len(said.messages),
        [
            *read.unread,
            *([] if repair else hidden),
            *check(said.messages, provider, system=said.system, tools=said.tools),
        ],
        [*(hidden if repair else []), *converted],
        done.findings if done else [],
        read.others,
        dumped(said) if done else b"",
    )


def _hidden(read: Conversation) -> list[Finding]:
    """Return what is wrong with plain messages as they stand, and no longer is when they are converted."""
    known = read.wire != "plain" or read.origin.kind == "derived"
    if known or all(is_message(message.raw) for message in read.messages):
        return []  # the words of an agent's own dialect are nothing wrong
    return [found for found in check(read.messages, "plain") if found.code in _MENDED_BY_CONVERSION]
