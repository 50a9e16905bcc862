"""Replies are read while they are written, from every backend of a chat, and failures are told apart."""

from __future__ import annotations

import json
import threading

import pytest

from aether.architects import anthropic, chat_backend, command, ollama, openai, stream
from aether.architects.base import Settings
from aether.errors import BackendFailed, BackendUnavailable, ContextOverflow, InvalidInput
from tests.architects import fakes, streams
from tests.tables import rows

ASKED = [{"role": "user", "content": "Which port?", "meta": {"kept": True}}]
TOOL = {
    "type": "function",
    "function": {"name": "recall", "description": "Read", "parameters": {"type": "object"}},
}
WITH_TOOLS = [
    *ASKED,
    {
        "role": "assistant", "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "recall", "arguments": '{"query": "port"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "recall", "content": "The port is 8080."},
]  # fmt: skip
DONE = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 2}  # fmt: skip


def says(*words):
    return {
        "ollama": streams.ndjson(*({"model": "m", "message": {"content": word}} for word in words), DONE),
        "openai": streams.sse(
            *({"model": "m", "choices": [{"delta": {"content": word}}]} for word in words),
            {"model": "m", "choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"model": "m", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
        ),
        "anthropic": streams.typed(
            {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 0}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ),
    }  # fmt: skip


REFUSED = {
    "ollama": streams.failure(400, {"error": "the input length exceeds the context length"}),
    "openai": streams.failure(
        400, {"error": {"message": "This model's maximum context length is 8 tokens.", "code": "context_length_exceeded"}}
    ),
    "anthropic": streams.failure(
        400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}}
    ),
}  # fmt: skip
SERVERS = ["ollama", "openai", "anthropic"]


def settings(url, name="ollama", **more):
    address = f"{url}/v1" if name == "openai" else url
    return Settings(
        **{
            "model": "m",
            "base_url": address,
            "api_key": "k",
            "backoff_seconds": 0.001,
            "timeout_seconds": 20.0,
            **more,
        }
    )


def ask(name, answer, messages=ASKED, *, system="Be brief.", tools=(), **more):
    """Return the reply, its pieces and the requests for one chat with a scripted server."""
    pieces = []
    answer = answer if callable(answer) else streams.scripted(answer)
    with streams.answering(answer) as (url, requests):
        module, _ = chat_backend(name)
        try:
            reply = module.chat(
                messages,
                system=system,
                settings=settings(url, name, **more),
                on_text=pieces.append,
                tools=tools,
            )
        except Exception as reason:
            reason.seen = (pieces, requests)
            raise
    return reply, pieces, requests


@rows("name", SERVERS)
def test_a_reply_is_given_in_pieces_and_then_whole_with_its_usage(name):
    reply, pieces, requests = ask(name, says("Port ", "8080.")[name])

    assert pieces == ["Port ", "8080."]
    assert reply == stream.ChatReply("Port 8080.", name, "m", 7, 2)
    sent = requests[-1][1]
    assert sent["stream"] is True
    assert "meta" not in json.dumps(sent)
    assert "Be brief." in json.dumps(sent)


def test_a_piece_arrives_before_the_end_of_the_reply():
    for name in SERVERS:
        gate = threading.Event()
        whole = says("Port ", "8080.")[name]
        # All but the last lines first: the end waits until the first piece was seen.
        first, rest = "".join(whole.lines[:-2]), whole.lines[-2:]
        with streams.answering(streams.scripted(streams.Answer((first, *rest), then=gate))) as (url, _):
            module, _ = chat_backend(name)
            reply = module.chat(
                ASKED, system="", settings=settings(url, name), on_text=lambda _piece, gate=gate: gate.set()
            )

        assert gate.is_set(), name
        assert reply.text == "Port 8080.", name


def test_ollama_gets_the_window_in_the_request_and_never_cuts_the_prompt():
    _, _, requests = ask("ollama", says("x")["ollama"], window_tokens=4096, max_output_tokens=300)

    body = requests[0][1]
    assert body["options"] == {"num_predict": 300, "num_ctx": 4096}
    assert body["truncate"] is False


@rows("name", SERVERS)
def test_a_prompt_that_is_too_long_is_an_overflow_and_asked_once(name):
    with pytest.raises(ContextOverflow, match="larger than the window") as caught:
        ask(name, REFUSED[name])

    assert len(caught.value.seen[1]) == 1


