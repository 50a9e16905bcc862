"""What every benchmark writes beside its numbers: when they were measured, and on what kind of machine."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

# Read before the benchmark itself loads the machine: above 1 on two cores, wall times are worth little.
LOAD_AT_START = round(os.getloadavg()[0], 1)


def write(benchmark: str, found: dict) -> None:
    """Write `found` as the result of the benchmark whose file is `benchmark`, and print it."""
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "platform": platform.system(),
            "load_at_start": LOAD_AT_START,
        },
        **found,
    }
    path = Path(benchmark).parent / "results" / f"{Path(benchmark).stem}.json"
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)
