"""Each step takes the oldest first, no more than is needed, and nothing protected; shortened messages stay valid."""

from __future__ import annotations

import json

from aether.conversation import draft as drafts
from aether.conversation.draft import Draft
from aether.conversation.partition import partition
from aether.conversation.shapes import Policy
from aether.conversation.steps import (
    only_explores,
    only_reads,
    shorten_blocks,
    shorten_text,
)
from aether.messages.convert import read
from aether.messages.model import Block, groups
from aether.tokens.count import message_tokens
from tests.conversation.conversations import bash, conversation, model, tool, user
from tests.tables import rows

LONG_OUTPUT = "\n".join(f"line {at} of the output" for at in range(400))


def count(text):
    return -(-len(text) // 4)


def draft_of(messages, policy=Policy(), *, overhead=0):  # noqa: B008 - a policy is a constant
    parts = partition(messages, policy)
    tokens = [message_tokens(message, count) for message in messages]
    return Draft(
        messages,
        parts,
        count,
        lambda at: f"line {at}",
        overhead,
        tokens,
        list(tokens),
        {},
        [True] * len(parts.groups),
        {},
        [],
    )


def thinking(text):
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": LONG_OUTPUT, "signature": "c2ln"},
                {"type": "text", "text": text},
            ],
        }
    ]


def test_reasoning_is_dropped_except_in_the_current_turn():
    draft = draft_of(
        conversation(user("Go."), thinking("One."), user("More."), thinking("Two."), model("Three."))
    )

    drafts.shorten_groups(draft, ("drop_reasoning",), [0, 1, 2, 3, 4], goal=1, most=1)

    assert sorted(draft.changed) == [1]


def thinking_call():
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    [call, result] = tool("Write", content=LONG_OUTPUT)
    return [{**call, "content": [thought, *call["content"]]}, result]


def test_a_rewritten_call_loses_its_reasoning_and_calls_of_the_current_turn_are_not_rewritten():
    draft = draft_of(conversation(user("Go."), thinking_call(), user("More."), thinking_call(), bash("make")))

    drafts.shorten_groups(draft, ("shorten_arguments",), [1, 3], goal=1, most=1)

    assert sorted(draft.changed) == [1]
    assert [block["type"] for block in draft.changed[1].raw["content"]] == ["tool_use"]


def counts_after(draft, most, policy=Policy(), **more):  # noqa: B008 - a policy is a constant
    return drafts.lower_keep_counts(draft, policy, most=most, **{"most_messages": 0, **more})


def pairs(number, words=100):
    return [
        part
        for at in range(number)
        for part in (
            user(f"question {at} " * words),
            bash("make", LONG_OUTPUT),
            model(f"answer {at} " * words),
        )
    ]


def test_keep_counts_are_lowered_one_at_a_time_turns_first():
    draft = draft_of(conversation(*pairs(12)))
    seen = []
    most = 10**9
    while True:
        found = counts_after(draft, most)
        if seen[-1:] == [found]:
            break
        seen.append(found)
        most = drafts.used_tokens(draft) - 1

    assert seen == [(6, 4), (5, 4), (5, 3), (4, 3), (4, 2), (3, 2), (3, 1), (2, 1), (1, 1)]


LINES = "\n".join(f"line {at} of the output, which says something" for at in range(400))


def lighter(message, kinds, *, most=100, pointer="history 7"):
    return shorten_blocks(message, kinds, at=3, most=most, count=count, pointer=pointer)


@rows("most", [30, 60, 200, 1_000])
def test_a_long_text_is_cut_to_what_it_may_have(most):
    reported = shorten_text(LINES, most=most, count=count, tokens=count(LINES), pointer="history 7")

    assert count(reported) <= most
    assert "; full text: history 7]" in reported


