"""Documents for tests of briefings: the shipped ones, with items, sessions and signals in them."""

import json
from datetime import UTC, datetime
from pathlib import Path

from aether.memory.facts import fact_text

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def count(text):
    """Count words, so that a test can say what fits."""
    return len(text.split())


def at(day, hour=0):
    """Return the stamp of an hour of a day of February 2026."""
    return f"2026-02-{day:02}T{hour:02}:00:00.000000Z"


def item(content, type="observation", *, day=20, hour=0, caste=None, source="queen", **metadata):
    """Return a working-memory item."""
    return {
        "id": f"item-{day}-{hour}-{abs(hash(content))}", "type": type, "content": content, "token_count": 1,
        "associative_links": [],
        "metadata": {
            "timestamp": at(day, hour), "relevance_score": 0.5, "access_count": 0, "last_accessed": at(day, hour),
            "source": source, "caste": caste, **metadata,
        },
    }  # fmt: skip


PARTS = {
    "request": ("user_input", "person"), "answer": ("outcome", "agent"), "said": ("observation", "agent"), "commit": ("outcome", "machine"),
    "summary": ("observation", "agent"), "tree": ("observation", "machine"), "plan": ("observation", "machine"),
    "change": ("code_change", "machine"), "run": ("command", "machine"), "failure": ("error", "machine"),
}  # fmt: skip


def captured(content, part, *, conversation="c1", day=20, hour=0, **metadata):
    """Return an item as capture writes it: `part` is a role, or the kind of a fact."""
    kind, evidence = PARTS[part]
    role = {} if part in ("change", "run", "failure") else {"role": part}
    metadata = {
        "evidence": evidence,
        "conversation": conversation,
        "pointer": {"line": 1},
        **role,
        **metadata,
    }
    return item(content, kind, day=day, hour=hour, **metadata)


def answered(question, choice, **more):
    """Return the item of a person's answer to a question."""
    fact = {"kind": "answer", "question": question, "options": [choice, "another"], "choice": choice}
    return captured(fact_text(fact), "request", fact=fact, **more) | {"type": "decision"}


def statement(text, quote="so it was said", *, evidence="person", **more):
    """Return a proven statement of a session."""
    return {"text": text, "items": ["wm_1"], "quote": quote, "evidence": evidence, **more}


def entry(content, type, **more):
    """Return a high-value item of a session."""
    return {"content": content, "relevance_score": 0.7, "type": type, **more}


def session(
    name="s1",
    *,
    day=10,
    summary="Work went on.",
    entries=(),
    decisions=(),
    backend="extractive",
    stated=None,
    **metadata,
):
    """Return a session that `backend` wrote; `stated` are its proven statements by field."""
    return {
        "id": name, "session_id": name, "phase": 1, "compressed_at": at(day), "summary": summary,
        "key_decisions": [{"decision": what, "rationale": why} for what, why in decisions], "outcomes": [],
        "high_value_items": list(entries), "metadata": {"architect": {"backend": backend}, **metadata}, **(stated or {}),
    }  # fmt: skip


def pattern(text, type="constraint", *, confidence=0.8, day=5):
    """Return a pattern of long-term memory."""
    return {
        "id": f"pattern-{text}", "pattern": text, "type": type, "confidence": confidence, "occurrences": 3,
        "last_seen": at(day),
    }  # fmt: skip


def signal(type, context, *, strength=0.9, created=None, half_life=None):
    """Return an active signal."""
    return {
        "id": f"{type}-{context}", "type": type, "strength": strength, "created_at": created or at(28),
        "decay_rate": half_life, "metadata": {"context": context, "source": "queen", "caste": None},
    }  # fmt: skip


def documents(*items, sessions=(), patterns=(), signals=(), goal=None, phase=None):
    """Return the documents of a home that holds these."""
    found = {
        name: json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("memory", "pheromones", "COLONY_STATE", "goals")
    }
    found["memory"]["working_memory"]["items"] = list(items)
    found["memory"]["short_term_memory"]["sessions"] = list(sessions)
    found["memory"]["long_term_memory"]["patterns"] = list(patterns)
    found["pheromones"]["active_pheromones"] = list(signals)
    found["COLONY_STATE"]["goal"] = goal
    found["COLONY_STATE"]["colony_status"]["current_phase"] = phase
    return found
