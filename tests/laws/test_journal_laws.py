"""Laws of the journal: what was written is read, and no damage passes for something that was written."""

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import CorruptDocument, InvalidDocument
from aether.store import snapshot
from aether.store.snapshot import Entry
from tests.laws.json_values import text, values


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


def journals():
    """The bytes of a journal with up to three transactions, and these."""
    return st.lists(entries(), max_size=3).map(_written)


def _written(made):
    numbered = [entry._replace(revision=number) for number, entry in enumerate(made, 8)]
    return snapshot.journal_header(7) + b"".join(map(snapshot.entry_line, numbered)), numbered


@given(journals())
def test_what_was_written_is_read(case):
    data, made = case

    found = snapshot.scan_journal(data, where="law")

    assert found.entries == made
    assert b"".join(found.lines) == data[len(snapshot.journal_header(7)) :]
    assert (found.base, found.end, found.torn, found.ignored) == (7, len(data), b"", 0)


@given(journals(), st.data())
def test_a_journal_cut_off_anywhere_holds_its_whole_lines_and_no_more(case, draw):
    data, made = case
    length = draw.draw(st.integers(len(snapshot.journal_header(7)), len(data)))

    found = snapshot.scan_journal(data[:length], where="law")

    assert found.entries == made[: data[:length].count(b"\n") - 1]
    assert data[:length] == data[: found.end] + found.torn


@given(journals(), st.data())
def test_a_changed_byte_never_passes_for_what_was_written(case, draw):
    data, made = case
    at = draw.draw(st.integers(0, len(data) - 1))
    other = draw.draw(st.integers(0, 255).filter(lambda byte: byte != data[at]))
    damaged = data[:at] + bytes([other]) + data[at + 1 :]

    try:
        found = snapshot.scan_journal(damaged, where="law")
    except (CorruptDocument, InvalidDocument):
        return

    assert found.base == 7
    # The bytes that close a line carry nothing: there alone may a change go unnoticed.
    assert found.entries == made or (found.torn and found.entries == made[: len(found.entries)])


@given(journals(), st.data())
def test_a_missing_line_is_noticed_or_was_the_last(case, draw):
    data, made = case
    lines = data.splitlines(keepends=True)
    at = draw.draw(st.integers(0, len(lines) - 1))

    try:
        found = snapshot.scan_journal(b"".join(lines[:at] + lines[at + 1 :]), where="law")
    except CorruptDocument:
        return

    assert found.entries == made[:-1]