def test_head_and_tail_stay_and_are_cut_at_line_ends():
    reported = shorten_text(LINES, most=200, count=count, tokens=count(LINES))
    head, marker, tail = reported.partition("[… ")

    assert LINES.startswith(head.rstrip())
    assert head.endswith("something\n")
    assert len(head) > len(tail)
    assert LINES.endswith(tail.split("]\n")[1])
    removed = count(LINES) - count(head.rstrip()) - count(tail.split("]\n")[1])
    assert tail.startswith(f"{removed:,} tokens cut]")
    assert marker


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


def test_short_texts_and_other_kinds_of_blocks_are_not_shortened():
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


def test_depth_has_an_end():
    nested = LINES
    for _ in range(60):
        nested = {"inner": nested}
    message = conversation(tool("Write", deep=nested))[0]

    assert lighter(message, ("call",)) is None


@rows(
    ("name", "arguments", "only_looks"),
    [
        ("Read", {"file_path": "a.py"}, True),
        ("read_file", {"path": "a.py"}, True),
        ("listFiles", {"dir": "."}, True),
        ("Grep", {"pattern": "x"}, True),
        ("WebFetch", {"url": "https://example.org"}, True),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, True),
        ("str_replace_editor", {"command": "create", "path": "a.py"}, False),
        ("Bash", {"command": "grep -rn x src 2>&1 >/dev/null | head"}, True),
        ("Bash", {"command": "echo x > a.py"}, False),
        ("Bash", {"command": "find . -name x -delete"}, False),
        ("Bash", {"command": "ls | xargs rm"}, False),
        ("view_file", {"command": "view", "path": "a.py"}, True),
        ("Bash", {"command": "ls -la src && git log | head"}, True),
        ("shell", {"cmd": ["grep", "-rn", "x", "src"]}, True),
        ("Bash", {"command": "make test"}, False),
        ("Bash", {"command": "cat > a.py <<'EOF'\nx\nEOF"}, False),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, False),
        ("read_and_write", {"path": "a.py", "content": "x"}, False),
        ("spread", {}, False),
        ("thread_create", {}, False),
        ("", {}, False),
    ],
)
def test_a_call_is_judged_by_its_name_and_its_arguments(name, arguments, only_looks):
    assert only_reads(Block("call", tool=name, arguments=arguments)) == only_looks


@rows(
    ("messages", "only_looks"),
    [
        (tool("Read", file_path="a.py"), True),
        (tool("Read", "no such file", failed=True, file_path="a.py"), False),
        (bash("ls", None), False),
        (bash("make"), False),
    ],
)
def test_failed_or_open_calls_are_not_exploration(messages, only_looks):
    read_in = conversation(messages)

    assert only_explores(read_in, groups(read_in)[0]) == only_looks


def test_text_of_the_user_beside_a_result_is_not_exploration():
    use = {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "a.py"}}
    beside = [
        {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
        {"type": "text", "text": "Never do that."},
    ]
    messages = read(
        [{"role": "assistant", "content": [use]}, {"role": "user", "content": beside}], "anthropic"
    )

    assert not only_explores(messages, groups(messages)[0])


@rows(
    ("said", "folds"),
    [("Let me look at the loader next.", True), ("读一下加载器。", True),
     ("There it is. `findSessions` returns all sessions that match, not the newest.", False),
     ("找到了：它返回所有匹配的会话，而不是最新的一个。", False)],
)  # fmt: skip
def test_a_read_with_more_than_a_line_of_text_is_not_exploration(said, folds):
    call, result = tool("Read", "text", file_path="a.py")
    call["content"].insert(0, {"type": "text", "text": said})
    messages = conversation([call, result])

    assert only_explores(messages, groups(messages)[0]) is folds


def test_a_pointer_that_takes_more_than_half_of_the_room_is_left_out():
    text, count = "word " * 200, lambda text: len(text.split())

    short, long = (
        shorten_text(text, most=64, count=count, tokens=200, pointer="at " * many) for many in (3, 40)
    )

    assert "full text: at at at" in short
    assert "full text" not in long
    assert len(long.split()) > len("[… 200 tokens cut]".split())
