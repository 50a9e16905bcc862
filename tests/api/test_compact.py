"""Compaction of a conversation, its options and its receipts."""

from __future__ import annotations

import asyncio
import json
from threading import Event as Event_

import pytest

import aether
from aether import clock
from aether.api import compact, conversations, tokens
from aether.api.compact import (
    DEFAULT_OPTIONS,
    Options,
    answered,
    compaction_plan,
    options_from_config,
    preflight,
    redaction_rules,
    resolve_case,
    undo_compaction,
)
from aether.api.compact import compact as compact_compact
from aether.conversation.policy import CompactConfig
from aether.conversation.receipts import checksum
from aether.errors import BudgetExceeded, Conflict, InvalidInput, NotFound, StorageFailed
from aether.events.events import Event, Moment, token_estimate, trigger_decision
from aether.messages.convert import read
from aether.messages.validate import check
from aether.redact.redact import redact
from aether.store import conversations as store_conversations
from aether.store import history as store_history
from aether.store.conversations import load
from tests.laws.histories import deep, history
from tests.tables import rows

WINDOW = 8_000


class Reported:
    """An exporter that remembers."""

    def __init__(self):
        self.events: list[Event] = []

    def emit(self, event):
        self.events.append(event)

    def flush(self):
        pass

    def close(self):
        pass


class Kept:
    """A storage adapter that remembers, or fails."""

    name = "memory"

    def __init__(self, fails=False):
        self.fails, self.transcripts, self.summaries = fails, {}, {}

    def save_transcript(self, session_id, messages, step):
        if self.fails:
            raise StorageFailed("full.", fix="Free some space.")
        self.transcripts[step] = messages
        return f"memory/{step}"

    def save_summary(self, session_id, summary, step):
        self.summaries[step] = summary
        return f"memory/{step}"

    def save_event(self, session_id, event):
        return "memory"


def long(wire="openai", turns=12):
    return history(5, wire, turns=turns)


def talk(pairs, words=60):
    said = [{"role": "system", "content": "Be brief."}]
    for nth in range(pairs):
        said.append({"role": "user", "content": f"Question {nth}: " + "why so " * words})
        said.append({"role": "assistant", "content": f"Answer {nth}: " + "because of " * words})
    return said


def errors(messages, wire):
    return [finding for finding in check(read(messages, wire), wire) if finding.level == "error"]


def test_below_every_trigger_the_very_messages_come_back_and_nothing_is_stored(home):
    messages = talk(3)

    done = preflight("c", messages, window=100_000, home=home)

    assert not done.triggered
    assert all(new is old for new, old in zip(done.messages, messages, strict=True))
    assert done.receipt is None
    assert list(store_conversations.stored_conversations(home)) == []


@pytest.mark.parametrize("wire", ["openai", "anthropic", "responses", "gemini", "plain"])
def test_a_conversation_that_is_too_long_fits_afterwards_and_is_valid(home, wire):
    messages = long(wire)

    done = preflight("c", messages, window=WINDOW, wire=wire, home=home)

    assert done.triggered
    assert done.tokens_before > WINDOW
    assert done.tokens_after <= done.limit < WINDOW
    assert errors(done.messages, wire) == []


def test_the_given_messages_are_not_changed(home):
    messages = long()
    before = json.dumps(messages)

    preflight("c", messages, window=WINDOW, home=home)

    assert json.dumps(messages) == before


def test_undo_gives_everything_back_across_several_compactions(home):
    first = long(turns=8)
    once = preflight("c", first, window=WINDOW, home=home).messages
    later = history(6, "openai", turns=8)[1:]
    twice = preflight("c", [*once, *later], window=WINDOW, home=home)
    assert twice.triggered

    one = undo_compaction("c", home=home)
    two = undo_compaction("c", home=home)

    assert json.dumps(one.messages) == json.dumps([*once, *later])
    assert json.dumps(two.messages) == json.dumps([*first, *later])
    with pytest.raises(NotFound):
        undo_compaction("c", home=home)


def test_the_receipt_accounts_for_every_message(home):
    messages = long()

    receipt = preflight("c", messages, window=WINDOW, home=home).receipt

    stayed = [place for place in receipt.places if place is not None]
    assert sorted([*stayed, *receipt.removed]) == list(range(len(messages)))
    assert set(receipt.protected) <= set(stayed)
    assert receipt.sha256_before == checksum(map(store_conversations.files.json_line, messages))
    assert receipt.step == 1
    assert receipt.summary["backend"] == "extractive"
    assert load(home, "c").compactions[0].receipt == json.loads(json.dumps(receipt._asdict()))


