"""Laws of answers and their fidelity: reading never fails otherwise, and the gate loses no required statement."""

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.memory.answers import REQUIRED, check_answer, unwrap
from aether.memory.fidelity import (
    ITEM_TOKENS,
    RESTORED_FLOOR_TOKENS,
    RESTORED_SHARE,
    gate,
    required_statements,
)
from aether.memory.proof import prove
from aether.memory.statements import STATED_FIELDS


def json_values():
    """Return a strategy of any JSON value of modest size."""
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=12)
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=8,
    )


def sessions():
    """Return a strategy of objects with the required fields, whatever is in them."""
    texts = st.text(max_size=40)
    pairs = st.lists(st.fixed_dictionaries({"decision": texts, "rationale": texts}), max_size=3)
    return st.fixed_dictionaries(
        {**dict.fromkeys(REQUIRED, texts), "key_decisions": pairs, "outcomes": pairs},
        optional={"extra": texts},
    )


def prose():
    """Return a strategy of text around an object: anything, fences and braces that open no object included."""
    return st.text(
        st.characters(exclude_characters='{}"', exclude_categories=["Cs"]), max_size=60
    ) | st.sampled_from(
        ["```json\n", "\n```", "{see below}", "Use {braces} and [brackets]: ", "{", 'She said "yes". ']
    )


@given(sessions(), prose(), prose(), st.sampled_from([None, 2]), st.booleans())
def test_the_object_is_found_inside_any_prose(session, before, after, indent, ascii_only):
    text = before + json.dumps(session, indent=indent, ensure_ascii=ascii_only) + after

    assert unwrap(text) == session


@given(sessions(), prose())
def test_commas_too_many_change_nothing_else(session, before):
    text = json.dumps(session, indent=2)
    text = text.removesuffix("\n}") + ",\n}"

    assert unwrap(before + text) == session


@given(
    st.text(max_size=200)
    | json_values().map(json.dumps)
    | st.dictionaries(st.text(max_size=8), json_values())
)
def test_whatever_comes_is_stored_or_refused_in_words(answer):
    with suppress(InvalidInput):
        check_answer(answer, None, 1)


@given(
    sessions().flatmap(
        lambda session: st.fixed_dictionaries(
            {name: st.just(value) | json_values() for name, value in session.items()}
        )
    )
)
def test_what_is_accepted_has_every_required_field_of_its_type(answer):
    try:
        fields = check_answer(answer, None, 1).fields
    except InvalidInput:
        return

    assert all(isinstance(fields[name], str) for name in REQUIRED[:4])
    assert all(
        isinstance(pair[name], str)
        for field, names in (("key_decisions", ("decision", "rationale")), ("outcomes", ("result", "impact")))
        for pair in fields[field]
        for name in names
    )


STATED = dict.fromkeys(("id", "session_id", "summary"), "x") | {
    "compressed_at": "2026-03-01T12:00:00Z", "key_decisions": [], "outcomes": [],
}  # fmt: skip


@given(st.dictionaries(st.sampled_from([*STATED_FIELDS, "key_decisions"]), json_values()))
def test_statements_of_any_form_are_read_and_proven_or_refused_in_words(answer):
    item = {"id": "i", "type": "x", "content": "Use tabs.", "metadata": {"evidence": "person"}}
    answer = {**STATED, **answer, "summary": "Tabs were chosen for the indentation of the importer."}
    try:
        fields = check_answer(answer, None, 1).fields
    except InvalidInput:
        return

    done = prove(fields, [item])

    assert all(entry["items"] == ["i"] for name in STATED_FIELDS for entry in done.fields[name])


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
def test_every_protected_text_is_in_the_session_after_the_gate(handoff, answer):
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
