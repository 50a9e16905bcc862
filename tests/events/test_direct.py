import sys

import pytest

from aether.events.delivery import DirectExporter, warn
from tests.events.samples import summary


def test_each_event_is_handed_on_at_once():
    taken = []
    one = DirectExporter("callback", taken.append)

    one.emit(summary("a"))
    assert [event.payload for event in taken] == [{"summary": "a"}]
    one.flush()
    one.close()
    assert len(taken) == 1


def test_what_fails_is_counted_and_said_once(capsys):
    one = DirectExporter("callback", lambda event: 1 / 0)

    for _ in range(3):
        one.emit(summary())

    assert one.lost == 3
    assert capsys.readouterr().err == "[callback] an event was lost: ZeroDivisionError: division by zero\n"


def test_an_interrupt_passes():
    def interrupted(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DirectExporter("callback", interrupted).emit(summary())


@pytest.mark.parametrize("stream", [None, open(__file__, encoding="utf-8")])  # noqa: SIM115 - closed below
def test_without_a_stderr_nothing_is_said(monkeypatch, stream):
    if stream:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)

    assert warn("Ariadne", "is away") is None
