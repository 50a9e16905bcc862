"""Laws of similarity and of rules: symmetric, reflexive, and verbatim."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aether.text import choices, classify, cues, words
from aether.text.classify import message_by_kind, rule, rules, without_lead_in
from aether.text.regex import UNPRINTABLE
from aether.text.similarity import CONTRADICTS_AT, SAME_AT, contradicts, index, nearest, same, similarity
from aether.text.words import sentences

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
def test_the_index_equals_a_scan(among, asked, at_least):
    found = nearest(asked, index(among), at_least=at_least)

    assert sorted(near.at for near in found) == [
        at for at, other in enumerate(among) if similarity(asked, other) >= at_least
    ]


def requests():
    """Return a strategy of what people ask for: rules, bullets, lead-ins and wishes in any order, and any text."""
    words = (
        "- 1. ok. please remember that never use floats must always prefer tabs . ! ? the amounts are, I need"
    )
    parts = st.sampled_from(
        [*words.split(), "\n", "And same as always:", "before every commit", "from now on"]
    )
    return st.lists(parts, max_size=14).map(" ".join) | st.text(max_size=80)


@given(requests())
def test_the_text_of_a_rule_is_verbatim(text):
    for sentence in sentences(text):
        found = rule(sentence)
        assert sentence.strip().endswith(without_lead_in(sentence))
        assert found is None or found.text in sentence


@given(requests())
@example("- and the amounts must never be floats")
def test_a_rule_in_its_own_words_is_the_same_rule(text):
    for found in rules(sentences(text), text):
        assert rule(found.text) == found


@given(requests())
def test_the_parts_of_a_message_are_the_message_or_verbatim_rules(text):
    said = message_by_kind(text)
    assert said
    for kind, wording in said:
        assert wording == text or (kind in {"constraint", "preference"} and wording in " ".join(text.split()))


@given(st.text(alphabet=".!?\"')]*_` ab1\n\t(", max_size=30))
def test_sentences_of_plain_letters_end_where_all_others_do(text):
    ends = [found.span() for found in words._ASCII_END.finditer(text)]

    assert ends == [found.span() for found in words._END.finditer(text)]


@given(
    st.lists(
        st.sampled_from(
            "- ok, and also please Note: now then: 1) a) the rule don't forget that ! x".split(" ")
        )
    ).map(" ".join)
)
def test_a_lead_in_is_what_the_pattern_takes_from_the_start(text):
    rest = text.strip()
    for _ in range(classify.MOST_LEAD_INS):
        rest = classify._LEAD_IN.sub("", rest, count=1)

    assert without_lead_in(text) == (rest or text.strip())


def test_every_character_that_is_replaced_is_looked_for():
    every = "".join(map(chr, range(0x110000)))

    assert [one for one in UNPRINTABLE.findall(every) if one.isprintable() or one in "\n\t"] == []


CUES = [one for module in (classify, choices) for one in vars(module).values() if isinstance(one, cues.Cue)]
CUES += [one for _, one in classify._TABLE]


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.small.pattern[:20])
@settings(max_examples=20)
@given(data=st.data())
def test_a_text_that_has_a_cue_is_searched_for_it(cue, data):
    text = data.draw(st.from_regex(re.compile(cue.any_case.pattern, re.IGNORECASE)))

    assert cues.has(cue, cues.said(text))
