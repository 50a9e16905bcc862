"""The LangChain middleware, with the real package and a scripted model: what is sent is valid and fits."""

from __future__ import annotations

import asyncio
import builtins
import json
from itertools import pairwise

import pytest

pytest.importorskip("langchain", reason="needs the package langchain")

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

from aether.api import conversations, tokens
from aether.errors import BackendUnavailable, BudgetExceeded
from aether.frameworks.langchain import compaction_middleware
from aether.messages import convert
from aether.messages.validate import check
from aether.store.conversations import load
from aether.tokens.count import message_tokens
from aether.tokens.counters import counter

pytestmark = pytest.mark.extras

WINDOW = 6_000
LITTLE = 4_500


class Scripted(BaseChatModel):
    """A model that calls two tools at once, then answers, again and again; it keeps what it was sent."""

    sent: list = []  # noqa: RUF012 - a field of a pydantic model
    made: int = 0
    model_name: str = ""
    costs: float = 0

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        self.sent.append(list(messages))
        self.made += 1
        nth = self.made
        if isinstance(messages[-1], ToolMessage):
            said = AIMessage(f"Part {nth} is fine.", id=f"ai{nth}")
        else:
            calls = [{"name": "read", "args": {"part": nth}, "id": f"{side}{nth}"} for side in "ab"]
            said = AIMessage("", tool_calls=calls, id=f"ai{nth}")
        if self.costs:
            tokens = round(self.costs * estimated(messages))
            said.usage_metadata = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
        return ChatResult(generations=[ChatGeneration(message=said)])


def estimated(sent):
    count = counter("estimate")
    return sum(message_tokens(one, count) for one in convert.read(convert_to_openai_messages(sent), "openai"))


@tool
def read(part: int) -> str:
    """Read a part."""
    if part % 5 == 0:
        raise ToolException(f"part {part} is locked")
    return f"part {part} says: " + "it takes a lock and gives it back; " * 25


read.handle_tool_error = True


def agent_with(model, home, *names, **given):
    middleware = compaction_middleware(*names, **{"window": WINDOW, "home": home, **given})
    return create_agent(
        model, [read], system_prompt="You are kind.", middleware=[middleware], checkpointer=InMemorySaver()
    )


def ask(agent, text, thread="t"):
    message = HumanMessage(text, additional_kwargs={"kept": True})
    return agent.invoke({"messages": [message]}, {"configurable": {"thread_id": thread}})


def require_fit(model, window=WINDOW):
    for sent in model.sent:
        messages = convert.read(convert_to_openai_messages(sent), "openai")
        assert [found for found in check(messages, "openai") if found.level == "error"] == []
        assert estimated(sent) <= window


@pytest.mark.slow
def test_a_long_thread_fits_and_the_state_stays_whole(home):
    model = Scripted()
    agent = agent_with(model, home, window=LITTLE)
    for nth in range(45):
        state = ask(agent, f"Look at part {nth}.")

    require_fit(model, LITTLE)
    assert len(state["messages"]) == 45 * 5
    assert sum(message.content.endswith("is locked") for message in state["messages"]) >= 10
    assert 10 <= len(load(home, "t").compactions) < 30
    assert sum("<COMPACT-SUMMARY" in str(message.content) for message in model.sent[-1]) == 1
    assert model.sent[-1][1].content == "Look at part 0."


def test_kept_messages_are_those_of_the_state(home):
    model = Scripted()
    agent = agent_with(model, home)
    for nth in range(20):
        state = ask(agent, f"Look at part {nth}.")

    own = {id(message) for message in state["messages"]}
    kept = [message for message in model.sent[-1] if id(message) in own]

    assert len(kept) > 5
    assert kept[0].additional_kwargs == {"kept": True}
    places = [[id(one) for one in state["messages"]].index(id(message)) for message in kept]
    assert all(one < two for one, two in pairwise(places))


