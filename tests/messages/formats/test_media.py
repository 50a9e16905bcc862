from aether.messages.content import Shown, seen, spelt
from aether.messages.model import WIRES
from tests.tables import rows

PICTURE = Shown("image/png", "aGk=")
LINKED = Shown("image/*", url="https://example.org/a.png")
PDF = Shown("application/pdf", "aGk=")


@rows("shown", [PICTURE, LINKED])
@rows("wire", WIRES)
def test_pictures_are_said_and_read_in_every_wire(shown, wire):
    assert seen(spelt(shown, wire)) == shown


@rows(
    ("shown", "wires"),
    [
        (PDF, WIRES),
        (Shown("application/pdf", url="u"), {"anthropic", "responses", "gemini"}),
        (Shown("audio/wav", "aGk="), {"openai", "plain", "gemini"}),
        (Shown("audio/wav", url="u"), {"gemini"}),
        (Shown("video/mp4", "aGk="), {"gemini"}),
    ],
)
def test_other_kinds_are_said_where_there_is_a_word_for_them(shown, wires):
    said = {wire: spelt(shown, wire) for wire in WIRES}

    assert {wire for wire in WIRES if said[wire]} == set(wires)
    assert all(seen(block) == shown for block in said.values() if block)


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
    assert seen(block) is None


def test_odd_spellings_are_seen():
    assert seen({"inline_data": {"mime_type": "image/png", "data": "aGk="}}) == PICTURE
    assert seen({"file_data": {"mime_type": "image/*", "file_uri": LINKED.url}}) == LINKED
    assert seen({"type": "image", "image": "data:image/png;base64,aGk="}) == PICTURE
    assert seen({"type": "document", "source": {"type": "url", "url": "u"}}) == Shown(
        "application/pdf", url="u"
    )
