"""Changes: how several changes become one transaction.

Phase numbers: what may name a phase at the API.

A phase is a whole number, 0 or more; everything else is refused, so that a phase is safe in a file name
and equal phases compare equal. Files of the original also hold them as text: `number_in` reads those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aether.errors import InvalidInput, shown
from aether.store.patch import apply
from aether.types import Change, JsonObject, Patch


def join_changes(*changes: Change, result: Any = None) -> Change:
    """Return one change that does all of `changes`, in this order, and answers `result`.

    The caller sees to it that no later patch names a list place that an earlier one has moved.
    """
    patches: dict[str, Patch] = {}
    appends: dict[str, list[JsonObject]] = {}
    for change in changes:
        for document, patch in change.patches.items():
            if patch:
                patches.setdefault(document, []).extend(patch)
        for file, records in change.appends.items():
            appends.setdefault(file, []).extend(records)
    return Change(patches, appends, result)


def chain_changes(documents: Mapping[str, Any], *steps: Callable[[Mapping[str, Any]], Change]) -> Change:
    """Return one change that does all of `steps`, each planned on what the ones before it leave.

    The result is the list of their results.
    """
    state = dict(documents)
    changes = []
    for step in steps:
        change = step(state)
        for document, patch in change.patches.items():
            state[document] = apply(state[document], patch)
        changes.append(change)
    return join_changes(*changes, result=[change.result for change in changes])


# Largest whole number that every JSON reader gives back exactly (2**53 - 1, RFC 8259 section 6).
MAX_PHASE = 9_007_199_254_740_991


def check_phase(phase: object) -> int:
    """Return `phase` if it is a phase number.

    Raises:
        InvalidInput: it is not an int, is a bool, is negative, or is beyond `MAX_PHASE`.

    >>> check_phase(2)
    2
    """
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase <= MAX_PHASE:
        raise InvalidInput(
            f"{shown(phase)} is not a phase.", fix="Use a whole number, 0 or more.", where="phase"
        )
    return phase


def phase_number(value: Any) -> int | None:
    """Return the phase number that a document holds as `value`, be it number or text, or None.

    >>> number_in("7"), number_in(2), number_in(True), number_in("seven")
    (7, 2, None, None)
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MAX_PHASE)):
        value = int(value)
    try:
        return check_phase(value)
    except InvalidInput:
        return None
