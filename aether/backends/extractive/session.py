"""Composition: the kept clauses as a session that reads in the order in which things were said.

A statement that may become a pattern, or that someone will look up by itself, stands alone: decisions with
their reasons, outcomes with what they changed, and whatever is highly relevant. Structure costs tokens, so the
rest shares entries: neighbours of one type together, each speaker named once per entry.

Material: the lines that a summary of removed messages may be made of, each with where it comes from.

Of what was said, the sentences that decide, find, solve, finish or are stuck, and the answer that ended a turn; of what
tools did, the files they changed and how the commands that matter ended. Lines of the summary before come
first and are worth more: they were chosen once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from aether.backends.extractive.clauses import HIGH_RELEVANCE, Clause, is_machine_text, unbulleted
from aether.backends.extractive.score import (
    FRAME_CHARS,
    LEAST_FRAME_WORDS,
    REQUEST_TYPES,
    RESULT_TYPES,
    is_result,
)
from aether.messages.shell import is_notable, outcome_line, short_command
from aether.messages.tool_calls import file_changes, shell_command
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
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.types import JsonObject

# The share of the target that may go into entries of their own, and what one costs in tokens of structure.
STRUCTURE_SHARE = 0.12
ENTRY_TOKENS = 14
# A summary is two or three sentences.
SUMMARY_STATEMENTS = 3
SUMMARY_CHARS = 400
# An entry of several statements is about a paragraph long.
SHARED_CHARS = 1_600
NOTHING = "Nothing was said that is worth keeping."

# What may be promoted at one sighting (requirements/004).
PROMOTED = 0.8
# A session of fewer entries says too little, however short it is.
LEAST_ALONE = 4
LEAST_WORDS = 5
# A shorter beginning is no statement without what follows it.
LEAST_HEAD_CHARS = 20

_ASKED = lazy(r"Asked: (.+?)\s+Answered: (.+)", re.DOTALL)
_REASON = lazy(r",? (?:because|since|so that|in order to|due to|as it|otherwise)\b")
_IMPACT = lazy(r",? (?:so|which|reducing|making|allowing|meaning|thus|therefore)\b")
_TELLING_KINDS = frozenset({"decision", "constraint", "solution", "blocker", "preference", "outcome"})
# Records of work read as lists: which files, which commands, which errors.
_WORK_TYPES = frozenset({"code_change", "command", "error", "code_snippet"})
_STOPS = tuple(".!…。！")
_ENDS = tuple(".!?:;。！？…")


class Statement(NamedTuple):
    """The kept clauses of one sentence."""

    place: int
    item: int
    speaker: str
    text: str
    kind: str
    type: str
    relevance: float
    leads: bool
    required: str
    whole: bool
    """Whether it is a sentence, not a part of one."""


def compose_session(
    handoff: Mapping[str, Any], clauses: Sequence[Clause], kept: Sequence[int], *, target_tokens: int
) -> JsonObject:
    """Return the session that holds the clauses `kept` and everything protected.

    Where the hand-off is `summarised` by somebody else, its summary says nothing that is not said elsewhere.
    """
    statements = _statements(handoff, clauses, sorted(kept))
    summary = [] if handoff.get("summarised") else _summary(statements, handoff)
    rest = _without(statements, summary)
    alone = _alone(rest, most=int(target_tokens * STRUCTURE_SHARE / ENTRY_TOKENS))
    decisions = [statement for statement in alone if _is_decision(statement, handoff)]
    others = _without(alone, decisions)
    outcomes = [statement for statement in others if _is_outcome(statement)]
    single = _without(others, outcomes)
    shared = _without(rest, alone)
    name = handoff["compression_id"]
    return {
        "id": name,
        "session_id": name,
        "compressed_at": handoff["prepared_at"],
        "phase": handoff["phase"],
        "summary": _told(sorted(summary, key=_by_speaker)) or _opening(handoff, statements),
        "key_decisions": [_decision(entry) for entry in decisions],
        "outcomes": [_split(entry, _IMPACT, "result", "impact") for entry in outcomes],
        "high_value_items": [*_protected(handoff), *_entries(single, shared)],
    }


def _statements(
    handoff: Mapping[str, Any], clauses: Sequence[Clause], kept: Iterable[int]
) -> list[Statement]:
    statements: list[Statement] = []
    last = -1
    for place in kept:
        clause = clauses[place]
        follows = place == last + 1 and clause.joint != ""
        last = place
        if follows or clause.leans_on >= 0:
            joint = clause.joint if follows else ", "
            statements[-1] = statements[-1]._replace(text=statements[-1].text + joint + clause.text)
            continue
        item = handoff["items"][clause.item]
        relevance = item["metadata"].get("relevance_score", 0.5)
        statements.append(
            Statement(
                place,
                clause.item,
                clause.speaker,
                clause.text,
                clause.kind,
                item["type"],
                relevance,
                clause.leads,
                clause.required,
                _is_whole(clauses, place),
            )
        )
    return statements


def _without(statements: Sequence[Statement], others: Sequence[Statement]) -> list[Statement]:
    places = {statement.place for statement in others}
    return [statement for statement in statements if statement.place not in places]


def _is_whole(clauses: Sequence[Clause], place: int) -> bool:
    """Return whether the clause at `place` begins a sentence that is not cut further."""
    after = clauses[place + 1] if place + 1 < len(clauses) else None
    return clauses[place].joint == "" and (
        after is None or after.joint == "" or bool(clauses[place].required)
    )


def _alone(statements: Sequence[Statement], *, most: int) -> list[Statement]:
    """Return the statements that stand alone, in order: what must survive and what tells most, as structure may cost.

    What may become a pattern always does: in one entry with its neighbours it would become one with them.
    """
    must = {statement.place for statement in statements if statement.relevance > PROMOTED}
    worthy = [statement for statement in statements if statement.place not in must and _rank(statement) > 0]
    worthy.sort(key=lambda statement: (-_rank(statement), -statement.relevance, statement.place))
    places = must | {statement.place for statement in worthy[: max(LEAST_ALONE, most)]}
    return [statement for statement in statements if statement.place in places]


def _rank(statement: Statement) -> int:
    high = statement.relevance > HIGH_RELEVANCE
    if statement.required:
        return 5 + bool(_ASKED.fullmatch(statement.text))
    if statement.type in _WORK_TYPES or not (statement.speaker or _reads_alone(statement)):
        return 0
    if statement.type in {"decision", "constraint", "preference"}:
        return 3 + high
    if not statement.speaker and (statement.kind in _TELLING_KINDS or statement.type in RESULT_TYPES):
        return 1 + high
    return int(high)


def _reads_alone(statement: Statement) -> bool:
    """Return whether a statement is a sentence that someone said, not a heading, output, or half a sentence."""
    text = statement.text
    ended = text.rstrip("*_`\"')”’").endswith(_STOPS)
    return statement.whole and ended and len(text.split()) >= LEAST_WORDS and not is_machine_text(text)


def _is_decision(statement: Statement, handoff: Mapping[str, Any]) -> bool:
    if "required" in handoff:
        return statement.required == "decision"
    return "decision" in (statement.type, statement.kind)


def _is_outcome(statement: Statement) -> bool:
    if statement.required or statement.type in _WORK_TYPES:
        return False
    return statement.type in RESULT_TYPES or statement.kind in {"outcome", "solution"}


def _summary(statements: Sequence[Statement], handoff: Mapping[str, Any]) -> list[Statement]:
    """Return what the summary says: what was asked first, and what came of it last."""
    spoken = all(entry.speaker for entry in statements)
    if spoken and sum(len(entry.text) for entry in statements) <= SHARED_CHARS:
        return list(statements)  # a short talk is told in one paragraph
    fit = [entry for entry in statements if not entry.required and entry.relevance <= PROMOTED]
    opening = [entry for entry in fit if entry.leads and _ends_well(entry)]
    asked = [entry for entry in opening if entry.type in REQUEST_TYPES][:1]
    done = [entry for entry in opening if is_result(handoff["items"][entry.item])][-1:]
    chosen = [*asked, *done]
    told = [entry for entry in fit if entry.type not in RESULT_TYPES | REQUEST_TYPES]
    telling = [entry for entry in told if _is_outcome(entry) and _reads_alone(entry)]
    others = [entry for entry in fit if entry.speaker]
    for entry in (*reversed(telling), *others):
        room = SUMMARY_CHARS - sum(len(taken.text) for taken in chosen)
        if len(chosen) < SUMMARY_STATEMENTS and entry not in chosen and len(entry.text) <= room:
            chosen.append(entry)
    return sorted(chosen or fit[:1], key=lambda entry: entry.place)


def _ends_well(statement: Statement) -> bool:
    said = statement.whole and len(statement.text) <= FRAME_CHARS and statement.text[-1] != ":"
    return said and len(statement.text.split()) >= LEAST_FRAME_WORDS


def _opening(handoff: Mapping[str, Any], statements: Sequence[Statement]) -> str:
    """Return what to say where every statement stands elsewhere: the first of them once more, shortened."""
    texts = (
        *(str(entry["content"]) for entry in handoff["protected"]),
        *(entry.text for entry in statements),
        # Where there was room for nothing: what was decided, else what there is.
        *(item["content"] for item in handoff["items"] if item["type"] == "decision"),
        *(item["content"] for item in handoff["items"]),
    )
    first = next((sentence for text in texts for sentence in sentences(text)), NOTHING)
    return first if len(first) <= SUMMARY_CHARS else first[: SUMMARY_CHARS - 1] + "…"


def _by_speaker(statement: Statement) -> tuple[str, int]:
    return statement.speaker, statement.place


def _told(statements: Sequence[Statement]) -> str:
    """Return statements as running text, each speaker named where the speaker changes.

    What stands in different items was not said in one breath, and has a line each.
    """
    told = []
    for (speaker, _), run in groupby(statements, key=_voice):
        said = ""
        for statement in run:
            joint = "" if not said else " " if said.endswith(_ENDS) else "; "
            said += joint + statement.text
        told.append(f"{speaker}: {said}" if speaker else said)
    return "\n".join(told)


def _voice(statement: Statement) -> tuple[str, int]:
    """Return what a line is told for: records of work read as lists, and who is named speaks on."""
    runs_on = statement.speaker or statement.type in _WORK_TYPES
    return statement.speaker, -1 if runs_on else statement.item


def _entries(single: Iterable[Statement], shared: Sequence[Statement]) -> list[JsonObject]:
    entries = [(statement.place, _entry([statement])) for statement in single]
    entries.extend((group[0].place, _entry(sorted(group, key=_by_speaker))) for group in _groups(shared))
    return [entry for _, entry in sorted(entries, key=lambda entry: entry[0])]


def _groups(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Return neighbours of one type, up to the length of a paragraph."""
    groups: list[list[Statement]] = []
    open_groups: dict[str, tuple[int, list[Statement]]] = {}
    for statement in statements:
        chars, group = open_groups.get(statement.type, (SHARED_CHARS, []))
        if chars + len(statement.text) > SHARED_CHARS:
            chars, group = 0, []
            groups.append(group)
        group.append(statement)
        open_groups[statement.type] = (chars + len(statement.text), group)
    return groups


