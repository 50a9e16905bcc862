"""The compaction manager, and the defects of the original that it must not repeat (by their numbers)."""

from __future__ import annotations

import copy
import json
import os
from types import SimpleNamespace

import pytest

from aether.api import conversations, tokens
from aether.compat.compact_manager import (
    CompactError,
    CompactManager,
    InsufficientBudgetError,
    Message,
    SummarizationError,
    TokenBudget,
    mark_protected,
)
from aether.conversation.policy import CompactConfig, CompactPolicy
from aether.errors import AetherError, NotFound
from aether.messages import convert
from aether.messages.validate import check
from tests.tables import rows


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Stand in a directory without a home and without keys."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("COMPACT_", "OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)


class Sink:
    """An exporter as Ariadne's compaction extension has it."""

    def __init__(self):
        self.events = []

    def emit_event(self, event_type, properties, payload=None):
        self.events.append((event_type, properties, payload))

    def flush(self):
        pass

    def names(self):
        return [name for name, _, _ in self.events]

    def of(self, name):
        return [properties for known, properties, _ in self.events if known == name]


def config(window=2000, **given):
    policy = {"hard_cap_buffer": 100, **given.pop("policy", {})}
    return CompactConfig(
        max_context_tokens=window, policy=CompactPolicy(**policy), telemetry_enabled=False, **given
    )


def pair(nth, text="the parser takes a lock and releases it when it is done"):
    return [
        {"role": "user", "content": f"Question {nth}: how does part {nth} work?"},
        {"role": "assistant", "content": f"Answer {nth}: {text}. " * 3},
    ]


def pairs(count):
    return [message for nth in range(count) for message in pair(nth)]


def tool_pair(nth, words=60):
    call = {
        "id": f"c{nth}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "m{nth}.py"}}'},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{nth}", "content": f"m{nth} says something; " * words},
    ]


def test_it_needs_no_key_no_network_and_no_home():
    """Defect 17: without OPENAI_API_KEY it could not be constructed."""
    result = CompactManager().preflight("s", pairs(3))

    assert not result.was_triggered


def test_below_the_trigger_the_very_list_comes_back():
    messages = pairs(3)

    result = CompactManager(config()).preflight("s", messages)

    assert result.messages is messages
    assert (result.summary, result.pruned_count, result.kept) == (None, 0, {})
    assert result.tokens_before == result.tokens_after > 0


def test_a_large_list_becomes_smaller_and_the_result_names_the_changes():
    messages = pairs(40)

    result = CompactManager(config()).preflight("s", messages)

    assert result.was_triggered
    assert result.tokens_after <= 1900 < result.tokens_before
    assert result.pruned_count == len(messages) - len(result) + 1
    assert result.summary["content"].startswith("<COMPACT-SUMMARY v1>")
    assert list(result) == result.messages
    assert all(any(kept is message for message in messages) for kept in result if kept is not result.summary)


def test_a_turn_is_a_pair_and_not_a_message():
    """Defect 2: 40 messages with keep 6 kept 6 messages."""
    result = CompactManager(config()).preflight("s", pairs(40))

    assert result.kept["recent_turns"] == 12
    assert result.messages[-12:] == pairs(40)[-12:]


def test_equal_messages_do_not_collapse():
    """Defect 3: membership was by value."""
    same = [message for _ in range(40) for message in pair(1)]

    result = CompactManager(config()).preflight("s", same)

    assert result.messages[-12:] == same[-12:]


@rows("value", [True, 1, "true", "yes"])
def test_the_flag_of_the_policy_protects_where_it_is_truthy(value):
    """Defect 4: the setting was ignored, and only `is True` counted."""
    law = {"role": "user", "content": "Never deploy on a Friday.", "meta": {"pinned": value}}
    messages = [*pairs(20), law, *pairs(20)]

    result = CompactManager(config(policy={"protected_flag": "pinned"})).preflight("s", messages)

    assert any(kept is law for kept in result)


