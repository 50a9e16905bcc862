"""How long does the extractive architect take for 25k, 50k, 100k and 200k tokens, and is that linear?

Working notes are generated from a seed, every one different, half of them of the types that must be kept. Ratios compare
sizes within one run; seconds are those of the processor. The workload is checked: its size in tokens, and that the sessions have the target ratio.

Usage: python benchmarks/architect_speed.py
"""

from __future__ import annotations

import json
import random
import time

import report

from aether.architects.base import Request, Settings
from aether.architects.extractive import complete
from aether.tokens.counters import session_tokens
from aether.tokens.estimate import estimate

SIZES = (25_000, 50_000, 100_000, 200_000)
ROUNDS = 3
RATIO = 2.5
RATIO_WITHIN = 0.1
# Seconds per token may not grow by more than this from the smallest to the largest input.
LINEAR_WITHIN = 1.5
TYPES = ("observation", "decision", "outcome", "user_input", "command", "code_change", "error", "observation")
SYLLABLES = "ba ke li mo nu ra se ti vo zu dra fel gor hin jas".split()
FORMS = (
    "We decided to move the {a} of {b} into src/{a}/{b}.py because the {c} took {n} ms on {d}.",
    "Ran `pytest -q tests/test_{a}.py`: {n} passed, and the {b} of the {c} is no longer {d}.",
    "The {a} must never write to the {b} while a {c} is open, except where {d} says so.",
    "I looked at the {a} and the {b}, which seemed fine, and then I read the {c} of {d} as well.",
    "{a}Error: the {b} at line {n} holds no {c}; the {d} was missing.",
    "The user would like the {a} to show {n} {b} at once, and to hide the {c} of the {d}.",
)


def main() -> None:
    rows = [row(size) for size in SIZES]
    check(rows)
    tell(rows)


def handoff(tokens: int, *, seed: int) -> dict:
    """Return a hand-off of about `tokens` tokens."""
    chance = random.Random(seed)
    items: list[dict] = []
    total = 0
    while total < tokens:
        text = " ".join(note(chance) for _ in range(chance.randint(1, 6)))
        count = estimate(text)
        metadata = {
            "timestamp": "2026-03-01T10:15:00.000000Z",
            "relevance_score": chance.choice((0.5, 0.7, 0.9)),
        }
        items.append(
            {
                "id": f"wm_{len(items)}",
                "type": chance.choice(TYPES),
                "content": text,
                "token_count": count,
                "metadata": metadata,
            }
        )
        total += count
    return {
        "compression_id": "phase_1_9f86d081",
        "phase": 1,
        "prepared_at": "2026-03-01T10:15:00.000000Z",
        "items": items,
        "total_tokens": total,
        "target_tokens": int(total / RATIO),
        "protected": [],
        "signals": [],
    }


def note(chance: random.Random) -> str:
    a, b, c, d = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(4))
    return chance.choice(FORMS).format(a=a, b=b, c=c, d=d, n=chance.randint(1, 9999))


def row(tokens: int) -> dict:
    best = float("inf")
    for turn in range(ROUNDS):
        # New text each time: the caches of words and kinds would hold a small input whole.
        data = handoff(tokens, seed=tokens + turn)
        request = Request("session", data, "", {}, data["target_tokens"])
        start = time.process_time()
        answer = complete(request, settings=Settings(), count=estimate).text
        best = min(best, time.process_time() - start)
    kept = session_tokens(json.loads(answer), estimate)
    return {
        "tokens": data["total_tokens"],
        "items": len(data["items"]),
        "seconds": round(best, 3),
        "microseconds_per_token": round(best / data["total_tokens"] * 1e6, 2),
        "ratio": round(data["total_tokens"] / kept, 3),
    }


def check(rows: list[dict]) -> None:
    for size, found in zip(SIZES, rows, strict=True):
        assert size <= found["tokens"] < size * 1.05, "the workload has another size"
        assert abs(found["ratio"] / RATIO - 1) < RATIO_WITHIN, "the sessions miss the target ratio"
    slower = rows[-1]["microseconds_per_token"] / rows[0]["microseconds_per_token"]
    assert slower < LINEAR_WITHIN, f"a token costs {slower:.2f} times as much in the largest input"


def tell(rows: list[dict]) -> None:
    report.write(__file__, {"question": "time of the extractive architect on doubling inputs", "rows": rows})


if __name__ == "__main__":
    main()
