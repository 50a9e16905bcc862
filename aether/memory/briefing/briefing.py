"""Briefing: the extract of memory that a model gets at the start of a session, a sub-agent or a summary.

A briefing is one marked block of dated lines: data, never instructions. Guaranteed: the goal, protected content and
constraints come first and are never left out for other lines; the block keeps within its budget and the host's limit;
the same memory at the same time gives the same text. The lines are made in `sections`, laid out in `block`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from aether import clock
from aether.hints import Any
from aether.memory.briefing import sections, standing
from aether.memory.briefing.block import (
    Line,
    Share,
    lay_out,
    rank,
    said_once,
    without_repeats,
    without_shown_checks,
)
from aether.memory.briefing.sections import known_items, newest_sessions
from aether.text.picking import longest_front
from aether.text.regex import lazy
from aether.text.tags import memory_block, neutralize
from aether.types import Counter, Item

# Claude Code saves a longer hook output to a file and shows 2 KB of it (its limit is 10,000); the wrapping around the
# block needs room too.
MOST_CHARS = 9_000
# The host prints the instructions for its summary on the user's screen, and nothing can suppress it. After the
# compaction the model gets a briefing anyway.
STEERING_CHARS = 1_500
# Lines read of each section, the newest: more than a block ever showed.
_LOOKED_AT = 200
# Of the name and subject of a commit: a list of commits shortens the subject.
COMMIT_CHARS = 60
_NAMES_COMMIT = lazy(r"\W*commit(?:ted)?(?: as)?:? `?([0-9a-f]{7,})\b[^.]*\.?\Z", re.IGNORECASE)
# The name of a commit, then the start of its subject.
_NAMED_SUBJECT = lazy(r"\W*[0-9a-f]{7,40}[^\w\n]{1,8}(?=\S{1,20} \S)")
RESUMED = frozenset({"resume", "fork"})

HINT = 'Newest first; where two disagree, the newer holds. More: `aether recall "WORDS"`, or the MCP tool `recall`.'
_STEERING = "Keep this in the summary, names, paths and commands word for word. It is what the project's memory (aether) holds:"

# These come first on every occasion: their ranks are below those of all other sections.
_FIRST = {
    "goal": Share(-4, 0, 3),
    "protected": Share(-3, 0, _LOOKED_AT),
    "rules": Share(-2, 0, _LOOKED_AT),
    "signals": Share(-1, 0, 12),
}
# A start needs the state of the work; a compaction needs the details that a summary loses: errors, paths, commands, reasons.
_START = _FIRST | {
    "state": Share(0, 0.3, 12),
    "published": Share(0, 0.3, 12),
    "answers": Share(0.1, 0.35, 8),
    "next": Share(0.2, 0.5, 6),
    "open": Share(1, 1, 3),
    "decisions": Share(0.5, 0.15, 12),
    "requests": Share(1, 0.5, 4),
    "commands": Share(1, 1, 4),
    "results": Share(2, 0.3, 5),
    "reasons": Share(2.2, 0.4, 4),
    "asked": Share(2, 0.7, 3),
    "files": Share(3, 1, 2),
    "earlier": Share(5, 6, 2),
    "learned": Share(6, 4, 3),
    "noted": Share(6, 4, 2),
}
# Tokens of a start, whatever its budget: there is no request yet, and anything else can be recalled.
START_TOKENS = 1060
_COMPACT = _FIRST | {
    "state": Share(0, 0.4, 8),
    "published": Share(0, 0.4, 8),
    "answers": Share(0.1, 0.4, 6),
    "next": Share(0.2, 1, 6),
    "open": Share(0, 1, 10),
    "requests": Share(0, 2, 5),
    "asked": Share(4, 2, 4),
    "decisions": Share(1, 0.5, 12),
    "elsewhere": Share(2, 1, 6),
    "results": Share(2, 0.5, 3),
    "reasons": Share(2, 0.5, 3),
    "files": Share(3, 0.5, 4),
    "commands": Share(1, 1.5, 4),
    "noted": Share(8, 4, 4),
    "learned": Share(9, 4, 4),
    "earlier": Share(12, 6, 2),
}
_AGENT = _FIRST | {"caste": Share(0, 1, 5), "open": Share(2, 2, 3), "files": Share(4, 1, 5)}


def briefing(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None, session: str = "",
) -> str:  # fmt: skip
    """Return the relevant part of memory as one `<aether-memory …>` block, or "" without any.

    `occasion` is the source of the session: startup, clear, compact, resume or fork. With `since`, resuming includes
    only lines after that time. Paths below `root` are relative to it. `wide` are the documents of a home whose rules
    hold in all projects. `session` is the conversation whose own work is shown; without it, the newest.

    Raises:
        InvalidInput: `since` is not a time.
    """
    lines = brief_lines(
        documents, occasion=occasion, now=now, count=count, budget=budget, since=since, root=root,
        wide=wide, session=session,
    )  # fmt: skip
    return _text(lines, occasion=occasion, now=now) if lines else ""


def brief_lines(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", root: str = "", wide: Mapping[str, Any] | None = None, session: str = "",
) -> list[Line]:  # fmt: skip
    """Return the lines of `briefing`, in order of importance.

    Raises:
        InvalidInput: `since` is not a time.
    """
    news = bool(since) and occasion in RESUMED
    whole = news or occasion == "compact"
    shares = _COMPACT if whole else _START
    found = _gather(documents, shares, now=now, root=root, wide=wide, session=session)
    if news:
        moment = clock.stamp(clock.parse(since, where="since"))
        found = {section: [line for line in lines if line.at > moment] for section, lines in found.items()}
    lines = said_once(rank(found, shares))
    if whole:
        return _fitting(lines, occasion=occasion, now=now, count=count, budget=budget)
    first = [line for line in lines if line.section in _FIRST]
    fronts = (
        _fitting(first, occasion=occasion, now=now, count=count, budget=budget),
        _fitting(lines, occasion=occasion, now=now, count=count, budget=min(budget, START_TOKENS)),
    )
    # Both are fronts of the same order.
    return max(fronts, key=len)


def in_force(documents: Mapping[str, Any], *, now: datetime) -> dict[str, int]:
    """Return how many rules, protected texts included, and decisions a briefing has to choose from."""
    found = _gather(documents, {name: Share(0, 0, _LOOKED_AT) for name in _STANDING}, now=now)
    return {"rules": len(found["protected"]) + len(found["rules"]), "decisions": len(found["decisions"])}


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = "",
    session: str = "",
) -> str:  # fmt: skip
    """Return the briefing of a sub-agent of `caste` as one block, or "".

    `session` is the conversation that started it, whose own work is shown; without it, the newest.
    """
    lines = agent_lines(documents, caste, now=now, count=count, budget=budget, root=root, session=session)
    return _text(lines, occasion="subagent", now=now) if lines else ""


def agent_lines(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int, root: str = "",
    session: str = "",
) -> list[Line]:  # fmt: skip
    """Return the lines of `agent_brief`, in order of importance."""
    found = _gather(documents, _AGENT, now=now, root=root, caste=caste, session=session)
    return _fitting(rank(found, _AGENT), occasion="subagent", now=now, count=count, budget=budget)


def steering(documents: Mapping[str, Any], *, now: datetime, root: str = "", session: str = "") -> str:
    """Return, as plain text for a summariser, what its summary of the conversation `session` must keep, or ""."""
    lines = rank(_gather(documents, _COMPACT, now=now, root=root, session=session), _COMPACT)
    base = _base(lines)

    def make(some: Sequence[Line]) -> str:
        return "\n".join([_STEERING, neutralize("\n".join(lay_out(some, now=now, root=base)))])

    shown = longest_front(len(lines), lambda number: len(make(lines[:number])) < STEERING_CHARS)
    return make(lines[:shown]) if shown else ""


def _fitting(
    lines: Sequence[Line], *, occasion: str, now: datetime, count: Counter, budget: int
) -> list[Line]:
    """Return the longest front of `lines` whose block keeps within its budget and the host's limit.

    What only reports that checks passed is left out if a command in it shows that.
    """

    def front(some: Sequence[Line]) -> list[Line]:
        def fits(number: int) -> bool:
            text = _text(some[:number], occasion=occasion, now=now)
            return len(json.dumps(text)) <= MOST_CHARS and count(text) <= budget

        return [*some[: longest_front(len(some), fits)]]

    kept = front(lines)
    others = without_shown_checks(lines, kept)
    return kept if len(others) == len(lines) else front(others)


def _text(lines: Sequence[Line], *, occasion: str, now: datetime) -> str:
    text = [*lay_out(lines, now=now, root=_base(lines)), HINT]
    return memory_block(text, occasion=occasion, at=clock.stamp(now))


def _base(lines: Sequence[Line]) -> str:
    return sections.common_root([line for line in lines if line.section == "files"])


def _gather(
    documents: Mapping[str, Any], shares: Mapping[str, Share], *, now: datetime, root: str = "",
    wide: Mapping[str, Any] | None = None, caste: str | None = None, session: str = "",
) -> dict[str, list[Line]]:  # fmt: skip
    """Return the lines of each section with a share, the newest first, without repetitions.

    Files, commands, requests, results, errors and the state of the work are those of one conversation. Where `session`
    is compacted, the decisions of others have a section of their own.
    """
    memory = documents["memory"]
    sessions, everything = newest_sessions(memory), [*sections.with_short_paths(known_items(memory), root)]
    # Around a compaction and for a sub-agent, what is said of the work is that of the same conversation or nothing.
    items = standing.of_conversation(everything, session, only=shares is not _START)
    others = sections.other_projects(everything, items, root)
    own = _own_ids(items, sessions, session) if session and "elsewhere" in shares else None
    # The host's summary is in the context of the session that it was made of.
    work = _work(items, sessions, in_context=shares is _COMPACT and bool(session))
    rules, ended = _rules(memory, everything, wide)
    # Where the context holds it, or a summariser is to keep much else, a request is shown at its usual length.
    starts = shares is _START
    most = sections.UNREPORTED_CHARS if starts else sections.CURRENT_CHARS
    known = [*rules, *sections.problems(items), *sections.requests(items, most=most)]
    ready = work | {
        section: [line for line in known if line.section == section]
        for section in ("rules", "noted", "learned", "open", "asked", "requests", "commands")
    }
    tree = [*standing.work_tree(items)]  # it names the files: a start shows those of which more is known
    make: dict[str, Callable[[], Iterable[Line]]] = {
        **{section: partial(ready.__getitem__, section) for section in ready},
        "goal": lambda: sections.goal(documents),
        "protected": lambda: sections.protected(memory, everything),
        "signals": lambda: sections.active_signals(documents, now=now, caste=caste),
        # What a person asked for since, in a conversation that has said nothing of its work, is not lost to the next start.
        "requests": lambda: [
            *islice(sections.tasks(standing.later(everything, items)), int(starts)),
            *ready["requests"],
        ],
        "decisions": lambda: sections.decisions(everything, sessions, ended=ended),
        "elsewhere": list,
        "files": lambda: [
            line
            for line in sections.changed_files(items, root=root, foremost=shares is not _COMPACT)
            if not starts or ": " in line.text or not tree
        ],
        "commands": lambda: [*tree, *ready["commands"], *sections.commands_run(items, silent=not starts)],
        "earlier": lambda: sections.earlier_work(sessions, items, ended=ended),
        "caste": lambda: sections.done_by_caste(everything, caste or ""),
    }
    found: dict[str, list[Line]] = {}
    for section, share in shares.items():
        lines: Iterable[Line] = (line for line in make[section]() if ended.keys().isdisjoint(line.ids))
        if section not in _DISTINCT:
            read = (line for line, _ in zip(lines, range(_LOOKED_AT), strict=False) if line.text)
            most = _LOOKED_AT if section == "decisions" and own is not None else share.most
            lines = without_repeats(read, most=most, replacing=section in _REPLACING)
        found[section] = [_placed(line, others) for line in lines]
    if own is not None:
        found |= _apart(found["decisions"], own)
    return found


def _placed(line: Line, others: Mapping[str, str]) -> Line:
    """Return `line`, marked if it comes from one of `others`, the projects of entries by id."""
    name = next((others[one] for one in line.ids if one in others), "")
    return line._replace(note=", ".join(filter(None, (line.note, f"in {name}")))) if name else line


def _rules(
    memory: Mapping[str, Any], items: Sequence[Item], wide: Mapping[str, Any] | None
) -> tuple[list[Line], dict[str, str]]:
    """Return the lines of the rules, those of the user's own home too, and what was ended, by name."""
    ended = sections.revoked_in(memory, items)
    found = [*sections.rules(memory, items, ended=ended), *sections.learned_patterns(memory)]
    if wide is not None:
        held = known_items(wide["memory"])
        ended |= sections.revoked_in(wide["memory"], held)
        found += sections.rules(wide["memory"], held, wide=True, ended=ended)
        found += sections.learned_patterns(wide["memory"], wide=True)
    return found, ended


