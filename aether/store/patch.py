"""Patches: RFC 6902 as the only way state changes.

`apply` never mutates: it copies the containers on the path and shares the rest, so a change costs what
it touches and old states stay as they were. `apply_with_inverse` also returns the inverse patch;
the law is `apply(apply(state, patch), inverse) == state`. Changes of several documents are joined here; merging
two changes of one document is in `merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from aether.errors import InvalidInput, shown
from aether.types import Change, JsonObject, Operation, Patch


def pointer(*keys: str | int) -> str:
    """Return the JSON pointer (RFC 6901) to `keys`.

    >>> pointer("a/b", "~", 3)
    '/a~1b/~0/3'
    """
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def keys_of(path: str) -> list[str]:
    """Return the keys that a JSON pointer names.

    >>> keys_of("/a~1b/~0/3")
    ['a/b', '~', '3']
    """
    if path and not path.startswith("/"):
        raise _refused(path, "a pointer starts with '/'")
    return [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]


@lru_cache(maxsize=256)
def _keys(path: str) -> tuple[str, ...]:
    return tuple(keys_of(path))


def apply(state: Any, patch: Iterable[Operation]) -> Any:
    """Return `state` after `patch`.

    Raises:
        InvalidInput: an operation is malformed, or its path does not exist in the state.
    """
    return apply_with_inverse(state, patch)[0]


def apply_with_inverse(state: Any, patch: Iterable[Operation]) -> tuple[Any, Patch]:
    """Return `state` after `patch`, and the inverse patch."""
    inverse: Patch = []
    root = [state]
    # Containers copied in this call may be changed in place; everything else is shared with `state`.
    # By id, with the container itself, so that no id is used again while it is here.
    fresh: dict[int, Any] = {}
    for operation in patch:
        for simple in _simple(root[0], operation):
            if "from" in operation:
                fresh.clear()  # a value in two places must not be changed in place
            _step(root, ("0", *_keys(simple["path"])), simple, inverse, fresh)
            if "from" in operation:
                fresh.clear()
    inverse.reverse()
    return root[0], inverse


def _simple(state: Any, operation: Operation) -> list[Operation]:
    """Return `operation` as adds, removes, replaces and tests: `move` and `copy` are two of these."""
    name, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str) or name not in ("add", "remove", "replace", "test", "move", "copy"):
        raise _refused(operation, "not an RFC 6902 operation")
    if name in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise _refused(operation, "'from' is missing")
        add = {"op": "add", "path": path, "value": get(state, source)}
        return [{"op": "remove", "path": source}, add] if name == "move" else [add]
    if name == "remove" and not path:
        raise _refused(operation, "the whole document cannot be removed")
    if name != "remove" and "value" not in operation:
        raise _refused(operation, "'value' is missing")
    return [operation]


def get(state: Any, path: str) -> Any:
    """Return the value at `path`.

    Raises:
        InvalidInput: there is no such place.
    """
    for key in keys_of(path):
        state = state[_place(state, key, path, adding=False)]
    return state


def _step(
    container: Any, keys: Sequence[str], operation: Operation, inverse: Patch, fresh: dict[int, Any]
) -> None:
    for key in keys[:-1]:
        # Most keys are those of objects.
        is_member = type(container) is dict and key in container
        index = key if is_member else _place(container, key, operation["path"], adding=False)
        child = container[index]
        if id(child) not in fresh:
            if not isinstance(child, dict | list):
                raise _refused(operation["path"], "leads through a value that holds nothing")
            child = child.copy()
            fresh[id(child)] = child
            container[index] = child
        container = child
    _change(container, keys[-1], operation, inverse)


def _change(container: Any, key: str, operation: Operation, inverse: Patch) -> None:
    name, path = operation["op"], operation["path"]
    if name == "add" and path:
        index = _place(container, key, path, adding=True)
        if isinstance(container, list):
            base = path[: path.rindex("/")]
            inverse.append({"op": "remove", "path": f"{base}/{index}"})
            container.insert(index, operation["value"])
        else:
            old = {"op": "replace", "path": path, "value": container[index]} if index in container else None
            inverse.append(old or {"op": "remove", "path": path})
            container[index] = operation["value"]
        return
    index = _place(container, key, path, adding=False)
    if name == "test":
        if not json_equal(container[index], operation["value"]):
            raise _refused(path, f"holds {shown(container[index])}, not {shown(operation['value'])}")
    elif name == "remove":
        inverse.append({"op": "add", "path": path, "value": container[index]})
        del container[index]
    else:  # replace, and adding the whole document
        inverse.append({"op": "replace", "path": path, "value": container[index]})
        container[index] = operation["value"]


def _place(container: Any, key: str, path: str, *, adding: bool) -> Any:
    if isinstance(container, dict):
        if not adding and key not in container:
            raise _refused(path, f"there is no {shown(key)}")
        return key
    if not isinstance(container, list):
        raise _refused(path, "leads through a value that holds nothing")
    if adding and key == "-":
        return len(container)
    # RFC 6901: no sign, no leading zero; int() alone would also take other digits and underscores.
    if not (key.isascii() and key.isdigit()) or (key[0] == "0" and key != "0"):
        raise _refused(path, f"{shown(key)} is not a list index")
    index = int(key)
    if index >= len(container) + adding:
        raise _refused(path, f"the list has {len(container)} entries")
    return index


def json_equal(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal; unlike `==`, `1`, `1.0` and `true` all differ.

    >>> json_equal([1], [True]), json_equal({"a": 1}, {"a": 1})
    (False, True)
    """
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            json_equal(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(map(json_equal, first, second))
    return bool(first == second)


def diff(before: Any, after: Any, path: str = "") -> Patch:
    """Return a patch from `before` to `after`; list entries with an `id` are followed by their id."""
    if before is after or json_equal(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        patch: Patch = [{"op": "remove", "path": path + pointer(key)} for key in before if key not in after]
        for key, value in after.items():
            if key not in before:
                patch.append({"op": "add", "path": path + pointer(key), "value": value})
            else:
                patch += diff(before[key], value, path + pointer(key))
        return patch
    if isinstance(before, list) and isinstance(after, list):
        return _diff_lists(before, after, path)
    return [{"op": "replace", "path": path, "value": after}]


def _diff_lists(before: list[Any], after: list[Any], path: str) -> Patch:
    old, new = list(map(entry_id, before)), list(map(entry_id, after))
    if None in old + new or len(set(old)) < len(old) or len(set(new)) < len(new):
        shared = min(len(before), len(after))
        patch = [
            step for index in range(shared) for step in diff(before[index], after[index], f"{path}/{index}")
        ]
        patch += [
            {"op": "remove", "path": f"{path}/{index}"} for index in range(len(before) - 1, shared - 1, -1)
        ]
        return [*patch, *({"op": "add", "path": f"{path}/-", "value": value} for value in after[shared:])]
    removed, added = set(old) - set(new), set(new) - set(old)
    if [key for key in old if key not in removed] != [key for key in new if key not in added]:
        return [{"op": "replace", "path": path, "value": after}]
    patch = [
        {"op": "remove", "path": f"{path}/{index}"}
        for index in range(len(old) - 1, -1, -1)
        if old[index] in removed
    ]
    by_id = dict(zip(old, before, strict=True))
    for index, entry in enumerate(after):
        if new[index] in added:
            place = "-" if added.issuperset(new[index:]) else index
            patch.append({"op": "add", "path": f"{path}/{place}", "value": entry})
        else:
            patch += diff(by_id[new[index]], entry, f"{path}/{index}")
    return patch


def entry_id(entry: Any) -> str | None:
    """Return the id by which a list entry is known across changes, or None."""
    if isinstance(entry, dict):
        for field in ("id", "link_id"):
            if isinstance(entry.get(field), str):
                return str(entry[field])
    return None


def join_changes(*changes: Change, result: Any = None) -> Change:
    """Return one change that does all of `changes`, in this order, with `result` as its result.

    The caller makes sure that no later patch names a list place that an earlier one has moved.
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
    """Return one change that does all of `steps`, each planned on the state after the one before.

    Its result is the list of theirs.
    """
    state = dict(documents)
    changes = []
    for step in steps:
        change = step(state)
        for document, patch in change.patches.items():
            state[document] = apply(state[document], patch)
        changes.append(change)
    return join_changes(*changes, result=[change.result for change in changes])


def _refused(where: object, why: str) -> InvalidInput:
    return InvalidInput(
        f"{shown(where)}: {why}.", fix="Make the patch from the present state.", where="patch"
    )
