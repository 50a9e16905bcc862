"""Commits and the journal: all or nothing, in order, followed by every reader, folded into the documents."""

import errno
import json
import os
import shutil
import threading

import pytest

import aether
from aether import regular
from aether.errors import (
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
)
from aether.store import commit as commits
from aether.store import doctor, documents, files, log, record_files, snapshot
from aether.store import journal as journals
from aether.store import snapshot as store_snapshot
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.journal import Entry
from aether.types import Change
from tests import children, homes
from tests.crash import faults
from tests.tables import rows


def test_a_commit_is_one_line_of_the_journal(home):
    before = journals.journal_path(home).read_bytes()

    done = homes.add(home, "one")

    line = journals.journal_path(home).read_bytes().removeprefix(before)
    entry = journals.entry_of(log.unsealed(line))
    assert line.count(b"\n") == 1
    assert (entry.revision, entry.operation, entry.by, entry.reason) == (done.revision, "add", "queen", "one")
    assert entry.at == "2026-03-01T10:15:00.000000Z"


def test_a_plan_that_changes_nothing_commits_nothing(home):
    before = journals.journal_path(home).read_bytes()

    done = commit(home, lambda _: Change({"memory": []}, {"items": []}, "answer"), Author("x"), now=homes.NOW)

    assert done == commits.Committed(1, "answer", changed=False)
    assert journals.journal_path(home).read_bytes() == before


def test_an_error_of_the_plan_changes_nothing_and_frees_the_lock(home):
    with pytest.raises(KeyError):
        commit(home, lambda _: {}["x"], Author("x"), now=homes.NOW)

    assert homes.add(home, "one").revision == 2


@rows(
    "change",
    [
        Change({"nope": [{"op": "add", "path": "/a", "value": 1}]}),
        Change({"memory": [{"op": "remove", "path": "/nope"}]}),
        Change({"memory": [{"op": "add", "path": "/a", "value": float("nan")}]}),
        Change({"memory": [{"op": "add", "path": "/a", "value": ["\ud83d\ude00"]}]}),
        Change({"memory": [{"path": "/a"}]}),
        Change({}, {"nope": [{}]}),
        Change({}, {"items": [{"a": {1}}]}),
    ],
)
def test_an_impossible_change_is_refused_and_nothing_is_stored(home, change):
    before = journals.journal_path(home).read_bytes()

    with pytest.raises((InvalidInput, NotFound)):
        commit(home, lambda _: change, Author("x"), now=homes.NOW)

    assert journals.journal_path(home).read_bytes() == before


def test_nesting_cannot_grow_past_the_limit_one_patch_at_a_time(home):
    value = []
    for _ in range(60):
        value = [value]
    homes.patch(home, {"op": "add", "path": "/deep", "value": value})

    with pytest.raises(InvalidInput, match="nested"):
        homes.patch(home, {"op": "add", "path": "/deep" + "/0" * 60 + "/-", "value": value})

    homes.reopened(home)


@pytest.mark.parametrize("content", ["\0", "\ud800", "x" * 300_000, "😀" * 100, "/a~1b/-", "\u2028\n\r\x85"])
def test_any_text_is_stored_exactly(home, content):
    homes.add(home, "one", content)
    unfolded = homes.reopened(home).documents["memory"]["working_memory"]["items"][0]["content"]
    fold_home(home, now=homes.NOW)
    folded = homes.reopened(home).documents["memory"]["working_memory"]["items"][0]["content"]

    assert unfolded == folded == content


def test_five_mebibytes_are_stored_exactly(home):
    content = "äx" * (5 << 18) + "😀"

    homes.add(home, "one", content)
    fold_home(home, now=homes.NOW)

    assert homes.reopened(home).documents["memory"]["working_memory"]["items"][0]["content"] == content


def test_numbers_beyond_64_bits_are_stored_exactly(home):
    for number in (2**64, -(2**70), 10**300, 5e-324, 1e308):
        homes.patch(home, {"op": "add", "path": "/n", "value": number})
        fold_home(home, now=homes.NOW)

        assert homes.reopened(home).documents["memory"]["n"] == number


