from aether.text.classify import classify
from tests.tables import rows


@rows(
    ("sentence", "kind"),
    [
        ("We chose SQLite because it needs no server.", "decision"),
        ("Going with tabs instead of spaces.", "decision"),
        ("Never commit to main.", "constraint"),
        ("The cache must hold at most 100 entries.", "constraint"),
        ("I prefer short functions.", "preference"),
        ("The build is blocked by a missing key.", "blocker"),
        ("The upload crashes with a ValueError.", "blocker"),
        ("The root cause was a stale lock.", "solution"),
        ("Fixed the failing login test.", "solution"),
        ("All 42 tests passed.", "outcome"),
        ("Added a health endpoint.", "outcome"),
        ("Let me look at the config first.", "exploration"),
        ("I'm not sure, what if the clock is off.", "exploration"),
        ("Thanks, sounds good!", "chatter"),
        ("", "chatter"),
        ("The port is 8080.", "fact"),
    ],
)
def test_a_sentence_is_of_the_kind_its_words_tell(sentence, kind):
    assert classify(sentence) == kind


@rows("sentence", ["The prefix holds the mustard.", "Passages and creatures.", "A fixture."])
def test_parts_of_words_are_no_cues(sentence):
    assert classify(sentence) == "fact"


def test_marks_of_a_list_and_curly_quotes_change_nothing():
    assert classify("  - **Don’t use** tabs") == classify("Don't use tabs") == "constraint"


def test_a_long_sentence_is_never_chatter():
    assert classify(" ".join(["thanks"] * 20)) == "fact"


@rows(
    ("sentence", "kind"),
    [
        ("Checking the tables: I decided to use pgloader.", "decision"),
        ("Looking at the schema, we will use pgloader instead of COPY.", "decision"),
        ("Looking at what we decided.", "exploration"),
        ("Let me see whether we chose it.", "exploration"),
    ],
)
def test_a_choice_is_one_however_the_sentence_opens(sentence, kind):
    assert classify(sentence) == kind
