import io
import json
import sys

from aether.events.exporters import console
from tests.events.samples import every, summary


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
