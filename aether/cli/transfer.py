"""Import and export on the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from aether.cli.output import Ask, Command, as_json, emit, pass_ask, say, short, table

FORMATS = ("claude-code", "codex", "chat", "items", "plain")
# Often enough to see that it lives, rarely enough not to slow it.
PROGRESS_SECONDS = 0.25


@click.command("import", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="FILE…|DIR|-")
@click.option(
    "--phase",
    type=click.IntRange(0),
    help="Put every item into this phase  [default: cut at compaction boundaries]",
)
@click.option("--format", "format_", help="Force the format instead of telling it by content")
@click.option("--dry-run", is_flag=True, help="Show what would be stored, and store nothing")
@pass_ask
def import_command(
    ask: Ask, sources: tuple[str, ...], phase: int | None, format_: str | None, dry_run: bool
) -> None:
    """Turn transcripts into working-memory items.

    Reads Claude Code and Codex transcripts, chat message lists, text, Markdown and JSON Lines of items, told by
    their content. Importing again adds only what is new.

    \b
    Example:
      aether import session.jsonl --dry-run
    """
    from aether.operations import importing

    place = ask.place()
    streams = [sys.stdin.buffer if source == "-" else source for source in sources]
    done = importing.import_transcripts(
        streams, phase=phase, format=format_, dry_run=dry_run, home=place, progress=_progress(ask)
    )
    for bad in done.bad_lines:
        say(f"{bad['file']}: line {bad['line']}: {bad['reason']}")
    data = done._asdict()
    rows = [
        (
            draft["type"],
            f"{draft['relevance_score']:.2f}",
            draft["metadata"].get("phase", ""),
            short(draft["content"], 90),
        )
        for draft in done.preview
    ]
    text = table(rows, head=("type", "rel", "phase", "content"), right=[1, 2]) if rows else []
    types = ", ".join(f"{name} {number}" for name, number in done.types.items())
    verb = "would be stored" if dry_run else "stored"
    text.append(
        f"{done.items} item(s) {verb} ({done.tokens} tokens) from {done.records} records in {done.files} file(s){': ' + types if types else ''}."
    )
    if done.known:
        text.append(f"{done.known} were known from an earlier import.")
    if done.bad_lines:
        text.append(f"{len(done.bad_lines)} line(s) could not be read; see above.")
    if done.evicted:
        text.append(
            f"Working memory was full: {len(done.evicted)} item(s) moved to the archive. Compress more often."
        )
    if done.phases:
        text.append(
            f"Phases: {', '.join(map(str, done.phases))}. Next: aether memory compress --phase {done.phases[0]}"
        )
    emit(ask, data, text)


def _progress(ask: Ask) -> Callable[[int, int], None]:
    if ask.quiet or not sys.stderr.isatty():
        return lambda records, items: None
    last = [time.monotonic()]

    def tell(records: int, items: int) -> None:
        if time.monotonic() - last[0] > PROGRESS_SECONDS:
            last[0] = time.monotonic()
            click.echo(f"\r{records} records read, {items} items stored", err=True, nl=False)

    return tell


@click.command("export", cls=Command)
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of stdout")
@pass_ask
def export_command(ask: Ask, output: str | None) -> None:
    """Write the whole colony as JSON: documents, archive, receipts, events.

    \b
    Example:
      aether export --output colony.json
    """
    from pathlib import Path

    from aether.operations import home
    from aether.store.files import storage, write_whole

    whole = home.export(home=ask.place())
    if output is None:
        click.echo(as_json(whole))
        return
    path = Path(output)
    with storage(path.parent):
        write_whole(path, (as_json(whole) + "\n").encode())
    emit(ask, {"output": str(path), "revision": whole["revision"]}, str(path))
