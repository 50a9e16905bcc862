"""What does looking at a conversation before each model call cost, and what does compacting it?

Three questions, all through `preflight` as an orchestrator calls it, with the record of conversations on disk:

grown     conversations of 1,000 and 10,000 messages that grew by one and fire no trigger, again and again
triggered the same conversation in a window that it fills to 86 %, compacted once by the extractive backend
          (no model) and once with a caller's summariser that answers at once; a fresh process has counted nothing
          yet, so the first preflight counts the whole and is given beside it
session   1,000 turns with tool calls in a window of 128,000 tokens, preflight before every model call, compacted
          by the extractive backend when a trigger fires; the context continues from the sent messages. No model is asked:
          each model call is taken to last `MODEL_SECONDS`, which is short for an agent's call at this
          context size and so not in favour of aether. The share is all time in preflight of all time.

That the results fit, that nothing is compacted below the trigger, and that the session is compacted many times is
asserted. Wall time suffers from whatever else the machine does (`load_at_start`).

Usage: python benchmarks/compaction_preflight.py
"""

from __future__ import annotations

import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation

from aether.api.compact import (  # noqa: E402
    Compaction,
    Options,
    preflight,
)
from tests.laws.histories import history  # noqa: E402

MESSAGES = 10_000
WIRE = "openai"
GROWTHS = 40
FILLED = 0.86
HUGE = 1_000_000_000
TURNS = 1_000
WINDOW = 128_000
# Seconds that one model call is taken to last: a short answer of a fast model; thinking ones take ten times that.
MODEL_SECONDS = 2.0
ANSWER = (
    "The agent went through the failures one by one, kept PostgreSQL 15, and still has to rerun the suite. "
)


def conversation() -> list[dict]:
    """Return the messages, about 120 tokens each, answers of tools the largest part."""
    raws: list[dict] = []
    while len(raws) < MESSAGES:
        more = history(len(raws), WIRE, turns=20, words=12, images=0.0)
        raws += more if not raws else more[1:]
    # Strings of their own, as a program has them that reads each message from the network.
    raws = copy.deepcopy(raws[:MESSAGES])
    while raws[-1]["role"] != "user":
        raws.pop()
    return raws


def timed(work: Callable[[], Compaction]) -> tuple[float, Compaction]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def spread(seconds: list[float]) -> dict:
    return {
        "median_ms": round(1e3 * statistics.median(seconds), 2),
        "p95_ms": round(1e3 * statistics.quantiles(seconds, n=20)[18], 2),
    }


def grown(raws: list[dict], folder: Path, **settings: object) -> dict:
    """Return what the first preflight costs, and those after the conversation grew by one message."""
    options = Options(record=folder)
    live = list(raws)
    first, found = timed(lambda: preflight("grown", live, window=HUGE, options=options, **settings))
    seconds, cpu = [], []
    for nth in range(GROWTHS):
        role = ("assistant", "user")[nth % 2]
        live.append(
            {"role": role, "content": f"Step {nth} is done; the next one is to verify what it changed."}
        )
        before = time.process_time()
        taken, after = timed(lambda: preflight("grown", live, window=HUGE, options=options, **settings))
        assert not after.triggered
        assert after.tokens_before > found.tokens_before
        seconds.append(taken)
        cpu.append(time.process_time() - before)
        found = after
    return {
        "first_ms": round(1e3 * first, 1),
        **spread(seconds),
        "median_cpu_ms": round(1e3 * statistics.median(cpu), 2),
        "tokens": found.tokens_before,
    }


def triggered(raws: list[dict], folder: Path, tokens: int, backend: object) -> dict:
    """Return what the preflight costs that compacts; the conversation was counted before."""
    window = int(tokens / FILLED)
    options = Options(record=folder, backend=backend)
    idle = preflight("full", raws, window=HUGE, options=options)
    seconds, found = timed(lambda: preflight("full", raws, window=window, options=options))
    assert not idle.triggered
    assert found.triggered
    assert found.tokens_after <= 0.85 * window
    again, after = timed(lambda: preflight("full", found.messages, window=window, options=options))
    assert not after.triggered
    return {
        "seconds": round(seconds, 2),
        "next_preflight_ms": round(1e3 * again, 1),
        "tokens_before": found.tokens_before,
        "tokens_after": found.tokens_after,
        "messages_after": len(found.messages),
        "steps": found.receipt.steps if found.receipt else [],
    }


def session(folder: Path) -> dict:
    """Return the share of a session's wall time that its preflights take."""
    raws = copy.deepcopy(history(7, WIRE, turns=TURNS, rounds=3, parallel=3, tools=0.7, words=20, images=0.0))
    options = Options(record=folder)
    live: list[dict] = []
    idle, compacting = [], []
    for at, raw in enumerate(raws):
        live.append(raw)
        if raw["role"] not in ("user", "tool") or (
            at + 1 < len(raws) and raws[at + 1]["role"] != "assistant"
        ):
            continue
        seconds, found = timed(partial(preflight, "session", live, window=WINDOW, options=options))
        assert found.tokens_after <= found.limit
        (compacting if found.triggered else idle).append(seconds)
        live = list(found.messages)
    calls = len(idle) + len(compacting)
    spent = sum(idle) + sum(compacting)
    assert sum(raw["role"] == "user" for raw in raws) == TURNS
    assert len(compacting) >= 5
    return {
        "turns": TURNS,
        "messages": len(raws),
        "model_calls": calls,
        "window": WINDOW,
        "compactions": len(compacting),
        "not_triggered": spread(idle),
        "compacting": spread(compacting),
        "preflight_seconds": round(spent, 1),
        "preflight_ms_per_turn": round(1e3 * spent / TURNS, 1),
        "assumed_model_seconds_per_call": MODEL_SECONDS,
        "share_of_wall_time": round(spent / (spent + calls * MODEL_SECONDS), 4),
    }


def main() -> None:
    """Measure, print and write."""
    raws = conversation()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = grown(raws, folder / "grown")
        start = [at for at, raw in enumerate(raws[: MESSAGES // 10]) if raw["role"] == "user"][-1]
        tenth = grown(raws[: start + 1], folder / "tenth")
        result = {
            "grown_by_one": plain,
            "grown_by_one_a_tenth": tenth | {"messages": start + 1},
            "triggered": {
                "extractive": triggered(raws, folder / "extractive", plain["tokens"], "extractive"),
                "answers_at_once": triggered(
                    raws, folder / "own", plain["tokens"], lambda said, most, strategy: ANSWER
                ),
            },
            "session": session(folder / "session"),
        }
    assert result["session"]["share_of_wall_time"] < 0.10, "required: less than a tenth"
    report.write(
        __file__, {"question": __doc__.splitlines()[0], "messages": len(raws), "wire": WIRE, **result}
    )


if __name__ == "__main__":
    main()