def test_a_compaction_writes_each_message_as_json_once(home, monkeypatch):
    written, real = [], store_conversations.files.json_line
    monkeypatch.setattr(
        store_conversations.files,
        "json_line",
        lambda value, **how: written.append(value) or real(value, **how),
    )
    messages = long()

    preflight("c", messages, window=WINDOW, home=home)

    assert [sum(value is message for value in written) for message in messages] == [1] * len(messages)


def test_a_plan_changes_nothing(home):
    made = compaction_plan("c", long(), window=WINDOW, home=home)

    assert made.triggered
    assert made.task is not None
    assert list(store_conversations.stored_conversations(home)) == []


def test_a_conversation_that_cannot_fit_raises_stores_nothing_and_emits_an_error(home):
    messages = talk(3)
    messages.insert(1, {"role": "user", "content": "word " * 9_000, "meta": {"protected": True}})
    reported = Reported()

    with pytest.raises(BudgetExceeded, match="protected"):
        preflight("c", messages, window=WINDOW, options=Options(exporter=reported), home=home)

    assert reported.events[-1].name == "compact.error"
    assert list(store_conversations.stored_conversations(home)) == []


def test_neither_a_window_nor_a_model_is_an_error(home):
    with pytest.raises(InvalidInput, match="neither"):
        preflight("c", talk(1), home=home)


@pytest.mark.parametrize("window", [0, -1])
def test_an_invalid_window_is_rejected(home, window):
    with pytest.raises(InvalidInput, match="not a window"):
        preflight("c", talk(1), window=window, home=home)


def test_an_unknown_model_gets_a_small_window_and_a_finding(home):
    done = preflight("c", talk(1), model="nobody-knows-it", home=home)

    assert [finding.code for finding in done.findings] == ["unknown-model"]
    assert preflight("c", talk(1), model="nobody-knows-it", window=9_000, home=home).findings == []


def test_an_unknown_backend_is_the_callers_mistake(home):
    with pytest.raises(InvalidInput, match="nonsense"):
        preflight("c", long(), window=WINDOW, options=Options(backend="nonsense"), home=home)

    assert list(store_conversations.stored_conversations(home)) == []


def test_the_summary_holds_the_prose_of_the_model(home):
    options = Options(
        backend=lambda said, most, strategy: "They settled on the PostgreSQL parser for the walnut design."
    )

    done = preflight("c", long(), window=WINDOW, options=options, home=home)

    assert done.receipt.summary["backend"] == "caller"
    assert sum("walnut design" in json.dumps(message) for message in done.messages) == 1


def test_every_decision_emits_an_event(home):
    reported = Reported()

    preflight("c", talk(1), window=WINDOW, options=Options(exporter=reported), home=home)
    quiet = [event.name for event in reported.events]
    reported.events.clear()
    preflight("c", long(), window=WINDOW, options=Options(exporter=reported, storage=Kept()), home=home)

    assert quiet == ["compact.token_estimate", "compact.trigger_decision"]
    assert [event.name for event in reported.events] == [
        "compact.token_estimate", "compact.trigger_decision", "compact.summary_created", "compact.pruned_messages",
        "compact.archival",
    ]  # fmt: skip


def test_copies_are_redacted_and_what_is_sent_is_not(home):
    key = "sk-ant-" + "api03-" + "a1B2" * 20
    messages = [*long(), {"role": "user", "content": f"My api_key={key} must work."}]
    storage = Kept()

    done = preflight("c", messages, window=WINDOW, options=Options(storage=storage), home=home)

    assert key in json.dumps(done.messages)
    assert key not in json.dumps([storage.transcripts, storage.summaries])
    assert "<REDACTED>" in json.dumps(storage.transcripts[1])
    assert len(storage.transcripts[1]) == len(messages)


def test_copies_are_whole_without_redaction_and_a_warning_is_emitted(home):
    storage, reported = Kept(), Reported()
    messages = [*long(), {"role": "user", "content": "password=hunter2hunter2"}]

    preflight(
        "c",
        messages,
        window=WINDOW,
        options=Options(storage=storage, exporter=reported, rules=None),
        home=home,
    )

    assert "hunter2hunter2" in json.dumps(storage.transcripts)
    assert "compact.redaction_disabled" in [event.name for event in reported.events]


