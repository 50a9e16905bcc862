"""The guards of the suite hold."""

import socket

import pytest

from aether import paths
from aether.errors import NotFound


def test_no_home_is_found_by_accident():
    with pytest.raises(NotFound):
        paths.find_home()


def test_a_home_outside_the_temporary_directories_is_an_error():
    with pytest.raises(AssertionError, match="/somewhere"):
        paths.find_home("/somewhere/.aether")


def test_another_machine_cannot_be_reached():
    with socket.socket() as one, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        one.connect(("192.0.2.1", 80))


def test_another_machine_cannot_be_looked_up():
    with pytest.raises(AssertionError, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
