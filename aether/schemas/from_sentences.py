"""Items of earlier releases get their facts: the only place that reads sentences back.

Capture wrote machine work as English, and other parts parsed that. Such an item, known by its pointer, its type and its role,
gets `metadata.fact` once, when its document is loaded; its text stays. What no pattern fits stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aether.types import Fact, Item, JsonObject

_SPAN = r"`(?P<command>.+?)`"
_TIMES = r"(?: \((?P<times>\d+) (?:edits|runs)\))?"
_ACTIONS = {"Created": "created", "Deleted": "deleted", "Changed": "changed", "Reverted": "reverted"}
# What a sentence of an item of this type, or with this role, looked like.
_PATTERNS = {
    "code_change": re.compile(rf"(?P<action>Created|Changed|Deleted|Reverted) (?P<path>\S.*?)(?: \((?P<lines>\d+) lines\))?{_TIMES}(?:: (?P<names>.+))?"),
    "command": re.compile(rf"Ran {_SPAN}{_TIMES}(?:: (?P<outcome>.+))?", re.DOTALL),
    "error": re.compile(rf"{_SPAN} failed(?: (?P<times>\d+) times)?: (?P<outcome>.*)", re.DOTALL),
    "solution": re.compile(rf"{_SPAN} failed(?: (?P<times>\d+) times)?: (?P<body>.*)\n(?:Worked|Part of it worked)(?: as `[^`]+`)?(?: when run again)?"
    r"(?: after (?:changes to )?(?P<after>[^:]+))?(?:: (?P<outcome>.+)|\.)", re.DOTALL),
    "commit": re.compile(r"(?:\[(?:detached HEAD|(?P<branch>\S+)(?: \(root-commit\))?) (?P<id>[0-9a-f]{7,40})\] [^\n]*|(?P<address>https://\S+)|Committed|[0-9a-f]{7,40} [^\n]*)"
    r"\n\n(?P<subject>[^\n]*)(?P<body>.*)", re.DOTALL),
}  # fmt: skip
_STEP = re.compile(r"\[(?P<status>[\w -]+)\] (?P<text>.+)")
_NUMBERS = frozenset({"times", "lines"})
# Of a list in a sentence.
_BETWEEN = re.compile(r", | and ")


def with_facts(memory: JsonObject, places: Sequence[int]) -> JsonObject:
    """Return a memory document whose items at `places` have the facts of their sentences; the very same object if none is one."""
    items = memory["working_memory"]["items"]
    facts = {place: fact for place in places if (fact := fact_of(items[place]))}
    if not facts:
        return memory
    changed = [
        {**item, "metadata": {**item["metadata"], "fact": facts[place]}} if place in facts else item
        for place, item in enumerate(items)
    ]
    return {**memory, "working_memory": {**memory["working_memory"], "items": changed}}


def fact_of(item: Item) -> Fact | None:
    """Return the fact in the text of an item of an earlier release, None if it is no such sentence."""
    role, content = item["metadata"].get("role"), item["content"]
    if role == "plan" and isinstance(content, str):
        steps = [_STEP.fullmatch(line) for line in content.split("\n")]
        return (
            Fact(
                kind="plan",
                steps=[{"text": step["text"], "status": step["status"]} for step in steps if step],
            )
            if all(steps)
            else None
        )
    match = (
        _PATTERNS["commit" if role == "commit" else item["type"]].fullmatch(content)
        if isinstance(content, str)
        else None
    )
    if match is None:
        return None
    fields: dict[str, Any] = {
        name: text.strip() for name, text in match.groupdict().items() if text and text.strip()
    }
    fields |= {name: int(fields[name]) for name in _NUMBERS & fields.keys()}
    fields |= {name: _BETWEEN.split(fields[name]) for name in {"names", "after"} & fields.keys()}
    if role == "commit":
        return _fact("commit", {"id": fields.pop("address", ""), **fields})
    if item["type"] == "code_change":
        return _fact("change", {"times": 1, **fields, "action": _ACTIONS[fields["action"]]})
    defaults: Any = {"error": {"failed": True}, "solution": {"failed": False, "after": []}}.get(
        item["type"], {}
    )
    return _fact("run", {"times": 1, **defaults, **fields})


def _fact(kind: str, fields: dict[str, Any]) -> Fact:
    fact: Any = {"kind": kind, **fields}
    return fact  # type: ignore[no-any-return]
