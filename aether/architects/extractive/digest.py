"""Digest: the lines of removed messages that carry most, in the form of each summary strategy.

Lines are what a person asked or answered, what the agent said, the commands that matter with their outcome, and the files
that tools changed. Lines of the previous summary come first and weigh more, because they were chosen before. The same task
gives the same text, of at most `max_tokens`, and nothing is added but the words that name a form ("Asked", "open").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from aether.messages.shell import is_notable, outcome_of, short_command
from aether.messages.tool_calls import answers_in, file_changes, is_refusal, shell_command, words_of_refusal
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
from aether.text.selection import Unit, choose, units_of
from aether.text.words import normalized
from aether.types import Counter, JsonObject

Sort = Literal["asked", "decided", "said", "changed", "ran"]
SORTS: tuple[Sort, ...] = get_args(Sort)

WEIGHTS: Mapping[Sort, float] = {"asked": 2.0, "decided": 3.0, "said": 1.0, "changed": 1.5, "ran": 1.0}
# Of a line of the previous summary.
PREVIOUS_WEIGHT = 1.5
# The newest message weighs so much more than the oldest: it shows how things are.
RECENCY = 0.5
LINE_CHARS = 400
# Texts of the last conversations.
CACHED_TEXTS = 4_096
NAMES = 12
# Position of the lines of the previous summary, before all messages.
BEFORE = -1
# In at most so many steps the words of a form are made room for.
STEPS = 50
PARTS, NOTHING = " :: ", "-"
RAN = "Ran `"
_CHANGE = lazy(r"(\S+): (created|changed|deleted)(?: \((.*)\))?")
_MARK = lazy(r"^(?:\d{1,5}\. |- )")


class Line(NamedTuple):
    """One line that a summary may hold."""

    at: int
    sort: Sort
    text: str


class _Form(NamedTuple):
    """The form of a strategy: the lines it takes, how it writes them, and whether it repeats the facts beside it."""

    takes: frozenset[Sort]
    write: Callable[[Sequence[Line]], str]
    repeats: bool = False


def write_summary(task: JsonObject, *, count: Counter) -> str:
    """Return the summary that `task` asks for; empty if no line belongs there."""
    form = _FORMS[task["strategy"]]
    facts = (
        []
        if form.repeats
        else [text for field in task["facts"].values() for text in field if isinstance(text, str)]
    )
    beside = "\n".join(map(normalized, facts))
    words_beside = set(beside.split())

    def is_beside(text: str) -> bool:
        plain = normalized(text)
        # The words within are whole ones there; a search in the whole text takes longer.
        return words_beside.issuperset(plain.split()[1:-1]) and plain in beside

    lines = [
        line
        for line in candidate_lines(task)
        if (line.sort in form.takes or (line.at == BEFORE and PARTS in line.text))
        and not (beside and is_beside(line.text.partition("`: ")[0]))
    ]
    newest = max((line.at for line in lines), default=0) or 1
    units = [
        Unit(line.text, WEIGHTS[line.sort] * (PREVIOUS_WEIGHT if line.at == BEFORE else 1 + RECENCY * line.at / newest))
        for line in lines
    ]  # fmt: skip
    most = room = task["max_tokens"]
    while True:
        text = form.write([lines[place] for place in choose(units, most=room, count=count)])
        # The words of the form cost something, too.
        excess = count(text) - most
        if excess <= 0 or not room:
            return text if excess <= 0 else ""
        room = max(0, room - max(excess, most // STEPS))


def candidate_lines(task: JsonObject) -> list[Line]:
    """Return the candidate lines for the summary that `task` asks for, in order, each once.

    Of a command only the last run is there, and of a changed file one line with the names of all its changes.
    """
    before = list(_previous(task["previous"]))
    changes_before = {match[1]: match for line in before if (match := _CHANGE.fullmatch(line.text))}
    changed = _changes(changes_before, task["said"])
    again = {line.text.partition(": ")[0] for line in changed}
    earlier = (line for line in before if line.sort != "changed" or line.text.partition(": ")[0] not in again)
    lines: dict[str, Line] = {}
    for line in sorted([*earlier, *_lines(task["said"]), *changed], key=lambda line: line.at):
        key = line.text.partition("`: ")[0] if line.sort == "ran" else line.text
        lines.pop(key, None) if line.sort == "ran" else None
        lines.setdefault(key, line)
    return list(lines.values())


def _previous(text: str) -> Iterator[Line]:
    sort: Sort = "said"
    for line in text.split("\n"):
        bare = _MARK.sub("", line.strip()).strip()
        heads = [head for head in SORTS if f"{head}:" == bare.lower()]
        if heads:
            sort = heads[0]
        elif bare and not bare.startswith("#"):
            line_sort: Sort = (
                "changed" if _CHANGE.fullmatch(bare) else "ran" if bare.startswith(RAN) else sort
            )
            yield Line(BEFORE, line_sort, bare)


def _lines(messages: Sequence[JsonObject]) -> Iterator[Line]:
    """Yield the lines of messages; a result of a tool belongs to its oldest open call."""
    waiting: dict[str, list[str]] = {}
    for entry in messages:
        at, role, tool, text = entry["at"], entry["role"], entry["tool"], entry["text"]
        if tool and role != "tool":
            waiting.setdefault(tool, []).append(shell_command(_arguments(text)))
        elif tool or role == "tool":
            command = waiting[tool].pop(0) if waiting.get(tool) else ""
            answers = answers_in(text)
            yield from (_line(at, "decided", answer) for answer in answers)
            if is_refusal(text):
                words = words_of_refusal(text)
                yield from [_line(at, "asked", words)] if words else ()
            elif command and is_notable(command) and not answers:
                outcome = outcome_of(command, without_injected(text))
                yield _line(
                    at, "ran", f"{RAN}{short_command(command)}`" + (f": {outcome}" if outcome else "")
                )
        elif role in ("user", "assistant"):
            yield from (Line(at, "asked" if role == "user" else "said", line) for line in spoken(role, text))


@lru_cache(maxsize=CACHED_TEXTS)
def spoken(role: str, text: str) -> tuple[str, ...]:
    """Return the lines of a text of the agent, or the one line of what a person asked.

    A conversation keeps its texts, so those that were read when they came are not read again.
    """
    units = units_of(clean(without_injected(text)))
    if role != "user" or not units:
        return tuple(_one_line(unit.text) for unit in units)
    places = choose(units, most=LINE_CHARS, count=len)
    return (_one_line(" ".join(units[place].text for place in places) or units[0].text),)


def _line(at: int, sort: Sort, text: str) -> Line:
    return Line(at, sort, _one_line(text))


def _one_line(text: str) -> str:
    plain = _MARK.sub("", " ".join(text.split()))
    return plain if len(plain) <= LINE_CHARS else plain[: LINE_CHARS - 1] + "…"


def _changes(before: Mapping[str, Any], messages: Sequence[JsonObject]) -> list[Line]:
    """Return one line for each changed file, with the names that its changes added, also those of the summary `before`."""
    files: dict[str, tuple[int, str, dict[str, None]]] = {}
    for entry in messages:
        if not entry["tool"] or entry["role"] == "tool":
            continue
        arguments = _arguments(entry["text"])
        for change in file_changes(arguments, shell_command(arguments)):
            action, names = "", dict[str, None]()
            if change.path in files:
                _, action, names = files.pop(change.path)
            elif match := before.get(change.path):
                action, names = match[2], dict.fromkeys(filter(None, (match[3] or "").split(", ")))
            action = action if action == "created" and change.action == "changed" else change.action
            files[change.path] = (entry["at"], action, names | dict.fromkeys(change.names))
    return [
        Line(at, "changed", f"{path}: {action}" + (f" ({', '.join(list(names)[-NAMES:])})" if names else ""))
        for path, (at, action, names) in files.items()
    ]


def _arguments(text: str) -> JsonObject:
    try:
        arguments: Any = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"input": text}


def _bullets(lines: Sequence[Line]) -> str:
    return "\n".join(f"- {line.text}" for line in lines)


def _by_sort(lines: Sequence[Line]) -> str:
    groups = [(sort, [line for line in lines if line.sort == sort]) for sort in SORTS]
    return "\n".join(f"{sort.capitalize()}:\n{_bullets(group)}" for sort, group in groups if group)


def _numbered(lines: Sequence[Line]) -> str:
    texts = (
        f"Asked: {line.text}" if line.sort == "asked" and line.at != BEFORE else line.text for line in lines
    )
    return "\n".join(f"{place}. {text}" for place, text in enumerate(texts, start=1))


def _logged(lines: Sequence[Line]) -> str:
    """Return each answer of a person as a line of the log: its position and the decision; nobody judged its reason."""
    return "\n".join(
        line.text if PARTS in line.text else PARTS.join((f"[{max(0, line.at)}] {line.text}", *[NOTHING] * 3))
        for line in lines
    )


def _requirements(lines: Sequence[Line]) -> str:
    """Return each request as open; nothing here proves that one is met."""
    return "\n".join(
        line.text if PARTS in line.text else PARTS.join((line.text, "open", NOTHING)) for line in lines
    )


_EVERY = frozenset(SORTS)
_FORMS: Mapping[str, _Form] = {
    "task_state": _Form(_EVERY, _by_sort), "brief": _Form(_EVERY - {"ran", "changed"}, _bullets),
    "decision_log": _Form(frozenset({"decided"}), _logged, repeats=True),
    "code_delta": _Form(frozenset({"changed", "ran"}), lambda lines: "\n".join(line.text for line in lines), repeats=True),
    "step_ledger": _Form(_EVERY, _numbered), "requirements_ledger": _Form(frozenset({"asked"}), _requirements, repeats=True),
}  # fmt: skip
