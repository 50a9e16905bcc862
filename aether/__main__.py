"""`python -m aether`, and where the scripts start: Ctrl-C while their modules are imported ends them silently, with 130."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130


def run() -> NoReturn:
    """Run the command `aether` and exit."""
    _start("aether.cli.main")


def compactctl() -> NoReturn:
    """Run the command `compactctl` and exit."""
    _start("aether.compat.compactctl")


def hook() -> NoReturn:
    """Answer the event on standard input, as `aether-hook`, and exit; Ctrl-C ends it as a kill would."""
    _start("aether.hosts.hook")


def _start(module: str) -> NoReturn:
    """Import `module` and call its `run`, which lets Ctrl-C interrupt it as soon as it has an answer for that."""
    try:
        import signal
        from importlib import import_module

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is ignored in the background
            signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        import_module(module).run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    raise AssertionError(module)  # every `run` exits


if __name__ == "__main__":
    run()
