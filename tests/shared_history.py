"""A checker of what many writers of one ledger have seen: was every acknowledged line stored once, in a linear order?

Each process records its calls with the times of their start and end, by the clock of the machine that all share, so that
"ended before the other started" is known without the server. `faults` compares the records with the final lines.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from aether.errors import StorageFailed
from aether.sharing.ledgers import Colony, Unsettled
from aether.store import log
from aether.store.ledger import Mark
from tests.children import ended, start

DONE, REFUSED, UNKNOWN, READ = "done", "refused", "unknown", "read"


class Call(NamedTuple):
    """One call of one writer, and what it was answered."""

    stream: str
    outcome: str
    revision: int
    """Of the first line if done; of the last line that was read."""
    lines: list[str]
    started: float
    ended: float


def faults(calls: Iterable[Call], final: dict[str, Sequence[str]]) -> list[str]:
    """Return what contradicts that the final lines of each stream are a linear order of these calls."""
    found: list[str] = []
    by_stream: dict[str, list[Call]] = {stream: [] for stream in final}
    for call in calls:
        by_stream.setdefault(call.stream, []).append(call)
    for stream, made in by_stream.items():
        found += [f"{stream}: {fault}" for fault in _faults_of(made, list(final.get(stream, [])))]
    return found


def _faults_of(calls: list[Call], lines: list[str]) -> list[str]:
    found = []
    times = Counter(lines)
    sent = Counter(line for call in calls if call.outcome != READ for line in call.lines)
    found += [f"{line!r} is stored {number} times" for line, number in times.items() if number > 1]
    found += [f"{line!r} was sent by nobody" for line in times if line not in sent]
    settled = {line for call in calls if call.outcome in (DONE, UNKNOWN) for line in call.lines}
    for call in calls:
        at = call.revision - 1
        if call.outcome == DONE and lines[at : at + len(call.lines)] != call.lines:
            found.append(f"{call.lines} was acknowledged at revision {call.revision}, and is not there")
        elif call.outcome == REFUSED:
            # The same line may have been sent again, and stored then.
            found += [
                f"{line!r} was refused, and is there" for line in set(call.lines) & times.keys() - settled
            ]
        elif call.outcome == READ and lines[call.revision - len(call.lines) : call.revision] != call.lines:
            found.append(f"{call.lines} was read up to revision {call.revision}, and is not there")
    return found + _order_faults(calls)


def _order_faults(calls: list[Call]) -> list[str]:
    """Return the calls that do not see what had ended before they started: the order of the revisions is that of time."""
    found = []
    acknowledged = sorted((call for call in calls if call.outcome == DONE), key=lambda call: call.ended)
    seen = [call for call in calls if call.outcome in (DONE, READ)]
    latest, nth = 0, 0
    for call in sorted(seen, key=lambda call: call.started):
        while nth < len(acknowledged) and acknowledged[nth].ended < call.started:
            latest = max(latest, acknowledged[nth].revision + len(acknowledged[nth].lines) - 1)
            nth += 1
        if call.revision < latest + (call.outcome == DONE):
            found.append(f"revision {call.revision} of a call that started after {latest} was acknowledged")
    return found


class Writer:
    """One process that appends to, and reads, the streams of a ledger, and records what it was answered."""

    def __init__(
        self, open_one: Callable[[], Colony], streams: Sequence[str], record: Path, seed: int
    ) -> None:
        self.ledger, self.streams = open_one(), streams
        self.record = record.open("a", buffering=1)  # a killed process has recorded what it was about to send
        self.chance = random.Random(seed)
        self.name = f"{seed}"
        self.marks = dict.fromkeys(streams, Mark(0, ""))
        self.made = 0

    def write_until(self, stop: float) -> None:
        """Call the ledger until this time of the clock, and keep the record."""
        while time.monotonic() < stop:
            stream = self.chance.choice(self.streams)
            try:
                (self._in_turn if self.chance.random() < 0.2 else self._append)(stream)
                if self.chance.random() < 0.3:
                    self._read(stream)
            except StorageFailed:
                time.sleep(0.02)  # recorded where it was raised, or nothing had been sent
        self.ledger.close()

    def _keep(self, number: int, call: Call) -> None:
        self.record.write(json.dumps([number, *call]) + "\n")

    def _append(self, stream: str) -> None:
        lines = []
        for _ in range(self.chance.choice((1, 1, 1, 3))):
            self.made += 1
            text = f"line {self.made} of writer {self.name} in this trial"
            lines.append(log.seal_json({"text": text}).decode())
        mark, started = self.marks[stream], time.monotonic()
        number = self.made

        def keep(outcome: str, revision: int = 0) -> None:
            self._keep(number, Call(stream, outcome, revision, lines, started, time.monotonic()))

        keep(UNKNOWN)  # until it is answered
        try:
            answer = self.ledger.append_if(stream, mark, [line.encode() for line in lines])
        except Unsettled:
            keep(UNKNOWN)
            raise
        except StorageFailed:
            keep(REFUSED)
            raise
        keep(DONE if answer.done else REFUSED, mark.revision + 1)
        self._advance(stream, mark, [line.encode() for line in lines] if answer.done else answer.lines)

    def _in_turn(self, stream: str) -> None:
        mark = self.marks[stream]
        with self.ledger.turn(stream, mark) as news:
            self._advance(stream, mark, news.lines)
            self._append(stream)

    def _read(self, stream: str) -> None:
        mark, started = self.marks[stream], time.monotonic()
        lines: list[bytes] = []
        head = mark.revision + 1
        while mark.revision < head:
            news = self.ledger.read_after(stream, mark)
            head = news.head
            lines += news.lines
            self._advance(stream, mark, news.lines)
            mark = self.marks[stream]
        texts = [line.decode() for line in lines]
        self.made += 1
        self._keep(self.made, Call(stream, READ, mark.revision, texts, started, time.monotonic()))

    def _advance(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> None:
        if lines:
            self.marks[stream] = Mark(mark.revision + len(lines), lines[-1][-19:-3].decode())


def trial(
    open_one: Callable[[], Colony], directory: Path, *, writers: int, streams: int, seconds: float, seed: int,
    disturb: Callable[[random.Random], object],
) -> tuple[list[Call], list[str]]:  # fmt: skip
    """Let `writers` processes write for some seconds while `disturb` is called again and again; return calls and streams."""
    names = [f"s{number}" for number in range(streams)]
    stop = time.monotonic() + seconds
    children = [
        start(lambda who=who: Writer(open_one, names, directory / f"calls{who}", 1000 * seed + who).write_until(stop))
        for who in range(writers)
    ]  # fmt: skip
    chance = random.Random(seed)
    killed: set[int] = set()
    while time.monotonic() < stop - 0.5:
        disturb(chance)
        time.sleep(chance.random() * 0.3)
        if chance.random() < 0.05 and len(killed) < writers // 4:
            killed.add(children[len(killed)])
            os.kill(children[len(killed) - 1], signal.SIGKILL)
    assert {child: ended(child) for child in children} == {
        child: -signal.SIGKILL if child in killed else 0 for child in children
    }
    calls: dict[tuple[int, int], Call] = {}
    for who in range(writers):
        for line in (directory / f"calls{who}").read_text().splitlines():
            number, *call = json.loads(line)
            calls[who, number] = Call(*call)
    return list(calls.values()), names


def final_lines(ledger: Colony, streams: Iterable[str]) -> dict[str, list[str]]:
    """Return all lines of each stream, read as a new replica reads them."""
    found: dict[str, list[str]] = {}
    for stream in streams:
        lines: list[bytes] = []
        while (news := ledger.read_after(stream, Mark(len(lines), ""), limit=700)).lines:
            lines += news.lines
        assert len(lines) == ledger.head(stream)
        found[stream] = [line.decode() for line in lines]
    return found
