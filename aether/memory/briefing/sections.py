"""Lines of a brief: what was noted on purpose, what sessions state, and the floor, which needs no model.

*Explicit* lines are goals, signals and notes, as they were typed. *Session* lines are the statements of architects that are in
force. The *floor* is words and facts as they were: the newest request, the agent's last message, answers to questions, earlier
requests, commits, runs, files. Nothing on the floor is called a rule, a decision or open, except a person's own answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aether.memory import signals, teamwork
from aether.memory.briefing.kept import keeps_items, newest_sessions, timestamp
from aether.memory.facts import stated_fact
from aether.memory.items import is_noted
from aether.memory.sessions import EXTRACTIVE, ended_in
from aether.memory.statements import evidence_of, statements_of
from aether.text.cleaning import without_emphasis, without_injected
from aether.text.words import STOPWORDS, words

if TYPE_CHECKING:
    from aether.memory.statements import Stated
    from aether.types import Item

Kind = Literal[
    "state", "next", "rule", "decision", "open", "request", "outcome", "lesson", "file", "command", "repository",
]  # fmt: skip
Source = Literal["explicit", "session", "floor"]

KIND_OF_NOTE: dict[str, Kind] = {
    "constraint": "rule", "preference": "rule", "decision": "decision", "blocker": "open", "next": "next", "user_input": "request",
    "outcome": "outcome",
}  # fmt: skip
# The heading of signals, which are no rules.
SIGNALS = "Active signals"
_SIGNAL_TYPES = ("FOCUS", "REDIRECT", "FEEDBACK", "CHECKIN")
_IMPORTANCE = ("rule", "open", "next", "state", "decision")
_REPLIES = frozenset({"answer", "said", "change", "summary"})
_CASTE_TYPES = frozenset({"outcome", "decision", "solution", "blocker"})
# Steps of a plan that need nothing more.
_OVER = frozenset({"completed", "done", "cancelled", "canceled", "deleted", "skipped"})

# Characters, at about four to a token, of a brief of 700 tokens. A note is verbatim up to a third of it, and so is the newest request.
NOTE_CHARS = 1_000
REQUEST_CHARS = 800
# Of the agent's last message, the first and last paragraphs.
MESSAGE_CHARS = 1_600
# Of the last message of the turn before it.
TURN_CHARS = 600
# A paragraph, a statement, an earlier request: two sentences or three.
LINE_CHARS = 300
# Of a fact or a reason: a sentence.
SHORT_CHARS = 200
# A shorter paragraph is a heading or opens the next one.
OPENING_CHARS = 60
# Three quarters of a shortened text are its head.
HEAD_SHARE = 0.75
CUT = " […] "
# An earlier request of fewer words ("ok, yes") says nothing without what it answered.
LEAST_WORDS = 2
# Signs of Chinese, Japanese and Korean: each says as much, and costs as much, as about three letters.
_WIDE = "\u2e80"
_WIDE_CHARS = 3
# The newest of each kind of fact: more than a brief has room for.
MOST_FACTS = 12
MOST_STEPS = 5
MOST_MEMBERS = 10
# Earlier turns whose last messages are shown: the work went on since.
MOST_TURNS = 1


class Line(NamedTuple):
    """One line of a brief."""

    kind: Kind
    text: str
    at: str = ""
    """Its time in the form of `clock.stamp`; empty if unknown."""
    note: str = ""
    ids: tuple[str, ...] = ()
    """The entries that it comes from."""
    evidence: str = ""
    """Who vouches for it: person, machine or agent; empty if unknown."""
    source: Source = "floor"
    quote: str = ""
    """Of a statement, the words that prove it."""
    heading: str = ""
    """Of a group within its kind, such as the agent's last message."""
    corrected: bool = False
    """Whether its words were corrected, at its time, by whoever vouches for it."""


def one_line(text: str, most: int) -> str:
    """Return `text` in one line of about `most` characters, without its middle, and without blocks that aether injected.

    >>> one_line("Use **SQLite**  for now", 100), one_line("Use SQLite for now, and never push to main", 26)
    ('Use SQLite for now', 'Use SQLite for […] main')
    """
    line = " ".join(without_emphasis(without_injected(text)).split())
    return shortened(line, most)


