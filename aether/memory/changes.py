"""Changes: how several changes become one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
