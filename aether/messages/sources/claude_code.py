"""Claude Code: transcripts, one JSON object per line, and the entries that hooks put into the spool, as records.

Four fifths of a transcript are mirrors (`toolUseResult`), progress and bookkeeping; they are skipped. Work of a sub-agent
is in the file itself (1.0), inside `progress` (2.x) or in a file of its own, and its records have the sub-agent's type. A
line that was written twice is read once.

A hook's entry is one event, reduced. Its records are those of the transcript for the same event, as far as a hook gets
it: the prompt, each tool's input and output, the end of a turn. The identity of a record is made of Claude Code's ids and
of its text, never of time or order: an event that is delivered or drained twice gives the same records.
"""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from aether import regular
from aether.messages.branches import Node, Role, withdrawn
from aether.messages.model import as_object, as_text, content_text
from aether.messages.records import Part, RawConversation, Record, asked, parts, put_bounded, with_part
from aether.messages.replies import answers, reply
from aether.messages.speakers import is_agent, is_person, own_words
from aether.messages.tool_calls import ASKING_TOOL
from aether.text.regex import lazy
from aether.types import JsonObject

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from pathlib import Path

# Lines are rewritten soon after they were first written; sub-agents end within one stretch of work.
_REMEMBERED_LINES = 65_536
_REMEMBERED_AGENTS = 4_096
_SPEAKERS = {"user", "assistant"}
_TYPES = _SPEAKERS | {"system", "progress", "attachment"}
_HARNESS = "<synthetic>"
# In the output of a sub-agent that was only started and has no result yet.
_LAUNCHED = '"async_launched"'
_AGENTS = frozenset({"Task", "Agent"})
_HEAD_CHARS = 400
_SESSION = lazy(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")


class Queue:
    """The messages that a person typed while the assistant was busy, by the bookkeeping lines about them.

    One that is removed from the queue was handed to the model. One that is dequeued follows as a message of its own, and
    those that are popped go back to the person. Newer versions write an attachment too; the text is then given once.
    """

    def __init__(self) -> None:
        """Start without a message."""
        self._waiting: list[tuple[str, str]] = []
        self.directory = ""
        """The directory of the lines so far: those about the queue name none."""
        # What the queue gave and no attachment did, and, below zero, what only an attachment gave.
        self._ahead: Counter[str] = Counter()

    def taken(self, line: JsonObject) -> tuple[str, str]:
        """Return the text that `line` hands to the model, and an id for it; empty if it hands over none."""
        if not line.get("isSidechain"):
            self.directory = as_text(line.get("cwd")) or self.directory
        if line.get("type") != "queue-operation":
            return "", ""
        operation, text = line.get("operation"), as_text(line.get("content"))
        if operation == "enqueue":
            self._waiting.append((text, f"queued/{as_text(line.get('timestamp'))}"))
            return "", ""
        index = next((index for index, (waiting, _) in enumerate(self._waiting) if waiting == text), 0)
        first = self._waiting.pop(index) if self._waiting else ("", "")
        if operation == "popAll":
            self._waiting.clear()
        if operation != "remove" or not is_typed(first[0]):
            return "", ""
        self._ahead[first[0]] += 1
        return first if self._ahead[first[0]] > 0 else ("", "")

    def repeats(self, text: str) -> bool:
        """Return whether the `text` of an attachment was given by the queue already, and count it."""
        self._ahead[text] -= 1
        return self._ahead[text] >= 0


def is_typed(text: str) -> bool:
    """Return whether a queued `text` is a person's: no message or data of a program, and no command to it.

    >>> is_typed("No mocks please."), is_typed('{"task_id": "b1"}'), is_typed("/skills")
    (True, False, False)
    """
    bare = own_words(text)
    return bool(bare) and not _COMMAND.fullmatch(bare) and not _is_data(bare)


def _is_data(text: str) -> bool:
    try:
        return text[0] in "{[" and isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


# A command to the program, with its arguments; a path has a second slash.
_COMMAND = lazy(r"/[\w:-]+(?:\s.*)?", re.DOTALL)


class _Seen(NamedTuple):
    """Lines and sub-agents of the file so far."""

    lines: OrderedDict[str, bool]
    castes: OrderedDict[str, str]
    """Sub-agent types by the id and by the prompt of the call that started them."""
    chains: OrderedDict[str, tuple[str, str]]
    """Agent and caste by the uuid of a sidechain line without an agent id."""
    questions: OrderedDict[str, Any]
    """What was asked, by the id of the call."""
    queue: Queue


def is_line(value: Any) -> bool:
    """Return whether `value` is a line of a transcript, or one exported whole."""
    if not isinstance(value, dict):
        return False
    kind = as_text(value.get("type"))
    return (
        isinstance(value.get("loglines"), list)
        or "leafUuid" in value
        or (kind in _TYPES and not {"message", "uuid", "sessionId"}.isdisjoint(value))
        or ("sessionId" in value and bool(kind) and "role" not in value)
    )


def is_beside_session(path: Path) -> bool:
    """Return whether Claude Code keeps a file beside its sessions: a tool's output, or what an agent is.

    Nobody said what is in them, or it is in a session.
    """
    agent = path.name.removesuffix(".meta.json")
    if path.name != agent:
        return path.with_name(f"{agent}.jsonl").exists()
    for directory in path.parents:
        above = directory.parent
        if directory.name == "tool-results":
            session = above.with_name(f"{above.name}.jsonl")
            if _SESSION.fullmatch(session.name) or session.exists():
                return True
    return False


def records(values: Iterable[tuple[int, Any]], *, caste: str = "") -> Iterator[Record]:
    """Yield the records of the active branch of a transcript; `caste` names the sub-agent whose own file this is.

    `values` are iterated twice; an iterator is held in memory for it.
    """
    values = list(values) if isinstance(values, Iterator) else values
    seen = _Seen(OrderedDict(), OrderedDict(), OrderedDict(), OrderedDict(), Queue())
    spoken = announced = False
    inactive = withdrawn_lines(line for _, line in entries(values))
    for index, (number, line) in enumerate(entries(values)):
        queued = seen.queue.taken(line)
        for record in _line(number, line, queued, caste, seen) if index not in inactive else ():
            if record.kind == "summary":
                if spoken and not announced:  # older files have no line for the compaction
                    yield record._replace(kind="boundary", text="", part=-1)
            else:
                spoken = spoken or record.kind in _SPEAKERS
            announced = record.kind == "boundary" or (announced and record.kind not in _SPEAKERS)
            yield record


def withdrawn_lines(lines: Iterable[JsonObject]) -> frozenset[int]:
    """Return the positions of the lines that are not on the active branch."""
    return withdrawn(map(_node, lines))


def _node(line: JsonObject) -> Node:
    uuid = as_text(line.get("uuid"))
    if not uuid or is_agent(line):
        return Node(Role.OUTSIDE)
    message = as_object(line.get("message"))
    parent = line.get("parentUuid", "")
    parent = line.get("logicalParentUuid") if parent is None else parent
    return Node(
        _role(line, message), uuid, parent, as_text(message.get("id")), as_text(line.get("sessionId"))
    )


def _role(line: JsonObject, message: JsonObject) -> Role:
    kind = line.get("type")
    if kind not in _SPEAKERS or line.get("isCompactSummary"):
        return Role.BESIDE
    content = [*parts(message.get("content"))]
    kinds = {part.kind for _, part in content}
    if "result" in kinds:
        return Role.RESULT
    if kind == "user":
        prompts = asked(Record("system"), content, person=is_person(line))
        return Role.PROMPT if prompts and prompts[0].kind == "user" else Role.BESIDE
    if _is_of_harness(line, message):
        return Role.BESIDE
    return Role.CALLS if "call" in kinds else Role.RESPONSE


def _is_of_harness(line: JsonObject, message: JsonObject) -> bool:
    """Return whether the harness speaks for the model ("No response requested.")."""
    return bool(line.get("isMeta") or line.get("isApiErrorMessage") or message.get("model") == _HARNESS)


def entries(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, JsonObject]]:
    """Yield the lines of a transcript that are objects, also of one exported as a single object."""
    for number, value in values:
        if not isinstance(value, dict):
            continue
        inner = value.get("loglines")
        if isinstance(inner, list):  # a whole session exported as one object
            for index, line in enumerate(inner, start=1):
                if isinstance(line, dict):
                    yield number + index, line
        else:
            yield number, value


