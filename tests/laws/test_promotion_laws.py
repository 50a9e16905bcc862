from hypothesis import given
from hypothesis import strategies as st

from aether.memory.patterns import extract_pattern, promote
from tests.memory.memories import NOW, applied, memory, new_id, patterns_of, session

SAYINGS = (
    "Use atomic writes for state files",
    "State files must be written atomically",
    "Do not use atomic writes for state files",
    "Set the timeout to 30",
    "The timeout is 30",
    "Set the timeout to 60",
    "Prefer tabs over spaces",
    "Use spaces instead of tabs",
    "Tests failed on Windows",
    "不要在周五部署",
    "???",
)


def statements():
    """Return a strategy of statements: sayings that are alike or opposed, and mixed words."""
    mixed = st.lists(st.sampled_from("red green blue tabs never 30 files".split()), min_size=1, max_size=5)
    return st.sampled_from(SAYINGS) | mixed.map(" ".join)


@st.composite
def memories(draw):
    """Return a memory of up to six sessions that say things again and again."""
    sessions = []
    for at in range(draw(st.integers(0, 6))):
        items = draw(st.lists(st.tuples(statements(), st.sampled_from([0.0, 0.8, 0.9])), max_size=3))
        said = st.lists(statements(), max_size=3)
        name = f"s{draw(st.integers(0, 5))}"
        sessions.append(
            session(name, items=items, decisions=draw(said), outcomes=draw(said), phase=at, day=at + 1)
        )
    return memory(*({each["id"]: each for each in sessions}.values()))


def promoted(state):
    return applied(state, promote(state, now=NOW, new_id=new_id))


@given(memories())
def test_promoting_twice_is_promoting_once(state):
    once = promoted(state)

    assert promoted(once) == once


@given(memories(), memories())
def test_occurrences_are_the_distinct_sessions_of_the_evidence(first, second):
    state = promoted(first)
    state["short_term_memory"] = second["short_term_memory"]
    state = promoted(state)

    for pattern in patterns_of(state):
        named = [each["session_id"] for each in pattern["metadata"]["evidence"]]
        assert pattern["occurrences"] == len(named) == len(set(named))
        assert 0.7 <= pattern["confidence"] <= 1.0


@given(memories(), memories())
def test_promotion_never_loses_text(first, second):
    before = promoted(first)
    before["short_term_memory"] = second["short_term_memory"]
    after = promoted(before)

    assert [each["pattern"] for each in patterns_of(before)] == [
        each["pattern"] for each in patterns_of(after)[: len(patterns_of(before))]
    ]
    for old, new in zip(patterns_of(before), patterns_of(after), strict=False):
        assert old["metadata"]["evidence"] == new["metadata"]["evidence"][: old["occurrences"]]
    for old, new in zip(
        before["short_term_memory"]["sessions"], after["short_term_memory"]["sessions"], strict=True
    ):
        assert {**old, "metadata": None} == {**new, "metadata": None}


@given(memories())
def test_sessions_and_patterns_name_each_other(state):
    after = promoted(state)

    for pattern in patterns_of(after):
        for each in after["short_term_memory"]["sessions"]:
            listed = pattern["id"] in each["metadata"].get("related_patterns", [])
            assert listed == any(link["target_id"] == each["id"] for link in pattern["associative_links"])


@given(memories(), statements())
def test_extracting_a_pattern_twice_is_extracting_it_once(state, text):
    state["short_term_memory"]["sessions"].append(session("last"))

    def extract(state):
        return applied(
            state, extract_pattern(state, text + " always", session_id="last", now=NOW, new_id=new_id)
        )

    once = extract(promoted(state))
    assert extract(once) == once
