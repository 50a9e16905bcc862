"""Promotion: what sessions say with weight, or say again and again, becomes a pattern.

A statement is promoted when it is a high-value item with a relevance above ``HIGH_RELEVANCE``, or when at
least ``REPEATED_SESSIONS`` distinct sessions say the same anywhere among their high-value items, decisions
and outcomes. Of several wordings the one that most sessions agree with is kept, among equals the one
said last. The laws: promoting twice changes nothing; what aether injected itself never counts; a
pattern that exists is never made again, also when the sessions that showed it are gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether.memory.links import NewId
from aether.memory.patterns import REPEATED_SESSIONS, Statement, Support, castes, matching, supported
from aether.shapes import Change, JsonObject, Pattern
from aether.text.classify import bare
from aether.text.cleaning import without_injected
from aether.text.patterns import lazy
from aether.text.similarity import backers, gist, index
from aether.text.words import sentences

# requirements/004: relevance above which one session is enough.
HIGH_RELEVANCE = 0.8


# Files touched and commands run again are work, not a regularity of it.
WORK_TYPES = frozenset({"code_change", "command", "error", "code_snippet"})
# A longer entry is data.
MOST_PARTS = 40


# What an agent says of itself on the way ("I have all I need") is the same in every session.
_OF_ITSELF = lazy(
    r"(?:i|i['’](?:m|ve|ll|d)|let me)\b(?! (?:decided|chose|prefer|always|never)\b)", re.IGNORECASE
)


class Repeated(NamedTuple):
    """A statement that several sessions make."""

    statement: str
    sessions: list[str]
    """Ids of the distinct sessions, oldest first."""
    wordings: list[str]


def promote(
    memory: JsonObject, *, now: datetime, new_id: NewId, sessions: Collection[str] | None = None
) -> Change:
    """Return the change that promotes what deserves it; its result is a `Promotion`.

    `sessions` limits what is looked at to the sessions with these ids; by default all are.
    """
    statements = [
        each
        for each in _statements(memory)
        if sessions is None or each.session_id in sessions or each.link_to in sessions
    ]
    patterns: list[Pattern] = memory["long_term_memory"]["patterns"]
    known = index(pattern["pattern"] for pattern in patterns)
    gains: dict[int, list[Statement]] = {}
    rest: list[Statement] = []
    for statement in statements:
        at = matching(statement.text, statement.session_id, patterns, known)
        if at is None:
            rest.append(statement)
        else:
            gains.setdefault(at, []).append(statement)
    supports = [Support(gained, at) for at, gained in sorted(gains.items())]
    supports += [Support(sorted(group, key=_order), wording=group[0].text) for group in _groups(rest)]
    return supported(memory, supports, now=now, new_id=new_id)


def detect(memory: JsonObject) -> list[Repeated]:
    """Return what at least ``REPEATED_SESSIONS`` distinct sessions say, promoted or not, most repeated first."""
    found: list[Repeated] = []
    for group in _groups(list(_statements(memory))):
        ordered = sorted(group, key=_order)
        sessions = list(dict.fromkeys(each.session_id for each in ordered))
        if len(sessions) >= REPEATED_SESSIONS:
            found.append(
                Repeated(group[0].text, sessions, list(dict.fromkeys(each.text for each in ordered)))
            )
    return sorted(found, key=lambda each: -len(each.sessions))


def _statements(memory: JsonObject) -> Iterator[Statement]:
    """Yield what the sessions say, oldest session first, without what aether injected."""
    sessions = memory["short_term_memory"]["sessions"]
    by_time = sorted(
        enumerate(sessions), key=lambda numbered: (str(numbered[1]["compressed_at"]), numbered[0])
    )
    order = 0
    for at, session in by_time:
        for entry, text, relevance in _said(session):
            said = bare(without_injected(text))
            if gist(said).weights:
                yield Statement(
                    said,
                    at,
                    session["session_id"],
                    session["id"],
                    session.get("phase"),
                    castes(session, entry),
                    relevance,
                    order,
                )
                order += 1


def _said(session: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, float]]:
    """Yield entry, text and relevance; a session of the original format may lack any of the lists."""
    for entry in session.get("high_value_items") or []:
        relevance = float(entry.get("relevance_score") or 0.0)
        if not entry.get("injected") and (relevance > HIGH_RELEVANCE or entry.get("type") not in WORK_TYPES):
            content = str(entry.get("content") or "")
            yield entry, content, relevance
            # What an entry says among other things is evidence too; by itself it was not of high relevance.
            parts = sentences(content)
            yield from ((entry, part, 0.0) for part in parts[:MOST_PARTS] if len(parts) > 1)
    for entry in session.get("key_decisions") or []:
        yield entry, str(entry.get("decision") or ""), 0.0
    for entry in session.get("outcomes") or []:
        yield entry, str(entry.get("result") or ""), 0.0


def _order(statement: Statement) -> int:
    return statement.order


def _deserves(unit: list[Statement], group: list[Statement]) -> bool:
    """Return whether `group`, worded by `unit`, is repeated often enough or its wording has weight by itself."""
    repeated = len({each.session_id for each in group}) >= REPEATED_SESSIONS
    return _weighty(unit) or (repeated and not _OF_ITSELF.match(unit[-1].text))


def _weighty(unit: list[Statement]) -> bool:
    return any(each.relevance > HIGH_RELEVANCE for each in unit)


def _groups(statements: list[Statement]) -> Iterator[list[Statement]]:
    """Yield the statements that say the same, the one that words it best first.

    A statement leads those that say the same as itself, alone or among other things, not those that are the same as one of them, so
    that meaning cannot drift along a chain. Only a group that deserves promotion takes its members away.
    """
    by_words: dict[str, list[Statement]] = {}
    for statement in statements:
        by_words.setdefault(gist(statement.text).plain, []).append(statement)
    units = list(by_words.values())
    found = index(unit[-1].text for unit in units)
    near = [backers(unit[-1].text, found) for unit in units]
    agreeing = [len({one.session_id for at in ats for one in units[at]}) for ats in near]
    taken: set[int] = set()
    for at in sorted(
        range(len(units)), key=lambda at: (-agreeing[at], not _weighty(units[at]), -units[at][-1].order)
    ):
        if at in taken:
            continue
        members = [other for other in near[at] if other not in taken]
        group = [
            units[at][-1],
            *(one for other in members for one in units[other] if one is not units[at][-1]),
        ]
        if _deserves(units[at], group):
            taken.update(members)
            yield group