def _line(
    number: int, line: JsonObject, queued: tuple[str, str], caste: str, seen: _Seen
) -> Iterator[Record]:
    uuid = as_text(line.get("uuid"))
    if uuid:
        if uuid in seen.lines:
            return
        put_bounded(seen.lines, uuid, True, most=_REMEMBERED_LINES)
    head = Record(
        "system", uuid=uuid, time=as_text(line.get("timestamp")), line=number, session=as_text(line.get("sessionId")),
        directory=as_text(line.get("cwd")),
    )  # fmt: skip
    queued_text, queued_id = queued
    if queued_text:
        place = head.directory or seen.queue.directory
        yield head._replace(kind="user", text=own_words(queued_text), uuid=queued_id, directory=place)
    match line.get("type"):
        case "user" | "assistant":
            agent, kind = _agent(line, caste, seen)
            yield from _message(head._replace(agent=agent, caste=kind), line, seen)
        case "system":
            if line.get("subtype") == "compact_boundary":
                yield head._replace(kind="boundary", text=as_text(line.get("content")))
        case "attachment":
            yield from _attached(head, line, seen)
        case "progress":
            yield from _progress(head, line, seen)


def _attached(head: Record, line: JsonObject, seen: _Seen) -> Iterator[Record]:
    """Yield a prompt that was typed while the assistant was busy: it is here, or only in the lines about the queue."""
    about = as_object(line.get("attachment"))
    if about.get("type") != "queued_command":
        return
    typed = [part for part in parts(about.get("prompt")) if part[1].kind == "text"]
    typed = [part for part in typed if not seen.queue.repeats(part[1].text)]
    yield from asked(head, typed, person=is_person(about) and is_person(line))


