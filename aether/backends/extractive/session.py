"""Session: the kept clauses as session JSON that reads in order.

The summary says what was asked for, what was done and how it came out. Decisions have an entry each with their reasons,
and so have results, first those that a machine showed. The high-value items are what was asked and done, then the rules,
what is open, and what is next; an entry holds statements of one item. Only the files changed are one list, the commands
another, and in a talk, whose turns are short, turns share entries, each speaker named once per entry; a turn that may
become a pattern, or that someone will look up by itself, gets an entry of its own.

Guaranteed: each line of a text is one contiguous stretch of one item (or of a signal), apart from the name of a speaker
before it. Which clauses are kept is decided in `score`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.backends.extractive.clauses import (
    BINDING_TYPES,
    HIGH_RELEVANCE,
    REQUEST_TYPES,
    RESULT_TYPES,
    WORK_TYPES,
    Clause,
    is_machine_text,
    is_within,
    spans_kept_whole,
    split_clauses,
)
from aether.backends.extractive.score import (
    MOST_CHECKS,
    is_ahead,
    is_check,
    is_question,
    is_result,
    may_ask,
    may_frame,
    names_goal,
)
from aether.text.accounts import LEAST_CHANGE, rate, rate_change
from aether.text.classify import is_reply
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.types import JsonObject

# The share of the target that entries of their own may cost, and the tokens of structure that one costs.
STRUCTURE_SHARE = 0.12
ENTRY_TOKENS = 14
# A summary is two or three sentences.
SUMMARY_STATEMENTS = 3
SUMMARY_CHARS = 400
# An entry of several statements is about a paragraph long.
SHARED_CHARS = 1_600
NOTHING = "Nothing was said that is worth keeping."
ENTRIES_ONLY = "What was said is in the entries, word for word."
# Items above this relevance may be promoted at one sighting (requirements/004).
PROMOTED = 0.8
# A session of fewer entries says too little, however short it is.
LEAST_ALONE = 4
LEAST_WORDS = 5
# A shorter head is no statement without its tail.
LEAST_HEAD_CHARS = 20
NEXT = "next"
# Notes of one line each: in a list.
LISTED_TYPES = frozenset({"code_change", "command"})

_ASKED = lazy(r"Asked: (.+?)\s+Answered: (.+)", re.DOTALL)
_REASON = lazy(r",? (?:because|since|so that|in order to|due to|as it|otherwise)\b")
_IMPACT = lazy(r", (?:so|which|reducing|making|allowing|meaning|thus|therefore)\b")
# The order of the high-value items, by type; other types follow the records of work.
_ORDER = {
    **dict.fromkeys(REQUEST_TYPES, 0), "code_change": 1, "command": 2, "code_snippet": 2, "decision": 4,
    "constraint": 5, "preference": 5, "error": 6, "blocker": 6, NEXT: 7,
}  # fmt: skip
_OTHER_TYPES = 3
_END_MARK = lazy(r"(?<=[\w)\"'”’])[.!]$")
_STOPS = tuple(".!…。！")


class Statement(NamedTuple):
    """The kept clauses of one sentence."""

    place: int
    last: int
    """Place of its last clause."""
    joint: str
    """The text between it and the clause before it, if the item has nothing else between them."""
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
    is_shown: bool
    """Whether a machine showed it."""


def compose_session(
    handoff: Mapping[str, Any], clauses: Sequence[Clause], kept: Sequence[int], *, target_tokens: int
) -> JsonObject:
    """Return the session that holds the clauses `kept` and everything protected.

    If somebody else `summarised` the hand-off, the summary only repeats a statement of another field.
    """
    statements = _statements(handoff, clauses, sorted(kept))
    summary = [] if handoff.get("summarised") else _summary(statements)
    rest = _without(statements, summary)
    # The most informative turns of a talk get entries of their own, as structure may cost. One that may become a
    # pattern always does: in one entry with its neighbours it would become one with them.
    must = {one.place for one in rest if one.relevance > PROMOTED or not _may_share(one)}
    worthy = [one for one in rest if one.place not in must and _rank(one) > 0]
    worthy.sort(key=lambda one: (-_rank(one), -one.relevance, one.place))
    most = max(LEAST_ALONE, int(target_tokens * STRUCTURE_SHARE / ENTRY_TOKENS))
    places = must | {one.place for one in worthy[:most]}
    alone = [one for one in rest if one.place in places]
    decisions = [one for one in alone if _decides(one, named="required" in handoff)]
    others = _without(alone, decisions)
    checks = [one for one in rest if one.type == "command" and is_check(one.text)][-MOST_CHECKS:]
    outcomes = [one for one in others if _is_outcome(one) and one not in checks]
    # What a machine showed comes before what somebody said.
    shown = [one for one in outcomes if one.is_shown]
    outcomes = [*checks, *shown, *_without(outcomes, shown)]
    name = handoff["compression_id"]
    return {
        "id": name,
        "session_id": name,
        "compressed_at": handoff["prepared_at"],
        "phase": handoff["phase"],
        "summary": _running_text(summary) or _opening(handoff, statements),
        "key_decisions": [_decision(entry) for entry in decisions],
        "outcomes": [_split(entry, _IMPACT, "result", "impact") for entry in outcomes],
        "high_value_items": [
            entry
            for _, _, entry in sorted(
                [
                    *_protected(handoff),
                    *_entries(_without(others, outcomes), _without(rest, [*alone, *checks])),
                ],
                key=lambda ranked: ranked[:2],
            )
        ],
    }


def _may_share(statement: Statement) -> bool:
    """Return whether a statement is a turn of a talk, or a line in the list of files or of commands."""
    return bool(statement.speaker) or statement.type in LISTED_TYPES


def _decides(statement: Statement, *, named: bool) -> bool:
    """Return whether a statement is a decision; if the hand-off names the required ones, only those of it are."""
    decides = statement.required == "decision" if named else "decision" in (statement.type, statement.kind)
    return decides and not is_question(statement.text)


def _statements(
    handoff: Mapping[str, Any], clauses: Sequence[Clause], kept: Iterable[int]
) -> list[Statement]:
    statements: list[Statement] = []
    asked = [at for at, item in enumerate(handoff["items"]) if item["type"] in REQUEST_TYPES]
    done = [at for at, item in enumerate(handoff["items"]) if is_result(item)]
    for place in kept:
        clause = clauses[place]
        before = statements[-1] if statements else None
        if (
            before
            and before.last == place - 1
            and clause.joint
            and (clause.leans_on >= 0 or not clause.begins)
        ):
            text = before.text + clause.joint + clause.text
            statements[-1] = before._replace(text=text, last=place)
            continue
        item = handoff["items"][clause.item]
        relevance = item["metadata"].get("relevance_score", 0.5)
        cut = place + 1 < len(clauses) and not clauses[place + 1].begins and not clause.required
        ahead = (
            clause.item in done[-1:]
            and not clause.required
            and (is_ahead(clause.text) or is_question(clause.text))
        )
        # A request that nothing answers is next.
        ahead = (
            ahead
            or clause.is_ahead
            or (clause.item in asked[-1:] and clause.item > max(done, default=clause.item))
        )
        # A question is no decision.
        kept_as = "user_input" if item["type"] == "decision" and is_question(clause.text) else item["type"]
        statements.append(
            Statement(
                place, place, clause.joint, clause.item, clause.speaker, clause.text, clause.kind,
                NEXT if ahead else kept_as, relevance, clause.leads, clause.required,
                whole=clause.begins and not cut, is_shown=item["metadata"].get("evidence") == "machine",
            )
        )  # fmt: skip
    return statements


def _without(statements: Sequence[Statement], others: Sequence[Statement]) -> list[Statement]:
    places = {statement.place for statement in others}
    return [statement for statement in statements if statement.place not in places]


def _rank(statement: Statement) -> int:
    """Return how much a statement that may share an entry deserves one of its own."""
    high = statement.relevance > HIGH_RELEVANCE and statement.type not in LISTED_TYPES
    if statement.required:
        return 5 + bool(_ASKED.fullmatch(statement.text))
    return 3 + high if statement.type in {"decision", "constraint", "preference"} else int(high)


def _is_sentence(statement: Statement) -> bool:
    """Return whether a statement is a sentence of someone, not a heading, output, or half a sentence."""
    text = statement.text
    ended = text.rstrip("*_`\"')”’").endswith(_STOPS)
    return statement.whole and ended and len(text.split()) >= LEAST_WORDS and not is_machine_text(text)


def _is_outcome(statement: Statement) -> bool:
    others = WORK_TYPES | REQUEST_TYPES | {NEXT}
    if statement.required or is_question(statement.text) or statement.type in others:
        return False
    if statement.is_shown:
        return statement.type != "solution"  # what failed, and what fixed it, is an entry
    return statement.type in RESULT_TYPES or statement.kind in {"outcome", "solution"}


def _summary(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements of the summary in order: what was asked for, what was done, and how it came out."""
    spoken = all(entry.speaker for entry in statements)
    if spoken and sum(len(entry.text) for entry in statements) <= SHARED_CHARS:
        return sorted(statements, key=_by_speaker)  # a short talk is one paragraph
    fit = [entry for entry in statements if not entry.required and entry.relevance <= PROMOTED]
    opening = [entry for entry in fit if entry.leads and entry.whole]
    requests = [entry for entry in opening if entry.type in REQUEST_TYPES and may_ask(entry.text)]
    asked = sorted(requests, key=lambda entry: not names_goal(entry.text))[:1]
    said = (entry for entry in opening if entry.type in RESULT_TYPES and not entry.is_shown)
    results = [entry for entry in said if not is_question(entry.text)]
    done = [entry for entry in results if may_frame(entry.text)]
    # What changed most was done; the last result is how it came out.
    changed = [entry for entry in done if rate_change(entry.text) > LEAST_CHANGE]
    best = sorted(changed, key=lambda entry: (-rate_change(entry.text), -entry.place))[:1]
    chosen = [*asked, *{entry.place: entry for entry in (*done[-1:], *best)}.values()]
    plain = [entry for entry in fit if entry.type not in BINDING_TYPES]
    ended = [entry for entry in plain if entry.type != NEXT and _is_sentence(entry)]
    of_last = [entry for entry in ended if done and entry.item == done[-1].item]
    found = [entry for entry in ended if _is_outcome(entry) and entry.type not in RESULT_TYPES]
    of_last.sort(key=lambda entry: -rate(entry.text))
    for entry in (*of_last, *reversed(found), *(entry for entry in fit if entry.speaker)):
        room = SUMMARY_CHARS - sum(len(taken.text) for taken in chosen if taken not in asked)
        if len(chosen) < SUMMARY_STATEMENTS and entry not in chosen and len(entry.text) <= room:
            chosen.append(entry)
    chosen = chosen or (plain or fit)[:1]
    return sorted(chosen, key=lambda entry: (entry.speaker, entry not in asked, entry.is_shown, entry.place))


