import pytest

import aether
from aether.errors import InvalidInput
from aether.messages.convert import (
    bare,
    convert,
    detect_format,
    message,
    new_message,
    read,
    with_text,
    without_reasoning,
)
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.providers import gemini, openai
from aether.messages.turns import with_call_ids
from tests.laws.histories import history
from tests.tables import rows

USE = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}


def test_the_format_is_detected_or_given():
    raws = [{"role": "assistant", "content": [USE]}]

    assert read(raws)[0].format == "anthropic"
    assert read(raws, "plain")[0].format == "plain"
    assert message(raws[0], "anthropic") == read(raws)[0]


def test_arguments_are_rewritten_as_an_object_or_as_json():
    held = message({"role": "assistant", "content": [USE]}, "anthropic")
    function = {"name": "f", "arguments": '{"a":1}'}
    text = message({"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}, "openai")

    assert with_text(held, 0, '{"a": 2}').raw["content"][0]["input"] == {"a": 2}
    assert with_text(text, 0, '{"a": 2}').raw["tool_calls"][0]["function"]["arguments"] == '{"a": 2}'
    assert USE["input"] == {"a": 1}
    for wrong in ("{torn", "[1]"):
        with pytest.raises(InvalidInput, match="not a JSON object"):
            with_text(held, 0, wrong)


@rows(("text", "written"), [('{"input": "new"}', "new"), ("new", "new"), ('{"b": 1}', '{"b": 1}')])
def test_free_text_of_a_call_is_rewritten_as_text(text, written):
    custom = message({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "old"}, "responses")

    assert with_text(custom, 0, text).raw["input"] == written


def test_several_texts_of_a_result_become_one_and_its_picture_stays():
    image = {"type": "image", "source": {}}
    content = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    answer = message(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content}]},
        "anthropic",
    )

    new = with_text(answer, 0, "short")

    assert new.raw["content"][0]["content"] == [{"type": "text", "text": "short"}, image]
    assert [block.text for block in new.blocks] == ["short", ""]


def test_an_object_in_an_answer_gets_a_text_under_one_key():
    [answer] = read([{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]}])

    new = with_text(answer, 0, '{"b": 2}')

    assert new.raw["parts"][0]["functionResponse"]["response"] == {"output": '{"b": 2}'}
    assert (new.blocks[0].text, new.blocks[0].call_id) == ('{"b": 2}', "f#1")


def test_ids_that_were_made_stay_when_reasoning_goes():
    parts = [{"text": "Hm.", "thought": True}, {"functionCall": {"name": "f", "args": {}}}]
    raws = [{"role": "model", "parts": [parts[1]]}, {"role": "model", "parts": parts}]

    found = without_reasoning(read(raws, "gemini")[1])

    assert [(block.kind, block.call_id) for block in found.blocks] == [("call", "f#2")]
    assert without_reasoning(found) is found


@rows(("role", "format"), [*(("tool", format) for format in PROVIDER_FORMATS), ("system", "gemini")])  # noqa: A001
def test_a_tool_message_needs_a_call_and_gemini_has_no_system_message(role, format):
    with pytest.raises(InvalidInput, match="needs a call" if role == "tool" else "no system message"):
        new_message(role, "ok", format)


USER = {"role": "user", "content": "Hi"}


@rows("provider", ["anthropic", "openai", "responses", "gemini"])
def test_every_format_is_detected_by_its_calls(provider):
    assert {detect_format(history(seed, provider, tools=1.0)) for seed in range(20)} == {provider}


@rows(
    ("raw", "provider"),
    [
        ({"role": "user", "content": [{"type": "image", "source": {}}]}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, "anthropic"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "openai"),
        ({"role": "assistant", "content": None, "refusal": "No."}, "openai"),
        ({"role": "function", "name": "f", "content": "ok"}, "openai"),
        ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, "responses"),
        ({"type": "reasoning", "summary": []}, "responses"),
        ({"parts": [{"text": "Hi"}]}, "gemini"),
        ({"role": "assistant", "tool_calls": [{"function": "f"}]}, "plain"),
        ({"role": "tool", "tool_call_ids": ["c"], "content": "ok"}, "plain"),
        ({"role": "assistant", "content": [{"type": "toolCall"}, {"type": "thinking"}]}, "plain"),
    ],
)
def test_one_sign_is_enough(raw, provider):
    assert detect_format([USER, raw]) == provider


