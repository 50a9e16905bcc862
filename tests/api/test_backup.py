"""Backups of whole homes in a directory: what is in them, what restores, and what each fault is called."""

import errno
import fcntl
import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest

import aether
from aether import regular
from aether.api import backup
from aether.errors import (
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    LockTimeout,
    NotFound,
    StorageFailed,
    UnsafePath,
)
from aether.sharing import offline
from aether.store import consistent, conversation_list, conversations, doctor, files, ledger, log, spool
from aether.store.files import locked
from tests import homes
from tests.tables import rows

OLD = {
    "id": "old", "title": "An old talk", "created_at": "2025-12-01T10:00:00Z", "updated_at": "2025-12-02T10:00:00Z",
    "messages": [
        {"role": "user", "content": f"Port {nth} belongs to service {nth}. " * 4, "timestamp": "2025-12-02T10:00:00Z"}
        for nth in range(20)
    ],
}  # fmt: skip


@pytest.fixture
def full(home):
    """A home with a file of every kind, and with what no backup has."""
    aether.add_working_memory_item("State is JSON.", "decision", 0.9, home=home)
    homes.add(home, "gone")
    homes.remove(home, "gone")
    aether.fold(home=home)
    aether.add_working_memory_item("Not folded yet.", "outcome", 0.9, home=home)
    conversations.extend(home, "a/b", [{"role": "user", "content": "one"}], now=homes.NOW)
    aether.create_snapshot("before", home=home)
    aether.memory_tool({"command": "create", "path": "/memories/lock", "file_text": "mine"}, home=home)
    aether.search_memory("state", home=home)
    spool.put(str(home), {"event": "Stop"})
    aether.archive_conversations([OLD], home=home)
    aether.age_archive(now=homes.NOW, home=home)
    for name in ("quarantine/old.json", "compressions/c.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(os.urandom(100))
    (home / "data" / f".memory.json.0a{files.TEMP_SUFFIX}").touch()
    (home / "conversations" / "empty").mkdir()
    return home


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "backups")


def content(home):
    """Return every file of a home that belongs to it, with its bytes, and the empty directories."""
    left_out = {"lock", "index.sqlite"}
    found = {}
    for path in Path(home).rglob("*"):
        name = path.relative_to(home).as_posix()
        if (path.name in left_out and not name.startswith("memories/")) or files.TEMP_SUFFIX in name:
            continue
        if path.is_file():
            found[name] = path.read_bytes()
    return found


def objects(place):
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in Path(place).rglob("*")
        if path.is_file()
    }


def test_a_restored_home_is_the_home_byte_for_byte(full, place, tmp_path):
    made = aether.create_backup(place, home=full)
    restored = aether.restore_backup(place, home=tmp_path / "new")

    held = content(full)
    assert content(restored.home) == held
    assert {"memories/lock", "data/journal.jsonl"} <= held.keys()
    assert any(name.startswith("archive/grace/") for name in held)
    assert (full / "index.sqlite").exists()
    assert (made.files, made.bytes) == (len(held), sum(map(len, held.values())))
    assert made.revision == homes.reopened(full).revision
    assert (restored.home / "conversations" / "empty").is_dir()
    assert restored.findings == []
    assert homes.ids(restored.home) == homes.ids(full)
    assert aether.restore_conversation("old", home=restored.home).exact
    assert not list(tmp_path.glob("*.restoring"))


@pytest.mark.parametrize("release", ["this", "earlier"])
def test_a_restored_home_asks_its_server_at_once(home, place, tmp_path, monkeypatch, release):
    """It does not take along when the server failed last, also from a backup of an earlier release that did."""
    homes.add(home, "a")
    offline.note_try(home, failed=True)
    with monkeypatch.context() as patch:
        if release == "earlier":
            patch.setattr(consistent, "LEFT_OUT", re.compile(r"(?:.*/)?lock|archive/index.*|\.backup.*"))
        aether.create_backup(place, home=home)

    restored = aether.restore_backup(place, home=tmp_path / "new").home

    assert homes.ids(restored) == ["a"]
    assert not ledger.tried_lately(restored)