def shortened(text: str, most: int) -> str:
    """Return `text` without its middle if it is longer than about `most` characters; a rule may be in its last sentence."""
    width = _width(text)
    if width <= most:
        return text
    room = int(most * len(text) / width) - len(CUT)
    head, tail = int(room * HEAD_SHARE), len(text) - (room - int(room * HEAD_SHARE))
    # Cut between words where there are blanks.
    head = text.rfind(" ", head // 2, head + 1) if " " in text[head // 2 : head + 1] else head
    tail = text.find(" ", tail, tail + (len(text) - tail) // 2) if " " in text[tail:] else tail
    return text[:head].rstrip() + CUT + text[max(tail, head) :].lstrip()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + (_WIDE_CHARS - 1) * sum(sign >= _WIDE for sign in text)


def paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs of a message in one line each, without blocks of code; a heading joins the paragraph below it.

    >>> paragraphs("## Result\n\nAll tests pass now.\nNothing is open.\n\n```\nx = 1\n```")
    ['Result: All tests pass now. Nothing is open.']
    """
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in without_injected(text).split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    merged: list[str] = []
    opening = ""
    for lines in blocks:
        block = one_line("\n".join(lines).strip("#- \n"), MESSAGE_CHARS)
        if not any(map(str.isalnum, block)):
            continue
        block = f"{opening.rstrip(':')}: {block}" if opening else block
        opening = ""
        if len(block) < OPENING_CHARS and (lines[0].startswith("#") or block.endswith((":", "："))):
            opening = block
        else:
            merged.append(block)
    return [*merged, opening] if opening else merged


# --- Explicit


def goal_lines(documents: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the active goal with its next steps, locked decisions and blockers, and the goal and phase of the colony."""
    goals = documents.get("goals") or {}
    for goal in goals.get("goals", ()):
        if goal["id"] == goals["current"] and not goal.get("outcome"):
            yield from _goal(goal)
    colony = documents["COLONY_STATE"]
    started = (
        str(signal["metadata"].get("context", ""))
        for signal in reversed(documents["pheromones"]["active_pheromones"])
        if signal["type"].upper() == "INIT"
    )
    if text := colony["goal"] or next(started, ""):
        yield Line("state", f"Goal: {one_line(text, LINE_CHARS)}", source="explicit")
    status = colony["colony_status"]
    phase = status["current_phase"]
    if phase is not None:
        planned: Mapping[str, Any] = next(
            (entry for entry in colony["phases"]["roadmap"] if entry["phase"] == phase), {}
        )
        about = ", ".join(
            one_line(planned[name], SHORT_CHARS) for name in ("name", "goal") if planned.get(name)
        )
        text = f"Phase {phase} is {status['state']}" + (f": {about}" if about else "")
        yield Line("state", text, timestamp(colony["state_machine"]["last_transition"]), source="explicit")


def _goal(goal: Mapping[str, Any]) -> Iterator[Line]:
    def line(kind: Kind, text: str, at: str, note: str = "") -> Line:
        return Line(kind, text, timestamp(at), note, (goal["id"],), goal["evidence"], "explicit")

    steps = goal["subtasks"]
    completed = sum(step["status"] == "completed" for step in steps)
    progress = f"{completed} of {len(steps)} steps completed" if steps else ""
    yield line(
        "state", f"Active goal: {shortened(goal['description'], NOTE_CHARS)}", goal["created_at"], progress
    )
    if goal.get("next_step"):
        yield line("next", goal["next_step"], goal["created_at"])
    open_steps = [step for step in steps if step["status"] != "completed"]
    open_steps.sort(key=lambda step: step["status"] != "in-progress")
    for step in open_steps[:MOST_STEPS]:
        why = f"blocked: {step['blocked_by']}" if step.get("blocked_by") else step["status"]
        yield line("next", step["description"], step["created_at"], why)
    for decision in reversed(goal["decisions"]):
        if decision["locked"]:
            yield line(
                "decision", _with_reason(decision["description"], decision["rationale"]), decision["at"]
            )
    for blocker in goal["blockers"]:
        if not blocker.get("resolved_at"):
            yield line("open", f"blocked: {blocker['description']}", blocker["created_at"])


def note_lines(items: Iterable[Item], note: str = "") -> Iterator[Line]:
    """Yield what was noted on purpose or is protected, as it was typed; `note` is that of each line."""
    for item in items:
        metadata = item["metadata"]
        if is_noted(item) or metadata.get("protected"):
            is_own = evidence_of(item) == "person"
            kind = KIND_OF_NOTE.get(
                item["type"], "rule" if metadata.get("protected") and is_own else "lesson"
            )
            if kind == "request" and not is_own:
                kind = "lesson"  # an agent makes no request of the person
            author = metadata["caste"] or ("" if metadata["source"] == "queen" else metadata["source"])
            text = shortened(without_injected(item["content"]).strip(), NOTE_CHARS)
            about = ", ".join(filter(None, (note, author and f"noted by {author}")))
            yield _of_item(kind, text, item, note=about)._replace(source="explicit")


def signal_lines(documents: Mapping[str, Any], *, now: datetime, caste: str | None = None) -> Iterator[Line]:
    """Yield the signals that are active for `caste` now, strongest first."""
    for signal in signals.active_signals(documents["pheromones"], now=now, caste=caste, types=_SIGNAL_TYPES):
        context = one_line(str(signal["metadata"].get("context", "")), LINE_CHARS)
        text = f"{signal['type']} {signal['effective_strength']:.2f}: {context}"
        time = timestamp(signal["created_at"])
        yield Line("rule", text, time, ids=(signal["id"],), source="explicit", heading=SIGNALS)


def team_lines(documents: Mapping[str, Any], *, now: datetime) -> Iterator[Line]:
    """Yield the agents at work, each with what it holds: whoever leads them has lost count after a compaction."""
    for text, since in islice(teamwork.descriptions(documents, now=now), MOST_MEMBERS):
        line = one_line(text, LINE_CHARS)
        yield Line("state", line, timestamp(since), source="explicit", heading="Who works on what")


# --- Sessions


def session_lines(memory: Mapping[str, Any]) -> tuple[list[Line], list[Line], list[Line]]:
    """Return the statements in force: those of the newest session that has some, then rules and open points, then decisions of the others.

    The state and the next step are those of the newest session only.
    """
    newest, holding, decided = list[Line](), list[Line](), list[Line]()
    for time, session in newest_sessions(memory):
        lines = [
            _of_statement(statement, time)
            for statement in statements_of(session)
            if not statement.ended and _counts(statement, session)
        ]
        if newest:
            holding += [line for line in lines if line.kind in ("rule", "open")]
            decided += [line for line in lines if line.kind == "decision"]
        else:
            # A state that only says what an open point says is left out for it; decisions may be many.
            newest = sorted(lines, key=lambda line: _IMPORTANCE.index(line.kind))
    return newest, holding, decided


def _of_statement(statement: Stated, time: str) -> Line:
    text = _with_reason(one_line(statement.text, LINE_CHARS), statement.rationale)
    ids = (statement.id, *statement.items)
    return Line(statement.kind, text, time, "", ids, statement.evidence, "session", statement.quote)


def _counts(statement: Stated, session: Mapping[str, Any]) -> bool:
    """Return whether a statement is proven; of sessions from before proof was asked for, decisions count as an agent's."""
    if statement.quote:
        return statement.kind != "rule" or statement.evidence == "person"
    architect = (session["metadata"].get("architect") or {}).get("backend")
    copied = architect == EXTRACTIVE and keeps_items(session)  # its items are shown themselves
    return statement.kind == "decision" and not copied and not ended_in(session, statement.text)


def earlier_lines(memory: Mapping[str, Any]) -> Iterator[Line]:
    """Yield in a line each what the older sessions were about, and the newest one if it has no state."""
    for place, (time, session) in enumerate(newest_sessions(memory)):
        states = [entry for entry in statements_of(session) if entry.kind == "state" and not entry.ended]
        if place or not states:
            text = states[0].text if states else session["summary"]
            ids = (states[0].id if states else session["session_id"],)
            yield Line("outcome", one_line(text, LINE_CHARS), time, "", ids, "agent", heading="Earlier work")


def covered_ids(memory: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the items of sessions with proven statements: these say what the items say."""
    return frozenset(
        item["id"]
        for _, session in newest_sessions(memory)
        if any(statement.quote for statement in statements_of(session))
        for item in session["metadata"].get("items", [])
    )


def protected_lines(memory: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the protected texts of sessions from before sessions kept items."""
    for time, session in newest_sessions(memory):
        for text in session["metadata"].get("protected", []):
            yield Line("rule", text, time, ids=(session["session_id"],), source="explicit")


def pattern_lines(memory: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the patterns of long-term memory that nobody ended, the most certain first: they were learned, nobody noted them."""
    patterns = [
        pattern
        for pattern in memory["long_term_memory"]["patterns"]
        if not (pattern.get("metadata") or {}).get("ended_at")
    ]
    for pattern in sorted(patterns, key=itemgetter("confidence", "last_seen"), reverse=True):
        note = f"learned, seen {pattern['occurrences']} times"
        text, time = one_line(pattern["pattern"], LINE_CHARS), timestamp(pattern["last_seen"])
        yield Line("lesson", text, time, note, (pattern["id"],))


# --- The floor


class Floor(NamedTuple):
    """The words and facts of the newest work, the newest first."""

    request: list[Line]
    """The newest request, whole."""
    message: list[Line]
    """The first and last paragraphs of the agent's last message."""
    answers: list[Line]
    plan: list[Line]
    requests: list[Line]
    """The person's earlier messages: the first, which says what the work is for, then the others."""
    messages: list[Line]
    """The first and last paragraph of the last messages of earlier turns."""
    results: list[Line]
    """Commits, then the reports of sub-agents."""
    checks: list[Line]
    """The branch, and the newest failure."""
    runs: list[Line]
    """The other failures, and the last run of each command."""
    files: list[Line]


def floor(items: Sequence[Item], covered: Collection[str] = (), *, summary: bool = True) -> Floor:
    """Return the floor of `items`, the newest first; words of `covered` ids are left out, `summary` allows that of the host."""
    captured = [item for item in items if not is_noted(item) and not item["metadata"].get("ended_at")]
    requests = [item for item in captured if _is_request(item)]
    fresh = [item for item in captured if item["id"] not in covered]
    replies = [item for item in fresh if _role(item) in _REPLIES and not item["metadata"]["caste"]]
    # A summary that is not the newest word of the host is out of date, as is one that is in the context.
    replies = replies[:1] + [item for item in replies[1:] if _role(item) != "summary"]
    if not summary:
        replies = [item for item in replies if _role(item) != "summary"]
    commits = [item for item in captured if _role(item) == "commit"]
    reports = [item for item in fresh if _role(item) == "answer" and item["metadata"]["caste"]]
    turns = [item for item in replies[1:] if _role(item) == "answer"]
    branch = [
        _of_item("command", one_line(item["content"], SHORT_CHARS), item)
        for item in captured
        if _role(item) == "tree"
    ][:1]
    if all(map(is_tree, captured)):
        branch = []  # the host knows the branch; without any work there is nothing to remember
    failed, ran = _runs(captured)
    last = "The host's summary" if replies and _role(replies[0]) == "summary" else "The agent's last message"
    return Floor(
        [_of_item("request", one_line(item["content"], REQUEST_CHARS), item) for item in requests[:1]],
        [line for item in replies[:1] for line in _message(item, last, MESSAGE_CHARS)],
        [_answer(item) for item in fresh if _is_answer(item) or _is_approved(item)][:MOST_FACTS],
        [*_plan(fresh)],
        [
            _of_item("request", one_line(item["content"], REQUEST_CHARS if item is requests[-1] else LINE_CHARS), item)
            for item in (*requests[1:][-1:], *requests[1:-1])
            if item["id"] not in covered and len({*words(item["content"])} - STOPWORDS) >= LEAST_WORDS
        ],
        [line for item in turns[:MOST_TURNS] for line in _message(item, "What the agent said before", TURN_CHARS)],
        [_of_item("outcome", one_line(item["content"], LINE_CHARS), item) for item in (*commits[:MOST_FACTS], *reports[:MOST_FACTS])],
        branch + failed[:1],
        (failed[1:] + ran)[:MOST_FACTS],
        [*islice(_files(captured), MOST_FACTS)],
    )  # fmt: skip


def newest_work(items: Sequence[Item]) -> list[Item]:
    """Return the items of the newest conversation, and of those before it up to one in which an agent said something."""
    conversations: list[str] = []
    for item in items:
        conversation = item["metadata"].get("conversation", "")
        talks = _is_request(item) or _role(item) in ("answer", "said")
        if talks and not is_noted(item) and conversation not in conversations:
            conversations.append(conversation)
            if any(_role(other) == "answer" for other in of_conversation(items, conversation)):
                break
    if not conversations:
        return list(items)
    return [item for item in items if item["metadata"].get("conversation", "") in conversations]


def of_conversation(items: Iterable[Item], conversation: str) -> list[Item]:
    """Return the items of one conversation, in their order."""
    return [item for item in items if item["metadata"].get("conversation", "") == conversation]


def caste_lines(items: Iterable[Item], caste: str) -> Iterator[Line]:
    """Yield the last results of the caste of a sub-agent."""
    for item in items:
        if item["metadata"]["caste"] == caste and item["type"] in _CASTE_TYPES:
            yield _of_item("outcome", one_line(item["content"], LINE_CHARS), item)


def is_tree(item: Item) -> bool:
    """Return whether `item` is what git said of a work tree."""
    return _role(item) == "tree"


def _role(item: Item) -> str:
    return item["metadata"].get("role", "")


def _fact(item: Item) -> Mapping[str, Any]:
    return item["metadata"].get("fact") or {}


def _is_request(item: Item) -> bool:
    """Return whether an item is words that a person typed; that is no answer to a question."""
    return (
        item["metadata"].get("evidence") == "person" and item["type"] in KIND_OF_NOTE and not _is_answer(item)
    )


def _is_answer(item: Item) -> bool:
    return _fact(item).get("kind") == "answer" and item["metadata"].get("evidence") == "person"


def _is_approved(item: Item) -> bool:
    """Return whether an item is a plan that the person accepted."""
    return _role(item) == "plan" and bool(item["metadata"].get("confirmed_by"))


def _of_item(kind: Kind, text: str, item: Item, *, note: str = "") -> Line:
    metadata = item["metadata"]
    ids = (item["id"],) if item.get("id") else ()
    corrected_at = timestamp(metadata.get("corrected_at"))
    evidence = str((corrected_at and metadata.get("corrected_by")) or metadata.get("evidence", ""))
    at = corrected_at or metadata["timestamp"]
    return Line(kind, text, at, note, ids, evidence, corrected=bool(corrected_at))


def _with_reason(text: str, reason: str) -> str:
    return " - ".join(filter(None, (text, one_line(reason, SHORT_CHARS))))


def _message(item: Item, heading: str, most: int) -> Iterator[Line]:
    """Yield the first and the last paragraphs of a message, in its order, as many as `most` characters have room for."""
    entries = paragraphs(item["content"])
    inwards = chain.from_iterable(zip(range(len(entries)), reversed(range(len(entries))), strict=True))
    chosen: set[int] = set()
    for place in dict.fromkeys(inwards):
        most -= min(_width(entries[place]), LINE_CHARS)
        if most < 0:
            break
        chosen.add(place)
    for place in sorted(chosen):
        yield _of_item("state", shortened(entries[place], LINE_CHARS), item)._replace(heading=heading)


def _answer(item: Item) -> Line:
    if not _is_answer(item):
        return _of_item(
            "decision", one_line(item["content"], LINE_CHARS), item, note="approved by the person"
        )
    text = one_line(item["content"], LINE_CHARS)
    if fact := stated_fact(item):
        verb = "asked" if fact.get("question") else "refused"
        about = fact.get("question") or fact.get("command") or fact.get("path", "")
        about = f" ({verb}: {one_line(about, SHORT_CHARS)})" if about else ""
        text = f"{one_line(fact.get('choice', ''), LINE_CHARS)}{about}"
    return _of_item("decision", text, item)._replace(heading="Answers of the person")


def _plan(items: Iterable[Item]) -> Iterator[Line]:
    """Yield the steps of the newest plan that are not over."""
    for item in islice((item for item in items if _fact(item).get("kind") == "plan"), 1):
        fact = stated_fact(item)
        steps = fact["steps"] if fact else [{"text": item["content"], "status": ""}]
        for step in [step for step in steps if step["status"] not in _OVER][:MOST_STEPS]:
            most = SHORT_CHARS if fact else LINE_CHARS
            line = _of_item("next", one_line(step["text"], most), item, note=step["status"])
            yield line._replace(heading="Steps of the plan")


def _runs(items: Iterable[Item]) -> tuple[list[Line], list[Line]]:
    """Return the last run of each command: those that failed, and the others."""
    last: dict[str, Item] = {}
    for item in items:
        if item["type"] in ("command", "error", "solution"):
            last.setdefault(str(_fact(item).get("command") or item["content"]), item)
    failed, succeeded = list[Line](), list[Line]()
    for item in last.values():
        line = _of_item("command", one_line(item["content"], SHORT_CHARS), item)
        if item["type"] == "error":
            failed.append(line._replace(note="has not worked since"))
        else:
            succeeded.append(line)
    return failed, succeeded


def _files(items: Iterable[Item]) -> Iterator[Line]:
    """Yield the changed files, the newest change of each."""
    seen: set[str] = set()
    for item in items:
        path = _fact(item).get("path") or item["content"]
        if item["type"] == "code_change" and path not in seen:
            seen.add(path)
            yield _of_item("file", one_line(item["content"], SHORT_CHARS), item)
