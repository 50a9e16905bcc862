"""Repairs of OpenAI Chat Completions: content, calls, and tool messages moved to where they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.checks.openai import ID_CHARS, KNOWN_PARTS, ONLY_TEXT, PARTS, ROLES
from aether.messages.repairs.notes import Mended, arguments_text, changed, lost, speaker, unused
from aether.shapes import Finding, JsonObject

_NAME_CHARS = 64
# What makes a message of the assistant that has no content one that may be sent.
_INSTEAD = ("tool_calls", "refusal", "audio", "function_call")


class Entry(NamedTuple):
    """One message at work."""

    at: int
    raw: JsonObject
    calls: tuple[int, ...] = ()
    """Numbers of its calls, in order."""
    answers: int = -1
    """Number of the call that it answers."""


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"messages[{at}]", found)) for at, raw in enumerate(raws))
    entries = _paired([Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _placed(_answered(entries, found), found)
    return Mended([entry.raw for entry in _named(entries, found)], found)


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return a message that may be sent as far as it alone goes; None where nothing is left."""
    role = speaker(raw.get("role"), ROLES)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
        raw = {**raw, "role": role}
    if "meta" in raw:
        found.append(changed("unknown-field", where, "Left out meta."))
        raw = {key: value for key, value in raw.items() if key != "meta"}
    raw = _content(raw, role, where, found)
    if raw.get("tool_calls") or (role == "assistant" and "tool_calls" in raw):
        raw = _calls(raw, role, where, found)
    return _kept(raw, where, found)