def test_only_the_owner_reads_a_backup_and_a_restored_home(full, place, tmp_path):
    aether.create_backup(place, home=full)
    restored = aether.restore_backup(place, home=tmp_path / "new").home

    for root in (Path(place), restored):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*") if path.is_file()}
        assert modes == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")] if path.is_dir()} == {
            0o700
        }


def test_a_new_place_keeps_itself_out_of_a_repository_and_another_one_stays_as_it_is(home, tmp_path):
    new, mine, ours = tmp_path / "new", tmp_path / "mine", tmp_path / "ours"
    for place in (mine, ours):
        place.mkdir()
    (mine / ".gitignore").write_text("build\n")
    (ours / "page.html").touch()

    for place in (new, mine, ours):
        aether.create_backup(str(place), home=home)

    assert (new / ".gitignore").read_text() == "*\n"
    assert (mine / ".gitignore").read_text() == "build\n"
    assert not (ours / ".gitignore").exists()


def test_only_what_changed_is_written_again(full, place, monkeypatch):
    monkeypatch.setattr(consistent, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(backup, "PIECE_BYTES", 1_000)
    log = full / "conversations" / "a%2fb" / conversations.FILE
    conversations.extend(full, "a/b", [{"role": "user", "content": os.urandom(40_000).hex()}], now=homes.NOW)
    aether.create_backup(place, home=full)
    before = objects(place)

    again = aether.create_backup(place, home=full)
    same = objects(place)
    conversations.extend(full, "a/b", [{"role": "user", "content": "more"}], now=homes.NOW)
    more = aether.create_backup(place, home=full)

    assert log.stat().st_size > 80_000
    assert again.new_bytes == 0
    assert len(same) == len(before) + 1
    assert 0 < more.new_bytes < 10_000
    now = objects(place)
    assert {name: now[name] for name in same} == same
    assert [one.id for one in aether.backups(place)][:2] == [more.id, again.id]


def test_an_earlier_backup_is_restored_by_its_id(full, place, tmp_path):
    first, held = aether.create_backup(place, home=full), content(full)
    aether.add_working_memory_item("Later.", "decision", 0.9, home=full)
    aether.create_backup(place, home=full)

    aether.restore_backup(place, first.id, home=tmp_path / "first")
    aether.restore_backup(place, home=tmp_path / "newest")

    assert content(tmp_path / "first") == held
    assert content(tmp_path / "newest") == content(full)


def test_a_home_that_may_not_be_written_is_backed_up_elsewhere(full, place, tmp_path, monkeypatch):
    (full / "conversations" / "empty" / "lock").unlink(missing_ok=True)
    before, opened = content(full), os.open

    def read_only(path, flags, *more, **named):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(full) in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    made = [aether.create_backup(str(place), home=full) for _ in range(2)]
    monkeypatch.undo()

    assert (made[0].files, made[1].new_bytes) == (made[1].files, 0)
    assert aether.restore_backup(str(place), home=tmp_path / "back").findings == []
    assert content(tmp_path / "back") == before == content(full)
    aether.create_backup(str(place), home=full)  # it goes on in the same place once it may be written
    with pytest.raises(Conflict, match="another home"):
        aether.create_backup(str(place), home=aether.init(tmp_path / "other"))


def test_the_lock_of_a_home_that_may_not_be_written_keeps_its_writers_out(home, monkeypatch):
    opened = os.open

    def read_only(path, flags, *more, **named):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, flags, *more, **named)

    with files.locked(home):
        monkeypatch.setattr(os, "open", read_only)
        with pytest.raises(LockTimeout), files.locked(home, timeout=0, for_reading=True):
            pass
        with pytest.raises(StorageFailed), files.locked(home, timeout=0):
            pass


