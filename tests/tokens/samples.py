"""Texts of many kinds, written or generated for aether, with their exact counts in o200k_base."""

from __future__ import annotations

import json
from pathlib import Path

DIRECTORY = Path(__file__).parent / "samples"
O200K_COUNTS: dict[str, int] = json.loads((DIRECTORY / "o200k_counts.json").read_text(encoding="utf-8"))


def text_of(kind: str) -> str:
    """Return the sample of `kind`, its line ends as they are."""
    return (DIRECTORY / f"{kind}.txt").read_bytes().decode("utf-8")
