import json
import subprocess
import sys
from pathlib import Path

import pytest

from aether.errors import InvalidInput, StorageFailed
from aether.events import events
from aether.events.exporters import callback, exporter, fan_out, redacted_copy, screened
from aether.redact.redact import rules
from tests import homes
from tests.events import viewers
from tests.events.samples import MOMENT, SECRET, compaction, summary
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
def test_what_cannot_be_is_refused_before_anything_is_sent(settings, words):
    with pytest.raises(InvalidInput, match=words):
        exporter(**settings)


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(StorageFailed):
        exporter("file", path=tmp_path)


def test_secrets_are_gone_before_any_exporter_sees_the_event():
    seen = []
    event = events.error(
        MOMENT._replace(session_id=f"run {SECRET}"), error_type="X", message=f"key {SECRET}", fallback="none"
    )
    one = callback(seen.append)

    one.emit(event._replace(payload={"deep": [{"authorization": f"Bearer {SECRET}"}]}))

    assert SECRET not in json.dumps(seen)
    assert "<REDACTED>" in seen[0].session_id


def test_the_event_of_the_caller_keeps_what_it_had():
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


def test_texts_can_be_left_at_home(tmp_path):
    one = exporter("file", path=tmp_path / "events.jsonl", content=False)

    one.emit(summary("the plan"))

    assert "payload" not in kept(tmp_path)[0]
    assert kept(tmp_path)[0]["summary_tokens"] == 1_500


def test_what_cannot_be_redacted_does_not_leave(monkeypatch, capsys):
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


def test_a_callback_that_fails_is_said_once(capsys):
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
