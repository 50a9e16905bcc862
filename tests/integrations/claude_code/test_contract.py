"""The contract: for each event what may be printed, and never too much."""

from __future__ import annotations

import json

import pytest

from aether.integrations.claude_code import hook
from tests.tables import rows

# Every event that Claude Code knows, and what we may print for it.
EVENTS = dict.fromkeys(
    "PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptExpansion SessionEnd Stop "
    "StopFailure SubagentStop PostCompact PreModelSwitch PostModelSwitch PermissionRequest PermissionDenied Setup "
    "TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult ConfigChange WorktreeCreate WorktreeRemove "
    "InstructionsLoaded CwdChanged FileChanged DirectoryAdded MessageDisplay SomethingNew".split(),
    "nothing",
) | {
    "SessionStart": "context",
    "UserPromptSubmit": "context",
    "SubagentStart": "context",
    "PreCompact": "plain",
}


@rows(("event", "shape"), EVENTS.items(), ids=EVENTS)
def test_each_event_prints_what_it_may(event, shape):
    said = hook.output(event, "Use SQLite.")

    if shape == "context":
        inner = {"hookEventName": event, "additionalContext": "Use SQLite."}
        assert json.loads(said) == {"hookSpecificOutput": inner}
    else:
        assert said == ("Use SQLite." if shape == "plain" else "")


@rows("event", ["SessionStart", "PreCompact"])
@rows("text", ["", "  \n "])
def test_nothing_to_tell_prints_nothing(event, text):
    assert hook.output(event, text) == ""


@pytest.mark.parametrize("text", ['{"decision": "block"}', "\n {a"])
def test_a_text_that_would_be_read_as_json_is_not(text):
    assert hook.output("PreCompact", text).startswith("- ")


@rows("event", ["SessionStart", "PreCompact"])
@rows("line", ["words of a memory", "🎉" * 60, '"\\\n'])
def test_a_text_that_is_too_long_loses_lines_and_keeps_the_one_that_closes(event, line):
    said = hook.output(event, "\n".join(["<aether-memory>", *[line] * 4000, "</aether-memory>"]))
    told = json.loads(said)["hookSpecificOutput"]["additionalContext"] if event == "SessionStart" else said

    assert 8_500 < hook.length_of(said) <= hook.MOST_CHARS < hook.LIMIT_CHARS
    assert told.startswith("<aether-memory>")
    assert told.endswith("</aether-memory>")


@pytest.mark.parametrize("text", ["x" * 9_000, "x" * 9_000 + "\n "])
def test_a_line_that_does_not_fit_is_not_told(text):
    assert hook.output("SessionStart", text) == ""


def test_a_torn_character_does_not_end_the_process():
    assert hook.output("PreCompact", "torn \ud83d").encode("utf-8") == b"torn ?"


def test_characters_are_counted_as_claude_code_counts_them():
    assert hook.length_of("a漢🎉") == 4