def test_the_newest_backup_is_the_last_one_also_where_the_clock_was_set_back(home, place, monkeypatch):
    ids = []
    for seconds in (0, -7_200, 60):
        monkeypatch.setattr(backup, "now", lambda seconds=seconds: homes.later(seconds))
        ids.append(aether.create_backup(place, home=home).id)

    assert [one.id for one in aether.backups(place)] == ids[::-1]


def test_a_restored_home_goes_on_in_the_same_place_and_another_home_does_not(home, place, tmp_path):
    aether.create_backup(place, home=home)
    restored = aether.restore_backup(place, home=tmp_path / "moved").home
    other = homes.fresh(tmp_path / "other")

    aether.create_backup(place, home=restored)
    with pytest.raises(Conflict, match="backups of another home"):
        aether.create_backup(place, home=other)
    aether.create_backup(place, adopt=True, home=other)

    assert [one.home for one in aether.backups(place)] == [str(other), str(restored), str(home)]


def test_a_directory_that_is_not_empty_is_never_restored_over(home, place, tmp_path):
    aether.create_backup(place, home=home)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()

    aether.restore_backup(place, home=tmp_path / "empty")
    for there in (home, tmp_path / "file", tmp_path / "empty"):
        before = content(there)
        with pytest.raises(Conflict, match="not empty"):
            aether.restore_backup(place, home=there)
        assert content(there) == before


def test_what_a_killed_restore_left_is_no_home_and_is_removed_by_the_next(home, place, tmp_path):
    aether.create_backup(place, home=home)
    left = tmp_path / f"new.{'0a' * 6}.restoring"
    half = left / "home" / "data"
    half.mkdir(parents=True)
    (half / "memory.json").write_text("{}")

    with pytest.raises(NotFound):
        aether.get_memory_status(home=left)
    with locked(left), pytest.raises(LockTimeout):
        aether.restore_backup(place, home=tmp_path / "new")
    aether.restore_backup(place, home=tmp_path / "new")

    assert content(tmp_path / "new") == content(home)
    assert not list(tmp_path.glob("*.restoring"))


def test_doctor_names_and_removes_what_a_killed_restore_left_beside_the_home(home):
    left = home.with_name(f"{home.name}.{'0a' * 6}.restoring")
    (left / "home").mkdir(parents=True)
    (left / "home" / "memory.json").write_text("{}")
    (left / "lock").touch()

    with locked(left):
        assert [finding.code for finding in aether.examine(home=home)] == []
        assert aether.repair(home=home) == []
    assert [(one.code, one.where) for one in aether.examine(home=home)] == [("left-restore", left.name)]
    assert aether.repair(home=home) == [f"removed {left.name}/, left beside the home by a killed restore"]
    assert not left.exists()


def test_a_directory_that_no_restore_made_stays_whatever_its_name(home, place, tmp_path):
    aether.create_backup(place, home=home)
    names = ("new.restoring", f"new.{'0a' * 6}.restoring", f"new.{'0a' * 6}x.restoring", "newer.restoring")
    for name in names:
        (tmp_path / name / "home").mkdir(parents=True)
        (tmp_path / name / "thesis.txt").write_text("mine")
    (tmp_path / f"new.{'0b' * 6}.restoring").symlink_to(tmp_path / "newer.restoring")

    aether.restore_backup(place, home=tmp_path / "new")

    assert content(tmp_path / "new") == content(home)
    assert all((tmp_path / name / "thesis.txt").exists() for name in names)


BAD_PLACES = [
    ("", InvalidInput, "not a place for files"),
    ("gs://bucket", InvalidInput, "not a place for files"),
    ("s3://", InvalidInput, "not a place for files"),
    ("{home}", InvalidInput, "in the home"),
    ("{home}/backups", InvalidInput, "in the home"),
    ("{tmp}/link", InvalidInput, "in the home"),
    ("{tmp}/other/.aether/x", InvalidInput, "in the home"),
    ("{tmp}/file", InvalidInput, "is not a directory"),
    ("{tmp}/linked", UnsafePath, "leads out"),
]


