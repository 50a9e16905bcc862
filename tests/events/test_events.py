"""Events: what each builder promises, and the records and ids that exporters send."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.events import events
from aether.events.events import (
    Event,
    Exporter,
    json_line,
    json_value,
    parent_id,
    record,
    span_id,
    trace_id,
    truncate,
)
from aether.events.exporters import exporter, redacted_copy
from tests.events import samples
from tests.events.table import COMMON, EVENTS
from tests.tables import rows

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def reported(event):
    """Return the properties that are promised of `event`: those it must have, and those it may have."""
    declared = COMMON if event.name.startswith(("compact.", "window.", "context.")) else ()
    declared += EVENTS[event.name].properties
    must = {name for name in declared if not name.endswith("?")}
    return must, must | {name.removesuffix("?") for name in declared}


@rows("event", samples.every(), ids=lambda event: event.name)
def test_an_event_has_the_properties_of_the_table(event):
    must, may = reported(event)

    assert must <= event.properties.keys() <= may
    assert set(event.payload or {}) == set(filter(None, [EVENTS[event.name].payload]))


def test_there_is_a_builder_for_every_event_of_the_table():
    assert {event.name for event in samples.every()} == set(EVENTS)


def test_the_table_of_the_page_is_the_one_that_the_events_are_compared_with():
    rows = re.findall(r"^\| `((?:compact|window|context|memory)\.[\w-]+)` \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip

    assert rows == [
        (name, one.when, ", ".join(f"`{word}`" for word in one.properties) or "—", f"`{one.payload}`" if one.payload else "—")
        for name, one in EVENTS.items()
    ]  # fmt: skip


@rows("event", samples.every(), ids=lambda event: event.name)
def test_redaction_leaves_an_event_without_secrets_as_it_is(event):
    assert redacted_copy(event) == event


def test_the_fill_is_a_share_of_the_whole_window_not_of_the_budget():
    """108,800 of 128,000 is exactly the trigger of 0.85; 107,525 is not (facts, defect 6)."""
    usage = [
        events.token_estimate(samples.MOMENT._replace(t_est=tokens), {}).properties["usage_pct"]
        for tokens in (108_800, 107_525, 96_000)
    ]

    assert usage == [0.85, 0.84, 0.75]


def test_a_window_of_unknown_size_is_never_full():
    assert events.budget(events.Moment("t", "s"), should_compress=False).properties == {
        "t_est": 0, "max": 0, "usage_pct": 0.0, "should_compress": False,
    }  # fmt: skip


def test_optional_properties_are_left_out():
    made = events.trigger_decision(
        events.Moment("t", "s"), triggered=False, reason="usage_pct < trigger_pct", policy={}
    )

    assert made.properties.keys() == {"t_est", "max", "triggered", "reason", "policy"}


def test_a_manual_compaction_has_its_note():
    made = events.trigger_decision(
        samples.MOMENT, triggered=True, reason="manual", policy={}, note="before lunch"
    )

    assert made.properties["note"] == "before lunch"


def test_the_text_of_a_summary_is_in_the_payload_only():
    made = samples.summary("the plan")

    assert made.payload == {"summary": "the plan"}
    assert "the plan" not in json.dumps(made.properties)
    assert made.properties["compression_ratio"] == 0.025


def test_a_failure_is_an_error_event():
    made = events.error(samples.MOMENT, error_type="Timeout", message="10 s", fallback="pruning-only")

    assert (made.status, made.properties["fallback"]) == ("error", "pruning-only")


def test_arguments_of_a_builder_are_copied():
    kept = {"pinned": 1}
    made = events.pruned_messages(samples.MOMENT, pruned_count=1, kept=kept, tokens_before=8, tokens_after=2)

    kept["pinned"] = 9

    assert made.properties["kept"] == {"pinned": 1}
    assert made.properties["reduction_pct"] == 0.75


def test_the_text_of_a_signal_is_in_the_payload_only():
    record = samples.colony_records()[3]

    made = events.colony_event({"revision": 4, "nth": 0, **record}, "colony-shop")

    assert made.properties == {"signal_id": "sig_1", "signal_type": "FOCUS"}
    assert made.payload == {"signal": record["signal"]}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=4) | st.just("\ud800"),
    lambda below: st.lists(below) | st.dictionaries(st.text() | st.integers(), below) | st.tuples(below),
    max_leaves=20,
)  # fmt: skip


def nulls(value):
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (value is None) + sum(map(nulls, below))


@given(ANYTHING)
def test_whatever_an_event_holds_its_line_is_json_without_nulls(value):
    written = json_line(record(Event("window.budget", "t", "s", {"value": value})))

    assert nulls(json.loads(written, parse_constant=lambda word: None)) == 0
    assert b"\n" not in written


def test_a_record_has_the_common_fields_first_and_the_payload_last():
    made = record(samples.summary("text"))

    assert list(made)[:4] == ["ts", "session_id", "event", "status"]
    assert (made["model"], made["t_est"], made["max"]) == ("gpt-x", 108_800, 128_000)
    assert list(made)[-1] == "payload"


def test_a_property_cannot_replace_the_name_or_time_of_the_event():
    made = record(Event("window.budget", "t", "s", {"ts": "other", "event": "other", "status": "other"}))

    assert (made["ts"], made["event"], made["status"]) == ("t", "window.budget", "ok")


def test_long_strings_are_cut_with_a_mark():
    made = record(samples.summary("x" * 200_000))

    assert len(made["payload"]["summary"]) == 102_400
    assert made["payload"]["summary"].endswith("x... [truncated]")
    assert truncate("abcdef", 3) == "..."


def test_values_nested_too_deep_become_text():
    deep = []
    for _ in range(50):
        deep = [deep]

    assert "[[" in json.dumps(json_value(deep))
    json.dumps(json_value({"a": (math.nan, 1)}), allow_nan=False)


def test_the_same_event_is_the_same_span_and_another_is_another():
    first, second = samples.compaction()[1:3]

    assert span_id(first) == span_id(first._replace()) != span_id(second)
    assert (len(span_id(first)), len(trace_id("s"))) == (16, 32)
    assert trace_id("s") != trace_id("t")


def test_the_estimate_of_a_preflight_is_the_parent_of_its_other_events():
    estimate, *others = samples.compaction()

    assert parent_id(estimate) == ""
    assert {parent_id(event) for event in others} == {span_id(estimate)}


def test_preflights_with_one_id_in_two_conversations_are_two():
    here, there = (events.token_estimate(samples.MOMENT._replace(session_id=name), {}) for name in "ab")

    assert span_id(here) != span_id(there)


def test_without_a_preflight_no_event_has_a_parent():
    events = samples.compaction(samples.MOMENT._replace(preflight=""))

    assert {parent_id(event) for event in events} == {""}
    assert len({span_id(event) for event in events}) == len(events)


def test_the_example_of_the_page_is_true():
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])

    assert list(record(samples.compaction()[-1]).items()) == list(shown.items())


def test_an_event_is_ok_and_has_no_payload_by_default():
    made = Event("window.budget", "2026-03-01T10:15:00.000000Z", "s1", {})

    assert (made.status, made.payload) == ("ok", None)


def test_the_exporter_none_accepts_every_call():
    one: Exporter = exporter("none")

    assert (one.emit(Event("x", "", "", {})), one.flush(), one.close()) == (None, None, None)
