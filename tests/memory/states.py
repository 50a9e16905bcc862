"""States for tests of the pure middle: the shipped documents, ids in a row, and a change applied to them."""

import json
from datetime import UTC, datetime, timedelta
from itertools import count as counting

from aether.memory import items
from aether.paths import resource
from aether.schemas import check
from aether.store.patch import apply

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_NTH = counting()


def later(seconds):
    """Return the instant `seconds` after the one at which every test begins."""
    return NOW + timedelta(seconds=seconds)


def new_id(kind, now, nth=0):
    """Return an id that no other call returns."""
    return f"{kind}_{next(_NTH)}"


def count(text):
    """Return one token for each word."""
    return len(text.split())


def instruct(handoff):
    """Return the prompt of a hand-off."""
    return {
        "name": "architect",
        "sha256": "0" * 64,
        "text": "Write down what was decided and what came of it, in your own words.",
    }


def shipped(*, capacity=200_000, percent=80, sessions=10):
    """Return the documents that a new home has, with limits of the test's choice."""
    names = ("memory", "pheromones", "COLONY_STATE", "proposals")
    documents = {name: json.loads(resource(f"data/{name}.json").read_bytes()) for name in names}
    documents["memory"]["working_memory"] |= {
        "max_capacity_tokens": capacity, "eviction_threshold_percent": percent,
    }  # fmt: skip
    documents["memory"]["short_term_memory"]["max_sessions"] = sessions
    return documents


def after(documents, change):
    """Return `documents` after `change`, each valid against its schema."""
    changed = {name: apply(value, change.patches.get(name, [])) for name, value in documents.items()}
    for name, value in changed.items():
        assert check.findings(name, value) == []
    return changed


def with_items(documents, *texts, at=NOW, type="observation", **metadata):
    """Return `documents` after items that say `texts` were added one after the other, a second apart."""
    for nth, text in enumerate(texts):
        notes = [items.checked_entry(text, type, metadata=metadata)]
        added = items.add(
            documents["memory"], notes, now=at + timedelta(seconds=nth), new_id=new_id, count=count
        )
        documents = after(documents, added)
    return documents


def held(documents):
    """Return the items of working memory; on the way, the total is compared with them."""
    part = documents["memory"]["working_memory"]
    assert part["current_tokens"] == sum(item["token_count"] for item in part["items"])
    return part["items"]


def texts(documents):
    """Return what the items of working memory say."""
    return [item["content"] for item in held(documents)]


def answer(name="phase_1_test", **fields):
    """Return what an architect answers."""
    return {
        "id": name,
        "session_id": name,
        "compressed_at": "2026-03-01T12:00:00Z",
        "summary": "The colony chose JSON for its state.",
        "key_decisions": [{"decision": "Use JSON for state", "rationale": "People can read it"}],
        "outcomes": [{"result": "The schema was created", "impact": "State persists"}],
        "high_value_items": [],
        **fields,
    }


def plain(name="phase_1_test", **fields):
    """Return an answer without statements, which fits any items."""
    return answer(name, **{"key_decisions": [], **fields})
