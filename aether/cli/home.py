"""The home on the command line: init, demo, log, undo, fold, show, doctor, trust, schema, snapshot."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from aether.cli.output import (
    LAYER_NAMES,
    Ask,
    Command,
    Group,
    Table,
    as_json,
    confirmed,
    emit,
    facts,
    note,
    pass_ask,
    plain,
    read_text,
    when,
)
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.admin import Trust
    from aether.api.importing import Imported
    from aether.memory.ingest import IngestResult
    from aether.types import JsonObject, Pattern


@click.command("init", cls=Command)
@click.argument("directory", required=False)
@pass_ask
def init_command(ask: Ask, directory: str | None) -> None:
    """Make a home for a colony's memory.

    Writes .aether/ in the current directory, or in DIRECTORY. One that exists keeps everything; files of the
    original v2.0 format in it are converted.

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

    Newest first; the first column is the revision that undo and show accept, the third who changed it: queen is the
    person whose colony it is, or whoever works in that name, hook and aether are automatic; in a shared home the role of
    the server that sent it follows. A compaction of a conversation
    has none: it names the command that undoes it.

    \b
    Example:
      aether log --limit 5
    """
    from aether.api import admin

    entries = admin.log(limit=limit, everything=everything, home=ask.place())
    rows = [
        (
            entry.revision or "",
            when(entry.at),
            f"{entry.by} ({entry.member})" if entry.member else entry.by,
            entry.operation,
            " ".join(entry.touched),
            entry.reason,
        )
        for entry in entries
    ]
    head = ("rev", "when (UTC)", "who", "what", "touched", "why")
    emit(ask, [entry._asdict() for entry in entries], Table(rows, head=head, right=[0]))
    jumped = entries[0].revision - entries[-1].revision + 1 - len(entries) if entries else 0
    if jumped > 0:
        note(
            ask,
            f"Left out between these: {pluralize(jumped, 'revisions that only count reads')}; --all lists them.",
        )


@click.command("undo", cls=Command)
@click.argument("revision", required=False, type=click.IntRange(1))
@pass_ask
def undo_command(ask: Ask, revision: int | None) -> None:
    """Undo one change.

    Without REVISION the newest change that a person or program asked for and that is not undone. Automatic changes by
    "hook" or "aether" (captured, prepared, compressed) need their REVISION from "aether log". An import is one change,
    whatever its size. Later changes stay; if one depends on the undone change, nothing is undone and that change is
    named.

    \b
    Example:
      aether undo
    """
    from aether.api import admin

    undone = admin.undo(revision, home=ask.place())
    emit(
        ask,
        undone._asdict(),
        f"Undid revision {undone.revision}: {undone.operation} {undone.reason}".rstrip() + ".",
    )


@click.command("fold", cls=Command)
@pass_ask
def fold_command(ask: Ask) -> int:
    """Write the journal into the documents.

    Every command does so at its end; library calls and hooks only append. A shared home takes what is new in its colony
    before, conversations and files as well, and sends what it has; exits 1 if something could not be taken or sent.

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
    troubles = [trouble._asdict() for trouble in folded.troubles]
    emit(
        ask,
        {"revision": folded.revision, "troubles": troubles},
        f"The documents contain revision {folded.revision}.",
    )
    for trouble in folded.troubles:
        note(ask, plain(f"Note: not exchanged with the colony: {trouble.message} {trouble.fix}"))
    return int(bool(troubles))


