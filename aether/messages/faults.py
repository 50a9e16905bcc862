"""Repair: what a provider refuses in a conversation, and the conversation without it.

The module of a provider cleans each message into cells (blocks, parts, calls, items); the functions here bring calls
and results together. Each fault is noted once with its repair: `aether.messages.validate` reports it as an error of the
conversation, or as a change that the repair made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count, groupby
from typing import Any, Literal, NamedTuple

from aether.errors import shown
from aether.types import Finding, JsonObject

# Names that other programs use for the roles.
_ROLE_NAMES = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}


class RepairedRaws(NamedTuple):
    """Messages as a provider accepts them, and the findings that name each change and its place before."""

    raws: list[JsonObject]
    findings: list[Finding]
    places: list[int]
    """Of each message, the position of the original that it is, was made of, or follows."""


class Fault(NamedTuple):
    """One fault of a conversation and its repair."""

    effect: Literal["lost", "changed", "hint"]
    """`lost`: the repair drops content; `changed`: it rewrites or moves it; `hint`: only some models or servers object."""
    code: str
    where: str
    problem: str
    fix: str

    def checked(self) -> Finding:
        """Return the fault as a finding of a check."""
        level: Literal["warning", "error"] = "warning" if self.effect == "hint" else "error"
        return Finding(level, self.code, self.where, self.problem, self.fix)

    def repaired(self) -> Finding:
        """Return the fault as a finding of a repair."""
        if self.effect == "lost":
            fix = "Look into the original if it matters."
            return Finding("warning", self.code, self.where, f"Dropped: {self.problem}", fix)
        return Finding("info", self.code, self.where, f"Changed: {self.problem}", "Nothing has to be done.")


class Faults:
    """The faults of a conversation, in the order in which they are met."""

    def __init__(self) -> None:
        self.listed: list[Fault] = []

    def lost(self, code: str, where: str, problem: str, fix: str = "Drop it.") -> None:
        """Note a fault whose repair drops content."""
        self.listed.append(Fault("lost", code, where, problem, fix))

    def changed(self, code: str, where: str, problem: str, fix: str = "Correct it.") -> None:
        """Note a fault whose repair keeps the content."""
        self.listed.append(Fault("changed", code, where, problem, fix))

    def hint(self, code: str, where: str, problem: str, fix: str) -> None:
        """Note what some models or servers refuse; no repair changes it."""
        self.listed.append(Fault("hint", code, where, problem, fix))

    def unknown_fields(self, raw: JsonObject, known: Collection[str], where: str) -> None:
        """Note the fields of a message that are not in `known`."""
        if unknown := sorted(map(str, raw.keys() - set(known))):
            self.changed("unknown-field", where, f"Unknown: {', '.join(unknown)}.", "Leave it out.")

    def role(self, raw: JsonObject, role: str, where: str) -> None:
        """Note that a message has another role than the `role` that it is sent with."""
        if raw.get("role") != role:
            self.changed("bad-role", where, f"{shown(raw.get('role'))} is not a role.", f"Use {role}.")


class Cell(NamedTuple):
    """One block, part, call or item of a message under repair."""

    value: JsonObject
    where: str
    """Its place in the original conversation."""
    kind: Literal["call", "result", "reasoning", "other"] = "other"
    key: str = ""
    """Of a call and its result, what they have in common: an id or a name."""
    pair: int = -1
    """Of a call, its number; of a result, that of its call."""


class Entry(NamedTuple):
    """One message under repair."""

    at: int
    raw: JsonObject
    role: str
    """`assistant` for every kind of message of the model."""
    cells: list[Cell]

    def pairs(self, kind: str) -> set[int]:
        """Return the numbers of its calls, or of the calls that its results answer."""
        return {cell.pair for cell in self.cells if cell.kind == kind}


def filled(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that have a cell left."""
    return [entry for entry in entries if entry.cells]


