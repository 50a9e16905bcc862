"""Limits of requests: what is too large or too many is found, and removed as far as a repair can."""

import base64
import struct

from aether.messages import limits
from aether.messages.convert import read
from aether.messages.limits import LIMITS
from aether.messages.validate import check, repair
from tests.tables import rows

MARK = {"cache_control": {"type": "ephemeral"}}
TEXT = {"type": "text", "text": "Look."}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def picture(width=10, height=10, mime="image/png", padding=0):
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    data = base64.b64encode(head + bytes(5 + padding)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def user(*blocks):
    return [{"role": "user", "content": [TEXT, *blocks]}]


def codes(raws, format="anthropic", **beside):
    return [
        finding.code for finding in check(read(raws, format), format, **beside) if finding.level == "error"
    ]


@rows(
    ("blocks", "expected"),
    [
        ([picture(8_000, 8_000)], []),
        ([picture(8_001, 10)], ["large-image"]),
        ([picture(2_001, 10)] * 20, []),
        ([picture(2_001, 10)] * 21, ["large-image"] * 21),
        ([picture()] * 601, ["large-image"]),
        ([picture(padding=4 * 1024 * 1024)], ["large-image"]),
        ([picture(mime="image/jpeg")], ["unknown-block"]),
        ([{**TEXT, **MARK}] * 4, []),
        ([{**TEXT, **MARK}] * 6, ["cache-marks"] * 2),
    ],
)
def test_pictures_and_marks_beyond_the_limits_are_found_and_corrected(blocks, expected):
    messages = read(user(*blocks), "anthropic")
    corrected = repair(messages, "anthropic").messages

    assert codes(user(*blocks)) == expected
    assert codes([message.raw for message in corrected]) == []
    assert corrected[0].raw["content"][0] == TEXT
    assert expected or corrected == messages


def test_pictures_in_results_of_tools_count():
    result = {"type": "tool_result", "tool_use_id": "t", "content": [TEXT, picture(9_000, 1)]}
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    raws = [*user(), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    assert codes(raws) == ["large-image"]
    assert repair(read(raws, "anthropic"), "anthropic").messages[2].raw["content"][0]["content"] == [TEXT]


def test_marks_of_the_system_prompt_and_of_tools_count_and_the_last_stay():
    tool = {"name": "look", "input_schema": {"type": "object"}, **MARK}
    raws = user({**TEXT, **MARK}, {**TEXT, **MARK}, {**TEXT, **MARK})

    assert codes(raws, system=[{**TEXT, **MARK}], tools=[tool]) == ["cache-marks"]
    corrected = repair(read(user(*[{**TEXT, **MARK}] * 5), "anthropic"), "anthropic").messages
    assert ["cache_control" in block for block in corrected[0].raw["content"]] == [False, False, *[True] * 4]


@rows(
    ("raws", "expected"),
    [
        ([{"role": "user", "content": "Go."}] * 2_048, []),
        ([{"role": "user", "content": "Go."}] * 2_049, ["too-large"]),
        ([{"role": "user", "content": "a" * 10_485_761}], ["too-large"]),
        ([{"role": "user", "content": [{"type": "text", "text": "a" * 10_485_761}]}], ["too-large"]),
    ],
)
def test_a_request_to_openai_has_so_much_at_most(raws, expected):
    assert codes(raws, "openai") == expected


def test_a_message_to_openai_has_so_many_calls_at_most():
    def raws(count):
        calls = [{**CALL, "id": f"c{nth}"} for nth in range(count)]
        answers = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
        return [*user(), {"role": "assistant", "content": None, "tool_calls": calls}, *answers]

    assert codes(raws(128), "openai") == []
    assert codes(raws(129), "openai") == ["too-large"]
    tools = [{"type": "function", "function": {"name": f"f{nth}"}} for nth in range(129)]
    assert codes(user(), "openai", tools=tools) == ["too-large"]


def test_every_limit_names_its_source():
    assert all(entry.source for name, entry in LIMITS.items() if name != "plain")
    assert limits.cache_marks("a text") == 0
