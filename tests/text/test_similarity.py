import json
from collections import Counter
from pathlib import Path

from aether.text import similarity as module
from aether.text.similarity import (
    CONTRADICTS_AT,
    SAME_AT,
    containing,
    containment,
    contradicts,
    implied_by,
    index,
    mentioning,
    nearest,
    opposites,
    same,
    similarity,
    supporting,
)
from tests.tables import rows

PAIRS = json.loads((Path(__file__).parent / "similarity_pairs.json").read_text(encoding="utf-8"))


def judged(a, b):
    return "same" if same(a, b) else "contradicts" if contradicts(a, b) else "different"


# Only the even pairs were looked at while the words and thresholds were chosen.
@rows("half", [0, 1], ids=["tuned on", "held out"])
@rows("kind", ["same", "different", "contradicts"])
def test_nine_of_ten_pairs_of_the_table_are_judged_right(kind, half):
    pairs = PAIRS[half::2]
    seen = Counter((wanted, judged(a, b)) for wanted, a, b in pairs)

    right = seen[kind, kind]
    recall = right / sum(count for (wanted, _), count in seen.items() if wanted == kind)
    precision = right / sum(count for (_, got), count in seen.items() if got == kind)

    assert recall >= 0.9
    assert precision >= (0.95 if kind == "contradicts" else 0.85)


def test_the_table_holds_at_least_a_hundred_and_twenty_pairs_of_three_kinds():
    assert len(PAIRS) >= 120
    assert {kind for kind, _, _ in PAIRS} == {"same", "different", "contradicts"}


@rows(
    ("a", "b"),
    [
        ("use X", "do not use X"),
        ("timeout 30", "timeout 60"),
        ("use v2 of the protocol", "use v3 of the protocol"),
        ("always squash commits", "never squash commits"),
    ],
)
def test_what_negates_or_counts_otherwise_contradicts(a, b):
    assert contradicts(a, b)
    assert similarity(a, b) < SAME_AT


@rows(
    ("a", "b"),
    [
        ("edit src/a.py and run the tests", "edit src/b.py and run the tests"),
        ("call read_file before commit", "call read_dir before commit"),
        ("numpy 1.26.4 is installed", "numpy 1.26.5 is installed"),
    ],
)
def test_other_paths_identifiers_and_versions_are_other_things(a, b):
    assert not same(a, b)
    assert not contradicts(a, b)


def test_two_differences_agree_again():
    assert not contradicts("The timeout must not be 30", "The timeout must be 60")


def test_a_question_states_nothing():
    assert not same("Should we use tabs?", "We should use tabs")
    assert not contradicts("Should we use tabs?", "Never use tabs")


def test_text_without_words_is_like_itself_only():
    assert similarity("???", "???") == 1.0
    assert similarity("???", "!!!") == 0.0
    assert similarity("", "use tabs") == 0.0


def test_containment_asks_for_every_number_name_and_sign():
    whole = "We cap retries at 3 in src/net.py and log each of them"

    assert containment("Cap retries at 3", whole) == 1.0
    assert containment("Cap retries at 4", whole) == 0.0
    assert containment("Cap retries in src/web.py", whole) == 0.0
    assert containment("Do not cap retries", whole) == 0.0
    assert containment("???", whole) == 0.0
    assert containment("???", "???") == 1.0


def test_nearest_finds_what_a_full_scan_finds():
    statements = sorted({text for _, *pair in PAIRS for text in pair})
    found = index(statements)

    for statement in statements:
        scanned = [at for at, other in enumerate(statements) if similarity(statement, other) >= SAME_AT]
        assert sorted(near.at for near in nearest(statement, found)) == scanned


def test_opposites_finds_what_a_full_scan_finds():
    statements = sorted({text for _, *pair in PAIRS for text in pair})
    found = index(statements)

    for statement in statements:
        assert opposites(statement, found) == [
            at for at, other in enumerate(statements) if contradicts(statement, other)
        ]


def test_holders_finds_what_a_full_scan_finds():
    statements = sorted({text for _, *pair in PAIRS for text in pair})

    for statement in statements[::7]:
        scanned = [at for at, other in enumerate(statements) if containment(statement, other) >= 0.7]
        assert containing(statement, statements, at_least=0.7) == scanned


def test_mentions_are_found_whatever_is_said():
    later = ["The failing Windows tests were fixed", "The Windows build is slow", "Tests pass on Linux"]

    assert mentioning("The tests fail on Windows", later, at_least=0.9) == [0]
    assert mentioning("The tests fail on Windows", later, at_least=0.5) == [0, 2]


def test_the_most_like_comes_first():
    near = nearest(
        "Use tabs in Makefiles",
        ["Use tabs in our Makefiles and recipes", "Use locks", "Use tabs in Makefiles"],
    )

    assert [each.at for each in near] == [2, 0]
    assert near[0].similarity == 1.0


def test_a_rare_stem_keeps_the_search_from_reading_everything():
    """Statements that share only common stems with the one asked about are never compared."""
    found = index([f"Use locks for the {name}{name} counter" for name in map("{:05d}".format, range(500))])

    assert nearest("Use quartz for crystals", found, at_least=SAME_AT) == []
    assert CONTRADICTS_AT < SAME_AT


RULE = "Keep every amount as integer cents"


@rows(
    "statement",
    [
        "VAT amounts are integer cents as well, no floats anywhere.",
        "The reminder fee is an amount in integer cents too, please no floats.",
        "Money is kept in whole cents; a float must never get into an amount.",
        "Amounts are stored as integer cents",
    ],
)
def test_a_rule_is_backed_by_what_says_it_among_other_things(statement):
    assert supporting(RULE, [statement]) == [0]
    assert implied_by(statement, ["Prefer tabs in Makefiles", RULE]) == [1]


@rows(
    ("rule", "statement"),
    [
        (RULE, "Are amounts integer cents here?"),
        (RULE, "Never keep an amount as integer cents, use floats"),
        (
            RULE,
            "Amounts and cents of a printed page, a sold book, red houses, cold rivers, old boats and lamps are integer",
        ),
        ("Retry uploads 3 times", "Retry uploads 5 times and log each of them"),
        ("Lock src/a.py before writing", "Lock src/b.py before writing the long report"),
        ("Use SQLite", "We use SQLite for the long list of red books"),
    ],
)
def test_a_rule_is_not_backed_by_questions_opposites_long_texts_or_other_names(rule, statement):
    assert supporting(rule, [statement]) == []
    assert implied_by(statement, [rule]) == []


def test_what_is_most_like_a_statement_comes_before_what_it_says_beside():
    statement = "VAT amounts are integer cents"

    assert implied_by(statement, ["Amounts are cents as integers", "VAT amounts are integer cents too"]) == [
        1,
        0,
    ]


def test_many_statements_without_a_rare_word_are_compared_with_a_part_of_them(monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", 30)
    statements = [
        f"{word} red blue green" for word in "fast slow big small old new odd even first last".split()
    ]

    assert len(nearest("red blue green", statements, at_least=0.1)) == 3
