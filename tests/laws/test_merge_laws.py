"""Laws of merging: one side alone holds, disjoint changes both hold, and undoing the last change restores."""

from hypothesis import given
from hypothesis import strategies as st

from aether.store.merge import merge
from aether.store.patch import apply, json_equal
from tests.laws.json_values import patched, values

RULES = {("a",): "sum", ("*", "a"): "sum", ("b",): "touch", ("*", "b"): "touch"}


def states():
    """A state of up to six entries with counters, and bookkeeping."""
    return st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 5), max_size=6)


def documents():
    """Working memory in small: entries with ids, and the sum of their tokens."""
    entry = st.fixed_dictionaries({"id": st.sampled_from("uvwxyz"), "tokens": st.integers(1, 9)})
    return st.lists(entry, max_size=6, unique_by=lambda one: one["id"]).map(
        lambda held: {"items": held, "total": sum(one["tokens"] for one in held)}
    )


@given(values(), values())
def test_where_only_one_side_changed_that_side_holds(base, changed):
    assert json_equal(merge(base, changed, base, {})[0], changed)
    assert json_equal(merge(base, base, changed, {})[0], changed)
    assert merge(base, changed, base, {})[1] == merge(base, base, changed, {})[1] == []


@given(values(), values())
def test_where_both_sides_did_the_same_it_holds(base, changed):
    assert json_equal(merge(base, changed, changed, {})[0], changed)


@given(patched())
def test_undoing_the_last_change_restores_exactly(case):
    before, patch = case
    after = apply(before, patch)

    merged, conflicts = merge(after, after, before, {})

    assert json_equal(merged, before)
    assert conflicts == []


@given(states(), states(), states())
def test_changes_of_different_members_are_both_kept(base, ours, theirs):
    now = {**base, **{f"now{key}": value for key, value in theirs.items()}}
    wanted = {**base, **{f"wanted{key}": value for key, value in ours.items()}}

    merged, conflicts = merge(base, now, wanted, {})

    assert merged == {**now, **wanted}
    assert conflicts == []


@given(states(), states(), states())
def test_a_conflict_leaves_what_is_now_and_is_named(base, now, wanted):
    merged, conflicts = merge(base, now, wanted, {})

    for key in {*base, *now, *wanted}:
        ours, theirs = base.get(key) != wanted.get(key), base.get(key) != now.get(key)
        both = ours and theirs and now.get(key) != wanted.get(key)
        assert ((key,) in conflicts) == both
        assert merged.get(key) == (wanted if ours and not both else now).get(key)


@given(documents(), documents(), documents())
def test_a_total_stays_the_sum_of_its_entries_whatever_comes_together(base, now, wanted):
    merged, conflicts = merge(base, now, wanted, {("total",): "sum"})

    if not conflicts and not _changed_on_both_sides(base, now, wanted):
        assert merged["total"] == sum(one["tokens"] for one in merged["items"])


def _changed_on_both_sides(base, now, wanted):
    """Return whether both sides made the same change to one entry: it is there once, but was counted twice."""
    first, second, third = (
        {one["id"]: one["tokens"] for one in side["items"]} for side in (base, now, wanted)
    )
    return any(
        first.get(key) != second.get(key) and second.get(key) == third.get(key)
        for key in {*first, *second, *third}
    )


@given(states(), states(), states())
def test_counters_add_both_differences_and_reads_stay_where_both_sides_changed(base, now, wanted):
    numbers = [{key: side.get(key, 0) for key in "ab"} for side in (base, now, wanted)]

    merged, conflicts = merge(*numbers, RULES)

    assert merged["a"] == numbers[1]["a"] + numbers[2]["a"] - numbers[0]["a"]
    assert merged["b"] == (numbers[2] if numbers[1] == numbers[0] else numbers[1])["b"]
    assert conflicts == []
