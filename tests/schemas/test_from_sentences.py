"""Items of earlier releases get their facts when their document is loaded."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.memory.facts import fact_text
from aether.schemas import check
from aether.schemas.from_sentences import fact_of
from aether.schemas.migrations import current
from tests.tables import rows

SHIPPED = json.loads((Path(__file__).resolve().parents[2] / "data" / "memory.json").read_text())


def item(type, content, **metadata):
    return {
        "id": "wm_1",
        "type": type,
        "content": content,
        "token_count": 1,
        "metadata": {
            "timestamp": "2026-11-01T00:00:00.000000Z",
            "relevance_score": 0.5,
            "access_count": 0,
            "last_accessed": "2026-11-01T00:00:00.000000Z",
            "source": "queen",
            "caste": None,
            "pointer": {"key": "k"},
            **metadata,
        },
        "associative_links": [],
    }


def memory(*items):
    working = {**SHIPPED["working_memory"], "items": [*items], "current_tokens": len(items)}
    return {**SHIPPED, "working_memory": working}


@rows(
    ("type", "role", "content", "fact"),
    [
        ("code_change", "", "Changed a b.py (2 edits): load, Store", {"kind": "change", "path": "a b.py", "action": "changed", "times": 2, "names": ["load", "Store"]}),
        ("code_change", "", "Created a.py (12 lines)", {"kind": "change", "path": "a.py", "action": "created", "times": 1, "lines": 12}),
        ("code_change", "", "Deleted a.py", {"kind": "change", "path": "a.py", "action": "deleted", "times": 1}),
        ("command", "", "Ran `pytest -q` (3 runs): 14 passed", {"kind": "run", "command": "pytest -q", "times": 3, "outcome": "14 passed"}),
        ("command", "", "Ran `make`", {"kind": "run", "command": "make", "times": 1}),
        ("error", "", "`make` failed 2 times: no rule\nstop", {"kind": "run", "command": "make", "times": 2, "failed": True, "outcome": "no rule\nstop"}),
        (
            "solution", "", "`make` failed: no rule\nWorked after changes to Makefile, a.c and `apt install gcc`: built",
            {"kind": "run", "command": "make", "times": 1, "failed": False, "body": "no rule", "after": ["Makefile", "a.c", "`apt install gcc`"], "outcome": "built"},
        ),
        ("solution", "", "`make` failed: no rule\nWorked when run again.", {"kind": "run", "command": "make", "times": 1, "failed": False, "body": "no rule", "after": []}),
        ("outcome", "commit", "[main 1a2b3c4] Add a page\n\nAdd a page\n\nIt is small.", {"kind": "commit", "id": "1a2b3c4", "branch": "main", "subject": "Add a page", "body": "It is small."}),
        ("outcome", "commit", "https://a.b/c/pull/7\n\nAdd a page", {"kind": "commit", "id": "https://a.b/c/pull/7", "subject": "Add a page"}),
        ("observation", "plan", "[completed] read\n[in_progress] 書く", {"kind": "plan", "steps": [{"text": "read", "status": "completed"}, {"text": "書く", "status": "in_progress"}]}),
        ("outcome", "commit", "a sentence", None),
        ("observation", "plan", "First read, then write.", None),
        ("command", "", "cancel_order {}", None),
    ],
)  # fmt: skip
def test_a_sentence_of_an_earlier_release_is_read_as_a_fact(type, role, content, fact):
    old = item(type, content, **({"role": role} if role else {}))

    loaded = current("memory", memory(old))

    assert loaded["working_memory"]["items"][0]["metadata"].get("fact") == fact
    assert loaded["working_memory"]["items"][0]["content"] == content
    assert check.findings("memory", loaded) == []
    assert current("memory", loaded) is loaded


def test_what_a_person_noted_is_not_read_as_a_fact():
    noted = item("command", "Ran `pytest`: 3 passed")
    del noted["metadata"]["pointer"]
    document = memory(noted)

    assert current("memory", document) is document


@pytest.mark.parametrize("broken", [{}, {"items": 3}, {"items": [7]}, {"items": [{"type": "error"}]}, None])
def test_a_document_of_another_shape_is_left_as_it_is(broken):
    document = {**SHIPPED, "working_memory": broken}

    assert current("memory", document) is document


@given(
    st.sampled_from(["code_change", "command", "error", "solution"]), st.text() | st.none() | st.integers()
)
def test_any_text_is_read_or_left(type, content):
    """Nothing raises, and what is read has a text."""
    fact = fact_of(item(type, content))

    assert fact is None or fact_text(fact)
