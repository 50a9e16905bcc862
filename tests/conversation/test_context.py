"""Contexts by their verbs: open, add, build, compress, restore, export, and what happens when something fails."""

from __future__ import annotations

import json
import os
import threading
import time
import traceback

import pytest

import aether
from aether.api import context, context_steps, goals
from aether.api.conversations import add_messages, full_history
from aether.api.removed import removed_from_context
from aether.conversation import checks, summarise
from aether.conversation.shapes import Limits
from aether.errors import BudgetExceeded, InvalidDocument, InvalidInput, NotFound
from aether.frameworks.recall_tool import recall_tool
from aether.messages.validate import is_sendable
from aether.store import conversations, doctor, history
from aether.store.conversations import load
from tests import homes
from tests.conversation.test_defects import ID, role, talk, text
from tests.events.table import EVENTS
from tests.tables import rows


def prompt_bytes(home):
    return json.dumps(aether.build_prompt(ID, home=home).messages)


def test_a_context_is_resumed_as_it_was_left(home):
    first = aether.open_context(
        ID, window=8_192, model="llama3:8b", mode="planning", system="Be brief.", home=home
    )
    again = aether.open_context(ID, home=home)

    assert again.settings == first.settings
    assert (again.limit, again.tier.label, again.settings.mode) == (6_963, "basic", "planning")
    assert aether.open_context("other", model="llama3:8b", home=home).settings.window >= 2_048


def test_what_cannot_be_opened_says_why(home):
    with pytest.raises(InvalidInput, match="at least 256"):
        aether.open_context(ID, window=100, home=home)
    with pytest.raises(InvalidInput, match="developer, planning"):
        aether.open_context(ID, window=4_096, mode="poet", home=home)
    with pytest.raises(NotFound, match="open_context"):
        aether.add_message(ID, {"role": "user", "content": "Hi"}, home=home)
    with pytest.raises(NotFound, match="open_context"):
        aether.build_prompt(ID, home=home)


