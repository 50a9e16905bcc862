import io
import json
from pathlib import Path

import pytest

from aether.errors import InvalidInput, NotFound
from aether.messages.convert import new_message, read
from aether.messages.records import Record, as_messages
from aether.messages.sources import claude_code, codex
from aether.messages.transcripts import (
    conversation_bytes,
    convert_conversation,
    load_conversation,
)
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
    summary = new_message("assistant", "Sümmary", conversation.format)
    return conversation._replace(messages=[summary, *conversation.messages[1:]])


@rows("provider", PROVIDERS)
@rows("indent", [None, 2])
def test_lists_and_lines_of_every_format_are_written_back_unchanged(provider, indent):
    listed = history(1, provider, tools=1.0)
    for source in (stream(listed, indent=indent), stream(*listed, indent=indent)):
        found = load_conversation(source)

        assert (found.format, raws(found)) == (provider, listed)
        assert conversation_bytes(found) == source.getvalue()
        assert raws(load_conversation(io.BytesIO(conversation_bytes(shortened(found)))))[1:] == listed[1:]


@rows(
    ("body", "provider", "system"),
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
def test_the_format_of_a_request_body_is_detected_and_the_rest_kept(body, provider, system):
    found = load_conversation(stream(body, indent=2))

    assert (found.format, found.system, found.tools) == (provider, system, body.get("tools"))
    again = json.loads(conversation_bytes(shortened(found)))
    key = next(key for key in ("messages", "input", "contents") if key in body)
    assert list(again) == list(body)
    assert {**again, key: body[key]} == body


def test_an_input_that_is_text_is_one_message():
    source = stream({"model": "gpt", "input": "Hi"})

    found = load_conversation(source)

    assert (found.format, raws(found)) == ("responses", [USER])
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


def test_meta_is_kept_in_plain_lines():
    plain = {"role": "developer", "content": "Rules.", "meta": {"protected": True}}

    found = load_conversation(stream(plain, USER))

    assert (found.format, found.messages[0].role, raws(found)) == ("plain", "system", [plain, USER])


def transcript():
    line = {"type": "user", "sessionId": "s", "message": USER}
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s"}
    return stream(line, boundary, {**line, "message": REPLY, "type": "assistant"})


def test_a_transcript_becomes_a_request_body():
    found = load_conversation(transcript())

    assert (found.format, raws(found)) == ("anthropic", [USER, REPLY])
    assert json.loads(conversation_bytes(found)) == {"messages": [USER, REPLY]}


def test_a_rollout_becomes_a_request_body_with_its_instructions():
    meta = {"type": "session_meta", "payload": {"id": "s", "instructions": "Rules."}}

    found = load_conversation(stream(meta, {"type": "response_item", "payload": {"type": "message", **USER}}))

    assert found.format == "responses"
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

    assert (sampled.format, raws(sampled), sampled.others) == ("plain", [USER, REPLY], 1)
    assert (said_line_by_line.format, raws(said_line_by_line)) == ("plain", [USER, REPLY])
    assert json.loads(conversation_bytes(sampled)) == {"messages": [USER, REPLY]}


def test_events_of_openhands_become_messages():
    events = [
        {"id": 1, "source": "user", "action": "message", "args": {"content": "Go."}},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}},
        {"id": 3, "source": "agent", "cause": 2, "observation": "run", "content": "a.py"},
    ]

    found = load_conversation(stream(events))

    assert found.format == "openai"
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]


def test_a_converted_conversation_keeps_its_system_prompt():
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
        (b"", "is empty"),
        (b"Hello.", "no known format"),
        (b"[]", "is empty"),
        (b'{"messages": []}', "is empty"),
        (b'{"content": "x", "type": "decision"}', "has items"),
        (b'{"type": "response_item", "payload": {}}', "has no message"),
        (b'[{"messages_display": ""}]', "no known format"),
    ],
)
def test_files_without_a_conversation_are_refused(data, what):
    with pytest.raises(InvalidInput, match=what):
        load_conversation(io.BytesIO(data))


@pytest.mark.parametrize("key", ["messages", "input"])
def test_a_value_among_messages_that_is_not_an_object_is_refused(key):
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
def test_lines_that_are_not_messages_are_left_out_and_reported(stray):
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
    again = load_conversation(io.BytesIO(conversation_bytes(found)))
    assert json.dumps(raws(again)) == json.dumps(raws(found))
    changed = conversation_bytes(found._replace(messages=found.messages[:-1] + read([USER], "openai")))
    assert json.dumps(raws(load_conversation(io.BytesIO(changed)))) == json.dumps([*raws(found)[:-1], USER])


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not FILES, reason="the real transcripts are not on this machine")
@rows("path", FILES, ids=lambda path: path.name[:60])
def test_every_real_file_that_its_provider_accepts_is_accepted_by_the_others(path):
    found = load_conversation(path)
    if found.format == "plain" or errors(found):
        pytest.skip("its own provider would refuse it, or it has none")

    for provider in PROVIDERS:
        new, findings = convert_conversation(found, provider)
        assert errors(new) == [] or "first-role" in {finding.code for finding in findings}


