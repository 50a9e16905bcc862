"""What does counting a conversation cost, whole and when it grew by one message?

A generated conversation of 10,000 messages with tool calls is counted by the estimate and, where they are on the
machine, by the exact counters; then again after one message was added, after one was changed in place, and after a
stretch in the middle was replaced as a compaction does. That the short ways give the same counts, and that the
counter is given the new message only, is asserted.

The count of growth beside what providers reported, for real transcripts beside the repository, shows the error
of message counts: see docs/formats.md.

Usage: python benchmarks/message_counting.py
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation

from aether.errors import BackendUnavailable  # noqa: E402
from aether.tokens.count import Tally, tally  # noqa: E402
from aether.tokens.counters import EXACT, counter  # noqa: E402
from tests.laws.histories import history  # noqa: E402

MESSAGES = 10_000
WIRE = "anthropic"
TRIES = 5


class Recording:
    """A counter that remembers how many characters it was given."""

    def __init__(self, count: Callable[[str], int]):
        self.count = count
        self.characters = 0

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        return self.count(text)


def conversation() -> list[dict]:
    """Return the messages: mixed sizes, about a third of them answers of tools."""
    raws: list[dict] = []
    seed = 0
    while len(raws) < MESSAGES:
        raws += history(seed, WIRE, turns=20, words=120, images=0.0)
        seed += 1
    # Strings of their own, as a program has them that reads each message from the network.
    return copy.deepcopy(raws[:MESSAGES])


def best(action: Callable[[], object]) -> float:
    """Return the fewest seconds of processor time of several tries."""
    taken = []
    for _ in range(TRIES):
        started = time.process_time()
        action()
        taken.append(time.process_time() - started)
    return min(taken)


def available() -> list[str]:
    """Return the counters that work on this machine."""
    names = ["estimate"]
    for name in EXACT:
        try:
            counter(name)("probe")
        except BackendUnavailable:
            continue
        names.append(name)
    return names


def measured(name: str, raws: list[dict]) -> dict[str, float]:
    """Return what counting `raws` costs by the counter `name`."""
    count = Recording(counter(name))
    whole = tally(raws, provider=WIRE, count=count)
    characters = count.characters
    new = {"role": "user", "content": [{"type": "text", "text": "And now the next step, please."}]}
    grown = [*raws, new]
    changed = copy.deepcopy(raws)
    changed[MESSAGES // 2]["content"] = "rewritten by the caller"
    compacted = [*raws[:2], new, *raws[MESSAGES // 2 :]]

    def again(conversation: list[dict]) -> Tally:
        return tally(conversation, provider=WIRE, count=count, before=whole)

    for after, asked in ((grown, 30), (changed, 23), (compacted, 30), (raws, 0)):
        count.characters = 0
        assert again(after) == tally(after, provider=WIRE, count=whole.count)
        count.characters = 0
        again(after)
        assert count.characters == asked, (name, asked, count.characters)
    seconds = best(lambda: tally(raws, provider=WIRE, count=count))
    one_more = best(lambda: again(grown))
    return {
        "tokens": whole.total,
        "text_megabytes": round(characters / 1e6, 2),
        "whole_ms": round(1e3 * seconds, 1),
        "megabytes_per_second": round(characters / 1e6 / seconds, 1),
        "nothing_new_ms": round(1e3 * best(lambda: again(raws)), 2),
        "one_more_ms": round(1e3 * one_more, 2),
        "one_changed_in_the_middle_ms": round(1e3 * best(lambda: again(changed)), 2),
        "half_replaced_by_a_summary_ms": round(1e3 * best(lambda: again(compacted)), 2),
        "whole_by_one_more": round(seconds / one_more),
    }


def main() -> None:
    """Measure, print and write."""
    raws = conversation()
    assert len(raws) == MESSAGES
    report.write(
        __file__,
        {
            "question": __doc__.splitlines()[0],
            "messages": MESSAGES,
            "wire": WIRE,
            "by_counter": {name: measured(name, raws) for name in available()},
        },
    )


if __name__ == "__main__":
    main()
