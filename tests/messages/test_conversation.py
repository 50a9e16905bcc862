import io
import json
from pathlib import Path

import pytest

from aether.errors import InvalidInput, NotFound
from aether.messages.convert import new_message, read
from aether.messages.transcripts import conversation_bytes, convert_conversation, load_conversation
from aether.messages.validate import check
from tests.laws.histories import history
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FILES = sorted(
    path
    for folder in ("claude_code", "codex", "trajectories")
    for path in (DATA / folder).glob("*.json*")
    if not path.name.startswith("_")
)
USER = {"role": "user", "content": "Hi"}
REPLY = {"role": "assistant", "content": "Hé"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
}
PROVIDERS = ("anthropic", "openai", "responses", "gemini")


def stream(*values, **how):
    return io.BytesIO(b"".join(json.dumps(value, **how).encode() + b"\n" for value in values))


def raws(conversation):
    return [message.raw for message in conversation.messages]


def shortened(conversation):
    """Return the conversation with a summary in the place of its first message."""
    summary = new_message("assistant", "Sümmary", conversation.wire)
    return conversation._replace(messages=[summary, *conversation.messages[1:]])


@rows("wire", PROVIDERS)
@rows("indent", [None, 2])
def test_lists_and_lines_of_every_wire_come_back_as_they_were(wire, indent):
    listed = history(1, wire, tools=1.0)
    for source in (stream(listed, indent=indent), stream(*listed, indent=indent)):
        found = load_conversation(source)

        assert (found.wire, raws(found)) == (wire, listed)
        assert conversation_bytes(found) == source.getvalue()
        assert raws(load_conversation(io.BytesIO(conversation_bytes(shortened(found)))))[1:] == listed[1:]


@rows(
    ("body", "wire", "system"),
    [
        ({"model": "claude-x", "messages": [USER]}, "anthropic", None),
        ({"model": "m", "system": "Rules.", "messages": [USER]}, "anthropic", "Rules."),
        ({"system": "Rules.", "messages": [USER]}, "anthropic", "Rules."),
        ({"model": "m", "messages": [USER], "tools": [{"input_schema": {}}]}, "anthropic", None),
        ({"model": "gpt", "messages": [USER]}, "openai", None),
        ({"messages": [CALL]}, "openai", None),
        ({"messages": [USER]}, "plain", None),
        ({"model": "gpt", "instructions": "Rules.", "input": [USER]}, "responses", "Rules."),
        (
            {"systemInstruction": {"parts": []}, "contents": [{"parts": [{"text": "Hi"}]}]},
            "gemini",
            {"parts": []},
        ),
    ],
)
def test_a_request_body_tells_its_wire_and_keeps_the_rest(body, wire, system):
    found = load_conversation(stream(body, indent=2))

    assert (found.wire, found.system, found.tools) == (wire, system, body.get("tools"))
    again = json.loads(conversation_bytes(shortened(found)))
    key = next(key for key in ("messages", "input", "contents") if key in body)
    assert list(again) == list(body)
    assert {**again, key: body[key]} == body


def test_an_input_that_is_text_is_one_message():
    source = stream({"model": "gpt", "input": "Hi"})

    found = load_conversation(source)

    assert (found.wire, raws(found)) == ("responses", [USER])
    assert conversation_bytes(found) == source.getvalue()


def test_a_changed_conversation_is_printed_as_its_source_was():
    body = {"model": "gpt", "messages": [USER, REPLY], "temperature": 0}

    found = load_conversation(stream(body, indent=4, ensure_ascii=False))

    expected = {**body, "messages": [{"role": "assistant", "content": "Sümmary"}, REPLY]}
    assert (
        conversation_bytes(shortened(found)).decode()
        == json.dumps(expected, indent=4, ensure_ascii=False) + "\n"
    )


def test_unchanged_lines_keep_their_bytes():
    source = b'{"role":"user",  "content":"a"}\n{"role": "user", "content": "b" }\r\n{"role":"user","content":"c"}{"role":"user","content":"d"}'

    new = conversation_bytes(shortened(load_conversation(io.BytesIO(source)))).splitlines()

    assert new == [
        '{"role":"assistant","content":"Sümmary"}'.encode(),
        b'{"role": "user", "content": "b" }',
        b'{"role":"user","content":"c"}',
        b'{"role":"user","content":"d"}',
    ]