def test_a_copy_that_cannot_be_written_is_a_finding_because_the_home_has_the_whole(home):
    messages = long()

    done = preflight("c", messages, window=WINDOW, options=Options(storage=Kept(fails=True)), home=home)

    assert "copy-failed" in [finding.code for finding in done.findings]
    assert json.dumps(undo_compaction("c", home=home).messages) == json.dumps(messages)


@pytest.mark.parametrize("broken", ["next_step", "save_transcript", "save_summary"])
@pytest.mark.parametrize("error", [StorageFailed("gone.", fix="Wait."), RuntimeError("gone.")])
def test_a_place_for_copies_that_fails_anyhow_never_fails_the_compaction(home, broken, error):
    class Broken(Kept):
        def next_step(self, session_id):
            return 1

    def fail(*arguments):
        raise error

    storage, reported, messages = Broken(), Reported(), long()
    setattr(storage, broken, fail)

    done = preflight(
        "c", messages, window=WINDOW, options=Options(storage=storage, exporter=reported), home=home
    )

    assert "copy-failed" in [finding.code for finding in done.findings]
    assert [e.properties["message"] for e in reported.events if e.name == "compact.error"] == ["gone."]
    assert json.dumps(undo_compaction("c", home=home).messages) == json.dumps(messages)


def test_a_failing_summariser_is_a_finding(home):
    def broken(said, most, strategy):
        raise RuntimeError("no model today, api_key=sk-abc123")

    done = preflight("c", long(), window=WINDOW, options=Options(backend=broken), home=home)

    (reported,) = {finding for finding in done.findings if finding.code == "summary-not-taken"}
    assert "no model today, api_key=<REDACTED>" in reported.message
    assert "extractive" in reported.fix


def test_nobody_waits_for_events_to_arrive_and_no_exporter_ends_the_work(home, capsys):
    class Bad(Reported):
        def emit(self, event):
            raise RuntimeError("no viewer")

        def flush(self):
            raise AssertionError("it waits for the viewer")

    done = preflight("c", long(), window=WINDOW, options=Options(exporter=Bad()), home=home)

    assert done.triggered
    assert "[exporter] an event was lost: RuntimeError: no viewer" in capsys.readouterr().err


def test_a_home_that_is_named_and_none_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(NotFound):
        preflight("c", talk(1), window=WINDOW, home=tmp_path / "none")
    monkeypatch.setenv("AETHER_HOME", str(tmp_path / "none"))
    with pytest.raises(NotFound):
        preflight("c", talk(1), window=WINDOW)


def test_messages_of_another_process_stay_in_the_context(home):
    messages = long(turns=8)
    store_conversations.extend(home, "c", messages, now=clock.now())

    def slow(said, most, strategy):
        store_conversations.extend(
            home, "c", [{"role": "user", "content": "Said meanwhile."}], now=clock.now()
        )
        return "They settled on the PostgreSQL parser for the walnut design, after looking at three others."

    done = preflight("c", messages, window=WINDOW, options=Options(backend=slow), home=home)

    live = store_history.context(load(home, "c"))
    assert live == [*done.messages, {"role": "user", "content": "Said meanwhile."}]


def test_two_that_compact_one_conversation_at_once_both_succeed(home):
    messages = long(turns=8)
    store_conversations.extend(home, "c", messages, now=clock.now())
    others = []

    def slow(said, most, strategy):
        if not others:
            others.append(preflight("c", messages, window=WINDOW, home=home))
        return "They settled on the PostgreSQL parser for the walnut design, after looking at three others."

    done = preflight("c", messages, window=WINDOW, options=Options(backend=slow), home=home)

    assert (others[0].receipt.step, done.receipt.step) == (1, 2)
    assert store_history.context(load(home, "c")) == done.messages


def test_a_compaction_that_lost_a_race_does_not_ask_a_model_again(home):
    messages = long(turns=8)
    store_conversations.extend(home, "c", messages, now=clock.now())
    asked = []

    def slow(said, most, strategy):
        asked.append(most)
        preflight("c", messages, window=WINDOW, home=home)
        return "They settled on the PostgreSQL parser for the walnut design, after looking at three others."

    done = preflight("c", messages, window=WINDOW, options=Options(backend=slow), home=home)

    assert len(asked) == 1
    assert done.receipt.step == 2