def _opening(handoff: Mapping[str, Any], statements: Sequence[Statement]) -> str:
    """Return a summary if every statement is in another field: the first of them once more, or its first clause."""
    texts = (
        *(str(entry["content"]) for entry in handoff["protected"]),
        *(entry.text for entry in statements),
        # With room for nothing: the decisions, else the first item.
        *(item["content"] for item in handoff["items"] if item["type"] == "decision"),
        *(item["content"] for item in handoff["items"]),
    )
    said = [sentence for text in texts for sentence in sentences(text)]
    pieces = (
        sentence if len(sentence) <= SUMMARY_CHARS else split_clauses(sentence)[0].text for sentence in said
    )
    kept = ENTRIES_ONLY if handoff["protected"] or statements else NOTHING
    return next((piece for piece in pieces if len(piece) <= SUMMARY_CHARS), kept)


def _by_speaker(statement: Statement) -> tuple[str, int]:
    return statement.speaker, statement.place


def _running_text(statements: Sequence[Statement]) -> str:
    """Return statements in lines, each speaker named at a change of speaker.

    Neighbours without anything between them in their item share a line. In a talk, the line ends the sentence.
    """
    lines: list[str] = []
    for speaker, run in groupby(statements, key=lambda statement: statement.speaker):
        said: list[str] = []
        last = -1
        for statement in run:
            if said and statement.joint and statement.place == last + 1:
                said[-1] += statement.joint + statement.text
            else:
                said.append(statement.text)
            last = statement.last
        if speaker:
            said = [_END_MARK.sub("", line) for line in said]
            said[0] = f"{speaker}: {said[0]}"
        lines += said
    return "\n".join(lines)


