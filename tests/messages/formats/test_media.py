from aether.messages.content import Media, read_media, write_media
from aether.messages.model import PROVIDER_FORMATS
from tests.tables import rows

PICTURE = Media("image/png", "aGk=")
LINKED = Media("image/*", url="https://example.org/a.png")
PDF = Media("application/pdf", "aGk=")


@rows("shown", [PICTURE, LINKED])
@rows("wire", PROVIDER_FORMATS)
def test_pictures_are_said_and_read_in_every_wire(shown, wire):
    assert read_media(write_media(shown, wire)) == shown


@rows(
    ("shown", "wires"),
    [
        (PDF, PROVIDER_FORMATS),
        (Media("application/pdf", url="u"), {"anthropic", "responses", "gemini"}),
        (Media("audio/wav", "aGk="), {"openai", "plain", "gemini"}),
        (Media("audio/wav", url="u"), {"gemini"}),
        (Media("video/mp4", "aGk="), {"gemini"}),
    ],
)
def test_other_kinds_are_said_where_there_is_a_word_for_them(shown, wires):
    said = {wire: write_media(shown, wire) for wire in PROVIDER_FORMATS}

    assert {wire for wire in PROVIDER_FORMATS if said[wire]} == set(wires)
    assert all(read_media(block) == shown for block in said.values() if block)


@rows(
    "block",
    [
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "input_file", "file_id": "f"},
        {"type": "input_image", "image_url": None},
        {"inlineData": {}},
        {"type": "file", "file": {"file_data": 7}},
        None,
    ],
)
def test_what_only_its_provider_can_find_is_not_seen(block):
    assert read_media(block) is None


def test_odd_spellings_are_seen():
    assert read_media({"inline_data": {"mime_type": "image/png", "data": "aGk="}}) == PICTURE
    assert read_media({"file_data": {"mime_type": "image/*", "file_uri": LINKED.url}}) == LINKED
    assert read_media({"type": "image", "image": "data:image/png;base64,aGk="}) == PICTURE
    assert read_media({"type": "document", "source": {"type": "url", "url": "u"}}) == Media(
        "application/pdf", url="u"
    )
