import pytest

from aether.errors import CorruptDocument, InvalidDocument
from aether.store import files, snapshot
from aether.store.snapshot import Entry
from tests.tables import rows


def entry(revision, note="x"):
    """Return a transaction that sets a note."""
    patch = {"memory": [{"op": "add", "path": "/note", "value": note}]}
    return Entry(revision, "2026-03-01T10:15:00.000000Z", "queen", "add", "", patch, {}, {})


def written(*revisions, base=0):
    """Return a journal with these revisions."""
    return snapshot.journal_header(base) + b"".join(
        snapshot.entry_line(entry(revision)) for revision in revisions
    )


def test_what_was_written_is_read():
    found = snapshot.scan_journal(written(1, 2), where="journal")

    assert found.entries == [entry(1), entry(2)]
    assert (found.base, found.end, found.torn, found.ignored) == (0, len(written(1, 2)), b"", 0)


def test_empty_fields_are_not_written():
    assert b"inverse" not in snapshot.entry_line(entry(1))
    assert b"reason" not in snapshot.entry_line(entry(1))


def test_the_tail_of_a_journal_is_read_by_itself():
    tail = written(1, 2, 3)[len(written(1)) :]

    found = snapshot.scan_journal(tail, base=1, where="journal")

    assert [one.revision for one in found.entries] == [2, 3]
    assert found.end == len(tail)


def test_a_torn_last_line_is_no_commit():
    data = written(1) + snapshot.entry_line(entry(2))[:-1]

    found = snapshot.scan_journal(data, where="journal")

    assert [one.revision for one in found.entries] == [1]
    assert found.end == len(written(1))
    assert found.torn == data[found.end :]


def test_a_second_line_for_one_revision_is_no_commit():
    found = snapshot.scan_journal(
        written(1) + snapshot.entry_line(entry(1, "late")) + snapshot.entry_line(entry(2)), where="journal"
    )

    assert [one.patches["memory"][0]["value"] for one in found.entries] == ["x", "x"]
    assert found.ignored == 1


def test_a_damaged_line_before_commits_is_an_error_that_names_it():
    good = written(1, 2, 3)
    at = len(written(1)) + 20
    data = good[:at] + b"?" + good[at + 1 :]

    with pytest.raises(CorruptDocument, match="line 3 is damaged or missing, and revision 3 follows it"):
        snapshot.scan_journal(data, where="journal")


def test_a_missing_line_is_an_error():
    with pytest.raises(CorruptDocument, match="revision 3 follows"):
        snapshot.scan_journal(written(1, 3), where="journal")


@rows("first", [b"", b"{}\n", b"garbage\n", snapshot.entry_line(entry(1))])
def test_a_damaged_first_line_is_an_error(first):
    with pytest.raises(CorruptDocument, match="the first line is damaged"):
        snapshot.scan_journal(first, where="journal")


def test_a_journal_of_a_newer_aether_is_left_alone():
    data = files.seal_json({"journal": snapshot.JOURNAL_FORMAT + 1, "base": 0})

    with pytest.raises(InvalidDocument, match="newer aether"):
        snapshot.scan_journal(data, where="journal")


@rows("line", [b"", b"{}", b'{"a":1,"checksum":"0000000000000000"}\n', b"\xff" * 40])
def test_a_line_without_its_checksum_says_nothing(line):
    assert files.unsealed(line) is None


def test_the_months_are_listed_oldest_first(tmp_path):
    (tmp_path / "data" / "journal").mkdir(parents=True)
    for name in ("2026-02.jsonl", "2025-12.jsonl", "notes.txt"):
        (tmp_path / "data" / "journal" / name).touch()

    assert [path.name for path in snapshot.month_files(tmp_path)] == ["2025-12.jsonl", "2026-02.jsonl"]