@click.command("show", cls=Command)
@click.argument("document")
@click.option("--revision", type=click.IntRange(0), help="Show it at this revision")
@pass_ask
def show_command(ask: Ask, document: str, revision: int | None) -> None:
    """Print a document as it is now.

    DOCUMENT is memory, pheromones, COLONY_STATE, graph, memories, goals or retention; always JSON, to the last committed change. A
    text that was erased has a mark in its place, at any revision.

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
    "--accept", "edits", multiple=True, metavar="FILE", help="Accept a hand edit that waits in quarantine"
)
@pass_ask
def doctor_command(ask: Ask, repair: bool, edits: tuple[str, ...]) -> int:
    """Check a home and repair it.

    Only checks, unless --repair or --accept. An edit of a document that conflicts with later changes, or breaks the
    schema, waits in quarantine/ with its changes; correct it there if need be, and accept it. Where both changed
    something, the edit wins; undo reverses it. Exits 1 if an error remains.

    \b
    Example:
      aether doctor
    """
    from aether.api import admin

    place = ask.place()
    repairs = admin.repair(home=place) if repair else []
    for name in edits:
        changed = admin.accept_edit(name, home=place)
        repairs.append(f"accepted {name}" if changed else f"removed {name}, which changed nothing")
    for line in repairs:
        note(ask, f"Done: {line}." if edits else f"Repaired: {line}.")
    findings = admin.examine(home=place)
    if not repair and not edits:
        ask.found = None  # a check changes nothing, not even by folding
    errors = any(finding.level == "error" for finding in findings)
    text = [f"{finding.level}: {finding.where}: {finding.message} {finding.fix}" for finding in findings]
    data = {"repaired": repairs, "findings": [finding._asdict() for finding in findings]}
    emit(ask, data, text or "Nothing is wrong.")
    return int(errors)


@click.command("trust", cls=Command)
@click.argument("file", required=False, default="")
@click.option("--show", is_flag=True, help="Only show the settings and whether they count")
@click.option("--revoke", is_flag=True, help="Trust the file no longer, whatever is in it")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def trust_command(ask: Ask, file: str, show: bool, revoke: bool, yes: bool) -> int:
    """Allow the config.toml of a home to name programs.

    A home is data, and may have come with a repository: its settings that start programs, name servers, models,
    exporters, buckets or places, delete, hide, cost money or make you wait count only after this command has shown them
    and you agreed. It records the hash of the file in your own state directory; after any change of the file they do not count until you agree again. In your own
    config.toml, in the environment and on the command line such settings always count. FILE is another configuration
    in a home.

    \b
    Example:
      aether trust --show
    """
    from aether.api import admin

    trust = admin.trust_of(file, home=ask.home)
    if revoke:
        was = admin.revoke_trust(trust)
        state = trust.state if trust.state == "harmless" else "untrusted"
        emit(ask, _trust(trust._replace(state=state)), f"{plain(str(trust.file))} is not trusted.")
        if not was:
            note(ask, "It was not trusted before.")
        return 0
    lines = [f"{plain(str(trust.file))}: {_TRUST[trust.state]}"]
    # As JSON in ASCII: no value can steer the terminal or hide a part of itself.
    lines += [f"  {path} = {json.dumps(value)}" for path, value in trust.settings.items()]
    if show or trust.state in ("harmless", "trusted"):
        emit(ask, _trust(trust), lines)
        return 0
    if not ask.json:
        emit(ask, None, lines)
    agreed = confirmed("These settings will count, with the keys of your environment.", yes=yes)
    trust = admin.grant_trust(trust) if agreed else trust
    emit(ask, _trust(trust), f"{plain(str(trust.file))} is trusted as it is now." if agreed else [])
    return 0 if agreed else 1


_TRUST = {
    "harmless": "no settings that need to be trusted.",
    "trusted": "trusted as it is. These settings count:",
    "changed": "changed since it was trusted. These settings are ignored:",
    "untrusted": "not trusted. These settings are ignored:",
}


def _trust(trust: Trust) -> dict[str, Any]:
    return {"file": str(trust.file), "state": trust.state, "settings": trust.settings}


@click.group("schema", cls=Group)
def schema_command() -> None:
    """Check documents, and show the shapes of --json.

    \b
    Example:
      aether schema check
    """


@schema_command.command("check")
@click.argument("files", nargs=-1)
@click.option("--schema", "name", help="The schema to use  [default: by the file's name]")
@pass_ask
def check(ask: Ask, files: tuple[str, ...], name: str | None) -> int:
    """Check documents, and exit 1 if one breaks its schema.

    Without FILES, the documents of the home.

    \b
    Example:
      aether schema check
    """
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
    emit(ask, [finding._asdict() for finding in findings], text or "Every document fits its schema.")
    return int(bool(findings))


@schema_command.command("show")
@click.argument("command", nargs=-1)
@pass_ask
def show_schema(ask: Ask, command: tuple[str, ...]) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Without COMMAND, the schemas of all commands. "error" is what every command prints when it fails.

    \b
    Example:
      aether schema show memory search
    """
    from aether.cli.json_results import RESULTS
    from aether.errors import NotFound, shown
    from aether.schemas.derive import json_schema

    name = " ".join(command)
    if name and name not in RESULTS:
        raise NotFound(
            f"no command {shown(name)} prints JSON.", fix="See aether --help.", where="schema show"
        )
    schemas = {key: json_schema(hint, f"aether {key} --json") for key, hint in RESULTS.items()}
    data = schemas[name] if name else schemas
    emit(ask, data, as_json(data))


