"""Tokens of media: pictures, documents and sound, by their size and never by the length of their base64.

Of a picture only the head is decoded, up to its width and height; each provider's module has its price. Where newer and
older models of one provider differ, the higher one is used: an overestimate costs less than a rejected request.
"""

from __future__ import annotations

import binascii
from itertools import chain
from typing import Literal, NamedTuple

from aether.messages.model import ProviderFormat
from aether.messages.providers import provider
from aether.types import JsonObject

# Base64 characters of a picture that are decoded: past the preview that a camera puts before a JPEG's size.
HEAD_CHARS = 1 << 18

# A picture whose size is not known, such as one behind an address: about a full screen.
PICTURE_TOKENS = 1600
_UNKNOWN_PIXELS = (1024, 1024)

# Anthropic says 1,500 to 3,000 tokens a page, each also shown as a picture; a written page has 30 to 60 kB.
DOCUMENT_BYTES_PER_TOKEN = 16
DOCUMENT_LEAST_TOKENS = 1500
# Sound costs 32 tokens a second (Gemini) at the 16 kB a second of common MP3; film is about as dear per byte.
SOUND_BYTES_PER_TOKEN = 500
# English has about four bytes a token.
TEXT_BYTES_PER_TOKEN = 4
# A medium given by its address alone: two pages, or a minute of sound.
NAMED_TOKENS = 2000

# Types of blocks that are media, in all provider formats.
_TYPES = frozenset(
    """image image_url input_image output_image computer_screenshot document input_file file input_audio audio
    video video_url input_video image_generation_call""".split()
)
# Keys of Gemini's parts that hold media, and keys of other blocks below which media is described.
_PARTS = ("inlineData", "inline_data", "fileData", "file_data")
_BELOW = ("source", "image_url", "file", "input_audio", "audio", "video", "video_url")
_MIME = ("media_type", "mime_type", "mimeType", "format")
_ADDRESS = ("url", "image_url")
_PAYLOAD = ("data", "file_data", "result")


class Medium(NamedTuple):
    """One picture, document, sound or film of a block."""

    kind: Literal["picture", "sound", "text", "document"]
    base64: str = ""
    """Empty if only its address is given."""
    detail: str = ""


def medium(block: JsonObject) -> Medium | None:
    """Return the medium of `block`; None for other blocks, and for a document that holds its text as text.

    >>> medium({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR", "detail": "low"}})
    Medium(kind='picture', base64='iVBOR', detail='low')
    >>> medium({"type": "text", "text": "hello"}) is None
    True
    """
    for key in _PARTS:
        if isinstance(block.get(key), dict):
            return _medium("", block[key])
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    below: JsonObject = next((block[key] for key in _BELOW if isinstance(block.get(key), dict)), {})
    if below.get("type") in ("text", "content"):  # how Anthropic wraps a document that is no file
        return None
    return _medium(kind, block | below)


def media_tokens(media: Medium, format: ProviderFormat) -> int:
    """Return about how many tokens the provider of `format` charges for `found`.

    >>> media_tokens(Medium("picture"), "anthropic"), media_tokens(Medium("sound", "A" * 4000), "gemini")
    (1600, 6)
    """
    size = len(media.base64) * 3 // 4
    if media.kind == "picture":
        pixels = dimensions(media.base64) or (_UNKNOWN_PIXELS if media.detail == "low" else None)
        return provider(format).picture_tokens(*pixels, media.detail) if pixels else PICTURE_TOKENS
    if not size:
        return NAMED_TOKENS
    if media.kind == "document":
        return max(DOCUMENT_LEAST_TOKENS, size // DOCUMENT_BYTES_PER_TOKEN)
    return max(1, size // (TEXT_BYTES_PER_TOKEN if media.kind == "text" else SOUND_BYTES_PER_TOKEN))


def dimensions(base64: str) -> tuple[int, int] | None:
    """Return width and height of a PNG, JPEG, GIF or WebP picture; None if its head does not hold them."""
    start = "".join(base64[:HEAD_CHARS].split()).translate({ord("-"): "+", ord("_"): "/"})
    try:
        head = binascii.a2b_base64(start[: len(start) // 4 * 4])
    except ValueError:
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = _numbers(head[16:24], "big")
    elif head.startswith(b"GIF8"):
        size = _numbers(head[6:10], "little")
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp(head)
    else:
        size = _jpeg(head) if head.startswith(b"\xff\xd8") else (0, 0)
    return size if min(size) > 0 else None


def _medium(block_type: str, described: JsonObject) -> Medium:
    mime = _first(described, _MIME)
    data = _first(described, _PAYLOAD)
    address = data if data.startswith("data:") else _first(described, _ADDRESS)
    if address.startswith("data:"):
        mime, _, data = address.removeprefix("data:").partition(",")
    about = f"{block_type} {mime}"
    if "image" in about or "screenshot" in about:
        return Medium("picture", data, _first(described, ("detail",)))
    if "audio" in about or "video" in about:
        return Medium("sound", data)
    return Medium("text" if mime.startswith("text/") else "document", data)


def _first(described: JsonObject, keys: tuple[str, ...]) -> str:
    return next((described[key] for key in keys if isinstance(described.get(key), str)), "")


def _numbers(pair: bytes, order: Literal["big", "little"]) -> tuple[int, int]:
    half = len(pair) // 2
    return int.from_bytes(pair[:half], order), int.from_bytes(pair[half:], order)


def _webp(head: bytes) -> tuple[int, int]:
    if head[12:16] == b"VP8X":
        width, height = _numbers(head[24:30], "little")
        return width + 1, height + 1
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = _numbers(head[26:30], "little")
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(head: bytes) -> tuple[int, int]:
    index = 2
    while index + 9 <= len(head) and head[index] == 0xFF:
        marker = head[index + 1]
        if marker in _FRAMES:
            height, width = _numbers(head[index + 5 : index + 9], "big")
            return width, height
        index += 1 if marker == 0xFF else 2 + int.from_bytes(head[index + 2 : index + 4], "big")
    return 0, 0


# Markers that open a frame and so give its size; C4, C8 and CC are tables.
_FRAMES = frozenset(chain(range(0xC0, 0xC4), range(0xC5, 0xC8), range(0xC9, 0xCC), range(0xCD, 0xD0)))
