"""Check-up: whether the parts of memory agree with each other, and the change that makes them agree.

Totals are derived: the sum of the items' tokens, the number of sessions, the average ratio. What a
schema cannot say (ids that occur twice, links that lead nowhere) is said here.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from typing import Any

from aether.memory.sessions import average
from aether.shapes import Change, Finding, Patch
from aether.store.patch import apply, get

REPAIR = 'Run "aether doctor --repair".'


def _totals(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each derived value should be, by its path."""
    metrics = memory["metrics"]
    totals = {
        "/working_memory/current_tokens": sum(
            item["token_count"] for item in memory["working_memory"]["items"]
        ),
        "/short_term_memory/current_sessions": len(memory["short_term_memory"]["sessions"]),
    }
    if "compression_ratio_total" in metrics:
        ratio = average(metrics["compression_ratio_total"], metrics["total_compressions"])
        totals["/metrics/average_compression_ratio"] = ratio
    return totals


def derived(memory: Mapping[str, Any]) -> Patch:
    """Return the patch that makes every derived value true; empty where all are."""
    return [
        {"op": "replace", "path": path, "value": value}
        for path, value in _totals(memory).items()
        if get(memory, path) != value
    ]


def rederived(documents: Mapping[str, Any], change: Change) -> Change:
    """Return what must follow `change` so that derived values stay true."""
    return Change({"memory": derived(apply(documents["memory"], change.patches.get("memory", [])))})


def examine(documents: Mapping[str, Any]) -> list[Finding]:
    """Return where the parts of memory disagree."""
    memory = documents["memory"]
    found = [
        Finding(
            "error",
            "derived",
            f"memory#{step['path']}",
            f"{get(memory, step['path'])}, should be {step['value']}.",
            REPAIR,
        )
        for step in derived(memory)
    ]
    items, sessions = memory["working_memory"]["items"], memory["short_term_memory"]["sessions"]
    patterns = memory["long_term_memory"]["patterns"]
    ids = Tally(entry["id"] for entry in (*items, *sessions, *patterns))
    found += [
        Finding("error", "repeated-id", f"memory#{name}", f"occurs {times} times.", "Give one of them another id.")
        for name, times in ids.items() if times > 1
    ]  # fmt: skip
    usage = memory["working_memory"]
    if usage["current_tokens"] > usage["max_capacity_tokens"]:
        found.append(
            Finding(
                "error",
                "over-capacity",
                "memory#/working_memory",
                f"{usage['current_tokens']} tokens of {usage['max_capacity_tokens']}.",
                "Compress it: aether memory compress.",
            )
        )
    return found


def mended(documents: Mapping[str, Any]) -> Change:
    """Return the change that makes every derived value true; the result says in words what it does."""
    patch = derived(documents["memory"])
    return Change({"memory": patch}, result=[f"set {step['path']} to {step['value']}" for step in patch])