def test_openai_and_anthropic_mixed_are_plain():
    mixed = [
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": [{"type": "tool_result"}]},
    ]

    assert detect_format(mixed) == "plain"


def test_newer_messages_have_the_format_of_those_before_without_signs_of_another():
    said = {"role": "user", "content": "Go on."}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]}

    assert detect_format([said], after="openai") == "openai"
    assert detect_format([result], after="openai") == "plain"
    assert detect_format([said], after="plain") == "plain"


RULES = {"role": "system", "content": "Rules."}


MORE = {"role": "developer", "content": "More."}


ASKED = {"role": "user", "content": "Hi"}


def codes(found):
    return [finding.code for finding in found.findings]


def test_first_instructions_go_to_their_place_in_the_format():
    messages = read([RULES, MORE, ASKED], "openai")

    assert convert(messages, "anthropic").system == "Rules.\n\nMore."
    assert convert(messages, "gemini", system="First.").system == {
        "parts": [{"text": "First.\n\nRules.\n\nMore."}]
    }
    assert convert(read([ASKED], "openai"), "gemini").system is None
    items = convert(messages, "responses", system=[{"type": "text", "text": "First."}])
    assert (items.system, [message.raw["role"] for message in items.messages]) == (
        "First.",
        ["system", "developer", "user"],
    )


def test_a_system_prompt_beside_becomes_a_message_where_there_is_no_other_place():
    found = convert(read([ASKED], "anthropic"), "openai", system={"parts": [{"text": "Rules."}]})

    assert [message.raw for message in found.messages] == [RULES, ASKED]
    assert found.system is None


def test_later_instructions_become_user_messages_in_gemini():
    messages = read([ASKED, RULES], "openai")

    found = convert(messages, "gemini")

    assert [message.raw["role"] for message in found.messages] == ["user", "user"]
    assert codes(found) == ["system-role"]
    assert [message.raw["role"] for message in convert(messages, "anthropic").messages] == ["user", "system"]


def test_ids_and_names_are_made_such_as_all_take():
    def pair(key, name):
        function = {"name": name, "arguments": "{}"}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": key, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": key, "content": "ok"},
        ]

    long = "x" * 50
    raws = [
        ASKED,
        *pair("a", "f"),
        *pair("a", "f"),
        *pair("a.b", "my tool"),
        *pair(long, "f"),
        *pair(long, ""),
        *pair("", "f"),
    ]
    found = convert(read(raws, "plain"), "anthropic")

    called = [block for message in found.messages for block in message.blocks if block.kind == "call"]
    answers = [block for message in found.messages for block in message.blocks if block.kind == "result"]
    assert [block.call_id for block in called] == ["a", "a_2", "a_b", "x" * 40, "x" * 38 + "_2", "call"]
    assert [block.call_id for block in answers] == [block.call_id for block in called]
    assert [block.tool for block in called] == ["f", "f", "my_tool", "f", "tool", "f"]
    assert codes(found) == ["renamed-call"] * 5


def item(key):
    return {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}


def output(key, text="ok"):
    return {"type": "function_call_output", "call_id": key, "output": text}


def converted(raws, source, format):
    """The raw messages and the codes of the findings of a conversion."""
    result = convert(read(raws, source), format)
    return [message.raw for message in result.messages], codes(result)


