"""Delivery: at once or by a thread; events are lost only with a count, and a failure reaches nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from aether.events import delivery
from aether.events.delivery import BackgroundExporter, DirectExporter, SendResult, warn
from tests.events.samples import summary
from tests.events.viewers import eventually

ROOT = Path(__file__).parents[2]


def taker(batches):
    """Return a `send` that keeps what it is given."""

    def send(events, deadline):
        batches.append([event.payload["summary"] for event in events])
        return SendResult()

    return send


def holder(release, batches):
    """Return a `send` that keeps its batch and then waits for `release`."""

    def send(events, deadline):
        batches.append([event.payload["summary"] for event in events])
        release.wait(10)
        return SendResult()

    return send


def test_an_event_is_sent_at_once_without_a_flush():
    batches = []
    one = BackgroundExporter("test", taker(batches))

    one.emit(summary("a"))

    assert eventually(lambda: batches == [["a"]])
    one.close()


def test_events_that_wait_for_a_batch_go_in_the_next_one_in_order():
    batches, release = [], threading.Event()
    one = BackgroundExporter("test", holder(release, batches))
    one.emit(summary("0"))
    assert eventually(lambda: batches)

    for nth in range(1, 6):
        one.emit(summary(str(nth)))
    release.set()
    one.close()

    assert batches == [["0"], ["1", "2", "3", "4", "5"]]
    assert one.lost == 0


def test_a_full_queue_drops_its_oldest_and_says_so_once(capsys):
    batches, release = [], threading.Event()
    one = BackgroundExporter("test", holder(release, batches), queue_events=3)
    one.emit(summary("held"))
    assert eventually(lambda: batches)

    for nth in range(10):
        one.emit(summary(str(nth)))
    release.set()
    one.close()

    assert batches[1] == ["7", "8", "9"]
    assert one.lost == 7
    assert capsys.readouterr().err.count("\n") == 1


def test_nobody_waits_longer_than_the_timeout(capsys):
    release, batches = threading.Event(), []
    one = BackgroundExporter("test", holder(release, batches), timeout_seconds=0.05)

    one.emit(summary("a"))
    assert eventually(lambda: batches)
    one.emit(summary("b"))
    one.flush()
    one.close()

    assert (one.lost, batches) == (2, [["a"]])
    assert "[test] 2 events lost: they were not sent within 0.05 s." in capsys.readouterr().err
    release.set()


def test_what_is_lost_after_the_end_is_counted_once(capsys):
    release, done = threading.Event(), []

    def send(events, deadline):
        release.wait(10)
        done.append(len(events))
        return SendResult(len(events), "nobody listens")

    one = BackgroundExporter("test", send, timeout_seconds=0.05)
    one.emit(summary())
    one.close()
    release.set()

    assert eventually(lambda: done and one._sending == 0)
    assert one.lost == 1
    assert "nobody listens" not in capsys.readouterr().err


def test_a_flush_with_nothing_to_send_returns():
    BackgroundExporter("test", taker([])).flush()


def test_a_send_that_raises_loses_its_batch_and_not_the_thread(capsys):
    batches = []

    def send(events, deadline):
        if events[0].payload["summary"] == "bad":
            raise RuntimeError("poison")
        return taker(batches)(events, deadline)

    one = BackgroundExporter("test", send)
    one.emit(summary("bad"))
    one.flush()
    one.emit(summary("good"))
    one.close()

    assert (one.lost, batches) == (1, [["good"]])
    assert "[test] 1 event lost: RuntimeError: poison." in capsys.readouterr().err


def test_undelivered_events_are_counted_and_reported_once(capsys):
    one = BackgroundExporter("test", lambda events, deadline: SendResult(len(events), "nobody listens"))

    for _ in range(3):
        one.emit(summary())
        one.flush()

    assert one.lost == 3
    assert capsys.readouterr().err == (
        "[test] 1 event lost: nobody listens. Further losses are counted, not reported.\n"
    )
    one.close()


def test_send_gets_its_deadline():
    reported = []
    one = BackgroundExporter(
        "test", lambda events, deadline: reported.append(deadline) or SendResult(), timeout_seconds=1.5
    )

    before = time.monotonic()
    one.emit(summary())
    one.close()

    assert before <= reported[0] - 1.5 <= time.monotonic()


def test_an_event_after_the_end_is_lost(capsys):
    batches = []
    one = BackgroundExporter("test", taker(batches))
    one.close()
    one.close()

    one.emit(summary())

    assert (one.lost, batches) == (1, [])


def test_without_a_thread_the_event_is_lost_and_the_next_one_tries_again(monkeypatch, capsys):
    batches = []
    one = BackgroundExporter("test", taker(batches))

    def none_left(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        one.emit(summary("a"))
        one.flush()
    one.emit(summary("b"))
    one.close()

    assert (one.lost, batches) == (1, [["b"]])


def test_the_thread_ends_with_the_exporter():
    one = BackgroundExporter("ending", taker([]))
    one.emit(summary())

    one.close()

    assert eventually(lambda: not any("ending" in thread.name for thread in threading.enumerate()))


def test_the_end_of_the_process_waits_for_all_exporters_together(monkeypatch):
    """Each takes all the time it is given: together they take what the slowest may, not the sum."""
    now, waited = [100.0], []

    def end(one, seconds):
        waited.append(max(0.0, seconds))
        now[0] += waited[-1]

    monkeypatch.setattr(delivery, "_OPEN", set())
    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(BackgroundExporter, "_end", end)
    several = [BackgroundExporter("test", taker([]), timeout_seconds=seconds) for seconds in (1.0, 2.0, 2.0)]

    delivery._close_all()

    assert len(waited) == len(several)
    assert sum(waited) == 2.0


def test_in_a_child_nothing_of_the_parent_is_waited_for(monkeypatch):
    """The lock may have been held, the thread is gone, and what waits is the parent's to send."""
    batches = []
    one = BackgroundExporter("test", taker(batches))
    monkeypatch.setattr(delivery, "_OPEN", {one})
    one._changed.acquire()
    one._waiting.append(summary("of the parent"))

    delivery._renew_all()
    one.emit(summary("of the child"))
    one.close()

    assert batches == [["of the child"]]


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


