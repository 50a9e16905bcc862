import errno
import os
import shutil
import threading

import pytest

from aether.errors import Conflict, InvalidInput, NotFound, StorageFailed
from aether.store import archive, documents, files, snapshot
from aether.store import commit as commits
from aether.store.commit import Author, commit, fold_home
from aether.types import Change
from tests import homes
from tests.crash import faults
from tests.tables import rows


def test_a_commit_is_one_line_of_the_journal(home):
    before = snapshot.journal_path(home).read_bytes()

    done = homes.add(home, "one")

    line = snapshot.journal_path(home).read_bytes().removeprefix(before)
    entry = snapshot.entry_of(files.unsealed(line))
    assert line.count(b"\n") == 1
    assert (entry.revision, entry.operation, entry.by, entry.reason) == (done.revision, "add", "queen", "one")
    assert entry.at == "2026-03-01T10:15:00.000000Z"


def test_a_plan_that_changes_nothing_commits_nothing(home):
    before = snapshot.journal_path(home).read_bytes()

    done = commit(home, lambda _: Change({"memory": []}, {"items": []}, "answer"), Author("x"), now=homes.NOW)

    assert done == commits.Committed(1, "answer", changed=False)
    assert snapshot.journal_path(home).read_bytes() == before


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
    before = snapshot.journal_path(home).read_bytes()

    with pytest.raises((InvalidInput, NotFound)):
        commit(home, lambda _: change, Author("x"), now=homes.NOW)

    assert snapshot.journal_path(home).read_bytes() == before


def test_nesting_cannot_grow_past_the_limit_one_patch_at_a_time(home):
    value = []
    for _ in range(60):
        value = [value]
    homes.patch(home, {"op": "add", "path": "/deep", "value": value})

    with pytest.raises(InvalidInput, match="nested"):
        homes.patch(home, {"op": "add", "path": "/deep" + "/0" * 60 + "/-", "value": value})

    homes.anew(home)


@pytest.mark.parametrize("content", ["\0", "\ud800", "x" * 300_000, "😀" * 100, "/a~1b/-", "\u2028\n\r\x85"])
def test_any_text_is_stored_exactly(home, content):
    homes.add(home, "one", content)
    unfolded = homes.anew(home).documents["memory"]["working_memory"]["items"][0]["content"]
    fold_home(home, now=homes.NOW)
    folded = homes.anew(home).documents["memory"]["working_memory"]["items"][0]["content"]

    assert unfolded == folded == content


def test_five_mebibytes_are_stored_exactly(home):
    content = "äx" * (5 << 18) + "😀"

    homes.add(home, "one", content)
    fold_home(home, now=homes.NOW)

    assert homes.anew(home).documents["memory"]["working_memory"]["items"][0]["content"] == content


def test_numbers_beyond_64_bits_are_stored_exactly(home):
    for number in (2**64, -(2**70), 10**300, 5e-324, 1e308):
        homes.patch(home, {"op": "add", "path": "/n", "value": number})
        fold_home(home, now=homes.NOW)

        assert homes.anew(home).documents["memory"]["n"] == number


def test_short_writes_are_completed(home):
    with faults.short_writes() as seen:
        homes.add(home, "one")
        fold_home(home, now=homes.NOW)

    assert homes.ids(home) == ["one"]
    assert seen[0] > 100


def test_folding_moves_the_lines_byte_for_byte(home):
    homes.add(home, "one")
    lines = snapshot.journal_path(home).read_bytes().splitlines(keepends=True)[1:]

    fold_home(home, now=homes.NOW)

    assert snapshot.month_files(home)[0].read_bytes().endswith(b"".join(lines))
    assert snapshot.journal_path(home).read_bytes() == snapshot.journal_header(2)


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
    (home / "config.toml").write_text("[store]\nfold_bytes = 2000\n")

    homes.add(home, "one", "x" * 3000)

    assert snapshot.journal_path(home).read_bytes() == snapshot.journal_header(2)
    assert homes.ids(home) == ["one"]


def test_a_fold_that_fails_does_not_deny_the_commit(home, monkeypatch):
    (home / "config.toml").write_text("[store]\nfold_bytes = 2000\n")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(documents, "write", full)

    assert homes.add(home, "one", "x" * 3000).changed
    assert homes.ids(home) == ["one"]


@pytest.mark.parametrize(
    ("number", "fix"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "writable"), (errno.EACCES, "writable")],
)
def test_a_disk_that_refuses_stores_nothing_and_says_what_to_do(home, monkeypatch, number, fix):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(files, "_sync_data", refuse)
        with pytest.raises(StorageFailed, match=f"Nothing was stored.*{fix}"):
            homes.add(home, "one")

    assert homes.ids(home) == []
    assert homes.add(home, "two").revision == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_home_without_write_permission_is_said_to_be_so(home):
    for path in (home, home / "data", home / "lock", snapshot.journal_path(home)):
        path.chmod(0o500)

    with pytest.raises(StorageFailed, match="writable"):
        homes.add(home, "one")
    assert homes.ids(home) == []


def test_a_stored_line_is_acknowledged_even_if_it_cannot_be_looked_at_again(home, monkeypatch):
    real = files.append

    def append_then_blind(path, data, *, at):
        real(path, data, at=at)
        monkeypatch.setattr(commits, "journal_path", _blind)

    monkeypatch.setattr(commits, "append", append_then_blind)

    assert homes.add(home, "one").changed
    monkeypatch.undo()
    assert [item["id"] for item in snapshot.load(home).documents["memory"]["working_memory"]["items"]] == [
        "one"
    ]


def _blind(home):
    raise OSError(errno.EIO, "bad")


