"""Processes that use the homes of a shared colony in trouble, and what each of them was answered.

Each works in one replica with a clock of its own: it adds notes and removes them, emits signals, undoes, edits nothing by
hand, extends conversations, and catches up. Before each step it records what it is about to do, and after it the answer,
so that a process that is killed has recorded a step of which nothing is known. `checked` compares all of it with the
replicas afterwards; the order of the journal by `shared_history.faults`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import aether
from aether import clock
from aether.api import share as sharing
from aether.errors import AetherError, NotFound
from aether.sharing import ledgers
from aether.store import conversations, doctor, documents, history
from aether.store import journal as journals
from aether.store.authors import Author
from aether.store.commit import commit
from tests.children import ended, start
from tests.homes import removal
from tests.shared_history import DONE, REFUSED, UNKNOWN, Call, faults

# What an error says if the server may have the change all the same.
_UNSURE = "is not known"


class Step(NamedTuple):
    """One step of one process."""

    what: str
    name: str
    outcome: str
    started: float
    ended: float


class Worker:
    """A process that works in one replica until a time, and records its steps."""

    def __init__(self, home: Path, url: str, record: Path, seed: int) -> None:
        self.home, self.chance, self.made = home, random.Random(seed), 0
        self.record = record.open("a", buffering=1)
        self.name = str(seed)
        self.mine: list[str] = []
        os.environ[ledgers.URL] = url
        ledgers.TIMEOUT_SECONDS = 3.0
        apart = timedelta(minutes=self.chance.randrange(-90, 90))
        real = clock.now
        clock.now = lambda: real() + apart

    def work_until(self, stop: float) -> None:
        """Take steps until this time of the clock."""
        acts = [self._add] * 6 + [self._remove] * 2 + [self._signal] * 2 + [self._say] * 3 + [self._look]
        while time.monotonic() < stop:
            self.chance.choice(acts)()

    def _step(self, what: str, act: Callable[[str], object]) -> bool:
        self.made += 1
        number, name, started = self.made, f"{what} {self.made} of {self.name}", time.monotonic()

        def keep(outcome: str) -> None:
            self.record.write(json.dumps([number, what, name, outcome, started, time.monotonic()]) + "\n")

        keep(UNKNOWN)
        try:
            act(name)
        except AetherError as reason:
            keep(UNKNOWN if _UNSURE in str(reason) else REFUSED)
            time.sleep(0.02)
            return False
        keep(DONE)
        return True

    def _add(self) -> None:
        def act(name: str) -> None:
            self.mine.append(aether.add_working_memory_item(name, "note", home=self.home))

        self._step("add", act)

    def _remove(self) -> None:
        if not self.mine:
            return
        item = self.mine.pop()

        def act(name: str) -> None:
            commit(
                self.home, lambda found: removal(found, item), Author("remove", reason=name), now=clock.now()
            )

        self._step("remove", act)

    def _signal(self) -> None:
        self._step("signal", lambda name: aether.emit_signal("FOCUS", name, home=self.home))

    def _say(self) -> None:
        talk = f"talk{self.chance.randrange(2)}"
        self._step(
            talk,
            lambda name: conversations.extend(
                self.home, talk, [{"role": "user", "content": name}], now=clock.now()
            ),
        )

    def _look(self) -> None:
        with suppress(AetherError):
            sharing.update_share(home=self.home)


def trial(
    homes: Sequence[Path], urls: Callable[[int], str], directory: Path, *, workers: int, seconds: float, seed: int,
    disturb: Callable[[random.Random], object],
) -> list[Step]:  # fmt: skip
    """Let `workers` processes work in these replicas while `disturb` is called again and again; return their steps.

    Some are killed, and others start in their place.
    """
    chance, stop, count = random.Random(seed), time.monotonic() + seconds, workers

    def started(who: int) -> int:
        home = homes[who % len(homes)]
        return start(
            lambda: Worker(home, urls(who), directory / f"steps{who}", 1000 * seed + who).work_until(stop)
        )

    running = {started(who): who for who in range(workers)}
    killed: set[int] = set()
    while time.monotonic() < stop - 1:
        disturb(chance)
        time.sleep(chance.random())
        if chance.random() < 0.2:
            child = chance.choice(sorted(running.keys() - killed))
            os.kill(child, signal.SIGKILL)
            killed.add(child)
            running[started(count)] = count
            count += 1
    for child in running:  # one may have been killed when it had just ended
        assert ended(child) in ((0, -signal.SIGKILL) if child in killed else (0,))
    steps: dict[tuple[int, int], Step] = {}
    for who in range(count):
        with suppress(FileNotFoundError):
            for line in (directory / f"steps{who}").read_text().splitlines():
                number, *step = json.loads(line)
                steps[who, number] = Step(*step)
    return list(steps.values())


def checked(homes: Sequence[Path], steps: Sequence[Step]) -> list[str]:
    """Return what contradicts that each acknowledged step is in each replica once, and that the replicas are the same."""
    for home in [*homes, *homes]:
        sharing.update_share(home=home)
    found = [
        f"{home.parent.name}: {finding.code} {finding.message}"
        for home in homes
        for finding in doctor.examine(home)
        if finding.level == "error"
    ]
    first = homes[0]
    for home in homes[1:]:
        found += [
            f"{home.parent.name}: {name} differs"
            for name in documents.NAMES
            if _read(home, name) != _read(first, name)
        ]
        if _history(home) != _history(first):
            found.append(f"{home.parent.name}: the history differs")
    entries = list(journals.folded_entries(first))
    if [entry.revision for entry in entries] != list(range(1, len(entries) + 1)):
        found.append("the revisions are not consecutive")
    streams: dict[str, list[str]] = {"journal": [_marks(entry, steps) for entry in entries]}
    for talk in ("talk0", "talk1"):
        with suppress(NotFound):
            logs = [conversations.load(home, talk) for home in homes]
            said = [[str(one["content"]) for one in history.history(log)] for log in logs]
            streams[talk] = said[0]
            found += [f"{talk} differs" for one in said[1:] if one != said[0]]
    return found + faults(_calls(steps, streams), streams)


def _marks(entry: Any, steps: Sequence[Step]) -> str:
    """Return the name of the step that made an entry; of another entry what it is."""
    names = {step.name for step in steps}
    for patch in entry.patches.values():
        for change in patch:
            value = change.get("value")
            about = (
                value.get("content") or value.get("metadata", {}).get("context")
                if isinstance(value, dict)
                else None
            )
            if about in names:
                return str(about)
    return entry.reason if entry.reason in names else f"{entry.operation} {entry.revision}"


def _calls(steps: Sequence[Step], streams: dict[str, list[str]]) -> Iterator[Call]:
    at = {
        stream: {line: nth for nth, line in reversed(list(enumerate(lines, 1)))}
        for stream, lines in streams.items()
    }
    for step in steps:
        stream = step.what if step.what.startswith("talk") else "journal"
        revision = at.get(stream, {}).get(step.name, 0)
        yield Call(stream, step.outcome, revision, [step.name], step.started, step.ended)
    names = {step.name for step in steps}
    for stream, lines in streams.items():
        yield Call(stream, UNKNOWN, 0, [line for line in lines if line not in names], 0.0, 0.0)


def outcomes(steps: Sequence[Step]) -> Counter[tuple[str, str]]:
    """Return how often each kind of step had which outcome."""
    return Counter((step.what, step.outcome) for step in steps)


def _read(home: Path, name: str) -> bytes:
    path = documents.path_of(home, name)
    return path.read_bytes() if path.exists() else b""


def _history(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in journals.month_files(home))