def test_short_writes_are_completed(home):
    with faults.short_writes() as seen:
        homes.add(home, "one")
        fold_home(home, now=homes.NOW)

    assert homes.ids(home) == ["one"]
    assert seen[0] > 100


def test_folding_moves_the_lines_byte_for_byte(home):
    homes.add(home, "one")
    lines = journals.journal_path(home).read_bytes().splitlines(keepends=True)[1:]

    fold_home(home, now=homes.NOW)

    assert journals.month_files(home)[0].read_bytes().endswith(b"".join(lines))
    assert journals.journal_path(home).read_bytes() == journals.journal_header(2, sealed=True)


def test_the_last_folded_revision_is_that_of_the_last_whole_line(home):
    folded = []
    for text in ("one", "two"):
        homes.add(home, text)
        folded.append(fold_home(home, now=homes.NOW).revision)
    whole = journals.last_folded(home)
    month = journals.month_files(home)[-1]
    month.write_bytes(month.read_bytes().replace(b'"two"', b'"owt"'))

    assert (whole, journals.last_folded(home)) == (folded[1], folded[0])
    assert journals.last_folded(home / "nowhere") == 0


def test_folding_a_folded_home_does_nothing(home):
    before = snapshot.file_ids(home)

    fold_home(home, now=homes.NOW)

    assert snapshot.file_ids(home) == before


def test_only_changed_documents_are_written(home):
    before = snapshot.file_ids(home)

    homes.add(home, "one")
    fold_home(home, now=homes.NOW)

    after = snapshot.file_ids(home)
    changed = [
        name for name, old, new in zip(documents.NAMES, before[1:], after[1:], strict=True) if old != new
    ]
    assert changed == ["memory"]


def test_a_commit_past_the_size_folds(home):
    homes.configure(home, "[store]\nfold_bytes = 2000\n")

    homes.add(home, "one", "x" * 3000)

    assert journals.journal_path(home).read_bytes() == journals.journal_header(2, sealed=True)
    assert homes.ids(home) == ["one"]


def test_a_fold_that_fails_does_not_deny_the_commit(home, monkeypatch):
    homes.configure(home, "[store]\nfold_bytes = 2000\n")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(documents, "write", full)

    assert homes.add(home, "one", "x" * 3000).changed
    assert homes.ids(home) == ["one"]


@pytest.mark.parametrize(
    ("number", "fix"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "writable"), (errno.EACCES, "read and write the home")],
)
def test_a_disk_that_refuses_stores_nothing_and_says_what_to_do(home, monkeypatch, number, fix):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_data", refuse)
        with pytest.raises(StorageFailed, match=f"Nothing was stored.*{fix}"):
            homes.add(home, "one")

    assert homes.ids(home) == []
    assert homes.add(home, "two").revision == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_home_without_write_permission_is_said_to_be_so(home):
    for path in (home, home / "data", home / "lock", journals.journal_path(home)):
        path.chmod(0o500)

    with pytest.raises(StorageFailed, match="read and write the home"):
        homes.add(home, "one")
    assert homes.ids(home) == []


def test_a_stored_line_is_acknowledged_even_if_it_cannot_be_looked_at_again(home, monkeypatch):
    real = log.append

    def append_then_blind(path, data, **named):
        real(path, data, **named)
        monkeypatch.setattr(commits, "journal_path", _blind)

    monkeypatch.setattr(commits, "append", append_then_blind)

    assert homes.add(home, "one").changed
    monkeypatch.undo()
    assert [item["id"] for item in snapshot.load(home).documents["memory"]["working_memory"]["items"]] == [
        "one"
    ]


def _blind(home):
    raise OSError(errno.EIO, "bad")


def test_a_home_removed_while_open_is_said_to_be_missing(home):
    homes.add(home, "one")
    shutil.rmtree(home)

    with pytest.raises(NotFound, match="does not exist"):
        homes.add(home, "two")
    with pytest.raises(NotFound):
        snapshot.load(home)


def test_a_home_removed_and_made_again_starts_again(home):
    homes.add(home, "one")
    shutil.rmtree(home)
    homes.fresh(home.parent)

    homes.add(home, "two")

    assert homes.ids(home) == ["two"]


