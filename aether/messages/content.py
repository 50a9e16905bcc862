"""Content: the parts of a message that several provider formats have in common.

Reading never raises: content that is not understood becomes a block of kind `other` with its JSON as text, so that it is
counted and kept. A place is the tuple of keys that leads to a value inside a message; replacing the value copies the
objects on the way and nothing else. Media are read from any format; each provider's module writes its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from aether.messages.model import Block, as_arguments, as_object, as_text, is_failure_text
from aether.text.regex import lazy
from aether.types import JsonObject

TEXTS = frozenset({"", "text", "input_text", "output_text"})
MEDIA = frozenset(
    {
        "image", "document", "container_upload",
        "image_url", "input_audio", "file", "audio", "video", "video_url",
        "input_image", "input_file", "computer_screenshot",
    }
)  # fmt: skip

# Parsers of JSON, and the store, refuse a hundred levels, and the request around a message is a few.
MAX_LEVELS = 90
TOO_DEEP = "[nested too deeply]"
PDF = "application/pdf"
# How the base64 of each kind of file starts.
_STARTS = {
    "iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp", "JVBERi0": PDF,
}  # fmt: skip
# Only the head is looked at: data that is something else shows it there, and it may have megabytes.
_HEAD_CHARS = 1_024
_BASE64 = lazy(r"[A-Za-z0-9+/_\s-]+=*\s*")
_ADDRESS = lazy(r"(?!data:)[A-Za-z][A-Za-z0-9+.-]*:\S+")
_WEB_ADDRESS = lazy(r"https?://\S+")

Place = tuple[str | int, ...]


def value_at(raw: Any, at: Place) -> Any:
    """Return the value at a place that exists.

    >>> value_at({"content": [{"text": "hi"}]}, ("content", 0, "text"))
    'hi'
    """
    for key in at:
        raw = raw[key]
    return raw


def replaced(raw: Any, at: Place, value: Any) -> Any:
    """Return a copy of `raw` with `value` at a place that exists.

    >>> replaced({"a": [1, 2], "b": 3}, ("a", 1), 7)
    {'a': [1, 7], 'b': 3}
    """
    if not at:
        return value
    key = at[0]
    copied: Any = dict(raw) if isinstance(raw, dict) else list(raw)
    copied[key] = replaced(raw[key], at[1:], value)
    return copied


def with_only_text(listed: list[Any], text: str) -> list[Any]:
    """Return a list of content blocks with `text` in place of its first text, and without its other texts.

    >>> with_only_text([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "c")
    [{'type': 'text', 'text': 'c'}, {'type': 'image'}]
    """
    first = next((index for index, block in enumerate(listed) if is_text_block(block)), None)
    return [
        {**block, "text": text} if index == first else block
        for index, block in enumerate(listed)
        if index == first or not is_text_block(block)
    ]


def is_text_block(block: Any) -> bool:
    """Return whether a content block is text and nothing else."""
    return isinstance(block, dict) and isinstance(block.get("text"), str) and block_type(block) in TEXTS


def block_type(block: JsonObject) -> str:
    """Return the `type` of a content block, empty if it has none that is text."""
    return as_text(block.get("type"))


def as_json(value: Any) -> str:
    """Return `value` as JSON text, empty if it cannot be written as JSON.

    >>> as_json({"path": "é"}), as_json({1, 2})
    ('{"path": "é"}', '')
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def encodable(value: Any, *, lone: bool = True, levels: int = MAX_LEVELS) -> Any:
    r"""Return `value` as JSON that every parser reads; the very object if it is that already.

    The halves of a surrogate pair are joined, and with `lone` U+FFFD replaces half a pair; a number that is not finite
    becomes null, and what is nested deeper than `levels` becomes a text, its JSON.

    >>> encodable(["\ud83d\ude00", "a\udc00", float("nan")])
    ['😀', 'a\ufffd', None]
    >>> encodable({"a": {"b": [1]}}, levels=2)
    {'a': {'b': '[1]'}}
    """
    return _encodable(value, lone, levels)


def _encodable(value: Any, lone: bool, levels: int) -> Any:
    if isinstance(value, str):
        return _unicode(value, lone=lone)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (dict, list)):
        return value
    if not levels:
        return _unicode(as_json(value) or TOO_DEEP, lone=lone)
    if isinstance(value, list):
        listed = [_encodable(inner, lone, levels - 1) for inner in value]
        return value if all(map(lambda new, old: new is old, listed, value)) else listed
    copy = {
        _encodable(key, lone, MAX_LEVELS): _encodable(inner, lone, levels - 1) for key, inner in value.items()
    }
    same = len(copy) == len(value) and all(
        new is old and copy[new] is value[old] for new, old in zip(copy, value, strict=True)
    )
    return value if same else copy


def _unicode(text: str, *, lone: bool) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass")
        joined = data.decode("utf-16", "replace" if lone else "surrogatepass")
        return text if joined == text else joined
    return text


def other_block(value: Any) -> Block:
    """Return the block of content that is not understood."""
    return Block("other", as_json(value))


def media_block(block: JsonObject, at: Place) -> Block:
    """Return the block of a picture, sound or file; `at` leads to it, though it cannot be rewritten.

    The block of a plain text document has that text.
    """
    source = as_object(block.get("source"))
    return Block("media", as_text(source.get("data")) if source.get("type") == "text" else "", at)


