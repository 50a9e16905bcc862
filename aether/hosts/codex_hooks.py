"""Codex CLI: its hooks have the payloads and the answers of Claude Code's, and its settings their form.

A person has to trust new hooks once, by `/hooks` in Codex; until then they do not run. A call that fails has no event.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aether.hosts.claude_code import event as claude_code
from aether.hosts.payload import nothing_more, renamed

if TYPE_CHECKING:
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS = "Codex CLI", ("codex",)
PROJECT_VARIABLE, PROCESS_VARIABLE = "", ""
# Seconds after which Codex ends the process: for the end of a session it allows no more than three.
EVENTS = {
    "SessionStart": 15, "UserPromptSubmit": 15, "PreToolUse": 5, "PostToolUse": 5, "SubagentStart": 15, "SubagentStop": 15,
    "PreCompact": 30, "Stop": 15, "SessionEnd": 2,
}  # fmt: skip
ADVICE = "Codex runs new hooks only after you trust them: start codex and enter /hooks."
_NAMES = {event: event for event in EVENTS}
_TOOLS = {
    "shell": "Bash",
    "exec_command": "Bash",
    "local_shell": "Bash",
    "view_image": "Read",
    "update_plan": "TodoRead",
}
TEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})

output, message, ways_to_close = claude_code.output, claude_code.message, claude_code.ways_to_close
speech_of = nothing_more


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    """Return the event in `payload`; `name` is used if the payload does not name its event."""
    renamed_payload = renamed(payload, events=_NAMES, tools=_TOOLS, arguments={"cmd": "command"}, name=name)
    return claude_code.event_of(renamed_payload)


def stop(action: str, reason: str) -> str:  # noqa: ARG001 - Codex cannot ask: it denies
    """Return the output that denies a call with the reason."""
    return claude_code.stop("deny", reason)


def takes_text(name: str) -> bool:
    """Return whether Codex gives the output of this event to its model."""
    return name in TEXT_EVENTS


def directory() -> Path:
    """Return the directory of the user's settings and sessions."""
    from pathlib import Path

    return Path(os.environ.get("CODEX_HOME") or Path("~/.codex").expanduser())


def edit(program: list[str] | None, root: Path, *, is_user: bool) -> Edit:
    """Return how `hooks.json` in `root` is changed, so that `program` gets the events."""
    from aether.hosts import handlers

    path = root / "hooks.json" if is_user else root / ".codex" / "hooks.json"
    return handlers.edit(path, root, "codex", EVENTS, program)