def test_order_stays_and_no_pair_is_split():
    """Defect 5: results stood after later turns, late system messages were hoisted, orphans were kept."""
    late = {"role": "system", "content": "From now on, answer in French."}
    messages = [*pairs(5), *(one for nth in range(12) for one in tool_pair(nth)), late, *pairs(5)]
    own = {id(message): nth for nth, message in enumerate(messages)}

    result = CompactManager(config()).preflight("s", messages)

    places = [own[id(message)] for message in result if id(message) in own]
    assert places == sorted(places)
    assert any(message is late for message in result)
    found = check(convert.read(result.messages, "openai"), "openai")
    assert [one for one in found if one.level == "error"] == []


@rows(("used", "fires"), [(108_800, True), (96_000, False), (108_799, False)])
def test_the_trigger_is_a_share_of_the_whole_window(used, fires):
    """Defect 6: it divided by the window less the buffer, and fired at 107 525."""
    around = 4 * 80  # what messages cost beside their text
    share, rest = divmod(used - around, 80)
    messages = [
        {
            "role": "user" if nth % 2 == 0 else "assistant",
            "content": f"{nth} ".ljust(share + (nth < rest), "x"),
        }
        for nth in range(80)
    ]
    manager = CompactManager(CompactConfig(telemetry_enabled=False), token_estimator=len)

    result = manager.preflight("s", messages)

    assert result.tokens_before == used
    assert result.was_triggered is fires


def test_keep_counts_go_down_one_at_a_time_and_come_back():
    """Defects 8 and 9: at most two steps, both at once, and the lowered ones stayed."""
    manager = CompactManager(config(window=1000, policy={"hard_cap_buffer": 50}))
    large = [{**one, "content": one["content"] * 2} for one in pairs(10)]

    squeezed = manager.preflight("s", large)
    easy = manager.preflight("t", pairs(3))

    assert squeezed.policy_applied.keep_recent_turns < 6
    assert squeezed.tokens_after <= 950
    assert easy.policy_applied.keep_recent_turns == 6
    assert manager.config.policy.keep_recent_turns == 6


def test_messages_that_cannot_fit_raise_emit_an_error_and_change_nothing():
    """Defects 8 and 19: no `compact.error` was ever emitted, and the hook sent the prompt anyway."""
    sink = Sink()
    manager = CompactManager(config(window=1000), exporter=sink)
    messages = [mark_protected("the law is long " * 600), Message("user", "Go.")]
    before = copy.deepcopy(messages)

    with pytest.raises(InsufficientBudgetError, match="protected") as caught:
        manager.preflight("s", messages)

    assert isinstance(caught.value, CompactError)
    assert caught.value.exit_code == 7
    assert messages == before
    assert sink.of("compact.error")[0]["error_type"] == "BudgetExceeded"


def test_there_is_one_summary_however_often():
    """Defect 10: each compaction pinned one more summary, and none had a version."""
    manager = CompactManager(config())
    messages = pairs(2)
    versions = []
    for round_ in range(4):
        messages = [*messages, *(one for nth in range(40) for one in pair(f"{round_}.{nth}"))]
        result = manager.preflight("s", messages)
        messages = result.messages
        versions.append(result.summary["content"].partition("\n")[0])
        assert sum("<COMPACT-SUMMARY" in message["content"] for message in messages) == 1

    assert versions == [f"<COMPACT-SUMMARY v{nth}>" for nth in (1, 2, 3, 4)]


def test_every_decision_has_its_event():
    """Defect 11: nothing was told where nothing triggered, and pruning alone was silent."""
    sink = Sink()
    manager = CompactManager(config(), exporter=sink)
    manager.preflight("s", pairs(2))
    assert sink.names() == ["compact.token_estimate", "compact.trigger_decision"]
    assert sink.events[0][1]["session_id"] == "s"

    manager.manual_compact("s", pairs(40), note="before the release")

    assert sink.of("compact.trigger_decision")[1]["note"] == "before the release"
    assert {"compact.summary_created", "compact.pruned_messages", "compact.archival"} <= set(sink.names())


