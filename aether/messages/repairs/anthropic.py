"""Repairs of Anthropic Messages: the opening, results moved to their calls, thinking, ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from aether.errors import shown
from aether.messages.checks.anthropic import ID, THINKING
from aether.messages.repairs.anthropic_content import Cell, Entry, cleaned, raw_of
from aether.messages.repairs.notes import Mended, changed, lost, unused
from aether.shapes import Finding, JsonObject

# The API sets no length for ids; this is far beyond what anyone makes.
_ID_CHARS = 256


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    entries = [cleaned(at, raw, found) for at, raw in enumerate(raws)]
    entries = _filled(_opened(entries, found))
    entries = _paired(entries, found)
    entries = _placed(_answered(entries, found), found)
    entries = _without_loose_thinking(entries, found)
    entries = _ended(_named(entries, found), found)
    return Mended([raw_of(entry) for entry in entries], found)


def _filled(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.cells]


def _opened(entries: Sequence[Entry], found: list[Finding]) -> Iterator[Entry]:
    """Yield `entries` so that a user message comes first: what the assistant said before it becomes one."""
    begun = False
    for entry in entries:
        if begun or entry.role == "system" or not entry.cells:
            yield entry
            continue
        kept = [
            cell
            for cell in entry.cells
            if cell.kind == "text" or (entry.role == "user" and cell.kind != "tool_result")
        ]
        begun = bool(kept)
        for cell in entry.cells:
            if cell.kind == "tool_result":
                found.append(lost("orphan-result", cell.where, "Dropped a result that no call comes before."))
            elif entry.role == "assistant" and cell.kind != "text":
                found.append(
                    lost("first-role", cell.where, f"Dropped a {cell.kind} before the first user message.")
                )
        if entry.role == "assistant" and kept:
            found.append(
                changed(
                    "first-role",
                    f"messages[{entry.at}]",
                    "What the assistant said first is a user message now.",
                )
            )
        yield entry._replace(role="user", cells=kept)


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and results numbered, without the results that no call waits for."""
    waiting: dict[str, list[int]] = {}
    number = 0
    paired = []
    for entry in entries:
        cells = []
        for cell in entry.cells:
            pair = -1
            if cell.kind == "tool_use":
                pair, number = number, number + 1
                waiting.setdefault(cell.block["id"], []).append(pair)
            elif cell.kind == "tool_result":
                key = cell.block["tool_use_id"]
                if not waiting.get(key):
                    found.append(
                        lost(
                            "orphan-result",
                            cell.where,
                            f"Dropped a result: no call {shown(key)} waits for it.",
                        )
                    )
                    continue
                pair = waiting[key].pop()
            cells.append(cell._replace(pair=pair))
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    tail = _tail(entries)
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            if cell.kind == "tool_use" and cell.pair not in results and number < tail:
                found.append(
                    lost(
                        "missing-result",
                        cell.where,
                        f"Dropped the call {shown(cell.block['id'])}, which was never answered.",
                    )
                )
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _tail(entries: Sequence[Entry]) -> int:
    """Return where the last response begins, if nothing but its results comes after it; else the length."""
    start = len(entries)
    while (
        start
        and entries[start - 1].role == "user"
        and all(cell.kind == "tool_result" for cell in entries[start - 1].cells)
    ):
        start -= 1
    after = start
    while start and entries[start - 1].role == "assistant":
        start -= 1
    calls = {cell.pair for entry in entries[start:after] for cell in entry.cells if cell.kind == "tool_use"}
    own = all(cell.pair in calls for entry in entries[after:] for cell in entry.cells)
    return start if own else len(entries)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the results of each response first in the user message after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[Entry] = []
    wanted: list[int] = []
    for entry in entries:
        if entry.role == "assistant":
            wanted += [cell.pair for cell in entry.cells if cell.kind == "tool_use" and cell.pair in results]
            placed.append(entry)
            continue
        if wanted and entry.role != "user":
            placed.append(_results(placed[-1].at, wanted, results, order, found))
            wanted = []
        rest = [cell for cell in entry.cells if cell.kind != "tool_result"]
        cells = [results[pair] for pair in sorted(wanted, key=order.__getitem__)] + rest
        wanted = []
        _tell_moves(entry, cells, found)
        placed.append(entry._replace(cells=cells))
    if wanted:
        placed.append(_results(placed[-1].at, wanted, results, order, found))
    return _filled(placed)


