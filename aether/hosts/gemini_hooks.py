"""Gemini CLI: its hooks have names of their own; its settings have the form of Claude Code's, with times in milliseconds.

It has no event after a compaction, and none for sub-agents. Hooks of a project run only in a folder that the person
trusts, and Gemini warns of new ones once.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from aether.hosts.claude_code import event as claude_code
from aether.hosts.payload import nothing_more, renamed

if TYPE_CHECKING:
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS = "Gemini CLI", ("gemini",)
PROJECT_VARIABLE, PROCESS_VARIABLE = "GEMINI_PROJECT_DIR", ""
MILLISECONDS = 1_000
EVENTS = {
    "SessionStart": 15, "BeforeAgent": 15, "BeforeTool": 5, "AfterTool": 5, "AfterAgent": 15, "PreCompress": 30, "SessionEnd": 2,
}  # fmt: skip
ADVICE = "Gemini asks once whether the folder, and its hooks, can be trusted."
_NAMES = {
    "SessionStart": "SessionStart", "BeforeAgent": "UserPromptSubmit", "BeforeTool": "PreToolUse", "AfterTool": "PostToolUse", "AfterAgent": "Stop",
    "PreCompress": "PreCompact", "SessionEnd": "SessionEnd",
}  # fmt: skip
_OWN_NAMES = {ours: theirs for theirs, ours in _NAMES.items()}
_TOOLS = {
    "run_shell_command": "Bash", "write_file": "Write", "replace": "Edit", "read_file": "Read", "read_many_files": "Read",
    "list_directory": "LS", "glob": "Glob", "grep_search": "Grep", "search_file_content": "Grep",
    "google_web_search": "WebSearch", "web_fetch": "WebFetch", "write_todos": "TodoRead",
}  # fmt: skip
# The answer to a command: what it printed between lines about how it ran.
_PRINTED = re.compile(r"^(?:Output|Stdout): ?(.*?)(?=^(?:Stderr|Error|Exit Code|Signal|Background PIDs|Process Group PGID): ?|\Z)", re.MULTILINE | re.DOTALL)  # fmt: skip
_FAILED = re.compile(r"^Exit Code: ?(?!0\b)-?\d", re.MULTILINE)
TEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit"})

message, ways_to_close = claude_code.message, claude_code.ways_to_close
speech_of = nothing_more


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    r"""Return the event in `payload`; `name` is used if the payload does not name its event.

    >>> answer = {"llmContent": "Output: 3 passed\nExit Code: 0"}
    >>> event_of({"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "run_shell_command",
    ...           "tool_input": {"command": "pytest"}, "tool_response": answer})["call"]["output"]
    '3 passed'
    """
    response = payload.get("tool_response")
    event = claude_code.event_of(
        {
            **renamed(payload, events=_NAMES, tools=_TOOLS, arguments={}, name=name),
            "last_assistant_message": payload.get("prompt_response"),
            "tool_response": response.get("llmContent") if isinstance(response, dict) else response,
        }
    )
    if event["event"] == "Stop":
        event.pop("prompt", None)  # it was reported when it was sent
    if call := event.get("call"):
        is_error = isinstance(response, dict) and bool(response.get("error"))
        call["failed"] = call["failed"] or is_error or bool(_FAILED.search(call["output"]))
        if printed := _PRINTED.search(call["output"]):
            call["output"] = printed[1].strip()
    return event


def stop(action: str, reason: str) -> str:  # noqa: ARG001 - Gemini cannot ask: it denies
    """Return the output that denies a call with the reason."""
    return json.dumps({"decision": "deny", "reason": reason}, ensure_ascii=False)


def takes_text(name: str) -> bool:
    """Return whether Gemini gives the output of this event to its model."""
    return name in TEXT_EVENTS


def output(name: str, text: str) -> str:
    """Return the output that gives `text` to the model; nothing if the event takes no text."""
    return claude_code.context_output(_OWN_NAMES.get(name, name), text) if takes_text(name) else ""


def directory() -> Path:
    """Return the directory of the user's settings and sessions."""
    import os
    from pathlib import Path

    return Path(os.environ.get("GEMINI_CLI_HOME") or Path("~").expanduser()) / ".gemini"


def edit(program: list[str] | None, root: Path, *, is_user: bool) -> Edit:
    """Return how `settings.json` in `root` is changed, so that `program` gets the events."""
    from aether.hosts import handlers

    path = root / "settings.json" if is_user else root / ".gemini" / "settings.json"
    limits = {event: limit * MILLISECONDS for event, limit in EVENTS.items()}
    return handlers.edit(path, root, "gemini-cli", limits, program)
