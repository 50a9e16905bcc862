"""The archive on the command line: conversations that lose detail as they age, what decided that, and the way back."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import archived_names, backends, completes
from aether.cli.output import (
    Ask,
    Group,
    Table,
    agreed,
    as_json,
    bar,
    emit,
    facts,
    finding_line,
    note,
    one_line,
    pass_ask,
    plain,
    say,
    when,
)
from aether.store.keys import PRESETS
from aether.text.words import argument, pluralize
from aether.types import DETAILS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from aether.types import Finding, JsonObject

# Rows of the plan that are shown before the question; --json has all of them.
SHOWN = 20
# The file whose date says when a command last aged the archive on its own.
STAMP = "archive/aged"
# The daily pass ages no further conversation after this.
PASS_SECONDS = 5.0


@click.group("archive", cls=Group)
@pass_ask
def archive_command(ask: Ask) -> None:
    """Keep conversations that lose detail as they age.

    A conversation is full for 30 days, then key points, a summary, and after a year its metadata; important and marked
    ones keep more. The previous form is kept for 30 more days; after the first step that is the original, which restore
    returns byte for byte.

    \b
    Example:
      aether archive age --dry-run
      aether archive list
    """
    ask.ages = False  # a dry run changes nothing, and what was just restored stays


@archive_command.command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@pass_ask
def add(ask: Ask, files: tuple[str, ...]) -> int:
    """Add conversations from files to the archive, in full.

    FILE holds a conversation {"id", "title", "created_at", "messages": [...]}, a list of them, or a transcript in any
    format that "aether import" reads. The files stay where they are. Exits 4 if one could not be read; the others are added.

    \b
    Example:
      aether archive add old-talk.json
    """
    from aether.api.archive import archive_files

    with bar(ask, "Adding") as report:

        def watched() -> Iterator[str]:
            for nth, file in enumerate(files):
                report(100 * nth // len(files), file)
                yield file

        batch = archive_files(watched(), home=ask.place())
        report(100, "")
    emit(
        ask,
        {
            "added": batch.added, "failed": batch.failed,
            "findings": batch.findings,
        },
        _table(batch.added),
    )  # fmt: skip
    now = {entry.id: entry for entry in batch.added}
    same = [name for name, entry in now.items() if batch.before.get(name) == entry]
    new, longer = now.keys() - batch.before.keys(), len(batch.before) - len(same)
    if batch.added or not batch.failed:
        words = [f"{pluralize(len(new), 'conversations')} added"]
        words += [f"{longer} brought up to date"] if longer else []
        words += [plain(f"{len(same)} there already ({', '.join(same[:SHOWN])})")] if same else []
        note(ask, f"{', '.join(words)}. Next: aether archive age --dry-run")
    _report(batch.findings)
    return _report(batch.failed)


@archive_command.command("age")
@click.option("--now", metavar="TIME", help="Age as if it were this time, such as 2027-03-01  [default: now]")
@click.option(
    "--preset", type=click.Choice(PRESETS), help="Boundaries in days: default 30/90/365, research 7/30/90"
)
@click.option(
    "--backend",
    metavar="NAME",
    shell_complete=completes(backends),
    help="Let this backend write summaries  [default: extract, without a model]",
)
@click.option("--forever", is_flag=True, help="Keep the fuller forms forever, compressed")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing")
@click.option("--yes", is_flag=True, help="Do not ask")
@click.option("--schedule", is_flag=True, help="Only print a daily job that does this, for you to install")
@click.option(
    "--kind", type=click.Choice(["cron", "systemd"]), default="cron", show_default=True,
    help="With --schedule: the line of a crontab, or the units of a systemd user timer",
)  # fmt: skip
@click.option(
    "--at", metavar="HH:MM", default="03:30", show_default=True, help="With --schedule: the local time of day"
)
@pass_ask
def age(ask: Ask, /, *, schedule: bool, kind: str, at: str, **chosen: Any) -> int:
    """Reduce the conversations that are old enough.

    The plan is shown first: conversation, age in days, score, levels and bytes. Failures are named while the others
    continue; the exit code is then 4. Ctrl-C keeps what is done, and the next run does the rest. With archive.auto =
    "daily" in config.toml the first command of a day ages the archive without --schedule.

    \b
    Example:
      aether archive age --dry-run
      aether archive age --preset research --yes
      aether archive age --schedule --kind systemd --at 12:15
    """
    if schedule:
        return _print_schedule(ask, kind, at)
    return _age(ask, **chosen)


def _age(
    ask: Ask, *, now: str | None, preset: str | None, backend: str | None, forever: bool, dry_run: bool, yes: bool
) -> int:  # fmt: skip
    from aether.api.archive import age_archive

    moment, place = _time(now), ask.place()
    plan = age_archive(now=moment, preset=preset, dry_run=True, forever=forever, home=place)
    if dry_run or not plan.plan:
        emit(ask, _aged(plan, dry_run=True), _plan(plan.plan, everything=True))
        note(ask, "Nothing was changed." if plan.plan else "Nothing is old enough; nothing was changed.")
        return _report(plan.failed)
    question = f"{pluralize(len(plan.plan), 'conversations')} will lose detail."
    if not agreed(ask, _aged(plan, dry_run=True), _plan(plan.plan), question, yes=yes):
        return 1
    with bar(ask, "Ageing") as report:
        aged = age_archive(
            now=moment, preset=preset, forever=forever, backend=backend, home=place,
            progress=lambda so_far, all_: report(100 * so_far // max(all_, 1), f"{so_far} of {all_}"),
        )  # fmt: skip
    emit(ask, _aged(aged, dry_run=False), _summed(aged))
    resting = next((step["conversation"] for step in aged.done if step["grace_until"] is not None), "")
    if resting:
        note(ask, f"To get one back: aether archive restore {argument(resting)}")
    return _report(aged.failed)


def _time(text: str | None) -> datetime | None:
    from aether import clock

    return clock.parse(text, where="--now") if text else None


@archive_command.command("list")
@click.argument("id_", metavar="[ID]", required=False, shell_complete=completes(archived_names))
@click.option("--month", metavar="YYYY-MM", help="Only conversations created in this month (UTC)")
@click.option("--level", type=click.Choice(DETAILS), help="Only those at this level")
@click.option("--search", "query", metavar="TEXT", help="Only conversations that match this, best first")
@click.option(
    "--limit",
    type=click.IntRange(0),
    help="Most conversations to list; 0 for all  [default: 20, or 10 with --search]",
)
@click.option("--why", is_flag=True, help="With ID: explain which rule decides its level")
@click.option("--now", metavar="TIME", help="With --why: decide as if it were this time  [default: now]")
@click.option("--stats", is_flag=True, help="Show how many conversations are archived, and their bytes")
@click.option(
    "--verify",
    is_flag=True,
    help="Check every file against its checksum; exit 1 if one is damaged or missing",
)
@pass_ask
def list_(
    ask: Ask, *, id_: str | None, month: str | None, level: str | None, query: str | None, limit: int | None,
    why: bool, now: str | None, stats: bool, verify: bool,
) -> int:  # fmt: skip
    """List archived conversations, or show one of them.

    With ID, shows the conversation in its current form and its history; without ID, lists the newest first.

    \b
    Example:
      aether archive list
      aether archive list old-talk
      aether archive list old-talk --why
      aether archive list --search "webhook retries"
    """
    if why and id_ is None:
        raise click.UsageError("--why needs an ID.")
    if why:
        _explain(ask, str(id_), now)
    elif id_ is not None:
        _show(ask, id_)
    elif query is not None:
        _search(ask, query, 10 if limit is None else limit)
    elif stats:
        _stats(ask)
    elif verify:
        return _verify(ask)
    else:
        _list(ask, month, level, 20 if limit is None else limit)
    return 0


def _list(ask: Ask, month: str | None, level: str | None, limit: int) -> None:
    from aether.api.archive import count_archived, list_archived

    entries = list_archived(month=month, level=level, limit=limit or None, home=ask.place())
    emit(ask, entries, _table(entries))
    hidden = count_archived(month=month, level=level, home=ask.place()) - len(entries)
    if hidden > 0:
        note(ask, f"{pluralize(hidden, 'older conversations')} left out: --limit 0 lists all.")
    if not entries:
        nothing = "No conversation is archived here: aether archive add FILE adds one."
        note(ask, "No archived conversation is of that month and level." if month or level else nothing)


def _show(ask: Ask, id_: str) -> None:
    from aether.api.archive import read_archived

    conversation = read_archived(id_, home=ask.place())
    emit(ask, conversation, _shown(conversation))


def _search(ask: Ask, query: str, limit: int) -> None:
    from aether.api.archive import search_archive

    hits = search_archive(query, limit=limit or sys.maxsize, home=ask.place())
    rows = [(hit.id, hit.level, when(hit.created_at), one_line(hit.passage)) for hit in hits]
    emit(ask, hits, Table(rows, head=("id", "level", "created", "text")))
    if not hits:
        note(ask, "No archived conversation answers that.")


def _explain(ask: Ask, id_: str, now: str | None) -> None:
    from aether.api.archive import explain_retention

    decision = explain_retention(id_, now=_time(now), home=ask.place())
    emit(ask, decision, _pairs(decision))


def _stats(ask: Ask) -> None:
    from aether.api.archive import archive_stats

    counts = archive_stats(home=ask.place())
    emit(ask, counts, _pairs(counts))


def _verify(ask: Ask) -> int:
    from aether.api.archive import verify_archive

    findings = verify_archive(home=ask.place())
    emit(ask, findings, [*map(finding_line, findings)] or "Every archived conversation is whole.")
    return int(any(finding.level == "error" for finding in findings))


@archive_command.command("restore")
@click.argument("id_", metavar="ID", shell_complete=completes(archived_names))
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write it to this file, and change nothing in the home"
)
@pass_ask
def restore(ask: Ask, id_: str, output: str | None) -> None:
    """Restore a conversation to the fullest form that exists.

    While the original is kept (archive.grace_days after the first step, and longer if a further step falls into that
    time), this is exactly what was archived, byte for byte; afterwards it is the fullest form that exists, which the
    command names. An original of this home becomes live again, and ages as if used today. A conversation that was added
    from a file, or a lesser form, is printed or written to --output, and stays in the archive.

    \b
    Example:
      aether archive restore old-talk --output restored.json
    """
    from aether.api.archive import restore_conversation

    restored = restore_conversation(id_, output=output, home=ask.place())
    data = {"id": id_, "level": restored.level, "exact": restored.exact, "path": restored.path}
    how = "exactly as it was archived" if restored.exact else f"at level {restored.level}, the fullest form that is left"  # fmt: skip
    if not restored.path:
        emit(ask, {**data, "conversation": restored.conversation}, as_json(restored.conversation))
        note(ask, f"{id_} is printed above, {how}. The archive keeps it as it was: --output FILE writes a file.")  # fmt: skip
        return
    emit(ask, {**data, "conversation": None}, restored.path)
    note(ask, f"{id_} is restored, {how}.")
    if not output:
        note(ask, "It ages again from its last use or its return, whichever is later; aether archive mark keeps it.")  # fmt: skip


@archive_command.command("mark")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=completes(archived_names))
@click.option("--remove", is_flag=True, help="Remove the mark, so that they age again")
@pass_ask
def mark(ask: Ask, ids: tuple[str, ...], remove: bool) -> int:
    """Mark conversations as important: they stay full.

    \b
    Example:
      aether archive mark old-talk
    """
    return _marked(ask, ids, marked=not remove)


def _marked(ask: Ask, ids: Iterable[str], *, marked: bool) -> int:
    from aether.api.archive import mark_conversation_important
    from aether.errors import NotFound

    place = ask.place()
    marked_ids = {id_: mark_conversation_important(id_, marked, home=place) for id_ in ids}
    unknown = [id_ for id_, was_changed in marked_ids.items() if not was_changed]
    changed_ids = [id_ for id_, was_changed in marked_ids.items() if was_changed]
    emit(
        ask, {"marked": marked, "ids": changed_ids, "unknown": unknown},
        [plain(f"{id_} is {_effect(place, id_, marked)}") for id_ in changed_ids],
    )  # fmt: skip
    for id_ in unknown:
        say(plain(f"{id_}: no such conversation. aether archive list shows those that are archived."))
    return NotFound.exit_code if unknown else 0


def _effect(place: Any, id_: str, marked: bool) -> str:
    """Return what a mark means for a conversation, which may have lost detail already."""
    from aether.store.archive_store import find

    if not marked:
        return "not marked: it ages by the rules."
    row = find(place, id_)
    if row is None or row.level == "full":
        return "marked: it stays full."
    return (
        f"marked: it loses no more detail. It is at level {row.level} already; a fuller form that is still kept stays: "
        f"aether archive restore {argument(id_)}"
    )


@archive_command.command("policy")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value: a threshold, or weights.NAME",
)
@pass_ask
def policy(ask: Ask, changes: tuple[str, ...]) -> None:
    """Show or change how importance is scored.

    A change is journaled, and aether undo reverses it.

    \b
    Example:
      aether archive policy
      aether archive policy --set important_threshold=0.8
    """
    from aether.api.archive import retention_policy, update_retention_policy

    place, updates = ask.place(), _changes(changes)
    settings = update_retention_policy(updates, home=place) if updates else retention_policy(home=place)
    emit(ask, settings, _pairs(settings))


def _changes(assignments: Iterable[str]) -> JsonObject:
    """Return `KEY=VALUE` texts as the changes of a policy, those of weights below `weights`."""
    updates: JsonObject = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise click.UsageError(f"--set {text!r} is not KEY=NUMBER, such as important_threshold=0.8.")
        table, _, below = name.strip().rpartition(".")
        (updates.setdefault(table, {}) if table else updates)[below] = number
    return updates


def _print_schedule(ask: Ask, kind: str, at: str) -> int:
    from aether.api.home import find
    from aether.cli import schedule as jobs
    from aether.hosts.programs import own_script

    script = own_script("aether") or shutil.which("aether")
    program = [script] if script else [sys.executable, "-m", "aether"]
    job = jobs.job(kind, find(ask.place()), program, at=at)
    emit(ask, job, _job(job))
    return 0


def age_daily(home: Path) -> None:
    """Age what is old enough in `home`, once a day and within `archive.seconds`; no failure of it reaches the command.

    The stamp is written first: a run that was ended, or failed, is tried again on the next day and not at each command.
    """
    from aether import clock
    from aether.api.archive import age_archive
    from aether.errors import AetherError
    from aether.paths import inside
    from aether.store.files import save

    today = clock.stamp(clock.now())[:10]
    try:
        stamp = inside(home, STAMP)
        if stamp.is_file() and stamp.read_text(encoding="utf-8", errors="replace").strip() == today:
            return
        save(stamp, f"{today}\n".encode())
        aged = age_archive(seconds=PASS_SECONDS, home=home)
    except (AetherError, OSError) as reason:
        say(plain(f"Note: the archive was not aged: {reason}"))
        return
    except KeyboardInterrupt:
        say("Note: ageing was interrupted. What is done is stored, and the rest ages tomorrow.")
        return
    for failure in aged.failed:
        say(finding_line(failure, "Note"))
    if aged.done:
        say(f"Note: {_summed(aged)} aether archive list shows them.")


def _table(entries: Iterable[Any]) -> Table:
    rows = [(when(entry.created_at), entry.level, entry.bytes, entry.id, entry.title) for entry in entries]
    return Table(rows, head=("created", "level", "bytes", "id", "title"), right=[2])


def _report(failed: Iterable[Finding]) -> int:
    """Name what failed on stderr, and return the exit code."""
    from aether.errors import InvalidDocument

    failed = list(failed)
    for failure in failed:
        say(plain(f"{failure.where}: {failure.message} {failure.fix}"))
    return InvalidDocument.exit_code if any(failure.level == "error" for failure in failed) else 0


def _plan(planned: list[Any], *, everything: bool = False) -> list[str | Table]:
    head = ("conversation", "days", "score", "level", "bytes", "rule", "title")
    rows = [
        (step.id, step.days, f"{step.score:.2f}", f"{step.from_level} → {step.to_level}", step.bytes, step.rule, step.title)
        for step in (planned if everything else planned[:SHOWN])
    ]  # fmt: skip
    hidden = len(planned) - len(rows)
    ellipsis = [f"… and {hidden} more; --dry-run lists all"] if hidden else []
    return [Table(rows, head=head, right=[1, 2, 4]), *ellipsis]


def _aged(ageing: Any, *, dry_run: bool) -> JsonObject:
    return {
        "dry_run": dry_run, "done": list(ageing.done), "failed": ageing.failed, "saved_bytes": ageing.saved_bytes,
        "plan": [
            {
                "id": step.id, "title": step.title, "days": step.days, "score": round(step.score, 4), "rule": step.rule,
                "from": step.from_level, "to": step.to_level, "bytes": step.bytes,
            }
            for step in ageing.plan
        ],
    }  # fmt: skip


def _summed(ageing: Any) -> str:
    saved = ageing.saved_bytes
    words = f"{saved:,} bytes saved" if saved >= 0 else f"{-saved:,} bytes more until their grace is over"
    return f"{pluralize(len(ageing.done), 'conversations')} aged, {words}."


def _shown(conversation: JsonObject) -> list[str | Table]:
    """Return an archived conversation as a person reads it: what is known of it, its content, its steps."""
    pairs = [
        (name, conversation[name])
        for name in ("id", "title", "created_at", "updated_at", "archived_at", "level")
    ]
    pairs.append(("marked", "yes" if conversation["marked"] else "no"))
    if grace := conversation.get("grace"):
        until = f"kept until {grace['until']}" if grace["until"] else "kept for good"
        is_original = grace["level"] == conversation["level"]  # the file that was added, byte for byte
        pairs.append(
            ("original file", until) if is_original else ("fuller form", f"{grace['level']}, {until}")
        )
    content = conversation["content"]
    texts: list[str] = []
    for message in content.get("messages", []):
        said = message.get("content")
        texts += ["", f"{message.get('role', '')}:", plain(said if isinstance(said, str) else as_json(said))]
    if "summary" in content:
        texts += ["", plain(content["summary"])]
    if not texts:
        texts = ["", *_pairs(conversation["metadata"])]
    steps = [
        f"{when(step['at'])}  {step['from']} → {step['to']}  {step['bytes_before']} → {step['bytes_after']} bytes  {step['rule']}"
        for step in conversation["steps"]
    ]
    return [*facts(pairs, indent=0), *texts, *(["", *map(plain, steps)] if steps else [])]


def _pairs(fields: JsonObject) -> list[str]:
    """Return an object as lines of name and value, with what is below a name indented below it."""
    plain_values = {
        name.replace("_", " "): ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in fields.items() if not isinstance(value, dict)
    }  # fmt: skip
    lines = facts(plain_values.items(), indent=0)
    for name, value in fields.items():
        if isinstance(value, dict):
            lines += [f"{name.replace('_', ' ')}:", *facts(value.items())]
    return lines


def _job(job: Any) -> list[str]:
    lines = [job.line] if job.line else []
    for path, text in job.files.items():
        lines += [f"# {path}", text]
    return [plain(line) for line in [*lines, *job.start]]
