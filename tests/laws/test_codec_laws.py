"""Laws of the codec: exact both ways for any JSON value, and one form whoever wrote it."""

from hypothesis import given
from hypothesis import strategies as st

from aether.store import documents, files
from aether.store.patch import json_equal
from tests.laws.json_values import keys, scalars, values


def plain():
    """Values whose floats need no exponent: there the two encoders write them differently."""
    numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-(10**6), 10**6).map(lambda n: n / 64)
    return st.recursive(
        numbers | st.text() | st.none() | st.booleans(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )


@given(values())
def test_a_line_comes_back_exactly(value):
    data = files.json_line(files.checked_json(value, where="law"))

    assert json_equal(files.parse_json(data, where="law"), value)
    assert b"\n" not in data
    assert b"\r" not in data


@given(values(), st.sampled_from([0, files.SMALL_CHARS]))
def test_a_document_comes_back_exactly(value, size):
    assert json_equal(files.parse_json(files.json_document(value, size=size), where="law"), value)


@given(plain())
def test_both_encoders_write_the_same_bytes(value):
    assert files.json_document(value, size=0) == files.json_document(value, size=files.SMALL_CHARS)


@given(scalars(), st.integers(0, files.MAX_DEPTH - 1), st.booleans())
def test_any_depth_up_to_the_limit_comes_back(value, levels, in_lists):
    for _ in range(levels):
        value = [value] if in_lists else {"k": value}

    files.checked_json(value, where="law")

    assert json_equal(files.parse_json(files.json_line(value), where="law"), value)
    assert json_equal(
        files.parse_json(files.json_document(value, size=files.SMALL_CHARS), where="law"), value
    )


@given(
    st.dictionaries(keys().filter(lambda key: key != "stamp"), values(), min_size=1), st.integers(0, 10**9)
)
def test_a_stamped_document_comes_back_with_its_revision(value, revision):
    for size in (0, files.SMALL_CHARS):
        found = documents.parse(documents.encode(value, revision, size=size), where="law")

        assert (found.state, found.revision) == ("good", revision)
        assert json_equal(found.value, value)
