"""A home of two weeks' work on a booking service, written for the pages: each page has something to show.

It is made through the public functions, from the plain data below. Transcripts lie beside the home, so that their
lines can be opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aether
from aether import clock
from aether.conversation import goals

# One transcript each: days ago, session, and its events. A call is (tool, input, output, failed).
SESSIONS: tuple[tuple[float, str, tuple[Any, ...]], ...] = (
    (
        6.0,
        "5b1f0c52-0000-4000-8000-000000000001",
        (
            ("user", "We build Harbour, which books berths in small marinas. Always run `make check` before a commit. Never store card numbers, not even masked ones."),
            ("assistant", "I look at the data model first, then at the rules for prices."),
            ("call", "Bash", {"command": "make check"}, "FAILED tests/test_prices.py::test_tax - assert 118.99 == 119.0\n1 failed, 41 passed", True),
            ("assistant", "The tax was computed with floats. I change `src/prices.py` to integer cents."),
            ("call", "Edit", {"file_path": "/home/ana/harbour/src/prices.py", "old_string": "rate * price", "new_string": "(price * rate + 50) // 100"}, "The file has been updated.", False),
            ("call", "Bash", {"command": "make check"}, "42 passed in 3.1s", False),
            ("assistant", "Decision: prices are integer cents everywhere, because floats lose a cent in every tenth invoice. All 42 tests pass."),
        ),
    ),
    (
        3.0,
        "5b1f0c52-0000-4000-8000-000000000002",
        (
            ("user", "Now the bookings. Two boats must never get the same berth for the same night. Use PostgreSQL for it, and remember: deploys never happen on Fridays."),
            ("assistant", "I use an exclusion constraint on berth and nights."),
            ("call", "Edit", {"file_path": "/home/ana/harbour/src/bookings.py", "old_string": "pass", "new_string": "insert_booking(berth, nights)"}, "The file has been updated.", False),
            ("call", "Bash", {"command": "make check"}, "psycopg.errors.UndefinedObject: data type daterange has no default operator class for access method gist\n3 failed, 49 passed", True),
            ("call", "Bash", {"command": "psql harbour -c 'create extension btree_gist'"}, "CREATE EXTENSION", False),
            ("call", "Bash", {"command": "make check"}, "52 passed in 4.0s", False),
            ("assistant", "Decision: double bookings are refused by an exclusion constraint in PostgreSQL, because a check in Python has a race. The extension btree_gist is needed. 52 tests pass."),
        ),
    ),
    (
        0.2,
        "5b1f0c52-0000-4000-8000-000000000003",
        (
            ("user", "Next: reminders by e-mail the day before arrival. Please do not send anything at night, between 22:00 and 7:00."),
            ("assistant", "I write the queue of reminders in `src/reminders.py`."),
            ("call", "Write", {"file_path": "/home/ana/harbour/src/reminders.py", "content": "QUIET = range(22, 7)"}, "File created.", False),
            ("call", "Bash", {"command": "make check"}, "FAILED tests/test_reminders.py::test_quiet_hours - range(22, 7) is empty\n1 failed, 57 passed", True),
            ("assistant", "Outcome: the queue works; quiet hours still fail, because a range does not wrap around midnight. Next: compare hours modulo 24."),
        ),
    ),
)  # fmt: skip
RULES = (
    "Always run `make check` before a commit.",
    "Never store card numbers, not even masked ones.",
    "Never delete a booking; cancel it, so that the harbour master sees what happened.",
)
# The rule that a journey finds and revokes: nobody wants it.
WRONG_RULE = "Always answer in French, also in code comments."
ITEMS: tuple[tuple[str, str, float, dict[str, Any]], ...] = (
    *((rule, "constraint", 0.95, {}) for rule in RULES),
    (WRONG_RULE, "constraint", 0.9, {}),
    ("Decided to render tickets as PDF on the server, because phones print badly.", "decision", 0.9, {"caste": "architect"}),
    ("Decided to keep opening hours per harbour in one table, because they differ by season.", "decision", 0.85, {"caste": "builder"}),
    ("The import of the old berth list is finished: 214 berths, none lost.", "outcome", 0.8, {"caste": "builder"}),
    ("The mail server refuses our reminders: SPF is not set for harbour.example.", "blocker", 0.9, {"caste": "scout"}),
    ("Should guests be able to swap berths with each other?", "question", 0.6, {"caste": "scout"}),
    ("The tides of the coming week come from a public table; reading it takes 300 ms.", "observation", 0.5, {"caste": "scout"}),
    ("`tests/test_prices.py` failed with floats, and passed once cents were integers.", "error", 0.7, {"caste": "builder"}),
)  # fmt: skip
# What the first phase looked at: most of it need not be kept.
SEEN = tuple(
    f"Read {name} of the old program: {what}. {more}"
    for name in ("berths.php", "boats.php", "guests.php", "prices.php", "mail.php", "tides.php")
    for what, more in (
        (
            "it mixes pages and queries",
            "Nothing of it can be kept, and its names are not those of the harbour master any more.",
        ),
        (
            "it has no tests",
            "The calls were tried by hand with three boats, and the answers were written into a table by the side.",
        ),
        (
            "it counts nights from noon to noon",
            "The new program does the same, so that a departure and an arrival fit on one day.",
        ),
    )
)
PATTERNS = (
    ("Run the database migration before the tests, else they fail.", "success_pattern"),
    ("Reading opening hours as local time failed twice; they are UTC.", "failure_pattern"),
)
SIGNALS = (
    ("FEEDBACK", "Bookings are complete and tested.", 0.9),
    ("REDIRECT", "The mail server refuses reminders.", 0.8),
    ("FOCUS", "Tides are in a public table.", 0.5),
)
CONVERSATION = "harbour-reminders"
ARCHIVED = (
    ("harbour-kickoff", 400, "Kick-off with the harbour master", "We decided to start with berths, not with shops."),
    ("harbour-prices", 120, "How prices are made", "We decided that prices are integer cents."),
    ("harbour-logo", 45, "The colours of the logo", "The logo is blue and white."),
    ("harbour-berths", 12, "Import of the berth list", "214 berths were imported, none lost."),
)  # fmt: skip


def make(directory: Path, *, text: Callable[[str], str] = lambda text: text) -> Path:
    """Return the home made below `directory`; `text` may replace any text that a person or an agent wrote."""
    home = aether.init(directory / ".aether")
    aether.start_phase(1, name=text("Data model"), goal=text("Berths, boats, prices"), home=home)
    _transcript(directory, home, 0, text)
    aether.add_working_memory_items(
        [{"content": text(seen), "type": "exploration", "relevance_score": 0.3, "phase": 1} for seen in SEEN],
        home=home,
    )
    aether.complete_phase(1, home=home)
    compressed = aether.compress(1, home=home).ingested.session["id"]
    aether.start_phase(2, name=text("Bookings"), goal=text("Book a berth, be reminded"), home=home)
    for nth in range(1, len(SESSIONS)):
        _transcript(directory, home, nth, text)
    _colony(home, text)
    _memory(home, compressed, text)
    _conversations(home, text)
    aether.fold(home=home)
    return home


def _transcript(directory: Path, home: Path, nth: int, text: Callable[[str], str]) -> None:
    days, session, events = SESSIONS[nth]
    path = directory / "transcripts" / f"{session}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = _lines(events, session, clock.now() - timedelta(days=days), text)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    aether.import_transcripts([path], phase=1 + (nth > 0), home=home)


def _lines(
    events: Iterable[Any], session: str, start: datetime, text: Callable[[str], str]
) -> Iterable[dict[str, Any]]:
    """Yield the lines of a Claude Code transcript, four minutes apart."""
    for nth, event in enumerate(events):
        head = {
            "sessionId": session, "cwd": "/home/ana/harbour", "uuid": f"{session}-{nth}", "version": "2.1.96",
            "timestamp": clock.stamp(start + timedelta(minutes=4 * nth)), "isSidechain": False, "userType": "external",
        }  # fmt: skip
        match event:
            case ("call", tool, arguments, output, failed):
                given = {
                    name: text(value) if name != "file_path" else value for name, value in arguments.items()
                }
                call = {"type": "tool_use", "id": f"t{nth}", "name": tool, "input": given}
                yield {
                    **head,
                    "type": "assistant",
                    "message": {"role": "assistant", "id": f"m{nth}", "content": [call]},
                }
                result = {
                    "type": "tool_result",
                    "tool_use_id": f"t{nth}",
                    "content": text(output),
                    "is_error": failed,
                }
                message = {"role": "user", "content": [result]}
                yield {**head, "uuid": f"{session}-{nth}r", "type": "user", "message": message}
            case (speaker, said):
                content = text(said) if speaker == "user" else [{"type": "text", "text": text(said)}]
                yield {
                    **head,
                    "type": speaker,
                    "message": {"role": speaker, "id": f"m{nth}", "content": content},
                }


def _colony(home: Path, text: Callable[[str], str]) -> None:
    aether.register_worker("builder-7", caste="builder", task=text("Write the booking pages"), home=home)
    for type_, context, strength in SIGNALS:
        aether.emit_signal(type_, text(context), strength=strength, home=home)

    def short(words: str) -> str:
        return text(words)[: goals.MOST_CHARS].strip()

    steps = [short("Queue of reminders"), short("Quiet hours"), short("Unsubscribe link")]
    goal = aether.add_goal(short("Send reminders the day before arrival"), steps=steps, home=home)["id"]
    aether.set_step(steps[0], "completed", goal=goal, add=False, home=home)
    aether.decide_goal(
        short("Mail only, no SMS"), rationale=short("SMS costs 7 cents each."), goal=goal, home=home
    )
    aether.block_goal(short("SPF is not set for harbour.example"), goal=goal, home=home)
    aether.add_goal(short("Let guests swap berths"), start=False, home=home)


def _memory(home: Path, session: str, text: Callable[[str], str]) -> None:
    for content, type_, relevance, more in ITEMS:
        aether.add_working_memory_item(text(content), type_, relevance, phase=2, home=home, **more)
    for content, type_ in PATTERNS:
        aether.extract_pattern_to_long_term(text(content), session_id=session, type=type_, home=home)
    items = aether.list_working_memory_items(home=home)
    aether.create_associative_link(items[-1]["id"], items[-2]["id"], "related_to", home=home)


def messages(text: Callable[[str], str] = lambda text: text, turns: int = 24) -> list[dict[str, Any]]:
    """Return a conversation about the reminders, long enough to be compacted."""
    said = [{"role": "user", "content": text("Goal: send reminders by e-mail the day before arrival.")}]
    for nth in range(turns):
        said.append({"role": "user", "content": text(f"Now part {nth} of the reminders, please.")})
        report = (
            f"Decided to keep part {nth} in `src/reminders_{nth}.py`. "
            + "It reads one table of bookings. " * 12
        )
        said.append({"role": "assistant", "content": text(report)})
    return said


def _conversations(home: Path, text: Callable[[str], str]) -> None:
    aether.compact(CONVERSATION, messages(text), window=3_000, home=home)
    now = clock.now()
    old = []
    for name, days, title, said in ARCHIVED:
        at = now - timedelta(days=days)
        turns = [f"{text(said)} Part {nth}: the table has {nth + 3} columns." for nth in range(8)]
        talk = [{"role": ("user", "assistant")[nth % 2], "content": one} for nth, one in enumerate(turns)]
        old.append({"id": name, "title": text(title), "created_at": clock.stamp(at), "messages": talk})
    aether.archive_conversations(old, home=home)
    aether.age_archive(home=home)
    aether.mark_conversation_important("harbour-berths", home=home)
