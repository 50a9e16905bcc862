"""Recall on the command line: an index, neighbours in time, full texts; and the briefing of a session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import castes, completes, ids
from aether.cli.memory import UNFOLDED_BYTES, filter_options, given, hit_rows, origins
from aether.cli.output import Ask, Command, Table, emit, facts, note, note_nothing, pass_ask, plain, when
from aether.memory.layers import MATCH_CHARS
from aether.memory.statements import end_words
from aether.text.words import matching_part, pluralize

# Characters of a time as it is shown.
TO_THE_MINUTE, TO_THE_SECOND = len("2026-03-01 10:15"), len("2026-03-01 10:15:00")
# Numbers of a rank that are shown with two decimals.
LEAST_SHOWN = 0.005
# The fields of a hit in the index that --json prints.
_INDEXED = (
    "id", "layer", "type", "at", "tokens", "gist", "passage", "score", "speaker", "project", "conversation", "title",
    "repeats", "weak", "evidence", "ended",
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aether.memory.layers import RecallLine
    from aether.memory.memory_tool import Match


@click.command("recall", cls=Command)
@click.argument("words", nargs=-1, metavar="[QUERY]")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1), help="Most lines")
@click.option("--budget", type=click.IntRange(1), help="Most tokens that the index may take")
@filter_options
@click.option(
    "--timeline",
    "around",
    shell_complete=completes(ids),
    metavar="ID",
    help="Show the entries just before and after this one",
)
@click.option(
    "--full",
    "ids",
    shell_complete=completes(ids),
    metavar="ID",
    multiple=True,
    help="Print this entry in full, and those whose ids follow",
)
@click.option("--why", is_flag=True, help="Show below each line of the index how its rank was computed")
@pass_ask
def recall_command(
    ask: Ask, /, *, words: tuple[str, ...], limit: int, budget: int | None, around: str | None,
    ids: tuple[str, ...], why: bool, **filters: Any,
) -> None:  # fmt: skip
    """Recall from memory, step by step.

    With QUERY, prints an index of matching entries, each with the part that matches: two lines on a terminal;
    in a pipe one line, with the tokens of the full text. --timeline prints the neighbours in time of one entry,
    which is marked; --full prints whole entries by their ids. --why prints, for each hit, its query words, the
    share of its surroundings, and the factors of its score.

    \b
    Example:
      aether recall "atomic writes"
      aether recall "atomic writes" --type decision --since 7d
      aether recall "rules about writes" --why
      aether recall --timeline "$ITEM"
      aether recall --full "$ITEM" "$OTHER"
    """
    from aether.api import memory_tool, recall
    from aether.errors import InvalidInput

    if not (words or around or ids) or (around and (words or ids)):
        raise InvalidInput(
            "one of QUERY, --timeline ID and --full ID… is needed.", fix="Pass one of them.", where="recall"
        )
    if given(filters) and (around or ids):
        raise InvalidInput(
            "a filter needs a QUERY.", fix="Leave it out: --timeline and --full name entries.", where="recall"
        )
    ask.least_to_fold, place = UNFOLDED_BYTES, ask.place()
    if ids:
        entries_in_full = recall.full([*ids, *words], home=place)
        tokens = sum(entry_of_step["tokens"] for entry_of_step in entries_in_full)
        lines: list[str] = []
        for entry in entries_in_full:
            pairs = [(name, entry[name]) for name in ("id", "layer", "type")]
            pairs += [("at", when(entry["at"]) or "—"), ("tokens", entry["tokens"])]
            pairs += [("state", end_words(entry["ended"]))] if "ended" in entry else []
            lines += facts(((name, plain(str(value))) for name, value in pairs), indent=0)
            lines += ["", plain(entry["text"]), ""]
        emit(ask, _data("full", entries_in_full, tokens), lines[:-1])
    elif around:
        near = recall.timeline(around, before=limit // 2, after=limit // 2, home=place)
        tokens = sum(line.tokens for line in near)
        emit(ask, _data("timeline", near, tokens), _lines(near, around))
        _note_cost(ask, len(near), tokens)
    else:
        hits = recall.recall(
            " ".join(words), limit=limit, budget=budget, evidence=why, home=place, **given(filters)
        )
        notes = [] if given(filters) else memory_tool.recall_notes(" ".join(words), limit=limit, home=place)
        _emit_index(ask, hits, notes, why=why)
        if not (hits or notes):
            note_nothing(ask, filters["types"])


def _emit_index(ask: Ask, hits: Sequence[Mapping[str, Any]], notes: Sequence[Match], *, why: bool) -> None:
    """Print the hits of a query, and below them the notes of models that answer it."""
    tokens = sum(hit["tokens"] for hit in hits)
    entries = [{name: hit[name] for name in _INDEXED if name in hit} for hit in hits]
    index: list[Any] = _reasons(hits) if why else hit_rows(hits) if sys.stdout.isatty() else [_index(hits)]
    lines = [plain(f"{note.path}: {' '.join(note.passage.split())[:MATCH_CHARS]}") for note in notes]
    emit(ask, {**_data("index", entries, tokens), "notes": notes}, [*index, *lines])
    if hits:
        _note_cost(ask, len(hits), tokens)


@click.command("brief", cls=Command)
@click.option(
    "--occasion", default="startup", show_default=True, help="How the session starts",
    type=click.Choice(["startup", "clear", "compact", "resume", "fork", "subagent"]),
)  # fmt: skip
@click.option("--session", default="", metavar="ID", help="The conversation whose own work is shown")
@click.option("--caste", default="", shell_complete=completes(castes), help="The caste of the sub-agent")
@click.option("--why", is_flag=True, help="Show where each line comes from and how to correct it")
@pass_ask
def brief_command(ask: Ask, *, occasion: str, session: str, caste: str, why: bool) -> None:
    """Show what a new session gets.

    Prints exactly the text that the hook of Claude Code injects when a session starts. With --why each line is followed
    by its kind, its witness (a person said or corrected it, a machine showed it, an agent wrote it), its quote, the
    result of the checks in the work tree and in git (files, commits, branches, pull requests), and the commands that end,
    forget or correct it, with the number of entries removed and of lines of this brief that change.

    \b
    Example:
      aether brief
      aether brief --occasion compact --why
    """
    from aether.api import briefing

    brief = briefing.brief(ask.place(), occasion=occasion, session=session, caste=caste)
    lines = [*_whys(brief["lines"], ask), *_left_out(brief)] if why else brief["block"].split("\n")
    emit(ask, brief, lines if brief["lines"] else [])
    if not brief["lines"]:
        note(ask, "No memory to show for this project.")


def _whys(lines: Sequence[dict[str, Any]], ask: Ask) -> list[str]:
    from aether.api.forget import forgotten_with
    from aether.memory.statements import is_statement

    ids = [line["ids"][0] for line in lines if line["ids"] and not is_statement(line["ids"][0])]
    numbers = forgotten_with(ids, home=ask.place())
    return [part for line in lines for part in _why(line, numbers, ids)]


def _left_out(brief: Mapping[str, Any]) -> list[str]:
    return [
        part
        for line in brief["left_out"]
        for part in (f"Left out: {plain(line['text'])}", f"    checked: {plain('; '.join(line['checks']))}")
    ]


def _why(line: dict[str, Any], numbers: Mapping[str, int], ids: Sequence[str]) -> list[str]:
    from aether.memory.statements import is_statement, witness

    about = [line["kind"], witness(line["evidence"], corrected=line["corrected"])]
    about += [when(line["at"])[:TO_THE_MINUTE]] if line["at"] else []
    about += [line["note"]] if line["note"] else []
    about += [f'proof: "{line["quote"]}"'] if line.get("quote") else []
    about += [f"from {', '.join(line['ids'][1:])}"] if line["ids"][1:] else []
    how = []
    for entry_id in line["ids"][:1]:
        if is_statement(entry_id):
            how.append(f"    aether memory resolve {entry_id}")
            continue
        lines, entries = ids.count(entry_id), numbers.get(entry_id, 0)
        here = f"{pluralize(lines, 'lines')} here" if lines > 1 else ""
        with_it = ", ".join(filter(None, [f"{entries} entries" if entries > 1 else "", here]))
        how.append(f"    aether memory forget {entry_id} --yes" + (f"  # {with_it}" if with_it else ""))
        if line["correctable"]:
            change = f"    aether memory update {entry_id} --content TEXT"
            how.append(change + (f"  # {here}" if here else ""))
    checks = [f"    checked: {plain('; '.join(line['checks']))}"] if line["checks"] else []
    return [plain(line["text"]), f"    {', '.join(about)}", *checks, *how]


def _data(step: str, entries: list[Any], tokens: int) -> dict[str, Any]:
    return {"step": step, "entries": entries, "tokens": tokens}


def _note_cost(ask: Ask, number: int, tokens: int) -> None:
    head = "All of them in full" if number > 1 else "In full"
    note(ask, f"{head}: aether recall --full ID… ({pluralize(tokens, 'tokens')})")


def _index(hits: Sequence[Mapping[str, Any]]) -> Table:
    """Return hits as a table for a pipe, each with the part that matches."""
    rows = [
        (
            hit["id"],
            hit["type"],
            hit["tokens"],
            origin,
            matching_part(hit["passage"], hit["matched"], MATCH_CHARS) or hit["gist"],
        )
        for hit, origin in zip(hits, origins(hits), strict=True)
    ]
    return Table(rows, head=("id", "type", "tokens", "from", "text"), right=[2])


def _reasons(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return hits as two lines each, and below them the reasons of their rank."""
    rows = hit_rows(hits)
    lines: list[str] = []
    for nth, hit in enumerate(hits):
        evidence = hit["evidence"]
        values = {**evidence["words"], "surroundings": evidence["surroundings"]}
        parts = [f"{plain(name)} {value:.2f}" for name, value in values.items() if value >= LEAST_SHOWN]
        parts += [
            f"{name} ×{factor:.2f}"
            for name, factor in evidence["factors"].items()
            if abs(factor - 1) >= LEAST_SHOWN
        ]
        parts += [f"{plain(word)} like {plain(other)}" for word, other in evidence["alike"].items()]
        reasons = ", ".join(parts) or ("importance and time" if hit.get("weak") else "the query names it")
        lines += [*rows[2 * nth : 2 * nth + 2], f"    {hit['why']} {hit['score']:.2f}: {reasons}"]
    return lines


def _lines(lines: Sequence[RecallLine], around: str) -> Table:
    """Return the lines of a timeline as a table that marks `around`."""
    rows = [
        (">" if line.id == around else "", line.id, line.type, when(line.at)[:TO_THE_SECOND] or "—", line.tokens, line.gist)
        for line in lines
    ]  # fmt: skip
    return Table(rows, head=("", "id", "type", "time", "tokens", "gist"), right=[4])
