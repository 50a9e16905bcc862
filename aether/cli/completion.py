"""Shell completion."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Command, emit, pass_ask


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_ask
def completion_command(ask: Ask, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      aether completion bash
    """
    from click.shell_completion import get_completion_class

    from aether.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows all three
        raise click.UsageError(f"click does not complete {shell}.")
    script = kind(cli, {}, "aether", "_AETHER_COMPLETE").source()
    emit(ask, {"shell": shell, "script": script}, script)
