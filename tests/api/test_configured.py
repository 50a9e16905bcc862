"""What a configuration asks for becomes the parts that compaction works with."""

from __future__ import annotations

import pytest

from aether.api.compact import guarded_storage, options_from_config, redaction_rules
from aether.backends.base import Settings
from aether.compaction.policy import CompactConfig
from aether.errors import StorageFailed
from aether.events.events import Moment, token_estimate, trigger_decision
from aether.redact.redact import redact

AT = Moment("2026-03-01T10:15:00.000000Z", "s", "m", 5, 10)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def decided(*, triggered):
    return trigger_decision(AT, triggered=triggered, reason="x", policy={})


def test_the_parts_are_those_that_are_named(tmp_path, capsys):
    options = options_from_config(
        CompactConfig(
            summarizer_backend="ollama",
            summarizer_model="small",
            summarization_timeout=3.0,
            telemetry_exporter="console",
        )
    )

    assert options.backend == "ollama"
    assert options.settings == Settings(model="small", timeout_seconds=3.0)
    assert options.storage.name == "fs"
    assert options.record == tmp_path / ".compact"
    options.exporter.emit(token_estimate(AT, {}))
    assert '"event": "compact.token_estimate"' in capsys.readouterr().err


def test_a_home_that_is_named_keeps_the_conversations(home):
    assert options_from_config(CompactConfig(), home=home).record == home


@pytest.mark.parametrize("given", [{"storage_enabled": False}, {"storage_adapter": "none"}])
def test_without_storage_there_is_none(given):
    assert options_from_config(CompactConfig(**given)).storage is None


def test_events_go_to_the_file_that_is_named(tmp_path):
    config = CompactConfig(telemetry_exporter="file", telemetry_path="told.jsonl", storage_enabled=False)

    options_from_config(config).exporter.emit(token_estimate(AT, {}))

    assert "token_estimate" in (tmp_path / "told.jsonl").read_text()


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


def test_what_a_storage_of_the_callers_own_raises_is_a_failure_of_storage():
    class Own:
        def save_transcript(self, session_id, messages, step):
            return f"{session_id}/{step}"

        def save_summary(self, session_id, summary, step):
            raise RuntimeError("down")

        def save_event(self, session_id, event):
            return None

    storage = guarded_storage(Own())

    assert storage.save_transcript("s", [], 1) == "s/1"
    assert storage.save_event("s", {}) == storage.name == "Own"
    with pytest.raises(StorageFailed, match="Own: RuntimeError: down"):
        storage.save_summary("s", {}, 1)


def test_a_storage_of_the_callers_own_may_know_its_steps():
    class Own:
        def save_transcript(self, session_id, messages, step):
            return "t"

        save_summary = save_event = save_transcript

        def next_step(self, session_id):
            return 7

    assert guarded_storage(Own()).next_step("s") == 7