def _entries(single: Iterable[Statement], shared: Sequence[Statement]) -> list[tuple[int, int, JsonObject]]:
    """Return entries with their rank and place: one for what an item says of `single`, and one for each group of `shared`."""
    own: dict[tuple[int, str, int], list[Statement]] = {}
    for one in single:
        alone = one.place if one.speaker or one.relevance > PROMOTED else -1
        own.setdefault((one.item, one.type, alone), []).append(one)
    groups = [*own.values(), *(sorted(group, key=_by_speaker) for group in _groups(shared))]
    return [
        (_ORDER.get(group[0].type, _OTHER_TYPES), min(one.place for one in group), _entry(group))
        for group in groups
    ]


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
    return {"content": _running_text(statements), "relevance_score": relevance, "type": statements[0].type}


def _protected(handoff: Mapping[str, Any]) -> list[tuple[int, int, JsonObject]]:
    """Return the entries of protected statements and of what was ruled out, with their rank and place."""
    items = {item["id"]: item for item in handoff["items"]}
    entries: list[JsonObject] = []
    for protected in handoff["protected"]:
        entry = {"content": protected["content"], "relevance_score": 1.0, "type": "constraint"}
        if (item := items.get(protected.get("id"))) is not None:
            entry.update(relevance_score=item["metadata"].get("relevance_score", 0.5), type=item["type"])
            if item["metadata"].get("injected"):
                entry["injected"] = True
        entries.append(entry)
    entries.extend(
        {"content": context, "relevance_score": 1.0, "type": "constraint"}
        for signal in handoff["signals"]
        if signal["type"] == "REDIRECT" and (context := str(signal["metadata"].get("context", "")))
    )
    said = (entry for entry in entries if entry["content"].strip())  # of a blank there is nothing to keep
    return [(_ORDER.get(entry["type"], _OTHER_TYPES), -1, entry) for entry in said]


def _decision(statement: Statement) -> JsonObject:
    """Return a decision with its reason; the reason of an answer is its question, without which a "yes" says nothing."""
    asked = _ASKED.fullmatch(statement.text)
    if asked and is_reply(asked[2]):
        return {"decision": statement.text, "rationale": ""}
    if asked:
        return {"decision": asked[2], "rationale": f"Asked: {asked[1]}"}
    return _split(statement, _REASON, "decision", "rationale")


def _split(statement: Statement, joint: re.Pattern[str], head: str, tail: str) -> JsonObject:
    text = f"{statement.speaker}: {statement.text}" if statement.speaker else statement.text
    if statement.type == "command":
        return {head: text, tail: ""}
    kept = spans_kept_whole(text)
    cuts = (found.start() for found in joint.finditer(text) if not is_within(found.start(), kept))
    cut = next((at for at in cuts if at >= LEAST_HEAD_CHARS), None)
    if cut is None:
        return {head: text, tail: ""}
    return {head: text[:cut], tail: text[cut:].strip(" ,")}
