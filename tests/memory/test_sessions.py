import pytest

from aether.clock import stamp
from aether.errors import Conflict, NotFound
from aether.memory import sessions
from aether.tokens.counters import session_tokens
from tests.memory.states import NOW, after, answer, count, shipped, with_items


def session(name="s", *, original=100, **fields):
    given = answer(name, **fields)
    metadata = {"answer_sha256": sessions.answer_digest(given), "compression_id": "c"}
    return sessions.build_session(given, phase=1, original_tokens=original, count=count, metadata=metadata)


def stored(*made, documents=None):
    documents = documents or shipped()
    for each in made:
        documents = after(documents, sessions.store_session(documents["memory"], each))
    return documents


def names(documents):
    return [each["session_id"] for each in sessions.sessions_of(documents["memory"])]


def test_a_session_counts_its_own_tokens():
    made = session(original=500)

    tokens = session_tokens(made, count)
    assert made["compressed_tokens"] == tokens > 0
    assert made["compression_ratio"] == round(500 / tokens, 2)
    assert (made["original_tokens"], made["phase"]) == (500, 1)
    assert made["metadata"] == {
        "context": "", "related_patterns": [], "compression_id": "c",
        "answer_sha256": sessions.answer_digest(answer("s")),
    }  # fmt: skip


def test_the_number_of_sessions_is_kept():
    documents = stored(session("a"), session("b"))

    assert names(documents) == ["a", "b"]
    assert documents["memory"]["short_term_memory"]["current_sessions"] == 2


def test_storing_the_same_session_twice_is_storing_it_once():
    documents = stored(session("a"))

    again = sessions.store_session(documents["memory"], session("a"))

    assert again.patches == {}
    assert again.result == session("a")


@pytest.mark.parametrize("field", ["id", "session_id"])
def test_a_session_that_takes_the_id_of_something_else_is_refused(field):
    documents = with_items(stored(session("a", session_id="b")), "An item.")
    pattern = {"id": "pattern_1", "pattern": "Use it."}
    documents["memory"]["long_term_memory"]["patterns"] = [pattern]

    for taken in ("a", documents["memory"]["working_memory"]["items"][0]["id"], "pattern_1"):
        with pytest.raises(Conflict, match="of its own"):
            sessions.store_session(documents["memory"], session("new", **{field: taken}))


def test_another_session_of_the_same_name_is_refused():
    with pytest.raises(Conflict, match="another session is called 'a'"):
        sessions.store_session(
            stored(session("a"))["memory"], session("a", summary="Something else was said.")
        )


def test_equal_answers_are_recognized_by_the_fields_of_the_architect():
    same = sessions.answer_digest(answer("a", original_tokens=5, compressed_tokens=7))

    assert same == sessions.answer_digest(answer("a"))
    assert same != sessions.answer_digest(answer("a", summary="Other."))


def test_the_average_follows_every_compression():
    """Defect 17 of the original: number and average were counted in different places."""
    documents = shipped()
    for ratio in (2.5, 4.0, 1.0):
        made = {**session(), "compression_ratio": ratio}
        documents = after(documents, sessions.count_compression(documents["memory"], made))

    metrics = documents["memory"]["metrics"]
    assert metrics["total_compressions"] == 3
    assert metrics["compression_ratio_total"] == 7.5
    assert metrics["average_compression_ratio"] == 2.5


def test_a_home_of_the_original_gets_its_sum_of_ratios_with_the_next_compression():
    documents = shipped()
    del documents["memory"]["metrics"]["compression_ratio_total"]

    documents = after(
        documents, sessions.count_compression(documents["memory"], {**session(), "compression_ratio": 2.0})
    )

    assert documents["memory"]["metrics"]["average_compression_ratio"] == 2.0


def test_nothing_compressed_is_an_average_of_nothing():
    assert sessions.average_ratio(0, 0) == 0.0


def test_the_oldest_session_is_found_by_instant_and_not_by_text():
    """Defect 10 of the original: 01:00-05:00 is 06:00 UTC, later than 02:00 UTC."""
    documents = stored(session("later"), session("earlier"))
    held = sessions.sessions_of(documents["memory"])
    held[0]["compressed_at"], held[1]["compressed_at"] = "2026-02-01T01:00:00-05:00", "2026-02-01T02:00:00Z"

    assert sessions.oldest_session(documents["memory"])["session_id"] == "earlier"
    assert sessions.oldest_session(documents["memory"], spared="earlier")["session_id"] == "later"
    assert sessions.oldest_session(shipped()["memory"]) is None


def test_an_evicted_session_goes_whole_to_the_archive():
    high = [{"content": "Never push to main", "relevance_score": 0.9, "type": "constraint"}]
    documents = stored(session("a", high_value_items=high), session("b"))

    change = sessions.evict_session(documents["memory"], "a", now=NOW)

    done = after(documents, change)
    assert names(done) == ["b"]
    assert done["memory"]["short_term_memory"]["current_sessions"] == 1
    assert done["memory"]["metrics"]["short_term_evictions"] == 1
    [record] = change.appends["items"]
    assert record["session"] == change.result == session("a", high_value_items=high)
    assert (record["why"], record["compression_id"], record["left_at"]) == ("evicted", "c", stamp(NOW))
    assert record["item"]["id"] == "a"
    assert record["item"]["type"] == "session"
    assert record["item"]["content"].splitlines() == [
        "The colony chose JSON for its state.", "The schema was created — State persists",
        "Use JSON for state — People can read it", "Never push to main",
    ]  # fmt: skip


def test_the_text_of_a_session_reads_from_the_goal_to_what_is_next():
    entries = [
        ("Never push", "constraint"),
        ("Make it fast", "user_input"),
        ("Changed a.py", "code_change"),
        ("Push it", "next"),
    ]
    high = [{"content": said, "relevance_score": 0.5, "type": kind} for said, kind in entries]

    assert sessions.session_text(session("a", high_value_items=high)).splitlines()[1:] == [
        "Make it fast", "Changed a.py", "The schema was created — State persists",
        "Use JSON for state — People can read it", "Never push", "Push it",
    ]  # fmt: skip


def test_the_sections_of_a_session_leave_out_what_was_ended_and_what_is_empty():
    high = [
        {"content": said, "relevance_score": 0.5, "type": kind}
        for said, kind in [
            ("Push it", "next"), ("Never push", "constraint"), ("Use tabs", "constraint"), ("Make it fast", "user_input"),
            ("The tables are sorted", "observation"), ("`make` failed: no rule", "error"), ("Ran `make`: ok", "command"),
        ]
    ]  # fmt: skip
    made = session(high_value_items=high, key_decisions=[])
    made["metadata"]["ended"] = ["Use tabs"]

    assert [*sessions.session_sections(made).items()] == [
        ("Summary", ["The colony chose JSON for its state."]), ("Asked", ["Make it fast"]), ("Done", ["Ran `make`: ok"]),
        ("Results", ["The schema was created — State persists"]), ("Rules", ["Never push"]),
        ("Failed and open", ["`make` failed: no rule"]), ("Next", ["Push it"]), ("Noted", ["The tables are sorted"]),
    ]  # fmt: skip


def test_a_reason_that_nobody_gave_leaves_no_dash():
    made = session(key_decisions=[{"decision": "Use JSON", "rationale": ""}], outcomes=[])

    assert sessions.session_text(made).splitlines()[1] == "Use JSON"


def test_a_session_that_is_not_there_cannot_be_evicted():
    with pytest.raises(NotFound, match="no session 'x'"):
        sessions.evict_session(stored(session("a"))["memory"], "x", now=NOW)
