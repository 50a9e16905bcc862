"""Intake: what is kept of an event, as a small entry without secrets.

An entry holds what capture can use at most, so a tool's output of fifty megabytes costs little; of a longer text its
beginning and its end are kept. Cut first and redacted then, with more around the cut than is kept, so that no secret
is torn into two harmless halves. Left out are `<private>` blocks, what aether itself told the model, and everything
about private paths. On this path every import is paid for by every tool call of a session.

Once: of several hook processes for one event, one answers.

Where aether is installed twice, as a plugin and in the settings say, Claude Code starts each at the same time. All
of them keep the event, which is then taken in once; but what each printed would stand before the model as often.
"""

from __future__ import annotations

import os
import time
from hashlib import sha256

from aether.integrations.claude_code.reply import QUESTIONS_ANSWERED, is_failure, response_text
from aether.redact.redact import is_private, redact, redacted, without_blocks
from aether.store.spool import is_real

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from typing import Any

    from aether.types import JsonObject

# Characters. A request or an answer of this length is a pasted document; its rules stand at either end.
TEXT_CHARS = (15_000, 5_000)
# One text said on the way, and all of them together: the last of them, where it is more.
INTERIM_CHARS = (4_000, 1_000)
ALL_INTERIM_CHARS = 200_000
SUMMARY_CHARS = (40_000, 20_000)
# The most that aether.messages.shell reads of an output, and aether.messages.tool_calls of a new text.
OUTPUT_CHARS = (4_200, 4_200)
INPUT_CHARS = (20_000, 0)
# All texts of one input together, and how far into it is looked: it is a tool's arguments, not a document.
ALL_INPUT_CHARS = 100_000
MOST_ENTRIES = 200
MOST_DEPTH = 8
MOST_CALLS = 64
NAME_CHARS = 200
PATH_CHARS = 4_096
# What is redacted beside what is kept: as much as the longest private key has.
SLACK_CHARS = 1 << 14

# Tools that only look, and lists of what is to be done: nothing is ever noted about them.
READ_ONLY_TOOLS = frozenset(
    "Read Grep Glob LS NotebookRead TodoRead TodoWrite WebSearch WebFetch BashOutput KillShell KillBash ToolSearch "
    "TaskCreate TaskUpdate TaskList TaskGet TaskOutput TaskStop Skill ListMcpResourcesTool ReadMcpResourceTool".split()
)
AGENT_TOOLS = frozenset({"Task", "Agent"})
# Fields that are kept as they are, by event: the field's name in the entry and in the payload.
_NAME_FIELDS = {
    "prompt_id": "prompt_id",
    "source": "source",
    "reason": "reason",
    "trigger": "trigger",
    "task": "task_id",
}
_TEXT_FIELDS = {"prompt": "prompt", "message": "last_assistant_message", "subject": "task_subject"} | {
    "description": "task_description",
    "task_text": "task_text",
}
_TOOLS = frozenset({"PostToolUse", "PostToolUseFailure"})
KEPT_EVENTS = _TOOLS | frozenset(
    "SessionStart UserPromptSubmit PostToolBatch SubagentStart SubagentStop TaskCompleted PreCompact PostCompact Stop "
    "SessionEnd".split()
)


def entry_of(payload: JsonObject, *, private: str = "") -> JsonObject | None:
    """Return what is kept of the event that `payload` tells of; None where that is nothing.

    `private` are the patterns of `claude.private_paths`.

    >>> entry_of({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Use <private>my</private> SQLite"})
    {'event': 'UserPromptSubmit', 'session': 's', 'prompt': 'Use  SQLite'}
    """
    event = _name(payload, "hook_event_name")
    agent, caste = _name(payload, "agent_id"), _name(payload, "agent_type")
    if event not in KEPT_EVENTS or (event == "SubagentStop" and not caste):
        return None  # the sub-agent without a type is the one that writes the summary of a compaction
    about: JsonObject = {name: _name(payload, field) for name, field in _NAME_FIELDS.items()}
    about["transcript"] = os.path.basename(_name(payload, "transcript_path", PATH_CHARS).replace("\\", "/"))
    about |= {"agent": agent, "caste": caste if agent or event == "SubagentStart" else ""}
    about |= {name: bounded(_text(payload, field), *TEXT_CHARS) for name, field in _TEXT_FIELDS.items()}
    about["summary"] = bounded(_text(payload, "compact_summary"), *SUMMARY_CHARS)
    about["said"] = _interim(payload.get("said"))
    if payload.get("stop_hook_active") is True:
        about["stop_hook_active"] = True
    if event in _TOOLS:
        about |= _call(payload, private, failed=event == "PostToolUseFailure") or {}
        if "tool" not in about:
            return None
    if event == "PostToolBatch":
        about["calls"] = _calls(payload, private)
        if not about["calls"]:
            return None
    kept = {name: value for name, value in about.items() if value not in ("", None, [])}
    return {"event": event, "session": _name(payload, "session_id"), **kept}


def bounded(text: str, head: int, tail: int) -> str:
    r"""Return `text` without what is private or secret, cut to `head` characters of its beginning and `tail` of its end.

    >>> bounded("a" * 30 + " " + "b" * 47, 4, 4)
    'aaaa\n[… 70 characters left out …]\nbbbb'
    """
    text = without_blocks(text)
    if len(text) <= head + tail:
        return redact(text)
    first = _cut(redact(text[: head + SLACK_CHARS]), head)
    if not tail:
        return first
    last = _cut(redact(text[-(tail + SLACK_CHARS) :])[::-1], tail)[::-1]
    return f"{first}\n[… {len(text) - len(first) - len(last)} characters left out …]\n{last}"


