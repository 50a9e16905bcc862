"""The spool entry of a hook's event: small, and without secrets.

An entry holds the most that capture can use, so a tool's output of fifty megabytes costs little; a longer text keeps
its start and its end. Texts are cut first and redacted then, with more around the cut than is kept, so that no secret
is torn into two harmless halves. `<private>` blocks, aether's own output and everything about private paths are left
out. A hook gets a structure of the tool's own where the transcript has a text: `response_text` makes the same text of
both, so that the notes do not depend on the source. Every tool call of a session pays for each import here.
"""

from __future__ import annotations

import json
import os
import re

from aether.redact.redact import is_private, redact, redacted, without_blocks

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from typing import Any

    from aether.types import JsonObject

# Characters of the start and of the end. A longer request or answer is a pasted document, with its rules at either end.
TEXT_CHARS = (15_000, 5_000)
# One text of the assistant between two calls, and all of them together: the last of them, if there are more.
INTERIM_CHARS = (4_000, 1_000)
ALL_INTERIM_CHARS = 200_000
SUMMARY_CHARS = (40_000, 20_000)
# The most that aether.messages.shell reads of an output, and aether.messages.tool_calls of a new text.
OUTPUT_CHARS = (4_200, 4_200)
INPUT_CHARS = (20_000, 0)
# All texts of one input together, and how far the input is read: it is a tool's arguments, not a document.
ALL_INPUT_CHARS = 100_000
MOST_ENTRIES = 200
MOST_DEPTH = 8
MOST_CALLS = 64
NAME_CHARS = 200
PATH_CHARS = 4_096
# Characters that are redacted around a cut: as many as the longest private key has.
SLACK_CHARS = 1 << 14

# Tools that change nothing, nor the list of tasks: no note is ever made of them.
READ_ONLY_TOOLS = frozenset(
    "Read Grep Glob LS NotebookRead TodoRead WebSearch WebFetch BashOutput KillShell KillBash ToolSearch "
    "TaskList TaskGet TaskOutput TaskStop Skill ListMcpResourcesTool ReadMcpResourceTool".split()
)
AGENT_TOOLS = frozenset({"Task", "Agent"})
# Fields of an entry with those of the payload that they come from: short names, and texts.
_NAME_FIELDS = {
    "prompt_id": "prompt_id", "source": "source", "reason": "reason", "trigger": "trigger", "task": "task_id"
}  # fmt: skip
_TEXT_FIELDS = {
    "prompt": "prompt", "message": "last_assistant_message", "subject": "task_subject", "description": "task_description",
    "task_text": "task_text",
}  # fmt: skip
_PLACED = frozenset({"UserPromptSubmit", "SessionStart", "Stop", "PreCompact"})
_TOOLS = frozenset({"PostToolUse", "PostToolUseFailure"})
KEPT_EVENTS = _TOOLS | frozenset(
    "SessionStart UserPromptSubmit PostToolBatch SubagentStart SubagentStop TaskCompleted PreCompact PostCompact Stop "
    "SessionEnd".split()
)
# A response that is nested deeper, or dumped longer, gives no note.
_RESPONSE_DEPTH = 8
_DUMPED_CHARS = 20_000
_RESPONSE_TEXTS = ("content", "result", "output", "message", "text")
_HEX = frozenset("0123456789abcdef")
# How Claude Code writes the answers of a person to questions.
_QUESTIONS_ANSWERED = "Your questions have been answered"
_ONLY_NOTES, _NO_OPTION = "(notes only)", "(no option selected)"


