"""The guards of the suite hold."""

import os
import re
import socket
import tempfile
import types
from pathlib import Path

import pytest

from aether import paths
from aether.errors import NotFound
from tests import homes

# The package anthropic is always there.
OPTIONAL = re.compile(r"importorskip\((?!\"anthropic)")
MARKS = re.compile(r"mark\.\w+")


def test_no_home_is_found_by_accident():
    with pytest.raises(NotFound):
        paths.find_home()


def test_a_home_outside_the_temporary_directories_is_an_error():
    with pytest.raises(AssertionError, match="/somewhere"):
        paths.find_home("/somewhere/.aether")


def test_a_place_in_memory_is_used_only_with_room_and_where_programs_start(tmp_path, monkeypatch):
    if not hasattr(os, "ST_NOEXEC"):
        pytest.skip("no such flag here")
    usual = tempfile.gettempdir()

    def found(free, flag=0, place=tmp_path):
        made = types.SimpleNamespace(f_bavail=free, f_frsize=1, f_flag=flag)
        monkeypatch.setattr(os, "statvfs", lambda path: made)
        return homes._in_memory(str(place))

    assert found(homes.ROOM_BYTES) == str(tmp_path)
    assert found(homes.ROOM_BYTES - 1) == usual
    assert found(homes.ROOM_BYTES, os.ST_NOEXEC) == usual
    assert found(homes.ROOM_BYTES, place=tmp_path / "missing") == usual


def test_another_machine_cannot_be_reached():
    with socket.socket() as one, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        one.connect(("192.0.2.1", 80))


def test_another_machine_cannot_be_looked_up():
    with pytest.raises(AssertionError, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())


def test_a_test_that_needs_an_optional_package_is_found_by_its_mark():
    """Or continuous integration would never run it: it runs those marked `extras` or `slow` once those are installed."""
    tests = Path(__file__).parent
    sources = {path: path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py")}

    skipping = [path for path, text in sources.items() if OPTIONAL.search(text) and path != Path(__file__)]
    unmarked = [
        path for path in skipping if not {"mark.extras", "mark.slow"} & set(MARKS.findall(sources[path]))
    ]

    assert len(skipping) > 5
    assert unmarked == []
