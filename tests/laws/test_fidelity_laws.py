from hypothesis import given
from hypothesis import strategies as st

from aether.memory.fidelity import (
    ITEM_TOKENS,
    RESTORED_FLOOR_TOKENS,
    RESTORED_SHARE,
    gate,
    required_statements,
)


def count(text):
    return -(-len(text) // 4)


def contents():
    """Return a strategy of statements, some of which must survive, and of any text."""
    said = st.lists(
        st.sampled_from(
            "use never tabs locks 30 60 src/a.py fetch_user() must decided fails fixed . and".split()
        ),
        min_size=1,
        max_size=9,
    )
    long = said.map(lambda words: " ".join(words) * 30)
    return said.map(" ".join) | long | st.text(min_size=1, max_size=60)


@st.composite
def handoffs(draw):
    """Return a hand-off of up to eight items, some of them protected or injected."""
    kinds = st.sampled_from(["decision", "constraint", "blocker", "solution", "observation"])
    items = [
        {
            "id": f"wm{at}",
            "type": draw(kinds),
            "content": draw(contents()),
            "metadata": {
                "relevance_score": draw(st.sampled_from([0.2, 0.8])),
                "protected": draw(st.booleans()),
                "injected": draw(st.booleans()),
            },
        }
        for at in range(draw(st.integers(0, 8)))
    ]
    protected = [{"id": each["id"], "content": each["content"], "why": ""} for each in items[::3]]
    return {"items": items, "protected": protected, "target_tokens": draw(st.sampled_from([0, 5_000]))}


def answers():
    """Return a strategy of sessions."""
    texts = contents()
    pairs = st.lists(st.fixed_dictionaries({"decision": texts, "rationale": texts}), max_size=3)
    items = st.lists(st.fixed_dictionaries({"content": texts}), max_size=3)
    return st.fixed_dictionaries(
        {"summary": texts, "key_decisions": pairs, "outcomes": st.just([]), "high_value_items": items}
    )


def texts_of(session):
    pairs = [text for pair in session["key_decisions"] for text in pair.values()]
    return [session["summary"], *pairs, *(each["content"] for each in session["high_value_items"])]


@given(handoffs(), answers())
def test_every_protected_text_stands_in_the_session_after_the_gate(handoff, answer):
    gated = gate(handoff, answer, count=count)

    wanted = [each["content"] for each in handoff["protected"]]
    wanted += [each["content"] for each in handoff["items"] if each["metadata"]["protected"]]
    for content in wanted:
        assert any(content in text for text in texts_of(gated.session))


@given(handoffs(), answers())
def test_the_gate_only_adds_and_names_what_it_adds(handoff, answer):
    gated = gate(handoff, answer, count=count)
    before, after = answer["high_value_items"], gated.session["high_value_items"]

    assert after[: len(before)] == before
    assert [each["content"] for each in after[len(before) :]] == [each["content"] for each in gated.carried]
    assert {**gated.session, "high_value_items": before} == answer
    sources = [each["content"] for each in handoff["items"]]
    assert all(any(each["content"] in source for source in sources) for each in gated.carried)


@given(handoffs(), answers())
def test_what_is_carried_beside_the_protected_fits_the_cap(handoff, answer):
    gated = gate(handoff, answer, count=count)

    spent = sum(count(each["content"]) + ITEM_TOKENS for each in gated.carried if each["why"] != "protected")
    assert spent <= max(RESTORED_FLOOR_TOKENS, handoff["target_tokens"] * RESTORED_SHARE)


@given(handoffs(), answers())
def test_a_full_answer_passes_untouched(handoff, answer):
    """An answer that holds every required statement word for word has a score of one and gains nothing."""
    answer["high_value_items"] += [{"content": each.content} for each in required_statements(handoff)]

    gated = gate(handoff, answer, count=count)

    assert (gated.session, gated.carried, gated.left_out, gated.score) == (answer, [], [], 1.0)
