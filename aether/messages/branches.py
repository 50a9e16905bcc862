"""Branches: which lines of a transcript were withdrawn, because the person went back to before them.

Hosts never delete a line. Some link each line to the one before it, so that a rewind makes a tree; others write a line that
takes back what came before. A second line below another is not always a second branch: the calls of one response and
their results hang where the host had room. A rewind starts with something new that is said, on a line of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntEnum

from aether.hints import Any
from aether.messages.model import as_text
from aether.tuples import NamedTuple

_ROOT = -1
_UNNAMED = "below "


class Role(IntEnum):
    """What a line is to its branch."""

    OUTSIDE = 0
    """It is in no tree, and on the branch of the line before: a sub-agent's, the queue's, a repeated one."""
    BESIDE = 1
    """A note of the host between what is said."""
    RESULT = 2
    PROMPT = 3
    RESPONSE = 4
    CALLS = 5
    """A response that calls a tool."""


class Node(NamedTuple):
    """A line as part of a tree."""

    role: Role
    id: str = ""
    parent: Any = ""
    """The id of the line before; None of a first line, "" if the line does not say it."""
    response: str = ""
    """The id of the response that a line is a part of, if it has one."""
    session: str = ""


def withdrawn(nodes: Iterable[Node]) -> frozenset[int]:
    """Return the positions of the lines that are not on the branch of the line that was said last.

    A line whose parent is missing follows the line before it: the file is a slice.
    """
    places: dict[str, int] = {}
    roles, parents, responses = bytearray(), array("q"), []
    late: dict[int, str] = {}
    restarts: list[int] = []
    before, session, linked = _ROOT, None, False
    for at, node in enumerate(nodes):
        role = Role.OUTSIDE if node.id in places else node.role
        roles.append(role)
        responses.append(node.response)
        parents.append(before)
        if role == Role.OUTSIDE:
            continue
        if node.parent in places:
            parents[at], linked = places[node.parent], True
        elif node.parent:
            late[at] = node.parent
        elif node.parent is None and role == Role.PROMPT and node.session == session:
            restarts.append(at)  # back to before the first prompt, if the lines are linked at all
        if node.id:
            places[node.id] = at
        before, session = at, node.session
    for at in restarts if linked else ():
        parents[at] = _ROOT
    for at, parent in late.items():
        parents[at] = places.get(parent, parents[at]) if places.get(parent) != at else parents[at]
    for at, role in enumerate(roles):
        if role >= Role.RESPONSE and not responses[at]:
            responses[at] = _response(at, roles, parents, responses)
    return _off_branch(roles, parents, responses)


def _response(at: int, roles: bytearray, parents: array[int], responses: list[str]) -> str:
    """Return a name for the response of a line without one: that of the line above, else that of all calls beside it."""
    parent = parents[at]
    if parent != _ROOT and responses[parent].startswith(_UNNAMED):
        return responses[parent]
    return f"{_UNNAMED}{parent}" if roles[at] == Role.CALLS else f"{_UNNAMED}={at}"


def _off_branch(roles: bytearray, parents: array[int], responses: list[str]) -> frozenset[int]:
    at = next((at for at in reversed(range(len(roles))) if roles[at] >= Role.PROMPT), _ROOT)
    if at == _ROOT:
        return frozenset()
    active = bytearray(len(roles))
    below = {}  # the line of the branch below each line of it
    while at != _ROOT and not active[at]:
        active[at] = True
        below[parents[at]] = at
        at = parents[at]
    shared = {responses[at] for at in below.values() if responses[at]}
    # Whether the conversation goes on below a line that is not on the branch.
    goes_on = bytearray(len(roles))
    for at in reversed(range(len(roles))):
        speaks = roles[at] >= Role.PROMPT and responses[at] not in shared
        if roles[at] and not active[at] and parents[at] != _ROOT and (speaks or goes_on[at]):
            goes_on[parents[at]] = True
    for at, role in enumerate(roles):
        parent = parents[at]
        if active[at] or (parent != _ROOT and not active[parent]) or role == Role.PROMPT:
            continue
        if parent == _ROOT:
            active[at] = role < Role.PROMPT and not goes_on[at]
        elif role >= Role.RESPONSE:
            is_named = not responses[at].startswith(_UNNAMED)
            active[at] = responses[at] in shared and (is_named or not goes_on[at])
        else:
            active[at] = role == Role.OUTSIDE or not goes_on[at]
    return frozenset(at for at in range(len(roles)) if not active[at])


def taken_back(marks: Iterable[tuple[str, Any]]) -> frozenset[int]:
    """Return the positions that are withdrawn by later lines of a log.

    Each mark is what its line does: `("says", id)` a line with an id, `("turn", "")` one that opens a turn of the person,
    `("to", id)` takes back all from that line on, `("turns", n)` the last `n` turns, `("", "")` none of it. A line with an
    id that comes again replaces the one before.
    """
    gone: set[int] = set()
    turns: list[int] = []
    places: dict[str, int] = {}
    for at, (does, what) in enumerate(marks):
        start = at
        match does:
            case "turn":
                turns.append(at)
            case "says" if what:
                gone |= {places[what]} if what in places else set()
                places[what] = at
            case "turns" if turns and what > 0:
                start = turns[max(0, len(turns) - what)]
            case "to":
                start = places.get(as_text(what), 0)
        if start < at:
            gone.update(range(start, at))
            turns = [turn for turn in turns if turn < start]
            places = {name: place for name, place in places.items() if place < start}
    return frozenset(gone)
