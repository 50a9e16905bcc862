"""Answers: what a tool answered, as the text that the model is shown.

A hook is given a structure of the tool's own where the transcript has a text; what is noted must not depend on which
of the two was read.
"""

from __future__ import annotations

import json
import re

# Deeper or longer is no answer that anything is noted from.
_MOST_DEPTH = 8
_DUMPED_CHARS = 20_000
_TEXTS = ("content", "result", "output", "message", "text")
# What Claude Code begins with when a person has chosen.
ANSWERED = "Your questions have been answered"


def answer_of(response: Any) -> str:
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
        return f"{ANSWERED}: {said}. You can now continue with these answers in mind."
    named = next((response[name] for name in _TEXTS if isinstance(response.get(name), str | list)), None)
    return (
        json.dumps(response, ensure_ascii=False)[:_DUMPED_CHARS]
        if named is None
        else _flat(named, _MOST_DEPTH)
    )


def says_failed(response: Any) -> bool:
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


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
