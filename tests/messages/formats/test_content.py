from aether.messages.content import as_json, call_block, media_block, other_block, result_blocks
from aether.messages.model import Block

AT = ("content", 0)


def test_what_is_not_understood_is_kept_as_json():
    assert other_block({"type": "new"}) == Block("other", '{"type": "new"}')
    circular = []
    circular.append(circular)
    assert as_json(circular) == ""


def test_a_document_that_is_text_is_readable():
    source = {"type": "text", "media_type": "text/plain", "data": "Hi."}

    assert media_block({"type": "document", "source": source}, AT) == Block("media", "Hi.", AT)
    assert media_block({"type": "image", "source": {"type": "base64", "data": "aGk="}}, AT) == Block(
        "media", "", AT
    )


def test_arguments_are_an_object_json_text_or_free_text():
    assert call_block("f", {"a": 1}, (*AT, "input"), "c").text == '{"a": 1}'
    assert call_block("f", '{"a":1}', (*AT, "arguments"), "c")[1:] == (
        '{"a":1}', (*AT, "arguments"), "c", "f", {"a": 1}, False,
    )  # fmt: skip
    assert call_block("f", "{torn", (*AT, "arguments"), "c").arguments == {"input": "{torn"}
    free = call_block("f", "free", (*AT, "input"), "c")
    assert (free.text, free.arguments) == ('{"input": "free"}', {"input": "free"})
    assert call_block(None, None, (*AT, "input"), 7) == Block("call")


def test_an_answer_is_text_wherever_it_stands():
    assert result_blocks("ok", AT, "c") == [Block("result", "ok", AT, "c")]
    [told] = result_blocks([{"type": "text", "text": "ok"}], AT, "c")
    assert (told.text, told.at) == ("ok", (*AT, 0, "text"))
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


def test_failure_is_flagged_or_told_from_the_text():
    assert result_blocks("Exit code 2", AT, "c")[0].is_error
    assert not result_blocks("Exit code 2", AT, "c", broken=False)[0].is_error
    assert result_blocks("fine", AT, "c", broken=True)[0].is_error
