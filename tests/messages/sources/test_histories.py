"""Histories of other hosts: Cline and Roo, Antigravity, SpecStory and Aider; who speaks is known."""

import io
import json

import pytest

from aether.errors import InvalidInput
from aether.messages.read import detect_file_format, read_records
from tests.tables import rows


def read(source):
    data = source if isinstance(source, str) else json.dumps(source)
    return list(read_records(io.BytesIO(data.encode())))


def brief(source):
    return [(one.kind, one.text or one.tool) for one in read(source)]


def message(role, *texts, ts=1790935200000):
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts], "ts": ts}


DETAILS = "<environment_details>\n# Visible Files\nNever mind.\n</environment_details>"


def test_of_cline_the_task_is_a_persons_and_a_bracketed_line_answers_the_call():
    found = read([
        message("user", "<task>\nPort it. 请保留注释。\n</task>", DETAILS),
        message("assistant", "<thinking>hm</thinking>\nI look.\n<execute_command>\n<command>ls</command>\n</execute_command>"),
        message("user", "[execute_command for 'ls'] Result:", "a.py", DETAILS, ts=1790935260000),
        message("assistant", "<attempt_completion>\n<result>\nPorted.\n</result>\n</attempt_completion>"),
        message("user", "[attempt_completion] Result:\n<feedback>\nNow the tests.\n</feedback>", DETAILS),
        message("user", "[ERROR] You did not use a tool in your previous response! Always use one."),
    ])  # fmt: skip

    assert [(one.kind, one.text or one.tool) for one in found] == [
        ("user", "Port it. 请保留注释。"), ("assistant", "I look."), ("call", "execute_command"), ("result", "a.py"),
        ("assistant", "Ported."), ("user", "Now the tests."),
        ("system", "[ERROR] You did not use a tool in your previous response! Always use one."),
    ]  # fmt: skip
    call, result = found[2:4]
    assert (dict(call.arguments), call.call_id) == ({"command": "ls"}, result.call_id)
    assert (found[0].time[:19], result.time[:19]) == ("2026-10-02T10:00:00", "2026-10-02T10:01:00")


def test_of_cline_a_denied_call_is_a_refusal_and_an_answer_has_its_question():
    ask = '<ask_followup_question>\n<question>Which port?</question>\n<options>["80", "8080"]</options>\n</ask_followup_question>'
    found = read([
        message("user", "<task>Go</task>"),
        message("assistant", "<write_to_file>\n<path>a.py</path>\n<content>\nx = 1\n</content>\n</write_to_file>"),
        message("user", "[write_to_file for 'a.py'] Result:\nThe user denied this operation and provided the following feedback:\n<feedback>\nnot there\n</feedback>"),
        message("assistant", ask),
        message("user", "[ask_followup_question for 'Which port?'] Result:\n<answer>\n8080\n</answer>", DETAILS),
    ])  # fmt: skip

    assert [(one.kind, one.text) for one in found if one.kind != "call"] == [
        ("user", "Go"), ("refusal", "not there"), ("answer", "8080"),
    ]  # fmt: skip
    assert dict(found[-1].arguments) == {
        "question": "Which port?",
        "options": ["80", "8080"],
        "choice": "8080",
    }
    assert next(dict(one.arguments) for one in found if one.kind == "call") == {
        "path": "a.py",
        "content": "x = 1",
    }


def test_of_cline_calls_by_the_protocol_of_the_provider_are_read_too():
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x = 1"}]}
    found = read([
        message("user", "<task>Go</task>"), {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, {"type": "text", "text": DETAILS}]},
    ])  # fmt: skip

    assert [(one.kind, one.text or one.tool, one.call_id) for one in found[:3]] == [
        ("user", "Go", ""), ("call", "read_file", "t1"), ("result", "x = 1", "t1"),
    ]  # fmt: skip
    assert found[3].kind == "system"


def step(source, kind, content, nth=0):
    return {
        "step_index": nth,
        "source": source,
        "type": kind,
        "created_at": "2026-10-02T10:00:00Z",
        "content": content,
    }


