import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.memory.answers import REQUIRED, check_answer, unwrap


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
        isinstance(value, str)
        for pair in fields["key_decisions"] + fields["outcomes"]
        for value in pair.values()
    )
