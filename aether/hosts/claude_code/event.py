"""The events of Claude Code as events of `aether.hosts.hook`, and the output by which it gives text to its model.

A hook gets a structure of the tool's own where the transcript has a text: `response_text` makes the same text of
both, so that the notes do not depend on the source. Every tool call of a session pays for each import here.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS, ADVICE = "Claude Code", ("claude",), ""
# The directory in which a session was started, and the process that started the hook.
PROJECT_VARIABLE, PROCESS_VARIABLE = "CLAUDE_PROJECT_DIR", "CLAUDE_PID"
# The events whose output Claude Code gives to the model; it ignores that of others.
TEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart", "PostToolUse"})
# Claude Code's limit in its own units: of a longer text it shows only the start. MOST_CHARS stays well below.
LIMIT_CHARS = 10_000
MOST_CHARS = 9_000
# Sent only if `claude.file_history` was on when aether was installed; nothing is kept of it.
READ_TOOL = "Read"
# Tools that change nothing, nor the list of tasks: no note is ever made of them.
READ_ONLY_TOOLS = frozenset(
    "Read Grep Glob LS NotebookRead TodoRead WebSearch WebFetch BashOutput KillShell KillBash ToolSearch "
    "TaskList TaskGet TaskOutput TaskStop Skill ListMcpResourcesTool ReadMcpResourceTool".split()
)
AGENT_TOOLS = frozenset({"Task", "Agent"})
# Fields of an event with those of the payload that they come from.
_FIELDS = {
    "prompt_id": "prompt_id", "source": "source", "reason": "reason", "trigger": "trigger", "task": "task_id",
    "prompt": "prompt", "message": "last_assistant_message", "subject": "task_subject",
    "description": "task_description", "summary": "compact_summary",
}  # fmt: skip
# A response that is nested deeper, or dumped longer, gives no note.
_RESPONSE_DEPTH = 8
_DUMPED_CHARS = 20_000
_RESPONSE_TEXTS = ("content", "result", "output", "message", "text")
# How Claude Code writes the answers of a person to questions.
_QUESTIONS_ANSWERED = "Your questions have been answered"
_ONLY_NOTES, _NO_OPTION = "(notes only)", "(no option selected)"


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    """Return the event in `payload`; `name` is used if the payload does not name its event.

    >>> event_of({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Use SQLite", "cwd": "/src"})
    {'event': 'UserPromptSubmit', 'session': 's', 'directory': '/src', 'prompt': 'Use SQLite'}
    """
    name = _text(payload, "hook_event_name") or name
    agent, caste = _text(payload, "agent_id"), _text(payload, "agent_type")
    if name == "SubagentStop" and not caste:
        name = ""  # the sub-agent without a type is the one that writes the summary of a compaction
    event: JsonObject = {field: text for field, key in _FIELDS.items() if (text := _text(payload, key))}
    event["transcript"] = os.path.basename(_text(payload, "transcript_path").replace("\\", "/"))
    event |= {"agent": agent, "caste": caste if agent or name == "SubagentStart" else ""}
    event = {field: value for field, value in event.items() if value}
    if payload.get("stop_hook_active") is True:
        event["stop_hook_active"] = True
    if name == "PostToolUse" and payload.get("tool_name") == READ_TOOL:
        arguments = payload.get("tool_input")
        event["read"] = arguments if isinstance(arguments, dict) else {}
    elif name == "PreToolUse":
        event["call"] = _planned(payload)
    elif name in ("PostToolUse", "PostToolUseFailure"):
        event["call"] = _call(payload, failed=name == "PostToolUseFailure")
    return {
        "event": name,
        "session": _text(payload, "session_id"),
        "directory": _text(payload, "cwd"),
        **event,
    }


def speech_of(payload: JsonObject, name: str) -> JsonObject:
    """Return the fields of the event `name` that only the transcript of its session holds."""
    from aether.hosts.claude_code.transcript import agent_task, interim_texts

    last, agent_transcript = _text(payload, "last_assistant_message"), _text(payload, "agent_transcript_path")
    if name == "SubagentStop":
        return {
            "task_text": agent_task(agent_transcript),
            "said": interim_texts(agent_transcript, message=last, agent=True),
        }
    return {"said": interim_texts(_text(payload, "transcript_path"), message=last)}


def takes_text(name: str) -> bool:
    """Return whether Claude Code gives the output of this event to its model."""
    return name in TEXT_EVENTS


def output(name: str, text: str) -> str:
    """Return the output that gives `text` to the model, as many lines of it as fit; nothing if the event takes no text.

    >>> output("SubagentStart", "Use SQLite.")
    '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Use SQLite."}}'
    >>> output("PreCompact", "Keep the plan.")
    ''
    """
    return context_output(name, text) if takes_text(name) else ""


def context_output(name: str, text: str) -> str:
    """Return the output of the host's event `name` that gives as many lines of `text` to the model as fit."""

    def shape(text: str) -> str:
        context = {"hookEventName": name, "additionalContext": text}
        return json.dumps({"hookSpecificOutput": context}, ensure_ascii=False)

    return fitted(text, shape)


def message(text: str) -> str:
    """Return the output that shows `text` to the user."""
    return json.dumps({"systemMessage": text}, ensure_ascii=False)


def stop(action: str, reason: str) -> str:
    """Return the output that denies the call that waits for permission, or has the person asked, with the reason.

    >>> stop("ask", "Never push.")
    '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "Never push."}}'
    """
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": action,
        "permissionDecisionReason": reason,
    }
    return json.dumps({"hookSpecificOutput": decision}, ensure_ascii=False)


def ways_to_close() -> tuple[bool, str]:
    """Return how an agent can close its session: whether it has our MCP server, and our command, if there is one."""
    from aether.hosts.claude_code.install import ways_to_close

    return ways_to_close()


def fitted(text: str, shape: Callable[[str], str]) -> str:
    """Return the `shape` of as many lines as fit; the last line, which closes the block, always stays."""
    *lines, last = text.splitlines() or [""]
    if length_of(shape(text)) > MOST_CHARS:
        number = len(lines)
        while number >= 0 and length_of(shape(text)) > MOST_CHARS:
            number -= 1
            text = "\n".join([*lines[:number], last]) if number >= 0 else ""
    return shape(text) if text.strip() else ""


def length_of(text: str) -> int:
    """Return the length of `text` for Claude Code: characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _text(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    return value if isinstance(value, str) else ""


def _planned(payload: JsonObject) -> JsonObject:
    """Return a call that waits for permission, of any tool."""
    arguments = payload.get("tool_input")
    arguments = arguments if isinstance(arguments, dict) else {}
    return {"tool": _text(payload, "tool_name"), "input": arguments, "output": "", "failed": False}


def _call(payload: JsonObject, *, failed: bool) -> JsonObject | None:
    """Return a call with its output; None of a tool that is never noted."""
    tool = _text(payload, "tool_name")
    if not tool or tool in READ_ONLY_TOOLS:
        return None
    arguments, response = payload.get("tool_input"), payload.get("tool_response", payload.get("error"))
    return {
        "tool": tool, "id": _text(payload, "tool_use_id"),
        "input": arguments if isinstance(arguments, dict) else {}, "output": response_text(response),
        "failed": failed or is_failure(payload.get("tool_response")),
        "is_speech": tool in AGENT_TOOLS or _has_answers(response),
    }  # fmt: skip


def response_text(response: Any) -> str:
    r"""Return the text of a tool's response.

    >>> response_text({"stdout": "12 passed", "stderr": "slow", "interrupted": False})
    '12 passed\nslow'
    >>> response_text([{"type": "text", "text": "done"}]), response_text({"type": "create", "filePath": "a.py", "content": "x"})
    ('done', 'The file a.py has been created.')
    """
    if not isinstance(response, dict):
        return _flat(response, _RESPONSE_DEPTH)
    if "stdout" in response or "stderr" in response:
        process = _text(response, "backgroundTaskId")
        background = f"Command running in background with ID: {process}" if process else ""
        return "\n".join(filter(None, [background, _text(response, "stdout"), _text(response, "stderr")]))
    if path := _text(response, "filePath"):
        return f"The file {path} has been {'created' if response.get('type') == 'create' else 'updated'}."
    if _has_answers(response):
        return _answers_text(response)
    task = response.get("task")
    if isinstance(task, dict) and _text(task, "id"):
        return f"Task #{_text(task, 'id')} created successfully: {_text(task, 'subject')}"
    texts = [response[name] for name in _RESPONSE_TEXTS if isinstance(response.get(name), str | list)]
    return (
        _flat(texts[0], _RESPONSE_DEPTH)
        if texts
        else json.dumps(response, ensure_ascii=False)[:_DUMPED_CHARS]
    )


def _has_answers(response: Any) -> bool:
    return isinstance(response, dict) and isinstance(response.get("answers"), dict)


def _answers_text(response: JsonObject) -> str:
    """Return what a transcript says of a person's answers: options, words in place of them, and notes on them."""
    chosen, annotations = response["answers"], response.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    pairs = []
    for question in {**chosen, **annotations}:
        choice = chosen.get(question)
        answer = ",".join(map(str, choice)) if isinstance(choice, list) else _text(chosen, question)
        about = annotations.get(question)
        notes = _text(about, "notes") if isinstance(about, dict) else ""
        if (answer and answer != _ONLY_NOTES) or notes:
            answer = answer if answer not in ("", _ONLY_NOTES) else _NO_OPTION
            pairs.append(f'"{question}"="{answer}"' + (f" notes: {notes}" if notes else ""))
    answers, words = ", ".join(pairs), _text(response, "response").strip()
    if response.get("afkTimeoutMs"):
        return "No response: the user may be away."
    if response.get("followUp") is True:
        so_far = f"you proceed. So far they answered: {answers}." if answers else "answering."
        also = f' They also wrote: "{words}".' if words else ""
        return f"The user asked for more questions before {so_far}{also} Call AskUserQuestion again."
    if words:
        return f"The user responded: {words}"
    if not answers:
        return "The user did not answer the questions."
    return f"{_QUESTIONS_ANSWERED}: {answers}. You can now continue with these answers in mind."


def is_failure(response: Any) -> bool:
    r"""Return whether a response itself reports that the tool failed.

    >>> is_failure({"isError": True}), is_failure("Exit code 1\nno such file"), is_failure("1 error found")
    (True, True, False)
    """
    if isinstance(response, dict):
        return response.get("isError") is True or response.get("is_error") is True
    head = response[:80].lstrip() if isinstance(response, str) else ""
    return bool(re.match(r"Exit code -?[1-9]|<tool_use_error>|Error: ", head))


def _flat(content: Any, depth: int) -> str:
    """Return the texts of content blocks as one."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and depth:
        return "\n".join(text for text in (_flat(part, depth - 1) for part in content) if text)
    if isinstance(content, dict) and depth:
        is_image = content.get("type") == "image"
        return "[image]" if is_image else _flat(content.get("text", content.get("content", "")), depth - 1)
    return ""


def directory() -> Path:
    """Return the directory of the user's settings and sessions."""
    from aether.hosts.claude_code.install import claude_directory

    return claude_directory()


def edits(scope: str, project: Path | None) -> list[Edit]:
    """Return how the settings of `scope`, and the file of its MCP servers, are changed."""
    from aether.hosts.claude_code import install

    return install.edits(scope, project)
