from aether.store import snapshot
from aether.store.commit import fold_home
from tests import homes


def folded_twice(home):
    """Fold three months: revisions 1 (made) and 2 in March, 3 in April, 4 in May."""
    homes.add(home, "one")
    fold_home(home, now=homes.NOW)
    homes.add(home, "two", now=homes.later(60 * 86400))
    homes.add(home, "three", now=homes.later(61 * 86400))
    fold_home(home, now=homes.NOW)


def revisions(home, **options):
    return [entry.revision for entry in snapshot.folded_entries(home, **options)]


def test_folded_lines_are_read_oldest_first_over_the_months(home):
    folded_twice(home)

    assert [path.name for path in snapshot.month_files(home)] == [
        "2026-03.jsonl",
        "2026-04.jsonl",
        "2026-05.jsonl",
    ]
    assert revisions(home) == [1, 2, 3, 4]
    assert revisions(home, after=2) == [3, 4]


def test_folded_lines_are_read_newest_first(home):
    folded_twice(home)

    assert revisions(home, newest_first=True) == [4, 3, 2, 1]
    assert revisions(home, newest_first=True, after=2) == [4, 3]


def test_a_damaged_line_is_passed_over(home):
    folded_twice(home)
    path = snapshot.month_files(home)[0]
    path.write_bytes(path.read_bytes().replace(b'"revision":2', b'"revision":7'))

    assert revisions(home) == [1, 3, 4]
    assert revisions(home, newest_first=True) == [4, 3, 1]


def test_without_folded_lines_there_is_no_history(tmp_path):
    assert revisions(tmp_path) == []