def test_an_exporter_of_aethers_own_kind_gets_the_events_too():
    events = []

    class Own:
        def emit(self, event):
            events.append(event.name)

        def flush(self):
            pass

        def close(self):
            pass

    CompactManager(config(), exporter=Own()).preflight("s", pairs(2))

    assert events == ["compact.token_estimate", "compact.trigger_decision"]


def test_a_sink_that_fails_does_not_get_in_the_way(capsys):
    class Broken:
        def emit_event(self, *_):
            raise RuntimeError("down")

    result = CompactManager(config(), exporter=Broken()).preflight("s", pairs(40))

    assert result.was_triggered
    assert "RuntimeError: down" in capsys.readouterr().err


def test_copies_are_kept_redacted_and_never_written_over(tmp_path):
    """Defects 12 and 14: storage was never called, the step never rose, and `meta` was not redacted."""
    key = "sk-ant-" + "a1B2" * 12
    manager = CompactManager(config(storage_path="copies"))
    secret = {"role": "user", "content": f"api_key={key}", "meta": {"password": key}}

    first = manager.preflight("s", [secret, *pairs(40)])
    second = manager.preflight("s", [*first.messages, *pairs(40)])

    kept = sorted(path.name for path in (tmp_path / "copies" / "s").iterdir())
    assert kept == [
        "events.jsonl", "lock", "summary-001.json", "summary-002.json", "transcript-pre-compact-001.jsonl",
        "transcript-pre-compact-002.jsonl",
    ]  # fmt: skip
    text = "".join(path.read_text() for path in (tmp_path / "copies" / "s").iterdir())
    assert key not in text
    assert "api_key=<REDACTED>" in text
    assert second.messages[0] is secret
    events = [
        json.loads(line)["event"] for line in (tmp_path / "copies/s/events.jsonl").read_text().splitlines()
    ]
    assert events.count("compact.archival") == 2
    assert "compact.token_estimate" not in events


def test_a_session_id_cannot_lead_out(tmp_path):
    """Defect 13: `../evil` escaped the archive."""
    CompactManager(config()).preflight("../../evil", pairs(40))

    assert {path.name for path in tmp_path.iterdir()} == {".compact"}
    assert not (tmp_path.parent / "evil").exists()


def test_storage_and_redaction_can_be_turned_off(tmp_path):
    sink = Sink()
    manager = CompactManager(config(storage_enabled=False, redaction_enabled=False), exporter=sink)

    manager.preflight("s", pairs(40))

    assert not (tmp_path / ".compact" / "archive").exists()
    assert sink.of("compact.redaction_disabled")[0]["severity"] == "high"


def test_a_storage_of_the_callers_own_gets_the_copies():
    kept = []

    class Store:
        def save_transcript(self, session_id, messages, step):
            kept.append((session_id, len(messages), step))

        def save_summary(self, session_id, summary, step):
            kept.append((session_id, summary["text"][:20], step))

        def save_event(self, session_id, event):
            kept.append((session_id, event["event"]))

    CompactManager(config(), storage=Store()).preflight("s", pairs(40))

    assert {("s", 80, 1), ("s", "<COMPACT-SUMMARY v1>", 1), ("s", "compact.pruned_messages")} <= set(kept)


def test_a_storage_that_fails_costs_an_event_and_not_the_conversation(home):
    class Broken:
        name = "tape"

        def save_transcript(self, *_):
            raise OSError("no tape")

        save_summary = save_event = save_transcript

    sink = Sink()
    result = CompactManager(config(), storage=Broken(), exporter=sink, home=home).preflight("s", pairs(40))

    assert result.was_triggered
    assert [(one.code, one.where) for one in result.findings if one.level == "warning"] == [
        ("copy-failed", "tape")
    ]
    assert sink.of("compact.error")[0]["error_type"] == "OSError"
    assert conversations.full_history("s", home=home) == pairs(40)


