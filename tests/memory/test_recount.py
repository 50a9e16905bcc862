from __future__ import annotations

import json

from aether.memory.items import recount
from aether.paths import resource
from aether.schemas import check
from aether.store.patch import apply

WORDS = {"counter": "constant:1", "factor": 1.0}


def memory():
    state = json.loads(resource("data/memory.json").read_bytes())
    item = {
        "id": "wm_1", "type": "note", "content": "one two three", "token_count": 3, "associative_links": [],
        "metadata": {
            "timestamp": "2026-01-01T00:00:00Z", "relevance_score": 0.5, "access_count": 0,
            "last_accessed": "2026-01-01T00:00:00Z", "source": "queen", "caste": None,
        },
    }  # fmt: skip
    session = {
        "id": "s1", "session_id": "s1", "phase": 1, "compressed_at": "2026-01-01T00:00:00Z",
        "original_tokens": 50, "compressed_tokens": 20, "compression_ratio": 2.5, "summary": "Done.",
        "key_decisions": [], "outcomes": [], "high_value_items": [], "metadata": {},
    }  # fmt: skip
    state["working_memory"] |= {"items": [item], "current_tokens": 3}
    state["short_term_memory"] |= {"sessions": [session], "current_sessions": 1}
    return state


def test_items_sessions_and_totals_are_counted_by_the_new_counter():
    counted = apply(memory(), recount(memory(), WORDS, lambda text: 10).patches["memory"])

    assert counted["token_counter"] == WORDS
    assert counted["working_memory"]["items"][0]["token_count"] == 10
    assert counted["working_memory"]["current_tokens"] == 10
    session = counted["short_term_memory"]["sessions"][0]
    assert (session["original_tokens"], session["compressed_tokens"], session["compression_ratio"]) == (
        25,
        10,
        2.5,
    )
    assert check.findings("memory", counted) == []


def test_counts_that_do_not_change_are_not_in_the_patch():
    patch = recount(memory(), WORDS, lambda text: 3).patches["memory"]

    assert not any(step["path"].endswith("token_count") for step in patch)
