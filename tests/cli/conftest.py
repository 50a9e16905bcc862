"""A home with items in it, in the current directory, and no network for vocabularies."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from aether.api import tokens
from aether.sharing import ledgers
from aether.tokens import exact
from aether.view import app
from tests.cli import example_ledger, stage


@pytest.fixture(autouse=True)
def _interrupts():
    """Ctrl-C stops the tests, also after a command that ended with its process in mind."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Stand in a directory with a home; returns what the variables of the examples stand for."""
    monkeypatch.chdir(tmp_path)
    # A view is served until Ctrl-C, by packages that may be missing.
    served = SimpleNamespace(
        address="http://127.0.0.1:8010/?token=key",
        serve=lambda: None,
        entrance=lambda directory: directory / "aether.html",
    )
    monkeypatch.setattr(app, "View", lambda home, **given: served)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setitem(ledgers.MODULES, "postgresql://", example_ledger.__name__)
    monkeypatch.setenv(ledgers.URL, "postgresql://db.example/memory")
    monkeypatch.setattr("aether.cli.rule.is_typed", lambda: True)
    return stage.prepared(tmp_path)


@pytest.fixture
def vocabulary(monkeypatch, tmp_path):
    """Pretend that an exact vocabulary is there and can be fetched: these tests are about the command line."""
    monkeypatch.setattr(exact, "exact", lambda name, text: len(text.split()))
    monkeypatch.setattr(tokens, "fetch_vocabulary", lambda name, url="": tmp_path / name)
