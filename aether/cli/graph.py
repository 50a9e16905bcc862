"""The knowledge graph on the command line."""

from __future__ import annotations

import sys

import click

from aether.cli.output import Ask, Group, emit, note, note_nothing, pass_ask, say, write_file
from aether.text.words import pluralize

# Bad lines that are named: with more, the whole file is wrong.
MOST_BAD_LINES = 10


@click.group("graph", cls=Group)
def graph_command() -> None:
    """Search, import and export a knowledge graph.

    Models write it through "aether mcp --tools graph".

    \b
    Example:
      aether graph search colony
    """


@graph_command.command("import")
@click.argument("source", metavar="FILE|-")
@pass_ask
def import_(ask: Ask, source: str) -> None:
    """Merge a file of the official memory server.

    FILE is what its MEMORY_FILE_PATH names: JSON Lines of entities and relations. Existing entries stay, and
    a second import adds only new ones.

    \b
    Example:
      aether graph import memory.jsonl
    """
    from aether.api import graph
    from aether.errors import InvalidInput

    imported = graph.import_graph(sys.stdin.buffer if source == "-" else source, home=ask.place())
    merged = imported.merged
    if imported.bad_lines and not any(merged):
        first = imported.bad_lines[0]
        raise InvalidInput(
            f"no line is an entity or a relation (line {first.line}: {first.reason}).",
            fix='Name the file of a memory server. A transcript: "aether import".',
            where=source,
        )
    for bad in imported.bad_lines[:MOST_BAD_LINES]:
        say(f"line {bad.line}: {bad.reason}")
    if len(imported.bad_lines) > MOST_BAD_LINES:
        say(f"… and {pluralize(len(imported.bad_lines) - MOST_BAD_LINES, 'lines')} more; --json names all.")
    data = {
        **merged._asdict(),
        "bad_lines": [bad._asdict() for bad in imported.bad_lines],
        "revision": imported.revision,
    }
    emit(
        ask,
        data,
        f"{pluralize(merged.entities, 'entities')}, {pluralize(merged.observations, 'observations of known ones')}, "
        f"{pluralize(merged.relations, 'relations')} added; {merged.known} known already.",
    )
    if imported.revision:
        note(ask, f"To undo it: aether undo {imported.revision}")


@graph_command.command("search")
@click.argument("query")
@pass_ask
def search(ask: Ask, query: str) -> None:
    """Find entities by a part of a name, type or observation.

    \b
    Example:
      aether graph search colony
    """
    from aether.api import graph

    nodes = graph.search_nodes(query, home=ask.place())
    lines = []
    for entity in nodes["entities"]:
        lines += [
            f"{entity['name']} ({entity['entityType']})",
            *(f"  {text}" for text in entity["observations"]),
        ]
    lines += [
        f"{relation['from']} {relation['relationType']} {relation['to']}" for relation in nodes["relations"]
    ]
    emit(ask, nodes, lines)
    if not lines:
        note_nothing(ask)


@graph_command.command("export")
@click.option("--output", metavar="FILE", help="Write to a file")
@pass_ask
def export(ask: Ask, output: str | None) -> None:
    """Export the graph in the official server's format.

    \b
    Example:
      aether graph export --output memory.jsonl
    """
    from aether.api import graph

    text = graph.export_graph(home=ask.place())
    if output:
        write_file(output, text.encode("utf-8", "backslashreplace"))
        emit(ask, {"path": output}, output)
    else:
        emit(ask, {"text": text}, text.splitlines())
