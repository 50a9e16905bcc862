"""Cues: a text is searched for a pattern unless it has no sign of it, and the answer is that of the pattern."""

from __future__ import annotations

import random
import re

import pytest

from aether.text import choices, classify
from aether.text.cues import Cue, by_head, cue, has, likely, said

TABLES = {"wish": classify.WISHES, "choice": choices.OWN_CHOICES}
CUES = {
    **{f"{table} {name}": one for table, cues in TABLES.items() for name, one in cues.items()},
    **{f"kind {place} {kind}": one for place, (kind, one) in enumerate(classify._TABLE)},
    **{
        f"{module.__name__.rpartition('.')[2]} {name}": one
        for module in (classify, choices)
        for name, one in vars(module).items()
        if isinstance(one, Cue)
    },
}
WALKS = 400


@pytest.mark.parametrize("name", CUES)
def test_a_text_is_searched_for_a_cue_if_it_has_it(name):
    one, rng = CUES[name], random.Random(1)
    tree = re._parser.parse(one.small.pattern)
    texts = [_walk(tree, rng) for _ in range(WALKS)]
    texts += [text.upper() for text in texts[:50]] + [f"Well, {text}!" for text in texts[:50]]

    matched = [text for text in texts if one.any_case.search(text)]

    # They are wordings of the cue, so this says something of it.
    assert len(matched) > WALKS / 40, len(matched)
    for text in texts:
        assert has(one, said(text)) == (text in matched), text


@pytest.mark.parametrize("name", CUES)
def test_a_cue_is_written_in_small_letters(name):
    assert not any(map(str.isupper, re.sub(r"\\[A-Z]", "", CUES[name].small.pattern)))


@pytest.mark.parametrize(
    "text", ["\u017ftop mocking te\u017ft\u017f", "THE BU\u0130LD", "wıth me, we'll see"]
)
def test_letters_with_several_small_forms_are_searched_in_any_case(text):
    for one in CUES.values():
        assert has(one, said(text)) == (one.any_case.search(text) is not None)


@pytest.mark.parametrize("table", TABLES)
def test_of_a_table_of_cues_those_are_likely_that_a_text_has(table):
    cues, rng = TABLES[table], random.Random(2)
    heads = by_head(cues)

    for name, one in cues.items():
        for _ in range(20):
            text = said(_walk(re._parser.parse(one.small.pattern), rng))
            others = said("Green.")
            held = [each for each in cues if has(cues[each], text)]
            found = likely(cues, heads, [others, text])
            assert [each for each in found if each in held] == held, (name, text.text)
    assert likely(cues, heads, [others]) == []


def test_a_cue_without_a_sign_is_always_searched_and_one_of_several_groups_needs_each():
    assert has(cue(r"\d"), said("page 7"))
    both = cue("never.*please", "nev alw | ple")

    assert [has(both, said(text)) for text in ("Never do it, please", "never", "please")] == [
        True,
        False,
        False,
    ]


def _walk(parts, rng):
    """Return a text that a parsed pattern describes, by choices of chance; of looks, only a look ahead for something adds to it."""
    made = ""
    for name, given in parts:
        match str(name):
            case "LITERAL":
                made += chr(given)
            case "ANY" | "NOT_LITERAL":
                made += rng.choice("   x")
            case "IN":
                made += _one_of(given, rng)
            case "BRANCH":
                made += _walk(rng.choice(given[1]), rng)
            case "SUBPATTERN":
                made += _walk(given[3], rng)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = given
                times = rng.randint(least, min(most, least + 2))
                made += "".join(_walk(inner, rng) for _ in range(times))
            case "ASSERT" if given[0] > 0:
                made += f"{_walk(given[1], rng)} "
    return made


def _one_of(given, rng):
    if str(given[0][0]) == "NEGATE":
        return rng.choice("   x")
    kind, one = rng.choice(given)
    kinds = {"CATEGORY_WORD": "w", "CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "7"}
    match str(kind):
        case "RANGE":
            return chr(rng.randint(*one))
        case "CATEGORY":
            return kinds.get(str(one), "; ")
        case _:
            return chr(one)