def _results(
    at: int, wanted: Sequence[int], results: dict[int, Cell], order: dict[int, int], found: list[Finding]
) -> Entry:
    """Return a message for results that have none to stand in."""
    entry = Entry(at, {}, "user", [])
    cells = [results[pair] for pair in sorted(wanted, key=order.__getitem__)]
    _tell_moves(entry, cells, found)
    return entry._replace(cells=cells)


def _tell_moves(entry: Entry, cells: list[Cell], found: list[Finding]) -> None:
    here = {cell.where for cell in entry.cells}
    moved = [cell for cell in cells if cell.where not in here]
    found.extend(
        changed(
            "interleaved-result", cell.where, f"Moved the result to after its call, messages[{entry.at}]."
        )
        for cell in moved
    )
    stayed = [cell for cell in entry.cells if cell in cells]
    if not moved and cells[: len(stayed)] != stayed:
        found.append(
            changed("result-order", f"messages[{entry.at}]", "Put the results before other content.")
        )


def _without_loose_thinking(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without thinking that ends a response."""
    kept: list[Entry] = []
    for entry in reversed(entries):
        cells = entry.cells
        if entry.role == "assistant" and (not kept or kept[-1].role != "assistant"):
            while cells and cells[-1].kind in THINKING:
                found.append(
                    lost("thinking-order", cells[-1].where, "Dropped thinking that ends a response.")
                )
                cells = cells[:-1]
        if cells:
            kept.append(entry._replace(cells=cells))
    kept.reverse()
    return _without_late_thinking(kept, found)


def _without_late_thinking(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without thinking that comes after a call, where a response does not begin with any."""
    kept = []
    thought = called = False
    for entry in entries:
        cells = []
        for cell in entry.cells:
            called = called or cell.kind == "tool_use"
            if cell.kind in THINKING and called and not thought:
                found.append(
                    lost("thinking-order", cell.where, "Dropped thinking that comes after its call.")
                )
                continue
            thought = thought or cell.kind in THINKING
            cells.append(cell)
        if entry.role != "assistant":
            thought = called = False
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with an id of its own, as the API spells them, for each call and its result."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for cell in (cell for entry in entries for cell in entry.cells if cell.kind == "tool_use"):
        old = cell.block["id"]
        new = names[cell.pair] = unused(re.sub(r"[^a-zA-Z0-9_-]", "_", old), taken, most=_ID_CHARS)
        taken.add(new)
        if new != old:
            code = "repeated-id" if ID.fullmatch(old) else "bad-id"
            found.append(changed(code, cell.where, f"The call {shown(old)} is {new} now, on both sides."))
    return [entry._replace(cells=[_renamed(cell, names) for cell in entry.cells]) for entry in entries]


def _renamed(cell: Cell, names: dict[int, str]) -> Cell:
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(cell.kind)
    if key is None or cell.block[key] == names[cell.pair]:
        return cell
    return cell._replace(block={**cell.block, key: names[cell.pair]})


def _ended(entries: list[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without white space at the very end of what the assistant says last."""
    last = entries[-1] if entries else None
    text = last.cells[-1].block.get("text") if last and last.role == "assistant" else None
    if last and isinstance(text, str) and text != text.rstrip():
        cell = last.cells[-1]
        found.append(changed("trailing-whitespace", cell.where, "Stripped the white space at the end."))
        cells = [*last.cells[:-1], cell._replace(block={**cell.block, "text": text.rstrip()})]
        return [*entries[:-1], last._replace(cells=cells)]
    return entries
