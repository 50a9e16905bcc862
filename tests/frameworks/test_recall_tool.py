"""The tool by which a model reads again what compactions removed."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api.compact import offers_recall, preflight, undo_compaction
from aether.api.removed import RemovedMessage, RemovedPart, message_lines
from aether.errors import InvalidInput
from aether.frameworks import recall_tool
from aether.frameworks.recall_tool import _overview
from tests.laws.histories import history
from tests.tables import rows


def talk():
    """Return a conversation in which one early output has a word that no other message has."""
    said = [{"role": "user", "content": "Run the parser."}]
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    said += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "built\n" * 300 + "zanzibar failed at 0x5f\n"},
    ]
    return said + history(5, "openai", turns=20)


@rows("provider", ["anthropic", "openai", "responses"])
def test_a_provider_gets_its_own_form_which_compaction_recognises(provider, home):
    definition = aether.recall_tool(provider, "c", home=home).definition

    assert offers_recall([definition])
    assert not offers_recall([{"name": "recall", "input_schema": {"properties": {"query": {}}}}, "odd"])
    assert definition == aether.recall_tool(provider, "another", home=home).definition


def test_an_edit_is_read_by_its_lines_and_a_list_of_requests_by_whole_words():
    edit = json.dumps({"path": "a.py", "new": "x = 1\ny = 2", "all": True})
    lines = [
        *message_lines(RemovedMessage(3, "removed", "assistant", (RemovedPart("call", "Edit", edit, False),)))
    ]

    assert lines[1:] == ["→ Edit", "  path: a.py", "  new:", "    x = 1", "    y = 2", "  all: true"]
    asked = [
        RemovedMessage(nth, "removed", "user", (RemovedPart("text", "", text, False),))
        for nth, text in ((4, "word " * 40), (5, "short"))
    ]
    long, short = _overview(asked).split("\n")[1:]
    assert (set(long.split()), short) == ({"[4]", "word", "[…]"}, "[5] short")
    assert len(long) <= len("[4] ") + recall_tool.LINE_CHARS


def test_an_unknown_provider_is_refused():
    with pytest.raises(InvalidInput, match="provider"):
        aether.recall_tool("nobody", "c")


def test_the_summary_points_to_the_tool_and_the_tool_gives_the_text_back(home):
    tool = aether.recall_tool("openai", "c", home=home)
    messages = talk()
    assert tool.run({}) == "Nothing was removed from this conversation."

    done = preflight("c", messages, window=8_000, tools=[tool.definition], home=home)

    sent = json.dumps(done.messages)
    assert "zanzibar" not in sent
    assert "messages in full: tool recall n=" in sent
    assert str(home) not in sent
    found = tool.run(json.dumps({"query": "zanzibar failure"}))
    assert found.startswith("[3] tool")
    assert "← run:" in found
    assert "zanzibar failed at 0x5f" in found
    assert (
        tool.run({"numbers": "3"}) == tool.run({"numbers": "n=3"}) == tool.run({"numbers": "n=3-3"}) == found
    )
    assert tool.run({"numbers": "[2]-[3]"}).startswith("[2] assistant\n→ run {}\n\n[3] tool")
    assert "Removed messages: " in tool.run({})

    undo_compaction("c", home=home)
    assert tool.run({}) == "Nothing was removed from this conversation."


def test_after_two_compactions_every_removed_message_is_found_and_no_summary(home):
    tool = aether.recall_tool("openai", "c", home=home)
    messages = talk()
    first = preflight("c", messages, window=8_000, home=home).messages
    preflight("c", [*first, *history(7, "openai", turns=20)], window=8_000, home=home)

    assert "zanzibar" in tool.run({"query": "zanzibar"})
    assert "COMPACT-SUMMARY" not in tool.run({"numbers": "1-999"})


def test_a_long_answer_is_read_on_and_a_wrong_call_is_answered_in_words(home, monkeypatch):
    tool = aether.recall_tool("openai", "c", home=home)
    preflight("c", talk(), window=8_000, home=home)
    whole = tool.run({"numbers": "3"})
    monkeypatch.setattr(recall_tool, "ANSWER_CHARS", 700)

    head = tool.run({"numbers": "3"})
    tail = tool.run({"numbers": "3", "start": 1400})

    assert head.endswith(f"(characters 0 to 700 of {len(whole)}; go on with start=700)")
    assert whole.endswith(tail)
    assert tool.run({"numbers": "all"}).startswith("Error: ")
    assert tool.run({"query": "nowhere-to-be-found"}).startswith(
        "No removed message matches. Removed messages: "
    )
