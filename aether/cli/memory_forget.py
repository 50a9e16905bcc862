"""Forgetting on the command line: it shows what would go, asks, and says how to have it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Command, confirmed, emit, note, pass_ask, plain, short, table

if TYPE_CHECKING:
    from aether.operations.forgetting import Forgotten

# Shown before the question; all of it is in --json and in the receipt.
SHOWN = 20


@click.command("forget", cls=Command)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--match", metavar="TEXT", default="", help="Forget all that holds this text, whatever its case"
)
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def forget(ask: Ask, ids: tuple[str, ...], match: str, *, dry_run: bool, yes: bool) -> int:
    """Take something out of memory, so that nothing finds it.

    Items, sessions or statements of them, patterns and signals, and what is in the archive: no search, recall or
    briefing shows it any more. The text stays in the history of the home, so that aether undo brings it back.

    \b
    Example:
      aether memory forget "$ITEM" --yes
      aether memory forget --match "atomic writes" --dry-run
    """
    from aether.operations import forgetting

    place = ask.place()
    found = forgetting.would_forget(ids, match=match, home=place)
    if dry_run or not found.targets:
        emit(ask, _data(found, done=False), _lines(found) or [])
        note(ask, "Nothing was changed." if found.targets else "Nothing holds that; nothing was changed.")
        _tell_elsewhere(ask, found)
        return 0
    if not yes and not ask.json:
        emit(ask, None, _lines(found))
    if not confirmed(f"{len(found.targets)} thing(s) will be forgotten.", yes=yes):
        if ask.json:
            emit(ask, _data(found, done=False), [])
        return 1
    done = forgetting.forget(ids, match=match, home=place)
    emit(
        ask,
        _data(done, done=True),
        f"{len(done.targets)} thing(s) forgotten. aether undo {done.revision} brings them back.",
    )
    _tell_elsewhere(ask, done)
    return 0


def _tell_elsewhere(ask: Ask, found: Forgotten) -> None:
    for name in found.elsewhere:
        note(ask, f"The text is also in {name}, which this leaves as it is.")


def _data(found: Forgotten, *, done: bool) -> dict[str, Any]:
    return {
        "forgotten": done,
        "targets": [target._asdict() for target in found.targets],
        "elsewhere": found.elsewhere,
        "receipt_id": found.receipt["receipt_id"] if found.receipt else "",
        "revision": found.revision,
    }


def _lines(found: Forgotten) -> list[str]:
    rows = [
        (target.id, target.layer, target.part or target.type, plain(short(target.text)))
        for target in found.targets[:SHOWN]
    ]
    more = len(found.targets) - SHOWN
    return [*table(rows, head=("id", "layer", "what", "text")), *([f"… and {more} more"] if more > 0 else [])]
