from aether.compaction.calls import calls, command
from aether.messages.formats import read
from tests.compaction.conversations import bash, conversation, model, tool
from tests.tables import rows


def test_each_call_is_found_with_its_result():
    found = calls(conversation(bash("make", "done"), model("Well."), tool("Read", "text", file_path="a.py")))

    assert [(call.at, call.tool, call.command, call.answered_at) for call in found] == [
        (0, "Bash", "make", 1),
        (3, "Read", "", 4),
    ]
    assert [call.result.text for call in found] == ["done", "text"]


def test_a_call_without_a_result_has_none():
    assert calls(conversation(bash("make", None)))[0][4:] == (None, -1)


def test_a_result_answers_the_nearest_open_call_of_its_id():
    raws = [
        {"role": "assistant", "content": None, "tool_calls": [_call("x", "one")]},
        {"role": "tool", "tool_call_id": "x", "content": "1"},
        {"role": "assistant", "content": None, "tool_calls": [_call("x", "two")]},
        {"role": "tool", "tool_call_id": "x", "content": "2"},
        {"role": "tool", "tool_call_id": "nobody", "content": "3"},
    ]

    found = calls(read(raws, "openai"))

    assert [(call.tool, call.result.text) for call in found] == [("one", "1"), ("two", "2")]


@rows(
    ("arguments", "expected"),
    [
        ({"command": " make test "}, "make test"),
        ({"cmd": ["ls", "-l"]}, "ls -l"),
        ({"command": ["/bin/bash", "-lc", "make"]}, "make"),
        ({"command": "str_replace", "path": "a"}, ""),
        ({"command": "", "script": "x.sh"}, "x.sh"),
        ({"command": [1, 2]}, ""),
        ({}, ""),
    ],
)
def test_a_command_is_told_by_the_arguments(arguments, expected):
    assert command(arguments) == expected


def _call(call_id, name):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