def _entry(statements: Sequence[Statement]) -> JsonObject:
    relevance = max(statement.relevance for statement in statements)
    return {"content": _told(statements), "relevance_score": relevance, "type": statements[0].type}


def _protected(handoff: Mapping[str, Any]) -> list[JsonObject]:
    items = {item["id"]: item for item in handoff["items"]}
    entries = [_whole(entry, items.get(entry.get("id"))) for entry in handoff["protected"]]
    entries.extend(
        {"content": context, "relevance_score": 1.0, "type": "constraint"}
        for signal in handoff["signals"]
        if signal["type"] == "REDIRECT" and (context := str(signal["metadata"].get("context", "")))
    )
    return entries


def _whole(entry: Mapping[str, Any], item: Mapping[str, Any] | None) -> JsonObject:
    kept = {"content": entry["content"], "relevance_score": 1.0, "type": "constraint"}
    if item is not None:
        kept.update(relevance_score=item["metadata"].get("relevance_score", 0.5), type=item["type"])
        if item["metadata"].get("injected"):
            kept["injected"] = True
    return kept


def _decision(statement: Statement) -> JsonObject:
    """Return a decision with its reason; where it was an answer, the question is the reason."""
    asked = _ASKED.fullmatch(statement.text)
    if asked:
        return {"decision": asked[2], "rationale": f"Asked: {asked[1]}"}
    return _split(statement, _REASON, "decision", "rationale")


