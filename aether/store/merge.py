"""Merging: apply one change to a state that has changed since, or name the places of conflict.

There are three states: `base`, the one of `now`, and the one `wanted` instead of the base. A change of one side is
kept; different changes of both are a conflict, named by its place. List entries are followed by their ids, so a list
that grew elsewhere is no conflict. A schema may relax a property
with `x-merge`: `sum` (counters: both differences count) or `touch` (bookkeeping of reads: that of now is kept).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from aether.store.patch import entry_id, json_equal

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
