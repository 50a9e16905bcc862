"""The OpenAI Agents SDK, the real one, offline: what is sent is valid and fits, and the history stays whole."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

agents = pytest.importorskip("agents", reason="needs the package openai-agents")

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled  # noqa: E402
from agents.memory import Session  # noqa: E402
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

from aether.errors import BudgetExceeded  # noqa: E402
from aether.integrations.openai_agents import AetherSession, compaction_filter  # noqa: E402
from aether.messages import formats  # noqa: E402
from aether.messages.check import check  # noqa: E402
from aether.operations import conversing  # noqa: E402
from aether.store.conversation_log import load  # noqa: E402
from aether.tokens.counters import counter  # noqa: E402
from aether.tokens.messages import message_tokens, system_tokens  # noqa: E402

ROOT = Path(__file__).parents[2]
WINDOW = 4_000
# Starting anew at each call of a run, from the list that the runner keeps, would be about twenty of them.
MOST_OF_25 = 12
INSTRUCTIONS = "You look after the parser. Never edit src/lock.py."


@pytest.fixture(autouse=True)
def _no_tracing():
    set_tracing_disabled(True)


@function_tool
def read_file(path: str) -> str:
    return f"{path}: " + " ".join(f"line {nth} of {path} says what it does;" for nth in range(20))


@function_tool
def broken_tool(path: str) -> str:
    raise RuntimeError(f"{path} cannot be read")


TOOLS = [read_file, broken_tool]


def turns(count, *, first=0):
    """Return a script: each turn calls two tools at once, one of which fails at times, then answers."""
    steps = []
    for nth in range(first, first + count):
        other = "broken_tool" if nth % 4 == 0 else "read_file"
        steps.append(
            [
                function_call("read_file", {"path": f"src/m{nth}.py"}, call_id=f"a{nth}"),
                function_call(other, {"path": f"src/n{nth}.py"}, call_id=f"b{nth}"),
            ]
        )
        steps.append([assistant_message(f"m{nth} is fine; decided to keep version {nth}.")])
    return ScriptedModel(steps)


def agent_with(model):
    return Agent(name="tester", model=model, tools=TOOLS, instructions=INSTRUCTIONS)


async def play(agent, session, asked, **options):
    config = RunConfig(call_model_input_filter=compaction_filter(session, window=WINDOW, **options))
    for text in asked:
        await Runner.run(agent, text, session=session, run_config=config)


def require_fit(calls):
    """Every input that a model was sent is valid for the Responses API, bare, and within the window."""
    count = counter("estimate")
    for call in calls:
        messages = formats.read(call.input, "responses")
        assert [found for found in check(messages, "responses") if found.level == "error"] == []
        assert not any("meta" in item for item in call.input)
        assert (
            sum(message_tokens(one, count) for one in messages) + system_tokens(INSTRUCTIONS, count) <= WINDOW
        )


def test_it_is_a_session_of_the_sdk(home):
    assert isinstance(AetherSession("s", home=home), Session)


def test_a_long_session_compacts_again_and_again_and_stays_whole(home):
    session = AetherSession("user:42/α", home=home)
    model = turns(30)

    asyncio.run(play(agent_with(model), session, [f"Look at module {nth}." for nth in range(30)]))

    model.assert_complete()
    require_fit(model.calls)
    log = load(home, "user:42/α")
    assert len(log.compactions) >= 10
    history = conversing.whole("user:42/α", home=home)
    assert [item["content"] for item in history if item.get("role") == "user"] == [
        f"Look at module {nth}." for nth in range(30)
    ]
    assert len([item for item in history if item.get("type") == "function_call"]) == 60
    assert len([item for item in history if item.get("type") == "function_call_output"]) == 60
    assert len(history) == 30 * 6
    assert asyncio.run(session.get_history()) == history


def test_the_opening_request_and_one_summary_are_in_every_later_input(home):
    session = AetherSession("s", home=home)
    model = turns(12)

    asyncio.run(play(agent_with(model), session, ["The goal is a faster parser.", *["Go on."] * 11]))

    last = model.calls[-1].input
    assert last[0] == {"role": "user", "content": "The goal is a faster parser."}
    assert sum("<COMPACT-SUMMARY" in json.dumps(item) for item in last) == 1


def test_one_turn_of_many_calls_compacts_within_the_run(home):
    """The runner keeps its own list of a run, which begins with what was compacted before."""
    session = AetherSession("s", home=home)
    steps = [[function_call("read_file", {"path": f"src/m{nth}.py"}, call_id=f"c{nth}")] for nth in range(25)]
    model = ScriptedModel([*steps, [assistant_message("done")]])

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session, window=WINDOW))
        await Runner.run(agent_with(model), "Read it all.", session=session, run_config=config, max_turns=40)

    asyncio.run(run())

    require_fit(model.calls)
    assert 3 <= len(load(home, "s").compactions) <= MOST_OF_25
    assert len(conversing.whole("s", home=home)) == 52


def test_without_a_session_the_filter_goes_on_from_what_it_compacted(home):
    steps = [[function_call("read_file", {"path": f"src/m{nth}.py"}, call_id=f"c{nth}")] for nth in range(25)]
    model = ScriptedModel([*steps, [assistant_message("done")]])

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter("s", window=WINDOW, home=home))
        await Runner.run(agent_with(model), "Read it all.", run_config=config, max_turns=40)

    asyncio.run(run())

    require_fit(model.calls)
    assert 3 <= len(load(home, "s").compactions) <= MOST_OF_25
    calls = [
        item["call_id"] for item in conversing.whole("s", home=home) if item.get("type") == "function_call"
    ]
    assert len(calls) == len(set(calls))


def test_what_a_killed_run_left_open_is_kept_and_never_sent(home):
    session = AetherSession("s", home=home)
    call = {"type": "function_call", "call_id": "lost", "name": "read_file", "arguments": "{}"}
    stray = {"type": "function_call_output", "call_id": "nobody", "output": "stray"}
    model = turns(8)

    async def run():
        await session.add_items([{"role": "user", "content": "Begin."}, call, stray])
        await play(agent_with(model), session, ["Go on."] * 8)

    asyncio.run(run())

    require_fit(model.calls)
    assert not any(item.get("call_id") in ("lost", "nobody") for sent in model.calls for item in sent.input)
    history = conversing.whole("s", home=home)
    assert history[1:3] == [call, stray]
    assert [item["content"] for item in history if item.get("role") == "user"] == ["Begin.", *["Go on."] * 8]


def test_a_run_that_is_killed_goes_on_in_another_process(home):
    program = f"""