@rows("named,kind,words", BAD_PLACES)
def test_a_place_that_can_hold_no_backup_is_refused(named, kind, words, tmp_path):
    home = homes.fresh(tmp_path)
    homes.fresh(tmp_path / "other")
    (tmp_path / "link").symlink_to(home / "data")
    (tmp_path / "file").touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "objects").symlink_to(tmp_path / "other")
    before = content(tmp_path)

    with pytest.raises(kind, match=words):
        aether.create_backup(named.format(home=home, tmp=tmp_path), home=home)

    assert {name for name in content(tmp_path) if name not in before} <= {f".aether/{backup.IDENTITY}"}


def test_a_link_to_a_place_is_followed_and_links_in_a_home_are_named(home, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    (home / "memories").symlink_to(tmp_path / "disk")
    (home / "snapshots").mkdir()
    os.mkfifo(home / "snapshots" / "pipe")

    made = aether.create_backup(str(tmp_path / "link"), home=home)

    assert sorted(made.left_out) == ["memories", "snapshots/pipe"]
    assert aether.verify_backup(str(tmp_path / "disk")) == []
    (home / "memories").unlink()
    (home / "snapshots" / "pipe").unlink()
    restored = aether.restore_backup(str(tmp_path / "disk"), home=tmp_path / "new").home
    assert content(restored) == content(home)


def largest(place):
    return max((Path(place) / "objects").glob("*/*"), key=lambda path: path.stat().st_size)


def manifest(place):
    return min((Path(place) / "manifests").iterdir())


def rewritten(path, **fields):
    value = log.unsealed(path.read_bytes())
    value.pop("checksum", None)
    path.write_bytes(log.seal_json({**value, **fields}))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def append(path):
    with path.open("ab") as file:
        file.write(b"x")


def bomb(place):
    import zstandard

    largest(place).write_bytes(zstandard.compress(bytes(100_000_000)))


def elsewhere(place, path):
    """Let the backup name a file of another path."""
    found = backup._manifest_names(backup.named_files(place))[0]
    target = backup.named_files(place)
    index = backup._index(target, backup._manifest(target, found))
    data = files.json_line({"files": {path: [*next(iter(index.files.values()))]}, "empty": []})
    with backup._writing(target, set(), []) as keep:
        keep(regular.digest(data), data)
    rewritten(manifest(place), index=[len(data), [regular.digest(data)]])


FAULTS = [
    (lambda place: largest(place).unlink(), "missing-object", NotFound, "no such file"),
    (lambda place: flip(largest(place)), "changed-object", CorruptDocument, "object was changed"),
    (lambda place: append(largest(place)), "changed-object", CorruptDocument, "object was changed"),
    (lambda place: largest(place).write_bytes(b""), "changed-object", CorruptDocument, "object was changed"),
    (
        lambda place: largest(place).write_bytes(bytes(9_000_000)),
        "changed-object",
        CorruptDocument,
        "object was changed",
    ),
    (bomb, "changed-object", CorruptDocument, "object was changed"),
    (lambda place: flip(manifest(place)), "CorruptDocument", CorruptDocument, "manifest was changed"),
    (lambda place: rewritten(manifest(place), format=2), "InvalidDocument", InvalidDocument, "format is 2"),
    (
        lambda place: rewritten(manifest(place), files="many"),
        "CorruptDocument",
        CorruptDocument,
        "manifest was changed",
    ),
    (lambda place: elsewhere(place, "../evil"), "UnsafePath", UnsafePath, "no backup of a home has"),
    (lambda place: elsewhere(place, "/evil"), "UnsafePath", UnsafePath, "no backup of a home has"),
    (lambda place: elsewhere(place, "lock"), "UnsafePath", UnsafePath, "no backup of a home has"),
]


@rows("harm,code,kind,words", FAULTS)
def test_a_damaged_backup_is_found_and_is_not_restored(harm, code, kind, words, tmp_path):
    home, place = homes.fresh(tmp_path), str(tmp_path / "backups")
    aether.create_backup(place, home=home)
    assert aether.verify_backup(place) == []

    harm(place)

    assert {one.code for one in aether.verify_backup(place)} == {code}
    with pytest.raises(kind, match=words):
        aether.restore_backup(place, home=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob("*.restoring"))
    assert not (tmp_path / "evil").exists()


def test_a_changed_object_is_written_again_once_it_is_removed(home, place, tmp_path):
    aether.create_backup(place, home=home)
    spoiled = largest(place)
    good = spoiled.read_bytes()
    flip(spoiled)
    found = aether.verify_backup(place)
    spoiled.unlink()
    assert "such as" in found[0].message
    assert "Remove it" in found[0].fix

    aether.create_backup(place, home=home)

    assert spoiled.read_bytes() == good
    assert aether.verify_backup(place) == []


def test_a_full_disk_leaves_the_older_backups_whole(full, place, tmp_path, monkeypatch):
    first, held = aether.create_backup(place, home=full), content(full)
    before = objects(place)
    aether.add_working_memory_item("Later.", "decision", 0.9, home=full)
    aether.fold(home=full)
    real = os.write

    def write(handle, data):
        if "backups" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, os.strerror(28))
        return real(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(StorageFailed, match="No space left"):
            aether.create_backup(place, home=full)

    assert objects(place) == before
    assert aether.verify_backup(place) == []
    aether.restore_backup(place, home=tmp_path / "new")
    assert content(tmp_path / "new") == held
    assert aether.create_backup(place, home=full).id != first.id


def test_a_damaged_home_is_backed_up_as_it_is_and_the_restored_one_says_so(full, place, tmp_path):
    path = full / "data" / "journal" / "2026-03.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    (full / "data" / "pheromones.json").write_text("{")

    aether.create_backup(place, home=full)
    restored = aether.restore_backup(place, home=tmp_path / "new")

    assert content(restored.home) == content(full)
    assert {"damaged-file"} <= {one.code for one in restored.findings}


def is_locked(directory):
    with open(directory / "lock", "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_every_file_is_held_under_the_locks_of_those_who_write(full, place, monkeypatch):
    unlocked, real = [], consistent._hold

    def hold(held, home, path, links):
        talk = path.startswith("conversations/a") and not is_locked((full / path).parent)
        listing = path == conversation_list.LIST and not is_locked(full / "conversations/.list")
        if talk or listing or not is_locked(full):
            unlocked.append(path)
        real(held, home, path, links)

    monkeypatch.setattr(consistent, "_hold", hold)
    aether.create_backup(place, home=full)

    assert unlocked == []


@pytest.mark.parametrize("link", [os.link, None])
def test_what_changes_after_the_locks_are_free_is_newer_than_the_backup(
    full, place, tmp_path, monkeypatch, link
):
    conversations.extend(full, "a/b", [{"role": "user", "content": "long " * 2_000}], now=homes.NOW)
    before, real = content(full), consistent._hold_home

    def hold_home(home, links):
        with monkeypatch.context() as patch:
            if link is None:  # a disk without links
                patch.setattr(os, "link", raises(OSError(errno.EPERM, "no links")))
            result = real(home, links)
        aether.add_working_memory_item("Added meanwhile.", "decision", 0.9, home=full)
        conversations.extend(full, "a/b", [{"role": "user", "content": "new"}], now=homes.NOW)
        conversations.extend(full, "newer", [{"role": "user", "content": "new"}], now=homes.NOW)
        aether.fold(home=full)
        return result

    monkeypatch.setattr(consistent, "_hold_home", hold_home)
    aether.create_backup(place, home=full)
    restored = aether.restore_backup(place, home=tmp_path / "new")

    identity = {"data/identity.json"}
    after = content(restored.home)
    assert {name: data for name, data in after.items() if name not in identity} == before
    assert restored.findings == []
    assert not [*full.glob(".backup.*")]


def test_what_a_killed_backup_left_is_removed_by_doctor(full):
    (full / f".backup.x{files.TEMP_SUFFIX}").mkdir()
    (full / f".backup.x{files.TEMP_SUFFIX}" / "0").touch()

    assert any("left by a killed backup" in line for line in aether.repair(home=full))
    assert not [*full.glob(".backup.*")]


def raises(reason):
    def function(*_, **__):
        raise reason

    return function


def test_a_conversation_that_is_listed_after_the_look_at_the_list_is_newer_than_the_backup(
    full, place, tmp_path, monkeypatch
):
    real, looks = consistent._names, []

    def names(directory):
        if not looks:
            looks.append(directory)
            conversations.extend(full, "zz", [{"role": "user", "content": "new"}], now=homes.NOW)
        return real(directory)

    monkeypatch.setattr(consistent, "_names", names)
    aether.create_backup(place, home=full)
    restored = aether.restore_backup(place, home=tmp_path / "new")

    assert restored.findings == []
    assert not (restored.home / "conversations" / "zz").exists()
    assert {one.code for one in doctor.examine(restored.home)} <= {
        "quarantine",
        "damaged-event",
        "unreadable",
    }


def test_two_backups_at_once_are_both_whole(full, place, tmp_path):
    threads = [
        threading.Thread(target=aether.create_backup, args=(place,), kwargs={"home": full}) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(aether.backups(place)) == 3
    assert aether.verify_backup(place) == []


def test_progress_goes_up_to_a_hundred(full, place, tmp_path):
    for act in (
        lambda report: aether.create_backup(place, progress=report, home=full),
        lambda report: aether.verify_backup(place, progress=report),
        lambda report: aether.restore_backup(place, progress=report, home=tmp_path / "new"),
    ):
        seen = []
        act(lambda percent, step, seen=seen: seen.append(percent))
        assert seen == sorted(seen)
        assert seen[-1] == 100


def test_an_interrupted_backup_and_restore_leave_nothing_half_done(full, place, tmp_path):
    def interrupt(percent, step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aether.create_backup(place, progress=interrupt, home=full)
    assert aether.backups(place) == []
    aether.create_backup(place, home=full)
    with pytest.raises(KeyboardInterrupt):
        aether.restore_backup(place, progress=interrupt, home=tmp_path / "new")
    assert not list(tmp_path.glob("new*"))


def test_the_index_of_a_backup_can_be_read_by_hand(home, place):
    """docs/backup.md says how a home is restored without aether."""
    import zstandard

    aether.create_backup(place, home=home)
    said = json.loads(manifest(place).read_bytes())
    pieces = said["index"][1]
    index = b"".join(
        zstandard.decompress((Path(place) / "objects" / one[:2] / one).read_bytes()) for one in pieces
    )

    assert json.loads(index)["files"].keys() == content(home).keys()


def test_a_file_name_that_is_not_utf8_is_backed_up_and_restored(tmp_path):
    home = homes.fresh(tmp_path)
    name = os.fsdecode(b"x\xff.md")
    (home / "memories").mkdir()
    (home / "memories" / name).write_text("note")

    aether.create_backup(str(tmp_path / "backups"), home=home)
    aether.restore_backup(str(tmp_path / "backups"), home=tmp_path / "new")

    assert (tmp_path / "new" / "memories" / name).read_text() == "note"


def test_the_next_backup_removes_what_a_killed_restore_left_beside_the_home(tmp_path):
    home = homes.fresh(tmp_path)
    left, running, other = (tmp_path / f".aether.{digit * 12}{backup.RESTORING}" for digit in "0ab")
    for place in (left, running, other):
        (place / "home").mkdir(parents=True)
        (place / "home" / "secret").write_text("old")
    (other / "of-a-person").write_text("mine")

    with locked(running, timeout=0):
        aether.create_backup(str(tmp_path / "backups"), home=home)

    assert [place.exists() for place in (left, running, other)] == [False, True, True]
