"""A home that a release wrote is loaded, drained, searched, undone and healthy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import aether
from aether.api import conversations
from aether.store import spool

RELEASED = sorted((Path(__file__).parent / "examples/home").glob("*/aether"))


@pytest.fixture(params=RELEASED, ids=lambda path: path.parent.name)
def home(request, tmp_path):
    """Return a copy of the home of a release."""
    return Path(shutil.copytree(request.param, tmp_path / ".aether"))


def problems(home):
    return [finding for finding in aether.examine(home=home) if finding.level != "info"]


def contents(home):
    return [item["content"] for item in aether.list_working_memory_items(home=home)]


def test_a_home_of_a_release_is_drained_searched_and_undone(home):
    assert problems(home) == []
    assert len(spool.waiting(str(home))) == 1

    held = contents(home)
    found = aether.search_memory("What is forbidden on Fridays?", home=home)
    undone = aether.undo(home=home)

    assert spool.waiting(str(home)) == []
    assert {"Never deploy on Fridays.", "A line that only the journal holds."} <= set(held)
    assert "Never deploy on Fridays." in [hit["content"] for hit in found]
    assert undone.revision == 28
    assert contents(home) == [content for content in held if content != "A line that only the journal holds."]
    assert problems(home) == []


def test_a_conversation_of_a_release_is_shown_and_its_compaction_undone(home):
    context = conversations.context("talk", home=home)
    history = conversations.full_history("talk", home=home)

    restored = aether.undo_compaction("talk", home=home)

    assert (len(context), len(history)) == (13, 84)
    assert restored.messages == history == conversations.context("talk", home=home)
    assert problems(home) == []
