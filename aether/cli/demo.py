"""The demo: the whole loop on the sample transcript, step by step, in a home of its own.

Each step does what a caller would do and returns what happened; the surface only shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aether import paths
from aether.api import admin, colony, compress, importing, patterns
from aether.api.home import read
from aether.memory.ingest import IngestResult
from aether.types import JsonObject, Pattern

SAMPLE = "data/samples/colony.jsonl"
ARCHITECT = "extractive"


class PhaseDone(NamedTuple):
    """One phase, completed and compressed."""

    phase: int
    items: int
    types: dict[str, int]
    ingested: IngestResult


class Promoted(NamedTuple):
    """A pattern, and the sessions that show it."""

    pattern: Pattern
    sessions: list[str]


def start(directory: Path) -> tuple[Path, importing.Imported]:
    """Return a fresh home in `directory`, and what importing the sample transcript into it did."""
    place = admin.init(directory / paths.HOME_NAME)
    return place, importing.import_transcripts([paths.resource(SAMPLE)], home=place)


def finish_phase(place: Path, phase: int) -> PhaseDone:
    """Complete `phase`, compress its items with the extractive architect, and return what that did."""
    held = [
        item for item in read(place).documents["memory"]["working_memory"]["items"]
        if item["metadata"].get("phase", phase) <= phase
    ]  # fmt: skip
    types: dict[str, int] = {}
    for item in held:
        types[item["type"]] = types.get(item["type"], 0) + 1
    colony.start_phase(phase, home=place)
    colony.complete_phase(phase, home=place)
    done = compress.compress(phase, architect=ARCHITECT, home=place)
    if done.ingested is None:  # pragma: no cover - the sample has items in every phase, and a test says so
        raise RuntimeError(done.prepared.reason)
    return PhaseDone(phase, len(held), types, done.ingested)


def promoted(place: Path) -> list[Promoted]:
    """Return the patterns, those that most sessions show first."""
    patterns.promote(home=place)
    found: list[Pattern] = read(place).documents["memory"]["long_term_memory"]["patterns"]
    ranked = sorted(
        found, key=lambda pattern: (-pattern["occurrences"], -pattern["confidence"], pattern["id"])
    )
    return [
        Promoted(pattern, [entry["session_id"] for entry in pattern["metadata"]["evidence"]])
        for pattern in ranked
    ]


def checked(place: Path) -> JsonObject:
    """Return what a look at the home finds: findings, revisions, and that an undo and its undo work."""
    before = read(place).documents["memory"]
    undone = admin.undo(home=place)
    admin.undo(read(place).revision, home=place)
    same = read(place).documents["memory"] == before
    return {
        "findings": [finding._asdict() for finding in admin.examine(home=place)],
        "undone": undone._asdict(),
        "restored": same,
    }