def test_two_homes_are_two_homes_in_one_process_and_its_threads(tmp_path):
    both = [homes.fresh(tmp_path / name) for name in ("a", "b")]

    def work(home, who):
        for number in range(5):
            homes.add(home, f"{home.parent.name}{who}{number}")

    threads = [threading.Thread(target=work, args=(home, who)) for home in both for who in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for home in both:
        name = home.parent.name
        assert sorted(homes.ids(home)) == [f"{name}{who}{number}" for who in "xy" for number in range(5)]


class Interleaved:
    """A lock that does not hold: the next commit lets another one in between its load and its append."""

    def __init__(self, monkeypatch, home, other):
        self.left, self.other, self.home = 1, other, home
        self.real = commits._append
        monkeypatch.setattr(commits, "_append", self)

    def __call__(self, snapshot, change, author, now, **named):
        if self.left:
            self.left -= 1
            code = faults.in_child(lambda: homes.add(self.home, self.other))
            assert code == 0
        return self.real(snapshot, change, author, now, **named)


@pytest.fixture
def no_lock(monkeypatch):
    """Let every commit believe that it holds the lock, as on a file system that does not honour it."""
    import contextlib

    monkeypatch.setattr(commits, "locked", lambda home, **_: contextlib.nullcontext())


@pytest.mark.usefixtures("no_lock")
def test_two_writers_without_a_lock_lose_nothing(home, monkeypatch):
    Interleaved(monkeypatch, home, "theirs")

    homes.add(home, "ours")

    assert homes.ids(home) == ["theirs", "ours"]


@pytest.mark.usefixtures("no_lock")
def test_many_writers_without_a_lock_lose_nothing(home):
    acknowledged = children.acknowledged(home, 15, lambda name: homes.add(home, name))

    stored = homes.ids(home)
    assert len(acknowledged) > 15
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)


@pytest.mark.usefixtures("no_lock")
def test_a_writer_that_never_gets_through_gives_up_with_a_reason(home, monkeypatch):
    def never(*args, **kwargs):
        raise log.ConcurrentWrite

    monkeypatch.setattr(commits, "append", never)

    with pytest.raises(Conflict, match="does not honour locks"):
        homes.add(home, "one")


@pytest.mark.usefixtures("lying_lock")
def test_where_the_lock_does_not_hold_nothing_is_folded_and_additions_go_on(home):
    homes.add(home, "one")
    before = documents.path_of(home, "memory").read_bytes()

    with pytest.raises(Conflict, match=r"does not honour locks.*Move the home to a local disk"):
        fold_home(home, now=homes.NOW)

    homes.add(home, "two")
    assert homes.ids(home) == ["one", "two"]
    assert documents.path_of(home, "memory").read_bytes() == before
    with pytest.raises(Conflict, match="does not honour locks"):
        doctor.repair(home, now=homes.NOW)


def test_a_lock_that_another_machine_has_taken_too_is_noticed(home):
    homes.add(home, "one")

    with commits.write_lock(home):
        files.require_exclusive(home)
        (home / "lock").write_text("process 7 of another machine".ljust(100) + "\n")
        with pytest.raises(Conflict, match="does not honour locks"):
            files.require_exclusive(home)


def between(monkeypatch, name, act, *, before=True, module=files):
    """Let a child `act` once, just before or just after the next call of `module.name`."""
    real, left = getattr(module, name), [act]

    def call(*args, **kwargs):
        if before and left:
            assert faults.in_child(left.pop()) == 0
        made = real(*args, **kwargs)
        if left and not before:
            assert faults.in_child(left.pop()) == 0
        return made

    monkeypatch.setattr(module, name, call)


