"""Material: the lines that a summary of removed messages may be made of, each with where it comes from.

Of what was said, the sentences that decide, find, solve, finish or are stuck, and the answer that ended a turn; of what
tools did, the files they changed and how the commands that matter ended. Lines of the summary before come
first and are worth more: they were chosen once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from aether.backends.extractive.trim import is_machine, unbulleted
from aether.messages.shell import ending, matters, shown_command
from aether.messages.tool_calls import command, file_changes
from aether.shapes import JsonObject
from aether.text.classify import classify, decides, is_empty_reply, is_reply, prose, question, stated
from aether.text.cleaning import clean, without_injected
from aether.text.patterns import lazy

Sort = Literal["asked", "decided", "solved", "blocked", "done", "noted", "ran", "changed", "carried"]

# A text beyond this is something pasted; what is said about it stands before and after it.
HEAD_CHARS, TAIL_CHARS = 6_000, 2_000
# The answer that ends a turn tells what came of it; this many of its sentences are looked at.
ANSWER_SENTENCES = 12
# A request is told by how it begins.
REQUEST_SENTENCES = 3
LINE_CHARS = 400
NAMES = 12
# Position that no message has: what is carried comes before all of them.
BEFORE = -1
RAN = "Ran `"

_SORTS: dict[str, Sort] = {
    "decision": "decided",
    "solution": "solved",
    "blocker": "blocked",
    "outcome": "done",
    "observation": "noted",
}
_MARK = lazy(r"^(?:\d{1,5}\. |- )")
_HEADING = lazy(r"^(?:#{1,6} .*|[A-Z][\w ]{0,20}:)$")
CHANGE = lazy(r"(\S+): (created|changed|deleted)(?: \((.*)\))?", re.DOTALL)
# The harness announces what a command printed.
_OUTPUT = lazy(r"^(?:Output|Stdout|Stderr):[ \t]*$", re.MULTILINE | re.IGNORECASE)
# Headings and politeness: a few words without a verb or a number, and what is going on while it is said.
_SAYS_NOTHING = lazy(
    r"(?:[A-Z][a-z]+ ?){1,4}$|(?i:(?:good|great|nice|perfect|excellent)\b[\w ]{0,30}[.!]$|"
    r"(?:now )?(?:i'm|i am|we're|we are) (?:now |still |currently )?(?:waiting|looking|checking|reading|running)\b|(?:step|phase|part) \d{1,3}\W*$)"
)
# A person stopped it: nothing ran.
_REFUSED = lazy(r"\s*(?:The user doesn't want to|\[Request interrupted|Permission )")


class Line(NamedTuple):
    """One line that a summary may hold."""

    at: int
    sort: Sort
    text: str


def material(task: JsonObject) -> list[Line]:
    """Return the lines that a summary for `task` may be made of, in order, each once."""
    before = list(_carried(task["previous"]))
    said = list(_said(task["said"]))
    changed = _changes(
        {told[1]: told for line in before if (told := CHANGE.fullmatch(line.text))}, task["said"]
    )
    again = {line.text.partition(": ")[0] for line in changed}
    lines = [line for line in before if line.sort != "changed" or line.text.partition(": ")[0] not in again]
    found: dict[str, Line] = {}
    for line in sorted([*lines, *said, *changed], key=lambda line: line.at):
        found.setdefault(line.text, line)
    return list(found.values())


def _carried(previous: str) -> Iterator[Line]:
    for line in previous.split("\n"):
        text = _MARK.sub("", line.strip()).strip()
        if text and not _HEADING.match(text):
            yield Line(BEFORE, "changed" if CHANGE.fullmatch(text) else "carried", text)


def _said(said: Sequence[JsonObject]) -> Iterator[Line]:
    yield from _ran(said)
    last = _ends_of_turns(said)
    before = ""
    for nth, one in enumerate(said):
        text = clean(without_injected(_ends(one["text"]))) if not one["tool"] else ""
        if not text:
            continue
        if one["role"] == "user":
            yield from _asked(one["at"], text, question(before) if is_reply(text) else "")
            before = ""
        elif one["role"] == "assistant":
            yield from _stated(one["at"], text, answers=nth in last)
            before = text


def _asked(at: int, text: str, question_before: str) -> Iterator[Line]:
    if question_before and (decides(question_before) or not is_empty_reply(text)):
        yield _line(
            at,
            "decided" if decides(question_before) else "asked",
            f"Asked: {question_before} Answered: {text}",
        )
    elif not is_empty_reply(text):
        yield _line(at, "asked", " ".join(_plain(prose(text))[:REQUEST_SENTENCES]) or text)


def _stated(at: int, text: str, *, answers: bool) -> Iterator[Line]:
    for kind, sentences in stated(text).items():
        for sentence in _telling(sentences):
            yield _line(at, _SORTS[kind], sentence)
    if answers:
        for sentence in _telling(prose(text))[:ANSWER_SENTENCES]:
            if classify(sentence) not in {"chatter", "exploration"}:
                yield _line(at, "noted", sentence)


def _ends_of_turns(said: Sequence[JsonObject]) -> set[int]:
    """Return the places of what the model said last before a person spoke again, and at the end."""
    found: set[int] = set()
    last = -1
    for nth, one in enumerate(said):
        if one["role"] == "user" and last >= 0:
            found.add(last)
            last = -1
        elif one["role"] == "assistant" and not one["tool"]:
            last = nth
    return found | {last}


def _plain(sentences: Iterable[str]) -> list[str]:
    """Return those of `sentences` that state something, without the marks of a list and of emphasis."""
    bare = (unbulleted(" ".join(sentence.split())).replace("**", "") for sentence in sentences)
    return [one for one in bare if not is_machine(one) and not one.endswith(":")]


def _telling(sentences: Iterable[str]) -> list[str]:
    """Return the plain ones of an assistant's `sentences` without headings and politeness."""
    return [one for one in _plain(sentences) if not _SAYS_NOTHING.match(one)]


