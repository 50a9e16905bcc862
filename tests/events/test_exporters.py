"""Exporters: redacted copies for every kind, and the console and the file."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aether.errors import InvalidInput, StorageFailed
from aether.events import events
from aether.events.exporters import callback, console, exporter, fan_out, file, redacted_copy, screened
from aether.redact.redact import rules
from tests import homes
from tests.events import viewers
from tests.events.samples import MOMENT, SECRET, compaction, every, summary
from tests.tables import rows


class Broken:
    """An exporter of somebody else that fails at everything."""

    def emit(self, event):
        raise RuntimeError("emit")

    def flush(self):
        raise RuntimeError("flush")

    def close(self):
        raise RuntimeError("close")


def kept(tmp_path):
    return [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]


def test_none_takes_everything_and_keeps_nothing(capsys):
    exporter("none").emit(summary())

    assert capsys.readouterr() == ("", "")


def test_console_and_file_and_viewer_get_the_same_events(tmp_path, capsys):
    with viewers.viewer() as found:
        several = fan_out([
            exporter("console"), exporter("file", path=tmp_path / "events.jsonl"), exporter("ariadne", url=found.url, timeout_seconds=20),
        ])  # fmt: skip
        for event in compaction():
            several.emit(event)
        several.flush()
        several.close()

    shown = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert shown == kept(tmp_path) == [span["data"] for span in found.spans]
    assert [one["event"] for one in shown] == [event.name for event in compaction()]


@rows(
    ("settings", "words"),
    [
        ({"kind": "syslog"}, "'syslog' is not an exporter. Use one of none, console, file, ariadne, otlp"),
        ({"kind": "file"}, "has no path"),
        ({"kind": "ariadne", "url": "ftp://x"}, "http or https"),
        ({"kind": "console", "timeout_seconds": 0}, "0 is not a timeout"),
        ({"kind": "console", "timeout_seconds": float("nan")}, "nan is not a timeout"),
    ],
)
def test_invalid_settings_are_rejected_at_once(settings, words):
    with pytest.raises(InvalidInput, match=words):
        exporter(**settings)


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(StorageFailed):
        exporter("file", path=tmp_path)


def test_no_exporter_gets_a_secret():
    seen = []
    event = events.error(
        MOMENT._replace(session_id=f"run {SECRET}"), error_type="X", message=f"key {SECRET}", fallback="none"
    )
    one = callback(seen.append)

    one.emit(event._replace(payload={"deep": [{"authorization": f"Bearer {SECRET}"}]}))

    assert SECRET not in json.dumps(seen)
    assert "<REDACTED>" in seen[0].session_id


def test_the_event_of_the_caller_is_unchanged():
    event = summary(SECRET)

    redacted_copy(event)

    assert event.payload == {"summary": SECRET}


def test_an_exporter_cannot_change_the_event_of_the_caller():
    event = compaction()[0]

    callback(lambda seen: seen.properties["breakdown"].clear()).emit(event)

    assert event.properties["breakdown"]["system"] == 800


def test_patterns_of_the_caller_count_too():
    seen = []

    callback(seen.append, rules=rules([r"ACME-\d+"])).emit(summary("ticket ACME-77"))

    assert seen[0].payload == {"summary": "ticket <REDACTED>"}


def test_without_redaction_the_first_event_is_preceded_by_a_warning():
    seen = []
    one = callback(seen.append, rules=None)

    one.emit(summary(SECRET))
    one.emit(summary(SECRET))

    assert [event.name for event in seen] == [
        events.REDACTION_DISABLED,
        events.SUMMARY_CREATED,
        events.SUMMARY_CREATED,
    ]
    assert seen[0].properties["severity"] == "high"
    assert seen[1].payload == {"summary": SECRET}


def test_payloads_can_be_left_out(tmp_path):
    one = exporter("file", path=tmp_path / "events.jsonl", content=False)

    one.emit(summary("the plan"))

    assert "payload" not in kept(tmp_path)[0]
    assert kept(tmp_path)[0]["summary_tokens"] == 1_500


def test_an_event_that_cannot_be_redacted_is_not_exported(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("aether.events.exporters.redacted", lambda value, rules: 1 / 0)

    callback(seen.append).emit(summary())

    assert seen == []
    assert "[callback] an event was lost: ZeroDivisionError" in capsys.readouterr().err


def test_an_exporter_that_fails_keeps_no_other_from_its_events(capsys):
    seen = []
    several = fan_out([Broken(), screened(Broken()), callback(seen.append)])

    several.emit(summary())
    several.flush()
    several.close()

    assert len(seen) == 1


def test_a_failing_callback_is_reported_once(capsys):
    one = callback(lambda event: 1 / 0)

    one.emit(summary())
    one.emit(summary())

    assert capsys.readouterr().err.count("\n") == 1


def test_to_choose_an_exporter_imports_no_other():
    code = (
        "import sys\nfrom aether.events.exporters import exporter\nexporter('console')\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('opentelemetry', 'http', 'requests', 'ssl')])"
    )
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=homes.plain_environment()
    )  # fmt: skip

    assert listed.stdout.strip() == "[]"


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names_of_the_page = {}

    exec(page.partition("```python\n")[2].partition("```")[0], names_of_the_page)
    names_of_the_page["events"].close()

    assert (tmp_path / "events.jsonl").exists()


def test_each_event_is_one_line_of_json_on_stderr(capsys):
    one = console()

    for event in every():
        one.emit(event)

    shown = capsys.readouterr()
    assert [json.loads(text)["event"] for text in shown.err.splitlines()] == [event.name for event in every()]
    assert shown.out == ""


def test_a_stderr_of_another_encoding_takes_every_text(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding="ascii", errors="strict"))

    console().emit(summary("日本語 \ud800"))

    assert json.loads(raw.getvalue())["payload"] == {"summary": "日本語 \ud800"}


def test_a_closed_stderr_stops_nobody(monkeypatch):
    one = console()
    monkeypatch.setattr(sys, "stderr", None)

    one.emit(summary())

    assert one.lost == 1


ROOT = Path(__file__).parents[2]


def test_each_event_is_one_line_and_only_the_owner_may_read_it(tmp_path):
    path = tmp_path / "deep" / "er" / "events.jsonl"
    one = file(path)

    for event in every():
        one.emit(event)

    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == [event.name for event in every()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_existing_lines_stay(tmp_path):
    path = tmp_path / "events.jsonl"
    file(path).emit(summary("first"))

    file(path).emit(summary("second"))

    assert [json.loads(line)["payload"]["summary"] for line in path.read_text().splitlines()] == [
        "first",
        "second",
    ]


def test_a_relative_path_stays_where_it_was_named(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    one = file("events.jsonl")

    monkeypatch.chdir(tmp_path / "elsewhere")
    one.emit(summary())

    assert (tmp_path / "events.jsonl").stat().st_size > 0


def test_several_processes_write_whole_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    code = (
        "import sys\nfrom aether.events.exporters import file\nfrom tests.events.samples import summary\n"
        "one = file(sys.argv[1])\nfor _ in range(100): one.emit(summary('x' * 3000))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path], cwd=ROOT) for _ in range(3)]

    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 300


@rows("name", ["", "taken/events.jsonl", "a\0b"])
def test_no_exporter_is_made_for_an_unwritable_path(tmp_path, name):
    (tmp_path / "taken").write_text("a file, not a directory")

    with pytest.raises(StorageFailed, match="Name a file"):
        file(tmp_path / name)


def test_a_disk_that_is_full_stops_nobody_and_joins_no_lines(tmp_path, monkeypatch):
    path, real = tmp_path / "events.jsonl", os.write
    one = file(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[:9]))
        one.emit(summary("lost"))

    one.emit(summary("kept"))

    assert one.lost == 1
    assert json.loads(path.read_text().splitlines()[1])["payload"] == {"summary": "kept"}
