"""Laws of similarity: symmetric and reflexive."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.text import words
from aether.text.regex import UNPRINTABLE
from aether.text.similarity import (
    CONTRADICTS_AT,
    SAME_AT,
    contradicts,
    index,
    meaning,
    nearest,
    same,
    similarity,
)

PAIRS = json.loads((Path(__file__).parents[1] / "text" / "similarity_pairs.json").read_text(encoding="utf-8"))


def statements():
    """Return a strategy of statements: written ones, words of them mixed anew, and any text at all."""
    written = sorted({text for _, *pair in PAIRS for text in pair})
    vocabulary = sorted(
        {word for text in written for word in text.split()}
        | {
            "30",
            "60",
            "v1.2.3",
            "1.2.4",
            "v7",
            "src/a.py",
            "5_000",
            "C++",
            "--x",
            "#3",
            "phase",
            "ms",
            "not",
            "never",
            ".",
            ",",
        }
    )
    mixed = st.lists(st.sampled_from(vocabulary), max_size=8).map(" ".join)
    return st.sampled_from(written) | mixed | st.text(max_size=40)


@given(statements(), statements())
def test_similarity_is_symmetric_and_between_0_and_1(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert 0.0 <= similarity(a, b) <= 1.0
    assert contradicts(a, b) == contradicts(b, a)


@given(statements())
def test_every_statement_is_the_same_as_itself_and_never_contradicts_itself(a):
    assert similarity(a, a) == 1.0
    assert not contradicts(a, a)


@given(statements(), statements())
def test_same_statements_do_not_contradict(a, b):
    assert not (same(a, b) and contradicts(a, b))


@given(st.lists(statements(), max_size=12), statements(), st.sampled_from([CONTRADICTS_AT, SAME_AT, 0.9]))
def test_the_index_finds_what_a_scan_finds(among, asked, at_least):
    found = {near.at for near in nearest(asked, index(among), at_least=at_least)}
    scanned = {at for at, other in enumerate(among) if similarity(asked, other) >= at_least}

    assert found <= scanned
    # Words that are only alike are compared with statements that share a word.
    assert {at for at in scanned if same_words(asked, among[at])} <= found


def same_words(a, b):
    return meaning(a).signs.keys() == meaning(b).signs.keys()


@given(st.text(alphabet=".!?\"')]*_` ab1\n\t(", max_size=30))
def test_sentences_of_plain_letters_end_where_all_others_do(text):
    ends = [found.span() for found in words._ASCII_END.finditer(text)]

    assert ends == [found.span() for found in words._END.finditer(text)]


def test_every_character_that_is_replaced_is_looked_for():
    every = "".join(map(chr, range(0x110000)))

    assert [one for one in UNPRINTABLE.findall(every) if one.isprintable() or one in "\n\t"] == []