def _split(statement: Statement, joint: re.Pattern[str], head: str, tail: str) -> JsonObject:
    text = f"{statement.speaker}: {statement.text}" if statement.speaker else statement.text
    found = joint.search(text)
    if found is None or found.start() < LEAST_HEAD_CHARS:
        return {head: text, tail: ""}
    return {head: text[: found.start()], tail: text[found.start() :].strip(" ,")}


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


def candidate_lines(task: JsonObject) -> list[Line]:
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
            yield from _asked(one["at"], text, closing_question(before) if is_reply(text) else "")
            before = ""
        elif one["role"] == "assistant":
            yield from _stated(one["at"], text, answers=nth in last)
            before = text


def _asked(at: int, text: str, question_before: str) -> Iterator[Line]:
    if question_before and (asks_for_decision(question_before) or not is_empty_reply(text)):
        yield _line(
            at,
            "decided" if asks_for_decision(question_before) else "asked",
            f"Asked: {question_before} Answered: {text}",
        )
    elif not is_empty_reply(text):
        yield _line(at, "asked", " ".join(_plain(prose(text))[:REQUEST_SENTENCES]) or text)


def _stated(at: int, text: str, *, answers: bool) -> Iterator[Line]:
    for kind, sentences in statements_by_kind(text).items():
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
    return [one for one in bare if not is_machine_text(one) and not one.endswith(":")]


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
            waiting.setdefault(one["tool"], []).append(shell_command(_arguments(one["text"])))
        elif waiting.get(one["tool"]):
            ran = waiting[one["tool"]].pop(0)
            if ran and is_notable(ran) and not _REFUSED.match(one["text"]):
                end = outcome_line(_OUTPUT.sub("", without_injected(_ends(one["text"]))))
                yield _line(one["at"], "ran", f"{RAN}{short_command(ran)}`" + (f": {end}" if end else ""))


def _changes(before: Mapping[str, re.Match[str]], said: Iterable[JsonObject]) -> list[Line]:
    """Return one line for each file that was changed, with what all its changes brought, also those `before`."""
    found: dict[str, tuple[int, str, dict[str, None]]] = {}
    for one in said:
        if not one["tool"] or one["role"] == "tool":
            continue
        arguments = _arguments(one["text"])
        for change in file_changes(arguments, shell_command(arguments)):
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