@rows(
    "message",
    [
        7, {"content": "no role"}, {"role": "user", "snapshot": {}}, {"role": "user", "conversationState": {}},
        {"role": "wizard", "content": "Hi"}, {"role": "user", "content": 5}, {"role": "user", "content": ["Hi", 5]}, {"role": "user"},
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(home, message):
    aether.open_context(ID, window=4_096, home=home)
    with pytest.raises(InvalidInput):
        aether.add_message(ID, message, home=home)
    with pytest.raises(InvalidInput):
        add_messages(ID, [{"role": "user", "content": "Hi"}, message], home=home)
    assert full_history(ID, home=home) == []


@rows(
    "wrong",
    [
        {"system": 5}, {"parts": 5}, {"parts": {"skills": 5}}, {"tools": [5]}, {"model": 5}, {"provider": 5}, {"tool_support": "no"},
    ],
)  # fmt: skip
def test_an_argument_of_the_wrong_type_is_refused_before_anything_is_stored(home, wrong):
    with pytest.raises(InvalidInput):
        aether.open_context(ID, window=4_096, home=home, **wrong)
    assert not load(home, ID).lines


@rows(
    "raw",
    [
        {"role": "user", "content": "Hi", "metadata": {"snapshot": "x" * 9_000}},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "history": ["x" * 9_000], "meta": {"note": "x" * 9_000}},
        {"role": "tool", "tool_call_id": "c1", "content": "Hi", "trace": "x" * 9_000},
    ],
)  # fmt: skip
def test_what_is_sent_of_a_message_is_what_is_counted(home, raw):
    aether.open_context(ID, window=4_096, home=home)
    if raw["role"] == "tool":
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        aether.add_message(ID, {"role": "assistant", "content": None, "tool_calls": [call]}, home=home)
    aether.add_message(ID, raw, home=home)

    prompt = aether.build_prompt(ID, home=home)

    assert len(json.dumps(prompt.messages)) < 400
    assert prompt.tokens < 60


def test_a_larger_window_takes_back_what_a_smaller_one_compressed(home):
    talk(home, 60, window=24_000)
    full = aether.build_prompt(ID, home=home)
    aether.set_model(ID, "small", window=2_000, home=home)
    assert aether.build_prompt(ID, home=home).tokens < 2_000
    aether.add_message(ID, {"role": "user", "content": "And now?"}, home=home)

    status = aether.set_model(ID, "large", window=40_000, home=home)

    assert status.checkpoints == 0
    assert aether.build_prompt(ID, home=home).messages[: len(full.messages)] == full.messages
    assert aether.build_prompt(ID, home=home).messages[-1]["content"] == "And now?"


def test_a_history_too_large_for_the_new_window_is_compressed_for_it(home):
    talk(home, 60, window=24_000)
    aether.set_model(ID, "small", window=1_000, home=home)
    small = aether.build_prompt(ID, home=home)

    status = aether.set_model(ID, "middle", window=4_000, home=home)

    assert status.checkpoints
    assert 2 * small.tokens < status.tokens < status.limit


def test_only_typed_parts_are_sent():
    with pytest.raises(InvalidInput, match="not part of a prompt"):
        checks.build(
            [history.Snapshot("snap_1", "", "recovery", (1,), {}, 0, 0)], tools=(), provider="plain", beside=0, limit=1, count=len
        )  # fmt: skip


def test_a_prompt_is_system_then_checkpoints_then_recent_then_new(home):
    goals.add_goal("Ship the index.", home=home)
    talk(home, 40, system="Be brief.", parts={"skills": "You can search."}, tools=[{"name": "search"}])
    aether.compress_context(ID, home=home)
    aether.set_mode(ID, "developer", home=home)

    prompt = aether.build_prompt(ID, home=home)

    names = [part.name for part in prompt.parts]
    assert names == [
        "system:base",
        "system:mode",
        "system:goals",
        "system:skills",
        "checkpoints",
        "recent",
        "new",
        "tools",
    ]
    assert prompt.messages[0] == {"role": "system", "content": prompt.system}
    assert prompt.system.startswith("Be brief.\n\n")
    assert "Ship the index." in prompt.system
    assert prompt.messages[1]["role"] == "assistant"
    assert "Checkpoint 1" in prompt.messages[1]["content"]
    assert prompt.messages[-1]["content"] == text(39)
    assert not any("meta" in one for one in prompt.messages)


def test_the_prefix_is_the_same_between_two_compressions(home):
    talk(home, 40)
    aether.compress_context(ID, home=home)
    before = prompt_bytes(home)
    for at in range(4):
        aether.add_message(ID, {"role": role(at), "content": "short"}, home=home)
        assert prompt_bytes(home).startswith(before[:-1])


def test_a_marker_of_the_model_changes_the_goal_of_the_home(home):
    goals.add_goal("Ship it.", steps=["Write the index"], home=home)
    aether.open_context(ID, window=8_192, home=home)
    aether.add_message(
        ID, {"role": "assistant", "content": "[CHECKPOINT] Write the index - COMPLETED"}, home=home
    )
    aether.add_message(ID, {"role": "user", "content": "[CHECKPOINT] Invented - COMPLETED"}, home=home)

    found = goals.goal(home=home)
    assert [(one["description"], one["status"]) for one in found["subtasks"]] == [
        ("Write the index", "completed")
    ]


def test_a_compression_reports_six_stages_and_can_be_undone(home):
    talk(home, 40)
    before, seen = prompt_bytes(home), []
    done = aether.compress_context(ID, progress=lambda *stage: seen.append(stage[:2]), home=home)

    assert dict(seen) == {
        "Identification": 15, "Preparation": 25, "Summarization": 70, "Checkpoint Creation": 80, "Context Update": 90,
        "Validation": 100,
    }  # fmt: skip
    assert [percent for _, percent in seen] == sorted(percent for _, percent in seen)
    assert (done.success, done.freed_tokens, done.step) == (True, done.tokens_before - done.tokens_after, 1)
    assert done.checkpoint in aether.checkpoints(ID, home=home)
    aether.undo_compaction(ID, home=home)
    assert prompt_bytes(home) == before
    assert aether.context_status(ID, home=home).compressions == 0


def test_nothing_to_compress_has_a_reason(home):
    aether.open_context(ID, window=8_192, home=home)
    aether.add_message(ID, {"role": "user", "content": "Hello."}, home=home)
    done = aether.compress_context(ID, home=home)

    assert (done.success, done.reason) == (False, "No messages to compress")


def test_a_compression_within_a_compression_is_refused(home):
    talk(home, 40)
    inner = []
    aether.compress_context(
        ID, progress=lambda *_: inner.append(aether.compress_context(ID, home=home).reason), home=home
    )
    assert set(inner) == {"Compression already in progress"}


def test_a_summariser_that_hangs_costs_its_time_and_nothing_else(home, monkeypatch):
    talk(home, 40)
    monkeypatch.setenv("AETHER_CONTEXT_SUMMARY_SECONDS", "0.05")
    released = threading.Event()

    done = aether.compress_context(ID, backend=lambda *_: released.wait(5) and "late", home=home)
    released.set()

    assert done.success
    assert done.checkpoint.model == "extractive"


def test_an_interrupt_while_a_model_writes_changes_nothing(home, monkeypatch):
    talk(home, 40)
    before = prompt_bytes(home)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(context_steps, "write_checkpoint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            aether.compress_context(ID, home=home)
    assert prompt_bytes(home) == before
    assert aether.compress_context(ID, home=home).success


def test_checkpoints_age_at_three_six_and_ten_compressions_in_their_place(home):
    talk(home, 30, window=16_384)
    levels = {}
    for at in range(12):
        aether.compress_context(ID, home=home)
        for one in aether.checkpoints(ID, home=home):
            levels.setdefault(one.id, []).append(one.level)
        talk(home, 12, start=30 + 12 * at)

    first, second, *_ = levels.values()
    assert first == [3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1]
    assert second == [3, 3, 3, 2, 2, 2, 1, 1, 1, 1]
    assert aether.checkpoints(ID, home=home)[0].id.startswith("merged_")


@pytest.mark.slow
def test_two_hundred_checkpoints_stay_in_their_budget(home):
    few_or_many_checkpoints(home, 200)


def test_fifteen_checkpoints_stay_in_their_budget(home):
    few_or_many_checkpoints(home, 15)


def few_or_many_checkpoints(home, number):
    talk(home, 20)
    for at in range(number):
        talk(home, 6, start=20 + 6 * at)
        aether.compress_context(ID, home=home)
        found = aether.checkpoints(ID, home=home)
        assert sum(one.tokens for one in found) <= 0.3 * 6_963
        assert len(found) <= 11
    assert sum(one.messages for one in found) <= 20 + 6 * number
    assert found[0].message_range[0] == 1


def test_calls_stay_with_their_results_and_recent_users_stay_whole(home):
    aether.open_context(ID, window=4_096, home=home)
    for at in range(14):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        add_messages(
            ID,
            [
                {"role": "user", "content": f"Question {at}"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{at}", "content": text(at) * 2},
            ],
            home=home,
        )
    done = aether.compress_context(ID, home=home)
    prompt = aether.build_prompt(ID, home=home)

    assert done.success
    calls = {call["id"] for one in prompt.messages for call in one.get("tool_calls", ())}
    assert calls == {one["tool_call_id"] for one in prompt.messages if one["role"] == "tool"}
    asked = [one["content"] for one in prompt.messages if one["role"] == "user"]
    assert asked == [f"Question {at}" for at in range(4, 14)]


def test_what_left_the_context_is_found_by_its_number(home):
    talk(home, 60)
    aether.compress_context(ID, home=home)
    first, last = aether.checkpoints(ID, home=home)[0].message_range

    assert f"n={first}-{last}" in aether.build_prompt(ID, home=home).messages[0]["content"]
    assert text(3) in recall_tool("openai", ID, home=home).run({"numbers": "4"})
    assert len(removed_from_context(ID, home=home)) >= 20


def test_a_snapshot_is_restored_byte_for_byte_with_its_settings_and_that_can_be_undone(home):
    talk(home, 30, system="One.")
    aether.compress_context(ID, home=home)
    before, taken = prompt_bytes(home), aether.take_snapshot(ID, home=home)
    talk(home, 30, start=30, system="Two.")
    aether.compress_context(ID, home=home)
    after = prompt_bytes(home)

    status = aether.restore_context(ID, taken.id, home=home)

    assert (prompt_bytes(home), status.settings.system, status.compressions) == (before, "One.", 1)
    assert len(full_history(ID, home=home)) == 60
    assert history.unseen(load(home, ID, whole=True)) == []
    aether.undo_compaction(ID, home=home)
    assert prompt_bytes(home) == after
    assert doctor.examine(home) == []


def test_five_snapshots_are_kept_and_automatic_ones_push_out_none_of_a_person(home):
    talk(home, 30)
    mine = aether.take_snapshot(ID, home=home)
    for at in range(7):
        talk(home, 8, start=30 + 8 * at)
        aether.compress_context(ID, home=home)
    found = aether.snapshots(ID, home=home)

    assert [one.purpose for one in found] == ["recovery"] * 5 + ["rollback"]
    assert found[-1] == mine
    with pytest.raises(NotFound, match="Name one of"):
        aether.restore_context(ID, "snap_0", home=home)


LONG = "Let me think about every table once more, from the first to the last. " * 150
ASKED = {"role": "user", "content": "Look at x."}
ROUNDS = {
    "anthropic": [
        ASKED,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": LONG, "signature": "c2ln"}, {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "It is 8080."}]},
    ],
    "responses": [
        ASKED,
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": LONG}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"at": "x"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "It is 8080."},
    ],
    "openai": [
        ASKED,
        {"role": "assistant", "content": None, "reasoning_content": LONG, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "It is 8080."},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Look at x."}]},
        {"role": "model", "parts": [{"text": LONG, "thought": True}, {"functionCall": {"name": "look", "args": {"at": "x"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "It is 8080."}}}]},
    ],
}  # fmt: skip


@rows(("wire", "waiting"), [(wire, waiting) for wire in ROUNDS for waiting in (False, True)])
def test_reasoning_of_the_turn_in_progress_that_fills_the_window_goes_and_the_call_stays_valid(
    wire, waiting, tmp_path
):
    home = homes.fresh(tmp_path)
    aether.open_context(ID, window=1_500, home=home)
    said = ROUNDS[wire]
    add_messages(ID, said[: len(said) - 1], home=home)
    if waiting:  # the call is not carried out yet
        aether.build_prompt(ID, home=home)
    aether.add_message(ID, said[-1], home=home)

    prompt = aether.build_prompt(ID, home=home)
    sent = json.dumps(prompt.messages)

    assert prompt.tokens <= prompt.limit
    assert is_sendable(prompt.messages, wire)
    assert "It is 8080." in sent
    assert '{\\"at\\": \\"x\\"}' in sent or '{"at": "x"}' in sent
    assert full_history(ID, home=home) == said
    kept = any(name in sent for name in ("tool_use", "tool_calls", "function_call", "functionCall"))
    assert kept == waiting


def test_many_calls_beside_protected_messages_become_text_rather_than_be_refused(home):
    """As in a real session: 615 tokens were left for a round of calls, whose form takes more."""
    aether.open_context(ID, window=8_192, home=home)
    calls = [
        {"id": f"call_{nth:024}", "type": "function", "function": {"name": "exec_command", "arguments": json.dumps({"cmd": text(nth), "workdir": "/Users/user06/projects/graph", "yield_time_ms": 1000})}}
        for nth in range(7)
    ]  # fmt: skip
    said = [{"role": "developer", "content": "Rule: ask first. " * 1_270}, {"role": "user", "content": "Go."}]
    said += [{"role": "assistant", "content": text(0), "tool_calls": calls}]
    said += [{"role": "tool", "tool_call_id": call["id"], "content": text(9) * 3} for call in calls]
    add_messages(ID, said, home=home)
    case = context_steps.case_of(ID, home)
    assert 450 < case.limit - case.view.tokens(case.view.fixed) < 650

    prompt = aether.build_prompt(ID, home=home)

    assert prompt.tokens <= prompt.limit
    assert is_sendable(prompt.messages, "openai")
    assert "tool_calls" not in json.dumps(prompt.messages)


def test_a_message_larger_than_the_window_is_sent_shortened_and_kept_whole(home):
    aether.open_context(ID, window=2_048, home=home)
    long = "".join(f"Line {at} of the log says nothing new.\n" for at in range(2_000))
    aether.add_message(ID, {"role": "user", "content": long}, home=home)
    prompt = aether.build_prompt(ID, home=home)

    assert prompt.tokens <= prompt.limit
    assert "recall n=1" in prompt.messages[-1]["content"]
    assert full_history(ID, home=home)[0]["content"] == long


def test_what_cannot_fit_is_named_and_refused_at_once_the_second_time(home, monkeypatch):
    aether.open_context(ID, window=2_048, system="Rule. " * 4_000, home=home)
    aether.add_message(ID, {"role": "user", "content": "Hello."}, home=home)
    monkeypatch.setattr(context_steps, "compress", None)  # nothing is tried
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="part 'base' of the system prompt"):
            aether.build_prompt(ID, home=home)
    aether.open_context(ID, window=65_536, home=home)
    assert aether.build_prompt(ID, home=home).messages


def test_what_a_model_decides_for_a_goal_never_fills_the_window(home):
    """A hundred locked decisions of a model filled the prompt, and every later one was refused."""
    aether.open_context("c", window=2_048, home=home)
    aether.add_goal("Keep port 5432 open.", home=home)
    aether.decide_goal("A person wants TLS everywhere", home=home)
    decisions = "".join(
        f"[DECISION] Service {nth} talks to cluster {nth} by mutual TLS and nothing else - LOCKED\n"
        for nth in range(99)
    )
    aether.add_message("c", {"role": "user", "content": "Go on."}, home=home)
    aether.add_message("c", {"role": "assistant", "content": decisions}, home=home)
    aether.add_message("c", {"role": "user", "content": "And now?"}, home=home)

    prompt = aether.build_prompt("c", home=home)

    assert prompt.tokens <= prompt.limit
    for kept in (
        "Goal: Keep port 5432 open.",
        "- A person wants TLS everywhere",
        "- Service 98 talks",
        "of earlier messages",
    ):
        assert kept in prompt.system
    assert "- Service 0 talks" not in prompt.system
    assert next(part.tokens for part in prompt.parts if part.name == "system:goals") <= prompt.limit / 2
    assert aether.build_prompt("c", home=home).system == prompt.system
    aether.set_model("c", "claude-sonnet-4-5", home=home)
    assert "- Service 0 talks" in aether.build_prompt("c", home=home).system


def test_protected_messages_that_do_not_fit_are_named(home):
    aether.open_context(ID, window=2_048, home=home)
    add_messages(
        ID, [{"role": "developer", "content": text(1) * 40}, {"role": "user", "content": "Hi"}], home=home
    )
    with pytest.raises(BudgetExceeded, match="protected message n=1"):
        aether.build_prompt(ID, home=home)


ERRORS = [
    ("prompt is too long: 210000 tokens > 200000 maximum", "overflow"),
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", "overflow"),
    ("the request exceeds the available context size, try increasing it", "overflow"),
    ("input length exceeds the context length", "overflow"),
    ("Rate limit reached: 4000 tokens per minute", "unknown"),
    ("invalid token", "unknown"),
    ("connect ECONNREFUSED 127.0.0.1:11434", "connection"),
    (TimeoutError("timed out"), "connection"),
    (type("ContextWindowExceededError", (Exception,), {})("no"), "overflow"),
    (type("APIConnectionError", (Exception,), {})("context"), "connection"),
    (ValueError("something else"), "unknown"),
]  # fmt: skip


@rows(("error", "kind"), ERRORS)
def test_errors_of_providers_are_distinguished(error, kind):
    assert checks.classified(error).kind == kind


# What servers and providers answer, with the limit and the size of the request that it names.
OVERFLOWS = [
    ("The model's context length is only 4096 tokens, but you passed 5000 input tokens and requested 900 output tokens.", 4096, 5000),
    ("Prompt contains 7000 tokens, too large for model with 6144 maximum context length", 6144, 7000),
    ("The input token count (70000) exceeds the maximum number of tokens allowed (65536).", 65_536, 70_000),
    ("prompt token count of 9100 exceeds the limit of 9000", 9000, 9100),
    ("too many tokens: the tokens in the prompt cannot exceed 4081 - received 4292", 4081, 4292),
    ("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens", 8193, 9000),
    ("input length and `max_tokens` exceed context limit: 190,000 + 20,000 > 200,000", 200_000, 0),
    ("Range of input length should be [1, 30720]", 30_720, 0),
    ("The request is larger than the 128k context window", 128_000, 0),
    ("Current length is 9000 while limit is 8192", 8192, 9000),
    ("the input token count is 9000 but model only supports up to 8192", 8192, 9000),
    ("exceeded max context length by 4000 tokens", 0, 0),
    ("context window exceeds limit (2013)", 0, 0),  # the code of the error
    ("Prompt exceeds max length", 0, 0),
    ("413 Request Entity Too Large", 0, 0),
]  # fmt: skip


@rows(("error", "window", "tokens"), OVERFLOWS)
def test_an_overflow_gives_the_limit_that_it_names(error, window, tokens):
    assert checks.classified(error) == ("overflow", window, tokens)


@rows(
    ("error", "kind"),
    [
        ("context deadline exceeded", "unknown"),
        ("max_tokens is too large: 5000. This model supports at most 4096 completion tokens", "unknown"),
        ("Invalid 'tools': array too long. Expected an array with maximum length 128", "unknown"),
        ("Request too large: Limit 30000 tokens per min, Requested 40000", "unknown"),
        ("image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes", "unknown"),
    ],
)
def test_other_limits_are_no_overflow(error, kind):
    assert checks.classified(error).kind == kind


def test_an_overflow_makes_the_context_smaller_and_a_lost_connection_does_not(home):
    talk(home, 40, window=16_384)
    before = aether.context_status(ID, home=home).tokens
    lost = aether.handle_overflow(ID, ConnectionResetError(), home=home)
    done = aether.handle_overflow(ID, ERRORS[1][0], home=home)

    assert (lost.kind, lost.retry, lost.actions) == ("connection", True, ())
    assert (done.kind, done.retry) == ("overflow", True)
    assert done.validation.tokens < before
    assert aether.context_status(ID, home=home).settings.window == 8_192


def test_a_stream_that_overflows_is_an_event_and_changes_nothing(home):
    talk(home, 20, window=2_048)
    before = load(home, ID).context

    assert not aether.stream_overflow(ID, "Short.", home=home)
    assert aether.stream_overflow(ID, text(0) * 40, home=home)
    assert load(home, ID).context == before


def test_validation_suggests_by_priority_with_estimates_and_counts_nothing_again(home, monkeypatch):
    aether.open_context(ID, window=4_096, home=home)
    add_messages(ID, [{"role": role(at), "content": text(at)} for at in range(60)], home=home)
    first = aether.validate_context(ID, home=home)
    monkeypatch.setattr(context_steps, "message_tokens", None)  # a count would fail
    again = aether.validate_context(ID, home=home)

    assert first == again
    assert (again.valid, again.level) == (False, "rollover")
    assert again.overage == again.tokens - again.limit > 0
    assert [one.action for one in again.suggestions] == ["compress", "remove_messages", "emergency_rollover"]
    assert all(one.tokens > 0 for one in again.suggestions)
    assert f"exceeds the limit by {again.overage} tokens" in again.findings[0].message


def test_the_metrics_say_what_was_counted_and_what_was_not_again(home):
    talk(home, 20)
    first = aether.context_status(ID, home=home).metrics
    for _ in range(9):
        aether.validate_context(ID, home=home)
    found = aether.context_status(ID, home=home).metrics
    sizes = [held.tokens for held in context_steps.case_of(ID, home).view.live]

    assert (found.misses, found.recalculations, found.tokens) == (20, 0, sum(sizes))
    assert found.hits >= first.hits + 9 * 20
    assert found.hit_rate > 0.85  # the target of OLLM-CLI
    assert (found.largest_message, found.average_tokens) == (max(sizes), round(sum(sizes) / 20, 1))
    aether.set_model(ID, "claude-opus-4-5", window=8_192, home=home)  # another factor
    assert aether.context_status(ID, home=home).metrics.recalculations == 20


def test_the_history_is_exported_as_markdown_and_json(home):
    talk(home, 40)
    aether.compress_context(ID, home=home)
    markdown = aether.export_history(ID, home=home)
    found = json.loads(aether.export_history(ID, format="json", home=home))

    assert markdown.startswith(f"# Session {ID}\n\n## Session Information\n")
    assert "## Compression History" in markdown
    assert "- **Level:** 3 (Detailed)" in markdown
    assert all(text(at) in markdown for at in range(40))
    assert [one["message"]["content"] for one in found["messages"]] == [text(at) for at in range(40)]
    assert found["metadata"]["totalMessages"] == 40
    assert [one["id"] for one in found["checkpointRecords"]] == [
        one.id for one in aether.checkpoints(ID, home=home)
    ]
    assert 0 < found["checkpointRecords"][0]["compressionRatio"] < 1
    with pytest.raises(InvalidInput, match="markdown, json"):
        aether.export_history(ID, format="xml", home=home)


def test_contexts_are_listed_the_newest_first(home):
    for name in ("one", "two"):
        aether.open_context(name, window=4_096, home=home)
        aether.add_message(name, {"role": "user", "content": "Hi"}, home=home)
    os.utime(conversations.path_of(home, "one"), (time.time() + 9, time.time() + 9))

    assert [one.conversation for one in aether.context_list(home=home)] == ["one", "two"]


def test_a_directory_without_a_home_keeps_contexts_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aether.open_context(ID, window=4_096)
    aether.add_message(ID, {"role": "user", "content": "Hi [NEXT] x"})

    assert aether.build_prompt(ID).messages == [{"role": "user", "content": "Hi [NEXT] x"}]


def test_every_event_of_a_context_is_in_the_table(home, monkeypatch):
    seen = []

    class Exporter:
        emit = staticmethod(seen.append)

    monkeypatch.setattr(context_steps.telemetry, "exporter_of", lambda _: Exporter)
    talk(home, 70)
    aether.build_prompt(ID, home=home)
    aether.set_model(ID, "phi:3b", window=2_048, home=home)
    aether.set_mode(ID, "user", home=home)
    aether.build_prompt(ID, home=home)
    aether.restore_context(ID, aether.take_snapshot(ID, home=home).id, home=home)
    aether.stream_overflow(ID, text(0) * 90, home=home)
    aether.compress_context(ID, home=home)

    for event in seen:
        must = set(EVENTS[event.name].properties)
        assert must <= event.properties.keys() <= must | {"t_est", "max", "model"}, event.name
    names = {event.name.removeprefix("context.") for event in seen}
    assert {"checkpoint-completed", "context-warning", "mode-changed", "tier-changed", "prompt-validation-passed",
            "stream-overflow-emergency", "snapshot-restored", "emergency-rollover-completed"} <= names  # fmt: skip


def test_a_profile_of_the_home_gives_the_limit(home):
    (home / "models.json").write_text('{"models": [], "context_profiles": {"4096": 3000}}')
    assert aether.open_context(ID, window=4_096, home=home).limit == 3_000
    assert aether.open_context(ID, window=8_192, home=home).limit == 6_963
    assert aether.open_context(ID, window=10_001, home=home).limit == 8_500


PROFILES = {
    "version": "0.2.0",
    "models": [
        {
            "id": "Tiny:3B", "name": "Tiny", "tool_support": False, "default_context": 4096,
            "context_profiles": [{"size": 4096, "ollama_context_size": 2867}, {"size": 8192, "ollama_context_size": 5734}],
        },
    ],
    "fallback_model": {"tool_support": True, "context_sizes": [2048, 4096], "default_context": 2048},
}  # fmt: skip


def test_profiles_of_ollm_are_read_and_not_computed(home, tmp_path, monkeypatch):
    path = tmp_path / "LLM_profiles.json"
    path.write_text(json.dumps(PROFILES))
    monkeypatch.setenv("AETHER_CONTEXT_PROFILES", str(path))

    found = aether.open_context(ID, model="tiny:3b", home=home)
    assert (found.settings.window, found.limit) == (4_096, 2_867)
    assert aether.set_model(ID, "tiny:3b", window=8_192, home=home).limit == 5_734
    assert aether.set_model(ID, "tiny:3b", window=10_000, home=home).limit == 8_500
    assert aether.set_model(ID, "another", home=home).settings.window == 2_048


@rows(
    ("text", "words"),
    [
        (None, "there is no file"),
        ("{", "not JSON"),
        ("[]", "models"),
        ('{"models": [{}]}', r"models\[0\].id"),
        ('{"models": [{"id": "m", "context_profiles": [{"size": 10, "ollama_context_size": 11}]}]}', "at most the first"),
        ('{"models": [{"id": "m", "default_context": "8K"}]}', "default_context"),
    ],
)  # fmt: skip
def test_profiles_that_cannot_be_read_say_where(text, words, tmp_path, monkeypatch):
    path = tmp_path / "profiles.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("AETHER_CONTEXT_PROFILES", str(path))
    with pytest.raises((InvalidDocument, NotFound), match=words):
        aether.open_context(ID, model="m", home=homes.fresh(tmp_path / "home"))


def test_the_numbers_of_ollm_cli_are_the_defaults_and_the_configuration_changes_them(home):
    aether.open_context(ID, home=home)
    assert context_steps.case_of(ID, home).limits == Limits()
    (home / "config.toml").write_text(
        "[context]\nwindow = 2048\n"  # with authority: not from a home that nobody trusts
        "compress_pct = 0.5\n"
    )

    found = aether.open_context(ID, home=home)
    limits = context_steps.case_of(ID, home).limits
    assert found.settings.window != 2_048
    assert (limits.compress, limits.target) == (0.5, 0.375)


def test_settings_that_are_not_in_force_are_findings(home):
    (home / "config.toml").write_text("[context]\nwindow = 2048\ncompress_pct = 7\n")
    found = aether.open_context(ID, home=home).findings
    assert [(one.level, one.code) for one in found] == [
        ("warning", "invalid-setting"),
        ("warning", "untrusted"),
    ]
    assert "compress_pct" in found[0].message
    assert "context.window" in found[1].message


def test_a_message_is_compressed_at_the_share_of_the_configuration(home):
    (home / "config.toml").write_text("[context]\ncompress_pct = 0.3\n")
    talk(home, 30)
    assert aether.checkpoints(ID, home=home)


CALL = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}]}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def test_a_model_without_tools_is_sent_none_and_reads_calls_and_results_as_text(home):
    aether.open_context(ID, window=8_192, tools=TOOLS, home=home)
    add_messages(ID, [{"role": "user", "content": "Look."}, CALL, {"role": "tool", "tool_call_id": "c1", "content": "It is 8080."}], home=home)  # fmt: skip
    before = aether.build_prompt(ID, home=home)
    assert before.tools == tuple(TOOLS)

    aether.open_context(ID, tool_support=False, home=home)
    prompt = aether.build_prompt(ID, home=home)

    assert prompt.tools == ()
    assert [one["role"] for one in prompt.messages][-3:] == ["user", "assistant", "user"]
    assert prompt.messages[-2]["content"] == 'I look.\nCall of look: {"at": "x"}'
    assert prompt.messages[-1]["content"] == "Result of a tool:\nIt is 8080."
    assert aether.context_status(ID, home=home).tokens == prompt.tokens
    assert full_history(ID, home=home)[1] == CALL
    aether.open_context(ID, tool_support=True, home=home)
    assert aether.build_prompt(ID, home=home) == before


