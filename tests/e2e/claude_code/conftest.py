"""A stage for the real Claude Code; whoever tries to reach another machine fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.claude_code import driver, server
from tests.e2e.claude_code.driver import Stage
from tests.e2e.claude_code.server import Script

# What the tests assert was seen with this version; earlier ones ask and compact in other ways.
LEAST = (2, 1, 329)


@pytest.fixture(scope="session")
def _claude() -> None:
    if not driver.claude():
        pytest.skip("no Claude Code here: put claude on PATH, or name it in AETHER_TEST_CLAUDE")
    if driver.version() < LEAST:
        pytest.skip(f"Claude Code {driver.version()} is older than {LEAST}")


@contextmanager
def _opened(root: Path, script: Script) -> Iterator[Stage]:
    with server.serving(script) as api, server.trap() as (proxy, attempts):
        yield driver.stage(root, api=api, proxy=proxy)
        assert attempts == [], "something tried to leave the machine"
        assert api.others == [], "something asked the API for more than messages"


@pytest.fixture
def stage(_claude, tmp_path) -> Iterator[Callable[[Script], Stage]]:
    """Set a stage for a script."""
    with ExitStack() as opened:
        yield lambda script: opened.enter_context(_opened(tmp_path, script))


@pytest.fixture(scope="module")
def shared_stage(_claude, tmp_path_factory) -> Iterator[Callable[[Script], Stage]]:
    """Set a stage for a script whose recording several tests read."""
    with ExitStack() as opened:
        yield lambda script: opened.enter_context(_opened(tmp_path_factory.mktemp("stage"), script))
