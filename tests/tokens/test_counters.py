"""Counters by name, and the calibration of the estimate."""

from __future__ import annotations

import pytest

from aether.errors import BackendUnavailable, InvalidInput
from aether.tokens import exact
from aether.tokens.counters import calibrate, counter, label
from aether.tokens.estimate import estimate
from tests.tables import rows
from tests.tokens.samples import O200K_COUNTS, text_of


def test_estimate_is_the_plain_function():
    assert counter("estimate") is estimate


def test_a_factor_scales_and_rounds():
    assert counter("constant:10", 1.26)("text") == 13


def test_a_factor_never_makes_text_free():
    assert counter("constant:1", 0.001)("text") == 1
    assert counter("constant:1", 0.001)("") == 0


def test_a_constant_counts_every_text_the_same():
    count = counter("constant:42")

    assert (count("a"), count("a" * 100), count("")) == (42, 42, 0)


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


def test_a_label_shows_the_factor():
    assert label("estimate", 1.25).endswith("× 1.25")


def test_every_vocabulary_that_can_be_fetched_is_a_counter():
    assert [label(name) for name in exact.RANK_FILES] == [f"{name} (exact)" for name in exact.RANK_FILES]


def test_one_name_and_factor_are_one_counter():
    """Equality shows whether two counts are by the same counter."""
    assert counter("o200k_base", 1.3) is counter("o200k_base", 1.3)
    assert counter("o200k_base", 1.3) != counter("o200k_base", 1.2)


EXACT = {text_of(kind): tokens for kind, tokens in O200K_COUNTS.items()}


def test_each_kind_has_a_row_in_order():
    found = calibrate([("b", "one two"), ("a", "three"), ("b", "four")], lambda _: 2)

    assert [(row.kind, row.samples, row.exact) for row in found.rows] == [("b", 2, 4), ("a", 1, 2)]


def test_errors_are_shares_of_the_exact_count():
    text = "one two three four five"
    found = calibrate([("prose", text), ("prose", text)], lambda _: 4)

    assert estimate(text) == 5
    assert (found.total.error, found.rows[0].worst) == (0.25, 0.25)


def test_the_worst_sample_keeps_its_sign():
    counts = iter([10, 6])
    found = calibrate([("prose", "one two three four five")] * 2, lambda _: next(counts))

    assert found.total.worst == -0.5


def test_the_factor_makes_the_sum_right():
    samples = [(kind, text_of(kind)) for kind in O200K_COUNTS]
    found = calibrate(samples, lambda text: 2 * EXACT[text])
    corrected = counter("estimate", found.factor)

    assert sum(corrected(text) for _, text in samples) == pytest.approx(
        2 * sum(O200K_COUNTS.values()), rel=0.002
    )


def test_the_estimate_calibrated_by_itself_needs_no_correction():
    found = calibrate([("prose", "The estimate agrees with itself.")], estimate)

    assert (found.factor, found.total.error) == (1.0, 0.0)


def test_a_factor_is_never_zero():
    assert calibrate([("prose", "word " * 9000)], lambda _: 1).factor > 0


@pytest.mark.parametrize("samples", [[], [("prose", "")]])
def test_without_tokens_there_is_nothing_to_calibrate_on(samples):
    with pytest.raises(InvalidInput, match="at least one text"):
        calibrate(samples, estimate)
