import pytest

from aether.errors import InvalidInput
from aether.messages.read import detect_file_format, looks_like_json
from aether.messages.records import FORMATS
from tests.tables import rows


@rows(
    ("value", "found"),
    [
        ({"type": "user", "message": {"role": "user", "content": "x"}}, "claude_code"),
        ({"type": "summary", "summary": "t", "leafUuid": "x"}, "claude_code"),
        ({"type": "queue-operation", "sessionId": "s"}, "claude_code"),
        ({"loglines": []}, "claude_code"),
        ({"type": "session_meta", "payload": {}}, "codex"),
        ([{"role": "user", "content": "x"}], "chat"),
        ({"messages": [{"role": "user", "content": "x"}]}, "chat"),
        ({"sessionId": "s", "messages": [{"type": "user", "content": "x"}]}, "chat"),
        ({"type": "session", "id": "s"}, "chat"),
        ([{"source": "user", "action": "message"}], "openhands"),
        ({"history": [{"source": "user", "action": "message"}]}, "openhands"),
        ({"content": "x", "type": "decision"}, "items"),
        ([{"content": "x", "type": "decision"}], "items"),
    ],
)
def test_a_format_is_known_by_its_content(value, found):
    assert detect_file_format([value]) == found


def test_values_that_say_nothing_are_passed_over():
    assert detect_file_format([7, {}, {"content": "x", "type": "decision"}]) == "items"


@rows("values", [[], [{"name": "package"}], [[1, 2]]])
def test_an_unknown_format_names_those_there_are(values):
    with pytest.raises(InvalidInput) as caught:
        detect_file_format(values, where="x.json")

    assert all(name in str(caught.value) for name in FORMATS)
    assert str(caught.value).startswith("x.json: ")


@rows("text", ["{", '[{"a": 1}]', "[", "[1, 2]", ' {"a"'])
def test_what_is_meant_as_json_looks_like_it(text):
    assert looks_like_json(text)


@rows("text", ["[link](a)", "[x] done", "{curly} prose", "text", ""])
def test_prose_with_brackets_does_not(text):
    assert not looks_like_json(text)
