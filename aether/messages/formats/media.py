"""Media: pictures, sounds and files, from any wire's spelling and into any that has one."""

from __future__ import annotations

from typing import Any, NamedTuple

from aether.messages.blocks import table, word
from aether.messages.formats.places import kind_of
from aether.messages.message import Wire
from aether.shapes import JsonObject


class Shown(NamedTuple):
    """One picture, sound or file: its data in base64, or where it is."""

    mime: str
    data: str = ""
    url: str = ""


def seen(block: Any) -> Shown | None:
    """Return what a block of any wire shows, None where it cannot be said elsewhere (an id of one provider's).

    >>> seen({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}})
    Shown(mime='image/png', data='aGk=', url='')
    """
    raw = table(block)
    kind = kind_of(raw)
    source = table(raw.get("source"))
    if source:
        mime = word(source.get("media_type")) or ("application/pdf" if kind == "document" else "image/*")
        return _shown(mime, source.get("data"), source.get("url"))
    for key, mime in (("image_url", "image/*"), ("image", "image/*"), ("file_url", "application/pdf")):
        if key in raw:
            return _linked(raw[key] if isinstance(raw[key], str) else table(raw[key]).get("url"), mime)
    sound = table(raw.get("input_audio"))
    if sound:
        return _shown(f"audio/{word(sound.get('format'))}", sound.get("data"), None)
    file = table(raw.get("file")) or raw
    data = file.get("file_data")
    return _linked(data, "application/pdf") if isinstance(data, str) else _part(raw)


def _part(raw: JsonObject) -> Shown | None:
    inline = table(raw.get("inlineData", raw.get("inline_data")))
    file = table(raw.get("fileData", raw.get("file_data")))
    mime = word(inline.get("mimeType", inline.get("mime_type", file.get("mimeType", file.get("mime_type")))))
    return _shown(mime, inline.get("data"), file.get("fileUri", file.get("file_uri")))


def _linked(url: Any, mime: str) -> Shown | None:
    head, comma, data = word(url).partition(";base64,")
    return _shown(head.removeprefix("data:"), data, None) if comma else _shown(mime, None, url)


def _shown(mime: str, data: Any, url: Any) -> Shown | None:
    found = Shown(mime, word(data), word(url))
    return found if found.data or found.url else None


def spelt(shown: Shown, wire: Wire) -> JsonObject | None:
    """Return the block that shows it in a wire, None where the wire has none for that kind.

    >>> spelt(Shown("image/png", "aGk="), "gemini")
    {'inlineData': {'mimeType': 'image/png', 'data': 'aGk='}}
    """
    kind = shown.mime.partition("/")[0]
    match wire:
        case "gemini":
            return _gemini(shown)
        case "anthropic":
            return _anthropic(shown, kind)
        case "responses":
            return _responses(shown, kind)
        case _:
            return _openai(shown, kind)


def _gemini(shown: Shown) -> JsonObject:
    if shown.data:
        return {"inlineData": {"mimeType": shown.mime, "data": shown.data}}
    return {"fileData": {"mimeType": shown.mime, "fileUri": shown.url}}


def _anthropic(shown: Shown, kind: str) -> JsonObject | None:
    name = "image" if kind == "image" else "document" if shown.mime == "application/pdf" else ""
    if not name:
        return None
    if shown.data:
        return {"type": name, "source": {"type": "base64", "media_type": shown.mime, "data": shown.data}}
    return {"type": name, "source": {"type": "url", "url": shown.url}}


def _openai(shown: Shown, kind: str) -> JsonObject | None:
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": _link(shown)}}
    if kind == "audio" and shown.data:
        return {"type": "input_audio", "input_audio": {"data": shown.data, "format": shown.mime[6:]}}
    if shown.mime == "application/pdf" and shown.data:
        return {"type": "file", "file": {"filename": "file.pdf", "file_data": _link(shown)}}
    return None


def _responses(shown: Shown, kind: str) -> JsonObject | None:
    if kind == "image":
        return {"type": "input_image", "image_url": _link(shown), "detail": "auto"}
    if shown.mime != "application/pdf":
        return None
    if shown.data:
        return {"type": "input_file", "filename": "file.pdf", "file_data": _link(shown)}
    return {"type": "input_file", "file_url": shown.url}


def _link(shown: Shown) -> str:
    return f"data:{shown.mime};base64,{shown.data}" if shown.data else shown.url
