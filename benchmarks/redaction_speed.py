"""How fast is redaction per megabyte, here and in another checkout?

Both trees redact the same texts (files of the shared data, else the samples and the docs), in processes of their own
that alternate, and each reports its processor time; the least of the rounds counts. The start is the time to redact a
first short text, imports included.

Usage: python benchmarks/redaction_speed.py [CHECKOUT_TO_COMPARE]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
ROUNDS = 5
TOTAL, MOST_OF_A_FILE = 3_000_000, 400_000
WORK = """
import sys, time
begun = time.process_time()
from aether.redact.redact import redact
redact("please fix the login of src/app/main.py in phase 2 and run the tests")
start = time.process_time() - begun
texts = [open(path, errors="replace").read()[:int(sys.argv[1])] for path in sys.argv[2:]]
begun = time.process_time()
for text in texts:
    redact(text)
print(start, sum(map(len, texts)) / 1e6 / (time.process_time() - begun))
"""


def main() -> None:
    """Print megabytes per second of processor time, and the milliseconds of the first text."""
    found = DATA.rglob("*") if DATA.is_dir() else [*ROOT.glob("docs/*"), *ROOT.glob("data/samples/*")]
    files, total = [], 0
    for path in sorted(path for path in found if path.suffix in {".jsonl", ".json", ".md", ".txt"}):
        if total < TOTAL:
            files.append(str(path))
            total += min(path.stat().st_size, MOST_OF_A_FILE)
    trees = [ROOT, *(Path(given).resolve() for given in sys.argv[1:2])]
    best = dict.fromkeys(trees, (9.0, 0.0))
    for _ in range(ROUNDS):
        for tree in trees:
            done = subprocess.run(
                [sys.executable, "-B", "-c", WORK, str(MOST_OF_A_FILE), *files],
                env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree, capture_output=True, text=True, check=True,
            )  # fmt: skip
            start, speed = map(float, done.stdout.split())
            best[tree] = (min(best[tree][0], start), max(best[tree][1], speed))
    for tree, (start, speed) in best.items():
        print(f"{tree.name}: {speed:.2f} MB/s, first text {start * 1000:.1f} ms")


if __name__ == "__main__":
    main()
