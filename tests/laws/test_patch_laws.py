"""Laws of patches: what they promise for any JSON value and any patch that fits it."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from aether.store.patch import apply, apply_with_inverse, diff, json_equal, keys_of, pointer
from tests.laws.json_values import keys, patched, values


@given(patched())
def test_the_inverse_leads_back(case):
    state, patch = case

    after, inverse = apply_with_inverse(state, patch)

    assert json_equal(apply(after, inverse), state)


@given(patched())
def test_neither_the_state_nor_the_patch_is_changed(case):
    state, patch = case
    kept = copy.deepcopy(case)

    after, inverse = apply_with_inverse(state, patch)
    apply(after, inverse)

    assert json_equal([state, patch], list(kept))


@given(patched())
def test_a_later_patch_changes_nothing_that_an_earlier_result_holds(case):
    state, patch = case
    seen, kept = [state], [copy.deepcopy(state)]

    for step in patch:
        seen.append(apply(seen[-1], [step]))
        kept.append(copy.deepcopy(seen[-1]))

    assert json_equal(seen, kept)
    assert json_equal(seen[-1], apply(state, patch))


@given(values(), values())
def test_applying_a_difference_gives_the_target(before, after):
    assert json_equal(apply(before, diff(before, after)), after)


@given(patched())
def test_applying_the_difference_that_a_patch_made_gives_its_result(case):
    state, patch = case
    after = apply(state, patch)

    assert json_equal(apply(state, diff(state, after)), after)
    assert json_equal(apply(after, diff(after, state)), state)


@given(values())
def test_there_is_no_difference_between_equals(value):
    assert diff(value, copy.deepcopy(value)) == []


@given(st.lists(keys()))
def test_a_pointer_names_its_keys(names):
    assert keys_of(pointer(*names)) == names
