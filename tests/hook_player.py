"""The hook player: a transcript played as the payloads that hooks were given while it was written.

A hook is told less than a transcript says: what an assistant wrote between two calls is not among it. That it finds
in the transcript, which is played too where there is room for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aether.hosts import hook
from aether.hosts.claude_code import event
from aether.messages.model import content_text
from aether.messages.records import Record
from aether.messages.sources import claude_code
from aether.store import spool
from aether.text.cleaning import clean

_AGENTS = {"Task", "Agent"}
_INTERRUPTED = "[Request interrupted"


def payloads(path: str | os.PathLike[str], room: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the payloads of the hooks of the session that the transcript at `path` holds, in their order.

    The transcript lies in the directory `room` then, and holds what it held when the hook was called.
    """
    lines = list(_lines(Path(path)))
    player = _Player(Path(path), dict(claude_code.entries(lines)), room)
    yield player.event("SessionStart", source="startup")
    for record in claude_code.records(lines):
        player.written(record)
        yield from player.play(record)
    player.written(None)
    yield from player.ended()
    yield player.event("SessionEnd", reason="other")


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield number, json.loads(line)
        except ValueError:
            continue


class _Player:
    """What is known of the session so far."""

    def __init__(self, path: Path, lines: dict[int, dict[str, Any]], room: Path | None) -> None:
        self.path, self.lines, self.room = path, lines, room
        self.unwritten = sorted(lines, reverse=True)
        self.agents: dict[int, str] = {}  # by line
        self.session = next(
            (line["sessionId"] for line in lines.values() if line.get("sessionId")), path.stem
        )
        self.prompt_id = ""
        self.said: dict[str, tuple[str, str]] = {}  # message id and text, by agent
        self.calls: dict[str, Record] = {}
        self.tasks: dict[str, tuple[str, str]] = {}  # caste and first prompt, by agent

    @property
    def place(self) -> Path:
        return self.room or Path("/home/user/.claude/projects/p")

    def agent_place(self, agent: str) -> Path:
        return self.place / self.session / "subagents" / f"agent-{agent}.jsonl"

    def written(self, record: Record | None) -> None:
        """Write what the transcript held before `record`; the work of a sub-agent goes into a file of its own too."""
        if self.room is None:
            return
        with (self.room / self.path.name).open("a", encoding="utf-8") as file:
            while self.unwritten and (record is None or self.unwritten[-1] < record.line):
                number = self.unwritten.pop()
                line = self.lines[number]
                file.write(json.dumps(line) + "\n")
                if agent := self.agents.get(number):
                    inner = line.get("data", {}).get("message", line)
                    own = self.agent_place(agent)
                    own.parent.mkdir(parents=True, exist_ok=True)
                    with own.open("a", encoding="utf-8") as other:
                        other.write(
                            json.dumps(
                                {"uuid": line.get("uuid"), **inner, "isSidechain": True, "agentId": agent}
                            )
                            + "\n"
                        )
        if record is not None and record.agent:
            self.agents[record.line] = record.agent

    def event(self, name: str, agent: str = "", caste: str = "", **more: Any) -> dict[str, Any]:
        found = {
            "session_id": self.session, "transcript_path": str(self.place / self.path.name),
            "cwd": "/home/user/p", "hook_event_name": name,
        }  # fmt: skip
        if self.prompt_id:
            found["prompt_id"] = self.prompt_id
        if agent:
            found |= {"agent_id": agent, "agent_type": caste}
        return found | more

    def play(self, record: Record) -> Iterator[dict[str, Any]]:
        match record.kind:
            case "system" if record.agent and record.agent not in self.tasks:
                self.tasks.setdefault(record.agent, (record.caste, record.text))
            case "user":
                yield from self.prompted(record)
            case "assistant":
                self.heard(record)
            case "call":
                self.calls[record.call_id] = record
                self.said.pop(record.agent, None)
            case "result":
                yield from self.returned(record)
            case "answer" | "refusal" if record.call_id in self.calls:
                # The host hands a hook the words of the result, from which the reader made this record.
                words = self.result_of(record)
                yield from self.returned(record._replace(text=words, is_error=record.kind == "refusal"))
            case "boundary":
                yield from self.stopped()
                yield self.event("PreCompact", trigger="auto", custom_instructions=None)
                yield self.event(
                    "SubagentStop", "c0ffee", stop_hook_active=False, last_assistant_message="Summary."
                )
                yield self.event("SessionStart", source="compact")
                yield self.event("PostCompact", trigger="auto", compact_summary="Summary.")

    def result_of(self, record: Record) -> str:
        content = (self.lines[record.line].get("message") or {}).get("content")
        blocks = content if isinstance(content, list) else []
        return next(
            (
                content_text(block.get("content"))
                for block in blocks
                if block.get("tool_use_id") == record.call_id
            ),
            "",
        )

    def prompted(self, record: Record) -> Iterator[dict[str, Any]]:
        if record.text.startswith(_INTERRUPTED):
            self.said.pop("", None)
            return
        if self.lines[record.line].get("type") != "attachment":
            yield from self.stopped()
        typed = clean(record.text)
        if typed:
            self.prompt_id = str(self.lines[record.line].get("promptId") or record.uuid)
            yield self.event(
                "UserPromptSubmit", prompt=typed if "<command-name>" in record.text else record.text
            )

    def heard(self, record: Record) -> None:
        message_id, text = self.said.get(record.agent, ("", ""))
        if message_id and message_id == record.message_id:
            self.said[record.agent] = message_id, f"{text}\n\n{record.text}"
        else:
            self.said[record.agent] = record.message_id, record.text

    def returned(self, record: Record) -> Iterator[dict[str, Any]]:
        call = self.calls.pop(record.call_id, None)
        if call is None:
            return
        if call.tool in _AGENTS:
            prompt = call.arguments.get("prompt")
            for agent in [agent for agent, (_, task) in self.tasks.items() if task == prompt]:
                yield from self.agent_stopped(agent)
        given = {"tool_name": call.tool, "tool_input": call.arguments, "tool_use_id": record.call_id}
        self.said.pop(record.agent, None)
        if record.is_error:
            yield self.event("PostToolUseFailure", record.agent, record.caste, **given, error=record.text)
        else:
            mirror = self.lines[record.line].get("toolUseResult") if not record.agent else None
            response = mirror if mirror is not None else record.text
            yield self.event("PostToolUse", record.agent, record.caste, **given, tool_response=response)

    def stopped(self) -> Iterator[dict[str, Any]]:
        _, text = self.said.pop("", ("", ""))
        if text:
            yield self.event("Stop", stop_hook_active=False, last_assistant_message=text)

    def agent_stopped(self, agent: str) -> Iterator[dict[str, Any]]:
        caste, _ = self.tasks.pop(agent)
        _, text = self.said.pop(agent, ("", ""))
        yield self.event(
            "SubagentStop", agent, caste, stop_hook_active=False, last_assistant_message=text,
            agent_transcript_path=str(self.agent_place(agent)),
        )  # fmt: skip

    def ended(self) -> Iterator[dict[str, Any]]:
        for agent in list(self.tasks):
            yield from self.agent_stopped(agent)
        yield from self.stopped()