def _interim(said: Any) -> list[JsonObject]:
    """Return what was said before the last message, the texts bounded, as many from the end as may be kept."""
    kept, left = [], ALL_INTERIM_CHARS
    for one in reversed(said if isinstance(said, list) else []):
        text = bounded(_text(one, "text"), *INTERIM_CHARS) if isinstance(one, dict) else ""
        left -= len(text)
        if left < 0:
            break
        if text.strip():
            names = {name: _name(one, name) for name in ("id", "uuid", "at", "by") if one.get(name)}
            part = one.get("part")
            kept.append({"text": text, **names} | ({"part": part} if isinstance(part, int) else {}))
    return kept[::-1]


def _cut(text: str, most: int) -> str:
    """Return the beginning of `text`; where redaction left less, without its last word, which the cut may have torn."""
    if len(text) > most:
        return text[:most]
    return text[: max(text.rfind(" "), text.rfind("\n"), 0)]


def _calls(payload: JsonObject, private: str) -> list[JsonObject]:
    calls = payload.get("tool_calls")
    found = [
        _call(call | {"cwd": payload.get("cwd")}, private, failed=is_failure(call.get("tool_response")))
        for call in (calls if isinstance(calls, list) else [])[:MOST_CALLS]
        if isinstance(call, dict)
    ]
    return [call for call in found if call]


def _call(payload: JsonObject, private: str, *, failed: bool) -> JsonObject | None:
    """Return what is kept of a call and its answer; None where it is private, or tells nothing."""
    tool, given = _name(payload, "tool_name"), payload.get("tool_input")
    given = given if isinstance(given, dict) else {}
    if (
        not tool
        or tool in READ_ONLY_TOOLS
        or (private and is_private(given, private, _text(payload, "cwd")[:PATH_CHARS]))
    ):
        return None
    answer = response_text(payload.get("tool_response", payload.get("error")))
    most = (
        OUTPUT_CHARS if tool not in AGENT_TOOLS and not answer.startswith(QUESTIONS_ANSWERED) else TEXT_CHARS
    )
    call: JsonObject = {"tool": tool, "input": _input(given), "output": bounded(answer, *most)}
    if failed or is_failure(payload.get("tool_response")):
        call["failed"] = True
    if name := _name(payload, "tool_use_id"):
        call["id"] = name
    return call


def _input(given: JsonObject) -> JsonObject:
    """Return the arguments of a call, redacted, with texts as long as capture reads them."""
    cut = _shortened(given, [ALL_INPUT_CHARS + SLACK_CHARS], MOST_DEPTH)
    trimmed: JsonObject = _trimmed(redacted(cut))
    return trimmed


def _shortened(value: Any, left: list[int], depth: int) -> Any:
    """Return `value` with its texts cut where they, or all together, are too long; `left` is counted down."""
    if isinstance(value, str):
        text = without_blocks(value)[: min(INPUT_CHARS[0] + SLACK_CHARS, left[0])]
        left[0] -= len(text)
        return text
    if isinstance(value, dict):
        pairs = list(value.items())[:MOST_ENTRIES] if depth else []
        return {key[:NAME_CHARS]: _shortened(one, left, depth - 1) for key, one in pairs}
    if isinstance(value, list):
        return [_shortened(one, left, depth - 1) for one in (value[:MOST_ENTRIES] if depth else [])]
    return value


def _trimmed(value: Any) -> Any:
    if isinstance(value, str):
        return value[: INPUT_CHARS[0]]
    if isinstance(value, dict):
        return {key: _trimmed(one) for key, one in value.items()}
    return [_trimmed(one) for one in value] if isinstance(value, list) else value


def _text(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    return value if isinstance(value, str) else ""


def _name(payload: JsonObject, field: str, most: int = NAME_CHARS) -> str:
    return redact(_text(payload, field)[:most])  # whoever names an agent may put anything there


# Those of one event start together; on a busy machine the last is some seconds behind. The same event again, such
# as a second compaction of one turn, takes longer to come.
SAME_EVENT_SECONDS = 5.0
DIRECTORY_NAME = "answering"
DIRECTORY = os.path.join("hooks", DIRECTORY_NAME)
# What tells one event from another; the process that asks is another when a session is resumed once more.
_EVENT_FIELDS = ("hook_event_name", "session_id", "prompt_id", "prompt", "agent_id", "source", "trigger")


def is_first(home: str, payload: dict[str, object]) -> bool:
    """Return whether no other process has said so for the event of `payload` within the last seconds.

    Where nothing can be written, all are: told twice is better than not at all.
    """
    asking = os.environ.get("CLAUDE_PID") or os.getppid()
    told = "\0".join([str(payload.get(field)) for field in _EVENT_FIELDS] + [str(asking)])
    directory = os.path.join(home, DIRECTORY)
    name = os.path.join(directory, sha256(told.encode("utf-8", "replace")).hexdigest())
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not is_real(home, DIRECTORY_NAME):
            return True  # elsewhere nothing is made, and nothing swept away
        _sweep(directory)
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return not os.path.isdir(directory)
    except OSError:
        return True
    return True


def _sweep(directory: str) -> None:
    """Remove what was said longer ago."""
    now = time.time()
    for entry in os.scandir(directory):
        try:
            # Also what the future says: the clock was set back since.
            if abs(now - entry.stat(follow_symlinks=False).st_mtime) > SAME_EVENT_SECONDS:
                os.unlink(entry.path)
        except FileNotFoundError:
            continue  # another removed it
