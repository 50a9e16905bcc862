"""Exact counting uses what is on the machine, checks it, and downloads only when asked."""

from __future__ import annotations

import base64
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from aether.api.tokens import fetch_vocabulary
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput, StorageFailed
from aether.tokens import exact
from tests.tables import rows

MERGES = [b"ab", b"abc", b" a"]
CONTENT = b"".join(
    base64.b64encode(token) + b" %d\n" % rank
    for rank, token in enumerate([bytes([byte]) for byte in range(256)] + MERGES)
)
KNOWN = exact.RankFile("https://ranks.invalid/tiny.tiktoken", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine without rank files, on which o200k_base is a tiny vocabulary; returns its caches by name."""
    caches = {name: tmp_path / name for name in ("tiktoken", "gym", "temporary", "xdg")}
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(caches["tiktoken"]))
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(caches["gym"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches["xdg"]))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(caches["temporary"]))
    monkeypatch.setattr(
        exact, "RANK_FILES", {"o200k_base": KNOWN, "cl100k_base": KNOWN._replace(url="other")}
    )
    exact._encoding.cache_clear()
    yield caches
    exact._encoding.cache_clear()


def place(directory: Path, content: bytes = CONTENT) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / KNOWN.file_name
    path.write_bytes(content)
    return path


class Server:
    """A loopback server that answers every request in one way, and remembers how many came."""

    def __init__(self, content: bytes, status: int = 200, announced: int | None = None):
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests += 1
                self.send_response(status)
                self.send_header("Content-Length", str(announced or len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                """Stay silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ranks"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.mark.parametrize("where", ["tiktoken", "gym", "temporary", "xdg"])
def test_ranks_are_found_where_tiktoken_and_aether_keep_them(machine, where):
    place(machine[where] / "aether" / "tokens" if where == "xdg" else
                 machine[where] / "data-gym-cache" if where == "temporary" else machine[where])  # fmt: skip

    assert exact.exact("o200k_base", "abc ab a") == 4
    with pytest.raises(BackendUnavailable, match="rank file of cl100k_base"):
        exact.exact("cl100k_base", "abc ab a")


def test_tokens_are_merged_as_the_ranks_say(machine):
    place(machine["tiktoken"])

    assert [exact.exact("o200k_base", text) for text in ("", "abc", "abcab", "xyz", " a", "界")] == [
        0,
        1,
        2,
        3,
        1,
        3,
    ]


def test_special_tokens_in_a_text_are_plain_text(machine):
    place(machine["tiktoken"])

    assert exact.exact("o200k_base", "<|endoftext|>") == len("<|endoftext|>")


def test_lone_surrogates_and_nul_are_counted(machine):
    place(machine["tiktoken"])

    assert exact.exact("o200k_base", "\ud800") == 3
    assert exact.exact("o200k_base", "\0") == 1


def test_the_module_of_tiktoken_stays_as_it_was(machine):
    from tiktoken_ext import openai_public

    before = openai_public.load_tiktoken_bpe
    place(machine["tiktoken"])
    exact.exact("o200k_base", "abc")

    assert openai_public.load_tiktoken_bpe is before


def test_a_damaged_file_is_passed_over_and_left_alone(machine):
    damaged = place(machine["tiktoken"], b"YQ== 0\n")
    place(machine["gym"])

    assert exact.exact("o200k_base", "abc ab a") == 4
    assert damaged.read_bytes() == b"YQ== 0\n"


def test_missing_ranks_are_an_error_with_advice_and_no_download(machine):
    place(machine["tiktoken"], b"damaged")

    with pytest.raises(BackendUnavailable, match=r'aether tokens fetch o200k_base.*"estimate"'):
        exact.exact("o200k_base", "text")


def test_a_missing_package_is_an_error_with_advice(machine, monkeypatch):
    place(machine["tiktoken"])
    monkeypatch.setitem(__import__("sys").modules, "tiktoken", None)

    with pytest.raises(BackendUnavailable, match="tiktoken is missing"):
        exact.exact("o200k_base", "text")


@rows("function", [fetch_vocabulary, lambda name: exact.exact(name, "text")])
def test_an_unknown_vocabulary_is_refused(function):
    with pytest.raises(InvalidInput, match="o200k_base"):
        function("p50k_base")


def test_without_a_home_directory_the_other_caches_still_work(machine, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(exact.Path, "home", no_home)
    place(machine["tiktoken"])

    assert exact.exact("o200k_base", "abc ab a") == 4
    with pytest.raises(BackendUnavailable, match="XDG_CACHE_HOME"):
        exact.cache_directory()


def test_fetched_ranks_are_used_from_then_on(machine):
    with pytest.raises(BackendUnavailable):
        exact.exact("o200k_base", "abc")

    with Server(CONTENT) as server:
        path = fetch_vocabulary("o200k_base", url=server.url)

    assert path == exact.cache_directory() / KNOWN.file_name
    assert exact.exact("o200k_base", "abc") == 1


def test_an_intact_file_is_not_fetched_again():
    with Server(CONTENT) as server:
        for _ in range(2):
            fetch_vocabulary("o200k_base", url=server.url)

    assert server.requests == 1


def test_a_damaged_file_in_the_target_is_replaced_by_the_fetched_one():
    path = place(exact.cache_directory(), b"damaged")

    with Server(CONTENT) as server:
        fetch_vocabulary("o200k_base", url=server.url)

    assert path.read_bytes() == CONTENT


@rows(
    ("answer", "message"),
    [
        ({"content": b"<html>log in first</html>"}, "checksum differs"),
        ({"content": b"gone", "status": 404}, "answered 404"),
        ({"content": CONTENT[:100], "announced": len(CONTENT)}, "cut off|checksum differs"),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_stored(answer, message):
    with Server(**answer) as server, pytest.raises(BackendFailed, match=message):
        fetch_vocabulary("o200k_base", url=server.url)

    assert not exact.cache_directory().exists()


def test_a_directory_that_cannot_be_made_is_a_storage_error(machine):
    machine["xdg"].write_text("in the way")

    with Server(CONTENT) as server, pytest.raises(StorageFailed, match="Nothing was stored"):
        fetch_vocabulary("o200k_base", url=server.url)
