"""Conversations of a home: add messages, read them, remove the last one, clear the context, and check one for a provider.

A compaction makes the context of a conversation, which is sent to a model, differ from its full history. Nothing here ever
removes a message from the full history, except that a person deletes all of it. Checking stores nothing: the repaired conversation is returned as the bytes of a
file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from aether.api.home import Home, find, now
from aether.conversation.checks import require_message
from aether.errors import Conflict, InvalidInput, NotFound, public
from aether.messages import transcripts
from aether.messages.convert import source_places
from aether.messages.model import ProviderFormat
from aether.messages.sources.chat import is_message
from aether.messages.transcripts import conversation_bytes, convert_conversation
from aether.messages.validate import check
from aether.messages.validate import repair as repair_messages
from aether.paths import inside
from aether.store import conversations, history, ledger
from aether.store.conversations import load
from aether.store.files import ignore, make_directory, storage_errors
from aether.store.history import Log
from aether.types import Finding, JsonObject

# Directory of conversations without a home: beside the copies of the default configuration.
RECORD_NAME = ".compact"


def record_directory(home: Home) -> Path:
    """Return the directory that keeps conversations: the home, or `.compact/` here if none is named and none found.

    A directory of that name may be given too, so that a caller can return to it from elsewhere. The directory is not
    created; the first message or compaction does that.

    Raises:
        NotFound: the named home does not exist.
        UnsafePath: the `.compact` here leads elsewhere.
    """
    if home is not None and Path(home).name == RECORD_NAME:
        return Path(home).absolute()
    try:
        return find(home)
    except NotFound:
        if home is not None or os.environ.get("AETHER_HOME"):
            raise
    inside(Path.cwd(), RECORD_NAME)  # it may be a link that came with a repository
    return Path(RECORD_NAME).absolute()


def make_record(record: Path) -> None:
    """Make the directory of a record; git ignores `.compact/`, which holds messages word for word.

    A `.gitignore` that is there stays, also an empty one.
    """
    make_directory(record)
    if record.name == RECORD_NAME:
        ignore(record)


@public
def add_messages(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> None:
    """Append messages to a conversation, all or none of them.

    Raises:
        InvalidInput: one is no message, or not JSON.
        NotFound: the named home does not exist.
    """
    for position, message in enumerate(messages):
        require_message(message, where=f"messages[{position}]")
    if messages:
        here = record_directory(home)
        make_record(here)
        conversations.extend(here, conversation_id, messages, now=now())


def context(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return the live messages: the result of the last compaction, and those added since.

    Raises:
        NotFound: the named home does not exist.
    """
    return history.context(load(record_directory(home), conversation_id))


def full_history(conversation_id: str, *, home: Home = None) -> list[JsonObject]:
    """Return every message that was ever added.

    Raises:
        NotFound: the named home does not exist.
    """
    return history.history(load(record_directory(home), conversation_id))


def _said_since_cleared(log: Log) -> list[int]:
    replaced = (n for step in log.open for n in log.compactions[step - 1].before)
    return [n for n in sorted({*log.context, *replaced}) if not log.derived[n - 1]]


class LoadedConversation(NamedTuple):
    """A conversation as it was read; messages by their number, in order, and never changed."""

    log: Log
    context: dict[int, JsonObject]
    """The live messages."""
    said: dict[int, JsonObject]
    """Every message that was added since the context was cleared."""


def follow(
    conversation_id: str, known: LoadedConversation | None, *, home: Home = None
) -> LoadedConversation:
    """Return the conversation as it is now: `known` itself if nobody changed it, else with only the new messages read.

    Raises:
        NotFound: the named home does not exist.
    """
    log = load(record_directory(home), conversation_id)
    if known and known.log is log:
        return known
    messages_by_number = {**known.said, **known.context} if known and known.log.inode == log.inode else {}
    live = history.messages(log, [n for n in log.context if n not in messages_by_number])
    messages_by_number |= dict(
        zip((n for n in log.context if n not in messages_by_number), live, strict=True)
    )
    numbers = _said_since_cleared(log)
    missing = [n for n in numbers if n not in messages_by_number]
    messages_by_number |= dict(zip(missing, history.messages(log, missing), strict=True))
    return LoadedConversation(
        log, {n: messages_by_number[n] for n in log.context}, {n: messages_by_number[n] for n in numbers}
    )


@public
def resume(conversation_id: str, messages: Sequence[JsonObject], *, home: Home = None) -> list[JsonObject]:
    """Return `messages`, the whole of a conversation, with earlier compactions applied.

    For callers that hold the full history and pass all of it each time: the record continues from there. Messages that
    no compaction made are returned as the very objects that were given.

    Raises:
        NotFound: the named home does not exist.
    """
    return list(resume_in(record_directory(home), conversation_id, messages))