def fold_unlocked(home):
    """Fold as a process of another machine does, which has a lock of its own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commits, "require_exclusive", lambda home: None)
        patched.setattr(store_snapshot, "_CACHE", {})
        fold_home(home, now=homes.NOW)


@pytest.mark.usefixtures("no_lock")
def test_a_line_that_another_process_folds_before_it_is_acknowledged_is_stored_once(home, monkeypatch):
    homes.add(home, "before")
    between(monkeypatch, "_require_in_place", lambda: fold_unlocked(home), module=log)

    done = homes.add(home, "ours")

    assert homes.ids(home) == ["before", "ours"]
    assert (done.revision, done.changed) == (3, True)


@pytest.mark.usefixtures("no_lock")
def test_a_line_behind_one_that_counts_for_nothing_is_stored_once(home, monkeypatch):
    homes.add(home, "before")
    path = journals.journal_path(home)
    last = path.read_bytes().splitlines(keepends=True)[-1]

    def write_again():
        with path.open("ab") as file:
            file.write(last)

    between(monkeypatch, "write_all", write_again, module=log)

    homes.add(home, "ours")

    assert homes.ids(home) == ["before", "ours"]


@pytest.mark.usefixtures("no_lock")
def test_lines_that_reach_a_journal_while_it_is_folded_are_in_the_next_one(home, monkeypatch):
    homes.add(home, "before")
    between(monkeypatch, "_replace_journal", lambda: homes.add(home, "theirs"), module=commits)

    fold_unlocked(home)
    homes.add(home, "after")

    assert homes.ids(home) == ["before", "theirs", "after"]
    assert list(files.leftover_temps(home)) == []
    assert not [each for each in doctor.examine(home) if each["level"] == "error"]


@pytest.mark.usefixtures("no_lock")
def test_a_line_and_the_journal_of_a_fold_that_was_in_between_are_both_kept(home, monkeypatch):
    homes.add(home, "before")

    def others():
        homes.add(home, "one")
        fold_unlocked(home)
        homes.add(home, "two")

    between(monkeypatch, "_replace_journal", others, module=commits)

    fold_unlocked(home)
    homes.add(home, "after")

    assert homes.ids(home) == ["before", "one", "two", "after"]


@pytest.mark.usefixtures("no_lock")
def test_a_line_that_is_being_written_is_not_cut_as_torn(home, monkeypatch):
    homes.add(home, "before")
    path = journals.journal_path(home)
    homes.add(home, "theirs")
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 9)
    log.set_head(home / "data" / log.HEAD, 2)

    def complete():
        with path.open("ab") as file:
            file.write(whole[-9:])

    between(monkeypatch, "quarantine", complete, module=documents)

    homes.add(home, "ours")

    assert homes.ids(home) == ["before", "theirs", "ours"]


@pytest.mark.usefixtures("no_lock")
def test_a_home_whose_lock_this_process_never_took_is_not_rewritten(home):
    homes.add(home, "one")
    with (home / "lock").open("ab") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)

        with pytest.raises(Conflict, match="does not honour locks"):
            files.require_exclusive(home)


@pytest.mark.usefixtures("lying_lock")
def test_many_writers_and_folders_with_a_lock_that_lies_lose_nothing(home):
    acknowledged = children.acknowledged(
        home, 12, lambda name: homes.add(home, name), then=lambda: fold_home(home, now=homes.NOW)
    )

    stored = homes.ids(home)
    assert len(acknowledged) > 12
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)


def test_a_torn_last_line_is_kept_aside_and_the_next_commit_holds(home):
    homes.add(home, "one")
    with journals.journal_path(home).open("ab") as file:
        file.write(b'{"revision":3,"torn')

    homes.add(home, "two")

    assert homes.ids(home) == ["one", "two"]
    assert [path.read_bytes() for path in (home / "quarantine").iterdir()] == [b'{"revision":3,"torn']


def test_a_symlinked_home_has_the_same_lock_and_cache(home, tmp_path):
    from aether.paths import find_home

    (tmp_path / "link").symlink_to(home)

    assert find_home(tmp_path / "link") == find_home(home) == find_home(home.parent)


def test_history_beyond_the_months_to_keep_goes_when_folding(home, monkeypatch):
    homes.configure(home, "[store]\nhistory_months = 1\n")
    months = home / "data" / "journal"
    older = months / "2020-01.jsonl"
    older.write_bytes(b"")

    commits.commit(
        home,
        lambda snapshot: homes.addition(snapshot, homes.item("wm_1")),
        commits.Author("add"),
        now=homes.NOW,
    )
    commits.fold_home(home, now=homes.NOW)

    assert [path.name for path in journals.month_files(home)] == ["2026-03.jsonl"]


def test_a_fold_that_finds_lines_it_has_not_read_changes_nothing(home):
    stale = snapshot.load(home)
    commits.commit(
        home,
        lambda snapshot: homes.addition(snapshot, homes.item("wm_1")),
        commits.Author("add"),
        now=homes.NOW,
    )

    with pytest.raises(Conflict, match="although the lock was held"), commits.write_lock(home):
        commits.fold(stale, now=homes.NOW)

    assert snapshot.load(home).revision == stale.revision + 1


def test_a_home_whose_journal_and_history_are_missing_goes_on_from_its_documents(home):
    commit(home, lambda snapshot: homes.addition(snapshot, homes.item("wm_1")), Author("add"), now=homes.NOW)
    before = fold_home(home, now=homes.NOW)
    shutil.rmtree(home / "data" / "journal")
    journals.journal_path(home).unlink()

    commit(home, lambda snapshot: homes.addition(snapshot, homes.item("wm_2")), Author("add"), now=homes.NOW)

    after = fold_home(home, now=homes.NOW)
    assert after.revision == before.revision + 1
    assert [each["id"] for each in after.documents["memory"]["working_memory"]["items"]] == ["wm_1", "wm_2"]


def test_a_line_that_was_torn_when_read_and_is_whole_now_is_not_cut(home):
    before = journals.journal_path(home).read_bytes()
    homes.add(home, "one")
    journal_bytes = journals.journal_path(home).read_bytes()
    journals.journal_path(home).write_bytes(journal_bytes[:-5])
    log.set_head(home / "data" / log.HEAD, 1)
    snapshot._CACHE.clear()
    torn = snapshot.load(home)
    journals.journal_path(home).write_bytes(journal_bytes)

    settled = commits.settle(torn, now=homes.NOW)

    assert torn.torn
    assert homes.ids(home) == ["one"]
    assert journals.journal_path(home).read_bytes() == journal_bytes != before
    assert settled.revision == torn.revision + 1


def test_a_fold_makes_all_it_wrote_durable_before_it_drops_the_journal(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    homes.add(home, "one")
    homes.remove(home, "one")
    for place in ("data/journal", "data/backups"):
        shutil.rmtree(home / place, ignore_errors=True)
    done = []
    sync, replace, write = files.sync_directory, files._replace, log.append
    monkeypatch.setattr(
        files, "sync_directory", lambda path: (sync(path), done.append(("sync", str(path.relative_to(home)))))
    )
    monkeypatch.setattr(
        files, "_replace", lambda temp, path: (replace(temp, path), done.append(("replace", path.name)))
    )
    replace_known = files._replace_known
    monkeypatch.setattr(
        files,
        "_replace_known",
        lambda temp, path, known: (replace_known(temp, path, known), done.append(("replace", path.name))),
    )
    for module in (commits, record_files):
        monkeypatch.setattr(
            module, "append",
            lambda path, data, *, at: (write(path, data, at=at), done.append(("append", path.parent.name))),
        )  # fmt: skip

    fold_home(home, now=homes.NOW)

    dropped = done.index(("replace", "journal.jsonl"))
    for made, parent in (("journal", "data"), ("items", "data/archive")):
        assert done.index(("sync", parent)) < done.index(("append", made)) < dropped
        assert ("sync", f"data/{made}" if made == "journal" else "data/archive/items") in done[:dropped]
    assert done.index(("sync", "data/backups")) < done.index(("replace", "memory.json")) < dropped
    assert done[dropped + 1] == ("sync", "data")


def entry(revision, note="x"):
    """Return a transaction that sets a note."""
    patch = {"memory": [{"op": "add", "path": "/note", "value": note}]}
    return Entry(revision, "2026-03-01T10:15:00.000000Z", "queen", "add", "", patch, {}, {})


def written(*revisions, base=0):
    """Return a journal with these revisions."""
    return journals.journal_header(base) + b"".join(
        journals.entry_line(entry(revision)) for revision in revisions
    )


def test_what_was_written_is_read():
    found = journals.scan_journal(written(1, 2), where="journal")

    assert found.entries == [entry(1), entry(2)]
    assert (found.base, found.end, found.torn, found.ignored) == (0, len(written(1, 2)), b"", 0)


def test_empty_fields_are_not_written():
    assert b"inverse" not in journals.entry_line(entry(1))
    assert b"reason" not in journals.entry_line(entry(1))


def test_the_tail_of_a_journal_is_read_by_itself():
    tail = written(1, 2, 3)[len(written(1)) :]

    found = journals.scan_journal(tail, base=1, where="journal")

    assert [one.revision for one in found.entries] == [2, 3]
    assert found.end == len(tail)


def test_a_torn_last_line_is_no_commit():
    data = written(1) + journals.entry_line(entry(2))[:-1]

    found = journals.scan_journal(data, where="journal")

    assert [one.revision for one in found.entries] == [1]
    assert found.end == len(written(1))
    assert found.torn == data[found.end :]


def test_a_second_line_for_one_revision_is_no_commit():
    found = journals.scan_journal(
        written(1) + journals.entry_line(entry(1, "late")) + journals.entry_line(entry(2)), where="journal"
    )

    assert [one.patches["memory"][0]["value"] for one in found.entries] == ["x", "x"]
    assert found.ignored == 1


def test_a_damaged_line_before_commits_is_an_error_that_names_it():
    good = written(1, 2, 3)
    at = len(written(1)) + 20
    data = good[:at] + b"?" + good[at + 1 :]

    with pytest.raises(CorruptDocument, match="line 3 is damaged or missing, and revision 3 follows it"):
        journals.scan_journal(data, where="journal")


def test_a_missing_line_is_an_error():
    with pytest.raises(CorruptDocument, match="revision 3 follows"):
        journals.scan_journal(written(1, 3), where="journal")


@rows("first", [b"", b"{}\n", b"garbage\n", journals.entry_line(entry(1))])
def test_a_damaged_first_line_is_an_error(first):
    with pytest.raises(CorruptDocument, match="the first line is damaged"):
        journals.scan_journal(first, where="journal")


def test_a_journal_of_a_newer_aether_is_left_alone():
    data = log.seal_json({"journal": journals.JOURNAL_FORMAT + 1, "base": 0})

    with pytest.raises(InvalidDocument, match="newer aether"):
        journals.scan_journal(data, where="journal")


@rows("line", [b"", b"{}", b'{"a":1,"checksum":"0000000000000000"}\n', b"\xff" * 40])
def test_a_line_without_its_checksum_says_nothing(line):
    assert log.unsealed(line) is None


def test_the_months_are_listed_oldest_first(tmp_path):
    (tmp_path / "data" / "journal").mkdir(parents=True)
    for name in ("2026-02.jsonl", "2025-12.jsonl", "notes.txt"):
        (tmp_path / "data" / "journal" / name).touch()

    assert [path.name for path in journals.month_files(tmp_path)] == ["2025-12.jsonl", "2026-02.jsonl"]


def memory_file(home):
    """Return the path of memory.json."""
    return home / "data" / "memory.json"


def edit(home, change):
    """Edit memory.json as a person would: its members, with the stamp left as it is."""
    value = json.loads(memory_file(home).read_text())
    change(value)
    memory_file(home).write_text(json.dumps(value, indent=2))


def test_a_directory_without_data_is_not_a_home(tmp_path):
    with pytest.raises(NotFound, match="is not a home"):
        store_snapshot.load(tmp_path)


def test_the_state_is_the_documents_and_the_journal_after_them(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "unfolded")

    found = homes.reopened(home)

    assert [item["id"] for item in found.documents["memory"]["working_memory"]["items"]] == [
        "folded",
        "unfolded",
    ]
    assert found.changed == {"memory"}
    assert found.revision == 3


def test_an_unchanged_home_is_not_read_again(home):
    first = store_snapshot.load(home)

    assert store_snapshot.load(home) is first


def test_only_new_lines_are_read_when_the_journal_grew(home, monkeypatch):
    homes.add(home, "one")
    old = homes.reopened(home)
    homes.add(home, "two")
    store_snapshot.remember(old)
    monkeypatch.setattr(store_snapshot, "_read", os.abort)

    found = store_snapshot.load(home)

    assert [item["id"] for item in found.documents["memory"]["working_memory"]["items"]] == ["one", "two"]
    assert found.documents["pheromones"] is old.documents["pheromones"]


def test_a_snapshot_is_not_changed_by_what_comes_after_it(home):
    before = store_snapshot.load(home)
    kept = json.dumps(before.documents)

    homes.add(home, "later")

    assert json.dumps(before.documents) == kept


def test_a_fold_is_noticed(home):
    homes.add(home, "one")
    old = homes.reopened(home)
    fold_home(home, now=homes.NOW)
    store_snapshot.remember(old)

    assert store_snapshot.load(home).documents == old.documents
    assert store_snapshot.load(home).stamps["memory"] == 2


def test_another_journal_with_the_inode_of_the_old_one_is_read_whole(home):
    """A new journal may get the inode of an old one; then its bytes after the old end are no line of ours."""
    homes.add(home, "one")
    homes.add(home, "two")
    snapshot = homes.reopened(home)
    ids = snapshot.files
    store_snapshot.remember(
        snapshot._replace(end=snapshot.end - 30, revision=1, files=((ids[0][0], 0, ids[0][2] - 30), *ids[1:]))
    )

    assert store_snapshot.load(home).revision == 3
    assert not store_snapshot.load(home).torn


def test_damage_found_while_following_costs_only_the_damaged_lines(home):
    homes.add(home, "one")
    store_snapshot.load(home)
    with store_snapshot.journal_path(home).open("ab") as file:
        file.write(b"garbage\n" + journals.entry_line(journals.Entry(9, "", "", "x", "", {}, {}, {})))

    found = store_snapshot.load(home)
    assert (found.revision, found.harm.lost, found.harm.unfit) == (9, [3, 4, 5, 6, 7, 8], [])


def test_a_reader_between_the_files_of_a_fold_tries_again(home, monkeypatch):
    homes.add(home, "one")
    real, calls = store_snapshot.read_journal, []

    def read_journal(place):
        found = real(place)
        if not calls:
            calls.append(place)
            threading.Thread(target=fold_home, args=(place,), kwargs={"now": homes.NOW}).run()
        return found

    monkeypatch.setattr(store_snapshot, "read_journal", read_journal)

    assert homes.ids(home) == ["one"]


def test_a_home_that_never_holds_still_is_said_to_be_so(home, monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(store_snapshot, "file_ids", lambda place: ((next(ticks), 0, 0),))
    monkeypatch.setattr(store_snapshot, "READ_WAIT_SECONDS", 0)

    with pytest.raises(Conflict, match="kept changing"):
        homes.reopened(home)


@pytest.mark.parametrize("name", documents.ALWAYS)
def test_a_deleted_document_is_rebuilt(home, name):
    homes.add(home, "one")
    known = store_snapshot.load(home).documents[name]
    documents.path_of(home, name).unlink()

    found = homes.reopened(home)

    assert found.documents[name] == known
    assert found.irregular[name].state == "missing"


def test_a_journal_that_was_deleted_takes_only_what_was_not_folded(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "lost")
    store_snapshot.journal_path(home).unlink()

    assert homes.ids(home) == ["folded"]
    homes.add(home, "next")
    assert homes.ids(home) == ["folded", "next"]


def test_a_document_of_a_newer_aether_is_left_alone(home):
    value = {**store_snapshot.load(home).documents["memory"], "schema_version": 99}
    documents.write(home, "memory", value, 1)

    with pytest.raises(InvalidDocument, match="newer aether"):
        homes.reopened(home)


def test_a_document_that_nothing_can_rebuild_is_an_error(home):
    homes.add(home, "one")
    for path in journals.month_files(home):
        path.unlink()
    memory_file(home).write_bytes(b"{")

    with pytest.raises(CorruptDocument, match="neither a backup nor the journal"):
        homes.reopened(home)


def test_a_rebuild_that_stops_short_does_not_pass_for_the_present(home):
    for number in range(3):
        homes.add(home, f"item{number}")
        fold_home(home, now=homes.NOW)
    month = journals.month_files(home)[0]
    month.write_bytes(b"".join(month.read_bytes().splitlines(keepends=True)[:-2]))
    for path in documents.backups(home, "memory")[1:]:
        path.unlink()
    memory_file(home).write_bytes(b"{")

    with pytest.raises(CorruptDocument, match=r"memory\.json"):
        homes.reopened(home)


def test_an_edit_without_history_keeps_what_the_journal_says_after_it(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "unfolded")
    edit(home, lambda value: value["working_memory"].update(description="mine"))
    for path in journals.month_files(home):
        path.unlink()
    for path in documents.backups(home, "memory"):
        path.unlink()

    found = homes.reopened(home).documents["memory"]["working_memory"]

    assert found["description"] == "mine"
    assert [item["id"] for item in found["items"]] == ["folded", "unfolded"]


@pytest.mark.parametrize("name", ["data/journal.jsonl", "data/memory.json", "archive", "hooks/spool"])
def test_a_home_of_which_a_part_lies_elsewhere_is_not_used(home, tmp_path, name):
    other = tmp_path / "elsewhere"
    other.mkdir()
    place = home / name
    place.parent.mkdir(exist_ok=True)
    if place.exists():
        place.rename(other / "was")
    place.symlink_to(other / "was")

    with pytest.raises(UnsafePath, match="leads out of the home"):
        homes.reopened(home)


def test_a_document_that_is_a_link_is_refused_and_kept_aside_by_doctor(home):
    (home / "data" / "memory.json").rename(home / "mine.json")
    (home / "data" / "memory.json").symlink_to(home / "mine.json")

    with pytest.raises(UnsafePath, match="not a regular file"):
        homes.reopened(home)
    assert doctor.repair(home, now=homes.NOW)[0].startswith("kept memory.json as quarantine")
    assert homes.reopened(home).revision >= 0


def test_a_plan_ahead_is_made_without_the_lock_and_again_only_after_another_commit(home):
    def plan(snapshot):
        made.append(snapshot.revision)
        if len(made) == 1:
            with commits.write_lock(home, timeout=0):
                pass
            if calls == 2:
                commit(home, lambda _: Change({}, {"events": [{"n": 1}]}), Author("other"), now=homes.NOW)
        return Change({}, {"events": [{"n": snapshot.revision}]})

    for calls in (1, 2):
        made: list[int] = []
        before = snapshot.load(home).revision
        done = commit(home, plan, Author("ahead"), now=homes.NOW, ahead=True)
        assert len(made) == calls
        assert done.revision == before + calls


def test_what_no_reader_would_read_is_refused_and_not_stored(home, monkeypatch):
    monkeypatch.setattr(files, "LISTS", (1_000, 32))

    with pytest.raises(InvalidInput, match="lists and objects"):
        aether.add_working_memory_item("one", "decision", metadata={"lists": [[]] * 2_000}, home=home)
    aether.add_working_memory_item("[" * 2_000, "decision", home=home)

    assert len(homes.ids(home)) == 1


def test_a_document_too_large_to_be_read_is_not_written_and_can_be_made_small_again(home, monkeypatch):
    homes.add(home, "one")
    monkeypatch.setattr(regular, "DOCUMENT_BYTES", 20_000)
    homes.add(home, "two", "x" * 20_000)

    with pytest.raises(InvalidInput, match="at most 20,000 are read"):
        fold_home(home, now=homes.NOW)
    assert homes.ids(homes.reopened(home).home) == ["one", "two"]
    assert documents.path_of(home, "memory").stat().st_size < 20_000

    homes.remove(home, "two")
    fold_home(home, now=homes.NOW)
    assert homes.ids(home) == ["one"]
    assert doctor.examine(home) == []


def test_a_log_too_large_to_be_read_takes_no_line(home, monkeypatch):
    homes.add(home, "one")
    monkeypatch.setattr(regular, "LOG_BYTES", journals.journal_path(home).stat().st_size + 100)

    with pytest.raises(InvalidInput, match="are read"):
        homes.add(home, "two")

    assert homes.ids(home) == ["one"]
