"""Reports: overview, timeline, decisions with their reasons, lessons and numbers of a home, as data and as Markdown.

A report holds no secret unless it is asked for: all its texts are redacted. Its size is bounded, and it says what was
left out. As an HTML file it is written by `view.charts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from aether import clock, paths
from aether.api import timeline as api_timeline
from aether.api.home import Home, instant, now, read, redaction_rules
from aether.api.live import live_sessions
from aether.api.overview import overview
from aether.conversation import goals
from aether.conversation.summarise import FALLBACK
from aether.errors import public
from aether.memory import layers as recall
from aether.memory import signals
from aether.memory.items import token_usage
from aether.memory.sessions import last_heard, sessions_of
from aether.memory.timeline import Moment
from aether.redact.redact import Rules, redacted
from aether.redact.redact import redact as redact_text
from aether.store import places, record_files
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import JsonObject

# A report of a full home is read by a person: so many moments, decisions and lessons, the newest.
MOST_MOMENTS, MOST_DECISIONS, MOST_LESSONS = 600, 300, 150
MOMENT_CHARS, DECISION_CHARS, WHY_CHARS = 240, 600, 400
# Hours before and after now for which the strength of a signal is drawn.
SIGNAL_HOURS = 24
_FOUND = ("items", "tokens", "max_tokens", "percent", "sessions", "patterns", "state", "phase", "revision")


@public
def report(
    *, since: str | datetime = "", conversation: str = "", redact: bool = True, home: Home = None
) -> JsonObject:
    """Return a report: overview, days of the timeline, decisions with why, lessons, and the numbers of its charts.

    `since` is a time or a text such as `7d`; `conversation` is a part of its name. Unless `redact` is false, secrets
    are replaced.

    Raises:
        InvalidInput: the time cannot be read.
        NotFound: no conversation has this name.
    """
    moment = now()
    start = instant(since, at=moment, where="since")
    timeline = api_timeline.timeline(since=start or "", conversation=conversation, home=home)
    snapshot = read(home)
    # Before a text is cut: half a secret is no secret to the rules. All texts of a report are of these.
    hidden = redaction_rules(home) if redact else None
    if hidden:
        snapshot = snapshot._replace(documents=redacted(snapshot.documents, hidden))
    memory, goal = snapshot.documents["memory"], goals.current(snapshot.documents["goals"])
    visible = [_safe(entry, hidden) for entry in timeline[-MOST_MOMENTS:]]
    decided = [_safe(entry, hidden) for entry in timeline if entry.kind == "decision"]
    decisions = _decisions(decided, None if conversation else snapshot, start)
    lessons = [] if conversation else _lessons(memory["long_term_memory"]["patterns"], start)
    about, first = overview(home=snapshot.home), clock.stamp(start) if start else ""
    result: JsonObject = {
        "project": _safe_text(Path(paths.project_root(snapshot.home) or snapshot.home).name, hidden),
        "made_at": clock.stamp(moment), "since": first, "conversation": _safe_text(conversation, hidden),
        "overview": {
            **{name: about[name] for name in _FOUND}, "goal": "" if conversation else (goal or {}).get("description", ""),
            "open": [] if conversation else _open(snapshot),
        },
        "counts": dict(Counter(moment.kind for moment in timeline)),
        "timeline": [_day(day, list(group)) for day, group in groupby(visible, key=lambda entry: entry.at[:10])],
        "decisions": decisions[-MOST_DECISIONS:], "lessons": lessons[:MOST_LESSONS],
        "left_out": {
            "moments": len(timeline) - len(visible), "decisions": max(0, len(decisions) - MOST_DECISIONS),
            "lessons": max(0, len(lessons) - MOST_LESSONS),
        },
        "charts": numbers(snapshot, since=first, hidden=hidden),
    }  # fmt: skip
    return result


def _safe(moment: Moment, hidden: Rules | None) -> Moment:
    """Return a moment with its secrets replaced, those of names as well."""
    if hidden is None:
        return moment
    texts = {name: value for name, value in moment._asdict().items() if isinstance(value, str) and value}
    safe: dict[str, Any] = {name: redact_text(text, hidden) for name, text in texts.items()}
    return moment._replace(**safe)


def _safe_text(text: str, hidden: Rules | None) -> str:
    return redact_text(text, hidden) if hidden else text


def _day(day: str, moments: Sequence[Moment]) -> JsonObject:
    return {
        "day": day or "undated",
        "moments": [
            {
                "at": moment.at, "kind": moment.kind, "text": recall.excerpt(moment.text, MOMENT_CHARS),
                "by": moment.caste or ("" if moment.agent == "queen" else moment.agent), "conversation": moment.title or moment.conversation,
            }
            for moment in moments
        ],
    }  # fmt: skip


def _decisions(
    moments: Iterable[Moment], snapshot: Snapshot | None, start: datetime | None
) -> list[JsonObject]:
    """Return the decisions with their reasons, oldest first: `found` of the timeline, and those of goals and sessions.

    Without `snapshot` only those of the timeline: a goal and a session may be about several conversations.
    """
    result = [_decision(moment.at, moment.text, moment.evidence, moment.id) for moment in moments]
    texts = "\n".join(entry["text"] for entry in result)
    first = clock.stamp(start) if start else ""
    if snapshot is None:
        return sorted(result, key=lambda entry: str(entry["at"]))
    for session in sessions_of(snapshot.documents["memory"]):
        result += [
            _decision(last_heard(session), key_decision["decision"], "", session["session_id"], key_decision["rationale"])
            for key_decision in session["key_decisions"]
            if last_heard(session) >= first and key_decision["decision"] not in texts
        ]  # fmt: skip
    for goal in snapshot.documents["goals"]["goals"]:
        result += [
            _decision(decision["at"], decision["description"], goal["evidence"], goal["id"], decision["rationale"])
            for decision in goal["decisions"] if decision["at"] >= first
        ]  # fmt: skip
    return sorted(result, key=lambda entry: str(entry["at"]))


def _decision(timestamp: str, text: str, evidence: str, id: str, why: str = "") -> JsonObject:
    return {
        "at": timestamp, "text": recall.excerpt(" ".join(text.split()), DECISION_CHARS), "why": recall.excerpt(why, WHY_CHARS), "evidence": evidence,
        "id": id,
    }  # fmt: skip


def _lessons(patterns: Iterable[JsonObject], start: datetime | None) -> list[JsonObject]:
    first = clock.stamp(start) if start else ""
    chosen = sorted(
        (pattern for pattern in patterns if pattern["last_seen"] >= first),
        key=lambda entry: (-entry["confidence"], -entry["occurrences"], entry["id"]),
    )
    return [
        {
            "text": recall.excerpt(entry["pattern"], DECISION_CHARS), "type": entry["type"], "occurrences": entry["occurrences"],
            "confidence": entry["confidence"], "last_seen": entry["last_seen"], "id": entry["id"],
        }
        for entry in chosen
    ]  # fmt: skip


def _open(snapshot: Snapshot) -> list[str]:
    """Return the blockers of live memory and of the active goal, the newest first."""
    texts = [
        recall.excerpt(item["content"], MOMENT_CHARS)
        for item in snapshot.documents["memory"]["working_memory"]["items"]
        if item["type"] == "blocker"
    ]
    goal = goals.current(snapshot.documents["goals"])
    texts += [
        blocker["description"]
        for blocker in (goal or {}).get("blockers", [])
        if not blocker.get("resolved_at")
    ]
    return texts[::-1]


def numbers(snapshot: Snapshot, *, since: str = "", hidden: Rules | None = None) -> JsonObject:
    """Return the numbers of each chart, from the time `since` on where they are of a time."""
    return {
        "injected": injected(snapshot, since=since, hidden=hidden), "recalls": recalls(snapshot, since=since),
        "architects": architects(snapshot, since=since), "growth": growth(snapshot, since=since),
        "saved": saved(snapshot, since=since), "layers": layers(snapshot.documents["memory"]),
        "signals": signal_strengths(snapshot.documents["pheromones"], now=now()),
    }  # fmt: skip


def injected(snapshot: Snapshot, *, since: str = "", hidden: Rules | None = None) -> list[JsonObject]:
    """Return the tokens of memory that each of the newest sessions was given, the newest first."""
    titles = {row.conversation: row.title for row in api_timeline.threads(home=snapshot.home)}
    return [
        {"name": _safe_text(titles.get(session.session) or session.session, hidden), "at": session.at, "tokens": session.tokens}
        for session in live_sessions(home=snapshot.home) if session.at >= since
    ]  # fmt: skip


def recalls(snapshot: Snapshot, *, since: str = "") -> list[JsonObject]:
    """Return how often prompts and searches got an answer from memory, and how many entries were opened, by day."""
    days: dict[str, JsonObject] = {}
    for asked in places.recalls(snapshot.home):
        if asked.at >= since:
            day = days.setdefault(
                asked.at[:10], {"day": asked.at[:10], "answered": 0, "unanswered": 0, "opened": 0}
            )
            if asked.by == places.OPEN:
                day["opened"] += asked.hits
            else:
                day["answered" if asked.hits else "unanswered"] += 1
    return [days[day] for day in sorted(days)]


def architects(snapshot: Snapshot, *, since: str = "") -> list[JsonObject]:
    """Return what models wrote by day: answers that were stored, undone ones too, their tokens, and the cost if it was reported."""
    written = [
        (receipt["at"], receipt.get("architect")) for _, receipt in record_files.records(snapshot, "receipts")
    ]
    written += [
        (compaction.at, compaction.receipt.get("summary"))
        for _, compaction in api_timeline.all_compactions(snapshot.home)
    ]
    days: dict[str, JsonObject] = {}
    for at, author in written:
        if not isinstance(author, Mapping) or author.get("backend") in (None, FALLBACK) or at < since:
            continue
        day = days.setdefault(
            at[:10],
            {"day": at[:10], "answers": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": None, "models": []},
        )  # fmt: skip
        day["answers"] += 1
        day["models"] = sorted({*day["models"], author.get("model") or author["backend"]})
        for field in ("input_tokens", "output_tokens", "cost_usd"):
            if author.get(field):
                day[field] = round((day[field] or 0) + author[field], 6)
    return [days[day] for day in sorted(days)]


def growth(snapshot: Snapshot, *, since: str = "") -> list[JsonObject]:
    """Return how many entries were noted by day, and the sum of all until then."""
    days = Counter(moment.at[:10] for moment in api_timeline.item_moments(snapshot) if moment.at)
    sums = accumulate(days[day] for day in sorted(days))
    return [
        {"day": day, "entries": days[day], "sum": total}
        for day, total in zip(sorted(days), sums, strict=True) if day >= since[:10]
    ]  # fmt: skip


def layers(memory: Mapping[str, Any]) -> list[JsonObject]:
    """Return how full each limited layer is."""
    fill, short = token_usage(memory), memory["short_term_memory"]
    sessions = len(sessions_of(memory))
    return [
        {"name": "Working memory", "used": fill.current, "most": fill.maximum, "unit": "tokens", "percent": fill.percent},
        {
            "name": "Short-term memory", "used": sessions, "most": short["max_sessions"], "unit": "sessions",
            "percent": round(100 * sessions / short["max_sessions"], 1),
        },
    ]  # fmt: skip


def saved(snapshot: Snapshot, *, since: str = "") -> list[JsonObject]:
    """Return the compressions and compactions since a time, oldest first, with the tokens that they saved and the sum."""
    steps = [
        (compression["at"], "compression", compression["tokens_before"], compression["tokens_after"])
        for compression in api_timeline.compressions(snapshot)
    ]
    steps += [
        (time, "compaction", before, after)
        for time, before, after in api_timeline.compaction_sizes(snapshot.home)
    ]
    total, result = 0, []
    for time, kind, before, after in sorted(step for step in steps if step[0] >= since):
        total += before - after
        result.append({"at": time, "kind": kind, "before": before, "after": after, "sum": total})
    return result


def signal_strengths(pheromones: Mapping[str, Any], *, now: datetime) -> list[JsonObject]:
    """Return the active signals, the strongest first, each with its strength for some hours before and after now."""
    result = []
    for active_signal in signals.active_signals(pheromones, now=now):
        created = clock.parse(active_signal["created_at"])
        hours = [
            hour
            for hour in range(-SIGNAL_HOURS, SIGNAL_HOURS + 1, 2)
            if now + timedelta(hours=hour) >= created
        ]
        half_life = active_signal["decay_rate"]
        result.append(
            {
                "id": active_signal["id"], "type": active_signal["type"], "name": f"{active_signal['type']}: {recall.excerpt(active_signal['context'], 60)}".rstrip(": "),
                "strength": active_signal["current_strength"],
                "half_life": "holds until answered" if half_life is None else f"{half_life / 3600:g} h",
                "points": [
                    [hour, round(signals.strength_at(active_signal, now + timedelta(hours=hour)), 3)] for hour in hours
                ],
            }
        )  # fmt: skip
    return sorted(result, key=lambda entry: -float(str(entry["strength"])))


def in_words(counts: Mapping[str, int]) -> str:
    """Return the numbers of moments of each kind as a person writes them.

    >>> in_words({"request": 245, "fix": 2, "error": 1})
    '1 error, 2 fixes, 245 requests'
    """
    nouns = (
        (number, kind + ("es" if kind.endswith("x") else "s") * (number != 1))
        for kind, number in counts.items()
    )
    return ", ".join(f"{number:,} {noun}" for number, noun in sorted(nouns, key=itemgetter(1)))


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return a report as Markdown: a digest that needs no browser."""
    return "\n".join(_markdown(found)).rstrip() + "\n"