def test_a_message_over_several_lines_is_printed_on_one():
    source = stream(USER, indent=2)
    found = load_conversation(io.BytesIO(source.getvalue() * 2))

    assert (
        conversation_bytes(found._replace(messages=found.messages[1:]))
        == b'{"role": "user", "content": "Hi"}\n'
    )


def test_what_is_ours_is_kept_in_plain_lines():
    plain = {"role": "developer", "content": "Rules.", "meta": {"protected": True}}

    found = load_conversation(stream(plain, USER))

    assert (found.wire, found.messages[0].role, raws(found)) == ("plain", "system", [plain, USER])


def test_a_wire_can_be_given():
    assert load_conversation(stream([USER]), wire="openai").messages == read([USER], "openai")


def transcript():
    line = {"type": "user", "sessionId": "s", "message": USER}
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s"}
    return stream(line, boundary, {**line, "message": REPLY, "type": "assistant"})


def test_a_transcript_becomes_a_request_body():
    whole, context = load_conversation(transcript()), load_conversation(transcript(), whole=False)

    assert (whole.wire, len(whole.messages), raws(context)) == ("anthropic", 2, [REPLY])
    assert json.loads(conversation_bytes(context)) == {"messages": [REPLY]}


def test_a_rollout_becomes_a_request_body_with_its_instructions():
    meta = {"type": "session_meta", "payload": {"id": "s", "instructions": "Rules."}}

    found = load_conversation(stream(meta, {"type": "response_item", "payload": {"type": "message", **USER}}))

    assert found.wire == "responses"
    assert json.loads(conversation_bytes(found)) == {
        "instructions": "Rules.",
        "input": [{"type": "message", **USER}],
    }


def test_the_nth_of_several_conversations_is_read_and_the_others_counted():
    other = {"task_id": 1, "traj": [CALL, USER]}
    source = stream({"task_id": 0, "traj": [USER]}, other)

    first, second = load_conversation(source), load_conversation(io.BytesIO(source.getvalue()), nth=1)

    assert (raws(first), first.others, second.others) == ([USER], 1, 1)
    assert (raws(second), json.loads(conversation_bytes(second))) == ([CALL, USER], other)
    with pytest.raises(NotFound, match=r"no conversation 2\. Choose one of 0 to 1"):
        load_conversation(io.BytesIO(source.getvalue()), nth=2)
    with pytest.raises(NotFound, match="Choose one of 0 to 0"):
        load_conversation(stream([USER]), nth=1)


def test_samples_and_sessions_of_other_agents_are_plain():
    samples = {"samples": [{"messages": [USER, REPLY]}, {"messages": [REPLY]}]}
    session = [
        {"type": "session", "id": "s"},
        {"type": "message", "message": USER},
        {"type": "message", "message": REPLY},
    ]

    sampled, said_line_by_line = load_conversation(stream(samples)), load_conversation(stream(*session))

    assert (sampled.wire, raws(sampled), sampled.others) == ("plain", [USER, REPLY], 1)
    assert (said_line_by_line.wire, raws(said_line_by_line)) == ("plain", [USER, REPLY])
    assert json.loads(conversation_bytes(sampled)) == {"messages": [USER, REPLY]}


def test_events_of_openhands_are_said_as_messages():
    events = [
        {"id": 1, "source": "user", "action": "message", "args": {"content": "Go."}},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}},
        {"id": 3, "source": "agent", "cause": 2, "observation": "run", "content": "a.py"},
    ]

    found = load_conversation(stream(events))

    assert found.wire == "openai"
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]


def test_a_conversation_in_another_wire_takes_its_system_prompt_along():
    body = {
        "model": "m",
        "system": "Rules.",
        "messages": [USER],
        "tools": [{"name": "f", "input_schema": {}}],
    }

    new, findings = convert_conversation(load_conversation(stream(body)), "openai")

    assert json.loads(conversation_bytes(new)) == {
        "messages": [{"role": "system", "content": "Rules."}, USER]
    }
    assert [finding.code for finding in findings] == ["tools-dropped"]
    back, findings = convert_conversation(new, "gemini")
    assert (json.loads(conversation_bytes(back))["systemInstruction"], findings) == (
        {"parts": [{"text": "Rules."}]},
        [],
    )
    assert convert_conversation(back, "gemini") == (back, [])


def test_another_system_prompt_is_written_under_its_key():
    found = load_conversation(
        stream({"system_instruction": "Old.", "contents": [{"parts": [{"text": "Hi"}]}]})
    )

    assert json.loads(conversation_bytes(found._replace(system="New.")))["system_instruction"] == "New."


