"""Token counters, and the usage that providers report."""

from __future__ import annotations

import json
import multiprocessing
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

import aether
from aether.api import tokens
from aether.api.compact import Options
from aether.architects.ollama import served_window
from aether.errors import BackendUnavailable, InvalidDocument, InvalidInput, NotFound, StorageFailed
from aether.tokens import exact
from aether.tokens.estimate import estimate
from aether.tokens.models import UNKNOWN_WINDOW
from tests.tables import rows


@pytest.fixture
def no_ranks(monkeypatch):
    monkeypatch.setattr(exact, "_rank_file", lambda known: None)
    exact._encoding.cache_clear()


def test_without_a_home_the_estimate_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    counted = tokens.count_tokens("one two three")

    assert counted.tokens == 3
    assert counted.characters == 13
    assert counted.counter.startswith("estimate")


def test_a_home_that_is_named_and_missing_is_an_error(tmp_path):
    with pytest.raises(NotFound):
        tokens.count_tokens("one", home=tmp_path / "nowhere")


def test_the_counter_of_the_home_counts_and_says_its_name(home):
    tokens.use_counter("estimate", 2.0, home=home)

    counted = tokens.count_tokens("one two three", home=home)

    assert counted.tokens == 6
    assert "× 2" in counted.counter


def test_changing_the_counter_recounts_everything(home):
    aether.add_working_memory_item("one two three", "note", home=home)

    tokens.use_counter("estimate", 3.0, home=home)

    assert aether.list_working_memory_items(home=home)[0]["token_count"] == 9
    assert aether.verify_token_limit(home=home).current == 9


def test_a_counter_whose_vocabulary_is_missing_changes_nothing(home, no_ranks):
    before = aether.show("memory", home=home)

    with pytest.raises(BackendUnavailable, match="aether tokens fetch o200k_base"):
        tokens.use_counter("o200k_base", home=home)
    assert aether.show("memory", home=home) == before


TEXT = "The tests pass again, and the lock is held for the commit only. " * 40

NEW, OLD = "claude-opus-5-5", "claude-opus-4-5"


def counted(model, place):
    return tokens.counting(model, place=place).count(TEXT)


def test_before_any_report_the_profile_corrects(home):
    found = tokens.counting(NEW, place=home)

    assert found.count(TEXT) == round(1.75 * estimate(TEXT))
    assert (found.label, found.reports) == ("estimate (about ±10 %) × 1.75", 0)
    assert found.profile.window == 1_000_000


def test_after_a_report_the_count_is_that_of_the_provider(home):
    said = round(1.42 * estimate(TEXT))

    found = aether_record(NEW, counted(NEW, home), said, home)

    assert found.factor == pytest.approx(1.42, abs=0.002)
    assert counted(NEW, home) == pytest.approx(said, abs=2)


def aether_record(model, count, said, home):
    return tokens.record_usage(model, count, said, home=home)


def test_a_correction_is_never_carried_to_another_model_or_counter(home, monkeypatch):
    before = tokens.counting(OLD, place=home)
    aether_record(NEW, counted(NEW, home), 2 * counted(NEW, home), home)

    assert tokens.counting(OLD, place=home) == before
    monkeypatch.setattr("aether.tokens.exact.exact", lambda name, text: len(text.split()))
    tokens.use_counter("o200k_base", home=home)
    assert (tokens.counting(NEW, place=home).factor, tokens.counting(NEW, place=home).reports) == (1.75, 0)


def test_a_learned_correction_replaces_that_of_the_home(home):
    """The home's is against o200k_base; the provider's is against the model itself."""
    tokens.use_counter("estimate", 1.1, home=home)
    assert tokens.counting(NEW, place=home).factor == pytest.approx(1.925)

    aether_record(NEW, counted(NEW, home), round(1.5 * estimate(TEXT)), home)

    assert tokens.counting(NEW, place=home).factor == pytest.approx(1.5, abs=0.002)


@rows(
    ("model", "count", "said", "where"),
    [(" ", 9, 9, "model"), (NEW, 0, 9, "counted"), (NEW, True, 9, "counted"), (NEW, 9, 0, "reported")],
)
def test_a_report_that_says_nothing_is_refused(home, model, count, said, where):
    with pytest.raises(InvalidInput) as caught:
        aether_record(model, count, said, home)

    assert caught.value.where == where
    assert not (home / "data" / "usage.json").exists()


def test_a_report_is_a_measurement_and_no_state(home):
    """So undo, log and time travel are about what people and agents did."""
    before = aether.log(home=home)

    aether_record(NEW, 1000, 1500, home)

    assert aether.log(home=home) == before


def test_broken_reports_are_a_finding_and_counting_goes_on(home):
    (home / "data" / "usage.json").write_bytes(b"{")

    found = tokens.counting(NEW, place=home)

    assert found.factor == 1.75
    assert [finding.code for finding in found.findings] == ["CorruptDocument"]


