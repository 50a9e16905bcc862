"""Lines: what stands in memory beside the work itself, as dated lines: the goal, what must hold, what is signalled.

What counts as a rule is decided by who can have said it. Capture types as `constraint` or `preference` only what a
person wrote; a sub-agent's item of that type, and one that a model architect typed so, is *noted*, not a rule;
what long-term memory learned says that it was learned. What aether injected is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.memory import signals
from aether.memory.items import items_of
from aether.memory.notes import STANDING, noted_by
from aether.memory.sessions import EXTRACTIVE, sessions_of
from aether.shapes import Item
from aether.text.cleaning import without_injected

# Characters: a rule is a sentence, a request or result is told by its head and tail.
RULE_CHARS = 300
PROTECTED_CHARS = 600
TOLD_CHARS = 240
# What is older may well be over, and says so.
OLD_DAYS = 30
# `clock.stamp` writes this many characters.
_STAMP_CHARS = 27
_TOLD_SIGNALS = ("FOCUS", "REDIRECT", "FEEDBACK", "CHECKIN")


class Line(NamedTuple):
    """One line of a briefing."""

    section: str
    text: str
    at: str = ""
    """When it was said, as `clock.stamp` writes it; empty where nobody knows."""
    note: str = ""


def flat(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` characters, without what aether itself had put into it.

    >>> flat("Use **SQLite**  for now", 100), flat("Use SQLite for now", 14)
    ('Use SQLite for now', 'Use SQLite...')
    """
    whole = " ".join(without_injected(text).replace("**", "").split())
    if len(whole) <= most:
        return whole
    # Between words, where one ends near by, so that no name is torn.
    space = whole.rfind(" ", most // 3, most - 2)
    # In ASCII: the counter prices that in a tenth of the time.
    return whole[: space if space > 0 else most - 3].rstrip(" ,;:.") + "..."


def stamp_of(text: object) -> str:
    """Return the time in `text` as `clock.stamp` writes it, or "" where it is none."""
    if isinstance(text, str) and len(text) == _STAMP_CHARS and text.endswith("Z"):
        return text
    try:
        return clock.stamp(clock.parse(str(text)))
    except InvalidInput:
        return ""


def day_of(at: str) -> str:
    """Return the day of a stamp."""
    return at[:10]


def when(at: str, *, now: datetime) -> list[str]:
    """Return the day of a stamp and, where that is great, its age; nothing where nobody knows when it was."""
    if not at:
        return []
    age = (now - clock.parse(at)).days
    return [day_of(at), f"{age} days ago"] if age > OLD_DAYS else [day_of(at)]


def written(line: Line, *, now: datetime) -> str:
    """Return `line` as it is told: its day, its age where that is great, its text.

    >>> written(Line("rules", "Never push.", "2026-01-01T00:00:00.000000Z"), now=datetime(2026, 3, 1, tzinfo=clock.parse("2026-01-01").tzinfo))
    '- 2026-01-01 (59 days ago) Never push.'
    """
    day, *age = when(line.at, now=now) or [""]
    note = f" ({line.note})" if line.note else ""
    return " ".join(filter(None, ["-", day, *(f"({each})" for each in age), line.text])) + note


def newest_items(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items that somebody said or did, the one noted last first."""
    told = [_dated(item) for item in items_of(memory) if not item["metadata"].get("injected")]
    # Sorting keeps the order of equals, so that of two items of one instant the one added later is first.
    told.reverse()
    return sorted(told, key=lambda item: item["metadata"]["timestamp"], reverse=True)


def _dated(item: Item) -> Item:
    """Return `item` with its time as `clock.stamp` writes it: people write documents, too."""
    at = stamp_of(item["metadata"]["timestamp"])
    if at == item["metadata"]["timestamp"]:
        return item
    return {**item, "metadata": {**item["metadata"], "timestamp": at}}


def newest_sessions(memory: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the sessions with their times, the newest first."""
    found = [(stamp_of(session["compressed_at"]), session) for session in sessions_of(memory)]
    found.reverse()
    return sorted(found, key=lambda each: each[0], reverse=True)


def goal(documents: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the goal of the colony and the phase it is in."""
    colony = documents["COLONY_STATE"]
    said = colony["goal"] or next(_goals(documents["pheromones"]), "")
    if said:
        yield Line("goal", f"Goal: {flat(said, RULE_CHARS)}")
    status = colony["colony_status"]
    phase = status["current_phase"]
    if phase is not None:
        planned: Mapping[str, Any] = next(
            (each for each in colony["phases"]["roadmap"] if each["phase"] == phase), {}
        )
        named = ", ".join(
            flat(planned[field], TOLD_CHARS) for field in ("name", "goal") if planned.get(field)
        )
        moved = stamp_of(colony["state_machine"]["last_transition"])
        yield Line("goal", f"Phase {phase} is {status['state']}" + (f": {named}" if named else ""), moved)


def _goals(pheromones: Mapping[str, Any]) -> Iterator[str]:
    for signal in reversed(pheromones["active_pheromones"]):
        if signal["type"].upper() == "INIT":
            yield str(signal["metadata"].get("context", ""))


def protected(memory: Mapping[str, Any]) -> Iterator[Line]:
    """Yield what is marked protected, in working memory and in sessions."""
    for item in newest_items(memory):
        if item["metadata"].get("protected"):
            yield Line("protected", flat(item["content"], PROTECTED_CHARS), item["metadata"]["timestamp"])
    for at, session in newest_sessions(memory):
        for text in (session.get("metadata") or {}).get("protected", []):
            yield Line("protected", flat(text, PROTECTED_CHARS), at)


def rules(memory: Mapping[str, Any], *, wide: bool = False) -> Iterator[Line]:
    """Yield the constraints and preferences, newest first, then what was learned; `wide` marks those of all projects."""
    note = "all projects" if wide else ""
    for item in newest_items(memory):
        metadata = item["metadata"]
        if item["type"] in STANDING and not metadata.get("protected"):
            said = Line("rules", flat(item["content"], RULE_CHARS), metadata["timestamp"], note)
            by = noted_by(item)
            yield said._replace(section="noted", note=by) if by else said
    for at, session in newest_sessions(memory):
        known = session.get("metadata") or {}
        who = (known.get("architect") or {}).get("backend") or "an architect"
        for entry in session.get("high_value_items") or []:
            if entry.get("type") in STANDING and not entry.get("injected"):
                said = Line("rules", flat(entry["content"], RULE_CHARS), at, note)
                noted = any(text in entry["content"] for text in known.get("noted", []))
                trusted = not noted and (who == EXTRACTIVE or entry.get("carried"))
                by = "" if noted else f"as {who} summed it up"
                yield said if trusted else said._replace(section="noted", note=by)


def learned(memory: Mapping[str, Any], *, wide: bool = False) -> Iterator[Line]:
    """Yield the patterns of long-term memory, the most certain first; those that are rules go with the rules."""
    patterns = memory["long_term_memory"]["patterns"]
    for pattern in sorted(
        patterns, key=lambda each: (each["confidence"], stamp_of(each["last_seen"])), reverse=True
    ):
        binds = pattern["type"] in STANDING and _is_rule(pattern["pattern"])
        if binds or not wide:
            times = f"learned, {pattern['occurrences']}x" + (", all projects" if wide else "")
            section = "rules" if binds else "learned"
            yield Line(section, flat(pattern["pattern"], RULE_CHARS), stamp_of(pattern["last_seen"]), times)


def _is_rule(text: str) -> bool:
    from aether.text.classify import rule  # a young memory has learned nothing yet

    return rule(text) is not None


def felt(documents: Mapping[str, Any], *, now: datetime, caste: str | None = None) -> Iterator[Line]:
    """Yield the signals that `caste` feels now, strongest first."""
    for signal in signals.active(documents["pheromones"], now=now, caste=caste, types=_TOLD_SIGNALS):
        said = flat(str(signal["metadata"].get("context", "")), TOLD_CHARS)
        strength = f"{signal['effective_strength']:.2f}"
        yield Line("signals", f"{signal['type']} {strength}: {said}", stamp_of(signal["created_at"]))
