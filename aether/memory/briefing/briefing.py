"""Briefing: the extract of memory that a model gets at the start of a session, a sub-agent or a summary.

A briefing is one marked block of dated lines: data, never instructions. Its sections are rules, state, next, decisions, open,
requests, then facts; in each what was noted on purpose comes first, then the proven statements of sessions, then the floor. It
repeats nothing, keeps within its budget and the host's limit, and the same memory at the same time gives the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice, zip_longest
from math import ceil
from typing import TYPE_CHECKING, Any, get_args

from aether import clock
from aether.memory.briefing import sections as making
from aether.memory.briefing.kept import known_items, revoked_in
from aether.memory.briefing.sections import Line, Source, of_conversation
from aether.text.tags import UNCONFIRMED, memory_block, neutralize
from aether.text.words import STOPWORDS, words

if TYPE_CHECKING:
    from aether.memory.briefing.sections import Kind
    from aether.types import Counter

    Check = Callable[[Sequence[Line]], list[Line | None]]

# Whatever the setting allows: anything else can be recalled.
MOST_TOKENS = 700
# Claude Code saves a longer hook output to a file and shows 2 KB of it (its limit is 10,000); the wrapping around the
# block needs room too.
MOST_CHARS = 9_000
# The host prints the instructions for its summary on the user's screen, and nothing can suppress it. After the
# compaction the model gets a briefing anyway.
STEERING_CHARS = 1_500
RESUMED = frozenset({"resume", "fork"})
# Of the explicit lines of a kind that may be many, as many come before the state of the work, the others after it.
FOREMOST = 10
# A line further down would fill a gap at best, for there is room for some dozens: a person waits while it is made.
MOST_LINES = 200
# More characters than this many a token do not fit, without counting.
MOST_CHARS_OF_TOKEN = 16
# A line with this share of its words in a line above says nothing new.
REPEATED_SHARE = 0.8
# Fewer words are in a longer line by chance.
LEAST_COMPARED = 3
# Lines of a repository: a person who confirms the home gets all.
MOST_UNCONFIRMED = 10
# A day this long ago is followed by its age.
OLD_DAYS = 30

# What is left out makes room for lines that are to be checked as well.
CHECK_ROUNDS = 3

HINT = "More: `aether recall`."
_STEERING = "Keep this in the summary, names, paths and commands word for word. It is what the project's memory (aether) holds:"

# In the order of the block. A line may have a heading of its own within its kind.
HEADINGS: dict[Kind, str] = {
    "rule": "Rules", "state": "State", "next": "Next", "decision": "Decisions", "open": "Open", "request": "Requests of the person",
    "outcome": "Results", "lesson": "Notes", "file": "Files changed", "command": "Branch and commands",
    "repository": f"{UNCONFIRMED.capitalize()} (the user can: `aether trust`)",
}  # fmt: skip
_SOURCES: tuple[Source, ...] = get_args(Source)


def briefing(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None, session: str = "", check: Check | None = None,
) -> str:  # fmt: skip
    """Return the relevant part of memory as one `<aether-memory …>` block, or "" without any.

    `occasion` is the source of the session: startup, clear, compact, resume or fork. With `since`, resuming includes
    only lines after that time. Paths below `root` are relative to it. `wide` are the documents of a home whose rules
    hold in all projects. `session` is the conversation whose own work is shown; without it, the newest. `check` returns
    the lines that were chosen as they are to be given, None for one that is left out.

    Raises:
        InvalidInput: `since` is not a time.
    """
    lines = brief_lines(
        documents, occasion=occasion, now=now, count=count, budget=budget, since=since, root=root,
        wide=wide, session=session, check=check,
    )  # fmt: skip
    return block_of(lines, occasion=occasion, now=now)


def block_of(lines: Sequence[Line], *, occasion: str, now: datetime) -> str:
    """Return lines of a brief as its block, or "" without any."""
    return _block(lines, occasion=occasion, now=now) if lines else ""


def brief_lines(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None, session: str = "", check: Check | None = None,
) -> list[Line]:  # fmt: skip
    """Return the lines of `briefing`, in order of importance.

    Raises:
        InvalidInput: `since` is not a time.
    """
    in_context = occasion == "compact" and bool(session)
    lines = _lines(
        documents, now=now, root=root, wide=wide, session=session,
        only=occasion == "compact" or occasion in RESUMED, summary=not in_context, team=occasion == "compact",
    )  # fmt: skip
    if since and occasion in RESUMED:
        moment = clock.stamp(clock.parse(since, where="since"))
        lines = (line for line in lines if line.at > moment)
    return _checked(
        [*islice(lines, MOST_LINES)],
        check,
        partial(_fitting, occasion=occasion, now=now, count=count, budget=budget),
    )


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = "",
    session: str = "", check: Check | None = None,
) -> str:  # fmt: skip
    """Return the briefing of a sub-agent of `caste` as one block, or "".

    `session` is the conversation that started it, whose own work is shown; without it, the newest.
    """
    lines = agent_lines(
        documents, caste, now=now, count=count, budget=budget, root=root, session=session, check=check
    )
    return block_of(lines, occasion="subagent", now=now)


def agent_lines(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = "",
    session: str = "", check: Check | None = None,
) -> list[Line]:  # fmt: skip
    """Return the lines of `agent_brief`: notes and statements, the newest request, the changed files, and the results of its caste.

    Its own task is in its prompt; the request may name conditions of it.
    """
    lines = [*_lines(documents, now=now, root=root, session=session, only=True, caste=caste)]
    request = next((line for line in lines if line.source == "floor" and line.kind == "request"), None)
    chosen = [
        line
        for line in lines
        if line.source != "floor" or line is request or line.kind == "file" or line.heading == _CASTE
    ]
    return _checked(
        chosen, check, partial(_fitting, occasion="subagent", now=now, count=count, budget=budget)
    )


def steering(documents: Mapping[str, Any], *, now: datetime, root: str = "", session: str = "") -> str:
    """Return, as plain text for a summariser, what its summary of the conversation `session` must keep, or ""."""
    chosen: list[Line] = []
    lines = _lines(documents, now=now, root=root, session=session, only=True, summary=False)
    for line in islice(lines, MOST_LINES):
        if line.kind != "repository" and len(_steering_text([*chosen, line], now)) < STEERING_CHARS:
            chosen.append(line)
    return _steering_text(chosen, now) if chosen else ""


def in_force(
    documents: Mapping[str, Any], *, now: datetime, wide: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """Return how many rules and decisions a start of a session would show if there were room for all."""
    lines = _lines(documents, now=now, wide=wide, until=("rule", "decision"))
    kinds = [line.kind for line in lines if line.heading != making.SIGNALS]
    return {"rules": kinds.count("rule"), "decisions": kinds.count("decision")}


_CASTE = "What this caste did last in this project"


def _lines(
    documents: Mapping[str, Any], *, now: datetime, root: str = "", wide: Mapping[str, Any] | None = None,
    session: str = "", only: bool = False, caste: str | None = None, summary: bool = True, team: bool = False,
    until: Collection[Kind] = tuple(HEADINGS),
) -> Iterator[Line]:  # fmt: skip
    """Return all lines in the order of importance, without repetitions, which are looked for as they are asked for.

    With `only`, the floor is that of the conversation `session`, or empty. `summary` allows the host's summary, which is in the
    context of the session that it was made of. With `team`, the agents at work are listed. The last line is one of the kinds `until`.
    """
    memory = documents["memory"]
    items, ended = known_items(memory), revoked_in(memory)
    items = [item for item in items if item["id"] not in ended]
    explicit = [
        *making.goal_lines(documents), *(making.team_lines(documents, now=now) if team else ()), *making.note_lines(items), *making.protected_lines(memory), *_wide_lines(wide), *making.signal_lines(documents, now=now, caste=caste),
    ]  # fmt: skip
    newest, holding, decided = making.session_lines(memory)
    work = of_conversation(items, session) if session else []
    # What git says at a start is no work of the session that starts.
    if all(making.is_tree(item) for item in work) and not (only and session):
        work = making.newest_work(items)
    floor = making.floor(work, making.covered_ids(memory), summary=summary)
    castes = [line._replace(heading=_CASTE) for line in making.caste_lines(items, caste)] if caste else []
    notes, foremost, older = _split(explicit)
    ordered = [
        *foremost, *newest, *holding, *floor.request, *floor.message, *castes, *floor.answers, *floor.plan, *notes[:FOREMOST], *older, *decided, *floor.checks, *floor.requests,
        # One of each in turn: none crowds out the others.
        *_in_turn(
            floor.results, floor.runs, floor.files, floor.messages, notes[FOREMOST:],
            making.pattern_lines(memory), making.earlier_lines(memory),
        ),
    ]  # fmt: skip
    below = re.compile(rf"(?<![\w.~/-]){re.escape(root.rstrip('/'))}/") if root.count("/") > 1 else None
    senders = documents.get("senders", {})
    sent = [_with_sender(line, senders) for line in ordered] if senders else ordered
    by_kind = _explicit_first([line for line in sent if line.text])
    while by_kind and by_kind[-1].kind not in until:
        by_kind.pop()
    lines = _own_first(_without_repeats(by_kind), documents, wide)
    if below is None:
        return lines
    return (
        line if line.source == "explicit" else line._replace(text=below.sub("", line.text)) for line in lines
    )


def _own_first(
    lines: Iterator[Line], documents: Mapping[str, Any], wide: Mapping[str, Any] | None
) -> Iterator[Line]:
    """Return `lines` with those that came with the repository at the end, as its own: of no kind, and said by nobody.

    `documents["own"]` has the ids of the other entries; without it all are.
    """
    if "own" not in documents:
        return lines
    own = {*documents["own"], *(entry for line in _wide_lines(wide) for entry in line.ids)}
    groups: tuple[list[Line], list[Line]] = [], []
    for line in lines:
        is_own = bool(line.ids) and all({entry, entry.rsplit("/", 2)[0]} & own for entry in line.ids)
        groups[not is_own].append(line)
    foreign = [
        Line(
            "repository",
            f"{line.kind}: {making.one_line(line.text, making.LINE_CHARS)}",
            line.at,
            "",
            line.ids,
        )
        for line in groups[True][:MOST_UNCONFIRMED]
    ]
    return iter([*groups[False], *foreign])


def _with_sender(line: Line, senders: Mapping[str, str]) -> Line:
    """Return `line` with the other member of a shared colony who sent its entry, or the session of its statement."""
    entry = line.ids[0] if line.ids else ""
    sender = senders.get(entry) or senders.get(entry.rsplit("/", 2)[0])
    return (
        line._replace(
            note=", ".join(
                filter(None, (line.note, f"sent by {making.one_line(sender, making.SHORT_CHARS)}"))
            )
        )
        if sender
        else line
    )


def _wide_lines(wide: Mapping[str, Any] | None) -> Iterator[Line]:
    """Yield the rules that a person noted in a home of all projects."""
    if wide is not None:
        ended = revoked_in(wide["memory"])
        items = [item for item in known_items(wide["memory"]) if item["id"] not in ended]
        yield from (line for line in making.note_lines(items, "all projects") if line.kind == "rule")


def _split(explicit: Iterable[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """Return the notes that ask for nothing, what comes foremost, and the older decisions and requests of many."""
    notes, foremost, older = list[Line](), list[Line](), list[Line]()
    numbers = dict.fromkeys(HEADINGS, 0)
    for line in explicit:
        numbers[line.kind] += 1
        if line.kind in ("outcome", "lesson"):
            notes.append(line)
        elif line.kind in ("decision", "request") and numbers[line.kind] > FOREMOST:
            older.append(line)
        else:
            foremost.append(line)
    return notes, foremost, older


def _in_turn(*groups: Iterable[Line]) -> Iterator[Line]:
    return (line for turn in zip_longest(*groups) for line in turn if line is not None)


def _explicit_first(lines: Sequence[Line]) -> list[Line]:
    """Return `lines` in their order, but in the places of each kind the explicit ones first, then those of sessions."""
    by_source = sorted(lines, key=lambda line: _SOURCES.index(line.source))
    by_kind = {kind: iter([line for line in by_source if line.kind == kind]) for kind in HEADINGS}
    return [next(by_kind[line.kind]) for line in lines]


def _without_repeats(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield `lines` without those whose words are in a line above; of explicit ones only equal texts are repetitions."""
    texts: set[str] = set()
    # The lines above by each of their words, so that a line is compared with the few that share its rarest words.
    above: dict[str, list[frozenset[str]]] = {}
    for line in lines:
        text = " ".join(line.text.casefold().split())
        own_words = frozenset(words(line.text)) - STOPWORDS
        is_compared = line.source != "explicit" and len(own_words) >= LEAST_COMPARED
        if text in texts or (is_compared and _is_contained(own_words, above)):
            continue
        texts.add(text)
        for word in own_words:
            above.setdefault(word, []).append(own_words)
        yield line


