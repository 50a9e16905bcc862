"""Codex rollouts: one `{timestamp, type, payload}` object per line.

`response_item` lines are what the model saw and said; `event_msg` lines repeat them for the terminal and
are passed over. The answers of tools carry a header with the exit code; it becomes the error flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.blocks import failed, filled, flat, given, parts, table, word
from aether.messages.record import Record
from aether.shapes import JsonObject

_HEADER = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Process |Exit code|Original token count|Total output lines).*\n)+Output:\n"
)


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of a rollout."""
    session = agent = caste = ""
    for number, line in values:
        if not isinstance(line, dict):
            continue
        payload = table(line.get("payload"))
        kind = line.get("type")
        if kind == "session_meta" and not session:
            session = word(payload.get("id"))
            agent, caste = _agent(session, payload)
        head = Record(
            "system",
            time=word(line.get("timestamp")),
            line=number,
            session=session,
            agent=agent,
            caste=caste,
            format="codex",
        )
        if kind == "compacted":
            yield head._replace(kind="boundary", text=word(payload.get("message")))
        elif kind == "response_item":
            yield from _item(head, payload)


def _agent(session: str, meta: JsonObject) -> tuple[str, str]:
    source = meta.get("source")
    if not isinstance(source, dict) or "subagent" not in source:
        return "", ""
    return session, word(meta.get("agent_role")) or "agent"


def _item(head: Record, payload: JsonObject) -> Iterator[Record]:
    call_id = word(payload.get("call_id"))
    match payload.get("type"):
        case "message":
            role = payload.get("role")
            speaker = role if role in {"user", "assistant"} else "system"
            for position, part in parts(payload.get("content")):
                yield filled(head, part, speaker)._replace(part=position, message_id=word(payload.get("id")))
        case "function_call" | "custom_tool_call" | "local_shell_call":
            arguments = payload.get("arguments", payload.get("input", payload.get("action")))
            name = word(payload.get("name")) or "shell"
            yield head._replace(kind="call", tool=name, arguments=given(arguments), call_id=call_id)
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            yield head._replace(kind="result", call_id=call_id, **_answer(payload.get("output")))


def _answer(output: Any) -> JsonObject:
    text = flat(output)
    inner = given(text) if text.startswith("{") else {}
    if "output" in inner and "metadata" in inner:  # rollouts before 0.40
        code = table(inner["metadata"]).get("exit_code")
        return {"text": flat(inner["output"]), "is_error": code not in (0, None)}
    return {"text": _HEADER.sub("", text), "is_error": failed(text)}
