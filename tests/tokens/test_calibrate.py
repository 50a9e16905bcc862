"""Calibration measures the estimate against an exact counter and finds one factor."""

from __future__ import annotations

import pytest

from aether.errors import InvalidInput
from aether.tokens.counters import calibrate, counter
from aether.tokens.estimate import estimate
from tests.tokens.samples import O200K_COUNTS, text_of

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


def test_a_home_keeps_the_counter_and_the_factor():
    found = calibrate([("prose", "one two three four")], lambda _: 5)

    assert found.record() == {"counter": "estimate", "factor": 1.25}


def test_a_factor_is_never_zero():
    assert calibrate([("prose", "word " * 9000)], lambda _: 1).factor > 0


@pytest.mark.parametrize("samples", [[], [("prose", "")]])
def test_without_tokens_there_is_nothing_to_calibrate_on(samples):
    with pytest.raises(InvalidInput, match="at least one text"):
        calibrate(samples, estimate)
