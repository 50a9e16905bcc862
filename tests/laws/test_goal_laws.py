"""Laws of goals: whatever is done in whatever order, one is current, words stay, and each change can be taken back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from aether.conversation import goals
from aether.errors import AetherError
from aether.schemas import check
from aether.store import documents
from aether.store.merge import merge, rules_of
from aether.store.patch import apply, apply_with_inverse

NOW = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
# Few words, so that changes meet.
WORDS = st.sampled_from(["write it", "Write It", "A - B", "ä ß"])
STATUS = st.sampled_from(["pending", "in-progress", "completed", "blocked"])
MARKERS = st.lists(
    st.one_of(
        st.builds("[CHECKPOINT] {} - {}".format, WORDS, STATUS),
        st.builds("[DECISION] {}{}".format, WORDS, st.sampled_from(["", " - LOCKED", " – unlocked"])),
        st.builds("[ARTIFACT] {} {}".format, st.sampled_from(["Created", "deleted"]), WORDS),
        st.builds("[NEXT] {}".format, WORDS),
        st.builds("[GOAL] {}".format, WORDS),
        st.text(max_size=20),
    ),
    max_size=6,
).map("\n".join)
CALL = st.one_of(
    st.tuples(st.just("add"), WORDS, st.booleans()),
    st.tuples(st.sampled_from(["start", "pause", "finish", "unblock"]), st.integers(0, 3), st.just("")),
    st.tuples(st.sampled_from(["block", "checkpoint"]), st.integers(0, 3), WORDS),
    st.tuples(st.just("decide"), st.tuples(st.integers(0, 3), WORDS), st.booleans()),
    st.tuples(st.just("set_step"), st.tuples(st.integers(0, 3), WORDS), STATUS),
    st.tuples(st.just("apply_markers"), MARKERS, st.just("")),
)
CALLS = st.lists(CALL, max_size=14)


def change(document, call, nth):
    """Return the change that `call` makes, None if it is refused."""
    name, first, second = call
    now = NOW + timedelta(minutes=nth)

    def new_id(kind, at, number):
        return f"{kind}_{nth:04}_{number}"

    known = [goal["id"] for goal in document["goals"]]
    place = first[0] if isinstance(first, tuple) else first
    which = known[place % len(known)] if known and isinstance(place, int) else "goal_missing"
    try:
        if name == "add":
            return goals.add(document, first, now=now, new_id=new_id, start=second)
        if name == "apply_markers":
            return goals.apply_markers(document, goals.parse_markers(first), now=now, new_id=new_id)
        if name == "decide":
            return goals.decide(document, which, first[1], now=now, new_id=new_id, locked=second)
        if name == "set_step":
            return goals.set_step(document, which, first[1], second, now=now, new_id=new_id)
        if name in ("block", "checkpoint"):
            return getattr(goals, name)(document, which, second, now=now, new_id=new_id)
        return getattr(goals, name)(document, which, now=now)
    except AetherError:
        return None


def states(calls):
    """Yield the document before and after each change of `calls` that is made."""
    document = documents.default("goals")
    for nth, call in enumerate(calls):
        made = change(document, call, nth)
        if made is not None:
            after = apply(document, made.patches[goals.DOCUMENT])
            yield document, after, made
            document = after


@given(CALLS)
def test_at_most_one_goal_is_active(calls):
    for _, after, _ in states(calls):
        found = [goal["status"] for goal in goals.views(after, ended=True)]
        assert found.count("active") <= 1
        if held := goals.current(after):
            assert (held["id"], held["status"]) in {
                (after["current"], "active"),
                (after["current"], "blocked"),
            }


@given(CALLS)
def test_words_and_locks_are_for_ever(calls):
    for before, after, _ in states(calls):
        later = {goal["id"]: goal for goal in after["goals"]}
        for goal in before["goals"]:
            now = later.get(goal["id"])
            assert now is not None or "outcome" in goal, "an open goal is never lost"
            if now is not None:
                assert all(
                    now[field] == goal[field]
                    for field in ("description", "priority", "evidence", "created_at")
                )
                locked = {each["id"] for each in now["decisions"] if each["locked"]}
                assert {each["id"] for each in goal["decisions"] if each["locked"]} <= locked


@given(CALLS)
def test_progress_is_a_percentage_of_the_steps(calls):
    for _, after, _ in states(calls):
        for goal in goals.views(after, ended=True):
            assert 0 <= goal["progress"] <= 100
            done = [step["status"] == "completed" for step in goal["subtasks"]]
            assert (goal["progress"] == 100) == (all(done) if done else goal["status"] == "completed")


@given(CALLS)
def test_every_state_is_valid_and_the_same_after_json(calls):
    for before, after, made in states(calls):
        assert check.findings("goals", after) == []
        assert json.loads(json.dumps(after)) == after
        done, inverse = apply_with_inverse(before, made.patches[goals.DOCUMENT])
        assert apply(done, inverse) == before


@given(CALLS, MARKERS)
def test_the_same_markers_twice_are_the_same_as_once(calls, text):
    *_, (_, document, _) = [
        (None, documents.default("goals"), None),
        *states([("add", "ship", True), *calls]),
    ]
    once = apply(document, change(document, ("apply_markers", text, ""), 98).patches[goals.DOCUMENT])

    again = change(once, ("apply_markers", text, ""), 99)

    words = {marker.text for marker in goals.parse_markers(text) if marker.kind == "next"}
    if len(words) < 2:
        assert again.patches[goals.DOCUMENT] == []
    assert again.result.total <= len(goals.parse_markers(text))


@given(CALLS, st.integers(0, 13))
def test_undoing_any_change_leaves_one_current_goal(calls, which):
    """An undo merges the state before a change into the present; one that would leave two is a conflict."""
    made = list(states(calls))
    if not made:
        return
    before, after, _ = made[which % len(made)]

    merged, conflicts = merge(after, made[-1][1], before, rules_of(check.schema("goals")))

    if not conflicts:
        found = [goal["status"] for goal in goals.views(merged, ended=True)]
        assert found.count("active") <= 1
        assert check.findings("goals", merged) == []


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(text):
    for kind in ("CHECKPOINT", "DECISION", "ARTIFACT", "NEXT", "GOAL"):
        for marker in goals.parse_markers(f"[{kind}] {text}\n- [{kind.lower()}] Created {text} - LOCKED"):
            assert marker.text.strip()
            assert "\n" not in marker.text


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", " - LOCKED", " – unlocked"])), max_size=8))
def test_a_lock_is_for_ever(said):
    document = next(after for _, after, _ in states([("add", "ship", True)]))
    locked: set[str] = set()
    for nth, (words, suffix) in enumerate(said):
        made = change(document, ("apply_markers", f"[DECISION] {words}{suffix}", ""), nth + 1)
        document = apply(document, made.patches[goals.DOCUMENT])
        locked |= {words.casefold()} if suffix == " - LOCKED" else set()
        held = {
            each["description"].casefold() for each in goals.current(document)["decisions"] if each["locked"]
        }
        assert held == locked
