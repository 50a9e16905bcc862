import errno
import os

import pytest

from aether.errors import InvalidInput, LockTimeout, NotFound, StorageFailed
from aether.store import files
from tests.tables import rows


def test_a_whole_file_is_written_with_nothing_beside_it(tmp_path):
    files.write_whole(tmp_path / "a.json", b"data")

    assert (tmp_path / "a.json").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["a.json"]
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


def test_a_directory_is_its_owners_alone(tmp_path):
    files.make_directory(tmp_path / "a" / "b")

    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_the_previous_version_is_kept_as_a_backup(tmp_path):
    files.write_whole(tmp_path / "a", b"old")

    files.write_whole(tmp_path / "a", b"new", backup=tmp_path / "backups" / "a.1")

    assert (tmp_path / "backups" / "a.1").read_bytes() == b"old"


def test_a_backup_that_is_there_already_is_left(tmp_path):
    for data in (b"one", b"two", b"three"):
        files.write_whole(tmp_path / "a", data, backup=tmp_path / "backups" / "a.1")

    assert (tmp_path / "backups" / "a.1").read_bytes() == b"one"


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


def test_a_short_write_goes_on_where_it_stopped(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data)[:3]))

    files.write_whole(tmp_path / "a", b"0123456789")
    files.append(tmp_path / "a", b"abcdefg\n", at=10)

    assert (tmp_path / "a").read_bytes() == b"0123456789abcdefg\n"


def test_appending_adds_to_the_end(tmp_path):
    files.append(tmp_path / "a", b"one\n", at=0)
    files.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_failed_append_is_cut_off_again(tmp_path, monkeypatch):
    files.append(tmp_path / "a", b"one\n", at=0)
    monkeypatch.setattr(files, "_sync_data", _raise(OSError(errno.EIO, "bad")))

    with pytest.raises(OSError, match="bad"):
        files.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\n"


def test_an_append_behind_which_another_wrote_is_not_cut(tmp_path, monkeypatch):
    files.append(tmp_path / "a", b"one\n", at=0)

    def other_then_fail(handle):
        with (tmp_path / "a").open("ab") as file:
            file.write(b"theirs\n")
        raise OSError(errno.EIO, "bad")

    monkeypatch.setattr(files, "_sync_data", other_then_fail)

    with pytest.raises(OSError, match="bad"):
        files.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes().endswith(b"theirs\n")


def test_an_append_to_another_end_than_expected_is_refused(tmp_path):
    files.append(tmp_path / "a", b"one\n", at=0)

    with pytest.raises(files.ConcurrentWrite):
        files.append(tmp_path / "a", b"two\n", at=0)

    assert (tmp_path / "a").read_bytes() == b"one\n"


def test_an_append_that_landed_behind_another_is_refused(tmp_path, monkeypatch):
    real = os.write

    def late(handle, data):
        monkeypatch.setattr(os, "write", real)
        with (tmp_path / "a").open("ab") as file:
            file.write(b"theirs\n")
        return real(handle, data)

    files.append(tmp_path / "a", b"one\n", at=0)
    monkeypatch.setattr(os, "write", late)

    with pytest.raises(files.ConcurrentWrite):
        files.append(tmp_path / "a", b"ours\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\ntheirs\nours\n"


def test_an_append_to_a_file_that_was_replaced_meanwhile_is_refused(tmp_path, monkeypatch):
    files.append(tmp_path / "a", b"one\n", at=0)
    real = files._sync_data

    def replaced(handle):
        real(handle)
        files.write_whole(tmp_path / "a", b"new\n")

    monkeypatch.setattr(files, "_sync_data", replaced)

    with pytest.raises(files.ConcurrentWrite):
        files.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"new\n"


def test_a_file_that_vanished_does_not_come_back_empty(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.append(tmp_path / "a", b"two\n", at=4)

    assert not (tmp_path / "a").exists()


def test_an_error_at_closing_does_not_deny_what_is_stored(tmp_path, monkeypatch):
    files.append(tmp_path / "a", b"one\n", at=0)
    real = os.close

    def close(handle):
        real(handle)
        raise OSError(errno.EIO, "late")

    monkeypatch.setattr(os, "close", close)

    files.append(tmp_path / "a", b"two\n", at=4)

    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_torn_end_is_cut_off(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo\nthr")

    assert files.cut_torn_end(tmp_path / "a") == 8
    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"


def test_a_whole_end_is_left(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n")

    assert files.cut_torn_end(tmp_path / "a") == 4
    assert files.cut_torn_end(tmp_path / "none") == 0


@rows("block", [1, 2, 3, 5, 64])
def test_lines_are_read_backwards_whatever_the_block(tmp_path, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK_BYTES", block)
    (tmp_path / "a").write_bytes(b"one\n\ntwo two\nthree")

    assert list(files.lines_backwards(tmp_path / "a")) == [b"three", b"two two\n", b"\n", b"one\n"]


@rows(
    ("number", "fix"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EROFS, "Make the home writable"),
        (errno.EACCES, "Make the home writable"),
        (errno.EPERM, "Make the home writable"),
        (errno.EIO, "Check the disk"),
    ],
)
def test_a_failure_of_the_disk_says_what_to_do(number, fix):
    with (
        pytest.raises(StorageFailed, match=f"^home: .*Nothing was stored. {fix}"),
        files.storage_errors("home"),
    ):
        raise OSError(number, os.strerror(number))


def test_a_home_that_is_gone_is_said_to_be_gone():
    with pytest.raises(NotFound, match="does not exist"), files.storage_errors("home"):
        raise FileNotFoundError(errno.ENOENT, "no")


@rows("kind", [LockTimeout, InvalidInput, StorageFailed])
def test_our_own_errors_pass_unchanged(kind):
    with pytest.raises(kind, match=r"^held"), files.storage_errors("home"):
        raise kind("held", fix="Wait.")


def test_temp_files_of_killed_processes_are_found(tmp_path):
    (tmp_path / "deep").mkdir()
    stray = tmp_path / "deep" / f".memory.json.0123{files.TEMP_SUFFIX}"
    stray.write_bytes(b"")

    assert files.leftover_temps(tmp_path) == [stray]


def test_what_the_last_look_raises_leaves_the_old_file(tmp_path):
    files.write_whole(tmp_path / "a", b"old")

    def look():
        raise ValueError(sorted(path.stat().st_size for path in tmp_path.iterdir()))

    with pytest.raises(ValueError, match=r"\[3, 5\]"):
        files.write_whole(tmp_path / "a", b"newer", last_look=look)

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]
