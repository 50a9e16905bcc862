"""Codex rollouts: one `{timestamp, type, payload}` object per line.

`response_item` lines are the model's input and output; `event_msg` lines repeat them for the terminal and are skipped.
The answers of tools have a header with the exit code; it becomes the error flag. The rollout of a sub-agent that knows what
was said before starts with a copy of it: those records are the session's that started the agent, and say that they are copied.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.messages.branches import taken_back
from aether.messages.model import as_arguments, as_object, as_text, content_text, is_failure_text
from aether.messages.records import RawConversation, Record, asked, parts, put_bounded, with_part
from aether.messages.replies import answers, reply
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
_OBJECT = lazy(r'^(?=\{"chunk_id":)', re.MULTILINE)
_SESSION = lazy(r'\A(?:(?!"output").)*?"session_id":\s*(\d+)')
_TOOLS = lazy(r"""\btools\.(\w+)\((?:(?<=write_stdin\()\s*\{[^{}]*?\bsession_id["']?\s*:\s*["']?(\d+))?""")
# What Codex says above an output: how the command ran.
HEADER = lazy(
    r"\A(?:(?:Script (?:completed|failed)|Chunk ID|Wall time|Process |Exit code|Original token count|Total output lines).*\n)+Output:\n"
)
# How the person answers questions: in the place of a result, or of questions that wait, in a message of its own.
_ASKING_TOOL, _REPLY = "request_user_input", "<send_user_message_question_reply>"
_ROLLBACKS = frozenset({"thread_rolled_back", "thread_rollback", "rollback"})
_TURNS_BACK = ("num_turns", "numTurns", "turns")
_FAILED_CODE = lazy(r'^\{"chunk_id":.*?"exit_code":\s*[1-9]', re.MULTILINE)


_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


class _Call(NamedTuple):
    """A call, until the last of its commands has ended."""

    record: Record
    commands: list[str]
    """What it polls and starts, in the order of its script: the numbers of processes, "?" if not written out, "" if new."""
    only_polls: bool
    printed: list[str]
    """What its script has printed before it was left running."""
    running: set[str]
    answers: list[JsonObject]


class _Running(NamedTuple):
    """What is answered later: the calls by the number of a process, by that of a script, and by their id."""

    commands: OrderedDict[str, _Call]
    scripts: OrderedDict[str, _Call]
    calls: OrderedDict[str, _Call]
    questions: OrderedDict[str, Any]
    """What was asked and waits for an answer, by the id of the call."""


def is_line(value: Any) -> bool:
    """Return whether `value` is a line of a rollout."""
    return isinstance(value, dict) and as_text(value.get("type")) in _TYPES and "payload" in value


def _nothing_running() -> _Running:
    return _Running(OrderedDict(), OrderedDict(), OrderedDict(), OrderedDict())


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of a rollout, without the turns that were rolled back.

    `values` are iterated twice; an iterator is held in memory for it.
    """
    values = list(values) if isinstance(values, Iterator) else values
    inactive = withdrawn_lines(line for _, line in values)
    # What every record of a session says: of the rollout's own, then of those whose copy is being read, one in the other.
    heads = [Record("system")]
    parent = copied = ""
    running, is_typed = _nothing_running(), True
    for index, (number, line) in enumerate(values):
        if index in inactive or not isinstance(line, dict):
            continue
        payload = as_object(line.get("payload"))
        kind, time = as_text(line.get("type")), as_text(line.get("timestamp"))
        is_end = len(heads) > 1 and content_text(payload.get("output")).startswith(_SPAWNED)
        if is_end or (len(heads) > 1 and _is_later(time, copied)):
            del heads[-1 if is_end else 1 :]
            running = _nothing_running()
        if kind == "session_meta" and (not heads[0].session or (parent and payload.get("id") == parent)):
            head, parent = _head(payload)
            copied = time
            is_typed = as_text(payload.get("thread_source")) in {"", "user"}
            heads = [*heads, head._replace(copied=True)] if heads[0].session else [head]
        if kind in {"session_meta", "turn_context"}:
            heads[-1] = heads[-1]._replace(directory=as_text(payload.get("cwd")) or heads[-1].directory)
        head = heads[-1]._replace(time=time, line=number)
        if kind == "compacted":
            yield head._replace(kind="boundary", text=as_text(payload.get("message")))
        elif kind == "response_item" and not is_end:
            if payload.get("role") == "user":
                yield from _partly_ended(head, running)
            yield from _item(head, payload, running, person=is_typed and not head.agent)


def withdrawn_lines(lines: Iterable[Any]) -> frozenset[int]:
    """Return the positions of the lines of turns that were rolled back."""
    return taken_back(map(_mark, lines))


def _mark(line: Any) -> tuple[str, Any]:
    line = as_object(line)
    payload = as_object(line.get("payload"))
    if line.get("type") == "response_item":
        is_turn = payload.get("role") == "user" and _message(Record("system"), payload)[0].kind != "system"
        return ("turn", "") if is_turn else ("", "")
    if _ROLLBACKS.isdisjoint((as_text(payload.get("type")), as_text(line.get("type")))):
        return "", ""
    turns = next((payload[key] for key in _TURNS_BACK if isinstance(payload.get(key), int)), 1)
    return "turns", turns


def _is_later(time: str, copied: str) -> bool:
    """Return whether a line at `time` was written after those that were copied at once; False without a time."""
    try:
        return clock.parse(time) - clock.parse(copied) >= _COPIED_WITHIN
    except InvalidInput:
        return False


def _head(meta: JsonObject) -> tuple[Record, str]:
    """Return what the records of a session have in common, and the session of which it has a copy."""
    head = Record("system", session=as_text(meta.get("id")))
    source = meta.get("source")
    if not isinstance(source, dict) or "subagent" not in source:
        return head, ""
    role = as_text(meta.get("agent_role")) or "agent"
    return head._replace(agent=head.session, caste=role), as_text(meta.get("forked_from_id"))


def _message(
    head: Record, payload: JsonObject, questions: JsonObject | None = None, *, person: bool = True
) -> list[Record]:
    """Return the records of a message: what a person asked is one, whatever its parts."""
    role, content = as_text(payload.get("role")), [*parts(payload.get("content"))]
    head = head._replace(message_id=as_text(payload.get("id")))
    if role != "user":
        speaker = role if role == "assistant" else "system"
        return [with_part(head, part, speaker)._replace(part=index) for index, part in content]
    text = "\n".join(part.text for _, part in content)
    if person and text.lstrip().startswith(_REPLY) and (replies := _replies(head, text, questions or {})):
        return replies
    return asked(head, content, person=person) or [head]


def _replies(head: Record, text: str, questions: JsonObject) -> list[Record]:
    """Return the answers to questions that waited; a reply names its question, and mostly the call that asked it."""
    try:
        listed, _ = json.JSONDecoder().raw_decode(text.partition(_REPLY)[2].strip())
    except (ValueError, RecursionError):
        return []
    entries = [as_object(entry) for entry in (listed if isinstance(listed, list) else [listed])]
    waiting = [question for asked_at_once in questions.values() for question in asked_at_once]
    choices = {as_text(entry.get("question")): entry.get("answer") for entry in entries}
    return answers(head, waiting, choices)


def _item(head: Record, payload: JsonObject, running: _Running, *, person: bool) -> Iterator[Record]:
    call_id = as_text(payload.get("call_id"))
    match payload.get("type"):
        case "message":
            records = _message(head, payload, running.questions, person=person)
            yield from (record for record in records if record.text)
        case "function_call" | "custom_tool_call" | "local_shell_call":
            arguments = as_arguments(payload.get("arguments", payload.get("input", payload.get("action"))))
            name = as_text(payload.get("name")) or "shell"
            record = head._replace(kind="call", tool=name, arguments=arguments, call_id=call_id)
            if isinstance(arguments.get("questions"), list):
                put_bounded(running.questions, call_id, arguments["questions"], most=_REMEMBERED_COMMANDS)
            script = running.scripts.get(str(arguments.get("cell_id", "")))
            call = script or _called(record, running)
            put_bounded(running.calls, call_id, call, most=_REMEMBERED_COMMANDS)
            if not (script or call.only_polls):
                yield record
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            call = running.calls.pop(call_id, _called(head._replace(call_id=call_id), running))
            output = content_text(payload.get("output"))
            if call.record.tool == _ASKING_TOOL:
                result = head._replace(kind="result", call_id=call_id, text=output)
                questions = running.questions.pop(call_id, [])
                yield from answers(result, questions, as_arguments(output).get("answers")) or [result]
                return
            yield from map(reply, _results(head, call, output, running))


def _called(record: Record, running: _Running) -> _Call:
    tools = _TOOLS.findall(as_text(record.arguments.get("input")))
    polled = [(tool, (session or "?") if tool == "write_stdin" else "") for tool, session in tools]
    commands = [name for tool, name in polled if tool in {"exec_command", "write_stdin"}]
    if "session_id" in record.arguments:
        commands = [str(record.arguments["session_id"])]
    # A script may edit a file, too.
    polls = [name in running.commands for name in commands] + [tool == "write_stdin" for tool, _ in tools]
    return _Call(record, commands, bool(polls) and all(polls), [], set(), [])


def _results(head: Record, call: _Call, output: str, running: _Running) -> Iterator[Record]:
    """Yield the results of `call` and of the calls that it polls, of each that has ended with `output`."""
    if script := _SCRIPT_RUNNING.match(output):
        call.printed.append(output.partition("Output:\n")[2] + "\n")
        put_bounded(running.scripts, script[1], call, most=_REMEMBERED_COMMANDS)
        return
    top, answers_ = _shown(output, call.printed)
    names = _paired(call, [session for session, _ in answers_], running)
    touched, texts = [] if names and call.only_polls else [call], [top]
    if touched and call.only_polls:
        yield call.record
    for name, (session, text) in zip(names or [""] * len(answers_), answers_, strict=True):
        if name in running.commands and not session:
            polled = running.commands.pop(name)
            polled.running.discard(name)
            polled.answers.append(_answer(f"Script completed\nOutput:\n{text}" if top else text))
            touched.append(polled)
            continue
        texts.append(text)
        # A script that polls shows again what other calls have started.
        if session and not (any(call.commands) and session in running.commands):
            call.running.add(session)
            put_bounded(running.commands, session, call, most=_REMEMBERED_COMMANDS)
    call.answers.append(_answer("".join(texts)))
    ended = {
        touched_call.record.call_id: touched_call.answers
        for touched_call in touched
        if not touched_call.running
    }
    for part, (call_id, outputs) in enumerate(ended.items()):
        yield _result(head, part, call_id, outputs)


def _partly_ended(head: Record, running: _Running) -> Iterator[Record]:
    """Yield the results of the calls of which a command goes on when the person writes, as far as their others have ended."""
    for call in {id(call): call for call in running.commands.values()}.values():
        if any(answer["text"] or answer["is_error"] for answer in call.answers):
            yield _result(head, 0, call.record.call_id, call.answers)
            call.answers.clear()


def _result(head: Record, part: int, call_id: str, answers: list[JsonObject]) -> Record:
    text = "\n".join(answer["text"] for answer in answers if answer["text"])
    failed = any(answer["is_error"] for answer in answers)
    return head._replace(kind="result", part=part, call_id=call_id, text=text, is_error=failed)


def _shown(output: str, printed_before: list[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return what a script says above the answers of its commands, and of each the session if it goes on, and the text.

    What a command has printed that goes on is left out: it is not its outcome. Without a script there is one answer.
    """
    process = _RUNNING.search(output[:_HEADER_CHARS])
    if process or not output.startswith("Script "):
        return "", [(process[1], "") if process else ("", output)]
    head, above, printed_ = output.partition("Output:\n")
    top, *objects = _OBJECT.split("".join((head, above, *printed_before, printed_)))
    matches = [(_SESSION.match(shown_object), shown_object) for shown_object in objects]
    return top, [
        (session[1], shown_object.partition("\n")[2]) if session else ("", shown_object)
        for session, shown_object in matches
    ]


def _paired(call: _Call, sessions: list[str], running: _Running) -> list[str] | None:
    """Return the polled command of each answer, "" if it is one of the call itself; None if that is not known.

    Commands that go on have their session in `sessions`; those that have ended only have their place.
    """
    names = [name if name in running.commands else "" for name in call.commands]
    if not any(names):
        return None if call.only_polls else [""] * len(sessions)
    names = names[:1] * len(sessions) if len(set(names)) == 1 else names
    pairs = zip(sessions, names, strict=False)
    fits = all(not session or (session == name if name else session not in names) for session, name in pairs)
    return names if names and len(names) == len(sessions) and fits else None


def _answer(text: str) -> JsonObject:
    inner = as_arguments(text) if text.startswith("{") else {}
    if "output" in inner and "metadata" in inner:  # rollouts before 0.40
        code = as_object(inner["metadata"]).get("exit_code")
        return {"text": content_text(inner["output"]), "is_error": code not in (0, None)}
    failed, output = is_failure_text(text), HEADER.sub("", text)
    if text.startswith("Script "):  # it shows the answers of its commands, some of them whole
        failed = failed or text.startswith("Script failed") or bool(_FAILED_CODE.search(text))
        output = printed(output).strip()
    return {"text": output, "is_error": failed}


def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
    """Return the items of a rollout, without the turns that were rolled back, and its instructions."""
    lines = [as_object(line) for _, line in values]
    inactive = withdrawn_lines(lines)
    items = [
        payload for index, line in enumerate(lines)
        if index not in inactive and line.get("type") == "response_item" and (payload := as_object(line.get("payload")))
    ]  # fmt: skip
    meta = next((as_object(line.get("payload")) for line in lines if line.get("type") == "session_meta"), {})
    instructions = meta.get("instructions") or as_object(meta.get("base_instructions")).get("text")
    return [RawConversation(items, "responses", instructions)]
