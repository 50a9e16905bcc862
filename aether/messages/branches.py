"""Branches: which lines of a transcript were withdrawn, because the person went back to before them.

Hosts never delete a line. Some link each line to the one before it, so that a rewind makes a tree; others write a line that
takes back what came before. A second line below another is not always a second branch: the calls of one response and
their results hang where the host had room. A rewind starts with something new that is said, on a line of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from aether.messages.model import as_text

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


class _Tree(NamedTuple):
    """The lines of a file by their position: what each is, the line above it, and the response that it is a part of."""

    roles: bytearray
    parents: array[int]
    responses: list[str]


def withdrawn(nodes: Iterable[Node]) -> frozenset[int]:
    """Return the positions of the lines that are not on the branch of the line that was said last.

    A line whose parent is missing follows the line before it: the file is a slice.
    """
    tree = _tree(nodes)
    _name_responses(tree)
    branch = _branch(tree)
    return _off_branch(tree, branch) if branch else frozenset()


def _tree(nodes: Iterable[Node]) -> _Tree:
    tree = _Tree(bytearray(), array("q"), [])
    places: dict[str, int] = {}
    later: dict[int, str] = {}
    restarts: list[int] = []
    before, session, linked = _ROOT, None, False
    for index, node in enumerate(nodes):
        role = Role.OUTSIDE if node.id in places else node.role
        tree.roles.append(role)
        tree.responses.append(node.response)
        tree.parents.append(before)
        if role == Role.OUTSIDE:
            continue
        if node.parent in places:
            tree.parents[index], linked = places[node.parent], True
        elif node.parent:
            later[index] = node.parent
        elif node.parent is None and role == Role.PROMPT and node.session == session:
            restarts.append(index)  # back to before the first prompt, if the lines are linked at all
        if node.id:
            places[node.id] = index
        before, session = index, node.session
    for index in restarts if linked else ():
        tree.parents[index] = _ROOT
    for index, parent in later.items():
        if places.get(parent, index) != index:
            tree.parents[index] = places[parent]
    return tree


def _name_responses(tree: _Tree) -> None:
    """Name the responses without a name: a line's is that of the line above, or that of all calls beside it."""
    for index, role in enumerate(tree.roles):
        if role < Role.RESPONSE or tree.responses[index]:
            continue
        parent = tree.parents[index]
        if parent != _ROOT and tree.responses[parent].startswith(_UNNAMED):
            tree.responses[index] = tree.responses[parent]
        else:
            tree.responses[index] = f"{_UNNAMED}{parent}" if role == Role.CALLS else f"{_UNNAMED}={index}"


def _branch(tree: _Tree) -> set[int]:
    """Return the line that was said last, with all lines above it."""
    index = next(
        (index for index in reversed(range(len(tree.roles))) if tree.roles[index] >= Role.PROMPT), _ROOT
    )
    branch: set[int] = set()
    while index != _ROOT and index not in branch:
        branch.add(index)
        index = tree.parents[index]
    return branch


def _off_branch(tree: _Tree, branch: set[int]) -> frozenset[int]:
    """Return the lines that are neither of `branch` nor beside it: other calls of its responses, results, notes."""
    roles, parents, responses = tree
    shared = {responses[index] for index in branch if responses[index]}
    goes_on = bytearray(len(roles))  # whether the conversation goes on below a line, beside the branch
    for index in reversed(range(len(roles))):
        speaks = roles[index] >= Role.PROMPT and responses[index] not in shared
        if roles[index] and index not in branch and parents[index] != _ROOT and (speaks or goes_on[index]):
            goes_on[parents[index]] = True
    off: set[int] = set()
    for index, parent in enumerate(parents):
        if index in branch:
            continue
        is_beside = roles[index] == Role.OUTSIDE or not goes_on[index]
        if roles[index] >= Role.RESPONSE:
            is_beside = responses[index] in shared and (
                is_beside or not responses[index].startswith(_UNNAMED)
            )
        if parent in off or roles[index] == Role.PROMPT or not is_beside:
            off.add(index)
    return frozenset(off)


def taken_back(marks: Iterable[tuple[str, Any]]) -> frozenset[int]:
    """Return the positions that are withdrawn by later lines of a log.

    Each mark is what its line does: `("says", id)` a line with an id, `("turn", "")` one that opens a turn of the person,
    `("to", id)` takes back all from that line on, `("turns", n)` the last `n` turns, `("", "")` none of it. A line with an
    id that comes again replaces the one before.
    """
    positions: set[int] = set()
    turns: list[int] = []
    places: dict[str, int] = {}
    for index, (does, what) in enumerate(marks):
        start = index
        match does:
            case "turn":
                turns.append(index)
            case "says" if what:
                positions |= {places[what]} if what in places else set()
                places[what] = index
            case "turns" if turns and what > 0:
                start = turns[max(0, len(turns) - what)]
            case "to":
                start = places.get(as_text(what), 0)
        if start < index:
            positions.update(range(start, index))
            turns = [turn for turn in turns if turn < start]
            places = {name: place for name, place in places.items() if place < start}
    return frozenset(positions)
