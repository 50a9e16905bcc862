"""Cursor: events, payloads and answers of its own; the model gets what a start answers, and nothing at a prompt.

The end of a turn is `afterAgentResponse`, which has the message. Cursor also runs the hooks of Claude Code if the person
switched that on: one of the two is enough.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aether.hosts.claude_code import event as claude_code
from aether.hosts.payload import nothing_more, renamed

if TYPE_CHECKING:
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS = "Cursor", ("cursor", "cursor-agent")
PROJECT_VARIABLE, PROCESS_VARIABLE = "CURSOR_PROJECT_DIR", ""
EVENTS = {
    "sessionStart": 15, "beforeSubmitPrompt": 15, "preToolUse": 5, "postToolUse": 5, "postToolUseFailure": 5, "afterAgentResponse": 15,
    "preCompact": 30, "sessionEnd": 2,
}  # fmt: skip
ADVICE = "Cursor runs the hooks of a project in a trusted workspace only."
_NAMES = {
    "sessionStart": "SessionStart", "beforeSubmitPrompt": "UserPromptSubmit", "preToolUse": "PreToolUse", "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure", "afterAgentResponse": "Stop", "preCompact": "PreCompact",
    "sessionEnd": "SessionEnd",
}  # fmt: skip
_TOOLS = {"Shell": "Bash", "SemanticSearch": "Grep", "StrReplace": "Edit", "EditNotebook": "NotebookEdit"}
_ARGUMENTS = {
    "path": "file_path", "target_notebook": "notebook_path", "contents": "content", "old_str": "old_string", "new_str": "new_string",
}  # fmt: skip

ways_to_close = claude_code.ways_to_close
speech_of = nothing_more


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    r"""Return the event in `payload`; `name` is used if the payload does not name its event.

    >>> event_of({"hook_event_name": "postToolUse", "conversation_id": "c", "tool_name": "Shell",
    ...           "tool_input": {"command": "ls"}, "tool_output": '{"exitCode": 1, "stdout": "no"}'})["call"]["failed"]
    True
    """
    roots = payload.get("workspace_roots")
    response = _unpacked(payload.get("tool_output"))
    event = claude_code.event_of(
        {
            **renamed(payload, events=_NAMES, tools=_TOOLS, arguments=_ARGUMENTS, name=name),
            "session_id": payload.get("conversation_id") or payload.get("session_id"),
            "cwd": payload.get("cwd") or (roots[0] if isinstance(roots, list) and roots else ""),
            "last_assistant_message": payload.get("text"), "source": "startup",
            "tool_response": response if response is not None else payload.get("error_message"),
        }
    )  # fmt: skip
    if call := event.get("call"):
        call["failed"] = call["failed"] or (isinstance(response, dict) and bool(response.get("exitCode")))
    return event


def _unpacked(value: Any) -> Any:
    """Return the result of a tool, which comes as a text of JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def stop(action: str, reason: str) -> str:  # noqa: ARG001 - Cursor asks nobody here: it denies
    """Return the output that denies a call with the reason."""
    return json.dumps(
        {"permission": "deny", "user_message": reason, "agent_message": reason}, ensure_ascii=False
    )


def takes_text(name: str) -> bool:
    """Return whether Cursor gives the output of this event to its model."""
    return name == "SessionStart"


def output(name: str, text: str) -> str:
    """Return the output that gives `text` to the model; nothing if the event takes no text."""

    def shape(text: str) -> str:
        return json.dumps({"additional_context": text}, ensure_ascii=False)

    return claude_code.fitted(text, shape) if takes_text(name) else ""


def message(text: str) -> str:
    """Return the output that shows `text` to the user."""
    return json.dumps({"user_message": text}, ensure_ascii=False)


def directory() -> Path:
    """Return the directory of the user's settings."""
    from pathlib import Path

    return Path("~/.cursor").expanduser()


def edit(program: list[str] | None, root: Path, *, is_user: bool) -> Edit:
    """Return how `hooks.json` in `root` is changed, so that `program` gets the events."""
    from aether.hosts import handlers

    path = root / "hooks.json" if is_user else root / ".cursor" / "hooks.json"
    return handlers.edit(path, root, "cursor", EVENTS, program, flat="timeout")
