"""Validation: whether a provider would accept a conversation, every reason why not, and a repair.

A finding of level `error` is what the provider answers with a 400; a `warning` is what some of its models, or servers of
its protocol, refuse. Codes are stable words. Calls of the last response, followed at most by some of their results,
are `dangling-call`, a warning: sending them is an error, but the caller is about to run them.

After a repair `check` finds no error, unless nothing is left at all. Nothing is invented. Text of users and of the
assistant is never lost; results go back to their calls; results without a call, calls that were never answered and
blocks that cannot be sent are dropped, each with a warning. A second repair changes nothing, and valid messages are
returned as they are. The rules of each provider are in its module below `aether.messages.providers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.convert import bare, provider, read
from aether.messages.findings import bad_name, error
from aether.messages.model import Message, ProviderFormat
from aether.messages.providers import anthropic, openai
from aether.types import Finding, JsonObject

# Gemini accepts dots and colons too; Anthropic longer names.
_TOOL_NAMES = {"anthropic": anthropic.NAME, "openai": openai.NAME, "responses": openai.NAME}


class Repaired(NamedTuple):
    """Messages that a provider accepts, and the changes made; each `where` is the place before the repair."""

    messages: list[Message]
    findings: list[Finding]


def check(
    messages: Sequence[Message], format: ProviderFormat, *, system: Any = None, tools: Any = None
) -> list[Finding]:
    """Return every violation of the provider's rules; messages are judged as they would be sent, by `raw`.

    >>> from aether.messages.model import Message
    >>> raw = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [(found.code, found.where) for found in check([Message("tool", (), raw, "openai")], "openai")]
    [('orphan-result', 'messages[0]')]
    """
    found: list[Finding] = []
    for at, block in enumerate(system if format == "anthropic" and isinstance(system, list) else []):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or not text.strip():
            found.append(error("empty-content", f"system[{at}]", "The text is blank.", "Drop the block."))
    seen: set[str] = set()
    for where, name in _tool_names(tools, format):
        if format in _TOOL_NAMES and not _TOOL_NAMES[format].fullmatch(name):
            found.append(bad_name(name, where))
        if name in seen:
            what = f"Another tool is called {shown(name)}."
            found.append(error("repeated-tool", where, what, "Drop or rename one."))
        seen.add(name)
    found += provider(format).findings([message.raw for message in messages])
    if not messages:
        found.append(error("no-messages", "messages", "There are no messages.", "Send at least one."))
    return found


def has_errors(found: Sequence[Finding]) -> bool:
    """Return whether one of the findings is an error."""
    return any(finding.level == "error" for finding in found)


def sendable(raws: Sequence[JsonObject], format: ProviderFormat, *, meta: bool = False) -> list[JsonObject]:
    """Return `raws` as the provider accepts them: no half of a pair, and, unless `meta`, no `meta` of aether."""
    messages = repair(read(raws, format), format).messages
    return [message.raw if meta else bare(message.raw) for message in messages]


def repair(messages: Sequence[Message], format: ProviderFormat) -> Repaired:
    """Return `messages`, all in `format`, as its provider accepts them.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> repaired = repair(read([{"role": "user", "content": "Go."}, orphan], "openai"), "openai")
    >>> [message.text for message in repaired.messages], [found.code for found in repaired.findings]
    (['Go.'], ['orphan-result'])
    """
    raws = [message.raw for message in messages]
    repaired = provider(format).repaired(raws)
    if len(raws) == len(repaired.raws) and all(map(lambda a, b: a is b, raws, repaired.raws)):
        return Repaired(list(messages), repaired.findings)
    return Repaired(read(repaired.raws, format), repaired.findings)


def _tool_names(tools: Any, format: ProviderFormat) -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each tool that has one; tools of the provider's own may have none."""
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, dict):
            continue
        if format == "gemini":
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
