from aether.backends.extractive.clauses import PIECE_CHARS, split_clauses, trim, unbulleted
from tests.tables import rows


@rows(
    ("sentence", "short"),
    [
        ("Wow, that really works.", "that works."),
        ("I think that the cache is so slow.", "the cache is slow."),
        ("We use tabs, you know.", "We use tabs."),
        ("The parser (which is old) fails.", "The parser fails."),
        ("  a\n b ", "a b"),
        ("Thanks!", "Thanks!"),
    ],
)
def test_fillers_are_dropped(sentence, short):
    assert trim(sentence) == short


@rows(
    "sentence",
    [
        "Do not use just tabs" + ", only spaces.",
        "The parser (see src/parser.py) fails.",
        'He wrote "I really just want it".',
        "Ran `git commit -m 'really just this'` today.",
        "x = really(very) + just;",
        "It is so that nobody waits.",
    ],
)
def test_what_means_something_stays(sentence):
    assert trim(sentence).replace(" just", "") == sentence.replace(" just", "")


def test_quotes_and_code_are_left_alone():
    assert trim('He wrote "I really just want it".') == 'He wrote "I really just want it".'
    assert trim("x = really(very) + just;") == "x = really(very) + just;"


def test_speech_needs_no_subject_and_no_names():
    names = frozenset({"Melanie", "Jon"})

    assert (
        trim("Thanks, Mel! I've been running with the dog.", names=names, spoken=True)
        == "been running with the dog."
    )
    assert trim("I fixed it.") == "I fixed it."
    assert trim("Melanie has a dog, Jon!", names=names, spoken=True) == "Melanie has a dog!"


def test_list_marks_go_unless_nothing_else_is_there():
    assert trim("- 2. Keep it short") == "Keep it short"
    assert unbulleted("- ") == "- "


@rows(
    ("text", "cut"),
    [
        ("I went home, and she stayed", ["I went home", "she stayed"]),
        ("It failed because the disk was full", ["It failed", "because the disk was full"]),
        (
            "We saw lions, tall giraffes, and sleeping bears",
            ["We saw lions", "tall giraffes", "sleeping bears"],
        ),
        ("If the tests fail, revert the change", ["If the tests fail, revert the change"]),
        ("It passes, but only on Linux machines", ["It passes, but only on Linux machines"]),
        ("Reading and writing books is fun", ["Reading and writing books is fun"]),
        ("We love black and white", ["We love black and white"]),
        (
            "It said `a, b c, d e` and then it stopped here",
            ["It said `a, b c, d e` and then it stopped here"],
        ),
    ],
)
def test_a_sentence_is_cut_into_clauses_but_never_from_what_qualifies_it(text, cut):
    assert [piece.text for piece in split_clauses(text)] == cut


def test_joints_put_the_clauses_together_again():
    text = "We saw lions, tall giraffes, and bears that slept, which was fun; we left late"

    assert "".join(piece.joint + piece.text for piece in split_clauses(text)) == text


def test_a_clause_says_whether_it_stands_and_what_it_follows():
    stands, follows, leans = (
        split_clauses("I fixed it, and it passes now")[1],
        split_clauses("We left the house which was cold")[1],
        split_clauses("We saw lions, tall giraffes")[1],
    )

    assert (stands.stands, follows.stands, leans.stands) == (True, False, False)
    assert (follows.follows, leans.follows) == (True, False)


def test_a_line_of_output_is_cut_behind_what_it_names():
    cut = split_clauses("Changed src/app.py {2 edits}: now with a = b; and more")

    assert [piece.text for piece in cut] == ["Changed src/app.py {2 edits}", "now with a = b; and more"]
    assert len(split_clauses("Ran `make a=b; echo x: y`")) == 1
    assert len(split_clauses("odd {thing}: here = there")) == 1


def test_a_whole_sentence_is_not_cut():
    assert len(split_clauses("I went home, and she stayed", whole=True)) == 1


def test_data_is_cut_by_length_and_nothing_is_lost():
    words = "word " * 300
    lump = "x" * 1000

    for text in (words, lump):
        cut = split_clauses(text, whole=True)
        assert "".join(piece.joint + piece.text for piece in cut).strip() == text.strip()
        assert all(len(piece.text) <= PIECE_CHARS for piece in cut)
        assert [piece.stands for piece in cut] == [True] + [False] * (len(cut) - 1)
