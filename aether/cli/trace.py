"""Tracing on the command line: where an entry came from, what was made of it, and the undo of a whole source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import completes, ids
from aether.cli.forget import target_lines
from aether.cli.output import Ask, Command, Table, confirmed, emit, note, pass_ask, plain, undo_words
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.withdraw import SourceUndo


@click.command("trace", cls=Command)
@click.argument("id", shell_complete=completes(ids))
@pass_ask
def trace_command(ask: Ask, id: str) -> None:
    """Show where an entry came from, and what was made of it.

    ID is the id of an item, a session, a session's statement, a pattern or an archived entry; aether brief
    --why and aether recall show ids. The lines lead from the entry to the architect's statement, the words that
    prove it, their place in the transcript, and the journal entry that stored them; then to the sessions and
    patterns that rest on the entry. aether undo --source removes a whole source.

    \b
    Example:
      aether trace "$ITEM"
    """
    from aether.api.trace import trace, trace_lines

    result = trace(id, home=ask.place())
    emit(ask, result._asdict(), [plain(line) for line in trace_lines(result)])
    if result.rests_on > len(result.sources):
        note(
            ask,
            f"It rests on {pluralize(result.rests_on, 'items')}; the newest {len(result.sources)} are shown.",
        )


def undo_source(ask: Ask, source: str, since: str, *, dry_run: bool, yes: bool) -> int:
    """Show what came from a source, ask, and take it out of memory."""
    from aether.api import withdraw

    place = ask.place()
    preview = withdraw.preview_undo_source(source, since=since, home=place)
    if dry_run or not (preview.targets or preview.patterns):
        emit(ask, preview._asdict(), _plan(preview))
        note(ask, "Nothing was changed.")
        return 0
    if not yes and not ask.json:
        emit(ask, None, _plan(preview))
    if not confirmed(f"{pluralize(len(preview.targets), 'entries')} will be taken out of memory.", yes=yes):
        if ask.json:
            emit(ask, preview._asdict(), [])
        return 1
    result = withdraw.undo_source(source, since=since, home=place)
    number = pluralize(len(result.targets), "entries")
    done = f"{number} of {plain(source)} taken out. {undo_words(result.revision, 'brings them back')}"
    emit(ask, result._asdict(), done)
    return 0


def _plan(preview: SourceUndo) -> list[str | Table]:
    kinds = ", ".join(f"{kind} ({pluralize(number, 'items')})" for kind, number in preview.kinds.items())
    lines: list[str | Table] = [f"{plain(preview.source)}: {kinds}"] if kinds else []
    lines += target_lines(preview.targets) if preview.targets else []
    lines += [
        f"{name} loses the support of this source, and keeps that of others." for name in preview.patterns
    ]
    changes: list[Any] = [step for patch in preview.patches.values() for step in patch]
    lines += [f"The patch has {pluralize(len(changes), 'steps')}; --json has it whole."] if changes else []
    return lines
