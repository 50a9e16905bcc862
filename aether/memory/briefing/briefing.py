"""Briefing: the extract of memory that a model gets at the start of a session, a sub-agent or a summary.

A briefing is one marked block of dated lines: data, never instructions. Guaranteed: the goal, protected content and
constraints come first and are never left out for other lines; the block keeps within its budget and the host's limit;
the same memory at the same time gives the same text. The lines are made in `sections`, laid out in `block`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from aether import clock
from aether.memory.briefing import sections
from aether.memory.briefing.block import Line, Share, lay_out, longest_fit, rank, without_repeats
from aether.memory.briefing.sections import newest_items, newest_sessions
from aether.memory.items import memory_block
from aether.text.tags import neutralize
from aether.types import Counter

# Claude Code saves a longer hook output to a file and shows 2 KB of it (its limit is 10,000); the wrapping around the
# block needs room too.
MOST_CHARS = 9_000
STEERING_CHARS = 4_000
# Lines read of each section, the newest: more than a block ever showed.
_LOOKED_AT = 200
RESUMED = frozenset({"resume", "fork"})

HINT = 'Newest first; where two disagree, the newer holds. More: `aether recall "WORDS"`, or the MCP tool `recall`.'
_STEERING = "Keep this in the summary, names, paths and commands word for word. It is what the project's memory (aether) holds:"

# These come first on every occasion: their ranks are below those of all other sections.
_FIRST = {
    "goal": Share(-4, 0, 2),
    "protected": Share(-3, 0, _LOOKED_AT),
    "rules": Share(-2, 0, _LOOKED_AT),
    "signals": Share(-1, 0, 12),
}
# A start needs the state of the work; a compaction needs the details that a summary loses: errors, paths, commands, reasons.
_START = _FIRST | {
    "open": Share(0, 2, 4),
    "requests": Share(0, 6, 2),
    "results": Share(1, 8, 2),
    "decisions": Share(1, 2, 6),
    "files": Share(2, 1, 6),
    "earlier": Share(3, 6, 2),
    "learned": Share(5, 4, 3),
    "solutions": Share(6, 4, 2),
    "noted": Share(6, 4, 2),
}
# Share of the budget for all but the rules: there is no request yet, and anything else can be recalled.
START_SHARE = 0.5
_COMPACT = _FIRST | {
    "open": Share(0, 1, 10),
    "requests": Share(0, 2, 14),
    "files": Share(1, 0.5, 40),
    "decisions": Share(1, 1.5, 16),
    "results": Share(2, 10, 3),
    "commands": Share(3, 2, 10),
    "solutions": Share(4, 2, 8),
    "noted": Share(8, 4, 4),
    "learned": Share(9, 4, 4),
    "earlier": Share(12, 6, 2),
}
_AGENT = _FIRST | {"caste": Share(0, 1, 5), "open": Share(2, 2, 3), "files": Share(4, 1, 5)}


def briefing(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return the relevant part of memory as one `<aether-memory …>` block, or "" without any.

    `occasion` is the source of the session: startup, clear, compact, resume or fork. With `since`, resuming includes
    only lines after that time. Paths below `root` are relative to it. `wide` are the documents of a home whose rules
    hold in all projects.

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
    # Both are fronts of the same order.
    return max(texts, key=len)


def standing(documents: Mapping[str, Any], *, now: datetime) -> dict[str, int]:
    """Return how many rules, protected texts included, and decisions a briefing has to choose from."""
    found = _gather(documents, {name: Share(0, 0, _LOOKED_AT) for name in _STANDING}, now=now)
    return {"rules": len(found["protected"]) + len(found["rules"]), "decisions": len(found["decisions"])}


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = ""
) -> str:
    """Return the briefing of a sub-agent of `caste` as one block, or ""."""
    found = _gather(documents, _AGENT, now=now, root=root, caste=caste)
    return _block(rank(found, _AGENT), occasion="subagent", now=now, count=count, budget=budget)


def steering(documents: Mapping[str, Any], *, now: datetime, root: str = "") -> str:
    """Return, as plain text for a summariser, the content that its summary must keep, or ""."""
    lines = rank(_gather(documents, _COMPACT, now=now, root=root), _COMPACT)
    base = _base(lines)

    def make(some: Sequence[Line]) -> str:
        return "\n".join([_STEERING, neutralize("\n".join(lay_out(some, now=now, root=base)))])

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
    """Return the lines of each section with a share, the newest first, without repetitions."""
    memory = documents["memory"]
    sessions = newest_sessions(memory)
    items = [*sections.with_short_paths([*newest_items(memory), *sections.session_items(sessions)], root)]
    rules = [*sections.rules(memory), *sections.learned_patterns(memory)]
    if wide is not None:
        rules += sections.rules(wide["memory"], wide=True)
        rules += sections.learned_patterns(wide["memory"], wide=True)
    make: dict[str, Callable[[], Iterable[Line]]] = {
        "goal": lambda: sections.goal(documents),
        "protected": lambda: sections.protected(memory),
        "rules": lambda: (line for line in rules if line.section == "rules"),
        "noted": lambda: (line for line in rules if line.section == "noted"),
        "learned": lambda: (line for line in rules if line.section == "learned"),
        "signals": lambda: sections.active_signals(documents, now=now, caste=caste),
        "open": lambda: sections.open_problems(items),
        "requests": lambda: sections.requests(items),
        "results": lambda: sections.results(items),
        "decisions": lambda: sections.decisions(items, sessions),
        "files": lambda: sections.changed_files(items, root=root, foremost=shares is not _COMPACT),
        "commands": lambda: sections.commands_run(items),
        "solutions": lambda: sections.solutions(items, otherwise=shares is _START),
        "earlier": lambda: sections.earlier_work(sessions),
        "caste": lambda: sections.done_by_caste(items, caste or ""),
    }
    found: dict[str, list[Line]] = {}
    for section, share in shares.items():
        lines = make[section]()
        if section not in _DISTINCT:
            read = (line for line, _ in zip(lines, range(_LOOKED_AT), strict=False) if line.text)
            lines = without_repeats(read, most=share.most, replacing=section in _REPLACING)
        found[section] = [*lines]
    return found


_STANDING = ("protected", "rules", "decisions")
# Sections without repetitions.
_DISTINCT = frozenset({"goal", "signals", "files", "commands"})
# Sections in which a newer line replaces one that it contradicts.
_REPLACING = frozenset({"rules", "decisions"})
