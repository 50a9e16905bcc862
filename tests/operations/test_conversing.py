"""Conversations as an agent's memory: what is live, what was ever said, and where it is kept."""

from __future__ import annotations

import pytest

from aether.errors import NotFound
from aether.operations import conversing

FIRST, SECOND = {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}


def test_what_is_added_is_live_and_whole(home):
    conversing.add("c", [FIRST], home=home)
    conversing.add("c", [], home=home)
    conversing.add("c", [SECOND], home=home)

    assert conversing.context("c", home=home) == conversing.whole("c", home=home) == [FIRST, SECOND]
    assert conversing.context("other", home=home) == []
    assert conversing.names(home=home) == ["c"]


def test_what_is_taken_back_stays_in_the_whole(home):
    conversing.add("c", [FIRST, SECOND], home=home)

    assert conversing.take_back("c", home=home) == SECOND
    assert conversing.context("c", home=home) == [FIRST]
    assert conversing.whole("c", home=home) == [FIRST, SECOND]
    assert conversing.take_back("nobody", home=home) is None


def test_begun_anew_nothing_is_live(home):
    conversing.add("c", [FIRST], home=home)
    conversing.begin_anew("c", home=home)
    conversing.add("c", [SECOND], home=home)

    assert conversing.context("c", home=home) == [SECOND]
    assert conversing.whole("c", home=home) == [FIRST, SECOND]


def test_without_a_home_there_is_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    conversing.add("c", [FIRST])

    assert (tmp_path / ".compact" / "conversations").is_dir()
    assert conversing.place(None) == tmp_path / ".compact"
    assert conversing.context("c", home=tmp_path / ".compact") == [FIRST]


def test_a_directory_of_its_own_may_be_named(tmp_path):
    assert conversing.place(tmp_path / "deep" / ".compact") == tmp_path / "deep" / ".compact"
    assert (tmp_path / "deep" / ".compact").is_dir()


def test_a_home_is_used_where_there_is_one(home, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(home))

    assert conversing.place(None) == home


def test_a_named_directory_that_is_no_home_is_refused(tmp_path):
    with pytest.raises(NotFound):
        conversing.add("c", [FIRST], home=tmp_path)
