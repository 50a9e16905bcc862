"""Pages for reading along: captured conversations as threads, the days of a year, sessions at work, and the homes of this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from aether import clock, paths
from aether.api import timeline as api_timeline
from aether.api.home import redaction_rules
from aether.api.live import live_sessions
from aether.errors import NotFound
from aether.memory.captured_threads import ThreadRow, Turn
from aether.memory.timeline import Moment
from aether.redact.redact import redact
from aether.store import places
from aether.types import JsonObject
from aether.view.frame import BY, PAGE_LINES, Action, Asked, Frame, Page, Shown, later, part, state_of

SPEAKERS = {"person": "Person", "agent": "Agent", "host": "Host"}
# Characters of a message that are shown at once; the rest is unfolded.
MESSAGE_CHARS = 6_000
WEEKS = 53
# Shades of the calendar, by the share of the busiest day.
SHADES = 4


def thread_page(frame: Frame, asked: Asked) -> Shown:
    """Return one captured conversation, the page with the entry `at` if that is asked for."""
    name, entry = asked.path["id"], asked.query.get("at", "")
    state = state_of(frame.home)
    turns = _turns(frame.home, name, state)
    holder = next((nth for nth, turn in enumerate(turns) if entry and turn.holds(entry)), None)
    page = asked.number("page", 1 if holder is None else holder // PAGE_LINES + 1)
    page_part, rules = part(turns, page), redaction_rules(frame.home)
    row = next(row for row in thread_rows(frame.home, state) if row.conversation == name)
    rows = [_row(turn, rules, here=turn.holds(entry) if entry else False) for turn in page_part.lines]
    title = redact(row.title or name, rules)
    return Shown("thread.html", {"id": name, "part": page_part, "rows": rows, "entry": entry}, title)


@lru_cache(maxsize=4)
def _turns(home: Path, conversation: str, state: str) -> list[Turn]:  # noqa: ARG001 - the key of the cache
    return api_timeline.thread(conversation, home=home)


@lru_cache(maxsize=2)
def thread_rows(home: Path, state: str) -> list[ThreadRow]:  # noqa: ARG001 - the key of the cache
    """Return the captured conversations of `home`; `state` changes with the home."""
    return api_timeline.threads(home=home)


def _row(turn: Turn, rules: Any, *, here: bool) -> JsonObject:
    text = redact(turn.text, rules)
    notes = [note for note in turn.notes if not _repeats(note, turn)]
    kinds = Counter(note.type.replace("_", " ") for note in notes)
    return {
        "speaker": SPEAKERS.get(turn.speaker, ""), "kind": turn.speaker, "at": turn.at, "line": turn.line, "here": here,
        "start": text[:MESSAGE_CHARS], "more": text[MESSAGE_CHARS:],
        "notes": [note._replace(text=redact(note.text, rules)) for note in notes],
        "counts": ", ".join(f"{number} {kind}" for kind, number in kinds.most_common()),
    }  # fmt: skip


def _repeats(note: Moment, turn: Turn) -> bool:
    """Return whether a note says no more than its message: the request or the result that was noted of it."""
    return note.kind in ("request", "result") and note.text.rstrip("…").strip() in turn.text


# --- The calendar


def calendar(moments: Iterable[Moment], today: date) -> list[JsonObject]:
    """Return the weeks of a year up to `today`, each with its days: date, number of moments, shade from 0 to `SHADES`."""
    days = Counter(moment.at[:10] for moment in moments if moment.at)
    start = today - timedelta(days=today.weekday() + 7 * (WEEKS - 1))
    most = max(days.values(), default=0)
    weeks = []
    for week in range(WEEKS):
        dates = [start + timedelta(days=7 * week + day) for day in range(7)]
        weeks.append(
            {
                "month": next((f"{day:%b}" for day in dates if day.day == 1), ""),
                "days": [
                    {"date": day.isoformat(), "number": days[day.isoformat()], "shade": _shade(days[day.isoformat()], most)}
                    for day in dates if day <= today
                ],
            }
        )  # fmt: skip
    return weeks


def _shade(number: int, most: int) -> int:
    """Return 0 for nothing, else the quarter of the busiest day in which `number` is.

    >>> [_shade(number, 100) for number in (0, 1, 25, 26, 100)]
    [0, 1, 1, 2, 4]
    """
    return -(-number * SHADES // most) if most else 0


# --- What happens now


def live_page(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return the sessions at work: what each was given, what was captured of it, and what a rule stopped."""
    return Shown("live.html", {"found": later(frame, lambda: _live_rows(frame))}, later=True)


def _live_rows(frame: Frame) -> list[JsonObject]:
    sessions, rules = live_sessions(home=frame.home), redaction_rules(frame.home)
    titles = {row.conversation: row.title for row in thread_rows(frame.home, state_of(frame.home))}
    return [
        {
            **session._asdict(), "title": redact(titles.get(session.session, ""), rules), "known": session.session in titles,
            "injected": [redact(line, rules) for line in session.lines if not line.startswith("<")],
            "entries": [(name, redact(text, rules)) for name, text in session.entries.items()],
            "captured": [note._replace(text=redact(note.text, rules)) for note in session.captured],
        }
        for session in sessions
    ]  # fmt: skip


# --- The homes of this machine


def homes_page(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return the homes that this user has worked in, the one that is shown among them."""
    rows = [
        {
            "key": home.key, "place": paths.project_root(home.path) or str(home.path), "is_here": home.path == frame.home.resolve(),
            "changed": clock.stamp(datetime.fromtimestamp(home.changed, UTC)),
        }
        for home in places.known_homes()
    ]  # fmt: skip
    return Shown("homes.html", {"homes": rows})


def open_home(frame: Frame, form: Mapping[str, str]) -> str:
    """Show another home of the list from now on, in every window of this view.

    Raises:
        NotFound: it is not on the list any more.
    """
    home = next((home for home in places.known_homes() if home.key == form["home"]), None)
    if home is None:
        raise NotFound("this home is not where it was.", fix="Reload the list of projects.", where=BY)
    frame.home = home.path
    return f"This is the memory of {paths.project_root(home.path) or home.path}."


ACTIONS = [Action("open-home", open_home, changes=False)]
PAGES = [
    Page("/homes", "Projects", homes_page),
    Page("/live-sessions", "Live", live_page),
    Page("/thread/{id:path}", "Conversation", thread_page, in_menu=False),
]
