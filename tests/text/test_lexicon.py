from aether.text import similarity
from aether.text.words import words
from tests.tables import rows


@rows("table", ["NOT", "WITHOUT", "BUT", "BECAUSE", "PREFER", "TURNS", "LABELS"])
def test_words_are_written_as_the_text_is_read(table):
    for word in getattr(similarity, table):
        assert word == word.casefold()


def test_no_word_means_two_opposite_things():
    turned = {word for word, (_, turn) in similarity.OPPOSITES.items() if turn < 0}
    straight = {word for word, (_, turn) in similarity.OPPOSITES.items() if turn > 0}

    assert not turned & straight
    assert not turned & similarity.NOT


def test_every_opposite_folds_into_a_word_that_stays_itself():
    for word, (head, _) in similarity.OPPOSITES.items():
        assert similarity.OPPOSITES[head] == (head, 1), word


def test_equal_words_fold_in_one_step():
    for word, head in similarity.EQUAL.items():
        assert similarity.EQUAL[head] == head, word


def test_markers_written_for_phrases_are_no_words():
    for _, written in similarity.PHRASES:
        if written in "¬⊖∵":
            assert not list(words(written))


def test_units_and_number_words_are_positive_amounts():
    assert all(scale > 0 for scale in similarity.UNITS.values())
    assert all(number >= 0 for number in similarity.NUMBER_WORDS.values())
