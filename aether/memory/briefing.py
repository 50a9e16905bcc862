"""Briefing: what a model is told of its memory when a session, a sub-agent or a summary begins.

A briefing is one marked block of dated lines: data, never instructions. Guaranteed: the goal, what is protected
and the constraints come first and are never left out for anything else; the block keeps within its budget and
within what the host passes on; the same memory at the same time gives the same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from aether import clock
from aether.memory import brief_lines, brief_work
from aether.memory.brief_layout import Share, fitted, laid_out, ranked
from aether.memory.brief_lines import Line, newest_items, newest_sessions
from aether.memory.brief_merge import merged
from aether.memory.marking import block, neutral
from aether.shapes import Counter

# The host saves a longer hook output to a file and shows 2 KB of it (10,000, facts of Claude Code); what it wraps
# around the block needs room too.
MOST_CHARS = 9_000
STEERING_CHARS = 4_000
# The newest of each section; more were never read.
_LOOKED_AT = 200
RESUMED = frozenset({"resume", "fork"})

HINT = 'Newest first; where two disagree, the newer holds. More: `aether recall "WORDS"`, or the MCP tool `recall`.'
_STEERING = "Keep this in the summary, names, paths and commands word for word. It is what the project's memory (aether) holds:"

# What comes first whatever the occasion: these ranks are below those of all else.
_FIRST = {
    "goal": Share(-4, 0, 2),
    "protected": Share(-3, 0, _LOOKED_AT),
    "rules": Share(-2, 0, _LOOKED_AT),
    "signals": Share(-1, 0, 12),
}
# At a start it counts where the work stands; after a compaction, what a summary loses: errors, paths, commands, reasons.
_START = _FIRST | {
    "open": Share(0, 2, 6),
    "asked": Share(0, 4, 4),
    "stands": Share(1, 8, 2),
    "decided": Share(1, 2, 10),
    "files": Share(2, 1, 12),
    "solved": Share(4, 4, 4),
    "before": Share(3, 6, 3),
    "noted": Share(6, 4, 4),
    "learned": Share(5, 4, 5),
    "ran": Share(8, 4, 4),
}
_COMPACT = _FIRST | {
    "open": Share(0, 1, 10),
    "asked": Share(0, 2, 14),
    "files": Share(1, 0.5, 40),
    "decided": Share(1, 1.5, 16),
    "stands": Share(2, 10, 3),
    "ran": Share(3, 2, 10),
    "solved": Share(4, 2, 8),
    "noted": Share(8, 4, 4),
    "learned": Share(9, 4, 4),
    "before": Share(12, 6, 2),
}
_AGENT = _FIRST | {"did": Share(0, 1, 5), "open": Share(2, 2, 3), "files": Share(4, 1, 5)}


def briefing(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", wide: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return what matters now as one `<aether-memory …>` block, or "" where there is nothing to say.

    `occasion` is the source of the session: startup, clear, compact, resume or fork. With `since`, resuming tells
    only what came after that time. `wide` are the documents of a home whose rules hold in all projects.

    Raises:
        InvalidInput: `since` is not a time.
    """
    found = _gathered(documents, now=now, wide=wide)
    if since and occasion in RESUMED:
        moment = clock.stamp(clock.parse(since, where="since"))
        found = {section: [line for line in lines if line.at > moment] for section, lines in found.items()}
    shares = _COMPACT if occasion == "compact" else _START
    return _block(found, shares, occasion=occasion, now=now, count=count, budget=budget)


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int
) -> str:
    """Return what a sub-agent of `caste` needs to know, as one block, or ""."""
    found = _gathered(documents, now=now, caste=caste)
    return _block(found, _AGENT, occasion="subagent", now=now, count=count, budget=budget)


def steering(documents: Mapping[str, Any], *, now: datetime) -> str:
    """Return, as plain text for a summariser, what its summary must keep, or ""."""
    found = _gathered(documents, now=now)
    root = brief_work.root_of(found["files"])

    def make(lines: Sequence[Line]) -> str:
        return "\n".join([_STEERING, *map(neutral, laid_out(lines, now=now, root=root))])

    return fitted(ranked(found, _COMPACT), make, lambda text: len(text) < STEERING_CHARS)


def _block(
    found: Mapping[str, Sequence[Line]], shares: Mapping[str, Share], *, occasion: str, now: datetime, count: Counter,
    budget: int,
) -> str:  # fmt: skip
    root = brief_work.root_of(found["files"])

    def make(lines: Sequence[Line]) -> str:
        return block([*laid_out(lines, now=now, root=root), HINT], occasion=occasion, at=clock.stamp(now))

    def fits(text: str) -> bool:
        return len(json.dumps(text)) <= MOST_CHARS and count(text) <= budget

    return fitted(ranked(found, shares), make, fits)


def _gathered(
    documents: Mapping[str, Any],
    *,
    now: datetime,
    wide: Mapping[str, Any] | None = None,
    caste: str | None = None,
) -> dict[str, list[Line]]:
    """Return all that could be told, by section, the newest first, nothing twice."""
    memory = documents["memory"]
    sessions = newest_sessions(memory)
    items = [*newest_items(memory), *brief_work.rested(sessions)]
    rules = [*brief_lines.rules(memory), *brief_lines.learned(memory)]
    if wide is not None:
        rules += [
            *brief_lines.rules(wide["memory"], wide=True),
            *brief_lines.learned(wide["memory"], wide=True),
        ]
    found = {
        "goal": [*brief_lines.goal(documents)],
        "protected": _distinct(brief_lines.protected(memory)),
        "rules": _distinct((line for line in rules if line.section == "rules"), replacing=True),
        "noted": _distinct(line for line in rules if line.section == "noted"),
        "learned": _distinct(line for line in rules if line.section == "learned"),
        "signals": [*brief_lines.felt(documents, now=now, caste=caste)],
        "open": _distinct(brief_work.still_open(items)),
        "asked": _distinct(brief_work.asked(items)),
        "stands": _distinct(brief_work.stands(items)),
        "decided": _distinct(brief_work.decided(items, sessions), replacing=True),
        "files": brief_work.files(items),
        "ran": brief_work.ran(items),
        "solved": _distinct(brief_work.solved(items)),
        "before": _distinct(brief_work.before(sessions)),
    }
    if caste is not None:
        found["did"] = _distinct(brief_work.done_by(items, caste))
    return found


def _distinct(lines: Iterable[Line], *, replacing: bool = False) -> list[Line]:
    return merged(
        [line for line, _ in zip(lines, range(_LOOKED_AT), strict=False) if line.text], replacing=replacing
    )
