"""Claude Code transcripts: one JSON object per line, written for the program and not for readers.

Four fifths of such a file are mirrors (`toolUseResult`), progress and bookkeeping; they are passed over.
What a sub-agent did is found in the file itself (1.0), inside `progress` (2.x) or in a file of its
own, and carries the sub-agent's type. A line that was written twice is read once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from aether.messages.blocks import filled, flat, parts, table, word
from aether.messages.record import Record, remember
from aether.shapes import JsonObject

# Lines are rewritten soon after they were first written; sub-agents end within one stretch of work.
_REMEMBERED_LINES = 65_536
_REMEMBERED_AGENTS = 4_096
_SPEAKERS = {"user", "assistant"}


class _Seen(NamedTuple):
    """What one pass over a file has met so far."""

    lines: OrderedDict[str, bool]
    castes: OrderedDict[str, str]
    """Sub-agent types by the id and by the prompt of the call that started them."""
    chains: OrderedDict[str, tuple[str, str]]
    """Agent and caste by the uuid of a sidechain line without an agent id."""


def records(values: Iterable[tuple[int, Any]], *, caste: str = "") -> Iterator[Record]:
    """Yield the records of a transcript; `caste` names the sub-agent whose own file this is."""
    seen = _Seen(OrderedDict(), OrderedDict(), OrderedDict())
    spoken = announced = False
    for number, line in entries(values):
        for record in _line(number, line, caste, seen):
            if record.kind == "summary":
                if spoken and not announced:  # older files compact without saying so
                    yield record._replace(kind="boundary", text="", part=-1)
            else:
                spoken = spoken or record.kind in _SPEAKERS
            announced = record.kind == "boundary" or (announced and record.kind not in _SPEAKERS)
            yield record


def entries(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, JsonObject]]:
    """Yield the lines of a transcript that are objects, also of one exported as a single object."""
    for number, value in values:
        if not isinstance(value, dict):
            continue
        inner = value.get("loglines")
        if isinstance(inner, list):  # a whole session exported as one object
            for position, line in enumerate(inner, start=1):
                if isinstance(line, dict):
                    yield number + position, line
        else:
            yield number, value


def _line(number: int, line: JsonObject, caste: str, seen: _Seen) -> Iterator[Record]:
    uuid = word(line.get("uuid"))
    if uuid:
        if uuid in seen.lines:
            return
        remember(seen.lines, uuid, True, most=_REMEMBERED_LINES)
    head = Record(
        "system",
        uuid=uuid,
        time=word(line.get("timestamp")),
        line=number,
        session=word(line.get("sessionId")),
        directory=word(line.get("cwd")),
        format="claude_code",
    )
    match line.get("type"):
        case "user" | "assistant":
            agent, kind = _agent(line, caste, seen)
            yield from _message(head._replace(agent=agent, caste=kind), line, seen)
        case "system":
            if line.get("subtype") == "compact_boundary":
                yield head._replace(kind="boundary", text=word(line.get("content")))
        case "attachment":
            yield from _attachment(head, table(line.get("attachment")))
        case "progress":
            yield from _progress(head, line, seen)


def _message(head: Record, line: JsonObject, seen: _Seen) -> Iterator[Record]:
    message = table(line.get("message"))
    content = message.get("content")
    head = head._replace(message_id=word(message.get("id")))
    if line.get("isCompactSummary"):
        yield head._replace(kind="summary", text=flat(content))
        return
    speaker: Any = line["type"]
    if line.get("isMeta") or line.get("isApiErrorMessage"):
        speaker = "system"
    for position, part in parts(content):
        record = filled(head, part, speaker)._replace(part=position)
        if record.kind == "call":
            _note_agent(record, seen)
        yield record


def _attachment(head: Record, attachment: JsonObject) -> Iterator[Record]:
    # What a person typed while the assistant was busy exists only here.
    if attachment.get("type") == "queued_command":
        for position, part in parts(attachment.get("prompt")):
            if part.kind == "text":
                yield head._replace(kind="user", text=part.text, part=position)


def _progress(head: Record, line: JsonObject, seen: _Seen) -> Iterator[Record]:
    data = table(line.get("data"))
    inner = table(data.get("message"))
    if data.get("type") != "agent_progress" or word(inner.get("type")) not in _SPEAKERS:
        return
    started_by = word(line.get("parentToolUseID"))
    yield from _message(
        head._replace(
            agent=word(data.get("agentId")) or started_by,
            caste=seen.castes.get(started_by, "agent"),
            uuid=word(inner.get("uuid")) or head.uuid,
            time=word(inner.get("timestamp")) or head.time,
        ),
        inner,
        seen,
    )


def _note_agent(call: Record, seen: _Seen) -> None:
    prompt = word(call.arguments.get("prompt"))
    if call.tool in {"Task", "Agent"} and prompt:
        caste = word(call.arguments.get("subagent_type")) or "agent"
        for key in (call.call_id, prompt):
            remember(seen.castes, key, caste, most=_REMEMBERED_AGENTS)


def _agent(line: JsonObject, caste: str, seen: _Seen) -> tuple[str, str]:
    """Return the agent and the caste that wrote a line, both empty for the main conversation."""
    if not line.get("isSidechain"):
        return "", ""
    parent, uuid = word(line.get("parentUuid")), word(line.get("uuid"))
    if parent in seen.chains:
        agent, kind = seen.chains[parent]
    else:
        prompt = flat(table(line.get("message")).get("content"))
        agent = word(line.get("agentId")) or uuid
        kind = caste or seen.castes.get(prompt, "agent")
    if uuid:
        remember(seen.chains, uuid, (agent, kind), most=_REMEMBERED_AGENTS)
    return agent, kind
