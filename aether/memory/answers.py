"""Answers: read the text of an architect into the fields of a session, or reject it with all its faults.

An architect may wrap its JSON in prose or a fence, write several objects, or leave trailing commas; exactly
one session must be meant. Token counts of the answer are dropped, the phase is the caller's, and invalid
summaries are rejected. The text of an `InvalidInput` from here can be sent back to the model unchanged: it
names every fault at once. `proof` decides which statements the items bear out, `fidelity` what was left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from aether import clock
from aether.errors import InvalidInput, shown
from aether.memory.proof import read_statements
from aether.memory.statements import STATED_FIELDS
from aether.text.regex import lazy
from aether.text.summary_checks import EMPTY, model_fault
from aether.types import Counter, Finding, Handoff, JsonObject

REQUIRED = ("id", "session_id", "compressed_at", "summary", "key_decisions", "outcomes")

# A full working memory is 1.4 MB; a session is shorter.
MAX_CHARS = 2_000_000
# A session nests three deep.
MAX_DEPTH = 32
# Each opening brace may start an object; prose with more of them than this is not an answer.
MAX_STARTS = 1_000
MAX_ID_CHARS = 200
# Relevance of an item without a readable one.
DEFAULT_RELEVANCE = 0.5
DEFAULT_TYPE = "observation"

# Counted by aether itself, whatever the architect says.
_COUNTED_BY_AETHER = frozenset(("original_tokens", "compressed_tokens", "compression_ratio", "token_count"))
_KNOWN = frozenset((*REQUIRED, "phase", "high_value_items", *STATED_FIELDS))
_FIX = "Answer again with the whole JSON object and nothing else."
_PERCENT = lazy(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
# A string, which stays, or a comma before a closing bracket, which goes.
_TRAILING_COMMA = lazy(r'("(?:[^"\\]++|\\.)*+")|,(?=\s*[}\]])', re.DOTALL)


class CheckedAnswer(NamedTuple):
    """The fields of a session as they may be stored, and the corrections that this took."""

    fields: JsonObject
    findings: list[Finding]


def unwrap(answer: str | Mapping[str, Any]) -> JsonObject:
    r"""Return the one JSON object that `answer` is or holds.

    Of several objects, the one with most of the required fields is returned.

    Raises:
        InvalidInput: it has no such object, several could be meant, or it is too large or too deep.

    >>> unwrap('Here it is:\n```json\n{"summary": "Done.",}\n```')
    {'summary': 'Done.'}
    """
    text = answer if isinstance(answer, str) else ""
    if not isinstance(answer, str):
        try:
            text = json.dumps(dict(answer), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as reason:
            raise InvalidInput(
                f"The answer is not JSON: {reason}.", fix="Pass text, numbers, lists and objects."
            ) from reason
    if len(text) > MAX_CHARS:
        _reject(
            f"The answer has {len(text)} characters; {MAX_CHARS} are the limit.",
            fix="Write a shorter session.",
        )
    text = text.removeprefix("\ufeff").strip()
    # A trailing comma hides the whole object but not those inside it, hence both readings.
    readings = (_json_objects(reading) for reading in (text, _TRAILING_COMMA.sub(r"\1", text)))
    # Some models write {"session": {…}}: objects one level down count too.
    candidates = [
        (sum(name in value for name in REQUIRED), value)
        for objects in readings
        for outer in objects
        for value in (outer, *(inner for inner in outer.values() if isinstance(inner, dict)))
    ]
    most = max((rank for rank, _ in candidates), default=0)
    if most == 0:
        _reject(
            f"The answer holds no complete JSON object with {', '.join(REQUIRED)}; it may have been cut off."
        )
    meant: list[JsonObject] = []
    meant += (value for rank, value in candidates if rank == most and value not in meant)
    if len(meant) > 1:
        _reject(f"The answer holds {len(meant)} different JSON objects that could each be the session.")
    if _depth(meant[0]) > MAX_DEPTH:
        _reject(f"The answer nests more than {MAX_DEPTH} levels deep.", fix="Write the flat session object.")
    return meant[0]


def check_answer(
    answer: str | Mapping[str, Any], handoff: Handoff | None, phase: int, *,
    count: Counter | None = None, extractive: bool = False,
) -> CheckedAnswer:  # fmt: skip
    """Return the fields of `answer` that may be stored as a session of `phase`.

    With the hand-off, ids and time that the answer leaves out are those of the hand-off, and the summary and the time are
    also compared with its items and time. The summary of the
    `extractive` architect quotes the items by design, so it is only required not to be empty.

    Raises:
        InvalidInput: the answer cannot be stored; the text names every fault.
    """
    answer_fields = {name: value for name, value in unwrap(answer).items() if value is not None}
    if handoff is not None:
        session_id = answer_fields.get("session_id", answer_fields.get("id", handoff["compression_id"]))
        answer_fields = {
            "id": session_id,
            "session_id": session_id,
            "compressed_at": handoff["prepared_at"],
            **answer_fields,
        }
    faults = [f'{name} is missing: add "{name}".' for name in REQUIRED if answer_fields.get(name) is None]
    findings: list[Finding] = []
    fields: JsonObject = {}
    fields |= {name: _id(answer_fields, name, faults) for name in ("id", "session_id")}
    fields["compressed_at"] = _compressed_at(answer_fields, handoff, faults, findings)
    fields["phase"] = phase
    if "phase" in answer_fields and answer_fields["phase"] != phase:
        findings.append(corrected("phase", f"{shown(answer_fields['phase'])} was corrected to {phase}."))
    fields["summary"] = _summary(answer_fields, handoff, faults, count=count, extractive=extractive)
    fields["key_decisions"] = _decisions(answer_fields, faults)
    fields["outcomes"] = _outcomes(answer_fields, faults)
    fields |= {name: read_statements(answer_fields[name]) for name in STATED_FIELDS if name in answer_fields}
    fields["high_value_items"] = _high_value_items(answer_fields, faults, findings)
    dropped = sorted(answer_fields.keys() - _KNOWN - _COUNTED_BY_AETHER - {"metadata"})
    if dropped:
        message = f"the unknown fields {', '.join(map(shown, dropped))} were left out."
        findings.append(corrected("answer", message))
    if faults:
        _reject("\n".join([f"The answer has {len(faults)} fault{'s' * (len(faults) > 1)}:", *faults, ""]))
    return CheckedAnswer(fields, findings)


def _reject(what: str, *, fix: str = _FIX) -> NoReturn:
    raise InvalidInput(what, fix=fix)


def corrected(where: str, message: str) -> Finding:
    """Return the finding that a value of an answer was corrected."""
    return Finding("warning", "answer-corrected", where, message, "Nothing: the corrected value is stored.")


def _json_objects(text: str) -> list[JsonObject]:
    """Return the outermost JSON objects at the first opening braces of `text`."""

    def reject(constant: str) -> NoReturn:
        raise ValueError(constant)

    decoder = json.JSONDecoder(parse_constant=reject)
    objects: list[JsonObject] = []
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except RecursionError as reason:
            raise InvalidInput("The answer nests too deeply.", fix="Write a flat session object.") from reason
        except ValueError:
            end = start + 1
        else:
            objects.append(value)
        start = text.find("{", end)
    return objects


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        level = [
            inner
            for entry in level
            if isinstance(entry, dict | list)
            for inner in (entry.values() if isinstance(entry, dict) else entry)
        ]
        depth += 1
    return depth - 1


def _id(answer: JsonObject, name: str, faults: list[str]) -> str:
    value = answer.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_ID_CHARS:
        faults.append(f"{name} is {shown(value)}: write a text of 1 to {MAX_ID_CHARS} characters.")
    return str(value)


def _compressed_at(
    answer: JsonObject, handoff: Handoff | None, faults: list[str], findings: list[Finding]
) -> str:
    value = answer.get("compressed_at")
    if value is None:
        return ""
    try:
        instant: datetime = clock.parse(value)
    except InvalidInput as reason:
        faults.append(f"compressed_at: {reason.what} {reason.fix}")
        return ""
    if handoff and instant < clock.parse(handoff["prepared_at"]):
        # Models invent times; an old one would make this session the first to be evicted.
        message = f"{shown(value)} is before the hand-off and was set to its time."
        findings.append(corrected("compressed_at", message))
        return handoff["prepared_at"]
    return clock.stamp(instant)


def _summary(
    answer: JsonObject, handoff: Handoff | None, faults: list[str], *, count: Counter | None, extractive: bool
) -> str:
    value = answer.get("summary")
    if value is None:
        return ""
    if not isinstance(value, str):
        faults.append(f"summary is {shown(value)}: write two or three sentences.")
        return ""
    items = [item["content"] for item in handoff["items"]] if handoff else []
    prompt = str(handoff.get("prompt", {}).get("text", "")) if handoff else ""
    fault = model_fault(value, given=items, instruction=prompt, count=count if handoff else None)
    if fault and (not extractive or fault == EMPTY):
        faults.append(f"summary {fault}: write two or three sentences about what was done and decided.")
    return value.strip()


def _decisions(answer: JsonObject, faults: list[str]) -> list[JsonObject]:
    """Return the decisions as `proof` reads them; one in a single text has no reason."""
    decisions: list[JsonObject] = []
    for where, entry in _entries(answer, "key_decisions", faults):
        [statement] = read_statements([entry]) or [{}]
        if not statement:
            faults.append(f'{where} is {shown(entry)}: write an object with "decision" and "rationale".')
            continue
        fields = entry if isinstance(entry, dict) else {}
        extra = {name: statement[name] for name in ("quote", "items") if statement[name]}
        faults += [
            f"{where}.{name} is {shown(fields[name])}: write text, or leave it out."
            for name in ("rationale", "supersedes")
            if not isinstance(fields.get(name) or "", str)
        ]
        if fields.get("supersedes"):
            extra["supersedes"] = fields["supersedes"]
        rationale = fields.get("rationale") or ""
        decisions.append({"decision": statement["text"], "rationale": rationale, **extra})
    return decisions


def _outcomes(answer: JsonObject, faults: list[str]) -> list[JsonObject]:
    """Return the outcomes; what they change may be left out."""
    outcomes: list[JsonObject] = []
    for where, entry in _entries(answer, "outcomes", faults):
        fields = entry if isinstance(entry, dict) else {"result": entry}
        result, impact = fields.get("result"), fields.get("impact") or ""
        if isinstance(result, str) and result.strip() and isinstance(impact, str):
            outcomes.append({"result": result, "impact": impact})
        else:
            faults.append(f'{where} is {shown(entry)}: write an object with "result" and "impact".')
    return outcomes


def _entries(answer: JsonObject, field: str, faults: list[str]) -> list[tuple[str, Any]]:
    value = answer.get(field) or []
    if not isinstance(value, list):
        faults.append(f"{field} is {shown(value)}: write a list.")
        return []
    return [(f"{field}[{place}]", entry) for place, entry in enumerate(value)]


def _high_value_items(answer: JsonObject, faults: list[str], findings: list[Finding]) -> list[JsonObject]:
    items: list[JsonObject] = []
    for where, entry in _entries(answer, "high_value_items", faults):
        fields = entry if isinstance(entry, dict) else {"content": entry}
        content, kind = fields.get("content"), fields.get("type")
        if not isinstance(content, str) or not content.strip():
            hint = "write the statement word for word, or leave the entry out."
            faults.append(f"{where}.content is missing: {hint}")
            continue
        relevance = _relevance(fields.get("relevance_score"), f"{where}.relevance_score", findings)
        kind = kind if isinstance(kind, str) and kind.strip() else DEFAULT_TYPE
        items.append({"content": content, "relevance_score": relevance, "type": kind})
    return items


def _relevance(value: Any, where: str, findings: list[Finding]) -> float:
    """Return a relevance from 0 to 1; a correction is added to `findings`."""
    number = _number(value)
    if number is None:
        message = f"{shown(value)} is not a number and was set to {DEFAULT_RELEVANCE}."
        findings.append(corrected(where, message))
        return DEFAULT_RELEVANCE
    clamped = min(1.0, max(0.0, number))
    if clamped != number:
        findings.append(corrected(where, f"{shown(value)} was limited to 0 to 1."))
    return clamped


def _number(value: Any) -> float | None:
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value)):
        return float(percent[1]) / 100
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