@rows(
    ("data", "what"),
    [
        (b"", "no known format"),
        (b"Hello.", "no known format"),
        (b"[]", "no known format"),
        (b'{"content": "x", "type": "note"}', "holds items"),
        (b'{"type": "response_item", "payload": {}}', "holds no message"),
        (b'[{"messages_display": ""}]', "no known format"),
    ],
)
def test_what_holds_no_conversation_is_refused(data, what):
    with pytest.raises(InvalidInput, match=what):
        load_conversation(io.BytesIO(data))


@pytest.mark.parametrize("key", ["messages", "input"])
def test_what_is_no_object_among_messages_is_refused_and_not_passed_over(key):
    body = {key: [{"role": "user", "content": "Go."}, 5]}

    with pytest.raises(InvalidInput, match=rf"{key}\[1\]: it is 5"):
        load_conversation(io.BytesIO(json.dumps(body).encode()))


@rows("odd", [{"role": "assistant"}, {"content": "Hm."}, {"role": "robot", "content": ""}])
def test_messages_that_are_odd_are_read_and_written_back(odd):
    listed = [{"role": "user", "content": "Go."}, odd]
    lines = b"".join(json.dumps(raw).encode() + b"\n" for raw in listed)

    for data in (json.dumps(listed).encode(), lines):
        found = load_conversation(io.BytesIO(data))

        assert [message.raw for message in found.messages] == listed
        assert conversation_bytes(found) == data


@rows("stray", ["5", "null", "{}", '"Go."', "[]"])
def test_lines_that_are_no_message_are_left_out_and_told(stray):
    source = f'{stray}\n{{"role": "user", "content": "Go."}}\n{{torn\n{stray}\n'.encode()

    found = load_conversation(io.BytesIO(source))

    assert [message.raw for message in found.messages] == [{"role": "user", "content": "Go."}]
    assert [(finding.code, finding.where) for finding in found.unread] == [
        ("unread-line", "line 1"),
        ("unread-line", "line 3"),
        ("unread-line", "line 4"),
    ]
    assert "and no message" in str(found.unread[0])
    assert conversation_bytes(found) == source


def test_the_words_of_an_error_name_no_option_that_is_not_there():
    with pytest.raises(InvalidInput) as refused:
        load_conversation(io.BytesIO(b"Hello."))

    assert "--format" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFound, match=r"gone\.json: cannot be read"):
        load_conversation(tmp_path / "gone.json")


def test_a_file_gives_its_name(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([USER]))

    assert (load_conversation(path).name, load_conversation(str(path)).name) == ("a.json", "a.json")


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not FILES, reason="the real transcripts are not on this machine")
@rows("path", FILES, ids=lambda path: path.name[:60])
def test_every_real_file_is_read_and_written_back(path):
    source = path.read_bytes()

    found = load_conversation(path)

    assert found.messages
    # Of several conversations the one that was read is written, of an agent's own log a request body.
    if found.origin.kind != "derived":
        assert conversation_bytes(found) == (
            source if not found.others else source.splitlines(keepends=True)[0]
        )
    again = load_conversation(io.BytesIO(conversation_bytes(found)), wire=found.wire)
    assert json.dumps(raws(again)) == json.dumps(raws(found))
    changed = conversation_bytes(found._replace(messages=found.messages[:-1] + read([USER], "openai")))
    assert json.dumps(raws(load_conversation(io.BytesIO(changed)))) == json.dumps([*raws(found)[:-1], USER])


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not FILES, reason="the real transcripts are not on this machine")
@rows("path", FILES, ids=lambda path: path.name[:60])
def test_every_real_file_that_its_provider_takes_is_taken_by_the_others(path):
    found = load_conversation(path)
    if found.wire == "plain" or errors(found):
        pytest.skip("its own provider would refuse it, or it has none")

    for wire in PROVIDERS:
        new, findings = convert_conversation(found, wire)
        assert errors(new) == [] or "first-role" in {finding.code for finding in findings}


def errors(conversation):
    return [
        finding for finding in check(conversation.messages, conversation.wire) if finding.level == "error"
    ]


@pytest.mark.real_data
@pytest.mark.skipif(not FILES, reason="the real transcripts are not on this machine")
def test_an_index_is_no_conversation():
    with pytest.raises(InvalidInput, match=r"_compaction_index\.json: no known format"):
        load_conversation(DATA / "claude_code" / "_compaction_index.json")
