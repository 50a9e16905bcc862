"""Validation: whether a provider would accept a conversation, every reason why not, and a repair.

A finding of level `error` is what the provider answers with a 400; a `warning` is what some of its models, or servers of
its protocol, refuse. Codes are stable words. Calls of the last response, followed at most by some of their results,
are `dangling-call`, a warning: sending them is an error, but the caller is about to run them.

A check names what a repair would change, so that after a repair it finds no error, unless nothing is left at all, or there is more than a provider takes at once: that needs fewer or
shorter messages. Nothing is invented. Text of users and of the assistant is never lost; results go back to their calls; results without
a call, calls that were never answered and blocks that cannot be sent are dropped, each with a warning. A second repair
changes nothing, and valid messages are returned as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import limits
from aether.messages.content import MAX_LEVELS, encodable
from aether.messages.convert import META, bare, new_message, read, worded
from aether.messages.faults import Faults, RepairedRaws
from aether.messages.model import Message, ProviderFormat
from aether.messages.providers import provider
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

_POSITION = lazy(r"(\w+\[)(\d+)\]")


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
    module, faults = provider(format), Faults()
    for index, block in enumerate(
        system if module.TRAITS.system == "system" and isinstance(system, list) else []
    ):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or not text.strip():
            faults.lost("empty-content", f"system[{index}]", "The text is blank.", "Drop the block.")
    seen: set[str] = set()
    for where, name in module.tool_names(tools if isinstance(tools, list) else []):
        if not isinstance(name, str):
            continue  # a tool of the provider's own
        if module.TRAITS.tool_name and not module.TRAITS.tool_name.fullmatch(name):
            fix = f"Call it {module.valid_tool_name(name)}."
            faults.changed("bad-name", where, f"{shown(name)} is not the name of a tool.", fix)
        if name in seen:
            faults.lost(
                "repeated-tool", where, f"Another tool is called {shown(name)}.", "Drop or rename one."
            )
        seen.add(name)
    raws = _encodable([message.raw for message in messages], format, faults)
    limits.check_sizes(raws, format, faults, tools=len(tools) if isinstance(tools, list) else 0)
    beside = limits.cache_marks(system) + limits.cache_marks(tools)
    module.repaired(limits.within(raws, format, faults, marks_beside=beside), faults)
    if not messages:
        faults.lost("no-messages", "messages", "There are no messages.", "Send at least one.")
    return [fault.checked() for fault in faults.listed]


def _encodable(raws: Sequence[JsonObject], format: ProviderFormat, faults: Faults) -> list[JsonObject]:
    """Return `raws` as JSON that every parser reads."""
    clean = list(map(encodable, raws))
    what = f"It holds half a character, a number that is not finite, or more than {MAX_LEVELS} levels."
    for index, raw in enumerate(clean):
        if raw is not raws[index]:
            where = f"{provider(format).TRAITS.list}[{index}]"
            faults.changed("not-json", where, what, "Repair it before it becomes JSON.")
    return clean


def is_sendable(
    raws: Sequence[JsonObject], format: ProviderFormat, *, known: int = 0, plain: Container[int] = ()
) -> bool:
    """Return whether the provider accepts `raws`, without their `meta`.

    The first `known` of them, and those with an identity in `plain`, are plain JSON.
    """
    sent = list(map(bare, raws))
    new = zip(raws[known:], sent[known:], strict=True)
    if not all(id(raw) in plain or encodable(message) is message for raw, message in new):
        return False
    faults = Faults()
    provider(format).repaired(limits.within(sent, format, faults), faults)
    return all(fault.effect == "hint" for fault in faults.listed)


class Accepted(NamedTuple):
    """Messages that their provider accepts as they are, as far as more of them depend on it."""

    number: int
    restart: int
    """The position from which on they are checked again with those that follow."""
    call_ids: frozenset[str]


def accepted(messages: Sequence[Message], before: Accepted | None = None) -> Accepted:
    """Return what is known of `messages`, which are accepted; `before` is that of their start."""
    start = before.number if before else 0
    ids = {block.call_id for message in messages[start:] for block in message.blocks if block.kind == "call"}
    restart = next((index for index in range(len(messages) - 1, -1, -1) if _starts(messages, index)), 0)
    return Accepted(
        len(messages),
        restart,
        (before.call_ids | ids if ids else before.call_ids) if before else frozenset(ids),
    )


def _starts(messages: Sequence[Message], index: int) -> bool:
    """Return whether nothing before this message depends on what follows: all calls are answered, and no response goes on."""
    message = messages[index]
    if message.role == "assistant":
        return message.format == "openai"
    has_result = any(block.kind == "result" for block in message.blocks)
    return (
        message.role == "user" and not has_result and (not index or messages[index - 1].role == "assistant")
    )


def accepts_more(
    before: Accepted, raws: Sequence[JsonObject], messages: Sequence[Message], *, plain: Container[int] = ()
) -> bool:
    """Return whether the provider accepts `raws`, which start with the messages of `before`, as `is_sendable`.

    Only the end is checked, unless what is new may count with all before it: pictures, cache marks, ids of calls used again.
    """
    provider_format, new = messages[0].format, messages[before.number :]
    ids = {block.call_id for message in new for block in message.blocks if block.kind == "call"}
    counts = any(block.kind in ("media", "other") for message in new for block in message.blocks)
    if counts or limits.have_marks(raws[before.number :]) or not ids.isdisjoint(before.call_ids):
        return is_sendable(raws, provider_format, known=before.number, plain=plain)
    return is_sendable(
        raws[before.restart :], provider_format, known=before.number - before.restart, plain=plain
    )


def sendable(
    raws: Sequence[JsonObject], format: ProviderFormat, *, keep: Collection[int] = ()
) -> RepairedRaws:
    r"""Return `raws` as the provider accepts them; without an error of `check` all stay as they are.

    What a repair drops of the messages at the positions `keep` comes back as text, in a message of the user.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [raw["content"] for raw in sendable([{"role": "user", "content": "Go."}, orphan], "openai", keep=[1]).raws]
    ['Go.', 'Result of a tool:\nok']
    """
    if is_sendable(raws, format):
        return RepairedRaws(list(raws), [], list(range(len(raws))))
    module, bared, rewritten = provider(format), list(map(bare, raws)), Faults()
    clean = limits.within(_encodable(bared, format, rewritten), format, rewritten)
    originals = {id(new): raw for new, old, raw in zip(clean, bared, raws, strict=True) if new is old}
    rows = list(enumerate(clean))
    saved: list[Finding] = []
    waiting = set(keep)
    while True:
        faults = Faults()
        repaired = module.repaired([raw for _, raw in rows], faults)
        positions = [rows[index][0] for index, _ in repaired]
        affected = {
            index for fault in faults.listed if fault.effect == "lost" for index in _place(fault.where)
        }
        added = {
            index: texts
            for index in affected
            if rows[index][0] in waiting
            if (texts := _lost_texts(clean[rows[index][0]], rows[index][0], repaired, positions, format))
        }
        waiting.difference_update(rows[index][0] for index in affected)
        if not added:
            break
        for index in sorted(added, reverse=True):
            position = rows[index][0]
            rows[index + 1 : index + 1] = [
                (position, new_message("user", text, format).raw) for text in added[index]
            ]
            what = "Its text is protected, and became a message of the user."
            where = f"messages[{position}]"
            saved.append(Finding("info", "kept-text", where, what, "Nothing has to be done."))
    sent = [
        originals[id(raw)] if id(raw) in originals else _marked(raw, raws[position])
        for position, (_, raw) in zip(positions, repaired, strict=True)
    ]
    changes = [_moved(fault.repaired(), rows) for fault in faults.listed if fault.effect != "hint"]
    findings = [*(fault.repaired() for fault in rewritten.listed), *changes, *saved[::-1]]
    return RepairedRaws(sent, findings, positions)


def _place(where: str) -> list[int]:
    """Return the position that the place of a fault names, if it names one."""
    index = _POSITION.match(where)
    return [int(index[2])] if index else []


def _moved(finding: Finding, rows: Sequence[tuple[int, JsonObject]]) -> Finding:
    """Return a finding about the position before messages were inserted."""
    index = _POSITION.match(finding.where)
    if not index:
        return finding
    where = f"{index[1]}{rows[int(index[2])][0]}]{finding.where[index.end() :]}"
    return finding._replace(where=where)


def _lost_texts(
    raw: JsonObject,
    position: int,
    repaired: Sequence[tuple[int, JsonObject]],
    positions: Sequence[int],
    format: ProviderFormat,
) -> list[str]:
    """Return the texts of a message that the repaired messages at its position lack, as a person would write them."""
    module = provider(format)
    raws = [new for (_, new), index in zip(repaired, positions, strict=True) if index == position]
    there = {block.text.strip() for new in raws for block in module.message(new).blocks}
    return [
        worded(block)
        for block in module.message(raw).blocks
        if block.kind in ("result", "call", "text") and block.text.strip() and block.text.strip() not in there
    ]


def _marked(repaired: JsonObject, original: JsonObject) -> JsonObject:
    return {**repaired, META: original[META]} if META in original else repaired


def repair(messages: Sequence[Message], format: ProviderFormat) -> Repaired:
    """Return `messages`, all in `format`, as its provider accepts them.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> repaired = repair(read([{"role": "user", "content": "Go."}, orphan], "openai"), "openai")
    >>> [message.text for message in repaired.messages], [found.code for found in repaired.findings]
    (['Go.'], ['orphan-result'])
    """
    raws, faults = [message.raw for message in messages], Faults()
    fitting = limits.within(_encodable(raws, format, faults), format, faults)
    repaired = [raw for _, raw in provider(format).repaired(fitting, faults)]
    findings = [fault.repaired() for fault in faults.listed if fault.effect != "hint"]
    if not findings:
        return Repaired(list(messages), [])
    return Repaired(read(repaired, format), findings)
