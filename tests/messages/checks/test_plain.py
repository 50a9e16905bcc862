from aether.messages.providers.plain import findings
from tests.tables import rows


def told(*raws, level="error"):
    return [(found.code, found.where) for found in findings(raws) if found.level == level]


def test_any_text_under_a_common_role_is_fine():
    assert list(findings([{"role": "developer", "content": "Hi.", "meta": {"protected": True}}])) == []
    assert list(findings([{"role": "assistant", "content": None, "tool_calls": [{}]}])) == []
    assert list(findings([{"type": "user", "content": []}])) == []


@rows(
    ("raw", "code"),
    [
        ({"content": "Hi."}, "bad-role"),
        ({"role": 7, "content": "Hi."}, "bad-role"),
        ({"role": "user"}, "empty-content"),
        ({"role": "user", "content": {}}, "empty-content"),
    ],
)
def test_a_message_that_nobody_can_use_is_named(raw, code):
    assert told(raw) == [(code, "messages[0]")]


def test_a_role_of_an_agents_own_is_doubted():
    assert told({"role": "toolResult", "content": "ok"}, level="warning") == [("bad-role", "messages[0]")]
