"""Records: the one shape in which every transcript format reaches the rest of aether.

A record is one event of a session: a text of a person or of the assistant, a tool call, its result, a compaction of the
context. Readers drop lines that no model and no person ever saw (mirrors, progress, bookkeeping); memory decides in
`aether.memory.capture.extract` which records to keep.

JSON Lines are read tolerantly. Real transcripts have two objects on one line, one object printed over many lines, a torn
last line, bytes that are not UTF-8. Each readable value is yielded with its line, each other line is reported, and
nothing stops the reading. One line is in memory at a time, or one value that spans lines.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from aether.messages.model import (
    IMAGE,
    NOTHING,
    ProviderFormat,
    as_arguments,
    as_text,
    content_text,
    is_failure_text,
)
from aether.messages.speakers import own_words
from aether.text.regex import lazy
from aether.types import JsonObject

Kind = Literal[
    "user", "assistant", "call", "result", "answer", "refusal", "boundary", "summary", "system", "text", "item"
]  # fmt: skip
# An opening bracket that is never closed must not draw the rest of a large file into memory.
SPANNING_BYTES = 64 * 1024 * 1024
_STRINGS = lazy(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


class Record(NamedTuple):
    """One event of a session, in any transcript format.

    `user` is what a person typed and nothing else: words of other agents, of the harness and of timers are `system`. `answer`
    is a person's answer to a question of the agent: `arguments` holds `question`, `options` and `choice`, `text` the choice in
    the person's words. `refusal` is a call that the person refused, `text` the person's reason, which may be empty.
    """

    kind: Kind
    text: str = ""
    tool: str = ""
    """Name of the tool, of a call and of its result if the format repeats it."""
    arguments: JsonObject = NOTHING
    """Arguments of the call; of an `item` the whole item."""
    call_id: str = ""
    is_error: bool = False
    agent: str = ""
    """Which sub-agent, empty for the main conversation."""
    caste: str = ""
    """Type of the sub-agent, empty for the main conversation."""
    uuid: str = ""
    time: str = ""
    line: int = 0
    part: int = 0
    """Position within the line; `line` and `part` together occur once in a file."""
    message_id: str = ""
    session: str = ""
    directory: str = ""
    """The working directory, if the format has it: relative paths start there."""
    copied: bool = False
    """Whether it is a copy in the transcript of another session; `session` and `agent` are those that it was copied from."""


class BadLine(NamedTuple):
    """A line that could not be read, and the reason; reading goes on after it."""

    line: int
    reason: str


OnBad = Callable[[BadLine], None]


def ignore_bad_line(bad: BadLine) -> None:
    """Ignore a line that could not be read."""


def put_bounded(entries: OrderedDict[Any, Any], key: Hashable, value: Any, *, most: int) -> None:
    """Put `value` under `key`, forgetting the oldest beyond `most`, so that memory stays flat."""
    entries[key] = value
    if len(entries) > most:
        entries.popitem(last=False)


class RawConversation(NamedTuple):
    """One conversation of a log: its messages as a provider has them, and its format; None to be detected."""

    raws: Sequence[Any]
    format: ProviderFormat | None
    system: Any = None


class Part(NamedTuple):
    """One piece of a message; `kind` is `text`, `call` or `result`."""

    kind: str
    text: str = ""
    tool: str = ""
    arguments: JsonObject = NOTHING
    call_id: str = ""
    is_error: bool = False


def parts(content: Any) -> Iterator[tuple[int, Part]]:
    """Yield the texts, calls and results in `content`, each with its position.

    >>> [part.kind for _, part in parts(["hello", 7, {"type": "tool_use", "name": "Bash"}])]
    ['text', 'call']
    """
    blocks = content if isinstance(content, list) else [content]
    for index, block in enumerate(blocks):
        if isinstance(block, str):
            part: Part | None = Part("text", block)
        else:
            part = _part(block) if isinstance(block, dict) else None
        if part and (part.kind != "text" or part.text.strip()):
            yield index, part


def _part(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text" | "input_text" | "output_text" | None:
            return Part("text", as_text(block.get("text")))
        case "tool_use" | "toolCall":
            arguments = as_arguments(block.get("input", block.get("arguments")))
            return Part("call", "", as_text(block.get("name")), arguments, as_text(block.get("id")))
        case "tool_result":
            text = content_text(block.get("content"))
            broken = block.get("is_error")
            is_error = is_failure_text(text) if broken is None else bool(broken)
            return Part("result", text, call_id=as_text(block.get("tool_use_id")), is_error=is_error)
        case "image" | "image_url" | "input_image":
            return Part("text", IMAGE)
        case _:
            return None


def with_part(head: Record, part: Part, speaker: Any) -> Record:
    """Return `head` with the content of `part`; `speaker` is the kind of a plain text."""
    kind: Any = speaker if part.kind == "text" else part.kind
    return head._replace(**part._asdict() | {"kind": kind})


def asked(
    head: Record, content: Iterable[tuple[int, Part]], typed: Collection[str] = (), *, person: bool = True
) -> list[Record]:
    """Return the texts of one message under the role of the user: the words of a person, else those of a program.

    `typed` are the names of elements around a person's words; `person` is whether the fields of the message leave it to one.
    """
    texts = [(index, part.text) for index, part in content if part.kind == "text"]
    texts = [entry for entry in texts if entry[1] != IMAGE] or texts[:1]
    joined = "\n".join(text for _, text in texts)
    words = own_words(joined, typed) if person else ""
    speaker: Kind = "user" if words else "system"
    return [head._replace(kind=speaker, text=words or joined, part=texts[0][0])] if texts else []


def read_json_values(lines: Iterable[bytes], *, on_bad: OnBad = ignore_bad_line) -> Iterator[tuple[int, Any]]:
    r"""Yield each JSON value of `lines` with its line number.

    >>> list(read_json_values([b'{"a": 1}{"b": 2}\n', b"oops\n", b"[\n", b"3]\n"]))
    [(1, {'a': 1}), (1, {'b': 2}), (3, [3])]
    """
    numbered = enumerate(lines, start=1)
    for number, raw in numbered:
        text = decode_line(raw, first=number == 1)
        if not text:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            if "\0" in text:  # a power cut or a full disk filled the file up, and the writer went on after it
                on_bad(BadLine(number, "NUL bytes in the place of text"))
                for piece in filter(None, map(str.strip, text.split("\0"))):
                    yield from _several(number, piece, on_bad)
            elif _depth(text) > 0:
                yield from _spanning(number, text, numbered, on_bad)
            else:
                yield from _several(number, text, on_bad)
        else:
            yield number, value


def decode_line(raw: bytes, *, first: bool = False) -> str:
    """Return the text of a line without its end, and without the byte order mark of a first line."""
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", errors="replace")
    return text.strip(_SPACE)


def _several(number: int, text: str, on_bad: OnBad) -> Iterator[tuple[int, Any]]:
    """Yield the values of a line up to the first error, which is reported."""
    index = 0
    try:
        while index < len(text):
            value, index = _DECODER.raw_decode(text, index)
            yield number, value
            while index < len(text) and text[index] in _SPACE:
                index += 1
    except (ValueError, RecursionError) as reason:
        nested = isinstance(reason, RecursionError)
        on_bad(BadLine(number, "nested too deeply" if nested else f"not JSON: {reason}"))


def _spanning(
    number: int, opening: str, numbered: Iterator[tuple[int, bytes]], on_bad: OnBad
) -> Iterator[tuple[int, Any]]:
    depth, size, lines = _depth(opening), len(opening), [(number, opening)]
    for index, raw in numbered:
        text = decode_line(raw)
        lines.append((index, text))
        depth += _depth(text)
        size += len(text)
        if depth <= 0 or size > SPANNING_BYTES:
            break
    try:
        yield number, json.loads("\n".join(text for _, text in lines))
    except (ValueError, RecursionError):
        # Not one value after all: a torn line, and good lines after it that must not be lost.
        for index, text in lines:
            yield from _several(index, text, on_bad)


def _depth(text: str) -> int:
    """Return how many brackets `text` leaves open; 0 if it is torn inside a string."""
    bare = _STRINGS.sub("", text)
    if '"' in bare:  # torn inside a string, which never spans lines
        return 0
    return bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")


def as_messages(records: Iterable[Record]) -> list[JsonObject]:
    """Return records as OpenAI messages, for logs without messages."""
    raws: list[JsonObject] = []
    for record in records:
        if record.kind == "call":
            function = {
                "name": record.tool,
                "arguments": json.dumps(dict(record.arguments), ensure_ascii=False),
            }
            listed = [{"id": record.call_id, "type": "function", "function": function}]
            raws.append({"role": "assistant", "content": None, "tool_calls": listed})
        elif record.kind in {"result", "answer", "refusal"}:
            raws.append({"role": "tool", "tool_call_id": record.call_id, "content": record.text})
        else:
            role = record.kind if record.kind in {"assistant", "system"} else "user"
            raws.append({"role": role, "content": record.text})
    return raws
