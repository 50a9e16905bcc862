"""Messages on the command line: check a conversation against the rules of a provider, and mend it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Group, emit, gathered, note, pass_ask, plain, write_file

if TYPE_CHECKING:
    from aether.shapes import Finding

PROVIDERS = ("anthropic", "openai", "responses", "gemini")


@click.group("messages", cls=Group)
def messages_command() -> None:
    """Check conversations against a provider's rules.

    \b
    Example:
      aether messages check request.json --for anthropic
    """


@messages_command.command("check")
@click.argument("file")
@click.option(
    "--for",
    "provider",
    type=click.Choice(PROVIDERS),
    help="Whose rules; other formats are converted first  [default: the provider whose words the file uses]",
)
@click.option("--repair", is_flag=True, help="Mend what can be mended without inventing content")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the mended conversation to this file")
@click.option(
    "--nth",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which conversation, of a file of several",
)
@pass_ask
def check(ask: Ask, file: str, *, provider: Any, repair: bool, output: str | None, nth: int) -> int:
    """Report what a provider would answer with a 400.

    FILE is a request body, a list or lines of messages, a Claude Code transcript or a Codex rollout; - is
    standard input. Exits 1 where errors remain.

    \b
    Example:
      aether messages check request.json
      aether messages check request.json --for openai --repair --output mended.json
    """
    from aether.operations.checking import check_messages

    if output is not None and not repair:
        raise click.UsageError("--output needs --repair.")
    source = sys.stdin.buffer if file == "-" else file
    found = check_messages(source, provider=provider, repair=repair, nth=nth)
    if output is not None:
        write_file(output, found.mended)
    fields = found._asdict()
    del fields["mended"]
    lists = {
        key: [one._asdict() for one in value] for key, value in fields.items() if isinstance(value, list)
    }
    emit(ask, {"file": file, **fields, **lists, "output": output or ""}, _lines(found))
    if found.wire != found.provider and found.wire in PROVIDERS:
        note(
            ask,
            f"Checked as converted for {found.provider}; --for {found.wire} checks the file as it stands.",
        )
    if found.others:
        note(ask, f"{found.others} more conversation(s) in the file: choose with --nth.")
    if repair and output is None:
        note(ask, "Nothing was written: name a file with --output.")
    return int(any(finding.level == "error" for finding in found.findings))


def _lines(found: Any) -> Iterator[str]:
    yield from _told("converted", found.converted)
    yield from _told("repaired", found.repairs)
    for finding in gathered(found.findings):
        yield _line(finding.level, finding)
    if not found.findings:
        converted = "" if found.wire == found.provider else f", converted from {found.wire}"
        yield f"{found.provider} takes these {found.messages} messages{converted}."


def _told(what: str, findings: Iterable[Finding]) -> Iterator[str]:
    return (_line(what, finding) for finding in gathered(findings))


def _line(what: str, finding: Finding) -> str:
    return plain(f"{what} {finding.code}: {finding.where}: {finding.message} {finding.fix}")
