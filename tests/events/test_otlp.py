import builtins
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aether.errors import BackendUnavailable, InvalidInput
from aether.events import otlp as module
from aether.events.delivery import SendResult
from aether.events.events import Event, span_id, trace_id
from aether.events.exporters import exporter
from aether.events.otlp import attributes, otlp
from tests.events import viewers
from tests.events.samples import MOMENT, compaction, every, summary

ROOT = Path(__file__).parents[2]
# For collectors that answer: a busy machine may take longer than the usual timeout.
PATIENT = 20.0
VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SERVICE_NAME")


@pytest.fixture
def extra(monkeypatch):
    """Skip where the optional packages are absent; forget what the machine's environment says about them."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="needs opentelemetry")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def sent(one, events):
    for event in events:
        one.emit(event)
    one.close()
    return one


def reported(span):
    """Return the attributes of a span as a dict."""
    values = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        values[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return values


def test_without_the_packages_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)

    with pytest.raises(BackendUnavailable, match=r"\.\[otel\]"):
        otlp()


@pytest.mark.extras
def test_every_event_arrives_as_a_span(extra):
    with viewers.collector() as found:
        one = sent(otlp(found.url, timeout_seconds=PATIENT), every())

    assert (one.lost, set(found.statuses)) == (0, {200})
    assert [span.name for span in found.forms] == [event.name for event in every()]


@pytest.mark.extras
def test_the_attributes_are_those_of_the_conventions_where_they_have_a_name(extra):
    with viewers.collector() as found:
        sent(otlp(found.url, timeout_seconds=PATIENT), compaction())

    estimate, decision, *_, pruned = map(reported, found.forms)
    assert estimate["gen_ai.conversation.id"] == "session-1"
    assert estimate["gen_ai.request.model"] == "gpt-x"
    assert estimate["aether.compaction.usage_pct"] == 0.85
    assert decision["aether.compaction.policy.strategy"] == "task_state"
    assert decision["aether.compaction.triggered"] is True
    assert (pruned["aether.compaction.tokens_before"], pruned["aether.compaction.tokens_after"]) == (
        108_800,
        50_300,
    )


@pytest.mark.extras
def test_ids_are_those_of_every_other_exporter_and_one_preflight_is_one_tree(extra):
    with viewers.collector() as found:
        sent(otlp(found.url, timeout_seconds=PATIENT), compaction())

    assert [span.span_id.hex() for span in found.forms] == [span_id(event) for event in compaction()]
    assert {span.trace_id.hex() for span in found.forms} == {trace_id("session-1")}
    assert found.forms[0].parent_span_id == b""
    assert {span.parent_span_id for span in found.forms[1:]} == {found.forms[0].span_id}


@pytest.mark.extras
def test_times_are_exact_to_the_microsecond(extra):
    with viewers.collector() as found:
        sent(
            otlp(found.url, timeout_seconds=PATIENT),
            [Event("window.budget", "2026-03-01T10:15:00.123457Z", "s", {})],
        )

    assert (
        found.forms[0].start_time_unix_nano == found.forms[0].end_time_unix_nano == 1_772_360_100_123_457_000
    )


@pytest.mark.extras
def test_a_failure_is_a_span_with_an_error(extra):
    failed = [event for event in every() if event.status == "error"]
    with viewers.collector() as found:
        sent(otlp(found.url, timeout_seconds=PATIENT), failed)

    assert (found.forms[0].status.code, found.forms[0].status.message) == (2, "no answer within 10 s")


@pytest.mark.extras
def test_texts_are_exported_only_when_asked_for(extra):
    with viewers.collector() as found:
        for content in (None, True):
            one = exporter("otlp", url=found.url, content=content, timeout_seconds=PATIENT)
            one.emit(summary("the plan"))
            one.close()

    assert "aether.compaction.payload.summary" not in reported(found.forms[0])
    assert reported(found.forms[1])["aether.compaction.payload.summary"] == "the plan"


@pytest.mark.extras
def test_very_many_events_go_in_several_requests(extra, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SPANS", 2)
    with viewers.collector() as found:
        one = otlp(found.url, timeout_seconds=PATIENT)
        for event in every():
            one.emit(event)
        one.close()

    assert len(found.forms) == len(every())
    assert len(found.bodies) >= len(every()) // 2


@pytest.mark.extras
def test_an_event_without_a_time_takes_no_other_with_it(extra, capsys):
    with viewers.collector() as found:
        one = sent(
            otlp(found.url, timeout_seconds=PATIENT),
            [Event("window.budget", "yesterday", "s", {}), summary()],
        )

    assert (one.lost, len(found.forms)) == (1, 1)
    assert "an event has no time" in capsys.readouterr().err


@pytest.mark.extras
@pytest.mark.parametrize("step", [500, 400, viewers.HANGS, viewers.DROPS])
def test_a_collector_that_fails_costs_its_events_and_nothing_else(extra, step, capsys):
    with viewers.collector(step) as found:
        one = otlp(found.url, timeout_seconds=0.3)
        one.emit(summary())

        assert viewers.eventually(lambda: one.lost == 1)
        one.close()

    assert capsys.readouterr().err.count("[OTLP]") == 1


@pytest.mark.extras
@pytest.mark.parametrize(("step", "reason"), [(400, "400"), (403, "403")])
def test_the_reason_of_a_rejection_is_reported(extra, step, reason, capsys):
    with viewers.collector(step) as found:
        sent(otlp(found.url, timeout_seconds=PATIENT), [summary()])

    said = capsys.readouterr().err
    assert f"{found.url} did not accept them (" in said
    assert reason in said.partition(" did not accept them")[2]


@pytest.mark.extras
def test_a_missing_collector_is_reported(extra):
    with viewers.collector() as found:
        pass
    one = otlp(found.url, timeout_seconds=3.0)

    # Not by closing: the library tries again for about as long as closing waits, and either may be first.
    result = one._send([summary()], float("inf"))
    one.close()

    assert result.lost == 1
    assert "refused" in result.trouble


@pytest.mark.extras
def test_late_batches_are_counted_and_not_sent(extra, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SPANS", 1)
    one = otlp("http://127.0.0.1:9/v1/traces")

    late = one._send([summary(), summary()], 0.0)
    one.close()

    assert late == SendResult(2, "http://127.0.0.1:9/v1/traces took too long")


def test_a_failure_without_words_has_no_reason_and_a_long_one_is_cut():
    assert module._reason([]) == ""
    assert module._reason(["It  failed.\n", "Gave up."]) == " (It failed)"
    assert len(module._reason(["x" * 999])) < 999
    assert "hunter2" not in module._reason(["https://a:hunter2@b refused"])


def test_messages_of_other_threads_are_no_reason():
    with module._captured_logs() as words:
        other = threading.Thread(target=logging.getLogger("opentelemetry").warning, args=("elsewhere",))
        other.start()
        other.join()
        logging.getLogger("opentelemetry.exporter").warning("here")

    assert words == ["here"]


@pytest.mark.extras
def test_the_environment_says_where_the_collector_is(extra, monkeypatch):
    with viewers.collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.root)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        one = sent(otlp(timeout_seconds=PATIENT), [summary()])

    assert (one.lost, len(found.forms)) == (0, 1)


@pytest.mark.extras
def test_by_default_the_collector_is_on_this_machine(extra, monkeypatch, capsys):
    monkeypatch.setattr(module, "BATCH_SPANS", 1)
    one = otlp()

    late = one._send([summary()], 0.0)
    one.close()

    assert late.trouble == "http://localhost:4318/v1/traces took too long"


@pytest.mark.extras
def test_only_http_addresses_are_accepted(extra):
    with pytest.raises(InvalidInput):
        otlp("grpc://localhost:4317")


@pytest.mark.extras
def test_the_provider_of_the_process_is_not_touched():
    """In a process of its own, for the provider is set once for all."""
    pytest.importorskip("opentelemetry.sdk.trace", reason="needs opentelemetry")
    code = (
        "import sys\nfrom opentelemetry import trace\nbefore = type(trace.get_tracer_provider()).__name__\n"
        "from aether.events.otlp import otlp\nfrom tests.events.samples import summary\n"
        "one = otlp(sys.argv[1]); one.emit(summary()); one.close()\n"
        "assert type(trace.get_tracer_provider()).__name__ == before == 'ProxyTracerProvider'\nassert one.lost == 0"
    )
    with viewers.collector() as found:
        subprocess.run([sys.executable, "-c", code, found.url], cwd=ROOT, timeout=60, check=True)

    assert len(found.forms) == 1


def test_objects_are_flattened_and_lists_become_texts():
    made = attributes(
        Event("window.budget", MOMENT.at, "s", {"a": {"b": {"c": 1}}, "list": [1, "x"], "none": None})
    )

    assert made == {
        "gen_ai.conversation.id": "s", "aether.window.a.b.c": 1, "aether.window.list": ["1", "x"],
    }  # fmt: skip


@pytest.mark.extras
def test_the_library_does_not_print_for_itself(extra):
    otlp().close()

    assert logging.getLogger("opentelemetry").hasHandlers()
