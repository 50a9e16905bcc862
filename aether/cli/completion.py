"""Shell completion."""

from __future__ import annotations

import click

from aether.cli.output import Command


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      aether completion bash
    """
    from click.shell_completion import get_completion_class

    from aether.cli.main import cli

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(cli, {}, "aether", "_AETHER_COMPLETE").source())