def _is_contained(own_words: frozenset[str], above: Mapping[str, Sequence[frozenset[str]]]) -> bool:
    """Return whether a line above has enough of `own_words`; it then has one of any words that are more than may be missing."""
    missing = len(own_words) - ceil(REPEATED_SHARE * len(own_words))
    rarest = sorted((above.get(word, ()) for word in own_words), key=len)[: missing + 1]
    return any(
        len(own_words & other) >= REPEATED_SHARE * len(own_words) for others in rarest for other in others
    )


def _fitting(
    lines: Sequence[Line], *, occasion: str, now: datetime, count: Counter, budget: int
) -> list[Line]:
    """Return those of `lines` for which there is room, the most important first."""
    chosen: list[Line] = []
    room = min(budget, MOST_TOKENS)
    rest_of_room = room
    for line in lines:
        if len(line.text) > MOST_CHARS_OF_TOKEN * rest_of_room or count(line.text) > rest_of_room:
            continue
        text = _block([*chosen, line], occasion=occasion, now=now)
        if count(text) <= room and len(json.dumps(text)) <= MOST_CHARS:
            chosen.append(line)
            rest_of_room = room - count(text)
    return chosen


def _checked(
    lines: Sequence[Line], check: Check | None, fitting: Callable[[Sequence[Line]], list[Line]]
) -> list[Line]:
    """Return the lines that fit, checked: what a check leaves out makes room for others, and a note needs some."""
    every, chosen = [*lines], fitting(lines)
    done: set[Line] = set()
    for _ in range(CHECK_ROUNDS if check else 0):
        fresh = [line for line in chosen if line not in done]
        outcome = dict(zip(fresh, check(fresh), strict=True)) if check and fresh else {}
        done |= {line for line in outcome.values() if line}
        if all(before == after for before, after in outcome.items()):
            break
        every = [after for line in every if (after := outcome.get(line, line))]
        # A note takes room and makes none: then the lines that did not fit are not tried again.
        chosen = fitting(
            every if None in outcome.values() else [outcome.get(line) or line for line in chosen]
        )
    return chosen


