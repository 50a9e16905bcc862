from aether.messages.convert import read
from aether.messages.turns import turns_for


def told(raws, source, wire):
    findings = []
    return turns_for(read(raws, source), wire, findings.append), [finding.code for finding in findings]


def call(key):
    return {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}


def output(key, text="ok"):
    return {"type": "function_call_output", "call_id": key, "output": text}


def test_a_response_in_several_items_is_one_turn_with_all_its_answers():
    raws = [
        {"role": "assistant", "content": "Go."},
        call("a"),
        call("b"),
        {"role": "user", "content": "And?"},
        output("b"),
        output("a"),
    ]

    [response, asked], codes = told(raws, "responses", "anthropic")

    assert [piece.kind for piece in response.pieces] == ["text", "call", "call"]
    assert [answer.block.call_id for answer in response.answers] == ["b", "a"]
    assert (asked.role, codes) == ("user", [])


def test_calls_after_an_answer_are_another_turn():
    found, _ = told([call("a"), output("a"), call("b"), output("b")], "responses", "openai")

    assert [len(turn.answers) for turn in found] == [1, 1]


def test_a_call_that_is_asked_again_under_its_id_gets_its_own_answer():
    found, _ = told([call("a"), output("a", "1"), call("a"), output("a", "2")], "responses", "openai")

    assert [turn.answers[0].block.text for turn in found] == ["1", "2"]


def test_a_result_without_its_call_is_said_by_the_user():
    found, codes = told([output("a", "lost"), output("b", " ")], "responses", "openai")

    assert [(turn.role, turn.pieces[0].text) for turn in found] == [("user", "lost")]
    assert codes == ["orphan-result", "orphan-result"]


def test_what_has_no_like_is_left_out_and_said():
    raws = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "file", "file_id": "f"}},
                {"type": "text", "text": " "},
            ],
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "new"}]},
    ]

    assert told(raws, "anthropic", "openai") == ([], ["media-dropped", "reasoning-dropped", "block-dropped"])


def test_pictures_of_results_go_where_results_can_show_them():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "See:"}, image]}
    raws = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer, image]}]

    for wire, shown in (("responses", 1), ("openai", 0)):
        [response, asked], codes = told(raws, "anthropic", wire)
        assert len(response.answers[0].shown) == shown
        assert (len(asked.pieces), codes) == (1, [] if shown else ["media-dropped"])


def test_documents_that_are_text_are_said_as_text():
    source = {"type": "text", "media_type": "text/plain", "data": "Rules."}

    [turn], codes = told(
        [{"role": "user", "content": [{"type": "document", "source": source}]}], "anthropic", "openai"
    )

    assert ([piece.text for piece in turn.pieces], codes) == (["Rules."], [])


def test_pictures_by_the_model_are_gemini_s_alone():
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}

    assert told([{"role": "model", "parts": [picture]}], "gemini", "openai") == ([], ["media-dropped"])


def test_what_is_ours_is_joined_where_messages_are():
    raws = [{**call("a"), "meta": {"protected": True}}, {**call("b"), "meta": {"label": "x"}}]

    [turn], _ = told(raws, "responses", "openai")

    assert turn.meta == {"protected": True, "label": "x"}
    assert raws[0]["meta"] == {"protected": True}


def test_that_a_tool_failed_is_said_where_it_can_be():
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    raws = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]

    assert told(raws, "anthropic", "openai")[1] == ["flag-dropped"]
    assert told(raws, "anthropic", "gemini")[1] == []


def test_what_is_ours_of_an_answer_marks_its_response():
    raws = [call("a"), {**output("a"), "meta": {"protected": True}}]

    [turn], _ = told(raws, "responses", "openai")

    assert turn.meta == {"protected": True}
