"""Phase markers: the lines with which an agent says that a phase is over, or that the next begins.

A phase changes what is compressed and when, so a line counts only where it cannot mean anything else: it
stands alone, in prose. What stands in a quote, in code, in a list or a table (plans look like that), after a
line that announces it ("I'll then write:"), or as a question does not count, nor does one that the same text denies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, NamedTuple

from aether.errors import InvalidInput
from aether.memory import phases
from aether.memory.colony import RUNNING
from aether.shapes import Change
from aether.text.patterns import lazy

_FENCE = lazy(r"^[ ]{0,3}(`{3,}|~{3,}).*?(?:^[ ]{0,3}\1[`~]*\s*$|\Z)", re.DOTALL | re.MULTILINE)
# A code block by its indent, a quote, an item of a list, a row of a table.
_ASIDE = lazy(r"(?: {4}|\t)|\s*(?:>|[-*+•]\s|\d+[.)]\s|\||\[[ xX]\])")
_DECORATION = lazy(r"^[\s#*_✅✔✓🎉]+|[\s#*_✅✔✓🎉]+$")
_OVER = r"(?:complete|completed|done|finished)"
_COMPLETE = lazy(
    rf"(?:phase (\d{{1,6}})(?:\s*[:–—-]\s*| (?:is |has been )?(?:now )?){_OVER}|aether: complete phase (\d{{1,6}}))[.!]*",
    re.IGNORECASE,
)
_START = lazy(
    r"""aether: start phase (\d{1,6})(?:[\s:–—-]+["“']?([^"”']{1,200}?)["”']?)?[.!]*""", re.IGNORECASE
)
_DENIED = r"\bphase {}\b[^.\n]{{0,60}}\b(?:not|n't|isn't|far from|almost|nearly)\b[^.\n]{{0,40}}\b(?:complete|completed|done|finished)\b"


class Marker(NamedTuple):
    """One line that changes the phase."""

    action: Literal["complete", "start"]
    phase: int
    name: str = ""


def markers(text: str) -> list[Marker]:
    r"""Return the phase markers of an agent's message, in their order.

    >>> markers("All tests pass.\n\n**Phase 2 complete**")
    [Marker(action='complete', phase=2, name='')]
    >>> markers("- Phase 2: done\n> Phase 2 complete\nIs phase 2 done?")
    []
    >>> markers('aether: start phase 3 "the importer"')
    [Marker(action='start', phase=3, name='the importer')]
    """
    if "phase" not in text.lower():
        return []
    found: list[Marker] = []
    before = ""
    for line in _FENCE.sub("\n", text.replace("\r\n", "\n")).split("\n"):
        marker = None if _ASIDE.match(line) or before.endswith(":") else _marker(_DECORATION.sub("", line))
        if marker and not _denied(marker, text):
            found.append(marker)
        before = line.rstrip(" *_") or before
    return found


def _marker(line: str) -> Marker | None:
    over = _COMPLETE.fullmatch(line)
    if over:
        return Marker("complete", int(over[1] or over[2]))
    begun = _START.fullmatch(line)
    return Marker("start", int(begun[1]), (begun[2] or "").strip()) if begun else None


def _denied(marker: Marker, text: str) -> bool:
    return marker.action == "complete" and bool(re.search(_DENIED.format(marker.phase), text, re.IGNORECASE))


def follow(documents: Mapping[str, Any], marker: Marker, *, now: datetime, new_id: phases.NewId) -> Change:
    """Return the change that completes the running phase, or starts one if none runs; its result is whether one completed.

    A line about any other phase, or one that the colony refuses, changes nothing.
    """
    colony, pheromones = documents["COLONY_STATE"], documents["pheromones"]
    status = colony["colony_status"]
    running = status["current_phase"] if status["state"] in RUNNING else None
    with suppress(InvalidInput):
        if marker.action == "complete" and running == marker.phase:
            from aether.memory.adaptation import complete_phase  # seldom needed

            done = complete_phase(documents, marker.phase, now=now, new_id=new_id)
            return done._replace(result=True)
        if marker.action == "start" and running is None and marker.phase not in status["phases_completed"]:
            started = phases.start_phase(colony, pheromones, marker.phase, now=now, name=marker.name or None)
            return started._replace(result=False)
    return Change({}, result=False)
