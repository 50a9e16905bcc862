from aether.messages.providers.plain import mended

USER = {"role": "user", "content": "Go."}


def test_what_says_something_is_left_as_it_is():
    raws = [
        USER,
        {"role": "toolResult", "content": [], "meta": {}},
        {"role": "assistant", "tool_calls": [{}]},
    ]

    done = mended(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []


def test_a_message_without_a_role_is_the_users_and_one_without_content_goes():
    done = mended([{"content": "Go."}, {"role": "user", "content": None}, {"role": 7, "content": "Go."}])

    assert done.raws == [{"content": "Go.", "role": "user"}, USER]
    assert [(found.level, found.code) for found in done.findings] == [
        ("info", "bad-role"),
        ("warning", "empty-content"),
        ("info", "bad-role"),
    ]
