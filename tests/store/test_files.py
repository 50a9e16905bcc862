"""JSON, whole files, appended lines and the lock of a directory."""

import errno
import math
import os
import signal
import subprocess
import sys
import threading
import time

import filelock
import pytest

from aether.errors import CorruptDocument, InvalidInput, LockTimeout, NotFound, StorageFailed, UnsafePath
from aether.store import files, log
from aether.store.files import locked
from tests.crash import faults
from tests.tables import rows


def test_a_whole_file_is_written_with_nothing_beside_it(tmp_path):
    files.write_whole(tmp_path / "a.json", b"data")

    assert (tmp_path / "a.json").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["a.json"]
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


@rows("name", ["n" * 255, "ä" * 127, "𝕏" * 63])
def test_a_file_with_the_longest_name_is_written(tmp_path, name):
    for data in (b"one", b"two"):
        files.write_whole(tmp_path / name, data, is_known=lambda path: True)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"two"}


def test_the_previous_version_is_kept_as_a_backup(tmp_path):
    files.write_whole(tmp_path / "a", b"old")

    files.write_whole(tmp_path / "a", b"new", backup=tmp_path / "backups" / "a.1")

    assert (tmp_path / "backups" / "a.1").read_bytes() == b"old"


def test_without_hard_links_a_backup_is_a_copy(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    files.write_whole(tmp_path / "a", b"old")

    files.write_whole(tmp_path / "a", b"new", backup=tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == b"old"


@rows("call", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    files.write_whole(tmp_path / "a", b"old")
    monkeypatch.setattr(os, call, _raise(OSError(errno.ENOSPC, "full")))

    with pytest.raises(OSError, match="full"):
        files.write_whole(tmp_path / "a", b"new")

    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def _raise(reason):
    def call(*args, **kwargs):
        raise reason

    return call


def test_appending_adds_to_the_end(tmp_path):
    log.append(tmp_path / "a", b"one\n", at=0)
    log.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_failed_append_is_cut_off_again(tmp_path, monkeypatch):
    log.append(tmp_path / "a", b"one\n", at=0)
    monkeypatch.setattr(files, "sync_data", _raise(OSError(errno.EIO, "bad")))

    with pytest.raises(OSError, match="bad"):
        log.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\n"


def test_an_append_behind_which_another_wrote_is_not_cut(tmp_path, monkeypatch):
    log.append(tmp_path / "a", b"one\n", at=0)

    def other_then_fail(handle):
        with (tmp_path / "a").open("ab") as file:
            file.write(b"theirs\n")
        raise OSError(errno.EIO, "bad")

    monkeypatch.setattr(files, "sync_data", other_then_fail)

    with pytest.raises(OSError, match="bad"):
        log.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes().endswith(b"theirs\n")


def test_an_append_to_another_end_than_expected_is_refused(tmp_path):
    log.append(tmp_path / "a", b"one\n", at=0)

    with pytest.raises(log.ConcurrentWrite):
        log.append(tmp_path / "a", b"two\n", at=0)

    assert (tmp_path / "a").read_bytes() == b"one\n"


def test_an_append_that_landed_behind_another_is_refused(tmp_path, monkeypatch):
    real = os.write

    def late(handle, data):
        monkeypatch.setattr(os, "write", real)
        with (tmp_path / "a").open("ab") as file:
            file.write(b"theirs\n")
        return real(handle, data)

    log.append(tmp_path / "a", b"one\n", at=0)
    monkeypatch.setattr(os, "write", late)

    with pytest.raises(log.ConcurrentWrite):
        log.append(tmp_path / "a", b"ours\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\ntheirs\nours\n"


def test_an_append_to_a_file_that_was_replaced_meanwhile_is_refused(tmp_path, monkeypatch):
    log.append(tmp_path / "a", b"one\n", at=0)
    real = files.sync_data

    def replaced(handle):
        real(handle)
        files.write_whole(tmp_path / "a", b"new\n")

    monkeypatch.setattr(files, "sync_data", replaced)

    with pytest.raises(log.ConcurrentWrite):
        log.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"new\n"


def test_a_file_that_vanished_does_not_come_back_empty(tmp_path):
    with pytest.raises(FileNotFoundError):
        log.append(tmp_path / "a", b"two\n", at=4)

    assert not (tmp_path / "a").exists()


def test_a_torn_end_is_cut_off(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo\nthr")

    assert log.cut_torn_end(tmp_path / "a") == 8
    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_whole_end_is_left(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n")

    assert log.cut_torn_end(tmp_path / "a") == 4
    assert log.cut_torn_end(tmp_path / "none") == 0


@rows("block", [1, 2, 3, 5, 64])
def test_lines_are_read_backwards_whatever_the_block(tmp_path, monkeypatch, block):
    monkeypatch.setattr(log, "BLOCK_BYTES", block)
    (tmp_path / "a").write_bytes(b"one\n\ntwo two\nthree")

    assert list(log.lines_backwards(tmp_path / "a")) == [b"three", b"two two\n", b"\n", b"one\n"]


@rows(
    ("number", "fix"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EROFS, "Make the home writable"),
        (errno.EACCES, "Let this user read and write the home"),
        (errno.EPERM, "Let this user read and write the home"),
        (errno.EIO, "Check the disk"),
    ],
)
def test_a_failure_of_the_disk_says_what_to_do(number, fix):
    with (
        pytest.raises(StorageFailed, match=f"^home: .*Nothing was stored. {fix}"),
        files.storage_errors("home"),
    ):
        raise OSError(number, os.strerror(number))


def test_a_home_that_is_missing_is_said_to_be_missing():
    with pytest.raises(NotFound, match="does not exist"), files.storage_errors("home"):
        raise FileNotFoundError(errno.ENOENT, "no")


def test_temp_files_of_killed_processes_are_found(tmp_path):
    (tmp_path / "deep").mkdir()
    stray = tmp_path / "deep" / f".memory.json.0123{files.TEMP_SUFFIX}"
    stray.write_bytes(b"")

    assert files.leftover_temps(tmp_path) == [stray]


def nested(levels):
    """Return `levels` lists, one in the other."""
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@rows(
    "value",
    [
        "\0", "\ud800", "a\udfffb", "\u2028\r\n", "/a~1b/-", "😀" * 3, "x" * 300_000, 2**63, -(2**64), 10**4000,
        0.1, 5e-324, 1.7976931348623157e308, {"": {"stamp": None}}, [], {}, None, True,
    ],
    ids=lambda value: type(value).__name__,  # not every one of them can be printed
)  # fmt: skip
@rows("size", [0, files.SMALL_CHARS])
def test_hostile_values_come_back_exactly(value, size):
    kept = [files.checked_json({"v": value}, where="test")]

    assert files.parse_json(files.json_line(kept), where="test") == kept
    assert files.parse_json(files.json_document(kept, size=size), where="test") == kept


@pytest.mark.parametrize("size", [0, files.SMALL_CHARS])
def test_a_split_surrogate_pair_is_refused_because_it_would_come_back_joined(size):
    with pytest.raises(InvalidInput, match="surrogate pair"):
        files.json_document(["\ud83d\ude00"], size=size)
    with pytest.raises(InvalidInput, match="surrogate pair"):
        files.json_line(["\ud83d\ude00"])


@rows(
    ("value", "words"),
    [
        (math.nan, "nan is not JSON"),
        (math.inf, "inf is not JSON"),
        ({1: "a"}, "1 is not a text key"),
        ({"a": (1,)}, "is not JSON"),
        ({"a": {1, 2}}, "is not JSON"),
        (b"bytes", "is not JSON"),
        (10**5000, "cannot be read back"),
        (nested(files.MAX_DEPTH + 1), "nested more than 100 levels"),
        (nested(10_000), "nested more than 100 levels"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_give_back_is_refused(value, words):
    with pytest.raises(InvalidInput, match=words):
        files.checked_json(value, where="test")


def test_the_deepest_allowed_value_is_kept_by_both_encoders():
    value = files.checked_json(nested(files.MAX_DEPTH), where="test")

    assert files.json_document(value, size=0) == files.json_document(value, size=files.SMALL_CHARS)
    assert files.parse_json(files.json_line(value), where="test") == value


@rows(
    "data",
    [b"", b"{", b"[NaN]", b"[-Infinity]", b"\xff", b"[" * 100_000, b"[" + b"9" * 5000 + b"]", b"{} {}"],
    ids=len,
)
def test_what_is_not_json_is_corrupt_and_says_where(data):
    with pytest.raises(CorruptDocument, match=r"^memory\.json: not JSON"):
        files.parse_json(data, where="memory.json")


def test_the_place_of_the_mistake_is_named():
    with pytest.raises(CorruptDocument, match="line 2, column 3"):
        files.parse_json("{\n  x", where="memory.json")


def test_brackets_and_quotes_within_a_text_are_no_values(monkeypatch):
    monkeypatch.setattr(files, "LISTS", (10, 32))
    monkeypatch.setattr(files, "TEXTS", (20, 8))

    for text in ("[" * 100, '"' * 100, "{\\" * 100):
        assert files.parse_json(files.json_line([text]), where="x") == [text]
    with pytest.raises(CorruptDocument, match="not JSON"):
        files.parse_json('["' + '\\"[' * 200_000, where="x")  # at once


def test_a_text_with_far_more_values_than_any_that_was_written_is_refused(monkeypatch):
    monkeypatch.setattr(files, "LISTS", (10, 32))
    monkeypatch.setattr(files, "TEXTS", (20, 8))

    assert len(files.parse_json("[" + "[]," * 8 + "[]]", where="x")) == 9
    with pytest.raises(CorruptDocument, match="12 lists and objects in"):
        files.parse_json("[" + "[]," * 10 + "[]]", where="x")
    with pytest.raises(CorruptDocument, match="21 texts in"):
        files.parse_json(b'["a"' + b',"a"' * 20 + b"]", where="x")
    assert (
        len(files.parse_json(b'["' + b"words, words " * 50 + b'"' + b', ["ant"]' * 20 + b"]", where="x"))
        == 21
    )


HOLD = """
import sys, time
from pathlib import Path
from aether.store.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(home):
    """Return another process that holds the lock of `home`."""
    with subprocess.Popen([sys.executable, "-c", HOLD, home], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_a_timeout_names_the_holder(home, holder):
    with (
        pytest.raises(LockTimeout, match=rf"held by process {holder.pid}: -c .*more than 0.05 s"),
        locked(home, timeout=0.05),
    ):
        pass


def test_a_killed_holder_frees_the_lock(home, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    with locked(home, timeout=60):
        pass


def test_a_waiting_thread_gets_the_lock_when_it_is_free(home):
    order = []

    def second():
        with locked(home, timeout=60):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(home):
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()

    assert order == ["first", "second"]


def test_we_wait_for_the_lock_of_filelock(home):
    with filelock.FileLock(home / "lock"), pytest.raises(LockTimeout), locked(home, timeout=0.05):
        pass


def test_without_flock_filelock_takes_the_same_lock(home, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")

    with locked(home):
        monkeypatch.undo()
        with pytest.raises(LockTimeout), locked(home, timeout=0.05):
            pass
    with locked(home, timeout=0):
        pass


@pytest.mark.parametrize(
    ("number", "fix"),
    [(errno.EROFS, "Make the home writable"), (errno.EACCES, "Let this user read and write the home")],
)
def test_a_home_that_cannot_be_written_cannot_be_locked(home, monkeypatch, number, fix):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(StorageFailed, match=fix), locked(home):
        pass


def test_a_lock_on_a_home_that_was_made_again_meanwhile_is_taken_again(home, monkeypatch):
    real = files._wait
    seen = []

    def wait(handle, path, *more):
        real(handle, path, *more)
        if not seen:
            path.unlink()
            path.touch()
        seen.append(handle)

    monkeypatch.setattr(files, "_wait", wait)

    with locked(home):
        assert len(seen) == 2
        with pytest.raises(LockTimeout), locked(home, timeout=0):
            pass


def test_a_child_that_dies_in_the_block_frees_the_lock(home):
    def die():
        with locked(home):
            os.kill(os.getpid(), signal.SIGKILL)

    assert faults.in_child(die) == -signal.SIGKILL
    with locked(home, timeout=0):
        pass


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="no way to refuse links here")
def test_a_lock_that_leads_elsewhere_is_not_signed(tmp_path):
    (tmp_path / "rc").write_text("alias ll='ls -l'\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "lock").symlink_to(tmp_path / "rc")

    with pytest.raises(UnsafePath), locked(tmp_path / "home", timeout=0.1):
        pass
    assert (tmp_path / "rc").read_text() == "alias ll='ls -l'\n"


def test_a_replaced_file_stays_that_of_everybody_who_shares_the_home(tmp_path):
    """Two users of a group, or one and the root of a container, fold in turn."""
    path = tmp_path / "memory.json"
    path.write_bytes(b"old")
    path.chmod(0o660)
    if os.getuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()

    files.write_whole(path, b"new")

    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_group_that_may_not_be_given_gets_no_rights(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "not permitted")

    path = tmp_path / "memory.json"
    path.write_bytes(b"old")
    path.chmod(0o660)
    monkeypatch.setattr(os, "chown", refuse)
    real = os.stat
    other = os.stat_result((*real(path)[:5], real(path).st_gid + 1, *real(path)[6:]))
    monkeypatch.setattr(os, "stat", lambda name, **how: other if name == path else real(name, **how))

    files.write_whole(path, b"new")

    monkeypatch.undo()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("directory", "file"), [(0o700, 0o600), (0o755, 0o600), (0o770, 0o660), (0o777, 0o666)]
)
def test_a_new_file_is_for_those_who_may_write_beside_it(directory, file, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(directory)

    files.write_whole(tmp_path / "data" / "new", b"new")

    assert (tmp_path / "data" / "new").stat().st_mode & 0o777 == file
