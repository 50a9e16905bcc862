"""Merging: apply one change to a state that has changed since, or name the places of conflict.

There are three states: `base`, the one of `now`, and the one `wanted` instead of the base. A change of one side is
kept; different changes of both are a conflict, named by its place. List entries are followed by their ids, so a list
that grew elsewhere is no conflict. A schema may relax a property
with `x-merge`: `sum` (counters: both differences count) or `touch` (bookkeeping of reads: that of now is kept).

`refitted` applies a patch again to a state without a lost change, or with the changes of others. An entry of a list is
recognised by its id if that is known, else by the value that the change replaces or removes, never by its place alone,
and counters take the difference. What does not fit is left out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import AetherError, InvalidInput
from aether.store.patch import apply, entry_id, get, json_equal, keys_of, pointer
from aether.types import JsonObject, Operation, Patch

Place = tuple[str, ...]
Rules = dict[Place, str]
_ABSENT: Any = object()


def rules_of(schema: dict[str, Any]) -> Rules:
    """Return the `x-merge` rules of a JSON schema by place, list entries as `*`."""
    rules: Rules = {}
    _collect(schema, schema, (), rules, ())
    return rules


def _collect(part: Any, schema: dict[str, Any], place: Place, rules: Rules, seen: tuple[str, ...]) -> None:
    if not isinstance(part, dict):
        return
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and reference not in seen:
        target: Any = schema
        for key in reference[2:].split("/"):
            target = target[key]
        _collect(target, schema, place, rules, (*seen, reference))
    if "x-merge" in part:
        rules[place] = part["x-merge"]
    for name, below in part.get("properties", {}).items():
        _collect(below, schema, (*place, name), rules, seen)
    _collect(part.get("items"), schema, (*place, "*"), rules, seen)


class _Sides(NamedTuple):
    base: Any
    now: Any
    wanted: Any


class _Spot(NamedTuple):
    place: Place
    """The place, list entries by their id."""
    shape: Place
    """The same with `*` for every list entry, as the rules have it."""

    def under(self, key: str, shape: str) -> _Spot:
        return _Spot((*self.place, key), (*self.shape, shape))


def merge(base: Any, now: Any, wanted: Any, rules: Rules, *, shape: Place = ()) -> tuple[Any, list[Place]]:
    """Return `now` with the change from `base` to `wanted`, and the places where both changed.

    `shape` is where the three are in what the rules describe, with `*` for list entries.
    """
    conflicts: list[Place] = []
    merged = _merge(_Sides(base, now, wanted), _Spot((), shape), rules, conflicts)
    return merged, conflicts


def _merge(sides: _Sides, spot: _Spot, rules: Rules, conflicts: list[Place]) -> Any:
    base, now, wanted = sides
    if _same(base, wanted) or rules.get(spot.shape) == "touch":
        return now
    if _same(base, now):
        return wanted
    # Whether both sides agree is asked last: two counters that met were still counted twice.
    if rules.get(spot.shape) == "sum" and all(type(side) in (int, float) for side in sides):
        return now + wanted - base
    return _merge_parts(sides, spot, rules, conflicts)


def _merge_parts(sides: _Sides, spot: _Spot, rules: Rules, conflicts: list[Place]) -> Any:
    base, now, wanted = sides
    if all(isinstance(side, dict) for side in sides):
        return _merge_entries(sides, {**now, **wanted}, spot, rules, conflicts)
    if base is _ABSENT and isinstance(now, list) and isinstance(wanted, list):
        sides = sides._replace(base=[])  # each has the first entries of it
    if wanted is _ABSENT and isinstance(base, list) and isinstance(now, list):
        there = {entry_id(entry) for entry in now}
        if all(entry_id(entry) in there for entry in base):
            sides = sides._replace(wanted=[])  # its first entries are not wanted, later ones stay
    if all(isinstance(side, list) for side in sides):
        by_id = _Sides(*({entry_id(entry): entry for entry in side} for side in sides))
        if all(None not in ids and len(ids) == len(side) for ids, side in zip(by_id, sides, strict=True)):
            order = _order(list(by_id.now), list(by_id.wanted))
            return list(_merge_entries(by_id, order, spot, rules, conflicts, shape="*").values())
    if _same(now, wanted):
        return now
    if wanted is _ABSENT and now is not _ABSENT:
        before, after = (strip(side, spot.shape, rules) for side in (base, now))
        if json_equal(before, after):
            return wanted
    conflicts.append(spot.place)
    return now


def _same(one: Any, two: Any) -> bool:
    return one is two or (one is not _ABSENT and two is not _ABSENT and json_equal(one, two))


def _merge_entries(
    sides: _Sides, keys: Iterable[Any], spot: _Spot, rules: Rules, conflicts: list[Place], *, shape: str = ""
) -> dict[str, Any]:
    merged = {}
    for key in keys:
        below = _Sides(*(side.get(key, _ABSENT) for side in sides))
        value = _merge(below, spot.under(key, shape or key), rules, conflicts)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _order(now: list[str | None], wanted: list[str | None]) -> list[str | None]:
    """Return all keys: those of `now` in their order, each other one after the key it follows in `wanted`."""
    known = set(now)
    after: dict[str | None, list[str | None]] = {}
    anchor: str | None = None
    for key in wanted:
        if key in known:
            anchor = key
        else:
            after.setdefault(anchor, []).append(key)
    order = after.get(None, [])[:]
    for key in now:
        order += [key, *after.get(key, [])]
    return order


def strip(value: Any, shape: Place, rules: Rules) -> Any:
    """Return `value` without the bookkeeping of reads: an entry that differs only there may be removed."""
    if isinstance(value, dict):
        return {
            key: strip(below, (*shape, key), rules)
            for key, below in value.items()
            if rules.get((*shape, key)) != "touch"
        }
    if isinstance(value, list):
        return [strip(below, (*shape, "*"), rules) for below in value]
    return value


def value_at(state: Any, place: Place) -> Any:
    """Return the value at `place`, or None; list entries are found by their id."""
    for key in place:
        if isinstance(state, dict):
            state = state.get(key)
        elif isinstance(state, list):
            state = next((entry for entry in state if entry_id(entry) == key), None)
        else:
            return None
    return state


# --- Changes applied again

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
