"""Recall lines: what an index, a timeline and a page are made of."""

from __future__ import annotations

from datetime import UTC, datetime

from aether.memory import layers
from aether.memory import layers as recall
from tests.tables import rows


def item(id, at, text="a note"):
    return {"id": id, "type": "decision", "content": text, "token_count": 2, "metadata": {"timestamp": at}}


def memory(*items, sessions=(), patterns=()):
    return {
        "working_memory": {"items": list(items)},
        "short_term_memory": {"sessions": list(sessions)},
        "long_term_memory": {"patterns": list(patterns)},
    }


SESSION = {
    "session_id": "s1", "compressed_at": "2026-03-02T00:00:00Z", "compressed_tokens": 9, "summary": "Went well.",
    "key_decisions": [{"decision": "Use SQLite", "rationale": "one file"}], "outcomes": [], "high_value_items": [],
}  # fmt: skip
PATTERN = {"id": "p1", "type": "constraint", "pattern": "Never block.", "last_seen": "2026-03-03T00:00:00Z"}


def test_every_entry_is_found_once_and_the_newer_of_two_records_counts():
    archived = [
        {"item": item("a", "2026-01-01T00:00:00Z")},
        {"item": item("b", "2026-01-02T00:00:00Z", "old")},
    ]
    archived.append({"item": item("b", "2026-01-02T00:00:00Z", "new")})

    found = list(
        layers.records(
            memory(item("a", "2026-01-01T00:00:00Z"), sessions=[SESSION], patterns=[PATTERN]), archived
        )
    )

    assert [(one.id, one.layer) for one in found] == [
        ("a", "working_memory"), ("s1", "short_term_memory"), ("p1", "long_term_memory"), ("b", "archive"),
    ]  # fmt: skip
    assert (found[1].text, found[3].text) == ("Went well.\nUse SQLite — one file", "new")


def test_a_time_is_read_when_it_is_asked_for(monkeypatch):
    at = "2026-02-01T01:00:00-05:00"
    [found] = layers.records(memory(item("a", at)))

    assert (found.stored_at, found.at) == (at, "2026-02-01T06:00:00.000000Z")
    monkeypatch.setattr(layers, "instant_text", None)
    assert [one.id for one in layers.records(memory(item("a", at), item("b", at)))] == ["a", "b"]


def test_tokens_that_were_never_counted_are_counted():
    session, pattern = layers.records(memory(sessions=[SESSION], patterns=[PATTERN]))

    assert recall.recall_line(pattern, count=len).tokens == len("Never block.")
    # The number that a session has of itself is that of all its fields.
    assert recall.recall_line(session, count=len).tokens == len("Went well.\nUse SQLite — one file")


def test_an_index_stops_before_the_line_that_does_not_fit():
    lines = [
        recall.recall_line(record, count=len)
        for record in layers.records(memory(item("a", "x"), item("b", "y")))
    ]
    one = len(recall.format_line(lines[0])) + 1

    assert [recall.fit_lines(lines, budget, len) for budget in (one - 1, one, 2 * one)] == [
        [],
        lines[:1],
        lines,
    ]
    assert "undated" in recall.format_line(lines[0])


def test_neighbours_in_time_are_on_both_sides_as_far_as_there_are_any():
    found = list(
        layers.records(
            memory(
                *(item(name, f"2026-01-0{day}T00:00:00Z") for name, day in zip("dcba", "4321", strict=True))
            )
        )
    )

    def ids(id, before, after):
        return [one.id for one in recall.neighbours(found, id, before=before, after=after)]

    assert (ids("b", 1, 1), ids("a", 3, 0), ids("d", 0, 9)) == (["a", "b", "c"], ["a"], ["d"])
    assert ids("nobody", 1, 1) == []


@rows(
    ("text", "most", "shown"),
    [
        ("one  two", 20, "one two"),
        ("one two three", 8, "one two…"),
        ("x" * 50, 10, "x" * 9 + "…"),
        ("a" + " " * 90 + "b", 10, "a…"),
    ],
)
def test_an_excerpt_is_one_line_of_bounded_length(text, most, shown):
    assert recall.excerpt(text, most) == shown


def test_a_time_is_a_day_and_how_long_ago():
    now = datetime(2026, 3, 4, 12, tzinfo=UTC)

    assert [recall.date_and_age(at, now) for at in ("2026-03-04T00:00:00Z", "2026-03-03T23:00:00Z", "2026-02-01T00:00:00Z", "")] == [
        "2026-03-04 (today)", "2026-03-03 (1 day ago)", "2026-02-01 (31 days ago)", "undated",
    ]  # fmt: skip
