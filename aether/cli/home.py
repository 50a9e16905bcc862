"""The home on the command line: init, log, undo, fold, show, doctor."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Command, as_json, emit, note, pass_ask, short, table, when


@click.command("init", cls=Command)
@click.argument("directory", required=False)
@pass_ask
def init_command(ask: Ask, directory: str | None) -> None:
    """Make a home for a colony's memory.

    Writes .aether/ in the current directory, or in DIRECTORY. One that exists keeps everything; files of the
    original v2.0 format in it are brought in.

    \b
    Example:
      aether init
    """
    from pathlib import Path

    from aether.operations import home

    named = Path(directory) if directory else None
    if named is not None and named.name != ".aether":
        named /= ".aether"
    place = home.init(named or ask.home)
    ask.found = place
    emit(ask, {"home": str(place)}, str(place))


@click.command("log", cls=Command)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(0), help="Most changes to list; 0 for all"
)
@click.option("--all", "everything", is_flag=True, help="Also list counted reads")
@pass_ask
def log_command(ask: Ask, limit: int, everything: bool) -> None:
    """Show who changed what, when and why.

    Newest first; the revision in the first column is what undo and show take.

    \b
    Example:
      aether log --limit 5
    """
    from aether.operations import home

    entries = home.log(limit=limit, everything=everything, home=ask.place())
    rows = [
        (
            entry.revision,
            when(entry.at),
            short(entry.by, 20),
            entry.operation,
            " ".join(entry.touched),
            entry.reason,
        )
        for entry in entries
    ]
    head = ("rev", "when (UTC)", "who", "what", "touched", "why")
    emit(ask, [entry._asdict() for entry in entries], table(rows, head=head, right=[0]))


@click.command("undo", cls=Command)
@click.argument("revision", required=False, type=click.IntRange(1))
@pass_ask
def undo_command(ask: Ask, revision: int | None) -> None:
    """Take one change back.

    Without REVISION the last one that was not undone, and that somebody asked for. What "hook" or "aether" did of
    themselves (captured, prepared, compressed) takes its REVISION, which "aether log" shows. Later changes stay;
    where one depends on what would go, nothing is undone and that change is named.

    \b
    Example:
      aether undo
    """
    from aether.operations import home

    undone = home.undo(revision, home=ask.place())
    emit(
        ask,
        undone._asdict(),
        f"Undid revision {undone.revision}: {undone.operation} {undone.reason}".rstrip() + ".",
    )


@click.command("fold", cls=Command)
@pass_ask
def fold_command(ask: Ask) -> None:
    """Write the journal into the documents.

    Every command does so at its end; library calls and hooks only append.

    \b
    Example:
      aether fold
    """
    from aether.operations import home

    revision = home.fold(home=ask.place())
    emit(ask, {"revision": revision}, f"The documents contain revision {revision}.")


@click.command("show", cls=Command)
@click.argument("document")
@click.option("--revision", type=click.IntRange(0), help="Show it as it was then")
@pass_ask
def show_command(ask: Ask, document: str, revision: int | None) -> None:
    """Print a document as it is now.

    DOCUMENT is memory, pheromones, COLONY_STATE, graph or memories; always JSON, to the last committed change.

    \b
    Example:
      aether show memory
    """
    from aether.operations import home

    found = home.show(document, revision=revision, home=ask.place())
    emit(ask, found, as_json(found))


@click.command("doctor", cls=Command)
@click.option("--repair", is_flag=True, help="Mend what can be mended; nothing unreadable is deleted")
@pass_ask
def doctor_command(ask: Ask, repair: bool) -> int:
    """Find what is wrong with a home, and mend it.

    Only looks, unless --repair. Exits 1 where an error remains.

    \b
    Example:
      aether doctor
    """
    from aether.operations import home

    place = ask.place()
    done = home.repair(home=place) if repair else []
    for line in done:
        note(ask, f"Repaired: {line}.")
    found = home.examine(home=place)
    if not repair:
        ask.found = None  # looking changes nothing, not even by folding
    errors = any(finding.level == "error" for finding in found)
    text = [f"{finding.level}: {finding.where}: {finding.message} {finding.fix}" for finding in found]
    data = {"repaired": done, "findings": [finding._asdict() for finding in found]}
    emit(ask, data, text or "Nothing is wrong.")
    return int(errors)