@click.group("snapshot", cls=Group)
def snapshot_command() -> None:
    """Save the whole colony and restore it.

    \b
    Example:
      aether snapshot list
    """


@snapshot_command.command("create")
@click.option("--label", default="", help="A label for the list")
@pass_ask
def create(ask: Ask, label: str) -> None:
    """Save the whole colony as it is, and print the snapshot's id.

    \b
    Example:
      aether snapshot create --label "before the rewrite"
    """
    from aether.api import admin

    snapshot = admin.create_snapshot(label, home=ask.place())
    emit(ask, snapshot, str(snapshot["snapshot_id"]))


@snapshot_command.command("list")
@pass_ask
def list_(ask: Ask) -> None:
    """List the snapshots, newest first.

    \b
    Example:
      aether snapshot list
    """
    from aether.api import admin

    snapshots = admin.list_snapshots(home=ask.place())
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


@snapshot_command.command("restore")
@click.argument("snapshot_id", default="latest")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def restore(ask: Ask, snapshot_id: str, yes: bool) -> int:
    """Restore a snapshot; undo reverses it.

    Conversations that are missing are brought back; those that are there go on as they are.

    \b
    Example:
      aether snapshot restore latest --yes
    """
    from aether.api import admin

    if not confirmed(f"The colony will be restored to snapshot {snapshot_id}.", yes=yes):
        emit(ask, {"changed": []}, [])
        return 1
    changed = admin.restore_snapshot(snapshot_id, home=ask.place())
    emit(ask, {"changed": changed}, f"Restored: {', '.join(changed) or 'nothing differed'}.")
    return 0


QUERY = "money stored as integer cents"
SHOWN_PATTERNS = 12
SHOWN_STATEMENTS = 3
INDENT = 3


