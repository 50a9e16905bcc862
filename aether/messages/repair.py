"""Repair: a conversation that a provider refuses, mended as far as can be without inventing anything.

Afterwards `check` finds no error, unless nothing is left at all. Text of users and of the assistant is never
lost; results go back to their calls; results without a call, calls that were never answered and blocks that
nobody can send are dropped, each with a finding of level `warning`. Mending twice is mending once, and what
was valid comes back as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aether.messages import formats
from aether.messages.message import Message, Wire
from aether.messages.repairs import anthropic, gemini, openai, plain, responses
from aether.messages.repairs.notes import Mended
from aether.shapes import Finding, JsonObject

_MENDERS: dict[Wire, Callable[[Sequence[JsonObject]], Mended]] = {
    "anthropic": anthropic.mended,
    "openai": openai.mended,
    "responses": responses.mended,
    "gemini": gemini.mended,
    "plain": plain.mended,
}


class Repaired(NamedTuple):
    """Messages that a provider takes, and what was done to them; `where` is where it was before."""

    messages: list[Message]
    findings: list[Finding]


def repair(messages: Sequence[Message], wire: Wire) -> Repaired:
    """Return `messages`, all spelt in `wire`, as its provider takes them.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> mended = repair(formats.read([{"role": "user", "content": "Go."}, orphan], "openai"), "openai")
    >>> [message.text for message in mended.messages], [found.code for found in mended.findings]
    (['Go.'], ['orphan-result'])
    """
    mended = _MENDERS[wire]([message.raw for message in messages])
    if len(mended.raws) == len(messages) and all(
        raw is message.raw for raw, message in zip(mended.raws, messages, strict=True)
    ):
        return Repaired(list(messages), mended.findings)
    return Repaired(formats.read(mended.raws, wire), mended.findings)