@rows("name", SERVERS)
def test_a_busy_server_is_asked_again(name):
    reply, _, requests = ask(
        name, streams.scripted(streams.failure(503, {"error": {"message": "busy"}}), says("Yes")[name])
    )

    assert reply.text == "Yes"
    assert len(requests) == 2


@rows("name", SERVERS)
def test_a_connection_that_breaks_before_any_text_is_tried_again(name):
    broken = (
        streams.Answer(says("Yes")[name].lines[:1], cut=True)
        if name == "anthropic"
        else streams.Answer((), cut=True)
    )
    reply, pieces, requests = ask(name, streams.scripted(broken, says("Yes")[name]))

    assert (reply.text, pieces, len(requests)) == ("Yes", ["Yes"], 2)


@rows("name", SERVERS)
def test_a_connection_that_breaks_in_the_middle_is_not_tried_again(name):
    whole = says("Half ", "of it")[name]
    at = next(nth for nth, line in enumerate(whole.lines) if "Half" in line)
    with pytest.raises(BackendFailed) as caught:
        ask(name, streams.Answer(whole.lines[: at + 1], cut=True))

    pieces, requests = caught.value.seen
    assert (pieces, len(requests)) == (["Half "], 1)
    assert not isinstance(caught.value, ContextOverflow)


def test_a_reply_that_ends_without_its_end_is_not_whole():
    for name in ("ollama", "openai"):
        whole = says("Half")[name]
        at = next(nth for nth, line in enumerate(whole.lines) if "Half" in line)
        with pytest.raises(BackendFailed, match="broke before the answer was whole"):
            ask(name, streams.Answer(whole.lines[: at + 1]))


def test_a_failure_inside_a_stream_is_its_own_kind():
    overflow = {"error": "the input length exceeds the context length"}
    with pytest.raises(ContextOverflow):
        ask("ollama", streams.ndjson(overflow))
    with pytest.raises(BackendFailed, match="out of memory") as caught:
        ask("ollama", streams.ndjson({"error": "out of memory"}), max_retries=0)
    assert not isinstance(caught.value, ContextOverflow)
    late = streams.typed(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}
    )
    with pytest.raises(ContextOverflow):
        ask("anthropic", late)


def test_a_server_that_is_not_there_is_unavailable():
    with streams.answering(streams.scripted(streams.Answer())) as (url, _):
        pass
    for name in SERVERS:
        module, _ = chat_backend(name)
        with pytest.raises(BackendUnavailable, match="no server answers"):
            module.chat(ASKED, system="", settings=settings(url, name, max_retries=0), on_text=print)


def test_a_silent_server_is_given_up_after_the_timeout():
    gate = threading.Event()
    first = says("x")["ollama"].lines[0]
    answer = streams.Answer((first, "\n"), then=gate)
    try:
        with pytest.raises(BackendFailed, match="no answer within"):
            ask("ollama", answer, timeout_seconds=0.1)
    finally:
        gate.set()


def test_what_the_listener_raises_ends_the_reply_and_is_raised():
    def stop(_piece):
        raise ZeroDivisionError

    for name in SERVERS:
        with streams.answering(streams.scripted(says("Yes", "no")[name])) as (url, _):
            module, _ = chat_backend(name)
            with pytest.raises(ZeroDivisionError):
                module.chat(ASKED, system="", settings=settings(url, name), on_text=stop)


