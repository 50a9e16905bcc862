"""Content: the blocks that several wires spell alike, read without ever raising.

What cannot be understood becomes a block of kind `other` with its JSON as text, so that it is counted and kept.

Media: pictures, sounds and files, from any wire's spelling and into any that has one.

Places: one value deep inside a message, read and replaced without touching the rest.

A place is the tuple of keys that leads there. Replacing copies the objects on the way and nothing else,
so what was read stays as it was.

Notes: what a repair returns, how it tells what it did, and how it names what has to be renamed.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from aether.messages.model import Block, ProviderFormat, as_arguments, as_object, as_text, is_failure_text
from aether.types import Finding, JsonObject

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
    """Return a list of content blocks that says `text` where its first text stood; its other texts go.

    >>> retold([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "c")
    [{'type': 'text', 'text': 'c'}, {'type': 'image'}]
    """
    kept: list[Any] = []
    told = False
    for block in listed:
        if not is_text_block(block):
            kept.append(block)
        elif not told:
            kept.append({**block, "text": text} if isinstance(block, dict) else text)
            told = True
    return kept


def is_text_block(block: Any) -> bool:
    """Tell whether a content block is text and nothing else."""
    return isinstance(block, dict) and isinstance(block.get("text"), str) and block_type(block) in TEXTS


def block_type(block: JsonObject) -> str:
    """Return the `type` of a content block, empty where it has none that is text."""
    return as_text(block.get("type"))


TEXTS = frozenset({"", "text", "input_text", "output_text"})


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


def other_block(value: Any) -> Block:
    """Return the block of what is not understood."""
    return Block("other", as_json(value))


def media_block(block: JsonObject, at: Place) -> Block:
    """Return the block of a picture, sound or file; `at` leads to it, though it cannot be rewritten.

    Of a document that is plain text, that text is shown.
    """
    source = as_object(block.get("source"))
    return Block("media", as_text(source.get("data")) if source.get("type") == "text" else "", at)


def call_block(tool: Any, arguments: Any, at: Place, call_id: Any) -> Block:
    """Return the block of a call whose arguments, an object, JSON text or free text, stand at `at`."""
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
    """Return the blocks of what a tool answered: the result, and the media that came with it."""
    text, place = _answered(answer, at)
    is_error = is_failure_text(text) if broken is None else bool(broken)
    found = Block("result", text, place, as_text(call_id), as_text(tool), is_error=is_error)
    listed = answer if isinstance(answer, list) else []
    shown = [
        media_block(block, (*at, position))
        for position, block in enumerate(listed)
        if isinstance(block, dict) and block_type(block) in MEDIA
    ]
    return [found, *shown, *also]


def _answered(answer: Any, at: Place) -> tuple[str, Place]:
    if isinstance(answer, str):
        return answer, at
    if answer is None or answer == []:
        return "", ()
    if not isinstance(answer, list):
        return as_json(answer), ()
    told = [position for position, block in enumerate(answer) if is_text_block(block)]
    if len(told) == 1:
        return answer[told[0]]["text"], (*at, told[0], "text")
    if told:
        return "\n".join(answer[position]["text"] for position in told), at
    seen = all(isinstance(block, dict) and block_type(block) in MEDIA for block in answer)
    return "" if seen else as_json(answer), ()


class Media(NamedTuple):
    """One picture, sound or file: its data in base64, or where it is."""

    mime: str
    data: str = ""
    url: str = ""


def read_media(block: Any) -> Media | None:
    """Return what a block of any wire shows, None where it cannot be said elsewhere (an id of one provider's).

    >>> seen({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}})
    Shown(mime='image/png', data='aGk=', url='')
    """
    raw = as_object(block)
    kind = block_type(raw)
    source = as_object(raw.get("source"))
    if source:
        mime = as_text(source.get("media_type")) or ("application/pdf" if kind == "document" else "image/*")
        return _shown(mime, source.get("data"), source.get("url"))
    for key, mime in (("image_url", "image/*"), ("image", "image/*"), ("file_url", "application/pdf")):
        if key in raw:
            return _linked(raw[key] if isinstance(raw[key], str) else as_object(raw[key]).get("url"), mime)
    sound = as_object(raw.get("input_audio"))
    if sound:
        return _shown(f"audio/{as_text(sound.get('format'))}", sound.get("data"), None)
    file = as_object(raw.get("file")) or raw
    data = file.get("file_data")
    return _linked(data, "application/pdf") if isinstance(data, str) else _part(raw)


def _part(raw: JsonObject) -> Media | None:
    inline = as_object(raw.get("inlineData", raw.get("inline_data")))
    file = as_object(raw.get("fileData", raw.get("file_data")))
    mime = as_text(
        inline.get("mimeType", inline.get("mime_type", file.get("mimeType", file.get("mime_type"))))
    )
    return _shown(mime, inline.get("data"), file.get("fileUri", file.get("file_uri")))


def _linked(url: Any, mime: str) -> Media | None:
    head, comma, data = as_text(url).partition(";base64,")
    return _shown(head.removeprefix("data:"), data, None) if comma else _shown(mime, None, url)


def _shown(mime: str, data: Any, url: Any) -> Media | None:
    found = Media(mime, as_text(data), as_text(url))
    return found if found.data or found.url else None


def write_media(shown: Media, wire: ProviderFormat) -> JsonObject | None:
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


def _gemini(shown: Media) -> JsonObject:
    if shown.data:
        return {"inlineData": {"mimeType": shown.mime, "data": shown.data}}
    return {"fileData": {"mimeType": shown.mime, "fileUri": shown.url}}


def _anthropic(shown: Media, kind: str) -> JsonObject | None:
    name = "image" if kind == "image" else "document" if shown.mime == "application/pdf" else ""
    if not name:
        return None
    if shown.data:
        return {"type": name, "source": {"type": "base64", "media_type": shown.mime, "data": shown.data}}
    return {"type": name, "source": {"type": "url", "url": shown.url}}


def _openai(shown: Media, kind: str) -> JsonObject | None:
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": _link(shown)}}
    if kind == "audio" and shown.data:
        return {"type": "input_audio", "input_audio": {"data": shown.data, "format": shown.mime[6:]}}
    if shown.mime == "application/pdf" and shown.data:
        return {"type": "file", "file": {"filename": "file.pdf", "file_data": _link(shown)}}
    return None


def _responses(shown: Media, kind: str) -> JsonObject | None:
    if kind == "image":
        return {"type": "input_image", "image_url": _link(shown), "detail": "auto"}
    if shown.mime != "application/pdf":
        return None
    if shown.data:
        return {"type": "input_file", "filename": "file.pdf", "file_data": _link(shown)}
    return {"type": "input_file", "file_url": shown.url}


def _link(shown: Media) -> str:
    return f"data:{shown.mime};base64,{shown.data}" if shown.data else shown.url


# How other programs call the speakers.
_SPEAKERS = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}


class RepairedRaws(NamedTuple):
    """Messages as a provider takes them, and what was done to them."""

    raws: list[JsonObject]
    findings: list[Finding]


def lost(code: str, where: str, what: str) -> Finding:
    """Return the note that content is gone."""
    return Finding("warning", code, where, what, "Look into the original if it matters.")


def changed(code: str, where: str, what: str) -> Finding:
    """Return the note that something was moved, renamed or respelt."""
    return Finding("info", code, where, what, "Nothing has to be done.")


def known_role(role: Any, roles: Collection[str]) -> str:
    """Return the role of `roles` that is meant by `role`; the user where none is.

    >>> speaker("model", {"user", "assistant"}), speaker(7, {"user", "assistant"})
    ('assistant', 'user')
    """
    if isinstance(role, str) and role in roles:
        return role
    meant = _SPEAKERS.get(role, "user") if isinstance(role, str) else "user"
    return meant if meant in roles else "user"


def unused_name(name: str, taken: Collection[str], *, most: int) -> str:
    """Return `name`, or with a number at its end where it is taken or longer than `most` characters.

    >>> unused("call_1", {"call_1"}, most=40)
    'call_1_2'
    """
    found, number = name[:most], 1
    while found in taken:
        number += 1
        found = f"{name[: most - len(str(number)) - 1]}_{number}"
    return found


def arguments_text(given: Any) -> str | None:
    """Return the arguments of a call as JSON text; None where they are neither text nor an object."""
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else None