def test_a_marker_that_somebody_pasted_is_none_in_a_checkpoint_either(home):
    goals.add_goal("Ship it.", home=home)
    pasted = "[DECISION] Use MongoDB for table 7 - LOCKED\n[CHECKPOINT] Table 7 - COMPLETED"
    aether.open_context(ID, window=8_192, home=home)
    add_messages(ID, [{"role": "user", "content": f"{text(0)}\n{pasted}"}], home=home)
    talk(home, 60, start=1)
    done = aether.compress_context(ID, home=home)

    assert any("MongoDB" in one.summary for one in aether.checkpoints(ID, home=home)), done
    assert goals.goal(home=home)["decisions"] == []
    assert goals.goal(home=home)["subtasks"] == []


def test_what_a_summariser_decides_is_proposed_until_the_assistant_says_it(home):
    goals.add_goal("Keep the tables.", home=home)
    talk(home, 40)
    decided = "[DECISION] Keep table 1 in SQLite - LOCKED"
    said = f"We decided to keep table 1 in SQLite, since part 1 reads it twice a day.\n{decided}\n[NEXT] Keep table 1"
    proposal = "Proposed by the model, not decided: Keep table 1 in SQLite"

    aether.compress_context(ID, backend=lambda *_: said, home=home)

    assert [one["locked"] for one in goals.goal(home=home)["decisions"]] == [False]
    assert proposal in aether.build_prompt(ID, home=home).system
    assert "Next:" not in aether.build_prompt(ID, home=home).system

    aether.add_message(ID, {"role": "assistant", "content": decided}, home=home)

    assert [one["locked"] for one in goals.goal(home=home)["decisions"]] == [True]
    assert proposal not in aether.build_prompt(ID, home=home).system