@click.command("demo", cls=Command)
@click.option(
    "--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep the home in this new directory"
)
@pass_ask
def demo_command(ask: Ask, keep: str | None) -> None:
    """Show the whole loop on a sample transcript.

    In a scratch home and offline: import, compress at each phase boundary, promote repeated patterns, search, undo.

    \b
    Example:
      aether demo
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="aether-demo-") as scratch:
            _show(ask, Path(scratch), is_kept=False)
    else:
        directory = Path(keep)
        if directory.exists() and any(directory.iterdir()):
            raise click.UsageError(f"{keep} is not empty. Name a new directory.")
        _show(ask, directory, is_kept=True)


# What the person of the sample notes on purpose: type, text and the phases in which it is noted.
NOTES = (
    ("constraint", "Keep every amount as integer cents, never as floats.", (1, 2, 3)),
    ("decision", "SQLite in WAL mode: one process writes, and one file is easy to back up.", (1,)),
    ("constraint", "An issued invoice is never changed; write a credit note.", (1, 4)),
)
NOTE_RELEVANCE = 0.9


class PhaseDone(NamedTuple):
    """One phase, completed and compressed."""

    phase: int
    items: int
    ingested: IngestResult


class Promoted(NamedTuple):
    """A pattern, and the sessions that show it."""

    pattern: Pattern
    sessions: list[str]


def _show(ask: Ask, directory: Path, *, is_kept: bool) -> None:
    data: dict[str, Any] = {}
    for lines in _steps(directory, data):
        if not ask.json:
            emit(ask, None, [*lines, ""])
    data["home"] = str(directory / ".aether") if is_kept else None
    emit(ask, data, [])
    if is_kept:
        note(ask, f'The home is {data["home"]}. Try: aether memory search "{QUERY}" --home {directory}')
    else:
        note(ask, "The scratch home was removed. Keep one with: aether demo --keep DIR")


def _steps(directory: Path, data: dict[str, Any]) -> Iterator[list[str | Table]]:
    from aether.api.recall import search_memory
    from aether.api.status import get_memory_status

    place, imported = start_demo(directory)
    data["imported"] = {
        "records": imported.records, "items": imported.items, "tokens": imported.tokens,
        "types": imported.types, "phases": imported.phases,
    }  # fmt: skip
    rows = sorted(imported.types.items(), key=lambda pair: (-pair[1], pair[0]))
    counts = (
        f"   {imported.records} records of a coding session → {imported.items} items, {imported.tokens} tokens, "
        f"phases {', '.join(map(str, imported.phases))}"
    )
    yield [
        "1. Import: a transcript becomes working memory",
        counts,
        f"   and {len(NOTES)} things are noted on purpose, as aether add does, some again in later phases",
        Table(rows, head=("type", "items"), right=[1], indent=INDENT),
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
    yield _session(phases[0].ingested.session)
    promotions = promoted(place)
    data["patterns"] = [{**promotion.pattern, "sessions": promotion.sessions} for promotion in promotions]
    yield _patterns(promotions)
    hits = search_memory(QUERY, limit=5, home=place)
    data["search"] = {"query": QUERY, "hits": hits}
    yield _hits(hits)
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
    found: list[Pattern] = read(place).documents["memory"]["long_term_memory"]["patterns"]
    ranked = sorted(
        found, key=lambda pattern: (-pattern["occurrences"], -pattern["confidence"], pattern["id"])
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


def _compressed(facts: list[dict[str, Any]]) -> list[str | Table]:
    rows = [
        (
            fact["phase"], fact["items"], fact["tokens_before"], fact["tokens_after"],
            f"{fact['ratio']:.2f}x", fact["carried"], fact["patterns"], fact["session_id"],
        )
        for fact in facts
    ]  # fmt: skip
    before, after = (sum(fact[side] for fact in facts) for side in ("tokens_before", "tokens_after"))
    items, carried, patterns = (
        sum(fact[name] for fact in facts) for name in ("items", "carried", "patterns")
    )
    rows.append(("all", items, before, after, f"{before / after:.2f}x", carried, patterns, ""))
    head = ("phase", "items", "before", "after", "ratio", "carried", "patterns", "session")
    return [
        "2. Compress: at each phase boundary its items become a session",
        "   by the built-in architect, without a model; before and after in tokens",
        Table(rows, head=head, right=range(7), indent=INDENT),
    ]


def _session(session: Any) -> list[str | Table]:
    rows = [("session", session["session_id"]), ("summary", session["summary"])]
    rows += [("decided", entry["decision"]) for entry in session["key_decisions"][:SHOWN_STATEMENTS]]
    rows += [("outcome", entry["result"]) for entry in session["outcomes"][:SHOWN_STATEMENTS]]
    return ["   The first of them:", Table(rows, indent=INDENT)]


def _patterns(promotions: list[Any]) -> list[str | Table]:
    rows = [
        (
            promotion.pattern["type"].removesuffix("_pattern"), f"{promotion.pattern['confidence']:.1f}",
            promotion.pattern["occurrences"], ", ".join(map(str, promotion.pattern["metadata"]["related_phases"])),
            promotion.pattern["pattern"],
        )
        for promotion in promotions[:SHOWN_PATTERNS]
    ]  # fmt: skip
    hidden = len(promotions) - len(rows)
    head = ("type", "sure", "sessions", "phases", "pattern")
    return [
        "3. Promote: statements that matter or repeat across sessions become long-term memory",
        Table(rows, head=head, right=[1, 2], indent=INDENT),
        *([f"   … and {hidden} more"] if hidden > 0 else []),
    ]


def _hits(hits: list[Any]) -> list[str | Table]:
    rows = [(f"{hit['score']:.2f}", LAYER_NAMES[hit["layer"]], hit["content"]) for hit in hits]
    return [
        f'4. Search: "{QUERY}", over all layers and the archive',
        Table(rows, head=("score", "layer", "text"), right=[0], indent=INDENT),
    ]


def _closing(data: dict[str, Any]) -> list[str | Table]:
    work, check = data["status"]["working_memory"], data["check"]
    undone = f"{check['undone']['operation']} {check['undone']['reason']}"
    same = "memory is the same" if check["restored"] else "memory DIFFERS"
    findings = len(check["findings"])
    return [
        "5. Nothing is lost",
        *facts(
            [
                (
                    "working memory",
                    f"{work['items']} items; every one that left it is in the archive, word for word",
                ),
                ("undo", f'took back "{undone}" and did it again; {same}'),
                ("doctor", pluralize(findings, "findings") if findings else "nothing is wrong"),
                ("journal", f"{data['status']['revision']} revisions, each with its inverse"),
            ],
            indent=INDENT,
        ),
    ]