@pytest.mark.slow
def test_another_process_continues_from_the_compacted_context(home):
    """What was compacted is recorded: nothing is summarised twice because the agent was started anew."""
    model = Scripted()
    agent = agent_with(model, home)
    for nth in range(20):
        state = ask(agent, f"Look at part {nth}.")
    before = len(load(home, "t").compactions)

    reopened = Scripted()
    again = agent_with(reopened, home)
    again.invoke(
        {"messages": [*state["messages"], HumanMessage("Go on.")]}, {"configurable": {"thread_id": "t"}}
    )

    after = len(load(home, "t").compactions)
    assert after - before <= 2
    assert f"<COMPACT-SUMMARY v{after}>" in str(reopened.sent[-1])
    calls = [
        call["id"] for raw in conversations.full_history("t", home=home) for call in raw.get("tool_calls", ())
    ]
    assert len(calls) == len(set(calls))


def test_threads_are_conversations_and_a_name_overrides(home):
    agent = agent_with(Scripted(), home)
    for thread in ("one", "two"):
        for nth in range(12):
            ask(agent, f"Look at part {nth}.", thread)
    named = agent_with(Scripted(), home, "mine")
    for nth in range(12):
        ask(named, f"Look at part {nth}.", "three")

    assert conversations.conversation_ids(home=home) == ["mine", "one", "two"]


def test_without_a_thread_there_is_a_default(home):
    middleware = compaction_middleware(window=WINDOW, home=home)
    model = Scripted()
    agent = create_agent(model, [read], middleware=[middleware])
    history = [HumanMessage("word " * 40) if nth % 2 == 0 else AIMessage("word " * 60) for nth in range(120)]

    agent.invoke({"messages": [*history, HumanMessage("Go.")]})

    require_fit(model)
    assert conversations.conversation_ids(home=home) == ["default"]


def test_it_works_in_an_event_loop_too(home):
    model = Scripted()
    agent = agent_with(model, home)

    async def run():
        for nth in range(15):
            await agent.ainvoke(
                {"messages": [HumanMessage(f"Part {nth}?")]}, {"configurable": {"thread_id": "t"}}
            )

    asyncio.run(run())

    require_fit(model)
    assert load(home, "t").compactions


def test_protected_messages_are_those_whose_meta_says_so(home):
    model = Scripted()
    agent = agent_with(model, home)
    law = HumanMessage("Never touch the lock.", additional_kwargs={"meta": {"protected": True}})
    config = {"configurable": {"thread_id": "t"}}
    for nth in range(20):
        agent.invoke({"messages": [law] if nth == 3 else [HumanMessage(f"Part {nth}?")]}, config)

    assert "Never touch the lock." in [message.content for message in model.sent[-1]]
    assert "meta" not in json.dumps(convert_to_openai_messages(model.sent[-1]))


def results(nth):
    """Return a turn as Anthropic's models are told of it: results of tools are part of the user's message."""
    call = {"name": "read", "args": {"part": nth}, "id": f"x{nth}"}
    block = {"type": "tool_result", "tool_use_id": f"x{nth}", "content": f"part {nth} says " + "much " * 60}
    return [
        HumanMessage(f"Look at part {nth}."),
        AIMessage("", tool_calls=[call]),
        HumanMessage([block, {"type": "text", "text": f"And what of {nth}?"}]),
        AIMessage("Fine."),
    ]


