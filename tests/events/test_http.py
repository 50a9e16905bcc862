import time

import pytest

from aether.errors import InvalidInput
from aether.events import http
from aether.events.http import address, status_of
from tests.events import viewers
from tests.tables import rows


def soon(seconds=60.0):
    return time.monotonic() + seconds


@rows(
    ("url", "parts"),
    [
        ("http://localhost:5175/ingest", (False, "localhost", 5175, "/ingest")),
        ("https://traces.example/v1?team=a", (True, "traces.example", None, "/v1?team=a")),
        ("http://[::1]:4318", (False, "::1", 4318, "")),
    ],
)
def test_an_address_has_a_scheme_a_host_a_port_and_a_path(url, parts):
    assert tuple(address(url, where="test")) == parts
    assert str(address(url, where="test")) == url


@rows(
    "url",
    [
        "", "localhost:5175", "file:///etc/passwd", "ftp://host/", "http://", "http:///ingest", "http://host:port/",
        "http://host:99999/", "http://[::1/", "http://a b/", "http://host/\r\nX: y", "http://hé/", "http://host/\x7f",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_refused(url):
    with pytest.raises(InvalidInput, match="http or https"):
        address(url, where="test")


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(InvalidInput) as caught:
        address("http://me:hunter2@host/", where="test")

    assert "hunter2" not in str(caught.value)


def test_a_body_is_posted_and_the_status_comes_back():
    with viewers.viewer(204) as found:
        assert status_of(address(found.url, where="test"), deadline=soon(), body=b'{"a": 1}') == 204

    assert found.bodies == [b'{"a": 1}']


def test_without_a_body_it_is_asked_for():
    with viewers.viewer() as found:
        to = address(found.root + "/healthz", where="test")

        assert status_of(to, deadline=soon()) == 200


@pytest.mark.parametrize("step", [viewers.HANGS, viewers.DRIPS])
def test_the_deadline_holds_for_the_whole_answer(step):
    with viewers.viewer(step) as found, pytest.raises(TimeoutError):
        status_of(address(found.url, where="test"), deadline=soon(0.2), body=b"{}")


def test_a_deadline_that_has_passed_is_a_timeout():
    with pytest.raises(TimeoutError):
        status_of(address("http://127.0.0.1:1/", where="test"), deadline=time.monotonic() - 1)


@pytest.mark.parametrize(
    ("step", "words"), [(viewers.DROPS, "closed the connection"), (viewers.RAMBLES, "nothing that is HTTP")]
)
def test_what_is_no_answer_is_an_error(step, words):
    with viewers.viewer(step) as found, pytest.raises(OSError, match=words):
        status_of(address(found.url, where="test"), deadline=soon(), body=b"{}")


def test_a_refusal_before_the_body_was_read_is_still_understood(monkeypatch):
    def broken(connection, *_request):
        connection.sock.sendall(b"POST /ingest HTTP/1.1\r\nContent-Length: 999999\r\n\r\n")
        raise BrokenPipeError

    monkeypatch.setattr(http.http.client.HTTPConnection, "request", broken)
    with viewers.viewer() as found:
        assert status_of(address(found.url, where="test"), deadline=soon(), body=b"{}") == 413


def test_a_server_that_is_not_there_is_an_error():
    with viewers.viewer() as found:
        gone = address(found.url, where="test")

    with pytest.raises(ConnectionRefusedError):
        status_of(gone, deadline=soon(), body=b"{}")


def test_what_the_client_itself_refuses_is_an_error_of_the_connection(monkeypatch):
    def refuse(*_args, **_named):
        raise http.http.client.InvalidURL("nonnumeric port")

    monkeypatch.setattr(http.http.client.HTTPConnection, "connect", refuse)

    with pytest.raises(OSError, match="nonnumeric port"):
        status_of(address("http://127.0.0.1:1/", where="test"), deadline=soon())


def test_a_secure_address_is_spoken_to_securely():
    """The loopback server speaks no TLS: the handshake fails, nothing is sent in the clear."""
    with viewers.viewer() as found:
        to = address(found.url, where="test")._replace(secure=True)

        with pytest.raises(OSError):
            status_of(to, deadline=soon(), body=b"secret")

    assert found.bodies == []