def entry_of(payload: JsonObject, *, private: str = "") -> JsonObject | None:
    """Return the entry of the event in `payload`; None if nothing of it is kept.

    `private` are the patterns of `claude.private_paths`.

    >>> entry_of({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Use <private>my</private> SQLite"})
    {'event': 'UserPromptSubmit', 'session': 's', 'prompt': 'Use  SQLite'}
    """
    event = _text(payload, "hook_event_name")
    agent, caste = _name(payload, "agent_id"), _name(payload, "agent_type")
    if event not in KEPT_EVENTS or (event == "SubagentStop" and not caste):
        return None  # the sub-agent without a type is the one that writes the summary of a compaction
    about: JsonObject = {name: _name(payload, field) for name, field in _NAME_FIELDS.items()}
    about["transcript"] = _transcript(_text(payload, "transcript_path")[:PATH_CHARS])
    if event in _PLACED:
        # The other events of the turn are of the same project, and wait for no pattern.
        about["directory"] = _name(payload, "cwd", PATH_CHARS)
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
    r"""Return `text` without what is private or secret, cut to its first `head` and last `tail` characters.

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
    """Return the texts before the last message, each bounded, as many from the end as may be kept."""
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
    """Return the start of `text`; if redaction left less, without its last word, which the cut may have torn."""
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
    """Return the entry of a call and its response; None if it is private, or of a tool that is never noted."""
    tool, given = _name(payload, "tool_name"), payload.get("tool_input")
    given = given if isinstance(given, dict) else {}
    if (
        not tool
        or tool in READ_ONLY_TOOLS
        or (private and is_private(given, private, _text(payload, "cwd")[:PATH_CHARS]))
    ):
        return None
    response = payload.get("tool_response", payload.get("error"))
    answer = response_text(response)
    most = TEXT_CHARS if tool in AGENT_TOOLS or _has_answers(response) else OUTPUT_CHARS
    call: JsonObject = {
        "tool": tool,
        "input": _trimmed(redacted(_shortened(given, [ALL_INPUT_CHARS + SLACK_CHARS], MOST_DEPTH))),
        "output": bounded(answer, *most),
    }
    if failed or is_failure(payload.get("tool_response")):
        call["failed"] = True
    if name := _name(payload, "tool_use_id"):
        call["id"] = name
    return call


def _shortened(value: Any, left: list[int], depth: int) -> Any:
    """Return `value` with its texts cut if they, or all together, are too long; `left` is counted down."""
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
    name = _text(payload, field)[:most]
    # Whoever names an agent may put anything there. A session is named by a UUID, which costs a start no pattern.
    return name if _is_uuid(name.removesuffix(".jsonl")) else redact(name)


def _transcript(path: str) -> str:
    """Return the name of a transcript, which is that of its session."""
    name = _base(path)
    return name if _is_uuid(name.removesuffix(".jsonl")) else _base(redact(path))


def _base(path: str) -> str:
    return os.path.basename(path.replace("\\", "/"))


def _is_uuid(name: str) -> bool:
    parts = name.split("-")
    return [*map(len, parts)] == [8, 4, 4, 4, 12] and all(map(_HEX.issuperset, parts))


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
        name = _text(response, "backgroundTaskId")
        goes_on = f"Command running in background with ID: {name}" if name else ""
        return "\n".join(filter(None, [goes_on, _text(response, "stdout"), _text(response, "stderr")]))
    if path := _text(response, "filePath"):
        return f"The file {path} has been {'created' if response.get('type') == 'create' else 'updated'}."
    if _has_answers(response):
        return _answers_text(response)
    named = next(
        (response[name] for name in _RESPONSE_TEXTS if isinstance(response.get(name), str | list)), None
    )
    if isinstance(task := response.get("task"), dict) and _text(task, "id"):
        named = f"Task #{_text(task, 'id')} created successfully: {_text(task, 'subject')}"
    if named is not None:
        return _flat(named, _RESPONSE_DEPTH)
    return json.dumps(response, ensure_ascii=False)[:_DUMPED_CHARS]


def _has_answers(response: Any) -> bool:
    return isinstance(response, dict) and isinstance(response.get("answers"), dict)


def _answers_text(response: JsonObject) -> str:
    """Return what a transcript says of a person's answers: options, words in place of them, and notes on them."""
    chosen, about = response["answers"], response.get("annotations")
    about = about if isinstance(about, dict) else {}
    pairs = []
    for asked in {**chosen, **about}:
        given = chosen.get(asked)
        answer = ",".join(map(str, given)) if isinstance(given, list) else _text(chosen, asked)
        notes = _text(about[asked], "notes") if isinstance(about.get(asked), dict) else ""
        if (answer and answer != _ONLY_NOTES) or notes:
            answer = answer if answer not in ("", _ONLY_NOTES) else _NO_OPTION
            pairs.append(f'"{asked}"="{answer}"' + (f" notes: {notes}" if notes else ""))
    said, wrote = ", ".join(pairs), _text(response, "response").strip()
    if response.get("afkTimeoutMs"):
        return "No response: the user may be away."
    if response.get("followUp") is True:
        so_far = f"you proceed. So far they answered: {said}." if said else "answering."
        also = f' They also wrote: "{wrote}".' if wrote else ""
        return f"The user asked for more questions before {so_far}{also} Call AskUserQuestion again."
    if wrote:
        return f"The user responded: {wrote}"
    if not said:
        return "The user did not answer the questions."
    return f"{_QUESTIONS_ANSWERED}: {said}. You can now continue with these answers in mind."


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
        image = content.get("type") == "image"
        return "[image]" if image else _flat(content.get("text", content.get("content", "")), depth - 1)
    return ""
