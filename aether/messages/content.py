"""Content: the parts of a message that several provider formats have in common.

Reading never raises: content that is not understood becomes a block of kind `other` with its JSON as text, so that it is
counted and kept. A place is the tuple of keys that leads to a value inside a message; replacing the value copies the
objects on the way and nothing else. Media are read from any format and written in each format that has them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from aether.messages.model import Block, ProviderFormat, as_arguments, as_object, as_text, is_failure_text
from aether.types import JsonObject

TEXTS = frozenset({"", "text", "input_text", "output_text"})
MEDIA = frozenset(
    {
        "image", "document", "container_upload",
        "image_url", "input_audio", "file", "audio", "video", "video_url",
        "input_image", "input_file", "computer_screenshot",
    }
)  # fmt: skip

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
    first = next((at for at, block in enumerate(listed) if is_text_block(block)), None)
    return [
        {**block, "text": text} if at == first else block
        for at, block in enumerate(listed)
        if at == first or not is_text_block(block)
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
    held = arguments if isinstance(arguments, dict) else {"input": arguments}
    return Block("call", as_json(held), at, key, name, held)


def result_blocks(
    answer: Any, at: Place, call_id: Any, *, tool: Any = "", broken: Any = None, also: tuple[Block, ...] = ()
) -> list[Block]:
    """Return the blocks of a tool's answer: the result, and the media that came with it."""
    text, place = _answer_text(answer, at)
    is_error = is_failure_text(text) if broken is None else bool(broken)
    found = Block("result", text, place, as_text(call_id), as_text(tool), is_error=is_error)
    media = [
        media_block(block, (*at, position))
        for position, block in enumerate(answer if isinstance(answer, list) else [])
        if _is_media(block)
    ]
    return [found, *media, *also]


def _is_media(block: Any) -> bool:
    return isinstance(block, dict) and block_type(block) in MEDIA


def _answer_text(answer: Any, at: Place) -> tuple[str, Place]:
    """Return an answer as text, and the place of that text; no place if it cannot be rewritten there."""
    if isinstance(answer, str):
        return answer, at
    if answer is None or answer == []:
        return "", ()
    if not isinstance(answer, list):
        return as_json(answer), ()
    texts = [position for position, block in enumerate(answer) if is_text_block(block)]
    if len(texts) == 1:
        return answer[texts[0]]["text"], (*at, texts[0], "text")
    if texts:
        return "\n".join(answer[position]["text"] for position in texts), at
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
        mime = as_text(source.get("media_type")) or ("application/pdf" if kind == "document" else "image/*")
        return _media(mime, source.get("data"), source.get("url"))
    for key, mime in (("image_url", "image/*"), ("image", "image/*"), ("file_url", "application/pdf")):
        if key in raw:
            return _linked(raw[key] if isinstance(raw[key], str) else as_object(raw[key]).get("url"), mime)
    if sound := as_object(raw.get("input_audio")):
        return _media(f"audio/{as_text(sound.get('format'))}", sound.get("data"), None)
    file = as_object(raw.get("file")) or raw
    if isinstance(file.get("file_data"), str):
        return _linked(file["file_data"], "application/pdf")
    inline = as_object(raw.get("inlineData", raw.get("inline_data")))
    stored = as_object(raw.get("fileData", raw.get("file_data")))
    named = {**stored, **inline}
    mime = as_text(named.get("mimeType", named.get("mime_type")))
    return _media(mime, inline.get("data"), stored.get("fileUri", stored.get("file_uri")))


def _linked(url: Any, mime: str) -> Media | None:
    head, comma, data = as_text(url).partition(";base64,")
    return _media(head.removeprefix("data:"), data, None) if comma else _media(mime, None, url)


def _media(mime: str, data: Any, url: Any) -> Media | None:
    found = Media(mime, as_text(data), as_text(url))
    return found if found.data or found.url else None


def write_media(media: Media, format: ProviderFormat) -> JsonObject | None:
    """Return the block of media in a format, None if the format has none for that kind.

    >>> write_media(Media("image/png", "aGk="), "gemini")
    {'inlineData': {'mimeType': 'image/png', 'data': 'aGk='}}
    """
    is_image, is_pdf = media.mime.startswith("image/"), media.mime == "application/pdf"
    if format == "gemini":
        if media.data:
            return {"inlineData": {"mimeType": media.mime, "data": media.data}}
        return {"fileData": {"mimeType": media.mime, "fileUri": media.url}}
    if format != "anthropic":
        return _write_for_openai(media, is_image=is_image, is_pdf=is_pdf, responses=format == "responses")
    if not is_image and not is_pdf:
        return None
    source: JsonObject = {"type": "url", "url": media.url}
    if media.data:
        source = {"type": "base64", "media_type": media.mime, "data": media.data}
    return {"type": "image" if is_image else "document", "source": source}


def _write_for_openai(media: Media, *, is_image: bool, is_pdf: bool, responses: bool) -> JsonObject | None:
    link = f"data:{media.mime};base64,{media.data}" if media.data else media.url
    if is_image and responses:
        return {"type": "input_image", "image_url": link, "detail": "auto"}
    if is_image:
        return {"type": "image_url", "image_url": {"url": link}}
    if is_pdf and media.data:
        file = {"filename": "file.pdf", "file_data": link}
        return {"type": "input_file", **file} if responses else {"type": "file", "file": file}
    if is_pdf and responses:
        return {"type": "input_file", "file_url": media.url}
    if media.mime.startswith("audio/") and media.data and not responses:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": media.mime[6:]}}
    return None


def arguments_text(given: Any) -> str | None:
    """Return the arguments of a call as JSON text; None if they are neither text nor an object."""
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else None
