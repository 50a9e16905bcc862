import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.events import events
from aether.events.events import Event, json_line, json_value, parent_id, record, span_id, trace_id, truncate
from tests.events import samples

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


def test_a_property_cannot_take_the_place_of_what_names_the_event():
    made = record(Event("window.budget", "t", "s", {"ts": "other", "event": "other", "status": "other"}))

    assert (made["ts"], made["event"], made["status"]) == ("t", "window.budget", "ok")


def test_long_strings_are_cut_with_a_mark():
    made = record(samples.summary("x" * 200_000))

    assert len(made["payload"]["summary"]) == 102_400
    assert made["payload"]["summary"].endswith("x... [truncated]")
    assert truncate("abcdef", 3) == "..."


def test_what_lies_too_deep_is_told_as_text():
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


def test_without_a_preflight_every_event_stands_by_itself():
    events = samples.compaction(samples.MOMENT._replace(preflight=""))

    assert {parent_id(event) for event in events} == {""}
    assert len({span_id(event) for event in events}) == len(events)


def test_the_example_of_the_page_is_what_is_written():
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])

    assert list(record(samples.compaction()[-1]).items()) == list(shown.items())
