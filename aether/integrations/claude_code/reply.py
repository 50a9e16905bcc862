"""Replies: what the events do that need the home, each one or two calls of operations.

They come after the event was put into the spool, so that whatever happens here loses nothing. Everything heavy is
imported by the one that needs it.

Answers: what a tool answered, as the text that the model is shown.

A hook is given a structure of the tool's own where the transcript has a text; what is noted must not depend on which
of the two was read.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from aether.store import config

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from aether.types import JsonObject

# After these the spool is drained; the others leave that to the next who reads the home.
DRAINING_EVENTS = frozenset({"SessionStart", "SubagentStop", "Stop", "PreCompact"})
# What must be left of the deadline, in seconds, so that compressing is begun: a full home takes about one.
COMPRESS_SECONDS = 3.0


def reply(event: str, entry: JsonObject, home: str, *, left: float, note: Callable[[str], None]) -> str:
    """Do what `event` asks for and return the text for the model; changes are made in the name of a hook.

    `left` is how many seconds remain, `note` takes failures that do not matter to the model.
    """
    from aether.store.commit import HOOK

    settings, session = config.or_default(Path(home)), str(entry.get("session", ""))
    if event == "Stop" and entry.get("stop_hook_active"):
        return ""  # another hook kept the turn going; it was taken in when it first stopped
    if event in DRAINING_EVENTS:
        left -= _drain(home, note)
    match event:
        case "SessionStart" if settings.claude_inject:
            from aether.api.briefing import session_brief

            return session_brief(home, str(entry.get("source", "")), session)
        case "SubagentStart" if settings.claude_inject:
            from aether.api.briefing import subagent_brief

            return subagent_brief(home, str(entry.get("caste", "")))
        case "UserPromptSubmit" if settings.claude_recall and entry.get("prompt"):
            from aether.api.recall import prompt_recall

            budget = settings.claude_recall_tokens
            return prompt_recall(entry["prompt"], budget=budget, home=home, session=session)
        case "PreCompact":
            from aether.api.briefing import compaction_steering

            return compaction_steering(home, session, by=HOOK)
        case "PostCompact" if entry.get("summary"):
            from aether.api.compress import ingest_summary

            trigger = str(entry.get("trigger", ""))
            ingest_summary(home, entry["summary"], session=session, trigger=trigger, by=HOOK)
        case "Stop" if settings.claude_auto_compress and left > COMPRESS_SECONDS:
            _compress(home, by=HOOK)
    return ""


def _drain(home: str, note: Callable[[str], None]) -> float:
    """Drain the spool and return how many seconds that took."""
    import time

    from aether.api.drain import drain

    began = time.monotonic()
    drained = drain(Path(home))
    if drained.left:
        note(f"waits in the spool: {drained.left}")
    return time.monotonic() - began


def _compress(home: str, *, by: str) -> None:
    """Compress the phase that working memory is full of, without a model; nothing where it is not full."""
    from aether.api.working import check_token_threshold, prepare_current_phase

    record = prepare_current_phase(home, by=by).record if check_token_threshold(home=home) else None
    if record:
        from aether.api.compress import FALLBACK, compress

        compress(record["phase"], architect=FALLBACK, home=home, by=by)


# Deeper or longer is no answer that anything is noted from.
_MOST_DEPTH = 8
_DUMPED_CHARS = 20_000
_TEXTS = ("content", "result", "output", "message", "text")
# What Claude Code begins with when a person has chosen.
QUESTIONS_ANSWERED = "Your questions have been answered"


def response_text(response: Any) -> str:
    r"""Return the text of a tool's response.

    >>> answer_of({"stdout": "12 passed", "stderr": "slow", "interrupted": False})
    '12 passed\nslow'
    >>> answer_of([{"type": "text", "text": "done"}]), answer_of({"type": "create", "filePath": "a.py", "content": "x"})
    ('done', 'The file a.py has been created.')
    """
    if not isinstance(response, dict):
        return _flat(response, _MOST_DEPTH)
    if "stdout" in response or "stderr" in response:
        parts = [_word(response.get("stdout")), _word(response.get("stderr"))]
        return "\n".join(part for part in parts if part)
    if path := _word(response.get("filePath")):
        return f"The file {path} has been {'created' if response.get('type') == 'create' else 'updated'}."
    if isinstance(response.get("answers"), dict):
        said = ", ".join(f'"{asked}"="{_flat(told, 1)}"' for asked, told in response["answers"].items())
        return f"{QUESTIONS_ANSWERED}: {said}. You can now continue with these answers in mind."
    named = next((response[name] for name in _TEXTS if isinstance(response.get(name), str | list)), None)
    return (
        json.dumps(response, ensure_ascii=False)[:_DUMPED_CHARS]
        if named is None
        else _flat(named, _MOST_DEPTH)
    )


def is_failure(response: Any) -> bool:
    r"""Return whether a response says of itself that the tool failed.

    >>> says_failed({"isError": True}), says_failed("Exit code 1\nno such file"), says_failed("1 error found")
    (True, True, False)
    """
    if isinstance(response, dict):
        return response.get("isError") is True or response.get("is_error") is True
    head = response[:80].lstrip() if isinstance(response, str) else ""
    return bool(re.match(r"Exit code -?[1-9]|<tool_use_error>|Error: ", head))


def _flat(content: Any, depth: int) -> str:
    """Return all that content blocks say as one text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and depth:
        return "\n".join(text for text in (_flat(part, depth - 1) for part in content) if text)
    if isinstance(content, dict) and depth:
        image = content.get("type") == "image"
        return "[image]" if image else _flat(content.get("text", content.get("content", "")), depth - 1)
    return ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
