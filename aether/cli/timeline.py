"""Time on the command line: what happened day by day, what memory knows about one source file, and a report to keep."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from aether.cli.memory import two_lines
from aether.cli.output import (
    Ask,
    Command,
    Table,
    emit,
    need_output,
    note,
    note_nothing,
    one_line,
    pass_ask,
    plain,
    when,
    write_file,
)

if TYPE_CHECKING:
    from aether.api.timeline import FileHistory, Known, Moment

# Characters of a statement on a line of the timeline; --json has all of it.
LINE_CHARS = 160
WEEK = "7d"
KINDS = "request, decision, rule, result, error, fix, change, command, note, compression, compaction, phase"


@click.command("timeline", cls=Command)
@click.argument("file", required=False)
@click.option("--since", default="", help="Not older than this ISO 8601 time or age: 36h, 7d, 2w, 3m, 1y")
@click.option("--until", default="", help="Older than this time")
@click.option("--conversation", default="", help="Only this conversation: a part of its id, title or file")
@click.option("--project", default="", help="Only this project: a part of its directory")
@click.option(
    "--type", "types", multiple=True, metavar="KIND",
    help=f"Only this kind ({KINDS}) or type of item; may be repeated",
)  # fmt: skip
@click.option(
    "--limit", default=200, show_default=True, type=click.IntRange(0), help="Most lines, the newest; 0: all"
)
@pass_ask
def timeline_command(
    ask: Ask, *, file: str | None, since: str, until: str, conversation: str, project: str, types: tuple[str, ...],
    limit: int,
) -> None:  # fmt: skip
    """Show what happened, day by day, or to one file.

    Lists requests, decisions, rules, results, errors and their fixes, compressions, compactions and phases by day and
    conversation, with the agent and its caste. Changed files, commands and notes are shown if --type asks for them. FILE
    is a name, the end of a path or a whole path: lists its changes, its errors with their fixes, and the decisions and
    rules that name it.

    \b
    Example:
      aether timeline --since 7d
      aether timeline --type decision --type change
      aether timeline src/app.py
    """
    from aether.api.timeline import timeline

    if file is not None:
        if since or until or conversation or project or types:
            raise click.UsageError("A filter and FILE exclude each other.")
        _file_history(ask, file)
        return

    most = limit and limit + 1  # one more shows that there are more
    moments = timeline(
        since=since, until=until, conversation=conversation, project=project, types=types, limit=most,
        home=ask.place(),
    )  # fmt: skip
    visible = moments[-limit:]
    data = {"moments": visible, "left_out": len(moments) > len(visible)}
    emit(ask, data, _days(visible))
    if data["left_out"]:
        note(ask, "Older moments are left out: --limit 0 shows all.")
    if not moments:
        unknown = [entry for entry in types if entry not in KINDS.split(", ")]
        note_nothing(ask, unknown, words="Nothing happened that memory knows of.")


def _days(all_moments: list[Moment]) -> Iterator[str | Table]:
    """Yield the lines of a timeline: a head for each day, one for each conversation of it, a line for each moment."""
    for nth, (day, moments) in enumerate(groupby(all_moments, key=lambda entry: entry.at[:10])):
        if nth:
            yield ""
        yield day or "undated"
        for (conversation, title), group in groupby(
            moments, key=lambda entry: (entry.conversation, entry.title)
        ):
            if conversation:
                yield f"  {one_line(title or conversation)}"
            yield Table([_row(entry) for entry in group], indent=4)


def _row(moment: Moment) -> tuple[str, ...]:
    agent = moment.caste or ("" if moment.agent == "queen" else moment.agent)
    text = one_line(moment.text)
    text = text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1].rstrip() + "…"
    return (when(moment.at)[11:16] or "—", moment.kind, agent, text)


def _file_history(ask: Ask, file: str) -> None:
    """Print what memory knows about a source file; its name is compared by whole components and need not exist."""
    from aether.api.timeline import file_history

    history = file_history(file, home=ask.place())
    parts = dict(_parts(history))
    emit(ask, {"path": history.path, **parts}, _history(history))
    if not any(parts.values()):
        note(ask, f"Memory has nothing about {plain(file)}.")


def _parts(history: FileHistory) -> Iterator[tuple[str, list[Known]]]:
    yield from ((name, getattr(history, name)) for name in ("changes", "errors", "decisions", "others"))


def _history(history: FileHistory) -> Iterator[str | Table]:
    heads = {
        "changes": "Changes", "errors": "Errors and fixes", "decisions": "Decisions and rules", "others": "Requests and results",
    }  # fmt: skip
    sections = [(heads[name], part) for name, part in _parts(history) if part]
    for nth, (head, part) in enumerate(sections):
        yield from ("",) if nth else ()
        yield f"{head}:"
        rows = [
            (when(entry.at)[:16] or "—", f"{entry.type}{' (revoked)' if entry.revoked else ''}", entry.id, one_line(entry.text))
            for entry in part
        ]  # fmt: skip
        if sys.stdout.isatty():  # an id that is cut leads nowhere
            yield from two_lines([row[:-1] for row in rows], [(row[-1], ()) for row in rows])
        else:
            yield Table(rows, indent=2)


@click.command("report", cls=Command)
@click.option("--since", default="", help="Not older than this ISO 8601 time or age: 36h, 7d, 2w, 3m, 1y")
@click.option("--week", is_flag=True, help="The last seven days")
@click.option("--conversation", default="", help="Only this conversation: a part of its id, title or file")
@click.option(
    "--format", "form", type=click.Choice(["html", "markdown"]), default="html", show_default=True,
    help="One HTML file, or Markdown",
)  # fmt: skip
@click.option("--output", metavar="FILE", help="Write it there instead of to stdout; an old file is replaced")
@click.option("--no-redact", is_flag=True, help="Leave secrets in it")
@pass_ask
def report_command(
    ask: Ask, *, since: str, week: bool, conversation: str, form: str, output: str | None, no_redact: bool
) -> None:
    """Write a report to keep or send.

    It has an overview, decisions with their reasons, lessons, charts and the timeline, as one HTML file that opens
    offline, holds no script and loads nothing (--output report.html), or as Markdown. Secrets are replaced. HTML needs
    the extra `view`, Markdown needs nothing.

    \b
    Example:
      aether report --week --format markdown
      aether report --since 30d --format markdown --output month.md
    """
    from aether.api import report
    from aether.errors import InvalidInput

    if week and since:
        raise InvalidInput("--week and --since exclude each other.", fix="Pass one of them.", where="report")
    place = ask.place()
    need_output(ask, output, content="A report")
    content = report.report(
        since=WEEK if week else since, conversation=conversation, redact=not no_redact, home=place
    )
    if form == "html":
        from aether.view.charts import as_html

        text = as_html(content, redacted=not no_redact)
    else:
        text = report.as_markdown(content)
    data = text.encode("utf-8", "replace")
    if output:
        write_file(output, data)
    shape = {"format": form, "output": output or "", "bytes": len(data), "report": content}
    emit(ask, shape, [] if output else text.rstrip("\n") if form == "html" else plain(text.rstrip("\n")))
    if output:
        note(ask, f"Written: {plain(output)} ({len(data):,} bytes).")
