"""Elements: the outermost `<name …>…</name>` of a text, and the free text around them.

Programs wrap what they add to a conversation in elements. Those in code that a text shows are part of the text, and so is
HTML within a line. An element ends at the last tag that can close it, so that no text leaves its wrapper by closing it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aether.text.regex import lazy

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator

# Elements of programs with names as HTML or prose could have them.
_PROGRAMS = frozenset(
    "skill image channel instructions permissions heartbeat hook notification event context reminder tick".split()
)
# Attributes that name who sent a message.
_SENDERS = ("from", "sender", "teammate", "agent", "peer")
_TAG = lazy(
    r"""<(?P<end>/)?(?P<name>[^\W\d][\w.:-]*+)(?P<about>(?:\s(?:"[^"\n]*+"|'[^'\n]*+'|[^<>"'])*+)?)/?>|<[?!][^<>]*>"""
)
_FENCE = lazy(r"^[ \t]*(```+|~~~+)", re.MULTILINE)
# Characters around a tag that show whether it is alone on its line.
_NEAR = 80
_LINE_STARTS = ("", "\n", ">")


class Piece(NamedTuple):
    """A stretch of a text; `name` is that of the element it is, empty for free text."""

    text: str
    name: str = ""
    inner: str = ""
    is_sent: bool = False
    """Whether the element names its sender."""


def is_program(name: str) -> bool:
    """Return whether the `name` of an element is like those of programs, and not like those of HTML.

    >>> is_program("agent-message"), is_program("p")
    (True, False)
    """
    return name.lower() in _PROGRAMS or "-" in name or "_" in name


def pieces_of(text: str) -> Iterator[Piece]:
    """Yield the free text and the outermost elements of `text`, in order; together they are the whole of it."""
    tags = [*_TAG.finditer(text)]
    closings = _ends(tags)
    start = covered = 0
    for index, tag in enumerate(tags):
        if tag.start() < covered:
            continue
        covered = max(_code_end(text, covered, tag.start()), tag.start())
        if tag.start() < covered or not (end := _end_of(text, tag, closings.get(index))):
            continue
        if start < tag.start():
            yield Piece(text[start : tag.start()])
        inner = text[tag.end() : max(tag.end(), end[0])]
        yield Piece(text[tag.start() : end[1]], tag["name"] or "!", inner, _is_sent(tag))
        start = covered = end[1]
    if start < len(text):
        yield Piece(text[start:])


def _ends(tags: list[re.Match[str]]) -> dict[int, re.Match[str]]:
    """Return the tag that closes each element, by the position of its opening.

    A text that closes its own wrapper, or opens it again, does not leave it: one closing tag too many ends the first element
    of its name, and one that is missing is found in the last.
    """
    closings: dict[int, re.Match[str]] = {}
    opened: dict[str, list[int]] = {}
    first: dict[str, int] = {}
    last: dict[str, re.Match[str]] = {}
    for index, tag in enumerate(tags):
        name, waiting = tag["name"] or "", opened.setdefault(tag["name"] or "", [])
        if not tag["end"]:
            waiting.append(index)
            continue
        last[name] = tag
        if waiting:
            closings[waiting[-1]] = tag
            first[name] = min(waiting[-1], first.get(name, index))
            waiting.pop()
        elif name in first:
            closings[first[name]] = tag
    for name, waiting in opened.items():
        if waiting and name in last and _before(tags[waiting[0]]) in _LINE_STARTS:
            closings[waiting[0]] = last[name]
    return {index: tag for index, tag in closings.items() if tag.start() > tags[index].start()}


def _end_of(text: str, tag: re.Match[str], closing: re.Match[str] | None) -> tuple[int, int] | None:
    """Return where the content of the element that `tag` opens ends, and where it ends itself; None if it is only mentioned.

    One of a program that is never closed is torn and has all that follows. HTML within a line is a person's.
    """
    end = closing.end() if closing else tag.end()
    before = _before(tag)
    after = text[end : end + _NEAR].lstrip(" \t\r")
    is_block = before in _LINE_STARTS and after[:1] in ("", "\n", "<")
    by_program = not tag["name"] or is_program(tag["name"]) or _is_sent(tag)
    if closing:
        return (closing.start(), end) if is_block or (by_program and before != "`") else None
    if not tag["name"] or tag["end"] or tag[0].endswith("/>"):
        return (end, end) if is_block else None
    return (len(text), len(text)) if is_block and by_program else None


def _before(tag: re.Match[str]) -> str:
    """Return the last character before `tag`, without blanks."""
    return tag.string[max(0, tag.start() - _NEAR) : tag.start()].rstrip(" \t")[-1:]


def _code_end(text: str, start: int, end: int) -> int:
    """Return where the last block of code ends that opens between `start` and `end`; `start` without one."""
    while fence := _FENCE.search(text, start, end):
        closing = re.compile(rf"^[ \t]*{re.escape(fence[1])}", re.MULTILINE).search(text, fence.end())
        start = closing.end() if closing else fence.end()
    return start


def _is_sent(tag: re.Match[str]) -> bool:
    about = (tag["about"] or "").lower()
    return any(f"{word}=" in about or f"{word}_id=" in about for word in _SENDERS)
