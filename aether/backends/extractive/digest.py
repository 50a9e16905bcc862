"""Digest: the lines of removed messages that say most, in the form of each summary strategy.

Candidate lines are the sentences that decide, find, solve, finish or are stuck, the answer that ended a turn, the
files that tools changed and the outcome of the commands that matter. Lines of the previous summary come first and
count more, because they were selected before. Deterministic and offline: the same task gives the same text, of at most
`max_tokens`, and nothing is added but the words that name a form ("open", "Done"). The ranking is that of `score`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from aether.backends.extractive.clauses import Clause, is_machine_text, unbulleted
from aether.backends.extractive.score import ordered, weigh_clauses
from aether.messages.shell import is_notable, outcome_of, reports_failure, short_command
from aether.messages.tool_calls import file_changes, shell_command
from aether.text.accounts import HEADING, is_narration, reason_of, says_why
from aether.text.classify import (
    asks_for_decision,
    classify,
    closing_question,
    is_empty_reply,
    is_reply,
    prose,
    statements_by_kind,
)
from aether.text.cleaning import clean, without_injected
from aether.text.picking import longest_fitting
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.types import Counter, JsonObject

Sort = Literal["asked", "decided", "solved", "blocked", "done", "noted", "ran", "changed", "previous"]

# Worth of a line, as relevance: lines of the previous summary first, then what binds, then what informs.
WORTH: Mapping[Sort, float] = {
    "previous": 0.9, "decided": 0.7, "blocked": 0.6, "solved": 0.6, "asked": 0.6, "done": 0.5, "changed": 0.5,
    "ran": 0.3, "noted": 0.7,
}  # fmt: skip
# The newest message against the oldest: the newest shows the present state.
RECENCY = 0.3
# Progress in the previous summary is worth what it was when new, less with its age; decisions and findings keep their
# worth.
_PROGRESS: Mapping[str, float] = {"outcome": 0.5, "fact": 0.3, "chatter": 0.0}
# If the next line is too long, one of these many behind it may still fit.
TRIED = 20
# Newest lines that are weighed: more would not fit into any summary.
MOST_LINES = 2_000
PARTS = " :: "
NOTHING = "-"
# A longer text was pasted; the words about it are before and after it.
HEAD_CHARS, TAIL_CHARS = 6_000, 2_000
# Sentences read of the answer that ends a turn, which says what came of it, and of a request.
ANSWER_SENTENCES = 12
REQUEST_SENTENCES = 3
LINE_CHARS = 400
NAMES = 12
# Position that no message has: lines of the previous summary come before all messages.
BEFORE = -1
RAN = "Ran `"
CHANGE = lazy(r"(\S+): (created|changed|deleted)(?: \((.*)\))?", re.DOTALL)

_SORTS: dict[str, Sort] = {
    "decision": "decided", "solution": "solved", "blocker": "blocked", "outcome": "done", "observation": "noted",
}  # fmt: skip
_REASON = lazy(r",? (?:because|since|so that|in order to|due to)\b ?")
_MARK = lazy(r"^(?:\d{1,5}\. |- )")
_HEADING = lazy(r"^(?:#{1,6} .*|[A-Z][\w ]{0,20}:)$")
# The harness announces the output of a command.
_OUTPUT = lazy(r"^(?:Output|Stdout|Stderr):[ \t]*$", re.MULTILINE | re.IGNORECASE)
# Headings and politeness: a few words without a verb or a number, and announcements of current work.
_SAYS_NOTHING = lazy(
    r"(?:[A-Z][a-z]+ ?){1,4}$|[A-Za-z' ]{1,12}[.!]$|(?i:(?:good|great|nice|perfect|excellent)\b[\w ]{0,30}[.!]$|"
    r"(?:now )?(?:i'm|i am|we're|we are) (?:now |still |currently )?(?:waiting|looking|checking|reading|running)\b|(?:step|phase|part) \d{1,3}\W*$)"
)
# A person stopped it: nothing ran.
_REFUSED = lazy(r"\s*(?:The user doesn't want to|\[Request interrupted|Permission )")


class Line(NamedTuple):
    """One line that a summary may hold."""

    at: int
    sort: Sort
    text: str


class _Form(NamedTuple):
    """The form of a strategy: the lines it takes, how it rewrites them, and how it writes them."""

    takes: frozenset[Sort]
    write: Callable[[Sequence[Line]], str]
    made: Callable[[Sequence[Line]], list[Line]] = list
    repeats: bool = False
    """Whether it also repeats the facts beside it."""


def write_summary(task: JsonObject, *, count: Counter) -> str:
    """Return the summary that `task` asks for; empty if no line belongs there."""
    form = _FORMS[task["strategy"]]
    facts: JsonObject = {} if form.repeats else task["facts"]
    known = _known(facts)
    ran = {one.partition("`: ")[0] for one in facts.get("state", ()) if one.startswith(RAN)}
    made = form.made(candidate_lines(task))
    lines = [
        line
        for line in made
        if line.sort in form.takes
        and not known.issuperset(sentences(line.text))
        and line.text.partition("`: ")[0] not in ran  # the state has its last run
    ]
    lines = [line for line in lines[:-MOST_LINES] if line.at == BEFORE] + lines[-MOST_LINES:]
    clauses = [
        Clause(place, place, "", line.text, "", classify(line.text), -1, leads=True)
        for place, line in enumerate(lines)
    ]
    # The form that `score` weighs; required statements are in the facts.
    newest = max((line.at for line in lines), default=0) or 1
    previous = sum(line.at == BEFORE for line in lines)
    items = []
    for place, line in enumerate(lines):
        age = place / previous if line.at == BEFORE else 1 + line.at / newest
        known_as = {"id": str(place), "type": line.sort, "content": line.text}
        items.append(known_as | {"metadata": {"relevance_score": _worth(line, age)}})
    handoff = {"items": items, "protected": [], "signals": [], "required": []}
    ranking = ordered(weigh_clauses(clauses, handoff, count=count))

    def written(places: Sequence[int]) -> str:
        return form.write([lines[place] for place in sorted(places)])

    def cost(places: Sequence[int]) -> int:
        return count(written(places))

    # The one right behind the front is known to be too long.
    return written(longest_fitting(ranking, cost, most=task["max_tokens"], tried=1 + TRIED))


def _known(facts: JsonObject) -> frozenset[str]:
    """Return the sentences that are in the facts already."""
    fields = ("goals", "current", "state", "next", "earlier", "constraints", "decisions", "requests")
    texts = [text for field in fields for text in facts.get(field, ())]
    plain = [" ".join(text.split()) for text in texts]
    # An answered question is there together with its answer.
    plain += [text.removeprefix("Asked: ") for text in plain if text.startswith("Asked: ")]
    return frozenset(sentence for text in plain for sentence in sentences(text))


def _worth(line: Line, age: float) -> float:
    """Return the worth of a line; `age` is 0 for the oldest of the previous summary, 1 for the oldest message, 2 for the newest."""
    worth, new = WORTH[line.sort], age - 1
    if line.sort == "previous":
        ran = line.text.startswith(RAN)
        worth = WORTH["ran"] if ran else _PROGRESS.get(classify(line.text), worth)
        return worth if worth == WORTH["previous"] else worth + RECENCY * new
    return worth + RECENCY * max(0.0, new)


def candidate_lines(task: JsonObject) -> list[Line]:
    """Return the candidate lines for the summary that `task` asks for, in order, each once."""
    before = []
    for line in task["previous"].split("\n"):
        text = _MARK.sub("", line.strip()).strip()
        if text and not _HEADING.match(text):
            before.append(Line(BEFORE, "changed" if CHANGE.fullmatch(text) else "previous", text))
    known = {change[1]: change for line in before if (change := CHANGE.fullmatch(line.text))}
    changed = _changes(known, task["said"])
    again = {line.text.partition(": ")[0] for line in changed}
    lines = [line for line in before if line.sort != "changed" or line.text.partition(": ")[0] not in again]
    found: dict[str, Line] = {}
    for line in sorted([*lines, *_lines(task["said"]), *changed], key=lambda line: line.at):
        found.setdefault(line.text, line)
    return list(found.values())


def _lines(said: Sequence[JsonObject]) -> Iterator[Line]:
    yield from _command_lines(said)
    # The model's last text before each text of a person, and at the end.
    speech = ((nth, one["role"]) for nth, one in enumerate(said) if one["role"] == "user" or not one["tool"])
    turns = [(nth, role) for nth, role in speech if role in {"user", "assistant"}]
    pairs = pairwise([*turns, (-1, "user")])
    last = {nth for (nth, role), (_, after) in pairs if role == "assistant" and after == "user"}
    before = ""
    for nth, one in enumerate(said):
        text = clean(without_injected(_ends(one["text"]))) if not one["tool"] else ""
        if not text:
            continue
        if one["role"] == "user":
            asked = closing_question(before) if is_reply(text) else ""
            if asked and (asks_for_decision(asked) or not is_empty_reply(text)):
                sort: Sort = "decided" if asks_for_decision(asked) else "asked"
                yield _line(one["at"], sort, f"Asked: {asked} Answered: {text}")
            elif not is_empty_reply(text):
                yield _line(one["at"], "asked", " ".join(_plain(prose(text))[:REQUEST_SENTENCES]) or text)
            before = ""
        elif one["role"] == "assistant":
            for kind, found in statements_by_kind(text).items():
                yield from (_line(one["at"], _SORTS[kind], each) for each in _informative(found))
            yield from (
                _line(one["at"], "decided", each) for each in _informative(filter(None, [reason_of(text)]))
            )
            for each in _informative(prose(text))[:ANSWER_SENTENCES] if nth in last else ():
                if classify(each) not in {"chatter", "exploration"}:
                    yield _line(one["at"], "noted", each)
            before = text


def _plain(found: Iterable[str]) -> list[str]:
    """Return the sentences that state something, without headings and the marks of a list and of emphasis."""
    said = (sentence for sentence in found if not HEADING.fullmatch(sentence))
    bare = (unbulleted(" ".join(sentence.split())).replace("**", "") for sentence in said)
    return [one for one in bare if not is_machine_text(one) and not one.endswith(":")]


def _informative(found: Iterable[str]) -> list[str]:
    """Return the plain ones of an assistant's sentences without politeness, questions, and what it looks at or does next."""
    plain = (one for one in _plain(found) if not (_SAYS_NOTHING.match(one) or one.endswith("?")))
    return [one for one in plain if not is_narration(one) or says_why(one)]


