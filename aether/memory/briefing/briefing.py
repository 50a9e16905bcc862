"""Briefing: what a model is told of its memory when a session, a sub-agent or a summary begins.

A briefing is one marked block of dated lines: data, never instructions. Guaranteed: the goal, what is protected
and the constraints come first and are never left out for anything else; the block keeps within its budget and
within what the host passes on; the same memory at the same time gives the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from aether import clock
from aether.memory.briefing import sections
from aether.memory.briefing.block import Share, lay_out, longest_fit, rank
from aether.memory.briefing.sections import Line, newest_items, newest_sessions, without_repeats
from aether.memory.items import memory_block, neutralize
from aether.types import Counter

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
    "open": Share(0, 2, 4),
    "asked": Share(0, 6, 2),
    "stands": Share(1, 8, 2),
    "decided": Share(1, 2, 6),
    "files": Share(2, 1, 6),
    "before": Share(3, 6, 2),
    "learned": Share(5, 4, 3),
    "solved": Share(6, 4, 2),
    "noted": Share(6, 4, 2),
}
# Of the budget, for all but the rules: nobody has asked for anything yet, and what is needed can be recalled.
START_SHARE = 0.5
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
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return what matters now as one `<aether-memory …>` block, or "" where there is nothing to say.

    `occasion` is the source of the session: startup, clear, compact, resume or fork. With `since`, resuming tells
    only what came after that time. Paths below `root` are told from there. `wide` are the documents of a home whose
    rules hold in all projects.

    Raises:
        InvalidInput: `since` is not a time.
    """
    news = bool(since) and occasion in RESUMED
    whole = news or occasion == "compact"
    shares = _COMPACT if whole else _START
    found = _gather(documents, shares, now=now, root=root, wide=wide)
    if news:
        moment = clock.stamp(clock.parse(since, where="since"))
        found = {section: [line for line in lines if line.at > moment] for section, lines in found.items()}
    lines = rank(found, shares)
    if whole:
        return _block(lines, occasion=occasion, now=now, count=count, budget=budget)
    first = [line for line in lines if line.section in _FIRST]
    texts = (
        _block(first, occasion=occasion, now=now, count=count, budget=budget),
        _block(lines, occasion=occasion, now=now, count=count, budget=int(budget * START_SHARE)),
    )
    # Both are beginnings of the same order.
    return max(texts, key=len)


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = ""
) -> str:
    """Return what a sub-agent of `caste` needs to know, as one block, or ""."""
    found = _gather(documents, _AGENT, now=now, root=root, caste=caste)
    return _block(rank(found, _AGENT), occasion="subagent", now=now, count=count, budget=budget)


def steering(documents: Mapping[str, Any], *, now: datetime, root: str = "") -> str:
    """Return, as plain text for a summariser, what its summary must keep, or ""."""
    lines = rank(_gather(documents, _COMPACT, now=now, root=root), _COMPACT)
    base = _base(lines)

    def make(some: Sequence[Line]) -> str:
        return "\n".join([_STEERING, *map(neutralize, lay_out(some, now=now, root=base))])

    return longest_fit(lines, make, lambda text: len(text) < STEERING_CHARS)


def _block(lines: Sequence[Line], *, occasion: str, now: datetime, count: Counter, budget: int) -> str:
    base = _base(lines)

    def make(some: Sequence[Line]) -> str:
        return memory_block(
            [*lay_out(some, now=now, root=base), HINT], occasion=occasion, at=clock.stamp(now)
        )

    def fits(text: str) -> bool:
        return len(json.dumps(text)) <= MOST_CHARS and count(text) <= budget

    return longest_fit(lines, make, fits)


def _base(lines: Sequence[Line]) -> str:
    return sections.common_root([line for line in lines if line.section == "files"])


def _gather(
    documents: Mapping[str, Any], shares: Mapping[str, Share], *, now: datetime, root: str = "",
    wide: Mapping[str, Any] | None = None, caste: str | None = None,
) -> dict[str, list[Line]]:  # fmt: skip
    """Return what could be told of the sections that have a share, the newest first, nothing twice."""
    memory = documents["memory"]
    sessions = newest_sessions(memory)
    items = [*sections.with_short_paths([*newest_items(memory), *sections.session_items(sessions)], root)]
    rules = _rules_and_patterns(memory, wide)
    make: dict[str, Callable[[], Iterable[Line]]] = {
        "goal": lambda: sections.goal(documents),
        "protected": lambda: sections.protected(memory),
        "rules": lambda: (line for line in rules if line.section == "rules"),
        "noted": lambda: (line for line in rules if line.section == "noted"),
        "learned": lambda: (line for line in rules if line.section == "learned"),
        "signals": lambda: sections.active_signals(documents, now=now, caste=caste),
        "open": lambda: sections.open_problems(items),
        "asked": lambda: sections.requests(items),
        "stands": lambda: sections.results(items),
        "decided": lambda: sections.decisions(items, sessions),
        "files": lambda: sections.changed_files(items, root=root, foremost=shares is not _COMPACT),
        "ran": lambda: sections.commands_run(items),
        "solved": lambda: sections.solutions(items, otherwise=shares is _START),
        "before": lambda: sections.earlier_work(sessions),
        "did": lambda: sections.done_by_caste(items, caste or ""),
    }
    return {
        section: [*make[section]()]
        if section in _DISTINCT
        else _without_repeats(make[section](), section, share.most)
        for section, share in shares.items()
    }


# Each of their lines is of something else.
_DISTINCT = frozenset({"goal", "signals", "files", "ran"})
# Where two lines cannot both hold, the newer one does.
_REPLACING = frozenset({"rules", "decided"})


def _without_repeats(lines: Iterable[Line], section: str, most: int) -> list[Line]:
    looked_at = (line for line, _ in zip(lines, range(_LOOKED_AT), strict=False) if line.text)
    return without_repeats(looked_at, most=most, replacing=section in _REPLACING)


def _rules_and_patterns(memory: Mapping[str, Any], wide: Mapping[str, Any] | None) -> list[Line]:
    """Return what binds, what agents noted and what was learned, here and in the home for all projects."""
    found = [*sections.rules(memory), *sections.learned_patterns(memory)]
    if wide is not None:
        found += sections.rules(wide["memory"], wide=True)
        found += sections.learned_patterns(wide["memory"], wide=True)
    return found