def test_broken_reports_are_not_written_over(home):
    (home / "data" / "usage.json").write_bytes(b'{"models": 7}')

    with pytest.raises(InvalidDocument, match="Remove it"):
        aether_record(NEW, 1000, 1500, home)
    assert (home / "data" / "usage.json").read_bytes() == b'{"models": 7}'


def test_reports_that_cannot_be_reached_are_a_finding(home):
    (home / "data" / "usage.json").mkdir()

    assert [finding.code for finding in tokens.counting(NEW, place=home).findings] == ["StorageFailed"]


def test_own_models_come_first_and_are_read_again_when_they_change(home):
    (home / "models.json").write_text('{"models": [{"match": "mine", "window": 32768}]}')
    assert tokens.counting("mine", place=home).profile.window == 32_768

    (home / "models.json").write_text('{"models": [{"match": "mine", "window": 65536, "factor": 1.2}]}')

    found = tokens.counting("mine", place=home)
    assert (found.profile.window, found.factor, found.findings) == (65_536, 1.2, ())


@pytest.mark.parametrize("ask", [tokens.models, lambda home: tokens.counting(NEW, place=home)])
def test_a_mistake_in_own_models_is_refused_with_its_path(home, ask):
    (home / "models.json").write_text('{"models": [{"match": "mine", "windwo": 32768}]}')

    with pytest.raises(InvalidDocument, match=r"models\.json::\$\.models\[0\].*window"):
        ask(home=home) if ask is tokens.models else ask(home)


def test_unreadable_models_of_the_user_raise_an_error(home):
    (home / "models.json").mkdir()

    with pytest.raises(StorageFailed):
        tokens.counting(NEW, place=home)


def test_an_unknown_model_is_a_finding(home):
    found = tokens.counting("home-made", place=home)

    assert found.profile.window == UNKNOWN_WINDOW
    assert [finding.code for finding in found.findings] == ["unknown-model"]


def test_named_models_are_listed_and_else_those_reported_on_and_all_patterns(home):
    aether_record(NEW, 1000, 1500, home)
    (home / "models.json").write_text('{"models": [{"match": "mine", "window": 32768, "assumed": true}]}')

    named = tokens.models("mine", NEW, home=home)
    listed = tokens.models(home=home)

    assert [(one.model, one.window, one.known, one.reports) for one in named] == [
        ("mine", 32_768, False, 0), (NEW, 1_000_000, True, 1),
    ]  # fmt: skip
    assert [one.model for one in listed[:3]] == [NEW, "mine", "claude-haiku-4*"]
    assert listed[0] == named[1]


def record_some(home, model):
    for _ in range(10):
        tokens.record_usage(model, 1000, 1500, home=home)


def test_reports_of_several_processes_are_all_kept(home):
    """Each writes the whole file, so without the lock the last would win."""
    context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    workers = [context.Process(target=record_some, args=(home, f"model-{number}")) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [(one.model, one.reports) for one in tokens.models(home=home)[:3]] == [
        ("model-0", 10), ("model-1", 10), ("model-2", 10),
    ]  # fmt: skip


@pytest.fixture
def ollama(monkeypatch):
    """Serve as Ollama on this machine; the list holds the paths that were asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            running = {"models": [{"name": "llama3.2:3b", "model": "llama3.2:3b", "context_length": 6144}]}
            about = {"parameters": "stop           x\nnum_ctx        24576"}
            data = json.dumps(running if self.path == "/api/ps" else about).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815 - the names of the library

        def log_message(self, *_args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.server_port}")
    served_window.cache_clear()
    yield asked
    served_window.cache_clear()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_on_this_machine_is_asked_for_the_window_of_its_models(ollama, home):
    assert tokens.counting("ollama/llama3.2:3b", place=home).profile[2:3] == (6144,)
    own = tokens.counting("ollama_chat/mine", place=home)
    assert (own.profile.window, own.profile.known, own.findings) == (24_576, True, ())
    assert tokens.counting("llama3.2:3b", place=home).profile.window == 6144
    assert ollama == ["/api/ps", "/api/show"] * 2  # each model once


def test_without_a_server_the_window_is_that_of_the_model(monkeypatch, home):
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    served_window.cache_clear()

    found = tokens.counting("ollama/home-made", place=home)

    assert (found.profile.known, found.findings[0].code) == (False, "unknown-model")


def test_a_model_of_unknown_window_is_an_error_where_the_window_must_be_given():
    messages = [{"role": "user", "content": "Hello."}]
    strict = Options(assume_window=False)

    with pytest.raises(InvalidInput, match=r"'home-made' is not known.*Give the window"):
        aether.preflight("c", messages, model="home-made", options=strict)
    assert aether.preflight("c", messages, model="home-made", window=9_000, options=strict).window == 9_000
    assert aether.preflight("c", messages, model="gpt-4o", options=strict).findings == []
    found = aether.preflight("c", messages, model="home-made")
    assert [each.code for each in found.findings] == ["unknown-model"]