def _line(at: int, sort: Sort, text: str) -> Line:
    one = " ".join(text.split())
    return Line(at, sort, one if len(one) <= LINE_CHARS else one[: LINE_CHARS - 1] + "…")


def _ends(text: str) -> str:
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]}\n\n{text[-TAIL_CHARS:]}"


def _command_lines(said: Sequence[JsonObject]) -> Iterator[Line]:
    """Yield the commands that matter with their outcome; a result belongs to the oldest open call of its tool."""
    waiting: dict[str, list[str]] = {}
    for one in said:
        if one["tool"] and one["role"] != "tool":
            waiting.setdefault(one["tool"], []).append(shell_command(_arguments(one["text"])))
        elif waiting.get(one["tool"]):
            ran = waiting[one["tool"]].pop(0)
            if ran and is_notable(ran) and not _REFUSED.match(one["text"]):
                end = outcome_of(ran, _OUTPUT.sub("", without_injected(_ends(one["text"]))))
                yield _line(one["at"], "ran", f"{RAN}{short_command(ran)}`" + (f": {end}" if end else ""))


def _changes(before: Mapping[str, re.Match[str]], said: Iterable[JsonObject]) -> list[Line]:
    """Return one line for each changed file, with the names that all its changes added, also those `before`."""
    found: dict[str, tuple[int, str, dict[str, None]]] = {}
    for one in said:
        if not one["tool"] or one["role"] == "tool":
            continue
        arguments = _arguments(one["text"])
        for change in file_changes(arguments, shell_command(arguments)):
            action, names = "", dict[str, None]()
            if change.path in found:
                _, action, names = found.pop(change.path)
            elif known := before.get(change.path):
                action, names = known[2], dict.fromkeys((known[3] or "").split(", "))
            action = action if action == "created" and change.action == "changed" else change.action
            found[change.path] = (one["at"], action, names | dict.fromkeys(change.names))
    lines = []
    for path, (at, action, names) in found.items():
        about = ", ".join(list(filter(None, names))[-NAMES:])
        lines.append(Line(at, "changed", f"{path}: {action}" + (f" ({about})" if about else "")))
    return lines