def _message(head: Record, line: JsonObject, seen: _Seen) -> Iterator[Record]:
    message = as_object(line.get("message"))
    content = message.get("content")
    head = head._replace(message_id=as_text(message.get("id")))
    if line.get("isCompactSummary"):
        yield head._replace(kind="summary", text=content_text(content))
        return
    speaker = "system" if _is_of_harness(line, message) else line["type"]
    texts: list[tuple[int, Part]] = []
    for index, part in parts(content):
        record = with_part(head, part, speaker)._replace(part=index)
        if record.kind == "call":
            _remember_call(record, seen)
        if record.kind == "result":
            yield from _replies(record, line, seen)
        elif part.kind == "text" and speaker == "user":
            texts.append((index, part))
        else:
            yield record
    yield from asked(head, texts, person=is_person(line, by_agent=bool(head.caste)))


def _remember_call(record: Record, seen: _Seen) -> None:
    if record.tool == ASKING_TOOL:
        questions = record.arguments.get("questions")
        put_bounded(seen.questions, record.call_id, questions, most=_REMEMBERED_AGENTS)
    prompt = as_text(record.arguments.get("prompt"))
    if record.tool in _AGENTS and prompt:
        caste = as_text(record.arguments.get("subagent_type")) or "agent"
        put_bounded(seen.castes, record.call_id, caste, most=_REMEMBERED_AGENTS)
        put_bounded(seen.castes, prompt, caste, most=_REMEMBERED_AGENTS)


def _replies(result: Record, line: JsonObject, seen: _Seen) -> list[Record]:
    """Return a `result`, or what a person said in its place; the line has the answers to questions apart."""
    mirror = as_object(line.get("toolUseResult"))
    questions = seen.questions.pop(result.call_id, mirror.get("questions"))
    if questions is None:
        return [reply(result)]
    return answers(result, questions, mirror.get("answers"), mirror.get("annotations")) or [reply(result)]


def _progress(head: Record, line: JsonObject, seen: _Seen) -> Iterator[Record]:
    data = as_object(line.get("data"))
    inner = as_object(data.get("message"))
    if data.get("type") != "agent_progress" or as_text(inner.get("type")) not in _SPEAKERS:
        return
    started_by = as_text(line.get("parentToolUseID"))
    head = head._replace(
        agent=as_text(data.get("agentId")) or started_by,
        caste=seen.castes.get(started_by, "agent"),
        uuid=as_text(inner.get("uuid")) or head.uuid,
        time=as_text(inner.get("timestamp")) or head.time,
    )
    yield from _message(head, inner, seen)


def _agent(line: JsonObject, caste: str, seen: _Seen) -> tuple[str, str]:
    """Return the agent and the caste that wrote a line, both empty for the main conversation."""
    if not (is_agent(line) or caste):
        return "", ""
    parent, uuid = as_text(line.get("parentUuid")), as_text(line.get("uuid"))
    if parent in seen.chains:
        agent, kind = seen.chains[parent]
    else:
        prompt = content_text(as_object(line.get("message")).get("content"))
        agent = as_text(line.get("agentId")) or uuid
        kind = caste or seen.castes.get(prompt, "agent")
    if uuid:
        put_bounded(seen.chains, uuid, (agent, kind), most=_REMEMBERED_AGENTS)
    return agent, kind


class _Turn(NamedTuple):
    """One message of a transcript, and the results of its calls."""

    role: str
    content: Any
    results: list[JsonObject]


