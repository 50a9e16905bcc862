"""The report on the command line: one HTML file to keep or send, or a digest as Markdown."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Command, emit, need_output, note, pass_ask, plain, write_file

WEEK = "7d"


@click.command("report", cls=Command)
@click.option("--since", default="", help="Not older than this ISO 8601 time, or than 36h, 7d, 2w, 3m, 1y")
@click.option("--week", is_flag=True, help="The last seven days")
@click.option("--conversation", default="", help="Only of this conversation: a part of its id, title or file")
@click.option(
    "--format", "form", type=click.Choice(["html", "markdown"]), default="html", show_default=True,
    help="One HTML file, or Markdown",
)  # fmt: skip
@click.option("--output", metavar="FILE", help="Write it there instead of to stdout; an old file is replaced")
@click.option("--no-redact", is_flag=True, help="Leave secrets in it")
@pass_ask
def report_command(
    ask: Ask,
    *,
    since: str,
    week: bool,
    conversation: str,
    form: str,
    output: str | None,
    no_redact: bool,
) -> None:
    """Write a report to keep or send.

    Overview, decisions with their reasons, lessons, charts and the timeline, as one HTML file that opens offline, holds
    no script and loads nothing (--output report.html), or as Markdown. Secrets are replaced. HTML needs the extra
    `view`, Markdown needs nothing.

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
    found = report.report(
        since=WEEK if week else since, conversation=conversation, redact=not no_redact, home=place
    )
    if form == "html":
        from aether.integrations.viewer.report import as_html

        text = as_html(found, redacted=not no_redact)
    else:
        text = report.as_markdown(found)
    data = text.encode("utf-8", "replace")
    if output:
        write_file(output, data)
    shape = {"format": form, "output": output or "", "bytes": len(data), "report": found}
    emit(ask, shape, [] if output else text.rstrip("\n") if form == "html" else plain(text.rstrip("\n")))
    if output:
        note(ask, f"Written: {plain(output)} ({len(data):,} bytes).")
