"""A chat over every kind of backend: nothing said is lost, and nothing that is sent is too large."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import admin, chat, context_steps, conversations, goals
from aether.api.chat import Tool
from aether.conversation.checks import classified
from aether.errors import BackendFailed, BackendUnavailable, BudgetExceeded, InvalidInput, UnsafePath
from aether.frameworks.recall_tool import recall_tool
from tests.architects import fakes, streams
from tests.tables import rows

WORDS = "and the client of it is compiled with that port, so that it must stay. " * 3


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch, tmp_path):
    fakes.without_credentials(monkeypatch, tmp_path)


def silent(_piece):
    pass


def recall(conversation, home):
    tool = recall_tool("openai", conversation, home=home)
    return Tool(tool.definition, tool.run)


def talk(opened, turns, **more):
    return [
        chat.say(opened, f"Service {nth} has port {8000 + nth}, {WORDS}", on_text=silent, **more)
        for nth in turns
    ]


def test_a_long_chat_over_a_server_with_a_hard_window_is_never_refused(home, monkeypatch):
    with streams.answering(streams.ollama(1024)) as (url, requests):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("long", backend="ollama", model=streams.MODEL, home=home)
        stages = []
        turns = talk(
            opened, range(16), progress=lambda stage, percent, _message: stages.append((stage, percent))
        )

    assert all(turn.text.startswith("Reply") and not turn.overflows for turn in turns)
    assert [turn for turn in turns if turn.compressed]
    assert turns[-1].status.checkpoints >= 1
    assert ("Summarization", 25) in [(stage, min(percent, 25)) for stage, percent in stages]
    assert {body["options"]["num_ctx"] for path, body in requests if path == "/api/chat"} == {1024}
    assert len(conversations.full_history("long", home=home)) == 32


def test_a_chat_goes_on_in_a_window_that_turns_out_smaller(home, monkeypatch):
    smaller = streams.ollama(1200)

    def answer(path, body):
        # The server says nothing of its window, and refuses what is larger.
        return smaller(path, body) if path == "/api/chat" else streams.failure(404, {"error": "no"})

    with streams.answering(answer) as (url, _):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("c", backend="ollama", model=streams.MODEL, window=8192, home=home)
        turns = talk(opened, range(14))

    assert sum(turn.overflows for turn in turns) >= 1
    assert all(turn.text for turn in turns)


def test_a_prompt_that_the_server_cut_without_a_word_is_reported_and_the_next_one_fits(home, monkeypatch):
    sent = []

    def answer(path, body):
        if path != "/api/chat":
            return streams.failure(404, {"error": "no"})
        sent.append(sum(len(message["content"]) // 4 for message in body["messages"]))
        end = {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "prompt_eval_count": min(sent[-1], 900),
        }
        return streams.ndjson({"message": {"role": "assistant", "content": "Yes."}}, end)

    with streams.answering(answer) as (url, _):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("c", backend="ollama", model=streams.MODEL, window=8192, home=home)
        first, second = (
            chat.say(opened, WORDS * 30, on_text=silent),
            chat.say(opened, "Go on.", on_text=silent),
        )

    assert (first.read_tokens, second.read_tokens) == (900, 0)
    assert first.status.settings.window == 900
    assert sent[1] < 900 < sent[0]


def test_what_the_server_always_refuses_is_an_error_and_the_message_stays(home, monkeypatch):
    with streams.answering(lambda _path, _body: streams.failure(400, {"error": "prompt is too long"})) as (
        url,
        _,
    ):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("c", backend="ollama", model="m", window=4096, home=home)
        with pytest.raises((BudgetExceeded, BackendFailed)):
            chat.say(opened, "Hello", on_text=silent)

    assert [one["content"] for one in conversations.context("c", home=home)] == ["Hello"]


def test_a_failed_backend_loses_nothing_and_is_asked_again(home, monkeypatch):
    broken = streams.ndjson({"message": {"content": "Half"}})
    whole = streams.ollama(4096)
    left = [broken]

    def answer(path, body):
        return left.pop() if left and path == "/api/chat" else whole(path, body)

    with streams.answering(answer) as (url, _):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("c", backend="ollama", model="m", home=home)
        with pytest.raises(BackendFailed):
            chat.say(opened, "Hello", on_text=silent)
        assert [one["content"] for one in conversations.context("c", home=home)] == ["Hello", "Half"]
        turn = chat.answer_again(opened, on_text=silent)

    assert turn.text == "Reply 1: you said Hello "
    assert [one["content"] for one in conversations.context("c", home=home)] == ["Hello", turn.text]
    assert "Half" in [one["content"] for one in conversations.full_history("c", home=home)]


def test_ctrl_c_ends_a_reply_and_what_came_of_it_is_kept(home):
    def stop(piece):
        if "two" in piece:
            raise KeyboardInterrupt

    opened = chat.open_chat("c", home=home)
    turn = chat.say(opened, "one two three", on_text=stop)

    assert turn.interrupted
    assert turn.text == "You said: one two"
    assert conversations.context("c", home=home)[-1]["content"] == turn.text
    assert chat.say(opened, "on", on_text=silent).text == "You said: on"


def test_the_model_reads_again_what_was_compressed(home):
    opened = chat.open_chat("c", window=1400, tools=[recall("c", home)], home=home)
    talk(opened, range(14))

    turn = chat.say(opened, "recall port 8003", on_text=silent)

    assert [call.name for reply in turn.replies for call in reply.calls] == ["recall"]
    assert "Service 3 has port 8003" in turn.text
    roles = [message["role"] for message in conversations.full_history("c", home=home)]
    assert roles[-3:] == ["assistant", "tool", "assistant"]


def test_a_tool_that_fails_or_is_not_there_is_an_answer_to_the_model(home):
    def broken(_arguments):
        raise InvalidInput("the number is none.", fix="Give one.")

    definition = {"type": "function", "function": {"name": "recall", "parameters": {}}}
    opened = chat.open_chat("c", tools=[Tool(definition, broken)], home=home)
    assert "the number is none" in chat.say(opened, "recall x", on_text=silent).text
    assert chat._result(None, "{}", most=100).startswith("Error")
    assert len(chat._result(lambda _: "x" * 9_000, "{}", most=100)) < 200


def test_a_model_without_tools_is_asked_without_them(home, monkeypatch):
    whole, refused = streams.ollama(4096), []

    def answer(path, body):
        if path == "/api/chat" and body.get("tools"):
            refused.append(path)
            return streams.failure(400, {"error": "m does not support tools"})
        return whole(path, body)

    with streams.answering(answer) as (url, _):
        monkeypatch.setenv("OLLAMA_HOST", url)
        opened = chat.open_chat("c", backend="ollama", model="m", tools=[recall("c", home)], home=home)
        assert chat.say(opened, "Hello", on_text=silent).text.startswith("Reply")
        refused.clear()
        assert chat.say(opened, "And now?", on_text=silent).text.startswith("Reply")
        assert refused == []
    assert aether.context_status("c", home=home).settings.tool_support is False


def test_a_window_too_small_for_the_tools_is_used_without_them(home):
    small = chat.open_chat("small", window=300, tools=[recall("small", home)], home=home)
    assert small.tools == ()
    assert chat.say(small, "Hello", on_text=silent).text == "You said: Hello"
    assert chat.open_chat("large", window=2_000, tools=[recall("large", home)], home=home).tools


def test_a_chat_is_resumed_with_all_that_it_had(home):
    opened = chat.open_chat("c", window=4096, mode="developer", system="Be brief.", home=home)
    chat.say(opened, "The port is 8080.", on_text=silent)

    again = chat.open_chat("c", home=home)

    status = aether.context_status("c", home=home)
    assert (status.settings.window, status.settings.mode, status.settings.system) == (
        4096,
        "developer",
        "Be brief.",
    )
    assert again.backend.NAME == "echo"
    assert len(aether.build_prompt("c", home=home).messages) == 3


def test_the_model_and_the_window_may_change_in_the_middle(home):
    opened = chat.open_chat("c", window=8192, home=home)
    talk(opened, range(10))

    changed = chat.with_model(opened, "phi:3b", window=1024)
    turn = chat.say(changed, "Go on", on_text=silent)

    assert changed.settings.model == turn.status.settings.model == "phi:3b"
    assert turn.status.settings.window == 1024
    assert turn.status.tokens <= turn.status.limit
    assert turn.compressed


def test_markers_in_a_reply_change_the_goal_once(home, monkeypatch):
    goals.add_goal("Ship the parser", steps=["Write tests"], home=home)
    opened = chat.open_chat("c", home=home)

    asked, real = [], goals.apply_markers
    monkeypatch.setattr(goals, "apply_markers", lambda text, **more: asked.append(text) or real(text, **more))
    done = chat.say(opened, "x\n[CHECKPOINT] Write tests - COMPLETED", on_text=silent)

    assert goals.current_goal(home=home)["progress"] == 100
    assert done.applied.checkpoints == 1
    assert len(asked) == 1


def configured(home, text):
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_a_home_names_no_backend_unless_its_user_trusts_it(home):
    configured(home, '[chat]\nbackend = "command:touch /tmp/no"\n')
    with pytest.raises(UnsafePath, match="aether trust"):
        chat.open_chat("c", home=home)
    assert chat.open_chat("c", backend="echo", home=home).backend.NAME == "echo"

    admin.grant_trust(admin.trust_of(home=home))
    assert chat.open_chat("c", home=home).settings.command == "touch /tmp/no"


def test_the_server_of_a_home_is_not_that_of_another_backend(home):
    configured(home, '[chat]\nbackend = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "theirs"\n')
    admin.grant_trust(admin.trust_of(home=home))

    assert chat.open_chat("c", home=home).settings.base_url.endswith(":9/v1")
    assert chat.open_chat("d", backend="ollama", model="mine", home=home).settings.base_url == ""


def test_the_model_that_a_conversation_names_is_never_asked_by_itself(home):
    aether.open_context("c", window=4096, model="expensive", home=home)

    with pytest.raises(BackendUnavailable, match="--model expensive"):
        chat.open_chat("c", backend="openai", home=home)


def test_without_a_home_a_chat_works_all_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    opened = chat.open_chat("c")

    assert chat.say(opened, "Hello", on_text=silent).text == "You said: Hello"
    assert (tmp_path / ".compact").is_dir()


def test_messages_of_another_format_are_sent_as_chat_completions(home, monkeypatch):
    aether.open_context("c", window=8192, home=home)
    call = {"type": "tool_use", "id": "call_1", "name": "ls", "input": {"path": "."}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "a.py"}
    for message in (
        {"role": "user", "content": [{"type": "text", "text": "List"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ):
        aether.add_message("c", message, home=home)
    with streams.answering(streams.ollama(8192)) as (url, requests):
        monkeypatch.setenv("OLLAMA_HOST", url)
        chat.say(chat.open_chat("c", backend="ollama", model="m", home=home), "And now?", on_text=silent)

    sent = requests[-1][1]["messages"]
    assert [one["role"] for one in sent if one["role"] != "system"] == ["user", "assistant", "tool", "user"]
    assert json.dumps(sent).count("tool_calls") == 1


class ContextWindowExceededError(Exception):
    """As LiteLLM names it."""


class BadRequestError(Exception):
    """As the SDK of OpenAI has it."""

    def __init__(self, message="", *, status_code=400, code=None):
        super().__init__(message)
        self.status_code, self.code = status_code, code


@rows(
    "error, expected",
    [
        (ContextWindowExceededError("no"), True),
        (BadRequestError(code="context_length_exceeded"), True),
        (BadRequestError(status_code=413), True),
        (BadRequestError("prompt is too long: 210000 tokens > 200000 maximum"), True),
        (BadRequestError("This model's maximum context length is 8192 tokens"), True),
        (RuntimeError("the input length exceeds the context length"), True),
        (BadRequestError("input tokens per minute too large", status_code=429), False),
        (RuntimeError("Rate limit: 30000 tokens per minute"), False),
        (BadRequestError("max_tokens: 5 is less than 16"), False),
        (ConnectionResetError("context length"), False),
        (TimeoutError("the context window of this connection closed"), False),
        (KeyError("context"), False),
    ],
)
def test_an_overflow_is_known_by_class_then_by_code_and_text(error, expected):
    assert (classified(error).kind == "overflow") is expected


def test_ctrl_c_while_the_context_is_compressed_stores_a_reply_once(home):
    def stop(stage, percent, message):
        raise KeyboardInterrupt

    opened = chat.open_chat("c", window=1024, home=home)
    ended = 0
    for nth in range(12):
        try:
            ended += chat.say(opened, f"Service {nth}: {WORDS}", on_text=silent, progress=stop).interrupted
        except KeyboardInterrupt:  # before the reply
            ended += 1

    said = [one["content"] for one in conversations.full_history("c", home=home)]
    assert ended
    assert len(said) == len(set(said))
    assert len([text for text in said if text.startswith("Service")]) == 12
    assert aether.build_prompt("c", home=home).tokens <= aether.context_status("c", home=home).limit


def test_the_input_is_blocked_while_a_chat_compresses_and_at_no_other_time(home, monkeypatch):
    seen = []

    class Exporter:
        emit = staticmethod(lambda event: seen.append(event.name.removeprefix("context.")))

    monkeypatch.setattr(context_steps.telemetry, "exporter_of", lambda _: Exporter)
    opened = chat.open_chat("c", window=1400, home=home)
    turns = [
        chat.say(
            opened, f"Service {nth} has port {8000 + nth}, {WORDS}", on_text=lambda _: seen.append("text")
        )
        for nth in range(12)
    ]

    assert [turn for turn in turns if turn.compressed]
    blocks = [name for name in seen if name.endswith("block-user-input")]
    assert blocks == ["block-user-input", "unblock-user-input"] * (len(blocks) // 2) != []
    blocked = False
    for name in seen:
        blocked = name == "block-user-input" if name.endswith("block-user-input") else blocked
        assert not (blocked and name == "text")
        assert blocked or name not in ("checkpoint-started", "checkpoint-completed")