def _markdown(data: Mapping[str, Any]) -> Iterator[str]:
    overview_data = data["overview"]
    since = f" since {data['since'][:10]}" if data["since"] else ""
    yield f"# {_md(data['project'])}: memory{since}"
    yield ""
    yield f"Made {data['made_at'][:16].replace('T', ' ')} UTC."
    if data["conversation"]:
        yield f"Conversation: {_md(data['conversation'])}."
    yield ""
    if overview_data["goal"]:
        yield f"- Goal: {_md(overview_data['goal'])}"
    if overview_data["phase"] is not None:
        yield f"- Phase {overview_data['phase']}: {overview_data['state']}"
    yield f"- Memory: {overview_data['items']} items ({overview_data['percent']:g} %), {overview_data['sessions']} sessions, {overview_data['patterns']} patterns"
    if data["charts"]["saved"]:
        steps = data["charts"]["saved"]
        yield f"- Saved: {steps[-1]['sum']:,} tokens in {pluralize(len(steps), 'steps')}"
    if data["counts"]:
        yield f"- Events: {in_words(data['counts'])}"
    yield from (f"- Open: {_md(text)}" for text in overview_data["open"])
    yield from _markdown_lists(data)


def _markdown_lists(data: Mapping[str, Any]) -> Iterator[str]:
    if data["decisions"]:
        yield from ("", "## Decisions", "")
        for decision in data["decisions"]:
            why = f" Why: {_md(decision['why'])}" if decision["why"] else ""
            yield f"- {decision['at'][:10]} {_md(decision['text'])}{why}"
    if data["lessons"]:
        yield from ("", "## Lessons", "")
        yield from (f"- {_md(lesson['text'])} ({lesson['occurrences']}x)" for lesson in data["lessons"])
    for day in data["timeline"]:
        yield from ("", f"## {day['day']}", "")
        for decision in day["moments"]:
            author = f" ({_md(decision['by'])})" if decision["by"] else ""
            yield f"- {decision['at'][11:16] or '—'} {decision['kind']}{author}: {_md(decision['text'])}"
    omissions = [f"{number} {name}" for name, number in data["left_out"].items() if number]
    if omissions:
        yield from ("", f"Left out, the oldest: {', '.join(omissions)}.")


_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_[]<>#|"}


def _md(text: str) -> str:
    """Return foreign text on one line, with the signs of Markdown and HTML as plain characters."""
    return " ".join(text.split()).translate(_MARKS)
