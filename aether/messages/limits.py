"""Limits: how many messages, pictures and marks a provider takes in one request, and how large each may be.

Pictures that are too large and marks of the cache beyond the last ones are removed by a repair. What needs fewer or shorter
messages is only named by a check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aether.messages.faults import Faults
from aether.messages.model import ProviderFormat, as_object, as_text
from aether.tokens.images import dimensions, medium
from aether.types import JsonObject


class Limits(NamedTuple):
    """What one request may hold; 0 where the provider names no limit."""

    source: str = ""
    """The page that names the limits, and the day on which it was read."""
    messages: int = 0
    calls: int = 0
    """Calls of one message."""
    text_chars: int = 0
    """Characters of one text."""
    images: int = 0
    image_chars: int = 0
    """Characters of the base64 of one picture."""
    image_side: int = 0
    """Pixels."""
    many_images: int = 0
    """Beyond so many pictures each side may have `many_side` pixels."""
    many_side: int = 0
    cache_marks: int = 0
    """Blocks with `cache_control`, in messages, system prompt and tools together."""


LIMITS: dict[ProviderFormat, Limits] = {
    "anthropic": Limits(
        "platform.claude.com/docs/en/build-with-claude/vision and prompt-caching, 2026-11",
        images=600, image_chars=5 * 1024 * 1024, image_side=8_000, many_images=20, many_side=2_000, cache_marks=4,
    ),
    "openai": Limits("errors of api.openai.com, 2026-11; pictures: reported by users", messages=2_048, calls=128, text_chars=10_485_760, images=1_500),
    "responses": Limits("errors of api.openai.com, 2026-11; pictures: reported by users", text_chars=10_485_760, images=1_500),
    "gemini": Limits("ai.google.dev/gemini-api/docs/image-understanding, 2026-11", images=3_600),
    "plain": Limits(),
}  # fmt: skip
_CACHE = "cache_control"
# A JPEG has its size anywhere in its head, other pictures within their first bytes.
_JPEG, _HEAD_CHARS = "/9j/", 64


class _Room:
    """What is left of the limits while the blocks of a request are walked."""

    def __init__(self, limits: Limits, raws: Sequence[JsonObject], marks_beside: int) -> None:
        blocks = [block for raw in raws for block in _blocks(raw.get("content"))]
        images = sum(_picture(block) is not None for block in blocks)
        marks = marks_beside + sum(_CACHE in block for block in blocks)
        self.limits, self.images = limits, limits.images
        self.side = limits.many_side if images > limits.many_images else limits.image_side
        self.surplus_marks = max(0, marks - limits.cache_marks) if limits.cache_marks else 0

    def problem(self, data: str) -> str:
        """Return why a picture of this base64 is refused; empty if it is not."""
        if self.images == 0:
            return f"There are more than {self.limits.images} pictures."
        self.images -= 1
        if len(data) > self.limits.image_chars > 0:
            return f"The picture has {len(data)} base64 characters, the limit is {self.limits.image_chars}."
        sides = self.side and dimensions(data if data.startswith(_JPEG) else data[:_HEAD_CHARS])
        if sides and max(sides) > self.side:
            return f"The picture has {sides[0]} x {sides[1]} pixels, the limit is {self.side} for a side."
        return ""


def within(
    raws: Sequence[JsonObject], format: ProviderFormat, faults: Faults, *, marks_beside: int = 0
) -> list[JsonObject]:
    """Return `raws` without the pictures and cache marks that the provider refuses; `faults` gets each.

    `marks_beside` is the number of cache marks outside the messages. The last marks stay.

    >>> marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    >>> faults = Faults()
    >>> [raw] = within([{"role": "user", "content": [marked] * 5}], "anthropic", faults)
    >>> ["cache_control" in block for block in raw["content"]], faults.listed[0].code
    ([False, True, True, True, True], 'cache-marks')
    """
    limits = LIMITS.get(format, Limits())
    if not limits.images:
        return list(raws)
    room = _Room(limits, raws, marks_beside)
    return [
        raw if (content := _fitting(raw.get("content"), f"messages[{index}]", room, faults)) is raw.get("content")
        else {**raw, "content": content}
        for index, raw in enumerate(raws)
    ]  # fmt: skip


def _fitting(content: Any, where: str, room: _Room, faults: Faults) -> Any:
    """Return the blocks of a content that fit; the content itself if all do."""
    if not isinstance(content, list):
        return content
    fitting = []
    for index, original in enumerate(content):
        place, block = f"{where}.content[{index}]", original
        if (data := _picture(block)) is not None and (problem := room.problem(data)):
            faults.lost("large-image", place, problem, "Make it smaller, or drop it.")
            continue
        if room.surplus_marks and _CACHE in as_object(block):
            room.surplus_marks -= 1
            what = f"More than {room.limits.cache_marks} blocks have {_CACHE}."
            faults.changed("cache-marks", place, what, "Mark only the last ones.")
            block = {key: value for key, value in block.items() if key != _CACHE}
        inner = as_object(block).get("content")
        changed = _fitting(inner, place, room, faults)
        fitting.append(block if changed is inner else {**block, "content": changed})
    same = len(fitting) == len(content) and all(map(lambda old, new: old is new, content, fitting))
    return content if same else fitting


def check_sizes(raws: Sequence[JsonObject], format: ProviderFormat, faults: Faults, *, tools: int) -> None:
    """Note where a request has more messages, calls, tools or text than the provider takes."""
    limits = LIMITS.get(format, Limits())
    sizes = [("messages", len(raws), limits.messages), ("tools", tools, limits.calls)]
    for index, raw in enumerate(raws):
        calls = raw.get("tool_calls")
        sizes.append(
            (f"messages[{index}].tool_calls", len(calls) if isinstance(calls, list) else 0, limits.calls)
        )
        texts = [
            raw.get("content"),
            raw.get("output"),
            *(block.get("text") for block in _blocks(raw.get("content"))),
        ]
        longest = max(len(as_text(text)) for text in texts)
        sizes.append((f"messages[{index}]", longest, limits.text_chars))
    for where, size, most in sizes:
        if size > most > 0:
            fix = "Compact the conversation." if where == "messages" else "Make it smaller."
            faults.lost("too-large", where, f"It has {size}, the limit is {most}.", fix)


def cache_marks(blocks: Any) -> int:
    """Return the number of cache marks of a system prompt or of tools."""
    return sum(_CACHE in as_object(block) for block in blocks) if isinstance(blocks, list) else 0


def have_marks(raws: Sequence[JsonObject]) -> bool:
    """Return whether a block of these messages has a mark of the cache."""
    return any(_CACHE in block for raw in raws for block in _blocks(raw.get("content")))


def _blocks(content: Any) -> Iterator[JsonObject]:
    """Yield the blocks of a content, and those inside of them."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block
            yield from _blocks(block.get("content"))


def _picture(block: Any) -> str | None:
    """Return the base64 of a picture, empty if it is not in the block; None for another block."""
    media = medium(block) if isinstance(block, dict) else None
    return media.base64 if media and media.kind == "picture" else None
