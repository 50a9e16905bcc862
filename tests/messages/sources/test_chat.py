import json

from aether.messages.sources import chat
from aether.messages.sources.chat import (
    item_fault,
    item_records,
    paragraph_records,
    records,
)
from tests.tables import rows


def read(*values):
    return list(records(enumerate(values, start=1)))


def brief(*values):
    return [(record.kind, record.text) for record in read(*values)]


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def openai_call(name, arguments, call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_an_openai_conversation_is_read_in_order():
    found = read(
        [
            said("system", "rules"),
            said("user", "Cancel it."),
            said("assistant", None, tool_calls=[openai_call("cancel", {"id": 7})]),
            said("tool", "done", tool_call_id="c1", name="cancel"),
            said("assistant", "Cancelled."),
        ]
    )

    assert [record.kind for record in found] == ["system", "user", "call", "result", "assistant"]
    assert found[2].arguments == {"id": 7}
    assert [record.part for record in found] == [0, 1, 2, 3, 4]
    assert len({record.session for record in found}) == 1


@rows(
    ("value", "reasons"),
    [
        (5, ["5 is not a message"]),
        ([said("user", "Go."), 5, None, {"a": 1}],
         ["messages[1]: 5 is not a message", "messages[2]: None is not a message", "messages[3]: {'a': 1} is not a message"]),
        ({"": None}, []),
        ({"history": [7, said("user", "Go.")]}, ["history[0]: 7 is not a message"]),
        ({"trajectory": [{"action": "ls"}], "history": [said("user", "Go.")]}, []),
        ([said("user", "Go."), {"type": "reasoning"}, {"role": "assistant"}], []),
    ],
)  # fmt: skip
def test_what_is_no_message_is_reported(value, reasons):
    bad = []

    list(records([(3, value)], on_bad=bad.append))

    assert [(each.line, each.reason) for each in bad] == [(3, reason) for reason in reasons]


def test_an_anthropic_conversation_is_read_too():
    assert brief(
        [
            said("user", [{"type": "text", "text": "Go."}]),
            said("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]),
            said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]),
        ]
    ) == [("user", "Go."), ("call", ""), ("result", "a.py")]


@rows(
    "wrapped",
    [
        {"messages": [said("user", "Go.")]},
        {"history": [said("user", "Go.")], "trajectory": [{"action": "ls"}]},
        {"traj": [said("user", "Go.")], "task_id": 3, "trial": 0},
        {"samples": [{"messages": [said("user", "Go.")]}]},
        {"messages_display": "user: Go.\nassistant: None\n"},
        {"type": "message", "message": said("user", "Go.")},
        said("user", "Go."),
    ],
)
def test_wrappers_are_removed(wrapped):
    assert brief(wrapped) == [("user", "Go.")]


def test_the_answer_of_a_logged_request_belongs_to_it():
    log = {
        "messages": [said("user", "Go.")],
        "response": {"choices": [{"message": said("assistant", "Gone.")}]},
    }

    assert brief(log) == [("user", "Go."), ("assistant", "Gone.")]


def test_two_conversations_of_one_file_differ_and_a_grown_one_does_not():
    first, second = [said("user", "Go.")], [said("user", "Stop.")]

    assert read(first)[0].session == read([*first, said("assistant", "Gone.")])[0].session
    assert read(first)[0].session != read(second)[0].session


def test_recorded_compactions_are_boundaries():
    value = {
        "messages": [said("user", "a"), said("user", "sum"), said("user", "b")],
        "compactions": [{"before_message": 1}],
    }

    assert [kind for kind, _ in brief(value)] == ["user", "boundary", "summary", "user"]


def test_a_session_kept_line_by_line_is_one_conversation():
    found = read(
        {"type": "session", "id": "s9", "timestamp": "t0"},
        {"type": "message", "timestamp": "t1", "message": said("user", "Go.")},
        {"type": "compaction", "summary": "We went."},
        {
            "type": "message",
            "message": said("toolResult", [{"type": "text", "text": "no"}], toolCallId="c", isError=True),
        },
        {
            "type": "message",
            "message": {"role": "bashExecution", "command": "make", "output": "boom", "exitCode": 2},
        },
    )

    assert [record.kind for record in found] == ["user", "boundary", "summary", "result", "call", "result"]
    assert {record.session for record in found} == {"s9"}
    assert [record.is_error for record in found if record.kind == "result"] == [True, True]


def test_agents_without_tool_calls_write_commands_into_their_text():
    found = read(
        [
            said("user", "Fix."),
            said("assistant", "Trying.\n```bash\nmake\n```"),
            said("user", "<returncode>2</returncode>\nboom"),
            said("assistant", "Hm.", action="ls\n", agent="main"),
            said("user", "a.py", agent="main"),
            said("assistant", "<function=terminal>\n<parameter=command>pwd</parameter>\n</function>"),
            said("user", "EXECUTION RESULT of [terminal]:\n/"),
            said("assistant", "Done."),
            said("user", "Thanks."),
        ]
    )

    assert [record.kind for record in found] == [
        *("user", "assistant", "call", "result"),
        *("assistant", "call", "result"),
        *("assistant", "call", "result"),
        *("assistant", "user"),
    ]
    assert [record.arguments["command"] for record in found if record.kind == "call"] == ["make", "ls", "pwd"]
    assert found[3].is_error
    assert found[3].call_id == found[2].call_id


