"""Totals: the derived values of `memory.json`, checked and corrected.

Derived are the sum of the items' tokens, the number of sessions and the average ratio. The check also reports
contradictions that the schema cannot express: repeated ids, and more tokens than allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from aether.memory.sessions import average_ratio
from aether.store.patch import apply, get
from aether.types import Change, Finding, Patch

REPAIR = 'Run "aether doctor --repair".'


def derived(memory: Mapping[str, Any]) -> Patch:
    """Return the patch that corrects every derived value; empty if all are right."""
    metrics = memory["metrics"]
    totals = {
        "/working_memory/current_tokens": sum(
            item["token_count"] for item in memory["working_memory"]["items"]
        ),
        "/short_term_memory/current_sessions": len(memory["short_term_memory"]["sessions"]),
    }
    if "compression_ratio_total" in metrics:
        ratio = average_ratio(metrics["compression_ratio_total"], metrics["total_compressions"])
        totals["/metrics/average_compression_ratio"] = ratio
    return [
        {"op": "replace", "path": path, "value": value}
        for path, value in totals.items()
        if get(memory, path) != value
    ]


def derived_change(documents: Mapping[str, Any], change: Change) -> Change:
    """Return the change that must follow `change` to keep the derived values right."""
    return Change({"memory": derived(apply(documents["memory"], change.patches.get("memory", [])))})


def examine(documents: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each contradiction between the parts of memory."""
    memory = documents["memory"]
    found = [
        Finding("error", "derived", f"memory#{step['path']}", f"{get(memory, step['path'])}, should be {step['value']}.", REPAIR)
        for step in derived(memory)
    ]  # fmt: skip
    items, sessions = memory["working_memory"]["items"], memory["short_term_memory"]["sessions"]
    patterns = memory["long_term_memory"]["patterns"]
    ids = Counter(entry["id"] for entry in (*items, *sessions, *patterns))
    found += [
        Finding("error", "repeated-id", f"memory#{name}", f"occurs {times} times.", "Give one of them another id.")
        for name, times in ids.items() if times > 1
    ]  # fmt: skip
    usage = memory["working_memory"]
    if usage["current_tokens"] > usage["max_capacity_tokens"]:
        message = f"{usage['current_tokens']} tokens of {usage['max_capacity_tokens']}."
        fix = "Compress it: aether memory compress."
        found.append(Finding("error", "over-capacity", "memory#/working_memory", message, fix))
    return found


def repaired(documents: Mapping[str, Any]) -> Change:
    """Return the change that corrects every derived value; its result is the corrections in words."""
    patch = derived(documents["memory"])
    return Change({"memory": patch}, result=[f"set {step['path']} to {step['value']}" for step in patch])
