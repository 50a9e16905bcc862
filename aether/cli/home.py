"""The home on the command line: init, log, undo, fold, show, doctor, trust, schema, snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import completes, documents, snapshot_ids
from aether.cli.output import (
    Ask,
    Command,
    Table,
    agreed,
    as_json,
    confirmed,
    emit,
    finding_line,
    note,
    pass_ask,
    plain,
    progress,
    read_text,
    when,
)
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.admin import Trust
    from aether.api.confirming import HomeTrust


@click.command("init", cls=Command)
@click.argument("directory", required=False)
@pass_ask
def init_command(ask: Ask, directory: str | None) -> None:
    """Make a home for a colony's memory.

    Creates .aether/ in the current directory, or in DIRECTORY. An existing home keeps everything; files in it
    of the original v2.0 format are converted.

    \b
    Example:
      aether init
    """
    from pathlib import Path

    from aether.api import admin

    target = Path(directory) if directory else None
    if target is not None and target.name != ".aether":
        target /= ".aether"
    place = admin.init(target or ask.home)
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

    Newest first. The first column is the revision that undo and show accept. The third is the author: the user's name,
    agent for an agent's command, or queen for a program that names nobody; hook and aether are automatic. In a shared
    home the sender's role on the server follows. A compaction of a conversation has no revision: its line has the command
    that undoes it.

    \b
    Example:
      aether log --limit 5
    """
    from aether.api import admin

    entries = admin.log(limit=limit, everything=everything, home=ask.place())
    rows = [
        (
            entry.revision or "",
            when(entry.at)[:16],
            f"{entry.by} ({entry.member})" if entry.member else entry.by,
            entry.operation,
            " ".join(entry.touched),
            entry.reason,
        )
        for entry in entries
    ]
    head = ("rev", "when (UTC)", "who", "what", "touched", "why")
    emit(ask, entries, Table(rows, head=head, right=[0]))
    jumped = entries[0].revision - entries[-1].revision + 1 - len(entries) if entries else 0
    if jumped > 0:
        note(
            ask,
            f"Left out between these: {pluralize(jumped, 'revisions that only count reads')}; --all lists them.",
        )


