"""Which statements are the same, contradict or contain each other, and the fingerprints behind it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from aether.text import similarity as module
from aether.text.similarity import (
    CACHED_CHARS,
    CONTRADICTS_AT,
    SAME_AT,
    contradicts,
    implied_by,
    index,
    meaning,
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


NEGATED = [
    # "A without B" and "A with B"
    ("contradicts", "Never push to main without a review.", "Always push to main without a review."),
    ("contradicts", "Never deploy without a backup", "Deploy without a backup"),
    ("contradicts", "Merge without squashing", "Merge with squashing"),
    ("contradicts", "Answer without emojis", "Answer with emojis"),
    ("contradicts", "Write the tests without mocks", "Write the tests with mocks"),
    ("contradicts", "Build the wheel without the docs", "Never build the wheel without the docs"),
    ("contradicts", "Run the migration without downtime", "Run the migration with downtime"),
    ("contradicts", "Always release with a changelog entry", "Always release without a changelog entry"),
    ("contradicts", "Keine Tests ohne Datenbank", "Tests ohne Datenbank"),
    ("same", "Never push to main without a review.", "Always push to main with a review."),
    ("same", "Never push to main without a review", "Do not push to main without a review"),
    ("same", "No merge without a review", "Never merge without a review"),
    ("same", "Write the tests without mocks", "Write tests without any mocks"),
    ("same", "Don't release without a changelog entry", "Release only with a changelog entry"),
    ("same", "Never deploy without a fresh backup", "Never deploy without fresh backups"),
    ("different", "Never push to main without a review.", "Never push to main."),
    ("different", "Never push to main without a review.", "Push to main."),
    ("different", "Never deploy without a backup", "Never deploy without a review"),
    ("different", "Answer without emojis", "Answer without tables"),
    ("different", "Never merge without a review", "Never review without a checklist"),
    # "no X" and "X"
    ("contradicts", "No mocks in integration tests", "Use mocks in integration tests"),
    ("contradicts", "No mocks in integration tests", "Mocks in integration tests"),
    ("contradicts", "No semicolons in JavaScript", "Semicolons in JavaScript"),
    ("contradicts", "No trailing commas", "Always trailing commas"),
    ("same", "No mocks in integration tests", "Never use mocks in integration tests"),
    ("same", "No global state", "Avoid global state"),
    ("same", "No abbreviations in names", "Names without abbreviations"),
    ("different", "No mocks in integration tests", "No sleeps in integration tests"),
    # double negation
    ("same", "Never disable telemetry", "Keep telemetry enabled"),
    ("same", "Do not disable the cache", "Leave the cache enabled"),
    ("same", "Never deploy without tests", "Do not deploy without tests"),
    ("contradicts", "Never disable the cache", "Disable the cache"),
    ("contradicts", "Never skip the linter", "Skip the linter"),
    ("contradicts", "Don't avoid recursion in the parser", "Avoid recursion in the parser"),
    ("contradicts", "Never leave the table unlocked", "Leave the table unlocked"),
    # neither
    ("different", "Never delete the migration files", "Never rename the migration files"),
    ("different", "Never skip the integration tests", "Don't run the integration tests"),
    ("different", "Never retry without a delay", "Log every retry with its id"),
    ("different", "Run the tests without network", "Run the linter without network"),
    ("different", "Ship without docs", "Write docs with examples"),
]


@rows(("kind", "a", "b"), NEGATED)
def test_without_no_and_two_negations_mean_what_they_say(kind, a, b):
    assert judged(a, b) == judged(b, a) == kind


@rows(
    ("a", "b"),
    [
        ("use X", "do not use X"),
        ("timeout 30", "timeout 60"),
        ("use v2 of the protocol", "use v3 of the protocol"),
        ("always squash commits", "never squash commits"),
        ("Retry uploads 3 times", "Retry uploads 5 times"),
        ("Use 4 spaces for the indent", "Use 2 spaces for the indent"),
        ("Never use more than 4 workers", "Never use more than 8 workers"),
        ("Limit the cache to 500 entries", "Limit the cache to 900 entries"),
        ("always allow 3 retries per request", "always allow 5 retries per request"),
        ("Always use port 8080 for the API", "Always use port 9090 for the API"),
        ("Indent: 4 spaces, no tabs", "Indent: 2 spaces, no tabs"),
        ("A budget of 2000 for each start", "A budget of 1000 for each start"),
        ("Retry-3 is the policy of uploads", "Retry-5 is the policy of uploads"),
    ],
)
def test_a_negation_or_another_number_contradicts(a, b):
    assert contradicts(a, b)
    assert similarity(a, b) < SAME_AT


@rows(
    ("a", "b"),
    [
        ("edit src/a.py and run the tests", "edit src/b.py and run the tests"),
        ("call read_file before commit", "call read_dir before commit"),
        ("numpy 1.26.4 is installed", "numpy 1.26.5 is installed"),
        ("Never deploy to eu-1 on Fridays.", "Never deploy to eu-2 on Fridays."),
        ("Deploy the site to eu-west-1", "Deploy the site to eu-west-2"),
        ("Never restart node 1 during the day", "Never restart node 2 during the day"),
        ("Never restart node 1", "Restart node 2"),
        ("Shard 1 lives on host alpha", "Shard 2 lives on host beta"),
        ("Invoices of 2024 are locked", "Invoices of 2025 are locked"),
        ("The API server listens on port 8080", "The admin server listens on port 8081"),
    ],
)
def test_other_paths_identifiers_numbers_and_versions_are_other_things(a, b):
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


def test_nearest_equals_a_full_scan():
    statements = sorted({text for _, *pair in PAIRS for text in pair})
    found = index(statements)

    for statement in statements:
        scanned = [at for at, other in enumerate(statements) if similarity(statement, other) >= SAME_AT]
        assert sorted(near.at for near in nearest(statement, found)) == scanned


def test_opposites_equals_a_full_scan():
    statements = sorted({text for _, *pair in PAIRS for text in pair})
    found = index(statements)

    for statement in statements:
        assert opposites(statement, found) == [
            at for at, other in enumerate(statements) if contradicts(statement, other)
        ]


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
def test_a_statement_supports_a_rule_it_contains_among_other_things(statement):
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
def test_questions_opposites_long_texts_and_other_names_do_not_support_a_rule(rule, statement):
    assert supporting(rule, [statement]) == []
    assert implied_by(statement, [rule]) == []


def test_the_most_similar_implied_statement_comes_first():
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


@rows(
    ("a", "b"),
    [
        ("1 minute", "60 seconds"),
        ("30s", "30 sec"),
        ("2 kB", "2000"),
        ("three times", "3x"),
        ("1,000 files", "1000 files"),
        ("5_000", "5000"),
        ("30秒", "30 seconds"),
        ("v2", "2"),
    ],
)
def test_equal_amounts_are_one_number(a, b):
    assert meaning(a).numbers == meaning(b).numbers != frozenset()


@rows(
    ("a", "b"), [("-5", "5"), ("1.5", "15"), ("123456789012345678", "123456789012345679"), ("5 s", "5 min")]
)
def test_other_amounts_are_other_numbers(a, b):
    assert meaning(a).numbers != meaning(b).numbers


@rows(
    ("text", "names"),
    [
        ("edit src/a.py", {"src/a.py"}),
        ("open /etc/hosts and ~/x", {"/etc/hosts", "~/x"}),
        ("call fetch_user and getName", {"fetch_user", "getname"}),
        ("pin 1.26.4 and v0.23.5", {"1.26.4", "0.23.5"}),
        ("on 2026-03-01", {"2026-03-01"}),
        ("see https://example.org/x?y=1 for more", {"https://example.org/x?y=1"}),
        ("pass --dry-run", {"--dry-run"}),
        ("issue #12 in phase 3", {"#12", "phase 3"}),
        ("write it in C++", {"c++"}),
        ("commit a1b2c3d4", {"a1b2c3d4"}),
        ("use os.path here", {"os.path"}),
        ("read/write access", set()),
    ],
)
def test_paths_identifiers_and_versions_are_names(text, names):
    assert meaning(text).names == names


def test_only_the_rejected_option_is_left_out():
    assert meaning("Use tabs, not spaces").signs == {"tab": 1}
    assert meaning("Instead of spaces, use tabs").rejected == {"space"}
    assert contradicts("Prefer tabs over spaces", "Prefer spaces over tabs")


def test_a_reason_decides_nothing():
    assert same("Use locks because 3 writers never wait", "Use locks")


def test_a_negation_turns_its_own_clause():
    assert meaning("State files are never shared. Locks are short").signs == {"state": -1, "file": -1, "share": -1, "lock": 1, "short": 1}  # fmt: skip


def test_words_with_another_ending_or_a_typing_error_are_alike():
    assert same("Rewrite the telemetry exporter", "Rewrite the telemettry exporter")
    assert not same("Encode the payload", "Decode the payload")


def test_a_long_statement_is_read_too():
    assert meaning("lock " * CACHED_CHARS).signs == meaning("lock").signs
