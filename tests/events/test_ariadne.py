import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.events import ariadne as module
from aether.events.ariadne import BODY_BYTES, ariadne, healthy, posts
from aether.events.events import Event, json_value
from aether.events.exporters import exporter
from tests.events import viewers
from tests.events.samples import MOMENT, compaction, every, summary
from tests.events.viewers import HANGS, TAKES, eventually
from tests.tables import rows

ROOT = Path(__file__).parents[2]
# For servers that answer: a busy machine may take longer than the usual timeout, and waits no longer than needed.
PATIENT = 20.0


def sent(found, events, *, timeout_seconds=PATIENT):
    """Send `events` to the viewer and return the exporter, closed."""
    one = ariadne(found.url, timeout_seconds=timeout_seconds)
    for event in events:
        one.emit(event)
    one.close()
    return one


def test_every_event_arrives_whole_in_a_viewer_that_strips_unknown_keys():
    """Defect 18 of the original: nothing ever arrived, for the batch had another name and the fields were stripped."""
    with viewers.viewer() as found:
        one = sent(found, every())

    assert (one.lost, set(found.statuses)) == (0, {200})
    assert [span["name"] for span in found.spans] == [event.name for event in every()]
    for span, event in zip(found.spans, every(), strict=True):
        assert event.properties.items() <= span["data"].items()
        assert span["data"].get("payload", {}) == json_value(event.payload or {})
        assert span["status"] == event.status


def test_posts_have_no_key_that_the_viewer_would_strip():
    with viewers.viewer() as found:
        sent(found, every())

    posted = [form for body in found.bodies for form in json.loads(body)["batch"]]
    assert posted == found.forms


def test_an_event_arrives_although_nothing_was_compacted_and_nobody_flushes():
    """Defect 11 of the original: the events of a preflight that did not trigger stayed in memory."""
    with viewers.viewer() as found:
        one = ariadne(found.url, timeout_seconds=PATIENT)
        one.emit(compaction()[0])

        assert found.arrived.wait(10)
        one.close()


def test_one_conversation_is_one_trace_and_its_compaction_one_tree():
    with viewers.viewer() as found:
        sent(found, [*compaction(), *compaction(MOMENT._replace(session_id="other"))])

    assert [trace["name"] for trace in found.traces] == ["session-1", "other"]
    first = [span for span in found.spans if span["trace_id"] == found.traces[0]["trace_id"]]
    assert len(first) == len(compaction())
    assert "parent_id" not in first[0]
    assert {span["parent_id"] for span in first[1:]} == {first[0]["span_id"]}


def test_a_trace_is_sent_once_and_before_its_spans():
    with viewers.viewer() as found:
        one = ariadne(found.url, timeout_seconds=PATIENT)
        for event in compaction():
            one.emit(event)
            one.flush()
        one.close()

    assert [form["type"] for form in found.forms] == ["trace"] + ["span"] * len(compaction())


def test_a_trace_that_did_not_arrive_is_sent_again(capsys):
    with viewers.viewer(500, TAKES) as found:
        one = ariadne(found.url, timeout_seconds=PATIENT)
        one.emit(compaction()[0])
        one.flush()
        one.emit(compaction()[1])
        one.close()

    assert one.lost == 1
    assert [form["type"] for form in found.forms] == ["trace", "span"]


def test_of_very_many_conversations_not_all_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED_TRACES", 2)
    with viewers.viewer() as found:
        one = ariadne(found.url, timeout_seconds=PATIENT)
        for name in ("a", "b", "c", "d", "a"):
            one.emit(compaction(MOMENT._replace(session_id=name))[0])
            one.flush()
        one.close()

    assert [trace["name"] for trace in found.traces] == ["a", "b", "c", "d", "a"]


def test_a_time_in_another_zone_is_written_in_utc_with_z():
    with viewers.viewer() as found:
        sent(found, [Event("window.budget", "2026-03-01T12:15:00+02:00", "s", {})])

    assert found.spans[0]["started_at"] == found.spans[0]["ended_at"] == "2026-03-01T10:15:00.000000Z"


def test_an_unsendable_event_loses_no_other(capsys):
    huge = {str(nth): nth for nth in range(30_000)}
    with viewers.viewer() as found:
        one = sent(
            found, [Event("window.budget", "yesterday", "s", {}), Event("window.budget", MOMENT.at, "s", huge), summary()]
        )  # fmt: skip

    assert one.lost == 2
    assert [span["name"] for span in found.spans] == ["compact.summary_created"]
    assert "an event has no time or is too large" in capsys.readouterr().err


def test_names_and_strings_are_cut_where_the_viewer_cuts_them():
    with viewers.viewer() as found:
        sent(found, [summary("x" * 200_000, MOMENT._replace(session_id="s" * 5_000))])

    text = found.spans[0]["data"]["payload"]["summary"]
    assert len(text) == 102_400
    assert text.endswith("... [truncated]")
    assert len(found.traces[0]["name"]) == 1024


def test_a_summary_in_a_wide_script_is_cut_to_fit_a_post():
    with viewers.viewer() as found:
        one = sent(found, [summary("記" * 102_400)])

    assert one.lost == 0
    assert len(found.spans[0]["data"]["payload"]["summary"]) == 51_200