def resume_in(record: Path, conversation_id: str, messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return `messages` as `resume` does, for a conversation in the directory `record`; the very list without any."""
    log = load(record, conversation_id)
    numbers = _said_since_cleared(log)
    if not numbers or not history.starts_with(log, numbers, messages):
        return messages
    new_by_number = dict(zip(numbers, messages, strict=False))
    live = zip(log.context, history.context(log), strict=True)
    return [*(new_by_number.get(n, message) for n, message in live), *messages[len(numbers) :]]


@public
def pop_message(conversation_id: str, *, home: Home = None) -> JsonObject | None:
    """Remove the newest live message from the context and return it; None if the context is empty.

    Raises:
        NotFound: the named home does not exist.
    """
    return conversations.pop(record_directory(home), conversation_id, now=now())


@public
def clear_context(conversation_id: str, *, home: Home = None) -> None:
    """Clear the context; the full history stays.

    Raises:
        NotFound: the named home does not exist.
    """
    conversations.clear(record_directory(home), conversation_id, now=now())


@public
def delete_conversation(conversation_id: str, *, for_good: bool = False, home: Home = None) -> list[str]:
    """Delete a conversation, live or archived, and return the paths of its files in `quarantine/`, if it exists.

    With `for_good` these are removed, too. What memory noted of it, snapshots and copies elsewhere stay.

    Raises:
        NotFound: the named home does not exist.
        Conflict: the home is shared, so that the conversation is its colony's; nothing was changed.
        LockTimeout, StorageFailed: a file of it may be left; the same call goes on.
    """
    record = record_directory(home)
    if ledger.is_shared(record):
        raise Conflict(
            "the conversation is in a shared colony, whose other members have it.",
            fix='Leave the colony first ("aether share leave"), or have the owner of the database remove its stream.',
            where=conversation_id,
        )
    before = _quarantined(record)
    if record.name != RECORD_NAME:
        from aether.api.archive import delete_archived

        delete_archived(conversation_id, home=record)
    while lines := load(record, conversation_id, whole=True).lines:
        if conversations.set_aside(record, conversation_id, lines=lines, now=now()):
            break  # else a message was added meanwhile
    deleted = sorted(_quarantined(record) - before)
    for path in deleted if for_good else ():
        with storage_errors(path, left="It is still in quarantine."):
            path.unlink(missing_ok=True)
    return [str(path) for path in deleted]


def _quarantined(record: Path) -> set[Path]:
    return {path for path in (record / "quarantine").rglob("*") if path.is_file()}


def conversation_ids(*, home: Home = None) -> list[str]:
    """Return the ids of the conversations, sorted.

    Raises:
        NotFound: the named home does not exist.
    """
    return sorted(stored.id for stored in conversations.stored_conversations(record_directory(home)))


# Findings about plain messages that conversion to the format of a provider resolves.
_FIXED_BY_CONVERSION = frozenset({"bad-role", "empty-content"})


class CheckedMessages(NamedTuple):
    """Result of a check, or of a repair."""

    provider: ProviderFormat
    wire: ProviderFormat
    """Format of the messages in the file."""
    messages: int
    findings: list[Finding]
    """Reasons to refuse the conversation; after a repair, the remaining ones."""
    converted: list[Finding]
    """Parts that the conversion to the format of the provider could not express."""
    repairs: list[Finding]
    """Repairs that were made; `where` counts the messages before them."""
    others: int
    """Number of further conversations in the file."""
    repaired: bytes
    """The conversation after conversion and repair, as a file; empty without a repair."""


def _in_source(
    findings: Iterable[Finding], source: transcripts.Conversation, converted: transcripts.Conversation
) -> list[Finding]:
    """Return `findings` about the conversation `said`, each with the index in the caller's own list."""
    if source.format == converted.format:
        return list(findings)
    places = source_places(source.messages, converted.messages)
    located = []
    for finding in findings:
        index = re.match(r"messages\[(\d+)\]", finding.where)
        position = places[int(index[1])] if index and int(index[1]) < len(places) else None
        if index and position is not None and position != int(index[1]):
            finding = finding._replace(where=f"messages[{position}] (converted: {finding.where})")  # noqa: PLW2901
        located.append(finding)
    return located


def check_messages(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    provider: ProviderFormat | None = None,
    repair: bool = False,
    nth: int = 0,
) -> CheckedMessages:
    """Return every reason for which `provider` would refuse the conversation in `source`, and with `repair` a repaired one.

    The default is the provider whose format `source` has.

    Raises:
        NotFound: there is no such file, or no such conversation in it.
        InvalidInput: the file holds no conversation, or a plain one and no provider is named.
    """
    loaded = transcripts.load_conversation(source, nth=nth)
    provider = provider or loaded.format
    if provider == "plain":
        raise InvalidInput(
            "the messages are in no provider's format.",
            fix="Name the provider with --for.",
            where=loaded.name,
        )
    checked, converted = convert_conversation(loaded, provider)
    # Conversion resolves some findings about plain messages; the format of another agent is no error.
    is_known_format = loaded.format != "plain" or loaded.origin.kind == "derived"
    if is_known_format or all(is_message(message.raw) for message in loaded.messages):
        hidden = []
    else:
        hidden = [
            finding for finding in check(loaded.messages, "plain") if finding.code in _FIXED_BY_CONVERSION
        ]
    repaired = repair_messages(checked.messages, provider) if repair else None
    repairs = _in_source(repaired.findings if repaired else [], loaded, checked)
    if repaired:
        checked = checked._replace(messages=repaired.messages)
    return CheckedMessages(
        provider,
        loaded.format,
        len(checked.messages),
        [
            *loaded.unread,
            *([] if repair else hidden),
            *_in_source(
                check(checked.messages, provider, system=checked.system, tools=checked.tools), loaded, checked
            ),
        ],
        [*(hidden if repair else []), *converted],
        repairs,
        loaded.others,
        conversation_bytes(checked) if repaired else b"",
    )
