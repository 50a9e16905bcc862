"""The demo: one story on a sample transcript, in a scratch home and offline."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from aether.cli.output import Ask, Command, Table, emit, note, pass_ask
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.importing import Imported
    from aether.memory.ingest import IngestResult
    from aether.types import JsonObject, Pattern

QUERY = "why SQLite"
SHOWN_HITS = 2
SHOWN_PATTERNS = 3
COLUMNS = 80
INDENT = 3
# What the person of the sample notes on purpose: type, text and the phases in which it is noted.
NOTES = (
    ("constraint", "Keep every amount as integer cents, never as floats.", (1, 2, 3)),
    ("decision", "SQLite in WAL mode: one writer, and one file is easy to back up.", (1,)),
    ("constraint", "An issued invoice is never changed; write a credit note.", (1, 4)),
)
NOTE_RELEVANCE = 0.9
NEXT = (
    "Next:",
    "   aether init           make a home for your own project",
    "   aether import FILE    turn a transcript of yours into memory",
    "   aether install        connect the agents on this machine to memory",
)


class PhaseDone(NamedTuple):
    """One phase, completed and compressed."""

    phase: int
    items: int
    ingested: IngestResult


class Promoted(NamedTuple):
    """A pattern, and the sessions that show it."""

    pattern: Pattern
    sessions: list[str]


@click.command("demo", cls=Command)
@click.option(
    "--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep the home in this new directory"
)
@click.option("--rules", is_flag=True, help="Show memory that acts, is checked, waits and is taken back")
@pass_ask
def demo_command(ask: Ask, keep: str | None, *, rules: bool) -> None:
    """Show what memory is for, on a sample.

    In a scratch home and offline: a transcript becomes memory, its phases become sessions, and a decision is found again.
    With --rules: a rule stops a push, a stale fact is named, an agent's rule waits, and a source is taken back (needs git).

    \b
    Example:
      aether demo
      aether demo --rules
    """
    if rules:
        if keep is not None:
            raise click.UsageError("--rules keeps nothing.")
        _show_rules(ask)
    elif keep is None:
        with tempfile.TemporaryDirectory(prefix="aether-demo-") as scratch:
            _show(ask, Path(scratch), is_kept=False)
    else:
        directory = Path(keep)
        if directory.exists() and any(directory.iterdir()):
            raise click.UsageError(f"{keep} is not empty. Name a new directory.")
        _show(ask, directory, is_kept=True)


def _show_rules(ask: Ask) -> None:
    from aether.cli import demo_rules

    data: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="aether-demo-") as scratch:
        for lines in demo_rules.steps(Path(scratch), data):
            if not ask.json:
                emit(ask, None, [*lines, ""])
    emit(ask, data, demo_rules.NEXT)


def _show(ask: Ask, directory: Path, *, is_kept: bool) -> None:
    data: dict[str, Any] = {}
    for lines in _steps(directory, data):
        if not ask.json:
            emit(ask, None, [*lines, ""])
    data["home"] = str(directory / ".aether") if is_kept else None
    emit(ask, data, NEXT)
    if is_kept:
        note(ask, f'The home is {data["home"]}. Try: aether recall "{QUERY}" --home {directory}')


def _steps(directory: Path, data: dict[str, Any]) -> Iterator[list[str | Table]]:
    from aether.api.recall import search_memory
    from aether.api.status import get_memory_status

    place, imported = start_demo(directory)
    data["imported"] = imported
    yield [
        "Mara built a small invoicing service with an agent, in four phases.",
        "",
        "1. The transcript becomes memory (aether import)",
        f"   {imported.records} records → {imported.items} items, {imported.tokens:,} tokens",
        "   On the way Mara noted (aether add):",
        Table([(type_, text) for type_, text, _ in NOTES], indent=INDENT),
    ]
    phases = [finish_phase(place, phase) for phase in imported.phases]
    data["phases"] = [
        {
            "phase": finished.phase, "items": finished.items, "session_id": session["session_id"],
            "tokens_before": session["original_tokens"], "tokens_after": session["compressed_tokens"],
            "ratio": session["compression_ratio"], "patterns": len(finished.ingested.patterns),
            "carried": len(finished.ingested.carried),
        }
        for finished in phases
        for session in [finished.ingested.session]
    ]  # fmt: skip
    yield _compressed(data["phases"])
    promotions = promoted(place)
    data["patterns"] = [{**promotion.pattern, "sessions": promotion.sessions} for promotion in promotions]
    yield _patterns(promotions)
    hits = search_memory(QUERY, limit=5, home=place)
    data["search"] = {"query": QUERY, "hits": hits}
    yield [f'4. Later somebody asks: {QUERY}? (aether recall "{QUERY}")', *_hit_lines(hits[:SHOWN_HITS])]
    data["status"] = get_memory_status(home=place)
    data["check"] = checked(place)
    yield _closing(data)


def start_demo(directory: Path) -> tuple[Path, Imported]:
    """Return a fresh home in `directory`, and the result of importing the sample transcript into it."""
    from aether import paths
    from aether.api import admin, importing, working

    place = admin.init(directory / paths.HOME_NAME)
    imported = importing.import_transcripts([paths.resource("data/samples/colony.jsonl")], home=place)
    working.add_working_memory_items(
        [
            {"content": text, "type": type_, "relevance_score": NOTE_RELEVANCE, "phase": phase}
            for type_, text, phases in NOTES
            for phase in phases
        ],
        home=place,
    )
    return place, imported


def finish_phase(place: Path, phase: int) -> PhaseDone:
    """Complete `phase`, compress its items with the extractive architect, and return the result."""
    from aether.api import colony, compress
    from aether.api.home import read

    phase_items = [
        item for item in read(place).documents["memory"]["working_memory"]["items"]
        if item["metadata"].get("phase", phase) <= phase
    ]  # fmt: skip
    colony.start_phase(phase, home=place)
    colony.complete_phase(phase, home=place)
    compressed = compress.compress(phase, architect="extractive", home=place)
    if (
        compressed.ingested is None
    ):  # pragma: no cover - the sample has items in every phase, and a test says so
        raise RuntimeError(compressed.prepared.reason)
    return PhaseDone(phase, len(phase_items), compressed.ingested)


def promoted(place: Path) -> list[Promoted]:
    """Return the patterns, those that most sessions show first."""
    from aether.api import patterns
    from aether.api.home import read

    patterns.promote(home=place)
    stored: list[Pattern] = read(place).documents["memory"]["long_term_memory"]["patterns"]
    ranked = sorted(
        stored, key=lambda pattern: (-pattern["occurrences"], -pattern["confidence"], pattern["pattern"])
    )
    return [
        Promoted(pattern, [entry["session_id"] for entry in pattern["metadata"]["evidence"]])
        for pattern in ranked
    ]


def checked(place: Path) -> JsonObject:
    """Return the findings on the home, and whether an undo and its undo work."""
    from aether.api import admin
    from aether.api.home import read

    before = read(place).documents["memory"]
    undone = admin.undo(home=place)
    admin.undo(read(place).revision, home=place)
    same = read(place).documents["memory"] == before
    return {
        "findings": [finding._asdict() for finding in admin.examine(home=place)],
        "undone": undone._asdict(),
        "restored": same,
    }


def _compressed(phases: list[dict[str, Any]]) -> list[str | Table]:
    rows = [
        (phase["phase"], phase["items"], f"{phase['tokens_before']:,}", phase["tokens_after"])
        for phase in phases
    ]
    head = ("phase", "items", "tokens", "tokens of the session")
    return [
        "2. Each finished phase becomes a short session (aether compress)",
        Table(rows, head=head, right=range(4), indent=INDENT),
    ]


def _patterns(promotions: list[Promoted]) -> list[str | Table]:
    rows = [
        (pluralize(promotion.pattern["occurrences"], "sessions"), promotion.pattern["pattern"])
        for promotion in promotions[:SHOWN_PATTERNS]
    ]
    return ["3. What several sessions show becomes a pattern for all of them", Table(rows, indent=INDENT)]


def _hit_lines(hits: list[Any]) -> list[str]:
    """Return hits as wrapped lines: who said it, and the part that answers."""
    blank = " " * INDENT
    lines = []
    for number, hit in enumerate(hits, 1):
        speaker = hit.get("speaker") or hit["entry"]["metadata"].get("evidence")
        text = f"{number}. {speaker}: {hit['passage'] or hit['content']}"
        lines += wrap(text, COLUMNS, initial_indent=blank, subsequent_indent=blank * 2)
    return lines


def _closing(data: dict[str, Any]) -> list[str | Table]:
    check, findings = data["check"], len(data["check"]["findings"])
    undone = f"{check['undone']['operation']} {check['undone']['reason']}"
    same = "memory is the same" if check["restored"] else "memory DIFFERS"
    health = pluralize(findings, "findings") if findings else "no problems found"
    return [
        "5. Nothing is lost (aether undo, aether doctor)",
        f'   undone and done again: "{undone}"; {same}',
        f"   {data['status']['revision']} revisions; each can be undone; {health}",
    ]
