"""Content: the blocks that several wires spell alike, read without ever raising.

What cannot be understood becomes a block of kind `other` with its JSON as text, so that it is counted and kept.
"""

from __future__ import annotations

import json
from typing import Any

from aether.messages.blocks import failed, given, table, word
from aether.messages.formats.places import Place, is_text, kind_of
from aether.messages.message import Block
from aether.shapes import JsonObject

MEDIA = frozenset(
    {
        "image", "document", "container_upload",
        "image_url", "input_audio", "file", "audio", "video", "video_url",
        "input_image", "input_file", "computer_screenshot",
    }
)  # fmt: skip


def as_json(value: Any) -> str:
    """Return `value` as JSON text, empty where it is none.

    >>> as_json({"path": "é"}), as_json({1, 2})
    ('{"path": "é"}', '')
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def other(value: Any) -> Block:
    """Return the block of what is not understood."""
    return Block("other", as_json(value))


def media(block: JsonObject, at: Place) -> Block:
    """Return the block of a picture, sound or file; `at` leads to it, though it cannot be rewritten.

    Of a document that is plain text, that text is shown.
    """
    source = table(block.get("source"))
    return Block("media", word(source.get("data")) if source.get("type") == "text" else "", at)


def call(tool: Any, arguments: Any, at: Place, call_id: Any) -> Block:
    """Return the block of a call whose arguments, an object, JSON text or free text, stand at `at`."""
    name, key = word(tool), word(call_id)
    if isinstance(arguments, str) and at[-1] == "arguments":
        return Block("call", arguments, at, key, name, given(arguments))
    if arguments is None:
        return Block("call", "", (), key, name)
    held = arguments if isinstance(arguments, dict) else {"input": arguments}
    return Block("call", as_json(held), at, key, name, held)


def result(
    answer: Any, at: Place, call_id: Any, *, tool: Any = "", broken: Any = None, also: tuple[Block, ...] = ()
) -> list[Block]:
    """Return the blocks of what a tool answered: the result, and the media that came with it."""
    text, place = _answered(answer, at)
    is_error = failed(text) if broken is None else bool(broken)
    found = Block("result", text, place, word(call_id), word(tool), is_error=is_error)
    listed = answer if isinstance(answer, list) else []
    shown = [
        media(block, (*at, position))
        for position, block in enumerate(listed)
        if isinstance(block, dict) and kind_of(block) in MEDIA
    ]
    return [found, *shown, *also]


def _answered(answer: Any, at: Place) -> tuple[str, Place]:
    if isinstance(answer, str):
        return answer, at
    if answer is None or answer == []:
        return "", ()
    if not isinstance(answer, list):
        return as_json(answer), ()
    told = [position for position, block in enumerate(answer) if is_text(block)]
    if len(told) == 1:
        return answer[told[0]]["text"], (*at, told[0], "text")
    if told:
        return "\n".join(answer[position]["text"] for position in told), at
    seen = all(isinstance(block, dict) and kind_of(block) in MEDIA for block in answer)
    return "" if seen else as_json(answer), ()