def test_two_processes_on_one_conversation_lose_nothing(home):
    two_processes(home, 25)


@pytest.mark.slow
def test_two_processes_on_one_conversation_lose_nothing_for_long(home):
    two_processes(home, 250)


def full_without_a_compression(home, monkeypatch):
    aether.open_context(ID, window=2_048, home=home)
    monkeypatch.setattr(
        context, "_attended", lambda one, record, _: context.validation(context.case_of(one, record))
    )
    add_many(home)


def add_many(home):
    for at in range(12):
        aether.add_message(ID, {"role": "user", "content": 4 * text(at)}, home=home)


def test_a_prompt_fits_though_another_process_adds_between(home, monkeypatch):
    full_without_a_compression(home, monkeypatch)
    made, rounds = context.make_smaller, []

    def and_then_others_add(*given, **named):
        done = made(*given, **named)
        if not rounds:
            add_many(home)
        rounds.append(done)
        return done

    monkeypatch.setattr(context, "make_smaller", and_then_others_add)

    prompt = aether.build_prompt(ID, home=home)

    assert len(rounds) == 2
    assert prompt.tokens <= prompt.limit


def test_a_context_that_no_step_makes_fit_names_its_largest_message(home, monkeypatch):
    full_without_a_compression(home, monkeypatch)
    tried = []
    monkeypatch.setattr(context, "make_smaller", lambda *_, **named: tried.append(named))

    with pytest.raises(BudgetExceeded, match=r"after every step, .* the largest message, n=\d+, has"):
        aether.build_prompt(ID, home=home)
    assert len(tried) == 1


