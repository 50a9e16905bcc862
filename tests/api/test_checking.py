import io
import json

import pytest

from aether.api.conversations import check_messages
from aether.errors import NotFound
from tests.tables import rows

CALL = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
BROKEN = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": "On."},
    ],
}


def stream(value):
    return io.BytesIO(json.dumps(value).encode())


def test_a_file_is_checked_for_its_own_provider():
    found = check_messages(stream(BROKEN), provider="anthropic")

    assert (found.wire, found.messages, found.repaired) == ("anthropic", 3, b"")
    assert [one.code for one in found.findings] == ["missing-result"]
    assert found.converted == found.repairs == []


def test_a_file_is_mended_in_its_own_form():
    found = check_messages(stream(BROKEN), provider="anthropic", repair=True)

    assert [one.code for one in found.repairs] == ["missing-result"]
    assert found.findings == []
    assert json.loads(found.repaired) == {
        "system": "Be brief.",
        "messages": [BROKEN["messages"][0], BROKEN["messages"][2]],
    }


def test_a_file_of_another_provider_is_converted_first():
    found = check_messages(stream(BROKEN), provider="openai", repair=True)

    assert (found.wire, found.provider) == ("anthropic", "openai")
    assert found.findings == []
    assert [raw["role"] for raw in json.loads(found.repaired)["messages"]] == ["system", "user", "user"]


def test_of_a_file_of_several_conversations_one_is_chosen():
    lines = b"".join(
        json.dumps({"messages": [{"role": "user", "content": text}]}).encode() + b"\n" for text in "ab"
    )

    found = check_messages(io.BytesIO(lines), provider="openai", repair=True, nth=1)

    assert found.others == 1
    assert b'"b"' in found.repaired


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        check_messages(tmp_path / "none.json", provider="openai")


@rows(
    ("odd", "code"),
    [
        ({"role": "assistant"}, "empty-content"),
        ({"content": "Who said this?"}, "bad-role"),
        ({"role": "robot", "content": "I."}, "bad-role"),
        ({"role": None, "content": "I."}, "bad-role"),
    ],
)
@rows("body", [False, True])
def test_a_message_that_no_provider_takes_is_reported_and_not_passed_over(odd, code, body):
    listed = [{"role": "user", "content": "Go."}, odd, {"role": "user", "content": "On."}]
    source = {"model": "gpt-4o", "messages": listed} if body else listed

    found = check_messages(stream(source), provider="openai")
    mended = check_messages(stream(source), provider="openai", repair=True)

    assert [(one.code, one.where) for one in found.findings] == [(code, "messages[1]")]
    assert mended.findings == []
    assert code in {one.code for one in (*mended.converted, *mended.repairs)}


def test_the_words_of_an_agents_own_dialect_are_nothing_wrong():
    listed = [{"role": "human", "content": "Go."}, {"role": "ai", "content": "Gone."}]

    assert check_messages(stream(listed), provider="openai").findings == []


def test_a_line_that_does_not_parse_is_told_of():
    lines = b'{"role": "user", "content": "Go."}\n{"role": "assis'

    found = check_messages(io.BytesIO(lines), provider="openai")

    assert [(one.level, one.code, one.where) for one in found.findings] == [
        ("warning", "unread-line", "line 2")
    ]
