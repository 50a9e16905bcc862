"""A scripted agent talks and calls tools for a thousand turns in small windows: no error, and a turn costs what it cost."""

from __future__ import annotations

from random import Random

import pytest

import aether
from aether.api import context_steps
from aether.api.conversations import full_history
from tests import effort
from tests.conversation.conftest import home  # noqa: F401 - a fixture
from tests.laws.histories import WORDS

ID = "soak"
# There a thousand turns take a minute; in larger windows several, so that fewer are made unless all are asked for.
SMALLEST = 2_048


def turn(random, at):
    """Yield a request, a call with its result now and then, and an answer."""
    yield {"role": "user", "content": f"Request {at}: {words(random, 30)}"}
    if random.random() < 0.6:
        call = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "part{at}.py"}}'},
        }
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {
            "role": "tool",
            "tool_call_id": f"c{at}",
            "content": words(random, random.choice((20, 200, 900))),
        }
    yield {"role": "assistant", "content": f"Done with {at}. We decided {words(random, 40)}."}


def words(random, number):
    return " ".join(random.choice(WORDS) for _ in range(number))


def drive(home, window, turns, monkeypatch):  # noqa: F811 - the fixture
    random, counted, work = Random(window), [0], []
    real = context_steps.message_tokens

    def counting(message, count):
        counted[0] += 1
        return real(message, count)

    monkeypatch.setattr(context_steps, "message_tokens", counting)
    aether.open_context(ID, window=window, system="Be careful.", home=home)
    said = 0
    for at in range(turns):
        before = counted[0]
        for message in turn(random, at):
            aether.add_message(ID, message, home=home)
            said += 1
            prompt = aether.build_prompt(ID, home=home)
            assert prompt.tokens <= prompt.limit
        work.append(counted[0] - before)
    assert len(full_history(ID, home=home)) == said
    assert len(context_steps._READINGS[next(iter(context_steps._READINGS))].messages) < 400
    fifth = turns // 5
    assert sum(work[-fifth:]) <= 1.5 * sum(work[fifth : 2 * fifth]) + 20


@pytest.mark.parametrize("window", [SMALLEST, 8_192])
def test_twelve_turns_go_on(window, home, monkeypatch):  # noqa: F811 - the fixture
    drive(home, window, 12, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("window", [SMALLEST, 8_192, 32_768])
def test_hundreds_of_turns_go_on(window, home, monkeypatch):  # noqa: F811 - the fixture
    drive(home, window, 1_000 if window == SMALLEST or effort.FULL_TRIALS else 300, monkeypatch)
