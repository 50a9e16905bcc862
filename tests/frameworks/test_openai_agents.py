"""The OpenAI Agents SDK, the real one, offline: what is sent is valid and fits, and the history stays whole."""

from __future__ import annotations

import asyncio
import builtins
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

agents = pytest.importorskip("agents", reason="needs the package openai-agents")

from agents import (  # noqa: E402
    Agent,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import Session  # noqa: E402
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

from aether.api import compact, conversations, tokens  # noqa: E402
from aether.errors import BackendUnavailable, BudgetExceeded, Conflict  # noqa: E402
from aether.frameworks.openai_agents import (  # noqa: E402
    AS_SENT,
    AetherSession,
    compaction_filter,
    usage_hooks,
)
from aether.messages import convert  # noqa: E402
from aether.messages.validate import check  # noqa: E402
from aether.store.conversations import load  # noqa: E402
from aether.tokens.count import message_tokens, system_tokens  # noqa: E402
from aether.tokens.counters import counter  # noqa: E402

pytestmark = pytest.mark.extras

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
        messages = convert.read(call.input, "responses")
        assert [found for found in check(messages, "responses") if found.level == "error"] == []
        assert not any("meta" in item for item in call.input)
        assert (
            sum(message_tokens(one, count) for one in messages) + system_tokens(INSTRUCTIONS, count) <= WINDOW
        )


def test_it_is_a_session_of_the_sdk(home):
    assert isinstance(AetherSession("s", home=home), Session)


@pytest.mark.slow
def test_a_long_session_compacts_again_and_again_and_stays_whole(home):
    session = AetherSession("user:42/α", home=home)
    model = turns(30)

    asyncio.run(play(agent_with(model), session, [f"Look at module {nth}." for nth in range(30)]))

    model.assert_complete()
    require_fit(model.calls)
    log = load(home, "user:42/α")
    assert len(log.compactions) >= 10
    history = conversations.full_history("user:42/α", home=home)
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
    assert len(conversations.full_history("s", home=home)) == 52


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
        item["call_id"]
        for item in conversations.full_history("s", home=home)
        if item.get("type") == "function_call"
    ]
    assert len(calls) == len(set(calls))


