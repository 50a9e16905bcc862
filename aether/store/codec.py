"""Codec: one canonical form of JSON, exact in both directions.

UTF-8, no NaN, two-space indent for documents, one line for the journal. orjson writes whole documents
(the standard encoder is sixty times slower with an indent), the standard library writes what orjson
refuses (lone surrogates, numbers beyond 64 bits) and reads everything, because orjson turns large
integers into floats without a word. A test holds both to the same bytes, but for the exponents of floats
(`1e16`, `1e+16`).
"""

from __future__ import annotations

import json
import math
from typing import Any

from aether.errors import CorruptDocument, InvalidInput, shown

# Deeper than any note, shallower than every codec's own limit (orjson 254, the standard library about 1000).
MAX_DEPTH = 100
# Below this the standard encoder takes under 3 ms, less than importing orjson does.
SMALL_CHARS = 20_000
# Python reads and writes whole numbers of at most 4300 digits, which is 14,280 bits.
MAX_NUMBER_BITS = 14_000


def line(value: Any) -> bytes:
    """Return `value` as one line of JSON, without the newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: escaped, it comes back as it was
        return _escaped(value, indent=None)


def _escaped(value: Any, *, indent: int | None) -> bytes:
    text = json.dumps(value, indent=indent, separators=None if indent else (",", ":"), allow_nan=False)
    if json.loads(text) != value:
        raise InvalidInput(
            "it holds the two halves of a surrogate pair as two characters, which JSON cannot tell from one.",
            fix="Join them: text.encode('utf-16', 'surrogatepass').decode('utf-16').",
            where="text",
        )
    return text.encode()


def document(value: Any, *, size: int = SMALL_CHARS) -> bytes:
    """Return `value` as an indented document that ends in a newline; `size` guesses its length."""
    if size >= SMALL_CHARS:
        import orjson

        try:
            return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        except (orjson.JSONEncodeError, RecursionError):
            pass
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _escaped(value, indent=2) + b"\n"


def parse(data: bytes | str, *, where: str) -> Any:
    """Return the value of JSON `data`.

    Raises:
        CorruptDocument: it is not JSON, not UTF-8, nested too deeply, or holds NaN or Infinity.
    """
    try:
        return json.loads(data, parse_constant=_not_json)
    except json.JSONDecodeError as reason:
        raise _corrupt(f"not JSON (line {reason.lineno}, column {reason.colno}).", where) from reason
    except (UnicodeDecodeError, RecursionError, ValueError) as reason:
        raise _corrupt(f"not JSON ({reason}).", where) from reason


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _corrupt(what: str, where: str) -> CorruptDocument:
    return CorruptDocument(what, fix='Run "aether doctor" to see what can be restored.', where=where)


def checked(value: Any, *, where: str, above: int = 0) -> Any:
    """Return `value` unchanged if it is JSON that every reader gives back exactly.

    `above` counts the levels that it will stand below.

    Raises:
        InvalidInput: it holds NaN, Infinity, a key that is not text, a Python object, a number of thousands
            of digits, or more than `MAX_DEPTH` levels.
    """
    level = [value]
    for _ in range(MAX_DEPTH - above):
        below: list[Any] = []
        for entry in level:
            _check_one(entry, where, below)
        if not below:
            return value
        level = below
    raise InvalidInput(
        f"nested more than {MAX_DEPTH} levels deep.", fix="Store it as text, or flatten it.", where=where
    )


def _check_one(entry: Any, where: str, below: list[Any]) -> None:
    kind = type(entry)
    if kind is dict:
        for key in entry:
            if type(key) is not str:
                raise InvalidInput(f"{shown(key)} is not a text key.", fix="Use text keys.", where=where)
        below.extend(entry.values())
    elif kind is list:
        below.extend(entry)
    elif kind is float and not math.isfinite(entry):
        raise InvalidInput(f"{entry} is not JSON.", fix="Use a finite number or null.", where=where)
    elif kind is int and entry.bit_length() > MAX_NUMBER_BITS:
        raise InvalidInput(
            f"a number of {entry.bit_length()} bits cannot be read back.",
            fix="Store it as text.",
            where=where,
        )
    elif entry is not None and kind not in (str, int, float, bool):
        raise InvalidInput(
            f"{shown(entry)} is not JSON.", fix="Use text, numbers, lists, objects.", where=where
        )