def entry(event: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    """Return an entry of the spool."""
    common = {"session": session, "at": "2026-03-01T10:15:00.000000Z", "transcript": f"{session}.jsonl"}
    return {"event": event, **common, **more}


def called(
    number: int, command: str, output: str = "", *, failed: bool = False, **more: Any
) -> dict[str, Any]:
    """Return the entry of a shell command that ran."""
    event = "PostToolUseFailure" if failed else "PostToolUse"
    given = {"tool": "Bash", "input": {"command": command}, "output": output, "failed": failed}
    return entry(event, id=f"toolu_{number}", **given | more)


def turn(number: int, session: str = "s1") -> list[dict[str, Any]]:
    """Return the entries of a turn, each of which gives rise to one note of its own."""
    prompt_id = f"p{number}"
    port = 8000 + number
    return [
        entry("UserPromptSubmit", session, prompt=f"Please move service {number} to port {port}.", prompt_id=prompt_id),
        called(number, f"make service-{number}", f"service {number} passed", session=session),
        entry(
            "Stop", session, prompt_id=prompt_id,
            message=f"Decision: service {number} of {session} listens on port {port} because the other one is taken.",
        ),
    ]  # fmt: skip


def entry_of(payload: dict[str, Any], *, private: str = "") -> dict[str, Any] | None:
    """Return the entry of the payload of a hook; it may name `said` and `task_text`, which a transcript would hold."""
    spoken = {field: payload[field] for field in ("said", "task_text") if field in payload}
    return hook.entry_of(event.event_of(payload) | spoken, private=private)


def put(home: Path, *entries: dict[str, Any]) -> list[str]:
    """Put entries into the spool of `home` and return their names."""
    return [spool.put(str(home), each) for each in entries]
