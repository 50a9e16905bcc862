"""Codex rollouts: one `{timestamp, type, payload}` object per line.

`response_item` lines are the model's input and output; `event_msg` lines repeat them for the terminal and are skipped.
The answers of tools have a header with the exit code; it becomes the error flag. The rollout of a sub-agent that knows what
was said before starts with a copy of it: those records are the session's that started the agent, and say that they are copied.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.messages.model import as_arguments, as_object, as_text, content_text, is_failure_text
from aether.messages.records import Record, parts, put_bounded, with_part
from aether.messages.shell import printed
from aether.text.regex import lazy
from aether.types import JsonObject

# Commands left running in the background; a session rarely has more than a handful.
_REMEMBERED_COMMANDS = 256
_HEADER_CHARS = 400
# What ends the copy: the answer to the call that started the sub-agent. Copied lines have one time, that of the copy.
_SPAWNED = "You are the newly spawned agent."
_COPIED_WITHIN = timedelta(seconds=1)
_RUNNING = lazy(r"^Process running with session ID (\d+)", re.MULTILINE)
_SCRIPT_RUNNING = lazy(r"\AScript running with cell ID (\d+)")
# A script prints how a command ran as an object: one that goes on has a session and no exit code.
_ANSWERS = lazy(r'^\{"chunk_id":(?:[^"\n]|"(?!output")[^"\n]*")*', re.MULTILINE)
_SESSION = lazy(r'"session_id":\s*(\d+)')
_WAITS = lazy(r"""\btools\.write_stdin\(\s*\{\s*["']?session_id["']?\s*:\s*["']?(\d+)""")
# What Codex says above an output: how the command ran.
HEADER = lazy(
    r"\A(?:(?:Script (?:completed|failed)|Chunk ID|Wall time|Process |Exit code|Original token count|Total output lines).*\n)+Output:\n"
)
# A script prints what a command said as an object.
_FAILED_CODE = lazy(r'^\{"chunk_id":.*?"exit_code":\s*[1-9]', re.MULTILINE)


class _Running(NamedTuple):
    """Commands that answer later, through calls that only wait for them."""

    commands: OrderedDict[str, str]
    """Call ids by the number of the running process."""
    waits: OrderedDict[str, str]
    """Call ids of the commands by the call id of the wait."""


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of a rollout."""
    # What every record of a session says: of the rollout's own, then of those whose copy is being read, one in the other.
    heads = [Record("system", format="codex")]
    parent = copied = ""
    running = _Running(OrderedDict(), OrderedDict())
    for number, line in values:
        if not isinstance(line, dict):
            continue
        payload = as_object(line.get("payload"))
        kind, time = as_text(line.get("type")), as_text(line.get("timestamp"))
        ends = len(heads) > 1 and content_text(payload.get("output")).startswith(_SPAWNED)
        if ends or (len(heads) > 1 and _is_later(time, copied)):
            del heads[-1 if ends else 1 :]
            running = _Running(OrderedDict(), OrderedDict())
        if kind == "session_meta" and (not heads[0].session or (parent and payload.get("id") == parent)):
            head, parent = _head(payload)
            copied = time
            heads = [*heads, head._replace(copied=True)] if heads[0].session else [head]
        if kind in {"session_meta", "turn_context"}:
            heads[-1] = heads[-1]._replace(directory=as_text(payload.get("cwd")) or heads[-1].directory)
        head = heads[-1]._replace(time=time, line=number)
        if kind == "compacted":
            yield head._replace(kind="boundary", text=as_text(payload.get("message")))
        elif kind == "response_item" and not ends:
            yield from _item(head, payload, running)


def _is_later(time: str, copied: str) -> bool:
    """Return whether a line at `time` was written after those that were copied at once; False without a time."""
    try:
        return clock.parse(time) - clock.parse(copied) >= _COPIED_WITHIN
    except InvalidInput:
        return False


def _head(meta: JsonObject) -> tuple[Record, str]:
    """Return what the records of a session have in common, and the session of which it has a copy."""
    head = Record("system", session=as_text(meta.get("id")), format="codex")
    source = meta.get("source")
    if not isinstance(source, dict) or "subagent" not in source:
        return head, ""
    role = as_text(meta.get("agent_role")) or "agent"
    return head._replace(agent=head.session, caste=role), as_text(meta.get("forked_from_id"))


def _item(head: Record, payload: JsonObject, running: _Running) -> Iterator[Record]:
    call_id = as_text(payload.get("call_id"))
    match payload.get("type"):
        case "message":
            role = as_text(payload.get("role"))
            speaker = role if role in {"user", "assistant"} else "system"
            for position, part in parts(payload.get("content")):
                record = with_part(head, part, speaker)
                yield record._replace(part=position, message_id=as_text(payload.get("id")))
        case "function_call" | "custom_tool_call" | "local_shell_call":
            arguments = as_arguments(payload.get("arguments", payload.get("input", payload.get("action"))))
            waited = next(filter(None, map(running.commands.get, _waited_for(arguments))), "")
            if waited:
                put_bounded(running.waits, call_id, waited, most=_REMEMBERED_COMMANDS)
            else:
                name = as_text(payload.get("name")) or "shell"
                yield head._replace(kind="call", tool=name, arguments=arguments, call_id=call_id)
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            waits = call_id in running.waits
            call_id = running.waits.pop(call_id, call_id)
            output = content_text(payload.get("output"))
            left = _left_running(output, waits=waits)
            for name in left:
                put_bounded(running.commands, name, call_id, most=_REMEMBERED_COMMANDS)
            if not left:
                yield head._replace(kind="result", call_id=call_id, **_answer(output))


def _waited_for(arguments: JsonObject) -> list[str]:
    """Return the names of the running commands that a call only waits for."""
    script = as_text(arguments.get("input"))
    polled = [] if "tools.exec_command" in script else _WAITS.findall(script)
    cell = [f"cell {arguments['cell_id']}"] if "cell_id" in arguments else []
    return [str(arguments.get("session_id", "")), *cell, *polled]


def _left_running(output: str, *, waits: bool) -> list[str]:
    """Return the names of the commands that go on after `output`; none if any has ended, unless the call only `waits`."""
    if process := _RUNNING.search(output[:_HEADER_CHARS]):
        return [process[1]]
    if cell := _SCRIPT_RUNNING.match(output):
        return [f"cell {cell[1]}"]
    found = [_SESSION.search(one) for one in _ANSWERS.findall(output)] if output.startswith("Script ") else []
    left = [one[1] for one in found if one]
    return left if waits or len(left) == len(found) else []


def _answer(text: str) -> JsonObject:
    inner = as_arguments(text) if text.startswith("{") else {}
    if "output" in inner and "metadata" in inner:  # rollouts before 0.40
        code = as_object(inner["metadata"]).get("exit_code")
        return {"text": content_text(inner["output"]), "is_error": code not in (0, None)}
    failed, said = is_failure_text(text), HEADER.sub("", text)
    if text.startswith("Script "):  # it shows the answers of its commands, some of them whole
        failed = failed or text.startswith("Script failed") or bool(_FAILED_CODE.search(text))
        said = printed(said).strip()
    return {"text": said, "is_error": failed}
