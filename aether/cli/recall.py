"""Recall on the command line: an index, neighbours in time, full texts; and the briefing of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Command, Table, emit, facts, note, pass_ask, plain, when
from aether.text.words import pluralize

# Characters of a time as it is shown.
TO_THE_MINUTE, TO_THE_SECOND = len("2026-03-01 10:15"), len("2026-03-01 10:15:00")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aether.memory.recall import RecallLine


@click.command("recall", cls=Command)
@click.argument("words", nargs=-1, metavar="[QUERY]")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1), help="Most lines")
@click.option("--budget", type=click.IntRange(1), help="Most tokens that the index may take")
@click.option("--timeline", "around", metavar="ID", help="Show the entries just before and after this one")
@click.option(
    "--full", "ids", metavar="ID", multiple=True, help="Print this entry in full, and those whose ids follow"
)
@pass_ask
def recall_command(
    ask: Ask, *, words: tuple[str, ...], limit: int, budget: int | None, around: str | None,
    ids: tuple[str, ...],
) -> None:  # fmt: skip
    """Recall from memory, step by step.

    With QUERY an index of matching entries, each line with the tokens of its full text; with --timeline the
    neighbours in time of one entry, which is marked; with --full whole entries by their ids.

    \b
    Example:
      aether recall "atomic writes"
      aether recall --timeline "$ITEM"
      aether recall --full "$ITEM" "$OTHER"
    """
    from aether.api import recall
    from aether.errors import InvalidInput

    if not (words or around or ids) or (around and (words or ids)):
        raise InvalidInput(
            "one of QUERY, --timeline ID and --full ID… is needed.", fix="Pass one of them.", where="recall"
        )
    place = ask.place()
    if ids:
        found = recall.full([*ids, *words], home=place)
        tokens = sum(each["tokens"] for each in found)
        lines: list[str] = []
        for entry in found:
            known = [(name, entry[name]) for name in ("id", "layer", "type")]
            known += [("at", when(entry["at"]) or "—"), ("tokens", entry["tokens"])]
            lines += facts(((name, plain(str(value))) for name, value in known), indent=0)
            lines += ["", plain(entry["text"]), ""]
        emit(ask, _data("full", found, tokens), lines[:-1])
    elif around:
        near = recall.timeline(around, before=limit // 2, after=limit // 2, home=place)
        _emit_lines(ask, "timeline", near, around=around)
    else:
        found_hits = recall.recall_index(" ".join(words), limit=limit, budget=budget, home=place)
        _emit_lines(ask, "index", [line for _, line in found_hits])


@click.command("brief", cls=Command)
@click.option(
    "--occasion", default="startup", show_default=True, help="How the session starts",
    type=click.Choice(["startup", "clear", "compact", "resume", "fork", "subagent"]),
)  # fmt: skip
@click.option("--session", default="", metavar="ID", help="The conversation whose own work is shown")
@click.option("--caste", default="", help="The caste of the sub-agent")
@click.option("--why", is_flag=True, help="Say of each line where it comes from and how to correct it")
@pass_ask
def brief_command(ask: Ask, *, occasion: str, session: str, caste: str, why: bool) -> None:
    """Show what a new session gets.

    Prints exactly the text that the hook of Claude Code injects when a session starts. With --why each line is followed
    by its kind, who vouches for it (a person said it, a machine showed it, an agent wrote it), its entries, and the
    command that forgets or corrects them.

    \b
    Example:
      aether brief
      aether brief --occasion compact --why
    """
    from aether.api import briefing

    found = briefing.brief(ask.place(), occasion=occasion, session=session, caste=caste)
    lines = [part for line in found["lines"] for part in _why(line)] if why else found["block"].split("\n")
    emit(ask, found, lines if found["lines"] else [])
    if not found["lines"]:
        note(ask, "Nothing is known that a session should get.")


_VOUCHERS = {"person": "a person said it", "machine": "a machine showed it", "agent": "an agent wrote it"}


def _why(line: dict[str, Any]) -> list[str]:
    about = [line["kind"], _VOUCHERS.get(line["evidence"], "its source is not recorded")]
    about += [when(line["at"])[:TO_THE_MINUTE]] if line["at"] else []
    how = [f"    aether memory forget {one}" for one in line["ids"][:1]]
    how += [
        f"    aether memory update {one} --content TEXT" for one in line["ids"][:1] if line["correctable"]
    ]
    return [plain(line["text"]), f"    {', '.join(about)}", *how]


def _data(step: str, entries: list[Any], tokens: int) -> dict[str, Any]:
    return {"step": step, "entries": entries, "tokens": tokens}


def _emit_lines(ask: Ask, step: str, lines: Sequence[RecallLine], *, around: str = "") -> None:
    tokens = sum(line.tokens for line in lines)
    emit(ask, _data(step, [line._asdict() for line in lines], tokens), _lines(lines, around))
    if lines:
        note(
            ask,
            f"In full {'these are' if len(lines) > 1 else 'this is'} {pluralize(tokens, 'tokens')}: aether recall --full ID…",
        )
    else:
        note(ask, "Nothing found.")


def _lines(lines: Sequence[RecallLine], around: str) -> Table:
    """Return lines as a table: a timeline marks `around` and shows times to the second."""
    most = TO_THE_SECOND if around else TO_THE_MINUTE
    rows = [(line.id, line.type, when(line.at)[:most] or "—", line.tokens, line.gist) for line in lines]
    head = ("id", "type", "time", "tokens", "gist")
    if not around:
        return Table(rows, head=head, right=[3])
    marked = [(">" if row[0] == around else "", *row) for row in rows]
    return Table(marked, head=("", *head), right=[4])