import asyncio, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.integrations.test_openai_agents import *
model = turns(20)
count = [0]
@function_tool
def read_file(path: str) -> str:
    count[0] += 1
    if count[0] == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    return path + " is long " * 200
agent = Agent(name="tester", model=model, tools=[read_file, broken_tool], instructions=INSTRUCTIONS)
set_tracing_disabled(True)
asyncio.run(play(agent, AetherSession("s", home={str(home)!r}), ["Go on."] * 20))
"""
    killed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, cwd=ROOT, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    before = conversing.whole("s", home=home)

    model = turns(10, first=100)
    asyncio.run(play(agent_with(model), AetherSession("s", home=home), ["Resume."] * 10))

    require_fit(model.calls)
    assert conversing.whole("s", home=home)[: len(before)] == before
    assert model.calls[0].input[0] == {"role": "user", "content": "Go on."}


def test_what_cannot_fit_ends_the_run_and_is_not_sent(home):
    session = AetherSession("s", home=home)
    model = turns(1)
    with pytest.raises(BudgetExceeded):
        asyncio.run(play(agent_with(model), session, ["word " * 9_000]))

    assert model.calls == ()


def test_items_are_taken_back_and_begun_anew(home):
    async def run():
        session = AetherSession("s", home=home)
        await session.add_items([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        popped = await session.pop_item()
        left = await session.get_items()
        await session.clear_session()
        return (
            popped,
            left,
            await session.get_items(),
            await session.pop_item(),
            len(await session.get_history()),
        )

    popped, left, cleared, nothing, whole = asyncio.run(run())

    assert popped == {"role": "assistant", "content": "b"}
    assert left == [{"role": "user", "content": "a"}]
    assert (cleared, nothing, whole) == ([], None, 2)


@pytest.mark.parametrize(("limit", "kept"), [(0, []), (1, ["d"]), (3, ["c", "d"]), (9, ["a", "c", "d"])])
def test_the_newest_items_are_given_without_halves_of_pairs(limit, kept, home):
    call = {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "x", "output": "1"}
    said = [{"role": "user", "content": text} for text in "acd"]

    async def run():
        session = AetherSession("s", home=home)
        await session.add_items([said[0], call, answer, said[1], said[2]])
        return await session.get_items(limit)

    found = asyncio.run(run())

    assert [item["content"] for item in found if "content" in item] == kept
    assert len(found) == len(kept) + (2 if limit > 3 else 0)


def test_the_limit_of_the_session_settings_holds(home):
    async def run():
        session = AetherSession("s", home=home, session_settings=agents.SessionSettings(limit=1))
        await session.add_items([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
        return await session.get_items()

    assert asyncio.run(run()) == [{"role": "user", "content": "b"}]


def test_the_window_is_the_models_own_where_none_is_given(home):
    """A model without a name has the smallest window that is known."""
    session = AetherSession("s", home=home)
    model = turns(12)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session))
        for _ in range(12):
            await Runner.run(agent_with(model), "Go on.", session=session, run_config=config)

    asyncio.run(run())

    assert load(home, "s").compactions
    assert load(home, "s").compactions[0].receipt["effective"]["window"] == 8_192


def test_sessions_of_many_writers_lose_nothing(home):
    async def write(nth):
        for at in range(10):
            await AetherSession("s", home=home).add_items([{"role": "user", "content": f"{nth}.{at}"}])

    async def run():
        await asyncio.gather(*(write(nth) for nth in range(8)))
        return await AetherSession("s", home=home).get_items()

    found = [item["content"] for item in asyncio.run(run())]

    assert sorted(found) == sorted(f"{nth}.{at}" for nth in range(8) for at in range(10))


def test_another_session_than_ours_is_filtered_too(home):
    session = SQLiteSession("s")
    model = turns(10)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter("s", window=WINDOW, home=home))
        for nth in range(10):
            await Runner.run(agent_with(model), f"Ask {nth}.", session=session, run_config=config)

    asyncio.run(run())
    session.close()

    require_fit(model.calls)