def test_a_compaction_that_loses_every_race_raises_a_conflict(home, monkeypatch):
    def overtaken(*given, **named):
        raise Conflict("changed.", fix="Load it and compact it again.")

    monkeypatch.setattr(store_conversations, "record_compaction", overtaken)
    monkeypatch.setattr("aether.api.compact.CONFLICT_TRIES", 3)

    with pytest.raises(Conflict):
        preflight("c", long(turns=8), window=WINDOW, home=home)


def spoken(count):
    said = ("What of the parser? " * 20, "It takes a lock and gives it back. " * 20)
    return [{"role": ("user", "assistant")[nth % 2], "content": said[nth % 2]} for nth in range(count)]


def test_a_report_of_the_provider_corrects_the_next_count(home):
    asked = preflight("c", spoken(10), model="some-model", home=home)

    assert answered("c", {"prompt_tokens": 2 * asked.tokens_after}, home=home)

    again = preflight("c", spoken(10), model="some-model", home=home)
    assert again.tokens_after == pytest.approx(2 * asked.tokens_after, rel=0.05)
    assert again.counter.endswith("× 2")
    (listed,) = tokens.models("some-model", home=home)
    assert (listed.factor, listed.reports) == (2.0, 1)


def test_of_few_requests_is_remembered_that_they_were_made(home, monkeypatch):
    monkeypatch.setattr(compact, "KEPT_TALLIES", 2)
    monkeypatch.setattr(compact, "_REQUESTS", {})
    for name in "abc":
        preflight(name, spoken(10), model="some-model", home=home)

    assert [answered(name, 900, home=home) for name in "abc"] == [False, True, True]


def test_messages_that_are_not_live_any_more_are_not_compacted(home):
    """Another process compacts between the reading and the compacting of this one."""
    said = spoken(200)
    conversations.add_messages("c", said, home=home)
    compact_compact("c", said, window=WINDOW, home=home)

    with pytest.raises(Conflict, match="have changed since they were read"):
        compact_compact("c", said, window=WINDOW, options=Options(unsaved=()), home=home)

    assert conversations.full_history("c", home=home) == said
    assert len(load(home, "c").compactions) == 1


def test_messages_added_after_the_reading_stay_live(home):
    said, late = spoken(200), {"role": "user", "content": "And the lexer?"}
    conversations.add_messages("c", [*said, late], home=home)

    done = compact_compact("c", said, window=WINDOW, options=Options(unsaved=()), home=home)

    assert conversations.context("c", home=home) == [*done.messages, late]
    assert conversations.full_history("c", home=home) == [*said, late]


def test_unsaved_messages_are_counted_and_not_recorded(home):
    said, behind = spoken(40), spoken(20)
    conversations.add_messages("c", said, home=home)
    assert not preflight("c", said, window=WINDOW, home=home).triggered

    done = preflight("c", said, window=WINDOW, options=Options(unsaved=behind), home=home)

    assert done.triggered
    assert done.tokens_before == preflight("d", [*said, *behind], window=90_000, home=home).tokens_before
    assert conversations.full_history("c", home=home) == said


def test_passing_the_full_history_each_time_compacts_nothing_twice(home):
    asked = []

    def writes(said, most, strategy):
        asked.append(most)
        return "They settled on the PostgreSQL parser for the walnut design, after looking at three others."

    options = Options(backend=writes)
    whole = long(turns=8)
    first = preflight("c", whole, window=WINDOW, options=options, home=home)
    whole += [{"role": "user", "content": "And now?"}]

    again = preflight("c", whole, window=WINDOW, options=options, home=home)

    assert first.triggered
    assert not again.triggered
    assert again.messages == [*first.messages, {"role": "user", "content": "And now?"}]
    assert len(asked) == 1
    assert preflight("c", whole, window=WINDOW, resume=False, options=options, home=home).triggered


