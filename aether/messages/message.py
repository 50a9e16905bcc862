"""Messages: one role-tagged entry of a conversation, read once and kept exactly as it came.

A message holds the dict it was read from (`raw`) and what that dict says (`blocks`). Whoever sends it on
to the same kind of provider sends `raw`, so unknown fields and block types survive untouched. A block says
where in `raw` its text stands, so that a step that shortens it changes that text and nothing else.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from aether.shapes import JsonObject

Wire = Literal["anthropic", "openai", "responses", "gemini", "plain"]
"""How a provider spells messages: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses items, Gemini
contents, and `{role, content, meta?}` of nobody in particular."""
WIRES: tuple[Wire, ...] = get_args(Wire)
Role = Literal["system", "user", "assistant", "tool"]
BlockKind = Literal["text", "call", "result", "reasoning", "media", "other"]

_NOTHING: Any = MappingProxyType({})


class Block(NamedTuple):
    """One thing that a message says, calls, receives, thinks or shows."""

    kind: BlockKind
    text: str = ""
    """What a model reads of it: of a call its arguments as JSON text, of a result what the tool answered, of media
    and unknown blocks nothing or their JSON."""
    at: tuple[str | int, ...] = ()
    """Keys that lead from `raw` to where that text stands, of media to their block; empty where it cannot be rewritten."""
    call_id: str = ""
    """Of a call and its result; where a format has no ids, one made of name and order."""
    tool: str = ""
    arguments: JsonObject = _NOTHING
    is_error: bool = False


class Message(NamedTuple):
    """One entry of a conversation."""

    role: Role
    """`system` for developers too; `tool` where nothing but results stands in it."""
    blocks: tuple[Block, ...]
    raw: JsonObject
    wire: Wire

    @property
    def text(self) -> str:
        """Return what its text blocks say, joined by newlines."""
        return "\n".join(block.text for block in self.blocks if block.kind == "text")
