"""Undoing a source leaves the home as if the source had never come, and undoing that leaves it as it was.

Not compared are ids and times, the records of what was read and forgotten, and the counters of evictions. A session of
several sources is compared by its texts: which of them its summary is depends on all of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.api import admin, compress, recall, withdraw, working
from aether.errors import NotFound
from aether.memory.forget import STATEMENT_FIELDS
from aether.memory.sessions import FORGOTTEN_LINE
from aether.store import snapshot
from tests import homes
from tests.effort import examples

SOURCES = ("conversation-a", "conversation-b", "conversation-c")
# Sayings that several sources may repeat, until they become patterns, each with its type and relevance: words that two
# sources say in one session are one entry of it, of the type of the first.
SHARED = {
    "Use atomic writes for every state file": ("decision", 0.5),
    "Tests fail on Windows without the network": ("constraint", 0.5),
    "Set the timeout of the crawler to thirty seconds": ("solution", 0.9),
}
OWN = st.tuples(
    st.sampled_from(SOURCES), st.just(""), st.sampled_from(["decision", "constraint", "outcome", "error"])
)
ADD = st.tuples(st.sampled_from(SOURCES), st.sampled_from([*SHARED]), st.just(""))
# Stretches of work, each of which becomes a session; the last may stay in working memory.
STEPS = st.lists(st.lists(ADD | OWN | st.just("fold"), min_size=1, max_size=4), min_size=1, max_size=5)
# What comes at the start of each, and is the summary of its session.
REQUEST = "Please go on with the work on the crawler, step {}."


def entry(number: int, source: str, words: str, type_: str) -> dict[str, Any]:
    """Return what a source says at this place; its own words if it repeats none."""
    metadata = {
        "conversation": source,
        "phase": 1,
        "pointer": {"file": f"{source}.jsonl", "line": number, "key": f"k{number}"},
    }
    own = f"The {source} met the marmot number {number} near a river called {source[-1] * 3}{number}"
    type_, relevance = SHARED.get(words, (type_, 0.5))
    return {"content": words or own, "type": type_, "relevance_score": relevance, "metadata": metadata}


def play(home: Path, stretches: list[Any], *, without: str = "", last: bool) -> Path:
    number = 0
    for stretch in stretches:
        working.add_working_memory_items(
            [entry(number, "person", REQUEST.format(number), "user_input")], home=home
        )
        for step in stretch:
            number += 1
            if step == "fold":
                admin.fold(home=home)
            elif step[0] != without:
                working.add_working_memory_items([entry(number, *step)], home=home)
        if stretch is not stretches[-1] or last:
            compress.compress(1, architect="extractive", home=home)
    return home


def texts_of(session: Any) -> frozenset[str]:
    fields = [*session["summary"].split("\n")]
    for field, names in STATEMENT_FIELDS.items():
        fields += [
            line for each in session.get(field, ()) for line in str(each.get(names[0]) or "").split("\n")
        ]
    fields += [item["content"] for item in session["metadata"].get("items", ())]
    return frozenset(fields) - {FORGOTTEN_LINE}


def view(home: Path) -> dict[str, Any]:
    """Return what a home says, without ids and times."""
    memory = snapshot.load(home).documents["memory"]
    sessions = [session for session in memory["short_term_memory"]["sessions"] if texts_of(session)]
    numbers = {session["session_id"]: number for number, session in enumerate(sessions)}
    return {
        "items": [
            (item["content"], item["type"], item["metadata"].get("conversation"), bool(item["metadata"].get("ended_at")), item["token_count"])
            for item in memory["working_memory"]["items"]
        ],
        "tokens": memory["working_memory"]["current_tokens"],
        "sessions": [texts_of(session) for session in sessions],
        "patterns": sorted(
            (pattern["pattern"], pattern["type"], pattern["occurrences"], pattern["confidence"],
             sorted(numbers[each["session_id"]] for each in pattern["metadata"]["evidence"]))
            for pattern in memory["long_term_memory"]["patterns"]
        ),
        "related": [len(session["metadata"].get("related_patterns", ())) for session in sessions],
        "metrics": [memory["metrics"][name] for name in ("total_compressions", "total_pattern_extractions")],
    }  # fmt: skip


def searched(home: Path) -> set[tuple[str, str]]:
    hits = recall.search_memory("marmot river atomic writes timeout windows", limit=100, home=home)
    return {(hit["type"], hit["content"]) for hit in hits if hit["type"] != "session"}


@examples(100)
@given(STEPS, st.sampled_from(SOURCES), st.booleans())
def test_undoing_a_source_leaves_the_home_as_if_it_had_never_come(stretches, source, last):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home = play(homes.fresh(Path(directory) / "with"), stretches, last=last)
        other = play(homes.fresh(Path(directory) / "without"), stretches, without=source, last=last)
        before = snapshot.load(home).documents
        if all(step[0] != source for stretch in stretches for step in stretch):
            with pytest.raises(NotFound):
                withdraw.undo_source(source, home=home)
            return

        undone = withdraw.undo_source(source, home=home)

        assert view(home) == view(other)
        assert not [each for each in admin.examine(home=home) if each.level == "error"]
        with pytest.raises(NotFound):
            withdraw.undo_source(source, home=home)
        assert searched(home) == searched(other)

        admin.undo(undone.revision, home=home)

        assert _unread(snapshot.load(home).documents["memory"]) == _unread(before["memory"])


def _unread(value: Any) -> Any:
    """Return a document without its stamp, and without what the search counts."""
    if isinstance(value, list):
        return [_unread(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _unread(below)
        for name, below in value.items()
        if name not in ("stamp", "access_count", "last_accessed")
    }
