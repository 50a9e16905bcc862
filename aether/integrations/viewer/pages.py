"""Pages about what memory holds: the overview, the brief, search, one entry, the log and its health."""

from __future__ import annotations

from aether.api.home import read
from aether.api.overview import overview as overview_of
from aether.integrations.viewer.frame import Asked, Frame, Page, Shown


def overview(frame: Frame, asked: Asked) -> Shown:
    """Return the overview: where the work is, what is next and in force, how full memory is, and what is wrong."""
    found = overview_of(home=read(frame.home).home)
    return Shown("overview.html", {"found": found})


PAGES = [Page("/", "Overview", overview)]