@pytest.mark.parametrize("count", [3, 40])
def test_a_message_of_the_user_that_holds_results_of_tools_is_one_message(count, home):
    model = Scripted()
    history = [message for nth in range(count) for message in results(nth)]

    agent_with(model, home).invoke(
        {"messages": [*history, HumanMessage("Go on.")]}, {"configurable": {"thread_id": "t"}}
    )

    sent = model.sent[0][1:]
    own = {id(message) for message in history}
    assert len(load(home, "t").compactions) == (count == 40)
    assert [message for message in sent if isinstance(message.content, list) and id(message) not in own] == []
    assert estimated(sent) <= WINDOW
    if count == 3:
        assert all(one is two for one, two in zip(sent, history, strict=False))
    opened = [call["id"] for message in sent for call in getattr(message, "tool_calls", ())]
    answered = [
        block["tool_use_id"]
        for message in sent
        if isinstance(message.content, list)
        for block in message.content[:1]
    ]
    answered += [message.tool_call_id for message in sent if isinstance(message, ToolMessage)]
    assert sorted(opened) == sorted(answered)


def test_the_usage_of_the_provider_corrects_the_next_count(home):
    model = Scripted(model_name="some-model", costs=1.5)
    agent = agent_with(model, home)
    for nth in range(4):
        ask(agent, f"Look at part {nth}.")

    (listed,) = tokens.models("some-model", home=home)
    assert listed.reports >= 3
    assert (
        1.3 < listed.factor < 1.55
    )  # the schema of the tool, which this model does not charge for, is counted


def test_without_a_home_a_report_is_of_no_use_and_harms_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = agent_with(Scripted(model_name="some-model", costs=1.5), None)

    asyncio.run(
        agent.ainvoke({"messages": [HumanMessage("word " * 300)]}, {"configurable": {"thread_id": "t"}})
    )

    assert list(tmp_path.iterdir()) == []


def test_halves_of_pairs_are_never_sent(home):
    model = Scripted()
    agent = agent_with(model, home)
    stray = [
        HumanMessage("Begin."),
        AIMessage("", tool_calls=[{"name": "read", "args": {}, "id": "lost"}]),
        HumanMessage("Go on."),
        ToolMessage("stray", tool_call_id="nobody"),
        HumanMessage("And on."),
    ]

    agent.invoke({"messages": stray}, {"configurable": {"thread_id": "t"}})

    require_fit(model)
    assert "lost" not in str(model.sent[0])
    assert "nobody" not in str(model.sent[0])


def test_a_call_whose_arguments_are_no_json_keeps_its_answer(home):
    def cut(name):
        return {"name": "read", "args": '{"cut', "id": name, "error": "e", "type": "invalid_tool_call"}

    model = Scripted()
    history = [
        HumanMessage("Begin."),
        AIMessage("", invalid_tool_calls=[cut("i1")], tool_calls=[{"name": "read", "args": {}, "id": "t1"}]),
        ToolMessage("Your JSON was cut.", tool_call_id="i1"),
        ToolMessage("ok", tool_call_id="t1"),
        AIMessage("I stop.", invalid_tool_calls=[cut("unanswered")]),
        HumanMessage("Go on."),
    ]

    agent_with(model, home).invoke({"messages": history}, {"configurable": {"thread_id": "t"}})

    sent = model.sent[0]
    calls = [call["id"] for message in sent for call in getattr(message, "invalid_tool_calls", ())]
    answers = [message.tool_call_id for message in sent if isinstance(message, ToolMessage)]
    assert answers[:2] == ["i1", "t1"]
    assert set(calls) <= set(answers)  # newer versions of LangChain answer the last one themselves
    assert "I stop." in str(sent)


def test_messages_that_cannot_fit_are_not_sent(home):
    model = Scripted()

    with pytest.raises(BudgetExceeded):
        ask(agent_with(model, home), "word " * 20_000)

    assert model.sent == []


def test_a_window_is_the_models_own_by_default(home):
    middleware = compaction_middleware(home=home)
    agent = create_agent(Scripted(), [read], middleware=[middleware], checkpointer=InMemorySaver())
    for nth in range(25):
        ask(agent, f"Look at part {nth}.")

    assert load(home, "t").compactions[0].receipt["effective"]["window"] == 8_192


def test_without_langchain_the_fix_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("langchain"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BackendUnavailable, match=r"\.\[langchain\]"):
        compaction_middleware()
