"""opencode: a small plugin, `opencode_plugin.js`, reports its events with the names and payloads of Claude Code.

The plugin knows what no payload says: whether a session is one of a sub-agent, and the last text of a turn.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aether.hosts.claude_code import event as claude_code
from aether.hosts.payload import nothing_more, renamed

if TYPE_CHECKING:
    from pathlib import Path

    from aether.hosts.settings import Edit
    from aether.types import JsonObject

LABEL, PROGRAMS = "opencode", ("opencode",)
PROJECT_VARIABLE, PROCESS_VARIABLE = "", ""
# Events of aether that the plugin reports; it ends the process itself after some seconds.
EVENTS = {
    "SessionStart": 15, "UserPromptSubmit": 15, "PreToolUse": 5, "PostToolUse": 5, "SubagentStart": 15, "SubagentStop": 15,
    "PreCompact": 30, "Stop": 15, "SessionEnd": 2,
}  # fmt: skip
ADVICE = ""
_NAMES = {event: event for event in EVENTS}
_TOOLS = {
    "bash": "Bash", "edit": "Edit", "write": "Write", "multiedit": "MultiEdit", "task": "Task", "read": "Read",
    "grep": "Grep", "glob": "Glob", "list": "LS", "webfetch": "WebFetch", "websearch": "WebSearch",
    "todowrite": "TodoRead", "todoread": "TodoRead", "skill": "Skill", "patch": "apply_patch", "question": "AskUserQuestion",
}  # fmt: skip
_ARGUMENTS = {
    "filePath": "file_path", "oldString": "old_string", "newString": "new_string", "patchText": "input",
}  # fmt: skip
TEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
# The first words of the plugin: a file that starts otherwise is not ours.
MARK = "// The memory of aether for opencode."
_PROGRAM_LINE = "const PROGRAM = [];"

ways_to_close = claude_code.ways_to_close
speech_of = nothing_more


def event_of(payload: JsonObject, name: str = "") -> JsonObject:
    """Return the event in `payload`; `name` is used if the payload does not name its event."""
    return claude_code.event_of(
        renamed(payload, events=_NAMES, tools=_TOOLS, arguments=_ARGUMENTS, name=name)
    )


def stop(action: str, reason: str) -> str:  # noqa: ARG001 - the plugin cannot ask: it denies
    """Return the output by which the plugin denies a call with the reason."""
    return json.dumps({"stop": reason}, ensure_ascii=False)


def takes_text(name: str) -> bool:
    """Return whether the plugin gives the output of this event to the model."""
    return name in TEXT_EVENTS


def output(name: str, text: str) -> str:
    """Return the output that gives `text` to the model; nothing if the event takes no text."""

    def shape(text: str) -> str:
        return json.dumps({"context": text}, ensure_ascii=False)

    return claude_code.fitted(text, shape) if takes_text(name) else ""


def message(text: str) -> str:
    """Return the output that the plugin writes into opencode's log."""
    return json.dumps({"notice": text}, ensure_ascii=False)


def directory() -> Path:
    """Return the directory of the user's settings."""
    import os
    from pathlib import Path

    return Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "opencode"


def edit(program: list[str] | None, root: Path, *, is_user: bool) -> Edit:
    """Return how the plugin's file in `root` is made, so that `program` gets the events."""
    from aether.errors import Conflict
    from aether.hosts.programs import PROGRAM
    from aether.hosts.settings import Edit

    path = root / "plugins" / "aether.js" if is_user else root / ".opencode" / "plugins" / "aether.js"
    words = json.dumps([*(program or [PROGRAM]), "opencode"])

    def merge(text: str) -> str:
        if text.strip() and not text.startswith(MARK):
            raise Conflict(
                "is another plugin. Nothing was changed.", fix="Rename it, then try again.", where=str(path)
            )
        return plugin_source().replace(_PROGRAM_LINE, f"const PROGRAM = {words};")

    def unmerge(text: str, _before: str) -> str:
        return "" if text.startswith(MARK) else text

    return Edit(path, merge, unmerge, root)


def plugin_source() -> str:
    """Return the plugin, without its program."""
    from pathlib import Path

    return Path(__file__).with_name("opencode_plugin.js").read_text(encoding="utf-8")
