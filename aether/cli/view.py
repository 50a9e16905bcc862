"""The view on the command line: serve the local web page of a home until Ctrl-C."""

from __future__ import annotations

import os
import sys

import click

from aether.cli.output import Ask, Command, emit, note, pass_ask


@click.command("view", cls=Command)
@click.option("--port", default=0, type=click.IntRange(0, 65_535), help="The port  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the address only")
@click.option("--read-only", is_flag=True, help="Show everything, and change nothing")
@pass_ask
def view_command(ask: Ask, port: int, *, no_browser: bool, read_only: bool) -> None:
    """Show memory as a web page on this machine, until Ctrl-C.

    Prints the address, which holds the key to the page, and opens it in the browser. On it a person sees what is
    remembered and why, what a session gets, and can forget, correct or undo. Only this machine reaches it. It needs the
    extra `view`: pip install 'aether-memory[view]'.

    \b
    Example:
      aether view
      aether view --read-only --no-browser --port 8010
    """
    from aether.api.home import find
    from aether.integrations.viewer.app import View

    view = View(find(ask.home), port=port, read_only=read_only)
    emit(ask, {"url": view.address, "read_only": read_only}, view.address)
    sys.stdout.flush()
    if not no_browser and not _opened(view.address):
        note(ask, "No browser was found: open the address above in one on this machine.")
    note(ask, "Ctrl-C stops it.")
    view.serve()
    note(ask, "Stopped.")


def _opened(address: str) -> bool:
    """Open the address in the browser of the desktop; a browser of the terminal would take it over."""
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
