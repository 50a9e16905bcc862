"""Extractive summaries: the lines of removed messages that say most, in the form of each strategy.

Deterministic and offline: the same task gives the same text, never more than its `max_tokens`. Nothing is
written that was not said, but for the words that name a form ("open", "Done").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from aether.backends.extractive.clauses import Clause
from aether.backends.extractive.score import ordered, weigh_clauses
from aether.backends.extractive.session import BEFORE, CHANGE, RAN, Line, Sort, candidate_lines
from aether.messages.shell import reports_failure
from aether.text.classify import classify
from aether.text.picking import longest_fitting
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.types import Counter, JsonObject

# How much sooner a line is taken, as relevance: what was chosen once, then what binds, then what tells.
WORTH: Mapping[Sort, float] = {
    "carried": 0.9, "decided": 0.8, "blocked": 0.7, "solved": 0.7, "asked": 0.6, "done": 0.5, "changed": 0.5,
    "ran": 0.3, "noted": 0.3,
}  # fmt: skip
# The newest message against the oldest: what came last is where the work stands.
RECENCY = 0.3
# Of what is carried, what was done is worth what it was when it was new, and less the older it is: the newest progress
# tells where the work stands. What was decided or found holds on.
_PROGRESS: Mapping[str, float] = {"outcome": 0.5, "fact": 0.3, "chatter": 0.0}
# Where the next line is too long, one of these many behind it may still fit.
TRIED = 20
# Lines that are weighed, the newest: of more, none would be read anyway.
MOST_LINES = 2_000
PARTS = " :: "
NOTHING = "-"

_REASON = lazy(r",? (?:because|since|so that|in order to|due to)\b ?")


class _Form(NamedTuple):
    """What a strategy takes, how it makes lines of its own of it, and how it writes them."""

    takes: frozenset[Sort]
    write: Callable[[Sequence[Line]], str]
    made: Callable[[Sequence[Line]], list[Line]] = list
    repeats: bool = False
    """Whether it also tells what the facts beside it say already."""


def write_summary(task: JsonObject, *, count: Counter) -> str:
    """Return the summary that `task` asks for; empty where nothing was said that belongs there."""
    form = _FORMS[task["strategy"]]
    known = frozenset[str]() if form.repeats else _known(task["facts"])
    made = form.made(candidate_lines(task))
    lines = [line for line in made if line.sort in form.takes and not known.issuperset(sentences(line.text))]
    lines = [line for line in lines[:-MOST_LINES] if line.at == BEFORE] + lines[-MOST_LINES:]
    ranking = ordered(
        weigh_clauses([_clause(*each) for each in enumerate(lines)], _handoff(lines), count=count)
    )
    return _fitting(lines, ranking, form.write, most=task["max_tokens"], count=count)


def _known(facts: JsonObject) -> frozenset[str]:
    """Return the sentences that stand in the facts already."""
    texts = (*facts["goals"], *facts["constraints"], *facts["decisions"], *facts["requests"])
    plain = [" ".join(text.split()) for text in texts]
    # A question that was answered stands there with its answer.
    plain += [text.removeprefix("Asked: ") for text in plain if text.startswith("Asked: ")]
    return frozenset(sentence for text in plain for sentence in sentences(text))


def _clause(place: int, line: Line) -> Clause:
    return Clause(place, place, "", line.text, "", classify(line.text), -1, leads=True)


def _handoff(lines: Sequence[Line]) -> JsonObject:
    newest = max((line.at for line in lines), default=0) or 1
    carried = sum(line.at == BEFORE for line in lines)
    return {
        "items": [
            {
                "id": str(place),
                "type": line.sort,
                "content": line.text,
                "metadata": {
                    "relevance_score": _worth(
                        line, place / carried if line.at == BEFORE else 1 + line.at / newest
                    )
                },
            }
            for place, line in enumerate(lines)
        ],
        "protected": [],
        "signals": [],
        # What must survive stands in the facts.
        "required": [],
    }


def _worth(line: Line, age: float) -> float:
    """Return how much a line is worth; `age` is 0 for the oldest that is carried, 1 for what came after, 2 for the newest."""
    worth, new = WORTH[line.sort], age - 1
    if line.sort == "carried":
        ran = line.text.startswith(RAN)
        worth = WORTH["ran"] if ran else _PROGRESS.get(classify(line.text), worth)
        return worth if worth == WORTH["carried"] else worth + RECENCY * new
    return worth + RECENCY * max(0.0, new)


def _fitting(
    lines: Sequence[Line],
    ranking: Sequence[int],
    write: Callable[[Sequence[Line]], str],
    *,
    most: int,
    count: Counter,
) -> str:
    """Return what is written of the longest beginning of `ranking` that fits, and of what fits behind it."""

    def written(places: Sequence[int]) -> str:
        return write([lines[place] for place in sorted(places)])

    # The one right behind the front is known to be too long.
    return written(
        longest_fitting(ranking, lambda places: count(written(places)), most=most, tried=1 + TRIED)
    )


def _bullets(lines: Sequence[Line]) -> str:
    return "\n".join(f"- {line.text}" for line in lines)


def _state(lines: Sequence[Line]) -> str:
    """Return the lines under plain words for what they say, in order within each."""
    found: dict[str, list[Line]] = {head: [] for head in _HEADS}
    for line in lines:
        found[_head(line)].append(line)
    return "\n".join(f"{head}:\n{_bullets(some)}" for head, some in found.items() if some)


_HEADS = ("Asked", "Decided", "Found", "Changed", "Done", "Problems")
_BY_SORT: Mapping[Sort, str] = {
    "asked": "Asked", "decided": "Decided", "solved": "Found", "blocked": "Problems", "done": "Done", "noted": "Found",
    "ran": "Done", "changed": "Changed",
}  # fmt: skip
_BY_KIND: Mapping[str, str] = {
    "decision": "Decided",
    "blocker": "Problems",
    "outcome": "Done",
    "solution": "Found",
}


def _head(line: Line) -> str:
    if line.text.startswith(RAN) and line.sort in ("carried", "ran"):
        command, _, end = line.text.removeprefix(RAN).partition("`: ")
        return "Problems" if reports_failure(command, end) else _BY_SORT["ran"]
    return _BY_SORT.get(line.sort) or _BY_KIND.get(classify(line.text), "Found")


def _outlined(lines: Sequence[Line]) -> list[Line]:
    """Return `lines` as the present state: the last run of each command, one line for each changed file.

    Of a file whose path is all that is known there is none: that stands in the facts.
    """
    names: dict[str, dict[str, None]] = {}
    found: list[Line] = []
    for line in lines:
        if line.text.startswith(RAN):
            command = line.text.partition("`: ")[0]
            found = [one for one in found if one.text.partition("`: ")[0] != command]
        told = CHANGE.fullmatch(line.text) if line.sort == "changed" else None
        if told is None:
            found.append(line)
        elif told[3]:
            name = told[1].rpartition("/")[2]
            known = names.setdefault(name, {})
            known.update(dict.fromkeys(told[3].split(", ")))
            found = [one for one in found if not (one.sort == "changed" and one.text.startswith(f"{name}: "))]
            found.append(line._replace(text=f"{name}: {told[2]} ({', '.join(known)})"))
    return found


def _steps(lines: Sequence[Line]) -> str:
    return "\n".join(f"{nth}. {_step(line)}" for nth, line in enumerate(lines, start=1))


def _step(line: Line) -> str:
    return f"Asked: {line.text}" if line.sort == "asked" else line.text


def _plain(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def _decisions(lines: Sequence[Line]) -> list[Line]:
    """Return each decision as a line of the log: where it was taken, what, and why."""
    return [
        line if line.at == BEFORE else line._replace(text=_decision(line)) for line in lines if _decides(line)
    ]


def _decides(line: Line) -> bool:
    return line.sort == "decided" or PARTS in line.text


def _decision(line: Line) -> str:
    reason = _REASON.search(line.text)
    decided = line.text[: reason.start()] if reason else line.text
    rationale = line.text[reason.end() :] if reason else NOTHING
    return f"[{line.at}] " + PARTS.join((decided, rationale, NOTHING, NOTHING))


def _requirements(lines: Sequence[Line]) -> list[Line]:
    """Return each request with the last thing that came of it; nothing here proves that one is met."""
    found: list[Line] = []
    for line in lines:
        if line.at == BEFORE:
            found.append(line if PARTS in line.text else line._replace(text=_requirement(line.text, "")))
        elif line.sort == "asked":
            found.append(line)
        elif line.sort in {"done", "solved", "ran"} and found and found[-1].sort == "asked":
            asked = found[-1].text.partition(PARTS)[0]
            found[-1] = found[-1]._replace(text=_requirement(asked, line.text))
    return [line if PARTS in line.text else line._replace(text=_requirement(line.text, "")) for line in found]


def _requirement(asked: str, evidence: str) -> str:
    return PARTS.join((asked, "partly" if evidence else "open", evidence or NOTHING))


_EVERY: frozenset[Sort] = frozenset(WORTH)
_FORMS: Mapping[str, _Form] = {
    "task_state": _Form(_EVERY, _state, _outlined),
    "brief": _Form(_EVERY - {"ran", "changed"}, _bullets),
    "decision_log": _Form(frozenset({"carried", "decided"}), _plain, _decisions, repeats=True),
    "code_delta": _Form(frozenset({"carried", "changed", "blocked", "solved"}), _plain, repeats=True),
    "step_ledger": _Form(_EVERY - {"noted"}, _steps),
    "requirements_ledger": _Form(frozenset({"carried", "asked"}), _plain, _requirements, repeats=True),
}
