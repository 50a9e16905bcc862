"""What a person said in the place of a result: answers with their question and options, refusals with the reason."""

import json

from aether.messages.read import without_private
from aether.messages.records import Record
from aether.messages.replies import answers, reply
from aether.messages.sources import claude_code, codex
from tests.tables import rows

QUESTIONS = [
    {
        "question": "Which database?",
        "header": "DB",
        "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}],
    },
    {"question": "Welche Sprache?", "id": "q2", "options": ["Deutsch", "中文"]},
]
RESULT = Record("result", call_id="t1", line=3, part=1)


def brief(records):
    return [(*one.arguments.values(), one.text) for one in records]


@rows(
    ("choices", "found"),
    [
        ({"Which database?": "SQLite"}, [("Which database?", ["SQLite", "PostgreSQL"], "SQLite", "SQLite")]),
        ({"q2": {"answers": ["中文", "user_note: 繁體"]}}, [("Welche Sprache?", ["Deutsch", "中文"], "中文", "中文\n繁體")]),
        ({"q2": {"answers": ["user_note: beides"]}}, [("Welche Sprache?", ["Deutsch", "中文"], "beides", "beides")]),
        ({"Which database?": ["SQLite", "PostgreSQL"], "q2": ""}, [
            ("Which database?", ["SQLite", "PostgreSQL"], "SQLite, PostgreSQL", "SQLite, PostgreSQL")
        ]),
        ({"Was never asked?": "Yes"}, [("Was never asked?", [], "Yes", "Yes")]),
    ],
)  # fmt: skip
def test_an_answer_has_its_question_and_its_options(choices, found):
    records = answers(RESULT, QUESTIONS, choices)

    assert brief(records) == found
    assert {(one.kind, one.call_id, one.line) for one in records} == {("answer", "t1", 3)}


@rows(
    ("text", "found"),
    [
        ('Your questions have been answered: "Which database?"="SQLite" notes: for now. You can now continue.', [
            ("Which database?", ["SQLite", "PostgreSQL"], "SQLite", "SQLite\nfor now")
        ]),
        ("The user responded: neither, use files", [
            ("Which database?\nWelche Sprache?", [], "neither, use files", "neither, use files")
        ]),
        ("The user did not answer the questions.", []),
    ],
)  # fmt: skip
def test_answers_are_read_from_the_text_of_a_result_that_has_nothing_else(text, found):
    assert brief(answers(RESULT._replace(text=text), QUESTIONS)) == found


def test_two_answers_are_two_records_of_one_place():
    found = answers(RESULT, QUESTIONS, {"Which database?": "SQLite", "q2": "Deutsch"})

    assert len({(one.line, one.part) for one in found}) == 2


REFUSED = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nno mocks please"


@rows(
    ("text", "is_error", "kind", "words"),
    [
        (REFUSED, True, "refusal", "no mocks please"),
        (REFUSED, False, "result", REFUSED),
        ("The user doesn't want to proceed with this tool use.", True, "refusal", ""),
        ("exec command rejected by user", True, "refusal", ""),
        ("rejected by user approval settings", True, "result", "rejected by user approval settings"),
        ("Claude requested permissions, but you haven't granted it yet.", True, "result", None),
        ("Exit code 1", True, "result", "Exit code 1"),
    ],
)
def test_only_a_call_that_a_person_refused_is_a_refusal(text, is_error, kind, words):
    found = reply(RESULT._replace(text=text, is_error=is_error))

    assert (found.kind, found.text) == (kind, text if words is None else words)


def line(kind, content, **more):
    return {"type": kind, "sessionId": "s", "message": {"role": kind, "content": content}, **more}


def test_claude_codes_answers_and_refusals_are_the_same_from_the_transcript_and_from_the_hook():
    text = 'Your questions have been answered: "Which database?"="SQLite". You can now continue.'
    use = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": QUESTIONS}}
    refused = {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "rm -r x"}}
    mirror = {"questions": QUESTIONS, "answers": {"Which database?": "SQLite"}}
    lines = [
        line("assistant", [use, refused]),
        line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": text}], toolUseResult=mirror),
        line("user", [{"type": "tool_result", "tool_use_id": "t2", "content": REFUSED, "is_error": True}]),
    ]
    without_mirror = [{**each, "toolUseResult": None} for each in lines]
    entries = [
        {
            "event": "PostToolUse",
            "tool": "AskUserQuestion",
            "input": {"questions": QUESTIONS},
            "id": "t1",
            "output": text,
        },
        {
            "event": "PostToolUseFailure",
            "tool": "Bash",
            "input": {},
            "id": "t2",
            "output": REFUSED,
            "failed": True,
        },
    ]
    hooked = [one for entry in entries for one in claude_code.hook_records(entry)]
    read = [list(claude_code.records(enumerate(values))) for values in (lines, without_mirror)]

    for found in (*read, hooked):
        answer, refusal = (one for one in found if one.kind in ("answer", "refusal"))
        assert dict(answer.arguments) == {
            "question": "Which database?", "options": ["SQLite", "PostgreSQL"], "choice": "SQLite",
        }  # fmt: skip
        assert (answer.text, answer.call_id, refusal.text, refusal.call_id) == (
            "SQLite",
            "t1",
            "no mocks please",
            "t2",
        )
        assert not [one for one in found if one.kind == "result"]
        assert len(set(map(claude_code.record_identity, found))) == len(found)


def codex_line(payload):
    return {"timestamp": "2026-10-02T09:00:00Z", "type": "response_item", "payload": payload}


def test_codexs_answers_come_in_place_of_a_result_or_in_a_message():
    asked = json.dumps({"questions": QUESTIONS})
    later = json.dumps({"questions": [{"title": "Which port?", "options": ["80", "8080"]}]})
    output = json.dumps({"answers": {"q2": {"answers": ["中文"]}}})
    replied = '<send_user_message_question_reply>\n[{"question": "Which port?", "answer": "8080"}]\n</send_user_message_question_reply>'
    lines = [
        codex_line(
            {"type": "function_call", "name": "request_user_input", "call_id": "1", "arguments": asked}
        ),
        codex_line({"type": "function_call_output", "call_id": "1", "output": output}),
        codex_line(
            {"type": "function_call", "name": "request_user_input_async", "call_id": "2", "arguments": later}
        ),
        codex_line({"type": "function_call_output", "call_id": "2", "output": '{"accepted": true}'}),
        codex_line({"type": "message", "role": "user", "content": [{"type": "input_text", "text": replied}]}),
    ]
    found = [one for one in codex.records(enumerate(lines)) if one.kind not in ("call", "result")]

    assert brief(found) == [
        ("Welche Sprache?", ["Deutsch", "中文"], "中文", "中文"), ("Which port?", ["80", "8080"], "8080", "8080"),
    ]  # fmt: skip
    assert {one.kind for one in found} == {"answer"}


def test_a_torn_reply_is_nobodys():
    torn = '<send_user_message_question_reply>\n[{"question": "Which'
    [found] = codex.records([(1, codex_line({"type": "message", "role": "user", "content": torn}))])

    assert found.kind == "system"


def test_what_was_said_about_a_private_call_is_left_out_with_it():
    call = Record("call", tool="Write", arguments={"file_path": "secrets/a"}, call_id="1")
    refusal = Record("refusal", text="not the real key", call_id="1")

    assert list(without_private([call, refusal], "secrets/**", directory="/app")) == []