def test_calls_without_content_are_messages_too():
    """Defect 15: content None was a TypeError."""
    messages = [*pairs(2), *(one for nth in range(30) for one in tool_pair(nth, words=20))]

    result = CompactManager(config()).preflight("s", messages)

    assert result.was_triggered
    assert result.kept["tool_pairs"] >= 2


def test_the_configuration_of_the_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("COMPACT_MAX_CONTEXT_TOKENS", "4000")
    monkeypatch.setenv("COMPACT_TELEMETRY_ENABLED", "false")

    manager = CompactManager()

    assert (manager.config.max_context_tokens, manager.config.exporter) == (4000, "none")


def test_the_hook_replaces_the_messages_with_all_that_belongs_to_them():
    """Defect 19: it dropped calls and ids."""

    class Context:
        session_id = None
        system_prompt = "Be brief."
        tools = ({"name": "read"},)
        messages = (*pairs(20), *(one for nth in range(6) for one in tool_pair(nth)))

    ctx = CompactManager(config()).before_model_call(Context())

    assert len(ctx.messages) < 52
    assert {message.get("tool_call_id") for message in ctx.messages if message["role"] == "tool"} <= {
        call["id"] for message in ctx.messages for call in message.get("tool_calls", ())
    }
    assert conversations.conversation_ids(home=".compact") == ["default"]


def test_system_and_tools_count():
    tools = [{"name": f"tool{nth}", "description": "does something useful " * 20} for nth in range(20)]
    manager = CompactManager(config())

    assert not manager.preflight("s", pairs(12)).was_triggered
    assert manager.preflight("t", pairs(12), tools=tools, system="Be kind.").was_triggered


@pytest.mark.parametrize(
    "answer",
    ["", "I'm sorry, but I can't help with that.", "Error: rate limit exceeded", RuntimeError("down"), None, "word " * 9000],
)  # fmt: skip
def test_a_failing_summarizer_is_reported_and_the_result_has_no_summary(answer):
    """Defect 20: refusals were not noticed, and error text became memory."""
    sink = Sink()

    class Own:
        def summarize(self, messages, max_tokens, policy):
            assert messages
            assert isinstance(messages[0], Message)
            assert (max_tokens > 0, policy.keep_recent_turns) == (True, 6)
            if isinstance(answer, Exception):
                raise answer
            return answer

    result = CompactManager(config(), summarizer=Own(), exporter=sink).preflight("s", pairs(40))

    assert result.tokens_after <= 1900
    assert sink.of("compact.error")
    assert not answer or str(answer)[:30] not in result.summary["content"]


def test_a_summarizer_of_the_callers_own_writes_the_summary():
    class Own:
        def summarize(self, messages, max_tokens, policy):
            return "The parser locks src/lock.py; part 7 is next, and the release waits for review."

    result = CompactManager(config(), summarizer=Own()).preflight("s", pairs(40))

    assert "part 7 is next, and the release waits" in result.summary["content"]


def test_message_objects_go_in_and_come_out():
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    law = mark_protected("Never deploy on a Friday.", label="law", why="audit")
    messages = [
        law,
        *(Message(one["role"], one["content"]) for one in pairs(40)),
        Message("assistant", None, {"tool_calls": [call]}),
        Message("tool", "x", {"tool_call_id": "c", "label": "kept"}),
    ]

    result = CompactManager(config()).preflight("s", messages)

    assert all(isinstance(message, Message) for message in result)
    assert result.messages[0] is law
    assert result.messages[-2:] == messages[-2:]
    assert result.summary.role == "assistant"
    assert (law.is_protected(), law.get_label(), law.meta["why"]) == (True, "law", "audit")


def test_a_message_object_that_was_shortened_keeps_its_meta():
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        Message("user", "Read it."),
        Message("assistant", None, {"tool_calls": [call]}),
        Message("tool", "a long line of text; " * 600, {"tool_call_id": "c", "label": "result"}),
        Message("user", "Go on."),
    ]

    result = CompactManager(config()).preflight("s", messages)

    (shortened,) = [message for message in result if message.role == "tool"]
    assert len(shortened.content) < len(messages[2].content)
    assert shortened.meta == messages[2].meta


