"""The case: what one call costs in counting, and by whom it is counted."""

from __future__ import annotations

from aether.api import compact
from aether.api.compact import DEFAULT_OPTIONS, KEPT_TALLIES, Options, resolve_case
from tests.laws.histories import history


def of(conversation_id, raws, home, **given):
    settings = {
        "model": None, "window": 9_000, "policy": "compact", "system": None, "tools": None, "wire": None, "note": "",
        "options": DEFAULT_OPTIONS, **given,
    }  # fmt: skip
    return resolve_case(conversation_id, raws, home=home, **settings)


def test_a_conversation_that_grew_by_one_message_costs_that_message(home):
    counted = []

    def counter(text):
        counted.append(text)
        return len(text)

    options = Options(counter=counter)
    messages = history(1, "openai", turns=30)
    of("grows", messages, home, options=options)
    counted.clear()

    of("grows", [*messages, {"role": "user", "content": "One more."}], home, options=options)

    assert "One more." in counted
    assert len(counted) <= 3


def test_what_is_sent_beside_the_messages_is_counted(home):
    messages = history(1, "openai", turns=2)
    tools = [{"type": "function", "function": {"name": "look", "description": "Looks. " * 50}}]

    bare = of("a", messages, home).budget
    full = of("b", messages, home, system="Be kind. " * 50, tools=tools).budget

    assert full.messages == bare.messages
    assert full.system > 50
    assert full.tools > 50


def test_counts_of_old_conversations_are_forgotten(home):
    for nth in range(KEPT_TALLIES + 3):
        of(f"c{nth}", [{"role": "user", "content": "Hello."}], home)

    assert len(compact._TALLIES) <= KEPT_TALLIES
