"""One conversation that outgrows its window again and again, and what must hold of it after every step.

What is proved here is computed from the messages as they are sent, read anew; of compaction only the results are looked
at, and of its own modules none is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.conversation.shapes import Policy
from aether.messages.convert import bare, read
from aether.messages.model import Message, ProviderFormat, groups, turns
from aether.messages.validate import check
from aether.tokens.count import message_tokens
from aether.types import Counter, Finding, JsonObject

MARK = "<COMPACT-SUMMARY v"
# Of a text that is shortened as far as it goes the marker is left, which may name a file.
LEFT_OF_A_TEXT = 100
# A summary that says nothing, as a message of any wire.
FRAME = 80


class Watched(NamedTuple):
    """What was said in a conversation, and which of it is protected; both grow."""

    wire: ProviderFormat
    policy: Policy
    count: Counter
    limit: int
    overhead: int
    said: list[JsonObject]
    protected: list[str]
    """The JSON of each protected message, in order."""
    reported: set[str]
    """The codes of all findings so far."""


def steps(raws: Sequence[JsonObject], wire: ProviderFormat) -> Iterator[list[JsonObject]]:
    """Yield `raws` in portions, each ending where a model would be asked: no call is open, and it speaks next."""
    messages = read(raws, wire)
    waiting: set[str] = set()
    start = 0
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                waiting.add(block.call_id)
            elif block.kind == "result":
                waiting.discard(block.call_id)
        speaks_next = at + 1 == len(messages) or messages[at + 1].role == "assistant"
        if not waiting and speaks_next and message.role != "assistant":
            yield list(raws[start : at + 1])
            start = at + 1
    if start < len(raws):
        yield list(raws[start:])


def grown(watched: Watched, more: Sequence[JsonObject]) -> None:
    """Take note of what is said next."""
    watched.said.extend(more)
    watched.protected.extend(json.dumps(raw) for raw in more if is_protected(raw, watched.policy))


def is_protected(raw: JsonObject, policy: Policy) -> bool:
    """Tell whether the policy protects the message itself."""
    meta = raw.get("meta") or {}
    return (
        raw.get("role") in policy.protected_roles
        or meta.get(policy.protected_flag) in (True, 1, "yes", "true")
        or meta.get("label") in policy.protected_labels
    )


def holds(watched: Watched, sent: Sequence[JsonObject], findings: Iterable[Finding]) -> None:
    """Assert all that a compacted conversation promises; `findings` came with it."""
    watched.reported.update(finding.code for finding in findings)
    wire, count = watched.wire, watched.count
    messages = read(json.loads(json.dumps(sent)), wire)
    total = watched.overhead + sum(message_tokens(message, count) for message in messages)
    assert total <= watched.limit, f"{total} tokens of {watched.limit}"
    bad = set(codes(sent, wire))
    assert not bad or not bad - set(codes(watched.said, wire)), f"{wire} would refuse it: {bad}"
    assert summaries(sent) <= 1
    kept = [json.dumps(raw) for raw in sent if is_protected(raw, watched.policy)]
    assert kept == watched.protected, "protected messages changed"
    asked = requests(read(watched.said, wire))
    if asked:
        there = {said_by(message) for message in messages}
        assert said_by(asked[-1]) in there, "the newest message of the user is gone"
        assert said_by(asked[0]) in there or "opening-shortened" in watched.reported, (
            "the opening request is gone"
        )


def codes(raws: Sequence[JsonObject], wire: ProviderFormat) -> list[str]:
    """Return what the provider would refuse of these messages."""
    return [found.code for found in check(read([*map(bare, raws)], wire), wire) if found.level == "error"]


def summaries(raws: Sequence[JsonObject]) -> int:
    """Return how many summaries are among these messages."""
    return sum(MARK in json.dumps(raw) for raw in raws)


def requests(messages: Sequence[Message]) -> list[Message]:
    """Return what the person said or showed."""
    return [
        message
        for message in messages
        if message.role == "user"
        and any(
            block.kind in ("media", "other") or (block.kind == "text" and block.text.strip())
            for block in message.blocks
        )
    ]


def said_by(message: Message) -> Any:
    """Return what a message says beside answers of tools, for comparing."""
    return message.role, tuple(
        (block.kind, block.text) for block in message.blocks if block.kind in ("text", "media", "other")
    )


def irreducible(watched: Watched, context: Sequence[JsonObject]) -> int:
    """Return the most tokens that may be left when everything was tried.

    That is what is protected, with the groups it belongs to; the opening request and the newest message of the user; and of
    the newest calls, of calls without results, and of the last message the shape without the texts.
    """
    messages = read(context, watched.wire)
    found = groups(messages)
    asked = requests([message for message in messages if MARK not in json.dumps(message.raw)])
    ends = {id(message.raw) for message in (asked[:1] + asked[-1:])}
    protected = {at for at, raw in enumerate(context) if is_protected(raw, watched.policy)}
    last_calls = [at for at, group in enumerate(found) if group.kind == "tools"][-1:]
    last_orphans = [at for at, group in enumerate(found) if group.kind == "orphan"][-1:]
    held: set[int] = set()
    whole: set[int] = set()
    turn_of = {at: turn for turn in turns(messages, found) for at in turn}
    for at, group in enumerate(found):
        members = set(group.members)
        shielded = not members.isdisjoint(protected)
        pinned = shielded or any(id(messages[one].raw) in ends for one in members)
        stays = group.open or at in last_calls or at in last_orphans or at == len(found) - 1
        if pinned or stays:
            held |= members
            # Gemini takes a call only after the user, who must stay then.
            opener = found[turn_of[at][0]].members if watched.wire == "gemini" else ()
            held |= set(opener)
            whole |= (members if shielded else set()) | set(opener)
    whole |= {at for at, message in enumerate(messages) if id(message.raw) in ends}
    return watched.overhead + FRAME + sum(_floor(messages[at], watched.count, at in whole) for at in held)


def _floor(message: Message, count: Counter, whole: bool) -> int:
    tokens = message_tokens(message, count)
    able = ("result", "call", "text") if message.role == "assistant" else ("result",)
    shortable = (count(block.text) for block in message.blocks if block.kind in able and block.at)
    return tokens if whole else tokens - sum(max(0, some - LEFT_OF_A_TEXT) for some in shortable)