def _line(at: int, sort: Sort, text: str) -> Line:
    one = " ".join(text.split())
    return Line(at, sort, one if len(one) <= LINE_CHARS else one[: LINE_CHARS - 1] + "…")


def _ends(text: str) -> str:
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]}\n\n{text[-TAIL_CHARS:]}"


def _ran(said: Sequence[JsonObject]) -> Iterator[Line]:
    """Yield the commands that matter with how they ended; an answer belongs to the oldest open call of its tool."""
    waiting: dict[str, list[str]] = {}
    for one in said:
        if one["tool"] and one["role"] != "tool":
            waiting.setdefault(one["tool"], []).append(command(_arguments(one["text"])))
        elif waiting.get(one["tool"]):
            ran = waiting[one["tool"]].pop(0)
            if ran and matters(ran) and not _REFUSED.match(one["text"]):
                end = ending(_OUTPUT.sub("", without_injected(_ends(one["text"]))))
                yield _line(one["at"], "ran", f"{RAN}{shown_command(ran)}`" + (f": {end}" if end else ""))


def _changes(before: Mapping[str, re.Match[str]], said: Iterable[JsonObject]) -> list[Line]:
    """Return one line for each file that was changed, with what all its changes brought, also those `before`."""
    found: dict[str, tuple[int, str, dict[str, None]]] = {}
    for one in said:
        if not one["tool"] or one["role"] == "tool":
            continue
        arguments = _arguments(one["text"])
        for change in file_changes(arguments, command(arguments)):
            _, action, names = found.get(change.path) or _known(before.get(change.path))
            found.pop(change.path, None)
            action = action if action == "created" and change.action == "changed" else change.action
            found[change.path] = (one["at"], action, names | dict.fromkeys(change.names))
    return [_change(path, *what) for path, what in found.items()]


def _known(told: re.Match[str] | None) -> tuple[int, str, dict[str, None]]:
    return (BEFORE, told[2], dict.fromkeys((told[3] or "").split(", "))) if told else (BEFORE, "", {})


def _change(path: str, at: int, action: str, names: Iterable[str]) -> Line:
    about = ", ".join(list(filter(None, names))[-NAMES:])
    return Line(at, "changed", f"{path}: {action}" + (f" ({about})" if about else ""))


def _arguments(text: str) -> JsonObject:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": text}