def _arguments(text: str) -> JsonObject:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": text}


def _bullets(lines: Sequence[Line]) -> str:
    return "\n".join(f"- {line.text}" for line in lines)


_HEADS = ("Asked", "Decided", "Found", "Changed", "Done", "Problems")
_BY_SORT: Mapping[Sort, str] = {
    "asked": "Asked", "decided": "Decided", "solved": "Found", "blocked": "Problems", "done": "Done", "noted": "Found",
    "ran": "Done", "changed": "Changed",
}  # fmt: skip
_BY_KIND: Mapping[str, str] = {
    "decision": "Decided", "blocker": "Problems", "outcome": "Done", "solution": "Found",
}  # fmt: skip


def _state(lines: Sequence[Line]) -> str:
    """Return the lines under plain headings, in order within each."""
    found: dict[str, list[Line]] = {head: [] for head in _HEADS}
    for line in lines:
        found[_head(line)].append(line)
    return "\n".join(f"{head}:\n{_bullets(some)}" for head, some in found.items() if some)


def _head(line: Line) -> str:
    if line.text.startswith(RAN) and line.sort in ("previous", "ran"):
        ran, _, end = line.text.removeprefix(RAN).partition("`: ")
        return "Problems" if reports_failure(ran, end) else _BY_SORT["ran"]
    return _BY_SORT.get(line.sort) or _BY_KIND.get(classify(line.text), "Found")


