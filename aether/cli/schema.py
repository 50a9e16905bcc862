"""Schemas on the command line."""

from __future__ import annotations

from pathlib import Path

import click

from aether.cli.output import Ask, Group, emit, pass_ask, read_text


@click.group("schema", cls=Group)
def schema_command() -> None:
    """Check documents against their schemas.

    \b
    Example:
      aether schema check
    """


@schema_command.command("check")
@click.argument("files", nargs=-1)
@click.option("--schema", "name", help="The schema to use  [default: by the file's name]")
@pass_ask
def check(ask: Ask, files: tuple[str, ...], name: str | None) -> int:
    """Check documents, and exit 1 where one breaks its schema.

    Without FILES, the documents of the home.

    \b
    Example:
      aether schema check
    """
    from aether.operations import home
    from aether.store import codec
    from aether.store.documents import NAMES

    for file in files:
        _require_schema(name or Path(file).name.partition(".")[0], file)
    if files:
        values = [
            (name or Path(file).name.partition(".")[0], codec.parse(read_text(file), where=file))
            for file in files
        ]
    else:
        place = ask.place()
        values = [(document, home.show(document, home=place)) for document in NAMES]
    for _, value in values:
        if isinstance(value, dict):
            value.pop("stamp", None)
    found = [finding for document, value in values for finding in home.check_schema(document, value)]
    text = [f"{finding.where}: {finding.message}" for finding in found]
    emit(ask, [finding._asdict() for finding in found], text or "Every document fits its schema.")
    return int(bool(found))


def _require_schema(name: str, file: str) -> None:
    from aether.errors import InvalidInput, shown
    from aether.store.documents import NAMES

    if name not in NAMES:
        raise InvalidInput(
            f"there is no schema {shown(name)}.",
            fix=f"Pass --schema with one of {', '.join(NAMES)}.",
            where=file,
        )
