"""Repairs of Gemini contents: parts with one datum, responses moved to the content after their calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.checks.gemini import CALL, DATA, FIELDS, RESPONSE, ROLES, identity
from aether.messages.repairs.notes import Mended, changed, lost
from aether.shapes import Finding, JsonObject

_MODELS = frozenset({"assistant", "ai"})


class Cell(NamedTuple):
    """One part, where it stood, and the number of the call that it is or answers."""

    part: JsonObject
    where: str
    pair: int = -1

    def of(self, keys: tuple[str, ...]) -> JsonObject | None:
        """Return the call, or the response, that the part is."""
        return next((self.part[key] for key in keys if key in self.part), None)


class Entry(NamedTuple):
    """One content at work."""

    at: int
    raw: JsonObject
    role: str
    cells: list[Cell]


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    entries = _filled([_cleaned(at, raw, found) for at, raw in enumerate(raws)])
    entries = _paired(_opened(entries, found), found)
    entries = _placed(_answered(entries, found), found)
    return Mended([_raw(entry) for entry in _joined(entries, found)], found)


def _filled(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.cells]


def _raw(entry: Entry) -> JsonObject:
    """Return the content, the one that came where nothing changed."""
    raw, parts = entry.raw, [cell.part for cell in entry.cells]
    if parts == raw.get("parts") and entry.role == raw.get("role") and raw.keys() <= FIELDS:
        return raw
    return {"role": entry.role, "parts": parts}


def _cleaned(at: int, raw: JsonObject, found: list[Finding]) -> Entry:
    where, role, parts = f"contents[{at}]", _role(raw.get("role")), raw.get("parts")
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    listed = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else []
    cells = [
        Cell(good, f"{where}.parts[{number}]")
        for number, part in enumerate(listed)
        for good in _parts(part, role, f"{where}.parts[{number}]", found)
    ]
    if not cells:
        found.append(lost("empty-content", where, "Dropped the content, which holds nothing."))
    return Entry(at, raw, role, cells)


def _role(role: Any) -> str:
    if isinstance(role, str) and role in ROLES:
        return role
    return "model" if isinstance(role, str) and role in _MODELS else "user"


def _parts(part: Any, role: str, where: str, found: list[Finding]) -> list[JsonObject]:
    """Return the parts that a part holds, each with one datum; what goes with it stays with the last."""
    held = {"text": part} if isinstance(part, str) else part if isinstance(part, dict) else {}
    data = {key: _datum(key, held[key], role) for key in DATA if key in held}
    kept: list[JsonObject] = [{key: value} for key, value in data.items() if value is not None]
    if kept:
        kept[-1].update((key, value) for key, value in held.items() if key not in DATA)
    if kept == [part]:
        return [part]
    if any(value is None and held[key] is not None for key, value in data.items()) or not kept:
        found.append(
            lost("bad-block", where, f"Dropped what cannot stand in a {role} content, of {shown(part)}.")
        )
    else:
        found.append(changed("bad-block", where, "Respelt the part, one datum to a part."))
    return kept


def _datum(key: str, value: Any, role: str) -> Any:
    """Return the datum of a part as it may be sent; None where it may not."""
    if key == "text":
        return value if isinstance(value, str) and value else None
    if not isinstance(value, dict):
        return None
    return _function(key, value, role) if key in CALL + RESPONSE else value


def _function(key: str, value: JsonObject, role: str) -> JsonObject | None:
    call = key in CALL
    if role == ("user" if call else "model") or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    given = value.get("args" if call else "response", {})
    if isinstance(given, dict) or (call and given is None):
        return value
    if call:
        return None
    return {**value, "response": {} if given is None else {"result": given}}


def _opened(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without calls and responses before the first content of the user."""
    begun = False
    opened = []
    for entry in entries:
        begun = begun or (entry.role != "model" and any(cell.of(RESPONSE) is None for cell in entry.cells))
        cells = entry.cells if begun else [cell for cell in entry.cells if cell.of(CALL + RESPONSE) is None]
        if len(cells) < len(entry.cells):
            found.append(
                lost(
                    "role-order",
                    f"contents[{entry.at}]",
                    "Dropped calls or responses before the first user content.",
                )
            )
        opened.append(entry._replace(cells=cells))
    return _filled(opened)


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and responses numbered, without the responses that no call waits for."""
    waiting: dict[str, list[list[int]]] = {}
    number = 0
    paired = []
    for entry in entries:
        cells = []
        own: dict[str, list[int]] = {}
        for cell in entry.cells:
            call, response, pair = cell.of(CALL), cell.of(RESPONSE), -1
            if call is not None:
                own.setdefault(identity(call), []).append(number)
                pair, number = number, number + 1
            elif response is not None:
                pair = _taken(waiting.get(identity(response), []))
                if pair < 0:
                    name = shown(response["name"])
                    found.append(
                        lost(
                            "orphan-result",
                            cell.where,
                            f"Dropped a response: no call of {name} waits for it.",
                        )
                    )
                    continue
            cells.append(cell._replace(pair=pair))
        for name, calls in own.items():
            waiting.setdefault(name, []).append(calls)
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _taken(waiting: list[list[int]]) -> int:
    """Take the first call of the nearest content that has one waiting; -1 where none has."""
    if not waiting:
        return -1
    pair = waiting[-1].pop(0)
    if not waiting[-1]:
        waiting.pop()
    return pair


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last content may be yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            call = cell.of(CALL)
            if call is not None and cell.pair not in results and number < len(entries) - 1:
                name = shown(call["name"])
                found.append(
                    lost("missing-result", cell.where, f"Dropped a call of {name}, which was never answered.")
                )
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the responses to the calls of each content first in the one after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[Entry] = []
    wanted: list[Cell] = []
    for entry in entries:
        if wanted and entry.role == "model":
            placed.append(_with(Entry(placed[-1].at, {}, "user", []), wanted, found))
            wanted = []
        if entry.role == "model":
            placed.append(entry)
            answered = [
                cell.pair for cell in entry.cells if cell.of(CALL) is not None and cell.pair in results
            ]
            wanted = [results[pair] for pair in sorted(answered, key=order.__getitem__)]
        else:
            placed.append(_with(entry, wanted, found))
            wanted = []
    if wanted:
        placed.append(_with(Entry(placed[-1].at, {}, "user", []), wanted, found))
    return _filled(placed)


def _with(entry: Entry, wanted: Sequence[Cell], found: list[Finding]) -> Entry:
    """Return a content of the user with just these responses, where it had them if it had them all."""
    own = [cell for cell in entry.cells if cell.of(RESPONSE) is not None]
    if {cell.pair for cell in own} == {cell.pair for cell in wanted}:
        return entry
    here = {cell.pair for cell in own}
    found.extend(
        changed(
            "interleaved-result", cell.where, f"Moved the response to after its call, contents[{entry.at}]."
        )
        for cell in wanted
        if cell.pair not in here
    )
    return entry._replace(cells=[*wanted, *(cell for cell in entry.cells if cell.of(RESPONSE) is None)])


def _joined(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which calls of the model never follow another content of the model."""
    joined: list[Entry] = []
    for following in entries:
        entry = following
        calls = entry.role == "model" and any(cell.of(CALL) is not None for cell in entry.cells)
        while calls and joined and joined[-1].role == "model":
            found.append(
                changed("role-order", f"contents[{entry.at}]", "Joined the content to the one before.")
            )
            before = joined.pop()
            entry = before._replace(cells=[*before.cells, *entry.cells])
        joined.append(entry)
    return joined
