"""Laws of the token estimate: for any text at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aether.tokens.counters import counter
from aether.tokens.estimate import CUT_BOUND, PAIRED_LETTERS, estimate


def any_text() -> st.SearchStrategy[str]:
    """Any characters, lone surrogates and NUL included."""
    return st.text(st.characters(codec=None))


def dense_text() -> st.SearchStrategy[str]:
    """Long runs from few characters: rare letter pairs, repetition, white space, signs."""
    runs = st.builds(
        lambda unit, times: unit * times,
        st.text(st.sampled_from("qxzjeaZQ \n\t-=\"'({1é中ж😀│"), min_size=1, max_size=4),
        st.integers(1, 3 * PAIRED_LETTERS),
    )
    return st.lists(runs, max_size=6).map("".join)


@given(any_text())
def test_only_the_empty_text_has_no_tokens(text):
    assert (estimate(text) == 0) == (text == "")


@given(any_text())
def test_a_text_has_at_most_three_tokens_per_character(text):
    """Bytes bound tokens from above, so a budget in tokens is also one in characters."""
    assert estimate(text) <= 3 * len(text) + 1


@given(any_text())
def test_counting_twice_gives_the_same(text):
    assert estimate(text) == estimate(text)


@given(any_text() | dense_text(), any_text() | dense_text())
def test_a_cut_changes_the_sum_by_a_bounded_number_of_tokens(first, second):
    """The bound holds wherever the cut falls, inside a word, a number or a run of spaces."""
    assert abs(estimate(first + second) - estimate(first) - estimate(second)) <= CUT_BOUND


@given(
    st.lists(
        st.sampled_from(["The lock was lost.", "x = f(1)", "中文测试", "/tmp/a.txt", '{"k": 1}']), min_size=1
    )
)
def test_lines_cost_what_they_cost_alone(lines):
    """At line ends the sum is off by less than one token per line."""
    whole = estimate("\n".join(lines))

    assert abs(whole - sum(estimate(line + "\n") for line in lines)) <= len(lines)


@given(dense_text(), st.floats(0.5, 2.0))
def test_a_factor_scales_to_the_nearest_token(text, factor):
    scaled = counter("estimate", factor)(text)

    assert scaled == 0 if not text else scaled == max(1, round(estimate(text) * factor))