def test_a_home_removed_while_open_is_said_to_be_gone(home):
    homes.add(home, "one")
    shutil.rmtree(home)

    with pytest.raises(NotFound, match="does not exist"):
        homes.add(home, "two")
    with pytest.raises(NotFound):
        snapshot.load(home)


def test_a_home_removed_and_made_anew_starts_anew(home):
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

    def __call__(self, snapshot, change, author, now):
        if self.left:
            self.left -= 1
            code = faults.in_child(lambda: homes.add(self.home, self.other))
            assert code == 0
        return self.real(snapshot, change, author, now)


@pytest.fixture
def no_lock(monkeypatch):
    """Let every commit believe that it holds the lock, as on a file system that does not honour it."""
    import contextlib

    monkeypatch.setattr(commits, "locked", lambda home, *, timeout=None: contextlib.nullcontext())


@pytest.mark.usefixtures("no_lock")
def test_two_writers_without_a_lock_lose_nothing(home, monkeypatch):
    Interleaved(monkeypatch, home, "theirs")

    homes.add(home, "ours")

    assert homes.ids(home) == ["theirs", "ours"]


@pytest.mark.usefixtures("no_lock")
def test_many_writers_without_a_lock_lose_nothing(home):
    children = []
    for who in range(4):
        child = os.fork()
        if child == 0:
            acknowledged = []
            for number in range(15):
                try:
                    homes.add(home, f"{who}-{number}")
                    acknowledged.append(f"{who}-{number}\n")
                except Conflict:
                    pass
            (home / f"acknowledged{who}").write_text("".join(acknowledged))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)

    acknowledged = [name for who in range(4) for name in (home / f"acknowledged{who}").read_text().split()]
    stored = homes.ids(home)
    assert len(acknowledged) > 15
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)


@pytest.mark.usefixtures("no_lock")
def test_a_writer_that_never_gets_through_gives_up_with_a_reason(home, monkeypatch):
    def never(*args, **kwargs):
        raise files.ConcurrentWrite

    monkeypatch.setattr(commits, "append", never)

    with pytest.raises(Conflict, match="does not honour locks"):
        homes.add(home, "one")


def test_a_torn_last_line_is_kept_aside_and_the_next_commit_stands(home):
    homes.add(home, "one")
    with snapshot.journal_path(home).open("ab") as file:
        file.write(b'{"revision":3,"torn')

    homes.add(home, "two")

    assert homes.ids(home) == ["one", "two"]
    assert [path.read_bytes() for path in (home / "quarantine").iterdir()] == [b'{"revision":3,"torn']


def test_a_symlinked_home_has_the_same_lock_and_cache(home, tmp_path):
    from aether.paths import find_home

    (tmp_path / "link").symlink_to(home)

    assert find_home(tmp_path / "link") == find_home(home) == find_home(home.parent)


def test_history_beyond_the_months_to_keep_goes_when_folding(home, monkeypatch):
    (home / "config.toml").write_text("[store]\nhistory_months = 1\n")
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

    assert [path.name for path in snapshot.month_files(home)] == ["2026-03.jsonl"]


def test_a_fold_that_finds_lines_it_has_not_read_changes_nothing(home):
    stale = snapshot.load(home)
    commits.commit(
        home,
        lambda snapshot: homes.addition(snapshot, homes.item("wm_1")),
        commits.Author("add"),
        now=homes.NOW,
    )

    with pytest.raises(Conflict, match="although the lock was held"):
        commits.fold(stale, now=homes.NOW)

    assert snapshot.load(home).revision == stale.revision + 1


def test_a_home_whose_journal_and_history_are_gone_goes_on_from_its_documents(home):
    commit(home, lambda snapshot: homes.addition(snapshot, homes.item("wm_1")), Author("add"), now=homes.NOW)
    before = fold_home(home, now=homes.NOW)
    shutil.rmtree(home / "data" / "journal")
    snapshot.journal_path(home).unlink()

    commit(home, lambda snapshot: homes.addition(snapshot, homes.item("wm_2")), Author("add"), now=homes.NOW)

    after = fold_home(home, now=homes.NOW)
    assert after.revision == before.revision + 1
    assert [each["id"] for each in after.documents["memory"]["working_memory"]["items"]] == ["wm_1", "wm_2"]


def test_a_line_that_was_torn_when_read_and_is_whole_now_is_not_cut(home):
    before = snapshot.journal_path(home).read_bytes()
    homes.add(home, "one")
    journal_bytes = snapshot.journal_path(home).read_bytes()
    snapshot.journal_path(home).write_bytes(journal_bytes[:-5])
    snapshot._CACHE.clear()
    torn = snapshot.load(home)
    snapshot.journal_path(home).write_bytes(journal_bytes)

    settled = commits.settle(torn, now=homes.NOW)

    assert torn.torn
    assert homes.ids(home) == ["one"]
    assert snapshot.journal_path(home).read_bytes() == journal_bytes != before
    assert settled.revision == torn.revision + 1


def test_a_fold_makes_all_it_wrote_durable_before_it_drops_the_journal(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    homes.add(home, "one")
    homes.remove(home, "one")
    for place in ("data/journal", "data/backups"):
        shutil.rmtree(home / place, ignore_errors=True)
    done = []
    sync, replace, write = files.sync_directory, files._replace, files.append
    monkeypatch.setattr(
        files, "sync_directory", lambda path: (sync(path), done.append(("sync", str(path.relative_to(home)))))
    )
    monkeypatch.setattr(
        files, "_replace", lambda temp, path: (replace(temp, path), done.append(("replace", path.name)))
    )
    for module in (commits, archive):
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
