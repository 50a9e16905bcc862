from aether.events.events import Event, Exporter
from aether.events.exporters import exporter


def test_an_event_went_well_and_holds_nothing_private_unless_said():
    made = Event("window.budget", "2026-03-01T10:15:00.000000Z", "s1", {})

    assert (made.status, made.payload) == ("ok", None)


def test_an_exporter_takes_events_sends_what_waits_and_lets_go():
    one: Exporter = exporter("none")

    assert (one.emit(Event("x", "", "", {})), one.flush(), one.close()) == (None, None, None)
