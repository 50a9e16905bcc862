"""Laws of the store: JSON is exact both ways, damaged lines are not read, patches have inverses, merges keep both sides."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import CorruptDocument, InvalidDocument
from aether.store import documents, files
from aether.store import journal as journals
from aether.store.journal import Entry
from aether.store.merge import merge
from aether.store.patch import apply, apply_with_inverse, diff, json_equal, keys_of, pointer
from tests.laws.json_values import keys, patched, scalars, text, values


def plain():
    """Values whose floats need no exponent: there the two encoders write them differently."""
    numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-(10**6), 10**6).map(lambda n: n / 64)
    return st.recursive(
        numbers | st.text() | st.none() | st.booleans(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )


@given(values(), st.sampled_from([0, files.SMALL_CHARS]))
def test_a_line_comes_back_exactly(value, size):
    data = files.json_line(files.checked_json(value, where="law"), size=size)

    assert json_equal(files.parse_json(data, where="law"), value)
    assert b"\n" not in data
    assert b"\r" not in data


@given(values(), st.sampled_from([0, files.SMALL_CHARS]))
def test_a_document_comes_back_exactly(value, size):
    assert json_equal(files.parse_json(files.json_document(value, size=size), where="law"), value)


@given(plain())
def test_both_encoders_write_the_same_bytes(value):
    assert files.json_document(value, size=0) == files.json_document(value, size=files.SMALL_CHARS)
    assert files.json_line(value) == files.json_line(value, size=files.SMALL_CHARS)


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


def entries():
    """A transaction with any values in its patch, inverse and records; its revision is given later."""
    patch = st.dictionaries(
        st.sampled_from(["memory", "pheromones"]),
        st.lists(
            st.fixed_dictionaries({"op": st.just("add"), "path": text(), "value": values()}),
            min_size=1,
            max_size=2,
        ),
        max_size=2,
    )
    records = st.dictionaries(
        st.just("items"), st.lists(st.dictionaries(text(), values(), max_size=2), min_size=1)
    )
    return st.builds(Entry, st.just(0), text(), text(), text(), text(), patch, patch, records)


def written_journals():
    """The bytes of a journal with up to three transactions, and these."""
    return st.lists(entries(), max_size=3).map(_written)


def _written(made):
    numbered = [entry._replace(revision=number) for number, entry in enumerate(made, 8)]
    return journals.journal_header(7) + b"".join(map(journals.entry_line, numbered)), numbered


@given(written_journals())
def test_what_was_written_is_read(case):
    data, made = case

    found = journals.scan_journal(data, where="law")

    assert found.entries == made
    assert b"".join(found.lines) == data[len(journals.journal_header(7)) :]
    assert (found.base, found.end, found.torn, found.ignored) == (7, len(data), b"", 0)


@given(written_journals(), st.data())
def test_a_journal_cut_off_anywhere_holds_its_whole_lines_and_no_more(case, draw):
    data, made = case
    length = draw.draw(st.integers(len(journals.journal_header(7)), len(data)))

    found = journals.scan_journal(data[:length], where="law")

    assert found.entries == made[: data[:length].count(b"\n") - 1]
    assert data[:length] == data[: found.end] + found.torn


@given(written_journals(), st.data())
def test_a_changed_byte_never_passes_for_what_was_written(case, draw):
    data, made = case
    at = draw.draw(st.integers(0, len(data) - 1))
    other = draw.draw(st.integers(0, 255).filter(lambda byte: byte != data[at]))
    damaged = data[:at] + bytes([other]) + data[at + 1 :]

    try:
        found = journals.scan_journal(damaged, where="law")
    except (CorruptDocument, InvalidDocument):
        return

    assert found.base == 7
    # The bytes that close a line carry nothing: there alone may a change go unnoticed.
    assert found.entries == made or (found.torn and found.entries == made[: len(found.entries)])


@given(written_journals(), st.data())
def test_a_missing_line_is_noticed_or_was_the_last(case, draw):
    data, made = case
    lines = data.splitlines(keepends=True)
    at = draw.draw(st.integers(0, len(lines) - 1))

    try:
        found = journals.scan_journal(b"".join(lines[:at] + lines[at + 1 :]), where="law")
    except CorruptDocument:
        return

    assert found.entries == made[:-1]


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


RULES = {("a",): "sum", ("*", "a"): "sum", ("b",): "touch", ("*", "b"): "touch"}


def states():
    """A state of up to six entries with counters, and bookkeeping."""
    return st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 5), max_size=6)


def merge_documents():
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


@given(merge_documents(), merge_documents(), merge_documents())
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
