"""Laws of migration: any old document becomes a valid one, always the same, and no text is lost."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.schemas import check, migrations
from tests.effort import examples

DATA = Path(__file__).resolve().parents[2] / "data"
FIELDS = {
    "memory": [
        "id", "session_id", "type", "content", "token_count", "metadata", "timestamp", "relevance_score", "phase",
        "access_count", "caste", "protected", "pointer", "associative_links", "target_id", "target_type", "link_id",
        "summary", "key_decisions", "decision", "rationale", "outcomes", "result", "high_value_items", "carried",
        "original_tokens", "compressed_tokens", "pattern", "confidence", "occurrences", "created_at", "evidence",
        "related_phases", "related_castes", "related_patterns", "context", "learned_preferences", "own", "at",
    ],
    "pheromones": [
        "id", "type", "strength", "created_at", "decay_rate", "metadata", "source", "caste", "context", "phase",
        "half_life_seconds", "default_strength", "effect", "FOCUS", "builder", "own",
    ],
    "COLONY_STATE": [
        "state", "current_phase", "phases_completed", "queen_checkin", "phase", "status", "queen_decision", "workers",
        "id", "registered_at", "transitions_count", "last_transition", "state_history", "from", "to", "timestamp",
        "roadmap", "name", "goal", "adaptation", "inherited_focus", "adapted_from", "automatic", "states", "note",
        "decided_at", "own",
    ],
}  # fmt: skip


def leaves():
    """Values as they are found in files that people and shell scripts wrote."""
    words = st.sampled_from(
        ["", " ", "1", "2.5x", "IDLE", "EXECUTING", "init", "FOCUS", "phase_complete", "constraint", "awaiting_review",
         "2026-02-01T19:54:32Z", "2026-02-01 19:54:32", "continue", "phase_1_test", "wm_1769900400_5d41402a", "soon"]
    )  # fmt: skip
    numbers = st.integers(-2, 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    return st.none() | st.booleans() | numbers | words | st.text(max_size=6)


def values(name):
    """Nested values whose keys are the field names of document `name`."""
    keys = st.sampled_from(FIELDS[name])
    return st.recursive(
        leaves(),
        lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=5),
        max_leaves=15,
    )


def odd_documents(name):
    """The shipped document of version 2, with odd values in any of its places."""
    initial = json.loads((DATA / f"{name}.json").read_text())
    entries = st.lists(st.dictionaries(st.sampled_from(FIELDS[name]), values(name), max_size=8), max_size=4)

    def like(value, depth):
        if isinstance(value, dict):
            inner = {key: like(below, depth + 1) for key, below in value.items() if key != "schema_version"}
            whole = st.fixed_dictionaries({}, optional={**inner, "own": values(name)})
            return whole if depth == 0 else whole | values(name)
        return (entries | values(name)) if isinstance(value, list) else values(name)

    return like(initial, 0)


def texts(value):
    """Every text that says something, anywhere in `value`."""
    if isinstance(value, str):
        return {value} if value.strip() else set()
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(texts, below))


# A text that stood for a number, a time, a state or a status may come back as what it stood for.
READ_AS_SOMETHING = {"1", "2026-02-01T19:54:32Z", "2026-02-01 19:54:32", "init", "IDLE", "EXECUTING"}


def readable(text):
    try:
        float(text)
    except ValueError:
        return text in READ_AS_SOMETHING
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIELDS))
@given(data=st.data())
@examples(40)
def test_any_old_document_becomes_a_valid_one_and_keeps_every_text(name, data):
    """Nothing raises, the schema is met, what has no place is set aside, and once is enough."""
    old = data.draw(odd_documents(name))
    untouched = copy.deepcopy(old)

    document = migrations.current(name, old)

    assert old == untouched
    assert check.findings(name, document) == []
    assert migrations.current(name, document) is document
    assert migrations.current(name, old) == document
    assert [text for text in texts(old) - texts(document) if not readable(text)] == []
