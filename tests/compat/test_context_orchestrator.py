"""The context orchestrator: the names of the original, each one call; and the same as coroutines."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import aether
from aether.compat.context_orchestrator import AsyncContextOrchestrator, ContextOrchestrator
from aether.errors import InvalidInput, NotFound


@pytest.fixture
def talk(home):
    made = ContextOrchestrator("talk", window=4096, system="Be brief.", home=home)
    for nth in range(30):
        role = ("user", "assistant")[nth % 2]
        made.add_message(
            {"role": role, "content": f"Module {nth} reads port {8000 + nth}, and it must stay so. " * 3}
        )
    return made


def test_messages_prompt_and_state(talk):
    prompt = talk.build_prompt()

    assert prompt.system.startswith("Be brief.")
    assert prompt.tokens <= prompt.limit
    assert talk.validate_and_build_prompt() == prompt
    assert talk.validate().valid
    assert talk.get_token_count() + talk.get_available_tokens() == talk.get_state().limit
    assert 0 < talk.get_usage() < 1
    assert len(talk.get_messages()) == len(talk.get_history()) == 30


def test_compression_checkpoints_and_recall(talk):
    seen = []
    done = talk.compress(progress=lambda stage, percent, message: seen.append(percent))

    assert done.success
    assert seen == sorted(seen)
    assert [one.id for one in talk.get_checkpoints()] == [done.checkpoint.id]
    assert "Module 0 reads port 8000" in talk.recall_history("module 0 port")
    assert not talk.suggest_actions() or talk.suggest_actions()[0].priority >= 1
    assert talk.age_checkpoints().tokens_after <= done.tokens_after
    assert 0 < talk.get_reliability().value < 1


def test_snapshots_restore_the_same_bytes(talk):
    before = talk.get_messages()
    taken = talk.create_snapshot("rollback")
    talk.compress()
    talk.add_message({"role": "user", "content": "More"})

    talk.restore_snapshot(taken.id)

    assert talk.get_messages() == before
    assert taken.id in [one.id for one in talk.list_snapshots()]
    assert "More" in talk.export_history()
    assert talk.get_history()[-1]["content"] == "More"
    with pytest.raises(NotFound):
        talk.restore_snapshot("snap_nobody")


def test_settings_change_and_everything_stays(talk):
    talk.set_mode("developer")
    talk.set_system_prompt("Be kind.")
    talk.set_model("llama3:70b", window=2048)

    assert (talk.get_mode(), talk.get_system_prompt(), talk.get_tier().label) == (
        "developer",
        "Be kind.",
        "minimal",
    )
    assert talk.build_prompt().tokens <= talk.build_prompt().limit
    talk.update_ollama_limit(16_384)
    assert talk.get_state().settings.window == 16_384
    assert len(talk.get_history()) == 30
    with pytest.raises(InvalidInput):
        talk.update_ollama_limit(1)


def test_errors_of_providers_and_emergencies(talk):
    assert talk.handle_error(ConnectionResetError()).kind == "connection"
    overflow = talk.handle_error("prompt is too long")
    assert (overflow.kind, overflow.retry) == ("overflow", True)
    tokens = talk.get_token_count()
    assert all(done.tokens_freed >= 0 for done in talk.handle_emergency(most=tokens // 2))
    assert not talk.check_stream("word")
    talk.clear()
    assert talk.get_messages() == []


def test_defect_13_the_adapter_does_what_its_methods_say(talk):
    """The original cleared nothing, listed no snapshot, kept the system prompt to itself, and had constants as metrics."""
    talk.set_system_prompt("Be exact.")
    assert talk.build_prompt().system.startswith("Be exact.")
    assert talk.get_usage() == talk.get_token_count() / talk.get_state().limit
    taken = talk.create_snapshot()
    assert [one.id for one in talk.list_snapshots()] == [taken.id]
    first = talk.get_state().metrics
    talk.validate()
    assert talk.get_state().metrics.hits > first.hits
    talk.clear()
    assert (talk.get_messages(), talk.get_state().messages) == ([], 0)


def test_a_chat_over_a_backend(talk):
    turn = talk.say(talk.open_chat(backend="echo"), "Hello")

    assert turn.text == "You said: Hello"


def test_the_asynchronous_one_has_the_same_methods_as_coroutines(home):
    public = {
        name
        for name, method in vars(ContextOrchestrator).items()
        if inspect.isfunction(method) and name[0] != "_"
    }
    assert {
        name for name in public if not inspect.iscoroutinefunction(getattr(AsyncContextOrchestrator, name))
    } == set()

    async def go():
        made = AsyncContextOrchestrator("talk", window=4096, home=home)
        await made.add_message({"role": "user", "content": "Hello"})
        return await made.build_prompt()

    assert asyncio.run(go()).messages[-1]["content"] == "Hello"
    assert aether.context_status("talk", home=home).messages == 1
