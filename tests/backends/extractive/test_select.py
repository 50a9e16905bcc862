from aether.backends.extractive.score import BINDS, CARRIES, FILLS, WORTH, Weight, ordered


def weight(terms, cost=5, tier=WORTH, factor=1.0, leans_on=-1):
    return Weight(tier, factor, cost, dict.fromkeys(terms.split(), 1.0), leans_on)


def test_news_per_token_comes_first():
    assert ordered([weight("a b"), weight("c d e"), weight("f g", cost=2)]) == [2, 1, 0]


def test_what_was_said_falls_behind():
    assert ordered([weight("a b c"), weight("a b c"), weight("d")]) == [0, 2, 1]


def test_a_lower_tier_comes_first_whatever_it_costs():
    assert ordered([weight("a b c"), weight("d", cost=50, tier=BINDS), weight("e f g h", tier=FILLS)]) == [
        1,
        0,
        2,
    ]


def test_a_clause_brings_what_it_leans_on_with_it():
    assert ordered([weight("a", cost=20), weight("b c d e", leans_on=0), weight("f", cost=4)]) == [2, 0, 1]


def test_a_follower_gets_cheaper_once_its_head_is_taken():
    assert ordered([weight("a b c"), weight("d", leans_on=0, cost=2), weight("e")]) == [0, 1, 2]


def test_a_carrier_is_taken_only_for_what_leans_on_it():
    assert ordered([weight("a", tier=CARRIES), weight("b", tier=CARRIES), weight("c d", leans_on=1)]) == [
        1,
        2,
    ]


def test_equal_clauses_keep_their_order():
    assert ordered([weight("a"), weight("b"), weight("c")]) == [0, 1, 2]
    assert ordered([]) == []
