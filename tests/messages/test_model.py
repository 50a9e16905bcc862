import pytest

from aether.messages.model import Block, Group, Message, groups, turns


def said(role, text="Hello."):
    return Message(role, (Block("text", text),), {}, "plain")


def calls(*ids, role="assistant"):
    return Message(role, tuple(Block("call", call_id=key) for key in ids), {}, "plain")


def results(*ids, role="tool", text=""):
    blocks = tuple(Block("result", call_id=key) for key in ids)
    return Message(role, (*blocks, *([Block("text", text)] if text else [])), {}, "plain")


THOUGHT = Message("assistant", (Block("reasoning"),), {}, "responses")


def shape(*messages):
    return [(group.kind, group.members) for group in groups(messages)]


def test_each_message_that_calls_nothing_is_a_group():
    assert shape(said("system"), said("user"), said("assistant")) == [
        ("system", (0,)),
        ("user", (1,)),
        ("assistant", (2,)),
    ]


def test_a_call_and_all_its_results_are_one_group():
    assert groups([said("user"), calls("a", "b"), results("b"), results("a")]) == [
        Group("user", (0,)),
        Group("tools", (1, 2, 3)),
    ]


def test_a_call_without_its_result_leaves_the_group_open():
    found = groups([calls("a", "b"), results("a"), said("user")])

    assert [(group.members, group.open) for group in found] == [((0, 1), True), ((2,), False)]


def test_a_result_without_its_call_is_an_orphan():
    assert shape(results("a"), calls("a"), said("user")) == [
        ("orphan", (0,)),
        ("tools", (1,)),
        ("user", (2,)),
    ]
    assert shape(Message("tool", (), {}, "openai")) == [("orphan", (0,))]


def test_an_id_that_is_used_again_means_the_nearest_call_that_waits():
    assert shape(calls("a"), said("user"), calls("a"), results("a"), said("user")) == [
        ("tools", (0,)),
        ("user", (1,)),
        ("tools", (2, 3)),
        ("user", (4,)),
    ]


def test_calls_of_one_response_are_one_group_even_before_any_result():
    assert shape(calls("a"), said("assistant"), calls("b")) == [("tools", (0, 2)), ("assistant", (1,))]


def test_calls_whose_results_are_interleaved_are_one_group():
    messages = [calls("a"), said("user"), calls("b"), results("a"), results("b"), calls("c"), results("c")]

    assert shape(*messages) == [("tools", (0, 2, 3, 4)), ("user", (1,)), ("tools", (5, 6))]


def test_reasoning_belongs_to_what_follows_it():
    assert shape(THOUGHT, calls("a"), results("a")) == [("tools", (0, 1, 2))]
    assert shape(THOUGHT, THOUGHT, said("assistant"), said("user")) == [
        ("assistant", (0, 1, 2)),
        ("user", (3,)),
    ]
    assert shape(THOUGHT, said("user"), said("assistant")) == [
        ("assistant", (0,)),
        ("user", (1,)),
        ("assistant", (2,)),
    ]


def test_a_call_that_a_server_answered_in_the_same_message_is_closed():
    both = Message("assistant", (Block("call", call_id="a"), Block("result", call_id="a")), {}, "anthropic")

    assert groups([both]) == [Group("tools", (0,))]


def test_a_turn_starts_at_each_user_message_with_text_or_media():
    messages = [
        said("system"),
        said("user"),
        calls("a"),
        results("a"),
        said("assistant"),
        said("user", "  "),
        said("user"),
    ]
    shown = Message("user", (Block("media"),), {}, "plain")

    found = groups([*messages, shown])

    assert turns([*messages, shown], found) == [(0,), (1, 2, 3, 4), (5,), (6,)]


@pytest.mark.parametrize("calls_made", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_long_conversation_takes_time_in_proportion(calls_made):
    """Calls whose ranges all cross are one group, beside the last, open one; a quadratic join would take minutes."""
    messages = [calls("0")]
    for number in range(1, calls_made):
        messages += [calls(str(number)), results(str(number - 1))]

    assert len(groups(messages)) == 2