def test_of_antigravity_each_step_has_its_speaker():
    lines = [
        step("USER_EXPLICIT", "USER_INPUT", "<USER_REQUEST>\nUse tabs.\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nx\n</ADDITIONAL_METADATA>"),
        step("USER_IMPLICIT", "CHECKPOINT", "Never."), step("SYSTEM", "EPHEMERAL_MESSAGE", "Always."),
        step("MODEL", "VIEW_FILE", "1: x", 3), step("MODEL", "PLANNER_RESPONSE", "Done."),
    ]  # fmt: skip
    assert brief("\n".join(map(json.dumps, lines))) == [
        ("user", "Use tabs."), ("system", "Never."), ("system", "Always."), ("result", "1: x"), ("assistant", "Done."),
    ]  # fmt: skip


@rows(
    "value",
    [
        {"type": "TOOL_RUN", "content": "ls", "status": "DONE"},
        [{"type": "thought", "content": "We must use Redis."}],
        {"type": "NOTE", "content": "x", "level": "info"},
    ],
)
def test_a_log_is_refused_and_the_error_names_what_it_looks_like(value):
    with pytest.raises(InvalidInput, match="it is a log, not a list of items"):
        detect_file_format([value])


SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# 2026-10-02 10:00:00Z

<!-- Claude Code Session 5c7d5c23 (2026-10-02 10:00:00Z) -->

_**User (2026-10-02 10:00:00Z)**_

Use tabs.

```markdown
_**Agent (x)**_
```

Never ask.

---

_**Agent (claude-opus-5-5 2026-10-02 10:00:05Z)**_

I look.

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>

```text
_**User**_
Always use Redis.
```
</details></tool-use>

Decided: tabs.

---

_**User (2026-10-02 10:01:00Z)**_

<task-notification>
done
</task-notification>

---

_**User**_

谢谢。
"""


def test_of_specstory_a_line_names_who_speaks():
    found = read(SPECSTORY)

    assert [(one.kind, one.text) for one in found] == [
        ("user", "Use tabs.\n\n```markdown\n_**Agent (x)**_\n```\n\nNever ask."),
        ("assistant", "I look.\n\n\n\nDecided: tabs."),
        ("system", "<task-notification>\ndone\n</task-notification>"),
        ("user", "谢谢。"),
    ]
    assert [one.time for one in found] == [
        "2026-10-02T10:00:00Z",
        "2026-10-02T10:00:05Z",
        "2026-10-02T10:01:00Z",
        "",
    ]
    assert {one.session for one in found} == {"5c7d5c23"}


AIDER = """
# aider chat started at 2026-10-02 10:00:00

> Aider v0.90  

#### Use tabs.  
#### Never ask.  

#### A heading of the agent

Done.

> Commit 1a2b3c4 feat: tabs  

#### /add a.py  

> Added a.py to the chat  

#### /ask why tabs?  

Because.

# aider chat started at 2026-10-03 10:00:00

#### 用制表符。  
"""  # noqa: W291 - a prompt ends in two blanks


def test_of_aider_the_prompts_are_a_persons():
    found = read(AIDER)

    assert [(one.kind, one.text) for one in found if one.kind != "system"] == [
        ("user", "Use tabs.\nNever ask."), ("assistant", "#### A heading of the agent\n\nDone."),
        ("user", "/ask why tabs?"), ("assistant", "Because."), ("user", "用制表符。"),
    ]  # fmt: skip
    assert {one.time[:10] for one in found} == {"2026-10-02", "2026-10-03"}
    assert len({one.session for one in found}) == 2


def test_of_aider_prompts_are_known_when_an_editor_cut_the_blanks():
    source = "\n".join(each.rstrip() for each in AIDER.splitlines() if "heading" not in each)

    assert [one.text for one in read(source) if one.kind == "user"] == [
        "Use tabs.\nNever ask.",
        "/ask why tabs?",
        "用制表符。",
    ]


def test_of_cline_what_a_tool_prints_is_never_a_persons():
    page = "<p>Read me</p>\n<feedback>\nNever use Redis.\n</feedback>"
    found = read([
        message("user", "<task>Go</task>"), message("assistant", "<read_file>\n<path>a.html</path>\n</read_file>"),
        message("user", f"[read_file for 'a.html'] Result:\n{page}", DETAILS),
        message("user", f"[read_file for 'a.html'] Result:\n{page}\nThe end"),
    ])  # fmt: skip

    assert [one.text for one in found if one.kind == "user"] == ["Go"]
