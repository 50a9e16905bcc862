"""A home as a year of work leaves it, for the benchmarks: every layer is full, and its archive is long.

Nothing is written through the documents' files: commits add the entries and archive items, and are folded.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import aether
from aether import clock
from aether.memory.items import archive_records
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.snapshot import load
from aether.types import Change

TOKENS, SESSIONS, PATTERNS, ARCHIVED = 157_000, 10, 500, 20_000
# Items that leave memory together, as a compression lets them go.
LEAVING = 100
# Of what was asked for; beyond four fifths of its capacity memory is compressed, and a full home would be full once.
LEAST_SHARE = 0.95
MOST_OF_ITEM = 200
_TYPES = ("decision", "outcome", "code_change", "error", "command", "exploration", "constraint", "question")
_VERBS = "keeps moves reads writes checks loads drops sends builds signs parses splits".split()
NOUNS = "cache index token queue schema ledger worker gateway socket report parser budget".split()
_PATTERNS = (
    "Never let the {noun} of service {nth} {verb} port {port} without a test.",
    "Always run the {noun} checks of service {nth} before a commit to port {port}.",
    "The {noun} of service {nth} {verb} its state on port {port}, and that worked.",
    "Builds of the {noun} of service {nth} failed when port {port} was taken.",
)


def make(
    directory: Path, *, tokens: int = TOKENS, patterns: int = PATTERNS, archived: int = ARCHIVED
) -> Path:
    """Return the home made below `directory`; it holds about `tokens` tokens, ten sessions, patterns and an archive."""
    home = aether.init(directory / ".aether")
    rng = random.Random(11)
    made, used = 0, 0
    # Measured by the home's own counter: what is missing of the tokens is added.
    while (left := tokens - used) > MOST_OF_ITEM:
        drafts = [_draft(made + nth, rng) for nth in range(left // MOST_OF_ITEM)]
        aether.add_working_memory_items(drafts, home=home)
        made, used = made + len(drafts), aether.verify_token_limit(home=home).current
    now = clock.now()
    commit(home, lambda snapshot: _layers(patterns, rng, now), Author("fill"), now=now)
    for first in range(0, archived, LEAVING):
        left = range(first, min(first + LEAVING, archived))
        change = _compression(load(home).documents["memory"], left, archived, rng, now)
        commit(home, lambda snapshot, change=change: change, Author("fill"), now=now)
    fold_home(home, now=now)
    aether.search_memory("service", home=home)  # the index of a home that is in use is there
    used = aether.verify_token_limit(home=home)
    assert LEAST_SHARE * tokens < used.current < used.threshold, used
    return home


def sentence(nth: int, rng: random.Random) -> str:
    """Return a statement about service `nth`, of words that repeat as those of a project do."""
    verb, noun, other = rng.choice(_VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    path = f"src/{noun}/service_{nth % 97}.py"
    return f"Service {nth} {verb} its {noun} on port {8000 + nth % 700}, because the {other} in `{path}` needs it."


def _draft(nth: int, rng: random.Random) -> dict[str, Any]:
    text = " ".join(sentence(nth, rng) for _ in range(4))
    kind = _TYPES[nth % len(_TYPES)]
    if kind == "constraint":
        text = f"Never change the {rng.choice(NOUNS)} of service {nth} without a test. {text}"
    return {"content": text, "type": kind, "relevance_score": 0.6, "metadata": {"phase": 1}}


def _layers(patterns: int, rng: random.Random, now: Any) -> Change:
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": "/short_term_memory/sessions/-", "value": _session(nth, rng, now)}
        for nth in range(SESSIONS)
    ]
    patch.append({"op": "replace", "path": "/short_term_memory/current_sessions", "value": SESSIONS})
    patch += [
        {"op": "add", "path": "/long_term_memory/patterns/-", "value": _pattern(nth, rng, now)}
        for nth in range(patterns)
    ]
    return Change({"memory": patch})


def _compression(memory: Any, left: range, archived: int, rng: random.Random, now: Any) -> Change:
    """Return the change by which some of `archived` items left memory, for a session that left it since."""
    template = memory["working_memory"]["items"][0]
    held = []
    for nth in left:
        at = clock.stamp(now - timedelta(minutes=archived - nth))
        metadata = {**template["metadata"], "timestamp": at, "last_accessed": at}
        text = " ".join(sentence(nth, rng) for _ in range(3))
        kind = _TYPES[nth % len(_TYPES)]
        held.append(
            {**template, "id": f"wm_archived_{nth}", "type": kind, "content": text, "metadata": metadata}
        )
    name = f"session_left_{left[0]}"
    receipt = {
        "kind": "compression", "at": at, "session_id": name, "compression_id": name, "phase": 1, "tokens_before": 9_000,
        "tokens_after": 900, "items": [item["id"] for item in held], "architect": {"backend": "extractive"},
    }  # fmt: skip
    records = archive_records(held, why="compressed", now=now, session_id=name, compression_id=name)
    return Change({}, {"items": records, "receipts": [receipt]})


def _session(nth: int, rng: random.Random, now: Any) -> dict[str, Any]:
    at = clock.stamp(now - timedelta(days=SESSIONS - nth))
    return {
        "id": f"session_{nth}", "session_id": f"session_{nth}", "phase": 1, "compressed_at": at,
        "original_tokens": 60_000, "compressed_tokens": 6_000, "compression_ratio": 10.0,
        "summary": sentence(nth, rng),
        "key_decisions": [
            {"decision": sentence(one, rng), "rationale": sentence(one, rng)} for one in range(30)
        ],
        "outcomes": [{"result": sentence(one, rng), "impact": "The tests pass."} for one in range(30)],
        "high_value_items": [
            {"type": "constraint" if one % 6 == 0 else "decision", "content": sentence(one + nth * 100, rng), "relevance_score": 0.8}
            for one in range(60)
        ],
        "metadata": {
            "context": "", "related_patterns": [], "architect": {"backend": "extractive"},
            "files": [f"src/{noun}/service_{nth}.py edited" for noun in NOUNS],
        },
    }  # fmt: skip


def _pattern(nth: int, rng: random.Random, now: Any) -> dict[str, Any]:
    noun, verb = rng.choice(NOUNS), rng.choice(_VERBS)
    text = _PATTERNS[nth % 4].format(noun=noun, nth=nth, verb=verb, port=8000 + nth)
    kinds = ("constraint", "preference", "success_pattern", "failure_pattern")
    sessions = [f"session_{nth % SESSIONS}", f"session_{(nth + 1) % SESSIONS}"]
    return {
        "id": f"pattern_{nth}", "type": kinds[nth % 4], "pattern": text, "confidence": 0.8, "occurrences": 2,
        "created_at": clock.stamp(now - timedelta(days=9)), "last_seen": clock.stamp(now - timedelta(days=1)),
        "associative_links": [],
        "metadata": {
            "context": "", "related_castes": [], "related_phases": [1],
            "evidence": [{"session_id": one, "phase": 1, "text": text} for one in sessions],
        },
    }  # fmt: skip
