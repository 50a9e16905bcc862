"""A bucket of moto's server on loopback, for all tests of buckets."""

from __future__ import annotations

import threading

import pytest

from aether.storage import s3


@pytest.fixture(scope="session")
def server():
    """Run moto's server; return its address."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    application, turn = moto.DomainDispatcherApplication, threading.Lock()
    answer = application.__call__

    def in_turn(self, *request):
        # A service checks the condition of a write and writes in one step; moto's threads do one after the other.
        with turn:
            return answer(self, *request)

    application.__call__ = in_turn
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()
    application.__call__ = answer


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    """Give the SDK credentials that no server knows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(s3, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def bucket(server, monkeypatch, request):
    """Return a fresh bucket of moto, which the environment names as the endpoint."""
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    name = f"b{abs(hash(request.node.name))}"
    boto3.client("s3").create_bucket(Bucket=name)
    return name
