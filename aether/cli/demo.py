"""The demo on the command line: what the loop does, as a person would want to see it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from aether.cli.memory_views import LAYER_NAMES
from aether.cli.output import Ask, Command, emit, facts, note, pass_ask, short, table

QUERY = "money stored as integer cents"
SHOWN_PATTERNS = 12
SHOWN_STATEMENTS = 3
INDENT = 3


@click.command("demo", cls=Command)
@click.option(
    "--keep",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Leave the home behind, in this new directory",
)
@pass_ask
def demo_command(ask: Ask, keep: str | None) -> None:
    """Show the whole loop on a sample transcript.

    In a scratch home and offline: import, compress at each phase boundary, promote what repeats, search, undo.

    \b
    Example:
      aether demo
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="aether-demo-") as scratch:
            _show(ask, Path(scratch), kept=False)
    else:
        directory = Path(keep)
        if directory.exists() and any(directory.iterdir()):
            raise click.UsageError(f"{keep} is not empty. Name a new directory.")
        _show(ask, directory, kept=True)


def _show(ask: Ask, directory: Path, *, kept: bool) -> None:
    data: dict[str, Any] = {}
    for lines in _steps(directory, data):
        if not ask.json:
            emit(ask, None, [*lines, ""])
    data["home"] = str(directory / ".aether") if kept else None
    emit(ask, data, [])
    if kept:
        note(ask, f'The home is {data["home"]}. Try: aether memory search "{QUERY}" --home {directory}')
    else:
        note(ask, "The scratch home is gone. Keep one with: aether demo --keep DIR")


def _steps(directory: Path, data: dict[str, Any]) -> Iterator[list[str]]:
    from aether.operations import demo
    from aether.operations.searching import search_memory
    from aether.operations.status import get_memory_status

    place, imported = demo.begin(directory)
    data["imported"] = {
        "records": imported.records,
        "items": imported.items,
        "tokens": imported.tokens,
        "types": imported.types,
        "phases": imported.phases,
    }
    yield _imported(imported)
    phases = [demo.finish_phase(place, phase) for phase in imported.phases]
    data["phases"] = [_phase_data(done) for done in phases]
    yield _compressed(data["phases"])
    yield _session(phases[0].ingested.session)
    found = demo.promoted(place)
    data["patterns"] = [{**one.pattern, "sessions": one.sessions} for one in found]
    yield _patterns(found)
    hits = search_memory(QUERY, limit=5, home=place)
    data["search"] = {"query": QUERY, "hits": hits}
    yield _hits(hits)
    data["status"] = get_memory_status(home=place)
    data["check"] = demo.checked(place)
    yield _closing(data)


def _imported(imported: Any) -> list[str]:
    rows = sorted(imported.types.items(), key=lambda pair: (-pair[1], pair[0]))
    phases = ", ".join(map(str, imported.phases))
    counts = (
        f"{imported.records} records of a coding session → {imported.items} items, {imported.tokens} tokens"
    )
    return [
        "1. Import: a transcript becomes working memory",
        f"   {counts}, phases {phases}",
        *table(rows, head=("type", "items"), right=[1], indent=INDENT),
    ]


def _phase_data(done: Any) -> dict[str, Any]:
    session = done.ingested.session
    return {
        "phase": done.phase, "items": done.items, "session_id": session["session_id"],
        "tokens_before": session["original_tokens"], "tokens_after": session["compressed_tokens"],
        "ratio": session["compression_ratio"], "patterns": len(done.ingested.patterns),
        "carried": len(done.ingested.carried),
    }  # fmt: skip


def _compressed(facts: list[dict[str, Any]]) -> list[str]:
    rows = [
        (
            fact["phase"],
            fact["items"],
            fact["tokens_before"],
            fact["tokens_after"],
            f"{fact['ratio']:.2f}x",
            fact["carried"],
            fact["patterns"],
            fact["session_id"],
        )
        for fact in facts
    ]
    before, after = (sum(fact[side] for fact in facts) for side in ("tokens_before", "tokens_after"))
    items, carried, patterns = (
        sum(fact[name] for fact in facts) for name in ("items", "carried", "patterns")
    )
    rows.append(("all", items, before, after, f"{before / after:.2f}x", carried, patterns, ""))
    head = ("phase", "items", "before", "after", "ratio", "carried", "patterns", "session")
    return [
        "2. Compress: at each phase boundary its items become a session",
        "   by the built-in architect, without a model; before and after in tokens",
        *table(rows, head=head, right=range(7), indent=INDENT),
    ]


def _session(session: Any) -> list[str]:
    rows = [("session", session["session_id"]), ("summary", session["summary"])]
    rows += [("decided", entry["decision"]) for entry in session["key_decisions"][:SHOWN_STATEMENTS]]
    rows += [("outcome", entry["result"]) for entry in session["outcomes"][:SHOWN_STATEMENTS]]
    return ["   The first of them:", *table(rows, indent=INDENT)]


def _patterns(found: list[Any]) -> list[str]:
    rows = [
        (
            one.pattern["type"].removesuffix("_pattern"),
            f"{one.pattern['confidence']:.1f}",
            one.pattern["occurrences"],
            ", ".join(map(str, one.pattern["metadata"]["related_phases"])),
            one.pattern["pattern"],
        )
        for one in found[:SHOWN_PATTERNS]
    ]
    more = len(found) - len(rows)
    head = ("type", "sure", "sessions", "phases", "pattern")
    return [
        "3. Promote: what matters, or repeats across sessions, becomes long-term memory",
        *table(rows, head=head, right=[1, 2], indent=INDENT),
        *([f"   … and {more} more"] if more > 0 else []),
    ]


def _hits(hits: list[Any]) -> list[str]:
    rows = [(f"{hit['score']:.2f}", LAYER_NAMES[hit["layer"]], short(hit["content"])) for hit in hits]
    return [
        f'4. Search: "{QUERY}", over all layers and the archive',
        *table(rows, head=("score", "layer", "text"), right=[0], indent=INDENT),
    ]


def _closing(data: dict[str, Any]) -> list[str]:
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
                ("doctor", f"{findings} finding(s)" if findings else "nothing is wrong"),
                ("journal", f"{data['status']['revision']} revisions, each with its inverse"),
            ],
            indent=INDENT,
        ),
    ]
