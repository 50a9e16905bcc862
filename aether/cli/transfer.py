"""Import and export on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aether import regular
from aether.cli.output import (
    Ask,
    Command,
    Table,
    as_json,
    emit,
    note,
    note_undo,
    pass_ask,
    plain,
    progress,
    say,
    write_file,
)
from aether.errors import AetherError
from aether.messages.read import formats
from aether.text.words import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aether.api.importing import Imported

# An export starts with its revision and its documents, or its conversations if its keys were sorted.
HEAD_BYTES = 4_096
EXPORT = "export"
# Of working memory: an import names compression as the next step from there on. Before, it brings little.
HALF_PERCENT = 50


@click.command("import", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="FILE…|DIR|-")
@click.option(
    "--phase",
    type=click.IntRange(0),
    help="Put every item into this phase  [default: cut at compaction boundaries]",
)
@click.option(
    "--format", "format_", metavar="NAME", type=click.Choice([*formats(), EXPORT]),
    help=f"{', '.join(formats())} or {EXPORT}  [default: detected by content]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the items, and store nothing")
@click.option("--accept", is_flag=True, help="Vouch for the sources: nothing of them waits for a review")
@pass_ask
def import_command(
    ask: Ask, sources: tuple[str, ...], phase: int | None, format_: str | None, *, dry_run: bool, accept: bool
) -> int:
    """Turn transcripts into items, or restore an export.

    Reads transcripts and exports of many agents and chat programs, message lists, text, Markdown and JSON Lines of items,
    detected by content. A second import adds only new items. Messages that a sub-agent's rollout copied from another
    session are skipped if that session's own transcript is imported. Secrets are redacted. `<private>` blocks, calls
    about the paths of claude.private_paths, and licences in a directory are left out. If some files cannot be read, they
    are named and the others imported; the exit code is then 4, as it is if nothing could be stored.

    A file written by "aether export" is restored into an empty home: documents, archive, receipts and events as
    one change that undo reverses, and conversations, whose messages are redacted in an export. A home that is
    not empty is left unchanged.

    \b
    Example:
      aether import session.jsonl --dry-run
    """
    from aether.api import importing
    from aether.api.status import get_memory_status
    from aether.errors import InvalidDocument

    place = ask.place()
    exported = _export_in(sources, format_)
    if exported is not None:
        if phase is not None:
            raise click.UsageError("--phase is for transcripts, and this is an export.")
        return _restore(ask, exported, dry_run=dry_run)
    streams = [sys.stdin.buffer if source == "-" else source for source in sources]
    try:
        with progress(ask) as report:
            result = importing.import_transcripts(
                streams, phase=phase, format=format_, dry_run=dry_run, accept=accept, home=place,
                progress=lambda records, items: report(f"{records} records read, {items} items stored"),
            )  # fmt: skip
    except importing.ImportInterrupted as stopped:
        _say_interrupted(ask, stopped.done)
        raise
    for bad in result.bad_lines:
        line = f"line {bad['line']}: " if bad["line"] else ""
        say(f"{bad['file']}: {line}{bad['reason']}")
    emit(ask, result, _imported_lines(result, dry_run=dry_run))
    if result.revisions:
        note_undo(ask, result.revisions[-1:])
    used = get_memory_status(home=place)["working_memory"]["percent"]
    if result.phases and not dry_run and used >= HALF_PERCENT:
        note(ask, "Next: aether compress")
    rejected = {(bad["file"], bad["line"]) for bad in result.bad_lines}
    for long in result.long_lines:
        if (long["file"], long["line"]) not in rejected:
            say(
                f"{long['file']}: line {long['line']}: {long['characters']} characters; only an extract is kept."
            )
    nothing_read = bool(result.bad_lines) and not (result.items or result.known)
    unread = any(not bad["line"] for bad in result.bad_lines)
    return InvalidDocument.exit_code if unread or nothing_read else 0


def _say_interrupted(ask: Ask, result: Imported) -> None:
    """Say what an import that Ctrl-C stopped has stored, how to take it back, and how to go on."""
    if not result.revisions:
        say("Nothing was stored yet.")
        return
    say(
        f"At least {pluralize(result.items, 'items')} stored, from {pluralize(result.files, 'files')}; "
        "the same command continues with the rest."
    )
    note_undo(ask, result.revisions[-1:])


def _export_in(sources: tuple[str, ...], format_: str | None) -> Any:
    """Return the content of the only source if it is an export, else None."""
    source = sources[0]
    if len(sources) > 1 or format_ not in (None, EXPORT) or (format_ is None and not _may_be_export(source)):
        return None
    # As long to load as a transcript of a megabyte takes.
    from aether.api import admin
    from aether.store import files

    if source == "-":
        data = sys.stdin.buffer.read()
    else:
        with regular.named(source) as file:
            data = file.read()
    try:
        content = files.parse_json(data, where=source)
    except AetherError:
        content = []  # it is rejected as no export
    return content if format_ or admin.is_export(content) else None


def _may_be_export(source: str) -> bool:
    """Return whether the start of a file looks like an export: it need not be read twice otherwise."""
    if not Path(source).is_file():
        return False
    with regular.named(source) as file:
        head = file.read(HEAD_BYTES)
    return head.lstrip().startswith(b"{") and any(
        name in head for name in (b'"documents"', b'"conversations"')
    )


def _restore(ask: Ask, exported: Any, *, dry_run: bool) -> int:
    from aether.api import admin
    from aether.api.importing import Imported

    place = ask.place()
    result = admin.import_export(exported, dry_run=dry_run, home=place)
    data = Imported(
        1, sum(result.entries.values()), result.entries.get("items", 0), 0, 0, {}, [], [], [],
        [result.revision] if result.revision else [], [], [], [], [], [],
    )._asdict()  # fmt: skip
    verb = "would be restored" if dry_run else "restored"
    lines = [f"{pluralize(number, name)} {verb}." for name, number in result.entries.items()]
    if result.conversations:
        lines.append(
            f"{pluralize(len(result.conversations), 'conversations')} {verb}, with redacted messages."
        )
    if result.kept:
        lines.append(f"{pluralize(len(result.kept), 'conversations')} of the same name kept as they are.")
    for name in result.unread:
        say(
            plain(f"Note: conversation {name} is not in the export: it could not be read when that was made.")
        )
    emit(ask, {**data, "restored": result}, lines or [f"Nothing {verb}: the export is empty."])
    if result.revision:
        note_undo(ask, [result.revision])
    return 0


def _waiting_lines(result: Imported) -> Iterator[str]:
    if result.waiting:
        verb = "waits" if result.waiting == 1 else "wait"
        yield f"{pluralize(result.waiting, 'items')} {verb} for you: aether memory review."
    if result.displaced:
        left = pluralize(result.displaced, "older items")
        yield f"{left} left: no more can wait. To have all, undo this, and vouch for the files: aether import --accept."


def _imported_lines(result: Imported, *, dry_run: bool) -> list[str | Table]:
    from aether.store.seals import listed_ranges

    rows = [
        (
            draft["type"], f"{draft['relevance_score']:.2f}", draft["metadata"].get("phase", ""),
            draft["content"],
        )
        for draft in result.preview
    ]  # fmt: skip
    lines: list[str | Table] = [Table(rows, head=("type", "rel", "phase", "content"), right=[1, 2])]
    verb = "would be stored" if dry_run else "stored"
    lines.append(
        f"{pluralize(result.items, 'items')} {verb}, {pluralize(result.tokens, 'tokens')}, from {pluralize(result.records, 'records')} in {pluralize(result.files, 'files')}."
    )
    if result.types:
        kinds = sorted(result.types.items(), key=lambda pair: (-pair[1], pair[0]))
        lines.append(f"Types: {', '.join(f'{name} {number}' for name, number in kinds)}.")
    if result.phases:
        lines.append(f"Phases: {listed_ranges(result.phases)}.")
    if result.known:
        were = "was" if result.known == 1 else "were"
        lines.append(f"{result.known} {were} known already, from this import or before it.")
    lines += _waiting_lines(result)
    if result.revisions and not result.items and not result.waiting:
        lines.append("The words of the conversations are kept for search.")
    if result.bad_lines:
        lines.append(
            f"{pluralize(len(result.bad_lines), 'lines or files')} could not be read; stderr names them."
        )
    lines += [
        f"{pluralize(copy['records'], 'records')} in {copy['file']} skipped: copied from session {copy['conversation']}, whose own transcript is imported."
        for copy in result.skipped_copies
    ]
    lines += [
        f"{entry['file']} has times in the future ({entry['at'][:10]}): its entries are dated by those around them, or before all others."
        for entry in result.future
    ]
    if result.undated:
        lines.append(_undated_line(result.undated))
    if result.evicted:
        lines.append(
            f"{pluralize(len(result.evicted), 'items')} did not fit into working memory and went to the archive, where a search finds them."
        )
    return lines


def _undated_line(undated: list[dict[str, Any]]) -> str:
    """Return the line that says which files have entries without a time, and how these are dated."""
    whose = undated[0]["file"] if len(undated) == 1 else pluralize(len(undated), "files")
    days = sorted({file["at"][:10] for file in undated if file["at"]})
    dated = (
        f"by the last change of the file, {' to '.join(dict.fromkeys((days[0], days[-1])))}"
        if days
        else "today"
    )
    return f"Entries without a time in {whose}: dated {dated}."


@click.command("export", cls=Command)
@click.argument("conversation", required=False)
@click.option(
    "--format", "form", type=click.Choice(["markdown", "json"]), default="markdown", show_default=True,
    help="The form of a conversation",
)  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of stdout")
@pass_ask
def export_command(ask: Ask, conversation: str | None, *, form: str, output: str | None) -> None:
    """Write the whole colony as JSON, or one conversation.

    Writes the documents, the archive, receipts, events, history and conversations, or with CONVERSATION its whole
    history; nothing is changed.

    \b
    Example:
      aether export --output colony.json
      aether export talk --output talk.md
    """
    from aether.api import admin
    from aether.store import files

    if conversation is not None:
        _export_conversation(ask, conversation, form, output)
        return
    exported = admin.export(home=ask.place())
    for entry in exported["conversations"]:
        if "problem" in entry:
            say(plain(f"Note: conversation {entry['conversation']} is not in the export: {entry['problem']}"))
    if output is None:
        emit(ask, exported, as_json(exported))
        return
    write_file(output, files.json_document(exported))
    emit(ask, {"output": output, "revision": exported["revision"]}, output)


def _export_conversation(ask: Ask, conversation: str, form: str, output: str | None) -> None:
    from aether.api.context import export_history

    text = export_history(conversation, format=form, home=ask.home)  # type: ignore[arg-type]
    if output is not None:
        write_file(output, text.encode("utf-8", "backslashreplace"))
    data = {"conversation": conversation, "format": form, "output": output, "text": None if output else text}
    emit(ask, data, output or text.rstrip("\n"))
