"""Selection: which units are chosen, whatever the script."""

import time

from hypothesis import given
from hypothesis import strategies as st

from aether.text.selection import Unit, choose, heaviest_fitting, longest_front, units_of
from aether.tokens.estimate import estimate
from tests.effort import examples
from tests.tables import rows

relaxed = examples(100)


def count(text):
    return -(-len(text) // 4)


def units():
    """Return a strategy of units of any text, some alike, some required."""
    words = st.lists(
        st.sampled_from("cache parser 8080 src/a.py не кеш порт 缓存 解析器 ポート the of".split()),
        max_size=6,
    ).map(" ".join)
    return st.lists(
        st.builds(Unit, words | st.text(max_size=40), st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
    )


@relaxed
@given(units(), st.integers(0, 80), st.sampled_from([count, estimate, len]))
def test_the_budget_holds_the_order_stays_and_no_text_is_chosen_twice(given_units, most, counter):
    chosen = choose(given_units, most=most, count=counter)

    texts = [given_units[place].text for place in chosen]
    assert sum(map(counter, texts)) <= most
    assert chosen == sorted(set(chosen))
    assert len({"".join(text.split()).casefold() for text in texts}) == len(texts)
    assert chosen == choose(list(given_units), most=most, count=counter)


@relaxed
@given(units(), st.integers(0, 80))
def test_what_is_required_comes_first(given_units, most):
    chosen = set(choose(given_units, most=most, count=count))
    required = [unit for unit in given_units if unit.required]

    alone = choose(required, most=most, count=count)

    assert sum(given_units[place].required for place in chosen) >= len(alone) * bool(most)


@relaxed
@given(st.text(max_size=300))
def test_units_hold_every_word_of_a_text(text):
    kept = "".join("".join(unit.text.split()) for unit in units_of(text))

    assert kept.replace("`", "").replace("~", "") == "".join("".join(text.splitlines()).split()).replace(
        "`", ""
    ).replace("~", "")


@rows(
    "rare, common",
    [
        ("The deadline moved to Lisbon on 14 March.", "It is what it is and so it goes on."),
        ("截止日期改到了三月十四日的里斯本。", "是的是的是的。"),
        ("Срок перенесли в Лиссабон на 14 марта.", "Ну да да."),
    ],
)
def test_what_carries_more_is_chosen_in_any_script(rare, common):
    listed = [Unit(common), Unit(rare), Unit(common + " " + common)]

    assert choose(listed, most=count(rare) + 1, count=count) == [1]


def test_of_two_that_say_the_same_the_second_makes_room_for_something_new():
    listed = [
        Unit("The cache of the parser is stale.", 6.0),
        Unit("Stale is the cache of the parser.", 6.0),
        Unit("A queue overflows at night."),
    ]

    assert choose(listed, most=18, count=count) == [0, 2]


def test_of_little_room_what_is_required_takes_it():
    listed = [
        Unit("The parser of `src/load.py` reads 8080 lines of Lisbon."),
        Unit("So it is and so be it.", required=True),
    ]

    assert choose(listed, most=14, count=count) == [1]


def test_a_block_of_code_is_one_unit_and_a_list_is_lines():
    text = "Run this:\n```\nmake all\nmake check\n```\n- one thing\n- another\nIt works. Does it?"

    parts = units_of(text)

    assert [unit.text for unit in parts] == [
        "Run this:", "```\nmake all\nmake check\n```", "- one thing", "- another", "It works.", "Does it?",
    ]  # fmt: skip
    assert parts[5].weight < parts[4].weight < parts[0].weight


def test_thousands_of_units_take_less_than_seconds():
    listed = [
        Unit(f"Entry {n % 999} of table {n} holds colour {n * 7919 % 10007} of `src/part{n}.py`.")
        for n in range(5_000)
    ]

    started = time.process_time()
    chosen = choose(listed, most=20_000, count=estimate)

    assert chosen
    assert time.process_time() - started < 5


def test_the_longest_front_is_the_last_number_that_fits():
    assert [longest_front(4, lambda number, most=most: number <= most) for most in (0, 2, 4, 9)] == [
        0,
        2,
        4,
        4,
    ]
    assert longest_front(0, lambda number: True) == 0


def test_the_heaviest_that_fit_are_taken_and_the_newest_of_equals():
    assert heaviest_fitting([(1, 0.5, 60), (2, 0.9, 50), (3, 0.5, 40), (4, 0.5, 40)], most=100) == {2, 4}
    assert heaviest_fitting([(1, 0.9, 101), (2, 0.1, 100)], most=100) == {2}
    assert heaviest_fitting([], most=100) == set()
