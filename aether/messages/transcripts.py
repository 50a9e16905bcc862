"""Transcripts: the messages of an agent's own log, as they were sent to the model.

Claude Code writes one response over several records and the answers of parallel calls one by one; here a response is
one message, with all its answers in one message after it. Codex writes the items themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.messages.blocks import table, word
from aether.messages.claude_code import entries
from aether.messages.formats.content import as_json
from aether.messages.record import Record
from aether.shapes import JsonObject

Values = Iterable[tuple[int, Any]]


class _Spoken(NamedTuple):
    """One message, and what the tools it called answered."""

    role: str
    content: Any
    answers: list[JsonObject]


def claude_code(values: Values, *, whole: bool) -> list[JsonObject]:
    """Return the Anthropic messages of a transcript: all of them, or those since the last compaction.

    Sub-agents, bookkeeping and what the program said to itself are left out; a file that is a sub-agent's own
    is read for what it is.
    """
    lines = list(_once(line for _, line in entries(values)))
    main = [line for line in lines if not line.get("isSidechain")]
    chosen = main if any(map(_is_spoken, main)) else lines
    return _messages(chosen if whole else _current(chosen))


def _once(lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
    seen: set[str] = set()
    for line in lines:
        uuid = word(line.get("uuid"))
        if not uuid or uuid not in seen:
            seen.add(uuid)
            yield line


def _is_spoken(line: JsonObject) -> bool:
    spoken = line.get("type") in {"user", "assistant"} and isinstance(line.get("message"), dict)
    return spoken and not line.get("isMeta") and not line.get("isApiErrorMessage")


def _current(lines: list[JsonObject]) -> list[JsonObject]:
    """Return the lines since the last compaction, with those before it that it preserved."""
    starts = [at for at, line in enumerate(lines) if line.get("subtype") == "compact_boundary"]
    starts = starts or [at for at, line in enumerate(lines) if line.get("isCompactSummary")]
    if not starts:
        return lines
    before, after = lines[: starts[-1]], lines[starts[-1] :]
    anchor, preserved = _preserved(table(after[0].get("compactMetadata")), before)
    at = next((at + 1 for at, line in enumerate(after) if anchor and line.get("uuid") == anchor), 0)
    return [*after[:at], *preserved, *after[at:]]


def _preserved(metadata: JsonObject, before: list[JsonObject]) -> tuple[str, list[JsonObject]]:
    listed, segment = table(metadata.get("preservedMessages")), table(metadata.get("preservedSegment"))
    uuids = listed.get("allUuids") or listed.get("uuids")
    if isinstance(uuids, list):
        return word(listed.get("anchorUuid")), [line for line in before if line.get("uuid") in uuids]
    ends = [at for at, line in enumerate(before) if word(line.get("uuid")) in set(_ends(segment))]
    return word(segment.get("anchorUuid")), before[ends[0] : ends[-1] + 1] if ends else []


def _ends(segment: JsonObject) -> Iterator[str]:
    for key in ("headUuid", "tailUuid"):
        if word(segment.get(key)):
            yield segment[key]


def _messages(lines: Iterable[JsonObject]) -> list[JsonObject]:
    spoken: list[_Spoken] = []
    responses: dict[str, _Spoken] = {}
    callers: dict[str, _Spoken] = {}
    for line in lines:
        if line.get("type") == "attachment":
            _hear_queued(table(line.get("attachment")), spoken)
        elif not _is_spoken(line):
            continue
        elif line["type"] == "assistant":
            _hear_assistant(line["message"], spoken, responses, callers)
        else:
            _hear_user(line["message"], spoken, callers)
    return [raw for one in spoken for raw in _raws(one)]


def _hear_queued(attachment: JsonObject, spoken: list[_Spoken]) -> None:
    # What a person typed while the assistant was busy exists only here.
    if attachment.get("type") == "queued_command" and attachment.get("prompt"):
        spoken.append(_Spoken("user", attachment["prompt"], []))


def _hear_assistant(
    message: JsonObject, spoken: list[_Spoken], responses: dict[str, _Spoken], callers: dict[str, _Spoken]
) -> None:
    content, response = message.get("content"), word(message.get("id"))
    held = responses.get(response)
    if held is None or not isinstance(held.content, list) or not isinstance(content, list):
        held = _Spoken("assistant", list(content) if isinstance(content, list) else content, [])
        spoken.append(held)
        if response:
            responses[response] = held
    else:
        held.content.extend(block for block in content if block not in held.content)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            callers[block["id"]] = held


def _hear_user(message: JsonObject, spoken: list[_Spoken], callers: dict[str, _Spoken]) -> None:
    content = message.get("content")
    if not isinstance(content, list):
        spoken.append(_Spoken("user", content, []))
        return
    rest = []
    for block in content:
        caller = callers.get(word(table(block).get("tool_use_id")))
        if caller:
            caller.answers.append(block)
        else:
            rest.append(block)
    if rest or not content:
        spoken.append(_Spoken("user", rest, []))


def _raws(spoken: _Spoken) -> Iterator[JsonObject]:
    yield {"role": spoken.role, "content": spoken.content}
    if spoken.answers:
        yield {"role": "user", "content": spoken.answers}


def codex(values: Values, *, whole: bool) -> list[JsonObject]:
    """Return the Responses items of a rollout: all of them, or those since the last compaction."""
    items: list[JsonObject] = []
    for _, line in values:
        payload = table(table(line).get("payload"))
        if table(line).get("type") == "response_item" and payload:
            items.append(payload)
        elif table(line).get("type") == "compacted" and not whole:
            items = _replacement(payload)
    return items


def _replacement(payload: JsonObject) -> list[JsonObject]:
    kept = payload.get("replacement_history")
    if isinstance(kept, list):
        return [item for item in kept if isinstance(item, dict)]
    summary = [{"type": "input_text", "text": word(payload.get("message"))}]
    return [{"type": "message", "role": "user", "content": summary}]


def instructions(values: Sequence[tuple[int, Any]]) -> Any:
    """Return the instructions that a rollout opens with, None where it has none."""
    for _, line in values:
        payload = table(table(line).get("payload"))
        if table(line).get("type") == "session_meta":
            return payload.get("instructions") or table(payload.get("base_instructions")).get("text")
    return None


def from_records(records: Iterable[Record]) -> list[JsonObject]:
    """Return OpenAI messages that say what records say, for logs that hold no messages."""
    raws: list[JsonObject] = []
    for record in records:
        if record.kind == "call":
            called = {"name": record.tool, "arguments": as_json(dict(record.arguments))}
            listed = [{"id": record.call_id, "type": "function", "function": called}]
            raws.append({"role": "assistant", "content": None, "tool_calls": listed})
        elif record.kind == "result":
            raws.append({"role": "tool", "tool_call_id": record.call_id, "content": record.text})
        else:
            role = record.kind if record.kind in {"assistant", "system"} else "user"
            raws.append({"role": role, "content": record.text})
    return raws
