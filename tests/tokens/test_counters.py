"""Counters by name, and the calibration of the estimate."""

from __future__ import annotations

import pytest

from aether.errors import BackendUnavailable, InvalidInput
from aether.tokens import exact
from aether.tokens.counters import calibrate, counter, label
from aether.tokens.estimate import estimate
from tests.tables import rows
from tests.tokens.samples import O200K_COUNTS, text_of


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


EXACT = {text_of(kind): tokens for kind, tokens in O200K_COUNTS.items()}


def test_each_kind_has_a_row_in_order():
    found = calibrate([("b", "one two"), ("a", "three"), ("b", "four")], lambda _: 2)

    assert [(row.kind, row.samples, row.exact) for row in found.rows] == [("b", 2, 4), ("a", 1, 2)]


def test_the_factor_makes_the_sum_right():
    samples = [(kind, text_of(kind)) for kind in O200K_COUNTS]
    found = calibrate(samples, lambda text: 2 * EXACT[text])
    corrected = counter("estimate", found.factor)

    assert sum(corrected(text) for _, text in samples) == pytest.approx(
        2 * sum(O200K_COUNTS.values()), rel=0.002
    )


@pytest.mark.parametrize("samples", [[], [("prose", "")]])
def test_without_tokens_there_is_nothing_to_calibrate_on(samples):
    with pytest.raises(InvalidInput, match="at least one text"):
        calibrate(samples, estimate)
