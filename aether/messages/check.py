"""Check: whether a provider would take a conversation as it stands, and if not, every reason why.

A finding of level `error` is what the provider answers with a 400; `warning` what some of its models, or
servers that speak its protocol, refuse. Codes are stable words. Calls of the last response that nothing but
some of their results follows are `dangling-call`, a warning: to send them is an error, but whoever holds them
is about to run them. Mending is done in `aether.messages.repair`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aether.messages.checks import anthropic, frame, gemini, openai, plain, responses
from aether.messages.message import Message, Wire
from aether.shapes import Finding, JsonObject

_RULES: dict[Wire, Callable[[Sequence[JsonObject]], Iterator[Finding]]] = {
    "anthropic": anthropic.findings,
    "openai": openai.findings,
    "responses": responses.findings,
    "gemini": gemini.findings,
    "plain": plain.findings,
}


def check(messages: Sequence[Message], wire: Wire, *, system: Any = None, tools: Any = None) -> list[Finding]:
    """Return every violation of the rules of `wire`; the messages are judged as they would be sent, by `raw`.

    >>> from aether.messages.message import Message
    >>> raw = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [(found.code, found.where) for found in check([Message("tool", (), raw, "openai")], "openai")]
    [('orphan-result', 'messages[0]')]
    """
    found = [*frame.findings(system, tools, wire), *_RULES[wire]([message.raw for message in messages])]
    if not messages:
        found.append(
            Finding("error", "no-messages", "messages", "There are no messages.", "Send at least one.")
        )
    return found


def refused(found: Sequence[Finding]) -> bool:
    """Tell whether one of the findings is an error."""
    return any(finding.level == "error" for finding in found)
