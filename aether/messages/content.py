"""Content: the parts of a message that several provider formats have in common.

Reading never raises: content that is not understood becomes a block of kind `other` with its JSON as text, so that it is
counted and kept. A place is the tuple of keys that leads to a value inside a message; replacing the value copies the
objects on the way and nothing else. Media are read from any format and written in each format that has them;
`media_fault` says why a provider refuses a block of media.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.model import Block, ProviderFormat, as_arguments, as_object, as_text, is_failure_text
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
# The pictures that all providers take.
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
# How the base64 of each kind of file starts.
_STARTS = {
    "iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp", "JVBERi0": _PDF,
}  # fmt: skip
# Only the head is looked at: data that is something else shows it there, and it may have megabytes.
_HEAD_CHARS = 1_024
_PARTS = {
    "openai": frozenset({"image_url", "input_audio", "file"}),
    "responses": frozenset({"input_image", "input_file", "input_audio", "computer_screenshot"}),
}
_TYPE_KEYS = frozenset({"type", "media_type", "mime_type", "mimeType", "format", "detail"})
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


def encodable(value: Any, *, lone: bool = True, levels: int = MAX_LEVELS) -> Any:
    r"""Return `value` as JSON that every parser reads; the very object if it is that already.

    The halves of a surrogate pair are joined, and with `lone` U+FFFD replaces half a pair; a number that is not finite
    becomes null, and what is nested deeper than `levels` becomes a text, its JSON.

    >>> encodable(["\ud83d\ude00", "a\udc00", float("nan")])
    ['😀', 'a\ufffd', None]
    >>> encodable({"a": {"b": [1]}}, levels=2)
    {'a': {'b': '[1]'}}
    """
    return value if _is_encodable(value, levels) else _encodable(value, lone, levels)


def _is_encodable(value: Any, levels: int) -> bool:
    """Return whether nothing has to be rewritten, as of almost every message that is sent."""
    if isinstance(value, str):
        return _unicode(value, lone=True) is value
    if not isinstance(value, (dict, list)):
        return not isinstance(value, float) or math.isfinite(value)
    if not levels:
        return False
    if isinstance(value, list):
        return all(_is_plain(one) or _is_encodable(one, levels - 1) for one in value)
    for key, one in value.items():
        if not (
            (_is_plain(key) or _is_encodable(key, levels))
            and (_is_plain(one) or _is_encodable(one, levels - 1))
        ):
            return False
    return True


def _is_plain(value: Any) -> bool:
    return type(value) is str and value.isascii()


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
        listed = [_encodable(one, lone, levels - 1) for one in value]
        return value if all(map(lambda new, old: new is old, listed, value)) else listed
    made = {
        _encodable(key, lone, MAX_LEVELS): _encodable(one, lone, levels - 1) for key, one in value.items()
    }
    same = len(made) == len(value) and all(
        new is old and made[new] is value[old] for new, old in zip(made, value, strict=True)
    )
    return value if same else made


def _unicode(text: str, *, lone: bool) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass")
        found = data.decode("utf-16", "replace" if lone else "surrogatepass")
        return text if found == text else found
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
        mime = as_text(source.get("media_type")) or (_PDF if kind == "document" else "image/*")
        return _media(mime, source.get("data"), source.get("url"))
    for key, mime in (("image_url", "image/*"), ("image", "image/*"), ("file_url", _PDF)):
        if key in raw:
            return _linked(raw[key] if isinstance(raw[key], str) else as_object(raw[key]).get("url"), mime)
    if sound := as_object(raw.get("input_audio")):
        return _media(f"audio/{as_text(sound.get('format'))}", sound.get("data"), None)
    file = as_object(raw.get("file")) or raw
    if isinstance(file.get("file_data"), str):
        return _linked(file["file_data"], _PDF)
    inline = as_object(raw.get("inlineData", raw.get("inline_data")))
    stored = as_object(raw.get("fileData", raw.get("file_data")))
    named = {**stored, **inline}
    mime = as_text(named.get("mimeType", named.get("mime_type")))
    return _media(mime, inline.get("data"), stored.get("fileUri", stored.get("file_uri")))


def _linked(url: Any, mime: str) -> Media | None:
    head, comma, data = as_text(url).partition(";base64,")
    return _media(head.removeprefix("data:"), data, None) if comma else _media(mime, None, url)


def _media(mime: str, data: Any, url: Any) -> Media | None:
    text = as_text(data)
    # The first bytes of a file say what it is; the type beside it is often missing or wrong.
    shown_type = next((each for start, each in _STARTS.items() if text.startswith(start)), mime)
    found = Media(shown_type, text, as_text(url))
    return found if found.data or found.url else None


def write_media(media: Media, format: ProviderFormat) -> JsonObject | None:
    """Return the block of media in a format, None if the format has none for that kind.

    >>> write_media(Media("image/png", "aGk="), "gemini")
    {'inlineData': {'mimeType': 'image/png', 'data': 'aGk='}}
    """
    is_image, is_pdf = media.mime.startswith("image/"), media.mime == _PDF
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


def rewritten_media(block: JsonObject, format: ProviderFormat) -> JsonObject | None:
    """Return a block of media, of any format, as the provider of `format` accepts it; None if that cannot be made of it.

    >>> rewritten_media({"type": "image_url", "image_url": {"url": "https://a.org/b.png"}}, "anthropic")
    {'type': 'image', 'source': {'type': 'url', 'url': 'https://a.org/b.png'}}
    """
    media = read_media(block)
    made = write_media(media, format) if media else None
    if made is None or media_fault(made, format):
        return None
    same = made.get("type") == block.get("type") and format == "anthropic"
    return {**block, **made} if same else made


def media_fault(block: Any, format: ProviderFormat) -> str:
    """Return why the provider of `format` refuses a block of media; empty if it does not.

    A plain message may hold media in any dialect, as long as there are any.

    >>> media_fault({"type": "image", "source": None}, "anthropic")
    'The source is None.'
    """
    raw = as_object(block)
    match format:
        case "anthropic":
            return _source_fault(raw, block_type(raw))
        case "gemini":
            return _gemini_fault(raw)
        case "plain":
            return "" if _has_payload(raw) else "It has no source."
        case _:
            kind = block_type(raw)
            return _part_fault(raw, kind) if kind in _PARTS[format] else f"{shown(kind)} is not a medium."


def _has_payload(value: Any) -> bool:
    """Return whether there is a text, other than names of types, in a block of media."""
    if isinstance(value, list):
        return any(map(_has_payload, value))
    if isinstance(value, dict):
        return any(_has_payload(inner) for key, inner in value.items() if key not in _TYPE_KEYS)
    return isinstance(value, (str, bytes)) and bool(value.strip())


def _source_fault(block: JsonObject, kind: str) -> str:
    """Return why Anthropic refuses a picture, a document or an uploaded file."""
    source = block if kind == "container_upload" else as_object(block.get("source"))
    form = "file" if kind == "container_upload" else source.get("type")
    is_document = kind == "document"
    if form == "base64":
        mime = source.get("media_type")
        if mime not in ((_PDF,) if is_document else _PICTURES):
            return f"{shown(mime)} is not a media type of {kind}."
    text = as_text(source.get("data"))
    good = {
        "base64": is_base64(source.get("data")),
        "url": bool(_WEB_ADDRESS.fullmatch(as_text(source.get("url")))),
        "file": bool(as_text(source.get("file_id"))),
        "text": is_document and source.get("media_type") == "text/plain" and bool(text.strip()),
        "content": is_document and _is_content(source.get("content")),
    }
    return "" if good.get(as_text(form)) else f"The source is {shown(block.get('source'))}."


def _is_content(content: Any) -> bool:
    """Return whether `content` of a document is a text, or texts and pictures."""
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(listed, list) or not listed:
        return False
    return all(
        bool(as_text(block.get("text")).strip())
        if block_type(block) == "text"
        else block_type(block) == "image" and not media_fault(block, "anthropic")
        for block in map(as_object, listed)
    )


def _part_fault(part: JsonObject, kind: str) -> str:
    """Return why OpenAI refuses a part of media, of either interface."""
    file = as_object(part.get("file")) if kind == "file" else part
    sound = as_object(part.get("input_audio"))
    if kind in ("input_file", "file", "input_image", "computer_screenshot") and as_text(file.get("file_id")):
        return ""
    match kind:
        case "image_url":
            link = as_object(part.get("image_url")).get("url")
            return "" if _is_link(link, "image/") else f"{shown(link)} is not the address of a picture."
        case "input_image" | "computer_screenshot":
            link = part.get("image_url")
            return "" if _is_link(link, "image/") else f"{shown(link)} is not the address of a picture."
        case "input_file" | "file":
            data = as_text(file.get("file_data"))
            given = _is_link(data, "") or is_base64(data) or _is_link(file.get("file_url"), "")
            return "" if given else "The file has no data, address or file_id."
    good = is_base64(sound.get("data")) and as_text(sound.get("format"))
    return "" if good else "The sound has no data in base64, or no format."


def _is_link(link: Any, mime: str) -> bool:
    """Return whether `link` is an address, or a data URL of a type that starts with `mime`."""
    text = as_text(link)
    if not text.startswith("data:"):
        return bool(_ADDRESS.fullmatch(text))
    head, mark, data = text.partition(";base64,")
    return bool(mark) and head.startswith(f"data:{mime}") and is_base64(data)


def _gemini_fault(part: JsonObject) -> str:
    inline = part.get("inlineData", part.get("inline_data"))
    if inline is not None:
        mime = as_object(inline).get("mimeType", as_object(inline).get("mime_type"))
        if "/" not in as_text(mime) or "*" in str(mime):
            return f"{shown(mime)} is not a media type."
        data = as_object(inline).get("data")
        return "" if isinstance(data, bytes) or is_base64(data) else "It has no data in base64."
    stored = as_object(part.get("fileData", part.get("file_data")))
    return "" if as_text(stored.get("fileUri", stored.get("file_uri"))) else "It has no data and no address."


def is_base64(data: Any) -> bool:
    """Return whether `data` is text that starts as base64 does."""
    return isinstance(data, str) and bool(_BASE64.fullmatch(data[:_HEAD_CHARS]))


def arguments_text(given: Any) -> str | None:
    """Return the arguments of a call as JSON text; None if they are neither text nor an object."""
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else None
