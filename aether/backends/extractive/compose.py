"""Composition: the kept clauses as a session that reads in the order in which things were said.

A statement that may become a pattern, or that someone will look up by itself, stands alone: decisions with
their reasons, outcomes with what they changed, and whatever is highly relevant. Structure costs tokens, so the
rest shares entries: neighbours of one type together, each speaker named once per entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.backends.extractive.statements import HIGH_RELEVANCE, Clause
from aether.backends.extractive.weigh import REQUEST_TYPES
from aether.shapes import JsonObject
from aether.text.sentences import sentences

# The share of the target that may go into entries of their own, and what one costs in tokens of structure.
STRUCTURE_SHARE = 0.12
ENTRY_TOKENS = 14
# A summary is two or three sentences.
SUMMARY_STATEMENTS = 3
SUMMARY_CHARS = 400
# An entry of several statements is about a paragraph long.
SHARED_CHARS = 1_600
NOTHING = "Nothing was said that is worth keeping."

_REASON = re.compile(r",? (?:because|since|so that|in order to|due to|as it|otherwise)\b")
_IMPACT = re.compile(r",? (?:so|which|reducing|making|allowing|meaning|thus|therefore)\b")
_TELLING_KINDS = frozenset({"decision", "constraint", "solution", "blocker", "preference", "outcome"})
# Records of work read as lists: which files, which commands, which errors.
_WORK_TYPES = frozenset({"code_change", "command", "error", "code_snippet"})
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


def composed(
    handoff: Mapping[str, Any], clauses: Sequence[Clause], kept: Sequence[int], *, target_tokens: int
) -> JsonObject:
    """Return the session that holds the clauses `kept` and everything protected."""
    statements = _statements(handoff, clauses, sorted(kept))
    alone = _alone(statements, most=int(target_tokens * STRUCTURE_SHARE / ENTRY_TOKENS))
    summary = _summary([statement for statement in statements if statement not in alone])
    decisions = [statement for statement in alone if "decision" in (statement.type, statement.kind)]
    outcomes = [statement for statement in alone if statement not in decisions and _is_outcome(statement)]
    single = alone - set(decisions) - set(outcomes)
    shared = [statement for statement in statements if statement not in alone and statement not in summary]
    name = f"phase_{handoff['phase']}_{handoff['compression_id'].rpartition('_')[2]}"
    return {
        "id": name,
        "session_id": name,
        "compressed_at": handoff["prepared_at"],
        "phase": handoff["phase"],
        "summary": _told(sorted(summary, key=_by_speaker)) or _opening(handoff, statements),
        "key_decisions": [_split(entry, _REASON, "decision", "rationale") for entry in decisions],
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
            )
        )
    return statements


def _alone(statements: Sequence[Statement], *, most: int) -> set[Statement]:
    """Return the statements that stand alone: the most telling ones, as far as structure may cost."""
    worthy = [statement for statement in statements if _rank(statement) > 0]
    worthy.sort(key=lambda statement: (-_rank(statement), -statement.relevance, statement.place))
    return set(worthy[:most])


def _rank(statement: Statement) -> int:
    high = statement.relevance > HIGH_RELEVANCE
    if statement.type in _WORK_TYPES:
        return 0
    if statement.type in {"decision", "constraint", "preference"}:
        return 3 + high
    if statement.kind in _TELLING_KINDS and not statement.speaker:
        return 1 + high
    return int(high)


def _is_outcome(statement: Statement) -> bool:
    return statement.type not in _WORK_TYPES and (
        statement.type in {"outcome", "task_result"} or statement.kind in {"outcome", "solution"}
    )


def _summary(statements: Sequence[Statement]) -> list[Statement]:
    """Return what the summary says: what was asked first, and the latest results."""
    asked = [entry for entry in statements if entry.type in REQUEST_TYPES and entry.leads][:1]
    done = [entry for entry in statements if _is_outcome(entry) and entry not in asked]
    others = [entry for entry in statements if entry not in asked and entry not in done]
    spoken = all(entry.speaker for entry in statements)
    if spoken and sum(len(entry.text) for entry in statements) <= SHARED_CHARS:
        return list(statements)  # a short talk is told in one paragraph
    chosen = asked
    for entry in (*reversed(done), *others):
        room = SUMMARY_CHARS - sum(len(taken.text) for taken in chosen)
        if len(chosen) < SUMMARY_STATEMENTS and len(entry.text) <= room:
            chosen.append(entry)
    return sorted(chosen or statements[:1], key=lambda entry: entry.place)


def _opening(handoff: Mapping[str, Any], statements: Sequence[Statement]) -> str:
    """Return what to say where every statement stands elsewhere: the first of them once more, shortened."""
    texts = (
        *(str(entry["content"]) for entry in handoff["protected"]),
        *(entry.text for entry in statements),
    )
    first = next((sentence for text in texts for sentence in sentences(text)), NOTHING)
    return first if len(first) <= SUMMARY_CHARS else first[: SUMMARY_CHARS - 1] + "…"


def _by_speaker(statement: Statement) -> tuple[str, int]:
    return statement.speaker, statement.place


def _told(statements: Sequence[Statement]) -> str:
    """Return statements as running text, each speaker named where the speaker changes."""
    told = []
    for speaker, run in groupby(statements, key=lambda statement: statement.speaker):
        said = ""
        for statement in run:
            joint = "" if not said else " " if said.endswith(_ENDS) else "; "
            said += joint + statement.text
        told.append(f"{speaker}: {said}" if speaker else said)
    return "\n".join(told)


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


def _split(statement: Statement, joint: re.Pattern[str], head: str, tail: str) -> JsonObject:
    text = f"{statement.speaker}: {statement.text}" if statement.speaker else statement.text
    found = joint.search(text)
    if found is None:
        return {head: text, tail: ""}
    return {head: text[: found.start()], tail: text[found.start() :].strip(" ,")}