def test_a_response_in_several_items_is_one_message_with_all_its_answers():
    raws = [
        {"role": "assistant", "content": "Go."},
        item("a"),
        item("b"),
        {"role": "user", "content": "And?"},
    ]

    [response, answers, asked], _ = converted([*raws, output("b"), output("a")], "responses", "anthropic")

    assert [block["type"] for block in response["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in answers["content"]] == ["b", "a"]
    assert asked["content"] == "And?"


def test_a_call_that_is_asked_again_under_its_id_gets_its_own_answer():
    sent, _ = converted([item("a"), output("a", "1"), item("a"), output("a", "2")], "responses", "openai")

    assert [raw.get("tool_call_id") for raw in sent] == [None, "a", None, "a_2"]
    assert [raw["content"] for raw in sent[1::2]] == ["1", "2"]


def test_a_result_without_its_call_becomes_text_of_the_user():
    assert converted([output("a", "lost"), output("b", " ")], "responses", "openai") == (
        [{"role": "user", "content": "lost"}],
        ["orphan-result", "orphan-result"],
    )


def test_content_without_an_equivalent_is_left_out_and_reported():
    file = {"type": "image", "source": {"type": "file", "file_id": "f"}}
    raws = [
        {"role": "user", "content": [file, {"type": "text", "text": " "}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "new"}]},
    ]
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}

    dropped = ["media-dropped", "reasoning-dropped", "block-dropped"]
    assert converted(raws, "anthropic", "openai") == ([], dropped)
    assert converted([{"role": "model", "parts": [picture]}], "gemini", "openai") == ([], ["media-dropped"])


def test_pictures_of_results_go_where_results_can_show_them():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "See:"}, image]}
    raws = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer, image]}]

    [_, result, asked], _ = converted(raws, "anthropic", "responses")
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]
    assert [part["type"] for part in asked["content"]] == ["input_image"]
    assert converted(raws, "anthropic", "openai")[1] == ["media-dropped"]


def test_documents_that_are_text_become_text():
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Rules."}}

    assert converted([{"role": "user", "content": [document]}], "anthropic", "openai") == (
        [{"role": "user", "content": "Rules."}],
        [],
    )


def test_meta_of_a_message_and_of_its_answer_is_joined_and_the_original_unchanged():
    raws = [{**item("a"), "meta": {"protected": True}}, {**output("a"), "meta": {"label": "x"}}]

    [response, _], _ = converted(raws, "responses", "openai")

    assert response["meta"] == {"protected": True, "label": "x"}
    assert raws[0]["meta"] == {"protected": True}


def test_a_failure_is_flagged_in_formats_with_a_flag():
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    raws = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]

    assert "flag-dropped" in converted(raws, "anthropic", "openai")[1]
    assert "flag-dropped" not in converted(raws, "anthropic", "gemini")[1]


def called(*names, **more):
    return {
        "role": "model",
        "parts": [{"functionCall": {"name": name, "args": {}, **more}} for name in names],
    }


def answered(*names, **more):
    parts = [{"functionResponse": {"name": name, "response": {}, **more}} for name in names]
    return {"role": "user", "parts": parts}


def ids(messages):
    return [[block.call_id for block in message.blocks] for message in messages]


def test_results_answer_the_oldest_open_call_of_their_name():
    raws = [called("a", "b", "a"), answered("b", "a", "a"), called("a"), answered("a")]

    assert ids(read(raws, "gemini")) == [["a#1", "b#1", "a#2"], ["b#1", "a#1", "a#2"], ["a#3"], ["a#3"]]


def test_a_result_without_a_call_is_an_orphan_under_an_id_of_its_own():
    assert ids(read([answered("a"), called("a"), answered("a")], "gemini")) == [["a#1"], ["a#2"], ["a#2"]]


def test_old_functions_are_paired_and_lost_ids_of_tools_are_not_invented():
    raws = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "ok"},
        {"role": "tool", "content": "lost"},
    ]

    assert ids(read(raws, "openai")) == [["f#1"], ["f#1"], [""]]


def test_numbering_goes_on_after_the_messages_before():
    before = read([called("a"), answered("a"), called("a", "a")], "gemini")

    assert ids(with_call_ids([gemini.message(answered("a", "a"))], after=before, optional=True)) == [
        ["a#2", "a#3"]
    ]
    alone = openai.message({"role": "user", "content": "Hi"})
    assert with_call_ids([alone], after=before) == [alone]


def test_bare_is_public():
    assert aether.bare is bare
