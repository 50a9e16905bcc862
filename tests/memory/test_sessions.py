import pytest

from aether.errors import Conflict
from aether.memory import sessions
from tests.memory.states import after, answer, count, shipped, with_items


def session(name="s", *, original=100, **fields):
    given = answer(name, **fields)
    metadata = {"answer_sha256": sessions.answer_digest(given), "compression_id": "c"}
    return sessions.build_session(given, phase=1, original_tokens=original, count=count, metadata=metadata)


def stored(*made, documents=None):
    documents = documents or shipped()
    for each in made:
        documents = after(documents, sessions.store_session(documents["memory"], each))
    return documents


@pytest.mark.parametrize("field", ["id", "session_id"])
def test_a_session_that_takes_the_id_of_something_else_is_refused(field):
    documents = with_items(stored(session("a", session_id="b")), "An item.")
    pattern = {"id": "pattern_1", "pattern": "Use it."}
    documents["memory"]["long_term_memory"]["patterns"] = [pattern]

    for taken in ("a", documents["memory"]["working_memory"]["items"][0]["id"], "pattern_1"):
        with pytest.raises(Conflict, match="of its own"):
            sessions.store_session(documents["memory"], session("new", **{field: taken}))


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