def _kept(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    role = raw["role"]
    if role == "tool" and (not isinstance(raw.get("tool_call_id"), str)):
        found.append(lost("bad-id", where, "Dropped a result that names no call."))
        return None
    if raw.get("content") is not None or (role == "assistant" and any(raw.get(key) for key in _INSTEAD)):
        return raw
    if role in ("tool", "function"):
        found.append(changed("empty-content", where, "A result without content has empty content now."))
        return {**raw, "content": ""}
    found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
    return None


def _content(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    content = raw.get("content")
    if content is None or isinstance(content, str):
        return raw
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if kept == content and kept:
        return raw
    if not listed:
        note = changed if content == [] else lost
        found.append(note("empty-content", where, f"Dropped the content {shown(content)}."))
    elif kept:
        found.append(changed("bad-block", where, "Respelt the content, as parts that may stand in it."))
    return {**raw, "content": kept or None}


def _part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if isinstance(part, dict) and not isinstance(part.get("type"), str) and isinstance(part.get("text"), str):
        part = {**part, "type": "text"}
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or (kind == "text" and not isinstance(part.get("text"), str)):
        found.append(lost("bad-block", where, f"Dropped {shown(part)}, which is no content part."))
        return None
    if kind in KNOWN_PARTS - PARTS.get(role, ONLY_TEXT):
        found.append(
            lost("wrong-role", where, f"Dropped a {kind}, which cannot stand in a message of role {role}.")
        )
        return None
    good: JsonObject = part
    return good


def _calls(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    held = raw["tool_calls"]
    listed = held if isinstance(held, list) and role == "assistant" else []
    kept = [
        call
        for number, one in enumerate(listed)
        if (call := _call(one, f"{where}.tool_calls[{number}]", found)) is not None
    ]
    if kept == held and kept:
        return raw
    if not listed:
        note = lost if held else changed
        found.append(note("empty-calls", where, f"Left out tool_calls, {shown(held)}."))
    return _with_calls(raw, kept)


def _with_calls(raw: JsonObject, calls: list[JsonObject]) -> JsonObject:
    if calls:
        return {**raw, "tool_calls": calls}
    return {key: value for key, value in raw.items() if key != "tool_calls"}


def _call(call: Any, where: str, found: list[Finding]) -> JsonObject | None:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
        found.append(lost("bad-id", where, f"Dropped {shown(call)}, a call without an id."))
        return None
    if call.get("type") == "custom":
        return call
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    text = arguments_text(function.get("arguments")) if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name or text is None:
        found.append(lost("bad-block", where, f"Dropped a call of {shown(name)} that cannot be sent."))
        return None
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS]
    if (good, text, call.get("type")) == (name, function["arguments"], "function"):
        return call
    found.append(
        changed("bad-name" if good != name else "bad-arguments", where, f"Respelt the call of {shown(name)}.")
    )
    return {**call, "type": "function", "function": {**function, "name": good, "arguments": text}}


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and results numbered, without the results that no call waits for."""
    waiting: dict[str, list[int]] = {}
    number = 0
    paired = []
    for entry in entries:
        calls = []
        for call in _listed(entry.raw):
            waiting.setdefault(call["id"], []).append(number)
            calls.append(number)
            number += 1
        answers = -1
        if entry.raw["role"] == "tool":
            key = entry.raw["tool_call_id"]
            if not waiting.get(key):
                found.append(
                    lost(
                        "orphan-result",
                        f"messages[{entry.at}]",
                        f"Dropped a result: no call {shown(key)} waits for it.",
                    )
                )
                continue
            answers = waiting[key].pop()
        paired.append(entry._replace(calls=tuple(calls), answers=answers))
    return paired


def _listed(raw: JsonObject) -> list[JsonObject]:
    calls: list[JsonObject] = raw.get("tool_calls") or []
    return calls


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {entry.answers for entry in entries}
    tail = _tail(entries)
    kept = []
    for number, entry in enumerate(entries):
        if number == tail or results.issuperset(entry.calls):
            kept.append(entry)
            continue
        pairs = list(zip(entry.calls, _listed(entry.raw), strict=True))
        for position, (pair, call) in enumerate(pairs):
            if pair not in results:
                where = f"messages[{entry.at}].tool_calls[{position}]"
                found.append(
                    lost(
                        "missing-result",
                        where,
                        f"Dropped the call {shown(call['id'])}, which was never answered.",
                    )
                )
        pairs = [(pair, call) for pair, call in pairs if pair in results]
        raw = _kept(_with_calls(entry.raw, [call for _, call in pairs]), f"messages[{entry.at}]", found)
        if raw is not None:
            kept.append(entry._replace(raw=raw, calls=tuple(pair for pair, _ in pairs)))
    return kept


def _tail(entries: Sequence[Entry]) -> int:
    """Return the position of the last response, if nothing but its results comes after it; else the length."""
    at = len(entries)
    while at and entries[at - 1].answers >= 0:
        at -= 1
    calls = entries[at - 1].calls if at else ()
    return at - 1 if at and all(entry.answers in calls for entry in entries[at:]) else len(entries)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the results of each response right after it, in the order they came in."""
    owner = {pair: at for at, entry in enumerate(entries) for pair in entry.calls}
    results: dict[int, list[Entry]] = {}
    current = -1
    for at, entry in enumerate(entries):
        if entry.answers < 0:
            current = at
            continue
        called = owner[entry.answers]
        results.setdefault(called, []).append(entry)
        if called != current:
            found.append(
                changed(
                    "interleaved-result",
                    f"messages[{entry.at}]",
                    f"Moved the result to after its call, messages[{entries[called].at}].",
                )
            )
    return [
        one for at, entry in enumerate(entries) if entry.answers < 0 for one in (entry, *results.get(at, ()))
    ]


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two calls of a message have one id, and no id is too long."""
    names: dict[int, str] = {}
    named = []
    for entry in entries:
        raw, taken, calls = entry.raw, set[str](), []
        for pair, call in zip(entry.calls, _listed(raw), strict=True):
            names[pair] = unused(call["id"], taken, most=ID_CHARS)
            taken.add(names[pair])
            calls.append(call if names[pair] == call["id"] else {**call, "id": names[pair]})
            if names[pair] != call["id"]:
                found.append(
                    changed(
                        "repeated-id",
                        f"messages[{entry.at}]",
                        f"The call {shown(call['id'])} is {names[pair]} now.",
                    )
                )
        if calls != _listed(raw):
            raw = {**raw, "tool_calls": calls}
        if entry.answers >= 0 and names[entry.answers] != raw["tool_call_id"]:
            raw = {**raw, "tool_call_id": names[entry.answers]}
        named.append(entry._replace(raw=raw))
    return named
