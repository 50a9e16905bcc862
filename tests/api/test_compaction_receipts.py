"""Receipts of compaction: checksums, and what every event of one call says."""

from __future__ import annotations

from aether.api.compact import Options, messages_checksum, preflight
from tests.api.test_compacting import Told
from tests.laws.histories import history

WINDOW = 8_000


def test_a_checksum_tells_order_and_content_apart():
    one, other = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}

    assert messages_checksum([one, other]) != messages_checksum([other, one])
    assert messages_checksum([one]) != messages_checksum([one, one])
    assert messages_checksum([one]) == messages_checksum([{"role": "user", "content": "a"}])


def test_every_event_of_one_call_says_the_same_of_it(home):
    told = Told()

    preflight(
        "talk",
        history(5, "openai", turns=20),
        model="gpt-4",
        window=WINDOW,
        options=Options(exporter=told),
        home=home,
    )

    common = {
        (event.session_id, event.properties["max"], event.properties["model"], event.properties["preflight"])
        for event in told.events
    }
    assert len(common) == 1
    assert {event.properties["t_est"] for event in told.events} == {told.events[0].properties["t_est"]}


def test_an_event_says_what_was_kept_and_how_much_went(home):
    told = Told()

    done = preflight(
        "talk", history(5, "openai", turns=20), window=WINDOW, options=Options(exporter=told), home=home
    )

    of = {event.name: event for event in told.events}
    decision, pruned = of["compact.trigger_decision"].properties, of["compact.pruned_messages"].properties
    assert decision["triggered"] is True
    assert decision["policy"]["strategy"] == "task_state"
    assert decision["kept"]["pinned"] >= 2
    assert pruned["pruned_count"] == decision["pruned_count"] == len(done.receipt.removed)
    assert pruned["tokens_before"] > pruned["tokens_after"]
    assert of["compact.summary_created"].payload["summary"].startswith("<COMPACT-SUMMARY v1>")


def test_an_untriggered_decision_says_why(home):
    told = Told()

    preflight(
        "talk",
        [{"role": "user", "content": "Hello."}],
        window=WINDOW,
        options=Options(exporter=told),
        home=home,
    )

    decision = told.events[-1].properties
    assert (decision["triggered"], decision["reason"]) == (False, "usage_pct < trigger_pct")
    assert "kept" not in decision
