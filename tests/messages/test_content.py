from aether.messages.content import (
    Media,
    call_block,
    is_text_block,
    media_block,
    read_media,
    result_blocks,
)
from aether.messages.model import PROVIDER_FORMATS, Block
from aether.messages.providers import provider as module_of
from tests.tables import rows

AT = ("content", 0)


def test_a_document_that_is_text_is_readable():
    source = {"type": "text", "media_type": "text/plain", "data": "Hi."}

    assert media_block({"type": "document", "source": source}, AT) == Block("media", "Hi.", AT)
    assert media_block({"type": "image", "source": {"type": "base64", "data": "aGk="}}, AT) == Block(
        "media", "", AT
    )


def test_arguments_are_an_object_json_text_or_free_text():
    assert call_block("f", {"a": 1}, (*AT, "input"), "c").text == '{"a": 1}'
    assert call_block("f", '{"a":1}', (*AT, "arguments"), "c")[1:7] == (
        '{"a":1}', (*AT, "arguments"), "c", "f", {"a": 1}, False,
    )  # fmt: skip
    assert call_block("f", "{torn", (*AT, "arguments"), "c").arguments == {"input": "{torn"}
    free = call_block("f", "free", (*AT, "input"), "c")
    assert (free.text, free.arguments) == ('{"input": "free"}', {"input": "free"})
    assert call_block(None, None, (*AT, "input"), 7) == Block("call")


def test_an_answer_is_text_from_any_place():
    assert result_blocks("ok", AT, "c") == [Block("result", "ok", AT, "c")]
    [reported] = result_blocks([{"type": "text", "text": "ok"}], AT, "c")
    assert (reported.text, reported.at) == ("ok", (*AT, 0, "text"))
    [several] = result_blocks([{"text": "a"}, {"text": "b"}], AT, "c")
    assert (several.text, several.at) == ("a\nb", AT)
    assert result_blocks(None, AT, "c") == result_blocks([], AT, "c") == [Block("result", "", (), "c")]
    assert result_blocks({"k": 1}, AT, "c")[0].text == '{"k": 1}'
    assert result_blocks([{"type": "tool_reference"}], AT, "c")[0].text == '[{"type": "tool_reference"}]'


def test_media_come_after_the_answer_they_came_with():
    image = {"type": "image", "source": {}}

    found = result_blocks([{"type": "text", "text": "See:"}, image], AT, "c")

    assert [block.kind for block in found] == ["result", "media"]
    assert found[1].at == (*AT, 1)
    assert [block.text for block in result_blocks([image], AT, "c")] == ["", ""]


@rows(
    ("block", "is_text"),
    [
        ({"type": "text", "text": "a"}, True),
        ({"text": "a"}, True),
        ({"type": "input_text", "text": "a"}, True),
        ({"type": "text"}, False),
        ({"type": "search_result", "text": "a"}, False),
        ({"type": ["text"], "text": "a"}, True),
        ("a", False),
    ],
)
def test_text_is_distinguished_from_other_blocks(block, is_text):
    assert is_text_block(block) is is_text


PICTURE = Media("image/png", "aGk=")


LINKED = Media("image/*", url="https://example.org/a.png")


PDF = Media("application/pdf", "aGk=")


@rows("shown", [PICTURE, LINKED])
@rows("provider", PROVIDER_FORMATS)
def test_pictures_are_written_and_read_in_every_format(shown, provider):
    assert read_media(module_of(provider).write_media(shown)) == shown


@rows(
    ("shown", "providers"),
    [
        (PDF, PROVIDER_FORMATS),
        (Media("application/pdf", url="u"), {"anthropic", "responses", "gemini"}),
        (Media("audio/wav", "aGk="), {"openai", "plain", "gemini"}),
        (Media("audio/wav", url="u"), {"gemini"}),
        (Media("video/mp4", "aGk="), {"gemini"}),
    ],
)
def test_other_media_are_written_in_formats_that_have_them(shown, providers):
    said = {provider: module_of(provider).write_media(shown) for provider in PROVIDER_FORMATS}

    assert {provider for provider in PROVIDER_FORMATS if said[provider]} == set(providers)
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
def test_media_that_only_their_provider_can_find_are_not_read(block):
    assert read_media(block) is None


def test_unusual_forms_of_media_are_read():
    assert read_media({"inline_data": {"mime_type": "image/png", "data": "aGk="}}) == PICTURE
    assert read_media({"file_data": {"mime_type": "image/*", "file_uri": LINKED.url}}) == LINKED
    assert read_media({"type": "image", "image": "data:image/png;base64,aGk="}) == PICTURE
    assert read_media({"type": "document", "source": {"type": "url", "url": "u"}}) == Media(
        "application/pdf", url="u"
    )