@rows(
    ("value", "protects"), [(True, True), (1, True), ("true", True), ("Yes", True), ("false", False), (0, False), (None, False)]
)  # fmt: skip
def test_a_flag_protects_where_it_is_true(value, protects):
    assert Message("user", "x", {"protected": value}).is_protected() is protects


def test_an_unknown_role_is_refused():
    with pytest.raises(AetherError, match="'robot' is not a role"):
        Message("robot", "x")
    with pytest.raises(AetherError, match="is not a message"):
        CompactManager(config()).preflight("s", ["text"])


def test_a_budget_counts_each_part():
    manager = CompactManager(config(), token_estimator=lambda text: len(text.split()))
    messages = [
        Message("system", "be kind"),
        mark_protected("never on a Friday"),
        Message("user", "go on"),
    ]

    found = manager.budget(messages, system="one two three", tools=[{"name": "x"}])

    assert found == TokenBudget(3 + 4 + 6, 8, 1, 6)
    assert found.total == 28


def test_manual_compaction_always_runs_and_takes_two_fifths():
    messages = pairs(20)
    manager = CompactManager(CompactConfig(telemetry_enabled=False))

    result = manager.manual_compact("s", messages)

    assert result.was_triggered
    assert result.tokens_after <= 0.6 * result.tokens_before


def test_the_errors_are_those_of_aether():
    assert issubclass(InsufficientBudgetError, CompactError)
    assert issubclass(SummarizationError, CompactError)


def test_the_usage_of_the_provider_corrects_the_next_count(home):
    manager = CompactManager(config(9_000, model="some-model"), home=home)
    ctx = SimpleNamespace(session_id="s", messages=pairs(12))
    before = manager.preflight("s", ctx.messages).tokens_after

    ctx = manager.before_model_call(ctx)
    ctx.usage = {"prompt_tokens": 2 * before}
    assert manager.after_model_call(ctx) is ctx

    assert manager.preflight("s", ctx.messages).tokens_after == pytest.approx(2 * before, rel=0.1)
    (listed,) = tokens.models("some-model", home=home)
    assert (listed.factor, listed.reports) == (2.0, 1)
    assert manager.record_usage("s", 2 * before)
    assert not manager.record_usage("s", 2 * before)


def test_without_a_home_or_a_report_nothing_is_learned(tmp_path):
    manager = CompactManager(config(9_000, model="some-model"))
    manager.preflight("default", pairs(12))

    manager.after_model_call(SimpleNamespace())
    assert not manager.record_usage("default", 900)

    assert not list(tmp_path.rglob("usage.json"))


def test_no_event_is_exported_by_default(capsys):
    CompactManager().preflight("quiet", [{"role": "user", "content": "Hi."}])

    assert capsys.readouterr().err == ""


def test_a_configuration_may_be_the_name_of_its_file(tmp_path, monkeypatch):
    (tmp_path / "compact.toml").write_text("max_context_tokens = 5000\n[policy]\ntrigger_pct = 0.5\n")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.7")

    config = CompactManager(str(tmp_path / "compact.toml")).config

    assert (config.max_context_tokens, config.policy.trigger_pct) == (5000, 0.7)
    with pytest.raises(NotFound, match=r"none.toml"):
        CompactManager(tmp_path / "none.toml")


def test_a_variable_with_a_slip_is_a_finding_of_each_result(monkeypatch):
    monkeypatch.setenv("COMPACT_FOO", "1")
    said = [{"role": "user", "content": f"Read page {nth}. " * 300} for nth in range(40)]

    manager = CompactManager()
    calm, made = manager.preflight("a", said[:1]), manager.manual_compact("b", said)

    assert [result.findings[0].where for result in (calm, made)] == ["COMPACT_FOO", "COMPACT_FOO"]