def errors(conversation):
    return [
        finding for finding in check(conversation.messages, conversation.format) if finding.level == "error"
    ]


def lines(*values):
    return list(enumerate(values, start=1))


def user(content, **more):
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def assistant(key, *blocks, **more):
    message = {"role": "assistant", "id": key, "model": "m", "content": list(blocks), "usage": {}}
    return {"type": "assistant", "message": message, **more}


def text(said):
    return {"type": "text", "text": said}


def use(key):
    return {"type": "tool_use", "id": key, "name": "f", "input": {}}


def answer(key):
    return {"type": "tool_result", "tool_use_id": key, "content": f"of {key}"}


def test_a_response_over_several_records_is_one_message_with_its_answers_after_it():
    found = claude_code_messages(
        lines(
            user("Go."),
            assistant("m1", text("Two calls.")),
            assistant("m1", use("a")),
            user([answer("a")]),
            assistant("m1", use("b")),
            user([answer("b"), text("[interrupted]")]),
            assistant("m2", text("Done.")),
        ),
    )

    assert found == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [text("Two calls."), use("a"), use("b")]},
        {"role": "user", "content": [answer("a"), answer("b")]},
        {"role": "user", "content": [text("[interrupted]")]},
        {"role": "assistant", "content": [text("Done.")]},
    ]


def test_an_answer_follows_its_call_whatever_was_typed_meanwhile():
    typed = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Also this."}}
    other = {"type": "attachment", "attachment": {"type": "date"}}

    found = claude_code_messages(lines(assistant("m", use("a")), typed, other, user([answer("a")])))

    assert [raw["role"] for raw in found] == ["assistant", "user", "user"]
    assert found[1:] == [
        {"role": "user", "content": [answer("a")]},
        {"role": "user", "content": "Also this."},
    ]


def test_bookkeeping_side_chains_repeats_and_texts_of_the_program_are_left_out():
    once = user("Once.", uuid="u1")

    found = claude_code_messages(
        lines(
            {"type": "summary", "summary": "x"},
            once,
            once,
            user("Caveat", isMeta=True),
            user("Prompt", isSidechain=True),
            assistant("e", text("API Error"), isApiErrorMessage=True),
            {"type": "user", "message": "odd"},
            7,
        ),
    )

    assert found == [{"role": "user", "content": "Once."}]


def test_the_file_of_a_sub_agent_is_read_for_what_it_is():
    assert len(claude_code_messages(lines(user("Prompt", isSidechain=True)))) == 1


def test_odd_contents_are_kept_and_never_joined():
    found = claude_code_messages(
        lines(
            {"type": "assistant", "message": {"id": "m", "content": "Hi"}},
            assistant("m", text("a"), 7),
            assistant("m", text("a"), text("b")),
            assistant("", text("c")),
            user([]),
            user([answer("lost"), 7]),
        ),
    )

    assert [raw["content"] for raw in found] == [
        "Hi", [text("a"), 7, text("b")], [text("c")], [], [answer("lost"), 7],
    ]  # fmt: skip


def claude_code_messages(values):
    [conversation] = claude_code.conversations(values)
    return conversation.raws


def codex_instructions(values):
    [conversation] = codex.conversations(values)
    return conversation.system


def item(said):
    return {"type": "response_item", "payload": {"type": "message", "role": "user", "content": said}}


def test_a_rollout_holds_the_items_themselves():
    values = lines(item("1"), {"type": "event_msg", "payload": {"x": 1}}, item("2"), "odd")

    found = codex.conversations(values)[0].raws

    assert [raw["content"] for raw in found] == ["1", "2"]
    assert found[0] is values[0][1]["payload"]


def test_a_rollout_opens_with_its_instructions():
    assert (
        codex_instructions(lines({"type": "session_meta", "payload": {"instructions": "Rules."}})) == "Rules."
    )
    based = {"type": "session_meta", "payload": {"base_instructions": {"text": "Base."}}}
    assert codex_instructions(lines(item("1"), based)) == "Base."
    assert codex_instructions(lines(item("1"))) is None


def test_records_become_messages():
    records = [
        Record("system", text="Rules."),
        Record("user", text="Go."),
        Record("call", tool="run", arguments={"command": "ls"}, call_id="1"),
        Record("result", text="a.py", call_id="1"),
        Record("assistant", text="Done."),
        Record("summary", text="So far."),
    ]

    found = as_messages(records)

    assert [raw["role"] for raw in found] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert found[2]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}
    assert found[3] == {"role": "tool", "tool_call_id": "1", "content": "a.py"}


def test_a_short_log_that_a_power_cut_padded_loses_that_line_only():
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (USER, REPLY))

    loaded = load_conversation(io.BytesIO(lines + b"\0" * 512))

    assert [one.raw for one in loaded.messages] == [USER, REPLY]
    assert [one.where for one in loaded.unread] == ["line 3"]
