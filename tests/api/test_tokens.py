from __future__ import annotations

import pytest

import aether
from aether.api import tokens
from aether.errors import BackendUnavailable, InvalidInput, NotFound
from aether.tokens import exact


@pytest.fixture
def no_ranks(monkeypatch):
    monkeypatch.setattr(exact, "_found", lambda known: None)
    exact._encoding.cache_clear()


def test_without_a_home_the_estimate_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    counted = tokens.count_tokens("one two three")

    assert counted.tokens == 3
    assert counted.characters == 13
    assert counted.counter.startswith("estimate")


def test_a_home_that_is_named_and_missing_is_an_error(tmp_path):
    with pytest.raises(NotFound):
        tokens.count_tokens("one", home=tmp_path / "nowhere")


def test_the_counter_of_the_home_counts_and_says_its_name(home):
    tokens.use_counter("estimate", 2.0, home=home)

    counted = tokens.count_tokens("one two three", home=home)

    assert counted.tokens == 6
    assert "× 2" in counted.counter


def test_changing_the_counter_counts_everything_anew(home):
    aether.add_working_memory_item("one two three", "note", home=home)

    tokens.use_counter("estimate", 3.0, home=home)

    assert aether.list_working_memory_items(home=home)[0]["token_count"] == 9
    assert aether.verify_token_limit(home=home).current == 9


def test_a_counter_whose_vocabulary_is_missing_changes_nothing(home, no_ranks):
    before = aether.show("memory", home=home)

    with pytest.raises(BackendUnavailable, match="aether tokens fetch o200k_base"):
        tokens.use_counter("o200k_base", home=home)
    assert aether.show("memory", home=home) == before


def test_calibration_compares_what_the_home_holds_and_may_be_applied(home, monkeypatch):
    aether.add_working_memory_item("one two three four", "note", home=home)
    aether.add_working_memory_item("gone but archived", "note", home=home)
    aether.clear_working_memory(home=home)
    aether.add_working_memory_item("one two", "note", home=home)
    monkeypatch.setattr(tokens, "counter", lambda name, factor=1.0: lambda text: 2 * len(text.split()))

    found = tokens.calibrate(home=home, apply=True)

    assert found.total.samples == 3
    assert aether.show("memory", home=home)["token_counter"]["factor"] == found.factor


def test_nothing_to_calibrate_on_is_said(home):
    with pytest.raises(InvalidInput, match="nothing to calibrate"):
        tokens.calibrate(home=home)


def test_fetching_hands_over_to_the_one_downloader(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(exact, "fetch", lambda name, url: asked.append((name, url)) or tmp_path)

    assert tokens.fetch_vocabulary("o200k_base", url="http://127.0.0.1:1/x") == tmp_path
    assert asked == [("o200k_base", "http://127.0.0.1:1/x")]
