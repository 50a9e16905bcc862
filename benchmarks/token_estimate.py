"""How far is the token estimate from o200k_base, by kind of text, and how fast is it?

Counts the samples of the tests, texts generated here and, where they are, real transcripts beside
the repository. Without the rank file of o200k_base only the samples, whose counts are recorded, and
the speed are measured. Writes benchmarks/results/token_estimate.json.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation

from aether.errors import BackendUnavailable  # noqa: E402
from aether.tokens import exact  # noqa: E402 - runnable without an installation
from aether.tokens.estimate import estimate  # noqa: E402

SAMPLES = ROOT / "tests" / "tokens" / "samples"
DATA = ROOT.parent / "shared" / "data"
SPEED_CHARS = 2_000_000
# A transcript is cut into documents of this size: the estimate promises its error per document.
DOCUMENT_CHARS = 30_000
DOCUMENTS_PER_FILE = 8


def samples() -> Iterator[tuple[str, str]]:
    """Yield the samples of the tests as pairs of kind and text."""
    for path in sorted(SAMPLES.glob("*.txt")):
        yield path.stem, path.read_bytes().decode()


def generated() -> Iterator[tuple[str, str]]:
    """Yield larger texts without meaning, ten of each kind, the same on every run."""
    chance = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for _ in range(10):
        yield "generated base64", base64.b64encode(chance.randbytes(6000)).decode()
        yield "generated hex", chance.randbytes(4000).hex()
        yield "generated numbers", " ".join(f"{chance.gauss(0, 1e4):.4f}" for _ in range(800))
        words = ("".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(1000))
        yield "generated random letters", " ".join(words)
        rows = [{"id": number, "value": chance.random(), "ok": True} for number in range(200)]
        yield "generated JSON", json.dumps(rows)
        for script, first, last in (
            ("Thai", 0xE01, 0xE4E),
            ("kana", 0x3041, 0x30FE),
            ("Arabic", 0x621, 0x64A),
        ):
            yield f"generated random {script}", "".join(chr(chance.randint(first, last)) for _ in range(2000))


def transcripts() -> Iterator[tuple[str, str]]:
    """Yield documents from the real transcripts beside the repository, if there are any."""
    for folder in ("claude_code", "codex", "trajectories", "locomo"):
        for path in sorted((DATA / folder).glob("*.json*")):
            with path.open(encoding="utf-8") as stream:
                for _ in range(DOCUMENTS_PER_FILE):
                    document = stream.read(DOCUMENT_CHARS)
                    if len(document) > 1000:
                        yield f"real {folder}", document


def megabytes_per_second(count: Callable[[str], int], text: str) -> float:
    """Return the best speed of three, by processor time, in megabytes of UTF-8."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        assert count(text) > 0
        best = min(best, time.process_time() - started)
    return round(len(text.encode("utf-8", "replace")) / best / 1e6, 2)


def speeds() -> dict[str, float]:
    """Return the speed of the estimate by kind of text, and of the exact counter beside it."""
    texts = dict(samples())
    found = {}
    for kind in ("prose_english", "code_python", "json_indented", "prose_chinese", "log"):
        text = texts[kind] * (SPEED_CHARS // len(texts[kind]))
        found[f"repeated {kind}"] = megabytes_per_second(estimate, text)
    real = "".join(text for kind, text in transcripts() if kind == "real locomo")
    if real:
        found["real conversations"] = megabytes_per_second(estimate, real)
    noise = base64.b64encode(random.Random(1).randbytes(SPEED_CHARS)).decode()
    found["base64 that never repeats"] = megabytes_per_second(estimate, noise)
    for name, unit in (
        ("letters", "a"),
        ("spaces", " "),
        ("line ends", "\n"),
        ("signs", "-"),
        ("emoji", "\U0001f680"),
    ):
        found[f"one of the {name}, repeated"] = megabytes_per_second(estimate, unit * SPEED_CHARS)
    if has_ranks():
        prose = texts["prose_english"] * (SPEED_CHARS // len(texts["prose_english"]))
        found["o200k_base exactly, repeated prose_english"] = megabytes_per_second(
            lambda text: exact.exact("o200k_base", text), prose
        )
    return found


class Row(NamedTuple):
    """The error of the estimate on one kind of text; errors are shares, 0.05 is five percent."""

    kind: str
    samples: int
    exact: int
    estimated: int
    error: float
    """Of the sum: (estimated - exact) / exact."""
    worst: float
    """Of the single sample that is furthest off."""


class Calibration(NamedTuple):
    """The result of a calibration."""

    rows: tuple[Row, ...]
    """One per kind, in order of first appearance, before the correction."""
    total: Row
    factor: float
    """The multiplier of the estimate that makes the sum over all samples right."""


def calibrate(samples: Iterable[tuple[str, str]], exact: Callable[[str], int]) -> Calibration:
    """Return the error of the estimate on `samples`, pairs of kind and text, and the factor that corrects it.

    Texts without tokens are skipped.
    """
    counts: dict[str, list[tuple[int, int]]] = {}
    for kind, text in samples:
        tokens = exact(text)
        if tokens > 0:
            counts.setdefault(kind, []).append((tokens, estimate(text)))
    rows = tuple(_row(kind, pairs) for kind, pairs in counts.items())
    total = _row("all", [pair for pairs in counts.values() for pair in pairs])
    factor = round(total.exact / total.estimated, 3)
    return Calibration(rows, total, max(factor, 10**-3))


def _row(kind: str, pairs: list[tuple[int, int]]) -> Row:
    exact = sum(tokens for tokens, _ in pairs)
    estimated = sum(guess for _, guess in pairs)
    worst = max(((guess - tokens) / tokens for tokens, guess in pairs), key=abs)
    return Row(kind, len(pairs), exact, estimated, (estimated - exact) / exact, worst)


def shown(row: Row) -> dict[str, object]:
    """Return a row of the result: errors in percent."""
    return {
        "kind": row.kind,
        "documents": row.samples,
        "exact": row.exact,
        "estimated": row.estimated,
        "error_percent": round(100 * row.error, 1),
        "worst_percent": round(100 * row.worst, 1),
    }


def has_ranks() -> bool:
    """Return whether the rank file of o200k_base is on this machine."""
    try:
        return exact.exact("o200k_base", "") == 0
    except BackendUnavailable:
        return False


def main() -> None:
    """Measure, print and write."""
    are_exact = has_ranks()
    recorded = json.loads((SAMPLES / "o200k_counts.json").read_text(encoding="utf-8"))
    known = {text: recorded[kind] for kind, text in samples()}
    documents = [*samples(), *generated(), *transcripts()] if are_exact else list(samples())
    assert len(documents) >= len(recorded) > 30
    found = calibrate(
        documents, (lambda text: exact.exact("o200k_base", text)) if are_exact else known.__getitem__
    )
    result = {
        "question": __doc__.splitlines()[0],
        "rank_file": are_exact,
        "total": shown(found.total),
        "factor": found.factor,
        "within_10_percent": round(sum(abs(row.error) <= 0.10 for row in found.rows) / len(found.rows), 3),
        "kinds": [shown(row) for row in found.rows],
        "megabytes_per_second": speeds(),
    }
    report.write(__file__, result)
    for row in result["kinds"]:
        print(
            f"{row['kind']:28} {row['exact']:9} {row['error_percent']:+6.1f} % worst {row['worst_percent']:+6.1f} %"
        )
    for kind, speed in result["megabytes_per_second"].items():
        print(f"{kind:44} {speed:8.1f} MB/s")


if __name__ == "__main__":
    main()