def test_a_batch_that_is_too_large_goes_in_several_posts():
    texts = [f"{nth}" * 60_000 for nth in range(9)]
    with viewers.viewer(TAKES) as found:
        one = sent(found, [summary(text) for text in texts])

    assert (one.lost, set(found.statuses)) == (0, {200})
    assert [span["data"]["payload"]["summary"] for span in found.spans] == texts
    assert max(map(len, found.bodies)) <= BODY_BYTES


@given(st.lists(st.integers(20, BODY_BYTES - 12), max_size=30))
def test_posts_hold_everything_once_in_order_and_are_never_too_large(sizes):
    forms = [b'{"type":"span",' + b"x" * (size - 15) for size in sizes]

    made = list(posts(forms))

    assert b",".join(body[10:-2] for body, _ in made) == b",".join(forms)
    assert sum(spans for _, spans in made) == len(forms)
    assert all(len(body) <= BODY_BYTES for body, _ in made)


def test_a_timeout_is_tried_once_more_within_the_same_time():
    with viewers.viewer(HANGS, TAKES) as found:
        one = sent(found, [summary()], timeout_seconds=4.0)

    assert one.lost == 0
    assert len(found.bodies) == 2
    assert found.bodies[0] == found.bodies[1]


def test_a_viewer_that_hangs_twice_is_given_up(capsys):
    with viewers.viewer(HANGS) as found:
        one = ariadne(found.url, timeout_seconds=1.0)
        one.emit(summary())

        assert eventually(lambda: one.lost == 1)
        one.close()

    assert len(found.bodies) == 2
    assert "[Ariadne] 1 event lost" in capsys.readouterr().err


@rows("step", [500, 404, 400, 302, viewers.DROPS, viewers.DRIPS, viewers.REFUSES_UNREAD])
def test_a_viewer_that_fails_costs_its_events_and_nothing_else(step, capsys):
    with viewers.viewer(step) as found:
        one = ariadne(found.url, timeout_seconds=0.4)
        for event in compaction():
            one.emit(event)

        assert eventually(lambda: one.lost == len(compaction()))
        one.close()

    words = capsys.readouterr().err
    assert words.startswith("[Ariadne] ")
    assert found.url in words
    assert words.count("\n") == 1


def test_when_the_viewer_comes_back_events_arrive_again(capsys):
    with viewers.viewer(500, 500, TAKES) as found:
        one = ariadne(found.url, timeout_seconds=PATIENT)
        for nth in range(3):
            one.emit(summary(str(nth)))
            one.flush()
        one.close()

    assert one.lost == 2
    assert [span["data"]["payload"]["summary"] for span in found.spans] == ["2"]


def test_nobody_listens(capsys):
    with viewers.viewer() as found:
        pass

    one = sent(found, compaction())

    assert one.lost == len(compaction())
    assert "Connection refused" in capsys.readouterr().err


@rows("url", ["file:///etc/passwd", "localhost:5175", "http://me:word@localhost/ingest"])
def test_only_http_addresses_are_accepted(url):
    with pytest.raises(InvalidInput):
        ariadne(url)


@rows("end", ["", "/", "/ingest"])
def test_the_path_may_be_left_out(end):
    with viewers.viewer() as found:
        one = ariadne(found.root + end)
        one.emit(summary())
        one.close()

        assert healthy(found.root + end)
    assert len(found.spans) == 1


@rows(("step", "words"), [(503, "/healthz answered 503."), (404, "/healthz answered 404."), (200, "")])
def test_health_is_the_answer_of_the_viewer(step, words, capsys):
    with viewers.viewer(step) as found:
        assert healthy(found.url) is (step == 200)

    assert words in capsys.readouterr().err


def test_a_viewer_that_is_not_there_is_not_healthy(capsys):
    with viewers.viewer() as found:
        pass

    assert not healthy(found.url)
    assert "[Ariadne]" in capsys.readouterr().err


PROGRAM = """
import sys
from aether.events.exporters import exporter
from tests.events.samples import compaction
one = exporter("ariadne", url=sys.argv[1], timeout_seconds=float(sys.argv[2]))
for event in compaction(): one.emit(event)
"""


def test_a_process_that_ends_at_once_delivers_its_events():
    with viewers.viewer() as found:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, found.url, str(PATIENT)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )  # fmt: skip

    assert ran.stderr == ""
    assert len(found.spans) == len(compaction())


def test_a_process_that_ends_at_once_ends_although_the_viewer_hangs():
    """The server never answers: the process ends by its own timeout, or this test by its own."""
    with viewers.viewer(HANGS) as found:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, found.url, "0.5"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )  # fmt: skip

    assert ran.stderr.count("\n") <= 1


def test_a_whole_compaction_is_seen_in_the_viewer_as_it_happened_and_without_secrets():
    """End to end: from the builders through redaction to the viewer."""
    events = [*compaction()[:3], summary("deploy with api_key=sk-abc123 on friday"), *compaction()[4:]]
    with viewers.viewer() as found:
        one = exporter("ariadne", url=found.url, timeout_seconds=PATIENT)
        for event in events:
            one.emit(event)
        one.close()

    assert [span["name"] for span in found.spans] == [
        "compact.token_estimate", "compact.trigger_decision", "compact.archival", "compact.summary_created",
        "compact.pruned_messages",
    ]  # fmt: skip
    assert found.spans[3]["data"]["payload"] == {"summary": "deploy with api_key=<REDACTED> on friday"}
    assert not any(b"sk-abc123" in body for body in found.bodies)
