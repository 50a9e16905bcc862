"""Repairs of OpenAI Responses items: parts, pairs, reasoning that lost what it led to, item ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.checks.openai import NAME
from aether.messages.checks.responses import (
    GIVEN,
    ID_CHARS,
    PAIRED,
    ROLES,
    SAID,
    is_call,
    is_output,
    is_said,
    kind_of,
    response_at_the_end,
)  # fmt: skip
from aether.messages.repairs.notes import Mended, arguments_text, changed, lost, speaker, unused
from aether.shapes import Finding, JsonObject

_NAME_CHARS = 64


class Entry(NamedTuple):
    """One item at work, and the number of the call that it is or answers."""

    at: int
    raw: JsonObject
    pair: int = -1

    @property
    def where(self) -> str:
        """Return where the item stood."""
        return f"input[{self.at}]"


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"input[{at}]", found)) for at, raw in enumerate(raws))
    entries = _identified([Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _answered(_paired(entries, found), found)
    entries = _named(_reasoned(entries, found), found)
    return Mended([entry.raw for entry in entries], found)


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return an item that may be sent as far as it alone goes; None where nothing is left."""
    if "meta" in raw:
        found.append(changed("unknown-field", where, "Left out meta."))
        raw = {key: value for key, value in raw.items() if key != "meta"}
    if not kind_of(raw) and "role" in raw:
        found.append(changed("bad-block", where, f"Left out the type {shown(raw.get('type'))}."))
        raw = {key: value for key, value in raw.items() if key != "type"}
    kind = kind_of(raw)
    if kind in PAIRED and not (isinstance(raw.get("call_id"), str) and raw["call_id"]):
        found.append(lost("bad-id", where, f"Dropped a {kind} without a call_id."))
        return None
    if not kind:
        found.append(lost("bad-block", where, f"Dropped {shown(raw)}, which is no item."))
        return None
    mender = _MENDERS.get(kind)
    return mender(raw, where, found) if mender else raw


