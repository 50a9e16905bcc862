"""Plain text and Markdown: one record per paragraph, list or fenced block.

A heading is kept with what stands below it. A paragraph longer than a page is cut at a line end, so
that nothing is lost and nothing large is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from aether.messages.record import Record
from aether.text.patterns import lazy

# About a printed page.
PARAGRAPH_CHARS = 4_000
_FENCE = lazy(r"\s*(```|~~~)")
_HEADING = lazy(r"#{1,6}\s")


def records(lines: Iterable[bytes]) -> Iterator[Record]:
    r"""Yield one record per paragraph.

    >>> [record.text for record in records([b"# Plan\n", b"\n", b"Use SQLite.\n", b"\n", b"Ship.\n"])]
    ['# Plan\n\nUse SQLite.', 'Ship.']
    """
    session = ""
    for start, text in _paragraphs(lines):
        session = session or sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        yield Record("text", text=text, line=start, session=session, format="plain")


def _paragraphs(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    held: list[str] = []
    start = size = 0
    fenced = False
    for number, raw in enumerate(lines, start=1):
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if number == 1:
            text = text.removeprefix("\ufeff")
        fenced ^= bool(_FENCE.match(text))
        blank = not text.strip() and not fenced
        if (blank and not _only_heading(held)) or size + len(text) > PARAGRAPH_CHARS:
            yield from _finished(start, held)
            held, size = [], 0
        if not held:
            start = number
        if text.strip() or held:
            held.append(text)
            size += len(text) + 1
    yield from _finished(start, held)


def _finished(start: int, held: list[str]) -> Iterator[tuple[int, str]]:
    text = "\n".join(held).strip("\n")
    if text.strip():
        yield start, text


def _only_heading(held: list[str]) -> bool:
    return all(not text.strip() or _HEADING.match(text) for text in held)
