"""The hook on the command line: what `aether-hook` does, for who has only `aether`, or wants to see it."""

from __future__ import annotations

import json
import sys

import click

from aether.cli.output import Ask, Command, emit, pass_ask


@click.command("hook", cls=Command)
@click.argument("event", default="")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@pass_ask
def hook_command(ask: Ask, event: str, file: str | None) -> int:
    """Answer an event of Claude Code as its hook.

    The event is one JSON object on standard input, or in FILE; what the model is told is printed. EVENT is used
    where the object does not name its event. Whatever goes wrong is a line in hook.log, never an error.

    \b
    Example:
      aether hook SessionStart event.json
    """
    import os

    from aether.integrations.claude_code import hook

    if ask.home:
        os.environ["AETHER_HOME"] = ask.home
    if file is None and not ask.json:
        return hook.serve([event])
    if file is None:
        said = sys.stdin.buffer.read()
    else:
        with open(file, "rb") as opened:
            said = opened.read()
    code, text = hook.main([event], said)
    told = json.loads(text) if text.startswith("{") else text
    emit(ask, {"told": told}, [text] if text else [])
    return code
