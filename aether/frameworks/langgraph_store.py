"""LangGraph: a `BaseStore` over a home, for what agents keep from one thread to the next.

    graph = builder.compile(checkpointer=…, store=memory_store())

Each value is a file of the memory tool below `/memories/store`, as JSON with its times: in the journal, reversed by
`undo`, shown in `memories/`, and read by other agents with the memory tool. The puts of one batch are one change. A search
with a query compares words, without a model; a time to live is not supported.
"""

from __future__ import annotations

import asyncio
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether import clock
from aether.api.home import Home, now, read
from aether.api.memory_tool import edit_memory_files
from aether.errors import InvalidInput, packages_of, shown
from aether.memory.memory_tool import DOCUMENT, ROOT, canonical
from aether.paths import RESERVED
from aether.text.words import stems
from aether.types import JsonObject

_PLACE = f"{ROOT}/store"
_SUFFIX = ".json"
_PLAIN = re.compile(r"[a-z0-9_-]+")
_ESCAPED = re.compile(r"~([0-9a-f]{2})")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le,
}  # fmt: skip


class _Entry(NamedTuple):
    """One stored value."""

    namespace: tuple[str, ...]
    key: str
    value: JsonObject
    created_at: datetime
    updated_at: datetime


def memory_store(home: Home = None) -> Any:
    """Return a `BaseStore` of LangGraph over the home.

    Raises:
        BackendUnavailable: langgraph is not installed.
    """
    with packages_of("langchain", where="langgraph"):
        from langgraph.store import base

    def answer(op: Any) -> Any:
        entries = _entries(home)
        if isinstance(op, base.GetOp):
            wanted = (tuple(op.namespace), str(op.key))
            return next((base.Item(**entry._asdict()) for entry in entries if entry[:2] == wanted), None)
        if isinstance(op, base.SearchOp):
            hits = _matches(entries, op)[op.offset : op.offset + op.limit]
            return [base.SearchItem(**entry._asdict(), score=score) for entry, score in hits]
        return _namespaces(entries, op) if isinstance(op, base.ListNamespacesOp) else None

    class Store(base.BaseStore):
        """Values in the files of the memory tool."""

        def batch(self, ops: Iterable[Any]) -> list[Any]:
            listed = list(ops)
            # As in the stores of LangGraph, the reads of a batch do not see its puts.
            answers = [answer(op) for op in listed]
            if puts := [op for op in listed if isinstance(op, base.PutOp)]:
                _put(puts, home)
            return answers

        async def abatch(self, ops: Iterable[Any]) -> list[Any]:
            return await asyncio.to_thread(self.batch, list(ops))

    return Store()


def _put(puts: list[Any], home: Home) -> None:
    """Store the values of `puts`, and remove those that are None, as one change."""
    at = clock.stamp(now())
    paths = [_path(tuple(put.namespace), str(put.key)) for put in puts]

    def edit(files: Mapping[str, str]) -> dict[str, str]:
        edited = dict(files)
        for path, put in zip(paths, puts, strict=True):
            before = edited.pop(path, "")
            if put.value is not None:
                created = json.loads(before)["created_at"] if before else at
                content = {"value": put.value, "created_at": created, "updated_at": at}
                edited[path] = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        return edited

    edit_memory_files(edit, reason=", ".join(paths), home=home)


def _path(namespace: tuple[str, ...], key: str) -> str:
    return canonical("/".join([_PLACE, *map(_name, namespace), f"{_name(key)}{_SUFFIX}"]))


def _name(text: str) -> str:
    """Return a name of a file for any text; `_text` is its inverse.

    >>> _name("User.1"), _text(_name("User.1"))
    ('~55ser~2e1', 'User.1')
    """
    if not text:
        raise InvalidInput(
            "a name is empty.", fix="Give each part of a namespace, and the key, a text.", where="store"
        )
    name = "".join(
        sign if _PLAIN.fullmatch(sign) else "".join(f"~{byte:02x}" for byte in sign.encode()) for sign in text
    )
    return f"~{ord(name[0]):02x}{name[1:]}" if name in RESERVED else name


def _text(name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name).encode("latin-1").decode()


def _entries(home: Home) -> list[_Entry]:
    """Return all values, the last updated first; a file that a person has damaged is an error that names it."""
    entries = []
    for path, text in read(home).documents[DOCUMENT]["files"].items():
        if not (path.startswith(f"{_PLACE}/") and path.endswith(_SUFFIX)):
            continue
        *namespace, key = map(_text, path.removeprefix(f"{_PLACE}/").removesuffix(_SUFFIX).split("/"))
        try:
            content = json.loads(text)
            times = clock.parse(content["created_at"]), clock.parse(content["updated_at"])
            entries.append(_Entry(tuple(namespace), key, dict(content["value"]), *times))
        except (ValueError, LookupError, TypeError) as reason:
            raise InvalidInput(
                f"the file is not a value: {shown(text)}.", fix="Correct it.", where=path
            ) from reason
    return sorted(entries, key=lambda entry: entry.updated_at, reverse=True)


def _matches(entries: list[_Entry], op: Any) -> list[tuple[_Entry, float | None]]:
    """Return the entries that a search finds, with the share of the query's words that each has; best first."""
    prefix = tuple(op.namespace_prefix)
    kept = [
        entry for entry in entries
        if entry.namespace[: len(prefix)] == prefix and _passes(entry.value, op.filter or {})
    ]  # fmt: skip
    query_stems = set(stems(op.query or ""))
    if not query_stems:
        return [(entry, None) for entry in kept]
    shares: list[tuple[_Entry, float]] = []
    for entry in kept:
        words = stems(json.dumps(entry.value, ensure_ascii=False))
        if both := query_stems.intersection(words):
            shares.append((entry, len(both) / len(query_stems)))
    return [*sorted(shares, key=lambda pair: -pair[1])]


def _passes(value: JsonObject, wanted: Mapping[str, Any]) -> bool:
    for key, condition in wanted.items():
        rules = (
            condition
            if isinstance(condition, dict) and condition.keys() <= _COMPARISONS.keys()
            else {"$eq": condition}
        )
        try:
            if not all(_COMPARISONS[name](value.get(key), other) for name, other in rules.items()):
                return False
        except TypeError:  # of another kind
            return False
    return True


def _namespaces(entries: list[_Entry], op: Any) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    names = {
        entry.namespace[: op.max_depth] for entry in entries
        if all(_fits(entry.namespace, condition.match_type, condition.path) for condition in conditions)
    }  # fmt: skip
    return sorted(names)[op.offset : op.offset + op.limit]


def _fits(namespace: tuple[str, ...], kind: str, path: Iterable[str]) -> bool:
    wanted = tuple(path)
    start = 0 if kind == "prefix" else len(namespace) - len(wanted)
    part = namespace[start : start + len(wanted)] if start >= 0 else ()
    return len(part) == len(wanted) and all(
        name in ("*", other) for name, other in zip(wanted, part, strict=True)
    )
