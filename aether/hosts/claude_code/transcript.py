"""The transcript of a running session: the texts between two tool calls, which no hook's payload holds.

A hook gets only the last message of a turn. The end of the file is read, backwards to the start of the turn and no
further than a bound. Claude Code may still be writing the last message: the file is read again until it is there, but
not for long. If the file is torn or missing, less is found, and nothing fails.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

from aether.messages.sources.claude_code import Queue, is_typed, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from aether.messages.records import Record
    from aether.types import JsonObject

# The longest turn seen had 1.7 MB, nearly all of it results of tools, which are skipped unread.
MOST_BYTES = 4 << 20
_BLOCK_BYTES = 1 << 18
# A longer first line is no task.
FIRST_LINE_BYTES = 1 << 20
# Of a longer turn the last texts are kept.
MOST_TEXTS = 200
# How long the last message may lag behind the event, and how often the file is read again until then.
LAG_SECONDS = 0.3
_RETRY_SECONDS = 0.05
_INTERRUPTED = "[Request interrupted"
_QUEUE_MARK = b'"queue-operation"'
_SPEAKER_MARKS = (b'"assistant"', b'"user"', b'"queued_command"', _QUEUE_MARK)
_TYPED_DURING_TURN = "typed meanwhile"
# Opening a pipe would wait for its writer.
_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def interim_texts(path: str, *, message: str = "", agent: bool = False) -> list[JsonObject]:
    """Return the texts of the running turn so far, without its prompt and without the `message` that ends it.

    `agent` means that `path` is a sub-agent's own file. A text that a person typed during the turn is by "user".
    """
    texts = _newest_texts(path, agent=agent)
    if message and os.path.isfile(path):
        until = time.monotonic() + LAG_SECONDS
        while not _ends_with(texts, message) and time.monotonic() < until:
            time.sleep(_RETRY_SECONDS)
            texts = _newest_texts(path, agent=agent)
    last = texts[0].get("id") if texts else None
    while last is not None and texts and texts[0].get("id") == last and texts[0]["text"].strip() in message:
        del texts[0]
    return texts[::-1]


def _ends_with(texts: list[JsonObject], message: str) -> bool:
    """Return whether the newest of `texts` is of the message that ends the turn."""
    return bool(texts) and "id" in texts[0] and texts[0]["text"].strip() in message


def _newest_texts(path: str, *, agent: bool) -> list[JsonObject]:
    """Return the last texts of the running turn, the newest first."""
    texts: list[JsonObject] = []
    for record in _of_the_turn(path, agent=agent):
        about: JsonObject = {"text": record.text, "uuid": record.uuid, "at": record.time}
        about |= {"id": record.message_id} if record.kind == "assistant" else {"by": record.kind}
        texts.append(about | ({"part": record.part} if record.part else {}))
        if len(texts) == MOST_TEXTS:
            break
    return texts


def agent_task(path: str) -> str:
    """Return the task of a sub-agent, which only the first line of its own file holds; else nothing."""
    try:
        with _opened(path) as file:
            message = json.loads(file.readline(FIRST_LINE_BYTES))["message"]
        return (
            str(message["content"])
            if message["role"] == "user" and isinstance(message["content"], str)
            else ""
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""  # it may not be written yet


def _of_the_turn(path: str, *, agent: bool) -> Iterator[Record]:
    """Yield the records of speech in the running turn, the last first, none twice.

    A turn that a person interrupted ended without an event, so its texts belong to the next one.
    """
    at_start, seen = False, set()
    queue = _QueueBackwards()
    try:
        with _opened(path) as file:
            for record in (record for line in _lines(file) for record in reversed(_read(line, queue))):
                if bool(record.agent) != agent or not record.uuid:
                    continue
                if record.kind in {"user", "system"} and record.tool != _TYPED_DURING_TURN:
                    at_start = not record.text.startswith(_INTERRUPTED)
                elif at_start and record.kind in {"assistant", "call"}:
                    return
                elif record.kind in {"assistant", "user"} and (record.uuid, record.part) not in seen:
                    seen.add((record.uuid, record.part))
                    yield record
    except (OSError, ValueError):
        return


class _QueueBackwards:
    """The queue of typed messages, read from its end: a message was handed to the model if its removal follows."""

    def __init__(self) -> None:
        self._ends: list[bool] = []
        self._attached: list[str] = []

    def records(self, line: JsonObject) -> list[Record]:
        """Return the record of the message that `line` puts into the queue, if the model got it by the queue alone."""
        if line.get("operation") != "enqueue":
            self._ends.append(line.get("operation") == "remove")
            return []
        text = line.get("content")
        was_removed = bool(self._ends) and self._ends.pop()
        if not was_removed or not isinstance(text, str) or not is_typed(text):
            return []
        if text in self._attached:
            self._attached.remove(text)
            return []
        # As the reader of whole transcripts has it, which sees the removal last.
        queue = Queue()
        queue.taken(line)
        content, uuid = queue.taken({**line, "operation": "remove"})
        value = {
            "type": "user",
            "uuid": uuid,
            "timestamp": line.get("timestamp"),
            "message": {"content": content},
        }
        return [record._replace(tool=_TYPED_DURING_TURN) for record in records([(0, value)])]

    def attach(self, attached: list[Record]) -> list[Record]:
        """Return the records of an attachment, remembering their texts."""
        self._attached += [record.text for record in attached]
        return [record._replace(tool=_TYPED_DURING_TURN) for record in attached]


def _read(line: bytes, queue: _QueueBackwards) -> list[Record]:
    """Return the records of a line of speech; none of a tool's result.

    A text that a person typed while the assistant was busy ends no turn, and is marked _TYPED_DURING_TURN.
    """
    # Within a text the quotes of these words would be escaped.
    if b'"tool_result"' in line or not any(mark in line for mark in _SPEAKER_MARKS):
        return []
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "attachment":
        return queue.attach(list(records([(0, value)])))
    if kind == "queue-operation":
        return queue.records(value)
    # Of what the program says, only the words that open a turn matter, as a task or a notification does.
    if kind == "user" and not value.get("isMeta"):
        return list(records([(0, value)]))
    speech = records([(0, value)]) if kind == "assistant" else ()
    return [record for record in speech if record.kind != "system"]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines within the last MOST_BYTES of `file`, the last first."""
    offset = file.seek(0, os.SEEK_END)
    end, incomplete = max(0, offset - MOST_BYTES), b""
    while offset > end:
        size = min(_BLOCK_BYTES, offset - end)
        offset = file.seek(offset - size)
        incomplete, *lines = (file.read(size) + incomplete).split(b"\n")
        yield from reversed(lines)
    if offset == 0:
        yield incomplete


def _opened(path: str) -> BinaryIO:
    """Return the transcript at `path`, open to be read.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is no regular file, so that reading might never end.
    """
    if not path.endswith(".jsonl"):
        raise ValueError("no transcript")
    handle = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise ValueError("no file")