def test_open_calls_of_a_killed_run_are_kept_and_never_sent(home):
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
    history = conversations.full_history("s", home=home)
    assert history[1:3] == [call, stray]
    assert [item["content"] for item in history if item.get("role") == "user"] == ["Begin.", *["Go on."] * 8]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_in_another_process(home):
    program = f"""
import asyncio, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.frameworks.test_openai_agents import *
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
    before = conversations.full_history("s", home=home)

    model = turns(10, first=100)
    asyncio.run(play(agent_with(model), AetherSession("s", home=home), ["Resume."] * 10))

    require_fit(model.calls)
    assert conversations.full_history("s", home=home)[: len(before)] == before
    assert model.calls[0].input[0] == {"role": "user", "content": "Go on."}


def test_items_that_cannot_fit_end_the_run_and_are_not_sent(home):
    session = AetherSession("s", home=home)
    model = turns(1)
    with pytest.raises(BudgetExceeded):
        asyncio.run(play(agent_with(model), session, ["word " * 9_000]))

    assert model.calls == ()


def test_items_can_be_popped_and_cleared(home):
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


def test_session_settings_are_those_of_the_sdk(home):
    assert AetherSession("s", home=home).session_settings == agents.SessionSettings()
    assert AetherSession(
        "s", home=home, session_settings={"limit": 2}
    ).session_settings == agents.SessionSettings(limit=2)
    for kind in (AetherSession, SQLiteSession):
        with pytest.raises(TypeError, match="Unknown session settings: most"):
            kind("s", session_settings={"limit": 2, "most": 3})
        with pytest.raises(TypeError):
            kind("s", session_settings=7)


def said(text):
    return {"role": "user", "content": text}


STEPS = {
    "limits": [("add_items", [said(text) for text in "abcde"]), *(("get_items", limit) for limit in (None, 0, 1, 3, 5, 9, -1, -7))],
    "an empty one": [("get_items",), ("pop_item",), ("clear_session",), ("add_items", []), ("get_items", 3)],
    "popping": [("add_items", [said("a"), said("b")]), ("pop_item",), ("add_items", [said("c")]), ("get_items",),
                ("pop_item",), ("pop_item",), ("pop_item",), ("get_items",)],
    "clearing": [("add_items", [said("a")]), ("clear_session",), ("pop_item",), ("add_items", [said("b")]), ("get_items",),
                 ("clear_session",), ("clear_session",), ("get_items", 2)],
    "equal items": [("add_items", [said("a"), said("a")]), ("add_items", [said("a")]), ("pop_item",), ("get_items",)],
    "odd texts": [("add_items", [said("O'Neil; DROP TABLE x;-- 東京 🐜 \x00\u2028")]), ("get_items",)],
}  # fmt: skip


@pytest.mark.parametrize("settings", [None, {"limit": 2}, {"limit": 0}, {"limit": None}], ids=str)
def test_a_session_answers_as_the_sdks_own_does(settings, home):
    async def answers(session, steps):
        return [await getattr(session, name)(*arguments) for name, *arguments in steps]

    for name, steps in STEPS.items():
        own = AetherSession(name, home=home, session_settings=settings)
        theirs = SQLiteSession(name, session_settings=settings)
        assert asyncio.run(answers(own, steps)) == asyncio.run(answers(theirs, steps)), name


def test_items_added_and_popped_at_once_are_each_stored_and_popped_once(home):
    async def run(session):
        await asyncio.gather(
            *(session.add_items([said(f"{n}-{part}") for part in range(3)]) for n in range(12))
        )
        stored = [item["content"] for item in await session.get_items()]
        popped = await asyncio.gather(*(session.pop_item() for _ in range(40)))
        return stored, [item["content"] for item in popped if item], await session.get_items()

    for session in (AetherSession("s", home=home), SQLiteSession("s")):
        stored, popped, left = asyncio.run(run(session))
        assert (
            sorted(stored) == sorted(popped) == sorted(f"{n}-{part}" for n in range(12) for part in range(3))
        )
        # The items of one call stay together.
        assert all(len({text.split("-")[0] for text in stored[at : at + 3]}) == 1 for at in range(0, 36, 3))
        assert left == []


def test_the_window_is_the_models_own_by_default(home):
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


def named(item):
    """Return what tells an item from every other one of these tests."""
    if "call_id" in item:
        return item["type"], item["call_id"]
    content = item["content"]
    return item["role"], content if isinstance(content, str) else content[0]["text"]


def require_each_once(home, count):
    """Everything that was said is in the history once, and nothing is live twice."""
    whole = Counter(map(named, conversations.full_history("s", home=home)))
    assert [one for one, times in whole.items() if times > 1] == []
    assert len(whole) == count
    live = Counter(map(named, conversations.context("s", home=home)))
    assert [one for one, times in live.items() if times > 1] == []


async def ask(agent, text, session, config, *, streamed=False):
    if not streamed:
        await Runner.run(agent, text, session=session, run_config=config, max_turns=40)
        return
    run = Runner.run_streamed(agent, text, session=session, run_config=config, max_turns=40)
    async for _ in run.stream_events():
        pass


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_however_a_run_goes_each_item_is_kept_once(streamed, home):
    """A streamed run stores what the user says only after the model has begun to answer."""
    session, model = AetherSession("s", home=home), turns(12)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session, window=WINDOW))
        for nth in range(12):
            await ask(agent_with(model), f"Look at {nth}.", session, config, streamed=streamed)

    asyncio.run(run())

    require_fit(model.calls)
    require_each_once(home, 12 * 6)
    assert len(load(home, "s").compactions) >= 3
    assert len(conversations.context("s", home=home)) < 40


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_a_hand_off_keeps_each_item_once(nested, home):
    session, sent = AetherSession("s", home=home), []

    async def run():
        config = RunConfig(
            call_model_input_filter=compaction_filter(session, window=WINDOW), nest_handoff_history=nested
        )
        for nth in range(8):
            second = turns(1, first=100 + nth)
            other = Agent(name="second", model=second, tools=TOOLS, instructions=INSTRUCTIONS)
            first = ScriptedModel(
                [
                    [function_call("read_file", {"path": "x"}, call_id=f"h{nth}")],
                    [function_call("transfer_to_second", {}, call_id=f"t{nth}")],
                ]
            )
            agent = Agent(name="first", model=first, tools=TOOLS, instructions=INSTRUCTIONS, handoffs=[other])
            await ask(agent, f"Ask {nth}.", session, config)
            sent.extend([*first.calls, *second.calls])

    asyncio.run(run())

    require_fit(sent)
    require_each_once(home, 8 * 10)
    assert load(home, "s").compactions


@pytest.mark.parametrize(
    "given",
    [
        {"session_input_callback": lambda history, new: [*history[-12:], *new]},
        {"session_input_callback": lambda history, new: [{"role": "user", "content": "Today."}, *history, *new]},
        {"session_settings": agents.SessionSettings(limit=13)},
    ],
    ids=["the newest", "more than the session holds", "a limit"],
)  # fmt: skip
def test_input_that_differs_from_the_session_is_compacted_beside_it(given, home):
    session, model = AetherSession("s", home=home), turns(12)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session, window=2_000), **given)
        for nth in range(12):
            await ask(agent_with(model), f"Look at {nth}.", session, config)

    asyncio.run(run())

    require_fit(model.calls)
    history = [item for item in conversations.full_history("s", home=home) if item.get("content") != "Today."]
    assert len(history) == len({named(item) for item in history}) == 12 * 6
    assert load(home, "s" + AS_SENT).compactions


@pytest.mark.slow
def test_runs_at_once_lose_nothing_and_keep_nothing_twice(home):
    async def run():
        models = [turns(6, first=100 * nth) for nth in range(3)]
        await asyncio.gather(
            *(
                play(agent_with(model), AetherSession("s", home=home), [f"{nth}.{at}" for at in range(6)])
                for nth, model in enumerate(models)
            )
        )
        return [call for model in models for call in model.calls]

    require_fit(asyncio.run(run()))
    require_each_once(home, 3 * 6 * 6)


def test_a_run_that_is_always_overtaken_is_recorded_by_itself(home, monkeypatch):
    real, names = compact.preflight, []

    def preflight(name, *arguments, **given):
        names.append(name)
        if name in ("s", "s" + AS_SENT):
            raise Conflict("it was changed.", fix="Read it again.", where=name)
        return real(name, *arguments, **given)

    monkeypatch.setattr(compact, "preflight", preflight)
    session, model = AetherSession("s", home=home), turns(1)
    asyncio.run(session.add_items([{"role": "user", "content": "Begin."}]))

    asyncio.run(play(agent_with(model), session, ["Go on."]))

    model.assert_complete()
    assert names[:2] == ["s", "s" + AS_SENT]
    assert names[2].startswith("s" + AS_SENT + " run_")


def test_an_item_that_is_popped_in_a_run_is_sent_once_more(home):
    """The runner takes items back before it tries again."""
    session, model = AetherSession("s", home=home), turns(10)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session, window=WINDOW))
        for nth in range(10):
            await session.add_items([{"role": "user", "content": "lost"}])
            assert await session.pop_item() == {"role": "user", "content": "lost"}
            await ask(agent_with(model), f"Look at {nth}.", session, config)

    asyncio.run(run())

    require_fit(model.calls)
    assert "lost" not in str(model.calls)
    assert sum("content" in item for item in conversations.full_history("s", home=home)) == 10 * 3


def test_the_usage_of_a_provider_corrects_the_next_count(home):
    session = AetherSession("s", home=home)
    model = ScriptedModel(
        [[assistant_message(f"Answer {nth}.")] for nth in range(4)],
        default_usage=Usage(requests=1, input_tokens=1_500, output_tokens=1, total_tokens=1_501),
    )

    async def run():
        config = RunConfig(
            call_model_input_filter=compaction_filter(session, model="some-model", window=9_000)
        )
        for nth in range(4):
            await Runner.run(
                agent_with(model), "word " * 250 + str(nth), session=session, run_config=config, hooks=usage_hooks(session)
            )  # fmt: skip

    asyncio.run(run())

    (listed,) = tokens.models("some-model", home=home)
    assert listed.reports == 4
    assert listed.factor != 1.0


def test_a_report_is_about_what_was_sent_beside_the_session_too(home):
    session = AetherSession("s", home=home)
    usage_of_each = Usage(requests=1, input_tokens=900, output_tokens=1, total_tokens=901)
    model = ScriptedModel([[assistant_message("Fine.")]] * 3, default_usage=usage_of_each)

    async def run():
        config = RunConfig(
            call_model_input_filter=compaction_filter(session, model="some-model"),
            session_input_callback=lambda _, new: new,
        )
        for _ in range(3):
            await Runner.run(
                agent_with(model), "word " * 400, session=session, run_config=config, hooks=usage_hooks(session)
            )  # fmt: skip

    asyncio.run(run())

    assert tokens.models("some-model", home=home)[0].reports == 3


def test_a_report_is_about_what_was_sent_without_a_session_too(home):
    model = ScriptedModel(
        [[assistant_message("Fine.")]],
        default_usage=Usage(requests=1, input_tokens=900, output_tokens=1, total_tokens=901),
    )

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter("s", model="some-model", home=home))
        await Runner.run(
            agent_with(model), "word " * 400, run_config=config, hooks=usage_hooks("s", home=home)
        )

    asyncio.run(run())

    assert tokens.models("some-model", home=home)[0].reports == 1


def test_without_a_home_a_report_is_of_no_use_and_harms_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session, model = AetherSession("s"), turns(1)

    async def run():
        config = RunConfig(call_model_input_filter=compaction_filter(session, model="some-model"))
        await Runner.run(
            agent_with(model), "Go.", session=session, run_config=config, hooks=usage_hooks(session)
        )

    asyncio.run(run())

    assert not list(tmp_path.rglob("usage.json"))
    assert len(conversations.full_history("s")) == 6


def test_without_the_sdk_the_fix_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "agents":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BackendUnavailable, match=r"\.\[agents\]"):
        usage_hooks("s")
