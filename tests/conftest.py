"""Guards of the whole suite: no test touches a home it did not choose, or a machine other than this one."""

from __future__ import annotations

import gc
import ipaddress
import os
import shutil
import socket
import socketserver
import tempfile
from pathlib import Path

import pytest

from aether import paths
from aether.hosts import answer
from aether.store.authors import PERSON, QUEEN
from tests import effort, homes, postgres_server
from tests.colonies import colony  # noqa: F401 - a fixture

effort.load_profile()
# Where pytest makes its temporary directories, those of each worker too.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", homes.IN_MEMORY)


def pytest_collection_finish():
    """Let garbage collections pass over what the collected tests made: it stays, and it is most of what there is."""
    gc.collect()
    gc.freeze()


class YouForgotToChooseAHome(AssertionError):
    """A test reached a home outside its temporary directories."""


class NoNetwork(AssertionError):
    """A test tried to reach another machine."""


@pytest.fixture(autouse=True)
def _only_chosen_homes(monkeypatch, tmp_path_factory):
    """Stand in an empty directory, with no home or user's settings named; a home that is found elsewhere is an error."""
    temporary = [tempfile.gettempdir(), tmp_path_factory.getbasetemp(), homes.IN_MEMORY]
    allowed = [Path(directory).resolve() for directory in temporary]
    real = paths.find_home

    def find_home(home=None):
        found = real(home)
        if not any(found.is_relative_to(root) for root in allowed):
            raise YouForgotToChooseAHome(found)
        return found

    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    nowhere.mkdir(exist_ok=True)
    monkeypatch.setattr(paths, "find_home", find_home)
    for name in ("AETHER_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.chdir(nowhere)
    PERSON.set(QUEEN)  # a command of an earlier test in this process named the user


@pytest.fixture(autouse=True)
def _nothing_is_late(monkeypatch):
    """Do at once, in this process, what a hook leaves to a process of its own at the end of a turn."""
    start = answer.start_process

    def started(home, words, **variables):
        if words[1] == answer.__name__:
            answer.main(*words[2:])
        else:
            start(home, words, **variables)

    monkeypatch.setattr(answer, "start_process", started)


@pytest.fixture(autouse=True, scope="session")
def _nothing_left(request, tmp_path_factory):
    """Free the memory at the end, unless a failure is to be looked into; not after each test, which may patch `os` still."""
    yield
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.fixture(autouse=True, scope="session")
def _quiet_servers():
    """Let a loopback server whose client went away print nothing, for it would be read as the output of a test."""
    patch = pytest.MonkeyPatch()
    patch.setattr(socketserver.BaseServer, "handle_error", lambda *_: None)
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def _only_loopback():
    """Refuse every connection and every name that leads to another machine."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    real = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        _require_loopback(host)
        return real(host, *args, **kwargs)

    patch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    patch.undo()


def _guarded(method):
    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _require_loopback(address[0])
        return method(self, address)

    return connect


def _require_loopback(host):
    host = host.decode() if isinstance(host, bytes) else host
    if host in (None, "", "localhost"):
        return
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise NoNetwork(host)


@pytest.fixture
def home(tmp_path):
    """Return a fresh home with the shipped documents in it."""
    return homes.fresh(tmp_path)


@pytest.fixture(scope="session")
def postgres():
    """Run a PostgreSQL on a socket; a test that changes more than a colony of its own takes a database of its own."""
    with postgres_server.running() as server:
        yield server
