import pytest

from aether.errors import NotFound
from aether.store import record_files, snapshot
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.types import Change
from tests import homes


def archive(home, *names, now=homes.NOW, kind="items"):
    """Commit one archived record for each name, in one transaction."""
    records = [{"name": name} for name in names]
    commit(home, lambda _: Change({}, {kind: records}), Author("archive"), now=now)


def names(home, kind="items", after=-1):
    return [record["name"] for _, record in record_files.records(homes.reopened(home), kind, after=after)]


def positions(home, kind="items"):
    return [position for position, _ in record_files.records(homes.reopened(home), kind)]


@pytest.mark.parametrize("kind", [*record_files.MONTHLY, *record_files.SINGLE])
def test_records_are_found_from_the_moment_of_their_commit_and_after_folding(home, kind):
    archive(home, "a", "b", kind=kind)
    assert names(home, kind) == ["a", "b"]

    fold_home(home, now=homes.NOW)

    assert names(home, kind) == ["a", "b"]
    assert snapshot.load(home).pending == ()


def test_folded_and_unfolded_records_come_in_the_order_of_their_commits(home):
    archive(home, "a")
    fold_home(home, now=homes.NOW)
    archive(home, "b")
    archive(home, "c")

    assert names(home) == ["a", "b", "c"]
    assert positions(home) == sorted(set(positions(home)))


@pytest.mark.parametrize("folded", [0, 1, 2, 3])
def test_only_newer_records_are_read_after_a_position(home, folded):
    for number in range(3):
        archive(home, f"{number}a", f"{number}b", now=homes.later(number * 31 * 86400))
        if number < folded:
            fold_home(home, now=homes.NOW)
    everything = positions(home)

    for done, position in enumerate(everything, 1):
        assert names(home, after=position) == ["0a", "0b", "1a", "1b", "2a", "2b"][done:]


@pytest.mark.parametrize("damaged", [(), (3,), range(2, 9)])
def test_records_are_found_by_halves_of_a_long_file(home, monkeypatch, damaged):
    """A damaged line hides no other."""
    monkeypatch.setattr(record_files, "SEARCHED_BYTES", 1)
    archive(home, *map(str, range(12)))
    fold_home(home, now=homes.NOW)
    [path] = record_files.files_of(home, "items")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(b"{x\n" if at in damaged else line for at, line in enumerate(lines)))
    read = dict(record_files.records(homes.reopened(home), "items"))

    for after, place in enumerate(positions(home)):
        assert [*dict(record_files.records(homes.reopened(home), "items", after=place))] == [*read][
            after + 1 :
        ]
    assert record_files.fetch(homes.reopened(home), "items", dict.fromkeys(read, -1)) == read


def test_the_head_is_the_position_of_the_last_record(home):
    assert record_files.head(snapshot.load(home)) == -1
    archive(home, "a", "b")
    assert record_files.head(snapshot.load(home)) == positions(home)[-1]
    fold_home(home, now=homes.NOW)
    assert record_files.head(snapshot.load(home)) == positions(home)[-1]
    archive(home, "other", kind="receipts")
    assert record_files.head(snapshot.load(home)) == positions(home)[-1]


def test_items_go_to_the_month_in_which_they_left(home):
    archive(home, "a")
    archive(home, "b", now=homes.later(31 * 86400))
    fold_home(home, now=homes.NOW)

    assert [path.name for path in record_files.files_of(home, "items")] == ["2026-03.jsonl", "2026-04.jsonl"]


def test_a_clock_that_was_set_back_does_not_break_the_order(home):
    archive(home, "a", now=homes.later(31 * 86400))
    fold_home(home, now=homes.NOW)
    archive(home, "b")
    fold_home(home, now=homes.NOW)

    assert names(home) == ["a", "b"]
    assert [path.name for path in record_files.files_of(home, "items")] == ["2026-04.jsonl"]


def test_folding_again_after_a_crash_adds_nothing(home):
    archive(home, "a")
    pending = snapshot.load(home).pending
    record_files.write_lines(record_files.lines_to_fold(home, pending))

    record_files.write_lines(record_files.lines_to_fold(home, pending))
    fold_home(home, now=homes.NOW)

    assert names(home) == ["a"]


def test_an_empty_newest_file_left_by_a_crash_hides_and_doubles_nothing(home):
    archive(home, "a")
    archive(home, "b", now=homes.later(31 * 86400))
    record_files.write_lines(record_files.lines_to_fold(home, snapshot.load(home).pending[:1]))
    (home / "data/archive/items/2026-04.jsonl").touch()

    fold_home(home, now=homes.NOW)

    assert names(home) == ["a", "b"]
    assert names(home, after=positions(home)[0]) == ["b"]


def test_a_torn_end_is_written_again(home):
    archive(home, "a")
    archive(home, "b")
    pending = snapshot.load(home).pending
    record_files.write_lines(record_files.lines_to_fold(home, pending))
    path = record_files.files_of(home, "items")[0]
    path.write_bytes(path.read_bytes()[:-5])

    fold_home(home, now=homes.NOW)

    assert names(home) == ["a", "b"]


@pytest.mark.parametrize("damage", [b"garbage\n", b"[]\n", b"{}\n", b'{"revision":"x","nth":0}\n', b"\xff\n"])
def test_a_damaged_record_is_passed_over_and_stops_nothing(home, damage):
    archive(home, "a")
    fold_home(home, now=homes.NOW)
    path = record_files.files_of(home, "items")[0]
    path.write_bytes(path.read_bytes() + damage)
    archive(home, "b")
    fold_home(home, now=homes.NOW)

    assert names(home) == ["a", "b"]
    assert damage in path.read_bytes()


def test_there_are_only_the_known_kinds(home):
    with pytest.raises(NotFound, match="'letters' is not an append-only file"):
        archive(home, "a", kind="letters")


def test_records_are_found_by_their_members_without_reading_the_others(home, monkeypatch):
    made = [
        {"name": f"n{number}", "metadata": {"pointer": {"file": file, "key": f"k{number}"}}}
        for number, file in enumerate(["a.jsonl", "b.jsonl", 'ü"\\.jsonl', "", "\ud800.jsonl"])
    ]
    commit(home, lambda _: Change({}, {"items": made[:3]}), Author("archive"), now=homes.NOW)
    fold_home(home, now=homes.NOW)
    commit(home, lambda _: Change({}, {"items": made[3:]}), Author("archive"), now=homes.later(40 * 86400))
    fold_home(home, now=homes.NOW)
    parsed = []
    real = record_files.record_of
    monkeypatch.setattr(record_files, "record_of", lambda line: (parsed.append(line), real(line))[1])

    def held(*members):
        parsed.clear()
        found = record_files.records(homes.reopened(home), "items", holding=members)
        return [record["name"] for _, record in found]

    for number, record in enumerate(made):
        assert held(("file", record["metadata"]["pointer"]["file"])) == [f"n{number}"]
        assert held(("key", f"k{number}")) == [f"n{number}"]
    assert held(("key", "k3"), ("file", "a.jsonl")) == ["n0", "n3"]
    assert held(("key", "no")) == []
    # Besides those that were found, only the last record of each file.
    assert len(parsed) <= 4


def test_what_is_folded_and_pending_comes_once_when_members_are_sought(home):
    archive(home, "a", "b")
    before = snapshot.load(home)
    fold_home(home, now=homes.NOW)

    found = record_files.records(before, "items", holding=[("name", "a")])

    assert [record["name"] for _, record in found] == ["a"]
