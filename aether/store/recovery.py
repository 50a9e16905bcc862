"""Salvage: later changes applied again without a lost one.

A change that follows a lost one is applied again only where it fits: an entry of a list is recognised by its id if that is known, else by the value that the change
replaces or removes, never by its place alone, and counters take the difference. What does not fit is left out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aether.errors import AetherError, InvalidInput
from aether.hints import Any
from aether.store.merge import Place, Rules, merge, strip
from aether.store.patch import apply, entry_id, get, json_equal, keys_of, pointer
from aether.types import JsonObject, Operation, Patch

Ids = Sequence[Sequence[str | None]]
"""For each step of a patch the ids of the list entries on its path, in that order; None for an entry without one."""


def ids_of(state: Any, patch: Patch) -> Ids:
    """Return the ids of the entries that `patch` goes through, as it is applied to `state`."""
    made = []
    for step in patch:
        made.append([*_ids_on(state, keys_of(step["path"]))])
        state = apply(state, [step])
    return made


def _ids_on(state: Any, keys: list[str]) -> Iterator[str | None]:
    for key in keys:
        if isinstance(state, list):
            if not key.isdigit() or int(key) >= len(state):
                return  # it is added there
            state = state[int(key)]
            yield entry_id(state)
        elif isinstance(state, dict) and key in state:
            state = state[key]
        else:
            return


def refitted(state: Any, patch: Patch, inverse: Patch, rules: Rules, ids: Ids | None = None) -> Patch | None:
    """Return the patch that does to `state` what `patch` did to the state before it; None where it does not fit.

    `inverse` is what reversed `patch` there, and `rules` those of merging. With `ids`, those of `ids_of`, a list entry is
    recognised by its id, and one without an id by being the whole value that was replaced or removed.
    """
    made: Patch = []
    undone = list(reversed(inverse))
    try:
        for at, step in enumerate(patch):
            if step["op"] not in ("add", "remove", "replace"):
                return None
            fit = _fit(state, step, undone.pop(0), rules, None if ids is None else ids[at])
            if fit is not None:
                state = apply(state, [fit])
                made.append(fit)
    except (InvalidInput, LookupError, TypeError, ValueError):
        return None
    return made


def _fit(
    state: Any, step: Operation, undo: Operation, rules: Rules, ids: Sequence[str | None] | None
) -> Operation | None:
    """Return `step` for `state`, None if it is bookkeeping that does not matter.

    Raises:
        LookupError, InvalidInput: it does not fit.
    """
    keys = keys_of(step["path"])
    if not keys:
        raise LookupError
    shape = tuple("*" if key.isdigit() or key == "-" else key for key in keys)
    rule = rules.get(shape, "")
    if rule == "touch":
        return None
    old = undo.get("value")
    adds = step["op"] == "add" and undo["op"] == "remove"
    if ids is None:
        found = _located(state, keys, old, adds=adds, exact=rule != "sum")
    else:
        found = _followed(state, keys, old, ids, adds=adds)
    holder = get(state, pointer(*found[:-1])) if found[:-1] else state
    if adds or (step["op"] == "add" and isinstance(holder, list)):
        return _adding(holder, step, found, rules, shape)
    now = get(state, pointer(*found))
    if rule == "sum" and step["op"] == "replace":
        return {**step, "path": pointer(*found), "value": now + (step["value"] - old)}
    if not json_equal(now, old):
        return {
            **step,
            "path": pointer(*found),
            **_merged(step, old, now, rules, shape, known=ids is not None),
        }
    return {**step, "path": pointer(*found)}


def _adding(holder: Any, step: Operation, found: list[str], rules: Rules, shape: Place) -> Operation:
    """Return `step` for the `holder` that it adds something to, at the place `found`.

    Raises:
        LookupError: it is there already.
    """
    if isinstance(holder, list):
        name = entry_id(step["value"])
        if name is not None and any(entry_id(entry) == name for entry in holder):
            raise LookupError
        last = len(holder) if found[-1] == "-" else min(int(found[-1]), len(holder))
        return {**step, "path": pointer(*found[:-1], str(last))}
    if found[-1] not in holder:
        return {**step, "path": pointer(*found)}
    # A list that others made as well has the entries of both.
    joined, conflicts = merge([], holder[found[-1]], step["value"], rules, shape=shape)
    if conflicts:
        raise LookupError
    return {**step, "path": pointer(*found), "value": joined}


def _merged(step: Operation, old: Any, now: Any, rules: Rules, shape: Place, *, known: bool) -> JsonObject:
    """Return what else to put in the place of a value that others changed, in an entry that is `known` to be the same.

    Raises:
        LookupError: both changed the same of it.
    """
    if known and step["op"] == "remove" and json_equal(*(strip(one, shape, rules) for one in (old, now))):
        return {}
    if not known or step["op"] != "replace":
        raise LookupError
    value, conflicts = merge(old, now, step["value"], rules, shape=shape)
    if conflicts:
        raise LookupError
    return {"value": value}


def _followed(state: Any, keys: list[str], old: Any, ids: Sequence[str | None], *, adds: bool) -> list[str]:
    """Return `keys` with the places that the list entries of these ids have in `state`.

    Raises:
        LookupError, InvalidInput: there is no such entry, or it is not known which one.
    """
    left = iter(ids)

    def is_same(entry: Any, rest: list[str], name: str | None) -> bool:
        return not rest and json_equal(entry, old) if name is None else entry_id(entry) == name

    def same(entries: list[Any], rest: list[str]) -> list[int]:
        name = next(left, None)
        return [nth for nth, entry in enumerate(entries) if is_same(entry, rest, name)]

    return _placed(state, keys, same, adds=adds)


def _located(state: Any, keys: list[str], old: Any, *, adds: bool, exact: bool) -> list[str]:
    """Return `keys` with the places of list entries as they are in `state`.

    Raises:
        LookupError, InvalidInput: an entry cannot be distinguished from the others by the `old` value.
    """

    def same(entries: list[Any], rest: list[str]) -> list[int]:
        if adds or not exact:
            return []
        return [nth for nth, entry in enumerate(entries) if _holds(entry, pointer(*rest), old)]

    return _placed(state, keys, same, adds=adds)


def _placed(
    state: Any, keys: list[str], same: Callable[[list[Any], list[str]], list[int]], *, adds: bool
) -> list[str]:
    """Return `keys` with the place in each list on their way that `same` finds, given the list and the keys below it.

    Raises:
        LookupError: it finds none, or several.
    """
    found: list[str] = []
    for at, key in enumerate(keys):
        is_last = at == len(keys) - 1
        if isinstance(state, list) and not (is_last and adds):
            places = same(state, keys[at + 1 :])
            if len(places) != 1:
                raise LookupError
            key = str(places[0])  # noqa: PLW2901 - the place of that entry now
        found.append(key)
        if not is_last:
            state = state[int(key)] if isinstance(state, list) else state[key]
    return found


def _holds(entry: Any, rest: str, old: Any) -> bool:
    try:
        return json_equal(get(entry, rest), old)
    except AetherError:
        return False
