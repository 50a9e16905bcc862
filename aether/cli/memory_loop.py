"""The loop on the command line: prepare, ingest, compress, promote, and what came of it.

These are verbs of the noun `memory`, which adds them.
"""

from __future__ import annotations

import click

from aether.cli.memory_views import contradiction_lines, ingested_lines, stats_lines
from aether.cli.output import Ask, Command, emit, note, pass_ask, progress, read_text, say

phase_option = click.option(
    "--phase", required=True, type=click.IntRange(0), help="The phase of the colony's work"
)


@click.command("prepare", cls=Command)
@phase_option
@click.option("--new", is_flag=True, help="Open another hand-off although one is open")
@pass_ask
def prepare(ask: Ask, phase: int, new: bool) -> int:
    """Write the hand-off for an architect and print its path.

    It holds the items of the phase, of earlier phases and of none. While it is open, the same one is given.

    \b
    Example:
      aether memory prepare --phase 1
    """
    from aether.operations import compression

    prepared = compression.prepare(phase, manual=True, new=new, home=ask.place())
    if prepared.path is None:
        say(f"{prepared.reason} No compression needed.")
        emit(ask, {"path": None, "reason": prepared.reason, "record": None}, [])
        return 1
    data = {"path": str(prepared.path), "reason": "", "record": prepared.record}
    emit(ask, data, str(prepared.path))
    if prepared.newer:
        say(
            f"Note: {prepared.newer} newer item(s) of phase {phase} are not in it; --new makes one that has them."
        )
    note(
        ask,
        f"""Next:
  1. Give it to an architect, or read it yourself: prompt.text says what to write.
  2. Write the session as JSON into a file.
  3. aether memory ingest --phase {phase} FILE
  4. aether memory stats""",
    )
    return 0


@click.command("ingest", cls=Command)
@phase_option
@click.option("--handoff", metavar="ID", help="The hand-off that it answers, where several are open")
@click.argument("file")
@pass_ask
def ingest(ask: Ask, phase: int, handoff: str | None, file: str) -> None:
    """Store the session that an architect made of a hand-off.

    FILE holds the session JSON, or the architect's whole answer; - is standard input. A rejected answer
    changes nothing, and what to correct is said.

    \b
    Example:
      aether memory ingest --phase 1 session.json
    """
    from aether.operations.compression import trigger_phase_boundary_compression

    done = trigger_phase_boundary_compression(
        phase, read_text(file), home=ask.place(), architect={"backend": "manual", "model": ""},
        compression_id=handoff,
    )  # fmt: skip
    emit(ask, done._asdict(), ingested_lines(done))


@click.command("compress", cls=Command)
@phase_option
@click.option(
    "--architect",
    metavar="NAME",
    help="extractive, anthropic, openai, ollama, manual or command:'…'  [default: config.toml, else extractive]",
)
@pass_ask
def compress(ask: Ask, phase: int, architect: str | None) -> int:
    """Compress the items up to a phase into a session.

    Items of earlier phases, and of none, go with it. This is the Queen's own trigger and needs no signal.

    \b
    Example:
      aether memory compress --phase 1 --architect extractive
    """
    from aether.operations import architects

    place = ask.place()
    with progress(ask) as tell:
        done = architects.compress(phase, architect=architect, home=place, progress=tell)
    for words in done.notes:
        say(f"Note: {words.rstrip('.')}.")
    data = {
        "handoff": str(done.prepared.path) if done.prepared.path else None,
        "reason": done.prepared.reason,
        "architect": done.architect,
        "notes": done.notes,
        "result": done.ingested._asdict() if done.ingested else None,
    }
    if done.ingested is not None:
        emit(ask, data, ingested_lines(done.ingested))
        return 0
    if done.prepared.path is not None:
        emit(ask, data, str(done.prepared.path))
        note(ask, f"Write the session by hand, then: aether memory ingest --phase {phase} FILE")
        return 0
    emit(ask, data, f"{done.prepared.reason} No compression needed.")
    return 0


@click.command("promote", cls=Command)
@pass_ask
def promote(ask: Ask) -> None:
    """Promote what repeats across sessions to long-term memory.

    \b
    Example:
      aether memory promote
    """
    from aether.operations import patterns

    done = patterns.promote(home=ask.place())
    data = {
        "created": done.created,
        "supported": done.supported,
        "contradictions": [pair._asdict() for pair in done.contradictions],
    }
    text = [f"{len(done.created)} new pattern(s), {len(done.supported)} with more evidence."]
    emit(ask, data, text + contradiction_lines([pair._asdict() for pair in done.contradictions]))


@click.command("stats", cls=Command)
@pass_ask
def stats(ask: Ask) -> None:
    """Show what compression did so far.

    \b
    Example:
      aether memory stats
    """
    from aether.operations.status import get_compression_stats

    found = get_compression_stats(home=ask.place())
    emit(ask, found, stats_lines(found))


@click.command("link", cls=Command)
@click.argument("source_id")
@click.argument("target_id")
@click.option("--type", "type_", default="related_to", show_default=True, help="What the link means")
@pass_ask
def link(ask: Ask, source_id: str, target_id: str, type_: str) -> None:
    """Link two things of any layer.

    \b
    Example:
      aether memory link "$ITEM" "$OTHER" --type related_to
    """
    from aether.operations import patterns

    made = patterns.create_associative_link(source_id, target_id, type_, home=ask.place())
    emit(ask, {"link_id": made}, made)
