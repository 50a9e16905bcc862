"""Tokens on the command line: count, fetch a vocabulary, choose the counter of a home."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Group, Table, emit, note, pass_ask, read_text

COUNTERS = ("estimate", "o200k_base", "cl100k_base")


@click.group("tokens", cls=Group)
def tokens_command() -> None:
    """Count tokens and choose the counter.

    \b
    Example:
      aether tokens count README.md
    """


@tokens_command.command("count")
@click.argument("files", nargs=-1)
@click.option(
    "--counter", "name", type=click.Choice(COUNTERS),
    help="The counter  [default: the home's counter, else estimate]",
)  # fmt: skip
@click.option("--models", is_flag=True, help="List the windows of these models, and how each is counted")
@pass_ask
def count(ask: Ask, files: tuple[str, ...], *, name: str | None, models: bool) -> None:
    """Count the tokens of files; - is standard input.

    With --models the arguments are names of models; without any, every known model and pattern is listed, and a window
    marked with ? is assumed.

    \b
    Example:
      aether tokens count README.md
      aether tokens count --models claude-opus-5-5 gpt-4o
    """
    from aether.api import tokens

    if models:
        _list_models(ask, files)
        return
    if not files:
        raise click.UsageError("Missing argument 'FILES...'.")
    counts = [(file, tokens.count_tokens(read_text(file), name=name, home=ask.home)) for file in files]
    rows = [(count_.tokens, count_.characters, file) for file, count_ in counts]
    data = [{"file": file, **count_._asdict()} for file, count_ in counts]
    emit(ask, data, Table(rows, head=("tokens", "characters", "file"), right=[0, 1]))
    note(ask, f"Counted by {counts[0][1].counter}.")


def _list_models(ask: Ask, names: tuple[str, ...]) -> None:
    from aether.api import tokens

    listed = tokens.models(*names, home=ask.home)
    rows = [
        (
            model.model, f"{model.window}{'' if model.known else '?'}", model.output or "", f"{model.factor:g}",
            model.reports,
        )
        for model in listed
    ]  # fmt: skip
    text = Table(rows, head=("model", "window", "answer", "factor", "reports"), right=range(1, 5))
    emit(ask, listed, text)
    note(ask, f"Counted by {listed[0].counter.partition(' ×')[0]}, times the factor.")


@tokens_command.command("fetch")
@click.argument("name", type=click.Choice(COUNTERS[1:]))
@click.option("--url", default="", help="Another address of the same file; its checksum is checked")
@pass_ask
def fetch(ask: Ask, name: str, url: str) -> None:
    """Download the vocabulary of an exact counter.

    The only command that downloads; nothing is fetched automatically.

    \b
    Example:
      aether tokens fetch o200k_base
    """
    from aether.api import tokens

    path = tokens.fetch_vocabulary(name, url=url)
    emit(ask, {"name": name, "path": str(path)}, str(path))


@tokens_command.command("use")
@click.argument("name", type=click.Choice(COUNTERS))
@pass_ask
def use(ask: Ask, name: str) -> None:
    """Set the counter of the home, and recount everything.

    \b
    Example:
      aether tokens use estimate
    """
    from aether.api import tokens

    words = tokens.use_counter(name, home=ask.place())
    emit(ask, {"counter": words}, f"This home counts by {words}.")