@rows(
    ("given", "where"),
    [
        ({"messages": None}, "messages"),
        ({"messages": iter([])}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": {1, 2}}]}, "messages[0]"),
        ({"window": "8000"}, "window"),
        ({"window": True}, "window"),
        ({"window": 1.5}, "window"),
        ({"model": 5}, "model"),
        ({"policy": 5}, "policy"),
        ({"options": {}}, "options"),
    ],
)
def test_arguments_of_the_wrong_type_are_rejected_before_any_change(home, given, where):
    for _ in range(2):
        with pytest.raises(InvalidInput) as caught:
            preflight("c", **{"messages": long(), "window": WINDOW, "home": home, **given})
        assert caught.value.where == where
    assert list(store_conversations.stored_conversations(home)) == []


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


AT = Moment("2026-03-01T10:15:00.000000Z", "s", "m", 5, 10)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def decided(*, triggered):
    return trigger_decision(AT, triggered=triggered, reason="x", policy={})


def test_a_home_that_is_named_keeps_the_conversations(home):
    assert options_from_config(CompactConfig(), home=home).record == home


@pytest.mark.parametrize("given", [{"storage_enabled": False}, {"storage_adapter": "none"}])
def test_without_storage_no_copy_is_made(given):
    assert options_from_config(CompactConfig(**given)).storage is None


def test_events_of_a_compaction_are_kept_beside_its_copies(tmp_path):
    exporter = options_from_config(CompactConfig(telemetry_enabled=False)).exporter

    exporter.emit(token_estimate(AT, {}))
    exporter.emit(decided(triggered=False))
    assert not (tmp_path / ".compact").exists()
    exporter.emit(decided(triggered=True))

    assert (tmp_path / ".compact/archive/s/events.jsonl").read_text().count("\n") == 1


def test_further_secrets_are_those_of_the_configuration():
    rules = redaction_rules(CompactConfig(redaction_patterns=(r"ACME-\d+",)))

    assert redact("ticket ACME-12", rules) == "ticket <REDACTED>"
    assert redaction_rules(CompactConfig(redaction_enabled=False)) is None


def odd_calls(arguments):
    asked = {"type": "tool_use", "id": "a", "name": "read", "input": arguments}
    return [
        {
            "role": "user",
            "content": [{"type": "image", "source": None}, {"type": "text", "text": "Half: \udc00"}],
        },
        {"role": "assistant", "content": [asked]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
        {"role": "assistant", "content": "Done."},
        *({"role": role, "content": "word " * 200} for _ in range(12) for role in ("user", "assistant")),
    ]


@rows("arguments", [deep(120), {"a": float("nan")}, {"a": "\ud83d\ude00"}])
def test_what_no_record_can_hold_is_sent_and_compacted_in_its_nearest_form(home, arguments):
    given = odd_calls(arguments)
    name = clock.short_id("c")

    sent = preflight(name, given, window=WINDOW, home=home)
    done = compact_compact(name, given, window=WINDOW, home=home)
    again = preflight(name, given, window=WINDOW, home=home)
    fresh = preflight("new", given, window=WINDOW * 10, repair=False, home=home)

    assert done.triggered
    assert again.messages == done.messages  # the record knows them again
    assert "bad-media" in {found.code for found in sent.findings}
    for result in (sent, done, again):
        assert "not-json" in {found.code for found in result.findings}
        assert json.dumps(result.messages, ensure_ascii=False, allow_nan=False).encode()
    assert fresh.messages == given
    with pytest.raises(InvalidInput):
        compact_compact("new", given, window=WINDOW, repair=False, home=home)


def test_the_asynchronous_twins_do_the_same_and_the_loop_goes_on(home):
    messages = talk(30)
    ticks = []

    async def both():
        async def tick():
            while True:
                ticks.append(1)
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        found = await aether.apreflight("one", messages, window=WINDOW, home=home)
        forced = await aether.acompact("two", messages, window=WINDOW, home=home)
        ticking.cancel()
        return found, forced

    found, forced = asyncio.run(both())

    assert len(found.messages) == len(preflight("three", messages, window=WINDOW, home=home).messages)
    assert forced.triggered
    assert ticks
    assert aether.apreflight.__name__ == "apreflight"
    assert "thread" in (aether.acompact.__doc__ or "")


def test_a_cancelled_compaction_is_not_recorded(home):
    started, left = Event_(), Event_()

    def slow(said, most, strategy):
        started.set()
        left.wait(20)
        return "They talked about modules."

    async def cancel():
        doing = asyncio.create_task(
            aether.acompact("one", talk(30), window=WINDOW, options=Options(backend=slow), home=home)
        )
        await asyncio.to_thread(started.wait, 20)
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing
        left.set()

    asyncio.run(cancel())  # it waits for the thread

    assert load(home, "one").compactions == []
    assert compact_compact("one", talk(30), window=WINDOW, home=home).triggered