def _reasoning(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject:
    if isinstance(raw.get("summary"), list):
        return raw
    found.append(changed("bad-block", where, "Reasoning without a summary has an empty one now."))
    return {**raw, "summary": []}


def _reference(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(raw.get("id"), str):
        return raw
    found.append(lost("bad-id", where, "Dropped a reference without an id."))
    return None


def _call(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    name, text = raw.get("name"), arguments_text(raw.get("arguments"))
    if not isinstance(name, str) or not name or text is None:
        found.append(lost("bad-name", where, f"Dropped a call of {shown(name)} that cannot be sent."))
        return None
    if NAME.fullmatch(name) and text == raw["arguments"]:
        return raw
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS]
    found.append(
        changed("bad-name" if good != name else "bad-arguments", where, f"Respelt the call of {shown(name)}.")
    )
    return {**raw, "name": good, "arguments": text}


def _output(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject:
    output = raw.get("output")
    if isinstance(output, (str, list)):
        return raw
    found.append(changed("empty-content", where, f"The output {shown(output)} is text now."))
    return {**raw, "output": "" if output is None else json.dumps(output, ensure_ascii=False)}


def _message(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    role = _role(raw.get("role"), listed)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
        raw = {**raw, "role": role}
    if isinstance(content, str) or content == []:
        return raw
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if not kept:
        found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
        return None
    if kept == content:
        return raw
    found.append(changed("bad-block", where, "Respelt the content, as parts that may stand in it."))
    return {**raw, "content": kept}


def _role(role: Any, parts: Sequence[Any]) -> str:
    if not isinstance(role, str) or role not in ROLES:
        said = any(isinstance(part, dict) and part.get("type") == "output_text" for part in parts)
        return "assistant" if said else speaker(role, ROLES)
    return role


def _part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    spelt = "output_text" if role == "assistant" else "input_text"
    if isinstance(part, str):
        part = {"type": spelt, "text": part}
    text = part.get("text") if isinstance(part, dict) else None
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(text, str) and kind in ("input_text", "output_text"):
        kind = None
    elif isinstance(text, str) and (kind in ("input_text", "output_text") or not isinstance(kind, str)):
        return part if kind == spelt else {**part, "type": spelt}
    if not isinstance(kind, str):
        found.append(lost("bad-block", where, f"Dropped {shown(part)}, which is no content part."))
        return None
    if kind in (GIVEN if role == "assistant" else SAID):
        found.append(
            lost("wrong-role", where, f"Dropped a {kind}, which cannot stand in a message of role {role}.")
        )
        return None
    good: JsonObject = part
    return good


_MENDERS: dict[str, Callable[[JsonObject, str, list[Finding]], JsonObject | None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "item_reference": _reference,
    "function_call": _call,
    "function_call_output": _output,
}


def _identified(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two items have one id."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        key = entry.raw.get("id")
        if not isinstance(key, str) or key not in seen:
            kept.append(entry)
        elif kind_of(entry.raw) in ("reasoning", "item_reference"):
            found.append(lost("repeated-id", entry.where, f"Dropped the second item {shown(key)}."))
        else:
            found.append(
                changed("repeated-id", entry.where, f"Left out the id {shown(key)}, which another item has.")
            )
            raw = {name: value for name, value in entry.raw.items() if name != "id"}
            kept.append(entry._replace(raw=raw))
        if isinstance(key, str):
            seen.add(key)
    return kept


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and outputs numbered; an early output after its call, one without call gone."""
    calls: list[Entry] = []
    waiting: dict[str, list[int]] = {}
    early: list[Entry] = []
    pairs: dict[int, int] = {}
    for entry in entries:
        if is_call(entry.raw):
            waiting.setdefault(entry.raw["call_id"], []).append(len(calls))
            pairs[entry.at] = len(calls)
            calls.append(entry)
        elif is_output(entry.raw):
            if waiting.get(entry.raw["call_id"]):
                pairs[entry.at] = waiting[entry.raw["call_id"]].pop()
            else:
                early.append(entry)
    moved: dict[int, Entry] = {}
    for entry in early:
        later = [pair for pair in waiting.get(entry.raw["call_id"], ()) if calls[pair].at > entry.at]
        if later:
            waiting[entry.raw["call_id"]].remove(later[0])
            moved[calls[later[0]].at] = entry._replace(pair=later[0])
            found.append(changed("interleaved-result", entry.where, "Moved the output to after its call."))
        else:
            found.append(
                lost(
                    "orphan-result",
                    entry.where,
                    f"Dropped an output: no call {shown(entry.raw['call_id'])} waits for it.",
                )
            )
    gone = {entry.at for entry in early}
    return [
        one
        for entry in entries
        if entry.at not in gone
        for one in (entry._replace(pair=pairs.get(entry.at, -1)), *_some(moved.get(entry.at)))
    ]


def _some(entry: Entry | None) -> Iterable[Entry]:
    return () if entry is None else (entry,)


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {entry.pair for entry in entries if is_output(entry.raw)}
    tail = response_at_the_end([entry.raw for entry in entries])
    kept = []
    for number, entry in enumerate(entries):
        if is_call(entry.raw) and entry.pair not in results and number < tail:
            key = shown(entry.raw["call_id"])
            found.append(
                lost("missing-result", entry.where, f"Dropped the call {key}, which was never answered.")
            )
        else:
            kept.append(entry)
    return kept


def _reasoned(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without reasoning that nothing of the same response follows."""
    kept: list[Entry] = []
    for entry in reversed(entries):
        if kind_of(entry.raw) == "reasoning" and not (kept and is_said(kept[-1].raw)):
            found.append(
                lost("dangling-reasoning", entry.where, "Dropped reasoning without the item it led to.")
            )
        else:
            kept.append(entry)
    kept.reverse()
    return kept


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two calls wait under one call_id, and no call_id is too long."""
    names: dict[int, str] = {}
    waiting: set[str] = set()
    named = []
    for entry in entries:
        if entry.pair < 0:
            named.append(entry)
            continue
        old = entry.raw["call_id"]
        if is_call(entry.raw):
            names[entry.pair] = unused(old, waiting, most=ID_CHARS)
            waiting.add(names[entry.pair])
            if names[entry.pair] != old:
                found.append(
                    changed(
                        "repeated-id",
                        entry.where,
                        f"The call {shown(old)} is {names[entry.pair]} now, on both sides.",
                    )
                )
        else:
            waiting.discard(names[entry.pair])
        new = names[entry.pair]
        named.append(entry if new == old else entry._replace(raw={**entry.raw, "call_id": new}))
    return named
