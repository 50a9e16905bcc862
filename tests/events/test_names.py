import json
import re
from pathlib import Path

from aether.events import events
from aether.events.exporters import redacted_copy
from tests.events import samples
from tests.tables import rows

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"


def told(event):
    """Return the properties that are promised of `event`: those it must have, and those it may have."""
    declared = events.COMMON if event.name.startswith(("compact.", "window.")) else ()
    declared += events.EVENTS[event.name].properties
    must = {name for name in declared if not name.endswith("?")}
    return must, must | {name.removesuffix("?") for name in declared}


@rows("event", samples.every(), ids=lambda event: event.name)
def test_an_event_says_what_the_table_promises(event):
    must, may = told(event)

    assert must <= event.properties.keys() <= may
    assert set(event.payload or {}) == set(filter(None, [events.EVENTS[event.name].payload]))


def test_there_is_a_builder_for_every_event_of_the_table():
    assert {event.name for event in samples.every()} == set(events.EVENTS)


def test_the_table_of_the_page_is_the_table_of_the_code():
    rows = re.findall(r"^\| `((?:compact|window|memory)\.\w+)` \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip

    assert rows == [
        (name, one.when, ", ".join(f"`{word}`" for word in one.properties) or "—", f"`{one.payload}`" if one.payload else "—")
        for name, one in events.EVENTS.items()
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


def test_what_does_not_apply_is_left_out():
    made = events.trigger_decision(
        events.Moment("t", "s"), triggered=False, reason="usage_pct < trigger_pct", policy={}
    )

    assert made.properties.keys() == {"t_est", "max", "triggered", "reason", "policy"}


def test_a_manual_compaction_tells_its_note():
    made = events.trigger_decision(
        samples.MOMENT, triggered=True, reason="manual", policy={}, note="before lunch"
    )

    assert made.properties["note"] == "before lunch"


def test_the_text_of_a_summary_stands_in_the_payload_only():
    made = samples.summary("the plan")

    assert made.payload == {"summary": "the plan"}
    assert "the plan" not in json.dumps(made.properties)
    assert made.properties["compression_ratio"] == 0.025


def test_a_failure_is_an_error_event():
    made = events.error(samples.MOMENT, error_type="Timeout", message="10 s", fallback="pruning-only")

    assert (made.status, made.properties["fallback"]) == ("error", "pruning-only")


def test_what_a_builder_is_given_is_copied():
    kept = {"pinned": 1}
    made = events.pruned_messages(samples.MOMENT, pruned_count=1, kept=kept, tokens_before=8, tokens_after=2)

    kept["pinned"] = 9

    assert made.properties["kept"] == {"pinned": 1}
    assert made.properties["reduction_pct"] == 0.75


def test_the_text_of_a_signal_stands_in_the_payload_only():
    record = samples.colony_records()[3]

    made = events.colony_event({"revision": 4, "nth": 0, **record}, "colony-shop")

    assert made.properties == {"signal_id": "sig_1", "signal_type": "FOCUS"}
    assert made.payload == {"signal": record["signal"]}
