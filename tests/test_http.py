import contextlib
import socket
import threading

import pytest

from aether.errors import InvalidInput
from aether.http import address, request
from tests.events import viewers


def asked(url, seconds=5.0, **more):
    return request(address(url, where="test"), timeout_seconds=seconds, **more)


@contextlib.contextmanager
def answering(*blocks, pause=0.0):
    """Serve one connection on the loopback interface with these bytes, and yield the address."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)
    stop = threading.Event()

    def serve():
        peer = None
        while peer is None and not stop.is_set():
            with contextlib.suppress(TimeoutError):
                peer = server.accept()[0]
        if peer is None:
            return
        with contextlib.suppress(OSError), peer:
            peer.recv(65536)
            for block in blocks:
                peer.sendall(block)
                if stop.wait(pause):
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
    finally:
        stop.set()
        thread.join()
        server.close()


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def test_a_body_is_posted_and_the_reply_comes_back():
    with viewers.viewer(204) as found:
        reply = asked(found.url, body=b'{"a": 1}', headers={"Content-Type": "application/json"})

    assert (reply.status, reply.reason, reply.failure) == (204, "No Content", "")
    assert found.bodies == [b'{"a": 1}']


def test_without_a_body_it_is_a_get():
    with viewers.viewer() as found:
        reply = asked(found.root + "/healthz")

    assert (reply.status, reply.content) == (200, b"{}")


def test_the_content_may_be_left_unread():
    with viewers.viewer() as found:
        assert asked(found.root + "/healthz", most_bytes=0).content == b""


@pytest.mark.parametrize("step", [viewers.HANGS, viewers.DRIPS])
def test_the_deadline_holds_for_the_whole_answer(step):
    with viewers.viewer(step) as found:
        reply = asked(found.url, 0.3, body=b"{}")

    # After a minute the viewer closes the connection, which is another failure.
    assert (reply.status, reply.failure) == (0, "timeout")


@pytest.mark.parametrize(
    "before", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"]
)
def test_a_server_that_drips_headers_or_content_does_not_hold_the_caller(before):
    with answering(before, *[b"x"] * 200, pause=0.1) as url:
        assert asked(url, 0.5).failure == "timeout"


def test_a_deadline_that_has_passed_is_a_timeout():
    with viewers.viewer() as found:
        assert asked(found.url, 1e-9).failure == "timeout"


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [b"rambling on"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"],
        [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone"],
    ],
    ids=["closed", "no HTTP", "truncated", "truncated chunk", "undecodable"],
)
def test_half_an_answer_is_dropped_and_says_why(blocks):
    with answering(*blocks) as url:
        reply = asked(url)

    assert (reply.status, reply.failure) == (0, "dropped")
    assert reply.reason


def test_a_refusal_whose_body_breaks_off_keeps_its_status():
    with answering(b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nhalf") as url:
        reply = asked(url)

    assert (reply.status, reply.content, reply.reason) == (500, b"", "Oh")


def test_an_endless_answer_is_given_up():
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + b"x" * 11) as url:
        reply = asked(url, most_bytes=10)

    assert (reply.failure, reply.reason) == ("dropped", "the answer is larger than 10 bytes")


def test_a_refusal_before_the_body_was_read_is_still_understood():
    with viewers.viewer(viewers.REFUSES_UNREAD) as found:
        assert asked(found.url, body=b"{}").status == 413


def test_a_server_that_is_not_there_is_unreachable():
    with viewers.viewer() as found:
        pass

    reply = asked(found.url, body=b"{}")

    assert reply.failure == "unreachable"
    assert "refused" in reply.reason


def test_a_secure_address_is_spoken_to_securely():
    """The loopback server speaks no TLS: the handshake fails, nothing is sent in the clear."""
    with viewers.viewer() as found:
        assert asked(found.url.replace("http:", "https:"), body=b"secret").failure == "unreachable"

    assert found.bodies == []


MOVED = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"


def test_a_redirect_is_followed_only_on_demand():
    with viewers.viewer() as found:
        there = (found.root + "/healthz").encode()
        with answering(MOVED % there) as url:
            assert asked(url).status == 302
        with answering(MOVED % there) as url:
            assert asked(url, redirects=True).status == 200


@pytest.mark.parametrize("word", ["{}", "http://{}"])
def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch, word):
    with answering(b"HTTP/1.1 203 By Proxy\r\nContent-Length: 0\r\n\r\n") as proxy, viewers.viewer() as found:
        monkeypatch.setenv("http_proxy", word.format(proxy.removeprefix("http://").strip("/")))
        monkeypatch.delenv("no_proxy", raising=False)

        assert asked(found.root + "/healthz").status == 200
        assert asked("http://far.invalid/").status == 203


def test_a_proxy_can_be_left_out(monkeypatch):
    with answering(b"HTTP/1.1 203 By Proxy\r\nContent-Length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("http_proxy", proxy)

        assert asked("http://127.0.0.2:1/", proxies=False).failure == "unreachable"
        monkeypatch.setenv("no_proxy", "127.0.0.2")
        assert asked("http://127.0.0.2:1/").failure == "unreachable"


def test_a_proxy_of_an_unknown_kind_is_unreachable(monkeypatch):
    monkeypatch.setenv("http_proxy", "gopher://127.0.0.1:1")

    assert asked("http://far.invalid/").failure == "unreachable"
