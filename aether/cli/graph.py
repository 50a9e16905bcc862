"""The knowledge graph on the command line."""

from __future__ import annotations

import sys

import click

from aether.cli.output import Ask, Command, emit, note, note_nothing, pass_ask, say, write_file
from aether.text.words import pluralize

# Bad lines that are named: with more, the whole file is wrong.
MOST_BAD_LINES = 10


@click.command("graph", cls=Command)
@click.argument("query", required=False)
@click.option(
    "--import", "source", metavar="FILE|-", help="Merge a file of the official memory server instead"
)
@click.option("--export", is_flag=True, help="Export the graph in that server's format instead")
@click.option("--output", metavar="FILE", help="With --export: write to a file")
@click.option("--link", nargs=2, metavar="ID ID", help="Link two entries of memory, of any layer, instead")
@click.option(
    "--type", "type_", default="related_to", show_default=True, help="With --link: the kind of link"
)
@pass_ask
def graph_command(
    ask: Ask, query: str | None, *, source: str | None, export: bool, output: str | None,
    link: tuple[str, str] | None, type_: str,
) -> None:  # fmt: skip
    """Search, import and export a knowledge graph.

    QUERY is a part of the name, type or observation of an entity. Models write the graph through "aether mcp --tools
    graph". A file to import is what MEMORY_FILE_PATH of the memory server names: JSON Lines of entities and relations.
    Existing entries stay, and a second import adds only new ones.

    \b
    Example:
      aether graph colony
      aether graph --import memory.jsonl
      aether graph --export --output memory.jsonl
    """
    if sum((query is not None, source is not None, export, link is not None)) != 1:
        raise click.UsageError("Pass one of QUERY, --import, --export and --link.")
    if output and not export:
        raise click.UsageError("--output needs --export.")
    if source is not None:
        _import(ask, source)
    elif export:
        _export(ask, output)
    elif link is not None:
        from aether.api import patterns

        link_id = patterns.create_associative_link(*link, type_, home=ask.place())
        emit(ask, {"link_id": link_id}, link_id)
    else:
        _search(ask, str(query))


def _import(ask: Ask, source: str) -> None:
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
    data = {**merged._asdict(), "bad_lines": imported.bad_lines, "revision": imported.revision}
    emit(
        ask,
        data,
        f"{pluralize(merged.entities, 'entities')}, {pluralize(merged.observations, 'observations of known ones')}, "
        f"{pluralize(merged.relations, 'relations')} added; {merged.known} known already.",
    )
    if imported.revision:
        note(ask, f"To undo it: aether undo {imported.revision}")


def _search(ask: Ask, query: str) -> None:
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


def _export(ask: Ask, output: str | None) -> None:
    from aether.api import graph

    text = graph.export_graph(home=ask.place())
    if output:
        write_file(output, text.encode("utf-8", "backslashreplace"))
        emit(ask, {"path": output}, output)
    else:
        emit(ask, {"text": text}, text.splitlines())
