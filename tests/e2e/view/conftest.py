"""The sample home, made once and copied; the server and the browser where a test asks for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aether.store import snapshot
from tests.e2e.view import sample, stage


@pytest.fixture(scope="session")
def _sample(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("user")))
        return sample.make(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def harbour(_sample, tmp_path) -> Path:
    """Return a copy of the sample home, with its transcripts beside it."""
    shutil.copytree(_sample.parent, tmp_path / "harbour")
    home = tmp_path / "harbour" / _sample.name
    snapshot.load(home)
    return home


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return the system's Chromium, driven by Playwright; while it runs, no other event loop can."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    pytest.importorskip("uvicorn", reason="the extra view is not installed")
    found = stage.chromium()
    if not found:
        pytest.skip("no Chromium here: install the package chromium, or name one in AETHER_TEST_CHROMIUM")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=found, args=list(stage.CHROMIUM_OPTIONS))
        yield running
        running.close()


@pytest.fixture
def view(browser) -> Iterator[Callable[..., stage.Served]]:
    """Serve homes until the test is over."""
    with ExitStack() as opened:
        yield lambda home, *options: opened.enter_context(stage.viewing(home, *options))


@pytest.fixture
def visit(browser, view) -> Iterator[Callable[..., stage.Visitor]]:
    """Let persons come to a served home; each leaves, and is checked, before the server ends."""
    with ExitStack() as opened:

        def come(served: stage.Served | None, **options: Any) -> stage.Visitor:
            visitor = stage.Visitor(browser, served, **options)
            opened.callback(visitor.leave)
            return visitor

        yield come
