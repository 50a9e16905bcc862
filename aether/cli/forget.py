"""Forgetting on the command line, and tracing: show the affected entries, ask, and name the undo.

`--erase` cannot be undone: it asks twice, and never prints the text.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import completes, ids
from aether.cli.output import (
    Ask,
    Command,
    Table,
    agreed,
    emit,
    note,
    pass_ask,
    plain,
    read_text,
    say,
    undo_words,
)
from aether.text.words import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aether.api.forget import Erased, Forgotten
    from aether.api.withdraw import SourceUndo
    from aether.memory.forget import Target
    from aether.types import EnforcedRule

# Lines shown before the question; --json and the receipt have all of them.
SHOWN = 20
OUTSIDE = (
    "Not reached: transcripts of Claude Code, backups and version control, exports, copies in buckets, and "
    "sessions that still have it before them. Change a secret where it is valid."
)


@click.command("forget", cls=Command)
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completes(ids))
@click.option(
    "--match", metavar="TEXT", default="",
    help="Forget everything that holds this text, in any case (--erase: exactly); - reads it from stdin",
)  # fmt: skip
@click.option("--similar", is_flag=True, help="Also forget entries that say the same in other words")
@click.option("--erase", is_flag=True, help="Replace the text in every file of the home; no undo")
@click.option("--dry-run", is_flag=True, help="Show the affected entries, and change nothing")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def forget(
    ask: Ask, ids: tuple[str, ...], match: str, *, similar: bool, erase: bool, dry_run: bool, yes: bool
) -> int:
    """Forget entries, so that no search finds them.

    With an item or pattern, all entries with the same text are forgotten: archived items, statements of sessions,
    patterns, the prompt that held it. Entries that say it in other words are listed, and forgotten with --similar.
    Sessions, signals and entities of the knowledge graph (entity:NAME) are named by their id too. No search, recall or
    briefing shows them any more. The text stays in the history of the home, so that aether undo brings it back.

    --erase removes a secret for good: afterwards no file of the home holds the text, and its history does not either;
    revisions that held it cannot be undone. The text is found exactly as given, also as JSON escapes it. With --match
    only the text itself is erased, not the entry that holds it. Copies
    outside the home (transcripts of Claude Code, backups, exports) are not reached.

    \b
    Example:
      aether memory forget "$ITEM" --yes
      aether memory forget --match "atomic writes" --dry-run
      aether memory forget --match "atomic writes" --erase --yes
    """
    from aether.api import forget

    match = read_text("-").strip() if match == "-" else match
    if erase:
        return _erase(ask, ids, match, dry_run=dry_run, yes=yes)
    place = ask.place()
    preview = forget.preview_forget(ids, match=match, similar=similar, home=place)
    if dry_run or not preview.targets:
        emit(ask, _data(preview, is_done=False), target_lines(preview.targets))
        note(ask, "Nothing was changed." if preview.targets else "No entry holds that; nothing was changed.")
        _note_left_over(ask, preview)
        return 0
    if not yes and not ask.json:
        _note_left_over(ask, preview)
    question = f"{pluralize(len(preview.targets), 'entries')} will be forgotten."
    if not agreed(ask, _data(preview, is_done=False), target_lines(preview.targets), question, yes=yes):
        return 1
    with naming_rules_that_stay(ask):
        result = forget.forget(ids, match=match, similar=similar, home=place)
        words = f"{pluralize(len(result.targets), 'entries')} forgotten."
        words = f"{words} {undo_words(result.revision, 'brings them back')}"
        emit(ask, _data(result, is_done=True), words)
    _note_left_over(ask, result)
    return 0


def _erase(ask: Ask, ids: tuple[str, ...], match: str, *, dry_run: bool, yes: bool) -> int:
    from aether.api.forget import erase, preview_erase

    place = ask.place()
    preview = preview_erase(ids, match=match, home=place)
    if dry_run or not (preview.places or ids):
        emit(ask, _erased_data(preview), _erased_table(preview))
        note(ask, "Nothing was changed." if preview.places else "No entry holds that; nothing was changed.")
        _report_left(preview)
        return 1 if preview.unread and not dry_run else 0
    places = f"{pluralize(sum(preview.places.values()), 'places')} in {pluralize(preview.files, 'files')}"
    questions = (
        f"It will be erased at {places}, in the history too.",
        "It cannot be undone, not even by aether undo.",
    )
    if not agreed(ask, _erased_data(preview), _erased_table(preview), *questions, yes=yes):
        return 1
    result = erase(ids, match=match, home=place)
    emit(
        ask,
        _erased_data(result),
        f"Erased at {pluralize(sum(result.places.values()), 'places')} in {pluralize(result.files, 'files')}.",
    )
    note(ask, OUTSIDE)
    _report_left(result)
    return 1 if result.left or result.unread else 0


def _report_left(erased: Erased) -> None:
    if erased.skipped:
        say(
            f"{pluralize(erased.skipped, 'texts')} of it left: too short, or a word that the files of a home are built of."
        )
    for path in erased.own:
        say(f"{path} holds it too. You wrote that file: remove it there.")
    for path in erased.left:
        say(f"{plain(path)} was changed meanwhile and stays as it is: run the command again.")
    for path in erased.unread:
        say(
            f"{plain(path)} is compressed and damaged: its content cannot be checked. Remove it if you do not need it."
        )


def _erased_data(erased: Erased) -> dict[str, Any]:
    return {
        "forgotten": erased.done, "targets": [], "similar": [], "elsewhere": erased.own, "receipt_id": "",
        "revision": 0, "erased": erased,
    }  # fmt: skip


def _erased_table(erased: Erased) -> Table:
    return Table(sorted(erased.places.items()), head=("where", "places"), right=(1,))


def _note_left_over(ask: Ask, forgotten: Forgotten) -> None:
    if forgotten.similar:
        note(ask, "The same in other words, kept unless --similar:")
        note(ask, Table(_rows(forgotten.similar)))
    for name in forgotten.elsewhere:
        note(ask, f"The text is also in {name}, which forgetting does not change.")


def _data(forgotten: Forgotten, *, is_done: bool) -> dict[str, Any]:
    return {
        "forgotten": is_done, "targets": forgotten.targets,
        "similar": forgotten.similar, "elsewhere": forgotten.elsewhere,
        "receipt_id": forgotten.receipt["receipt_id"] if forgotten.receipt else "", "revision": forgotten.revision,
    }  # fmt: skip


def target_lines(targets: list[Target]) -> list[str | Table]:
    """Return the lines that show the first of `targets`, and how many are not shown."""
    hidden = len(targets) - SHOWN
    return [
        Table(_rows(targets), head=("id", "layer", "what", "text")),
        *([f"… and {hidden} more; --json lists all"] if hidden > 0 else []),
    ]


def _rows(targets: list[Target]) -> list[tuple[str, ...]]:
    return [(target.id, target.layer, target.part or target.type, target.text) for target in targets[:SHOWN]]


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
    emit(ask, result, [plain(line) for line in trace_lines(result)])
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
        emit(ask, preview, _plan(preview))
        note(ask, "Nothing was changed.")
        return 0
    question = f"{pluralize(len(preview.targets), 'entries')} will be taken out of memory."
    if not agreed(ask, preview, _plan(preview), question, yes=yes):
        return 1
    with naming_rules_that_stay(ask):
        result = withdraw.undo_source(source, since=since, home=place)
        number = pluralize(len(result.targets), "entries")
        done = f"{number} of {plain(source)} taken out. {undo_words(result.revision, 'brings them back')}"
        emit(ask, result, done)
    return 0


@contextmanager
def naming_rules_that_stay(ask: Ask) -> Iterator[None]:
    """Name the rules that go on acting although the block takes their entry from memory: an agent may run a command, too."""
    before = _rules_with_entry(ask)
    yield
    after = _rules_with_entry(ask) if before else {}
    for rule_id in before.keys() - after.keys():
        from aether.cli.rule import pattern_words

        stopped = pattern_words(before[rule_id])
        note(ask, f"A rule still stops {stopped}. To end it: aether rule relax {rule_id}")


def _rules_with_entry(ask: Ask) -> dict[str, EnforcedRule]:
    """Return the rules that act and whose entry is in working memory, by id."""
    from aether.errors import AetherError
    from aether.store import enforced

    rules: list[EnforcedRule] = []
    with suppress(
        AetherError, OSError
    ):  # a damaged file of rules hinders no undo; "aether rule list" names it
        rules = enforced.read(ask.place())
    if not rules:
        return {}
    from aether.api.working import list_working_memory_items

    ids = {item["id"] for item in list_working_memory_items(home=ask.place())}
    return {rule["id"]: rule for rule in rules if rule["entry"] in ids}


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