def _own_ids(
    items: Iterable[Item], sessions: Iterable[tuple[str, Mapping[str, Any]]], conversation: str
) -> set[str]:
    """Return the ids of `items`, which are those of `conversation`, and of the sessions that were made of it."""
    made = {
        held["session_id"]
        for _, held in sessions
        if ((held.get("metadata") or {}).get("architect") or {}).get("session") == conversation
    }
    return made | {str(item.get("id", "")) for item in items}


def _apart(decisions: Sequence[Line], own: Collection[str]) -> dict[str, list[Line]]:
    """Return the decisions by section: those of the conversation with the ids `own`, and those made elsewhere."""
    mine = [line for line in decisions if any(one in own for one in line.ids)]
    others = [line._replace(section="elsewhere") for line in decisions if line not in mine]
    # What "it" is, only its own session knows.
    return {
        "decisions": mine,
        "elsewhere": [line for line in others if not sections.POINTS_BACK.match(line.text)],
    }


def _work(
    items: Sequence[Item], sessions: Sequence[tuple[str, Mapping[str, Any]]], *, in_context: bool
) -> dict[str, list[Line]]:
    """Return the state of the work, its next steps and its results, by the items of one conversation.

    What the host's summary says is left out if it is `in_context`.
    """
    found = standing.accounts(items)
    reported = standing.reports(found, standing.reasons(items))
    # The work tree lists the newest commits.
    listed = " ".join(line.text for line in standing.work_tree(items))
    reported = {
        section: [line for line in lines if not _is_listed(line.text, listed)]
        for section, lines in reported.items()
    }
    summed = [] if in_context else items
    state = [
        *standing.last_words(items),
        *standing.from_summary(found, summed, "current"),
        *reported["state"],
    ]
    said = reported["published"] or reported["answers"]
    ahead = [*standing.from_summary(found, summed, "next", "pending"), *standing.next_steps(found, items)]
    noted = sections.results(item for item in items if "pointer" not in item["metadata"])
    return {
        "state": state or ([] if said else sections.kept_in_session(sessions, "state")),
        "published": reported["published"],
        "answers": reported["answers"],
        "next": ahead or sections.kept_in_session(sessions, "next"),
        "results": [*standing.delegated(items), *reported["results"], *noted],
        "reasons": reported["reasons"],
    }


def _is_listed(text: str, listed: str) -> bool:
    """Return whether `text` only names commits that are `listed`."""
    named = _NAMES_COMMIT.match(text)
    subject = _NAMED_SUBJECT.match(text)
    if subject and text[subject.end() :].rstrip(" .`")[:COMMIT_CHARS] in listed:
        return True  # a rebase gave it another name
    return text[:COMMIT_CHARS] in listed or (named is not None and named[1] in listed)


_STANDING = ("protected", "rules", "decisions")
# Sections without repetitions.
_DISTINCT = frozenset({"goal", "signals", "files", "commands", "next"})
# Sections in which a newer line replaces one that it contradicts.
_REPLACING = frozenset({"rules", "decisions"})
