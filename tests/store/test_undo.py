"""Undo of a transaction, and the states of the past."""

import os

import pytest

from aether.errors import Conflict, NotFound
from aether.store import journal as journals
from aether.store import snapshot, undo
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.types import Change
from tests import homes


def take_back(home, revision):
    """Undo `revision` as the operation does, and return the revision that did it."""
    done = commit(
        home,
        lambda found: undo.undo(found, revision),
        Author("undo", reason=f"revision {revision}"),
        now=homes.NOW,
    )
    return done.revision


def memory(home):
    return homes.reopened(home).documents["memory"]


def content(home, id):
    return next(item["content"] for item in memory(home)["working_memory"]["items"] if item["id"] == id)


def rewrite(home, at, text):
    return homes.patch(home, {"op": "replace", "path": f"/working_memory/items/{at}/content", "value": text})


@pytest.mark.parametrize("folded", [False, True])
def test_undoing_the_last_change_restores_exactly(home, folded):
    homes.add(home, "one")
    before = memory(home)
    revision = homes.add(home, "two").revision
    if folded:
        fold_home(home, now=homes.NOW)

    take_back(home, revision)

    assert memory(home) == before


@pytest.mark.parametrize("folds", [(), (3,), (2, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("which", [2, 3, 4, 5])
def test_any_one_of_several_independent_changes_can_be_undone(home, which, folds):
    names = {2: "a", 3: "b", 4: "c", 5: "d"}
    for revision, name in names.items():
        assert homes.add(home, name, tokens=revision).revision == revision
        if revision in folds:
            fold_home(home, now=homes.NOW)

    take_back(home, which)

    assert homes.ids(home) == [name for revision, name in names.items() if revision != which]


def test_a_removed_item_comes_back_where_it_was(home):
    for name in ("a", "b", "c"):
        homes.add(home, name)
    revision = homes.remove(home, "b").revision
    homes.add(home, "d")

    take_back(home, revision)

    assert homes.ids(home) == ["a", "b", "c", "d"]


def test_what_later_changes_depend_on_is_refused_with_their_names(home):
    added = homes.add(home, "a").revision
    homes.add(home, "b")
    later = rewrite(home, 0, "new")
    before = memory(home)

    with pytest.raises(
        Conflict, match=rf"revision {added} cannot be undone: .*/a.* by revision {later} \(patch\)"
    ):
        take_back(home, added)

    assert memory(home) == before


def test_an_undo_can_be_undone(home):
    homes.add(home, "a")
    revision = rewrite(home, 0, "new")

    first = take_back(home, revision)
    assert content(home, "a") == "note"
    take_back(home, first)

    assert content(home, "a") == "new"


def test_what_is_undone_already_is_not_undone_twice(home):
    revision = homes.add(home, "a", tokens=5).revision
    by = take_back(home, revision)
    homes.add(home, "b", tokens=5)

    with pytest.raises(
        Conflict, match=f'revision {revision} is undone already, by revision {by}.*"aether undo {by}"'
    ):
        take_back(home, revision)

    assert homes.ids(home) == ["b"]


def test_counters_keep_what_later_changes_counted(home):
    first = homes.add(home, "a", tokens=5).revision
    homes.add(home, "b", tokens=7)

    take_back(home, first)

    assert memory(home)["working_memory"]["current_tokens"] == 7


def test_an_item_that_was_only_read_since_may_go(home):
    revision = homes.add(home, "a").revision
    homes.patch(
        home,
        {"op": "replace", "path": "/working_memory/items/0/metadata/access_count", "value": 3},
        operation="access",
    )

    take_back(home, revision)

    assert homes.ids(home) == []


def test_reads_stay_counted_when_another_change_of_the_item_is_undone(home):
    homes.add(home, "a")
    revision = rewrite(home, 0, "new")
    homes.patch(home, {"op": "replace", "path": "/working_memory/items/0/metadata/access_count", "value": 3})

    take_back(home, revision)

    item = memory(home)["working_memory"]["items"][0]
    assert (item["content"], item["metadata"]["access_count"]) == ("note", 3)


def test_a_change_of_several_documents_is_undone_in_all(home):
    note = [{"op": "add", "path": "/note", "value": 1}]
    change = Change({"memory": note, "pheromones": note})
    revision = commit(home, lambda _: change, Author("both"), now=homes.NOW).revision

    take_back(home, revision)

    found = homes.reopened(home).documents
    assert "note" not in found["memory"]
    assert "note" not in found["pheromones"]


def test_the_revision_that_made_the_documents_cannot_be_undone(home):
    with pytest.raises(Conflict, match="revision 1 made"):
        take_back(home, 1)


@pytest.mark.parametrize("revision", [-1, 0, 99])
def test_a_revision_that_never_was_cannot_be_undone(home, revision):
    homes.add(home, "a")

    with pytest.raises(NotFound, match="is not in the history"):
        take_back(home, revision)


def test_beyond_damaged_history_nothing_can_be_undone(home):
    first = homes.add(home, "a").revision
    second = homes.add(home, "b").revision
    third = homes.add(home, "c").revision
    fold_home(home, now=homes.NOW)
    path = journals.month_files(home)[0]
    path.write_bytes(path.read_bytes().replace(b'"reason":"b"', b'"reason":"?"'))

    take_back(home, third)

    for revision in (first, second):
        with pytest.raises(NotFound, match="is not in the history"):
            take_back(home, revision)


def test_the_last_change_is_what_a_person_means_by_it(home):
    with_read = homes.add(home, "a").revision
    homes.patch(home, {"op": "add", "path": "/note", "value": 1}, operation="access")

    assert undo.last_undoable(snapshot.load(home)) == with_read


def test_what_hooks_captured_is_not_the_last_change_and_is_undone_by_its_revision(home):
    asked = homes.add(home, "a").revision
    captured = homes.patch(home, {"op": "add", "path": "/note", "value": 1}, operation="capture")

    assert undo.last_undoable(snapshot.load(home)) == asked
    take_back(home, captured)

    assert "note" not in homes.reopened(home).documents["memory"]
    assert undo.last_undoable(snapshot.load(home)) == asked


@pytest.mark.parametrize("by", ["hook", "aether"])
def test_what_was_done_by_itself_is_passed_over_and_named_where_nothing_else_is_left(home, by):
    asked = homes.add(home, "a").revision
    unasked = commit(
        home, lambda found: homes.addition(found, homes.item("b")), Author("prepare", by=by), now=homes.NOW
    ).revision
    assert undo.last_undoable(snapshot.load(home)) == asked
    take_back(home, asked)

    with pytest.raises(NotFound, match="nothing that you did is left to undo") as said:
        undo.last_undoable(snapshot.load(home))

    assert f'{unasked} (prepare): "aether undo {unasked}"' in said.value.fix
    take_back(home, unasked)
    assert homes.ids(home) == []


def test_the_beginning_of_a_home_is_no_change_to_undo(home):
    with pytest.raises(NotFound, match="nothing that you did is left to undo") as said:
        undo.last_undoable(snapshot.load(home))
    assert said.value.fix == 'See "aether log".'


def test_undo_without_a_number_goes_further_back_each_time_and_a_redo_counts_again(home):
    first, second = homes.add(home, "a").revision, homes.add(home, "b").revision
    undoing = take_back(home, undo.last_undoable(snapshot.load(home)))
    assert homes.ids(home) == ["a"]
    assert undo.last_undoable(snapshot.load(home)) == first

    take_back(home, undoing)

    assert homes.ids(home) == ["a", "b"]
    assert undo.last_undoable(snapshot.load(home)) == second


def test_the_past_is_walked_newest_first_with_the_state_after_each_change(home):
    homes.add(home, "a")
    fold_home(home, now=homes.NOW)
    homes.add(home, "b")

    steps, before = undo.states_since(snapshot.load(home), 1)

    seen = [
        (entry.revision, [item["id"] for item in found["memory"]["working_memory"]["items"]])
        for entry, found in steps
    ]
    assert seen == [(3, ["a", "b"]), (2, ["a"])]
    assert before["memory"]["working_memory"]["items"] == []


def test_a_line_that_is_both_folded_and_not_is_one_change(home):
    homes.add(home, "a")
    lines = journals.journal_path(home).read_bytes()
    fold_home(home, now=homes.NOW)
    journals.journal_path(home).write_bytes(lines)  # as after a crash before the new journal

    assert [entry.revision for entry in undo.entries_newest_first(homes.reopened(home))] == [2, 1]


def test_what_a_later_change_took_further_is_not_undone_silently(home):
    """The item has left for the archive: to say that its addition was undone would be untrue."""
    homes.add(home, "one")
    added = homes.reopened(home).revision
    homes.remove(home, "one")

    with pytest.raises(Conflict, match=rf"revision {added} cannot be undone: .*one was changed again by"):
        undo.undo(homes.reopened(home), added)


def folded_twice(home):
    """Fold three months: revisions 1 (made) and 2 in March, 3 in April, 4 in May."""
    homes.add(home, "one")
    fold_home(home, now=homes.NOW)
    homes.add(home, "two", now=homes.later(60 * 86400))
    homes.add(home, "three", now=homes.later(61 * 86400))
    fold_home(home, now=homes.NOW)


def revisions(home, **options):
    return [entry.revision for entry in journals.folded_entries(home, **options)]


def test_folded_lines_are_read_oldest_first_over_the_months(home):
    folded_twice(home)

    assert [path.name for path in journals.month_files(home)] == [
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


@pytest.mark.parametrize("parts", [1, 2])
def test_the_newest_change_is_undone_by_its_inverse_without_comparing_documents(home, parts, monkeypatch):
    before = memory(home)
    for number in range(parts):
        part = f"import_1/{number + 1}" if parts > 1 else ""
        author = Author("import", part=part)
        added = {"op": "add", "path": "/working_memory/items/-", "value": {"id": f"wm_new_{number}"}}
        commit(home, lambda _, step=added: Change({"memory": [step]}), author, now=homes.NOW)
    for name in ("merge", "diff"):
        monkeypatch.setattr(undo, name, None)

    take_back(home, snapshot.load(home).revision)

    assert memory(home) == before


def bytes_read():
    """Return the bytes that this process has read so far."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system counts no reads")
def test_the_undo_of_the_newest_change_and_a_recent_state_cost_the_change_and_not_the_history(tmp_path):
    """What is read is the same whether little or much happened before."""
    cost = {}
    for history in (20, 220):
        home = homes.fresh(tmp_path / str(history))
        for nth in range(history):  # the documents stay as large as they were
            homes.patch(home, {"op": "add", "path": "/note", "value": f"{nth} " * 2_000})
            if nth % 100 == 19:
                fold_home(home, now=homes.NOW)
        for nth in range(5):
            homes.patch(home, {"op": "add", "path": "/note", "value": nth})
        fold_home(home, now=homes.NOW)
        undo.undo(homes.reopened(home), undo.last_undoable(homes.reopened(home)))  # imports are read once
        before = bytes_read()
        found = homes.reopened(home)
        undo.undo(found, undo.last_undoable(found))
        undo.states_since(found, found.revision - 3)
        cost[history] = bytes_read() - before
        assert sum(path.stat().st_size for path in journals.month_files(home)) > history * 6_000

    assert cost[220] < 1.5 * cost[20]
