"""Layout: how a JSON text was printed, so that a changed one is printed alike."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_INDENTED = re.compile(rb"\s*[\[{]\r?\n(\t| +)")
_SPACED = re.compile(rb'"(?:[^"\\]|\\.)*":( ?)')


class Layout(NamedTuple):
    """What `json.dumps` needs to print like the source."""

    indent: int | str | None = None
    spaced: bool = True
    """A space after each colon and comma."""
    ascii: bool = False
    end: str = ""


def layout_of(source: bytes) -> Layout:
    r"""Return the layout of a JSON text, told from how it opens.

    >>> layout_of(b'{\n  "a": 1\n}\n')
    Layout(indent=2, spaced=True, ascii=False, end='\n')
    >>> layout_of(b'[{"a":1,"b":2}]').spaced
    False
    """
    opening = _INDENTED.match(source)
    blank = opening[1] if opening else b""
    indent = "\t" if blank == b"\t" else len(blank)
    key = _SPACED.search(source)
    return Layout(
        indent or None,
        spaced=not key or bool(key[1]),
        ascii=source.isascii() and b"\\u" in source,
        end="\n" if source.endswith(b"\n") else "",
    )


def dumps(value: Any, layout: Layout) -> bytes:
    r"""Return `value` printed so; text that is no Unicode, a lone surrogate, is escaped.

    >>> dumps({"a": ["é", 1]}, Layout())
    b'{"a": ["\xc3\xa9", 1]}'
    """
    comma = ", " if layout.spaced and layout.indent is None else ","
    separators = (comma, ": " if layout.spaced else ":")
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.indent, separators=separators)
    try:
        return (text + layout.end).encode()
    except UnicodeEncodeError:
        return dumps(value, layout._replace(ascii=True))
