"""A shortened text keeps its two ends, says what is missing and where it is, and the message stays valid."""

from __future__ import annotations

import json

from aether.compaction.steps import drop_reasoning, shorten_blocks, shorten_text
from aether.messages.convert import read
from aether.tokens.count import message_tokens
from tests.compaction.conversations import conversation, tool
from tests.tables import rows

LINES = "\n".join(f"line {at} of the output, which says something" for at in range(400))


def count(text):
    return -(-len(text) // 4)


def lighter(message, kinds, *, most=100, pointer="history 7"):
    return shorten_blocks(message, kinds, at=3, most=most, count=count, pointer=pointer)


@rows("most", [30, 60, 200, 1_000])
def test_a_long_text_is_cut_to_what_it_may_have(most):
    told = shorten_text(LINES, most=most, count=count, tokens=count(LINES), pointer="history 7")

    assert count(told) <= most
    assert "; full text: history 7]" in told


def test_head_and_tail_stay_and_are_cut_at_line_ends():
    told = shorten_text(LINES, most=200, count=count, tokens=count(LINES))
    head, marker, tail = told.partition("[… ")

    assert LINES.startswith(head.rstrip())
    assert head.endswith("something\n")
    assert len(head) > len(tail)
    assert LINES.endswith(tail.split("]\n")[1])
    gone = count(LINES) - count(head.rstrip()) - count(tail.split("]\n")[1])
    assert tail.startswith(f"{gone:,} tokens cut]")
    assert marker


def test_a_text_without_lines_is_cut_too():
    told = shorten_text("x" * 10_000, most=100, count=count, tokens=2_500)

    assert count(told) <= 100
    assert told.startswith("xxx")
    assert told.endswith("xxx")


def test_a_dense_head_takes_less_of_it():
    def dense(text):
        return 8 * text.count("#") + len(text) // 8

    text = "#" * 200 + "a" * 20_000

    assert dense(shorten_text(text, most=120, count=dense, tokens=dense(text))) <= 120


def test_a_counter_that_sees_no_difference_is_not_asked_for_ever():
    assert "tokens cut" in shorten_text(LINES, most=100, count=lambda text: 1_000, tokens=1_000)


def test_with_room_for_nothing_the_marker_alone_stays():
    assert shorten_text(LINES, most=3, count=count, tokens=4_000) == "[… 4,000 tokens cut]"


def test_a_result_is_shortened_and_the_message_given_stays_as_it_was():
    message = conversation(tool("Bash", LINES))[1]
    before = json.dumps(message.raw)

    found = lighter(message, ("result",))

    assert found.tokens == message_tokens(found.message, count) < 130
    assert [(cut.at, cut.block, cut.tokens_before, cut.pointer) for cut in found.cuts] == [
        (3, 0, count(LINES), "history 7")
    ]
    assert found.message.blocks[0].call_id == message.blocks[0].call_id
    assert json.dumps(message.raw) == before


def test_arguments_stay_valid_json_and_keep_their_short_values():
    message = conversation(
        tool("Write", file_path="a.py", content=LINES, edits=[{"new": LINES, "line": 3}], limit=None)
    )[0]

    found = lighter(message, ("call",))

    given = found.message.raw["content"][0]["input"]
    assert (given["file_path"], given["limit"], given["edits"][0]["line"]) == ("a.py", None, 3)
    assert "tokens cut" in given["content"]
    assert "tokens cut" in given["edits"][0]["new"]
    assert count(found.message.blocks[0].text) < 140


def test_arguments_that_are_no_object_stay():
    for arguments in ("{broken " + LINES, json.dumps([LINES])):
        call = {"id": "a", "type": "function", "function": {"name": "write", "arguments": arguments}}
        message = read([{"role": "assistant", "content": None, "tool_calls": [call]}], "openai")[0]

        assert lighter(message, ("call",)) is None


def test_what_is_short_or_of_another_kind_or_has_no_place_stays():
    short = conversation(tool("Bash", "ok"))[1]
    long = conversation(tool("Bash", LINES))[1]
    odd = read(
        [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"x": LINES}]}],
            }
        ],
        "anthropic",
    )[0]

    assert lighter(short, ("result",)) is None
    assert lighter(long, ("call", "text")) is None
    assert lighter(odd, ("result",)) is None
    assert lighter(long, ("result",), most=count(LINES)) is None


def test_many_short_arguments_that_cannot_shrink_stay():
    message = conversation(tool("Write", **{f"key{at}": "word " * 5 for at in range(60)}))[0]

    assert lighter(message, ("call",)) is None


def test_depth_has_an_end():
    nested = LINES
    for _ in range(60):
        nested = {"inner": nested}
    message = conversation(tool("Write", deep=nested))[0]

    assert lighter(message, ("call",)) is None


def test_reasoning_goes_and_what_it_led_to_stays():
    thinking = {"type": "thinking", "thinking": LINES, "signature": "c2ln"}
    said, alone, none = read(
        [{"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]},
         {"role": "assistant", "content": [thinking]}, {"role": "assistant", "content": "Yes."}],
        "anthropic",
    )  # fmt: skip

    found = drop_reasoning(said, count)

    assert found.message.raw["content"] == [{"type": "text", "text": "Yes."}]
    assert found.tokens == message_tokens(found.message, count)
    assert drop_reasoning(alone, count) is None
    assert drop_reasoning(none, count) is None