def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
    """Return the Anthropic messages of a transcript.

    A response is one message, with all its answers in one message after it, as they were sent to the model. Sub-agents,
    withdrawn branches, bookkeeping and the program's own messages are left out; the lines of a sub-agent's own file are read.
    """
    seen: set[str] = set()
    lines = []
    for _, line in entries(values):
        uuid = as_text(line.get("uuid"))
        if not uuid or uuid not in seen:
            seen.add(uuid)
            lines.append(line)
    inactive = withdrawn_lines(lines)
    lines = [line for index, line in enumerate(lines) if index not in inactive]
    main = [line for line in lines if not line.get("isSidechain")]
    return [RawConversation(_messages(main if any(map(_is_spoken, main)) else lines), "anthropic")]


def _is_spoken(line: JsonObject) -> bool:
    spoken = as_text(line.get("type")) in _SPEAKERS and isinstance(line.get("message"), dict)
    return spoken and not line.get("isMeta") and not line.get("isApiErrorMessage")


def _messages(lines: Iterable[JsonObject]) -> list[JsonObject]:
    turns: list[_Turn] = []
    responses: dict[str, _Turn] = {}
    callers: dict[str, _Turn] = {}
    queue = Queue()
    for line in lines:
        queued_text, _ = queue.taken(line)
        if queued_text:
            turns.append(_Turn("user", queued_text, []))
        if line.get("type") == "attachment":
            queued = as_object(line.get("attachment"))
            # A prompt that was typed while the assistant was busy is here, or only in the lines about the queue.
            prompt = queued.get("prompt") if queued.get("type") == "queued_command" else None
            if prompt and not queue.repeats(str(prompt)):
                turns.append(_Turn("user", queued["prompt"], []))
        elif not _is_spoken(line):
            continue
        elif line["type"] == "assistant":
            _add_assistant(line["message"], turns, responses, callers)
        else:
            _add_user(line["message"], turns, callers)
    raws = []
    for turn in turns:
        raws.append({"role": turn.role, "content": turn.content})
        if turn.results:
            raws.append({"role": "user", "content": turn.results})
    return raws


def _add_assistant(
    message: JsonObject, turns: list[_Turn], responses: dict[str, _Turn], callers: dict[str, _Turn]
) -> None:
    """Add a message of the assistant to its response, or as a new turn."""
    content, response = message.get("content"), as_text(message.get("id"))
    turn = responses.get(response)
    if turn is None or not isinstance(turn.content, list) or not isinstance(content, list):
        turn = _Turn("assistant", list(content) if isinstance(content, list) else content, [])
        turns.append(turn)
        if response:
            responses[response] = turn
    else:
        turn.content.extend(block for block in content if block not in turn.content)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            callers[block["id"]] = turn


def _add_user(message: JsonObject, turns: list[_Turn], callers: dict[str, _Turn]) -> None:
    """Add the results in a user message to the turns that called for them, and the rest as a new turn."""
    content = message.get("content")
    if not isinstance(content, list):
        turns.append(_Turn("user", content, []))
        return
    content_left: list[Any] = []
    for block in content:
        caller = callers.get(as_text(as_object(block).get("tool_use_id")))
        (caller.results if caller else content_left).append(block)
    if content_left or not content:
        turns.append(_Turn("user", content_left, []))


def hook_records(entry: JsonObject) -> list[Record]:
    """Return the records of one entry of the spool; none for events without content.

    >>> [record.kind for record in hook_records({"event": "PostToolUse", "tool": "Bash", "id": "t1", "output": "ok"})]
    ['call', 'result']
    """
    agent = as_text(entry.get("agent"))
    head = Record(
        "system", agent=agent, caste=(as_text(entry.get("caste")) or "agent") if agent else "",
        time=as_text(entry.get("at")), session=as_text(entry.get("session")),
    )  # fmt: skip
    reader = _READERS.get(as_text(entry.get("event")))
    return reader(head, entry) if reader else []


def record_identity(record: Record) -> str:
    """Return the identity of a record within its session, the same when it is delivered twice."""
    if record.kind in {"call", "result", "refusal"}:
        return _digest(record.kind, record.call_id)
    if record.kind == "answer":
        return _digest(record.kind, record.call_id, record.arguments.get("question"))
    return _digest(record.kind, record.agent, record.uuid, record.text)


def has_source_id(record: Record) -> bool:
    """Return whether Claude Code gave the event of a record an id; without one, the same text may be another event."""
    return bool(record.uuid) and not record.uuid.endswith("/")


