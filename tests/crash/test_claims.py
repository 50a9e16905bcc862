"""Agents that claim the same few resources at once: no acknowledged claim is held twice, though some of them are killed."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import UTC, datetime

import pytest

import aether
from aether.errors import AetherError
from aether.store import doctor
from tests import homes
from tests.children import ended, start

RESOURCES = ("src", "src/api.py", "docs.md", "task:release")
TTL = 0.4


def work(home, name):
    """Claim and release, and note what is acknowledged before acting on it."""
    own = random.Random(name)
    with open(home / f"log-{name}", "ab", buffering=0) as log:
        while not (home / "done").exists():
            resource = own.choice(RESOURCES)
            try:
                claim = aether.claim(resource, by=name, ttl=TTL, home=home)
            except AetherError:
                continue
            log.write(f"held {resource} {time.time()} {claim['ends_at']} {claim['revision']}\n".encode())
            if own.random() < 0.7:
                log.write(f"releasing {resource} {time.time()}\n".encode())
                try:
                    aether.release(resource, by=name, home=home)
                except AetherError:  # its time was over
                    continue


def spans(home):
    """Return for each acknowledged claim the resource, its holder, the time in which it was held for sure, and its number."""
    found = []
    for path in sorted(home.glob("log-*")):
        since = {}
        for line in path.read_text().splitlines():
            words = line.split()
            if words[0] == "held":
                end = datetime.fromisoformat(words[3]).replace(tzinfo=UTC).timestamp()
                since.setdefault(words[1], []).append(
                    [words[1], path.name, float(words[2]), end, int(words[4])]
                )
            else:
                done = float(words[2])
                found += [(*span[:3], min(span[3], done), span[4]) for span in since.pop(words[1])]
        found += [tuple(span) for spans_ in since.values() for span in spans_]
    return [span for span in found if span[2] < span[3]]


def held_twice(found):
    """Return the pairs of claims that two agents held at one time, and those whose later holder has no greater number."""
    wrong = []
    for one in found:
        for other in found:
            if one[1] == other[1] or not (one[0] == other[0] or {one[0], other[0]} == {"src", "src/api.py"}):
                continue
            if one[2] <= other[2] < one[3] or (one[3] <= other[2] and one[4] >= other[4]):
                wrong.append((one, other))
    return wrong


@pytest.mark.parametrize(
    ("agents", "seconds", "kills"), [(4, 0.0, 0), pytest.param(16, 15.0, 40, marks=pytest.mark.slow)]
)
def test_no_acknowledged_claim_is_held_twice(home, agents, seconds, kills):
    homes.configure(home, "[store]\nlock_timeout_seconds = 600\n")  # a busy machine is no failure
    children = {start(work, home, f"agent-{nth}"): f"agent-{nth}" for nth in range(agents)}
    own, codes = random.Random(agents), []

    for nth in range(kills):
        time.sleep(seconds / kills)
        child = own.choice([*children])
        os.kill(child, signal.SIGKILL)
        codes.append(ended(child))
        del children[child]
        children[start(work, home, f"late-{nth}")] = f"late-{nth}"

    while len({span[1] for span in spans(home)}) < agents:  # a busy machine is no failure
        time.sleep(0.1)
    (home / "done").touch()
    assert [ended(child) for child in children] == [0] * agents
    assert codes == [-signal.SIGKILL] * kills
    found = spans(home)
    print(len(found))
    assert held_twice(found) == []
    assert {one.code for one in doctor.examine(home)} <= {"torn-journal", "temp-files"}
