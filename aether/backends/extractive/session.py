"""Session: the kept clauses as session JSON, in the order of the hand-off.

A statement that may become a pattern, or that someone will look up by itself, gets an entry of its own: decisions with
their reasons, outcomes with their impact, and everything highly relevant. Structure costs tokens, so the others share
entries: neighbours of one type together, each speaker named once per entry. Which clauses are kept is decided in `score`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.backends.extractive.clauses import HIGH_RELEVANCE, Clause, is_machine_text
from aether.backends.extractive.score import REQUEST_TYPES, RESULT_TYPES, is_result, may_frame
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
# Items above this relevance may be promoted at one sighting (requirements/004).
PROMOTED = 0.8
# A session of fewer entries says too little, however short it is.
LEAST_ALONE = 4
LEAST_WORDS = 5
# A shorter head is no statement without its tail.
LEAST_HEAD_CHARS = 20

_ASKED = lazy(r"Asked: (.+?)\s+Answered: (.+)", re.DOTALL)
_REASON = lazy(r",? (?:because|since|so that|in order to|due to|as it|otherwise)\b")
_IMPACT = lazy(r",? (?:so|which|reducing|making|allowing|meaning|thus|therefore)\b")
_INFORMATIVE_KINDS = frozenset({"decision", "constraint", "solution", "blocker", "preference", "outcome"})
# Records of work read as lists: files, commands, errors.
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

    If somebody else `summarised` the hand-off, the summary only repeats a statement of another field.
    """
    statements = _statements(handoff, clauses, sorted(kept))
    summary = [] if handoff.get("summarised") else _summary(statements, handoff)
    rest = _without(statements, summary)
    # The most informative statements get entries of their own, as structure may cost. One that may become a pattern
    # always does: in one entry with its neighbours it would become one with them.
    must = {one.place for one in rest if one.relevance > PROMOTED}
    worthy = [one for one in rest if one.place not in must and _rank(one) > 0]
    worthy.sort(key=lambda one: (-_rank(one), -one.relevance, one.place))
    most = max(LEAST_ALONE, int(target_tokens * STRUCTURE_SHARE / ENTRY_TOKENS))
    places = must | {one.place for one in worthy[:most]}
    alone = [one for one in rest if one.place in places]
    if "required" in handoff:
        decisions = [one for one in alone if one.required == "decision"]
    else:
        decisions = [one for one in alone if "decision" in (one.type, one.kind)]
    others = _without(alone, decisions)
    outcomes = [statement for statement in others if _is_outcome(statement)]
    name = handoff["compression_id"]
    return {
        "id": name,
        "session_id": name,
        "compressed_at": handoff["prepared_at"],
        "phase": handoff["phase"],
        "summary": _running_text(sorted(summary, key=_by_speaker)) or _opening(handoff, statements),
        "key_decisions": [_decision(entry) for entry in decisions],
        "outcomes": [_split(entry, _IMPACT, "result", "impact") for entry in outcomes],
        "high_value_items": [
            *_protected(handoff),
            *_entries(_without(others, outcomes), _without(rest, alone)),
        ],
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
        cut = place + 1 < len(clauses) and clauses[place + 1].joint != "" and not clause.required
        statements.append(
            Statement(
                place, clause.item, clause.speaker, clause.text, clause.kind, item["type"], relevance, clause.leads,
                clause.required, whole=clause.joint == "" and not cut,
            )
        )  # fmt: skip
    return statements


def _without(statements: Sequence[Statement], others: Sequence[Statement]) -> list[Statement]:
    places = {statement.place for statement in others}
    return [statement for statement in statements if statement.place not in places]


def _rank(statement: Statement) -> int:
    high = statement.relevance > HIGH_RELEVANCE
    if statement.required:
        return 5 + bool(_ASKED.fullmatch(statement.text))
    if statement.type in _WORK_TYPES or not (statement.speaker or _is_sentence(statement)):
        return 0
    if statement.type in {"decision", "constraint", "preference"}:
        return 3 + high
    if not statement.speaker and (statement.kind in _INFORMATIVE_KINDS or statement.type in RESULT_TYPES):
        return 1 + high
    return int(high)


def _is_sentence(statement: Statement) -> bool:
    """Return whether a statement is a sentence of someone, not a heading, output, or half a sentence."""
    text = statement.text
    ended = text.rstrip("*_`\"')”’").endswith(_STOPS)
    return statement.whole and ended and len(text.split()) >= LEAST_WORDS and not is_machine_text(text)


def _is_outcome(statement: Statement) -> bool:
    if statement.required or statement.type in _WORK_TYPES:
        return False
    return statement.type in RESULT_TYPES or statement.kind in {"outcome", "solution"}


def _summary(statements: Sequence[Statement], handoff: Mapping[str, Any]) -> list[Statement]:
    """Return the statements of the summary: the request first, and its result last."""
    spoken = all(entry.speaker for entry in statements)
    if spoken and sum(len(entry.text) for entry in statements) <= SHARED_CHARS:
        return list(statements)  # a short talk is one paragraph
    fit = [entry for entry in statements if not entry.required and entry.relevance <= PROMOTED]
    opening = [entry for entry in fit if entry.leads and entry.whole and may_frame(entry.text)]
    asked = [entry for entry in opening if entry.type in REQUEST_TYPES][:1]
    done = [entry for entry in opening if is_result(handoff["items"][entry.item])][-1:]
    chosen = [*asked, *done]
    others = (entry for entry in fit if entry.type not in RESULT_TYPES | REQUEST_TYPES)
    outcomes = [entry for entry in others if _is_outcome(entry) and _is_sentence(entry)]
    for entry in (*reversed(outcomes), *(entry for entry in fit if entry.speaker)):
        room = SUMMARY_CHARS - sum(len(taken.text) for taken in chosen)
        if len(chosen) < SUMMARY_STATEMENTS and entry not in chosen and len(entry.text) <= room:
            chosen.append(entry)
    return sorted(chosen or fit[:1], key=lambda entry: entry.place)


def _opening(handoff: Mapping[str, Any], statements: Sequence[Statement]) -> str:
    """Return a summary if every statement is in another field: the first of them once more, shortened."""
    texts = (
        *(str(entry["content"]) for entry in handoff["protected"]),
        *(entry.text for entry in statements),
        # With room for nothing: the decisions, else the first item.
        *(item["content"] for item in handoff["items"] if item["type"] == "decision"),
        *(item["content"] for item in handoff["items"]),
    )
    first = next((sentence for text in texts for sentence in sentences(text)), NOTHING)
    return first if len(first) <= SUMMARY_CHARS else first[: SUMMARY_CHARS - 1] + "…"


def _by_speaker(statement: Statement) -> tuple[str, int]:
    return statement.speaker, statement.place


def _running_text(statements: Sequence[Statement]) -> str:
    """Return statements as running text, each speaker named at a change of speaker.

    Statements of different items have a line each, except records of work and those of a named speaker.
    """

    def voice(statement: Statement) -> tuple[str, int]:
        runs_on = statement.speaker or statement.type in _WORK_TYPES
        return statement.speaker, -1 if runs_on else statement.item

    lines = []
    for (speaker, _), run in groupby(statements, key=voice):
        said = ""
        for statement in run:
            joint = "" if not said else " " if said.endswith(_ENDS) else "; "
            said += joint + statement.text
        lines.append(f"{speaker}: {said}" if speaker else said)
    return "\n".join(lines)


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
    return {"content": _running_text(statements), "relevance_score": relevance, "type": statements[0].type}


def _protected(handoff: Mapping[str, Any]) -> list[JsonObject]:
    items = {item["id"]: item for item in handoff["items"]}
    entries = []
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
    return entries


def _decision(statement: Statement) -> JsonObject:
    """Return a decision with its reason; the reason of an answer is its question."""
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