def _prompt(head: Record, entry: JsonObject) -> list[Record]:
    text = as_text(entry.get("prompt"))
    if not text.strip():
        return []
    head = head._replace(uuid=f"prompt/{as_text(entry.get('prompt_id'))}")
    return asked(head, [(0, Part("text", text))], person=is_person(entry, by_agent=bool(head.agent)))


def _last_text(head: Record, uuid: str, entry: JsonObject) -> list[Record]:
    text = as_text(entry.get("message"))
    return [head._replace(kind="assistant", text=text, uuid=uuid, part=1)] if text.strip() else []


def _earlier_texts(head: Record, entry: JsonObject) -> list[Record]:
    """Return the texts before the last message, under the ids that the transcript has for them."""
    listed = entry.get("said")
    earlier: list[Record] = []
    for about in map(as_object, listed if isinstance(listed, list) else []):
        text, uuid = as_text(about.get("text")), as_text(about.get("uuid"))
        if not (text.strip() and uuid):
            continue
        time, part = as_text(about.get("at")) or head.time, about.get("part")
        record = head._replace(
            kind="assistant", text=text, uuid=uuid, message_id=as_text(about.get("id")), time=time,
            part=part if isinstance(part, int) else 0,
        )  # fmt: skip
        by_user = about.get("by") == "user"
        typed = asked(record, [(record.part, Part("text", text))], person=not head.agent) if by_user else []
        earlier += typed or [record]
    return earlier


def _batch(head: Record, entry: JsonObject) -> list[Record]:
    calls = entry.get("calls")
    return [
        record
        for call in (calls if isinstance(calls, list) else [])
        for record in _answered(head, as_object(call))
    ]


def _boundary(head: Record, entry: JsonObject) -> list[Record]:
    return [*_earlier_texts(head, entry), head._replace(kind="boundary")]


def _compacted(head: Record, entry: JsonObject) -> list[Record]:
    summary = as_text(entry.get("summary"))
    summaries = [head._replace(kind="summary", text=summary)] if summary.strip() else []
    return [*_boundary(head, entry), *summaries]


def _answered(head: Record, call: JsonObject) -> list[Record]:
    tool, arguments, output = (
        as_text(call.get("tool")),
        as_object(call.get("input")),
        as_text(call.get("output")),
    )
    if not tool:
        return []
    if tool in _AGENTS and _LAUNCHED in output[:_HEAD_CHARS]:
        output = ""
    uuid = as_text(call.get("id"))
    call_id = uuid or _digest(tool, arguments, output)
    head = head._replace(tool=tool, call_id=call_id, uuid=uuid or "call/")
    called = head._replace(kind="call", arguments=arguments, part=0)
    broken = bool(call.get("failed"))
    result = called._replace(kind="result", text=output, arguments={}, is_error=broken, part=1)
    replied = answers(result, arguments.get("questions")) if tool == ASKING_TOOL else []
    return [called, *(replied or [reply(result)])]


def _subagent(head: Record, entry: JsonObject) -> list[Record]:
    # The sub-agent that writes the summary of a compaction has an id but no type; its text is skipped.
    if not head.agent or not as_text(entry.get("caste")):
        return []
    uuid = f"agent/{head.agent}"
    task = as_text(entry.get("task_text"))
    opening = [head._replace(kind="system", text=task, uuid=uuid)] if task.strip() else []
    return [*opening, *_earlier_texts(head, entry), *_last_text(head, uuid, entry)]


def _task(head: Record, entry: JsonObject) -> list[Record]:
    subject, description = as_text(entry.get("subject")).strip(), as_text(entry.get("description")).strip()
    if not subject:
        return []
    about = f" – {description}" if description and description != subject else ""
    text, uuid = f"Task completed: {subject}{about}", f"task/{as_text(entry.get('task'))}"
    fields = {"type": "outcome", "caste": head.caste, "relevance_score": 0.6}
    return [head._replace(kind="item", text=text, arguments=fields, uuid=uuid)]


_READERS: dict[str, Callable[[Record, JsonObject], list[Record]]] = {
    "UserPromptSubmit": _prompt, "PostToolUse": _answered, "PostToolUseFailure": _answered, "PostToolBatch": _batch,
    "Stop": lambda head, entry: [*_earlier_texts(head, entry), *_last_text(head, f"stop/{as_text(entry.get('prompt_id'))}", entry)],
    "SubagentStop": _subagent, "TaskCompleted": _task, "PreCompact": _boundary, "PostCompact": _compacted,
}  # fmt: skip


def _digest(*values: Any) -> str:
    return regular.digest(json.dumps(values, sort_keys=True, default=str).encode())[:16]
