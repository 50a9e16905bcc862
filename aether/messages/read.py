"""Reading: records of a path or a byte stream, in constant memory for formats of lines.

The format is detected from the first values, never from the file's name. Hooks leave out calls with private paths before
they are kept; a transcript has them, and `without_private` leaves them out of its records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from aether import regular
from aether.errors import InvalidInput, require_one_of, shown
from aether.messages.model import as_object, as_text
from aether.messages.records import (
    BadLine,
    OnBad,
    RawConversation,
    Record,
    decode_line,
    ignore_bad_line,
    read_json_values,
)
from aether.messages.sources import (
    ai_sdk,
    amp,
    antigravity,
    chat,
    chatgpt,
    claude_ai,
    claude_code,
    cline,
    codex,
    continue_dev,
    copilot_cli,
    cursor,
    gemini_contents,
    goose,
    langchain_messages,
    markdown,
    memories,
    memory_notes,
    opencode,
    openhands,
    openhands_sdk,
    qwen_code,
    responses_items,
    sharegpt,
    vscode_chat,
)
from aether.messages.sources.reader import as_conversations
from aether.messages.unpack import unpacked
from aether.redact.redact import is_private
from aether.text.regex import lazy

# Text that starts like this is meant as JSON; a Markdown link or a checkbox is not.
_JSON_START = lazy(r'\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]\d-]|$))')
# JSON that says nothing.
_SCALAR = lazy(r"(?:null|true|false|-?\d[\d.eE+-]*+|[\[\],\s]++)++")
# Files open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
# Text has no NUL; binary data has one early.
_HEAD_LINES = 64
# Suffixes of text that a person may have written as notes; other text is imported only if it is named as such.
NOTES = frozenset({".md", ".markdown", ".rst", ".txt"})
# A longer line is no message: what is read of it would take several times as much memory.
MOST_LINE_BYTES = 256 << 20


class _Source(NamedTuple):
    """A format of JSON: whether a value is of it, and what its values hold."""

    holds: Callable[[Any], bool]
    records: Callable[..., Iterator[Record]]
    conversations: Callable[[Iterable[tuple[int, Any]]], list[RawConversation]] | None
    """None if its messages are in the file as a provider has them."""


def _row(module: Any) -> _Source:
    """Return the row of a format that no provider has: its module has `holds` and `records`."""
    return _Source(module.holds, module.records, as_conversations(module.records))


# The first that holds a value reads the file: formats with marks of their own come before those that many programs share.
SOURCES: dict[str, _Source] = {
    "codex": _Source(codex.is_line, lambda values, **_: codex.records(values), codex.conversations),
    "antigravity": _Source(antigravity.is_step, lambda values, **_: antigravity.records(values), antigravity.conversations),
    "qwen_code": _row(qwen_code),
    "copilot_cli": _row(copilot_cli),
    "claude_code": _Source(claude_code.is_line, lambda values, caste="", **_: claude_code.records(values, caste=caste), claude_code.conversations),
    "openhands": _Source(lambda value: bool(openhands.events_of(value)), lambda values, **_: openhands.records(values), openhands.conversations),
    "openhands_sdk": _row(openhands_sdk),
    "cline": _Source(cline.is_history, lambda values, **_: cline.records(values), None),
    "chatgpt": _row(chatgpt),
    "claude_ai": _row(claude_ai),
    "opencode": _row(opencode),
    "vscode_chat": _row(vscode_chat),
    "cursor": _row(cursor),
    "sharegpt": _row(sharegpt),
    "ai_sdk": _row(ai_sdk),
    "langchain": _row(langchain_messages),
    "goose": _row(goose),
    "amp": _row(amp),
    "continue": _row(continue_dev),
    "gemini": _row(gemini_contents),
    "memories": _row(memories),
    "responses": _Source(responses_items.holds, responses_items.records, responses_items.conversations),
    "chat": _Source(chat.holds, lambda values, on_bad=ignore_bad_line, **_: chat.records(values, on_bad=on_bad), None),
    "items": _Source(chat.holds_items, lambda values, on_bad=ignore_bad_line, **_: chat.item_records(values, on_bad=on_bad), lambda _: []),
}  # fmt: skip
# Keys by which a file that is of no format may be near to one.
_KEYS: dict[str, frozenset[str]] = {
    name: frozenset(keys.split())
    for name, keys in {
        "chat": "role content", "claude_code": "type message uuid sessionId", "codex": "type payload timestamp",
        "chatgpt": "mapping current_node", "claude_ai": "chat_messages uuid", "opencode": "info parts",
        "vscode_chat": "requests responderUsername", "copilot_cli": "type data timestamp", "sharegpt": "conversations",
        "ai_sdk": "role parts", "langchain": "type data", "goose": "role created content", "amp": "id messages",
        "continue": "history sessionId", "responses": "type call_id", "openhands": "action observation source",
        "openhands_sdk": "kind source", "items": "content type relevance_score", "memories": "id memory",
    }.items()
}  # fmt: skip
# Formats of text: whether the first lines of a file are of it, and its records.
_TEXTS: dict[str, tuple[Callable[[Sequence[bytes]], bool], Callable[[Iterable[bytes]], Iterator[Record]]]] = {
    "markdown": (markdown.is_history, markdown.records),
    "memory_notes": (memory_notes.is_notes, memory_notes.records),
    "cursor_text": (cursor.is_text, cursor.text_records),
    "plain": (lambda _: True, chat.paragraph_records),
}


def formats() -> list[str]:
    """Return the names of all formats, of JSON and of text."""
    return [*SOURCES, *_TEXTS]


def looks_like_json(text: str) -> bool:
    """Return whether a text that starts like this is meant as JSON.

    >>> looks_like_json('{"type": 1}'), looks_like_json("[a link](x.md)"), looks_like_json("- [ ] to do")
    (True, False, False)
    """
    return bool(_JSON_START.match(text))


def detect_file_format(values: Sequence[Any], *, where: str = "input") -> str:
    """Return the format of a file from its first JSON `values`.

    Raises:
        InvalidInput: none of them is of a known format.

    >>> detect_file_format([{"role": "user", "content": "Build it."}])
    'chat'
    """
    for name, source in SOURCES.items():
        if any(map(source.holds, values)):
            return name
    entries = chain.from_iterable(value if isinstance(value, list) else [value] for value in values)
    if typed := next(filter(chat.is_typed_log, entries), None):
        what = f"it is a log, not a list of items: {shown(typed['type'])} is not a type of item."
        raise unknown_format(what, where=where)
    first = shown(values[0]) if values else "no readable JSON"
    raise unknown_format(f"it starts with {first}.{_nearest(values)}", where=where)


def _nearest(values: Sequence[Any]) -> str:
    """Return the format of which a value has some marks, as a sentence; empty if it has none."""
    first = values[0][0] if values and isinstance(values[0], list) and values[0] else next(iter(values), None)
    keys = set(as_object(first))
    shares = {name: len(keys & marks) / len(marks) for name, marks in _KEYS.items()}
    name = max(shares, key=lambda name: shares[name])
    lacking = ", ".join(sorted(_KEYS[name] - keys))
    return f" It is nearest to {name}, and lacks {lacking}." if shares[name] else ""


def unknown_format(what: str, *, where: str) -> InvalidInput:
    """Return the error of an unknown format, which names the known ones."""
    fix = f"Known formats are {', '.join(formats())}; force one with --format."
    return InvalidInput(f"no known format: {what}", fix=fix, where=where)


def read_records(
    source: str | os.PathLike[str] | IO[bytes], *, format: str | None = None, on_bad: OnBad = ignore_bad_line
) -> Iterator[Record]:
    """Yield the records of a file or byte stream of any known format.

    Lines that cannot be read are passed to `on_bad` and skipped. The file is open while its records are read.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the format is unknown.
    """
    require_format(format)
    return _records(source, format, on_bad)


def require_format(format: str | None) -> None:
    """Reject a format that is not known; None is detected.

    Raises:
        InvalidInput: it is unknown.
    """
    if format is not None:
        require_one_of(format, formats(), "a format", where="--format")


def _records(
    source: str | os.PathLike[str] | IO[bytes], forced: str | None, on_bad: OnBad
) -> Iterator[Record]:
    with ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            packed: IO[bytes] = stack.enter_context(regular.named(path))
            where, caste = path.name, _caste(path)
        else:
            packed, where, caste = source, "input", ""
        stream = stack.enter_context(unpacked(packed, where))
        start = stream.tell()
        head = list(islice(_bounded(stream, where), _HEAD_LINES))
        # A log of JSON that a power cut padded with NUL loses that line only.
        is_log = forced != "plain" and looks_like_json(decode_line(b"".join(head[:1]), first=True))
        if not is_log and any(b"\0" in line for line in head):
            raise InvalidInput(
                "it is binary data, not text.", fix="Unpack it, or write it as UTF-8.", where=where
            )
        if forced is None and _is_plain(head, where):
            forced = next(name for name, (is_of_it, _) in _TEXTS.items() if is_of_it(head))
            if forced == "plain" and head and isinstance(source, (str, os.PathLike)):
                _require_notes(Path(source))
        if text_reader := next((text[1] for name, text in _TEXTS.items() if name == forced), None):
            yield from text_reader(chain(head, _bounded(stream, where)))
            return
        values = _Values(stream, start, on_bad, where)
        if forced is None:
            opening = [value for _, value in islice(values, _HEAD_VALUES)]
            if values.bad and not opening:
                what = f"it is broken JSON, at line {values.bad[0].line}: {values.bad[0].reason}."
                raise InvalidInput(what, fix="Complete or correct the file.", where=where)
            forced = detect_file_format(opening, where=where)
        yield from records_of_values(forced, values, on_bad=on_bad, caste=caste)


class _Values:
    """The JSON values of a stream, read again by each iteration; a bad line is reported once."""

    def __init__(self, stream: IO[bytes], start: int, on_bad: OnBad, where: str) -> None:
        self._stream, self._start, self._on_bad, self._where = stream, start, on_bad, where
        self._seen = 0
        self.bad: list[BadLine] = []
        """The first bad line."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        self._stream.seek(self._start)
        return read_json_values(_bounded(self._stream, self._where), on_bad=self._report)

    def _report(self, bad: BadLine) -> None:
        if bad.line > self._seen:
            self._seen = bad.line
            self.bad[1:] = [] if self.bad else [bad]
            self._on_bad(bad)


