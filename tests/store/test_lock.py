import errno
import os
import signal
import subprocess
import sys
import threading
import time

import filelock
import pytest

from aether.errors import LockTimeout, NotFound, StorageFailed
from aether.store import files
from aether.store.files import locked
from tests.crash import faults

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


def test_the_name_of_a_holder_that_is_gone_does_not_lock(home):
    (home / "lock").write_text("process 1: aether\n")

    with locked(home, timeout=0):
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


def test_an_error_in_the_block_frees_the_lock(home):
    with pytest.raises(KeyError), locked(home):
        raise KeyError

    with locked(home, timeout=0):
        pass


def test_filelock_waits_for_our_lock(home):
    with locked(home), pytest.raises(filelock.Timeout):
        filelock.FileLock(home / "lock", timeout=0.05).acquire()


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


def test_a_timeout_of_filelock_is_ours(home, holder, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(LockTimeout, match="held by process"), locked(home, timeout=0.05):
        pass


def test_a_home_that_is_gone_cannot_be_locked(tmp_path):
    with pytest.raises(NotFound, match="does not exist"), locked(tmp_path / "none"):
        pass


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_home_that_cannot_be_written_cannot_be_locked(home, monkeypatch, number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(StorageFailed, match="Make the home writable"), locked(home):
        pass


def test_a_lock_on_a_home_that_was_made_anew_meanwhile_is_taken_again(home, monkeypatch):
    real = files._wait
    seen = []

    def wait(handle, path, timeout, give_up):
        real(handle, path, timeout, give_up)
        if not seen:
            path.unlink()
            path.touch()
        seen.append(handle)

    monkeypatch.setattr(files, "_wait", wait)

    with locked(home):
        assert len(seen) == 2
        with pytest.raises(LockTimeout), locked(home, timeout=0):
            pass


def test_a_full_disk_does_not_keep_a_holder_from_signing(home, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", refuse)

    with locked(home):
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

    with pytest.raises(StorageFailed), locked(tmp_path / "home", timeout=0.1):
        pass
    assert (tmp_path / "rc").read_text() == "alias ll='ls -l'\n"