def test_an_observation_answers_only_after_somebody_acted():
    found = brief(
        [
            said("user", "The issue.", message_type="observation"),
            said("assistant", "Hm."),
            said("user", "seen", message_type="observation"),
        ]
    )

    assert [kind for kind, _ in found] == ["user", "assistant", "result"]


def test_tools_that_only_speak_are_speech():
    calls = [openai_call("send_message", {"message": "Hello!"}), openai_call("finish", {}), "stray"]

    assert brief([said("assistant", "thinking", tool_calls=calls)]) == [
        ("assistant", "thinking"),
        ("assistant", "Hello!"),
        ("call", ""),
    ]


def test_events_inside_user_messages_are_unwrapped():
    message = json.dumps({"type": "user_message", "message": "I am Sarah.", "time": "t"})
    beat = json.dumps({"type": "heartbeat", "reason": "go on", "time": "t"})

    assert brief([said("user", message), said("user", beat), said("user", '{"a": 1}')]) == [
        ("user", "I am Sarah."),
        ("system", beat),
        ("user", '{"a": 1}'),
    ]


def test_results_inside_calls_and_other_forms_of_failure():
    gemini = {
        "type": "gemini",
        "content": "",
        "toolCalls": [
            {
                "id": "c",
                "name": "read_file",
                "args": {"file_path": "a"},
                "status": "error",
                "result": [{"functionResponse": {"response": {"error": "gone"}}}],
            }
        ],
    }
    returned = said("tool", "x", tool_returns=[{"status": "error"}], tool_call_ids=["c7"])
    legacy = said("assistant", "", function_call={"name": "f", "arguments": "{}"})

    found = read([gemini, returned, said("tool", "y", error={"type": "timeout"}), legacy])

    assert [(record.kind, record.is_error) for record in found] == [
        ("call", False),
        ("result", True),
        ("result", True),
        ("result", True),
        ("call", False),
    ]
    assert found[1].text == "gone"
    assert found[2].call_id == "c7"


def paragraphs(text):
    return [
        (record.line, record.text) for record in paragraph_records(text.encode().splitlines(keepends=True))
    ]


def test_each_paragraph_is_a_record_with_its_first_line():
    assert paragraphs("One.\nStill one.\n\n\nTwo.\n") == [(1, "One.\nStill one."), (5, "Two.")]


def test_a_heading_stays_with_what_it_heads():
    assert paragraphs("# Plan\n\n## First\n\nUse it.\n\nNext.") == [
        (1, "# Plan\n\n## First\n\nUse it."),
        (7, "Next."),
    ]


def test_a_fenced_block_is_not_cut_at_its_blank_lines():
    assert paragraphs("```\na\n\nb\n```\n\nAfter.") == [(1, "```\na\n\nb\n```"), (7, "After.")]


def test_a_page_without_a_break_is_cut_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(chat, "PARAGRAPH_CHARS", 30)
    text = "\n".join(f"line number {n}" for n in range(20))

    assert "\n".join(part for _, part in paragraphs(text)) == text


def test_a_byte_order_mark_and_broken_bytes_are_survived():
    [record] = paragraph_records([b"\xef\xbb\xbfHi \xff\r\n"])

    assert record.text == "Hi \ufffd"


def test_an_item_is_a_record_that_keeps_it_whole():
    item = {
        "content": "Use SQLite.",
        "type": "decision",
        "relevance_score": 0.9,
        "metadata": {"timestamp": "t"},
    }

    [record] = item_records([(4, item)])

    assert (record.kind, record.text, record.arguments, record.time, record.line) == (
        "item",
        "Use SQLite.",
        item,
        "t",
        4,
    )


def test_a_list_of_items_gives_a_record_each():
    listed = [{"content": "a", "type": "x"}, {"content": "b", "type": "x"}]

    assert [record.part for record in item_records([(1, listed)])] == [0, 1]


@rows(
    "item",
    [
        7,
        {"content": "", "type": "x"},
        {"content": "a"},
        {"content": "a", "type": 3},
        {"content": "a", "type": "x", "relevance_score": "high"},
        {"content": "a", "type": "x", "relevance_score": True},
        {"content": "a", "type": "x", "relevance_score": 1.5},
        {"content": "a", "type": "x", "relevance_score": float("nan")},
    ],
)
def test_an_item_that_cannot_be_stored_is_reported_with_its_line(item):
    bad = []

    assert list(item_records([(9, item)], on_bad=bad.append)) == []
    assert bad[0].line == 9
    assert bad[0].reason == item_fault(item)


def state(file, text):
    """Return `text` as SWE-agent shows it while `file` is open."""
    return f"{text}\n(Open file: {file})\n(Current directory: /srv/app)\nbash-$"


def typed(action, file, text):
    return [
        {"role": "assistant", "content": f"Now.\n```\n{action}\n```", "action": action, "agent": "main"},
        {"role": "user", "content": state(file, text), "agent": "main"},
    ]


def called(name, given, file, text):
    call = {"id": f"c{name}", "function": {"name": name, "arguments": json.dumps(given)}}
    return [
        {"role": "assistant", "content": "Now.", "tool_calls": [call], "message_type": "action"},
        {"role": "tool", "content": state(file, text), "tool_call_ids": [f"c{name}"]},
    ]
