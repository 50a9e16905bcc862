"""Strategies: JSON values as documents hold them, patches that fit them, and transactions."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from aether.store import patch


@cache
def text() -> st.SearchStrategy[str]:
    """Any text that JSON can hold, lone surrogates and NUL included; a split pair would come back joined."""
    return st.text(st.characters(exclude_categories=[])).filter(_unambiguous)


def _unambiguous(value: str) -> bool:
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") == value


@cache
def scalars() -> st.SearchStrategy[Any]:
    """Null, booleans, integers of any size, finite floats, text."""
    numbers = (
        st.integers() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False)
    )
    return st.none() | st.booleans() | numbers | text()


@cache
def keys() -> st.SearchStrategy[str]:
    """Keys that meet each other often, and such as look like JSON pointers."""
    return st.sampled_from(["a", "b", "id", "", "0", "-", "a/b", "~0", "~1/"]) | text()


@cache
def values(leaves: int = 20) -> st.SearchStrategy[Any]:
    """Any JSON value of about so many leaves; lists sometimes hold entries with ids."""
    return st.recursive(
        scalars(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(keys(), inner, max_size=4)
            | st.lists(entries(inner), max_size=4)
        ),
        max_leaves=leaves,
    )


def entries(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A list entry with an id from a small set."""
    return st.builds(
        lambda name, rest: {**rest, "id": name},
        st.sampled_from("xyz"),
        st.dictionaries(keys(), inner, max_size=2),
    )


@st.composite
def patched(draw: st.DrawFn) -> tuple[Any, list[dict[str, Any]]]:
    """A value, and a patch of up to five operations of which each fits what the ones before it made."""
    state = now = draw(values(6))
    steps: list[dict[str, Any]] = []
    for kind in draw(st.lists(st.sampled_from(["add", "remove", "replace", "test", "copy"]), max_size=5)):
        step = _operation(draw, kind, now)
        if step:
            steps.append(step)
            now = patch.apply(copy.deepcopy(now), [copy.deepcopy(step)])
    return state, steps


def _operation(draw: st.DrawFn, kind: str, state: Any) -> dict[str, Any] | None:
    """Return an operation of this kind that fits `state`, or None where there is none."""
    places = list(_places(state))
    spots = [spot for path in places for spot in _spots(path, patch.get(state, path))]
    paths = {"add": spots, "copy": spots, "remove": places[1:]}.get(kind, places)
    if not paths:
        return None
    step = {"op": kind, "path": draw(st.sampled_from(paths))}
    if kind == "copy":
        return {**step, "from": draw(st.sampled_from(places))}
    if kind == "test":
        return {**step, "value": patch.get(state, step["path"])}
    return step if kind == "remove" else {**step, "value": draw(values(3))}


def _places(state: Any, path: str = "") -> Any:
    """Yield the pointer of everything in `state`, itself first."""
    yield path
    if isinstance(state, dict):
        for key, value in state.items():
            yield from _places(value, path + patch.pointer(key))
    elif isinstance(state, list):
        for at, value in enumerate(state):
            yield from _places(value, f"{path}/{at}")


def _spots(path: str, here: Any) -> list[str]:
    """Return pointers at which something can be added to `here`."""
    if isinstance(here, dict):
        return [path + patch.pointer(key) for key in ["a", "new", *list(here)[:1]]]
    return [f"{path}/-", f"{path}/0", f"{path}/{len(here)}"] if isinstance(here, list) else []
