"""Media cost what their size says: heads are read, base64 is never text."""

from __future__ import annotations

import base64
import struct

from aether.messages.providers import provider
from aether.tokens.images import (
    DOCUMENT_LEAST_TOKENS,
    NAMED_TOKENS,
    PICTURE_TOKENS,
    Medium,
    dimensions,
    media_tokens,
    medium,
)
from tests.tables import rows


def encoded(head: bytes, size: int = 4000) -> str:
    return base64.b64encode(head.ljust(size, b"\x55")).decode()


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width, height, before=b""):
    return b"\xff\xd8" + before + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width)


def webp(chunk, payload):
    return b"RIFF" + struct.pack("<I", 9) + b"WEBP" + chunk + struct.pack("<I", 99) + payload


PREVIEW = b"\xff\xe1" + struct.pack(">H", 40_002) + b"\xff\xc0" * 20_000
"""What a camera writes before the size, with bytes in it that look like one."""
HEADS = {
    "png": png(1280, 800),
    "gif": gif(1280, 800),
    "jpeg": jpeg(1280, 800),
    "jpeg with a preview": jpeg(1280, 800, PREVIEW),
    "jpeg with filling": jpeg(1280, 800, b"\xff"),
    "webp, lossy": webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 1280, 800)),
    "webp, lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 1279 | 799 << 14)),
    "webp, extended": webp(b"VP8X", b"\0\0\0\0" + (1279).to_bytes(3, "little") + (799).to_bytes(3, "little")),
}


@rows("kind", HEADS)
def test_the_size_of_a_picture_is_read_from_its_head(kind):
    assert dimensions(encoded(HEADS[kind], 60_000)) == (1280, 800)


@rows(
    "broken",
    [
        "", "A", "üüüü", encoded(b"BM"), encoded(png(0, 5)), base64.b64encode(png(9, 9)[:18]).decode(),
        encoded(b"\xff\xd8\x00\x00"), base64.b64encode(b"\xff\xd8\xff").decode(), encoded(b"RIFF0000AVI "),
    ],
)  # fmt: skip
def test_a_broken_head_has_no_size(broken):
    assert dimensions(broken) is None


def test_base64_may_have_line_ends_and_the_alphabet_of_addresses():
    text = encoded(png(1280, 800) + b"\xfb\xff\xfe")
    wrapped = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))

    assert dimensions(wrapped.replace("+", "-").replace("/", "_")) == (1280, 800)


@rows(
    ("width", "height", "wire", "tokens"),
    [
        (750, 100, "anthropic", 100),
        (1000, 1000, "anthropic", 1334),
        (10_000, 10_000, "anthropic", 4784),
        (25_760, 100, "anthropic", 35),
        (1000, 1000, "plain", 1334),
        (1024, 1024, "openai", 765),
        (2048, 4096, "openai", 1105),
        (512, 512, "responses", 255),
        (513, 512, "responses", 425),
        (384, 384, "gemini", 1120),
        (1536, 2304, "gemini", 6 * 258),
    ],
)
def test_each_provider_charges_by_its_own_rule(width, height, wire, tokens):
    assert provider(wire).picture_tokens(width, height, "") == tokens


@rows(
    ("block", "expected"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}, Medium("picture", "AAAA")),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, Medium("picture")),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, Medium("picture", "AAAA")),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}, Medium("document", "AAAA")),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, Medium("document")),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "as text"}}, None),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}, Medium("picture", "AAAA", "low")),
        ({"type": "image_url", "image_url": "https://example.org/a.png"}, Medium("picture")),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"}, Medium("picture", "AAAA", "high")),
        ({"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}, Medium("picture", "AAAA")),
        ({"type": "image_generation_call", "result": "AAAA", "id": "ig"}, Medium("picture", "AAAA")),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, Medium("document", "AAAA")),
        ({"type": "input_file", "file_data": "data:text/plain;base64,AAAA"}, Medium("text", "AAAA")),
        ({"type": "input_file", "file_id": "file-1"}, Medium("document")),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, Medium("sound", "AAAA")),
        ({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}, Medium("sound")),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, Medium("picture", "AAAA")),
        ({"inline_data": {"mime_type": "audio/mp3", "data": "AAAA"}}, Medium("sound", "AAAA")),
        ({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://a"}}, Medium("document")),
        ({"type": "text", "text": "data:image/png;base64,AAAA"}, None),
        ({"type": ["image"]}, None),
        ({"text": "hello"}, None),
    ],
)  # fmt: skip
def test_media_are_known_in_every_spelling(block, expected):
    assert medium(block) == expected


@rows(
    ("found", "wire", "tokens"),
    [
        (Medium("picture", encoded(png(1000, 1000))), "anthropic", 1334),
        (Medium("picture", encoded(png(1000, 1000)), "low"), "openai", 85),
        (Medium("picture", encoded(png(1000, 1000)), "low"), "anthropic", 1334),
        (Medium("picture"), "openai", PICTURE_TOKENS),
        (Medium("picture", encoded(b"heic")), "gemini", PICTURE_TOKENS),
        (Medium("document"), "anthropic", NAMED_TOKENS),
        (Medium("document", "A" * 400), "anthropic", DOCUMENT_LEAST_TOKENS),
        (Medium("document", "A" * 4_000_000), "anthropic", 187_500),
        (Medium("sound", "A" * 4_000_000), "gemini", 6_000),
        (Medium("text", "A" * 4_000), "gemini", 750),
        (Medium("text", "A"), "gemini", NAMED_TOKENS),
    ],
)
def test_other_media_cost_by_their_bytes(found, wire, tokens):
    assert media_tokens(found, wire) == tokens
