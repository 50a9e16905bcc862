"""Check: whether a provider would take a conversation as it stands, and if not, every reason why.

A finding of level `error` is what the provider answers with a 400; `warning` what some of its models, or
servers that speak its protocol, refuse. Codes are stable words. Calls of the last response that nothing but
some of their results follows are `dangling-call`, a warning: to send them is an error, but whoever holds them
is about to run them. Mending is done in `aether.messages.validate`.

Repair: a conversation that a provider refuses, mended as far as can be without inventing anything.

Afterwards `check` finds no error, unless nothing is left at all. Text of users and of the assistant is never
lost; results go back to their calls; results without a call, calls that were never answered and blocks that
nobody can send are dropped, each with a finding of level `warning`. Mending twice is mending once, and what
was valid comes back as it was.

The rules of what frames the messages of a request: system prompt and tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import convert
from aether.messages.content import RepairedRaws
from aether.messages.model import Message, ProviderFormat
from aether.messages.providers import anthropic, gemini, openai, plain, responses
from aether.types import Finding, JsonObject

_MENDERS: dict[ProviderFormat, Callable[[Sequence[JsonObject]], RepairedRaws]] = {
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


def repair(messages: Sequence[Message], wire: ProviderFormat) -> Repaired:
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
    return Repaired(convert.read(mended.raws, wire), mended.findings)


# Gemini takes dots and colons too; Anthropic longer names.
_NAMES = {"anthropic": anthropic.NAME, "openai": openai.NAME, "responses": openai.NAME}


def frame_findings(system: Any, tools: Any, wire: ProviderFormat) -> Iterator[Finding]:
    """Yield what a provider refuses in a system prompt and in the definitions of tools."""
    for at, block in enumerate(system if wire == "anthropic" and isinstance(system, list) else []):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or not text.strip():
            yield Finding("error", "empty-content", f"system[{at}]", "The text is blank.", "Drop the block.")
    seen: set[str] = set()
    for where, name in _names(tools, wire):
        if wire in _NAMES and not _NAMES[wire].fullmatch(name):
            yield Finding(
                "error",
                "bad-name",
                where,
                f"{shown(name)} is no name of a tool.",
                "Use letters, digits, _ and -.",
            )
        if name in seen:
            yield Finding(
                "error",
                "repeated-tool",
                where,
                f"Another tool is called {shown(name)}.",
                "Drop or rename one.",
            )
        seen.add(name)


def _names(tools: Any, wire: ProviderFormat) -> Iterator[tuple[str, str]]:
    """Yield where each tool is defined, and its name; what a provider offers itself may have none."""
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, dict):
            continue
        if wire == "gemini":
            listed = tool.get("functionDeclarations", tool.get("function_declarations"))
            found = [
                (f"tools[{at}].functionDeclarations[{number}]", one)
                for number, one in enumerate(listed if isinstance(listed, list) else [])
            ]
        else:
            found = [(f"tools[{at}]", tool.get("function", tool))]
        for where, one in found:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                yield where, one["name"]


_RULES: dict[ProviderFormat, Callable[[Sequence[JsonObject]], Iterator[Finding]]] = {
    "anthropic": anthropic.findings,
    "openai": openai.findings,
    "responses": responses.findings,
    "gemini": gemini.findings,
    "plain": plain.findings,
}


def check(
    messages: Sequence[Message], wire: ProviderFormat, *, system: Any = None, tools: Any = None
) -> list[Finding]:
    """Return every violation of the rules of `wire`; the messages are judged as they would be sent, by `raw`.

    >>> from aether.messages.model import Message
    >>> raw = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [(found.code, found.where) for found in check([Message("tool", (), raw, "openai")], "openai")]
    [('orphan-result', 'messages[0]')]
    """
    found = [*frame_findings(system, tools, wire), *_RULES[wire]([message.raw for message in messages])]
    if not messages:
        found.append(
            Finding("error", "no-messages", "messages", "There are no messages.", "Send at least one.")
        )
    return found


def has_errors(found: Sequence[Finding]) -> bool:
    """Tell whether one of the findings is an error."""
    return any(finding.level == "error" for finding in found)