def call_block(tool: Any, arguments: Any, at: Place, call_id: Any) -> Block:
    """Return the block of a call with its arguments, an object, JSON text or free text, at `at`."""
    name, key = as_text(tool), as_text(call_id)
    if isinstance(arguments, str) and at[-1] == "arguments":
        return Block("call", arguments, at, key, name, as_arguments(arguments))
    if arguments is None:
        return Block("call", "", (), key, name)
    fields = arguments if isinstance(arguments, dict) else {"input": arguments}
    return Block("call", as_json(fields), at, key, name, fields)


def result_blocks(
    answer: Any, at: Place, call_id: Any, *, tool: Any = "", broken: Any = None, also: tuple[Block, ...] = ()
) -> list[Block]:
    """Return the blocks of a tool's answer: the result, and the media that came with it."""
    text, place = _answer_text(answer, at)
    is_error = is_failure_text(text) if broken is None else bool(broken)
    result = Block("result", text, place, as_text(call_id), as_text(tool), is_error=is_error)
    media = [
        media_block(block, (*at, index))
        for index, block in enumerate(answer if isinstance(answer, list) else [])
        if _is_media(block)
    ]
    return [result, *media, *also]


def _is_media(block: Any) -> bool:
    return isinstance(block, dict) and block_type(block) in MEDIA


def _answer_text(answer: Any, place: Place) -> tuple[str, Place]:
    """Return an answer as text, and the place of that text; no place if it cannot be rewritten there."""
    if isinstance(answer, str):
        return answer, place
    if answer is None or answer == []:
        return "", ()
    if not isinstance(answer, list):
        return as_json(answer), ()
    texts = [index for index, block in enumerate(answer) if is_text_block(block)]
    if len(texts) == 1:
        return answer[texts[0]]["text"], (*place, texts[0], "text")
    if texts:
        return "\n".join(answer[index]["text"] for index in texts), place
    return "" if all(map(_is_media, answer)) else as_json(answer), ()


class Media(NamedTuple):
    """One picture, sound or file: its data in base64, or its address."""

    mime: str
    data: str = ""
    url: str = ""


def read_media(block: Any) -> Media | None:
    """Return the media of a block in any format, None if only its provider can find them (by an id).

    >>> read_media({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}})
    Media(mime='image/png', data='aGk=', url='')
    """
    raw = as_object(block)
    kind = block_type(raw)
    if source := as_object(raw.get("source")):
        mime = as_text(source.get("media_type")) or (PDF if kind == "document" else "image/*")
        return _media(mime, source.get("data"), source.get("url"))
    for key, mime in (("image_url", "image/*"), ("image", "image/*"), ("file_url", PDF)):
        if key in raw:
            return _linked(raw[key] if isinstance(raw[key], str) else as_object(raw[key]).get("url"), mime)
    if sound := as_object(raw.get("input_audio")):
        return _media(f"audio/{as_text(sound.get('format'))}", sound.get("data"), None)
    file = as_object(raw.get("file")) or raw
    if isinstance(file.get("file_data"), str):
        return _linked(file["file_data"], PDF)
    inline = as_object(raw.get("inlineData", raw.get("inline_data")))
    stored = as_object(raw.get("fileData", raw.get("file_data")))
    fields = {**stored, **inline}
    mime = as_text(fields.get("mimeType", fields.get("mime_type")))
    return _media(mime, inline.get("data"), stored.get("fileUri", stored.get("file_uri")))


def _linked(url: Any, mime: str) -> Media | None:
    head, comma, data = as_text(url).partition(";base64,")
    return _media(head.removeprefix("data:"), data, None) if comma else _media(mime, None, url)


def _media(mime: str, data: Any, url: Any) -> Media | None:
    text = as_text(data)
    # The first bytes of a file say what it is; the type beside it is often missing or wrong.
    shown_type = next(
        (mime_of_start for start, mime_of_start in _STARTS.items() if text.startswith(start)), mime
    )
    media = Media(shown_type, text, as_text(url))
    return media if media.data or media.url else None


def rewritten_media(
    block: JsonObject, write: Callable[[Media], JsonObject | None], fault: Callable[[JsonObject], str]
) -> JsonObject | None:
    """Return a block of media, of any format, as the provider with these functions accepts it; None if it has no such."""
    media = read_media(block)
    written = write(media) if media else None
    if written is None or fault(written):
        return None
    # Fields beside the source stay, such as a mark of the cache.
    return {**block, **written} if written.get("type") == block_type(block) != "" else written


def is_link(link: Any, mime: str) -> bool:
    """Return whether `link` is an address, or a data URL of a type that starts with `mime`."""
    text = as_text(link)
    if not text.startswith("data:"):
        return bool(_ADDRESS.fullmatch(text))
    head, mark, data = text.partition(";base64,")
    return bool(mark) and head.startswith(f"data:{mime}") and is_base64(data)


def is_web_address(url: Any) -> bool:
    """Return whether `url` is an address of the web."""
    return bool(_WEB_ADDRESS.fullmatch(as_text(url)))


def is_base64(data: Any) -> bool:
    """Return whether `data` is text that starts as base64 does."""
    return isinstance(data, str) and bool(_BASE64.fullmatch(data[:_HEAD_CHARS]))


def arguments_text(arguments: Any) -> str | None:
    """Return the arguments of a call as JSON text; None if they are neither text nor an object."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else None
