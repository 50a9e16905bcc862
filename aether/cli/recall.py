"""Recall on the command line: an index that says what each text costs, neighbours in time, full texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Command, emit, facts, note, pass_ask, plain, table, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aether.operations.recalling import RecallLine


@click.command("recall", cls=Command)
@click.argument("query", required=False)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1), help="Most lines")
@click.option("--budget", type=click.IntRange(1), help="Most tokens that the index may take")
@click.option("--timeline", "around", metavar="ID", help="Show what came just before and after this entry")
@click.option("--full", "ids", metavar="ID", multiple=True, help="Print this entry in full; may be repeated")
@pass_ask
def recall_command(
    ask: Ask, *, query: str | None, limit: int, budget: int | None, around: str | None, ids: tuple[str, ...]
) -> None:
    """Recall what memory knows, step by step.

    With QUERY an index of what answers, each line with the tokens of its full text; with --timeline the
    neighbours in time of one entry; with --full whole entries by their ids.

    \b
    Example:
      aether recall "atomic writes"
      aether recall --timeline "$ITEM"
      aether recall --full "$ITEM" --full "$OTHER"
    """
    from aether.errors import InvalidInput
    from aether.operations import recalling

    if sum(map(bool, (query, around, ids))) != 1:
        raise InvalidInput(
            "one of QUERY, --timeline and --full is needed.", fix="Pass one of them.", where="recall"
        )
    place = ask.place()
    if ids:
        found = recalling.full(ids, home=place)
        tokens = sum(each["tokens"] for each in found)
        emit(ask, _data("full", found, tokens), [line for each in found for line in (*_page(each), "")][:-1])
    elif around:
        lines = recalling.timeline(around, before=limit // 2, after=limit // 2, home=place)
        _emit_lines(ask, "timeline", lines)
    else:
        lines = recalling.recall(str(query), limit=limit, budget=budget, home=place)
        _emit_lines(ask, "index", lines)


def _data(step: str, entries: list[Any], tokens: int) -> dict[str, Any]:
    return {"step": step, "entries": entries, "tokens": tokens}


def _emit_lines(ask: Ask, step: str, lines: Sequence[RecallLine]) -> None:
    tokens = sum(line.tokens for line in lines)
    emit(ask, _data(step, [line._asdict() for line in lines], tokens), _lines(lines))
    if lines:
        note(ask, f"In full these are {tokens} tokens: aether recall --full ID")
    else:
        note(ask, "Nothing found.")


def _lines(lines: Sequence[RecallLine]) -> list[str]:
    rows = [(line.id, line.type, line.at[:10] or "—", line.tokens, line.gist) for line in lines]
    return table(rows, head=("id", "type", "day", "tokens", "gist"), right=[3])


def _page(entry: dict[str, Any]) -> list[str]:
    known = [
        ("id", entry["id"]), ("layer", entry["layer"]), ("type", entry["type"]), ("at", when(entry["at"]) or "—"),
        ("tokens", entry["tokens"]),
    ]  # fmt: skip
    return [*facts(((name, plain(str(value))) for name, value in known), indent=0), "", plain(entry["text"])]