def _block(lines: Sequence[Line], *, occasion: str, now: datetime) -> str:
    text = [*lay_out(lines, now=now), HINT]
    return memory_block(text, occasion=occasion, at=clock.stamp(now))


def _steering_text(lines: Sequence[Line], now: datetime) -> str:
    return "\n".join([_STEERING, neutralize("\n".join(lay_out(lines, now=now)))])


def grouped(lines: Iterable[Line]) -> dict[tuple[Kind, str], list[Line]]:
    """Return `lines` by kind and heading, in the order of the block: within a kind explicit lines first, then those of sessions."""
    ordered = sorted(lines, key=lambda line: (_KINDS.index(line.kind), _SOURCES.index(line.source)))
    groups: dict[tuple[Kind, str], list[Line]] = {}
    for line in ordered:
        groups.setdefault((line.kind, line.heading or HEADINGS[line.kind]), []).append(line)
    return groups


_KINDS = [*HEADINGS]


def lay_out(lines: Iterable[Line], *, now: datetime) -> list[str]:
    """Return `lines` as text by section; the day of most lines of a section is in its heading, if it is another than above."""
    text: list[str] = []
    common = ""
    for (_, heading), group in grouped(lines).items():
        days = [line.at[:10] for line in group]
        before, common = common, max(days, key=days.count)
        text.append(f"{heading}:" if common in ("", before) else f"{heading} ({_with_age(common, now)}):")
        text += [
            _formatted(line, "" if day == common else day) for line, day in zip(group, days, strict=True)
        ]
    return text


def _formatted(line: Line, day: str) -> str:
    # A second line is indented, so that no note looks like a heading.
    words = line.text.replace("\n", "\n  ")
    return " ".join(filter(None, ["-", day, words, line.note and f"({line.note})"]))


def _with_age(day: str, now: datetime) -> str:
    age = (now - clock.parse(f"{day}T00:00:00Z")).days
    return f"{day}, {age} days ago" if age > OLD_DAYS else day
