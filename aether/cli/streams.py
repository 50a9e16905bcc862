"""Streams: what the standard ones are where a host closed them, or where nobody takes what is written."""

from __future__ import annotations

import os
import sys


def open_missing() -> None:
    """Put the null device in the place of each standard stream that was closed when the process began.

    Reading from it finds the end, and writing goes nowhere. Files that are opened later cannot get its number, and
    with it what was meant for the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def drop_stdout() -> None:
    """Send what stdout still holds to the null device: Python would try once more at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
