"""Memories for tests: small states of `memory.json`, and a way to apply a change to one."""

import copy
from datetime import UTC, datetime

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def new_id(kind, now, nth):
    return f"{kind}_{int(now.timestamp())}_{nth}"


def session(name, *, items=(), decisions=(), outcomes=(), phase=1, metadata=None, day=1):
    """Return a session; items are (content, relevance) or whole entries."""
    return {
        "id": name,
        "session_id": name,
        "phase": phase,
        "compressed_at": f"2026-02-{day:02}T00:00:00.000000Z",
        "summary": "Work went on.",
        "key_decisions": [{"decision": each, "rationale": "it is right"} for each in decisions],
        "outcomes": [{"result": each, "impact": "it counts"} for each in outcomes],
        "high_value_items": [
            each
            if isinstance(each, dict)
            else {"content": each[0], "relevance_score": each[1], "type": "decision"}
            for each in items
        ],
        "metadata": {} if metadata is None else metadata,
    }


def memory(*sessions, patterns=(), items=()):
    """Return the parts of a memory that promotion and links read."""
    return {
        "working_memory": {"items": list(items)},
        "short_term_memory": {"sessions": list(sessions)},
        "long_term_memory": {"patterns": list(patterns)},
        "pattern_extraction": {"high_relevance": 0.8, "repeated_success": 3},
        "metrics": {"total_pattern_extractions": 0},
    }


def applied(state, change):
    """Return `state` after the patch of `change` to the memory document."""
    state = copy.deepcopy(state)
    for operation in change.patches.get("memory", []):
        *path, last = operation["path"].removeprefix("/").split("/")
        owner = state
        for key in path:
            owner = owner[int(key)] if isinstance(owner, list) else owner[key]
        if isinstance(owner, list):
            assert operation["op"] == "add"
            assert last == "-"
            owner.append(copy.deepcopy(operation["value"]))
        else:
            assert operation["op"] == "add" or last in owner
            owner[last] = copy.deepcopy(operation["value"])
    return state


def patterns_of(state):
    return state["long_term_memory"]["patterns"]