def test_a_process_that_ends_at_once_still_sends(tmp_path):
    code = """
import sys
from aether.events.delivery import BackgroundExporter, SendResult
from tests.events.samples import summary
def send(events, deadline):
    with open(sys.argv[1], "a") as out:
        out.write("".join(event.payload["summary"] for event in events))
    return SendResult()
one = BackgroundExporter("test", send)
for letter in "abc": one.emit(summary(letter))
"""
    run(code, str(tmp_path / "out"))

    assert (tmp_path / "out").read_text() == "abc"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_sends_its_own_events_and_none_twice(tmp_path):
    """The fork happens while the thread of the parent sends, with an event waiting."""
    code = """
import os, sys, threading
from aether.events.delivery import BackgroundExporter, SendResult
from tests.events.samples import summary
begun = threading.Event()
release = threading.Event()
def send(events, deadline):
    begun.set()
    if os.getpid() == parent: release.wait(10)
    with open(sys.argv[1], "a") as out:
        out.writelines(event.payload["summary"] + "\\n" for event in events)
    return SendResult()
parent = os.getpid()
one = BackgroundExporter("test", send)
one.emit(summary("first")); begun.wait(10); one.emit(summary("waiting"))
child = os.fork()
if not child:
    one.emit(summary("child")); one.close(); os._exit(0)
os.waitpid(child, 0); release.set()
"""
    run(code, str(tmp_path / "out"))

    assert sorted((tmp_path / "out").read_text().split()) == ["child", "first", "waiting"]


def test_each_event_is_handed_on_at_once():
    taken = []
    one = DirectExporter("callback", taken.append)

    one.emit(summary("a"))
    assert [event.payload for event in taken] == [{"summary": "a"}]
    one.flush()
    one.close()
    assert len(taken) == 1


def test_failures_are_counted_and_reported_once(capsys):
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
def test_without_a_stderr_nothing_is_printed(monkeypatch, stream):
    if stream:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)

    assert warn("Ariadne", "is away") is None
