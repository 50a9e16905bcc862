"""Laws of the token estimate: for any text at all."""

from __future__ import annotations

import random
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import aether
from aether.errors import BackendUnavailable
from aether.messages import convert
from aether.tokens import exact
from aether.tokens.count import message_tokens, system_tokens
from aether.tokens.counters import counter
from aether.tokens.estimate import (
    _CACHED_CHARS,
    _FREQUENT_HAN,
    _PRICES,
    _WINDOW,
    CUT_BOUND,
    PAIRED_LETTERS,
    _joined,
    _price_of_no_prose,
    _price_of_pieces,
    estimate,
    price,
)
from tests import homes

if TYPE_CHECKING:
    import tiktoken


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


@example("a   b")
@example("a\n \nb \t(c")
@given(st.text("a A5.'/\n\r\t\x1f\u00a0\u2028s\u00e9\u65e5", max_size=40) | any_text() | dense_text())
def test_the_words_of_a_text_cost_what_its_pieces_cost(text):
    assert price(text) == _price_of_pieces(text) + (0 if text.isascii() else _price_of_no_prose(text))


@given(st.lists(st.sampled_from(["API", "api", "Api a" * 16]) | dense_text(), max_size=6))
def test_what_was_counted_before_changes_no_count(texts):
    _PRICES.clear()
    kept = [*map(estimate, texts), *map(estimate, texts)]
    fresh = []
    for text in texts:
        _PRICES.clear()
        fresh.append(estimate(text))

    assert kept == fresh * 2
    assert all(len(piece) < _CACHED_CHARS for piece in _PRICES)


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


# First and last letter of blocks; letters of them in random order are no prose.
BLOCKS = {
    "Greek": (0x391, 0x3C9), "Cyrillic": (0x410, 0x44F), "Hebrew": (0x5D0, 0x5EA), "Arabic": (0x621, 0x64A),
    "Devanagari": (0x905, 0x94D), "Bengali": (0x985, 0x9CD), "Tamil": (0xB85, 0xBCD), "Thai": (0xE01, 0xE4E),
    "Lao": (0xE81, 0xECD), "Tibetan": (0xF40, 0xFBC), "Burmese": (0x1000, 0x103F), "Georgian": (0x10D0, 0x10F0),
    "Khmer": (0x1780, 0x17D3), "kana": (0x3041, 0x30FE), "Han": (0x4E00, 0x9FA5), "Hangul": (0xAC00, 0xD7A3),
    "marks": (0x300, 0x36F),
}  # fmt: skip
LETTERS = [chr(code) for first, last in BLOCKS.values() for code in range(first, last + 1)]


@lru_cache(maxsize=1)
def letters_and_pairs() -> tiktoken.Encoding:
    """Return a byte-level vocabulary of the first bytes of each block, the usual letters, and the pairs that prose often has."""
    import tiktoken

    blocks = {letter.encode()[:2] for letter in LETTERS if len(letter.encode()) == 3}
    usual = {*map(str.encode, (*_joined(), *_FREQUENT_HAN))}
    tokens = [bytes((byte,)) for byte in range(256)] + sorted(
        blocks | usual, key=lambda token: (len(token), token)
    )
    ranks = {token: rank for rank, token in enumerate(dict.fromkeys(tokens))}
    return tiktoken.Encoding("letters", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens={})


def random_letters(seed: int, blocks: list[str], words: int) -> str:
    """Return words of 4 to 40 random letters, each of one of the blocks."""
    source = random.Random(seed)
    chosen = [assigned(source.choice(blocks)) for _ in range(words)]
    return " ".join(
        "".join(source.choice(letters) for _ in range(source.randint(4, 40))) for letters in chosen
    )


@cache
def assigned(block: str) -> list[str]:
    """Return the letters of a block that Unicode assigns."""
    first, last = BLOCKS[block]
    return [chr(code) for code in range(first, last + 1) if unicodedata.category(chr(code)) != "Cn"]


@given(st.integers(), st.lists(st.sampled_from([*BLOCKS]), min_size=1, max_size=4), st.integers(20, 60))
def test_letters_in_random_order_cost_at_least_what_they_cost_where_only_pairs_are_joined(
    seed, blocks, words
):
    """A vocabulary that joins more needs fewer tokens; only the first letters of a line may still be prose."""
    text = random_letters(seed, blocks, words)

    assert estimate(text) + _WINDOW >= len(letters_and_pairs().encode_ordinary(text))


@pytest.mark.parametrize("block", BLOCKS)
def test_the_vocabulary_of_the_law_needs_no_fewer_tokens_than_a_real_one(block):
    """So what holds for it holds for o200k_base; a few of its pairs are there only inside longer tokens."""
    text = random_letters(7, [block], 60)
    try:
        real = exact.exact("o200k_base", text)
    except BackendUnavailable as error:
        pytest.skip(str(error))

    assert len(letters_and_pairs().encode_ordinary(text)) >= 0.85 * real
    assert estimate(text) >= 0.95 * real


@pytest.mark.parametrize("block", BLOCKS)
def test_a_prompt_of_random_letters_is_within_its_limit_where_only_pairs_are_joined(block, tmp_path):
    home, count = homes.fresh(tmp_path), lambda text: len(letters_and_pairs().encode_ordinary(text))
    aether.open_context("talk", window=4_096, home=home)
    for number in range(12):
        aether.add_message(
            "talk", {"role": "user", "content": random_letters(number, [block], 20)}, home=home
        )

    prompt = aether.build_prompt("talk", home=home)

    counted = sum(message_tokens(one, count) for one in convert.read(prompt.messages, "openai"))
    assert 0 < counted + system_tokens(prompt.system, count) <= prompt.limit
