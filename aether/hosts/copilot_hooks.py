"""Copilot CLI: events that are named as in Claude Code have its payloads, too; only the answers differ.

It gives its model what a start answers, nothing that a prompt answers, and has no event after a compaction. Its
hooks are a file of aether's own. It also runs the hooks in a project's `.claude/settings.json`: one of the two is enough.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from aether.errors import AetherError
from aether.hosts.claude_code import event as claude_code
from aether.hosts.payload import renamed

if TYPE_CHECKING:
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS = "Copilot CLI", ("copilot",)
PROJECT_VARIABLE, PROCESS_VARIABLE = "", ""
EVENTS = {
    "SessionStart": 15, "UserPromptSubmit": 15, "PreToolUse": 5, "PostToolUse": 5, "PostToolUseFailure": 5, "SubagentStop": 15,
    "PreCompact": 30, "Stop": 15, "SessionEnd": 2,
}  # fmt: skip
ADVICE = ""
_NAMES = {event: event for event in EVENTS}
_TOOLS = {
    "bash": "Bash", "powershell": "PowerShell", "create": "Write", "edit": "Edit", "str_replace_editor": "Edit",
    "view": "Read", "grep": "Grep", "rg": "Grep", "glob": "Glob", "web_fetch": "WebFetch", "web_search": "WebSearch",
    "task": "Task", "update_todo": "TodoRead", "report_intent": "TodoRead", "ask_user": "AskUserQuestion",
    "read_bash": "TaskOutput", "stop_bash": "TaskStop",
}  # fmt: skip
_ARGUMENTS = {"path": "file_path", "file_text": "content", "old_str": "old_string", "new_str": "new_string"}
# The end of the log of a session in which the last message of a turn is looked for.
LOG_BYTES = 1 << 18
# The log is written behind the hook.
WAIT_SECONDS = 0.3

message, ways_to_close = claude_code.message, claude_code.ways_to_close


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    """Return the event in `payload`; `name` is used if the payload does not name its event."""
    result = payload.get("tool_result")
    text = result.get("text_result_for_llm") if isinstance(result, dict) else payload.get("tool_response")
    source = "startup" if payload.get("source") == "new" else payload.get("source")
    return claude_code.event_of(
        {
            **renamed(payload, events=_NAMES, tools=_TOOLS, arguments=_ARGUMENTS, name=name),
            "tool_response": text if text is not None else payload.get("error"),
            "source": source,
        }
    )


def speech_of(payload: JsonObject, name: str) -> JsonObject:
    """Return the last message of a turn, which only the log of the session has, and a moment later than the hook."""
    path = payload.get("transcript_path")
    if name != "Stop" or not isinstance(path, str) or not path:
        return {}
    until = time.monotonic() + WAIT_SECONDS
    while not (text := _last_message(path)) and time.monotonic() < until:
        time.sleep(WAIT_SECONDS / 10)
    return {"message": text} if text else {}


def _last_message(path: str) -> str:
    """Return the text of the last message of the turn in the log at `path`; empty as long as it has no message."""
    from aether import regular

    try:
        with regular.opened(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            lines = file.read(LOG_BYTES).splitlines()
    except (OSError, AetherError):
        return ""
    for line in reversed(lines):
        try:
            record = json.loads(line)
            if record["type"] == "user.message":
                return ""
            if record["type"] == "assistant.message" and record["data"]["content"]:
                return str(record["data"]["content"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return ""


def stop(action: str, reason: str) -> str:
    """Return the output that denies a call, or has the person asked, with the reason."""
    decision = {"permissionDecision": action, "permissionDecisionReason": reason}
    return json.dumps(decision, ensure_ascii=False)


def takes_text(name: str) -> bool:
    """Return whether Copilot gives the output of this event to its model."""
    return name == "SessionStart"


def output(name: str, text: str) -> str:
    """Return the output that gives `text` to the model; nothing if the event takes no text."""

    def shape(text: str) -> str:
        return json.dumps({"additionalContext": text}, ensure_ascii=False)

    return claude_code.fitted(text, shape) if takes_text(name) else ""


def directory() -> Path:
    """Return the directory of the user's settings and sessions."""
    from pathlib import Path

    return Path(os.environ.get("COPILOT_HOME") or Path("~/.copilot").expanduser())


def edit(program: list[str] | None, root: Path, *, is_user: bool) -> Edit:
    """Return how the file of aether's hooks in `root` is changed, so that `program` gets the events."""
    from aether.hosts import handlers

    path = root / "hooks" / "aether.json" if is_user else root / ".github" / "hooks" / "aether.json"
    return handlers.edit(path, root, "copilot", EVENTS, program, flat="timeoutSec")
