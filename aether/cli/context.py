"""Contexts on the command line: how full one is, its checkpoints and snapshots, its history, and imports from OLLM-CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import backends, completes, conversation_names
from aether.cli.output import (
    Ask,
    Group,
    Table,
    bar,
    confirmed,
    emit,
    facts,
    note,
    one_line,
    pass_ask,
    plain,
    say,
    when,
)
from aether.text.words import argument, pluralize

if TYPE_CHECKING:
    from aether.api.context import ContextStatus

MODES = ("developer", "planning", "assistant", "debugger", "user")
PURPOSES = ("recovery", "rollback", "emergency")


@click.group("context", cls=Group)
def context_command() -> None:
    """Show and change the contexts of long conversations.

    A context is the part of a conversation that is sent to a model, with checkpoints for older messages; the whole is kept.

    \b
    Example:
      aether context status talk
    """


@context_command.command("status")
@click.argument("conversation", required=False, shell_complete=completes(conversation_names))
@click.option("--check", is_flag=True, help="Check whether it can be sent, and exit 7 if it is too large")
@click.option("--checkpoints", is_flag=True, help="List its checkpoints, oldest first")
@pass_ask
def status(ask: Ask, conversation: str | None, *, check: bool, checkpoints: bool) -> int:
    """Show how full a context is, and what is in it.

    Without CONVERSATION all contexts are listed, the newest first. With --check, lists ways to make it smaller; the next
    prompt also makes it fit by itself.

    \b
    Example:
      aether context status talk
      aether context status talk --check
      aether context status
    """
    from aether.api.context import context_status

    if conversation is None:
        if check or checkpoints:
            raise click.UsageError("--check and --checkpoints need a CONVERSATION.")
        _list(ask)
    elif check:
        return _check(ask, conversation)
    elif checkpoints:
        _checkpoints(ask, conversation)
    else:
        state = context_status(conversation, home=ask.home)
        emit(ask, _status_data(state), _status_lines(state))
    return 0


def _list(ask: Ask) -> None:
    from aether.api.context import context_list

    entries = context_list(home=ask.home)
    rows = [
        (
            when(entry.at),
            entry.messages,
            entry.compressions,
            entry.window,
            entry.mode,
            entry.model,
            entry.conversation,
        )
        for entry in entries
    ]
    head = ("at", "messages", "compressions", "window", "mode", "model", "conversation")
    emit(ask, entries, Table(rows, head=head, right=[1, 2, 3]))
    if not entries:
        note(ask, "No context yet: aether chat starts one.")


def _status_data(status: ContextStatus) -> dict[str, Any]:
    settings, validation = status.settings, status.validation
    data = {
        **status._asdict(), "ratio": round(validation.ratio, 4), "window": settings.window, "model": settings.model,
        "mode": settings.mode, "level": validation.level,
        "metrics": {**status.metrics._asdict(), "hit_rate": round(status.metrics.hit_rate, 4)},
    }  # fmt: skip
    del data["settings"], data["validation"]
    return data


def _status_lines(status: ContextStatus) -> list[str]:
    share = 100 * status.validation.ratio
    pairs = [
        (
            "tokens",
            f"{status.tokens:,} of {status.limit:,} ({share:.1f} %), window {status.settings.window:,}",
        ),
        ("tier", f"{status.tier.number} {status.tier.label}"),
        ("model", status.settings.model or "(none)"),
        ("mode", status.settings.mode),
        ("messages", f"{status.messages} live"),
        ("checkpoints", f"{status.checkpoints}, after {pluralize(status.compressions, 'compressions')}"),
        ("snapshots", status.snapshots),
        (
            "largest",
            f"{status.metrics.largest_message:,} tokens in one message, {status.metrics.average_tokens:,.0f} on average",
        ),
        ("reliability", f"{status.reliability.value:.2f} {status.reliability.level}"),
    ]
    # What a home may not set every command says by itself.
    found_here = [finding for finding in status.findings if finding.code != "untrusted"]
    return [*facts(pairs, indent=0), *_findings(found_here), *_findings(status.validation.findings)]


def _findings(findings: Any) -> list[str]:
    return [plain(f"{finding.level}: {finding.message} {finding.fix}") for finding in findings]


def _check(ask: Ask, conversation: str) -> int:
    from aether.api.context import validate_context
    from aether.errors import BudgetExceeded

    result = validate_context(conversation, home=ask.home)
    words = "fits" if result.valid else f"is {result.overage:,} tokens too large"
    lines = [f"It {words}: {result.tokens:,} of {result.limit:,} tokens ({100 * result.ratio:.1f} %)."]
    lines += [
        f"{item.priority}. {item.action}: saves about {item.tokens:,} tokens. {item.why}"
        for item in result.suggestions
    ]
    data = {**result._asdict(), "ratio": round(result.ratio, 4)}
    emit(ask, data, [*map(plain, lines), *_findings(result.findings)])
    return 0 if result.valid else BudgetExceeded.exit_code


@context_command.command("compress")
@click.argument("conversation", shell_complete=completes(conversation_names))
@click.option("--backend", metavar="NAME", shell_complete=completes(backends), help="The backend that writes the summaries  [default: summarizer.backend, else extractive]")  # fmt: skip
@pass_ask
def compress(ask: Ask, conversation: str, backend: str | None) -> int:
    """Compress older messages into a checkpoint, however full.

    Nothing is lost: "aether undo --conversation" reverses it. Exits 1 if there was nothing to compress.

    \b
    Example:
      aether context compress talk
    """
    from aether.api.context_steps import compress_context

    with bar(ask, "Compressing context…") as progress:
        compression = compress_context(
            conversation, backend=backend, progress=lambda stage, percent, _: progress(percent, stage), home=ask.home
        )  # fmt: skip
    checkpoint = compression.checkpoint
    data = {**compression._asdict(), "freed_tokens": compression.freed_tokens}
    del data["validation"], data["findings"]
    if not compression.success:
        emit(ask, data, plain(f"Nothing was compressed: {compression.reason}. {compression.error}".rstrip()))
        return 1
    lines = [f"{compression.tokens_before:,} -> {compression.tokens_after:,} tokens."]
    if checkpoint:
        first, last = checkpoint.message_range
        lines.append(
            f"Checkpoint {checkpoint.id}, level {checkpoint.level}: messages {first}-{last}, {checkpoint.tokens:,} tokens."
        )
    lines += [f"Aged: {', '.join(compression.aged)}."] if compression.aged else []
    lines += [f"Merged: {', '.join(compression.merged)}."] if compression.merged else []
    emit(ask, data, lines)
    note(ask, f"To undo it: aether undo {argument(conversation, '--conversation')}")
    return 0


def _checkpoints(ask: Ask, conversation: str) -> None:
    from aether.api import context

    listed = context.checkpoints(conversation, home=ask.home)
    rows = [
        (checkpoint.id, checkpoint.level, checkpoint.tokens, checkpoint.compression_number, "{}-{}".format(*checkpoint.message_range), one_line(checkpoint.summary))
        for checkpoint in listed
    ]  # fmt: skip
    head = ("id", "level", "tokens", "compression", "messages", "summary")
    emit(ask, listed, Table(rows, head=head, right=[1, 2, 3]))
    if not listed:
        note(ask, "No checkpoint yet: nothing was compressed.")


@context_command.command("snapshot")
@click.argument("conversation", shell_complete=completes(conversation_names))
@click.argument("snapshot_id", metavar="[SNAPSHOT]", required=False)
@click.option(
    "--purpose",
    type=click.Choice(PURPOSES),
    default="rollback",
    show_default=True,
    help="Purpose of the snapshot",
)
@click.option("--list", "listed", is_flag=True, help="List the snapshots instead, newest first")
@click.option("--restore", is_flag=True, help="Return to SNAPSHOT instead  [default: the newest]")
@pass_ask
def snapshot(
    ask: Ask, conversation: str, snapshot_id: str | None, *, purpose: str, listed: bool, restore: bool
) -> None:
    """Save a context as it is, or return to it byte for byte.

    The newest five are kept. Messages since the snapshot leave the context and stay in the history.

    \b
    Example:
      aether context snapshot talk
      aether context snapshot talk --list
      aether context snapshot talk --restore
    """
    from aether.api import context

    if restore:
        state = context.restore_context(conversation, snapshot_id, home=ask.home)
        emit(ask, _status_data(state), _status_lines(state))
        note(ask, f"To undo it: aether undo {argument(conversation, '--conversation')}")
        return
    if snapshot_id is not None:
        raise click.UsageError("SNAPSHOT needs --restore.")
    taken = None if listed else context.take_snapshot(conversation, purpose=purpose, home=ask.home)  # type: ignore[arg-type]
    snapshots = [taken] if taken else context.snapshots(conversation, home=ask.home)
    data = [{"id": entry.id, "at": entry.at, "purpose": entry.purpose, "tokens": entry.tokens, "messages": len(entry.context)} for entry in snapshots]  # fmt: skip
    rows = [
        (entry["id"], when(str(entry["at"])), entry["purpose"], entry["tokens"], entry["messages"])
        for entry in data
    ]
    emit(ask, data, Table(rows, head=("id", "at", "purpose", "tokens", "messages"), right=[3, 4]))
    if taken:
        note(ask, f"To go back: aether context snapshot {argument(conversation)} {taken.id} --restore")


@context_command.command("set")
@click.argument("conversation", shell_complete=completes(conversation_names))
@click.option("--mode", type=click.Choice(MODES), help="The subject: what stays and what summaries look for")
@click.option("--model", help="The model that receives it")
@click.option(
    "--window", type=click.IntRange(min=1), help="Its window in tokens  [default: that of the model]"
)
@pass_ask
def set_(ask: Ask, conversation: str, *, mode: str | None, model: str | None, window: int | None) -> None:
    """Change the mode, model or window of a context.

    The mode decides what is never compressed, and what summaries look for. Everything in the context stays; if it is too
    large for the window, the next prompt makes it fit. With --window, a conversation that has no context yet gets one.

    \b
    Example:
      aether context set talk --mode developer
      aether context set talk --model llama3.1:8b --window 8192
    """
    from aether.api import context

    if window:
        state = context.open_context(conversation, model=model, window=window, home=ask.home)
    elif model:
        state = context.set_model(conversation, model, home=ask.home)
    elif not mode:
        raise click.UsageError("Name --mode, --model or --window.")
    if mode:
        state = context.set_mode(conversation, mode, home=ask.home)
    settings = state.settings
    text = f"mode {settings.mode}, model {settings.model or '(none)'}, window {settings.window:,} tokens, tier {state.tier.label}"
    emit(ask, _status_data(state), plain(text))


@context_command.command("import")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--dry-run", is_flag=True, help="Report what would be imported, and store nothing")
@click.option("--backup", metavar="DIR", help="Copy each file that is read into this directory")
@click.option("--rollback", metavar="IMPORT", help="Reverse the import that printed this id instead")
@pass_ask
def import_(
    ask: Ask, sources: tuple[str, ...], dry_run: bool, backup: str | None, rollback: str | None
) -> int:
    """Import sessions and snapshots of OLLM-CLI.

    SOURCE is a file or a directory with *.json, such as ~/.ollm. Each file becomes a conversation; sources and existing
    conversations are never changed. Bad files are named, and the exit code is then 4. A rollback moves the imported
    conversations to quarantine/, except those that were continued.

    \b
    Example:
      aether context import ollm --dry-run
      aether context import ollm --backup ollm-backup
    """
    from aether.compat import ollm_import
    from aether.errors import InvalidDocument

    if bool(sources) == bool(rollback):
        raise click.UsageError("Name a SOURCE, or an import with --rollback.")
    if rollback:
        imported = ollm_import.undo_ollm_import(rollback, home=ask.home)
    else:
        imported = ollm_import.import_ollm(sources, dry_run=dry_run, backup=backup, home=ask.home)
    rows = [
        (file.state, file.kind, file.messages, file.checkpoints, file.conversation, file.file)
        for file in imported.files
    ]
    head = ("state", "kind", "messages", "checkpoints", "conversation", "file")
    emit(ask, imported, Table(rows, head=head, right=[2, 3]))
    for file in imported.files:
        for words in file.notes:
            (say if file.state == "bad" else lambda text: note(ask, text))(plain(f"{file.file}: {words}"))
    if imported.dry_run:
        note(ask, "Nothing was stored: this was a dry run.")
    elif imported.id and not rollback:
        note(ask, f"To take it back: aether context import --rollback {imported.id}")
    return InvalidDocument.exit_code if any(file.state == "bad" for file in imported.files) else 0


@context_command.command("delete")
@click.argument("conversation", shell_complete=completes(conversation_names))
@click.option("--for-good", is_flag=True, help="Keep nothing of it in quarantine/")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def delete_command(ask: Ask, conversation: str, *, for_good: bool, yes: bool) -> int:
    """Delete a conversation, live or archived.

    Its files move to quarantine/, unless --for-good. What memory noted of it stays (see aether memory forget), and so do
    snapshots of the colony, backups, and copies that a compaction made elsewhere.

    \b
    Example:
      aether context delete talk --yes
    """
    from aether.api.conversations import conversation_ids, delete_conversation, record_directory
    from aether.errors import NotFound, shown

    place = record_directory(ask.home)
    if not confirmed(f"Conversation {plain(shown(conversation))} will be deleted.", yes=yes):
        return 1
    files = delete_conversation(conversation, for_good=for_good, home=place)
    if not files:
        near = argument(conversation_ids(home=place)[0]) if conversation_ids(home=place) else ""
        fix = (
            f'See "aether compact show" for the others, such as {near}.'
            if near
            else "There are no conversations."
        )
        raise NotFound(f"there is no conversation {shown(conversation)}.", fix=fix, where=str(place))
    where = "for good." if for_good else f"kept as {', '.join(map(plain, files))}."
    emit(ask, {"conversation": conversation, "files": [] if for_good else files}, f"Deleted, {where}")
    return 0
