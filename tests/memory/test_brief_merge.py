from aether.memory.briefing.block import Line, without_repeats
from tests.memory.briefs import at
from tests.tables import rows


@rows(
    ("one", "other"),
    [
        ("Never push to main.", "never push to main"),
        ("Always use atomic writes for state files", "Use atomic writes for state files."),
        ("Run the unit tests before every commit", "Run unit tests before every commit, please"),
        ("???", "???"),
    ],
)
def test_what_says_the_same_is_alike(one, other):
    assert without_repeats([Line("rules", one), Line("rules", other)], most=9) == [Line("rules", one)]


@rows(
    ("one", "other"),
    [
        ("Never commit to main", "Never commit to master"),
        ("Every public function in the parser needs a docstring", "Every public function in the lexer needs a docstring"),
        ("Edit src/a.py first", "Edit src/b.py first"),
        ("At most 4 workers", "At most 8 workers"),
        ("Use floats", "Never use floats"),
        ("Never use floats", "Never use floats for money in the ledger"),
        ("???", "!!!"),
    ],
)  # fmt: skip
def test_what_differs_in_a_word_a_name_a_number_or_a_negation_is_not_alike(one, other):
    assert len(without_repeats([Line("rules", one), Line("rules", other)], most=9)) == 2


@rows(
    ("one", "other", "expected"),
    [
        ("At most 4 workers", "At most 8 workers", True),
        ("Use floats for money", "Never use floats for money", True),
        ("Don't cache the tokens", "Cache the tokens", True),
        ("Never use 4 workers", "Use 8 workers", False),
        ("Edit a.py", "Never edit b.py", False),
        ("Port 8080 for the api", "Port 8081 for the web", False),
    ],
)
def test_opposed_is_what_differs_only_in_a_negation_or_a_number(one, other, expected):
    for lines in ([Line("rules", one), Line("rules", other)], [Line("rules", other), Line("rules", one)]):
        assert (len(without_repeats(lines, most=9, replacing=True)) == 1) is expected


def test_of_repetitions_the_newest_stays():
    lines = [
        Line("rules", "Use tabs.", at(3)),
        Line("rules", "use tabs", at(1)),
        Line("rules", "Be brief.", at(2)),
    ]

    assert without_repeats(lines, most=9) == [lines[0], lines[2]]


def test_the_newer_of_two_that_cannot_both_hold_says_what_it_replaces():
    lines = [Line("rules", "At most 8 workers", at(3)), Line("rules", "At most 4 workers", at(1))]

    assert without_repeats(lines, most=9, replacing=True) == [
        lines[0]._replace(note="replaces what was said on 2026-02-01")
    ]
    assert without_repeats(lines, most=9) == lines


def test_a_note_is_not_overwritten():
    lines = [
        Line("rules", "At most 8 workers", at(3), "all projects"),
        Line("rules", "At most 4 workers", at(2)),
        Line("rules", "At most 2 workers"),
    ]

    assert without_repeats(lines, most=9, replacing=True) == lines[:1]


def test_what_is_replaced_may_have_no_day():
    lines = [Line("rules", "At most 8 workers", at(3)), Line("rules", "At most 2 workers")]

    assert without_repeats(lines, most=9, replacing=True)[0].note == "replaces what was said before"


def test_no_more_lines_are_read_than_are_told():
    unread = iter(
        [
            Line("requests", "One thing"),
            Line("requests", "one thing."),
            Line("requests", "Another"),
            Line("requests", "Third"),
        ]
    )

    assert [line.text for line in without_repeats(unread, most=2)] == ["One thing", "Another"]
    assert without_repeats([], most=2) == []