def _bounded(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """Yield the lines of a stream.

    Raises:
        InvalidInput: one is too long to be read whole.
    """
    for number in count(1):
        line = stream.readline(MOST_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MOST_LINE_BYTES:
            what = f"line {number} has more than {MOST_LINE_BYTES >> 20} MB."
            raise InvalidInput(what, fix="Split it: one conversation or message on a line.", where=where)
        yield line


def records_of_values(
    name_: str, values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, caste: str = ""
) -> Iterator[Record]:
    """Return the records in JSON values of a known format; they are iterated twice."""
    source = next(source for name, source in SOURCES.items() if name == name_)
    return source.records(values, on_bad=on_bad, caste=caste)


def _is_plain(head: list[bytes], where: str) -> bool:
    texts = list(filter(None, (decode_line(line, first=index == 0) for index, line in enumerate(head))))
    if texts and all(map(_SCALAR.fullmatch, texts)):
        raise unknown_format(f"it starts with {shown(texts[0])}.", where=where)
    return not looks_like_json(next(iter(texts), ""))


def _require_notes(path: Path) -> None:
    """Reject text that is no transcript and whose name does not say that it is notes.

    Raises:
        InvalidInput: it is such text.
    """
    if NOTES.isdisjoint(suffix.lower() for suffix in path.suffixes):
        what = f"it is text, and neither a conversation nor notes ({', '.join(sorted(NOTES))})."
        raise InvalidInput(what, fix="To import it as notes: --format plain.", where=path.name)


def _caste(path: Path) -> str:
    """Return the type of the sub-agent whose transcript `path` is, from the file beside it."""
    if not path.name.startswith("agent-"):
        return ""
    try:
        meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    except (OSError, ValueError):
        return "agent"
    return as_text(as_object(meta).get("agentType")) or "agent"


def without_private(records: Iterable[Record], patterns: str, *, directory: str = "") -> Iterator[Record]:
    """Yield `records` without the calls that name a path matched by `patterns`, and without their results.

    Relative paths start at the directory of the call, else at `directory`.

    >>> calls = [Record("call", arguments={"path": path}, call_id=path) for path in (".env", "a.py")]
    >>> [record.call_id for record in without_private(calls, ".env*", directory="/app")]
    ['a.py']
    """
    private: set[str] = set()
    for record in records:
        if record.kind == "call":
            private.discard(record.call_id)  # an id may be used again
            if is_private(record.arguments, patterns, record.directory or directory):
                private.add(record.call_id)
                continue
        elif record.kind in {"result", "answer", "refusal"} and record.call_id in private:
            continue
        yield record