@click.command("undo", cls=Command)
@click.argument("revision", required=False, type=click.IntRange(1))
@click.option(
    "--conversation", metavar="NAME", help="Undo the newest compaction of this conversation instead"
)
@click.option("--step", type=click.IntRange(1), help="Only if that compaction has this number")
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write its messages to this file instead of stdout"
)
@click.option(
    "--source", metavar="NAME", help="Undo all that came from this conversation, file, agent or host instead"
)
@click.option(
    "--since",
    metavar="TIME",
    default="",
    help="With --source: only what was said since this time, such as 2026-03-01 or 7d",
)
@click.option("--dry-run", is_flag=True, help="With --source: show what would be removed, and change nothing")
@click.option("--yes", is_flag=True, help="With --source: do not ask")
@pass_ask
def undo_command(
    ask: Ask, revision: int | None, conversation: str | None, step: int | None, output: str | None, *,
    source: str | None, since: str, dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Undo one change.

    Without REVISION, undoes the newest change by a person or program that is not yet undone. Automatic changes
    by "hook" or "aether" (captured, prepared, compressed) need their REVISION from "aether log". An import is
    one change, whatever its size. Later changes stay; if one depends on the undone change, nothing is undone
    and that change is named.

    With --conversation, undoes the newest compaction and restores every message: the restored messages are
    printed, then those added since. --output writes the whole document that was compacted, as indented JSON; if
    it cannot be written, the messages go to stdout. A second undo reverses the compaction before.

    With --source, removes everything that came from one conversation, transcript, agent, host or single entry
    in one change, which is shown first. It removes the source's items, the sessions and patterns made only from
    them, and the parts of other sessions and patterns that no other source supports. A web page or tool result
    that should not have become memory is removed with its conversation. "aether trace" names the source of an
    entry; another undo restores everything.

    \b
    Example:
      aether undo
      aether undo --source "$ITEM" --dry-run
    """
    from aether.api import admin
    from aether.cli.forget import naming_rules_that_stay, undo_source

    if source is not None:
        if revision is not None or conversation is not None or step is not None or output is not None:
            raise click.UsageError("--source excludes REVISION, --conversation, --step and --output.")
        return undo_source(ask, source, since, dry_run=dry_run, yes=yes)
    if since or dry_run or yes:
        raise click.UsageError("--since, --dry-run and --yes need --source.")
    if conversation is not None:
        from aether.cli.compact import undo_compaction

        if revision is not None:
            raise click.UsageError("REVISION and --conversation exclude each other.")
        undo_compaction(ask, conversation, step, output)
        return 0
    if step is not None or output is not None:
        raise click.UsageError("--step and --output need --conversation.")

    with naming_rules_that_stay(ask):
        undone = admin.undo(revision, home=ask.place())
        words = f"Undid revision {undone.revision}: {undone.operation} {undone.reason}".rstrip() + "."
        emit(ask, undone._asdict(), words)
        if undone.undone_by:
            note(ask, f"To have it again: aether undo {undone.undone_by}")
    return 0


@click.command("fold", cls=Command)
@pass_ask
def fold_command(ask: Ask) -> int:
    """Write the journal into the documents.

    Every command does so at its end; library calls and hooks only append. A shared home first exchanges changes,
    conversations and files with its colony; exits 1 if something could not be fetched or sent.

    \b
    Example:
      aether fold
    """
    from aether.api import admin
    from aether.store import ledger

    with (
        ledger.staying_local()
    ):  # folding asks the server of a shared home, and one that fails is waited for once
        place = ask.place()
    folded = admin.fold_all(home=place)
    troubles = folded.troubles
    emit(
        ask,
        {"revision": folded.revision, "troubles": troubles},
        f"The documents contain revision {folded.revision}.",
    )
    for trouble in folded.troubles:
        note(ask, plain(f"Note: not exchanged with the colony: {trouble.message} {trouble.fix}"))
    return int(bool(troubles))


@click.command("show", cls=Command)
@click.argument("document", shell_complete=completes(documents))
@click.option("--revision", type=click.IntRange(0), help="Show it at this revision")
@pass_ask
def show_command(ask: Ask, document: str, revision: int | None) -> None:
    """Print a document as it is now.

    DOCUMENT is memory, pheromones, COLONY_STATE, graph, memories, goals, retention, teamwork or proposals. Prints JSON
    with every committed change. A mark replaces an erased text, at any revision.

    \b
    Example:
      aether show memory
    """
    from aether.api import admin

    place = ask.place()
    value = admin.show(document, revision=revision, home=place)
    emit(ask, value, as_json(value))
    if revision and admin.is_erased(revision, home=place):
        note(ask, f"Revision {revision} was erased: a mark is in the place of the text. It cannot be undone.")


@click.command("doctor", cls=Command)
@click.option("--repair", is_flag=True, help="Repair errors; unreadable files are kept")
@click.option(
    "--accept",
    "edits",
    multiple=True,
    metavar="FILE",
    help="Accept a hand edit that waits in quarantine, or take over a copy from another machine",
)
@click.option("--facts", is_flag=True, help="Check statements about files, commits and branches instead")
@click.option("--size", is_flag=True, help="Also show the size of the files in bytes, by kind")
@pass_ask
def doctor_command(ask: Ask, repair: bool, edits: tuple[str, ...], *, facts: bool, size: bool) -> int:
    """Check a home and repair it.

    Only checks, unless --repair or --accept. An edit of a document that conflicts with later changes, or breaks the
    schema, waits in quarantine/ with its changes; correct it there if necessary, and accept it. If both changed the same
    place, the edit wins; undo reverses it. From a copy of another machine, or a file with both sides of a merge, the
    entries that memory lacks are taken over, and the copy is kept in quarantine/. Exits 1 if an error remains.

    --facts looks up what entries in force name (files, symbols in them, commits, branches, pull requests) in the work tree and
    in git, and lists what was removed, moved, merged or deleted since. It takes up to 20 seconds and changes nothing.

    \b
    Example:
      aether doctor
      aether doctor --facts
    """
    from aether.api import admin
    from aether.store import seals

    if facts and (repair or edits):
        raise click.UsageError("--facts excludes --repair and --accept: it changes nothing.")
    place = ask.place()
    repairs = admin.repair(home=place) if repair else []
    for name in edits:
        changed = admin.accept_edit(name, home=place)
        repairs.append(f"accepted {name}" if changed else f"moved {name} away, which changed nothing")
    for line in repairs:
        note(ask, f"Done: {line}." if edits else f"Repaired: {line}.")
    if facts:
        from aether.api.checking import examine_facts

        with progress(ask) as report:
            report("looking up what memory names")
            findings = examine_facts(home=place)
    else:
        findings = admin.examine(home=place)
    if not repair and not edits:
        ask.found = None  # a check changes nothing, not even by folding
    errors = any(finding.level == "error" for finding in findings)
    text = [*map(finding_line, findings)]
    text = text or ["Nothing has changed that memory names." if facts else "Nothing is wrong."]
    sizes = seals.sizes(place) if size else {}
    text += [
        f"{number:>15,}  {kind}"
        for kind, number in [*sizes.items(), ("bytes in all", sum(sizes.values()))]
        if size
    ]
    emit(ask, {"repaired": repairs, "findings": findings, "sizes": sizes}, text)
    return int(errors)


@click.command("trust", cls=Command)
@click.argument("file", required=False, default="")
@click.option("--show", "--list", "show", is_flag=True, help="Only show what counts, and what would")
@click.option("--revoke", is_flag=True, help="Trust the file and the home no longer, whatever is in them")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def trust_command(ask: Ask, file: str, show: bool, revoke: bool, yes: bool) -> int:
    """Confirm the settings and the memory of a home.

    A home that git tracks came with the repository unless you made it: its entries are shown to agents as "from this
    repository, not confirmed" until this command has shown you what a session would get, and you agreed. That holds
    for this home at this place, also after a pull. A home that git does not track is yours.

    A home is data, and may have come with a repository: its settings that start programs, name servers, models,
    exporters, buckets or places, delete, hide, cost money or make you wait count only after this command has shown them
    and you agreed. It records the hash of the file in your own state directory; after any change of the file they do not count until you agree again. In your own
    config.toml, in the environment and on the command line such settings always count. FILE is another configuration
    in a home.

    \b
    Example:
      aether trust --show
    """
    from aether.api import admin, confirming

    trust, content = admin.trust_of(file, home=ask.home), None if file else confirming.home_trust(ask.home)
    if revoke:
        return _revoke_trust(ask, trust, content)
    lines = [f"{plain(str(trust.file))}: {_TRUST[trust.state]}"]
    # As JSON in ASCII: no value can steer the terminal or hide a part of itself.
    lines += [f"  {path} = {json.dumps(value)}" for path, value in trust.settings.items()]
    if content:
        lines += [
            f"{plain(str(content.home))}: {_CONTENT[content.state]}",
            *(f"  {plain(line)}" for line in content.lines),
        ]
    asks_file, asks_home = trust.state in ("changed", "untrusted"), content and content.state == "unconfirmed"
    if show or not (asks_file or asks_home):
        emit(ask, _trust(trust, content), lines)
        return 0
    if not ask.json:
        emit(ask, None, lines)
    questions = ["These settings will count, with the keys of your environment."] if asks_file else []
    questions += ["Agents will get this memory as yours."] if asks_home else []
    if not confirmed(" ".join(questions), yes=yes):
        emit(ask, _trust(trust, content), [])
        return 1
    words = [f"{plain(str(trust.file))} is trusted as it is now."] if asks_file else []
    trust = admin.grant_trust(trust) if asks_file else trust
    if content and asks_home:
        content = confirming.confirm_home(content.home)
        words += [f"{plain(str(content.home))} is confirmed."]
    emit(ask, _trust(trust, content), words)
    return 0


def _revoke_trust(ask: Ask, trust: Trust, content: HomeTrust | None) -> int:
    from aether.api import confirming
    from aether.store import config

    was = config.revoke_trust(trust.file)
    words = [f"{plain(str(trust.file))} is not trusted."]
    state = trust.state if trust.state == "harmless" else "untrusted"
    if content and content.state != "own":
        was = confirming.revoke_home(content.home) or was
        content = content._replace(state="unconfirmed")
        words += [f"{plain(str(content.home))} is not confirmed."]
    emit(ask, _trust(trust._replace(state=state), content), words)
    if not was:
        note(ask, "It was not trusted before.")
    return 0


_TRUST = {
    "harmless": "no settings that need to be trusted.",
    "trusted": "trusted as it is. These settings count:",
    "changed": "changed since it was trusted. These settings are ignored:",
    "untrusted": "not trusted. These settings are ignored:",
}


_CONTENT = {
    "own": "git does not track its memory, which is yours.",
    "confirmed": "its memory is yours, or confirmed by you. Git tracks it: a commit publishes what sessions note.",
    "unconfirmed": "its memory came with this repository. Agents get it as not confirmed. Once you confirm it, they get:",
}


def _trust(trust: Trust, content: HomeTrust | None) -> dict[str, Any]:
    return {"file": trust.file, "state": trust.state, "settings": trust.settings, "content": content}


@click.command("schema", cls=Command)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--check",
    is_flag=True,
    help="Check the documents of the home, or these files; exit 1 if one breaks its schema",
)
@click.option("--schema", "name", help="Check against this schema  [default: by the file's name]")
@pass_ask
def schema_command(ask: Ask, words: tuple[str, ...], *, check: bool, name: str | None) -> int:
    """Print the JSON Schema of --json, or check documents.

    COMMAND names the command whose output is described; without it, the schemas of all commands are printed. "error" is
    the output of every command that fails.

    \b
    Example:
      aether schema memory search
      aether schema --check
    """
    if check:
        return _check_documents(ask, words, name)
    from aether.cli.json_results import RESULTS
    from aether.errors import NotFound, shown
    from aether.schemas.derive import json_schema

    command = " ".join(words)
    if command and command not in RESULTS:
        raise NotFound(f"no command {shown(command)} prints JSON.", fix="See aether --help.", where="schema")
    schemas = {key: json_schema(hint, f"aether {key} --json") for key, hint in RESULTS.items()}
    data = schemas[command] if command else schemas
    emit(ask, data, as_json(data))
    return 0


def _check_documents(ask: Ask, files: tuple[str, ...], name: str | None) -> int:
    from aether.api import admin
    from aether.errors import InvalidInput, shown
    from aether.store import files as store_files
    from aether.store.documents import NAMES

    schemas = {file: name or Path(file).name.partition(".")[0] for file in files}
    for file, schema in schemas.items():
        if schema not in NAMES:
            raise InvalidInput(
                f"unknown schema {shown(schema)}.",
                fix=f"Pass --schema with one of {', '.join(NAMES)}.",
                where=file,
            )
    if files:
        values = [(schemas[file], store_files.parse_json(read_text(file), where=file)) for file in files]
    else:
        place = ask.place()
        values = [(document, admin.show(document, home=place)) for document in NAMES]
    for _, value in values:
        if isinstance(value, dict):
            value.pop("stamp", None)
    findings = [finding for document, value in values for finding in admin.check_schema(document, value)]
    text = [f"{finding.where}: {finding.message}" for finding in findings]
    emit(ask, findings, text or "Every document fits its schema.")
    return int(bool(findings))


@click.command("snapshot", cls=Command)
@click.argument("snapshot_id", required=False, shell_complete=completes(snapshot_ids))
@click.option("--list", "listed", is_flag=True, help="List the snapshots instead, newest first")
@click.option("--restore", is_flag=True, help="Restore SNAPSHOT_ID instead  [default: the newest]")
@click.option("--label", default="", help="A label for the list")
@click.option("--yes", is_flag=True, help="Do not ask before restoring")
@pass_ask
def snapshot_command(
    ask: Ask, snapshot_id: str | None, *, listed: bool, restore: bool, label: str, yes: bool
) -> int:
    """Save the whole colony and restore it.

    Prints the id of the new snapshot. Restoring brings missing conversations back and leaves the others as they are; undo
    reverses it.

    \b
    Example:
      aether snapshot --label "before the rewrite"
      aether snapshot --list
      aether snapshot --restore latest --yes
    """
    from aether.api import admin

    place = ask.place()
    if restore:
        return _restore_snapshot(ask, place, snapshot_id or "latest", yes=yes)
    if snapshot_id is not None:
        raise click.UsageError("SNAPSHOT_ID needs --restore.")
    if not listed:
        snapshot = admin.create_snapshot(label, home=place)
        emit(ask, snapshot, str(snapshot["snapshot_id"]))
        return 0
    snapshots = admin.list_snapshots(home=place)
    rows = [
        (
            entry["snapshot_id"], when(entry["timestamp"]), entry["revision"],
            "automatic" if entry["automatic"] else "by hand", entry["label"],
        )
        for entry in snapshots
    ]  # fmt: skip
    emit(ask, snapshots, Table(rows, head=("id", "when (UTC)", "revision", "taken", "label"), right=[2]))
    if not snapshots:
        note(ask, "No snapshot was taken yet.")
    return 0


def _restore_snapshot(ask: Ask, place: Path, snapshot_id: str, *, yes: bool) -> int:
    from aether.api import admin

    admin.snapshot_file(snapshot_id, home=place)
    question = f"The colony will be restored to snapshot {snapshot_id}."
    if not agreed(ask, {"changed": []}, [], question, yes=yes):
        return 1
    changed = admin.restore_snapshot(snapshot_id, home=place)
    emit(ask, {"changed": changed}, f"Restored: {', '.join(changed) or 'nothing differed'}.")
    return 0
