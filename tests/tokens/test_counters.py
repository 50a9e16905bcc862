"""Counters by name."""

from __future__ import annotations

import pytest

from aether.errors import BackendUnavailable, InvalidInput
from aether.tokens import exact
from aether.tokens.counters import counter, label
from tests.tables import rows


def test_a_factor_scales_and_rounds():
    assert counter("constant:10", 1.26)("text") == 13


class OneTokenPerLetter:
    """Stands for a vocabulary that is on the machine."""

    def encode_ordinary(self, text):
        return list(text)


def test_an_exact_counter_counts_exactly(monkeypatch):
    monkeypatch.setattr(exact, "_encoding", {"cl100k_base": OneTokenPerLetter()}.__getitem__)

    assert counter("cl100k_base")("four") == 4


def test_making_an_exact_counter_needs_no_ranks_but_counting_does(monkeypatch):
    monkeypatch.setattr(exact, "_rank_file", lambda known: None)
    exact._encoding.cache_clear()
    count = counter("o200k_base")

    with pytest.raises(BackendUnavailable, match="aether tokens fetch o200k_base"):
        count("text")


@rows("name", ["", "gpt", "Estimate", "constant:", "constant:0", "constant:-1", "constant:²", "constant:1.5"])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(InvalidInput, match="estimate, o200k_base, cl100k_base"):
        counter(name)
    with pytest.raises(InvalidInput):
        label(name)


@rows("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_that_is_no_factor_is_refused(factor):
    with pytest.raises(InvalidInput, match="factor"):
        counter("estimate", factor)


def test_labels_say_how_exact_a_counter_is():
    assert [label(name) for name in ("estimate", "cl100k_base", "constant:3")] == [
        "estimate (about ±10 %)",
        "cl100k_base (exact)",
        "constant:3 (for tests)",
    ]
