"""JSON as text: change one place of a file that people edit by hand, and leave every other byte as it is.

An addition follows the style of the file: its indentation, its line ends, one line if all is on one line. Dropping it
restores the previous text. Strict JSON only; `at` is a path of keys and indexes, such as `("hooks", "Stop", 0)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Path = Sequence[str | int]

INDENT = "  "
# Deeper text may exceed Python's recursion limit, which other code of the process may change.
MOST_DEPTH = 100
_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()


class Span(NamedTuple):
    """The place of a value in the text; `parts` are the places of its members, each with its key."""

    start: int
    end: int
    keys: list[str | int]
    parts: list[Span]
    value: Span | None = None
    """Of a member: the place of its value."""


def parse(text: str) -> Any:
    """Return the value of `text`.

    Raises:
        ValueError: it is not strict JSON; comments, trailing commas and NaN are refused.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as reason:
        raise ValueError("nested too deeply") from reason
    depth = index = 0
    while index < len(text):
        if text[index] == '"':
            index = _DECODER.raw_decode(text, index)[1]
            continue
        depth += (text[index] in "[{") - (text[index] in "]}")
        if depth > MOST_DEPTH:
            raise ValueError("nested too deeply")
        index += 1
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def put(text: str, at: Path, value: Any) -> str:
    """Return `text` with `value` in place of the value at `at`.

    >>> put('{"a": 1, "b": 2}', ["a"], None)
    '{"a": null, "b": 2}'
    """
    span = _find(text, at)
    return text[: span.start] + _shown(text, value, _indent_of(text, span.start)) + text[span.end :]


def add(text: str, at: Path, entries: Iterable[tuple[str | None, Any]]) -> str:
    """Return `text` with `entries` appended to the object or list at `at`; those of a list have no keys.

    >>> add('{"a": 1}', [], [("b", [2])])
    '{"a": 1, "b": [2]}'
    """
    span = _find(text, at)
    if not span.parts:
        return _filled(text, span, entries)
    last = span.parts[-1]
    before = text[: last.start]
    margin = len(before.rstrip(" \t"))
    own_line = before[:margin].endswith("\n")
    indent = before[margin:] if own_line else ""
    gap = f"{_line_end(text)}{indent}" if own_line else " "
    added = [f",{gap}{_entry(text, key, value, indent)}" for key, value in entries]
    return text[: last.end] + "".join(added) + text[last.end :]


def _filled(text: str, span: Span, entries: Iterable[tuple[str | None, Any]]) -> str:
    opened, closed = text[span.start], text[span.end - 1]
    outer = _indent_of(text, span.start)
    inner = outer + _unit(text)
    members = [_entry(text, key, value, inner) for key, value in entries]
    if _on_lines(text):
        end = _line_end(text)
        body = f",{end}{inner}".join(members)
        filled = f"{opened}{end}{inner}{body}{end}{outer}{closed}"
    else:
        filled = opened + ", ".join(members) + closed
    return text[: span.start] + filled + text[span.end :]


def drop(text: str, at: Path, index: int) -> str:
    """Return `text` without the part number `index` of the object or list at `at`.

    >>> drop('{"a": 1, "b": 2}', [], 0)
    '{"b": 2}'
    """
    span = _find(text, at)
    parts = span.parts
    if len(parts) == 1:
        start, end = span.start + 1, span.end - 1
    elif index == len(parts) - 1:
        start, end = parts[index - 1].end, parts[index].end
    else:
        start, end = parts[index].start, parts[index + 1].start
    return text[:start] + text[end:]


def drop_key(text: str, at: Path, key: str) -> str:
    """Return `text` without the member `key`, which exists, of the object at `at`."""
    return drop(text, at, _last(_find(text, at).keys, key))


def _entry(text: str, key: str | None, value: Any, indent: str) -> str:
    name = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    return name + _shown(text, value, indent)


def _shown(text: str, value: Any, indent: str) -> str:
    if not _on_lines(text):
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return f"{_line_end(text)}{indent}".join(lines)


def _on_lines(text: str) -> bool:
    return "\n" in text.strip() or len(text.strip()) <= len("{}")


def _line_end(text: str) -> str:
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


def _unit(text: str) -> str:
    indented = re.search(r"\A\s*?([ \t]*)[{\[][ \t]*\r?\n\1([ \t]+)", text)
    return indented[2] if indented else INDENT


def _indent_of(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find(text: str, path: Path) -> Span:
    span = _span(text, _after_space(text, 0))
    for key in path:
        member = span.parts[_last(span.keys, key)]
        span = member.value or member
    return span


def _last(keys: list[str | int], key: str | int) -> int:
    # Of two equal keys, every reader uses the last.
    return len(keys) - 1 - keys[::-1].index(key)


def _after_space(text: str, position: int) -> int:
    while text[position] in _BLANKS:
        position += 1
    return position


def _span(text: str, start: int) -> Span:
    if text[start] in "{[":
        return _container(text, start)
    return Span(start, _DECODER.raw_decode(text, start)[1], [], [])


def _container(text: str, start: int) -> Span:
    keys: list[str | int] = []
    parts: list[Span] = []
    index = _after_space(text, start + 1)
    while text[index] not in "}]":
        part = _span(text, index)
        if text[start] == "{":
            keys.append(json.loads(text[part.start : part.end]))
            value = _span(text, _after_space(text, _after_space(text, part.end) + 1))
            part = Span(part.start, value.end, [], [], value)
        else:
            keys.append(len(keys))
        parts.append(part)
        index = _after_space(text, part.end)
        if text[index] == ",":
            index = _after_space(text, index + 1)
    return Span(start, index + 1, keys, parts)
