"""Records: the one shape in which every transcript format reaches the rest of aether.

A record is one thing that happened: a person said something, the assistant did, a tool was called, it
answered, the context was compacted. Readers drop what no model and no person ever saw (mirrors,
progress, bookkeeping); what is worth remembering is decided in `aether.memory.capture`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from aether.shapes import JsonObject

Kind = Literal["user", "assistant", "call", "result", "boundary", "summary", "system", "text", "item"]
Format = Literal["claude_code", "codex", "chat", "openhands", "items", "plain"]
FORMATS: tuple[Format, ...] = get_args(Format)

_NOTHING: Any = MappingProxyType({})


class Record(NamedTuple):
    """One thing that happened, wherever it was written down."""

    kind: Kind
    text: str = ""
    tool: str = ""
    """Name of the tool, of a call and of its result where the format repeats it."""
    arguments: JsonObject = _NOTHING
    """What the tool was called with; of an `item` the whole item."""
    call_id: str = ""
    is_error: bool = False
    agent: str = ""
    """Which sub-agent, empty for the main conversation."""
    caste: str = ""
    """What kind of sub-agent, empty for the main conversation."""
    uuid: str = ""
    time: str = ""
    line: int = 0
    part: int = 0
    """Position within the line; `line` and `part` together occur once in a file."""
    message_id: str = ""
    session: str = ""
    directory: str = ""
    """Where it happened, where the format tells: what relative paths are seen from."""
    format: Format = "plain"


class BadLine(NamedTuple):
    """A line that could not be read, and why; reading went on after it."""

    line: int
    reason: str


OnBad = Callable[[BadLine], None]


def ignore(bad: BadLine) -> None:
    """Take note of nothing."""


def remember(known: OrderedDict[Any, Any], key: Hashable, value: Any, *, most: int) -> None:
    """Put `value` under `key`, forgetting the oldest beyond `most`, so that memory stays flat."""
    known[key] = value
    if len(known) > most:
        known.popitem(last=False)