def _present_state(lines: Sequence[Line]) -> list[Line]:
    """Return `lines` as the present state: the last run of each command, one line for each changed file.

    A file of which only the path is known is left out: it is in the facts.
    """
    names: dict[str, dict[str, None]] = {}
    found: list[Line] = []
    for line in lines:
        if line.text.startswith(RAN):
            ran = line.text.partition("`: ")[0]
            found = [one for one in found if one.text.partition("`: ")[0] != ran]
        change = CHANGE.fullmatch(line.text) if line.sort == "changed" else None
        if change is None:
            found.append(line)
        elif change[3]:
            name = change[1].rpartition("/")[2]
            known = names.setdefault(name, {})
            known.update(dict.fromkeys(change[3].split(", ")))
            found = [one for one in found if not (one.sort == "changed" and one.text.startswith(f"{name}: "))]
            found.append(line._replace(text=f"{name}: {change[2]} ({', '.join(known)})"))
    return found


def _numbered(lines: Sequence[Line]) -> str:
    texts = (f"Asked: {line.text}" if line.sort == "asked" else line.text for line in lines)
    return "\n".join(f"{nth}. {text}" for nth, text in enumerate(texts, start=1))


def _as_written(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def _decisions(lines: Sequence[Line]) -> list[Line]:
    """Return each decision as a line of the log: its position, the decision, and its reason."""
    logged = []
    for line in lines:
        if line.at == BEFORE and (line.sort == "decided" or PARTS in line.text):
            logged.append(line)
        elif line.sort == "decided" or PARTS in line.text:
            decided, *reason = _REASON.split(line.text, maxsplit=1)
            entry = PARTS.join((decided, *(reason or [NOTHING]), NOTHING, NOTHING))
            logged.append(line._replace(text=f"[{line.at}] {entry}"))
    return logged


def _requirements(lines: Sequence[Line]) -> list[Line]:
    """Return each request with its last result; nothing here proves that one is met."""
    found: list[Line] = []
    for line in lines:
        if line.sort == "asked" or line.at == BEFORE:
            found.append(line)
        elif line.sort in {"done", "solved", "ran"} and found and found[-1].sort == "asked":
            asked = found[-1].text.partition(PARTS)[0]
            found[-1] = found[-1]._replace(text=_requirement(asked, line.text))
    return [line if PARTS in line.text else line._replace(text=_requirement(line.text, "")) for line in found]


def _requirement(asked: str, evidence: str) -> str:
    return PARTS.join((asked, "partly" if evidence else "open", evidence or NOTHING))


_EVERY: frozenset[Sort] = frozenset(WORTH)
_FORMS: Mapping[str, _Form] = {
    "task_state": _Form(_EVERY, _state, _present_state),
    "brief": _Form(_EVERY - {"ran", "changed"}, _bullets),
    "decision_log": _Form(frozenset({"previous", "decided"}), _as_written, _decisions, repeats=True),
    "code_delta": _Form(frozenset({"previous", "changed", "blocked", "solved"}), _as_written, repeats=True),
    "step_ledger": _Form(_EVERY - {"noted"}, _numbered),
    "requirements_ledger": _Form(frozenset({"previous", "asked"}), _as_written, _requirements, repeats=True),
}
