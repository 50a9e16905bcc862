from aether.backends.extractive.clauses import COMMON
from aether.text.words import stem


def test_common_words_are_stems_and_topics_are_not_among_them():
    assert {stem("going"), stem("wonderful")} <= COMMON
    assert not {stem(word) for word in ("violin", "database", "timeout", "adoption")} & COMMON
