"""Claude Code hooks: the entries that hooks have put into the spool, as records.

One entry is one event, reduced. It gives the records that the transcript will give for the same event, as
far as a hook is told of it: what was asked, what each tool was called with and answered, what ended a turn.
The name of a record is made of the ids that Claude Code gave and of what is said, never of when or in
which order entries came: the same event, delivered or taken in twice, is the same records.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from aether.messages.blocks import table, word
from aether.messages.record import Record
from aether.shapes import JsonObject

# Who submits a prompt that no person wrote: timers, and the program itself.
NOBODY = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event"})


# A sub-agent that was only started has found nothing yet; the transcript says so in words, the hook in JSON.
_LAUNCHED = '"async_launched"'
_AGENTS = frozenset({"Task", "Agent"})
_HEAD_CHARS = 400


def records(entry: JsonObject, *, line: int = 0) -> list[Record]:
    """Return the records that one entry of the spool holds; none where it tells nothing worth a record.

    >>> [record.kind for record in records({"event": "PostToolUse", "tool": "Bash", "id": "t1", "output": "ok"})]
    ['call', 'result']
    """
    agent = word(entry.get("agent"))
    head = Record(
        "system",
        agent=agent,
        caste=(word(entry.get("caste")) or "agent") if agent else "",
        time=word(entry.get("at")),
        line=line,
        session=word(entry.get("session")),
        format="claude_code",
    )
    read = _READERS.get(word(entry.get("event")))
    return read(head, entry) if read else []


def identity(record: Record) -> str:
    """Return what tells a record from every other of its session, and is the same when it is delivered twice."""
    if record.kind in {"call", "result"}:
        return _digest(record.kind, record.call_id)
    return _digest(record.kind, record.agent, record.uuid, record.text)


def is_named(record: Record) -> bool:
    """Tell whether Claude Code gave an id to what the record is of: without one, the same words may be said again."""
    return bool(record.uuid) and not record.uuid.endswith("/")


def _prompt(head: Record, entry: JsonObject) -> list[Record]:
    text = word(entry.get("prompt"))
    if not text.strip() or word(entry.get("source")) in NOBODY:
        return []
    return [head._replace(kind="user", text=text, uuid=f"prompt/{word(entry.get('prompt_id'))}")]


def _said(head: Record, uuid: str, entry: JsonObject) -> list[Record]:
    text = word(entry.get("message"))
    return [head._replace(kind="assistant", text=text, uuid=uuid, part=1)] if text.strip() else []


def _on_the_way(head: Record, entry: JsonObject) -> list[Record]:
    """Return what was said before the last message, under the names that the transcript has for it."""
    found = entry.get("said")
    return [
        head._replace(
            kind="user" if one.get("by") == "user" else "assistant",
            text=word(one.get("text")),
            uuid=word(one.get("uuid")),
            part=part if isinstance(part := one.get("part"), int) else 0,
            message_id=word(one.get("id")),
            time=word(one.get("at")) or head.time,
        )
        for one in map(table, found if isinstance(found, list) else [])
        if word(one.get("text")).strip() and word(one.get("uuid"))
    ]


def _batch(head: Record, entry: JsonObject) -> list[Record]:
    calls = entry.get("calls")
    return [
        record
        for call in (calls if isinstance(calls, list) else [])
        for record in _answered(head, table(call))
    ]


def _stop(head: Record, entry: JsonObject) -> list[Record]:
    return [*_on_the_way(head, entry), *_said(head, f"stop/{word(entry.get('prompt_id'))}", entry)]


def _boundary(head: Record, entry: JsonObject) -> list[Record]:
    return [*_on_the_way(head, entry), head._replace(kind="boundary")]


def _answered(head: Record, call: JsonObject) -> list[Record]:
    tool, given, output = word(call.get("tool")), table(call.get("input")), word(call.get("output"))
    if not tool:
        return []
    if tool in _AGENTS and _LAUNCHED in output[:_HEAD_CHARS]:
        output = ""
    uuid = word(call.get("id"))
    call_id = uuid or _digest(tool, given, output)
    called = head._replace(
        kind="call", tool=tool, arguments=given, call_id=call_id, uuid=uuid or "call/", part=0
    )
    broken = bool(call.get("failed"))
    result = called._replace(kind="result", text=output, arguments={}, is_error=broken, part=1)
    return [called, result]


def _subagent(head: Record, entry: JsonObject) -> list[Record]:
    # The one that writes the summary of a compaction has an id but no type; what it says is no finding.
    if not head.agent or not word(entry.get("caste")):
        return []
    uuid = f"agent/{head.agent}"
    task = word(entry.get("task_text"))
    opening = [head._replace(kind="user", text=task, uuid=uuid)] if task.strip() else []
    return [*opening, *_on_the_way(head, entry), *_said(head, uuid, entry)]


def _task(head: Record, entry: JsonObject) -> list[Record]:
    subject, description = word(entry.get("subject")).strip(), word(entry.get("description")).strip()
    if not subject:
        return []
    about = f" – {description}" if description and description != subject else ""
    given = {"type": "outcome", "caste": head.caste, "relevance_score": 0.6}
    return [
        head._replace(
            kind="item", text=f"Task completed: {subject}{about}", arguments=given,
            uuid=f"task/{word(entry.get('task'))}",
        )
    ]  # fmt: skip


_READERS: dict[str, Callable[[Record, JsonObject], list[Record]]] = {
    "UserPromptSubmit": _prompt,
    "PostToolUse": _answered,
    "PostToolUseFailure": _answered,
    "PostToolBatch": _batch,
    "Stop": _stop,
    "SubagentStop": _subagent,
    "TaskCompleted": _task,
    "PreCompact": _boundary,
    "PostCompact": _boundary,
}


def _digest(*said: Any) -> str:
    return sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:16]