def paired(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` with calls and results numbered, without the results of no call.

    A result answers the first open call with its key in the nearest message before it, else the first one after it.
    """
    numbers = count()
    numbered = [
        entry._replace(
            cells=[cell._replace(pair=next(numbers)) if cell.kind == "call" else cell for cell in entry.cells]
        )
        for entry in entries
    ]
    early = _answer_earlier_calls(numbered)
    results = [cell for entry in numbered for cell in entry.cells if cell.kind == "result" and cell.pair >= 0]
    answered = {cell.pair: cell.key for cell in results}
    open_calls: dict[str, list[int]] = {}
    for cell in (cell for entry in numbered for cell in entry.cells):
        if cell.kind == "call" and cell.pair not in answered:
            open_calls.setdefault(cell.key, []).append(cell.pair)
    for row, column in early:
        cell = numbered[row].cells[column]
        if open_calls.get(cell.key):  # an earlier one would have been answered
            numbered[row].cells[column] = cell._replace(pair=open_calls[cell.key].pop(0))
        elif cell.key in answered.values():
            faults.lost("repeated-result", cell.where, f"The call {shown(cell.key)} has a result already.")
        else:
            faults.lost("orphan-result", cell.where, f"There is no call {shown(cell.key)}.")
    return filled(
        entry._replace(cells=[cell for cell in entry.cells if cell.kind != "result" or cell.pair >= 0])
        for entry in numbered
    )


def _answer_earlier_calls(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Assign their calls to the results that come after them; return the row and the column of each other result."""
    waiting: dict[str, list[list[int]]] = {}
    early: list[tuple[int, int]] = []
    for row, entry in enumerate(entries):
        calls_here: dict[str, list[int]] = {}
        for column, cell in enumerate(entry.cells):
            if cell.kind == "call":
                calls_here.setdefault(cell.key, []).append(cell.pair)
            elif cell.kind == "result" and waiting.get(cell.key):
                entry.cells[column] = cell._replace(pair=waiting[cell.key][-1].pop(0))
                if not waiting[cell.key][-1]:
                    waiting[cell.key].pop()
            elif cell.kind == "result":
                early.append((row, column))
        for key, calls in calls_here.items():
            waiting.setdefault(key, []).append(calls)
    return early


def last_response(entries: Sequence[Entry], *, joined: bool = True) -> int:
    """Return the start of the last response if only its own results come after it; else the number of entries.

    Several messages of the assistant in a row are one response if they are `joined`.
    """
    start = len(entries)
    while start and all(cell.kind == "result" for cell in entries[start - 1].cells):
        start -= 1
    after = start
    while start and entries[start - 1].role == "assistant" and (joined or start == after):
        start -= 1
    calls = set().union(*(entry.pairs("call") for entry in entries[start:after]))
    return start if all(entry.pairs("result") <= calls for entry in entries[after:]) else len(entries)


def without_unanswered(entries: Sequence[Entry], faults: Faults, tail: int) -> list[Entry]:
    """Return `entries` without calls that have no result, except from position `tail` on, where they may still be run."""
    results = set().union(*(entry.pairs("result") for entry in entries))
    remaining = []
    for number, entry in enumerate(entries):
        cells: list[Cell] = []
        for cell in entry.cells:
            if cell.kind != "call" or cell.pair in results:
                cells.append(cell)
            elif number >= tail:
                cells.append(cell)
                what = f"The call {shown(cell.key)} waits for its result."
                faults.hint("dangling-call", cell.where, what, "Run it, and append the result.")
            else:
                what = f"The call {shown(cell.key)} has no result in its place."
                faults.lost("missing-result", cell.where, what, "Answer or drop it.")
        remaining.append(entry._replace(cells=cells))
    return filled(remaining)


def results_first(entries: Sequence[Entry], faults: Faults, *, joined: bool) -> list[Entry]:
    """Return `entries` with the results of each response in the user message after it.

    Where the provider treats adjacent messages of one role as `joined`, results come before other content there.
    """
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.kind == "result"}
    order = {pair: index for index, pair in enumerate(results)}
    runs = [[*run] for _, run in groupby(entries, key=lambda entry: entry.role if joined else entry.at)]
    placed: list[Entry] = []
    pending: list[Cell] = []
    for run in [*runs, []]:
        role = run[0].role if run else ""
        if pending and role != "user":
            placed += _with_results([Entry(placed[-1].at, {}, "user", [])], pending, faults, first=joined)
            pending = []
        placed += _with_results(run, pending, faults, first=joined) if role == "user" else run
        calls = set().union(*(entry.pairs("call") for entry in run))
        pending = [results[pair] for pair in sorted(calls & results.keys(), key=order.__getitem__)]
    return filled(placed)


def _with_results(run: list[Entry], pending: list[Cell], faults: Faults, *, first: bool) -> list[Entry]:
    """Return adjacent messages of the user with just the `wanted` results, before other content."""
    cells = [cell for entry in run for cell in entry.cells]
    here = [cell for cell in cells if cell.kind == "result"]
    if {cell.pair for cell in here} == {cell.pair for cell in pending} and (
        not first or cells[: len(here)] == here
    ):
        return run
    leading = next((nth for nth, cell in enumerate(cells) if cell.kind != "result"), len(cells))
    for cell in pending:
        if cell not in here:
            faults.changed(
                "interleaved-result", cell.where, "The result is not right after its call.", "Move it there."
            )
        elif first and cells.index(cell) >= leading:
            what = "The result comes after other content."
            faults.changed("result-order", cell.where, what, "Put results before other content.")
    without_results = [
        entry._replace(cells=[cell for cell in entry.cells if cell.kind != "result"]) for entry in run
    ]
    return [without_results[0]._replace(cells=[*pending, *without_results[0].cells]), *without_results[1:]]


def results_after_calls(entries: Sequence[Entry], faults: Faults, *, next_to: bool) -> list[Entry]:
    """Return `entries`, each result in a message of its own (`tool`), with no result before its call.

    With `next_to`, the results of a message follow it without another message between.
    """
    owners = {pair: row for row, entry in enumerate(entries) for pair in entry.pairs("call")}
    staying: list[tuple[int, Entry]] = []
    following: dict[int, list[Entry]] = {}
    current = -1
    for row, entry in enumerate(entries):
        owner = owners[entry.cells[0].pair] if entry.role == "tool" else -1
        if owner < 0:
            current = row
        elif next_to or owner > row:
            if owner != current:
                what = "The result is not right after its call."
                faults.changed("interleaved-result", entry.cells[0].where, what, "Move it there.")
            following.setdefault(owner, []).append(entry)
            continue
        staying.append((row, entry))
    return [placed for row, entry in staying for placed in (entry, *following.get(row, ()))]


def new_ids(
    entries: Sequence[Entry],
    faults: Faults,
    *,
    valid: Callable[[str], str],
    most: int,
    unique: Literal["always", "in a message", "while waiting"],
) -> dict[int, str]:
    """Return by its number the id of each call: `valid`, at most so long, and unique."""
    ids: dict[int, str] = {}
    used: set[str] = set()
    for entry in entries:
        if unique == "in a message":
            used = set()
        for cell in entry.cells:
            if cell.kind == "result" and unique == "while waiting":
                used.discard(ids[cell.pair])
            elif cell.kind == "call":
                name = ids[cell.pair] = unused_name(valid(cell.key), used, most=most)
                used.add(name)
                if name != cell.key:
                    code = "repeated-id" if cell.key in used else "bad-id"
                    what = f"The id {shown(cell.key)} is {'used again' if code == 'repeated-id' else 'not valid'}."
                    faults.changed(code, cell.where, what, f"Rename the call to {name}, and its result.")
    return ids


def known_role(role: Any, roles: Collection[str]) -> str:
    """Return the role of `roles` that `role` names; the user for any other.

    >>> known_role("model", {"user", "assistant"}), known_role(7, {"user", "assistant"})
    ('assistant', 'user')
    """
    if isinstance(role, str) and role in roles:
        return role
    meant = _ROLE_NAMES.get(role, "user") if isinstance(role, str) else "user"
    return meant if meant in roles else "user"


def unused_name(name: str, used: Collection[str], *, most: int) -> str:
    """Return `name`, with a number at its end if it is used already or longer than `most` characters.

    >>> unused_name("call_1", {"call_1"}, most=40)
    'call_1_2'
    """
    unused, number = name[:most], 1
    while unused in used:
        number += 1
        unused = f"{name[: most - len(str(number)) - 1]}_{number}"
    return unused
