from aether.messages.convert import read
from aether.messages.providers import gemini, openai
from aether.messages.turns import with_call_ids


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


def test_ids_that_are_there_stay():
    raws = [called("a", id="x"), answered("a", id="x"), called("a", id="y"), answered("a")]

    assert ids(read(raws, "gemini")) == [["x"], ["x"], ["y"], ["y"]]


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

    assert ids(with_call_ids([gemini.message(answered("a", "a"))], after=before)) == [["a#2", "a#3"]]
    alone = openai.message({"role": "user", "content": "Hi"})
    assert with_call_ids([alone], after=before) == [alone]