CALLS = {
    "ollama": streams.ndjson(
        {"model": "m", "message": {"content": "", "tool_calls": [{"function": {"name": "recall", "arguments": {"query": "port"}}}]}},
        DONE,
    ),
    "openai": streams.sse(
        {"model": "m", "choices": [{"delta": {"tool_calls": [{"index": 0, "id": "call_0", "function": {"name": "recall", "arguments": ""}}]}}]},
        {"model": "m", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"query": '}}]}}]},
        {"model": "m", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"port"}'}}]}}]},
        {"model": "m", "choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ),
    "anthropic": streams.typed(
        {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "call_0", "name": "recall", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"query": "port"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ),
}  # fmt: skip


@rows("name", SERVERS)
def test_calls_of_tools_come_back_and_their_results_are_sent_in_the_form_of_the_server(name):
    reply, _, _ = ask(name, CALLS[name], tools=[TOOL])
    assert reply.stop == "tools"
    assert reply.calls == (stream.ToolCall("call_0", "recall", '{"query": "port"}'),)

    _, _, requests = ask(name, says("8080")[name], WITH_TOOLS, tools=[TOOL])
    sent = requests[0][1]
    assert "8080" in json.dumps(sent["messages"][-1])
    if name == "ollama":
        assert sent["messages"][-1]["tool_name"] == "recall"
        assert sent["messages"][-2]["tool_calls"][0]["function"]["arguments"] == {"query": "port"}
    if name == "anthropic":
        assert sent["tools"][0]["input_schema"] == {"type": "object"}
        assert sent["messages"][-1]["content"][0]["type"] == "tool_result"
        assert sent["system"] == "Be brief."


def test_a_server_without_usage_in_streams_is_asked_without_it():
    answers = streams.scripted(
        streams.failure(400, {"error": {"message": "Unrecognized request argument: stream_options"}}),
        says("Yes")["openai"],
    )
    reply, _, requests = ask("openai", answers)

    assert reply.text == "Yes"
    assert [("stream_options" in body) for _, body in requests] == [True, False]


@rows("reason, stop", [("length", "length"), ("content_filter", "refused"), ("stop", "end")])
def test_the_end_of_a_reply_has_its_reason(reason, stop):
    reply, _, _ = ask(
        "openai", streams.sse({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]})
    )

    assert reply.stop == stop


@rows("line", ["{no json", '{"message": 5}', '{"message": {"tool_calls": [1]}}'])
def test_what_is_not_in_the_form_of_the_server_is_said(line):
    with pytest.raises(BackendFailed, match="did not answer in the form"):
        ask("ollama", streams.Answer((line + "\n",)), max_retries=0)


def test_a_running_ollama_says_its_window():
    with streams.answering(streams.ollama(2048)) as (url, _):
        assert ollama.served(settings(url)) == stream.Served(2048, 2048)
    assert ollama.served(Settings()) == stream.Served()


@rows("key", ["max_model_len", "context_length"])
def test_a_list_of_models_says_the_window(key):
    listed = streams.Answer((json.dumps({"data": [{"id": "other", key: 1}, {"id": "m", key: 4096}]}),))
    with streams.answering(streams.scripted(listed)) as (url, requests):
        assert openai.served(settings(url, "openai")) == stream.Served(4096, 4096)
        assert requests[0][0] == "/v1/models"
    assert openai.served(settings(url, "openai")) == stream.Served()
    assert anthropic.served(Settings()) == command.served(Settings()) == stream.Served()


def test_a_program_reads_the_conversation_and_its_output_is_the_reply():
    pieces = []
    code = "import sys; print('I read', sys.stdin.read().count('##'), 'parts. é')"
    reply = command.chat(
        WITH_TOOLS, system="Be brief.", settings=Settings(command=fakes.python(code)), on_text=pieces.append
    )

    assert reply.text == "I read 5 parts. é"
    assert "".join(pieces) == "I read 5 parts. é\n"


def test_a_program_that_says_that_the_prompt_is_too_long_overflows():
    code = "import sys; sys.exit('maximum context length is 8 tokens')"
    with pytest.raises(ContextOverflow):
        command.chat(ASKED, system="", settings=Settings(command=fakes.python(code)), on_text=print)


def test_echo_says_the_same_each_time_and_its_window_is_hard():
    pieces = []
    one = stream.chat(ASKED, system="", settings=Settings(), on_text=pieces.append)
    assert one == stream.chat(ASKED, system="", settings=Settings(), on_text=lambda _: None)
    assert one.text == "".join(pieces) == "You said: Which port?"
    with pytest.raises(ContextOverflow):
        stream.chat(ASKED, system="word " * 50, settings=Settings(window_tokens=20), on_text=print)
    assert stream.served(Settings()).window == stream.ECHO_WINDOW


def test_echo_calls_the_recall_tool_that_it_is_offered():
    asked = [{"role": "user", "content": "recall the port"}]
    (call,) = stream.chat(asked, system="", settings=Settings(), on_text=print, tools=[TOOL]).calls
    assert (call.name, json.loads(call.arguments)) == ("recall", {"query": "the port"})
    answered = [*asked, *WITH_TOOLS[1:]]
    assert stream.chat(
        answered, system="", settings=Settings(), on_text=lambda _: None, tools=[TOOL]
    ).text == ("Found: The port is 8080.")


@rows("spec", ["", "gpt", "command", "command: ", "ollama:llama", "extractive"])
def test_what_is_no_backend_of_a_chat_is_refused_with_the_names(spec):
    with pytest.raises(InvalidInput, match="echo, ollama, openai, anthropic, command"):
        chat_backend(spec)
