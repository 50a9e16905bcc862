"""Teamwork on the command line: claims, inboxes, and who works on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aether.cli.complete import completes, ids
from aether.cli.output import Ask, Command, Table, emit, note, pass_ask, plain, when
from aether.memory.teamwork import TTL_SECONDS, name_of
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.teamwork import Received
    from aether.types import Claim, TeamMember


@click.command("claim", cls=Command)
@click.argument("resource", required=False)
@click.option("--by", metavar="NAME", help="The agent that claims it; no other agent may have its name")
@click.option(
    "--ttl", type=float, default=TTL_SECONDS, show_default=True, help="Seconds until it ends by itself"
)
@click.option("--task", default="", metavar="TEXT", help="The agent's work on it")
@click.option(
    "--release", "ends", is_flag=True, help="End the claim; without RESOURCE all claims of the agent"
)
@pass_ask
def claim_command(
    ask: Ask, *, resource: str | None, by: str | None, ttl: float, task: str, ends: bool
) -> None:  # fmt: skip
    """Claim a file or a task for one agent, or list the claims.

    RESOURCE is a path, or a task such as task:docs; a directory covers what is below it. If another agent holds it, the
    exit code is 11 and the error names the agent. The holder renews by claiming again. The printed number is a fencing
    number; a later holder gets a greater one. Without RESOURCE the claims are listed.

    \b
    Example:
      aether claim src/api.py --by builder-1 --ttl 600 --task "retries"
      aether claim task:docs --by builder-1
      aether claim src/api.py --by builder-1 --release
      aether claim
    """
    from aether.api import teamwork

    if by is None and (resource or ends):
        raise click.UsageError("Missing option '--by'.")
    if not resource and not ends:
        _emit_claims(ask, teamwork.claims(home=ask.place()), "Nothing is claimed.")
    elif ends:
        released = teamwork.release(resource or "", by=str(by), home=ask.place())
        emit(ask, released, f"Released: {', '.join(_names(released)) or 'nothing'}")
    else:
        granted = teamwork.claim(str(resource), by=str(by), ttl=ttl, task=task, home=ask.place())
        emit(ask, granted, str(granted["revision"]))
        note(ask, f"{granted['by']} holds {plain(name_of(granted['id']))} until {when(granted['ends_at'])}.")


def _names(claims: list[Claim]) -> list[str]:
    return [plain(name_of(claim["id"])) for claim in claims]


def _emit_claims(ask: Ask, claims: list[Claim], nothing: str) -> None:
    rows = [
        (name, plain(claim["by"]), when(claim["ends_at"]), claim["revision"], plain(claim["task"]))
        for name, claim in zip(_names(claims), claims, strict=True)
    ]
    emit(ask, claims, Table(rows, head=("resource", "by", "until (UTC)", "number", "task"), right=[3]))
    if not claims:
        note(ask, nothing)


@click.command("inbox", cls=Command)
@click.argument("name")
@click.option(
    "--put",
    "items",
    multiple=True,
    metavar="ID",
    shell_complete=completes(ids),
    help="Hand this entry over to NAME (repeatable)",
)
@click.option("--note", "words", default="", metavar="TEXT", help="Hand this text over to NAME")
@click.option("--by", metavar="NAME", help="Who hands over  [default: you]")
@click.option("--take", is_flag=True, help="Take the packets out of the inbox")
@pass_ask
def inbox_command(
    ask: Ask, *, name: str, items: tuple[str, ...], words: str, by: str | None, take: bool
) -> None:  # fmt: skip
    """Show what was handed over to an agent, or hand over.

    A packet names entries of memory and the revision at which its sender saw them. They are shown as they are now, with a warning
    if they were changed, superseded, undone or forgotten since.

    \b
    Example:
      aether inbox reviewer --put "$ITEM" --note "Please check this." --by builder-1
      aether inbox reviewer
      aether inbox reviewer --take
    """
    from aether.api import teamwork
    from aether.store.authors import QUEEN

    if items or words:
        if take:
            raise click.UsageError("--take and --put or --note exclude each other.")
        packet = teamwork.hand_over(to=name, items=items, note=words, by=by or QUEEN, home=ask.place())
        emit(ask, packet, packet["id"])
        return
    packets = teamwork.inbox(name, take=take, home=ask.place())
    emit(ask, packets, [line for packet in packets for line in _packet(packet)])
    if not packets:
        note(ask, f"No packet waits for {plain(name)}.")


def _packet(packet: Received) -> list[str]:
    """Return the lines of a packet: its head and note, then each entry with its warning."""
    head = f"{when(packet['at'])} from {plain(packet['by'])}" + (
        f": {plain(packet['note'])}" if packet["note"] else ""
    )
    lines = [head]
    for item in packet["items"]:
        warning = f" ({item['warning']})" if item["warning"] else ""
        lines.append(f"  {item['id']} {item['type']}: {plain(item['text'])}{warning}".rstrip())
    return lines


@click.command("roster", cls=Command)
@pass_ask
def roster_command(ask: Ask) -> None:
    """Show who works on what.

    Lists the registered workers, the agents that hold claims, and the agents whose inbox has packets.

    \b
    Example:
      aether roster
    """
    from aether.api import teamwork

    roster = teamwork.roster(home=ask.place())
    rows = [_member(member) for member in roster.members]
    emit(ask, roster, Table(rows, head=("agent", "caste", "holds", "task", "inbox"), right=[4]))
    if not rows:
        note(ask, "Nobody is at work.")
    if roster.phase is not None:
        note(ask, f"Phase {roster.phase} is open.")
    if roster.awaiting is not None:
        note(ask, f"Phase {roster.awaiting} waits for your decision.")


def _member(member: TeamMember) -> tuple[str, ...]:
    holds = ", ".join(_names(member["claims"])) or "—"
    waiting = pluralize(member["packets"], "packets") if member["packets"] else "—"
    return plain(member["name"]), plain(member["caste"] or "—"), holds, plain(member["task"] or "—"), waiting
