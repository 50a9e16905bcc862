"""Content blocks: what a message says, calls and receives, in the spellings of several vendors.

Message content is a string, a list of blocks, a single block or nothing; blocks are dicts, strings or
neither. Whatever cannot be read as text is left out, never raised about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aether.messages.record import Record
from aether.shapes import JsonObject
from aether.text.patterns import lazy

IMAGE = "[image]"
_IMAGES = {"image", "image_url", "input_image"}
# Only the head of an answer is looked at: a failure announces itself there, a quoted one does not.
_HEAD_CHARS = 400
_EXIT = lazy(
    r"^(?:exit code:?|process exited with code|exited with code|command .{0,200}? exit code|<returncode>) ?(-?\d+)",
    re.IGNORECASE | re.MULTILINE,
)
_FAILED = lazy(r"(?:error\b|traceback \(most recent call last\)|<tool_use_error>)", re.IGNORECASE)


class Part(NamedTuple):
    """One piece of a message; `kind` is `text`, `call` or `result`."""

    kind: str
    text: str = ""
    tool: str = ""
    arguments: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    call_id: str = ""
    is_error: bool = False


def parts(content: Any) -> Iterator[tuple[int, Part]]:
    """Yield what `content` says, calls and receives, each with its position.

    >>> [part.kind for _, part in parts(["hello", 7, {"type": "tool_use", "name": "Bash"}])]
    ['text', 'call']
    """
    blocks = content if isinstance(content, list) else [content]
    for position, block in enumerate(blocks):
        if isinstance(block, str):
            part = Part("text", block)
        elif isinstance(block, dict):
            found = _part(block)
            if found is None:
                continue
            part = found
        else:
            continue
        if part.kind != "text" or part.text.strip():
            yield position, part


def _part(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text" | "input_text" | "output_text" | None:
            return Part("text", word(block.get("text")))
        case "tool_use" | "toolCall":
            arguments = block.get("input", block.get("arguments"))
            return Part("call", "", word(block.get("name")), given(arguments), word(block.get("id")))
        case "tool_result":
            text = flat(block.get("content"))
            broken = block.get("is_error")
            return Part(
                "result",
                text,
                call_id=word(block.get("tool_use_id")),
                is_error=failed(text) if broken is None else bool(broken),
            )
        case "image" | "image_url" | "input_image":
            return Part("text", IMAGE)
        case _:
            return None


def filled(head: Record, part: Part, speaker: Any) -> Record:
    """Return `head` with what `part` says; `speaker` is the kind of its plain text."""
    kind: Any = speaker if part.kind == "text" else part.kind
    return head._replace(
        kind=kind,
        text=part.text,
        tool=part.tool,
        arguments=part.arguments,
        call_id=part.call_id,
        is_error=part.is_error,
    )


def flat(content: Any) -> str:
    """Return all that `content` says as one text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(flat, content) if text)
    if isinstance(content, dict):
        if word(content.get("type")) in _IMAGES:
            return IMAGE
        inner = content.get("text", content.get("content", ""))
        return flat(inner) if isinstance(inner, (str, list, dict)) else ""
    return ""


def given(arguments: Any) -> JsonObject:
    """Return the arguments of a call as an object; text that holds none becomes its `input`."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str) or not arguments:
        return {}
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"input": arguments}
    return read if isinstance(read, dict) else {"input": arguments}


def failed(text: str) -> bool:
    """Tell whether the answer of a tool says that it failed, where the format has no flag for it.

    >>> failed("Exit code 2"), failed("Exit code: 0"), failed("Error: no such file"), failed("3 errors found")
    (True, False, True, False)
    """
    head = text[:_HEAD_CHARS].lstrip()
    code = _EXIT.search(head)
    return int(code[1]) != 0 if code else bool(_FAILED.match(head))


def word(value: Any) -> str:
    """Return `value` where it is text, else nothing."""
    return value if isinstance(value, str) else ""


def table(value: Any) -> JsonObject:
    """Return `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