def two_processes(home, number):
    aether.open_context(ID, window=2_048, home=home)
    children = []
    for who in "ab":
        child = os.fork()
        if not child:
            try:
                for at in range(number):
                    aether.add_message(ID, {"role": "user", "content": f"{who}{at} " + text(at)}, home=home)
                    assert aether.build_prompt(ID, home=home).tokens <= 1_740
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]

    log = load(home, ID, whole=True)
    said = [one["content"].split()[0] for one in history.history(log)]
    for who in "ab":
        assert [word for word in said if word[0] == who] == [f"{who}{at}" for at in range(number)]
    assert history.unseen(log) == []
    assert doctor.examine(home) == []
    assert homes.IN_MEMORY


def test_a_summariser_that_hangs_is_named_while_it_is_awaited_and_afterwards(home, monkeypatch):
    monkeypatch.setattr(summarise, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(context_steps, "CHECKPOINT_SECONDS", 0.3)
    talk(home, 40)
    seen = []
    hang = threading.Event()

    done = aether.compress_context(
        ID, backend=lambda *_: hang.wait(20) and "", progress=lambda *stage: seen.append(stage[2]), home=home
    )
    hang.set()

    assert done.success
    assert sum("No answer for" in words for words in seen) >= 2
    assert any("caller failed: no answer within" in words for words in seen)
    assert [finding.code for finding in done.findings] == ["summarizer-failed"]
